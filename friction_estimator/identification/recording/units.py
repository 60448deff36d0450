"""Are the angles in degrees? Joint limits, gravity, and speeds that no joint has."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from friction_estimator.errors import InputError
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.identification.recording import filters
from friction_estimator.identification.recording.joint_spectrum import joint_spectrum
from friction_estimator.identification.recording.sampling import evenly, longest_stretch
from friction_estimator.identification.recording.spectrum import SHORTEST
from friction_estimator.types import FloatArray

_OVER = 1.05  # of a limit, for what a controller overshoots
_FAST = 30.0  # rad/s: five turns a second, behind the gear
_WIDE = 2.0 * math.pi
_BETTER = 0.5  # residual variance of the torque, degrees over radians


def degree_suspicions(log: JointLog, period: float, position_limits: FloatArray | None = None) -> Iterator[str]:
    """Say which positions look like degrees, or are outside of their limits otherwise.

    Parameters
    ----------
    log : repaired
    period : between two samples [s]
    position_limits : (n, 2) [rad or m], NaN or infinite where there is none
    """
    n = len(log.joint_names)
    limits = np.full((n, 2), np.nan) if position_limits is None else np.asarray(position_limits, dtype=float)
    if limits.shape != (n, 2):
        raise InputError(f"{log.name}: limits of the positions have the shape {limits.shape}, expected {(n, 2)}")
    fast = []
    for joint, name in enumerate(log.joint_names):
        outside = _outside(log.position[:, joint], limits[joint])
        if outside:
            yield f"position/{name} {outside}"
            continue
        speed, better = _evidence(log, joint, period)
        if better < _BETTER:
            yield (
                f"position/{name} spans {np.ptp(log.position[:, joint]):.4g}, and as an angle in degrees it explains "
                f"the torque better than in radians ({100.0 * better:.0f} % of the residual): is it in degrees?"
            )
        elif np.ptp(log.position[:, joint]) > _WIDE and speed > _FAST:
            fast.append(f"position/{name} {speed:.3g} rad/s")
    if fast:
        yield f"joints turn faster than joints usually do ({', '.join(fast)}): are the positions in degrees?"


def _outside(position: FloatArray, limits: FloatArray) -> str:
    lower, upper = (
        limit if math.isfinite(limit) else math.copysign(math.inf, sign)
        for limit, sign in zip(limits, (-1.0, 1.0), strict=True)
    )
    slack = (_OVER - 1.0) * max(abs(bound) for bound in (lower, upper, 0.0) if math.isfinite(bound))
    low, high = float(position.min()), float(position.max())
    if low >= lower - slack and high <= upper + slack:
        return ""
    told = f"runs from {low:.4g} to {high:.4g}, its limits are {lower:.4g} and {upper:.4g}"
    fits = math.radians(low) >= lower - slack and math.radians(high) <= upper + slack
    if fits and max(-low, high) > 2.0 * math.pi:
        return f"{told}: is it in degrees?"
    return f"{told}: is it another joint's, or counted from another zero?"


def _evidence(log: JointLog, joint: int, period: float) -> tuple[float, float]:
    """Speed that is exceeded in 1 % of the time, and how much better degrees explain the torque (1: no better)."""
    stretch = longest_stretch(log.time, period)
    position = evenly(log.position[:, joint], log.time, stretch, period, False)
    band = joint_spectrum(position, period, 0).cutoff_hz if position.size > SHORTEST else math.nan
    if math.isnan(band):
        return 0.0, 1.0
    smooth = filters.low_pass(position, period, min(band, 0.2 / period), 4)
    velocity = filters.central_difference(smooth, period)
    speed = float(np.percentile(np.abs(velocity), 99.0))
    if log.effort is None or np.ptp(position) < _WIDE or not np.isfinite(log.effort[:, joint]).all():
        return speed, 1.0
    effort = evenly(log.effort[:, joint], log.time, stretch, period, False)
    effort = filters.low_pass(effort, period, min(band, 0.2 / period), 4)
    motion = np.column_stack(
        [filters.central_difference(velocity, period), velocity, np.sign(velocity), np.ones_like(speed * velocity)]
    )
    radians, degrees = (_residual(motion, angle, effort) for angle in (smooth, np.radians(smooth)))
    return speed, degrees / radians if radians > 0.0 else 1.0


def _residual(motion: FloatArray, angle: FloatArray, effort: FloatArray) -> float:
    W = np.column_stack([motion, np.sin(angle), np.cos(angle)])
    return float(np.sum((effort - W @ np.linalg.lstsq(W, effort, rcond=None)[0]) ** 2))
