"""Faults that need the model of the robot: one that hangs, lies on its back or stands, and efforts that lack forces."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from benchmarks.faults.readings import PERIOD, Reading, Walk
from benchmarks.faults.streams import WRENCHES, Change, Readings, alone, map_field
from friction_estimator.robot.model import RobotModel
from friction_estimator.robot.transmission import Transmission
from friction_estimator.simulation import TABLE_I, FrictionSetting, Simulator, make_noise, make_scenario
from friction_estimator.simulation.friction import InjectedFriction
from friction_estimator.types import GRAVITY, FloatArray, ImuSample, JointSample, WrenchSample

_SWING = 0.15
"""Amplitude of the hanging legs [rad]."""
_FREQUENCY = 6.0
"""Of the hanging legs [rad/s]."""
_UPRIGHT = (0.0, 0.0, GRAVITY)
_ON_THE_BACK = (GRAVITY, 0.0, 0.0)


def hanging(walk: Walk) -> Change:
    """The base is held, the feet are in the air, the legs swing."""
    return alone(_carried(walk, _UPRIGHT))


def fallen(walk: Walk) -> Change:
    """The robot lies on its back, the feet in the air, and moves its legs."""
    return alone(_carried(walk, _ON_THE_BACK))


def _carried(walk: Walk, specific_force: Iterable[float]) -> Callable[[Readings, np.random.Generator], Readings]:
    """Samples of a base that rests, with this specific force in base axes."""
    config = walk.robot.config
    model = RobotModel(config, walk.robot.urdf_xml)
    count = len(walk.joint_names) // len(TABLE_I)
    legs = [walk.joint_names[leg * len(TABLE_I) : (leg + 1) * len(TABLE_I)] for leg in range(count)]
    motors = Transmission.from_coupling(config.robot.coupling.coupling(), walk.joint_names)
    friction = InjectedFriction((FrictionSetting(),), walk.joint_names, legs, motors)
    friction.advance(0.0)
    force, rest = np.array(tuple(specific_force)), np.zeros(3)
    in_imu = model.rotation_imu_to_base.T @ force
    noise = make_noise("paper_std").errors

    def instant(start: JointSample, elapsed: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Positions, velocities, torques and friction (n,)."""
        phase = _FREQUENCY * elapsed + np.arange(start.position.size)
        position = start.position + _SWING * (np.sin(phase) - np.sin(np.arange(start.position.size)))
        velocity, acceleration = _SWING * _FREQUENCY * np.cos(phase), -_SWING * _FREQUENCY**2 * np.sin(phase)
        dynamics = model.dynamics(position, velocity, rest, force)
        link = dynamics.mass_matrix[6:, 6:] @ acceleration + dynamics.bias[6:]
        true = friction.torque(position, velocity, link, PERIOD)
        return position, velocity, link + true, true

    def change(during: Readings, rng: np.random.Generator) -> Readings:
        start = next(one.sample for one in during if isinstance(one.sample, JointSample))
        states = {
            index: instant(start, PERIOD * number) for number, index in enumerate(sorted({one.index for one in during}))
        }

        def carried(one: Reading) -> Reading:
            position, velocity, effort, true = states[one.index]
            sample = one.sample
            if isinstance(sample, JointSample):
                noisy = velocity + noise.velocity_std * rng.normal(size=velocity.size)
                sample = replace(sample, position=position, velocity=noisy, effort=effort)
            elif isinstance(sample, ImuSample):
                gyro = noise.angular_velocity_std * rng.normal(size=3)
                sample = replace(sample, angular_velocity=gyro, specific_force=in_imu + 0.0)
            else:
                std = np.repeat((noise.force_std, noise.moment_std), 3)
                sample = replace(sample, wrench=std * rng.normal(size=6))
            return replace(one, sample=sample, friction=true)

        return [carried(one) for one in during]

    return change


def standing(walk: Walk) -> Change:
    """The robot stands still on both feet."""

    def change(during: Readings, rng: np.random.Generator) -> Readings:
        indices = sorted({one.index for one in during})
        scenario = make_scenario("stand", (len(indices) + 1) * PERIOD)
        robot = walk.robot
        simulator = Simulator(robot.config, robot.urdf_xml, scenario, make_noise("paper_std"), int(rng.integers(2**31)))
        samples = {index: simulator.step() for index in indices}

        def still(one: Reading) -> Reading:
            new = samples[one.index]
            kind = type(one.sample)
            found = next(
                sample
                for sample in (new.joints, new.imu, *new.wrenches)
                if type(sample) is kind and getattr(sample, "foot", None) == getattr(one.sample, "foot", None)
            )
            return replace(one, sample=replace(found, stamp_ns=one.stamp_ns), friction=new.truth.friction)

        return [still(one) for one in during]

    return alone(change)


def lacking(walk: Walk, feet: bool) -> Change:
    """Efforts lack the torque of gravity; ``feet``: and that of the forces at the feet."""
    model = RobotModel(walk.robot.config, walk.robot.urdf_xml)
    rotation = model.rotation_imu_to_base

    def change(during: Readings, rng: np.random.Generator) -> Iterable[Reading]:
        instants: dict[int, list[object]] = {}
        for one in during:
            instants.setdefault(one.index, []).append(one.sample)
        for one in during:
            sample = one.sample
            if isinstance(sample, JointSample):
                (imu,) = (other for other in instants[one.index] if isinstance(other, ImuSample))
                turn, force = rotation @ imu.angular_velocity, rotation @ imu.specific_force
                dynamics = model.dynamics(sample.position, sample.velocity, turn, force)
                torque = dynamics.bias[6:]
                for other in instants[one.index] if feet else ():
                    if isinstance(other, WrenchSample):
                        torque = torque - other.wrench @ dynamics.foot_jacobian[other.foot, :, 6:]
                one = one.changed(effort=sample.effort - torque)
            yield one

    return alone(change)


def tared(walk: Walk) -> Change:
    """Foot sensors have been set to zero while the robot stood: each lacks its part of the weight."""
    count, weight = len(walk.robot.config.feet), RobotModel(walk.robot.config, walk.robot.urdf_xml).weight
    return map_field(WRENCHES, "wrench", lambda wrench: wrench - [0.0, 0.0, weight / count, 0.0, 0.0, 0.0])
