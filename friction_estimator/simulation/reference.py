"""Joint references and feed-forward torques along the walk, a short block of control periods at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from friction_estimator.simulation.biped import Biped
from friction_estimator.simulation.leg_kinematics import yaw_rotation
from friction_estimator.simulation.walk_plan import WalkPlan, WalkSamples
from friction_estimator.types import FloatArray

_CHECK_PERIOD = 0.02


@dataclass(frozen=True, slots=True)
class ReferenceBlock:
    """References at B successive control periods, joints in pinocchio order.

    Attributes
    ----------
    base : (B, 3) base origin in the world [m]
    base_yaw : (B,) [rad]
    position, velocity : (B, m) [rad], [rad/s]
    torque : (B, m) inverse dynamics of the plan, without friction [N m]
    load_share : (B, 2) left, right
    com : (B, 3) centre of mass in the world [m]
    """

    base: FloatArray
    base_yaw: FloatArray
    position: FloatArray
    velocity: FloatArray
    torque: FloatArray
    load_share: FloatArray
    com: FloatArray


class ReferenceGenerator:
    """Turns the plan into joint references by inverse kinematics, central differences and inverse dynamics.

    Parameters
    ----------
    biped : model and legs
    plan : the walk
    period : control period [s]
    """

    def __init__(self, biped: Biped, plan: WalkPlan, period: float) -> None:
        self._biped = biped
        self._plan = plan
        self._period = period
        self._data = biped.model.createData()

    def check_reach(self, until: float) -> None:
        """Try the poses of the plan, coarsely, up to a time [s].

        Raises
        ------
        SimulationError
            When the legs are too short for one of them.
        """
        self._configurations(self._plan.sample(np.arange(0.0, until, _CHECK_PERIOD)))

    def block(self, first: int, count: int) -> ReferenceBlock:
        """References of the control periods ``first`` to ``first + count - 1``."""
        h = self._period
        samples = self._plan.sample(h * np.arange(first - 1, first + count + 1, dtype=np.float64))
        q = self._configurations(samples)
        joints = q[:, 7:]
        inner = slice(1, -1)
        v = np.zeros((count, self._biped.model.nv))
        a = np.zeros_like(v)
        yaw, rotation = samples.base_yaw, yaw_rotation(samples.base_yaw[inner])
        to_base = np.swapaxes(rotation, 1, 2)
        v[:, :3] = np.einsum("nij,nj->ni", to_base, (samples.base[2:] - samples.base[:-2]) / (2.0 * h))
        v[:, 5] = (yaw[2:] - yaw[:-2]) / (2.0 * h)
        v[:, 6:] = (joints[2:] - joints[:-2]) / (2.0 * h)
        acceleration = (samples.base[2:] - 2.0 * samples.base[inner] + samples.base[:-2]) / h**2
        a[:, :3] = np.einsum("nij,nj->ni", to_base, acceleration) - np.cross(v[:, 3:6], v[:, :3])
        a[:, 5] = (yaw[2:] - 2.0 * yaw[inner] + yaw[:-2]) / h**2
        a[:, 6:] = (joints[2:] - 2.0 * joints[inner] + joints[:-2]) / h**2
        share = samples.load_share[inner]
        torque = self._feedforward(q[inner], v, a, share, samples.soles[:, inner], rotation)
        com = np.array([pin.centerOfMass(self._biped.model, self._data, row) for row in q[inner]])
        position, velocity = joints[inner].copy(), v[:, 6:].copy()
        return ReferenceBlock(samples.base[inner], yaw[inner], position, velocity, torque.copy(), share, com)

    def _configurations(self, samples: WalkSamples) -> FloatArray:
        """Pinocchio configurations (N, nq); joints outside the legs keep their posture."""
        q = np.zeros((samples.base.shape[0], self._biped.model.nq))
        q[:, 7:] = self._biped.posture
        q[:, :3] = samples.base
        q[:, 5], q[:, 6] = np.sin(0.5 * samples.base_yaw), np.cos(0.5 * samples.base_yaw)
        rotation = yaw_rotation(samples.base_yaw)
        for side, leg in enumerate(self._biped.legs):
            q[:, 7 + leg.columns] = leg.inverse(
                samples.base, rotation, samples.soles[side], samples.sole_rotations[side]
            )
        return q

    def _feedforward(
        self, q: FloatArray, v: FloatArray, a: FloatArray, share: FloatArray, soles: FloatArray, rotation: FloatArray
    ) -> FloatArray:
        """Joint torques of the plan, the ground force split between the feet by their planned share.

        With the ZMP at ``p = sum share_i sole_i``, forces ``share_i F`` at the soles and moments ``share_i n`` add up
        to the planned ground wrench ``(F, n)`` about ``p``.
        """
        model, data = self._biped.model, self._data
        generalised = np.array([pin.rnea(model, data, *row) for row in zip(q, v, a, strict=True)])
        force = np.einsum("nij,nj->ni", rotation, generalised[:, :3])
        moment = np.einsum("nij,nj->ni", rotation, generalised[:, 3:6])
        zmp = np.einsum("ns,sni->ni", share, soles)
        moment += np.cross(q[:, :3] - zmp, force)
        wrench = np.concatenate([force, moment], axis=1)
        torque = generalised[:, 6:]
        for k in range(q.shape[0]):
            for side, leg in enumerate(self._biped.legs):
                if share[k, side] != 0.0:
                    jacobian = pin.computeFrameJacobian(model, data, q[k], leg.frame_id, pin.LOCAL_WORLD_ALIGNED)
                    torque[k] -= share[k, side] * (wrench[k] @ jacobian[:, 6:])
        return torque
