"""What inverse dynamics decides by held-out errors: treatment, laws (``law: auto``), offsets, prior and delay."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from friction_estimator.errors import ConfigError, InputError, choices
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.delay import (
    delay_column,
    delay_prior,
    delay_variance,
    measured_slope,
    shift_torque,
    with_delay,
)
from friction_estimator.identification.inverse_dynamics.estimation import (
    USUAL_URDF_SIGMA,
    Estimate,
    TorqueModel,
    estimate,
    model_prior,
    moving_rows,
    rows_in_motion,
    search_stribeck_velocity,
    usable_rows,
)
from friction_estimator.identification.inverse_dynamics.friction_columns import FrictionColumns
from friction_estimator.identification.inverse_dynamics.observation import COARSE_RATE, Observation, thinning
from friction_estimator.identification.inverse_dynamics.options import (
    LATE,
    LATE_COMMAND,
    LATE_TORQUE,
    MEASURED_VELOCITY,
    MOTORS,
    VELOCITIES,
    InverseDynamicsOptions,
    coupled_choices,
    friction_of_options,
    live_laws,
    observations_of,
)
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.identification.linear_problem import (
    LinearProblem,
    NormalEquations,
    Prior,
    folds_of,
    with_columns,
)
from friction_estimator.identification.recording.motion import (
    Treatment,
    highest_cutoff,
    to_motions,
    tried_cutoffs,
    usual_treatment,
    velocity_is_complete,
)
from friction_estimator.identification.recording.sampling import FLAT, comparison_band, usual_period
from friction_estimator.identification.result import Candidate, better_law
from friction_estimator.identification.rigid_body import RigidBody
from friction_estimator.identification.scoring import (
    FoldedProblem,
    NumberedRows,
    Scores,
    choice_covariance,
    choose,
    compared,
)
from friction_estimator.laws import Role, linear_law_names, make_linear_law
from friction_estimator.laws.joint_laws import START_LAW, joints_without_own_law
from friction_estimator.laws.published import LOAD_VELOCITY
from friction_estimator.types import BoolArray, FloatArray, IntArray

_URDF_SIGMAS = (0.1, 0.3, USUAL_URDF_SIGMA, 3.0, 30.0)
"""Relative standard deviations of the URDF's inertial parameters; the last one leaves the decision to the data."""
_TREATMENT_LAW = "coulomb_viscous"
"""The law with which treatments are compared: any shape of friction needs the same velocity."""
_SHARES = (1.0, 0.5, 0.3)
"""Bands in which the model is fitted, in usual ones, that which leaves most of the torque first."""
_KEPT_TREATMENTS = 4
"""Treatments whose rows are kept: the next comparison begins with some of them."""
_ROWS_A_COLUMN = 5
"""Rows that a band must leave, in columns: fewer decide nothing."""
_MOST_TRAVEL = 0.99
"""Share of the variance of the position that a vibration of the joint is no part of."""
_VIBRATION_SLACK = math.log(1.5)
"""By how much the logarithm of the error must fall where vibrations are left out: a band always fits itself best."""
_MOST_ROUNDS = 4
"""Rounds, at most, in which the laws of all joints, or the delay, are chosen anew."""
_SETTLED_DELAY = 1e-6
"""Change of a delay that no longer counts [s]."""

TreatedRows = Callable[[Treatment], NumberedRows]
"""Rows of all recordings after a treatment."""


@dataclass(frozen=True, slots=True)
class TreatmentChoice:
    """The chosen treatment of recordings, and how far rival treatments change the parameters."""

    treatment: Treatment  # of all recordings
    table: tuple[Candidate, ...] = ()  # all candidates
    names: tuple[str, ...] = ()  # (p) parameters of the model of the comparison
    # (p, p) covariance of what changes among the treatments that predict as well; None: there was no choice
    spread: FloatArray | None = None


