"""Sensor variances as vectors, ready to be propagated through an observer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.core.config import SensorNoise
from friction_estimator.core.types import FloatArray


@dataclass(frozen=True, slots=True)
class SensorVariances:
    """Variance a sample of each quantity.

    Attributes
    ----------
    position : scalar [rad^2]
    effort : scalar [(N m)^2]
    specific_force : scalar [(m/s^2)^2]
    wrench : (6,) [N^2, (N m)^2]
    velocity : (nv,) of the generalised velocity with the IMU at rest [rad^2/s^2]
    """

    position: float
    effort: float
    specific_force: float
    wrench: FloatArray
    velocity: FloatArray

    @classmethod
    def of(cls, noise: SensorNoise, base_dofs: int, joint_count: int) -> SensorVariances:
        """Build from standard deviations; the lever arm of the IMU is neglected in the linear base velocity."""
        velocity = np.zeros(base_dofs + joint_count)
        velocity[base_dofs:] = noise.velocity_std**2
        if base_dofs:
            velocity[3:6] = noise.angular_velocity_std**2
        return cls(
            position=noise.position_std**2,
            effort=noise.effort_std**2,
            specific_force=noise.specific_force_std**2,
            wrench=np.array([noise.force_std**2] * 3 + [noise.moment_std**2] * 3),
            velocity=velocity,
        )
