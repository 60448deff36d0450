"""From the planned walk to motor torques: joint references along the walk, and the controller that follows them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from friction_estimator.simulation.biped import ANKLE_PITCH, ANKLE_ROLL, Biped
from friction_estimator.simulation.footsteps import yaw_rotation
from friction_estimator.simulation.walk_plan import PostureMotion, WalkPlan, WalkSamples
from friction_estimator.types import FloatArray

_YAW = 5  # place of the angular velocity about z in that of the base
_CHECK_PERIOD = 0.02  # between the poses whose reach is checked before the walk [s]
_OTHER_DAMPING = 0.7  # damping ratio of the joints outside the legs
_MAX_DECAY = 1.0  # part of a free joint's velocity that damping may take in one period; from 2 on it is unstable


@dataclass(frozen=True, slots=True)
class ReferenceBlock:
    """References at B successive control periods, joints in pinocchio order."""

    base: FloatArray  # (B, 3) base origin in the world [m]
    base_yaw: FloatArray  # (B,) [rad]
    position: FloatArray  # (B, m) [rad]
    velocity: FloatArray  # (B, m) [rad/s]
    torque: FloatArray  # (B, m) inverse dynamics of the plan, without friction [N m]
    load_share: FloatArray  # (B, 2) left, right
    com: FloatArray  # (B, 3) centre of mass in the world [m]


class ReferenceGenerator:
    """Computes joint references of the planned walk by inverse kinematics, central differences and inverse dynamics.

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
        self._upright = pin.neutral(biped.model)
        self._upright[7:] = biped.posture
        self._com = biped.com(self._upright)
        others = biped.others
        motion = PostureMotion.from_gait(plan.gait, biped.posture[others], biped.posture_limits[:, others])
        self._motion = motion if plan.gait.random_posture is not None and others.size else None

    def check_reach(self, start: float, until: float) -> None:
        """Check that the legs reach the poses of the plan between two times [s], one pose every 20 ms.

        Raises
        ------
        SimulationError
            When the legs are too short for one of them.
        """
        self._configurations(np.arange(start, until, _CHECK_PERIOD))

    def block(self, first: int, count: int) -> ReferenceBlock:
        """References of the control periods ``first`` to ``first + count - 1``."""
        h = self._period
        samples, q = self._configurations(h * np.arange(first - 1, first + count + 1, dtype=np.float64))
        joints = q[:, 7:]
        inner = slice(1, -1)
        v = np.zeros((count, self._biped.model.nv))
        a = np.zeros_like(v)
        yaw, rotation = samples.base_yaw, yaw_rotation(samples.base_yaw[inner])
        to_base = np.swapaxes(rotation, 1, 2)
        v[:, :3] = np.einsum("nij,nj->ni", to_base, (samples.base[2:] - samples.base[:-2]) / (2.0 * h))
        v[:, _YAW] = (yaw[2:] - yaw[:-2]) / (2.0 * h)
        v[:, 6:] = (joints[2:] - joints[:-2]) / (2.0 * h)
        acceleration = (samples.base[2:] - 2.0 * samples.base[inner] + samples.base[:-2]) / h**2
        a[:, :3] = np.einsum("nij,nj->ni", to_base, acceleration) - np.cross(v[:, 3:6], v[:, :3])
        a[:, _YAW] = (yaw[2:] - 2.0 * yaw[inner] + yaw[:-2]) / h**2
        a[:, 6:] = (joints[2:] - 2.0 * joints[inner] + joints[:-2]) / h**2
        share = samples.load_share[inner]
        torque = self._feedforward(q[inner], v, a, share, samples.soles[:, inner], rotation)
        com = np.array([pin.centerOfMass(self._biped.model, self._data, row) for row in q[inner]])
        return ReferenceBlock(samples.base[inner], yaw[inner], joints[inner], v[:, 6:], torque, share, com)

    def _configurations(self, time: FloatArray) -> tuple[WalkSamples, FloatArray]:
        """Samples of the plan and pinocchio configurations (N, nq); joints outside the legs keep or change posture."""
        samples = self._plan.sample(time)
        q = np.zeros((time.size, self._biped.model.nq))
        q[:, 7:] = self._biped.posture
        if self._motion is not None:
            q[:, 7 + self._biped.others] = self._motion(time)
            samples = self._balanced(samples, q)
        q[:, :3] = samples.base
        q[:, 5], q[:, 6] = np.sin(0.5 * samples.base_yaw), np.cos(0.5 * samples.base_yaw)
        rotation = yaw_rotation(samples.base_yaw)
        for side, leg in enumerate(self._biped.legs):
            q[:, 7 + leg.columns] = leg.inverse(
                samples.base, rotation, samples.soles[side], samples.sole_rotations[side]
            )
        return samples, q

    def _balanced(self, samples: WalkSamples, q: FloatArray) -> WalkSamples:
        """Move the base so that the centre of mass stays that of the plan, for configurations without the legs."""
        shift, upright = np.zeros((q.shape[0], 3)), self._upright.copy()
        for k in range(q.shape[0]):
            upright[7:] = q[k, 7:]
            shift[k, :2] = (self._biped.com(upright) - self._com)[:2]
        return replace(samples, base=samples.base - np.einsum("nij,nj->ni", yaw_rotation(samples.base_yaw), shift))

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


