"""The inverse dynamic model with friction, and the estimate of its parameters by iterated least squares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.ndimage import maximum_filter1d
from scipy.optimize import minimize_scalar

from friction_estimator.errors import InputError
from friction_estimator.identification.inverse_dynamics.friction_columns import FrictionColumns
from friction_estimator.identification.inverse_dynamics.observation import Observation, stack
from friction_estimator.identification.joint_log import TEMPERATURE
from friction_estimator.identification.linear_problem import (
    LinearFit,
    LinearProblem,
    Prior,
    SolverOptions,
    select_columns,
    solve_values,
)
from friction_estimator.identification.result import Candidate
from friction_estimator.identification.rigid_body import RigidBody, base_parameters
from friction_estimator.identification.uncertainty import correlation_time, with_uncertainty
from friction_estimator.laws import Role
from friction_estimator.types import BoolArray, FloatArray, IntArray

_REFERENCE_QUANTILE = 0.95
"""Quantile of the speed that counts as the reference: nearly the largest speed of the joint."""
_RESTING_SHARE = 0.01
"""Share of the largest speed below which a joint is at rest."""


class TorqueModel:
    """``tau = tau_out + F(dq, tau_out) phi``, ``tau_out = columns chi + known`` (Hamon et al. 2010, eqs. 6, 17, 25).

    Parameters in the order friction, rigid body. The load that friction depends on is the torque behind friction, of
    the model itself; where it does, the model is not linear.

    Parameters
    ----------
    body : names of the rigid body's columns
    friction : columns of friction

    Attributes
    ----------
    body, friction : as given
    columns : (f) what the columns of friction mean
    names, units : (p)
    nonnegative : (p)
    of_load : (p) True for friction per load
    friction_count : f
    """

    def __init__(self, body: RigidBody, friction: FrictionColumns) -> None:
        self.body = body
        self.friction = friction
        self.columns = friction.described
        self.friction_count = len(self.columns)
        rigid = np.zeros(len(body.names), dtype=bool)
        self.names = tuple(column.name for column in self.columns) + body.names
        self.units = tuple(column.parameter.unit for column in self.columns) + body.units
        bounded = [column.parameter.bounds[0] >= 0.0 for column in self.columns]
        self.nonnegative: BoolArray = np.append(np.array(bounded, dtype=bool), rigid)
        of_load = [column.parameter.role is Role.LOAD for column in self.columns]
        self.of_load: BoolArray = np.append(np.array(of_load, dtype=bool), rigid)

    @property
    def depends_on_load(self) -> bool:
        """Whether columns change with the torque that the model predicts."""
        return bool(self.of_load.any())

    def friction_columns(self, observation: Observation, load: FloatArray) -> FloatArray:
        """Columns (N, n, f) of friction at the working rate, with this load (N, n) [N m]; see :meth:`output_torque`."""
        motion = observation.motion
        return self.friction.columns(motion.position, motion.velocity, load, motion.inputs)

    def torque(self, observation: Observation, values: FloatArray) -> FloatArray:
        """Predicted motor torque at the working rate, (N, n) [N m]: from the motion alone."""
        output = self.output_torque(observation, values)
        return output + self.friction_columns(observation, output) @ values[: self.friction_count]

    def output_torque(self, observation: Observation, values: FloatArray) -> FloatArray:
        """Torque behind friction, tau_out of eq. 6, at the working rate, (N, n) [N m]."""
        return observation.known + observation.rigid @ values[self.friction_count :]

    def problem(
        self,
        observations: Sequence[Observation],
        loads: Sequence[FloatArray],
        usable: Sequence[BoolArray],
        values: FloatArray | None = None,
    ) -> LinearProblem:
        """Linear least-squares problem of all motions; both sides of the equation pass the same filter.

        Parameters
        ----------
        loads : torques through the joints at the N instants of every motion, (N, n) [N m]
        usable : True for the K filtered instants of every motion that count, (K, n)
        values : (p,) about which friction that depends on the load is linear; None: it does not change with it

        Raises
        ------
        InputError
            When no row is usable.
        """
        if not any(mask.any() for mask in usable):
            raise InputError("no joint moves fast enough for its friction to show: there is no usable sample")
        columns, sides, f = [], [], self.friction_count
        for one, load in zip(observations, loads, strict=True):
            rigid, known = one.smooth, one.known
            if values is not None and self.depends_on_load:
                added = self.friction.of_load(one.motion.velocity, load, values[:f], one.rigid)
                rigid, known = rigid + one.filter.apply(added), known - added @ values[f:]
            columns.append(np.concatenate((one.filter.apply(self.friction_columns(one, load)), rigid), axis=2))
            sides.append(one.torque - one.filter.apply(known))
        return stack(observations, columns, sides, usable, self.names, self.units, self.nonnegative)


USUAL_URDF_SIGMA = 1.0
"""Relative standard deviation of the URDF's inertial parameters while nothing is chosen yet."""
DATA_TOLERANCE = 1e-6
"""Columns nearer than this, relative to their norm, to the span of others cannot be identified from any real data."""
_EMPTY_NORM = 1e-12
_ROUNDS = 15
_CONVERGED_CHANGE = 1e-5
"""Relative change of the predicted torque at which Gauss-Newton and the iteration of the load end."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimated parameters of a torque model."""

    model: TorqueModel  # whose parameters
    observations: tuple[Observation, ...]  # what they were estimated from
    usable: tuple[BoolArray, ...]  # (K, n) rows of every motion that were used
    # (N, n) torque of every motion that friction depends on: tau_out of the model itself [N m]
    loads: tuple[FloatArray, ...]
    fit: LinearFit  # of the columns that were kept, about the solution
    kept: IntArray  # (q) which of the model's p parameters the fit has; the others are zero
    prior: Prior  # of the parameters of the fit
    urdf_sigma: float  # relative standard deviation of the URDF's inertial parameters in the prior; infinite: not used
    names: tuple[str, ...]  # (q) with all that each holds, because the data cannot separate it
    values: FloatArray  # (p,)
    delay: float = 0.0  # by which all torques were late, and were moved back [s]
    delay_variance: float = 0.0  # of it; the covariance of the parameters allows for it [s^2]
    dead_zone: FloatArray = field(default_factory=lambda: np.zeros(0))  # of every place of friction [rad/s]
    candidates: tuple[Candidate, ...] = ()  # models that were compared
    # (p, p) covariance of what changes among models that predict as well; None: there was no choice
    spread: FloatArray | None = None
    # where a drive gets positions, its delay is that of the command; False: of its whole torque
    late_command: bool = False
    hold: float = 0.0  # by which commands are late, in addition, because drives hold them until the next one comes [s]
    # (n,) torque per unit of the recorded effort, that the torques have by now; None: efforts are torques
    gains: FloatArray | None = None
    # (n, n) of their logarithms; the covariance of the parameters allows for it
    gain_covariance: FloatArray | None = None

    @property
    def of_drive(self) -> bool:
        """Whether torques are those that a drive computes from commanded positions."""
        return self.observations[0].commanded is not None

    @property
    def delay_sigma(self) -> float:
        """Standard deviation of the delay [s]."""
        return float(np.sqrt(self.delay_variance))

    @property
    def inertial(self) -> BoolArray:
        """Which parameters of the fit (q,) are base parameters; a payload's scale is none."""
        first = self.model.friction_count
        return np.asarray((self.kept >= first) & (self.kept < first + len(self.model.body.base.names)))

    @property
    def covariance(self) -> FloatArray:
        """(p, p) covariance that allows for correlated residuals, zero for parameters that are not in the fit."""
        full = np.zeros((self.values.size, self.values.size))
        full[np.ix_(self.kept, self.kept)] = self.fit.covariance
        return full


