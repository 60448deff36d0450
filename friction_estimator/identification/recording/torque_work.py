"""Does a motor give energy or take it? Over a motion to and fro, friction only takes, so that a motor must give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.identification.recording.motion import Motion
from friction_estimator.types import FloatArray

_PARTS = 8
_MOST = 0.75
"""Of the parts of the recording must agree: lowering an arm once is not all of it."""
_SWING, _SHARE = 0.9, 0.5
"""What is lent and returned may hide a tenth of the work, and half of the power."""
_TURNS = 4
"""Fewer are a weight that somebody lifts or lowers."""
_LASTING = 0.5
"""A swing that slows down by more gives back its own energy."""
_STANDING = 0.1
"""Of the RMS velocity: slower, a joint has no direction."""


@dataclass(frozen=True, slots=True)
class NetWork:
    """Work of the torque of one joint along its own motion.

    Attributes
    ----------
    joint : its name
    work : over the recording [J]
    of_swing : work over the largest change of the work between any two instants, -1 to 1: near zero when energy goes
        to and fro, one when it only ever flows from the motor
    of_power : work over the integral of the absolute power, -1 to 1
    taking : share of eight parts of the recording in which the torque takes energy
    turns : how often the joint turns round
    lasting : RMS velocity of the second half over that of the first: a swing that a motor brakes gives back what it had
    """

    joint: str
    work: float
    of_swing: float
    of_power: float
    taking: float
    turns: int
    lasting: float

    @property
    def reversed(self) -> bool:
        """Whether the torque takes energy all along, from a joint that moves to and fro."""
        drains = self.of_swing < -_SWING and self.of_power < -_SHARE
        return drains and self.taking >= _MOST and self.turns >= _TURNS and self.lasting > _LASTING


def net_works(motion: Motion) -> tuple[NetWork, ...]:
    """Work of every joint whose torque was measured throughout, and that moves.

    Kinetic and potential energy are lent, whatever the robot is: their work returns, or another joint pays for it. What
    does not return is what friction took, so that over many movements the work of a motor is positive, unless something
    else moves the joint: a hand, the ground, a slope.
    """
    if motion.effort is None:
        return ()
    known = np.isfinite(motion.effort).all(axis=0) & (np.abs(motion.effort * motion.velocity).sum(axis=0) > 0.0)
    return tuple(
        _net_work(name, motion.effort[:, joint] * motion.period, motion.velocity[:, joint])
        for joint, name in enumerate(motion.joint_names)
        if known[joint]
    )


def _net_work(name: str, impulse: FloatArray, speed: FloatArray) -> NetWork:
    """From torque times period (N,) [N m s] and velocity (N,) [rad/s]."""
    power = impulse * speed
    work = np.concatenate(([0.0], np.cumsum(power)))
    direction = np.sign(speed[np.abs(speed) > _STANDING * np.sqrt(np.mean(speed**2))])
    parts = np.array([part.sum() for part in np.array_split(power, _PARTS)])
    first, second = (float(np.mean(half**2)) for half in np.array_split(speed, 2))
    return NetWork(
        joint=name,
        work=float(work[-1]),
        of_swing=float(work[-1] / np.ptp(work)),
        of_power=float(work[-1] / np.abs(power).sum()),
        taking=float(np.mean(parts < 0.0)),
        turns=int(np.count_nonzero(np.diff(direction))),
        lasting=float(np.sqrt(second / first)) if first > 0.0 else float("inf"),
    )
