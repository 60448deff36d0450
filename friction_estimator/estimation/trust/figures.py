"""The figures on which a verdict rests."""

from __future__ import annotations

from dataclasses import dataclass

from friction_estimator.types import BoolArray, FloatArray


@dataclass(frozen=True, slots=True)
class TrustFigures:
    """What the newest estimates say about themselves; NaN where too few samples tell.

    Attributes
    ----------
    moving_time : (n,) how long each joint has moved since the start [s]
    known_at_start : (n,) True where the law came from an earlier run
    unlearned : (n,) smallest standard deviation of a parameter over that before any data; one: nothing is learned
    driving : (n,) share of the moving time in which the friction drives its joint beyond its noise; passive means 0
    friction, calibration : (n,) RMS of the friction while the joint moves, and of the torque that errors of model and
        sensors explain [N m]
    disturbed : (n,) share of the time in which a push kept the joint from learning
    consistency : (n,) mean normalised innovation squared, one for a right model
    consistency_limit : (n,) what that mean may reach by chance
    drift : (n,) RMS change of the law's torque since the start, at the velocities that occur [N m]
    drift_sigma : (n,) standard deviation of the law's torque, likewise [N m]
    law : (n,) RMS of the law's torque, likewise [N m]
    """

    moving_time: FloatArray
    known_at_start: BoolArray
    unlearned: FloatArray
    driving: FloatArray
    friction: FloatArray
    calibration: FloatArray
    disturbed: FloatArray
    consistency: FloatArray
    consistency_limit: FloatArray
    drift: FloatArray
    drift_sigma: FloatArray
    law: FloatArray
