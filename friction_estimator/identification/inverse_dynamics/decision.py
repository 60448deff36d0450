"""What inverse dynamics decides by held-out errors: treatment of the recordings, then offsets and the delay."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

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
from friction_estimator.identification.inverse_dynamics.refinement import (
    delay_column,
    delay_prior,
    measured_slope,
    with_delay,
)
from friction_estimator.identification.joint_log import JointLog, Treatment
from friction_estimator.identification.linear_problem import NormalEquations, Prior, folds_of
from friction_estimator.identification.recording import zero_phase as filters
from friction_estimator.identification.recording.sampling import FLAT, usual_period
from friction_estimator.identification.recording.zero_phase import (
    LADDER,
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
USUAL_URDF_SIGMA = 1.0
"""The same while nothing is chosen yet."""
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

Rows = Callable[[Treatment], NumberedRows]
"""Rows of all recordings after a treatment."""


def _choose_band(
    logs: Sequence[JointLog], rows: Rows, options: InverseDynamicsOptions
) -> tuple[float, tuple[Candidate, ...]]:
    """Band that predicts best [Hz], and the candidates.

    A wide band shows more of friction's steps, and more of what is in no model: vibrations, a base that moves. Bands
    are compared by the errors in the narrowest one.
    """
    usual = usual_treatment(logs, options.parallel_hz).band_hz
    if options.parallel_hz is not None:
        return usual, ()
    bands = [share * usual for share in SHARES]
    usable = [band for band in bands if _is_enough(rows, Treatment(min(FLAT * band, _highest(logs)), band))]
    if len(usable) < 2:
        return usual, ()
    tried = [
        Treatment(options.cutoff_hz or min(FLAT * band, _highest(logs)), band, source)
        for band in usable
        for source in _sources(logs, options)
    ]
    found, _ = _compared(rows, options, tried, usable[-1])
    chosen, _, table = choose("band", [f"{one}, up to {one.band_hz:.3g} Hz" for one in tried], found.scores)
    return tried[chosen].band_hz, table


def _is_enough(rows: Rows, treatment: Treatment) -> bool:
    """Whether a treatment leaves rows for all columns."""
    try:
        made = rows(treatment)
    except InputError:  # nothing is left between the edges
        return False
    return made.problem.y.size > _ROWS_A_COLUMN * made.problem.W.shape[1]


def _treatments(logs: Sequence[JointLog], band_hz: float, options: InverseDynamicsOptions) -> list[Treatment]:
    """All candidates of the motion; those that change it within the band come last, the lowest cut-off at the end."""
    cutoffs = sorted({min(factor * band_hz, _highest(logs)) for factor in LADDER})
    cutoffs.sort(key=lambda cutoff: cutoff if cutoff >= FLAT * band_hz else math.inf)
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
    logs: Sequence[JointLog], model: FixedBaseModel, options: InverseDynamicsOptions
) -> TreatmentChoice:
    """Band, then velocity source and cut-off that predict best, for all recordings and joints of a limb."""
    compared = replace(options, law=TREATMENT_LAW, joint_laws=(), harmonics=(), temperature=False, presliding=False)
    rows = lru_cache(maxsize=_KEPT)(lambda treatment: treated_rows(logs, model, compared, treatment))
    band, table = _choose_band(logs, rows, compared)
    candidates = _treatments(logs, band, options)
    if len(candidates) == 1:
        return TreatmentChoice(candidates[0], table)
    found, names = _compared(rows, compared, candidates, band)
    chosen, rivals, motions = choose("motion", [str(one) for one in candidates], found.scores)
    spread = choice_covariance(found.values[chosen], [found.values[k] for k in rivals if k != chosen])
    return TreatmentChoice(candidates[chosen], (*table, *motions), names, spread)


def _compared(
    rows: Rows, options: InverseDynamicsOptions, candidates: Sequence[Treatment], band_hz: float
) -> tuple[Comparison, tuple[str, ...]]:
    """Every candidate, fitted to all its rows and compared in one band; and the names of the parameters."""
    reference = rows(max(candidates, key=lambda one: one.band_hz))
    found = Comparison(reference, options.solver, options.folds)
    for candidate in candidates:
        same = candidate.band_hz == band_hz
        judged = None if same else rows(replace(candidate, band_hz=band_hz))
        found.add(rows(candidate), judged)
    return found, reference.problem.names


def treated_rows(
    logs: Sequence[JointLog], model: FixedBaseModel, options: InverseDynamicsOptions, treatment: Treatment
) -> NumberedRows:
    """Rows of all recordings after one treatment, with a delay, and with the URDF as a weak prior.

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
    prior = model_prior(torque, observations, USUAL_URDF_SIGMA).joined(delay_prior())
    problem = with_delay(problem, measured_slope(observations, usable))
    return NumberedRows(problem, prior, _row_times(logs, observations, usable), len(motors.names))


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
    left_out : (p,) constant torques, and changes with the position, that are not estimated
    delay : by which torques are late, zero where none predicts better [s]
    table : all candidates
    spread : (p, p) covariance of what changes among candidates that predict as well
    delay_variance : the same of the delay [s^2]
    """

    urdf_sigma: float
    left_out: BoolArray
    delay: float
    table: tuple[Candidate, ...]
    spread: FloatArray
    delay_variance: float


def choose_model(solution: Estimate, options: InverseDynamicsOptions) -> ModelChoice:
    """Optional columns, strength of the URDF's prior, and delay that predict best, one after the other.

    Parameters
    ----------
    solution : with all columns; torques not moved yet
    """
    model, q = solution.model, solution.kept.size
    problem = with_delay(solution.fit.problem, delay_column(solution))
    folded = FoldedProblem(problem, fold_weights(solution, options))
    left_out, column_table = _choose_columns(solution, folded, options)
    kept = np.flatnonzero(~left_out[solution.kept])
    both = kept if options.delay is not None else np.append(kept, q)
    sigmas = (URDF_SIGMAS if options.urdf_sigma is None else (options.urdf_sigma,)) if model.body.names else (np.inf,)
    priors = [
        model_prior(model, solution.observations, one).select(solution.kept).joined(delay_prior()) for one in sigmas
    ]

    def compared(
        decision: str, words: Sequence[str], tried: Sequence[tuple[IntArray, Prior]], shrinkage: bool
    ) -> tuple[int, FloatArray, FloatArray, tuple[Candidate, ...]]:
        """Number of the best columns with a prior, their values (q + 1,), covariance of the choice, and table."""
        values = np.zeros((len(tried), q + 1))
        for value, (columns, prior) in zip(values, tried, strict=True):
            value[columns] = folded.values(columns, prior.select(columns))
        errors = (folded.held_out_error(columns, prior.select(columns)) for columns, prior in tried)
        chosen, rivals, table = choose(decision, words, [scores_of(error, problem) for error in errors], 0.0, shrinkage)
        apart = choice_covariance(values[chosen], [values[k] for k in rivals if k != chosen])
        return chosen, values[chosen], apart, table

    words = ["" if np.isinf(one) else f"URDF +- {100.0 * one:.0f} %" for one in sigmas]
    k, _, apart, table = compared("bodies", words, [(both, prior) for prior in priors], shrinkage=True)
    late = [(kept, priors[k])] if both is kept else [(kept, priors[k]), (both, priors[k])]
    _, values, more, delay_table = compared("delay", ("none", "estimated")[: len(late)], late, shrinkage=False)
    apart = apart + more
    spread = np.zeros((len(model.names), len(model.names)))
    spread[np.ix_(solution.kept, solution.kept)] = apart[:q, :q]
    delay, tables = float(values[q]) + (options.delay or 0.0), (*column_table, *table, *delay_table)
    return ModelChoice(sigmas[k], left_out, delay, tables, spread, float(apart[q, q]))


def remaining_delay(solution: Estimate) -> float:
    """By how much torques are late after they were moved [s]."""
    problem = with_delay(solution.fit.problem, delay_column(solution))
    prior = solution.prior.joined(delay_prior(solution.delay))
    return float(NormalEquations.of(problem, solution.fit.weights).values(problem.nonnegative, prior)[-1])


def fold_weights(solution: Estimate, options: InverseDynamicsOptions) -> FoldWeights:
    """Of the rows of the fit."""
    problem, whole = solution.fit.problem, solution.fit.weights
    return FoldWeights.of(problem, options.solver, solution.prior, folds_of(problem, options.folds), whole)


def _choose_columns(
    solution: Estimate, folded: FoldedProblem, options: InverseDynamicsOptions
) -> tuple[BoolArray, tuple[Candidate, ...]]:
    """Which constant torques, and changes with the position, (p,) do not predict the torque of their joint better."""
    model, kept, offsets = solution.model, solution.kept, offset_columns(solution.model)
    optional = np.zeros_like(offsets)
    if options.harmonics is None:
        optional[: len(model.columns)] = [column.wave for column in model.columns]
    if options.offset is None and not solution.of_drive:  # of a drive, it is the offset between two readings
        optional |= offsets
    prior = model_prior(model, solution.observations, solution.urdf_sigma).select(kept)
    places, table = choose_columns(
        folded.problem,
        lambda tried: folded.held_out_error(tried, prior.select(tried)),
        np.arange(kept.size),
        {int(place): model.columns[kept[place]].name for place in np.flatnonzero(optional[kept])},
    )
    left_out = offsets & (options.offset is False)
    left_out[kept[places]] = True
    return left_out, table


def offset_columns(model: TorqueModel) -> BoolArray:
    """Which parameters (p,) of a model are constant torques that its laws lack."""
    optional = [column.parameter.role is Role.OFFSET and not column.in_law for column in model.columns]
    return np.append(np.array(optional, dtype=bool), np.zeros(len(model.body.names), dtype=bool))
