"""Sensor models: named levels of noise, bias, gain error and quantisation."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from friction_estimator.config import SensorNoise
from friction_estimator.errors import SimulationError, lookup
from friction_estimator.types import FloatArray, ImuSample, IntArray, JointSample, WrenchSample

_NOISE_BLOCK = 256  # samples whose noise is drawn at once
_MAX_JITTER = 0.45  # largest error of a stamp, in sample periods: stamps of a sensor stay in order


@dataclass(frozen=True, slots=True)
class Timing:
    """Rates of the sensors, and errors of their stamps."""

    # readings a second, at most that of the simulation [Hz]
    joint_rate: int = 1000
    imu_rate: int = 1000
    wrench_rate: int = 1000
    stamp_jitter: float = 0.0  # standard deviation of the stamps' errors [s]
    effort_delay: float = 0.0  # age of the effort at the time of its stamp, in whole sample periods [s]
    wrench_delay: float = 0.0  # that of the wrenches [s]


@dataclass(frozen=True, slots=True)
class NoiseLevel:
    """Errors and rates of all simulated sensors."""

    name: str  # of the level
    errors: SensorNoise  # white noise a sample; biases and gain errors are drawn once per run and axis
    encoder_step: float = 0.0  # resolution of the joint position, 0: continuous [rad]
    # the joint velocity is the differentiated position behind a first-order low-pass of this frequency; 0: the
    # true velocity plus white noise [Hz]
    velocity_cutoff: float = 0.0
    measures_velocity: bool = True  # False for joint states without velocities
    # angle between the IMU and its frame in the URDF, about an axis that is drawn once per run [rad]
    imu_tilt: float = 0.0
    timing: Timing = Timing()  # rates and stamps

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

_14_BIT = 2.0 * math.pi / 2**14

_PAPER_STD = NoiseLevel(  # Lim et al. 2024, Table 3, with its numbers read as standard deviations
    "paper_std",
    SensorNoise(
        position_std=1e-7,
        velocity_std=2e-3,
        specific_force_std=1e-4,
        angular_velocity_std=5e-3,
        **_PAPER_FEET,
    ),
)


def _with(name: str, position_std: float = 1e-7, velocity_std: float = 2e-3, **fields: Any) -> NoiseLevel:
    """``paper_std`` with other fields and other white noise of the joints."""
    errors = replace(_PAPER_STD.errors, position_std=position_std, velocity_std=velocity_std)
    return replace(_PAPER_STD, name=name, errors=errors, **fields)


_LEVELS = {
    level.name: level
    for level in (
        NoiseLevel("clean", SensorNoise(*7 * [0.0])),  # white noise of all signals
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
        _PAPER_STD,
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
        # Troubles of real robots, one by one, on top of paper_std.
        _with("encoder_14_bit", position_std=0.0, velocity_std=0.0, encoder_step=_14_BIT, velocity_cutoff=60.0),
        _with("encoder_14_bit_alone", position_std=0.0, encoder_step=_14_BIT, measures_velocity=False),
        _with("tilted_imu", imu_tilt=math.radians(3.0)),
        _with("late_wrench", timing=Timing(wrench_delay=5e-3)),
        _with("late_effort", timing=Timing(effort_delay=1e-3)),
        _with("mixed_rates", timing=Timing(1000, 400, 100, stamp_jitter=3e-4)),
        _with("mixed_rates_500", timing=Timing(500, 500, 250, stamp_jitter=3e-4)),
        _with("mixed_rates_200", timing=Timing(200, 400, 100, stamp_jitter=3e-4)),
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
    return lookup(_LEVELS, name, "noise level", SimulationError)


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
        self._tilt: FloatArray | None = None
        if level.imu_tilt:
            axis = self._rng.standard_normal(3)
            self._tilt = Rotation.from_rotvec(level.imu_tilt * axis / np.linalg.norm(axis)).as_matrix()
        timing = level.timing
        delays = self._per_channel(0.0, 0.0, timing.effort_delay, 0.0, 0.0, timing.wrench_delay, timing.wrench_delay)
        self._age: IntArray = np.rint(delays / period).astype(np.intp)
        self._recent: deque[FloatArray] = deque(maxlen=int(self._age.max()) + 1)
        self._smoothing = 1.0 - math.exp(-2.0 * math.pi * level.velocity_cutoff * period)
        self._last_position: FloatArray | None = None
        self._filtered: FloatArray = np.zeros(joints)

    def measure(self, exact: FloatArray) -> FloatArray:
        """Signals (3 n + 6 + 6 k,) with the errors of the level."""
        n = self._n
        exact = self._delayed(exact)
        if self._tilt is not None:
            exact = exact.copy()
            for start in (3 * n, 3 * n + 3):
                exact[start : start + 3] = self._tilt @ exact[start : start + 3]
        signals = exact * self._gain
        signals += self._bias
        signals += self._next_noise()
        if self._level.encoder_step > 0.0:
            signals[:n] = np.round(signals[:n] / self._level.encoder_step) * self._level.encoder_step
        if self._level.velocity_cutoff > 0.0:
            signals[n : 2 * n] += self._differentiated(signals[:n]) - exact[n : 2 * n]
        return signals

    def samples(
        self, count: int, stamp_ns: int, signals: FloatArray
    ) -> tuple[JointSample, ImuSample, tuple[WrenchSample, ...], tuple[bool, bool, bool]]:
        """Samples of joints, IMU and feet, and whether the joints, the IMU and the feet deliver them.

        Parameters
        ----------
        count : number of the sample since the start
        stamp_ns : its time [ns]
        signals : :meth:`measure` of it
        """
        timing, n, stamp = self._level.timing, self._n, self._stamp
        imu, feet = 3 * n, 3 * n + 6
        velocity = signals[n : 2 * n] if self._level.measures_velocity else np.full(n, np.nan)
        joints = JointSample(stamp(stamp_ns), signals[:n], velocity, signals[2 * n : imu])
        inertial = ImuSample(stamp(stamp_ns), signals[imu + 3 : feet], signals[imu : imu + 3])
        starts = range(feet, signals.size, 6)
        wrenches = tuple(
            [WrenchSample(stamp(stamp_ns), foot, signals[start : start + 6]) for foot, start in enumerate(starts)]
        )
        due = [self._is_due(rate, count) for rate in (timing.joint_rate, timing.imu_rate, timing.wrench_rate)]
        return joints, inertial, wrenches, (due[0], due[1], due[2])

    def _is_due(self, rate: int, count: int) -> bool:
        """Whether a sensor with this rate has a reading with the sample of this number."""
        if rate * self._period >= 1.0:
            return True
        now, before = (math.floor(number * rate * self._period + 1e-9) for number in (count, count - 1))
        return now > before or count == 0

    def _stamp(self, stamp_ns: int) -> int:
        """Stamp of a reading with its error [ns]."""
        jitter = self._level.timing.stamp_jitter
        if jitter == 0.0:
            return stamp_ns
        largest = _MAX_JITTER * self._period
        return stamp_ns + round(1e9 * min(max(jitter * self._rng.standard_normal(), -largest), largest))

    def _delayed(self, exact: FloatArray) -> FloatArray:
        """Signals of each channel at the time that its reading shows."""
        if not self._age.any():
            return exact
        self._recent.appendleft(exact)
        history = np.array(self._recent)
        return history[np.minimum(self._age, len(history) - 1), np.arange(exact.size)]

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
