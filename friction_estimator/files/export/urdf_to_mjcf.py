"""A plain MJCF from a URDF: bodies, inertias, joints and collision primitives.

For simulators of the MuJoCo family without MuJoCo at hand. As MuJoCo's own reader of URDF does, the root link is fixed
to the world.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np
from scipy.spatial.transform import Rotation

from friction_estimator.core.exceptions import RobotModelError, choices
from friction_estimator.core.types import FloatArray
from friction_estimator.files.urdf import check_urdf

_TYPES = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide"}


def urdf_to_mjcf(urdf_xml: str) -> tuple[str, tuple[str, ...]]:
    """Text of the MJCF, and what it lacks, in sentences.

    Raises
    ------
    RobotModelError
        When the text is not a URDF, its links are no tree, or a joint is of a type that MJCF lacks.
    """
    check_urdf(urdf_xml, "given as the model")
    robot = ElementTree.fromstring(urdf_xml)
    links = {link.get("name", ""): link for link in robot.iterfind("link")}
    joints: dict[str, list[Element]] = {}
    for joint in robot.iterfind("joint"):
        joints.setdefault(_linked(joint, "parent", links), []).append(joint)
    children = [_linked(joint, "child", links) for found in joints.values() for joint in found]
    roots = [name for name in links if name not in children]
    no_tree = f"the links of the URDF are not one tree; those without a parent are {choices(roots)}"
    if len(roots) != 1 or len(children) != len(set(children)):
        raise RobotModelError(no_tree)
    mujoco = Element("mujoco", model=robot.get("name", "robot"))
    SubElement(mujoco, "compiler", angle="radian", autolimits="true")
    _add_body(SubElement(mujoco, "worldbody"), roots[0], Element("joint", type="fixed"), links, joints)
    if sum(1 for _ in mujoco.iter("body")) != len(links):  # the others hang on one another in a circle
        raise RobotModelError(no_tree)
    ElementTree.indent(mujoco)
    return ElementTree.tostring(mujoco, encoding="unicode") + "\n", _left_out(robot)


def _linked(joint: Element, which: str, links: dict[str, Element]) -> str:
    end = joint.find(which)
    name = "" if end is None else end.get("link", "")
    if name not in links:
        raise RobotModelError(f"the {which} link {name!r} of the joint {joint.get('name')!r} is not in the URDF")
    return name


def _left_out(robot: Element) -> tuple[str, ...]:
    warnings = [
        "the MJCF made from the URDF has no visuals; its root is fixed to the world, add <freejoint/> to free it"
    ]
    meshes = [
        link.get("name", "") for link in robot.iterfind("link") if link.find("collision/geometry/mesh") is not None
    ]
    if meshes:
        warnings.append(f"collision meshes are left out, of the links {', '.join(meshes)}")
    mimics = [joint.get("name", "") for joint in robot.iterfind("joint") if joint.find("mimic") is not None]
    if mimics:
        warnings.append(f"the joints {', '.join(mimics)} mimic others in the URDF, and are free in the MJCF")
    return tuple(warnings)


def _add_body(
    parent: Element, link: str, joint: Element, links: dict[str, Element], joints: dict[str, list[Element]]
) -> None:
    body = SubElement(parent, "body", {"name": link, **_pose(joint.find("origin"))})
    _add_joint(body, joint)
    _add_inertial(body, links[link].find("inertial"))
    for collision in links[link].iterfind("collision"):
        _add_geom(body, collision)
    for below in joints.get(link, ()):
        _add_body(body, _linked(below, "child", links), below, links, joints)


def _add_joint(body: Element, joint: Element) -> None:
    kind = joint.get("type", "")
    if kind == "fixed":
        return
    if kind not in _TYPES:
        raise RobotModelError(
            f"the joint {joint.get('name')!r} is {kind!r}; joints that become MJCF are fixed, {', '.join(_TYPES)}"
        )
    axis, limit = joint.find("axis"), joint.find("limit")
    attributes = {"name": joint.get("name", ""), "type": _TYPES[kind]}
    attributes["axis"] = "1 0 0" if axis is None else axis.get("xyz", "1 0 0")
    if limit is not None and kind != "continuous":
        attributes["range"] = f"{limit.get('lower', '0')} {limit.get('upper', '0')}"
    dynamics = joint.find("dynamics")
    if dynamics is not None:
        attributes |= {"damping": dynamics.get("damping", "0"), "frictionloss": dynamics.get("friction", "0")}
    SubElement(body, "joint", attributes)


def _add_inertial(body: Element, inertial: Element | None) -> None:
    if inertial is None:
        return
    mass, inertia, origin = inertial.find("mass"), inertial.find("inertia"), inertial.find("origin")
    if mass is None or inertia is None:
        raise RobotModelError(f"the link {body.get('name')!r} has an <inertial> without <mass> or <inertia>")
    ixx, ixy, ixz, iyy, iyz, izz = (
        float(inertia.get(name, "0")) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    )
    R = _rotation(origin).as_matrix()
    turned = R @ np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]]) @ R.T
    full = [turned[0, 0], turned[1, 1], turned[2, 2], turned[0, 1], turned[0, 2], turned[1, 2]]
    position = "0 0 0" if origin is None else origin.get("xyz", "0 0 0")
    SubElement(body, "inertial", pos=position, mass=mass.get("value", "0"), fullinertia=_text(full))


def _add_geom(body: Element, collision: Element) -> None:
    shape = collision.find("geometry/*")
    if shape is None or shape.tag not in ("box", "sphere", "cylinder"):
        return
    if shape.tag == "box":
        size = _text([0.5 * float(edge) for edge in shape.get("size", "").split()])
    elif shape.tag == "sphere":
        size = shape.get("radius", "")
    else:
        size = _text([float(shape.get("radius", "")), 0.5 * float(shape.get("length", ""))])
    SubElement(body, "geom", {"type": shape.tag, "size": size, **_pose(collision.find("origin"))})


def _pose(origin: Element | None) -> dict[str, str]:
    x, y, z, w = _rotation(origin).as_quat()
    position = "0 0 0" if origin is None else origin.get("xyz", "0 0 0")
    return {"pos": position, "quat": _text([w, x, y, z])}


def _rotation(origin: Element | None) -> Rotation:
    angles = [float(angle) for angle in ("0 0 0" if origin is None else origin.get("rpy", "0 0 0")).split()]
    return Rotation.from_euler("xyz", angles)


def _text(numbers: Sequence[float] | FloatArray) -> str:
    return " ".join(repr(float(number)) for number in numbers)
