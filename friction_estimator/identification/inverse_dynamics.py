"""The method `inverse_dynamics`: base inertial parameters and friction of all joints in one least squares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize_scalar

from friction_estimator.core.exceptions import ConfigError, InputError, choices
from friction_estimator.core.friction import laws_of_joints, linear_law_names
from friction_estimator.core.identification import Identification, ParameterTable, Provenance
from friction_estimator.core.types import BoolArray, FloatArray
from friction_estimator.identification.dead_zone import FIRST, choose_dead_zone, reference_speeds, usable_rows
from friction_estimator.identification.elimination import insignificant
from friction_estimator.identification.estimation import Estimate, estimate
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.friction_columns import OFFSET, FrictionColumns, friction_sites
from friction_estimator.identification.inverse_dynamics_options import DEFAULT, InverseDynamicsOptions
from friction_estimator.identification.joint_scores import joint_scores
from friction_estimator.identification.live_law import friction_samples, joint_friction, live_parameters
from friction_estimator.identification.load_velocity_friction import LOAD_VELOCITY, LoadVelocityFriction
from friction_estimator.identification.motion import Motion
from friction_estimator.identification.observation import Observation, observe, parallel_cutoff
from friction_estimator.identification.rigid_body import RigidBody
from friction_estimator.identification.torque_model import Friction, TorqueModel
from friction_estimator.identification.verdict import verdicts

METHOD = "inverse_dynamics"
_STRIBECK_RANGE = (0.003, 0.3)
"""Where q_s is searched, in reference speeds of the fastest joint; Hamon et al. 2010 found 0.03 / 1.2."""


def identify_inverse_dynamics(
    motions: Sequence[Motion],
    model: FixedBaseModel,
    options: InverseDynamicsOptions = DEFAULT,
    command: str = "",
) -> Identification:
    """Identify friction and inertia of a robot with a fixed base from its motor torques (Hamon et al. 2010).

    Parameters
    ----------
    motions : one an experiment, all with the joints of the model, each with its own payload
    model : of these joints
    options : what to estimate and how
    command : command line, for the record

    Raises
    ------
    ConfigError
        When a law is unknown or cannot be used here.
    InputError
        When a motion has no torque, or no joint moves enough.
    """
    solution, notes = estimate_inverse_dynamics(motions, model, options)
    friction = live_parameters(solution, _live_laws(model.joint_names, options))
    scores = joint_scores(solution, options.solver, options.folds)
    return Identification(
        friction=friction,
        parameters=parameter_table(solution),
        scores=scores,
        samples=friction_samples(solution),
        condition=solution.fit.condition,
        verdicts=verdicts(scores, friction, solution.fit.condition),
        provenance=Provenance(
            command,
            METHOD,
            tuple((motion.name, motion.digest) for motion in motions),
            tuple(f"{motion.name}: {choice}" for motion in motions for choice in motion.choices) + tuple(notes),
        ),
    )


def estimate_inverse_dynamics(
    motions: Sequence[Motion], model: FixedBaseModel, options: InverseDynamicsOptions = DEFAULT
) -> tuple[Estimate, list[str]]:
    """The estimate itself, and what was chosen from the data, in sentences; arguments and errors as above."""
    if not motions:
        raise InputError("there is no motion to identify from")
    if motions[0].joint_names != model.joint_names:
        raise InputError(
            f"the model has the joints {choices(model.joint_names)}, the data {choices(motions[0].joint_names)}"
        )
    body = RigidBody(model, options.body, options.coupling)
    cutoff = parallel_cutoff(motions) if options.cutoff_hz is None else options.cutoff_hz
    observations = observe(motions, body, cutoff)
    notes = [
        f"both sides of the equation pass a low-pass of {cutoff:.3g} Hz"
        + (", ten times the band that holds 99 % of the motion" if options.cutoff_hz is None else "")
    ]
    friction = _friction(model.joint_names, observations, options)
    usable, sentence = _usable(TorqueModel(body, friction), observations, options)
    notes.append(sentence)
    if isinstance(friction, LoadVelocityFriction) and options.stribeck_velocity is None and options.velocity_dependent:
        friction, sentence = _search_stribeck_velocity(body, friction, observations, usable, options)
        notes.append(sentence)
    torque_model = TorqueModel(body, friction)
    solution = estimate(torque_model, observations, usable, options.solver)
    if options.significance is not None:
        solution, sentence = _significant(solution, options)
        notes.append(sentence)
    return solution, notes


def parameter_table(solution: Estimate) -> ParameterTable:
    """All parameters of the fit, rigid-body ones beside the values of the URDF."""
    model = solution.model
    reference = np.append(np.full(model.friction_count + model.gain_count, np.nan), model.body.reference)
    return ParameterTable(
        solution.names,
        solution.fit.problem.units,
        solution.fit.values,
        np.sqrt(np.diagonal(solution.fit.covariance)),
        reference[solution.kept],
    )


def _live_laws(joint_names: Sequence[str], options: InverseDynamicsOptions) -> tuple[str, ...]:
    if options.law == LOAD_VELOCITY:
        return (options.live_law,) * len(joint_names)
    return laws_of_joints(options.law, options.joint_laws, joint_names)


def _friction(
    joint_names: Sequence[str], observations: Sequence[Observation], options: InverseDynamicsOptions
) -> Friction:
    names = tuple(joint_names)
    if options.law not in (LOAD_VELOCITY, *linear_law_names()):
        known = choices((LOAD_VELOCITY, *linear_law_names()))
        raise ConfigError(f"inverse dynamics cannot identify the law {options.law!r}; it can {known}")
    if options.temperature and not all("temperature" in one.motion.inputs for one in observations):
        raise InputError("friction over temperature needs the column 'temperature/<joint>' in every experiment")
    if options.law != LOAD_VELOCITY:
        sites = friction_sites(names, _live_laws(names, options), options.coupling)
        return FrictionColumns(names, sites, options.temperature, options.harmonics)
    if options.joint_laws or options.coupling or options.temperature or options.harmonics:
        raise ConfigError(
            f"{LOAD_VELOCITY!r} takes no joint_laws, coupling, temperature or harmonics; use a linear law"
        )
    plain = LoadVelocityFriction(names, np.ones(len(names)), options.velocity_dependent)
    start = (
        0.025 * reference_speeds(observations, plain)
        if options.stribeck_velocity is None
        else np.full(len(names), options.stribeck_velocity)
    )
    return LoadVelocityFriction(names, np.maximum(start, np.finfo(float).eps), options.velocity_dependent)


def _usable(
    model: TorqueModel, observations: Sequence[Observation], options: InverseDynamicsOptions
) -> tuple[list[BoolArray], str]:
    """Rows outside of the dead zone, and what it is."""
    reference = reference_speeds(observations, model.friction)
    if options.dead_zone is not None:
        zone = np.full(reference.size, options.dead_zone)
        why = "as told"
    else:
        zone = _chosen_dead_zone(model, observations, options, reference)
        why = "below it friction does not oppose the motion with half of F_c, or the joint stands"
    usable = usable_rows(observations, model.friction, zone)
    share = 1.0 - np.mean(np.concatenate(usable), axis=0)
    each = ", ".join(
        f"{name} {speed:.3g} ({100 * left_out:.0f} %)"
        for name, speed, left_out in zip(model.body.joint_names, zone, share, strict=False)
    )
    return usable, f"slow samples are left out, {why}: speed in rad/s (and share) {each}"


def _chosen_dead_zone(
    model: TorqueModel, observations: Sequence[Observation], options: InverseDynamicsOptions, reference: FloatArray
) -> FloatArray:
    """Fit without standing joints, then look which slow samples still show resistance; motors keep the first zone."""
    zone = FIRST * reference
    solution = estimate(model, observations, usable_rows(observations, model.friction, zone), options.solver)
    joints = range(len(model.body.joint_names))
    measured = np.column_stack([joint_friction(solution, joint, False).measured for joint in joints])
    velocity = np.concatenate([one.motion.velocity[one.filter.kept] for one in observations])
    zone[: len(joints)] = choose_dead_zone(np.abs(velocity), np.sign(velocity) * measured, reference[: len(joints)])
    return zone


def _search_stribeck_velocity(
    body: RigidBody,
    friction: LoadVelocityFriction,
    observations: Sequence[Observation],
    usable: Sequence[BoolArray],
    options: InverseDynamicsOptions,
) -> tuple[LoadVelocityFriction, str]:
    """q_s with the smallest residual (Hamon et al. 2010, §III.D), residuals in standard deviations of their joint."""
    reference = reference_speeds(observations, friction)

    def with_share(share: float) -> LoadVelocityFriction:
        speed = np.maximum(share * reference, np.finfo(float).eps)
        return LoadVelocityFriction(friction.joint_names, speed, True)

    def loss(logarithm: float) -> float:
        fit = estimate(TorqueModel(body, with_share(np.exp(logarithm))), observations, usable, options.solver).fit
        joints = np.unique(fit.problem.joint)
        return float(sum(np.log(np.mean(fit.residual[fit.problem.joint == joint] ** 2)) for joint in joints))

    grid = np.log(np.geomspace(*_STRIBECK_RANGE, 7))
    best = int(np.argmin([loss(point) for point in grid]))
    bracket = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    share = np.exp(minimize_scalar(loss, bounds=bracket, method="bounded", options={"xatol": 0.05}).x)
    chosen = with_share(float(share))
    speeds = ", ".join(f"{name} {v:.3g}" for name, v in zip(chosen.joint_names, chosen.stribeck_velocity, strict=True))
    return chosen, f"q_s has the smallest residual at {100 * share:.2g} % of each joint's speed, in rad/s: {speeds}"


def _significant(solution: Estimate, options: InverseDynamicsOptions) -> tuple[Estimate, str]:
    """Leave out parameters that are not significant; those of friction laws always stay."""
    assert options.significance is not None
    model = solution.model
    law = np.zeros(len(model.names), dtype=bool)
    law[: model.friction_count] = model.friction.in_law
    optional = np.array([f"/{OFFSET}" in name or "_beta_" in name for name in model.names])
    candidates = (~law | optional)[solution.kept]
    gone = insignificant(solution.fit.values, solution.fit.covariance, candidates, options.significance)
    if not gone:
        return solution, "all parameters are significant"
    allowed = np.zeros(len(model.names), dtype=bool)
    allowed[solution.kept] = True
    allowed[solution.kept[list(gone)]] = False
    names = ", ".join(solution.names[k] for k in gone)
    sentence = f"left out, because sigma is more than {options.significance:.0%} of the value: {names}"
    return estimate(model, solution.observations, solution.usable, options.solver, allowed), sentence
