"""Ways to make the torque that is added to the motor command, each a function of the newest sensor sample."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from friction_estimator.config import parameter_fields
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.simulation import TABLE_I, FrictionSetting, SimulationSample, make_noise
from friction_estimator.simulation.friction import InjectedFriction
from friction_estimator.types import CommandSample, FloatArray, FrictionEstimate

PERIOD = 1e-3
PRINTED_INTEGRAL_GAIN = (2.0, 2.0, 1.0, 2.0, 2.0, 4.0)
"""k_i of eq. 69, from hip yaw to ankle roll [1/s]."""

NONE, EXACT, PRINTED = "none", "exact law", "fbse, eq. 69 as printed"
NO_FRICTION = "none, and no friction either"
Feedforward = Callable[[SimulationSample], FloatArray]
_OBSERVERS: dict[str, dict[str, Any]] = {
    "fbse": {"observer": "fbse"},
    "momentum": {"observer": "momentum", "identifier.phases": "all", "identifier.law": "three_slope"},
    "kalman": {"observer": "kalman"},
}


def method_names() -> tuple[str, ...]:
    """All methods, without compensation first."""
    known = next(item.range.choices for item in parameter_fields(()) if item.name == "observer")
    observers = [name for name in _OBSERVERS if name in known]
    return (
        NONE,
        NO_FRICTION,
        EXACT,
        PRINTED,
        *(f"{name}, {velocity}" for name in observers for velocity in ("measured", "desired")),
    )


def make_method(name: str, robot: Robot, noise: str) -> Feedforward | None:
    """Feed-forward torque (n,) of the next period from the sample of this one; None where there is none."""
    if name in (NONE, NO_FRICTION):
        return None
    if name == EXACT:
        return exact_law(robot)
    if name == PRINTED:
        loop = InTheLoop(robot, noise, {"observer": "fbse"})
        return printed_torque_loop(lambda sample: loop.estimate(sample).friction)
    observer, velocity = name.split(", ")
    loop = InTheLoop(robot, noise, {**_OBSERVERS[observer], "compensation.velocity": velocity})

    def torque(sample: SimulationSample) -> FloatArray:
        wanted = loop.estimate(sample).compensation
        return np.zeros(sample.joints.velocity.size) if wanted is None else wanted

    return torque


def exact_law(robot: Robot) -> Feedforward:
    """The injected law at the measured velocity: what no estimate can beat."""
    names = Estimator(robot.config, robot.urdf_xml).joint_names
    half = len(names) // 2
    law = InjectedFriction((FrictionSetting(leg=TABLE_I),), names, (names[:half], names[half:]))
    return lambda sample: law.torque(sample.joints.velocity, sample.joints.effort)


def printed_torque_loop(friction: Feedforward) -> Feedforward:
    """Integral torque control of eq. 69, on top of eq. 68.

    With ``tau = tau_pos + tau_tor`` the integrand is ``u_F - tau_tor``: the estimated friction, measured in stance and
    modelled in swing, passes a first-order low-pass of bandwidth k_i before it is added.

    Parameters
    ----------
    friction : estimate (n,) from a sample [N m]
    """
    gain = np.tile(PRINTED_INTEGRAL_GAIN, 2)
    torque = np.zeros(gain.size)

    def integrate(sample: SimulationSample) -> FloatArray:
        nonlocal torque
        torque = torque + PERIOD * gain * (friction(sample) - torque)
        return torque

    return integrate


class InTheLoop:
    """The estimator between sensors and motors; it starts without any knowledge of the friction.

    Parameters
    ----------
    robot : configuration and URDF
    noise : sensor level, whose datasheet it is told
    changes : parameters on top of the robot's
    """

    def __init__(self, robot: Robot, noise: str, changes: Mapping[str, Any]) -> None:
        sensors = dataclasses.asdict(make_noise(noise).datasheet(PERIOD))
        told = {f"sensors.{name}": value for name, value in sensors.items()}
        config = load_robot("suralp", {**told, "compensation.enabled": True, **changes}).config
        self.estimator = Estimator(config, robot.urdf_xml)

    def estimate(self, sample: SimulationSample) -> FrictionEstimate:
        """Estimate that belongs to a sample."""
        estimator = self.estimator
        estimator.add_command(CommandSample(sample.joints.stamp_ns, sample.reference.velocity))
        estimates = estimator.add_imu(sample.imu)
        for wrench in sample.wrenches:
            estimates += estimator.add_wrench(wrench)
        return (estimates + estimator.add_joints(sample.joints))[-1]
