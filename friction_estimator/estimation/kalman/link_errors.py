"""Torques that errors of links and positions add over a window.

Errors of the links act with the mean acceleration of the window. That of the window's readings alone is in time, and
noisy; that of the filters is smooth, and late. Where the two differ by clearly more than noise explains, the readings
count,

    a = a_filter + k (a_readings - a_filter)        k = max(0, 1 - 4 var(noise) / E (a_readings - a_filter)^2)

and elsewhere not at all: their noise is that of the momentum too, and would pull the calibration after it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.estimation.kalman.local_motion import SIGNIFICANT_RATIO
from friction_estimator.estimation.kalman.windows import Window
from friction_estimator.linear_algebra import LARGEST
from friction_estimator.records import record
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import Block, Dynamics, FloatArray, Matrix, Vector

_POWER_MEMORY = 1.0
"""Time over which the square difference of both accelerations is averaged [s]."""


@record
class LinkColumns(NamedTuple):
    """Torques per error of links and positions, and accelerations, over a window.

    Attributes
    ----------
    torque : (n, n, 4) of each joint by the errors of each link: its mass, relative, and shifts of its centre of mass
    acceleration : (n,) of the joints [rad/s^2]
    position : (n, n) torque of each joint per error of the position of each joint [N m/rad]
    """

    torque: Block
    acceleration: Vector
    position: Matrix


class LinkErrors:
    """Finds the torques that errors of links and positions have added over a window.

    Those of links are the mean of both ends of the window, those of positions are taken at its end.

    Parameters
    ----------
    robot : whose model is used
    """

    def __init__(self, robot: RobotModel) -> None:
        self._robot = robot
        self.reset()

    def reset(self) -> None:
        """Forget the window before, and how far both accelerations differ."""
        self._before: tuple[Dynamics, FloatArray] | None = None
        self._power = np.zeros(3 + len(self._robot.joint_names))

    def of_positions(self, window: Window, dynamics: Dynamics) -> FloatArray:
        """Torque (n, n) of each joint per error of the position of each joint, at the end of a window [N m/rad]."""
        at = window.angular_acceleration, window.acceleration, window.wrenches
        return self._robot.position_error_columns(dynamics, *at)

    def over(self, window: Window, dynamics: Dynamics, position: FloatArray) -> LinkColumns:
        """Mean columns and accelerations of a window, by the dynamics at its end; to be called once for each.

        Parameters
        ----------
        position : of :meth:`of_positions`
        """
        acceleration, before = _acceleration(window), self._before
        self._before = dynamics, acceleration
        if before is None or window.duration <= 0.0:
            return LinkColumns(self._columns(dynamics, acceleration), acceleration[3:], position)
        missing = missing_acceleration(
            window.mean_acceleration,
            window.mean_acceleration_std,
            before[1],
            acceleration,
            self._power,
            min(window.duration / _POWER_MEMORY, 1.0),
        )
        at_start = self._columns(before[0], before[1] + missing)
        columns = 0.5 * (at_start + self._columns(dynamics, acceleration + missing))
        return LinkColumns(columns, 0.5 * (before[1] + acceleration)[3:] + missing[3:], position)

    def _columns(self, dynamics: Dynamics, acceleration: FloatArray) -> FloatArray:
        return self._robot.link_error_columns(dynamics, acceleration[:3], acceleration[3:])


def _acceleration(window: Window) -> FloatArray:
    """Acceleration (3 + n,) of base and joints at the end of a window, by the filters."""
    return np.concatenate((window.angular_acceleration, window.acceleration))


@kernel("V V V V V f8")
def missing_acceleration(
    readings: FloatArray, std: FloatArray, first: FloatArray, last: FloatArray, power: FloatArray, part: float
) -> FloatArray:
    """What the filters' mean acceleration (c,) of both ends lacks; the mean square difference ``power`` in place."""
    more = np.empty(power.size)
    for i in range(power.size):
        difference = readings[i] - 0.5 * (first[i] + last[i])
        power[i] += part * (difference * difference - power[i])
        if not power[i] <= LARGEST:
            power[i] = 0.0
        noise = SIGNIFICANT_RATIO * std[i] ** 2
        more[i] = (1.0 - noise / power[i]) * difference if power[i] > noise else 0.0
    return more
