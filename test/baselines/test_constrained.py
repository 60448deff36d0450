"""Claims about the constrained-dynamics observer (Egle 2021, chapters 5 and 6)."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from friction_estimator.baselines.constrained import (
    ConstrainedDynamicsObserver,
    ConstrainedFriction,
    eliminate_constraint_forces,
    regularised_inverse,
)
from friction_estimator.baselines.differentiation import Instant
from friction_estimator.config import config_from_parameters
from friction_estimator.errors import ConfigError
from friction_estimator.estimation.observers.identifier import FrictionIdentifier
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import Attitude, ContactPhase, SensorFrame
from test.biped import consistent_instant, suralp_config
from test.estimation.test_other_robots import LEGS, joint, link, quadruped
from test.one_leg import DT, OneLegInstant, one_leg

STANCE, SWING = slice(0, 6), slice(6, 12)
SHARP = {  # no smoothing, no waiting, nothing held back
    "constrained__window": 3,
    "constrained__order": 2,
    "constrained__trim_start": 0.0,
    "constrained__trim_end": 0.0,
    "constrained__max_sigma": 1e9,
}


@pytest.fixture(scope="module")
def motion(urdf_xml):
    return list(one_leg(urdf_xml, 0.3))


def dynamics_of(robot: RobotModel, instant):
    frame, attitude = instant.frame, instant.attitude
    return robot.dynamics(frame.position, frame.velocity, attitude.angular_velocity, attitude.specific_force)


def as_instant(robot: RobotModel, instant) -> Instant:
    return Instant(0.0, instant.frame, instant.attitude, instant.phase, dynamics_of(robot, instant))


def observe(robot: RobotModel, motion: list[OneLegInstant], **changes: object):
    observer = ConstrainedDynamicsObserver(suralp_config(observer="constrained", **changes), robot)
    return [observer.step(i.frame, i.attitude, i.phase, dynamics_of(robot, i)) for i in motion]


def errors(robot, motion, delay, **changes):
    """Measured friction minus the true one of ``delay`` samples before, where measured."""
    measured = observe(robot, motion, **changes)
    rows = [k for k, m in enumerate(measured) if m.available.all()]
    assert rows
    return np.array([measured[k].friction - motion[k - delay].friction for k in rows])


@pytest.mark.parametrize("seed", range(5))
def test_friction_in_single_support_is_exact_with_exact_accelerations(robot, urdf_xml, seed):
    instant = next(one_leg(urdf_xml, DT, start=3.7 * seed))
    friction = ConstrainedFriction(suralp_config(), robot)
    assert friction.unique(instant.phase.contact).all()
    solution = friction.solve(as_instant(robot, instant), instant.acceleration)
    np.testing.assert_allclose(solution.friction, instant.friction, atol=1e-8)
    np.testing.assert_allclose(solution.acceleration[6:], instant.acceleration, atol=1e-9)
    np.testing.assert_allclose(solution.constraint_force, instant.frame.wrenches[0], atol=1e-6)


def test_foot_sensors_and_accelerometer_are_not_used(robot, motion):
    instant = motion[50]
    blind = replace(
        instant,
        frame=replace(instant.frame, wrenches=np.full((2, 6), np.nan)),
        attitude=instant.attitude._replace(specific_force=np.array([3.0, -2.0, 20.0])),
    )
    solution = ConstrainedFriction(suralp_config(), robot).solve(as_instant(robot, blind), instant.acceleration)
    np.testing.assert_allclose(solution.friction, instant.friction, atol=1e-8)


@pytest.mark.parametrize(("standing", "rank"), [((True, False), 12), ((False, False), 12), ((True, True), 6)])
def test_friction_is_unique_in_single_support_and_ambiguous_in_double_support(robot, urdf_xml, standing, rank):
    """Section 5.3: six combinations of torques of the closed chain move nothing."""
    instant = consistent_instant(urdf_xml, np.random.default_rng(0), (True, True), minimum_norm=False)
    dynamics = dynamics_of(robot, instant)
    J = dynamics.foot_jacobian[list(standing)].reshape(-1, 18)
    response = eliminate_constraint_forces(dynamics.mass_matrix, J).response(np.arange(6, 18))
    assert np.linalg.matrix_rank(response, rtol=1e-9) == rank
    unique = ConstrainedFriction(suralp_config(), robot).unique(np.array(standing))
    assert unique.all() == (rank == 12) and unique.any() == (rank == 12)


def test_regularised_friction_explains_the_accelerations_with_the_least_torque(robot, urdf_xml):
    """Eq. 6.1 at its minimum, and in the limit the pseudo-inverse of section 5.3."""
    instant = consistent_instant(urdf_xml, np.random.default_rng(1), (True, True), minimum_norm=False)
    dynamics = dynamics_of(robot, instant)
    K = eliminate_constraint_forces(dynamics.mass_matrix, dynamics.foot_jacobian.reshape(-1, 18)).response(
        np.arange(6, 18)
    )
    difference = K @ np.random.default_rng(2).normal(size=12)
    weight = 1e-2
    friction = regularised_inverse(K, weight) @ difference
    gradient = -K @ (difference - K @ friction) + weight * friction
    np.testing.assert_allclose(gradient, 0.0, atol=1e-12)
    np.testing.assert_allclose(
        regularised_inverse(K, 0.0) @ difference, np.linalg.pinv(K, rcond=1e-9) @ difference, atol=1e-6
    )


def test_position_controlled_joints_are_a_constraint_and_are_not_measured(robot, urdf_xml):
    """Eq. 5.4c: exact although the torque of the held joint is not known."""
    name = robot.joint_names[6]
    instant = next(one_leg(urdf_xml, DT, held=6))
    frame = replace(instant.frame, effort=np.where(np.arange(12) == 6, np.nan, instant.frame.effort))
    friction = ConstrainedFriction(suralp_config(constrained__position_controlled=[name]), robot)
    solution = friction.solve(as_instant(robot, replace(instant, frame=frame)), instant.acceleration)
    others = np.arange(12) != 6
    np.testing.assert_array_equal(friction.unique(instant.phase.contact), others)
    np.testing.assert_allclose(solution.friction, instant.friction[others], atol=1e-8)


@pytest.mark.parametrize("names", [["neck"], None])
def test_wrong_position_controlled_joints_are_refused(robot, names):
    config = suralp_config(constrained__position_controlled=names or list(robot.joint_names))
    with pytest.raises(ConfigError, match="l_knee" if names else "all joints"):
        ConstrainedDynamicsObserver(config, robot)


@pytest.mark.parametrize("signal", ["position", "velocity"])
def test_central_differences_are_of_second_order_and_backward_ones_of_first(robot, urdf_xml, signal):
    """Eqs. 6.2 and 6.3: the error falls with the period squared, or with the period."""
    largest = {}
    for dt in (2e-3, 1e-3):
        steps = list(one_leg(urdf_xml, 0.04, dt=dt, start=0.4))
        central = {**SHARP, "constrained__signal": signal}
        backward = {**central, "constrained__differences": "backward"}
        if signal == "velocity":
            backward |= {"constrained__window": 2, "constrained__order": 1}
        for name, changes, delay in (("central", central, 1), ("backward", backward, 0)):
            largest[name, dt] = np.abs(errors(robot, steps, delay, **changes)).max()
    assert 3.5 < largest["central", 2e-3] / largest["central", 1e-3] < 4.5
    assert 1.7 < largest["backward", 2e-3] / largest["backward", 1e-3] < 2.3
    assert largest["backward", 1e-3] > 20.0 * largest["central", 1e-3]


def test_phase_error_of_backward_differences_is_larger_in_stance_than_in_swing(robot, motion):
    """Figures 6.2 and 6.3: the legs move alike, but the standing one moves the whole robot."""
    backward = {"constrained__signal": "velocity", "constrained__window": 2, "constrained__order": 1}
    error = errors(robot, motion, 0, **{**SHARP, **backward, "constrained__differences": "backward"})
    rmse = np.sqrt((error**2).mean(axis=0))
    assert (rmse[STANCE] > 2.0 * rmse[SWING]).all()
    assert rmse[4] > 100.0 * rmse[10]


def test_smoothed_differences_are_exact_on_slow_motions(robot, motion):
    """The default window of 51 samples; delayed by half of it."""
    error = errors(robot, motion, 50, constrained__max_sigma=1e9)
    assert np.abs(error).max() < 1e-3


def test_nothing_is_measured_near_a_change_of_phase(robot, motion):
    """The first ``trim_start`` and the last ``trim_end`` seconds of a phase: known by looking ahead."""
    landing = 200
    changed = [
        replace(i, phase=replace(i.phase, since=np.array([10.0, (k - landing) * DT if k >= landing else k * DT])))
        for k, i in enumerate(motion)
    ]
    measured = observe(robot, changed, **{**SHARP, "constrained__trim_start": 0.06, "constrained__trim_end": 0.03})
    spoken = np.flatnonzero([m.available.all() for m in measured]) - 30  # instants that the estimates are about
    expected = np.r_[60 : landing - 30, landing + 60 : len(motion) - 30]
    np.testing.assert_array_equal(spoken, expected)
    assert all(np.isnan(m.friction).all() and np.isnan(m.sigma).all() for m in measured if not m.available.any())


def test_a_silent_sensor_empties_the_window(robot, motion):
    """Without force sensors nobody knows which feet stand."""
    silent = [replace(i, frame=replace(i.frame, wrench_fresh=np.array([True, k != 150]))) for k, i in enumerate(motion)]
    available = [m.available.all() for m in observe(robot, silent, **{**SHARP, "constrained__trim_start": 0.02})]
    assert available[149] and not any(available[150:171]) and all(available[172:])


def test_swinging_limbs_are_measured_whatever_the_others_do(robot, motion):
    """Two standing feet leave their own limbs ambiguous, with the printed regularisation they get a torque."""
    standing = ContactPhase(np.array([True, True]), np.full(2, 10.0), "double_support")
    both = [replace(i, phase=standing) for i in motion[:5]]
    assert not any(m.available.any() for m in observe(robot, both, **SHARP))
    regularised = observe(robot, both, **SHARP, constrained__double_support="regularised")[-1]
    assert regularised.available.all() and (regularised.sigma > 0.1).all()


def test_uncertain_friction_is_held_back(robot, motion):
    measured = observe(robot, motion[:5], **{**SHARP, "constrained__max_sigma": 1.0})[-1]
    sigma = observe(robot, motion[:5], **SHARP)[-1].sigma
    np.testing.assert_array_equal(measured.available, sigma <= 1.0)
    assert measured.available.any() and not measured.available.all()


def test_stamps_need_not_be_equally_spaced(robot, urdf_xml):
    """Every third sample lost."""
    steps = [i for k, i in enumerate(one_leg(urdf_xml, 0.3, dt=0.5 * DT)) if k % 3]
    gaps = np.diff([i.frame.stamp_ns for i in steps], prepend=steps[0].frame.stamp_ns) * 1e-9
    steps = [replace(i, frame=replace(i.frame, dt=dt)) for i, dt in zip(steps, gaps, strict=True)]
    changes = {"constrained__trim_end": 0.0, "constrained__trim_start": 0.0, "constrained__max_sigma": 1e9}
    assert np.abs(errors(robot, steps, 25, **changes)).max() < 1e-3


@pytest.mark.parametrize("signal", ["position", "velocity"])
@pytest.mark.parametrize("standing", ["left", "both"])
def test_published_sigma_matches_the_spread_under_sensor_noise(robot, motion, signal, standing):
    """Monte Carlo over the sensors: the propagated variance is the measured one, in all joints."""
    rng = np.random.default_rng(5)
    changes = {
        "constrained__signal": signal,
        "constrained__window": 11,
        "constrained__order": 2,
        "constrained__trim_start": 0.0,
        "constrained__trim_end": 0.0,
        "constrained__max_sigma": 1e9,
        "constrained__friction_std": 0.0,
        "constrained__regularisation": 1e-4,
        "constrained__motion_frequency": 0.0,
        "constrained__double_support": "regularised",
        "sensors__position_std": 1e-4,
        "sensors__velocity_std": 2e-2,
        "sensors__effort_std": 0.05,
        "sensors__angular_velocity_std": 0.1,
    }
    noise = suralp_config(**changes).sensors
    tilt = 2e-3
    steps = motion[:11]
    if standing == "both":
        steps = [replace(i, phase=replace(i.phase, contact=np.array([True, True]))) for i in steps]
    steps = [replace(i, attitude=i.attitude._replace(covariance=tilt**2 * np.eye(3))) for i in steps]
    reference = observe(robot, steps, **changes)[-1]
    deviations = []
    for _ in range(200):
        turned = pin.exp3(tilt * rng.normal(size=3))
        noisy = [with_noise(i, noise, turned, rng) for i in steps]
        deviations.append(observe(robot, noisy, **changes)[-1].friction - reference.friction)
    ratio = np.std(deviations, axis=0) / reference.sigma
    np.testing.assert_allclose(ratio, 1.0, atol=0.2)


def with_noise(instant, noise, turned, rng):
    frame, attitude = instant.frame, instant.attitude
    return replace(
        instant,
        frame=replace(
            frame,
            position=frame.position + noise.position_std * rng.normal(size=12),
            velocity=frame.velocity + noise.velocity_std * rng.normal(size=12),
            effort=frame.effort + noise.effort_std * rng.normal(size=12),
        ),
        attitude=attitude._replace(
            angular_velocity=attitude.angular_velocity + noise.angular_velocity_std * rng.normal(size=3),
            rotation_base_to_world=turned @ attitude.rotation_base_to_world,
        ),
    )


def test_sigma_covers_what_the_differences_miss(robot, motion):
    """No sensor noise: the error is that of the differences alone."""
    quiet = {f"sensors__{name}_std": 0.0 for name in ("position", "velocity", "angular_velocity")}
    changes = {
        **SHARP, **quiet, "constrained__differences": "backward", "constrained__motion_frequency": 0.8,
    }  # fmt: skip
    measured = observe(robot, motion, **changes)[5:]
    error = np.array([m.friction - i.friction for m, i in zip(measured, motion[5:], strict=True)])
    sigma = np.array([m.sigma for m in measured])
    assert 0.3 < np.mean((error / sigma) ** 2) < 1.5


def test_law_learned_from_late_friction_is_the_injected_one(robot, urdf_xml):
    """0.6 N m and 0.9 N m s/rad went in; ``filter`` delays the regressor as the friction is delayed."""
    config = suralp_config(observer="constrained", constrained__max_sigma=1e9, identifier__initial_covariance=1e6)
    observer = ConstrainedDynamicsObserver(config, robot)
    aligned, misaligned = (FrictionIdentifier(config.identifier, robot.joint_names) for _ in range(2))
    for i in one_leg(urdf_xml, 1.5):
        measured = observer.step(i.frame, i.attitude, i.phase, dynamics_of(robot, i))
        regressor = aligned.regressor(i.frame.velocity, i.frame.effort)
        delayed = observer.filter(regressor, i.frame.dt)
        aligned.learn(delayed, measured.friction, measured.noise_sigma, measured.available)
        misaligned.learn(regressor, measured.friction, measured.noise_sigma, measured.available)
    np.testing.assert_allclose(aligned.law.coulomb, 0.6, atol=5e-3)
    np.testing.assert_allclose(aligned.law.viscous, 0.9, atol=5e-3)
    assert np.abs(misaligned.law.viscous - 0.9).max() > 0.3


def test_joint_order_does_not_matter(robot, urdf_xml, motion):
    """The same robot with right and left renamed, so that the URDF tree is walked in the other order."""
    side = {"l": "z", "r": "a"}
    swapped_xml = re.sub(r"\b([lr])_", lambda name: side[name[1]] + "_", urdf_xml)
    config = config_from_parameters({"feet.names": ["r", "l"], "feet.r.frame": "a_sole", "feet.l.frame": "z_sole"})
    swapped = RobotModel(config, swapped_xml)
    new_names = [side[name[0]] + name[1:] for name in robot.joint_names]
    order = [new_names.index(name) for name in swapped.joint_names]
    assert order != sorted(order)
    i = motion[40]
    frame = replace(i.frame, **{n: getattr(i.frame, n)[order] for n in ("position", "velocity", "effort")})
    there = replace(i, frame=frame, phase=replace(i.phase, contact=i.phase.contact[::-1]))
    friction = ConstrainedFriction(config, swapped).solve(as_instant(swapped, there), i.acceleration[order]).friction
    np.testing.assert_allclose(friction, i.friction[order], atol=1e-8)


def test_limbs_in_the_air_are_exact_while_three_point_feet_stand():
    """Forces between the standing feet load their legs only, so arm and lifted leg stay unique."""
    parameters = {"feet.names": list(LEGS), "imu.frame": "imu", "observer": "constrained"}
    for leg in LEGS:
        parameters |= {f"feet.{leg}.frame": f"{leg}_tip", f"feet.{leg}.contact": "point"}
    config = config_from_parameters(parameters)
    robot, rng = RobotModel(config, quadruped()), np.random.default_rng(0)
    position, velocity, omega = rng.normal(size=13) * 0.2 + 0.3, rng.normal(size=13), rng.normal(size=3)
    gravity_up, standing = np.array([0.0, 0.0, 9.81]), np.array([True, True, True, False])
    dynamics = robot.dynamics(position, velocity, omega, gravity_up)
    J, drift = dynamics.foot_jacobian[:3, :3].reshape(9, 19), dynamics.foot_bias_acceleration[:3, :3].ravel()
    acceleration = rng.normal(size=19)
    acceleration -= np.linalg.pinv(J) @ (J @ acceleration + drift)
    forces = dynamics.mass_matrix @ acceleration + dynamics.bias
    contact = np.linalg.lstsq(J[:, :6].T, forces[:6], rcond=None)[0]
    truth = rng.normal(size=13)
    frame = SensorFrame(
        0, 1e-3, position, velocity, (forces - J.T @ contact)[6:] + truth,
        omega, gravity_up, np.zeros((4, 6)), True, np.ones(4, dtype=bool), np.ones(5),
    )  # fmt: skip
    level = Attitude(np.eye(3), omega, np.zeros(3), gravity_up, np.zeros((3, 3)), np.zeros((3, 3)))
    friction = ConstrainedFriction(config, robot)
    unique = friction.unique(standing)
    assert unique.tolist() == [not name.startswith(("lf_", "rf_", "lh_")) for name in robot.joint_names]
    instant = Instant(0.0, frame, level, ContactPhase(standing, np.ones(4), ""), dynamics)
    solution = friction.solve(instant, acceleration[6:])
    np.testing.assert_allclose(solution.friction[unique], truth[unique], atol=1e-5)
    assert np.abs(solution.friction - truth)[~unique].max() > 0.1


def test_an_arm_bolted_to_the_ground_is_exact():
    xml = (
        f'<robot name="arm">{link("world", 1.0)}{link("arm", 1.5)}{joint("shoulder", "world", "arm", "0 0 1", "0 1 0")}'
    )
    config = config_from_parameters({"observer": "constrained", "robot.fixed_base": True})
    robot = RobotModel(config, xml + "</robot>")
    dynamics = robot.dynamics(np.array([0.5]), np.array([1.0]), np.zeros(3), np.zeros(3))
    effort = dynamics.mass_matrix @ [2.0] + dynamics.bias + 0.7
    nothing, none = np.zeros(3), np.zeros(0, dtype=bool)
    frame = SensorFrame(
        0, 1e-3, np.array([0.5]), np.array([1.0]), effort, nothing, nothing, np.zeros((0, 6)), True, none, np.ones(1)
    )
    level = Attitude(np.eye(3), nothing, nothing, nothing, np.zeros((3, 3)), np.zeros((3, 3)))
    instant = Instant(0.0, frame, level, ContactPhase(none, np.zeros(0), "flight"), dynamics)
    solution = ConstrainedFriction(config, robot).solve(instant, np.array([2.0]))
    np.testing.assert_allclose(solution.friction, 0.7, atol=1e-10)
