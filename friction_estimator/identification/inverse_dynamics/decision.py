"""What inverse dynamics decides by held-out errors: treatment of the recordings, then prior, offsets and delays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np

from friction_estimator.errors import ConfigError, InputError, choices
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.estimated_friction import STANDSTILL, usable_rows
from friction_estimator.identification.inverse_dynamics.estimation import (
    Estimate,
    TorqueModel,
    model_prior,
    reference_speeds,
)
from friction_estimator.identification.inverse_dynamics.observation import COARSE_RATE, Observation, observe, thinning
from friction_estimator.identification.inverse_dynamics.options import (
    MEASURED,
    VELOCITIES,
    InverseDynamicsOptions,
    friction_motors,
    friction_of_options,
)
from friction_estimator.identification.inverse_dynamics.refinement import delay_columns, delay_prior, measured_slope
from friction_estimator.identification.joint_log import JointLog, Treatment
from friction_estimator.identification.linear_problem import Prior, folds_of, with_columns
from friction_estimator.identification.recording import zero_phase as filters
from friction_estimator.identification.recording.sampling import FLAT, comparison_band, usual_period
from friction_estimator.identification.recording.zero_phase import (
    LADDER,
    Progress,
    to_motions,
    usual_treatment,
    velocity_is_complete,
)
from friction_estimator.identification.result import Candidate
from friction_estimator.identification.rigid_body import RigidBody
from friction_estimator.identification.scoring import (
    Comparison,
    FoldedProblem,
    FoldWeights,
    NumberedRows,
    choice_covariance,
    choose,
    choose_columns,
    scores_of,
)
from friction_estimator.laws import Role
from friction_estimator.types import BoolArray, FloatArray, IntArray

URDF_SIGMAS = (0.1, 0.3, 1.0, 3.0, 30.0)
"""Relative standard deviations of the URDF's inertial parameters; the last one leaves the decision to the data."""
TREATMENT_LAW = "coulomb_viscous"
"""The law with which treatments are compared: any shape of friction needs the same velocity."""


@dataclass(frozen=True, slots=True)
class TreatmentChoice:
    """The treatment that was chosen.

    Attributes
    ----------
    treatment : of all recordings
    table : all candidates
    names : (p) parameters of the model of the comparison
    spread : (p, p) covariance of what changes among the treatments that predict as well
    """

    treatment: Treatment
    table: tuple[Candidate, ...] = ()
    names: tuple[str, ...] = ()
    spread: FloatArray | None = None


SHARES = (1.0, 0.5, 0.3)
"""Bands in which the model is fitted, in usual ones, that which leaves most of the torque first."""
_KEPT = 4
"""Treatments whose rows are kept: the next comparison begins with some of them."""
_ROWS_A_COLUMN = 5
"""Rows that a band must leave, in columns: fewer decide nothing."""
_MOST_TRAVEL = 0.99
"""Share of the variance of the position that a vibration of the joint is no part of."""
_VIBRATES = float(np.log(1.5))
"""By how much the logarithm of the error must fall, where vibrations are left out: a band always fits itself best."""


Rows = Callable[[Treatment], NumberedRows]
"""Rows of all recordings after a treatment."""


def _choose_band(
    logs: Sequence[JointLog], rows: Rows, options: InverseDynamicsOptions
) -> tuple[float, tuple[Candidate, ...]]:
    """Band that predicts best [Hz], and the candidates.

    A wide band shows more of friction's steps, and more of what is in no model: vibrations, a base that moves. Bands
    are compared by the errors in the narrowest one; first usual ones with one that leaves vibrations out.
    """
    usual = usual_treatment(logs, options.parallel_hz).band_hz
    if options.parallel_hz is not None:
        return usual, ()
    bands = [share * usual for share in SHARES]
    slow = SHARES[-1] * max(comparison_band(log, _MOST_TRAVEL) for log in logs)
    table: tuple[Candidate, ...] = ()
    for compared, slack in (((bands[-1], slow), _VIBRATES), (bands, 0.0)):
        usable = [band for band in compared if _is_enough(rows, Treatment(min(FLAT * band, _highest(logs)), band))]
        tried = [
            Treatment(options.cutoff_hz or min(FLAT * band, _highest(logs)), band, source)
            for band in usable
            for source in _sources(logs, options)
        ]
        if len(usable) > 1 and usable[-1] < usable[0]:
            found, _ = _compared(rows, options, tried, usable[-1])
            words = [f"{one}, up to {one.band_hz:.3g} Hz" for one in tried]
            chosen, _, more = choose("band", words, found.scores, slack)
            table += more
            usual = tried[chosen].band_hz
            if slack and usual == slow:
                break
    return usual, table


