"""A plain MJCF from a URDF: bodies, inertias, joints and collision primitives.

For simulators of the MuJoCo family without MuJoCo at hand. As in MuJoCo's own reader of URDF the root link is fixed to
the world.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np
from scipy.spatial.transform import Rotation

from friction_estimator.errors import RobotModelError
from friction_estimator.robot.urdf import end_of, mass_and_inertia, parse_urdf
from friction_estimator.types import FloatArray

_TYPES = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide"}
_WORLD = "world"
_LEAST_MASS, _LEAST_INERTIA = 1e-9, 1e-12


def urdf_to_mjcf(urdf_xml: str) -> tuple[str, tuple[str, ...]]:
    """Text of the MJCF, and what it lacks, in sentences.

    Raises
    ------
    RobotModelError
        When the text is not a valid URDF, or a joint is of a type that MJCF lacks.
    """
    robot = parse_urdf(urdf_xml, "given as the model")
    mujoco = Element("mujoco", model=robot.get("name", "robot"))
    compiler = SubElement(mujoco, "compiler", angle="radian", autolimits="true")
    _add_links(SubElement(mujoco, "worldbody"), robot)
    warnings = (*_repair(compiler, robot), *_left_out(robot))
    ElementTree.indent(mujoco)
    return ElementTree.tostring(mujoco, encoding="unicode") + "\n", warnings


def _add_links(worldbody: Element, robot: Element) -> None:
    links = {link.get("name", ""): link for link in robot.iterfind("link")}
    joints: dict[str, list[Element]] = {}
    for joint in robot.iterfind("joint"):
        joints.setdefault(end_of(joint, "parent"), []).append(joint)
    children = {end_of(joint, "child") for found in joints.values() for joint in found}
    root = next(name for name in links if name not in children)
    waiting = [(worldbody, Element("joint", type="fixed"), root)]
    while waiting:
        parent, joint, name = waiting.pop()
        body = parent if name == _WORLD else _body(parent, joint, links[name])
        for collision in links[name].iterfind("collision"):
            _add_geom(body, collision)
        waiting += [(body, below, end_of(below, "child")) for below in reversed(joints.get(name, []))]


def _body(parent: Element, joint: Element, link: Element) -> Element:
    body = SubElement(parent, "body", {"name": link.get("name", ""), **_placed(*pose(joint))})
    if joint.get("type") != "fixed":
        _add_joint(body, joint)
    inertia = link_inertia(link)
    if inertia is not None:
        attributes = {"mass": repr(inertia.mass), "diaginertia": _text(inertia.moments)}
        SubElement(body, "inertial", {**_placed(inertia.com, inertia.axes), **attributes})
    return body


def _add_joint(body: Element, joint: Element) -> None:
    kind = joint.get("type", "")
    if kind not in _TYPES:
        raise RobotModelError(
            f"the joint {joint.get('name')!r} is {kind!r}; joints that become MJCF are fixed, {', '.join(_TYPES)}"
        )
    axis, limit, dynamics = joint.find("axis"), joint.find("limit"), joint.find("dynamics")
    attributes = {"name": joint.get("name", ""), "type": _TYPES[kind]}
    attributes["axis"] = "1 0 0" if axis is None else axis.get("xyz", "1 0 0")
    if limit is not None and kind != "continuous":
        lower, upper = (numbers(limit.get(end, "0"))[0] for end in ("lower", "upper"))
        if lower < upper:
            attributes["range"] = _text((lower, upper))
    if dynamics is not None:
        attributes |= {"damping": dynamics.get("damping", "0"), "frictionloss": dynamics.get("friction", "0")}
    SubElement(body, "joint", attributes)


def _add_geom(body: Element, collision: Element) -> None:
    """A primitive without mass: the mass of the link is in its ``<inertial>``."""
    shape = collision.find("geometry/*")
    if shape is None or shape.tag not in ("box", "sphere", "cylinder"):
        return
    if shape.tag == "box":
        size = _text(0.5 * edge for edge in numbers(shape.get("size", ""), 3))
    else:
        radius = numbers(shape.get("radius", ""))[0]
        size = _text((radius,) if shape.tag == "sphere" else (radius, 0.5 * numbers(shape.get("length", ""))[0]))
    SubElement(body, "geom", {"type": shape.tag, "size": size, "mass": "0", **_placed(*pose(collision))})


def _repair(compiler: Element, robot: Element) -> list[str]:
    """Let the compiler correct inertias that MuJoCo would refuse; returns a warning for each kind."""
    moving = [joint.find("child") for joint in robot.iterfind("joint") if joint.get("type") != "fixed"]
    names = {child.get("link", "") for child in moving if child is not None}
    links = {link.get("name", ""): link_inertia(link) for link in robot.iterfind("link")}
    points = [name for name, inertia in links.items() if name in names and _is_point(inertia)]
    impossible = [name for name, inertia in links.items() if inertia is not None and not inertia.possible]
    warnings = []
    if points:
        compiler.attrib |= {"boundmass": repr(_LEAST_MASS), "boundinertia": repr(_LEAST_INERTIA)}
        warnings.append(
            f"MuJoCo moves no link without mass or inertia: {', '.join(points)} get at least {_LEAST_MASS:g} kg and "
            f"{_LEAST_INERTIA:g} kg m^2"
        )
    if impossible:
        compiler.set("balanceinertia", "true")
        warnings.append(f"no rigid body has the inertia of {', '.join(impossible)}: MuJoCo makes spheres of them")
    return warnings


def _is_point(inertia: LinkInertia | None) -> bool:
    return inertia is None or inertia.mass < _LEAST_MASS or (inertia.possible and inertia.moments[0] < _LEAST_INERTIA)


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


def _placed(position: FloatArray, rotation: Rotation) -> dict[str, str]:
    x, y, z, w = rotation.as_quat()
    return {"pos": _text(position), "quat": _text((w, x, y, z))}


def _text(values: Iterable[float] | FloatArray) -> str:
    return " ".join(repr(float(value)) for value in values)


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
    """Inertia of a link; None for one without mass."""
    inertial = link.find("inertial")
    if inertial is None:
        return None
    kilograms, tensor = mass_and_inertia(inertial)
    if kilograms <= 0.0:
        return None
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
    """Numbers in the text of an attribute, of which there must be ``count``.

    Raises
    ------
    RobotModelError
        When there are more or fewer, or something else.
    """
    try:
        found = [float(word) for word in text.split()]
    except ValueError:
        found = []
    if len(found) != count or not all(map(math.isfinite, found)):
        raise RobotModelError(f"the URDF has {text!r} where {count} numbers are expected")
    return found