def choose_treatment(
    logs: Sequence[JointLog], model: FixedBaseModel, options: InverseDynamicsOptions
) -> TreatmentChoice:
    """Band, then velocity source and cut-off that predict best, for all recordings and joints of a limb.

    Candidates that change the motion within the band come last.
    """
    plain = replace(options, law=_TREATMENT_LAW, joint_laws=(), harmonics=(), temperature=False, presliding=False)
    rows = lru_cache(maxsize=_KEPT_TREATMENTS)(lambda treatment: _treated_rows(logs, model, plain, treatment))
    band, table = _choose_band(logs, rows, plain)
    cutoffs = tried_cutoffs(logs, band, options.cutoff_hz)
    cutoffs.sort(key=lambda cutoff: cutoff if cutoff >= FLAT * band else math.inf)
    candidates = [Treatment(cutoff, band, source) for cutoff in cutoffs for source in _sources(logs, options)]
    if len(candidates) == 1:
        return TreatmentChoice(candidates[0], table)
    scores, values, names = _compared(rows, plain, candidates, band)
    chosen, rivals, motions = choose("motion", [str(one) for one in candidates], scores)
    return TreatmentChoice(candidates[chosen], (*table, *motions), names, choice_covariance(values, chosen, rivals))


def _choose_band(
    logs: Sequence[JointLog], rows: TreatedRows, options: InverseDynamicsOptions
) -> tuple[float, tuple[Candidate, ...]]:
    """Band that predicts best [Hz], and the candidates.

    A wide band shows more of friction's steps, and more of what is in no model: vibrations, a base that moves. Bands
    are compared by the errors in the narrowest one; first the narrowest usual one with one that leaves vibrations out.
    """
    usual = usual_treatment(logs, options.parallel_hz).band_hz
    if options.parallel_hz:
        return usual, ()
    bands = [share * usual for share in _SHARES]
    slow = _SHARES[-1] * max(comparison_band(log, _MOST_TRAVEL) for log in logs)
    band, table = _best_band(logs, rows, options, (bands[-1], slow), _VIBRATION_SLACK)
    if band < bands[-1]:
        return band, table
    band, more = _best_band(logs, rows, options, bands)
    return band, (*table, *more)


def _best_band(
    logs: Sequence[JointLog],
    rows: TreatedRows,
    options: InverseDynamicsOptions,
    bands: Sequence[float],
    slack: float = 0.0,
) -> tuple[float, tuple[Candidate, ...]]:
    """Of falling bands that which predicts best [Hz], and the candidates."""
    highest = highest_cutoff(logs)
    usable = [band for band in bands if _is_enough(rows, Treatment(min(FLAT * band, highest), band))]
    if len(usable) < 2 or usable[-1] >= usable[0]:
        return bands[0], ()
    tried = [
        Treatment(options.cutoff_hz or min(FLAT * band, highest), band, source)
        for band in usable
        for source in _sources(logs, options)
    ]
    scores, _, _ = _compared(rows, options, tried, usable[-1])
    words = [f"{one}, up to {one.band_hz:.3g} Hz" for one in tried]
    chosen, _, table = choose("band", words, scores, slack)
    return tried[chosen].band_hz, table


def _is_enough(rows: TreatedRows, treatment: Treatment) -> bool:
    """Whether a treatment leaves rows for all columns."""
    try:
        made = rows(treatment)
    except InputError:  # nothing is left between the edges
        return False
    return made.problem.y.size > _ROWS_A_COLUMN * made.problem.W.shape[1]


def _sources(logs: Sequence[JointLog], options: InverseDynamicsOptions) -> tuple[bool, ...]:
    """Whether the measured velocity is used: both where it was recorded, or as given."""
    complete = all(velocity_is_complete(log) for log in logs)
    if options.velocity is None:
        return (False, True) if complete else (False,)
    if options.velocity not in VELOCITIES:
        raise ConfigError(f"velocity is {options.velocity!r}, expected one of {choices(VELOCITIES)}")
    if options.velocity == MEASURED_VELOCITY and not complete:
        raise InputError(
            "the measured velocity is wanted, and some joints have none at some samples: record it for every joint, or "
            "leave out the option velocity"
        )
    return (options.velocity == MEASURED_VELOCITY,)


def _compared(
    rows: TreatedRows, options: InverseDynamicsOptions, candidates: Sequence[Treatment], band_hz: float
) -> tuple[list[Scores], list[FloatArray], tuple[str, ...]]:
    """Every candidate, fitted to all its rows and scored in one band: scores, parameters, and their names."""
    reference = rows(max(candidates, key=lambda one: one.band_hz))
    pairs = ((rows(one), rows(replace(one, band_hz=band_hz))) for one in candidates)
    return *compared(reference, pairs, options.solver, options.folds), reference.problem.names


