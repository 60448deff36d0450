"""Measured velocity or derivative of the position: whichever has the smaller error."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from friction_estimator.errors import InputError, choices
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.identification.recording import filters
from friction_estimator.identification.recording.joint_spectrum import joint_spectrum
from friction_estimator.identification.recording.sampling import evenly, longest_stretch
from friction_estimator.types import FloatArray

SOURCES = ("auto", "measured", "position")
_ORDER = 4
_WORST = 5.0  # how many times worse one joint may become so that the others become better
_WORDS = {True: "measured", False: "from the position"}


@dataclass(frozen=True, slots=True)
class VelocitySource:
    """Where velocity and acceleration come from.

    Attributes
    ----------
    measured : True for the measured velocity, False for the derivative of the position
    reason : in a sentence
    """

    measured: bool
    reason: str


@dataclass(frozen=True, slots=True)
class VelocityComparison:
    """Measured velocity of one joint against the derivative of its position, both band-limited alike.

    Attributes
    ----------
    gain : slope of the measured velocity over the derivative, 1 when both agree
    lag : how much later the measured velocity is [s]
    measured_error : RMS error of the measured velocity: noise, lag, gain; from its distance to the derivative [rad/s]
    derived_error : RMS error of the derivative from noise and rounding of the position [rad/s]
    """

    gain: float
    lag: float
    measured_error: float
    derived_error: float


def choose_velocity_source(log: JointLog, period: float, wanted: str = "auto") -> VelocitySource:
    """Decide for all joints of a log at once.

    Parameters
    ----------
    log : without bad samples
    period : between two samples [s]
    wanted : one of ``SOURCES``; ``auto`` takes the source with the smaller error, in the geometric mean over the
        joints that move, unless one of them suffers

    Raises
    ------
    InputError
        When the measured velocity is wanted and was not recorded.
    """
    if wanted not in SOURCES:
        raise InputError(f"unknown velocity source {wanted!r}; the choices are {choices(SOURCES)}")
    if log.velocity is None or not np.isfinite(log.velocity).all():
        if wanted == "measured":
            raise InputError(f"{log.name}: the velocity was not recorded for every joint")
        return VelocitySource(False, "velocity from the position: it was not recorded")
    if wanted != "auto":
        return VelocitySource(wanted == "measured", f"velocity {_WORDS[wanted == 'measured']}, as asked")
    found = compare_velocities(log, period)
    if not found:
        return VelocitySource(False, "velocity from the position: no joint moves enough to compare")
    ratios = [joint.measured_error / joint.derived_error for joint in found]
    ratio = math.exp(np.mean(np.log(ratios)))
    measured = ratio < 1.0 and max(ratios) < _WORST
    lag, gain = (float(np.median([getattr(joint, name) for joint in found])) for name in ("lag", "gain"))
    told = f"lag {1e3 * lag:.2g} ms, gain {gain:.3g}, error {ratio:.2g} times that of the differentiated position"
    if len(ratios) > 1:
        told += f", of the worst joint {max(ratios):.2g} times"
    return VelocitySource(measured, f"velocity {_WORDS[measured]}: the measured one has {told}")


def compare_velocities(log: JointLog, period: float) -> list[VelocityComparison]:
    """Compare both sources of every joint that moves, on the longest stretch."""
    if log.velocity is None:
        return []
    stretch = longest_stretch(log.time, period)
    position = evenly(log.position, log.time, stretch, period, True)
    velocity = evenly(log.velocity, log.time, stretch, period, True)
    pairs = (_compare(q, v, period) for q, v in zip(position.T, velocity.T, strict=True))
    return [pair for pair in pairs if pair is not None]


def _compare(position: FloatArray, velocity: FloatArray, period: float) -> VelocityComparison | None:
    spectrum = joint_spectrum(position, period, 0)
    if math.isnan(spectrum.cutoff_hz):
        return None
    band = min(spectrum.cutoff_hz, 0.2 / period)
    edge = filters.low_pass_edge(period, band, _ORDER) + 2 * filters.HALF_STENCIL
    if position.size < 4 * edge:
        return None
    derived = filters.central_difference(filters.low_pass(position, period, band, _ORDER), period)
    acceleration = filters.central_difference(derived, period)[edge:-edge]
    measured, derived = filters.low_pass(velocity, period, band, _ORDER)[edge:-edge], derived[edge:-edge]
    (gain, slope), *_ = np.linalg.lstsq(np.column_stack([derived, -acceleration]), measured, rcond=None)
    lag = slope / gain if gain else 0.0
    noise = spectrum.floor * (2.0 * math.pi) ** 2 * band**3 / 3.0 + np.finfo(float).tiny
    rest = float(np.mean((measured - derived) ** 2)) - noise  # their errors are independent
    return VelocityComparison(float(gain), float(lag), math.sqrt(max(rest, 0.01 * noise)), math.sqrt(noise))
