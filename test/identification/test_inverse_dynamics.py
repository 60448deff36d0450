"""Claims about inverse dynamics: exact data give exact parameters, noisy data a sigma that holds."""

from dataclasses import replace

import numpy as np
import pytest

from friction_estimator.config.robot import Coupling
from friction_estimator.errors import ConfigError, InputError
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.decision import choose_treatment
from friction_estimator.identification.inverse_dynamics.method import (
    estimate_inverse_dynamics,
    identify_inverse_dynamics,
)
from friction_estimator.identification.inverse_dynamics.options import InverseDynamicsOptions
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.identification.linear_problem import SolverOptions
from friction_estimator.identification.recording.motion import to_motion
from friction_estimator.identification.rigid_body import RigidBodyOptions

from .arm import (
    COULOMB,
    DRIVE_INERTIA,
    HANGING,
    JOINTS,
    OFFSET,
    PAYLOAD,
    URDF,
    VISCOUS,
    as_motion,
    coulomb_viscous,
    move,
    rigid_torque,
)

PLAIN = InverseDynamicsOptions(
    solver=SolverOptions(weighted=False, robust=False, bounded=False),
    urdf_sigma=np.inf,
    offset=True,
    delay=0.0,
    dead_zone=1e-3,
    parallel_hz=20.0,
)


def model(joints=JOINTS):
    return FixedBaseModel(URDF, joints)


def noisy_motion(seed, duration=40.0, noise=0.5, extra=0.0):
    motion = move(seed, duration)
    error = noise * np.random.default_rng(seed + 100).normal(size=motion[0].shape)
    return as_motion(motion, rigid_torque(motion) + coulomb_viscous(motion[1]) + error + extra)


def values(result):
    return dict(zip(result.parameters.names, result.parameters.values, strict=True))


def test_exact_data_of_two_payloads_give_exact_friction_and_the_bodies_of_the_urdf():
    motions = []
    for seed, payload in ((0, None), (1, PAYLOAD)):
        motion = move(seed)
        motions.append(as_motion(motion, rigid_torque(motion, payload) + coulomb_viscous(motion[1]), payload))
    options = replace(PLAIN, body=RigidBodyOptions(payload_scale=True))
    result = identify_inverse_dynamics(motions, model(), options)
    np.testing.assert_allclose(result.friction.values, np.column_stack((COULOMB, VISCOUS)), rtol=1e-7)
    found = values(result)
    assert found["payload scale"] == pytest.approx(1.0, abs=1e-8)
    assert found["shoulder/offset"] == pytest.approx(OFFSET[0], abs=1e-7)
    known = np.isfinite(result.parameters.reference)
    np.testing.assert_allclose(result.parameters.values[known], result.parameters.reference[known], atol=1e-7)
    assert known.sum() >= 5
    assert all(score.relative_error < 1e-7 < 0.1 < score.rigid_body_error for score in result.scores)


def test_sigma_holds_under_noise_and_standing_still_at_the_end_ruins_nothing():
    motion = move(2, 40.0)
    rest = np.repeat(motion[:, -1:], 4000, axis=1)
    rng = np.random.default_rng(3)
    rest[1:] = [1e-4 * rng.normal(size=rest[1].shape), 0.0 * rest[2]]
    motion = np.concatenate((motion, rest), axis=1)
    effort = rigid_torque(motion) + coulomb_viscous(motion[1])
    effort[-4000:] += [4.0, -1.5]  # stiction: any torque below breaking away
    effort += 0.5 * rng.normal(size=effort.shape)
    result = identify_inverse_dynamics([as_motion(motion, effort)], model())
    sigma = np.sqrt(np.diagonal(result.friction.covariance, axis1=1, axis2=2))
    error = result.friction.values - np.column_stack((COULOMB, VISCOUS))
    assert np.abs(error / sigma).max() < 3.5
    assert sigma.max() < 0.2
    assert all(score.samples < 0.55 * 12000 for score in result.scores)
    assert any("slow samples are left out" in choice for choice in result.provenance.choices)
    without = identify_inverse_dynamics([as_motion(motion, effort)], model(), InverseDynamicsOptions(dead_zone=0.0))
    assert np.abs(without.friction.values - np.column_stack((COULOMB, VISCOUS))).max() > 3.0 * np.abs(error).max()


