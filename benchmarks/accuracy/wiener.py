"""The Wiener bound: smallest error of a linear filter of the momentum residual without a friction law.

The unfiltered momentum residual is ``y = f + n``: the true friction and what the sensors' noise makes of it. With the
spectra S_f and S_n, independent, the best linear filter that may also look ahead has the gain W and the error e

    W = S_f / (S_f + S_n),        E[e^2] = integral of S_f S_n / (S_f + S_n)

(N. Wiener 1949). The friction of a walk is not stationary, so stance and swing have spectra of their own, from Hann
windows centred there. The causal filter solves the Wiener-Hopf equations of the same spectra for present and past
samples alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_toeplitz
from scipy.signal import fftconvolve

from benchmarks.accuracy.results import Score, numbers
from benchmarks.shared.estimates import SETTLED, JointGroups, late_phases
from benchmarks.shared.walks import PERIOD, SimulatedRun, bare_inputs
from friction_estimator.estimation.observers.momentum import MomentumObserver
from friction_estimator.io.robot import load_robot
from friction_estimator.metrics import root_mean_square
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import BoolArray, FloatArray

WINDOW = 1024
"""Length of a Hann window and reach of the filters [samples]."""
_STEP = 32  # between windows: they overlap, so that a short swing holds many
_RIDGE = 1e-12  # of the spectra's mean: keeps exact signals solvable


@dataclass(frozen=True, slots=True)
class WienerErrors:
    """Root mean square errors of one signal [N m].

    Attributes
    ----------
    bound : by the integral above
    applied, causal : of the filter that may look ahead, and of the causal one, each designed on every other block of
        time and applied to the blocks between
    """

    bound: float
    applied: float
    causal: float


def power_spectrum(signals: FloatArray, where: BoolArray, window: int = WINDOW) -> FloatArray:
    """Two-sided power spectrum over the non-negative half of ``2 * window`` frequencies, (window + 1,).

    Scaled so that its mean over all frequencies is the mean square. Nothing is subtracted: a constant counts.

    Parameters
    ----------
    signals : (m, s) several signals of the same kind
    where : (m, s) the windows centred on these samples count; NaN when there are none
    """
    taper = np.hanning(window + 1)[:-1]
    total, count = np.zeros(window + 1), 0
    for signal, mask in zip(signals.T, where.T, strict=True):
        starts = np.arange(0, signal.size - window + 1, _STEP)
        starts = starts[mask[starts + window // 2]]
        pieces = signal[starts[:, None] + np.arange(window)] * taper
        total += (np.abs(np.fft.rfft(pieces, 2 * window, axis=1)) ** 2).sum(axis=0)
        count += starts.size
    return total / (count * (taper**2).sum()) if count else np.full(window + 1, np.nan)


def bound(friction_spectrum: FloatArray, noise_spectrum: FloatArray) -> float:
    """Root mean square error of the best linear filter that may look ahead."""
    both = friction_spectrum + noise_spectrum
    error = np.divide(friction_spectrum * noise_spectrum, both, out=np.zeros_like(both), where=both > 0.0)
    return float(np.sqrt(np.fft.irfft(error)[0]))


def look_ahead_taps(friction_spectrum: FloatArray, noise_spectrum: FloatArray) -> FloatArray:
    """Impulse response of W, (2 * window,), its middle at index ``window``."""
    both = friction_spectrum + noise_spectrum
    gain = np.divide(friction_spectrum, both, out=np.ones_like(both), where=both > 0.0)
    return np.roll(np.fft.irfft(gain), gain.size - 1)


def causal_taps(friction_spectrum: FloatArray, noise_spectrum: FloatArray) -> FloatArray:
    """Weights of the present sample and those before, (window,): the Wiener-Hopf equations."""
    window = friction_spectrum.size - 1
    friction, noise = (np.fft.irfft(s)[:window] for s in (friction_spectrum, noise_spectrum))
    both = friction + noise
    both[0] += _RIDGE * both[0] + np.finfo(float).tiny
    return np.asarray(solve_toeplitz(both, friction))


def wiener_errors(friction: FloatArray, noise: FloatArray, where: BoolArray) -> WienerErrors:
    """Errors of the best filters at the given samples.

    Parameters
    ----------
    friction, noise : (m, s) true friction, and the error of the unfiltered residual [N m]; s joints of the same kind
    where : (m, s) samples that count: stance, say

    Returns
    -------
    WienerErrors
        NaN where the signals are too short.
    """
    whole = [power_spectrum(signal, where) for signal in (friction, noise)]
    if np.isnan(whole).any():
        return WienerErrors(np.nan, np.nan, np.nan)
    odd = (np.arange(len(friction)) // _block(len(friction)) % 2).astype(bool)[:, None]
    squares = {look_ahead_taps: 0.0, causal_taps: 0.0}
    for design_block in (odd, ~odd):
        spectra = [power_spectrum(signal, where & design_block) for signal in (friction, noise)]
        if np.isnan(spectra).any():
            return WienerErrors(bound(*whole), np.nan, np.nan)
        for make_taps in squares:
            taps = make_taps(*spectra)
            ahead = WINDOW if make_taps is look_ahead_taps else 0
            error = _filtered(friction + noise, taps, ahead) - friction
            squares[make_taps] += float((error[where & ~design_block] ** 2).sum())
    applied, causal = (float(np.sqrt(total / where.sum())) for total in squares.values())
    return WienerErrors(bound(*whole), applied, causal)


def _block(samples: int) -> int:
    """Length of the blocks of time: four windows, shorter in short recordings."""
    return max(WINDOW, min(4 * WINDOW, samples // 4))


def _filtered(signals: FloatArray, taps: FloatArray, ahead: int) -> FloatArray:
    """Convolution along time (m, s); ``ahead`` of the taps look into the future."""
    full = fftconvolve(signals, taps[:, None], axes=0)
    return np.asarray(full[ahead : ahead + len(signals)])


METHODS = {"bound": "Wiener bound", "applied": "Wiener filter", "causal": "causal Wiener filter"}
"""Fields of ``WienerErrors`` and the names of the methods in the tables."""


def wiener_scores(
    robot_name: str,
    case: str,
    clean: SimulatedRun,
    noisy: Mapping[str, SimulatedRun],
    model: RobotModel,
    groups: JointGroups,
) -> list[Score]:
    """Bound and filters for each noise level, from runs of the same motion with exact and with noisy sensors."""
    exact = momentum_residual(robot_name, clean, model)
    scores: list[Score] = []
    for level, run in noisy.items():
        noise = momentum_residual(robot_name, run, model) - exact
        # A constant is a calibration error, not noise: an estimator that calibrates is not charged for it either.
        scores += _level_scores(case, level, clean, noise - noise.mean(axis=0), groups)
    return scores


def _level_scores(case: str, level: str, run: SimulatedRun, noise: FloatArray, groups: JointGroups) -> list[Score]:
    late = slice(round(SETTLED / PERIOD), None)
    scores: list[Score] = []
    for phase, where in late_phases(run).items():
        columns = [
            wiener_errors(run.friction[late, members], noise[late, members], where[late, members])
            for members in groups.members
        ]
        rms = numbers(root_mean_square(groups.fold(np.where(where, run.friction, np.nan))))
        for attribute, method in METHODS.items():
            rmse = numbers(np.array([getattr(column, attribute) for column in columns]))
            scores.append(Score(case, level, 0, method, phase, rmse, rms))
    return scores


_UNFILTERED = {"observer": "momentum", "momentum.gain": 1e4}  # rad/s: exp(-gain * 1 ms) = 5e-5 remains of a sample


def momentum_residual(robot_name: str, run: SimulatedRun, model: RobotModel) -> FloatArray:
    """Momentum residual without a low-pass, (m, n) [N m]; zero at the first sample."""
    observer = MomentumObserver(load_robot(robot_name, _UNFILTERED).config, model)
    frictions = [observer.step(*inputs).friction for inputs in bare_inputs(run, model)]
    return np.nan_to_num(np.array(frictions))
