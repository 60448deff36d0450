"""From motions with a friction column to the friction curve of every joint, the lateness of the observer taken out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from friction_estimator.errors import InputError, choices
from friction_estimator.identification.friction_curve.problem import CurveSamples
from friction_estimator.identification.recording.motion import FRICTION, SIGMA, Motion
from friction_estimator.types import FloatArray, IntArray

_LATEST, _STEPS = 0.3, 60
"""Observers are searched for lateness up to this [s], at so many places."""
_BINS, _COMPARED = 40, 20_000
"""Bins of equal velocity, and samples that lateness is judged by."""
_CLEARLY = 0.8
"""Lateness counts when it leaves less than this part of the spread about a function of velocity."""


def curve_samples(motions: Sequence[Motion], joint: int, delay: float, max_sigma: float = np.inf) -> CurveSamples:
    """Measured friction of one joint over the velocity and effort that it belongs to.

    Parameters
    ----------
    motions : with ``inputs["friction"]`` [N m], NaN where nothing was measured
    joint : its column
    delay : the friction of a row is that of so much earlier [s]
    max_sigma : friction less certain than that, by ``inputs["friction_sigma"]``, is left out [N m]

    Raises
    ------
    InputError
        When a motion has no friction.
    """
    parts, segments = [], 0
    for motion in motions:
        late, early = _shifted(motion, delay)
        friction = _friction(motion, max_sigma)[late, joint]
        load = np.full(early.size, np.nan) if motion.effort is None else motion.effort[early, joint]
        columns = np.column_stack((motion.velocity[early, joint], friction, load, segments + motion.segment[early]))
        parts.append(columns[np.isfinite(columns[:, :2]).all(axis=1)])
        segments += int(motion.segment.max(initial=0)) + 1
    velocity, friction, load, segment = np.concatenate(parts).T.copy()
    return CurveSamples(velocity, friction, None if np.isnan(load).any() else load, segment.astype(np.intp))


def find_delay(motions: Sequence[Motion], max_sigma: float = np.inf) -> tuple[float, str]:
    """How late the friction is [s], and why: where it is most nearly a function of the velocity, all joints together.

    Zero unless another value is clearly better; in steps of the largest period or of 5 ms.
    """
    step = max(_LATEST / _STEPS, max(motion.period for motion in motions))
    delays = step * np.arange(int(_LATEST / step) + 1)
    joints = range(len(motions[0].joint_names))
    spread = np.array([[_spread(curve_samples(motions, k, delay, max_sigma)) for k in joints] for delay in delays])
    with np.errstate(invalid="ignore"):
        relative = np.nan_to_num(spread / spread[0], nan=1.0).mean(axis=1)
    best = int(relative.argmin())
    if relative[best] > _CLEARLY:
        return 0.0, "friction is taken as that of its own stamp: no lateness fits the velocities clearly better"
    return float(delays[best]), (
        f"friction is taken as {delays[best]:.3g} s late: then the spread about a function of velocity is "
        f"{relative[best]:.2f} of that without"
    )


def _friction(motion: Motion, max_sigma: float) -> FloatArray:
    if FRICTION not in motion.inputs:
        raise InputError(
            f"{motion.name} has no measured friction: replay a bag first (topic joint_friction), or name a column "
            f"friction/JOINT; the columns beside position, velocity and effort are {choices(motion.inputs)}"
        )
    friction = motion.inputs[FRICTION]
    if SIGMA not in motion.inputs or np.isinf(max_sigma):
        return friction
    return np.where(motion.inputs[SIGMA] <= max_sigma, friction, np.nan)


def _shifted(motion: Motion, delay: float) -> tuple[IntArray, IntArray]:
    """Rows whose friction counts, and the rows that it tells of; gaps in time are not crossed."""
    rows = round(delay / motion.period)
    late = np.arange(rows, motion.time.size)
    early = late - rows
    together = np.abs(motion.time[late] - motion.time[early] - rows * motion.period) < 0.5 * motion.period
    return late[together], early[together]


def _spread(samples: CurveSamples) -> float:
    """Mean variance of the friction within bins of equal velocity; NaN with too few samples."""
    samples = samples.thinned(_COMPARED)
    if samples.velocity.size < 10 * _BINS:
        return float("nan")
    ordered = samples.friction[np.argsort(samples.velocity, kind="stable")]
    return float(np.mean([part.var() for part in np.array_split(ordered, _BINS)]))
