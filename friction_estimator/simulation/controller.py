"""Joint controller: PD with inverse-dynamics feed-forward and an ankle strategy; it does not know the friction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.simulation.biped import Biped
from friction_estimator.simulation.leg_kinematics import ANKLE_PITCH, ANKLE_ROLL
from friction_estimator.simulation.reference import ReferenceBlock
from friction_estimator.types import FloatArray, IntArray

_OTHER_DAMPING = 0.7  # damping ratio of the joints outside the legs
_LARGEST_DECAY = 1.0  # part of a free joint's velocity that damping may take in one period; from 2 on it is unstable


@dataclass(frozen=True, slots=True)
class ControllerGains:
    """Gains in units of the toppling stiffness ``m g l`` (weight times leg length), so that they fit any size.

    Attributes
    ----------
    leg : (6,) proportional gain from hip yaw to ankle roll [m g l / rad]
    other_bandwidth : of the joints outside the legs, from which their gains follow by their inertia [rad/s]
    damping_time : (6,) derivative over proportional gain; short at the ankles, where only the foot's inertia waits [s]
    tilt : torque of the standing ankles against roll and pitch of the base [m g l / rad]
    tilt_damping_time : the same for its rate [s]
    """

    leg: tuple[float, ...] = (2.8, 3.5, 3.5, 3.5, 2.8, 2.8)
    other_bandwidth: float = 40.0
    damping_time: tuple[float, ...] = (0.015, 0.015, 0.015, 0.015, 0.006, 0.006)
    tilt: float = 0.8
    tilt_damping_time: float = 0.1


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
        kd = np.minimum(kd, _LARGEST_DECAY * free / period)
        self._gains = np.stack([kp, kd, biped.effort_limit])
        self._tilt = unit * gains.tilt
        self._tilt_rate = self._tilt * gains.tilt_damping_time
        self._ankles = np.array([leg.columns[[ANKLE_ROLL, ANKLE_PITCH]] for leg in biped.legs], dtype=np.int64)
        self._ankle_signs = np.array([leg.signs[[ANKLE_ROLL, ANKLE_PITCH]] for leg in biped.legs])

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
        block, k : references of this period
        position, velocity : (m,) joints, pinocchio order
        base_quaternion : (4,) attitude, w x y z
        base_rate : (3,) angular velocity in base axes [rad/s]
        feedforward : (m,) added to the controller's own torque [N m]

        Returns
        -------
        (m,) [N m]
        """
        return _torque(
            block.position, block.velocity, block.torque, block.load_share, k, position, velocity, base_quaternion,
            base_rate, feedforward, self._gains, self._ankles, self._ankle_signs, self._tilt, self._tilt_rate,
        )  # fmt: skip


@kernel("M M M M i8 V V V V V M IM M f8 f8")
def _torque(
    reference_position: FloatArray,
    reference_velocity: FloatArray,
    reference_torque: FloatArray,
    load_share: FloatArray,
    k: int,
    position: FloatArray,
    velocity: FloatArray,
    base_quaternion: FloatArray,
    base_rate: FloatArray,
    feedforward: FloatArray,
    gains: FloatArray,
    ankles: IntArray,
    ankle_signs: FloatArray,
    tilt: float,
    tilt_rate: float,
) -> FloatArray:
    """PD and feed-forward torques, plus those of the standing ankles against roll and pitch of the base (m,) [N m]."""
    kp, kd, limit = gains[0], gains[1], gains[2]
    tau = kp * (reference_position[k] - position) + kd * (reference_velocity[k] - velocity) + reference_torque[k]
    tau += feedforward
    w, x, y, z = base_quaternion[0], base_quaternion[1], base_quaternion[2], base_quaternion[3]
    roll = tilt * 2.0 * (w * x + y * z) + tilt_rate * base_rate[0]
    pitch = tilt * 2.0 * (w * y - x * z) + tilt_rate * base_rate[1]
    for leg in range(ankles.shape[0]):
        tau[ankles[leg, 0]] += ankle_signs[leg, 0] * load_share[k, leg] * roll
        tau[ankles[leg, 1]] += ankle_signs[leg, 1] * load_share[k, leg] * pitch
    return np.minimum(np.maximum(tau, -limit), limit)
