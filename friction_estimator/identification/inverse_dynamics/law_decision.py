"""Which law of the registry predicts the friction of every joint best, by held-out errors (``law: auto``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from friction_estimator.identification.inverse_dynamics.decision import STANDSTILL, offset_columns
from friction_estimator.identification.inverse_dynamics.estimated_friction import usable_rows
from friction_estimator.identification.inverse_dynamics.estimation import TorqueModel, model_prior, reference_speeds
from friction_estimator.identification.inverse_dynamics.friction_columns import FrictionColumns, friction_sites
from friction_estimator.identification.inverse_dynamics.observation import Observation
from friction_estimator.identification.inverse_dynamics.options import InverseDynamicsOptions
from friction_estimator.identification.inverse_dynamics.refinement import USUAL_DELAY, measured_slope
from friction_estimator.identification.linear_problem import Prior, folds_of, select_rows, solve_values, with_columns
from friction_estimator.identification.result import Candidate
from friction_estimator.identification.rigid_body import RigidBody
from friction_estimator.identification.scoring import FoldedProblem, choose, scores_of
from friction_estimator.laws import linear_law_names, make_linear_law
from friction_estimator.laws.joint_laws import START_LAW, chosen_joints

_URDF_SIGMA = 1.0
"""Relative standard deviation of the URDF's inertial parameters while laws are compared."""
_ROUNDS = 4


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
    late = measured_slope(observations, usable)[:, None] * (problem.joint[:, None] == np.arange(n))
    problem = with_columns(problem, late, [f"{name}/delay" for name in names], "s")
    prior = model_prior(first, observations, _URDF_SIGMA).joined(Prior.of_std(np.full(n, USUAL_DELAY)))
    weights, common = solve_values(problem, options.solver, prior).weights, np.arange(problem.W.shape[1])
    if options.offset is False:
        common = np.delete(common, np.flatnonzero(offset_columns(first)))
    fold, starts = folds_of(problem, options.folds), [0]
    for model, size in zip(models[1:], sizes[1:], strict=True):
        starts.append(problem.W.shape[1])
        places = np.arange(n * size)
        columns = model.problem(observations, none, usable).W[:, places]
        problem = with_columns(problem, columns, [""] * places.size, "")
        prior = prior.joined(model_prior(model, observations, np.inf).select(places))
    folded = FoldedProblem(problem, weights, fold)
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
