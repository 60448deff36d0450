"""Coupling of joints that share motors: a matrix between the velocities and torques of joints and motors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag
from scipy.sparse.csgraph import connected_components

from friction_estimator.errors import ConfigError, choices
from friction_estimator.types import BoolArray, FloatArray, IntArray

_MAX_CONDITION = 1e8
"""Beyond it the inverse of a coupling matrix is rounding; real transmissions stay below 100."""


@dataclass(frozen=True, slots=True)
class Coupling:
    """``joint velocity = T motor velocity``, ``joint torque = T^-T motor torque`` (Guedelha et al. 2017, eqs. 33-34).

    Motor quantities are those at the output of the motor's own gearbox (point G of the paper), so that T holds only
    what the differential or the belts behind the gearboxes do. Power is the same on both sides.

    Attributes
    ----------
    joint_names : (n) rows of the matrix
    motor_names : (n) columns of the matrix
    matrix : (n, n) T

    Raises
    ------
    ConfigError
        When names are missing, repeated or exchanged, or the matrix is not n by n, not finite, or not invertible.
    """

    joint_names: tuple[str, ...]
    motor_names: tuple[str, ...]
    matrix: FloatArray

    def __post_init__(self) -> None:
        n = len(self.joint_names)
        for kind, names in (("joint", self.joint_names), ("motor", self.motor_names)):
            repeated = {name for name in names if names.count(name) > 1}
            if not names or repeated:
                raise ConfigError(f"a coupling needs {kind} names, each once; repeated: {choices(repeated)}")
        if len(self.motor_names) != n:
            raise ConfigError(
                f"a coupling needs as many motors as joints; it has the joints {choices(self.joint_names)} and the "
                f"motors {choices(self.motor_names)}"
            )
        if self.matrix.shape != (n, n):
            raise ConfigError(
                f"the coupling of {n} joints and {n} motors needs a square matrix with one row a joint and one column "
                f"a motor; it is {' x '.join(map(str, self.matrix.shape))}"
            )
        pairs = zip(self.motor_names, self.joint_names, strict=True)
        elsewhere = [motor for motor, joint in pairs if motor != joint and motor in self.joint_names]
        if elsewhere:
            raise ConfigError(
                f"a motor of a coupling has the name of another joint: {choices(elsewhere)}; friction is saved by the "
                "name of the motor, so rename it"
            )
        if not np.isfinite(self.matrix).all():
            raise ConfigError("the coupling matrix contains numbers that are not finite")
        self._check_connections()
        if np.linalg.cond(self.matrix) > _MAX_CONDITION:
            raise ConfigError(
                f"the coupling matrix of the joints {choices(self.joint_names)} cannot be inverted: some motion "
                "of the motors would move no joint"
            )

    def _check_connections(self) -> None:
        """Raise ConfigError with the joints and motors whose zeros in the matrix make it singular."""
        connected = self.matrix != 0.0
        for kind, names, used in (
            ("joints", self.joint_names, connected.any(axis=1)),
            ("motors", self.motor_names, connected.any(axis=0)),
        ):
            if not used.all():
                idle = [name for name, drives in zip(names, used, strict=True) if not drives]
                raise ConfigError(f"the rows or columns of the {kind} {choices(idle)} in the coupling matrix are zero")
        for joints, motors in _groups(connected):
            if len(joints) != len(motors):
                raise ConfigError(
                    f"the coupling matrix lets {len(motors)} motors ({choices(self.motor_names[k] for k in motors)}) "
                    f"move {len(joints)} joints ({choices(self.joint_names[k] for k in joints)}); both numbers must be "
                    "equal"
                )

    @property
    def groups(self) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
        """Joints and motors of each block of T."""
        return tuple(
            (tuple(self.joint_names[k] for k in joints), tuple(self.motor_names[k] for k in motors))
            for joints, motors in _groups(self.matrix != 0.0)
        )

    @property
    def parts(self) -> tuple[Coupling, ...]:
        """One coupling per block of T."""
        return tuple(
            Coupling(
                tuple(self.joint_names[k] for k in joints),
                tuple(self.motor_names[k] for k in motors),
                self.matrix[np.ix_(joints, motors)],
            )
            for joints, motors in _groups(self.matrix != 0.0)
        )

    def motor_velocity(self, joint_velocity: FloatArray) -> FloatArray:
        """``T^-1 dq`` (..., n) of velocities, accelerations or displacements of the joints (..., n), eq. 33."""
        return np.asarray(joint_velocity @ np.linalg.inv(self.matrix).T)

    def joint_velocity(self, motor_velocity: FloatArray) -> FloatArray:
        """``T omega`` (..., n) of velocities, accelerations or displacements of the motors (..., n), eqs. 11, 33."""
        return np.asarray(motor_velocity @ self.matrix.T)

    def motor_torque(self, joint_torque: FloatArray) -> FloatArray:
        """``T^T tau`` (..., n) [N m]: torques of the joints (..., n) at their motors, section 3.4.2."""
        return np.asarray(joint_torque @ self.matrix)

    def joint_torque(self, motor_torque: FloatArray) -> FloatArray:
        """``T^-T tau`` (..., n) [N m]: torques of the motors (..., n) at the joints, eqs. 12, 34."""
        return np.asarray(motor_torque @ np.linalg.inv(self.matrix))


def uncoupled(joint_names: Sequence[str]) -> Coupling:
    """Coupling of joints that have one motor each, with the name of the joint."""
    names = tuple(joint_names)
    return Coupling(names, names, np.eye(len(names)))


def combined(couplings: Sequence[Coupling]) -> Coupling:
    """Join several couplings in one block-diagonal matrix.

    Raises
    ------
    ConfigError
        When two of them name the same joint or motor.
    """
    joints = tuple(name for coupling in couplings for name in coupling.joint_names)
    motors = tuple(name for coupling in couplings for name in coupling.motor_names)
    return Coupling(joints, motors, block_diag(*(coupling.matrix for coupling in couplings)))


def _groups(connected: BoolArray) -> list[tuple[IntArray, IntArray]]:
    """Rows and columns of every connected part of a bipartite graph (n, n), in the order of the rows."""
    n = len(connected)
    graph = np.block([[np.zeros((n, n), dtype=bool), connected], [connected.T, np.zeros((n, n), dtype=bool)]])
    count, label = connected_components(graph, directed=False)
    return [(np.flatnonzero(label[:n] == k), np.flatnonzero(label[n:] == k)) for k in range(count)]
