"""Up to which frequency both sides of the equation are compared: cut-off of the parallel filter."""

from __future__ import annotations

import numpy as np

from friction_estimator.identification.recording.motion import Motion
from friction_estimator.identification.recording.parallel import FULL_BAND

_MOTION_SHARE = 0.999
_BANDS = 10.0
"""Cut-off in bandwidths of the motion: the first harmonics of friction's steps come through."""


def parallel_cutoff(motion: Motion) -> tuple[float, str]:
    """Cut-off of the parallel filter [Hz] and why: ten bandwidths of the motion, or what its spectrum allows."""
    wanted = _BANDS * max(motion_bandwidth(motion), 1.0 / (motion.period * len(motion.position)))
    highest = FULL_BAND * 0.5 / motion.period
    allowed = highest if np.isnan(motion.parallel_hz) else min(motion.parallel_hz, highest)
    if wanted <= allowed:
        return float(wanted), "ten times the band that holds 99.9 % of the motion"
    return float(allowed), "beyond it the spectrum shows noise and vibrations, not the motion"


def motion_bandwidth(motion: Motion) -> float:
    """Frequency below which the positions of all joints have 99.9 % of their variance [Hz].

    Noise hardly shows in a position, but may hold most of the variance of a velocity.
    """
    window = np.hanning(len(motion.position))[:, None]
    spectrum = np.abs(np.fft.rfft((motion.position - motion.position.mean(axis=0)) * window, axis=0)) ** 2
    share = np.cumsum(spectrum, axis=0) / np.maximum(spectrum.sum(axis=0), np.finfo(float).tiny)
    return float((share < _MOTION_SHARE).sum(axis=0).max() / (motion.period * len(motion.position)))
