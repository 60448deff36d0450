"""What a view shows at one instant, and the robot as lines between its joints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from friction_estimator.io.robot import Robot
from friction_estimator.robot.urdf import checked_urdf
from friction_estimator.types import FloatArray, IntArray

_COLD, _HOT = np.array([40.0, 100.0, 200.0]), np.array([220.0, 40.0, 40.0])
"""Colours (red, green, blue) of a line without friction, and of the line with the largest friction."""


@dataclass(frozen=True, slots=True)
class ViewFrame:
    """One instant of a run.

    Attributes
    ----------
    time : since the first joint state [s]
    joint_names : (n)
    friction, sigma : (n,) estimate and its standard deviation [N m]; NaN while unknown
    truth : (n,) true friction [N m]; NaN where unknown
    phase : contact phase
    base_position, base_quaternion : (3,) [m], (x, y, z, w) of the base in the world
    segments : (s, 2, 3) ends of the lines of the robot in the world [m]
    segment_joints : (s,) index of the joint whose friction colours a line; -1 for none
    events : new since the last frame, one sentence each
    """

    time: float
    joint_names: tuple[str, ...]
    friction: FloatArray
    sigma: FloatArray
    truth: FloatArray
    phase: str
    base_position: FloatArray
    base_quaternion: FloatArray
    segments: FloatArray
    segment_joints: tuple[int, ...]
    events: tuple[str, ...] = ()

    def colors(self) -> IntArray:
        """Colours of the lines, (s, 3) from 0 to 255, by the size of the friction against the largest one."""
        size = np.nan_to_num(np.abs(np.append(self.friction, 0.0)))
        strength = size[list(self.segment_joints)] / max(float(size.max()), 1e-9)
        return np.rint(_COLD + strength[:, None] * (_HOT - _COLD)).astype(np.int64)


def json_numbers(values: FloatArray) -> Any:
    """Nested lists of an array, with four decimals; None for NaN and infinity, which JSON does not have."""
    numbers = np.round(values, 4).astype(object)
    numbers[~np.isfinite(values)] = None
    return numbers.tolist()


class Skeleton:
    """A robot as lines from joint to joint, and to the feet.

    Parameters
    ----------
    robot : configuration and URDF
    joint_names : (n) joints of the frames; all others stay at zero
    """

    def __init__(self, robot: Robot, joint_names: tuple[str, ...]) -> None:
        xml, fixed_base = checked_urdf(robot.urdf_xml), robot.config.robot.fixed_base
        self._model = (
            pin.buildModelFromXML(xml) if fixed_base else pin.buildModelFromXML(xml, pin.JointModelFreeFlyer())
        )
        self._data, self._q = self._model.createData(), pin.neutral(self._model)
        self._fixed_base = fixed_base
        self._joints = [self._model.joints[self._model.getJointId(name)] for name in joint_names]
        self._feet = [self._model.getFrameId(foot.frame) for foot in robot.config.feet]
        first = 1 if fixed_base else 2
        moved = [joint for joint in range(first, self._model.njoints) if self._model.parents[joint] >= first - 1]
        self._lines = [(self._model.parents[joint], joint) for joint in moved]
        index = {name: number for number, name in enumerate(joint_names)}
        names = [self._model.names[parent] for parent, _ in self._lines]
        names += [self._model.names[self._model.frames[foot].parentJoint] for foot in self._feet]
        self.segment_joints = tuple(index.get(name, -1) for name in names)

    def segments(self, position: FloatArray, base_position: FloatArray, base_quaternion: FloatArray) -> FloatArray:
        """Ends of the lines (s, 2, 3) [m] at joint positions (n,), base position (3,) and orientation (x, y, z, w)."""
        for joint, value in zip(self._joints, np.nan_to_num(position).tolist(), strict=True):
            self._q[joint.idx_q : joint.idx_q + joint.nq] = [value] if joint.nq == 1 else [np.cos(value), np.sin(value)]
        if not self._fixed_base:
            self._q[:3], self._q[3:7] = base_position, base_quaternion
        pin.framesForwardKinematics(self._model, self._data, self._q)
        places = [placement.translation for placement in self._data.oMi]
        lines = [(places[parent], places[joint]) for parent, joint in self._lines]
        frames = self._model.frames
        lines += [(places[frames[foot].parentJoint], self._data.oMf[foot].translation) for foot in self._feet]
        return np.array(lines).reshape(-1, 2, 3)
