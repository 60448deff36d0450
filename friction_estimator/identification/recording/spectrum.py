"""Cut-off of the low-pass from the spectrum of the motion, with the reasoning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.errors import InputError
from friction_estimator.identification.recording.joint_spectrum import FLAT, Spectrum, joint_spectrum, welch_density
from friction_estimator.identification.recording.sampling import evenly, longest_stretch, usual_period
from friction_estimator.types import FloatArray

ORDER = 4
_HIGHEST_SHARE = 0.8  # of the Nyquist frequency
SHORTEST = 32
"""Samples that a spectrum can be made of."""


@dataclass(frozen=True, slots=True)
class Cutoff:
    """Low-pass for the motion of one experiment.

    Attributes
    ----------
    cutoff_hz : of position, velocity and acceleration, one for all joints: the highest that one of them needs
    order : of one pass of a Butterworth filter, or of the polynomial of a Savitzky-Golay filter
    parallel_hz : for the parallel filter of motion and torque, not above ``cutoff_hz``: vibrations of the joints are
        real motion, which friction answers to, but no rigid body explains their torque
    per_joint : (n) ``cutoff_hz`` that each joint alone would need [Hz], NaN where it does not move
    reason : in a sentence
    """

    cutoff_hz: float
    order: int
    parallel_hz: float
    per_joint: FloatArray
    reason: str


def choose_cutoff(
    time: FloatArray,
    position: FloatArray,
    velocity: FloatArray | None = None,
    effort: FloatArray | None = None,
    joint_names: Sequence[str] = (),
) -> Cutoff:
    """Cut-off between the motion and what is not motion.

    The acceleration of a motion falls with frequency, that of sensor noise rises with its fourth power in a spectrum,
    and elastic gears vibrate in between: the spectrum of the acceleration has a valley. Motion and torque are compared
    up to there, or up to the third harmonic of a motion that leaves so much between itself and the noise: what is known
    of the acceleration is not all that counts, the step of dry friction must be seen. The motion itself is filtered
    twice as high as that, or as 95 % of the velocity where that is higher: the torque does not go through this filter,
    which must therefore be flat where both are compared. The largest cut-off over the joints is taken for all of them:
    coupled torques then keep their phases, and no joint loses its motion.

    Parameters
    ----------
    time : (N,) strictly increasing [s]
    position : (N,) or (N, n) [rad or m]
    velocity : (N,) or (N, n) measured, when it is to be used instead of the derivative of the position
    effort : (N,) or (N, n); says in ``reason`` how much of the torque lies below the cut-off, and does not choose
    joint_names : (n) for ``reason``

    Raises
    ------
    InputError
        When the samples are too few for a spectrum, or no joint moves.
    """
    signal = position if velocity is None else velocity
    period, even = _longest(time, signal.reshape(time.size, -1), True)
    highest_hz = _HIGHEST_SHARE * 0.5 / period
    spectra = [joint_spectrum(column, period, 0 if velocity is None else 1) for column in even.T]
    per_joint = np.array([min(spectrum.cutoff_hz, highest_hz) for spectrum in spectra])
    if np.isnan(per_joint).all():
        raise InputError("no joint moves by more than its noise, so that there is no motion to filter")
    leading = int(np.nanargmax(per_joint))
    cutoff = float(per_joint[leading])
    parallel = min(float(np.nanmax([spectrum.compare_hz for spectrum in spectra])), cutoff)
    name = joint_names[leading] if joint_names else f"joint {leading + 1}"
    name = f"{'position' if velocity is None else 'measured velocity'} of {name}"
    reason = f"cut-off {cutoff:.3g} Hz, from the {name}: "
    reason += _reason(spectra[leading], cutoff, 0.5 / period) + f"; torques are compared up to {parallel:.3g} Hz"
    if effort is not None:
        reason += _torque_share(time, effort.reshape(time.size, -1), parallel)
    return Cutoff(cutoff, ORDER, parallel, per_joint, reason)


def _longest(time: FloatArray, signals: FloatArray, smooth: bool) -> tuple[float, FloatArray]:
    """Period [s] and even samples (K, n) of the longest stretch without a gap."""
    period = usual_period(time)
    stretch = longest_stretch(time, period)
    if stretch.stop - stretch.start < SHORTEST:
        raise InputError(
            f"the longest stretch without a gap has {stretch.stop - stretch.start} samples, a spectrum needs {SHORTEST}"
        )
    return period, evenly(signals, time, stretch, period, smooth)


def _torque_share(time: FloatArray, effort: FloatArray, cutoff: float) -> str:
    known = effort[:, np.isfinite(effort).all(axis=0)]
    if not known.shape[1]:
        return ""
    period, even = _longest(time, known, False)
    shares = []
    for column in even.T:
        frequency, density = welch_density(column - column.mean(), period)
        shares.append(density[frequency <= cutoff].sum() / total if (total := density.sum()) > 0.0 else 1.0)
    return f"; {100.0 * min(shares):.3g} % or more of the variance of every torque lie below that"


def _reason(spectrum: Spectrum, cutoff: float, nyquist: float) -> str:
    told = (
        f"its acceleration is weakest at {spectrum.valley_hz:.3g} Hz, 95 % of the variance of its velocity lie below "
    )
    told += f"{spectrum.motion_hz:.3g} Hz"
    if spectrum.sunk_hz < _HIGHEST_SHARE * nyquist:
        told += f", it sinks into its noise floor at {spectrum.sunk_hz:.3g} Hz"
    else:
        told += f", no noise floor shows below {nyquist:.4g} Hz"
    if cutoff < spectrum.cutoff_hz:
        return told + "; as high as the sampling rate allows"
    if spectrum.motion_hz >= spectrum.compare_hz:
        return told + f"; {FLAT:g} times the second of these"
    if spectrum.compare_hz > spectrum.valley_hz:
        return told + f"; {FLAT:g} times {spectrum.compare_hz:.3g} Hz, for the harmonics of friction's steps"
    return told + f"; {FLAT:g} times the first of these"
