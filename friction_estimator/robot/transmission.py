"""Where friction arises: at the motors, some of which move several joints together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components

from friction_estimator.config.robot import Coupling
from friction_estimator.errors import ConfigError, choices
from friction_estimator.kernels.records import record
from friction_estimator.types import FloatArray, IndexMatrix, IntArray, Matrix


@record
class MotorTable(NamedTuple):
    """Maps between motors and joints for the kernels, as of :class:`Transmission`."""

    matrix: Matrix
    to_joints: Matrix
    group: IndexMatrix
    weights: Matrix


@dataclass(frozen=True, slots=True)
class Transmission:
    """The motors of all joints, and the maps between motors and joints (Guedelha et al. 2017, eqs. 33-34).

    Every joint has a motor of the same index: the only one that moves it, or one of those that move its group. With
    ``S = T^-T`` motors turn at ``S^T dq``, carry the torque ``S^-1 tau``, and act on the joints with ``S tau_motor``.
    Where nothing is coupled every function returns its argument itself.
    """

    names: tuple[str, ...]  # (n) of the motors
    couples: bool  # False where every motor moves one joint only
    # (n, n) T and S
    matrix: FloatArray
    to_joints: FloatArray
    group: IntArray  # (n, g) motors that act on each joint: that of the same index first, repeated where they are fewer
    weights: FloatArray  # (n, g) entries of S that belong to them, zero where they are fewer

    @property
    def table(self) -> MotorTable:
        """The matrices between motors and joints as one tuple, as kernels take it."""
        return MotorTable(self.matrix, self.to_joints, self.group, self.weights)

    @staticmethod
    def from_coupling(coupling: Coupling | None, joint_names: Sequence[str]) -> Transmission:
        """The motors of these joints (n).

        Raises
        ------
        ConfigError
            When the coupling names a joint that is not there, or one of its motors is called like another joint.
        """
        names, matrix = list(joint_names), np.eye(len(joint_names))
        if coupling is None:
            return _transmission(names, matrix)
        missing = [joint for joint in coupling.joint_names if joint not in names]
        if missing:
            raise ConfigError(f"robot.coupling names the joint {choices(missing)}; the joints are {choices(names)}")
        indices = [names.index(joint) for joint in coupling.joint_names]
        matrix[np.ix_(indices, indices)] = coupling.matrix
        for index, motor in zip(indices, coupling.motor_names, strict=True):
            names[index] = motor
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ConfigError(
                f"robot.coupling: the motor {choices(twice)} has the name of another joint: rename it in "
                "robot.coupling.motors"
            )
        return _transmission(names, matrix)

    def select(self, indices: IntArray) -> Transmission:
        """The motors of some joints (m,), in arrays as wide as those of all motors.

        Raises
        ------
        ConfigError
            When they share motors with other joints.
        """
        local = np.full(len(self.names), -1)
        local[indices] = np.arange(indices.size)
        group = local[self.group[indices]]
        if (group < 0).any():
            shared = [self.names[k] for k in np.unique(self.group[indices][group < 0])]
            raise ConfigError(
                f"robot.coupling: the motors {choices(shared)} move joints of different limbs together; limbs are "
                "filtered apart: leave them uncoupled, or take another observer than 'kalman'"
            )
        names, block = tuple(self.names[k] for k in indices), np.ix_(indices, indices)
        return Transmission(
            names, self.couples, self.matrix[block], self.to_joints[block], group, self.weights[indices]
        )

    def velocity(self, velocity: FloatArray) -> FloatArray:
        """Velocities of the motors (..., n) from those of the joints (..., n) [rad/s]."""
        return velocity @ self.to_joints if self.couples else velocity

    def velocity_std(self, std: FloatArray) -> FloatArray:
        """Standard deviations (..., n) of motor velocities, from independent ones of the joints (..., n)."""
        return np.sqrt(std**2 @ self.to_joints**2) if self.couples else std

    def torque(self, torque: FloatArray) -> FloatArray:
        """Torques at the motors (..., n) from those at the joints (..., n) [N m]."""
        return np.asarray(torque @ self.matrix) if self.couples else torque

    def torque_std(self, std: FloatArray) -> FloatArray:
        """Standard deviations (..., n) of torques at the motors, from independent ones at the joints (..., n)."""
        return np.asarray(np.sqrt(std**2 @ self.matrix**2)) if self.couples else std

    def at_joints(self, torque: FloatArray) -> FloatArray:
        """Torques at the joints (..., n) from those of the motors (..., n) [N m]."""
        return np.asarray(torque @ self.to_joints.T) if self.couples else torque

    def variance_at_joints(self, variance: FloatArray) -> FloatArray:
        """Variances (..., n) of torques at the joints, from independent ones of the motors (..., n) [(N m)^2].

        F_v of each joint that moves alone follows from that of the motors in the same way [N m s/rad].
        """
        return np.asarray(variance @ self.to_joints.T**2) if self.couples else variance

    def coulomb_at_joints(self, coulomb: FloatArray) -> FloatArray:
        """F_c of each joint that moves alone (..., n), from that of the motors (..., n) [N m]."""
        return np.asarray(coulomb @ np.abs(self.to_joints).T) if self.couples else coulomb


def _transmission(names: Sequence[str], matrix: FloatArray) -> Transmission:
    """Transmission of T (n, n); entries of S between groups are set to zero, where rounding of the inverse is not."""
    n = len(names)
    _, label = connected_components(matrix != 0.0, directed=False)
    to_joints = np.where(label[:, None] == label, np.linalg.inv(matrix).T, 0.0)
    members = [np.flatnonzero(label == group) for group in label]
    width = max(map(len, members))
    group = np.tile(np.arange(n)[:, None], (1, width))
    weights = np.zeros((n, width))
    for joint, motors in enumerate(members):
        motors = np.concatenate(([joint], motors[motors != joint]))
        group[joint, : motors.size] = motors
        weights[joint, : motors.size] = to_joints[joint, motors]
    return Transmission(tuple(names), not np.array_equal(matrix, np.eye(n)), matrix, to_joints, group, weights)