def estimate(
    model: TorqueModel,
    observations: Sequence[Observation],
    usable: Sequence[BoolArray],
    solver: SolverOptions,
    allowed: BoolArray | None = None,
    rounds: int = _ROUNDS,
    urdf_sigma: float = np.inf,
) -> Estimate:
    """Estimate all parameters of a model.

    Friction that depends on the load takes the torque behind friction that the model itself predicts: with the motor
    torque on both sides, measured or predicted, it would explain itself. Gauss-Newton, from a model without load.

    Parameters
    ----------
    usable : (K, n) rows of every motion
    solver : how each linear problem is solved
    allowed : (p,) False for parameters that are held at zero; None: all are estimated
    rounds : at most, where friction depends on the load
    urdf_sigma : see :class:`Estimate`
    """
    permitted = np.ones(len(model.names), dtype=bool) if allowed is None else allowed
    prior = model_prior(model, observations, urdf_sigma)
    loads = [np.zeros_like(observation.load) for observation in observations]
    values = np.zeros(len(model.names))
    for turn in range(rounds if model.depends_on_load else 1):
        problem = model.problem(observations, loads, usable, values)
        columns = permitted & ~model.of_load if turn == 0 else permitted
        free = np.flatnonzero(columns & ~prior.informed)  # those with a prior always stay
        base = base_parameters([problem.names[k] for k in free], problem.W[:, free], DATA_TOLERANCE, _EMPTY_NORM)
        certain = np.flatnonzero(columns & prior.informed & problem.W.any(axis=0))
        kept = np.concatenate((free[base.kept], certain))
        order = np.argsort(kept)
        kept, every = kept[order], (*base.names, *(problem.names[k] for k in certain))
        names = tuple(every[k] for k in order)
        chosen = select_columns(problem, kept)
        solution = solve_values(chosen, solver, prior.select(kept))
        values = np.zeros(len(model.names))
        values[kept] = solution.values
        if model.depends_on_load:
            predicted = [model.output_torque(observation, values) for observation in observations]
            change = sum(np.square(new - old).sum() for new, old in zip(predicted, loads, strict=True))
            loads = predicted
            if turn and change < _CONVERGED_CHANGE**2 * sum(np.square(load).sum() for load in loads):
                break
    fit = with_uncertainty(chosen, solution)
    return Estimate(
        model,
        tuple(observations),
        tuple(usable),
        tuple(loads),
        fit,
        kept,
        prior.select(kept),
        urdf_sigma,
        names,
        values,
    )


