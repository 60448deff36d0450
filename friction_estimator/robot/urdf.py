"""Checks of a URDF by link and joint: its parser drops a link's inertia in silence where a number cannot be read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from friction_estimator.config.validation import check_name
from friction_estimator.errors import ConfigError, RobotModelError, choices
from friction_estimator.types import FloatArray

MAX_LINKS = 1000
"""The parser of URDFs calls itself for each link of a chain, and crashes with some thousands of them."""
MAX_SIZE = 20_000_000
"""Largest text of a URDF, in characters and bytes: 1000 links have less than one million."""
_MAX_SHOWN_CHARACTERS = 100
"""Characters of a text that an error shows."""
_MAX_DEPTH = 50
"""Elements inside one another; the deepest of a URDF are fewer than ten, and readers call themselves for each."""
_MAX_NUMBER = 1e9
"""Largest number in a mass, inertia or origin: products of larger ones overflow."""

_MOVABLE = ("revolute", "continuous", "prismatic")
"""Types of joints with one degree of freedom."""
_MOVING = (*_MOVABLE, "floating", "planar")
"""Types of joints that have an axis or more."""
_TYPES = (*_MOVING, "fixed")
"""All types of joints of a URDF."""
_INERTIA = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
"""Attributes of an inertia: the upper triangle of its matrix."""
_REQUIRED_ATTRIBUTES = {"mass": ("value",), "inertia": _INERTIA, "limit": ("effort", "velocity"), "mimic": ("joint",)}
"""Attributes without which the parser drops the element, or all of the URDF."""
_NUMERIC_ATTRIBUTES = {
    "mass": ("value",),
    "inertia": _INERTIA,
    "origin": ("xyz", "rpy"),
    "axis": ("xyz",),
    "limit": ("lower", "upper", "effort", "velocity"),
    "mimic": ("multiplier", "offset"),
    "dynamics": ("damping", "friction"),
    "calibration": ("rising", "falling"),
    "safety_controller": ("soft_lower_limit", "soft_upper_limit", "k_position", "k_velocity"),
}
_UNLIMITED = frozenset({"limit", "safety_controller"})
"""Elements whose numbers may be as large as a number can be: no limit."""
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


def parse_urdf(text: str, origin: str = "") -> Element:
    """Root element of a URDF in which everything that the dynamics use can be read.

    Parameters
    ----------
    text : the URDF
    origin : where it came from, for the message: a file or a topic

    Raises
    ------
    RobotModelError
        When it is not well-formed XML (line named), not a URDF, still a xacro, too large, its links are not one tree,
        or a number of a link or joint cannot be read or cannot be true. The message names link or joint, the text
        that is there, and what is valid.
    """
    urdf, source = f"the URDF {origin}".rstrip(), origin or "the text"
    if len(text) > MAX_SIZE:
        raise RobotModelError(f"{urdf} has {len(text)} characters; at most {MAX_SIZE} are read")
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:  # ValueError: half of a surrogate pair
        line, column = getattr(error, "position", (1, 0))
        raise RobotModelError(f"{urdf} is not valid XML, line {line}, column {column + 1}: {error}") from None
    if _depth(root) > _MAX_DEPTH:
        raise RobotModelError(f"{urdf} has more than {_MAX_DEPTH} elements inside one another")
    if root.tag != "robot":
        raise RobotModelError(f"{source} is not a URDF: its root element is <{root.tag}>, expected <robot>")
    if any("www.ros.org/wiki/xacro" in element.tag or "ros.org/xacro" in element.tag for element in root.iter()):
        raise RobotModelError(f"{source} is a xacro file, not a URDF: convert it first with `xacro FILE -o robot.urdf`")
    if root.find("link") is None:
        raise RobotModelError(f"{urdf} has no <link>: give the URDF of a whole robot")
    if "<!ENTITY" in text:
        raise RobotModelError(f"{urdf} declares XML entities, which URDF parsers do not expand: write their texts out")
    _declare_world(root)
    try:
        _check_links_and_joints(root)
    except (ConfigError, RobotModelError) as error:
        raise RobotModelError(f"{urdf}: {error}") from None
    return root


_WORLD = "world"
"""Link that need not be declared: Drake and MuJoCo weld a robot to it."""
_SHAPES = ("visual", "collision", "material")
"""Elements that no dynamics use; the parser of pinocchio prints lines about some that are valid elsewhere."""


def _declare_world(root: Element) -> None:
    parents = {joint_link(joint, "parent") for joint in root.findall("joint")}
    if _WORLD in parents and not any(link.get("name") == _WORLD for link in root.findall("link")):
        root.insert(0, Element("link", {"name": _WORLD}))


def _depth(root: Element) -> int:
    depth, level = 0, [root]
    while level:
        depth, level = depth + 1, [child for element in level for child in element]
    return depth


def checked_urdf(text: str) -> str:
    """A URDF as pinocchio must get it: after :func:`parse_urdf`, with blanks for line breaks and tabs in attributes.

    Shapes are left out. The parser of pinocchio would not read ``xyz="0<tab>0 1"``, and drop the inertia of that link.

    Raises
    ------
    RobotModelError
        As :func:`parse_urdf`, and when a joint lacks its limits.
    """
    root = parse_urdf(text)
    for joint in root.findall("joint"):
        if joint.get("type") in ("revolute", "prismatic") and joint.find("limit") is None:
            raise RobotModelError(
                f"the URDF: joint {joint.get('name')!r} has no <limit>: add one with lower, upper, effort and velocity"
            )
    for owner in (root, *root.findall("link")):
        for shape in [child for child in owner if child.tag in _SHAPES]:
            owner.remove(shape)
    return ElementTree.tostring(root, encoding="unicode")


def _check_links_and_joints(root: Element) -> None:
    links, joints = root.findall("link"), root.findall("joint")
    if len(links) > MAX_LINKS:
        raise RobotModelError(f"it has {len(links)} links; robots of up to {MAX_LINKS} links can be read")
    if len(joints) >= MAX_LINKS:  # one less than links where these are a tree
        raise RobotModelError(f"it has {len(joints)} joints; robots of up to {MAX_LINKS} links can be read")
    for kind, elements in (("link", links), ("joint", joints)):
        names = [element.get("name", "") for element in elements]
        for name in names:
            check_name(f"the name of the {kind}", name)
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise RobotModelError(f"the {kind} {choices(twice)} is there more than once: give each its own name")
    for link in links:
        for inertial in link.findall("inertial"):
            _check_inertial(f"link {link.get('name')!r}", inertial)
    for joint in joints:
        _check_joint(f"joint {joint.get('name')!r}", joint, {link.get("name") for link in links})
    _check_mimics(joints)
    _check_tree([link.get("name", "") for link in links], joints)


def _check_mimics(joints: Sequence[Element]) -> None:
    """Refuse joints that mimic themselves, or one another in a circle."""
    leaders = {
        joint.get("name", ""): element.get("joint", "")
        for joint in joints
        if (element := joint.find("mimic")) is not None
    }
    for joint, leader in leaders.items():
        passed = {joint}
        while leader in leaders and leader not in passed:
            passed.add(leader)
            leader = leaders[leader]
        if leader in passed:
            raise RobotModelError(f"joint {joint!r} mimics itself, or joints that mimic it: name a joint with a motor")


def movable_joints(root: Element) -> tuple[str, ...]:
    """Joints with one degree of freedom, in the order of the file; those that mimic others are not among them."""
    return tuple(
        joint.get("name", "")
        for joint in root.findall("joint")
        if joint.get("type") in _MOVABLE and joint.find("mimic") is None
    )


def mimics(urdf_xml: str) -> set[str]:
    """Joints of a checked URDF that follow another joint and have no motor of their own."""
    joints = ElementTree.fromstring(urdf_xml).findall("joint")
    return {joint.get("name", "") for joint in joints if joint.find("mimic") is not None}


def _check_inertial(owner: str, inertial: Element) -> None:
    for tag in ("mass", "inertia"):
        if inertial.find(tag) is None:
            raise RobotModelError(f"{owner} has an <inertial> without <{tag}>: add it, or leave out the <inertial>")
    _check_elements(owner, inertial)
    for mass in inertial.findall("mass"):
        if float(mass.get("value", "0")) < 0.0:
            raise RobotModelError(
                f"{owner} has the mass {mass.get('value')!r} kg; a mass is positive, or zero: write the mass of the "
                "link, or leave out the <inertial> of a link without mass"
            )


def _check_joint(owner: str, joint: Element, links: Iterable[str | None]) -> None:
    kind = joint.get("type")
    if kind not in _TYPES:
        raise RobotModelError(f"{owner} is of the type {kind!r}; the types are {choices(_TYPES)}")
    for end in ("parent", "child"):
        if (name := joint_link(joint, end)) not in links:
            raise RobotModelError(
                f"{owner} has the {end} link {name!r}, not in the URDF: correct the name, or add the link"
            )
    _check_elements(owner, joint)
    limit, axis = joint.find("limit"), joint.find("axis")
    if limit is not None:
        for name in ("effort", "velocity"):
            if float(limit.get(name, "0")) < 0.0:
                raise RobotModelError(f"{owner} has the limit {name} = {limit.get(name)!r}; it cannot be negative")
        lower, upper = (float(limit.get(name, "0")) for name in ("lower", "upper"))
        if lower > upper:
            raise RobotModelError(f"{owner} has the limits lower = {lower:g} and upper = {upper:g}: exchange them")
    if kind in _MOVING and axis is not None and axis.get("xyz") and np.linalg.norm(vector_of(axis, "xyz")) < 1e-6:
        raise RobotModelError(
            f"{owner} moves about or along the axis {axis.get('xyz')!r}, which has no direction: give one such as 0 0 1"
        )


def _check_elements(owner: str, parent: Element) -> None:
    """Refuse numbers that cannot be read, and elements that lack what the parser needs."""
    for element in parent:
        for name in _REQUIRED_ATTRIBUTES.get(element.tag, ()):
            if element.get(name) is None:
                raise RobotModelError(f"{owner} has a <{element.tag}> without {name!r}: add it")
        count = 3 if element.tag in ("origin", "axis") else 1
        largest = math.inf if element.tag in _UNLIMITED else _MAX_NUMBER
        for name in _NUMERIC_ATTRIBUTES.get(element.tag, ()):
            text = element.get(name)
            if text is None:
                continue
            words = list(filter(None, text.split(" "))) if count > 1 else [text]  # as the parser of pinocchio does
            if len(words) != count or not all(_is_number(word, largest) for word in words):
                wanted = "one finite number" if count == 1 else f"{count} finite numbers with blanks between them"
                size = "" if math.isinf(largest) else f", none larger than {largest:g}"
                raise RobotModelError(
                    f"{owner} has <{element.tag} {name}={text[:_MAX_SHOWN_CHARACTERS]!r}>: expected {wanted} such as "
                    f"1.5 or 2e-3{size}"
                )


def _is_number(word: str, largest: float) -> bool:
    return _NUMBER.fullmatch(word) is not None and math.isfinite(float(word)) and abs(float(word)) <= largest


def _check_tree(links: list[str], joints: list[Element]) -> None:
    parents = {joint_link(joint, "child"): joint_link(joint, "parent") for joint in joints}
    if len(parents) < len(joints):
        children = [joint_link(joint, "child") for joint in joints]
        twice = {name for name in children if children.count(name) > 1}
        raise RobotModelError(
            f"the links are not one tree: {choices(twice)} is the child of several joints: leave one parent to each"
        )
    roots = [name for name in links if name not in parents]
    if len(roots) != 1:
        raise RobotModelError(
            f"the links are not one tree: those without a parent are {choices(roots)}; give all but one a parent"
        )
    reached, waiting = set[str](), list(roots)
    children_of: dict[str, list[str]] = {}
    for child, parent in parents.items():
        children_of.setdefault(parent, []).append(child)
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting += children_of.get(name, [])
    if len(reached) < len(links):
        circle = [name for name in links if name not in reached]
        raise RobotModelError(
            f"the links are not one tree: {choices(circle)} hang on one another in a circle: cut it at one joint"
        )


def joint_link(joint: Element, which: str) -> str:
    """Name of the link that the element ``parent`` or ``child`` of a joint gives; empty where there is none."""
    end = joint.find(which)
    return "" if end is None else end.get("link", "")


def mass_and_inertia(inertial: Element) -> tuple[float, FloatArray]:
    """Mass [kg] and inertia (3, 3) about the centre of mass [kg m^2] of a checked ``<inertial>``."""
    mass, inertia = inertial.find("mass"), inertial.find("inertia")
    if mass is None or inertia is None:  # refused by parse_urdf
        return 0.0, np.zeros((3, 3))
    xx, xy, xz, yy, yz, zz = (float(inertia.get(name, "0")) for name in _INERTIA)
    return float(mass.get("value", "0")), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def vector_of(element: Element | None, name: str) -> FloatArray:
    """The three numbers of an attribute, ``xyz`` or ``rpy``; zeros where there is none."""
    text = "" if element is None else element.get(name, "")
    return np.array(text.split() or (0.0, 0.0, 0.0), dtype=float)


def differing_parts(first: str, second: str) -> list[str]:
    """Links and joints in which the dynamics of two URDFs differ, such as ``joint l_knee``.

    Raises
    ------
    RobotModelError
        As :func:`parse_urdf`.
    """
    one, other = _dynamics_of(parse_urdf(first)), _dynamics_of(parse_urdf(second))
    return [name for name in {**one, **other} if one.get(name) != other.get(name)]


_UNUSED = (*_SHAPES, "dynamics", "calibration", "safety_controller")
"""Elements of links and joints that the estimator does not use: it finds friction and damping itself."""


def _dynamics_of(root: Element) -> dict[str, Any]:
    """What the dynamics use of each link and joint; numbers to the six digits that programs write."""

    def content(element: Element) -> Any:
        words = {name: text.split() for name, text in element.attrib.items()}
        values = {
            name: [f"{float(word) + 0.0:.6g}" if _NUMBER.fullmatch(word) else word for word in texts]
            for name, texts in words.items()
        }
        return values, {child.tag: content(child) for child in element if child.tag not in _UNUSED}

    return {f"{part.tag} {part.get('name')}": content(part) for part in root if part.tag in ("link", "joint")}


_MAX_LINK_MASS, _MAX_LINK_LENGTH = 1000.0, 10.0
"""Largest plausible mass [kg], and largest plausible distance of the centre of mass or radius of gyration [m], of a
link."""
_INERTIA_TOLERANCE = 0.05
"""Part of the largest principal moment by which moments may contradict a rigid body: the digits in a URDF are few."""
_MIN_INERTIA_ERROR = 1e-4
"""A contradiction smaller than this is not reported: at 100 rad/s^2 it is 0.01 N m [kg m^2]."""


def urdf_warnings(urdf_xml: str) -> tuple[str, ...]:
    """What a checked URDF has that is hardly true, one sentence for each kind, which names the links."""
    found: dict[str, list[str]] = {}
    for link in ElementTree.fromstring(urdf_xml).findall("link"):
        inertial = link.find("inertial")
        for warning in () if inertial is None else _warnings_of(inertial):
            found.setdefault(warning, []).append(link.get("name", ""))
    return tuple(f"{warning}: {', '.join(names)}; check <inertial> in the URDF" for warning, names in found.items())


def _warnings_of(inertial: Element) -> Iterator[str]:
    kilograms, inertia = mass_and_inertia(inertial)
    if kilograms > _MAX_LINK_MASS:
        yield f"links of more than {_MAX_LINK_MASS:g} kg"
    if np.linalg.norm(vector_of(inertial.find("origin"), "xyz")) > _MAX_LINK_LENGTH:
        yield f"links with a centre of mass more than {_MAX_LINK_LENGTH:g} m from their frame (millimetres?)"
    least, middle, largest = np.linalg.eigvalsh(inertia)
    allowed = max(_INERTIA_TOLERANCE * largest, _MIN_INERTIA_ERROR)
    if least < -allowed:
        yield "links with a negative moment of inertia, which no rigid body has"
    elif largest - middle - least > allowed:
        yield "links with a moment of inertia larger than the sum of the other two, which no rigid body has"
    if largest > max(kilograms, 1.0) * _MAX_LINK_LENGTH**2:
        yield f"links with a radius of gyration of more than {_MAX_LINK_LENGTH:g} m (g mm^2 or kg cm^2?)"
