"""What curves of friction decide by held-out errors: velocities, lateness, constant torques and static friction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np

from friction_estimator.config.robot import Coupling
from friction_estimator.errors import InputError
from friction_estimator.identification.curves.fit import CurveOptions, fit_curve, held_out_curve_error, time_rows
from friction_estimator.identification.curves.problem import (
    OFFSET,
    Column,
    CurveRows,
    CurveSamples,
    curve_rows,
    linear_columns,
)
from friction_estimator.identification.curves.stribeck import fitted_law
from friction_estimator.identification.joint_log import JointLog, Motion, Treatment
from friction_estimator.identification.linear_problem import FOLDS, LinearProblem, Prior, folds_of, select_rows
from friction_estimator.identification.recording import zero_phase as filters
from friction_estimator.identification.recording.sampling import usual_period
from friction_estimator.identification.recording.zero_phase import (
    LADDER,
    Progress,
    usual_treatment,
    velocity_is_complete,
)
from friction_estimator.identification.result import Candidate
from friction_estimator.identification.scoring import FoldedProblem, choose, scores_of
from friction_estimator.laws import FrictionLaw, Role, law_names, make_law
from friction_estimator.laws.joint_laws import START_LAW
from friction_estimator.types import BoolArray, FloatArray, IntArray

_LATEST, _STEPS = 0.3, 60
"""Longest delay of an observer that is tried [s], and the number of delays."""
_STARTS = 16
"""Shapes that are tried of every law that is compared."""
_COMPARED = 5_000
"""Rows that candidates are compared at: more do not decide."""


@dataclass(frozen=True, slots=True)
class FrictionCurveOptions:
    """Choices of the method.

    Attributes
    ----------
    law : any friction law of the registry, of every joint; ``auto``: chosen
    joint_laws : exceptions, ``joint=law`` as of `identifier.joint_laws`
    coupling : of motors that move several joints together; their friction is then fitted motor by motor
    fit : loss and starts
    delay : how late the friction is against the other columns [s]; None: chosen
    offset : a constant torque is fitted that the law lacks; None: chosen, joint by joint
    dead_zone : slower samples are left out [rad/s]
    max_sigma : friction less certain than that is left out, where its standard deviation was recorded [N m]
    folds : of the validation
    cutoff_hz : of the zero-phase filter of velocities; None: chosen
    """

    law: str = "coulomb_viscous"
    joint_laws: tuple[str, ...] = ()
    coupling: Coupling | None = None
    fit: CurveOptions = field(default_factory=CurveOptions)
    delay: float | None = None
    offset: bool | None = None
    dead_zone: float = 0.0
    max_sigma: float = float("inf")
    folds: int = FOLDS
    cutoff_hz: float | None = None

    def rows(self, motions: Sequence[Motion], delay: float, columns: tuple[Column, ...]) -> CurveRows:
        """Measured friction of motions that comes this late [s]."""
        return curve_rows(motions, delay, self.dead_zone, self.max_sigma, columns)


DEFAULTS = FrictionCurveOptions()


@dataclass(frozen=True, slots=True)
class CurveSource:
    """Where measured friction comes from.

    Attributes
    ----------
    made : motions of the logs after a treatment, with the input ``friction``
    columns : of the torque beyond friction
    unfiltered : velocities as recorded are a candidate
    """

    made: Callable[[Treatment], list[Motion]]
    columns: tuple[Column, ...] = (OFFSET,)
    unfiltered: bool = True


def choose_treatment(
    logs: Sequence[JointLog],
    source: CurveSource,
    laws: Sequence[FrictionLaw],
    options: FrictionCurveOptions,
    progress: Progress | None = None,
) -> tuple[Treatment, tuple[Candidate, ...]]:
    """The velocity that friction is a function of: as recorded, filtered, or differentiated; of laws (n)."""
    candidates = _treatments(logs, options, source.unfiltered)
    problems, kept = list[_Compared](), list[Treatment]()
    for count, candidate in enumerate(candidates):
        try:
            motions = source.made(candidate)
        except InputError:  # gaps leave this filter nothing; another candidate has samples
            if count == len(candidates) - 1 and not kept:
                raise
            continue
        rows = options.rows(motions, options.delay or 0.0, source.columns)
        problem = _Compared.of(rows, laws, min(usual_period(log.time) for log in logs))
        if problem.linear.y.size:
            problems.append(problem)
            kept.append(candidate)
        if progress is not None:
            progress(count + 1, len(candidates))
    if len(kept) < 2:
        return (kept or candidates)[0], ()
    errors, same = _at_shared_rows(problems, options.folds)
    chosen, _, table = choose("velocity", [str(one) for one in kept], [scores_of(error, same) for error in errors])
    return kept[chosen], table


def _treatments(logs: Sequence[JointLog], options: FrictionCurveOptions, unfiltered: bool) -> list[Treatment]:
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


def _basis(law: FrictionLaw, velocity: FloatArray, load: FloatArray) -> FloatArray:
    """Columns (K, c) that a law is linear in, or that meet its shape where it is not."""
    shape = np.array([parameter.role is Role.SHAPE for parameter in law.parameters])
    if not shape.any():
        return linear_columns(law, np.zeros(shape.size), shape, velocity, np.nan_to_num(load))
    fast = (float(np.quantile(np.abs(velocity), _FAST)) if velocity.size else 0.0) or 1.0
    constant = [np.ones_like(velocity)] * law.has_offset
    steps = (np.tanh(velocity / (scale * fast)) for scale in _SCALES)
    return np.column_stack([np.sign(velocity), velocity, *steps, *constant])


@dataclass(frozen=True, slots=True)
class _Compared:
    """The law of each row's own joint and all further columns.

    Attributes
    ----------
    linear : the problem; columns of laws first, padded with zeros, then the further ones
    number : (r,) rising number of every row
    scored : (r,) rows that errors are about
    group : (r,) as in :class:`CurveRows`
    """

    linear: LinearProblem
    number: IntArray
    scored: BoolArray
    group: IntArray

    @classmethod
    def of(cls, rows: CurveRows, laws: Sequence[FrictionLaw], period: float) -> _Compared:
        """Some rows, for laws (n) and recordings with a period [s]."""
        n, few = len(rows.names), slice(None, None, max(1, rows.time.size // _COMPARED))
        usable, velocity, load = rows.usable[few], rows.velocity[few], rows.load[few]
        number = np.rint((rows.time[few] - rows.time.min()) / period).astype(np.intp)
        sample = (rows.recording[few] * (int(number.max(initial=0)) + 1) + number)[:, None] * n + np.arange(n)
        parts = [_basis(law, velocity[:, k], load[:, k]) for k, law in enumerate(laws)]
        widest = max(part.shape[1] for part in parts)
        padded = [np.pad(part, [(0, 0), (0, widest - part.shape[1])]) for part in parts]
        W = np.concatenate((np.stack(padded, axis=1), rows.further[few]), axis=2)

        def of_rows(values: IntArray) -> IntArray:
            return np.broadcast_to(values, usable.shape)[usable]

        p = W.shape[2]
        problem = LinearProblem(
            names=("",) * p,
            units=("",) * p,
            W=np.nan_to_num(W[usable]),
            y=rows.friction[few][usable],
            joint=of_rows(np.arange(n)),
            segment=of_rows(rows.segment[few][:, None]),
            nonnegative=np.zeros(p, dtype=bool),
            instant=of_rows(np.arange(len(usable))[:, None]),
            recording=of_rows(rows.recording[few][:, None]),
        )
        return cls(problem, sample[usable], rows.scored[few][usable], of_rows(rows.group[few][:, None]))

    def select(self, rows: BoolArray | IntArray) -> _Compared:
        """These rows of it."""
        return _Compared(select_rows(self.linear, rows), self.number[rows], self.scored[rows], self.group[rows])

    def held_out(self, folds: int, columns: IntArray | None = None) -> FloatArray:
        """Held-out errors (r,) of these columns, joint by joint; zero for a joint with less than two segments."""
        problem = self.linear
        error, places = np.zeros_like(problem.y), np.arange(problem.W.shape[1]) if columns is None else columns
        nothing = Prior.of_std(np.full(places.size, np.inf))
        for joint in np.unique(problem.joint):
            rows = problem.joint == joint
            own, group = select_rows(problem, rows), self.group[rows]
            if np.unique(own.segment).size < 2:
                continue
            fold, weights = folds_of(own, folds), np.ones(own.y.size)
            for _ in range(np.unique(group).size):  # groups count by the inverse variance of their errors
                error[rows] = FoldedProblem(own, weights, fold).held_out_error(places, nothing)
                sizes = np.bincount(group, error[rows] ** 2) / np.maximum(np.bincount(group), 1)
                weights = 1.0 / np.maximum(sizes, np.finfo(float).tiny)[group]
        return error


def _at_shared_rows(problems: Sequence[_Compared], folds: int) -> tuple[list[FloatArray], LinearProblem]:
    """Errors at the scored rows that all candidates have, and these rows of the first one's problem."""
    shared = reduce(np.intersect1d, [one.number[one.scored] for one in problems])
    places = [np.intersect1d(one.number, shared, return_indices=True)[1] for one in problems]
    parts = [one.held_out(folds)[place] for one, place in zip(problems, places, strict=True)]
    return parts, select_rows(problems[0].linear, places[0])


