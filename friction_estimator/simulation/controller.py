"""Joint controller: PD with inverse-dynamics feed-forward and an ankle strategy; it does not know the friction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.core.types import FloatArray
from friction_estimator.simulation.biped import Biped
from friction_estimator.simulation.reference import ReferenceBlock

_ANKLE_PITCH, _ANKLE_ROLL = 4, 5


@dataclass(frozen=True, slots=True)
class ControllerGains:
    """Gains in units of the toppling stiffness ``m g l`` (weight times leg length), so that they fit any size.

    Attributes
    ----------
    leg : (6,) proportional gain from hip yaw to ankle roll [m g l / rad]
    other : the same for joints outside the legs
    damping_time : (6,) derivative over proportional gain; short at the ankles, where only the foot's inertia waits [s]
    other_damping_time : the same for joints outside the legs [s]
    tilt : torque of the standing ankles against roll and pitch of the base [m g l / rad]
    tilt_damping_time : the same for its rate [s]
    """

    leg: tuple[float, ...] = (2.8, 3.5, 3.5, 3.5, 2.8, 2.8)
    other: float = 1.0
    damping_time: tuple[float, ...] = (0.015, 0.015, 0.015, 0.015, 0.006, 0.006)
    other_damping_time: float = 0.015
    tilt: float = 0.8
    tilt_damping_time: float = 0.1


class JointController:
    """Motor torques from references and the measured state, once per control period.

    Parameters
    ----------
    biped : model, legs, effort limits
    gains : see :class:`ControllerGains`
    """

    def __init__(self, biped: Biped, gains: ControllerGains) -> None:
        unit = biped.mass * biped.gravity * biped.legs[0].length
        stiffness = np.full(len(biped.joint_names), gains.other)
        damping_time = np.full_like(stiffness, gains.other_damping_time)
        for leg in biped.legs:
            stiffness[leg.columns] = gains.leg
            damping_time[leg.columns] = gains.damping_time
        self._kp: FloatArray = unit * stiffness
        self._kd: FloatArray = damping_time * self._kp
        self._tilt = unit * gains.tilt
        self._tilt_rate = self._tilt * gains.tilt_damping_time
        self._ankles = [(int(leg.columns[_ANKLE_ROLL]), int(leg.columns[_ANKLE_PITCH])) for leg in biped.legs]
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
        for (ankle_roll, ankle_pitch), share in zip(self._ankles, block.load_share[k].tolist(), strict=True):
            tau[ankle_roll] += share * roll
            tau[ankle_pitch] += share * pitch
        return np.minimum(np.maximum(tau, self._lower, out=tau), self._upper, out=tau)
