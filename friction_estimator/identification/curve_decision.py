"""What the method ``friction_curve`` decides by held-out errors: velocities, lateness and constant torques."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Protocol

import numpy as np

from friction_estimator.errors import InputError
from friction_estimator.identification.curve_problem import CurveRows, curve_rows
from friction_estimator.identification.joint_log import JointLog, Motion, Treatment
from friction_estimator.identification.linear_problem import LinearProblem, Prior, folds_of, select_rows
from friction_estimator.identification.recording import zero_phase as filters
from friction_estimator.identification.recording.sampling import usual_period
from friction_estimator.identification.recording.zero_phase import (
    LADDER,
    Progress,
    usual_treatment,
    velocity_is_complete,
)
from friction_estimator.identification.result import Candidate
from friction_estimator.identification.scoring import FoldedProblem, Scores, choose, scores_of
from friction_estimator.laws import FrictionLaw, LinearFrictionLaw
from friction_estimator.types import BoolArray, FloatArray, IntArray

_LATEST, _STEPS = 0.3, 60
"""Longest delay of an observer that is tried [s], and the number of delays."""
_COMPARED = 5_000
"""Rows that candidates are compared at: more do not decide."""


class _Options(Protocol):
    """What the decisions take of the options of a method; None: chosen here."""

    @property
    def delay(self) -> float | None: ...
    @property
    def dead_zone(self) -> float: ...
    @property
    def max_sigma(self) -> float: ...
    @property
    def folds(self) -> int: ...
    @property
    def cutoff_hz(self) -> float | None: ...


def choose_treatment(
    logs: Sequence[JointLog],
    made: Callable[[Treatment], list[Motion]],
    laws: Sequence[FrictionLaw],
    options: _Options,
    progress: Progress | None = None,
    unfiltered: bool = True,
) -> tuple[Treatment, tuple[Candidate, ...]]:
    """The velocity that friction is a function of: as recorded, filtered, or differentiated.

    Parameters
    ----------
    made : motions of the logs after a treatment, with the input ``friction``
    laws : (n) of the joints or motors
    unfiltered : velocities as recorded are a candidate
    """
    candidates = _treatments(logs, options, unfiltered)
    problems, times, kept = list[LinearProblem](), list[IntArray](), list[Treatment]()
    for count, candidate in enumerate(candidates):
        try:
            motions = made(candidate)
        except InputError:  # gaps leave this filter nothing; another candidate has samples
            if count == len(candidates) - 1 and not kept:
                raise
            continue
        rows = curve_rows(motions, options.delay or 0.0, options.dead_zone, options.max_sigma)
        problem, time = _problem(rows, laws, min(usual_period(log.time) for log in logs))
        if problem.y.size:
            problems.append(problem)
            times.append(time)
            kept.append(candidate)
        if progress is not None:
            progress(count + 1, len(candidates))
    if len(kept) < 2:
        return (kept or candidates)[0], ()
    errors = [_held_out(problem, options.folds) for problem in problems]
    errors, same = _at_shared_rows(errors, times, problems[0])
    chosen, _, table = _chosen("velocity", [str(one) for one in kept], errors, same)
    return kept[chosen], table


def _at_shared_rows(
    errors: Sequence[FloatArray], times: Sequence[IntArray], first: LinearProblem
) -> tuple[list[FloatArray], LinearProblem]:
    """Errors at the rows that all candidates have, and these rows of the first one's problem."""
    shared = reduce(np.intersect1d, times)
    places = [np.intersect1d(time, shared, return_indices=True)[1] for time in times]
    parts = [error[place] for error, place in zip(errors, places, strict=True)]
    return parts, select_rows(first, places[0])


def _treatments(logs: Sequence[JointLog], options: _Options, unfiltered: bool) -> list[Treatment]:
    """All candidates, the simplest first: as recorded, then ever more filtered."""
    complete = all(velocity_is_complete(log) for log in logs)
    recorded = [Treatment(np.inf, np.inf, True)] if complete and unfiltered else []
    try:
        band = usual_treatment(logs).band_hz
    except InputError:
        if not recorded:
            raise
        return recorded
    highest = min(0.5 * filters.FULL_BAND / usual_period(log.time) for log in logs)
    cutoffs = sorted({min(factor * band, highest) for factor in LADDER}, reverse=True)
    if options.cutoff_hz is not None:
        recorded, cutoffs = [], [options.cutoff_hz]
    sources = (True, False) if complete else (False,)
    return [*recorded, *(Treatment(cutoff, band, source) for cutoff in cutoffs for source in sources)]


_SCALES = (0.2, 0.05, 0.012)
"""Widths of smooth steps, in fast velocities of the joint: with them, the shape of most laws is met."""
_FAST = 0.95
"""Quantile of the speed."""
_CONSTANT = 0
"""Column of the constant."""


def _basis(law: FrictionLaw, velocity: FloatArray, load: FloatArray) -> FloatArray:
    """Columns (K, c) that a law is linear in, or that meet its shape where it is not."""
    if isinstance(law, LinearFrictionLaw):
        return law.regressor(velocity, np.nan_to_num(load))
    fast = (float(np.quantile(np.abs(velocity), _FAST)) if velocity.size else 0.0) or 1.0
    return np.column_stack([np.sign(velocity), velocity, *(np.tanh(velocity / (scale * fast)) for scale in _SCALES)])