def model_prior(model: TorqueModel, observations: Sequence[Observation], urdf_sigma: float) -> Prior:
    """Prior of all parameters (p): largest sizes of friction, and the bodies of the URDF."""
    friction = model.friction.prior_std(torque_sizes(observations), reference_speeds(observations, model.friction))
    rigid = len(model.body.names)
    if not rigid or np.isinf(urdf_sigma):
        return Prior.of_std(np.append(friction, np.full(rigid, np.inf)))
    return Prior.of_std(friction).joined(model.body.prior(urdf_sigma, drive_std(observations)))


def drive_std(observations: Sequence[Observation]) -> FloatArray:
    """Prior standard deviation (n,) of the drives' inertia about zero [kg m^2]: RMS torque over RMS acceleration."""
    torque, acceleration = torque_sizes(observations), _rms([one.motion.acceleration for one in observations])
    return np.divide(torque, acceleration, out=np.full(torque.size, np.inf), where=acceleration > 0.0)


def torque_sizes(observations: Sequence[Observation]) -> FloatArray:
    """RMS (n,) of the measured torques [N m]: how large friction, or a constant torque, can be before any data."""
    return _rms([one.torque for one in observations])


def _rms(signals: Sequence[FloatArray]) -> FloatArray:
    """RMS (n,) of signals (N, n) of all motions."""
    return np.asarray(np.sqrt(np.mean(np.concatenate(signals) ** 2, axis=0)))


def reference_speeds(observations: Sequence[Observation], friction: FrictionColumns) -> FloatArray:
    """Highest speed (k,) of every site of friction, single peaks left out [rad/s]."""
    speeds = np.abs(np.concatenate([friction.speeds(observation.motion.velocity) for observation in observations]))
    moving = speeds > _RESTING_SHARE * speeds.max(axis=0)
    return np.array(
        [
            np.quantile(site[moves], _REFERENCE_QUANTILE) if moves.any() else 0.0
            for site, moves in zip(speeds.T, moving.T, strict=True)
        ]
    )


STANDSTILL = 0.005
"""Share of the reference speed below which a joint stands: it may hold any friction up to breaking away."""


def usable_rows(
    observations: Sequence[Observation], friction: FrictionColumns, dead_zone: FloatArray
) -> list[BoolArray]:
    """Rows (K, n) of every motion whose torque was measured, and whose sites all were fast enough meanwhile.

    Parameters
    ----------
    dead_zone : (k,) of the sites [rad/s]
    """
    masks = []
    for observation in observations:
        slow = np.abs(friction.speeds(observation.motion.velocity)) <= dead_zone
        spread = np.zeros_like(slow)
        for start, stop in observation.filter.stretches:
            window = observation.filter.decimate + 1 - observation.filter.decimate % 2
            spread[start:stop] = maximum_filter1d(slow[start:stop], window, axis=0, mode="nearest")
        touched = spread[observation.filter.kept].astype(float) @ (friction.directions != 0.0)
        measured = (observation.load != 0.0).any(axis=0)  # a torque that is zero all along is none
        masks.append((touched == 0.0) & measured)
    return masks


def rows_in_motion(model: TorqueModel, observations: Sequence[Observation]) -> list[BoolArray]:
    """Rows (K, n) of every motion in which the joints do not stand."""
    return usable_rows(observations, model.friction, STANDSTILL * reference_speeds(observations, model.friction))


def moving_rows(
    friction: FrictionColumns, observations: Sequence[Observation], dead_zone: float | None
) -> tuple[FloatArray, str]:
    """Dead zone (k,) of every site of friction, as given or a part of its speed [rad/s]; with a sentence about it."""
    reference = reference_speeds(observations, friction)
    zone = STANDSTILL * reference if dead_zone is None else np.full(reference.size, dead_zone)
    share = 1.0 - np.mean(np.concatenate(usable_rows(observations, friction, zone)), axis=0)
    each = ", ".join(
        f"{name} {speed:.3g} ({100 * left_out:.0f} %)"
        for name, speed, left_out in zip(observations[0].motion.joint_names, zone, share, strict=False)
    )
    return zone, f"slow samples are left out: below, in rad/s (and share), {each}"


