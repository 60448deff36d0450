"""Samples for the buffer of windows, from readings of the sensors."""

from __future__ import annotations

import numpy as np

from friction_estimator.estimation.kalman.windows import Window, WindowBuffer, write_sample
from friction_estimator.estimation.motion.joint_motion import JointMotion
from friction_estimator.estimation.observers.momentum import ObserverInputs
from friction_estimator.types import Attitude, Dynamics, SensorFrame


def add(
    buffer: WindowBuffer,
    time: float,
    frame: SensorFrame,
    attitude: Attitude,
    acceleration: np.ndarray,
    regressor: np.ndarray,
    motor_friction_variance: np.ndarray,
    disturbed: np.ndarray,
) -> Window | None:
    """Add a sample as :func:`evaluate_frame` does; the window that becomes complete, if any."""
    n, k = frame.position.size, len(frame.wrenches)
    velocity = np.concatenate((np.zeros(3), attitude.angular_velocity, frame.velocity))
    nothing = np.zeros((n + 6, n + 6)), velocity, velocity, np.zeros((k, 6, n + 6)), np.zeros((k, 6))
    feet = np.zeros((k, 3)), np.zeros((k, 3, 3))
    write_sample(
        buffer.next_row(time, n, k, regressor.shape[1]),
        Dynamics(frame.position, velocity, attitude.specific_force, *nothing, *feet),
        JointMotion(frame.position, frame.velocity, acceleration, np.zeros(n)),
        ObserverInputs(frame.effort, frame.wrenches, frame.imu_fresh, frame.wrench_fresh, frame.dt),
        attitude.angular_acceleration,
        disturbed,
        motor_friction_variance,
        regressor,
    )
    return buffer.commit_row(frame.readings_per_sample)
