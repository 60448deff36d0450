"""Claims about a leg with a fixed base whose foot is pressed and pulled, with a foot sensor and without one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pinocchio as pin
import pytest

from friction_estimator.config import config_from_parameters
from friction_estimator.errors import ConfigError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.parameters import load_parameters, save_parameters
from friction_estimator.types import FloatArray, FrictionEstimate, JointSample, WrenchSample

LINK = (
    '<link name="{0}"><inertial><origin xyz="0 0 -0.1"/><mass value="{1}"/>'
    '<inertia ixx="0.004" iyy="0.004" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
JOINT = (
    '<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><origin xyz="0 0 {3}"/>'
    '<axis xyz="0 1 0"/><limit effort="20" velocity="20" lower="-3" upper="3"/></joint>'
)
URDF = (
    '<robot name="leg"><link name="stand"/>' + LINK.format("thigh", 1.0) + LINK.format("shank", 0.5)
    + '<link name="sole"/>' + JOINT.format("hip", "stand", "thigh", 0.0) + JOINT.format("knee", "thigh", "shank", -0.2)
    + '<joint name="end" type="fixed"><parent link="shank"/><child link="sole"/><origin xyz="0 0 -0.2"/></joint>'
    + "</robot>"
)  # fmt: skip
PERIOD, STEPS = 2e-3, 8
COULOMB, VISCOUS, OFFSET = np.array([0.4, 0.3]), np.array([0.1, 0.2]), np.array([0.05, -0.04])
FORCE = {"press": (4.0, 20.0), "nothing": (0.0, 0.0)}
"""Mean and amplitude of the vertical force [N]: a hand pulls the foot for two fifths of the time."""
LOGS = ("kalman", "momentum")
SPEED = np.array([3.1, 4.3])
"""Rates of the phases of hip and knee [rad/s]."""
PULL = np.array([1.0, 0.0, 0.2])
"""Direction in which a foot is pulled: mostly to the side, as upwards it is the same as efforts without gravity."""
ForceOf = Callable[[FloatArray, FloatArray], FloatArray]
EffortOf = Callable[[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class Log:
    """Readings (m, ...), true friction and torque of the force on the foot (m, 2)."""

    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
    wrench: FloatArray
    friction: FloatArray
    external: FloatArray


def friction_torque(velocity: FloatArray) -> FloatArray:
    return COULOMB * np.tanh(velocity / 0.01) + VISCOUS * velocity


@cache
def log_of(kind: str, seconds: float, seed: int) -> Log:
    """A controller moves the joints, and a force acts on the foot; explicit steps of a quarter millisecond."""
    model = pin.buildModelFromXML(URDF)
    data, sole, rng = model.createData(), model.getFrameId("sole"), np.random.default_rng(seed)
    mean, amplitude = FORCE[kind]
    q, v, rows, dt = np.array([0.3, -0.8]), np.zeros(2), [], PERIOD / STEPS
    for k in range(round(seconds / PERIOD)):
        t = k * PERIOD
        wanted = np.array([0.3, -0.8]) + [0.3 * np.sin(3.1 * t), 0.5 * np.sin(4.3 * t + 1.0)]
        tau = pin.computeGeneralizedGravity(model, data, q) + 60.0 * (wanted - q) - 2.0 * v
        world = np.array([0.3 * amplitude * np.sin(2.3 * t), 0.0, mean + amplitude * np.sin(1.7 * t + seed)])
        pin.framesForwardKinematics(model, data, q)
        J = pin.computeFrameJacobian(model, data, q, sole, pin.LOCAL_WORLD_ALIGNED)[:3]
        wrench = np.concatenate((data.oMf[sole].rotation.T @ world, np.zeros(3)))
        reading = wrench + np.r_[0.1 * rng.normal(size=3), np.zeros(3)]
        rows.append((q, v + 1e-3 * rng.normal(size=2), tau + OFFSET, reading, friction_torque(v), J.T @ world))
        for _ in range(STEPS):
            a = pin.aba(model, data, q, v, tau - friction_torque(v) + J.T @ world)
            v = v + dt * a
            q = q + dt * v
    return Log(*map(np.array, zip(*rows, strict=True)))


def estimator(observer: str, foot: bool, touched: bool) -> Estimator:
    parameters = {
        "observer": observer, "robot.fixed_base": True, "robot.unmeasured_contacts": ["knee"] if touched else [],
        "feet.names": ["foot"] if foot else [], "sensors.force_std": 0.1, "sensors.velocity_std": 1e-3,
        "identifier.phases": "all", "identifier.law": "load_quadrants",
    }  # fmt: skip
    if foot:
        parameters |= {"feet.foot.frame": "sole", "feet.foot.contact": "point"}
    return Estimator(config_from_parameters(parameters), URDF)


def drive(one: Estimator, log: Log, foot: bool) -> list[FrictionEstimate]:
    estimates = []
    for k, (q, v, tau, wrench) in enumerate(zip(log.position, log.velocity, log.effort, log.wrench, strict=True)):
        stamp = 1_000_000_000 + round(1e9 * k * PERIOD)
        if foot:
            one.add(WrenchSample(stamp, 0, wrench))
        estimates += one.add(JointSample(stamp, q, v, tau))
    return estimates


@pytest.mark.parametrize("observer", LOGS)
def test_a_foot_sensor_counts_in_whichever_direction_the_foot_is_pulled(observer):
    log = log_of("press", 12.0, 1)
    estimates = drive(estimator(observer, True, False), log, True)
    settled = slice(len(estimates) // 2, None)
    friction = np.array([one.friction for one in estimates])[settled]
    error = friction - (log.friction + OFFSET)[: len(estimates)][settled]
    assert (np.sqrt(np.mean(error**2, axis=0)) < 0.3 * np.abs(log.friction).mean(axis=0)).all()
    assert (log.wrench[:, 2] < 0.0).mean() > 0.2


@pytest.mark.parametrize("observer", LOGS)
def test_a_contact_that_no_sensor_measures_is_external_torque_and_never_friction(observer, tmp_path):
    """What was learned with the foot sensor, or without a contact, is kept in a file and used without the sensor."""
    teacher = estimator(observer, True, False)
    drive(teacher, log_of("press", 12.0, 1), True)
    save_parameters(tmp_path / "leg.yaml", teacher.identified)
    known = load_parameters(tmp_path / "leg.yaml")
    log, one = log_of("press", 6.0, 2), estimator(observer, False, True)
    assert one.restore(known) == ()
    estimates = drive(one, log, False)
    found = np.array([each.external_torque for each in estimates])[500:]
    truth, low_passed = np.zeros(2), []
    for external in log.external:
        truth = truth + (1.0 - np.exp(-(40.0 if observer == "kalman" else 30.0) * PERIOD)) * (external - truth)
        low_passed.append(truth)
    truths = np.array(low_passed)[500 : len(estimates)]
    unexplained = np.mean((found - truths) ** 2, axis=0) / truths.var(axis=0)
    assert (unexplained < 0.03).all()
    np.testing.assert_array_equal(one.identified.values, known.values)
    assert one.health.findings == ()


def test_calibration_of_another_robot_is_not_used():
    teacher = estimator("kalman", True, False)
    drive(teacher, log_of("press", 12.0, 1), True)
    heavier, known = estimator("kalman", False, True), teacher.identified
    assert np.abs(known.calibration[:, 5]).max() > 0.0
    heavier.restore(replace(known, robot="another"))
    np.testing.assert_array_equal(heavier.identified.calibration, 0.0)


def test_unmeasured_contacts_must_name_joints():
    with pytest.raises(ConfigError, match=r"'ankle' matches no joint; the joints are 'hip', 'knee'"):
        Estimator(config_from_parameters({"robot.fixed_base": True, "robot.unmeasured_contacts": ["ankle"]}), URDF)


def findings_of(
    effort_of: EffortOf,
    pace: float = 1.0,
    force_of: ForceOf = lambda q, phase: np.zeros(3),
    foot: bool = False,
    swing: tuple[float, float] = (0.8, 0.8),
    urdf: str = URDF,
) -> tuple[str, ...]:
    """Findings of a motion; ``effort_of`` position, velocity, torques of motor, gravity, and net.

    A force (3,), upright axes, of the position and the phases acts on the foot, whose sensor may measure it.
    """
    model = pin.buildModelFromXML(urdf)
    data, sole = model.createData(), model.getFrameId("sole")
    parameters = {"robot.fixed_base": True, "robot.joints": ["hip", "knee"], "observer": "momentum"}
    if foot:
        parameters |= {"feet.names": ["foot"], "feet.foot.frame": "sole", "feet.foot.contact": "point"}
    estimator, speed, size = Estimator(config_from_parameters(parameters), urdf), pace * SPEED, np.array(swing)
    found = set[str]()
    for stamp in range(0, round(5e9 / pace**0.5), round(4e6 / pace**0.5)):
        phase = 1e-9 * stamp * speed
        q, v, a = size * np.sin(phase) + 0.7, size * speed * np.cos(phase), -size * speed**2 * np.sin(phase)
        gravity = pin.computeGeneralizedGravity(model, data, q)
        torque = pin.rnea(model, data, q, v, a)
        pin.framesForwardKinematics(model, data, q)
        force = data.oMf[sole].rotation.T @ force_of(q, phase)
        contact = pin.computeFrameJacobian(model, data, q, sole, pin.LOCAL)[:3].T @ force
        motor = torque - contact + COULOMB * np.sign(v) + VISCOUS * v
        if foot:
            estimator.add(WrenchSample(stamp, 0, np.r_[force, np.zeros(3)]))
        estimator.add_joints(JointSample(stamp, q, v, effort_of(q, v, motor, gravity, torque - gravity)))
        found.update(estimator.health.findings)
    return tuple(found)


@pytest.mark.parametrize("pace", [1.0, 0.2])
@pytest.mark.parametrize(
    ("effort_of", "text"),
    [
        (lambda q, v, motor, gravity, net: motor, None),
        (lambda q, v, motor, gravity, net: motor - gravity, "of joint 'hip', 'knee' lacks the torque of gravity"),
        (lambda q, v, motor, gravity, net: net, "of joint 'hip', 'knee' lacks the torque of gravity"),
        (lambda q, v, motor, gravity, net: 12.0 * motor, "of joint 'hip', 'knee' is 12 times"),
        (lambda q, v, motor, gravity, net: motor * [1.0, 3.0], "of joint 'knee' is 3 times"),
        (lambda q, v, motor, gravity, net: motor * [-1.0, 1.0], "of joint 'hip' has the opposite sign"),
    ],
    ids=["right", "without gravity", "net", "in another unit", "unit of one joint", "sign of one joint"],
)
def test_errors_of_efforts_are_told_from_each_other_and_from_friction(effort_of, text, pace):
    found = findings_of(effort_of, pace)
    assert (len(found) == 1 and text in found[0]) if text else found == ()


def test_efforts_of_a_twelfth_are_told_from_those_without_gravity_where_accelerations_count():
    (found,) = findings_of(lambda q, v, motor, gravity, net: motor / 12.0)
    assert "of joint 'hip', 'knee' is 0.083 times" in found
    assert findings_of(lambda q, v, motor, gravity, net: motor / 12.0, 0.2) == ()


@pytest.mark.parametrize("pace", [1.0, 0.2])
@pytest.mark.parametrize(
    "friction",
    [
        lambda q, v, gravity: 6.0 * np.abs(gravity) * np.sign(v),
        lambda q, v, gravity: 4.0 * np.sin(9.0 * q) * np.sign(v),
        lambda q, v, gravity: 3.0 * np.sign(v[::-1]),
        lambda q, v, gravity: 6.0 * np.sign(v) + 6.0 * v,
        lambda q, v, gravity: 3.0 * q,
        lambda q, v, gravity: 3.0 * (0.7 - q) * [0.0, 1.0],
    ],
    ids=["of the load", "of the position", "of the other joint", "six times gravity", "springs", "spring of one joint"],
)
def test_efforts_that_mostly_are_friction_of_an_unknown_kind_are_not_said_to_lack_a_force(friction, pace):
    """Nor to have another unit or sign: gravity is half of them or less."""
    assert findings_of(lambda q, v, motor, gravity, net: motor + friction(q, v, gravity), pace) == ()


def test_units_of_efforts_of_fast_motions_have_the_right_factor():
    """Accelerations turn within 50 ms."""
    (found,) = findings_of(lambda q, v, motor, gravity, net: 12.0 * motor, 8.0)
    assert "of joint 'hip', 'knee' is 12 times" in found
    (found,) = findings_of(lambda q, v, motor, gravity, net: motor * [1.0, 3.0], 8.0)
    assert "of joint 'knee' is 3 times" in found


def steps_of(size: float, axis: int) -> ForceOf:
    """Force along an axis during every second half turn of the hip."""
    return lambda q, phase: size * np.eye(3)[axis] * max(0.0, float(np.sin(phase[0])))


def with_noise(size: float, factor: tuple[float, float]) -> EffortOf:
    rng = np.random.default_rng(1)
    return lambda q, v, motor, gravity, net: factor * motor + size * rng.normal(size=2)


def test_fast_steps_of_right_sensors_are_no_error_of_the_foot_sensor():
    assert findings_of(with_noise(0.05, (1.02, 0.98)), 6.0, steps_of(20.0, 2), foot=True) == ()


def test_a_flipped_effort_is_told_from_a_turned_foot_sensor_because_friction_brakes():
    """Axes are upright, and the knee hardly moves: both explain the torques of the hip, but one has it driven."""
    urdf = URDF.replace("0 0 -0.1", "-0.1 0 0").replace("0 0 -0.2", "-0.2 0 0").replace("0 1 0", "0 0 1")
    for size in (2.0, 4.0):
        (found,) = findings_of(with_noise(0.1, (-1.0, 1.0)), 1.0, steps_of(size, 1), True, (0.8, 0.05), urdf)
        assert "of joint 'hip' has the opposite sign" in found


@pytest.mark.parametrize("size", [4.0, 10.0, 20.0])
@pytest.mark.parametrize("rate", [0.2, 0.4, 0.8])
def test_efforts_of_a_leg_whose_foot_is_pulled_to_the_side_do_not_lack_gravity(size, rate):
    """No sensor measures the force. What friction leaves of the torques may look like gravity, but not the torques."""
    found = findings_of(with_noise(0.02, (1.0, 1.0)), 0.5, lambda q, phase: size * np.sin(rate * phase[0]) * PULL)
    assert found == ()
