"""Drive gains: torque per unit of the recorded efforts, which bodies of known mass decide (Gautier and Briot 2014)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from friction_estimator.errors import ConfigError, InputError
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.estimation import (
    DATA_TOLERANCE,
    Estimate,
    TorqueModel,
    conditions,
    estimate,
    rows_in_motion,
)
from friction_estimator.identification.inverse_dynamics.friction_columns import FrictionColumns
from friction_estimator.identification.inverse_dynamics.observation import COARSE_RATE, Observation
from friction_estimator.identification.inverse_dynamics.options import InverseDynamicsOptions, observations_of
from friction_estimator.identification.joint_log import COMMANDED, JointLog
from friction_estimator.identification.linear_problem import (
    LinearFit,
    LinearProblem,
    Prior,
    SolverOptions,
    select_columns,
    select_rows,
    solve_values,
    with_columns,
)
from friction_estimator.identification.recording.motion import Motion
from friction_estimator.identification.result import GAIN_EXPLAINS, OTHER_GAIN, SURE_SIGMAS, VAGUE, Finding, Severity
from friction_estimator.identification.rigid_body import RigidBody, base_parameters
from friction_estimator.identification.uncertainty import allowing_for_wrong_model, considered_covariance, solve
from friction_estimator.laws.joint_laws import START_LAW
from friction_estimator.types import BoolArray, FloatArray

_Recording = TypeVar("_Recording", JointLog, Motion)

GAIN_UNIT = "N m per unit of effort"
_RELATIVE_STD = 1.0
"""Standard deviation of a gain before the data, relative to where it is counted from: the common gain at first."""
_MOST_ROUNDS = 20
_CONVERGED_STEP = 1e-4
"""Relative change of a gain that no longer counts."""
_OTHER_UNIT = 0.3
"""Logarithm of a gain, relative to those of other joints, that no tolerance of drives explains."""


def in_newton_metres(recording: _Recording, gains: Mapping[str, float]) -> _Recording:
    """Log or motion whose efforts are the torques of its drives [N m].

    Parameters
    ----------
    gains : torque per unit of the recorded effort, by joint; efforts of other joints stay
    """
    if recording.effort is None or not gains:
        return recording
    factors = np.array([gains.get(name, 1.0) for name in recording.joint_names])
    return replace(recording, effort=recording.effort * factors)


def refuse_drive_gains(recordings: Sequence[JointLog] | Sequence[Motion], options: InverseDynamicsOptions) -> None:
    """Refuse to estimate gains where nothing decides them.

    Raises
    ------
    ConfigError
        Naming the option that is missing, or that does not fit.
    """
    if options.body.payload_scale:
        raise ConfigError("drive_gains and payload_scale explain the same torque: leave payload_scale out")
    groups = () if options.coupling is None else options.coupling.groups
    if any(len(joints) > 1 for joints, _ in groups):
        raise ConfigError("drive_gains are those of single joints: with motors that move joints together, give torques")
    if any(COMMANDED in one.inputs for one in recordings):
        raise ConfigError("drive_gains are for recorded efforts, and these follow from commands, kp and kd")
    if not options.body.known_inertia and all(one.payload is None for one in recordings):
        raise ConfigError(
            "drive_gains needs a body of known mass: a payload in some of the experiments (option payload), or links "
            "whose inertia is that of the URDF (known_inertia)"
        )


def estimate_drive_gains(
    motions: Sequence[Motion], model: FixedBaseModel, options: InverseDynamicsOptions
) -> dict[str, float]:
    """Torque per unit of the recorded effort of every joint.

    The efforts m of joint j obey ``g_j m = D chi + P + f``, P the torque of known bodies. Gauss-Newton, with the
    predicted torque as the column of g_j: the measured one has noise, which would make gains too small.

    Parameters
    ----------
    motions : of the joints of the model
    model : of one limb

    Raises
    ------
    InputError
        When the efforts do not show the known bodies, or these are the same in all experiments.
    """
    body, observations = observations_of(motions, model, options, COARSE_RATE)
    return dict(zip(model.joint_names, _gains_of(body, observations, options.solver)[0].tolist(), strict=True))


def _gains_of(
    body: RigidBody, observations: Sequence[Observation], solver: SolverOptions, urdf_sigma: float | None = None
) -> tuple[FloatArray, Estimate]:
    """Gains (n,) of observations whose torques are the recorded efforts, and the estimate with them.

    Parameters
    ----------
    urdf_sigma : as of an estimate, where nothing but the URDF decides the gains; None: known bodies do
    """
    names = observations[0].motion.joint_names
    torque = TorqueModel(body, FrictionColumns(names, (START_LAW,) * len(names)))
    usable, gains = rows_in_motion(torque, observations), np.ones(len(names))
    if urdf_sigma is None:
        gains, urdf_sigma = _first_gains(torque, observations, usable, solver), np.inf
    for _ in range(_MOST_ROUNDS):
        moved = [replace(one, load=one.load * gains, torque=one.torque * gains) for one in observations]
        solution = estimate(torque, moved, usable, solver, urdf_sigma=urdf_sigma)
        step = solve_values(_with_gains(solution), solver, _gain_prior(solution)).values[-gains.size :]
        gains = gains * np.exp(step)
        if np.abs(step).max() < _CONVERGED_STEP:
            break
    return gains, solution


def _first_gains(
    model: TorqueModel, observations: Sequence[Observation], usable: Sequence[BoolArray], solver: SolverOptions
) -> FloatArray:
    """Gains (n,) to begin with: of every joint by itself, ``m = D chi + s P + f`` with s = 1/g.

    Joints that do not show it by themselves have the geometric mean of the others.

    Raises
    ------
    InputError
        When no joint shows the known bodies.
    """
    own = [replace(one, known=np.zeros_like(one.known)) for one in observations]
    problem = model.problem(own, [np.zeros_like(one.load) for one in own], usable)
    known = np.concatenate([one.filter.apply(one.known)[mask] for one, mask in zip(observations, usable, strict=True)])
    problem, scale = with_columns(problem, known[:, None], ["scale"], ""), problem.W.shape[1]
    gains, found = np.full(len(observations[0].motion.joint_names), np.nan), list[str]()
    for joint, name in enumerate(observations[0].motion.joint_names):
        rows = select_rows(problem, problem.joint == joint)
        kept = base_parameters(rows.names, rows.W, DATA_TOLERANCE).kept
        if scale in kept:
            fit = solve(select_columns(rows, kept), solver)
            share, sigma = float(fit.values[-1]), float(np.sqrt(fit.covariance[-1, -1]))
            found.append(f"{share:.2g} +- {sigma:.2g} ({name})")
            gains[joint] = 1.0 / share if share > SURE_SIGMAS * sigma else np.nan
    if not found:
        raise InputError(
            "every experiment has the same payload, which is then part of its link: record one without it, or with "
            "another mass"
        )
    if np.isnan(gains).all():
        raise InputError(
            f"the efforts hold the torque of the known bodies times {', '.join(found)}: they do not show the payload, "
            "or have the wrong sign; check its mass, frame and experiment, and lift it farther"
        )
    return np.where(np.isnan(gains), np.exp(np.nanmean(np.log(gains))), gains)


def _with_gains(solution: Estimate) -> LinearProblem:
    """The problem of the fit with the logarithm of the gain of every joint (n), from now on, as its last parameters.

    Its derivative is minus the torque that is predicted, at the rows of the joint.
    """
    parts, names = [], solution.observations[0].motion.joint_names
    for one, usable in zip(solution.observations, solution.usable, strict=True):
        torque = one.filter.apply(solution.model.torque(one, solution.values))
        parts.append((-torque[:, :, None] * np.eye(len(names)))[usable])
    return with_columns(solution.fit.problem, np.concatenate(parts), names, "")


def _gain_prior(solution: Estimate) -> Prior:
    """What is known before of the parameters of :func:`_with_gains`."""
    return solution.prior.joined(Prior.of_std(np.full(len(solution.observations[0].motion.joint_names), _RELATIVE_STD)))


def _gain_fit(solution: Estimate, solver: SolverOptions) -> LinearFit:
    """Fit of :func:`_with_gains`: how far the gains that the torques have now are off, and how sure that is."""
    prior = _gain_prior(solution)
    return allowing_for_wrong_model(solve(_with_gains(solution), solver, prior), conditions(solution), prior)


def _gain_sigma(solution: Estimate, solver: SolverOptions) -> FloatArray:
    """Standard deviation (n,) of the logarithms of the gains."""
    n = len(solution.observations[0].motion.joint_names)
    return np.asarray(np.sqrt(np.diagonal(_gain_fit(solution, solver).covariance)[-n:]))


def with_gain_errors(solution: Estimate, gains: Mapping[str, float], solver: SolverOptions) -> Estimate:
    """The estimate with the gains of its joints, and with their uncertainty in its covariance."""
    names, fit = solution.observations[0].motion.joint_names, _gain_fit(solution, solver)
    own = slice(-len(names), None)
    # a delay, or another treatment, was not known when the gains were estimated
    covariance = fit.covariance[own, own] + np.outer(fit.values[own], fit.values[own])
    spread = considered_covariance(solution.fit, solution.prior, fit.problem.W[:, own], covariance)
    return replace(
        solution,
        fit=replace(solution.fit, covariance=solution.fit.covariance + spread),
        gains=np.array([gains[name] for name in names]),
        gain_covariance=covariance,
    )


def about_drive_gains(solution: Estimate, options: InverseDynamicsOptions) -> list[Finding]:
    """Findings about drive gains: identified ones, or those that the data do not show.

    Without the option, they name joints whose known inertia shows another gain than one.
    """
    names = solution.observations[0].motion.joint_names
    if solution.gains is not None and solution.gain_covariance is not None:
        sigma = np.sqrt(np.diagonal(solution.gain_covariance))
        text = "friction is in N m: multiply efforts by the drive gains, in the live node too: {}"
        vague = "the known bodies do not show the drive gain: hold a payload so that this joint carries it"
        each = list(zip(names, solution.gains, sigma, strict=True))
        found = [Finding(Severity.NOTE, text, name, f"{gain:.4g} +- {gain * one:.2g}") for name, gain, one in each]
        return [*found, *(Finding(Severity.FAULT, vague, name) for name, _, one in each if one > VAGUE)]
    if solution.of_drive or options.body.payload_scale:
        return []
    carries = any(one.motion.payload is not None and one.motion.payload.mass > 0.0 for one in solution.observations)
    if not (carries or options.body.known_inertia):
        return _about_relative_gains(solution, options.solver)
    try:
        gains, scaled = _gains_of(solution.model.body, solution.observations, options.solver)
    except InputError:  # nothing decides them
        return []
    sigma = gains * _gain_sigma(scaled, options.solver)
    if not (np.abs(gains - 1.0) > np.maximum(SURE_SIGMAS * sigma, OTHER_GAIN * gains)).any():
        return []
    text = (
        "efforts are not the torques that move the known bodies but these times {}: currents, or other drive gains? "
        "drive_gains (--drive-gains) estimates them"
    )
    pairs = zip(names, gains, strict=True)
    return [Finding(Severity.DOUBT, text, name, f"{1.0 / gain:.3g}") for name, gain in pairs]


def _about_relative_gains(solution: Estimate, solver: SolverOptions) -> list[Finding]:
    """Joints whose efforts are no torques of the bodies that other joints move, too, unless they have another gain.

    Most of what the model leaves at a joint must go with the gains: it does not with wrong bodies or other friction.
    """
    names, weights = solution.observations[0].motion.joint_names, solution.fit.weights
    problem = _with_gains(solution)
    free = problem.y - problem.W @ solve_values(problem, solver, _gain_prior(solution)).values
    left, given = (np.bincount(problem.joint, weights * one**2, len(names)) for one in (free, solution.fit.residual))
    if not (left < (1.0 - GAIN_EXPLAINS) * given).any():
        return []
    gains, scaled = _gains_of(solution.model.body, solution.observations, solver, solution.urdf_sigma)
    sigma = _gain_sigma(scaled, solver)
    factors = gains / np.quantile(gains[sigma < VAGUE], 0.5, method="lower") if (sigma < VAGUE).any() else gains
    other = np.flatnonzero((np.abs(np.log(factors)) > np.maximum(_OTHER_UNIT, SURE_SIGMAS * sigma)) & (sigma < VAGUE))
    text = (
        "the efforts are torques of one robot only when some are multiplied, relative to the others, by {}: are they "
        "in another unit, or currents?"
    )
    return [Finding(Severity.DOUBT, text, names[k], f"{factors[k]:.2g}") for k in other]
