"""Friction of motors that move joints together, from the torques of an arm (inverse dynamics with a coupling)."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.shared.coupling import joint_torque, motor_torque, motor_velocity
from friction_estimator.config import config_from_parameters
from friction_estimator.config.robot import Coupling
from friction_estimator.errors import ConfigError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.method import identify_inverse_dynamics
from friction_estimator.identification.inverse_dynamics.options import InverseDynamicsOptions
from friction_estimator.io.parameters import load_parameters, save_parameters
from friction_estimator.laws import make_law
from friction_estimator.laws.identified import parameters_sigma

from .arm import COULOMB, DRIVE_INERTIA, JOINTS, OFFSET, PAYLOAD, URDF, VISCOUS, as_motion, move, rigid_torque

T = np.array([[0.5, -0.5], [0.4, 0.6]])
DIFFERENTIAL = Coupling(JOINTS, ("m0", "m1"), T)
BELT = Coupling(JOINTS, ("m0", "m1"), np.linalg.inv([[1.0, 0.0], [1.0, 1.0]]))
"""The second motor turns with the sum of both joints."""
MODEL = FixedBaseModel(URDF, JOINTS)


def motions(coupling=DIFFERENTIAL, noise=0.0, law=None, joint_friction=0.0, payloads=(None,)):
    """Friction and drives of the motors, at the joints as Guedelha's eq. 34 has it; noise is the motors'."""
    made = []
    for seed, payload in enumerate(payloads):
        motion = move(40 + seed, 20.0)
        rigid = rigid_torque(motion, payload) - DRIVE_INERTIA * motion[2]
        speed, acceleration = (motor_velocity(coupling, moved) for moved in motion[1:])
        effort = DRIVE_INERTIA * acceleration + VISCOUS * speed + OFFSET
        if law is None:
            effort = effort + COULOMB * np.sign(speed)
        else:
            effort = effort + law(speed, motor_torque(coupling, rigid) + DRIVE_INERTIA * acceleration)
        effort = effort + noise * np.random.default_rng(seed).normal(size=speed.shape)
        at_joints = rigid + effort @ np.linalg.inv(coupling.matrix) + joint_friction * np.sign(motion[1])
        made.append(as_motion(motion, at_joints, payload, name=f"run {seed}"))
    return made


def identify(coupling=DIFFERENTIAL, made=None, **options):
    chosen = InverseDynamicsOptions(coupling=coupling, **options)
    return identify_inverse_dynamics(motions(coupling) if made is None else made, MODEL, chosen)


@pytest.fixture(scope="module")
def noisy():
    return identify(made=motions(noise=0.5))


def test_what_went_into_every_motor_comes_out_with_error_bars_that_hold(noisy):
    assert noisy.friction.joint_names == ("m0", "m1")
    sigma = parameters_sigma(noisy.friction)
    error = noisy.friction.values - np.column_stack((COULOMB, VISCOUS))
    assert np.abs(error / sigma).max() < 2.5 and sigma.max() < 0.2
    found = dict(
        zip(noisy.parameters.names, zip(noisy.parameters.values, noisy.parameters.sigma, strict=True), strict=True)
    )
    assert all(abs(found[f"m{k}/offset"][0] - OFFSET[k]) < 3.0 * found[f"m{k}/offset"][1] for k in range(2))


def test_scores_figures_and_verdicts_are_those_of_the_motors(noisy):
    assert [score.joint for score in noisy.scores] == [one.joint for one in noisy.samples] == ["m0", "m1"]
    assert all(score.held_out_error < 0.2 * score.rigid_body_error for score in noisy.scores)
    assert not any(joint in text.split(":")[0] for text in noisy.verdicts for joint in JOINTS)
    assert "friction is that of the motors (m0, m1 move shoulder, elbow)" in " ".join(noisy.provenance.choices)


def test_joint_by_joint_it_is_no_law_of_the_velocity(noisy):
    alone = identify_inverse_dynamics(motions(noise=0.5), MODEL)
    for joint, motor in zip(alone.scores, noisy.scores, strict=True):
        assert joint.held_out_error > 4.0 * motor.held_out_error


def test_the_live_node_starts_from_the_file_motor_by_motor(noisy, tmp_path):
    save_parameters(tmp_path / "parameters.yaml", noisy.friction)
    coupling = {"joints": JOINTS, "motors": DIFFERENTIAL.motor_names, "matrix": tuple(T.ravel())}
    settings = {f"robot.coupling.{name}": value for name, value in coupling.items()}
    config = config_from_parameters(
        {"robot.fixed_base": True, "observer": "momentum", "identifier.law": "coulomb_viscous", **settings}
    )
    estimator = Estimator(config, URDF)
    assert estimator.restore(load_parameters(tmp_path / "parameters.yaml")) == ()
    assert estimator.identified.joint_names == noisy.friction.joint_names
    np.testing.assert_array_equal(estimator.identified.values, noisy.friction.values)


def test_friction_that_depends_on_the_load_takes_the_load_of_its_motor():
    law = make_law("load_quadrants")
    truth = np.array([[2.0, 0.1, 1.5, 0.08, 0.0, 0.0], [1.0, 0.06, 0.8, 0.1, 0.0, 0.0]])
    made = motions(law=lambda speed, load: law.torque(truth, speed, load), payloads=(None, PAYLOAD), noise=0.2)
    found = identify(made=made, law="load_quadrants")
    alpha = found.friction.values[:, law.parameter_names.index("load_motor")]
    np.testing.assert_allclose(alpha, truth[:, 1] / (1.0 + truth[:, 1]), atol=0.03)


def test_temperature_is_that_of_the_motor_at_the_place_of_the_joint():
    made = []
    for warm, motion in zip((-10.0, 10.0), motions(payloads=(None, PAYLOAD)), strict=True):
        warmth = np.full(motion.position.shape, warm) * [1.0, 3.0]
        speed = motor_velocity(DIFFERENTIAL, motion.velocity)
        added = joint_torque(DIFFERENTIAL, warmth * [-0.05, -0.02] * np.sign(speed))
        made.append(replace(motion, effort=motion.effort + added, inputs={"temperature": warmth}))
    found = identify(made=made, temperature=True)
    values = dict(zip(found.parameters.names, found.parameters.values, strict=True))
    assert values["m1/coulomb_per_kelvin"] == pytest.approx(-0.02, abs=1e-4)
    assert values["m0/coulomb_per_kelvin"] == pytest.approx(-0.05, abs=1e-4)


def test_friction_of_joints_besides_that_of_motors_is_reported_and_can_be_identified():
    own = np.array([0.0, 1.5])
    made = motions(BELT, noise=0.3, joint_friction=own)
    reported = [text for text in identify(BELT, made).verdicts if "motors does not explain" in text]
    assert [text.split(":")[0] for text in reported] == ["elbow"] and "joints_and_motors" in reported[0]
    both = identify(BELT, made, coupled_friction="joints_and_motors")
    values = dict(zip(both.parameters.names, both.parameters.values, strict=True))
    found = [values[f"{name}/coulomb"] for name in ("shoulder", "elbow", "m1")]
    np.testing.assert_allclose(found, [COULOMB[0], own[1], COULOMB[1]], atol=0.15)
    assert not any("motors does not explain" in text for text in identify(BELT, motions(BELT, noise=0.3)).verdicts)


def test_friction_of_joints_and_of_motors_that_add_to_it_has_separate_verdicts():
    """Friction of the elbow without its motor is small and uncertain; that of the motor is not."""
    made = motions(BELT, noise=0.5, joint_friction=np.array([0.0, 0.02]))
    both = identify(BELT, made, coupled_friction="joints_and_motors")
    assert both.friction.joint_names == JOINTS
    unsure = [
        text
        for text in both.verdicts
        if any(word in text for word in ("has a standard deviation", "differ from zero", "held at"))
    ]
    assert unsure and all(text.startswith("elbow without m1: ") for text in unsure)
    values = dict(
        zip(both.parameters.names, zip(both.parameters.values, both.parameters.sigma, strict=True), strict=True)
    )
    assert values["m1/coulomb"][0] > 20.0 * values["m1/coulomb"][1]
    assert any(text.startswith("m1 adds friction to several joints") for text in both.verdicts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coupled_friction": "gears"}, "'gears'; it is one of 'joints_and_motors', 'motors'"),
        ({"coupling": None, "coupled_friction": "joints_and_motors"}, "give their coupling"),
        ({"law": "load_velocity", "coupled_friction": "joints_and_motors"}, "takes no .*'joints_and_motors'"),
        ({"joint_laws": ("elbow=six_slope",)}, "matches no joint; the joints are 'm0', 'm1'"),
    ],
)
def test_what_cannot_be_is_refused_with_the_choices(options, message):
    with pytest.raises(ConfigError, match=message):
        identify(**{"coupling": DIFFERENTIAL, "made": motions(), **options})