def _treated_rows(
    logs: Sequence[JointLog], model: FixedBaseModel, options: InverseDynamicsOptions, treatment: Treatment
) -> NumberedRows:
    """Rows of all recordings after one treatment, with a delay, and with the URDF as a weak prior."""
    grain = thinning(max(usual_period(log.time) for log in logs), treatment.band_hz, COARSE_RATE)
    motions = to_motions(logs, treatment, options.folds, grain=grain)
    body, observations = observations_of(motions, model, options, COARSE_RATE)
    torque = TorqueModel(body, friction_of_options(observations, options))
    problem, prior, usable = _late_problem(torque, observations)
    parts, before = [], 0
    for log, one, mask in zip(logs, observations, usable, strict=True):
        period, n = usual_period(log.time), mask.shape[1]
        sample = np.rint((one.motion.time[one.filter.kept] - log.time[0]) / period).astype(np.intp)
        parts.append(before + (sample[:, None] * n + np.arange(n))[mask])
        before += (int((log.time[-1] - log.time[0]) / period) + 2) * n
    return NumberedRows(problem, prior, np.concatenate(parts), len(observations[0].motion.joint_names))


def _late_problem(
    model: TorqueModel, observations: Sequence[Observation]
) -> tuple[LinearProblem, Prior, list[BoolArray]]:
    """Rows without load, with a delay, the URDF as a weak prior, and which samples are rows."""
    usable = rows_in_motion(model, observations)
    problem = model.problem(observations, [np.zeros_like(one.load) for one in observations], usable)
    prior = model_prior(model, observations, USUAL_URDF_SIGMA).joined(delay_prior())
    return with_delay(problem, measured_slope(observations, usable)), prior, usable


def choose_laws(
    body: RigidBody, observations: Sequence[Observation], options: InverseDynamicsOptions
) -> tuple[InverseDynamicsOptions, tuple[Candidate, ...]]:
    """The options with a law for every joint that ``joint_laws`` does not name, and the candidates."""
    names = observations[0].motion.joint_names
    joints = joints_without_own_law(options.joint_laws, names)
    tables = _compared_laws(body, observations, options, joints, _MOST_ROUNDS)
    entries = (f"{names[joint]}={one.settings}" for joint, table in tables.items() for one in table if one.chosen)
    chosen = replace(options, law=START_LAW, joint_laws=(*entries, *options.joint_laws))
    return chosen, tuple(candidate for table in tables.values() for candidate in table)


def better_laws(
    body: RigidBody, observations: Sequence[Observation], options: InverseDynamicsOptions
) -> dict[str, tuple[Candidate, Candidate]]:
    """By joint, the law that predicts unseen data clearly better than the given one, and that one (`better_law`)."""
    names = observations[0].motion.joint_names
    if options.law == LOAD_VELOCITY.name or options.coupled_friction != MOTORS:
        return {}  # not compared with laws that are linear, one a joint
    tables, given = _compared_laws(body, observations, options, range(len(names))), live_laws(names, options)
    return {names[joint]: one for joint, table in tables.items() if (one := better_law(table, given[joint]))}


def _compared_laws(
    body: RigidBody,
    observations: Sequence[Observation],
    options: InverseDynamicsOptions,
    joints: Sequence[int],
    rounds: int = 0,
) -> dict[int, tuple[Candidate, ...]]:
    """Linear laws of some joints, compared by held-out errors joint by joint, the one with fewest parameters first.

    Their load is the torque behind friction of the model with the simplest law.

    Parameters
    ----------
    rounds : at most, in which a joint takes the law that is best for it before the next one is looked at, until no
        choice changes; 0: all others have the laws of the options
    """
    names = observations[0].motion.joint_names
    laws = sorted(linear_law_names(), key=lambda law: (law != START_LAW, len(make_linear_law(law).parameters)))
    n, sizes = len(names), [len(make_linear_law(law).parameters) for law in laws]
    models = [TorqueModel(body, FrictionColumns(names, (law,) * n)) for law in laws]
    problem, prior, usable = _late_problem(models[0], observations)
    common, starts = np.arange(problem.W.shape[1]), [0]
    folded = FoldedProblem.from_problem(problem, options.solver, prior, folds_of(problem, options.folds))
    if options.offset is False:
        common = np.delete(common, np.flatnonzero(offset_columns(models[0])))
    values = np.zeros(len(problem.names))
    values[common] = folded.values(common, prior)
    loads = [models[0].output_torque(one, values[: len(models[0].names)]) for one in observations]
    for model, size in zip(models[1:], sizes[1:], strict=True):
        starts.append(problem.W.shape[1])
        places = np.arange(n * size)
        columns = model.problem(observations, loads, usable).W[:, places]
        problem = with_columns(problem, columns, [""] * places.size, "")
        prior = prior.joined(model_prior(model, observations, np.inf).select(places))
    folded = folded.like(problem)
    site = [
        [start + joint * size + np.arange(size) for start, size in zip(starts, sizes, strict=True)]
        for joint in range(n)
    ]
    common, tables = common[common >= n * sizes[0]], dict[int, tuple[Candidate, ...]]()
    chosen = [laws.index(law) for law in live_laws(names, options)]
    for _ in range(max(rounds, 1)):  # a wrong law of one joint shifts the bodies, and with them the friction of others
        before = list(chosen)
        for joint in (one for one in joints if (problem.joint == one).any()):
            others = [site[other][chosen[other]] for other in range(n) if other != joint]
            tried = [(np.concatenate([*others, own, common]), prior) for own in site[joint]]
            best, _, tables[joint] = folded.choose(f"{names[joint]}/law", laws, tried, problem.joint == joint)
            chosen[joint] = best if rounds else chosen[joint]
        if chosen == before:
            break
    return tables


