"""Refinements of an estimate: Stribeck velocity, late torque, real bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize_scalar

from friction_estimator.identification.inverse_dynamics.estimation import (
    Estimate,
    TorqueModel,
    estimate,
    reference_speeds,
)
from friction_estimator.identification.inverse_dynamics.friction_columns import FrictionColumns, load_velocity_sites
from friction_estimator.identification.inverse_dynamics.observation import Observation
from friction_estimator.identification.joint_log import TEMPERATURE
from friction_estimator.identification.linear_problem import (
    LinearFit,
    LinearProblem,
    Prior,
    SolverOptions,
    with_columns,
)
from friction_estimator.identification.physical_bounds import nearest_physical
from friction_estimator.identification.rigid_body import RigidBody
from friction_estimator.identification.uncertainty import allowing_for_wrong_model, correlation_time, solve
from friction_estimator.types import BoolArray, FloatArray


def conditions(solution: Estimate) -> tuple[FloatArray, ...]:
    """Speed, position, load, time and, where recorded, temperature of the row's joint, each (r,).

    The load is that of the model, not the measured torque: groups of that would be chosen by its noise. A motor that
    moves several joints adds its own speed.
    """
    found = [
        _rows(solution, lambda one: np.abs(one.motion.velocity)),
        _rows(solution, lambda one: one.motion.position),
        _rows(solution, lambda one: solution.model.output_torque(one, solution.values)),
        solution.fit.problem.instants.astype(float),
    ]
    if all(TEMPERATURE in one.motion.inputs for one in solution.observations):
        found.append(np.nan_to_num(_rows(solution, lambda one: one.motion.inputs[TEMPERATURE])))
    return (*found, *_shared_motors(solution, found[0]))


def _shared_motors(solution: Estimate, speed: FloatArray) -> list[FloatArray]:
    """Speed (r,) of every motor that moves several joints, at their rows; that of the joint at the others."""
    friction = solution.model.friction
    found = []
    for direction in friction.directions[np.count_nonzero(friction.directions, axis=1) > 1]:

        def of_motor(one: Observation, direction: FloatArray = direction) -> FloatArray:
            return np.abs(one.motion.velocity @ direction)[:, None] * np.ones_like(one.motion.velocity)

        found.append(np.where(direction[solution.fit.problem.joint] != 0.0, _rows(solution, of_motor), speed))
    return found


def _rows(solution: Estimate, signal: Callable[[Observation], FloatArray]) -> FloatArray:
    """The usable rows (r,) of a signal (N, n) of every motion, in the order of the problem."""
    parts = zip(solution.observations, solution.usable, strict=True)
    return np.concatenate([signal(one)[one.filter.kept][mask] for one, mask in parts])


_ROUNDS = 4
_SIDE = 0.3
"""Step of ln q_s over which the residual shows how sharp its minimum is."""
_RANGE = (0.003, 0.3)
"""Where q_s is searched, in reference speeds of a joint; Hamon et al. 2010 found 0.03 / 1.2."""


def search_stribeck_velocity(
    body: RigidBody,
    friction: FrictionColumns,
    observations: Sequence[Observation],
    usable: Sequence[BoolArray],
    solver: SolverOptions,
) -> tuple[FrictionColumns, str]:
    """q_s with the smallest residual (Hamon et al. 2010, §III.D), residuals in standard deviations of their joint."""
    reference = reference_speeds(observations, friction)
    plain = replace(solver, robust=False)  # weights that jump from one trial to the next would hide the minimum

    def with_share(share: float, sigma: float = 0.0) -> FrictionColumns:
        speeds = np.maximum(share * reference, np.finfo(float).eps)
        stribeck = [(float(speed), sigma * float(speed)) for speed in speeds]
        return FrictionColumns(friction.joint_names, load_velocity_sites(friction.joint_names, stribeck))

    def fitted(logarithm: float) -> LinearFit:
        return estimate(
            TorqueModel(body, with_share(np.exp(logarithm))), observations, usable, plain, rounds=_ROUNDS
        ).fit

    def loss(logarithm: float) -> float:
        return _deviance(fitted(logarithm))

    grid = np.log(np.geomspace(*_RANGE, 7))
    best = int(np.argmin([loss(point) for point in grid]))
    bracket = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    found = minimize_scalar(loss, bounds=bracket, method="bounded", options={"xatol": 0.05})
    share, sides = np.exp(found.x), [loss(found.x + side * _SIDE) for side in (-1.0, 1.0)]
    spread = _spread(fitted(found.x), (sides[0] - 2.0 * found.fun + sides[1]) / _SIDE**2)
    chosen = with_share(float(share), spread)
    speeds = ", ".join(f"{site.name} {site.stribeck[0]:.3g}" for site in chosen.sites if site.stribeck is not None)
    return chosen, f"q_s has the smallest residual at {100 * share:.2g} % of each joint's speed, in rad/s: {speeds}"


def _deviance(fit: LinearFit) -> float:
    """Minus twice the logarithm of the likelihood (Gaussian, each joint with its own variance), for one row a joint."""
    joints = np.unique(fit.problem.joint)
    return float(sum(np.log(np.mean(fit.residual[fit.problem.joint == joint] ** 2)) for joint in joints))


def _spread(fit: LinearFit, curvature: float) -> float:
    """Standard deviation of ln q_s, from the curvature of the deviance; rows that residuals remember count once."""
    independent = fit.residual.size / np.unique(fit.problem.joint).size / correlation_time(fit.problem, fit.residual)
    widest = float(np.log(_RANGE[1] / _RANGE[0]) / np.sqrt(12.0))
    return min(float(np.sqrt(2.0 / (independent * curvature))), widest) if curvature > 0.0 else widest


USUAL_DELAY = 5e-3
"""Standard deviation of the delay that any recording may have: a bus cycle, a filter of 30 Hz in the drive [s]."""
_STEP = 0.05
"""Of the working period: where a step of friction lies between two samples is not known better."""


def delay_prior(moved: float = 0.0) -> Prior:
    """What is known of the delay before the data, counted from where torques were moved to [s]."""
    return Prior(np.array([-moved]), np.array([[USUAL_DELAY**-2]]))


def with_delay(problem: LinearProblem, slope: FloatArray) -> LinearProblem:
    """The problem with the delay of all torques as its last parameter; slope (r,) is the derivative by it [N m/s]."""
    return with_columns(problem, slope[:, None], ["delay"], "s")


def delay_variance(solution: Estimate, solver: SolverOptions, moved: bool) -> float:
    """Variance of the delay [s^2].

    Estimated together with all parameters, about the solution: ``tau(t - d) = tau(t) - d dtau/dt``. A late torque adds
    what is proportional to the change of gravity and inertia: ``d k dq`` where gravity has the stiffness k. In a single
    sine all of that is viscous friction; only the steps of dry friction, and motion at several frequencies, separate
    them.

    Parameters
    ----------
    moved : torques were moved by their delay; False: the delay that shows is part of what is not known
    """
    prior = solution.prior.joined(delay_prior())
    late = with_delay(solution.fit.problem, delay_column(solution))
    fit = allowing_for_wrong_model(solve(late, solver, prior), conditions(solution), prior)
    step = _STEP * max(one.motion.period for one in solution.observations)
    shown = 0.0 if moved else fit.values[-1]
    return float(fit.covariance[-1, -1] + shown**2 + step**2)


def delay_error(solution: Estimate) -> FloatArray:
    """Covariance (q, q) of the parameters of the fit that its unknown delay gives them."""
    root = np.sqrt(solution.fit.weights)
    W = solution.fit.problem.W * root[:, None]
    scale = np.maximum(np.linalg.norm(W, axis=0), np.finfo(float).tiny)
    known = solution.prior.rows[0] / scale
    right = np.append(delay_column(solution) * root, np.zeros(len(known)))
    moved = np.linalg.lstsq(np.vstack((W / scale, known)), right, rcond=None)[0] / scale
    return np.asarray(np.outer(moved, moved) * solution.delay_variance)


def allowing_for_delay(solution: Estimate) -> Estimate:
    """The estimate with a covariance that allows for its unknown delays."""
    return replace(solution, fit=replace(solution.fit, covariance=solution.fit.covariance + delay_error(solution)))


def shift_torque(observations: Sequence[Observation], seconds: float, command: bool = False) -> tuple[Observation, ...]:
    """The observations with torques at the times at which they act.

    Parameters
    ----------
    seconds : by which measured torques were recorded late, or those of drives act late [s]
    command : see :meth:`Observation.late_part`
    """
    if not seconds:
        return tuple(observations)
    shifted = []
    for one in observations:
        late, sign = one.late_part(command)
        moved = late.copy()
        for start, stop in one.filter.stretches:
            time = np.arange(stop - start) * one.motion.period
            if time.size > 1:
                moved[start:stop] = CubicSpline(time, late[start:stop])(np.clip(time - sign * seconds, 0.0, time[-1]))
        load = moved if late is one.load else one.load + moved - late
        commanded = moved if late is one.commanded else one.commanded
        shifted.append(replace(one, load=load, torque=load[one.filter.kept], commanded=commanded))
    return tuple(shifted)


def measured_slope(observations: Sequence[Observation], usable: Sequence[BoolArray]) -> FloatArray:
    """Derivative of the recorded torque by its delay, at every usable row (r,) [N m/s]."""
    parts = zip(observations, usable, strict=True)
    return np.concatenate([_slope(one, *one.late_part(False))[one.filter.kept][mask] for one, mask in parts])


def delay_column(solution: Estimate) -> FloatArray:
    """Derivative of the torque by its delay, behind the filter, at every row (r,) [N m/s]; the model's, without noise.

    The commanded part of a torque has no noise either.
    """
    parts = []
    for one, usable in zip(solution.observations, solution.usable, strict=True):
        late, sign = one.late_part(solution.late_command)
        if late is one.commanded:
            slope = _slope(one, late, sign)[one.filter.kept]
        else:
            slope = one.filter.apply(_slope(one, solution.model.torque(one, solution.values), sign))
        parts.append(slope[usable])
    return np.concatenate(parts)


def _slope(one: Observation, torque: FloatArray, sign: float) -> FloatArray:
    """Derivative (N, n) of a torque by time, stretch by stretch, times a sign."""
    slope = np.zeros_like(torque)
    for start, stop in one.filter.stretches:
        if stop - start > 1:
            slope[start:stop] = sign * np.gradient(torque[start:stop], one.motion.period, axis=0)
    return slope


def real_bodies(solution: Estimate) -> tuple[float, dict[str, float]]:
    """Share of the torque that the nearest bodies which exist leave, zero where noise explains how far they are.

    Standard parameters of bodies and drives, with the friction that goes with them, by name, come with it; none without
    unknown bodies. Base parameters become those of the bodies, and all others move by their covariance with them.
    """
    first, inertial, body = solution.model.friction_count, solution.inertial, solution.model.body
    if not inertial.any() or not body.link_reference.size:
        return 0.0, {}
    V, problem = solution.fit.covariance, solution.fit.problem
    bodies = nearest_physical(
        body.base.grouping[solution.kept[inertial] - first],
        solution.fit.values[inertial],
        V[np.ix_(inertial, inertial)],
        body.link_reference,
    )
    step = np.linalg.lstsq(V[np.ix_(inertial, inertial)], bodies.base - solution.fit.values[inertial], rcond=1e-12)[0]
    values = solution.fit.values + V[:, inertial] @ step
    values[inertial] = bodies.base
    values = np.where(problem.nonnegative, np.maximum(values, 0.0), values)
    left = float(np.linalg.norm(problem.y - problem.W @ values) / np.linalg.norm(problem.y))
    standard = dict(zip(body.standard_names, bodies.standard.tolist(), strict=True))
    standard |= {solution.model.names[k]: float(values[place]) for place, k in enumerate(solution.kept) if k < first}
    return 0.0 if bodies.plausible else left, standard
