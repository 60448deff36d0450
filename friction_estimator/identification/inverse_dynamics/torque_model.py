"""The whole inverse dynamic model: rigid body, friction, and friction that multiplies the torque of the rigid body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.identification.inverse_dynamics.friction_columns import FrictionColumns
from friction_estimator.identification.inverse_dynamics.load_velocity_friction import LoadVelocityFriction
from friction_estimator.identification.inverse_dynamics.observation import Observation, stack
from friction_estimator.identification.regression.linear_problem import LinearProblem
from friction_estimator.identification.rigid_body.rigid_body_columns import RigidBody
from friction_estimator.types import BoolArray, FloatArray

Friction = FrictionColumns | LoadVelocityFriction


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
