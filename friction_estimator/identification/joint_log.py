"""Signals of joints: recorded ones and planned ones; and what is known of the robot that was recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from friction_estimator.config.validation import check_name
from friction_estimator.errors import InputError, choices
from friction_estimator.types import BoolArray, FloatArray, IntArray, ShortRepr

_NONE: Mapping[str, FloatArray] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Payload:
    """A rigid body that was fixed to the robot during one experiment.

    Attributes
    ----------
    frame : name of the URDF frame that it is fixed to
    mass : [kg]
    com : (3) centre of mass in the frame [m]; None: it is not known, nor is the inertia
    inertia : (3, 3) about the centre of mass, in the axes of the frame [kg m^2]; None: that of a point
    """

    frame: str
    mass: float
    com: FloatArray | None = None
    inertia: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class ExternalWrench:
    """Where a measured force acts on the robot, such as that of the ground on a foot."""

    frame: str  # of the URDF: the force acts on its link, the moment is about its origin
    columns: str  # name of the recorded columns, see wrenches
    axes: str = ""  # frame of the URDF in whose axes force and moment are given; empty: those of `frame`


@dataclass(frozen=True, slots=True)
class RobotDescription:
    """URDF of the robot whose joints were recorded, and whether its base is fixed."""

    urdf_xml: str  # text of its URDF
    fixed_base: bool  # True for an arm on a base that does not move, False for a robot that walks


@dataclass(frozen=True, slots=True, repr=False)
class JointLog(ShortRepr):
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
    wrenches : forces and moments (N, 6) [N, N m] by the name of their columns; where they act is not recorded
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
    wrenches: Mapping[str, FloatArray] = field(default_factory=lambda: _NONE)

    def __post_init__(self) -> None:
        for name in self.joint_names:
            check_name(f"{self.name}: the name of a joint", name)
        shape = (self.time.size, len(self.joint_names))
        signals = {"position": self.position, "velocity": self.velocity, "effort": self.effort, **self.inputs}
        for kind, signal in signals.items():
            if signal is not None and signal.shape != shape:
                raise InputError(f"{self.name}: {kind} has the shape {signal.shape}, expected {shape}")

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
        return self.changed(lambda _, signal: np.ascontiguousarray(signal[:, columns]), joint_names=joint_names)

    def rows(self, rows: BoolArray | IntArray | slice) -> JointLog:
        """The same log with these samples, in this order."""
        wrenches = MappingProxyType({name: wrench[rows] for name, wrench in self.wrenches.items()})
        return self.changed(lambda _, signal: signal[rows], time=self.time[rows], wrenches=wrenches)

    def changed(self, change: Callable[[str, FloatArray], FloatArray], **fields: Any) -> JointLog:
        """The same log with other ``fields``, and each recorded signal replaced by ``change(kind, signal)``."""

        def of(kind: str) -> FloatArray | None:
            signal: FloatArray | None = getattr(self, kind)
            return None if signal is None else change(kind, signal)

        fields |= {kind: of(kind) for kind in ("position", "velocity", "effort")}
        inputs = {kind: change(kind, signal) for kind, signal in self.inputs.items()}
        return replace(self, inputs=MappingProxyType(inputs), **fields)


@dataclass(frozen=True, slots=True)
class JointTrajectory:
    """Motion of ``n`` joints at ``N`` instants."""

    joint_names: tuple[str, ...]  # (n)
    time: FloatArray  # (N,) from zero on [s]
    # (N, n) [rad, rad/s, rad/s^2] or [m, m/s, m/s^2]
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray


EXTERNAL = "external"
"""Input: known torque of external forces, positive where it drives the joint [N m]."""
FRICTION_INPUT, SIGMA_INPUT, TEMPERATURE, DRIVEN, SLIDES = (
    "friction",
    "friction_sigma",
    "temperature",
    "driven",
    "slides",
)
"""Inputs with a meaning here: measured friction and its standard deviation [N m], temperature [K], whether motors are
driven, and whether they slide."""
COMMAND, KP, KD, COMMANDED = "command", "kp", "kd", "commanded"
"""Inputs of drives that get positions: commanded position [rad], gains [N m/rad, N m s/rad], and the part of the motor
torque that the command makes [N m]; the rest is feedback."""
