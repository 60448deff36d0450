"""What a data set and a model belong to; anything else is refused with the reason."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from friction_estimator.errors import LearningError
from friction_estimator.io.robot import Robot
from friction_estimator.learning.signals import GAIN
from friction_estimator.robot.model import RobotModel

VERSION = 1
"""Of data sets and models; others are refused."""


@dataclass(frozen=True, slots=True)
class RobotIdentity:
    """What a data set and a model belong to.

    Attributes
    ----------
    version : of signals and files
    robot : name of the robot, for people
    urdf_sha256 : hash of the text of the URDF
    joint_names : (n) order of the joints
    foot_frames : (k) links of the feet
    imu_frame : link of the IMU, empty for a fixed base
    gain : K_0 of the residual [rad/s]
    """

    version: int
    robot: str
    urdf_sha256: str
    joint_names: tuple[str, ...]
    foot_frames: tuple[str, ...]
    imu_frame: str
    gain: float

    @classmethod
    def of(cls, robot: Robot) -> RobotIdentity:
        """Identity of a robot."""
        config = robot.config
        return cls(
            VERSION,
            robot.name,
            hashlib.sha256(robot.urdf_xml.encode()).hexdigest(),
            RobotModel(config, robot.urdf_xml).joint_names,
            tuple(foot.frame for foot in config.feet),
            "" if config.robot.fixed_base else config.imu.frame,
            GAIN,
        )

    @classmethod
    def read(cls, values: Mapping[str, Any], path: Path) -> RobotIdentity:
        """Identity from JSON. Raises LearningError when it is not one of this version."""
        version = values.get("version") if isinstance(values, Mapping) else None
        if version != VERSION:
            raise LearningError(f"{path} has version {version}, this program reads version {VERSION}: make it anew")
        try:
            read = cls(**values)
            return dataclasses.replace(read, joint_names=tuple(read.joint_names), foot_frames=tuple(read.foot_frames))
        except TypeError as error:
            raise LearningError(f"{path} does not describe a robot: {error}") from None

    def check(self, other: RobotIdentity, what: str) -> None:
        """Raise LearningError with the reason when ``what``, a data set or model of this robot, is of another one."""
        for item in dataclasses.fields(self):
            mine, theirs = getattr(self, item.name), getattr(other, item.name)
            if mine != theirs and item.name != "robot":
                raise LearningError(
                    f"{what} is not for this robot ({self.robot!r}): its {item.name} is {theirs}, here it is {mine}"
                )
