"""White noise of the sensors, measured: for robots whose datasheet is too good, or was never copied.

Third differences of a smooth signal vanish, those of white noise have twenty times its variance. The median of their
size over a fifth of a second does not mind impacts, and the smallest of several such blocks does not mind motion.

Velocities that are late are differentiated positions behind a filter, whether the driver's author knew it or not. How
late they are shows as a part of the acceleration in their difference to the slope of the positions.
"""

from __future__ import annotations

import dataclasses
from collections import deque

import numpy as np

from friction_estimator.core.config import SensorNoise
from friction_estimator.core.types import FloatArray, SensorFrame

_BLOCK = 200
_BLOCKS = 16
_TO_STD = 1.0 / (0.6745 * np.sqrt(20.0))
"""From the median size of the third difference of Gaussian noise to its standard deviation."""
_WORSE = 1.5
"""Only noise that is so many times larger than what was told counts."""
_EVEN = 0.05
"""Stamps that are uneven by more than this part of their period spoil differences."""
_LATE = 0.6
"""Velocities later than this part of the period are believed to be filtered; half of it is the sampling."""
_SURE = 6.0
"""And the delay must be so many times its standard deviation."""
_STRIDE = 5
_FIELDS = ("position_std", "velocity_std", "angular_velocity_std", "force_std", "moment_std")
_FINEST = (1e-6, 1e-4, 1e-4, 0.1, 0.01)
"""Noise below this need not be told [rad, rad/s, rad/s, N, N m]."""


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
        self._readings = np.empty((_BLOCK, self._kinds.size))
        self._times = np.empty(_BLOCK)
        self._sizes: deque[FloatArray] = deque(maxlen=_BLOCKS)
        self._joints = n
        self._late_sum = self._acceleration_sum = self._error_sum = 0.0
        self._errors = 0
        self.ready = False
        self.reset()

    def reset(self) -> None:
        """Begin a new block."""
        self._row = 0

    def add(self, time: float, frame: SensorFrame) -> bool:
        """Add a frame; True when :attr:`noise` has become another."""
        wrenches = frame.wrenches
        row = frame.position, frame.velocity, frame.angular_velocity, wrenches[:, :3].ravel(), wrenches[:, 3:].ravel()
        np.concatenate(row, out=self._readings[self._row])
        self._times[self._row] = time
        self._row += 1
        if self._row < _BLOCK:
            return False
        self._row = 0
        self.ready = True
        steps = np.diff(self._times)
        if np.ptp(steps) > _EVEN * steps.mean():
            return False
        self._sizes.append(np.median(np.abs(np.diff(self._readings, n=3, axis=0)), axis=0))
        late = self._compare_velocities(float(steps.mean()))
        return self._compare_noise() or late

    def _compare_velocities(self, period: float) -> bool:
        """Least squares of ``velocity - slope of position = -delay * acceleration`` over all joints and blocks."""
        if self.noise.velocity_cutoff > 0.0:
            return False
        n, h = self._joints, _STRIDE
        position, velocity = self._readings[:, :n], self._readings[:, n : 2 * n]
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
