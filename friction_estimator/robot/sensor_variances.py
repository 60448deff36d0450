"""Variances of the sensors as vectors, for the propagation of their errors through an observer."""

from __future__ import annotations

import numpy as np

from friction_estimator.config import SensorNoise
from friction_estimator.types import FloatArray

SURE_SIGN = 3.0
"""The sign of a measured velocity is sure above this many standard deviations of its noise."""


def white_vector(noise: SensorNoise) -> FloatArray:
    """Variances (7,) of white noise: joint position, torque, specific force, force, moment, joint velocity, rate."""
    stds = (noise.position_std, noise.effort_std, noise.specific_force_std, noise.force_std, noise.moment_std)
    return np.square([*stds, noise.velocity_std, noise.angular_velocity_std])


def constant_vector(noise: SensorNoise) -> FloatArray:
    """Variances (6,) of constant errors: torque (relative), specific force, force, moment, wrench (relative), rate."""
    biases = (noise.effort_gain_std, noise.specific_force_bias_std, noise.force_bias_std, noise.moment_bias_std)
    return np.square([*biases, noise.force_gain_std, noise.angular_velocity_bias_std])