def _is_enough(rows: Rows, treatment: Treatment) -> bool:
    """Whether a treatment leaves rows for all columns."""
    try:
        made = rows(treatment)
    except InputError:  # nothing is left between the edges
        return False
    return made.problem.y.size > _ROWS_A_COLUMN * made.problem.W.shape[1]


def _treatments(logs: Sequence[JointLog], band_hz: float, options: InverseDynamicsOptions) -> list[Treatment]:
    """All candidates of the motion, in the order of simplicity."""
    cutoffs = sorted({min(factor * band_hz, _highest(logs)) for factor in LADDER})
    if options.cutoff_hz is not None:
        cutoffs = [options.cutoff_hz]
    return [Treatment(cutoff, band_hz, source) for cutoff in cutoffs for source in _sources(logs, options)]


def _sources(logs: Sequence[JointLog], options: InverseDynamicsOptions) -> tuple[bool, ...]:
    """Whether the measured velocity is used: both where it was recorded, or as given."""
    complete = all(velocity_is_complete(log) for log in logs)
    if options.velocity is None:
        return (False, True) if complete else (False,)
    if options.velocity not in VELOCITIES:
        raise ConfigError(f"velocity is {options.velocity!r}, expected one of {choices(VELOCITIES)}")
    if options.velocity == MEASURED and not complete:
        raise InputError("the measured velocity is wanted, and it was not recorded of every joint at every sample")
    return (options.velocity == MEASURED,)


def _highest(logs: Sequence[JointLog]) -> float:
    return min(0.5 * filters.FULL_BAND / usual_period(log.time) for log in logs)


def choose_treatment(
    logs: Sequence[JointLog], model: FixedBaseModel, options: InverseDynamicsOptions, progress: Progress | None = None
) -> TreatmentChoice:
    """Band, then velocity source and cut-off that predict best, for all recordings and joints of a limb."""
    compared = replace(options, law=TREATMENT_LAW, joint_laws=(), harmonics=(), temperature=False, presliding=False)
    rows = lru_cache(maxsize=_KEPT)(lambda treatment: treated_rows(logs, model, compared, treatment))
    band, table = _choose_band(logs, rows, compared)
    candidates = _treatments(logs, band, options)
    if len(candidates) == 1:
        return TreatmentChoice(candidates[0], table)
    found, names = _compared(rows, compared, candidates, band, progress)
    chosen, rivals, motions = choose("motion", [str(one) for one in candidates], found.scores)
    spread = choice_covariance(found.values[chosen], [found.values[k] for k in rivals if k != chosen])
    return TreatmentChoice(candidates[chosen], (*table, *motions), names, spread)


def _compared(
    rows: Rows,
    options: InverseDynamicsOptions,
    candidates: Sequence[Treatment],
    band_hz: float,
    progress: Progress | None = None,
) -> tuple[Comparison, tuple[str, ...]]:
    """Every candidate, fitted to all its rows and compared in one band; and the names of the parameters."""
    reference = rows(max(candidates, key=lambda one: one.band_hz))
    found = Comparison(reference, options.solver, options.folds)
    for count, candidate in enumerate(candidates):
        same = candidate.band_hz == band_hz
        judged = None if same else rows(replace(candidate, band_hz=band_hz))
        found.add(rows(candidate), judged)
        if progress is not None:
            progress(count + 1, len(candidates))
    return found, reference.problem.names