def decided(
    body: RigidBody, observations: Sequence[Observation], options: InverseDynamicsOptions
) -> tuple[Estimate, list[str]]:
    """Estimate all parameters, with the offsets and the delay that predict best; with the choices in sentences.

    Torques are shifted to the times at which they act. The data hardly show whether the feedback of a drive is as late
    as its command: the difference changes viscous friction by kp, and inertia by kd, times the delay; effects of second
    order in the delay are hidden by other errors. So the simplest timing is taken, and the covariance includes the
    difference between the possible ones.
    """
    tried = [_timed(body, observations, options, *timing) for timing in _timings(observations, options)]
    (solution, notes), others = tried[0], [one for one, _ in tried[1:]]
    apart = choice_covariance([one.values for one, _ in tried], 0, range(len(tried)))
    spread = apart if solution.spread is None else solution.spread + apart
    delays = [one.delay for one in others]
    if options.hold is None and solution.of_drive:
        # a drive that computes as rarely as was recorded holds its torque: half a period later than it is
        half = 0.5 * max(one.sampling for one in observations)
        delays += [one.delay - half for one in (solution, *others) if not one.hold]
    late = float(np.mean(np.square(np.array(delays) - solution.delay))) if delays else 0.0
    return replace(solution, spread=spread, delay_variance=solution.delay_variance + late), notes


def _timings(observations: Sequence[Observation], options: InverseDynamicsOptions) -> list[tuple[str, float]]:
    """What of a drive may be late, and by how much commands are that it holds [s], the simplest first."""
    if observations[0].commanded is None:
        return [(LATE_TORQUE, 0.0)]
    period = max(one.sampling for one in observations)
    holds = (0.0, 0.5 * period) if options.hold is None else (0.5 * period * options.hold,)
    late = LATE if options.late is None else (options.late,)
    return [(part, hold) for part in late for hold in (holds[:1] if part == LATE_COMMAND else holds)]


def _timed(
    body: RigidBody, observations: Sequence[Observation], options: InverseDynamicsOptions, late: str, hold: float
) -> tuple[Estimate, list[str]]:
    """All parameters with one timing of the drives, after the delay no longer changes, and why."""
    held, command = shift_torque(observations, hold, command=True), late == LATE_COMMAND
    friction = friction_of_options(held, options)
    zone, sentence = moving_rows(friction, held, options.dead_zone)
    notes, usable = [*coupled_choices(friction, options), sentence], usable_rows(held, friction, zone)
    if options.law == LOAD_VELOCITY.name and options.stribeck_velocity is None:
        friction, sentence = search_stribeck_velocity(body, friction, held, usable, options.solver)
        notes.append(sentence)
    model, start = TorqueModel(body, friction), USUAL_URDF_SIGMA if options.urdf_sigma is None else options.urdf_sigma
    first = replace(estimate(model, held, usable, options.solver, urdf_sigma=start), late_command=command)
    left_out, choice = _choose_model(first, options)
    moved, delay, step = bool(choice.delay), 0.0, choice.delay
    for _ in range(_MOST_ROUNDS):
        delay += step
        shifted = shift_torque(held, delay, command)
        solution = estimate(model, shifted, usable, options.solver, ~left_out, urdf_sigma=choice.urdf_sigma)
        solution = replace(solution, late_command=command, delay=delay)
        if not moved or options.delay is not None:
            break
        problem = with_delay(solution.fit.problem, delay_column(solution))  # how late torques are after they were moved
        prior, left = (
            solution.prior.joined(delay_prior(delay)),
            NormalEquations.from_problem(problem, solution.fit.weights),
        )
        step = float(left.values(problem.nonnegative, prior)[-1])
        if abs(step) < _SETTLED_DELAY:
            break
    variance = delay_variance(solution, options.solver, moved or options.delay is not None) + choice.delay_variance
    candidates, spread = choice.candidates, choice.spread
    found = replace(solution, delay_variance=variance, candidates=candidates, spread=spread, dead_zone=zone, hold=hold)
    return found, notes