def test_known_inertia_leaves_friction_and_drives():
    motion = move(4)
    result = identify_inverse_dynamics(
        [as_motion(motion, rigid_torque(motion) + coulomb_viscous(motion[1]))],
        model(),
        replace(PLAIN, body=RigidBodyOptions(known_inertia=True)),
    )
    found = values(result)
    assert found["Ia shoulder"] == pytest.approx(DRIVE_INERTIA[0], abs=1e-8)
    np.testing.assert_allclose(result.friction.values, np.column_stack((COULOMB, VISCOUS)), rtol=1e-7)


def test_a_motor_that_moves_two_joints_has_its_own_friction():
    coupling = Coupling(JOINTS, ("first", "second"), np.linalg.inv(np.array([[1.0, 0.0], [1.0, 1.0]])))
    motion = move(5)
    second = motion[1].sum(axis=1, keepdims=True)
    effort = rigid_torque(motion) - DRIVE_INERTIA * motion[2] + coulomb_viscous(motion[1])
    effort += 1.5 * np.sign(second) + 0.7 * second
    result = identify_inverse_dynamics(
        [as_motion(motion, effort)], model(), replace(PLAIN, coupling=coupling, coupled_friction="joints_and_motors")
    )
    found = values(result)
    assert found["second/coulomb"] == pytest.approx(1.5, rel=1e-6)
    assert found["second/viscous"] == pytest.approx(0.7, rel=1e-6)
    assert found["elbow/coulomb"] == pytest.approx(COULOMB[1], rel=1e-6)
    elbow = result.samples[1]  # one law per joint: what the motor adds is projected onto it
    live = result.friction.values[1] @ np.array([np.sign(elbow.velocity), elbow.velocity])
    left_over = elbow.fitted - OFFSET[1] - live
    rest, speed = left_over[elbow.used], elbow.velocity[elbow.used]
    assert abs(rest @ speed) < 1e-3 * np.linalg.norm(rest) * np.linalg.norm(speed)


def test_temperature_and_position_are_regressors():
    motions = []
    for seed, warm in ((6, 25.0), (7, 55.0)):
        motion = move(seed)
        warmth = np.full(motion[0].shape, warm) + np.linspace(0.0, 5.0, len(motion[0]))[:, None]
        effort = rigid_torque(motion) + coulomb_viscous(motion[1]) + 0.4 * np.sign(motion[1]) * np.sin(motion[0])
        effort += (warmth - 42.5) * (-0.02 * np.sign(motion[1]) - 0.01 * motion[1])
        motions.append(as_motion(motion, effort, inputs={"temperature": warmth}))
    options = replace(PLAIN, temperature=True, harmonics=(1.0,))
    found = values(identify_inverse_dynamics(motions, model(), options))
    assert found["elbow/coulomb_per_kelvin"] == pytest.approx(-0.02, rel=1e-5)
    assert found["elbow/viscous_per_kelvin"] == pytest.approx(-0.01, rel=1e-5)
    assert found["shoulder/coulomb_sin_1"] == pytest.approx(0.4, rel=1e-5)
    usual = np.mean([np.sin(motion.position[:, 0]).mean() for motion in motions])  # dry friction is about both means
    assert found["shoulder/coulomb"] == pytest.approx(COULOMB[0] + 0.4 * usual, rel=1e-5)


def test_presliding_of_slow_reversals_is_found_and_goes_to_the_live_filter():
    """Dahl 1968, integrated in fine steps: dry friction builds up over 1.5 mrad after a reversal."""
    fine, few = move(6, speed=0.1, period=2.5e-4), slice(None, None, 20)
    strain = np.zeros_like(fine[0])
    for k, moved in enumerate(np.diff(fine[0], axis=0)):
        strain[k + 1] = (strain[k] + moved / 1.5e-3) / (1.0 + np.abs(moved) / 1.5e-3)
    motion = fine[:, few]
    effort = rigid_torque(motion) + COULOMB * strain[few] + VISCOUS * motion[1] + OFFSET
    result = identify_inverse_dynamics([as_motion(motion, effort)], model(), replace(PLAIN, presliding=True))
    found = values(result)
    for k, joint in enumerate(JOINTS):
        assert found[f"{joint}/coulomb"] == pytest.approx(COULOMB[k], rel=2e-2)
        assert found[f"{joint}/presliding_1.5_mrad"] == pytest.approx(COULOMB[k], rel=5e-2)
    names = [f"presliding_{length}_mrad" for length in ("0.3", "1.5", "7")]
    live = [[found[f"{joint}/{name}"] for name in names] for joint in JOINTS]
    np.testing.assert_array_equal(result.friction.presliding, live)
    assert result.predictions[0].columns.presliding


