"""The torque of ``friction_compensation`` on the side of the controller, which may outlive the estimator.

A class for Python, and a header for C++.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from friction_estimator.errors import ConfigError
from friction_estimator.types import FloatArray

INCLUDE = Path(__file__).parent / "include"
"""Folder for the include path of a C++ compiler: ``friction_estimator/safe_compensation.hpp`` is this class in C++."""


class SafeCompensation:
    """Feed-forward torque that ends with its source.

    A message counts while it is fresh: its stamp is newer than that of the message before, and within ``timeout`` of
    the newest joint states that the controller has read. After one that is older, or has the same stamp but other
    torques (two nodes send, or a clock was set back), no message counts for ``timeout``. After half of ``timeout``
    without a fresh message the torque falls, and after ``timeout`` it is zero. Whatever arrives, the torque is finite
    and within ``limit``, and its size grows at most with ``slew_rate``.

    Both methods belong to the same thread. Neither raises an error because of what arrives.

    Parameters
    ----------
    joints : n
    limit : largest torque of a joint [N m]
    timeout : longest time without a fresh message [s]
    slew_rate : largest rate of change of a torque that does not fall because of ``timeout`` [N m/s]
    clock : time [s] that never jumps back; one that does, or is NaN, costs torque and never adds any

    Raises
    ------
    ConfigError
        When a parameter is not a positive number.
    """

    def __init__(
        self,
        joints: int,
        limit: float = 10.0,
        timeout: float = 0.1,
        slew_rate: float = 500.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        for name, value in (("limit", limit), ("timeout", timeout), ("slew_rate", slew_rate)):
            if not 0.0 < value < math.inf:
                raise ConfigError(f"{name} of SafeCompensation = {value}: a positive number is needed")
        self._limit, self._timeout, self._slew_rate, self._clock = limit, timeout, slew_rate, clock
        self._wanted, self._torque, self._newest = np.zeros(joints), np.zeros(joints), np.zeros(joints)
        self._stamp_ns: int | None = None
        self._time: float | None = None
        self._age, self._in_order, self._pause = math.inf, math.inf, 0.0

    def receive(self, torque: ArrayLike, stamp_ns: int, newest_joint_stamp_ns: int) -> bool:
        """Take the newest message of ``friction_compensation``; True where it is fresh.

        Parameters
        ----------
        torque : (n,) its efforts in the order of the controller's joints, found by the names in the message [N m]
        stamp_ns : its header stamp [ns]
        newest_joint_stamp_ns : header stamp of the newest joint states that the controller has read [ns]
        """
        self._advance()
        try:
            values = np.asarray(torque)
            near = bool(abs(newest_joint_stamp_ns - stamp_ns) <= 1e9 * self._timeout)
        except (TypeError, ValueError, OverflowError):  # lists of several lengths, or no stamp
            return False
        is_numbers = values.dtype.kind in "fiu" and values.shape == self._wanted.shape
        if not (near and is_numbers and np.isfinite(values).all()):
            return False
        before, self._stamp_ns = self._stamp_ns, stamp_ns
        same, self._newest = np.array_equal(values, self._newest), values.astype(float)
        if before is not None and stamp_ns <= before:
            if stamp_ns < before or not same:
                self._in_order = 0.0
            return False
        if self._in_order < self._timeout:
            return False
        self._wanted = np.minimum(np.maximum(self._newest, -self._limit), self._limit)
        self._age = 0.0
        return True

    def torque(self) -> FloatArray:
        """Torque to add to the motor command of this period, (n,) [N m]."""
        self._advance()
        part = min(max(2.0 * (1.0 - self._age / self._timeout), 0.0), 1.0)
        step, bound = self._slew_rate * min(self._pause, self._timeout), part * self._limit
        self._pause = 0.0
        before = self._torque
        slewed = np.minimum(np.maximum(part * self._wanted, before - step), before + step)
        self._torque = np.minimum(np.maximum(slewed, -bound), bound)
        return self._torque.copy()

    def _advance(self) -> None:
        now, before = self._clock(), self._time
        elapsed = 0.0 if before is None else now - before
        elapsed = math.inf if math.isnan(elapsed) else max(elapsed, 0.0)
        self._time, self._age, self._pause = now, self._age + elapsed, self._pause + elapsed
        self._in_order += elapsed
