"""Inverse kinematics of a leg: in closed form where its axes meet, else by Newton's method from there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from friction_estimator.errors import SimulationError
from friction_estimator.simulation.leg_chain import LegChain
from friction_estimator.types import FloatArray

HIP_YAW, HIP_ROLL, HIP_PITCH, KNEE, ANKLE_PITCH, ANKLE_ROLL = range(6)


@dataclass(frozen=True, slots=True)
class Leg:
    """One leg, its joints by what they do: hip yaw, roll and pitch, knee, ankle pitch and roll.

    The nominal leg has its hip axes through one point and its ankle axes through another, turns right-handed about z,
    x, y, y, y, x, and is straight at zero.

    Attributes
    ----------
    joint_names : (6,) from hip yaw to ankle roll, whatever their order in the chain
    columns : (6,) indices into the actuated joints, in pinocchio order
    frame_id : pinocchio index of the sole frame
    hip : (3,) of the nominal leg, in the base frame [m]
    thigh, shank : lengths of the nominal leg [m]
    sole : (3,) of the sole origin from the nominal ankle, in the sole frame [m]
    signs : (6,) of the axes, relative to those of the nominal leg
    zero : (6,) angles of the nominal leg where the real one is at zero [rad]
    chain : the real leg, None when it is the nominal one
    """

    joint_names: tuple[str, ...]
    columns: NDArray[np.intp]
    frame_id: int
    hip: FloatArray
    thigh: float
    shank: float
    sole: FloatArray
    signs: FloatArray
    zero: FloatArray
    chain: LegChain | None

    @property
    def length(self) -> float:
        """From hip to sole, stretched [m]."""
        return self.thigh + self.shank - float(self.sole[2])

    def inverse(
        self, base: FloatArray, rotation_base: FloatArray, sole: FloatArray, rotation_sole: FloatArray
    ) -> FloatArray:
        """Joint angles that put the sole there, knee bent.

        Parameters
        ----------
        base, sole : (N, 3) origins in the world [m]
        rotation_base, rotation_sole : (N, 3, 3) to the world

        Returns
        -------
        (N, 6) angles from hip yaw to ankle roll [rad]

        Raises
        ------
        SimulationError
            When the sole is out of reach.
        """
        nominal, distance = self._nominal(base, rotation_base, sole, rotation_sole)
        guess = (nominal - self.zero) * self.signs
        longest = self.thigh + self.shank
        if self.chain is not None:
            angles, reached = self.chain.solve(guess, base, rotation_base, sole, rotation_sole)
        else:
            angles, reached = guess, (np.abs(self.thigh - self.shank) <= distance) & (distance <= longest)
        if not reached.all():
            raise SimulationError(
                f"a foot is {distance[~reached].max():.3f} m from its hip, the leg reaches {longest:.3f} m: "
                "shorten the steps or bend the knees more"
            )
        return angles

    def _nominal(
        self, base: FloatArray, rotation_base: FloatArray, sole: FloatArray, rotation_sole: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Angles of the nominal leg (N, 6) in closed form, stretched where it is too short, and hip-ankle distance."""
        hip = base + rotation_base @ self.hip
        ankle = sole - rotation_sole @ self.sole
        r = np.einsum("nji,nj->ni", rotation_sole, hip - ankle)  # the hip as the foot sees it
        distance = np.linalg.norm(r, axis=1)
        cosine = (self.thigh**2 + self.shank**2 - distance**2) / (2.0 * self.thigh * self.shank)
        knee = np.pi - np.arccos(np.clip(cosine, -1.0, 1.0))
        ankle_roll = np.arctan2(r[:, 1], r[:, 2])
        tilt = np.arcsin(np.clip(self.thigh / distance * np.sin(knee), -1.0, 1.0))
        ankle_pitch = -np.arctan2(r[:, 0], np.hypot(r[:, 1], r[:, 2])) - tilt
        hip_rotation = np.swapaxes(rotation_base, 1, 2) @ rotation_sole @ _roll_pitch(-ankle_roll, -knee - ankle_pitch)
        yaw, roll, pitch = _yaw_roll_pitch(hip_rotation)
        return np.stack([yaw, roll, pitch, knee, ankle_pitch, ankle_roll], axis=1), distance


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
