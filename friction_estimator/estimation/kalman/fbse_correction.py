"""The friction of the instant corrects an estimate whose error comes from an uncertain velocity.

A joint that crosses zero, or sticks and chatters, turns its friction around within milliseconds. No filter follows, and
the law follows only as well as the velocity is known. But while its foot stands firmly, foot-base sensor estimation
(Hashlamon & Erbatur 2014, section 5) measures the friction of the instant: noisy, and far better than an unknown sign.
Both are weighed by their variances. A foot that lands or lifts off is no firm ground to the method: it moves,
and errors are newton metres. Legs in the air and arms have no such ground: the momentum observer of the external torque
corrects them, later and by less.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.records import record
from friction_estimator.types import BoolArray, FloatArray, MeasuredFriction, Vector

_MAX_OVER_LAW, _MAX_SIGMAS = 1.5, 3.0
"""A friction of the instant above this multiple of the largest friction by the law, and this many of its standard
deviations more, is an error of a foot that slips or tilts: the method assumes that it does not accelerate."""
_REVERSING_SPEED = 0.05
"""Filtered velocity up to which a joint may be reversing [rad/s]."""
_LAG_PARTS = 0.3, 0.1
"""Part of the variance by the uncertain velocity that the slow and the fast low-pass of the momentum observer miss: a
joint may begin to move as fast as the observer follows. With it, sigma is right for 14-bit encoders."""
CORRECTION_THRESHOLD = 0.2
"""Friction whose standard deviation from the velocity is below this is not corrected [N m]: the method is noisier."""


@record
class Correctable(NamedTuple):
    """An estimate that the friction of the instant may correct; every field (n,).

    Attributes
    ----------
    friction : the estimate, corrected in place [N m]
    velocity_variance : part of its variance from the uncertain velocity, in place; zero: nothing shall be corrected
    other_variance : the other part [(N m)^2]
    calibration_torque, calibration_variance : torque that the other errors of model and sensors make [N m], [(N m)^2]
    dry_friction : largest friction that may hold the joint [N m]
    """

    friction: Vector
    velocity_variance: Vector
    other_variance: Vector
    calibration_torque: Vector
    calibration_variance: Vector
    dry_friction: Vector


@kernel("(Correctable) V V B V")
def weigh_measurement(
    estimate: Correctable, measured: FloatArray, sigma: FloatArray, known: BoolArray, velocity: FloatArray
) -> None:
    """Weigh the estimate against the friction of the instant where that is known and can be friction, in place.

    A slow joint that dry friction holds back may reverse from one reading to the next: an estimate far outside of the
    measurement then has the wrong sign, however sure the filtered velocity is, and the measurement holds.

    Parameters
    ----------
    measured, sigma, known : of :class:`~friction_estimator.types.MeasuredFriction`
    velocity : (n,) of the joints by the filter [rad/s]
    """
    friction, velocity_variance = estimate.friction, estimate.velocity_variance
    for joint in range(friction.size):
        if known[joint] and math.isfinite(measured[joint] * sigma[joint]):
            variance = sigma[joint] ** 2 + estimate.calibration_variance[joint]
            torque = measured[joint] - estimate.calibration_torque[joint]
            largest = _MAX_OVER_LAW * max(abs(friction[joint]), estimate.dry_friction[joint])
            if abs(torque) < largest + _MAX_SIGMAS * math.sqrt(variance):
                square, slow = (torque - friction[joint]) ** 2, 1.0 / (1.0 + (velocity[joint] / _REVERSING_SPEED) ** 4)
                total = velocity_variance[joint] + estimate.other_variance[joint] + variance
                if velocity_variance[joint] > 0.0 and square > _MAX_SIGMAS**2 * total:
                    velocity_variance[joint] = max(velocity_variance[joint], slow * square)
                gain = velocity_variance[joint] / (velocity_variance[joint] + variance)
                friction[joint] += gain * (torque - friction[joint])
                velocity_variance[joint] *= 1.0 - gain


@kernel("(Correctable) B M M")
def weigh_residual(estimate: Correctable, measured: BoolArray, external: FloatArray, noise: FloatArray) -> None:
    """Weigh the estimate against the torque that a momentum observer does not explain with it, in place.

    Parameters
    ----------
    measured : (n,) joints that foot-base sensor estimation has measured: it needs no momentum, and no low-pass
    external, noise : (2, n) torque that the estimate leaves to be explained, behind the slow and the fast low-pass of
        the observer [N m], and the variance that the readings make in it; NaN: unknown. The better one counts
    """
    friction, velocity_variance = estimate.friction, estimate.velocity_variance
    for joint in range(friction.size):
        unsure = velocity_variance[joint]
        slow, fast = noise[0, joint] + _LAG_PARTS[0] * unsure, noise[1, joint] + _LAG_PARTS[1] * unsure
        variance, unexplained = (fast, external[1, joint]) if fast < slow else (slow, external[0, joint])
        if unsure > CORRECTION_THRESHOLD**2 and not measured[joint] and math.isfinite(variance * unexplained):
            largest = _MAX_OVER_LAW * max(abs(friction[joint]), estimate.dry_friction[joint])
            if abs(friction[joint] - unexplained) < largest + _MAX_SIGMAS * math.sqrt(variance):
                gain = unsure / (unsure + variance)
                friction[joint] -= gain * unexplained
                velocity_variance[joint] *= 1.0 - gain


def correct_by_measurements(
    estimate: Correctable,
    measured: MeasuredFriction | None,
    transition: BoolArray,
    residual: tuple[FloatArray, FloatArray],
    velocity: FloatArray,
) -> None:
    """Weigh an estimate against the friction of the instant, in place.

    Parameters
    ----------
    measured : by foot-base sensor estimation; None for a robot without feet, or with a fixed base
    transition : (n,) joints whose foot lands or lifts off
    residual : external torque and noise, see :func:`weigh_residual`
    velocity : (n,) of the joints by the filter [rad/s]
    """
    standing = np.zeros(transition.size, dtype=bool)
    if measured is not None:
        standing = measured.available & ~transition
        weigh_measurement(*estimate, measured.friction, measured.sigma, standing, velocity)
    weigh_residual(*estimate, standing, *residual)