def _choose_model(solution: Estimate, options: InverseDynamicsOptions) -> tuple[BoolArray, Estimate]:
    """Optional columns, strength of the URDF's prior, and delay that predict best, one after the other.

    Parameters
    ----------
    solution : with all columns; torques not moved yet

    Returns
    -------
    left_out, choice : (p,) constant torques, and changes with the position, that are not estimated; and the estimate
        with the strength of the prior, the delay, the candidates, and what changes among those that predict as well
    """
    model, kept, q = solution.model, solution.kept, solution.kept.size
    problem, fit = with_delay(solution.fit.problem, delay_column(solution)), solution.fit
    fold = folds_of(fit.problem, options.folds)
    folded = FoldedProblem.from_problem(fit.problem, options.solver, solution.prior, fold, fit.weights).like(problem)
    sigmas = (_URDF_SIGMAS if options.urdf_sigma is None else (options.urdf_sigma,)) if model.body.names else (np.inf,)
    priors = [model_prior(model, solution.observations, one).select(kept).joined(delay_prior()) for one in sigmas]
    offsets = offset_columns(model)
    optional = np.zeros_like(offsets)
    if options.harmonics is None:
        optional[: len(model.columns)] = [column.wave for column in model.columns]
    if options.offset is None and not solution.of_drive:  # of a drive, it is the offset between two readings
        optional |= offsets
    names = {int(place): model.columns[kept[place]].name for place in np.flatnonzero(optional[kept])}
    places, table = folded.choose_columns(np.arange(q), solution.prior.joined(delay_prior()), names)
    left_out = offsets & (options.offset is False)
    left_out[kept[places]] = True
    still = np.flatnonzero(~left_out[kept])
    both = still if options.delay is not None else np.append(still, q)

    def choose_among(
        decision: str, words: Sequence[str], tried: Sequence[tuple[IntArray, Prior]], shrinkage: bool
    ) -> tuple[int, FloatArray, FloatArray, tuple[Candidate, ...]]:
        """Number of the best columns with a prior, their values (q + 1,), covariance of the choice, and table."""
        values = np.zeros((len(tried), q + 1))
        for value, (columns, prior) in zip(values, tried, strict=True):
            value[columns] = folded.values(columns, prior)
        chosen, rivals, found = folded.choose(decision, words, tried, shrinkage=shrinkage)
        return chosen, values[chosen], choice_covariance(list(values), chosen, rivals), found

    words = ["" if np.isinf(one) else f"URDF +- {100.0 * one:.0f} %" for one in sigmas]
    k, _, apart, bodies = choose_among("bodies", words, [(both, prior) for prior in priors], shrinkage=True)
    late = [(still, priors[k])] if both is still else [(still, priors[k]), (both, priors[k])]
    _, values, more, delays = choose_among("delay", ("none", "estimated")[: len(late)], late, shrinkage=False)
    apart = apart + more
    spread = np.zeros((len(model.names), len(model.names)))
    spread[np.ix_(kept, kept)] = apart[:q, :q]
    return left_out, replace(
        solution,
        urdf_sigma=sigmas[k],
        delay=float(values[q]) + (options.delay or 0.0),
        delay_variance=float(apart[q, q]),
        candidates=(*table, *bodies, *delays),
        spread=spread,
    )


def offset_columns(model: TorqueModel) -> BoolArray:
    """Which parameters (p,) of a model are constant torques that its laws lack."""
    optional = [column.parameter.role is Role.OFFSET and not column.in_law for column in model.columns]
    return np.append(np.array(optional, dtype=bool), np.zeros(len(model.body.names), dtype=bool))