def choose_delay(
    motions: Sequence[Motion], source: CurveSource, laws: Sequence[FrictionLaw], options: FrictionCurveOptions
) -> tuple[float, str, tuple[Candidate, ...]]:
    """How late the friction is [s], why, and what was compared: none, or the best one up to 0.3 s."""
    if options.delay is not None:
        return options.delay, f"friction is taken as {options.delay:g} s late, as given", ()
    period = min(motion.period for motion in motions)
    step = max(_LATEST / _STEPS, max(motion.period for motion in motions))
    step = period * np.ceil(step / period - 1e-9)
    delays = step * np.arange(int(_LATEST / step + 1e-9) + 1)
    few = "friction is taken at the stamp of its velocity: too few samples show a lateness"
    tried = [options.rows(motions, delay, source.columns) for delay in delays]
    if not all(rows.time.size for rows in tried):
        return 0.0, few, ()
    problems = [_Compared.of(rows, laws, period) for rows in tried]
    if any(np.unique(one.linear.segment).size < 2 for one in problems):
        return 0.0, few, ()
    errors, same = _at_shared_rows(problems, options.folds)
    if not same.y.size:
        return 0.0, few, ()
    everything = np.ones(scores_of(errors[0], same).squares.shape[1], dtype=bool)
    best = int(np.argmin([scores_of(error, same).log_error(everything) for error in errors]))
    table: tuple[Candidate, ...] = ()
    if best:
        words = ("none", f"{delays[best]:.3g} s")
        pair = [scores_of(errors[k], same) for k in (0, best)]
        chosen, _, table = choose("lateness of the friction", words, pair)
        if chosen:
            return (
                float(delays[best]),
                f"friction is taken as {delays[best]:.3g} s late: then it is predicted best",
                table,
            )
    return 0.0, "friction is taken at the stamp of its velocity: no lateness predicts it better", table