@dataclass(frozen=True, slots=True)
class ControllerGains:
    """Gains in units of the toppling stiffness ``m g l`` (weight times leg length), so that they fit any size."""

    # (6,) proportional gain from hip yaw to ankle roll [m g l / rad]
    leg: tuple[float, ...] = (2.8, 3.5, 3.5, 3.5, 2.8, 2.8)
    # of the joints outside the legs, from which their gains follow by their inertia [rad/s]
    other_bandwidth: float = 40.0
    # (6,) derivative over proportional gain; short at the ankles, which move only the foot [s]
    damping_time: tuple[float, ...] = (0.015, 0.015, 0.015, 0.015, 0.006, 0.006)
    tilt: float = 0.8  # torque of the standing ankles against roll and pitch of the base [m g l / rad]
    tilt_damping_time: float = 0.1  # derivative over proportional gain of that torque [s]


class JointController:
    """Motor torques from references and the measured state, once per control period.

    Parameters
    ----------
    biped : model, legs, effort limits
    gains : see :class:`ControllerGains`; the derivative gain of a light joint is cut to what the period allows
    period : between torques [s]
    """

    def __init__(self, biped: Biped, gains: ControllerGains, period: float) -> None:
        unit = biped.mass * biped.gravity * biped.legs[0].length
        held, free = biped.joint_inertia()
        kp: FloatArray = held * gains.other_bandwidth**2
        kd: FloatArray = _OTHER_DAMPING * 2.0 * held * gains.other_bandwidth
        for leg in biped.legs:
            kp[leg.columns] = unit * np.array(gains.leg)
            kd[leg.columns] = kp[leg.columns] * gains.damping_time
        kd = np.minimum(kd, _MAX_DECAY * free / period)
        self._kp, self._kd, self._limit = kp, kd, biped.effort_limit
        ankles = [ANKLE_ROLL, ANKLE_PITCH]
        self._ankles = [(leg.columns[ankles].tolist(), leg.signs[ankles].tolist()) for leg in biped.legs]
        self._tilt, self._tilt_rate = unit * gains.tilt, unit * gains.tilt * gains.tilt_damping_time

    def torque(
        self,
        block: ReferenceBlock,
        k: int,
        position: FloatArray,
        velocity: FloatArray,
        base_quaternion: FloatArray,
        base_rate: FloatArray,
        feedforward: FloatArray,
    ) -> FloatArray:
        """Motor torques, within the effort limits.

        Parameters
        ----------
        block, k : references, and the index of this period in them
        position, velocity : (m,) joints, pinocchio order
        base_quaternion : (4,) attitude, w x y z
        base_rate : (3,) angular velocity in base axes [rad/s]
        feedforward : (m,) added to the controller's own torque [N m]

        Returns
        -------
        (m,) [N m]
        """
        tau = self._kp * (block.position[k] - position) + self._kd * (block.velocity[k] - velocity) + block.torque[k]
        tau += feedforward
        w, x, y, z = base_quaternion.tolist()
        roll = self._tilt * 2.0 * (w * x + y * z) + self._tilt_rate * float(base_rate[0])
        pitch = self._tilt * 2.0 * (w * y - x * z) + self._tilt_rate * float(base_rate[1])
        for (joints, signs), share in zip(self._ankles, block.load_share[k].tolist(), strict=True):
            tau[joints[0]] += signs[0] * share * roll
            tau[joints[1]] += signs[1] * share * pitch
        return np.minimum(np.maximum(tau, -self._limit), self._limit)
