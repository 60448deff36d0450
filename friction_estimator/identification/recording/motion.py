"""Motion of the joints as identification needs it, with velocities and accelerations without phase."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from friction_estimator.identification.joint_log import Payload
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import FloatArray, IntArray

FRICTION, SIGMA, TEMPERATURE = "friction", "friction_sigma", "temperature"
"""Inputs with a meaning here: measured friction and its standard deviation [N m], temperature [K]."""
_GAP = 1.5
"""Periods between two samples that are not neighbours."""


@dataclass(frozen=True, slots=True)
class Motion:
    """One experiment at a constant rate, edges cut, still with every sample.

    Attributes
    ----------
    name : of the experiment
    joint_names : (n)
    period : between two samples [s]
    time : (N,) [s]
    position, velocity, acceleration : (N, n) band-limited [rad, rad/s, rad/s^2]
    effort : (N, n) motor torque, not filtered [N m]; None when not recorded
    inputs : other columns by kind, (N, n), not filtered (see `identification.joint_log.JointLog`)
    segment : (N,) number of the stretch of time that a sample belongs to: folds of the validation never cut through one
    payload : what the robot carried
    digest : of the file
    choices : how it was filtered and why, in sentences
    parallel_hz : up to where motion and torque are worth comparing, the usual cut-off of the parallel filter [Hz]; NaN
        when nothing is known of it
    """

    name: str
    joint_names: tuple[str, ...]
    period: float
    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    effort: FloatArray | None
    inputs: Mapping[str, FloatArray]
    segment: IntArray
    payload: Payload | None
    digest: str
    choices: tuple[str, ...]
    parallel_hz: float = math.nan

    @property
    def stretches(self) -> tuple[tuple[int, int], ...]:
        """First sample and end of every stretch without a gap."""
        gaps = np.flatnonzero(np.diff(self.time) > _GAP * self.period) + 1
        borders = [0, *gaps.tolist(), self.time.size]
        return tuple(zip(borders[:-1], borders[1:], strict=True))


def at_motors(motion: Motion, motors: Transmission) -> Motion:
    """The same motion, of the motors (Guedelha et al. 2017, eqs. 33-34).

    Parameters
    ----------
    motion : of the joints (n)
    motors : of these joints

    Returns
    -------
    motion : ``T^-1`` of what moves, ``T^T`` of what pulls; a torque is missing where that of one joint of a motor is.
        Standard deviations take the errors of the joints for independent. Temperatures are those of the motors already,
        the column of a joint that of the motor at its place. Other inputs are left out
    """
    if not motors.couples:
        return replace(motion, joint_names=motors.names)
    at_motor = {
        FRICTION: lambda torque: _pulled(torque, motors.matrix),
        SIGMA: lambda sigma: np.sqrt(_pulled(sigma**2, motors.matrix**2)),
        TEMPERATURE: lambda warmth: warmth,
    }
    return replace(
        motion,
        joint_names=motors.names,
        effort=None if motion.effort is None else _pulled(motion.effort, motors.matrix),
        inputs=MappingProxyType(
            {kind: at_motor[kind](values) for kind, values in motion.inputs.items() if kind in at_motor}
        ),
        position=motors.velocity(motion.position),
        velocity=motors.velocity(motion.velocity),
        acceleration=motors.velocity(motion.acceleration),
    )


def _pulled(values: FloatArray, matrix: FloatArray) -> FloatArray:
    """``values @ matrix`` (N, n), NaN only where a value that counts is."""
    missing = np.isnan(values)
    return np.where(missing @ (matrix != 0.0), np.nan, np.nan_to_num(values) @ matrix)
