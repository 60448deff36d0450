"""Torque that errors of the links have added over a window.

It holds the mean acceleration of the window. That of the window's readings alone is in time, and noisy; that of the
filters is smooth, and late. Where the two differ by clearly more than noise explains, the readings count,

    a = a_filter + k (a_readings - a_filter)        k = max(0, 1 - 4 var(noise) / E (a_readings - a_filter)^2)

and elsewhere not at all: their noise is that of the momentum too, and would pull the calibration after it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.core.kalman.local_motion import CLEARLY
from friction_estimator.core.kalman.windows import Window
from friction_estimator.core.robot_model import RobotModel
from friction_estimator.core.types import Dynamics, FloatArray

_MEMORY = 1.0
"""Of the mean square difference of both accelerations [s]."""


@dataclass(frozen=True, slots=True)
class _End:
    """Base and joints at the end of a window, accelerations (3 + n,) by the filters, and the columns with these."""

    position: FloatArray
    dynamics: Dynamics
    acceleration: FloatArray
    columns: FloatArray


class LinkColumns:
    """Evaluates the columns at both ends of a window.

    Parameters
    ----------
    robot : whose model is used
    """

    def __init__(self, robot: RobotModel) -> None:
        self._robot = robot
        self.reset()

    def reset(self) -> None:
        """Forget the window before."""
        self._before: _End | None = None
        self._power: FloatArray = np.zeros(3 + len(self._robot.joint_names))

    def over(self, window: Window, dynamics: Dynamics) -> FloatArray:
        """Mean columns (n, n, 4) of a window; must follow the update with its end, which gave ``dynamics``."""
        before, position = self._before, window.end.position
        acceleration = np.concatenate((window.angular_acceleration, window.acceleration))
        now = _End(position, dynamics, acceleration, self._columns(position, dynamics, acceleration))
        self._before = now
        if before is None or window.duration <= 0.0:
            return now.columns
        more = self._missing(window, 0.5 * (before.acceleration + now.acceleration))
        if not more.any():
            return 0.5 * (before.columns + now.columns)
        first, last = (self._columns(end.position, end.dynamics, end.acceleration + more) for end in (before, now))
        return 0.5 * (first + last)

    def _missing(self, window: Window, filtered: FloatArray) -> FloatArray:
        """What the filters' mean acceleration (3 + n,) lacks."""
        difference = window.mean_acceleration - filtered
        self._power = self._power + min(window.duration / _MEMORY, 1.0) * (difference**2 - self._power)
        noise = CLEARLY * window.mean_acceleration_std**2
        explained = np.divide(noise, self._power, out=np.ones_like(noise), where=self._power > noise)
        return (1.0 - explained) * difference

    def _columns(self, position: FloatArray, dynamics: Dynamics, acceleration: FloatArray) -> FloatArray:
        return self._robot.link_error_columns(position, dynamics, acceleration[:3], acceleration[3:])
