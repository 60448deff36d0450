"""The friction of one joint as exporters need it: the law itself, and Coulomb and viscous friction in its place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.core.exceptions import ConfigError
from friction_estimator.core.friction import FrictionLaw, make_law
from friction_estimator.core.friction.identified import parameters_sigma
from friction_estimator.core.friction.simple_friction import SimpleFriction, depends_on_load, simplify
from friction_estimator.core.identification import ParameterTable
from friction_estimator.core.operating_range import OperatingRange
from friction_estimator.core.types import FloatArray
from friction_estimator.files.identification import SavedIdentification

_VELOCITIES = 200
_UNKNOWN_SPEED = 1.0


@dataclass(frozen=True, slots=True)
class JointFriction:
    """One joint.

    Attributes
    ----------
    joint : its name
    law : its friction law
    values, sigma : (p,) of the law, in SI units
    simple : the same as Coulomb and viscous friction, over the velocities at which the friction was seen
    range : those velocities
    drive_inertia : inertia of motor and gear seen at the joint, None when it was not identified [kg m^2 or kg]
    """

    joint: str
    law: FrictionLaw
    values: FloatArray
    sigma: FloatArray
    simple: SimpleFriction
    range: OperatingRange
    drive_inertia: float | None

    @property
    def reduction(self) -> str:
        """What Coulomb and viscous friction do not say of this joint, in one sentence; empty when nothing."""
        if not self.simple.lost:
            return ""
        return (
            f"joint {self.joint!r}: the law {self.law.name!r} became Coulomb and viscous friction, least squares over "
            f"{self.range.lowest:.3g} ... {self.range.highest:.3g} rad/s; RMS torque {self.simple.torque_rms:.2g} N m, "
            f"not said: {'; '.join(self.simple.lost)}"
        )


def joint_frictions(saved: SavedIdentification, speed: float | None = None) -> tuple[JointFriction, ...]:
    """Friction of every joint of a parameter file.

    Parameters
    ----------
    saved : content of the file
    speed : agree with the law up to this speed [rad/s]; None: where the friction was seen, or up to 1 rad/s when the
        file does not say

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
        where = _range(joint, ranges.get(joint), speed)
        simple = simplify(law, values, _velocities(where), _loads(law, where))
        inertia = _drive_inertia(saved.parameters, joint)
        joints.append(JointFriction(joint, law, values, sigma[row, : values.size], simple, where, inertia))
    return tuple(joints)


def unknown_ranges(saved: SavedIdentification) -> tuple[str, ...]:
    """Joints of which the file does not say at which velocities their friction was seen."""
    known = {one.joint for one in saved.ranges}
    return tuple(joint for joint in saved.friction.joint_names if joint not in known)


def _range(joint: str, seen: OperatingRange | None, speed: float | None) -> OperatingRange:
    if seen is None:
        top = _UNKNOWN_SPEED if speed is None else speed
        return OperatingRange(joint, -top, top, 0.0, ())
    if speed is None:
        return seen
    return OperatingRange(joint, -speed, speed, min(seen.slowest, 0.5 * speed), seen.load)


def _velocities(where: OperatingRange) -> FloatArray:
    """Evenly spaced over the range, ascending, without what is slower than the slowest."""
    even = np.linspace(where.lowest, where.highest, _VELOCITIES)
    kept = even[(np.abs(even) >= where.slowest) & (even != 0.0)]
    if kept.size:
        return kept
    ends = np.array([where.lowest, where.highest])
    return np.unique(ends[ends != 0.0]) if ends.any() else np.array([-_UNKNOWN_SPEED, _UNKNOWN_SPEED])


def _loads(law: FrictionLaw, where: OperatingRange) -> FloatArray:
    return np.array(where.load) if where.load and depends_on_load(law) else np.zeros(1)


def _drive_inertia(parameters: ParameterTable | None, joint: str) -> float | None:
    """Of ``Ia <joint>``; one that is grouped with inertias of links is not that of the drive."""
    name = f"Ia {joint}"
    if parameters is None or name not in parameters.names:
        return None
    value = float(parameters.values[parameters.names.index(name)])
    return value if value >= 0.0 else None
