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

from friction_estimator.estimation.kalman.frame import FrameOutput
from friction_estimator.estimation.kalman.limb_estimates import LimbEstimates
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.types import Flags, MeasuredFriction, Vector

_MAX_FRICTION_RATIO, _GATE_SIGMAS = 1.5, 3.0
"""A friction of the instant above this multiple of the largest friction by the law, and this many of its standard
deviations more, is an error of a foot that slips or tilts: the method assumes that it does not accelerate."""
_REVERSING_SPEED = 0.05
"""Filtered velocity up to which a joint may be reversing [rad/s]."""
_LAG_SHARES = 0.3, 0.1
"""Part of the variance by the uncertain velocity that the slow and the fast low-pass of the momentum observer miss: a
joint may begin to move as fast as the observer follows. With it, sigma is right for 14-bit encoders."""
CORRECTION_THRESHOLD = 0.2
"""Friction whose standard deviation from the velocity is below this is not corrected [N m]: the method is noisier."""


@kernel
def _correct_by_fbse(
    result: FrameOutput,
    joint: int,
    prior_variance: float,
    torque: float,
    variance: float,
    max_friction: float,
    velocity: float,
) -> tuple[float, float]:
    """Friction of a joint and its variance from the velocity, after a measurement by foot-base sensor estimation.

    A slow joint that dry friction holds back may reverse from one reading to the next: an estimate far outside of the
    measurement then has the wrong sign, however sure the filtered velocity is, and the measurement holds.

    Parameters
    ----------
    prior_variance : from the uncertain velocity, before the measurement [(N m)^2]
    torque, variance : measured [N m], [(N m)^2]
    max_friction : torque that may be friction [N m]
    velocity : of the joint by the filter [rad/s]
    """
    friction = result.friction[joint]
    if not abs(torque) < max_friction + _GATE_SIGMAS * math.sqrt(variance):
        return friction, prior_variance
    square, slow = (torque - friction) ** 2, 1.0 / (1.0 + (velocity / _REVERSING_SPEED) ** 4)
    if prior_variance > 0.0 and square > _GATE_SIGMAS**2 * (
        prior_variance + result.variance_without_velocity[joint] + variance
    ):
        prior_variance = max(prior_variance, slow * square)
    gain = prior_variance / (prior_variance + variance)
    return friction + gain * (torque - friction), prior_variance * (1.0 - gain)


@kernel
def _correct_by_momentum(
    result: FrameOutput, joint: int, prior_variance: float, unmodelled_variance: float, max_friction: float
) -> tuple[float, float]:
    """Friction of a joint and its variance from the velocity, after the residual of the momentum observer.

    The residual is the torque that the estimate does not explain. Of its two low-passes that with the smaller variance
    counts: noise of the readings, and lag.
    """
    friction, external = result.friction[joint], result.external
    slow = external.slow_noise[joint] + unmodelled_variance + _LAG_SHARES[0] * prior_variance
    fast = external.fast_noise[joint] + unmodelled_variance + _LAG_SHARES[1] * prior_variance
    variance, unexplained = (fast, external.fast[joint]) if fast < slow else (slow, external.slow[joint])
    unexplained += result.law_error[joint]
    is_friction = abs(friction - unexplained) < max_friction + _GATE_SIGMAS * math.sqrt(variance)
    if not (math.isfinite(variance * unexplained) and is_friction):
        return friction, prior_variance
    gain = prior_variance / (prior_variance + variance)
    return friction - gain * unexplained, prior_variance * (1.0 - gain)


@entry_point
def correct_by_measurements(
    result: FrameOutput,
    estimates: LimbEstimates,
    dry_friction: Vector,
    measured: MeasuredFriction,
    transition: Flags,
    unmodelled_variance: Vector,
    velocity: Vector,
    corrected: Vector,
    sigma: Vector,
) -> None:
    """Weigh the friction of a frame against that of the instant, where its velocity is uncertain.

    Foot-base sensor estimation needs no momentum, and no low-pass; the momentum observer counts elsewhere.

    Parameters
    ----------
    result : of the frame
    dry_friction : (n,) largest friction that may hold the joints [N m]
    measured : by foot-base sensor estimation
    transition : (n,) joints whose foot lands or lifts off
    unmodelled_variance : (n,) of the torque that no term represents [(N m)^2]
    velocity : (n,) of the joints by the filter [rad/s]
    corrected, sigma : (n,) output: friction and its standard deviation [N m]
    """
    for joint in range(velocity.size):
        friction, prior_variance = result.friction[joint], result.correctable_variance[joint]
        posterior_variance = prior_variance
        max_friction = _MAX_FRICTION_RATIO * max(abs(friction), dry_friction[joint])
        if measured.available[joint] and not transition[joint]:
            if math.isfinite(measured.friction[joint] * measured.sigma[joint]):
                errors, constant = estimates.calibration, estimates.constant
                variance = measured.sigma[joint] ** 2 + errors.variance[joint]
                calibration = errors.without_wrenches[joint] - constant.asymmetric_friction[joint]
                torque = measured.friction[joint] - calibration
                friction, posterior_variance = _correct_by_fbse(
                    result, joint, prior_variance, torque, variance, max_friction, velocity[joint]
                )
        elif prior_variance > CORRECTION_THRESHOLD**2:
            friction, posterior_variance = _correct_by_momentum(
                result, joint, prior_variance, unmodelled_variance[joint], max_friction
            )
        by_velocity = posterior_variance if prior_variance > 0.0 else result.law.velocity_variance[joint]
        corrected[joint], sigma[joint] = friction, math.sqrt(result.variance_without_velocity[joint] + by_velocity)