@pytest.mark.parametrize("noise", [1e-4, 1e-2])
def test_dry_and_viscous_friction_of_a_slow_sine_are_separated(noise):
    """The step of dry friction has to pass the filters: its first harmonic looks like viscous friction."""
    rng, rate = np.random.default_rng(1), 200.0
    time = np.arange(0.0, 30.0, 1.0 / rate)[:, None]
    omega = 2.0 * np.pi * np.array([0.5, 0.37])
    wave = np.sin(omega * time), omega * np.cos(omega * time), -(omega**2) * np.sin(omega * time)
    motion = 0.4 * np.array(wave) + np.array([HANGING, [0.0, 0.0], [0.0, 0.0]])[:, None]
    effort = rigid_torque(motion) + coulomb_viscous(motion[1]) + 0.3 * rng.normal(size=time.shape)
    log = JointLog("slow", JOINTS, time[:, 0], motion[0] + noise * rng.normal(size=effort.shape), None, effort)
    chosen = choose_treatment([log], model(), InverseDynamicsOptions())
    solution, _ = estimate_inverse_dynamics([to_motion(log, chosen.treatment)], model(), treatment=chosen)
    found = np.array(
        [solution.values[solution.model.names.index(f"{j}/{p}")] for j in JOINTS for p in ("coulomb", "viscous")]
    )
    np.testing.assert_allclose(found, np.column_stack((COULOMB, VISCOUS)).ravel(), rtol=0.06)


@pytest.mark.parametrize(("static", "least", "most"), [(0.0, 0.6, 1.3), (0.5, 1.0, 2.5)])
def test_sigma_knows_of_friction_that_has_another_shape_than_the_law(static, least, most):
    """The band of the law around friction with a Stribeck effect; blocks of time alone give 6 sigma."""
    distances = []
    for seed in range(3):
        motion = move(seed, 20.0)
        speed, direction = np.abs(motion[1]), np.sign(motion[1])
        dip = static * COULOMB * np.exp(-speed / 0.1)
        effort = rigid_torque(motion) + coulomb_viscous(motion[1]) + dip * direction
        effort += 0.5 * np.random.default_rng(seed).normal(size=effort.shape)
        friction = identify_inverse_dynamics([as_motion(motion, effort)], model()).friction
        for joint in range(2):
            grid = np.quantile(speed[:, joint], np.linspace(0.1, 0.95, 8))
            phi = np.column_stack((np.ones(8), grid))
            truth = phi @ [COULOMB[joint], VISCOUS[joint]] + static * COULOMB[joint] * np.exp(-grid / 0.1)
            band = np.sqrt(np.einsum("ti,ij,tj->t", phi, friction.covariance[joint], phi))
            distances.append((phi @ friction.values[joint] - truth) / band)
    assert least < np.sqrt(np.mean(np.square(distances))) < most


def test_a_push_is_rejected_and_reported():
    motion = noisy_motion(7)
    effort = motion.effort.copy()
    effort[3000:3100] += 40.0
    result = identify_inverse_dynamics([replace(motion, effort=effort)], model())
    np.testing.assert_allclose(result.friction.values, np.column_stack((COULOMB, VISCOUS)), atol=0.3)
    assert any("neither used nor scored" in text for text in result.verdicts)
    calm = identify_inverse_dynamics([motion], model())
    for pushed, alone in zip(result.scores, calm.scores, strict=True):
        assert pushed.relative_error < 1.2 * alone.relative_error
        assert pushed.samples < alone.samples


