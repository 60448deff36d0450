"""The floor: pinocchio calls that no estimator of this kind can avoid, on the same model and the same states."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from friction_estimator.io.robot import Robot
from friction_estimator.types import SensorFrame


class Floor:
    """All terms, inverse dynamics, and Jacobian and classical acceleration of every sole, called from Python.

    Parameters
    ----------
    robot : configuration and URDF of a walking robot
    frames : whose joint positions, joint velocities and angular velocities are used
    """

    def __init__(self, robot: Robot, frames: Sequence[SensorFrame]) -> None:
        self.model = pin.buildModelFromXML(robot.urdf_xml, pin.JointModelFreeFlyer())
        self.data = self.model.createData()
        self.soles = [self.model.getFrameId(foot.frame) for foot in robot.config.feet]
        upright, at_rest = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], np.zeros(3)
        self.states = [
            (
                np.concatenate((upright, frame.position)),
                np.concatenate((at_rest, frame.angular_velocity, frame.velocity)),
            )
            for frame in frames
        ]
        self._acceleration = np.zeros(self.model.nv)

    def __call__(self, number: int) -> None:
        """Run the calls for one state."""
        model, data = self.model, self.data
        q, v = self.states[number]
        pin.computeAllTerms(model, data, q, v)
        pin.rnea(model, data, q, v, self._acceleration)
        for sole in self.soles:
            pin.getFrameJacobian(model, data, sole, pin.LOCAL)
        for sole in self.soles:
            pin.getFrameClassicalAcceleration(model, data, sole, pin.LOCAL)
