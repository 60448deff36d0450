"""Sensor models: named levels of noise, bias, gain error and quantisation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from friction_estimator.config import SensorNoise
from friction_estimator.errors import SimulationError, choices
from friction_estimator.types import FloatArray

_NOISE_BLOCK = 256  # samples whose noise is drawn at once


@dataclass(frozen=True, slots=True)
class NoiseLevel:
    """Errors of the sensors.

    Attributes
    ----------
    name : of the level
    errors : white noise a sample; biases and gain errors are drawn once per run and axis
    encoder_step : resolution of the joint position, 0: continuous [rad]
    velocity_cutoff : the joint velocity is the differentiated position behind a first-order low-pass of this
        frequency; 0: the true velocity plus white noise [Hz]
    """

    name: str
    errors: SensorNoise
    encoder_step: float = 0.0
    velocity_cutoff: float = 0.0

    def datasheet(self, period: float) -> SensorNoise:
        """Noise parameters for an estimator: ``errors``, with the rounding of the encoder as white noise.

        Parameters
        ----------
        period : between readings [s]
        """
        rounding = self.encoder_step / math.sqrt(12.0)
        position = math.hypot(self.errors.position_std, rounding)
        velocity = self.errors.velocity_std
        if self.velocity_cutoff > 0.0:
            keep = math.exp(-2.0 * math.pi * self.velocity_cutoff * period)
            velocity = math.hypot(velocity, (1.0 - keep) / period * math.sqrt(2.0 / (1.0 + keep)) * position)
        return replace(self.errors, position_std=position, velocity_std=velocity, velocity_cutoff=self.velocity_cutoff)


_PAPER_FEET = {"force_std": 1.0, "moment_std": 0.1}  # the foot sensors are not in the table

_LEVELS = {
    level.name: level
    for level in (
        NoiseLevel(
            "clean",
            SensorNoise(
                position_std=0.0,
                velocity_std=0.0,
                specific_force_std=0.0,
                angular_velocity_std=0.0,
                force_std=0.0,
                moment_std=0.0,
            ),
        ),
        # Lim et al. 2024, Table 3, as published: variances.
        NoiseLevel(
            "paper",
            SensorNoise(
                position_std=math.sqrt(1e-7),
                velocity_std=math.sqrt(2e-3),
                specific_force_std=math.sqrt(1e-4),
                angular_velocity_std=math.sqrt(5e-3),
                **_PAPER_FEET,
            ),
        ),
        # The same numbers read as standard deviations.
        NoiseLevel(
            "paper_std",
            SensorNoise(
                position_std=1e-7,
                velocity_std=2e-3,
                specific_force_std=1e-4,
                angular_velocity_std=5e-3,
                **_PAPER_FEET,
            ),
        ),
        NoiseLevel(
            "realistic",
            SensorNoise(
                position_std=0.0,
                velocity_std=0.0,
                effort_std=0.05,
                specific_force_std=0.02,
                angular_velocity_std=2e-3,
                force_std=1.0,
                moment_std=0.1,
                specific_force_bias_std=0.02,
                angular_velocity_bias_std=2e-3,
                force_bias_std=2.0,
                moment_bias_std=0.1,
                force_gain_std=0.01,
                effort_gain_std=0.005,
            ),
            encoder_step=2.0 * math.pi / 2**19,
            velocity_cutoff=60.0,
        ),
    )
}


def noise_names() -> tuple[str, ...]:
    """Names of the sensor levels."""
    return tuple(sorted(_LEVELS))


def make_noise(name: str) -> NoiseLevel:
    """Sensor level by name.

    Raises
    ------
    SimulationError
        When there is no such level; the message lists the names.
    """
    if name not in _LEVELS:
        raise SimulationError(f"unknown noise level {name!r}; the levels are {choices(_LEVELS)}")
    return _LEVELS[name]


class SensorModel:
    """Adds the errors of a level to exact signals; one instance per run.

    Signals are one after another position, velocity and effort (n,) of the joints, specific force and angular velocity
    (3,) of the IMU, and wrenches (k, 6).

    Parameters
    ----------
    level : which errors
    joints, feet : numbers n and k
    period : between readings [s]
    seed : of the random numbers; the same seed gives the same run
    """

    def __init__(self, level: NoiseLevel, joints: int, feet: int, period: float, seed: int) -> None:
        self._level = level
        self._n, self._k, self._period = joints, feet, period
        self._rng = np.random.default_rng(seed)
        e = level.errors
        self._std = self._per_channel(
            e.position_std, e.velocity_std, e.effort_std,
            e.specific_force_std, e.angular_velocity_std, e.force_std, e.moment_std,
        )  # fmt: skip
        bias_std = self._per_channel(
            0.0, 0.0, 0.0, e.specific_force_bias_std, e.angular_velocity_bias_std, e.force_bias_std, e.moment_bias_std
        )
        gain_std = self._per_channel(0.0, 0.0, e.effort_gain_std, 0.0, 0.0, e.force_gain_std, e.force_gain_std)
        self._bias = bias_std * self._rng.standard_normal(self._std.size)
        self._gain = 1.0 + gain_std * self._rng.standard_normal(self._std.size)
        self._noise: FloatArray = np.empty((0, self._std.size))
        self._row = 0
        self._smoothing = 1.0 - math.exp(-2.0 * math.pi * level.velocity_cutoff * period)
        self._last_position: FloatArray | None = None
        self._filtered: FloatArray = np.zeros(joints)

    def measure(self, exact: FloatArray) -> FloatArray:
        """Signals (3 n + 6 + 6 k,) with the errors of the level."""
        n = self._n
        signals = exact * self._gain
        signals += self._bias
        signals += self._next_noise()
        if self._level.encoder_step > 0.0:
            signals[:n] = np.round(signals[:n] / self._level.encoder_step) * self._level.encoder_step
        if self._level.velocity_cutoff > 0.0:
            signals[n : 2 * n] += self._differentiated(signals[:n]) - exact[n : 2 * n]
        return signals

    def _differentiated(self, position: FloatArray) -> FloatArray:
        """Low-passed backward difference of the measured position."""
        if self._last_position is not None:
            self._filtered = self._filtered + self._smoothing * (
                (position - self._last_position) / self._period - self._filtered
            )
        self._last_position = position.copy()
        return self._filtered

    def _next_noise(self) -> FloatArray:
        if self._row == self._noise.shape[0]:
            self._noise = self._rng.standard_normal((_NOISE_BLOCK, self._std.size)) * self._std
            self._row = 0
        self._row += 1
        return self._noise[self._row - 1]

    def _per_channel(self, *values: float) -> FloatArray:
        """One value a channel, from position, velocity, effort, specific force, angular velocity, force, moment."""
        position, velocity, effort, specific_force, rate, force, moment = values
        joints = [position] * self._n + [velocity] * self._n + [effort] * self._n
        return np.array(joints + [specific_force] * 3 + [rate] * 3 + ([force] * 3 + [moment] * 3) * self._k)