def treated_rows(
    logs: Sequence[JointLog], model: FixedBaseModel, options: InverseDynamicsOptions, treatment: Treatment
) -> NumberedRows:
    """Rows of all recordings after one treatment, with delays, and with the URDF as a weak prior.

    Raises
    ------
    InputError
        When no joint moves.
    """
    grain = thinning(max(usual_period(log.time) for log in logs), treatment.band_hz, COARSE_RATE)
    motions = to_motions(logs, treatment, options.folds, grain=grain)
    motors = friction_motors(options, model.joint_names)
    body = RigidBody(model, options.body, options.coupling)
    observations = observe(motions, body, [treatment.band_hz] * len(motions), motors, COARSE_RATE)
    friction = friction_of_options(motors.names, observations, options)
    torque = TorqueModel(body, friction)
    usable = usable_rows(observations, friction, STANDSTILL * reference_speeds(observations, friction))
    if not any(mask.any() for mask in usable):
        raise InputError("no joint moves fast enough for its friction to show: there is no usable sample")
    problem = torque.problem(observations, [np.zeros_like(one.load) for one in observations], usable)
    n = len(motors.names)
    late = measured_slope(observations, usable)[:, None] * (problem.joint[:, None] == np.arange(n))
    prior = model_prior(torque, observations, 1.0).joined(delay_prior(np.zeros(n)))
    problem = with_columns(problem, late, [f"{name}/delay" for name in motors.names], "s")
    return NumberedRows(problem, prior, _row_times(logs, observations, usable), n)


def _row_times(logs: Sequence[JointLog], observations: Sequence[Observation], usable: Sequence[BoolArray]) -> IntArray:
    """Number (r,) of the sample and joint of every usable row, rising over all recordings."""
    parts, before = [], 0
    for log, one, mask in zip(logs, observations, usable, strict=True):
        period, n = usual_period(log.time), mask.shape[1]
        sample = np.rint((one.motion.time[one.filter.kept] - log.time[0]) / period).astype(np.intp)
        parts.append(before + (sample[:, None] * n + np.arange(n))[mask])
        before += (int((log.time[-1] - log.time[0]) / period) + 2) * n
    return np.concatenate(parts)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """What was chosen of the model.

    Attributes
    ----------
    urdf_sigma : relative standard deviation of the URDF's inertial parameters
    offsets : (p,) which constant torques are estimated that the laws lack
    lateness : which delays are estimated
    delay : (n,) by which torques are late [s]
    table : all candidates
    spread : (p, p) covariance of what changes among candidates that predict as well
    delay_spread : (n, n) the same of delays [s^2]
    """

    urdf_sigma: float
    offsets: BoolArray
    lateness: str
    delay: FloatArray
    table: tuple[Candidate, ...]
    spread: FloatArray
    delay_spread: FloatArray

    @property
    def own_delays(self) -> bool:
        """Whether every joint has its own delay."""
        return self.lateness == _OWN_DELAYS


def choose_model(
    solution: Estimate,
    options: InverseDynamicsOptions,
    before: ModelChoice | None = None,
    moved: FloatArray | None = None,
) -> ModelChoice:
    """Strength of the URDF's prior, offsets and delays that predict best, by one factorial of candidates.

    Parameters
    ----------
    solution : with offsets and a weak prior; torques not moved yet
    before : the choice, whose delays alone are estimated again
    moved : (n,) by which torques were moved already [s]
    """
    model, n, q = solution.model, solution.delay.size, solution.kept.size
    late = np.column_stack([delay_columns(solution, own) for own in (False, True)])
    problem = with_columns(solution.fit.problem, late, ["delay"] * (n + 1), "s")
    folded = FoldedProblem(problem, fold_weights(solution, options))
    offsets, offset_table = (before.offsets, ()) if before is not None else _choose_offsets(solution, folded, options)
    start = np.zeros(n) if moved is None else moved
    entries = _entries(solution, folded, options, offsets, before, start)
    errors = [folded.held_out_error(entry.columns, entry.prior) for entry in entries]
    scores = [scores_of(error, problem) for error in errors]
    chosen, rivals, table = choose("model", [str(entry) for entry in entries], scores, shrinkage=True)
    values = [_embedded(folded.values(entry.columns, entry.prior), entry.columns, q + 1 + n) for entry in entries]
    best = entries[chosen]
    delays = [value[q] + value[q + 1 :] for value in values]
    delay, apart = delays[chosen], choice_covariance(delays[chosen], [delays[k] for k in rivals if k != chosen])
    if before is None:
        delay = delay + (options.delay or 0.0)
    spread = np.zeros((len(model.names), len(model.names)))
    spread[np.ix_(solution.kept, solution.kept)] = choice_covariance(
        values[chosen][:q], [values[k][:q] for k in rivals if k != chosen]
    )
    return ModelChoice(best.urdf_sigma, offsets, best.lateness, delay, (*offset_table, *table), spread, apart)


