"""Friction of the joints from the laws of the motors that move them."""

from __future__ import annotations

from dataclasses import dataclass

from friction_estimator.core.friction.joint_laws import JointLaws
from friction_estimator.core.motor_side import MotorSide
from friction_estimator.core.types import FloatArray


@dataclass(frozen=True, slots=True)
class LawsAtJoints:
    """``S f(S^T dq, S^-1 tau)`` (Guedelha et al. 2017, eq. 34): what friction compensation asks.

    Attributes
    ----------
    laws : of the motors (n)
    motors : and how they move the joints
    """

    laws: JointLaws
    motors: MotorSide

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray) -> FloatArray:
        """Friction (n,) [N m] of the joints for the motors' parameters (n, p), at velocities and torques of joints."""
        motors = self.motors
        return motors.at_joints(self.laws.torque(parameters, motors.velocity(velocity), motors.torque(load)))
