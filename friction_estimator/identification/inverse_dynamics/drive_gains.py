"""Drive gains: torque per unit of the recorded efforts, which bodies of known mass decide (Gautier and Briot 2014)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from friction_estimator.errors import ConfigError, InputError, choices
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.estimation import (
    DATA_TOLERANCE,
    STANDSTILL,
    Estimate,
    TorqueModel,
    conditions,
    considered_covariance,
    estimate,
    reference_speeds,
    usable_rows,
)
from friction_estimator.identification.inverse_dynamics.friction_columns import FrictionColumns
from friction_estimator.identification.inverse_dynamics.observation import COARSE_RATE, Observation
from friction_estimator.identification.inverse_dynamics.options import InverseDynamicsOptions, observations_of
from friction_estimator.identification.joint_log import COMMANDED, JointLog, Motion
from friction_estimator.identification.linear_problem import (
    LinearProblem,
    Prior,
    SolverOptions,
    select_columns,
    select_rows,
    solve_values,
    with_columns,
)
from friction_estimator.identification.result import VAGUE, Finding
from friction_estimator.identification.rigid_body import RigidBody, base_parameters
from friction_estimator.identification.uncertainty import allowing_for_wrong_model, solve
from friction_estimator.laws.joint_laws import START_LAW
from friction_estimator.types import BoolArray, FloatArray

_Recording = TypeVar("_Recording", JointLog, Motion)

GAIN_UNIT = "N m per unit of effort"
_RELATIVE_STD = 1.0
"""Standard deviation of a gain before the data, relative to where it is counted from: the common gain at first."""
_SMALLEST_FACTOR, _LARGEST_FACTOR = 0.3, 3.0
"""Range of one Gauss-Newton step of a gain."""
_MOST_ROUNDS = 20
_CONVERGED_STEP = 1e-4
"""Relative change of a gain that no longer counts."""
_SURE_SIGMAS = 3.0
"""Standard deviations from zero."""
_OTHER_GAIN = 0.05
"""Relative error of a gain that is worth a sentence."""
_OTHER_UNIT = 0.3
"""Logarithm of a gain, relative to those of other joints, that no tolerance of drives explains."""
_GAIN_EXPLAINS = 0.5
"""Share of the squared residual of a joint that its gain must explain."""


def in_newton_metres(recording: _Recording, gains: Mapping[str, float]) -> _Recording:
    """A log or motion with the torques of its drives as efforts.

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
        With what is missing, or in the way.
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
    plain = replace(options, law=START_LAW, joint_laws=(), harmonics=(), temperature=False, presliding=False)
    body, observations = observations_of(motions, model, plain, COARSE_RATE)
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
    usable, gains = _moving_rows(torque, observations), np.ones(len(names))
    if urdf_sigma is None:
        gains, urdf_sigma = _first_gains(torque, observations, solver), np.inf
    for _ in range(_MOST_ROUNDS):
        moved = [replace(one, load=one.load * gains, torque=one.torque * gains) for one in observations]
        solution = estimate(torque, moved, usable, solver, urdf_sigma=urdf_sigma)
        step = solve_values(with_gains(solution), solver, gain_prior(solution)).values[-gains.size :]
        gains = gains * np.clip(1.0 + step, _SMALLEST_FACTOR, _LARGEST_FACTOR)
        if np.abs(step).max() < _CONVERGED_STEP:
            break
    return gains, solution


def _first_gains(model: TorqueModel, observations: Sequence[Observation], solver: SolverOptions) -> FloatArray:
    """Gains (n,) to begin with: of every joint by itself, ``m = D chi + s P + f`` with s = 1/g.

    Joints that do not show it by themselves have the geometric mean of the others.

    Raises
    ------
    InputError
        When no joint shows the known bodies.
    """
    usable = _moving_rows(model, observations)
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
            gains[joint] = 1.0 / share if share > _SURE_SIGMAS * sigma else np.nan
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


def _moving_rows(model: TorqueModel, observations: Sequence[Observation]) -> list[BoolArray]:
    return usable_rows(observations, model.friction, STANDSTILL * reference_speeds(observations, model.friction))


def with_gains(solution: Estimate) -> LinearProblem:
    """The problem of the fit with the relative error of the gain of every joint (n) as its last parameters."""
    names = solution.observations[0].motion.joint_names
    return with_columns(solution.fit.problem, gain_columns(solution), names, "")


def gain_columns(solution: Estimate) -> FloatArray:
    """Derivative (r, n) of the torque by the logarithm of each gain: minus the torque that is predicted [N m]."""
    parts = []
    for one, usable in zip(solution.observations, solution.usable, strict=True):
        torque = one.filter.apply(solution.model.torque(one, solution.values))
        parts.append((-torque[:, :, None] * np.eye(torque.shape[1]))[usable])
    return np.concatenate(parts)


