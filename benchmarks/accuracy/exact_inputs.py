"""Inputs of an observer without the stages before it: true states, or the bare sensors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.accuracy.simulated_run import PERIOD, SimulatedRun
from friction_estimator.robot.model import RobotModel
from friction_estimator.simulation import SimulationSample
from friction_estimator.types import Attitude, ContactPhase, Dynamics, FloatArray, SensorFrame

Inputs = tuple[SensorFrame, Attitude, ContactPhase, Dynamics]


def true_inputs(run: SimulatedRun, model: RobotModel) -> Iterator[Inputs]:
    """What ``Observer.step`` takes, with the true attitude, angular velocity, acceleration and contact phase.

    The run must be one with clean sensors. The last sample is left out: it has no angular acceleration.
    """
    rate = np.array([sample.truth.angular_velocity for sample in run.samples])
    acceleration = np.diff(rate, axis=0) / PERIOD
    for k, angular_acceleration in enumerate(acceleration):
        sample = run.samples[k]
        specific_force = model.rotation_imu_to_base @ sample.imu.specific_force
        attitude = _attitude(sample.truth.rotation_base_to_world, rate[k], angular_acceleration, specific_force)
        yield _frame(sample, k), attitude, run.phases[k], _dynamics(model, sample, attitude)


def bare_inputs(run: SimulatedRun, model: RobotModel) -> Iterator[Inputs]:
    """What the momentum observer needs, straight from the sensors; attitude and angular acceleration are void.

    A foot in the air has no wrench, whatever its sensor says: that needs no friction law.
    """
    void = np.full(3, np.nan)
    for k, sample in enumerate(run.samples):
        rate, specific_force = (
            model.rotation_imu_to_base @ reading for reading in (sample.imu.angular_velocity, sample.imu.specific_force)
        )
        attitude = _attitude(np.full((3, 3), np.nan), rate, void, specific_force)
        frame = _frame(sample, k)
        unloaded = replace(frame, wrenches=np.where(run.phases[k].contact[:, None], frame.wrenches, 0.0))
        yield unloaded, attitude, run.phases[k], _dynamics(model, sample, attitude)


def _attitude(rotation: FloatArray, rate: FloatArray, acceleration: FloatArray, specific_force: FloatArray) -> Attitude:
    return Attitude(rotation, rate, acceleration, specific_force, np.zeros((3, 3)), np.zeros((3, 3)))


def _dynamics(model: RobotModel, sample: SimulationSample, attitude: Attitude) -> Dynamics:
    joints = sample.joints
    return model.dynamics(joints.position, joints.velocity, attitude.angular_velocity, attitude.specific_force)


def _frame(sample: SimulationSample, index: int) -> SensorFrame:
    wrenches = np.array([wrench.wrench for wrench in sample.wrenches])
    return SensorFrame(
        stamp_ns=sample.joints.stamp_ns,
        dt=PERIOD if index else 0.0,
        position=sample.joints.position,
        velocity=sample.joints.velocity,
        effort=sample.joints.effort,
        angular_velocity=sample.imu.angular_velocity,
        specific_force=sample.imu.specific_force,
        wrenches=wrenches,
        imu_fresh=True,
        wrench_fresh=np.ones(len(wrenches), dtype=bool),
        readings=np.ones(1 + len(wrenches)),
    )