def conditions(solution: Estimate) -> tuple[FloatArray, ...]:
    """Speed, position, load, time and, where recorded, temperature of the row's joint, each (r,).

    The load is that of the model: groups of rows by the measured torque would be chosen by its noise. For each motor
    that moves several joints there is one more speed: that of the motor in the rows of these joints, that of the joint
    in all others.
    """

    def rows(signal: Callable[[Observation], FloatArray]) -> FloatArray:
        parts = zip(solution.observations, solution.usable, strict=True)
        return np.concatenate([signal(one)[one.filter.kept][mask] for one, mask in parts])

    speed = rows(lambda one: np.abs(one.motion.velocity))
    position = rows(lambda one: one.motion.position)
    load = rows(lambda one: solution.model.output_torque(one, solution.values))
    found = [speed, position, load, solution.fit.problem.instants.astype(float)]
    if all(TEMPERATURE in one.motion.inputs for one in solution.observations):
        found.append(np.nan_to_num(rows(lambda one: one.motion.inputs[TEMPERATURE])))
    for direction in solution.model.friction.directions:
        if np.count_nonzero(direction) > 1:

            def of_motor(one: Observation, direction: FloatArray = direction) -> FloatArray:
                return np.abs(one.motion.velocity @ direction)[:, None] * np.ones_like(one.motion.velocity)

            found.append(np.where(direction[solution.fit.problem.joint] != 0.0, rows(of_motor), speed))
    return tuple(found)


_FEW_ROUNDS = 4
_CURVATURE_STEP = 0.3
"""Step of ln q_s over which the residual shows how sharp its minimum is."""
_STRIBECK_RANGE = (0.003, 0.3)
"""Where q_s is searched, in reference speeds of a joint; Hamon et al. 2010 found 0.03 / 1.2."""


def search_stribeck_velocity(
    body: RigidBody,
    friction: FrictionColumns,
    observations: Sequence[Observation],
    usable: Sequence[BoolArray],
    solver: SolverOptions,
) -> tuple[FrictionColumns, str]:
    """Search the Stribeck velocity q_s with the smallest weighted residual (Hamon et al. 2010, §III.D).

    Parameters
    ----------
    body : columns of the rigid body
    friction : columns of friction, whose Stribeck velocities are replaced
    observations, usable : of all motions: both sides of the equation; (K, n) True for rows of the fit
    solver : how each linear problem is solved; without robust weights here

    Returns
    -------
    friction : columns with the Stribeck velocities found, one a site of friction, and their standard deviations [rad/s]
    sentence : the choice in words
    """
    reference = reference_speeds(observations, friction)
    plain = replace(solver, robust=False)  # weights that jump from one trial to the next would hide the minimum

    def with_share(share: float, sigma: float = 0.0) -> FrictionColumns:
        speeds = np.maximum(share * reference, np.finfo(float).eps).tolist()
        return replace(friction, stribeck=tuple((speed, sigma * speed) for speed in speeds))

    def fitted(logarithm: float) -> LinearFit:
        model = TorqueModel(body, with_share(np.exp(logarithm)))
        return estimate(model, observations, usable, plain, rounds=_FEW_ROUNDS).fit

    def deviance(logarithm: float) -> float:
        """Minus twice the logarithm of the likelihood, each joint with its own variance, for one row per joint."""
        fit = fitted(logarithm)
        joints = np.unique(fit.problem.joint)
        return float(sum(np.log(np.mean(fit.residual[fit.problem.joint == joint] ** 2)) for joint in joints))

    grid = np.log(np.geomspace(*_STRIBECK_RANGE, 7))
    best = int(np.argmin([deviance(point) for point in grid]))
    bracket = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    found = minimize_scalar(deviance, bounds=bracket, method="bounded", options={"xatol": 0.05})
    sides = [deviance(found.x + side * _CURVATURE_STEP) for side in (-1.0, 1.0)]
    curvature, fit = (sides[0] - 2.0 * found.fun + sides[1]) / _CURVATURE_STEP**2, fitted(found.x)
    spread = float(np.log(_STRIBECK_RANGE[1] / _STRIBECK_RANGE[0]) / np.sqrt(12.0))
    if curvature > 0.0:  # rows that residuals remember count once
        rows = fit.residual.size / np.unique(fit.problem.joint).size / correlation_time(fit.problem, fit.residual)
        spread = min(float(np.sqrt(2.0 / (rows * curvature))), spread)
    share = float(np.exp(found.x))
    chosen = with_share(share, spread)
    pairs = zip(chosen.joint_names, chosen.stribeck, strict=True)
    speeds = ", ".join(f"{name} {speed:.3g}" for name, (speed, _) in pairs)
    return chosen, f"q_s has the smallest residual at {100 * share:.2g} % of each joint's speed, in rad/s: {speeds}"
