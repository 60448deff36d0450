"""Velocity in the middle of a few readings, by least squares: noise that the next few readings do not share."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from friction_estimator.core.config import SensorNoise
from friction_estimator.core.types import FloatArray

_FINEST = 1e-9
_CACHED = 64


@dataclass(frozen=True, slots=True)
class LocalMotion:
    """Joints and base at one instant.

    Attributes
    ----------
    position, velocity : (n,) of the joints
    velocity_std : of each joint velocity [rad/s]
    angular_velocity : (3,) of the base, base axes [rad/s]
    angular_velocity_std : of each component
    """

    position: FloatArray
    velocity: FloatArray
    velocity_std: float
    angular_velocity: FloatArray
    angular_velocity_std: float


class LocalMotionFit:
    """A parabola through the positions of ``2 h + 1`` readings, its slope through their velocities; mean gyroscope.

    Parameters
    ----------
    noise : standard deviations that weigh positions against velocities
    """

    def __init__(self, noise: SensorNoise) -> None:
        self.retune(noise)

    def retune(self, noise: SensorNoise) -> None:
        """Other weights from now on, for this noise."""
        self._position_std = max(noise.position_std, _FINEST)
        self._velocity_std = math.inf if noise.velocity_cutoff > 0.0 else max(noise.velocity_std, _FINEST)
        self._gyro_std = noise.angular_velocity_std
        self._maps: dict[bytes, tuple[FloatArray, float]] = {}

    def at_middle(
        self, times: FloatArray, position: FloatArray, velocity: FloatArray, angular_velocity: FloatArray
    ) -> LocalMotion:
        """Fit readings at ``times`` (2 h + 1,) [s]: positions, velocities (2 h + 1, n), gyroscope (2 h + 1, 3)."""
        middle = times.size // 2
        weights, std = self._weights(np.round(times - times[middle], 6))
        q, dq = weights @ np.concatenate((position, velocity))
        gyro_std = self._gyro_std / math.sqrt(times.size)
        return LocalMotion(q, dq, std, angular_velocity.mean(axis=0), gyro_std)

    def _weights(self, times: FloatArray) -> tuple[FloatArray, float]:
        """Map from readings to position and velocity (2, 2 (2 h + 1)), and the standard deviation of the velocity."""
        key = times.tobytes()
        if key not in self._maps:
            if len(self._maps) >= _CACHED:  # jittering stamps
                self._maps.clear()
            self._maps[key] = self._fit(times)
        return self._maps[key]

    def _fit(self, times: FloatArray) -> tuple[FloatArray, float]:
        scale = max(float(np.abs(times).max()), _FINEST)
        t = times / scale
        one, zero = np.ones_like(t), np.zeros_like(t)
        positions = np.stack((one, t, 0.5 * t * t), axis=1)
        velocities = np.stack((zero, one, t), axis=1) / scale
        inverse_std = np.concatenate((one / self._position_std, one / self._velocity_std))[:, None]
        weighted = inverse_std * np.concatenate((positions, velocities))
        inverse = np.linalg.pinv(weighted)
        weights = inverse * inverse_std.T
        return np.stack((weights[0], weights[1] / scale)), float(np.linalg.norm(inverse[1]) / scale)
