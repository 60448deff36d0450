"""An MJCF from a URDF, by MuJoCo's own reader: bodies, inertias, joints and collision primitives."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from friction_estimator.errors import RobotModelError
from friction_estimator.robot.urdf import end_of, mass_and_inertia, parse_urdf

_TYPES = ("fixed", "revolute", "continuous", "prismatic")
_LEAST_MASS, _LEAST_INERTIA = 1e-9, 1e-12
_DIAGONAL = ("ixx", "iyy", "izz")
_ROUNDING = 1e-9
"""Part by which the largest principal moment may exceed the sum of the others."""


def urdf_to_mjcf(urdf_xml: str) -> tuple[str, tuple[str, ...]]:
    """Text of the MJCF, and what it lacks, in sentences.

    Raises
    ------
    RobotModelError
        When the text is not a valid URDF, a joint is of a type that MJCF lacks, or MuJoCo cannot read it.
    """
    import mujoco  # the extra `simulation`

    robot = parse_urdf(urdf_xml, "given as the model")
    for joint in robot.iterfind("joint"):
        if joint.get("type") not in _TYPES:
            raise RobotModelError(
                f"the joint {joint.get('name')!r} is {joint.get('type')!r}; joints that become MJCF are "
                f"{', '.join(_TYPES)}"
            )
    warnings = (*_mended(robot), *_left_out(robot))
    for link in robot.iterfind("link"):
        for shape in (*link.findall("visual"), *link.findall("collision")):
            if shape.tag == "visual" or shape.find("geometry/mesh") is not None:
                link.remove(shape)
    try:
        spec = mujoco.MjSpec.from_string(ElementTree.tostring(robot, encoding="unicode"))
        spec.compiler.fusestatic = False
        spec.compiler.boundmass, spec.compiler.boundinertia = _LEAST_MASS, _LEAST_INERTIA
        model = spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        raise RobotModelError(f"MuJoCo cannot read the URDF: {error}") from None
    return _with_all_digits(spec.to_xml(), model), warnings


def _with_all_digits(mjcf: str, model: Any) -> str:
    """Bodies, inertias and joints with the numbers of the compiled model: MuJoCo writes six digits."""
    root = ElementTree.fromstring(mjcf)
    for body in root.iter("body"):
        here = model.body(body.get("name"))
        exact = [(body, {"pos": here.pos, "quat": here.quat})]
        for inertial in body.findall("inertial"):
            numbers = {"pos": here.ipos, "quat": here.iquat, "mass": here.mass, "diaginertia": here.inertia}
            exact.append((inertial, numbers))
        for joint in body.findall("joint"):
            found = model.joint(joint.get("name"))
            exact.append((joint, {"axis": found.axis, **({"range": found.range} if joint.get("range") else {})}))
        for element, values in exact:
            element.attrib |= {name: " ".join(map(repr, value.tolist())) for name, value in values.items()}
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _mended(robot: Element) -> list[str]:
    """Change inertias that MuJoCo refuses; a warning for each kind."""
    moved = {end_of(joint, "child") for joint in robot.iterfind("joint") if joint.get("type") != "fixed"}
    points, impossible = [], []
    for link in robot.iterfind("link"):
        inertial, name = link.find("inertial"), link.get("name", "")
        mass, tensor = (0.0, np.zeros((3, 3))) if inertial is None else mass_and_inertia(inertial)
        least, middle, largest = np.linalg.eigvalsh(tensor).tolist()
        possible = least >= -_ROUNDING * largest and largest - middle - least <= _ROUNDING * largest
        if inertial is not None and mass > 0.0 and not possible:
            impossible.append(name)
            mean = max(float(np.trace(tensor)) / 3.0, 0.0)
            for inertia in inertial.findall("inertia"):
                inertia.attrib |= {key: repr(mean if key in _DIAGONAL else 0.0) for key in inertia.attrib}
        elif name in moved and (mass < _LEAST_MASS or largest < _LEAST_INERTIA):
            points.append(name)
    warnings = []
    if points:
        warnings.append(
            f"MuJoCo moves no link without mass or inertia: {', '.join(points)} get at least {_LEAST_MASS:g} kg and "
            f"{_LEAST_INERTIA:g} kg m^2"
        )
    if impossible:
        warnings.append(
            f"no rigid body has the inertia of {', '.join(impossible)}: spheres with the same mean stand for them"
        )
    return warnings


def _left_out(robot: Element) -> list[str]:
    warnings = ["the MJCF made from the URDF has no visuals; its root is fixed to the world, <freejoint/> frees it"]
    links = robot.iterfind("link")
    meshes = [link.get("name", "") for link in links if link.find("collision/geometry/mesh") is not None]
    if meshes:
        warnings.append(f"collision meshes are left out, of the links {', '.join(meshes)}")
    mimics = [joint.get("name", "") for joint in robot.iterfind("joint") if joint.find("mimic") is not None]
    if mimics:
        warnings.append(f"the joints {', '.join(mimics)} mimic others in the URDF, and are free in the MJCF")
    return warnings