def gain_prior(solution: Estimate) -> Prior:
    """What is known before of the parameters of :func:`with_gains`."""
    return solution.prior.joined(Prior.of_std(np.full(len(solution.observations[0].motion.joint_names), _RELATIVE_STD)))


def gain_errors(solution: Estimate, solver: SolverOptions) -> tuple[FloatArray, FloatArray]:
    """Relative errors (n,) of the gains that the torques have now, and their covariance (n, n)."""
    prior, n = gain_prior(solution), len(solution.observations[0].motion.joint_names)
    fit = allowing_for_wrong_model(solve(with_gains(solution), solver, prior), conditions(solution), prior)
    return fit.values[-n:], fit.covariance[-n:, -n:]


def with_gain_errors(solution: Estimate, gains: Mapping[str, float], solver: SolverOptions) -> Estimate:
    """The estimate with the gains of its joints, and with what is not known of them in its covariance."""
    error, covariance = gain_errors(solution, solver)
    covariance = covariance + np.outer(error, error)  # a delay, or another treatment, that was not known before
    spread = considered_covariance(solution, gain_columns(solution), covariance)
    return replace(
        solution,
        fit=replace(solution.fit, covariance=solution.fit.covariance + spread),
        gains=np.array([gains[name] for name in solution.observations[0].motion.joint_names]),
        gain_covariance=covariance,
    )


def about_drive_gains(solution: Estimate, options: InverseDynamicsOptions) -> list[Finding]:
    """Gains that were found, or not shown; and without the option, joints at which known bodies show another gain."""
    names = solution.observations[0].motion.joint_names
    if solution.gains is not None and solution.gain_covariance is not None:
        sigma = np.sqrt(np.diagonal(solution.gain_covariance))
        each = [
            f"{name} {gain:.4g} +- {gain * spread:.2g}"
            for name, gain, spread in zip(names, solution.gains, sigma, strict=True)
        ]
        text = f"friction is in N m: multiply efforts by the drive gains, in the live node too: {', '.join(each)}"
        hidden = [name for name, spread in zip(names, sigma, strict=True) if spread > VAGUE]
        vague = (
            f"the known bodies do not show the drive gain of {choices(hidden)}: hold a payload so that they carry it"
        )
        return [Finding(0.8, text), *[Finding(1.5, vague)] * bool(hidden)]
    if solution.of_drive or options.body.payload_scale:
        return []
    carries = any(one.motion.payload is not None and one.motion.payload.mass > 0.0 for one in solution.observations)
    if not (carries or options.body.known_inertia):
        return _about_relative_gains(solution, options.solver)
    try:
        gains, scaled = _gains_of(solution.model.body, solution.observations, options.solver)
    except InputError:  # nothing decides them
        return []
    sigma = gains * np.sqrt(np.diagonal(gain_errors(scaled, options.solver)[1]))
    if not (np.abs(gains - 1.0) > np.maximum(_SURE_SIGMAS * sigma, _OTHER_GAIN * gains)).any():
        return []
    factors = ", ".join(f"{name} {1.0 / gain:.3g}" for name, gain in zip(names, gains, strict=True))
    text = (
        f"efforts are not the torques that move the known bodies but these times {factors}: currents, or other drive "
        "gains? drive_gains (--drive-gains) estimates them"
    )
    return [Finding(1.3, text)]


def _about_relative_gains(solution: Estimate, solver: SolverOptions) -> list[Finding]:
    """Joints whose efforts are no torques of the bodies that other joints move, too, unless they have another gain.

    Most of what the model leaves at a joint must go with the gains: it does not with wrong bodies or other friction.
    """
    names, weights = solution.observations[0].motion.joint_names, solution.fit.weights
    problem = with_gains(solution)
    free = problem.y - problem.W @ solve_values(problem, solver, gain_prior(solution)).values
    left, given = (np.bincount(problem.joint, weights * one**2, len(names)) for one in (free, solution.fit.residual))
    if not (left < (1.0 - _GAIN_EXPLAINS) * given).any():
        return []
    gains, scaled = _gains_of(solution.model.body, solution.observations, solver, solution.urdf_sigma)
    sigma = np.sqrt(np.diagonal(gain_errors(scaled, solver)[1]))
    factors = gains / np.quantile(gains[sigma < VAGUE], 0.5, method="lower") if (sigma < VAGUE).any() else gains
    other = np.flatnonzero((np.abs(np.log(factors)) > np.maximum(_OTHER_UNIT, _SURE_SIGMAS * sigma)) & (sigma < VAGUE))
    each = ", ".join(f"{names[k]} {factors[k]:.2g}" for k in other)
    text = (
        f"the efforts are torques of one robot only when some are multiplied, relative to the others: {each}: are they "
        "in another unit, or currents?"
    )
    return [Finding(1.3, text)] * bool(other.size)
