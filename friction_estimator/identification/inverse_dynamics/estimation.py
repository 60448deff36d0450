"""The inverse dynamic model with friction, and the estimate of its parameters by iterated least squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.errors import InputError
from friction_estimator.identification.inverse_dynamics.friction_columns import FrictionColumns, LoadVelocityFriction
from friction_estimator.identification.inverse_dynamics.observation import Observation, stack
from friction_estimator.identification.regression.least_squares import SolverOptions, solve
from friction_estimator.identification.regression.linear_problem import LinearFit, LinearProblem, select_columns
from friction_estimator.identification.rigid_body.base_parameters import base_parameters
from friction_estimator.identification.rigid_body.rigid_body_columns import RigidBody
from friction_estimator.types import BoolArray, FloatArray, IntArray

Friction = FrictionColumns | LoadVelocityFriction


_REFERENCE = 0.95
"""Quantile of the speed that counts as the reference: the edge of what the joint did in earnest."""
_RESTING = 0.01
"""Speed that says nothing about what is slow, in the largest one."""


@dataclass(frozen=True, slots=True)
class Linearised:
    """The model about one set of values, ``torque = columns @ parameters + known`` at every sample.

    Attributes
    ----------
    columns : (N, n, p)
    known : (N, n) [N m]
    """

    columns: FloatArray
    known: FloatArray


class TorqueModel:
    """``tau = tau_out + F(dq, tau_out) phi``, ``tau_out = columns chi + known`` (Hamon et al. 2010, eqs. 6, 17, 25).

    Parameters in the order friction, gains, rigid body. The load that friction depends on is the torque behind
    friction, of the model itself; where it does, the model is not linear. F of ``load_velocity`` is split into gains of
    the load and the rest.

    Parameters
    ----------
    body : names of the rigid body's columns
    friction : columns of friction

    Attributes
    ----------
    body, friction : as given
    names, units : (p)
    nonnegative : (p)
    prior_std : (p) infinite where nothing is known before the data
    friction_count, gain_count : how many of the parameters are friction, and gains
    """

    def __init__(self, body: RigidBody, friction: Friction) -> None:
        self.body = body
        self.friction = friction
        described = [friction.described]
        if isinstance(friction, LoadVelocityFriction):
            described.append(friction.gains_described)
        b = len(body.names)
        self.friction_count = len(friction.described.names)
        self.gain_count = sum(len(part.names) for part in described[1:])
        self.names = tuple(name for part in described for name in part.names) + body.names
        self.units = tuple(unit for part in described for unit in part.units) + body.units
        self.nonnegative: BoolArray = np.concatenate([part.nonnegative for part in described] + [np.zeros(b, bool)])
        self.prior_std: FloatArray = np.concatenate([part.prior_std for part in described] + [np.full(b, np.inf)])

    @property
    def load_dependent(self) -> bool:
        """Whether columns change with the torque that the model predicts."""
        return bool(np.isfinite(self.prior_std).any())

    def linearise(self, observation: Observation, load: FloatArray, values: FloatArray | None = None) -> Linearised:
        """Columns at the working rate about ``values``.

        Parameters
        ----------
        load : (N, n) torque that the columns of friction depend on, see :meth:`output_torque` [N m]
        values : (p,) needed where friction depends on the load; None: it does not change with it
        """
        motion = observation.motion
        friction = self.friction.columns(motion.position, motion.velocity, load, motion.inputs)
        if isinstance(self.friction, FrictionColumns):
            if values is None or not self.load_dependent:
                return Linearised(np.concatenate((friction, observation.rigid), axis=2), observation.known)
            f, chi = self.friction_count, values[self.friction_count :]
            added = self.friction.of_load(motion.velocity, load, values[:f], observation.rigid)
            columns = np.concatenate((friction, observation.rigid + added), axis=2)
            return Linearised(columns, observation.known - added @ chi)
        gains = self.friction.gains(motion.velocity, load)
        start = np.zeros(len(self.names)) if values is None else values
        f, g = self.friction_count, self.gain_count
        total = gains @ start[f : f + g]
        output = observation.known + observation.rigid @ start[f + g :]
        parts = (friction, gains * output[:, :, None], observation.rigid * (1.0 + total)[:, :, None])
        return Linearised(np.concatenate(parts, axis=2), (1.0 + total) * observation.known - total * output)

    def torque(self, observation: Observation, values: FloatArray) -> FloatArray:
        """Predicted motor torque at the working rate, (N, n) [N m]: from the motion alone."""
        linearised = self.linearise(observation, self.output_torque(observation, values), values)
        return linearised.known + linearised.columns @ values

    def output_torque(self, observation: Observation, values: FloatArray) -> FloatArray:
        """Torque behind friction, tau_out of eq. 6, at the working rate, (N, n) [N m]."""
        return observation.known + observation.rigid @ values[self.friction_count + self.gain_count :]

    def problem(
        self,
        observations: Sequence[Observation],
        loads: Sequence[FloatArray],
        usable: Sequence[BoolArray],
        values: FloatArray | None = None,
    ) -> LinearProblem:
        """Rows of all motions, both sides behind the same filter.

        Parameters
        ----------
        loads : (N, n) of every motion [N m]
        usable : (K, n) of every motion
        values : (p,) as in :meth:`linearise`
        """
        columns, sides = [], []
        for observation, load in zip(observations, loads, strict=True):
            linearised = self.linearise(observation, load, values)
            columns.append(observation.filter.apply(linearised.columns))
            sides.append(observation.torque - observation.filter.apply(linearised.known))
        return stack(observations, columns, sides, usable, self.names, self.units, self.nonnegative)


DATA_TOLERANCE = 1e-6
"""Columns nearer than this, relative to their norm, to the span of others cannot be told apart by any real data."""
_EMPTY = 1e-12
ROUNDS = 15
_CONVERGED = 1e-5
"""Relative change of the predicted torque at which Gauss-Newton and the iteration of the load end."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Parameters of a torque model.

    Attributes
    ----------
    model : whose parameters
    observations : what they were estimated from
    usable : (K, n) rows of every motion that were used
    loads : (N, n) torque of every motion that friction depends on: tau_out of the model itself [N m]
    fit : of the columns that were kept, about the solution
    kept : (q) which of the model's p parameters the fit has; the others are zero
    prior_std : (q,) that was used, infinite where nothing was known
    names : (q) with what else each holds, because the data cannot tell it apart
    values : (p,)
    delay : by which the torque was late, and was moved back [s]
    delay_sigma : standard deviation of what is left of it, or of a delay that nobody saw; the covariance allows for it
        [s]
    """

    model: TorqueModel
    observations: tuple[Observation, ...]
    usable: tuple[BoolArray, ...]
    loads: tuple[FloatArray, ...]
    fit: LinearFit
    kept: IntArray
    prior_std: FloatArray
    names: tuple[str, ...]
    values: FloatArray
    delay: float = 0.0
    delay_sigma: float = 0.0

    @property
    def covariance(self) -> FloatArray:
        """(p, p) honest covariance, zero for parameters that are not in the fit."""
        full = np.zeros((self.values.size, self.values.size))
        full[np.ix_(self.kept, self.kept)] = self.fit.covariance
        return full


def estimate(
    model: TorqueModel,
    observations: Sequence[Observation],
    usable: Sequence[BoolArray],
    solver: SolverOptions,
    allowed: BoolArray | None = None,
    rounds: int = ROUNDS,
) -> Estimate:
    """Estimate all parameters of a model.

    Friction that depends on the load takes the torque behind friction that the model itself predicts: with the motor
    torque on both sides, measured or predicted, it would explain itself. Gauss-Newton, from a model without load.

    Parameters
    ----------
    usable : (K, n) rows of every motion
    solver : how each linear problem is solved
    allowed : (p,) False for parameters that are zero; None: all are estimated
    rounds : at most, where friction depends on the load

    Raises
    ------
    InputError
        When no usable rows are left.
    """
    if not any(mask.any() for mask in usable):
        raise InputError("no joint moves fast enough for its friction to show: there is no usable sample")
    permitted = np.ones(len(model.names), dtype=bool) if allowed is None else allowed
    of_load = np.isfinite(model.prior_std)
    prior = _prior(model, observations)
    loads = [np.zeros_like(observation.load) for observation in observations]
    values = np.zeros(len(model.names))
    for turn in range(rounds if model.load_dependent else 1):
        problem = model.problem(observations, loads, usable, values)
        columns = permitted & ~of_load if turn == 0 else permitted
        kept, names = _told_apart(problem, columns, prior)
        fit = solve(select_columns(problem, kept), solver, prior[kept])
        values = np.zeros(len(model.names))
        values[kept] = fit.values
        if model.load_dependent:
            predicted = [model.output_torque(observation, values) for observation in observations]
            change = sum(np.square(new - old).sum() for new, old in zip(predicted, loads, strict=True))
            loads = predicted
            if turn and change < _CONVERGED**2 * sum(np.square(load).sum() for load in loads):
                break
    return Estimate(model, tuple(observations), tuple(usable), tuple(loads), fit, kept, prior[kept], names, values)


def _told_apart(problem: LinearProblem, allowed: BoolArray, prior_std: FloatArray) -> tuple[IntArray, tuple[str, ...]]:
    """Columns that the data can tell apart, friction first; those with a prior always stay."""
    free = np.flatnonzero(allowed & np.isinf(prior_std))
    base = base_parameters([problem.names[k] for k in free], problem.W[:, free], DATA_TOLERANCE, _EMPTY)
    moving = np.linalg.norm(problem.W, axis=0) > 0.0
    certain = np.flatnonzero(allowed & np.isfinite(prior_std) & moving)
    kept = np.concatenate((free[base.kept], certain))
    names = base.names + tuple(problem.names[k] for k in certain)
    order = np.argsort(kept)
    return kept[order], tuple(names[k] for k in order)


def _prior(model: TorqueModel, observations: Sequence[Observation]) -> FloatArray:
    """Standard deviations (p,) of what is known before the fit, most of them infinite."""
    prior = model.prior_std.copy()
    torque = np.sqrt(np.mean(np.concatenate([one.torque for one in observations]) ** 2, axis=0))
    prior[: model.friction_count] = model.friction.prior_std(torque, reference_speeds(observations, model.friction))
    return prior


def reference_speeds(observations: Sequence[Observation], friction: Friction) -> FloatArray:
    """Speed (k,) of every site of friction that it reached in earnest [rad/s]."""
    speeds = np.abs(np.concatenate([friction.speeds(observation.motion.velocity) for observation in observations]))
    moving = speeds > _RESTING * speeds.max(axis=0)
    return np.array(
        [
            np.quantile(site[moves], _REFERENCE) if moves.any() else 0.0
            for site, moves in zip(speeds.T, moving.T, strict=True)
        ]
    )