def fold_weights(solution: Estimate, options: InverseDynamicsOptions) -> FoldWeights:
    """Of the rows of the fit."""
    problem, whole = solution.fit.problem, solution.fit.weights
    return FoldWeights.of(problem, options.solver, solution.prior, folds_of(problem, options.folds), whole)


@dataclass(frozen=True, slots=True)
class _Entry:
    """One candidate of the model: its columns, among them those of delays, and what is known before the data."""

    columns: IntArray
    prior: Prior
    urdf_sigma: float
    lateness: str
    freedom: float

    def __str__(self) -> str:
        bodies = "" if np.isinf(self.urdf_sigma) else f"URDF +- {100.0 * self.urdf_sigma:.0f} %, "
        return f"{bodies}{self.lateness}"


_NO_DELAY, _ONE_DELAY, _OWN_DELAYS = "no delay", "one delay", "a delay each"


def _entries(
    solution: Estimate,
    folded: FoldedProblem,
    options: InverseDynamicsOptions,
    offsets: BoolArray,
    before: ModelChoice | None,
    moved: FloatArray,
) -> list[_Entry]:
    """All candidates, the simplest first: that with the fewest parameters that the data decide."""
    n, q = solution.delay.size, solution.kept.size
    delays: dict[str, list[int]] = {_NO_DELAY: [], _ONE_DELAY: [q], _OWN_DELAYS: list(range(q + 1, q + 1 + n))}
    sigmas = _sigmas(solution.model, options)
    if before is not None:
        delays, sigmas = {before.lateness: delays[before.lateness]}, (before.urdf_sigma,)
    elif options.delay is not None:
        delays = {_NO_DELAY: []}
    elif n == 1:
        del delays[_OWN_DELAYS]
    kept = np.flatnonzero(~(offset_columns(solution.model) & ~offsets)[solution.kept])
    entries = []
    for (lateness, extra), sigma in product(delays.items(), sigmas):
        columns = np.append(kept, extra).astype(np.intp)
        prior = model_prior(solution.model, solution.observations, sigma).select(solution.kept[kept])
        if extra:
            prior = prior.joined(delay_prior(moved if len(extra) == n else moved[:1]))
        entries.append(_Entry(columns, prior, sigma, lateness, folded.freedom(columns, prior)))
    return sorted(entries, key=lambda entry: entry.freedom)


def _choose_offsets(
    solution: Estimate, folded: FoldedProblem, options: InverseDynamicsOptions
) -> tuple[BoolArray, tuple[Candidate, ...]]:
    """Whether each constant torque (p,) predicts the torque of its joint better than none."""
    model, problem = solution.model, folded.problem
    optional = offset_columns(model)
    if options.offset is not None or solution.of_drive:  # of a drive, it is the offset between two readings
        return optional & (options.offset is not False), ()
    prior, kept = model_prior(model, solution.observations, solution.urdf_sigma).select(solution.kept), solution.kept
    left_out, table = choose_columns(
        problem,
        lambda places: folded.held_out_error(places, prior.select(places)),
        np.arange(kept.size),
        {int(place): model.columns[kept[place]].name for place in np.flatnonzero(optional[kept])},
    )
    offsets = optional.copy()
    offsets[kept[left_out]] = False
    return offsets, table


def _embedded(values: FloatArray, columns: IntArray, size: int) -> FloatArray:
    whole = np.zeros(size)
    whole[columns] = values
    return whole


def _sigmas(model: TorqueModel, options: InverseDynamicsOptions) -> Sequence[float]:
    if options.urdf_sigma is not None:
        return (options.urdf_sigma,)
    return URDF_SIGMAS if model.body.names else (np.inf,)


def offset_columns(model: TorqueModel) -> BoolArray:
    """Which parameters (p,) of a model are constant torques that its laws lack."""
    optional = [column.parameter.role is Role.OFFSET and not column.in_law for column in model.columns]
    return np.append(np.array(optional, dtype=bool), np.zeros(len(model.body.names), dtype=bool))
