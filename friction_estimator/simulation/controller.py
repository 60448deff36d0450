"""Joint controller: PD with inverse-dynamics feed-forward and an ankle strategy; it does not know the friction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.core.types import FloatArray
from friction_estimator.simulation.biped import Biped
from friction_estimator.simulation.leg_kinematics import ANKLE_PITCH, ANKLE_ROLL
from friction_estimator.simulation.reference import ReferenceBlock

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
        self._kp: FloatArray = held * gains.other_bandwidth**2
        self._kd: FloatArray = _OTHER_DAMPING * 2.0 * held * gains.other_bandwidth
        for leg in biped.legs:
            self._kp[leg.columns] = unit * np.array(gains.leg)
            self._kd[leg.columns] = self._kp[leg.columns] * gains.damping_time
        self._kd = np.minimum(self._kd, _LARGEST_DECAY * free / period)
        self._tilt = unit * gains.tilt
        self._tilt_rate = self._tilt * gains.tilt_damping_time
        self._ankle_roll, self._ankle_pitch = (
            np.array([leg.columns[role] for leg in biped.legs]) for role in (ANKLE_ROLL, ANKLE_PITCH)
        )
        self._roll_sign, self._pitch_sign = (
            np.array([leg.signs[role] for leg in biped.legs]) for role in (ANKLE_ROLL, ANKLE_PITCH)
        )
        self._upper = biped.effort_limit
        self._lower = -biped.effort_limit

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
        tau = block.position[k] - position
        tau *= self._kp
        tau += self._kd * (block.velocity[k] - velocity)
        tau += block.torque[k]
        tau += feedforward
        w, x, y, z = base_quaternion.tolist()
        roll_rate, pitch_rate, _ = base_rate.tolist()
        roll = self._tilt * 2.0 * (w * x + y * z) + self._tilt_rate * roll_rate
        pitch = self._tilt * 2.0 * (w * y - x * z) + self._tilt_rate * pitch_rate
        share = block.load_share[k]
        tau[self._ankle_roll] += self._roll_sign * share * roll
        tau[self._ankle_pitch] += self._pitch_sign * share * pitch
        return np.minimum(np.maximum(tau, self._lower, out=tau), self._upper, out=tau)