def test_a_model_that_calls_many_samples_outliers_is_scored_by_them():
    motion = noisy_motion(7)
    effort = motion.effort.copy()
    for first in range(200, effort.shape[0], 500):
        effort[first : first + 60] += 40.0
    result = identify_inverse_dynamics([replace(motion, effort=effort)], model())
    assert any("outliers and not used" in text for text in result.verdicts)
    assert max(score.held_out_error for score in result.scores) > 5.0


def test_torque_of_the_wrong_sign_belongs_to_no_real_bodies():
    motion = noisy_motion(8)
    result = identify_inverse_dynamics([replace(motion, effort=-motion.effort)], model())
    assert any("no real bodies" in text for text in result.verdicts[:3])
    assert any("would be negative" in text for text in result.verdicts)
    assert not any("no real bodies" in text for text in identify_inverse_dynamics([motion], model()).verdicts)


def test_the_order_of_the_joints_does_not_matter():
    motion = noisy_motion(9)
    turned = replace(
        motion,
        joint_names=JOINTS[::-1],
        **{name: getattr(motion, name)[:, ::-1] for name in ("position", "velocity", "acceleration", "effort")},
    )
    options = InverseDynamicsOptions()
    one = identify_inverse_dynamics([motion], model(), options).friction
    other = identify_inverse_dynamics([turned], model(JOINTS[::-1]), options).friction
    np.testing.assert_allclose(one.values, other.values[::-1], rtol=1e-5)


def test_held_out_error_is_that_of_unseen_noise():
    motion = noisy_motion(11)
    scores = identify_inverse_dynamics([motion], model()).scores
    for score in scores:
        assert 0.8 < score.held_out_error / score.fit_error < 1.3
        assert score.rigid_body_error > 5.0 * score.held_out_error


@pytest.mark.parametrize(
    "options, message",
    [
        (InverseDynamicsOptions(law="magic"), "'magic'.*coulomb_viscous"),
        (InverseDynamicsOptions(temperature=True), "temperature/<joint>"),
        (InverseDynamicsOptions(law="load_velocity", harmonics=(1.0,)), "takes no"),
    ],
)
def test_options_that_do_not_fit_are_refused_with_the_choices(options, message):
    with pytest.raises((ConfigError, InputError), match=message):
        identify_inverse_dynamics([noisy_motion(12, 5.0)], model(), options)


def test_data_that_cannot_do_are_refused():
    motion = noisy_motion(13, 5.0)
    with pytest.raises(InputError, match="effort/<joint>"):
        identify_inverse_dynamics([replace(motion, effort=None)], model())
    with pytest.raises(InputError, match="'elbow'.*'shoulder'"):
        identify_inverse_dynamics([motion], FixedBaseModel(URDF, ("elbow",)))
    holes = motion.effort.copy()
    holes[7, 1] = np.nan
    with pytest.raises(InputError, match="'elbow' was not recorded"):
        identify_inverse_dynamics([replace(motion, effort=holes)], model())
    still = np.zeros((3, 2000, 2))
    with pytest.raises(InputError, match="no usable sample"):
        identify_inverse_dynamics([as_motion(still, rigid_torque(still))], model())


def test_the_law_of_every_joint_is_that_which_predicts_best():
    motion = move(3)
    elbow = 2.0 * VISCOUS[1] * np.maximum(motion[1][:, 1], 0.0)
    error = 0.3 * np.random.default_rng(5).normal(size=motion[0].shape)
    effort = rigid_torque(motion) + coulomb_viscous(motion[1]) + error
    effort[:, 1] += elbow
    motion = as_motion(motion, effort)
    result = identify_inverse_dynamics([motion], model(), InverseDynamicsOptions(law="auto"))
    assert result.friction.law_names[1] == "asymmetric"
    plain = identify_inverse_dynamics([motion], model())
    assert result.scores[1].held_out_error < 0.8 * plain.scores[1].held_out_error
    compared = [one.settings for one in result.candidates if one.decision == "elbow/law"]
    assert compared[:2] == ["coulomb_viscous", "asymmetric"] and "six_slope" in compared
    given = InverseDynamicsOptions(law="auto", joint_laws=("elbow=three_slope",))
    assert identify_inverse_dynamics([motion], model(), given).friction.law_names[1] == "three_slope"
