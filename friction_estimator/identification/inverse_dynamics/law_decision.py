"""Decisions by held-out errors: the law of every joint (``law: auto``), and what of a drive is late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from friction_estimator.identification.inverse_dynamics.decision import (
    USUAL_URDF_SIGMA,
    choose_model,
    fold_weights,
    offset_columns,
    remaining_delay,
)
from friction_estimator.identification.inverse_dynamics.estimated_friction import STANDSTILL, moving_rows, usable_rows
from friction_estimator.identification.inverse_dynamics.estimation import (
    Estimate,
    TorqueModel,
    estimate,
    model_prior,
    reference_speeds,
)
from friction_estimator.identification.inverse_dynamics.friction_columns import FrictionColumns, friction_sites
from friction_estimator.identification.inverse_dynamics.observation import Observation
from friction_estimator.identification.inverse_dynamics.options import (
    COMMAND,
    LATE,
    TORQUE,
    InverseDynamicsOptions,
    coupled_choices,
    friction_of_options,
)
from friction_estimator.identification.inverse_dynamics.refinement import (
    delay_prior,
    delay_variance,
    measured_slope,
    search_stribeck_velocity,
    shift_torque,
    with_delay,
)
from friction_estimator.identification.linear_problem import folds_of, select_rows, with_columns
from friction_estimator.identification.result import Candidate
from friction_estimator.identification.rigid_body import RigidBody
from friction_estimator.identification.scoring import (
    FoldedProblem,
    FoldWeights,
    choice_covariance,
    choose,
    scores_of,
)
from friction_estimator.laws import linear_law_names, make_linear_law
from friction_estimator.laws.joint_laws import START_LAW, chosen_joints
from friction_estimator.laws.published import LOAD_VELOCITY
from friction_estimator.types import BoolArray, FloatArray

_ROUNDS = 4
"""Rounds, at most, in which the laws of all joints, or the delays, are chosen anew."""


def choose_laws(
    body: RigidBody, names: Sequence[str], observations: Sequence[Observation], options: InverseDynamicsOptions
) -> tuple[InverseDynamicsOptions, tuple[Candidate, ...]]:
    """The options with a law for every joint that ``joint_laws`` does not name, and the candidates.

    Candidates are the linear laws that need no load, the one with fewest parameters first. Each is tried joint by
    joint, with the laws chosen so far at all others, until no choice changes.

    Parameters
    ----------
    names : (n) joints, or motors in their place
    """
    laws = [law for law in linear_law_names() if not make_linear_law(law).depends_on_load]
    laws.sort(key=lambda law: (law != START_LAW, len(make_linear_law(law).parameters)))
    n, sizes = len(names), [len(make_linear_law(law).parameters) for law in laws]
    models = [TorqueModel(body, FrictionColumns(tuple(names), friction_sites(names, (law,) * n))) for law in laws]
    first = models[0]
    usable = usable_rows(observations, first.friction, STANDSTILL * reference_speeds(observations, first.friction))
    none = [np.zeros_like(one.load) for one in observations]
    problem = first.problem(observations, none, usable)
    problem = with_delay(problem, measured_slope(observations, usable))
    prior = model_prior(first, observations, USUAL_URDF_SIGMA).joined(delay_prior())
    common, starts = np.arange(problem.W.shape[1]), [0]
    weights = FoldWeights.of(problem, options.solver, prior, folds_of(problem, options.folds))
    if options.offset is False:
        common = np.delete(common, np.flatnonzero(offset_columns(first)))
    for model, size in zip(models[1:], sizes[1:], strict=True):
        starts.append(problem.W.shape[1])
        places = np.arange(n * size)
        columns = model.problem(observations, none, usable).W[:, places]
        problem = with_columns(problem, columns, [""] * places.size, "")
        prior = prior.joined(model_prior(model, observations, np.inf).select(places))
    folded = FoldedProblem(problem, weights)
    site = [
        [start + joint * size + np.arange(size) for start, size in zip(starts, sizes, strict=True)]
        for joint in range(n)
    ]
    common = common[common >= n * sizes[0]]
    open_joints = [joint for joint in chosen_joints(options.joint_laws, names) if (problem.joint == joint).any()]
    chosen, tables = [0] * n, dict[int, tuple[Candidate, ...]]()
    for _ in range(_ROUNDS):  # a wrong law of one joint shifts the bodies, and with them the friction of others
        before = list(chosen)
        for joint in open_joints:
            others = [site[other][chosen[other]] for other in range(n) if other != joint]
            rows = problem.joint == joint
            own, scores = select_rows(problem, rows), []
            for own_columns in site[joint]:
                tried = np.concatenate([*others, own_columns, common])
                scores.append(scores_of(folded.held_out_error(tried, prior.select(tried))[rows], own))
            chosen[joint], _, tables[joint] = choose(f"{names[joint]}/law", laws, scores)
        if chosen == before:
            break
    entries = tuple(f"{names[joint]}={laws[chosen[joint]]}" for joint in open_joints)
    table = tuple(candidate for joint in open_joints for candidate in tables[joint])
    return replace(options, law=START_LAW, joint_laws=(*entries, *options.joint_laws)), table


_SETTLED = 1e-6
"""Change of a delay that no longer counts [s]."""


def decided(
    body: RigidBody, names: Sequence[str], observations: Sequence[Observation], options: InverseDynamicsOptions
) -> tuple[Estimate, list[str]]:
    """All parameters, with offsets and a delay as they predict best; torques are moved to when they act.

    Whether the feedback of a drive is as late as its command hardly shows: it changes viscous friction by kp, and the
    inertia by kd, times the delay, and what is of second order in the delay, which other errors hide. Errors do not
    decide it: the simplest timing is taken, and what all explanations differ by is in the covariance.
    """
    of_drive = observations[0].commanded is not None
    timings = _timings(observations, options) if of_drive else ((options.late or TORQUE, 0.0),)
    tried = [_estimated(body, names, observations, options, *timing) for timing in timings]
    return _best(tried, options) if of_drive else tried[0]


def _timings(observations: Sequence[Observation], options: InverseDynamicsOptions) -> list[tuple[str, float]]:
    """What of a drive may be late, and by how much commands are that it holds [s], the simplest first."""
    period = max(one.sampling for one in observations)
    holds = (0.0, 0.5 * period) if options.hold is None else (0.5 * period * options.hold,)
    late = LATE if options.late is None else (options.late,)
    return [(part, hold) for part in late for hold in (holds[:1] if part == COMMAND else holds)]


def _estimated(
    body: RigidBody,
    names: Sequence[str],
    observations: Sequence[Observation],
    options: InverseDynamicsOptions,
    late: str,
    hold: float,
) -> tuple[Estimate, list[str]]:
    """All parameters with one shape of friction, and one timing of the drives."""
    held = shift_torque(observations, hold, command=True)
    friction, zone, notes = _friction(body, names, held, options)
    model, usable = TorqueModel(body, friction), usable_rows(held, friction, zone)
    found = _settled(model, held, usable, replace(options, late=late))
    return replace(found, dead_zone=zone, hold=hold), notes


def _best(tried: Sequence[tuple[Estimate, list[str]]], options: InverseDynamicsOptions) -> tuple[Estimate, list[str]]:
    """The estimate with the simplest timing, the first one; its covariance has what the others differ by."""
    usable = [np.concatenate(one.usable) for one, _ in tried]
    rows = [np.flatnonzero(np.logical_and.reduce(usable)[own]) for own in usable]
    same = select_rows(tried[0][0].fit.problem, rows[0])  # torques differ by what is assumed late
    words, scores = [], []
    for (one, _), these in zip(tried, rows, strict=True):
        held = f", and held for {2e3 * one.hold:.3g} ms" * bool(one.hold)
        words.append(f"the {COMMAND if one.late_command else TORQUE} of the drive is late{held}")
        scores.append(scores_of(_held_out(one, options)[these], same))
    _, _, table = choose("drive", words, scores, np.inf)
    (solution, notes), others = tried[0], [one for one, _ in tried[1:]]
    apart = choice_covariance(solution.values, [one.values for one in others])
    spread = apart if solution.spread is None else solution.spread + apart
    late = solution.delay_variance + _delay_spread(solution, others, options)
    candidates = (*solution.candidates, *table)
    return replace(solution, candidates=candidates, spread=spread, delay_variance=late), notes


def _delay_spread(solution: Estimate, rivals: Sequence[Estimate], options: InverseDynamicsOptions) -> float:
    """Variance of what changes of the delay among estimates that predict as well [s^2].

    A drive that computes as rarely as was recorded holds its torque, which makes it half a period later than it is.
    """
    delays = [one.delay for one in rivals]
    if options.hold is None and solution.of_drive:
        half = 0.5 * max(one.sampling for one in solution.observations)
        delays += [one.delay - half for one in (solution, *rivals) if not one.hold]
    return float(np.mean(np.square(np.array(delays) - solution.delay))) if delays else 0.0


def _held_out(solution: Estimate, options: InverseDynamicsOptions) -> FloatArray:
    """Errors (r,) of the rows, predicted from the other folds."""
    folded = FoldedProblem(solution.fit.problem, fold_weights(solution, options))
    return folded.held_out_error(np.arange(solution.kept.size), solution.prior)


def _settled(
    model: TorqueModel,
    observations: Sequence[Observation],
    usable: Sequence[BoolArray],
    options: InverseDynamicsOptions,
) -> Estimate:
    """The estimate with the choices of the model, after its delay no longer changes."""
    command = options.late == COMMAND
    start = USUAL_URDF_SIGMA if options.urdf_sigma is None else options.urdf_sigma
    first = estimate(model, observations, usable, options.solver, urdf_sigma=start)
    choice = choose_model(replace(first, late_command=command), options)
    allowed, moved = ~choice.left_out, bool(choice.delay)
    delay, step = 0.0, choice.delay
    for _ in range(_ROUNDS if moved else 1):
        delay += step
        shifted = shift_torque(observations, delay, command)
        solution = estimate(model, shifted, usable, options.solver, allowed, urdf_sigma=choice.urdf_sigma)
        solution = replace(solution, late_command=command, delay=delay)
        step = remaining_delay(solution) if moved and options.delay is None else 0.0
        if abs(step) < _SETTLED:
            break
    late = delay_variance(solution, options.solver, moved or options.delay is not None) + choice.delay_variance
    return replace(solution, delay_variance=late, candidates=choice.table, spread=choice.spread)


def _friction(
    body: RigidBody, names: Sequence[str], observations: Sequence[Observation], options: InverseDynamicsOptions
) -> tuple[FrictionColumns, FloatArray, list[str]]:
    """Columns of friction with their shape, the dead zone, and why."""
    friction = friction_of_options(names, observations, options)
    notes = list(coupled_choices(friction, options))
    zone, sentence = moving_rows(friction, observations, options.dead_zone)
    notes.append(sentence)
    if options.law == LOAD_VELOCITY.name and options.stribeck_velocity is None:
        usable = usable_rows(observations, friction, zone)
        friction, sentence = search_stribeck_velocity(body, friction, observations, usable, options.solver)
        notes.append(sentence)
    return friction, zone, notes
