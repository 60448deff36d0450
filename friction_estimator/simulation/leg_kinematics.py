"""Legs of the robot as the walk sees them: lengths read from the URDF and closed-form inverse kinematics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from friction_estimator.core.exceptions import SimulationError
from friction_estimator.core.types import FloatArray

_LEG_AXES = "zxyyyx"
_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Leg:
    """One leg: hip yaw, roll, pitch through one point, knee, ankle pitch and roll through one point.

    Attributes
    ----------
    joint_names : (6,) from hip to foot
    joint_ids : (6,) pinocchio joint indices
    columns : (6,) indices into the actuated joints, in pinocchio order
    frame_id : pinocchio index of the sole frame
    hip : (3,) in the base frame [m]
    thigh, shank : lengths [m]
    sole : (3,) of the sole origin from the ankle, in the sole frame [m]
    """

    joint_names: tuple[str, ...]
    joint_ids: tuple[int, ...]
    columns: NDArray[np.intp]
    frame_id: int
    hip: FloatArray
    thigh: float
    shank: float
    sole: FloatArray

    @property
    def length(self) -> float:
        """From hip to sole, stretched [m]."""
        return self.thigh + self.shank - float(self.sole[2])

    def inverse(
        self, base: FloatArray, rotation_base: FloatArray, sole: FloatArray, rotation_sole: FloatArray
    ) -> FloatArray:
        """Joint angles that put the sole there: the closed form for concurrent hip and ankle axes.

        Parameters
        ----------
        base, sole : (N, 3) origins in the world [m]
        rotation_base, rotation_sole : (N, 3, 3) to the world

        Returns
        -------
        (N, 6) angles from hip yaw to ankle roll, knee bent [rad]

        Raises
        ------
        SimulationError
            When the sole is out of reach.
        """
        hip = base + rotation_base @ self.hip
        ankle = sole - rotation_sole @ self.sole
        r = np.einsum("nji,nj->ni", rotation_sole, hip - ankle)  # the hip as the foot sees it
        distance = np.linalg.norm(r, axis=1)
        cosine = (self.thigh**2 + self.shank**2 - distance**2) / (2.0 * self.thigh * self.shank)
        if np.any(np.abs(cosine) > 1.0):
            raise SimulationError(
                f"a foot is {distance.max():.3f} m from its hip, the leg reaches {self.thigh + self.shank:.3f} m: "
                "shorten the steps or bend the knees more"
            )
        knee = np.pi - np.arccos(cosine)
        ankle_roll = np.arctan2(r[:, 1], r[:, 2])
        tilt = np.arcsin(self.thigh / distance * np.sin(np.pi - knee))
        ankle_pitch = -np.arctan2(r[:, 0], np.hypot(r[:, 1], r[:, 2])) - tilt
        hip_rotation = np.swapaxes(rotation_base, 1, 2) @ rotation_sole @ _roll_pitch(-ankle_roll, -knee - ankle_pitch)
        yaw, roll, pitch = _yaw_roll_pitch(hip_rotation)
        return np.stack([yaw, roll, pitch, knee, ankle_pitch, ankle_roll], axis=1)


def _roll_pitch(roll: FloatArray, pitch: FloatArray) -> FloatArray:
    """``Rx(roll) Ry(pitch)``, (N, 3, 3)."""
    c, s, C, S = np.cos(roll), np.sin(roll), np.cos(pitch), np.sin(pitch)
    zero = np.zeros_like(c)
    return np.stack([C, zero, S, s * S, c, -s * C, -c * S, s, c * C], axis=1).reshape(-1, 3, 3)


def _yaw_roll_pitch(R: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Angles of ``R = Rz(yaw) Rx(roll) Ry(pitch)``."""
    yaw = np.arctan2(-R[:, 0, 1], R[:, 1, 1])
    roll = np.arctan2(R[:, 2, 1], -R[:, 0, 1] * np.sin(yaw) + R[:, 1, 1] * np.cos(yaw))
    return yaw, roll, np.arctan2(-R[:, 2, 0], R[:, 2, 2])


def yaw_rotation(yaw: FloatArray) -> FloatArray:
    """Rotations about z, (N, 3, 3)."""
    c, s = np.cos(yaw), np.sin(yaw)
    R = np.zeros((yaw.size, 3, 3))
    R[:, 0, 0], R[:, 0, 1], R[:, 1, 0], R[:, 1, 1], R[:, 2, 2] = c, -s, s, c, 1.0
    return R


def read_leg(model: pin.Model, sole_frame: str) -> Leg:
    """Measure one leg of a floating-base model at its zero configuration.

    Raises
    ------
    SimulationError
        When the frame is missing or the leg is not of the kind that the built-in gait can walk with.
    """
    if not model.existFrame(sole_frame):
        raise SimulationError(f"the URDF has no frame {sole_frame!r}")
    frame_id = model.getFrameId(sole_frame)
    joints = tuple(j for j in model.supports[model.frames[frame_id].parentJoint] if j > 1)
    data = model.createData()
    pin.framesForwardKinematics(model, data, pin.neutral(model))
    _check_axes(model, data, joints, sole_frame)
    points = [data.oMi[j].translation for j in joints]
    hip, knee, ankle, sole = points[0], points[3], points[4], data.oMf[frame_id]
    straight = [points[1] - hip, points[2] - hip, points[5] - ankle, (knee - hip)[:2], (ankle - knee)[:2]]
    if max(float(np.abs(gap).max()) for gap in straight) > _TOLERANCE or not np.allclose(sole.rotation, np.eye(3)):
        raise SimulationError(
            f"the built-in gait cannot walk on the foot {sole_frame!r}: hip axes and ankle axes must each meet in a "
            "point, the leg must be straight and the sole level at zero"
        )
    return Leg(
        joint_names=tuple(model.names[j] for j in joints),
        joint_ids=joints,
        columns=np.array([model.idx_vs[j] - 6 for j in joints]),
        frame_id=frame_id,
        hip=hip.copy(),
        thigh=float(hip[2] - knee[2]),
        shank=float(knee[2] - ankle[2]),
        sole=sole.translation - ankle,
    )


def _check_axes(model: pin.Model, data: pin.Data, joints: tuple[int, ...], sole_frame: str) -> None:
    jacobian = pin.computeJointJacobians(model, data, pin.neutral(model))
    wanted = [_AXES[axis] for axis in _LEG_AXES]
    axes = [jacobian[3:, model.idx_vs[j]] for j in joints]
    if len(joints) != len(wanted) or not np.allclose(axes, wanted, atol=_TOLERANCE):
        raise SimulationError(
            f"the built-in gait needs six joints from the base to {sole_frame!r}, turning about {', '.join(_LEG_AXES)} "
            f"(yaw, roll, pitch, knee, ankle pitch, ankle roll); found {[model.names[j] for j in joints]}"
        )