def choose_columns(
    rows: CurveRows, laws: Sequence[FrictionLaw], optional: BoolArray, needed: BoolArray, folds: int
) -> tuple[list[tuple[str, ...]], BoolArray, tuple[Candidate, ...]]:
    """Which optional parameters predict the friction of their own joint better than none, one by one.

    Parameters
    ----------
    laws : (n) with the shape that they begin with
    optional, needed : (n, e) further columns that may be left out, and others that are not zero

    Returns
    -------
    lacking, further, table : (n) names of the parameters of each law that are left out, (n, e) columns that are
        fitted, and all that was compared
    """
    lacking: list[tuple[str, ...]] = [()] * len(laws)
    seen = (rows.usable[:, :, None] & (rows.further != 0.0)).any(axis=0)
    further: BoolArray = (optional | needed) & seen
    table = list[Candidate]()
    compared = _Compared.of(rows, laws, 1.0)
    first = compared.linear.W.shape[1] - len(rows.columns)
    for joint, law in enumerate(laws):
        own = compared.select(compared.linear.joint == joint)
        named = [(k, one.name) for k, one in enumerate(law.parameters) if one.optional]
        named += [(first + k, rows.columns[k].name) for k in np.flatnonzero(optional[joint] & further[joint])]
        places = np.append(np.arange(first), first + np.flatnonzero(further[joint]))
        for place, name in named if own.linear.y.size else ():
            shows = own.linear.W[:, place] != 0.0
            same = replace(select_rows(own.linear, shows), joint=own.group[shows])  # the mean over groups counts
            scores = [scores_of(own.held_out(folds, tried)[shows], same) for tried in (places[places != place], places)]
            chosen, _, found = choose(f"{rows.names[joint]}/{name}", ("none", "identified"), scores)
            table += found
            if chosen == 0 and place < first:
                lacking[joint] = (*lacking[joint], name)
            elif chosen == 0:
                further[joint, place - first] = False
    return lacking, further, tuple(table)


def choose_law(joint: str, samples: CurveSamples, options: FrictionCurveOptions) -> tuple[str, tuple[Candidate, ...]]:
    """The law of the registry that predicts the friction of one joint best, and the candidates.

    Laws with fewest parameters come first; those that need the load are candidates where it was recorded.
    """
    names = [name for name in law_names() if samples.load is not None or not make_law(name).depends_on_load]
    names.sort(key=lambda name: (name != START_LAW, len(make_law(name).parameters)))
    fit, scores = replace(options.fit, starts=min(options.fit.starts, _STARTS)), []
    for name in names:
        law = fitted_law(name)
        own = samples.without(OFFSET) if law.has_offset else samples
        found = fit_curve(law, own, fit)
        scores.append(scores_of(held_out_curve_error(found, own, fit, options.folds), time_rows(own)))
    chosen, _, table = choose(f"{joint}/law", names, scores)
    return names[chosen], table