def _problem(rows: CurveRows, laws: Sequence[FrictionLaw], period: float) -> tuple[LinearProblem, IntArray]:
    """A constant and the law of each row's own joint, and rising numbers of the rows (r,).

    Parameters
    ----------
    laws : (n) of the joints
    period : of the recordings [s]
    """
    n = len(rows.names)
    few = slice(None, None, max(1, rows.time.size // _COMPARED))
    usable, velocity, load = rows.usable[few], rows.velocity[few], rows.load[few]
    number = np.rint((rows.time[few] - rows.time.min()) / period).astype(np.intp)
    sample = (rows.recording[few] * (int(number.max(initial=0)) + 1) + number)[:, None] * n + np.arange(n)
    parts = [
        np.column_stack((np.ones(len(velocity)), _basis(law, velocity[:, k], load[:, k]), rows.further[few, k]))
        for k, law in enumerate(laws)
    ]
    W = np.zeros((*usable.shape, max(part.shape[1] for part in parts)))
    for joint, part in enumerate(parts):
        W[:, joint, : part.shape[1]] = part

    def of_rows(values: IntArray) -> IntArray:
        return np.broadcast_to(values, usable.shape)[usable]

    problem = LinearProblem(
        names=("",) * W.shape[2],
        units=("",) * W.shape[2],
        W=np.nan_to_num(W[usable]),
        y=rows.friction[few][usable],
        joint=of_rows(np.arange(n)),
        segment=of_rows(rows.segment[few][:, None]),
        nonnegative=np.zeros(W.shape[2], dtype=bool),
        instant=of_rows(np.arange(len(usable))[:, None]),
        recording=of_rows(rows.recording[few][:, None]),
    )
    return problem, sample[usable]


def _held_out(problem: LinearProblem, folds: int, without: int | None = None) -> FloatArray:
    """Held-out errors (r,) without one column, joint by joint; zero for a joint with less than two segments."""
    error, places = np.zeros_like(problem.y), np.arange(problem.W.shape[1])
    places = places[places != without]
    nothing = Prior.of_std(np.full(places.size, np.inf))
    for joint in np.unique(problem.joint):
        rows = problem.joint == joint
        own = select_rows(problem, rows)
        if np.unique(own.segment).size > 1:
            folded = FoldedProblem(own, np.ones(own.y.size), folds_of(own, folds))
            error[rows] = folded.held_out_error(places, nothing)
    return error


def _chosen(
    decision: str, words: Sequence[str], errors: Sequence[FloatArray], problem: LinearProblem
) -> tuple[int, tuple[int, ...], tuple[Candidate, ...]]:
    scores: list[Scores] = [scores_of(error, problem) for error in errors]
    return choose(decision, words, scores)


def choose_delay(
    motions: Sequence[Motion], laws: Sequence[FrictionLaw], options: _Options
) -> tuple[float, str, tuple[Candidate, ...]]:
    """How late the friction is [s], why, and what was compared: none, or the best one up to 0.3 s."""
    if options.delay is not None:
        return options.delay, f"friction is taken as {options.delay:g} s late, as given", ()
    step = max(_LATEST / _STEPS, max(motion.period for motion in motions))
    step = min(motion.period for motion in motions) * np.ceil(step / min(motion.period for motion in motions) - 1e-9)
    delays = step * np.arange(int(_LATEST / step + 1e-9) + 1)
    found = []
    for delay in delays:
        rows = curve_rows(motions, delay, options.dead_zone, options.max_sigma)
        problem, time = _problem(rows, laws, min(one.period for one in motions))
        if not problem.y.size or np.unique(problem.segment).size < 2:
            return 0.0, "friction is taken as that of its own stamp: too few samples show a lateness", ()
        found.append((_held_out(problem, options.folds), problem, time))
    errors, same = _at_shared_rows([one[0] for one in found], [one[2] for one in found], found[0][1])
    if not same.y.size:
        return 0.0, "friction is taken as that of its own stamp: too few samples show a lateness", ()
    everything = np.ones(scores_of(errors[0], same).squares.shape[1], dtype=bool)
    whole = [scores_of(error, same).log_error(everything) for error in errors]
    best = int(np.argmin(whole))
    if best == 0:
        return 0.0, "friction is taken as that of its own stamp: no lateness predicts it better", ()
    words = ("none", f"{delays[best]:.3g} s")
    chosen, _, table = _chosen("lateness of the friction", words, (errors[0], errors[best]), same)
    if chosen == 0:
        return 0.0, "friction is taken as that of its own stamp: no lateness predicts it better", table
    return float(delays[best]), f"friction is taken as {delays[best]:.3g} s late: then it is predicted best", table


def choose_offsets(
    rows: CurveRows, laws: Sequence[FrictionLaw], lacking: BoolArray, folds: int
) -> tuple[BoolArray, tuple[Candidate, ...]]:
    """Which joints (n,) have a constant torque, by their own held-out errors, of those whose law lacks one (n,)."""
    offsets, table = np.zeros(len(rows.names), dtype=bool), list[Candidate]()
    problem, _ = _problem(rows, laws, 1.0)
    for joint in np.flatnonzero(lacking & rows.usable.any(axis=0)):
        own = select_rows(problem, problem.joint == joint)
        errors = [_held_out(own, folds, without) for without in (_CONSTANT, None)]
        chosen, _, found = _chosen(f"{rows.names[joint]}/offset", ("none", "identified"), errors, own)
        offsets[joint] = chosen == 1
        table += found
    return offsets, tuple(table)
