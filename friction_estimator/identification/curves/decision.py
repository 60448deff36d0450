"""What the curve of one joint decides by held-out errors: velocity, lateness, extra columns and law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np

from friction_estimator.config.robot import Coupling
from friction_estimator.errors import InputError
from friction_estimator.identification.curves.drive import DriveRecording, curve_motions, least_certain_speed
from friction_estimator.identification.curves.fit import CurveOptions, fit_curve, held_out_curve_error
from friction_estimator.identification.curves.problem import (
    OFFSET_COLUMN,
    CurveSamples,
    ExtraColumn,
    curve_samples,
    time_rows,
)
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.identification.linear_problem import FOLDS, Prior, folds_of
from friction_estimator.identification.recording.motion import (
    Motion,
    Treatment,
    tried_cutoffs,
    usual_treatment,
    velocity_is_complete,
)
from friction_estimator.identification.result import Candidate
from friction_estimator.identification.scoring import FoldedProblem, NumberedRows, Scores, choose, compared, scores_of
from friction_estimator.laws import FrictionLaw, Role, law_names, make_law
from friction_estimator.laws.joint_laws import START_LAW
from friction_estimator.laws.law import torque_gradient
from friction_estimator.types import BoolArray

_LATEST_DELAY, _DELAY_STEPS = 0.3, 60
"""Longest delay of an observer that is tried [s], and the number of delays."""
_LEAST_SHARE_OF_ROWS = 0.5
"""Share of the rows of the largest candidate that another one must have."""
_STARTS_A_LAW = 16
"""Shapes that are tried of every law that is compared."""
_ANY_SHAPE = "tanh_stribeck"
"""Law whose columns meet most shapes: with them, velocities are compared before a law is chosen."""
_COMPARED_ROWS = 5_000
"""Rows that candidates are compared at: more do not decide."""


@dataclass(frozen=True, slots=True)
class FrictionCurveOptions:
    """Options of the method ``friction_curve``."""

    law: str = "coulomb_viscous"  # any friction law of the registry, of every joint; `auto`: chosen
    joint_laws: tuple[str, ...] = ()  # exceptions, `joint=law` as of `identifier.joint_laws`
    # of motors that move several joints together; their friction is then fitted motor by motor
    coupling: Coupling | None = None
    fit: CurveOptions = field(default_factory=CurveOptions)  # loss and starts
    delay: float | None = None  # how late the friction is against the other columns [s]; None: chosen
    offset: bool | None = None  # a constant torque is fitted that the law lacks; None: chosen, joint by joint
    # slower samples are left out [rad/s]; None: those whose direction the noise of the velocity hides
    dead_zone: float | None = None
    # friction less certain than that is left out, where its standard deviation was recorded [N m]
    max_sigma: float = float("inf")
    folds: int = FOLDS  # of the validation
    cutoff_hz: float | None = None  # of the zero-phase filter of velocities; None: chosen


CURVE_DEFAULTS = FrictionCurveOptions()


@dataclass(frozen=True, slots=True)
class CurveSource:
    """How the friction of one joint is measured, and the law and columns that are fitted to it."""

    joint: str  # its name, or that of the motor
    law: FrictionLaw  # any of the registry
    options: FrictionCurveOptions  # of the method
    columns: tuple[ExtraColumn, ...] = (OFFSET_COLUMN,)  # of the torque beyond friction
    optional: frozenset[ExtraColumn] = frozenset()  # columns that are identified where they predict better
    automatic: bool = False  # the law is chosen
    coupling: Coupling | None = None  # of the motor with others that move the same joints
    # how friction follows from the torque behind the transmission; None: it was measured
    drive: DriveRecording | None = None

    def motions(self, logs: Sequence[JointLog], treatment: Treatment) -> list[Motion]:
        """Motions of the joint, or of the motors that move it together with others, with the input ``friction``."""
        return curve_motions(logs, self.joint, treatment, self.options.folds, self.coupling, self.drive)

    def samples(self, motions: Sequence[Motion], delay: float) -> CurveSamples:
        """Measured friction over velocity from these motions; the friction is late by ``delay`` [s]."""
        return curve_samples(motions, self.joint, self.columns, delay, self.dead_zone(motions), self.options.max_sigma)

    def dead_zone(self, motions: Sequence[Motion]) -> float:
        """Speed below which samples do not count [rad/s]: as given, or up to which the joint may be at rest."""
        if self.options.dead_zone is not None:
            return self.options.dead_zone
        place = motions[0].joint_names.index(self.joint)
        return max(
            least_certain_speed(one.velocity[:, place], one.stretch, one.period, one.cutoff_hz) for one in motions
        )

    def rows(self, motions: Sequence[Motion], delay: float) -> NumberedRows:
        """Least-squares rows of :meth:`samples`, numbered by time in the shortest period of the motions."""
        samples, law = self.samples(motions, delay), make_law(_ANY_SHAPE) if self.automatic else self.law
        return _curve_rows(law, samples, min(motion.period for motion in motions))


def choose_curve_velocity(
    logs: Sequence[JointLog], source: CurveSource
) -> tuple[Treatment | None, list[Treatment], tuple[Candidate, ...]]:
    """Choose the velocity signal of a friction curve: as recorded, filtered, or differentiated from the position.

    Returns
    -------
    chosen, rivals, table : the treatment (None: the joint stands still), others that predict as well, and all
        candidates
    """
    candidates, found, failure = _treatments(logs, source), list[tuple[NumberedRows, Treatment]](), None
    for candidate in candidates:
        try:
            rows = source.rows(source.motions(logs, candidate), source.options.delay or 0.0)
        except InputError as error:  # gaps leave this filter nothing; another candidate has samples
            failure = error
            continue
        if rows.problem.y.size:
            found.append((rows, candidate))
    if not found and failure is not None:
        raise failure
    found = [found[k] for k in _comparable([rows for rows, _ in found])]
    kept = [treatment for _, treatment in found]
    if len(kept) < 2:
        return next(iter([*kept, *candidates]), None), [], ()
    scores = _scores([rows for rows, _ in found], source.options)
    chosen, rivals, table = choose("velocity", [str(one) for one in kept], scores)
    return kept[chosen], [kept[k] for k in rivals if k != chosen], table


def _treatments(logs: Sequence[JointLog], source: CurveSource) -> list[Treatment]:
    """All candidates, the simplest first: as recorded, then ever more filtered; none for a joint that stands still."""
    complete, given = all(velocity_is_complete(log) for log in logs), source.options.cutoff_hz
    recorded = [Treatment(np.inf, np.inf, True)] if complete and source.drive is None else []
    try:
        band = usual_treatment(logs).band_hz
    except InputError:
        return recorded
    cutoffs, sources = tried_cutoffs(logs, band, given)[::-1], (True, False) if complete else (False,)
    filtered = [Treatment(cutoff, band, measured) for cutoff in cutoffs for measured in sources]
    return [*(recorded if given is None else []), *filtered]


_STEP_WIDTHS = (0.2, 0.05, 0.012)
"""Widths of smooth steps, in fast velocities of the joint: with them, the shape of most laws is met."""
_FAST_QUANTILE = 0.95
"""Quantile of the speed."""


def _curve_rows(law: FrictionLaw, samples: CurveSamples, period: float) -> NumberedRows:
    """The linear problem of some samples: the law, or what meets its shape, then the extra columns.

    Samples that are driven and those that are not count as two joints: their errors differ in size.
    """
    number = np.rint(samples.time / period).astype(np.intp) + samples.recording * _NUMBERS_A_RECORDING
    few = samples.usable & (number % max(1, number.size // _COMPARED_ROWS) == 0)
    own = samples.select(few)
    velocity, shape = own.velocity, np.array([parameter.role is Role.SHAPE for parameter in law.parameters])
    if shape.any():
        fast = (float(np.quantile(np.abs(velocity), _FAST_QUANTILE)) if velocity.size else 0.0) or 1.0
        steps = (np.tanh(velocity / (scale * fast)) for scale in _STEP_WIDTHS)
        constant = [np.ones_like(velocity)] * law.has_offset
        basis = np.column_stack([np.sign(velocity), velocity, *steps, *constant])
    else:
        basis = torque_gradient(law, np.zeros(shape.size), velocity, own.load)
    linear = time_rows(own, np.hstack((basis, own.extra_columns)))
    nothing = Prior.of_std(np.full(linear.W.shape[1], np.inf))
    return NumberedRows(linear, nothing, number[few], scored=samples.scored[few])


_NUMBERS_A_RECORDING = 2**46
"""Between the numbers of samples of two recordings, whose stamps may count from 1970 on."""


def _comparable(problems: Sequence[NumberedRows]) -> list[int]:
    """Candidates that have most of the rows of the one with most: of the others, gaps leave too little."""
    most = max((one.number for one in problems), key=len, default=np.zeros(0))
    return [
        k for k, one in enumerate(problems) if np.intersect1d(one.number, most).size >= _LEAST_SHARE_OF_ROWS * most.size
    ]


def _scores(problems: Sequence[NumberedRows], options: FrictionCurveOptions) -> list[Scores]:
    """Of all candidates, compared at the rows that they share."""
    largest = max(problems, key=lambda one: one.problem.y.size)
    return compared(largest, zip(problems, problems, strict=True), options.fit.solver, options.folds)[0]


def choose_delay(motions: Sequence[Motion], source: CurveSource) -> tuple[float, str, tuple[Candidate, ...]]:
    """Choose by how much measured friction is late [s]: zero, or the best up to 0.3 s; with reason and candidates."""
    if source.options.delay is not None:
        return source.options.delay, f"friction is taken as {source.options.delay:g} s late, as given", ()
    options = replace(source.options, dead_zone=source.dead_zone(motions))
    source, period = replace(source, options=options), min(motion.period for motion in motions)
    step = max(_LATEST_DELAY / _DELAY_STEPS, max(motion.period for motion in motions))
    step = period * np.ceil(step / period - 1e-9)
    delays = step * np.arange(int(_LATEST_DELAY / step + 1e-9) + 1)
    tried = [source.rows(motions, delay) for delay in delays]
    kept = _comparable(tried)
    shared = reduce(np.intersect1d, (tried[k].number for k in kept))
    if kept[0] or len(kept) < 2 or not shared.size or np.unique(tried[0].problem.segment).size < 2:
        return 0.0, "friction is taken at the stamp of its velocity: too few samples show a lateness", ()
    scores, table = _scores([tried[k] for k in kept], options), tuple[Candidate, ...]()
    blocks = np.arange(scores[0].squares.shape[1])
    best = _best(scores, blocks >= 0)
    if best:
        # the best of many would look better than it is: every block of time has the one that is best in all others
        squares = [scores[_best(scores, blocks != block)].squares[:, block] for block in blocks]
        pair, delay = [scores[0], replace(scores[0], squares=np.column_stack(squares))], float(delays[kept[best]])
        chosen, _, table = choose("lateness", ("none", f"{delay:.3g} s"), pair)
        if chosen:
            return delay, f"friction is taken as {delay:.3g} s late: then it is predicted best", table
    return 0.0, "friction is taken at the stamp of its velocity: no lateness predicts it better", table


def _best(scores: Sequence[Scores], blocks: BoolArray) -> int:
    """The candidate with the smallest error in these blocks."""
    return int(np.argmin([one.log_error(blocks) for one in scores]))


def choose_parameters(samples: CurveSamples, source: CurveSource) -> tuple[CurveSamples, tuple[Candidate, ...]]:
    """The samples with those extra columns, tried one by one, that improve the prediction; and all candidates."""
    seen = (samples.used.extra_columns != 0.0).any(axis=0)
    samples = samples.without([one for one, shows in zip(samples.columns, seen, strict=True) if not shows])
    made, solver = _curve_rows(source.law, samples, 1.0), source.options.fit.solver
    first = made.problem.W.shape[1] - len(samples.columns)
    places = enumerate(samples.columns, start=first)
    optional = {k: f"{source.joint}/{one.name}" for k, one in places if one in source.optional}
    if not optional or np.unique(made.problem.segment).size < 2:
        return samples, ()
    folded = FoldedProblem.from_problem(made.problem, solver, made.prior, folds_of(made.problem, source.options.folds))
    left_out, table = folded.choose_columns(np.arange(made.problem.W.shape[1]), made.prior, optional)
    return samples.without([samples.columns[k - first] for k in left_out]), table


def choose_law(samples: CurveSamples, source: CurveSource) -> tuple[str, tuple[Candidate, ...]]:
    """The law of the registry that predicts the friction of one joint best, and the candidates.

    Laws with fewest parameters come first; those that need the load are candidates where it was recorded.
    """
    names = [name for name in law_names() if samples.load is not None or not make_law(name).depends_on_load]
    names.sort(key=lambda name: (name != START_LAW, len(make_law(name).parameters)))
    options, scores = source.options, []
    fit = replace(options.fit, starts=min(options.fit.starts, _STARTS_A_LAW))
    for name in names:
        law = make_law(name)
        own = samples.without((OFFSET_COLUMN,)) if law.has_offset else samples
        error = held_out_curve_error(fit_curve(law, own, fit), own, fit, options.folds)
        scores.append(scores_of(error, time_rows(own, own.velocity[:, None])))
    chosen, _, table = choose(f"{source.joint}/law", names, scores)
    return names[chosen], table
