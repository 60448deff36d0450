"""Noise and timing of the sensors, measured: for robots whose datasheet is too good, or was never copied.

White noise: third differences of a smooth signal vanish, those of white noise have twenty times its variance. The
median of their size over a fifth of a second does not mind impacts, and the smallest of several such blocks does not
mind motion.

Late velocities: differentiated positions behind a filter lag behind, whether the driver's author knew it or not. The
delay shows as a part of the acceleration in their difference to the slope of the positions.

Noisy stamps: a driver that samples evenly but stamps when it finds the time makes positions seem to jump by velocity
times the error of the stamp, thousands of times an encoder's noise. Whether stamps or sampling are uneven shows in
third differences of the positions, in which no stamp appears: small ones mean that the sampling is even.
"""

from __future__ import annotations

import dataclasses
import math
from collections import deque

import numpy as np

from friction_estimator.config import SensorNoise
from friction_estimator.types import FloatArray, SensorFrame

_BLOCK = 200
_BLOCKS = 16
_TO_STD = 1.0 / (0.6745 * np.sqrt(20.0))
"""From the median size of the third difference of Gaussian noise to its standard deviation."""
_WORSE = 1.5
"""Only noise that is so many times larger than what was told counts."""
_UNEVEN = 0.05
"""Intervals that differ by more than this part of their period are uneven, and spoil differences."""
_LATE = 0.6
"""Velocities later than this part of the period are believed to be filtered; half of it is the sampling."""
_SURE = 6.0
"""And the delay must be so many times its standard deviation."""
_STRIDE = 5
_FIELDS = ("position_std", "velocity_std", "angular_velocity_std", "force_std", "moment_std")
_FINEST = (1e-6, 1e-4, 1e-4, 0.1, 0.01)
"""Noise below this need not be told [rad, rad/s, rad/s, N, N m]."""
_TELLING = 10.0
"""The fastest joint must make the uneven sampling show so many times more than the encoder's noise."""
_EVEN_SAMPLING = 0.3
"""Part of what uneven sampling would show, below which the sampling is even."""
_GAP = 1.8
"""Intervals longer than so many medians are missing samples."""
_MISSING = 1.7
"""The clock counts a second period only beyond so many: a stamp late is likelier than a sample missing."""
_FOLLOW = 0.03
"""Part of its distance to the stamps that the clock makes good in a sample."""
_SMOOTH = 0.2


