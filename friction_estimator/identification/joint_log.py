"""Recorded and planned signals of joints, payloads and the robot: inputs of identification, whatever the file was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from friction_estimator.errors import InputError, choices
from friction_estimator.types import FloatArray

_NONE: Mapping[str, FloatArray] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Payload:
    """A rigid body that was fixed to the robot during one experiment.

    Attributes
    ----------
    frame : name of the URDF frame that it is fixed to
    mass : [kg]
    com : (3) centre of mass in the frame [m]
    inertia : (3, 3) about the centre of mass, in the axes of the frame [kg m^2]
    """

    frame: str
    mass: float
    com: FloatArray
    inertia: FloatArray


@dataclass(frozen=True, slots=True)
class RobotDescription:
    """The robot whose joints were recorded.

    Attributes
    ----------
    urdf_xml : text of its URDF
    fixed_base : True for an arm on a base that does not move, False for a robot that walks
    """

    urdf_xml: str
    fixed_base: bool


@dataclass(frozen=True, slots=True)
class JointLog:
    """Signals of ``n`` joints at ``N`` instants, as recorded: one file, one experiment.

    Attributes
    ----------
    name : of the experiment, usually the file
    joint_names : (n)
    time : (N,) strictly increasing [s]
    position : (N, n) [rad or m]
    velocity : (N, n) measured [rad/s or m/s], None when not recorded
    effort : (N, n) motor torque reflected to the joint [N m or N], None when not recorded
    inputs : other columns by kind, each (N, n), NaN where a joint has none: ``joint_torque`` (behind the transmission
        [N m]), ``friction`` (measured friction torque [N m]), ``pwm``, ``current``, ``temperature``, or any other
    payload : what the robot carried
    digest : SHA-256 of the file's content, hexadecimal; empty when the log was made in memory
    """

    name: str
    joint_names: tuple[str, ...]
    time: FloatArray
    position: FloatArray
    velocity: FloatArray | None = None
    effort: FloatArray | None = None
    inputs: Mapping[str, FloatArray] = field(default_factory=lambda: _NONE)
    payload: Payload | None = None
    digest: str = ""

    def __post_init__(self) -> None:
        shape = (self.time.size, len(self.joint_names))
        signals = {"position": self.position, "velocity": self.velocity, "effort": self.effort, **self.inputs}
        for kind, signal in signals.items():
            if signal is not None and signal.shape != shape:
                raise InputError(f"{self.name}: {kind} has the shape {signal.shape}, time and joints give {shape}")

    def select(self, joint_names: tuple[str, ...]) -> JointLog:
        """The same log with these joints, in this order.

        Raises
        ------
        InputError
            When one of them was not recorded.
        """
        missing = [joint for joint in joint_names if joint not in self.joint_names]
        if missing:
            raise InputError(f"{self.name} has no joint {choices(missing)}; it has {choices(self.joint_names)}")
        columns = [self.joint_names.index(joint) for joint in joint_names]
        return JointLog(
            self.name,
            joint_names,
            self.time,
            self.position[:, columns],
            None if self.velocity is None else self.velocity[:, columns],
            None if self.effort is None else self.effort[:, columns],
            MappingProxyType({kind: np.ascontiguousarray(signal[:, columns]) for kind, signal in self.inputs.items()}),
            self.payload,
            self.digest,
        )


@dataclass(frozen=True, slots=True)
class JointTrajectory:
    """Motion of ``n`` joints at ``N`` instants.

    Attributes
    ----------
    joint_names : (n)
    time : (N,) from zero on [s]
    position, velocity, acceleration : (N, n) [rad, rad/s, rad/s^2] or [m, m/s, m/s^2]
    """

    joint_names: tuple[str, ...]
    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
