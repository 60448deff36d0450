"""Sensor variances as vectors, ready to be propagated through an observer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.config import SensorNoise
from friction_estimator.types import FloatArray, SensorFrame


@dataclass(frozen=True, slots=True)
class SensorVariances:
    """Variance of each quantity, white a sample or constant.

    Attributes
    ----------
    position : scalar [rad^2]
    effort : (n,) [(N m)^2]
    specific_force : scalar [(m/s^2)^2]
    wrench : (k, 6) [N^2, (N m)^2]
    velocity : (nv,) of the generalised velocity with the IMU at rest [rad^2/s^2]
    """

    position: float
    effort: FloatArray
    specific_force: float
    wrench: FloatArray
    velocity: FloatArray


def white_variances(noise: SensorNoise, frame: SensorFrame, base_dofs: int) -> SensorVariances:
    """Variances of the white noise; the lever arm of the IMU is neglected in the linear base velocity."""
    wrench = np.array([noise.force_std**2] * 3 + [noise.moment_std**2] * 3)
    return SensorVariances(
        position=noise.position_std**2,
        effort=np.full(frame.effort.size, noise.effort_std**2),
        specific_force=noise.specific_force_std**2,
        wrench=np.broadcast_to(wrench, frame.wrenches.shape),
        velocity=_velocity(frame.effort.size, base_dofs, noise.velocity_std, noise.angular_velocity_std),
    )


def constant_variances(noise: SensorNoise, frame: SensorFrame, base_dofs: int) -> SensorVariances:
    """Variances of the constant biases and gain errors at the present readings."""
    wrench = np.array([noise.force_bias_std**2] * 3 + [noise.moment_bias_std**2] * 3)
    return SensorVariances(
        position=0.0,
        effort=(noise.effort_gain_std * frame.effort) ** 2,
        specific_force=noise.specific_force_bias_std**2,
        wrench=wrench + (noise.force_gain_std * frame.wrenches) ** 2,
        velocity=_velocity(frame.effort.size, base_dofs, 0.0, noise.angular_velocity_bias_std),
    )


def _velocity(joint_count: int, base_dofs: int, joint_std: float, angular_std: float) -> FloatArray:
    velocity = np.zeros(base_dofs + joint_count)
    velocity[base_dofs:] = joint_std**2
    if base_dofs:
        velocity[3:6] = angular_std**2
    return velocity


def white_vector(noise: SensorNoise) -> FloatArray:
    """Variances (7,) of white noise: joint position, torque, specific force, force, moment, joint velocity, rate."""
    stds = (noise.position_std, noise.effort_std, noise.specific_force_std, noise.force_std, noise.moment_std)
    return np.square([*stds, noise.velocity_std, noise.angular_velocity_std])


def constant_vector(noise: SensorNoise) -> FloatArray:
    """Variances (6,) of what is constant: torque (relative), specific force, force, moment, wrench (relative), rate."""
    biases = (noise.effort_gain_std, noise.specific_force_bias_std, noise.force_bias_std, noise.moment_bias_std)
    return np.square([*biases, noise.force_gain_std, noise.angular_velocity_bias_std])
