"""Inertia of a URDF link in its principal axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np
from scipy.spatial.transform import Rotation

from friction_estimator.errors import RobotModelError
from friction_estimator.types import FloatArray

_ROUNDING = 1e-9
_ZERO = 1e-15


@dataclass(frozen=True, slots=True)
class LinkInertia:
    """Mass and principal inertia.

    Attributes
    ----------
    mass : [kg]
    com : (3) centre of mass in the link's frame [m]
    moments : (3) principal moments about it, ascending [kg m^2]
    axes : their directions in the link's frame
    possible : False where no rigid body has such moments: one is negative, or larger than the sum of the others
    """

    mass: float
    com: FloatArray
    moments: FloatArray
    axes: Rotation
    possible: bool


def link_inertia(link: Element) -> LinkInertia | None:
    """Inertia of a link; None for one without mass.

    Raises
    ------
    RobotModelError
        When ``<inertial>`` lacks a part or holds something else than numbers.
    """
    inertial = link.find("inertial")
    if inertial is None:
        return None
    mass, inertia = inertial.find("mass"), inertial.find("inertia")
    if mass is None or inertia is None:
        raise RobotModelError(f"the link {link.get('name')!r} has an <inertial> without <mass> or <inertia>")
    kilograms = numbers(mass.get("value", "0"))[0]
    if kilograms <= 0.0:
        return None
    names = ("ixx", "ixy", "ixz", "ixy", "iyy", "iyz", "ixz", "iyz", "izz")
    tensor = np.array([numbers(inertia.get(name, "0"))[0] for name in names]).reshape(3, 3)
    com, rotation = pose(inertial)
    moments, axes = np.linalg.eigh(tensor)
    axes[:, 0] *= np.sign(np.linalg.det(axes))  # right-handed
    moments[np.abs(moments) < _ZERO] = 0.0
    least = moments[2] - moments[1]
    possible = bool(moments[0] >= 0.0 and moments[0] >= least - _ROUNDING * moments[2])
    if possible and moments[2] > 0.0:  # of a flat body, or a rod, rounding must not tip the balance
        moments[0] = max(moments[0], least + _ROUNDING * moments[2])
    return LinkInertia(kilograms, com, np.maximum(moments, 0.0), rotation * Rotation.from_matrix(axes), possible)


def pose(element: Element) -> tuple[FloatArray, Rotation]:
    """Position (3) [m] and rotation of the ``<origin>`` in an element."""
    origin = element.find("origin")
    xyz, rpy = ("0 0 0", "0 0 0") if origin is None else (origin.get("xyz", "0 0 0"), origin.get("rpy", "0 0 0"))
    return np.array(numbers(xyz, 3)), Rotation.from_euler("xyz", numbers(rpy, 3))


def numbers(text: str, count: int = 1) -> Sequence[float]:
    """So many numbers in an attribute.

    Raises
    ------
    RobotModelError
        When there are more or fewer, or something else.
    """
    try:
        found = [float(word) for word in text.split()]
    except ValueError:
        found = []
    if len(found) != count:
        raise RobotModelError(f"the URDF has {text!r} where {count} numbers are expected")
    return found
