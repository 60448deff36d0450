"""The friction of one joint as exporters need it: the law itself, and Coulomb and viscous friction in its place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.errors import ConfigError
from friction_estimator.identification.result import OperatingRange, ParameterTable
from friction_estimator.io.identification import SavedIdentification
from friction_estimator.laws import FrictionLaw, make_law
from friction_estimator.laws.identified import parameters_sigma
from friction_estimator.laws.simple_friction import SimpleFriction, simplify
from friction_estimator.types import FloatArray

_VELOCITIES = 200
_UNKNOWN_SPEED = 1.0


@dataclass(frozen=True, slots=True)
class Drive:
    """``motor torque = offset + gain * drive`` at the output of the gearbox: offset [N m], gain in its unit."""

    offset: float
    gain: float
    unit: str


@dataclass(frozen=True, slots=True)
class JointFriction:
    """One joint, or one motor that moves several.

    Attributes
    ----------
    joint : its name
    law : its friction law
    values, sigma : (p,) of the law, in SI units
    simple : the same as Coulomb and viscous friction, over the velocities at which the friction was seen
    velocity : (m,) those velocities, ascending [rad/s]
    drive_inertia : inertia of motor and gear seen at the joint, None when it was not identified [kg m^2 or kg]
    drive : torque by PWM or current, None when it was not identified
    """

    joint: str
    law: FrictionLaw
    values: FloatArray
    sigma: FloatArray
    simple: SimpleFriction
    velocity: FloatArray
    drive_inertia: float | None
    drive: Drive | None = None

    @property
    def reduction(self) -> str:
        """What Coulomb and viscous friction do not say of this joint, in one sentence; empty when nothing."""
        if not self.simple.lost:
            return ""
        return (
            f"joint {self.joint!r}: the law {self.law.name!r} became Coulomb and viscous friction, least squares over "
            f"{self.velocity[0]:.3g} ... {self.velocity[-1]:.3g} rad/s; RMS torque {self.simple.torque_rms:.2g} N m, "
            f"not said: {'; '.join(self.simple.lost)}"
        )


def joint_frictions(saved: SavedIdentification, speed: float | None = None) -> tuple[JointFriction, ...]:
    """Friction of every joint of a parameter file.

    Parameters
    ----------
    saved : content of the file
    speed : agree with the law up to this speed [rad/s], at the loads that were seen; None: at the speeds that were
        seen, or up to 1 rad/s when the file does not say

    Raises
    ------
    ConfigError
        When the speed is not positive.
    """
    if speed is not None and not 0.0 < speed < float("inf"):
        raise ConfigError(f"the speed {speed:g} rad/s is not a positive number")
    friction, sigma = saved.friction, parameters_sigma(saved.friction)
    ranges = {one.joint: one for one in saved.ranges}
    joints = []
    for row, joint in enumerate(friction.joint_names):
        law = make_law(friction.law_names[row])
        values = friction.values[row, : len(law.parameter_names)]
        velocity, load = _motion(ranges.get(joint), speed)
        simple = simplify(law, values, velocity, load)
        inertia = _drive_inertia(saved.parameters, joint)
        drive = _drive(saved.parameters, joint)
        joints.append(JointFriction(joint, law, values, sigma[row, : values.size], simple, velocity, inertia, drive))
    return tuple(joints)


def unknown_ranges(saved: SavedIdentification) -> tuple[str, ...]:
    """Joints of which the file does not say at which velocities their friction was seen."""
    known = {one.joint for one in saved.ranges}
    return tuple(joint for joint in saved.friction.joint_names if joint not in known)


def _motion(seen: OperatingRange | None, speed: float | None) -> tuple[FloatArray, FloatArray]:
    """Velocities (m,) and loads (m,) of the projection: those seen, stretched or shrunk to a given speed."""
    if seen is None:
        velocity = np.linspace(-1.0, 1.0, _VELOCITIES) * (_UNKNOWN_SPEED if speed is None else speed)
        return velocity, np.zeros(velocity.size)
    velocity = np.array(seen.velocity)
    if speed is not None:
        velocity *= speed / np.abs(velocity).max()
    return velocity, np.array(seen.load) if seen.load else np.zeros(velocity.size)


def _drive(parameters: ParameterTable | None, motor: str) -> Drive | None:
    """``<motor>/drive_offset`` and ``<motor>/drive_gain`` of the method `motor`."""
    names = [f"{motor}/drive_offset", f"{motor}/drive_gain"]
    if parameters is None or not set(names) <= set(parameters.names):
        return None
    offset, gain = (parameters.names.index(name) for name in names)
    return Drive(float(parameters.values[offset]), float(parameters.values[gain]), parameters.units[gain])


def _drive_inertia(parameters: ParameterTable | None, joint: str) -> float | None:
    """Of ``Ia <joint>``; one that is grouped with inertias of links is not that of the drive."""
    name = f"Ia {joint}"
    if parameters is None or name not in parameters.names:
        return None
    value = float(parameters.values[parameters.names.index(name)])
    return value if value >= 0.0 else None