class SensorNoiseMonitor:
    """Compares the noise of the readings with what was told, and believes the larger.

    Parameters
    ----------
    told : the datasheet
    joints, feet : numbers n and k

    Attributes
    ----------
    noise : the datasheet, with larger standard deviations where they were measured
    ready : False during the first block
    """

    def __init__(self, told: SensorNoise, joints: int, feet: int) -> None:
        self.noise = told
        n, k = joints, feet
        self._kinds = np.repeat(np.arange(len(_FIELDS)), (n, n, 3, 3 * k, 3 * k))
        self._sizes: deque[FloatArray] = deque(maxlen=_BLOCKS)
        self._joints = n
        self._late_sum = self._acceleration_sum = self._error_sum = 0.0
        self._errors = 0
        self.ready = False
        self.reset()

    def reset(self) -> None:
        """Begin a new block."""
        self._frames: list[SensorFrame] = []
        self._times: list[float] = []

    def _gather(self) -> FloatArray:
        """Readings (N, 2 n + 3 + 6 k) of the block: positions, velocities, gyroscope, all forces, all moments."""
        frames, N = self._frames, len(self._frames)
        wrenches = np.array([frame.wrenches for frame in frames])
        return np.hstack(
            (
                np.array([frame.position for frame in frames]),
                np.array([frame.velocity for frame in frames]),
                np.array([frame.angular_velocity for frame in frames]),
                wrenches[:, :, :3].reshape(N, -1),
                wrenches[:, :, 3:].reshape(N, -1),
            )
        )

    def add(self, time: float, frame: SensorFrame) -> bool:
        """Add a frame; True when :attr:`noise` has become another."""
        self._frames.append(frame)
        self._times.append(time)
        if len(self._frames) < _BLOCK:
            return False
        steps = np.diff(self._times)
        readings = self._gather()
        self.reset()
        self.ready = True
        if np.ptp(steps) > _UNEVEN * steps.mean():
            return False
        self._sizes.append(np.median(np.abs(np.diff(readings, n=3, axis=0)), axis=0))
        late = self._compare_velocities(readings, float(steps.mean()))
        return self._compare_noise() or late

    def _compare_velocities(self, readings: FloatArray, period: float) -> bool:
        """Least squares of ``velocity - slope of position = -delay * acceleration`` over all joints and blocks."""
        if self.noise.velocity_cutoff > 0.0:
            return False
        n, h = self._joints, _STRIDE
        position, velocity = readings[:, :n], readings[:, n : 2 * n]
        slope = (position[h + 1 : 1 - h] - position[h - 1 : -h - 1]) / (2.0 * period)
        acceleration = (velocity[2 * h :] - velocity[: -2 * h]) / (2.0 * h * period)
        error = velocity[h:-h] - slope
        self._late_sum -= float((error * acceleration).sum())
        self._acceleration_sum += float((acceleration**2).sum())
        self._error_sum += float((error**2).sum())
        self._errors += error.size
        if self._acceleration_sum <= 0.0:
            return False
        delay = self._late_sum / self._acceleration_sum
        remaining = max(self._error_sum - delay * self._late_sum, 0.0) / self._errors
        if delay < _LATE * period or delay**2 * self._acceleration_sum < _SURE**2 * remaining:
            return False
        self.noise = dataclasses.replace(self.noise, velocity_cutoff=1.0 / (2.0 * np.pi * delay))
        return True

    def _compare_noise(self) -> bool:
        std = _TO_STD * np.min(self._sizes, axis=0)
        worse = {}
        for kind, (name, finest) in enumerate(zip(_FIELDS, _FINEST, strict=True)):
            own = std[self._kinds == kind]
            measured = float(np.sqrt((own**2).mean())) if own.size else 0.0
            if measured > _WORSE * max(getattr(self.noise, name), finest):
                worse[name] = measured
        if worse:
            self.noise = dataclasses.replace(self.noise, **worse)
        return bool(worse)


class StampClock:
    """Replaces intervals by whole periods while stamps are found to be noisy.

    Parameters
    ----------
    joints : n
    position_std : noise of the encoders [rad]
    """

    def __init__(self, joints: int, position_std: float) -> None:
        self._positions = np.empty((_BLOCK, joints))
        self._steps = np.empty(_BLOCK)
        self._position_std = position_std
        self._even_sampling = True
        self.reset()

    def reset(self) -> None:
        """Begin a new block; until it is full, stamps are believed."""
        self._row = 0
        self._period = self._behind = 0.0

    def interval(self, dt: float, position: FloatArray) -> float:
        """Interval to believe [s], for a stamped one and the positions (n,) at its end; zero stays zero."""
        if dt <= 0.0:
            return dt
        self._positions[self._row], self._steps[self._row] = position, dt
        self._row += 1
        if self._row == _BLOCK:
            self._row = 0
            self._judge()
        if self._period == 0.0:
            return dt
        behind = self._behind + dt
        periods = 1 if behind < _MISSING * self._period else round(behind / self._period)
        interval = self._period * periods + _FOLLOW * self._behind
        self._behind = behind - interval
        return interval

    def _judge(self) -> None:
        """Set the period when stamps are uneven but the sampling is not."""
        period = float(np.median(self._steps))
        if np.ptp(self._steps) <= _UNEVEN * period:
            self._period = 0.0
            return
        period = float(self._steps[self._steps < _GAP * period].mean())
        speed = np.median(np.abs(np.diff(self._positions, axis=0)), axis=0) / period
        fastest = int(speed.argmax())
        expected = float(speed[fastest]) * float(self._steps.std()) / math.sqrt(2.0)
        shown = _TO_STD * float(np.median(np.abs(np.diff(self._positions[:, fastest], n=3))))
        if expected > _TELLING * self._position_std:
            self._even_sampling = shown < _EVEN_SAMPLING * expected
        if not self._even_sampling:
            self._period = 0.0
        elif self._period == 0.0:
            self._period, self._behind = period, 0.0
        else:
            self._period += _SMOOTH * (period - self._period)
