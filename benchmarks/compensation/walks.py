"""Walks with a feed-forward torque in the loop: controllers, ways to compute the torque, errors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.shared.estimates import configure
from benchmarks.shared.walks import PERIOD
from friction_estimator.errors import SimulationError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.simulation import (
    TABLE_I,
    FrictionSetting,
    SimulationSample,
    Simulator,
    make_noise,
    make_scenario,
)
from friction_estimator.simulation.biped import Biped
from friction_estimator.simulation.controller import ControllerGains
from friction_estimator.simulation.friction import InjectedFriction
from friction_estimator.types import CommandSample, FloatArray, FrictionEstimate

PUBLISHED_STIFFNESS = (6e3, 2e3, 2e3, 3e3, 3e3, 6e3)
"""k_p from hip yaw to ankle roll [N m/rad]."""

PUBLISHED, DAMPED, OURS = "published", "published-damped", "ours"
CONTROLLERS = (PUBLISHED, DAMPED, OURS)
"""Published k_p and k_d = 1, published k_p with k_d = 5, and the gains of the simulation."""


def controller_gains(robot: Robot, name: str) -> ControllerGains:
    """Gains of one of :data:`CONTROLLERS`; the feed-forward torque of the plan stays in all of them.

    Without it, the published stiffness lets the pelvis sink and roll by several hundredths of a radian under the
    weight, and the built-in walk falls after 3 s with any damping.
    """
    if name == OURS:
        return ControllerGains()
    biped = Biped(robot.config, robot.urdf_xml)
    unit = biped.mass * biped.gravity * biped.legs[0].length
    damping = 1.0 if name == PUBLISHED else 5.0
    return ControllerGains(
        leg=tuple(stiffness / unit for stiffness in PUBLISHED_STIFFNESS),
        damping_time=tuple(damping / stiffness for stiffness in PUBLISHED_STIFFNESS),
        tilt=0.0,
    )


PUBLISHED_INTEGRAL_GAIN = (2.0, 2.0, 1.0, 2.0, 2.0, 4.0)
"""k_i of eq. 69, from hip yaw to ankle roll [1/s]."""

NONE, EXACT, TORQUE_LOOP = "none", "exact law", "fbse, eq. 69 as published"
NO_FRICTION = "none, and no friction either"
Feedforward = Callable[[SimulationSample], FloatArray]
_OBSERVERS: dict[str, dict[str, Any]] = {
    "fbse": {"observer": "fbse"},
    "momentum": {"observer": "momentum", "identifier.phases": "all", "identifier.law": "three_slope"},
    "kalman": {"observer": "kalman"},
}


def method_names() -> tuple[str, ...]:
    """All methods, without compensation first."""
    return (
        NONE,
        NO_FRICTION,
        EXACT,
        TORQUE_LOOP,
        *(f"{name}, {velocity}" for name in _OBSERVERS for velocity in ("measured", "desired")),
    )


def make_method(name: str, robot: Robot, noise: str) -> Feedforward | None:
    """Function from a sensor sample to the feed-forward torque (n,) of the next period; None without compensation."""
    if name in (NONE, NO_FRICTION):
        return None
    if name == EXACT:
        return exact_law(robot)
    if name == TORQUE_LOOP:
        loop = InTheLoop(robot, noise, {"observer": "fbse"})
        return published_torque_loop(lambda sample: loop.estimate(sample).friction)
    observer, velocity = name.split(", ")
    loop = InTheLoop(robot, noise, {**_OBSERVERS[observer], "compensation.velocity": velocity})

    def torque(sample: SimulationSample) -> FloatArray:
        wanted = loop.estimate(sample).compensation
        return np.zeros(sample.joints.velocity.size) if wanted is None else wanted

    return torque


def exact_law(robot: Robot) -> Feedforward:
    """The injected law at the measured velocity, the best compensation that an estimate can give."""
    names = Estimator(robot.config, robot.urdf_xml).joint_names
    half = len(names) // 2
    law = InjectedFriction((FrictionSetting(leg=TABLE_I),), names, (names[:half], names[half:]))
    return lambda sample: law.torque(sample.joints.position, sample.joints.velocity, sample.joints.effort, PERIOD)


def published_torque_loop(friction: Feedforward) -> Feedforward:
    """Integral torque control of eq. 69, on top of eq. 68.

    With ``tau = tau_pos + tau_tor`` the integrand is ``u_F - tau_tor``: the estimated friction, measured in stance and
    modelled in swing, passes a first-order low-pass of bandwidth k_i before it is added.

    Parameters
    ----------
    friction : estimate (n,) from a sample [N m]
    """
    gain = np.tile(PUBLISHED_INTEGRAL_GAIN, 2)
    torque = np.zeros(gain.size)

    def integrate(sample: SimulationSample) -> FloatArray:
        nonlocal torque
        torque = torque + PERIOD * gain * (friction(sample) - torque)
        return torque

    return integrate


class InTheLoop:
    """The estimator between sensors and motors; it starts from the prior of the friction law.

    Parameters
    ----------
    robot : configuration and URDF
    noise : sensor level; the estimator has the parameters of its datasheet
    changes : parameters on top of the robot's
    """

    def __init__(self, robot: Robot, noise: str, changes: Mapping[str, Any]) -> None:
        config = configure("suralp", noise, {"compensation.enabled": True, "compensation.gain": 1.0, **changes})
        self.estimator = Estimator(config, robot.urdf_xml)

    def estimate(self, sample: SimulationSample) -> FrictionEstimate:
        """Estimate that belongs to a sample."""
        estimator = self.estimator
        estimator.add_command(CommandSample(sample.joints.stamp_ns, sample.reference.velocity))
        return [estimate for reading in sample.readings for estimate in estimator.add(reading)][-1]


NOISE = "paper_std"
STRIDE = 5
"""Errors are computed at every fifth sample."""

STEP_LENGTHS = (0.10, 0.09, 0.11, 0.08, 0.12)
"""Of one walk each [m]: the mean over walks depends less on where single feet settle."""


@dataclass(frozen=True)
class Walk:
    """One walk, a row every 5 ms.

    Attributes
    ----------
    time : (m,) [s]
    wanted, actual : (m, 2) centre of mass in the world, x and y [m]
    over_feet : (m, 2) error of the centre of mass relative to the feet that carry it [m]
    joints : (m, n) error of the joint positions [rad]
    fell : reason of an early end, empty for a complete walk
    """

    time: FloatArray
    wanted: FloatArray
    actual: FloatArray
    over_feet: FloatArray
    joints: FloatArray
    fell: str = ""

    @property
    def root_square_error(self) -> FloatArray:
        """RSE of the centre of mass, x and y (Hashlamon & Erbatur 2014, eq. 70), (m, 2) [m]."""
        return np.abs(self.wanted - self.actual)


def walk(controller: str, method: str, step_length: float, duration: float) -> Walk:
    """Walk as in section 7.1; the torque computed from a sample acts in the next period, as on a robot."""
    robot = load_robot("suralp")
    scenario = make_scenario("walk_and_stop", duration)
    scenario = dataclasses.replace(scenario, gait=dataclasses.replace(scenario.gait, step_length=step_length))
    if method == NO_FRICTION:
        scenario = dataclasses.replace(scenario, friction=make_scenario("no_friction").friction)
    gains = controller_gains(robot, controller)
    simulator = Simulator(robot.config, robot.urdf_xml, scenario, make_noise(NOISE), gains=gains)
    compute, torque, judged, fell = make_method(method, robot, NOISE), None, [], ""
    for count in range(round(duration / PERIOD)):
        try:
            sample = simulator.step(torque)
        except SimulationError as error:
            fell = str(error)
            break
        torque = compute(sample) if compute is not None else None
        if count % STRIDE == 0:
            judged.append(sample)
    return _walk_of(robot, judged, fell)


def _walk_of(robot: Robot, samples: list[SimulationSample], fell: str) -> Walk:
    model = RobotModel(robot.config, robot.urdf_xml)
    return Walk(
        time=STRIDE * PERIOD * np.arange(len(samples)),
        wanted=np.array([sample.reference.com_in_world[:2] for sample in samples]),
        actual=np.array([sample.truth.com_in_world[:2] for sample in samples]),
        over_feet=np.array([error_over_feet(model, sample) for sample in samples]),
        joints=np.array([sample.reference.position - sample.joints.position for sample in samples]),
        fell=fell,
    )


def error_over_feet(model: RobotModel, sample: SimulationSample) -> FloatArray:
    """Centre of mass relative to the soles, weighted by the load on them, minus the same of the reference posture.

    Where the feet have settled in the world does not matter then. The reference soles are level and straight ahead, so
    their axes are those of the world.

    Returns
    -------
    (2,) x and y [m]
    """
    still, upright = np.zeros(sample.joints.position.size), np.array([0.0, 0.0, 9.81])
    actual = model.dynamics(sample.joints.position, still, np.zeros(3), upright)
    wanted = model.dynamics(sample.reference.position, still, np.zeros(3), upright)
    is_at = (model.centre_of_mass(actual)[0] - actual.foot_position_in_base) @ sample.truth.rotation_base_to_world.T
    arms = model.centre_of_mass(wanted)[0] - wanted.foot_position_in_base
    should_be_at = np.einsum("kji,kj->ki", wanted.foot_rotation_to_base, arms)
    load = np.maximum(sample.truth.wrenches[:, 2], 0.0)
    return np.asarray(load @ (is_at - should_be_at)[:, :2] / max(load.sum(), 1e-9))
