"""URDFs whose links have other masses, inertias and centres of mass than the simulated robot."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from friction_estimator.errors import SimulationError
from friction_estimator.types import FloatArray

_MAX_DEVIATION = 3.0  # errors are cut to this multiple of the standard deviation
_MAX_MASS_STD = 0.3  # so that no mass becomes negative
_INERTIAS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def perturbed_urdf(urdf_xml: str, mass_std: float = 0.10, com_std: float = 0.005, seed: int = 0) -> str:
    """Copy of a URDF with random errors in the mass and the centre of mass of every link.

    Give the simulator the true URDF and the estimator this one. The inertia about the centre of mass is scaled with the
    mass, so that every link stays a possible body; links without mass stay without. Errors beyond three standard
    deviations are cut to three.

    Parameters
    ----------
    urdf_xml : text of the URDF
    mass_std : standard deviation of the relative error of each mass, at most 0.3
    com_std : standard deviation of the shift of each centre of mass, per axis [m]
    seed : the same seed gives the same errors

    Raises
    ------
    SimulationError
        When a standard deviation is out of range, or the text is not a URDF.
    """
    if not (0.0 <= mass_std <= _MAX_MASS_STD and 0.0 <= com_std < np.inf):
        raise SimulationError(
            f"mass_std must be between 0 and {_MAX_MASS_STD} and com_std a length in metres, "
            f"got {mass_std} and {com_std}"
        )
    root = _parsed(urdf_xml)
    rng = np.random.default_rng(seed)
    for link in root.iter("link"):
        errors = np.clip(rng.standard_normal(4), -_MAX_DEVIATION, _MAX_DEVIATION)
        inertial = link.find("inertial")
        if inertial is not None:
            factor = 1.0 + mass_std * float(errors[0])
            _perturb(inertial, factor, factor, com_std * errors[1:])
    return ElementTree.tostring(root, encoding="unicode")


def scaled_urdf(urdf_xml: str, mass: float, inertia: float | None = None) -> str:
    """Copy of a URDF with mass and inertia of every link multiplied by a factor each; None: that of the mass.

    Raises
    ------
    SimulationError
        When a factor is not positive or the text is not a URDF.
    """
    factors = (mass, mass if inertia is None else inertia)
    if not all(0.0 < factor < np.inf for factor in factors):
        raise SimulationError(f"masses and inertias can only be multiplied by positive numbers, got {factors}")
    root = _parsed(urdf_xml)
    for inertial in root.iter("inertial"):
        _perturb(inertial, *factors, np.zeros(3))
    return ElementTree.tostring(root, encoding="unicode")


def _parsed(urdf_xml: str) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(urdf_xml)
    except ElementTree.ParseError as error:
        raise SimulationError(f"the URDF is not valid XML: {error}") from None


def _perturb(inertial: ElementTree.Element, mass_factor: float, inertia_factor: float, shift: FloatArray) -> None:
    """Scale mass and inertia, and shift the centre of mass, in link axes."""
    mass, inertia, origin = (inertial.find(tag) for tag in ("mass", "inertia", "origin"))
    if mass is None or float(mass.get("value", "0")) <= 0.0:
        return
    _scale(mass, ("value",), mass_factor)
    if inertia is not None:
        _scale(inertia, _INERTIAS, inertia_factor)
    if origin is None:
        origin = ElementTree.SubElement(inertial, "origin")
    place = np.array([float(value) for value in origin.get("xyz", "0 0 0").split()])
    origin.set("xyz", " ".join(repr(value) for value in (place + shift).tolist()))


def _scale(element: ElementTree.Element, attributes: tuple[str, ...], factor: float) -> None:
    for name in attributes:
        element.set(name, repr(factor * float(element.get(name, "0"))))
