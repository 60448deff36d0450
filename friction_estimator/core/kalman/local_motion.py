"""Velocity and acceleration of a few readings, by least squares: noise that the next few readings do not share."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from friction_estimator.core.config import SensorNoise
from friction_estimator.core.types import FloatArray

_FINEST = 1e-9
_CACHED = 64
CLEARLY = 4.0
"""Variances that are so many times those of the noise are no noise."""


@dataclass(frozen=True, slots=True)
class LocalMotion:
    """Joints and base at one instant.

    Attributes
    ----------
    position, velocity : (n,) of the joints
    velocity_std : (n,) [rad/s]
    angular_velocity : (3,) of the base, base axes [rad/s]
    angular_velocity_std : (3,)
    """

    position: FloatArray
    velocity: FloatArray
    velocity_std: FloatArray
    angular_velocity: FloatArray
    angular_velocity_std: FloatArray


class LocalMotionFit:
    """A parabola through the positions of some readings, its slope through their velocities; a line through the rates.

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
        self._maps: dict[bytes, tuple[FloatArray, FloatArray]] = {}

    def at_middle(
        self, times: FloatArray, position: FloatArray, velocity: FloatArray, angular_velocity: FloatArray
    ) -> LocalMotion:
        """Fit readings at ``times`` (2 h + 1,) [s]: positions, velocities (2 h + 1, n), gyroscope (2 h + 1, 3)."""
        weights, std = self._weights(np.round(times - times[times.size // 2], 6))
        q, dq, _ = weights @ np.concatenate((position, velocity))
        gyro_std = self._gyro_std / math.sqrt(times.size)
        return LocalMotion(
            position=q,
            velocity=dq,
            velocity_std=np.maximum(std[1], _unresolved(times, velocity, self._velocity_std)),
            angular_velocity=angular_velocity.mean(axis=0),
            angular_velocity_std=np.maximum(gyro_std, _unresolved(times, angular_velocity, self._gyro_std)),
        )

    def acceleration(
        self, times: FloatArray, position: FloatArray, velocity: FloatArray, angular_velocity: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Mean acceleration over readings as above, and its standard deviation.

        Returns
        -------
        (3 + n,) of the base (rotation) and the joints [rad/s^2]; (3 + n,)
        """
        weights, std = self._weights(np.round(times - times[times.size // 2], 6))
        joints = weights[2] @ np.concatenate((position, velocity))
        t = times - times.mean()
        square = float(t @ t)
        acceleration = np.concatenate((t @ angular_velocity / square, joints))
        return acceleration, np.repeat((self._gyro_std / math.sqrt(square), std[2]), (3, joints.size))

    def _weights(self, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Map from readings to position, velocity and acceleration, (3, 2 N), and their standard deviations (3,)."""
        key = times.tobytes()
        if key not in self._maps:
            if len(self._maps) >= _CACHED:  # jittering stamps
                self._maps.clear()
            self._maps[key] = self._fit(times)
        return self._maps[key]

    def _fit(self, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        scale = max(float(np.abs(times).max()), _FINEST)
        t = times / scale
        one, zero = np.ones_like(t), np.zeros_like(t)
        positions = np.stack((one, t, 0.5 * t * t), axis=1)
        velocities = np.stack((zero, one, t), axis=1) / scale
        inverse_std = np.concatenate((one / self._position_std, one / self._velocity_std))[:, None]
        inverse = np.linalg.pinv(inverse_std * np.concatenate((positions, velocities)))
        unscale = scale ** -np.arange(3.0)
        return inverse * inverse_std.T * unscale[:, None], np.linalg.norm(inverse, axis=1) * unscale


def _unresolved(times: FloatArray, readings: FloatArray, std: float) -> FloatArray:
    """Deviation (c,) of readings (N, c) from straight lines where it is clearly more than their noise, else zero.

    What bends or shakes within a fit is missing from it, and by about as much.
    """
    t, r = times - times.mean(), readings - readings.mean(axis=0)
    variance = ((r - np.outer(t, t @ r / (t @ t))) ** 2).sum(axis=0) / max(times.size - 2, 1)
    return np.sqrt(np.where(variance > CLEARLY * std**2, variance, 0.0))
