"""Friction on the joints of a URDF, an SDF or an MJCF, whose other bytes stay as they are; MJCF made from a URDF."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element as XmlElement
from xml.parsers import expat
from xml.sax.saxutils import escape

import numpy as np

from friction_estimator.errors import ConfigError, RobotModelError, choices
from friction_estimator.io.export.exporter import ExportedFriction, ExportRequest, ExportResult, reductions
from friction_estimator.robot.urdf import joint_link, mass_and_inertia, parse_urdf

_URDF, _IDENTIFIED = "urdf", "identified"


def export_urdf(request: ExportRequest, inertia: str = _URDF) -> ExportResult:
    """The given URDF with other ``<dynamics>`` and, if wanted, ``<inertial>``; every other byte stays.

    Raises
    ------
    ConfigError
        When no bodies were identified, or ``inertia`` has another value.
    """
    parse_urdf(request.model, "given as the model")
    if inertia not in (_URDF, _IDENTIFIED):
        raise ConfigError(f"inertia is {inertia!r}, expected one of {choices((_URDF, _IDENTIFIED))}")
    if inertia == _IDENTIFIED:
        if not request.bodies:
            raise ConfigError(
                "no bodies were identified: links of the URDF were taken as known, or this is no arm or leg. Identify "
                f"with unknown links, or export with inertia: {_URDF}, which leaves those of the model"
            )
        request = replace(request, model=urdf_with_bodies(request.model, request.bodies))
    document, pairs, warnings = _with_dynamics(request)
    return _changed(document, pairs, (*warnings, *_without_armature(pairs, "a URDF")))


def _with_dynamics(request: ExportRequest) -> tuple[_XmlText, list[_Pair], list[str]]:
    """The URDF with other ``<dynamics>``, joints with their elements, and warnings."""
    document = _XmlText(request.model, "URDF")
    elements = [element for element in document.elements if element.path == ("robot", "joint")]
    pairs, warnings = matched(request, elements, "URDF")
    for joint, element in pairs:
        numbers = {"damping": repr(joint.coulomb_viscous.viscous), "friction": repr(joint.coulomb_viscous.coulomb)}
        dynamics = element.child("dynamics")
        if dynamics is None:
            attributes = " ".join(f'{name}="{value}"' for name, value in numbers.items())
            document.replace_child(element, "dynamics", f"<dynamics {attributes}/>")
        else:
            document.set(dynamics, numbers)
        if element.attributes.get("type") == "fixed":
            warnings.append(f"joint {joint.joint!r} is fixed in the URDF: its friction has no effect")
    return document, pairs, warnings


def export_gazebo(request: ExportRequest) -> ExportResult:
    """The given SDF with other ``<dynamics>`` of the axes, or the URDF, of which Gazebo reads the same numbers.

    SDFormat has ``damping`` [N m s/rad] and ``friction`` [N m], which is static and Coulomb friction in one (SDFormat,
    ``sdf::JointAxis``; the physics engine DART takes it as the Coulomb friction of the joint).

    Raises
    ------
    RobotModelError
        When the model is neither an SDF nor a URDF, or has none of the joints.
    """
    document = _XmlText(request.model, "model")
    if document.root == "robot":
        return export_urdf(request)
    if document.root != "sdf":
        raise RobotModelError(f"the model is neither an SDF nor a URDF: its root element is <{document.root}>")
    elements = [one for one in document.elements if one.path[-2:] == ("model", "joint")]
    pairs, warnings = matched(request, elements, "SDF")
    for joint, element in pairs:
        axis = element.child("axis")
        if axis is None:
            warnings.append(f"joint {joint.joint!r} has no <axis> in the SDF: its friction is left out")
            continue
        numbers = {"damping": joint.coulomb_viscous.viscous, "friction": joint.coulomb_viscous.coulomb}
        texts = {name: f"<{name}>{value!r}</{name}>" for name, value in numbers.items()}
        dynamics = axis.child("dynamics")
        if dynamics is None or dynamics.start == dynamics.end:
            document.replace_child(axis, "dynamics", f"<dynamics>{''.join(texts.values())}</dynamics>")
        else:
            for name, text in texts.items():
                document.replace_child(dynamics, name, text)
    return _changed(document, pairs, (*warnings, *_without_armature(pairs, "an SDF")))


def _changed(document: _XmlText, pairs: Sequence[_Pair], warnings: Sequence[str], *last: str) -> ExportResult:
    return ExportResult(document.text(), (*warnings, *reductions(joint for joint, _ in pairs), *last))


def _without_armature(pairs: Sequence[_Pair], what: str) -> tuple[str, ...]:
    inertias = [joint.joint for joint, _ in pairs if joint.drive_inertia is not None]
    return (f"{what} has no place for the drive inertia of {', '.join(inertias)}: left out",) if inertias else ()


def export_drake(request: ExportRequest) -> ExportResult:
    """The given URDF with ``<dynamics>``, and ``drake:rotor_inertia`` of an actuator where armature was identified.

    Drake adds the inertia ``gear_ratio^2 rotor_inertia`` of an actuator to its joint, and has no dry friction of joints
    (``pydrake.multibody.parsing``, supported tags of URDFs).
    """
    parse_urdf(request.model, "given as the model")
    dynamics, pairs, warnings = _with_dynamics(request)
    document = _XmlText(dynamics.text(), "URDF")
    root = document.elements[0]
    transmissions = [one for one in document.elements if one.path == ("robot", "transmission")]
    added = []
    for joint in request.alone:
        if joint.drive_inertia is None:
            continue
        rotor, gear = f'<drake:rotor_inertia value="{joint.drive_inertia!r}"/>', '<drake:gear_ratio value="1"/>'
        own = [
            one
            for one in transmissions
            if any(child.path[-1] == "joint" and child.attributes.get("name") == joint.joint for child in one.children)
        ]
        actuators = [child for one in own if (child := one.child("actuator"))]
        name, kind = _quoted(joint.joint).decode(), "transmission_interface/SimpleTransmission"
        motor = _quoted(f"{joint.joint}_motor").decode()
        if actuators and actuators[0].end > actuators[0].start:
            document.replace_child(actuators[0], "drake:rotor_inertia", rotor)
            document.replace_child(actuators[0], "drake:gear_ratio", gear)
        elif not actuators:
            actuator = f"<actuator name={motor}>{rotor}{gear}</actuator>"
            added.append(f"<transmission name={motor}><type>{kind}</type><joint name={name}/>{actuator}</transmission>")
    document.replace_child(root, "", "".join(added))
    if "xmlns:drake" not in root.attributes:
        document.set(root, {"xmlns:drake": "http://drake.mit.edu"})
    dry = [joint.joint for joint in request.alone if joint.coulomb_viscous.coulomb]
    none = f"Drake has no dry friction of joints: that of {', '.join(dry)} has no effect there"
    return _changed(document, pairs, warnings, *([none] if dry else []))


def urdf_with_bodies(urdf_xml: str, bodies: Mapping[str, float]) -> str:
    """The URDF with other ``<inertial>`` of moving links: what is fixed to a link belongs to its body.

    Parameters
    ----------
    bodies : standard parameters, e.g. ``Izz knee`` of the link behind the joint ``knee``, about the joint's origin. A
        link that carries a joint which was not recorded keeps its inertia, as that joint's link does
    """
    document, root = _XmlText(urdf_xml, "URDF"), parse_urdf(urdf_xml)
    links = {one.attributes.get("name"): one for one in document.elements if one.path == ("robot", "link")}
    behind: dict[str, list[tuple[str, bool]]] = {}
    joints = [(one, joint_link(one, "parent"), joint_link(one, "child")) for one in root.findall("joint")]
    for joint, parent, child in joints:
        stands = joint.get("type") == "fixed"
        if stands or f"m {joint.get('name')}" not in bodies:
            behind.setdefault(parent, []).append((child, stands))
    for joint, _, child in joints:
        name, body = joint.get("name", ""), [child]
        if f"m {name}" not in bodies:
            continue
        for link in body:
            body += [other for other, _ in behind.get(link, ())]
        if all(stands for link in body for _, stands in behind.get(link, ())):
            document.replace_child(links[body[0]], "inertial", _inertial(name, bodies))
            for link in body[1:]:
                document.replace_child(links[link], "inertial", "")
    return document.text()


def _inertial(joint: str, bodies: Mapping[str, float]) -> str:
    """Element about the centre of mass, in the axes of the link."""
    mass, *moments = (bodies[f"{what} {joint}"] for what in ("m", "mx", "my", "mz"))
    com = np.array(moments) / mass
    axes = ("xx", "xy", "xz", "yy", "yz", "zz")
    about = {axis: bodies[f"I{axis} {joint}"] for axis in axes}
    steiner = mass * (com @ com * np.eye(3) - np.outer(com, com))
    rows = {"x": 0, "y": 1, "z": 2}
    inertia = {axis: float(about[axis] - steiner[rows[axis[0]], rows[axis[1]]]) for axis in axes}
    entries = " ".join(f'i{axis}="{value!r}"' for axis, value in inertia.items())
    origin = " ".join(repr(float(value)) for value in com)
    return f'<inertial><origin xyz="{origin}"/><mass value="{mass!r}"/><inertia {entries}/></inertial>'


def export_mjcf(request: ExportRequest) -> ExportResult:
    """The given MJCF with other friction, every other byte as it was; or a new one from a URDF.

    ``damping`` is in N m s/rad, ``frictionloss`` in N m and ``armature`` in kg m^2.

    Raises
    ------
    RobotModelError
        When the model is neither an MJCF nor a URDF that MuJoCo can read, or has none of the joints.
    """
    warnings: tuple[str, ...] = ()
    document = _XmlText(request.model, "model")
    if document.root == "robot":
        text, warnings = _urdf_to_mjcf(request.model)
        document = _XmlText(text, "MJCF")
    if document.root != "mujoco":
        raise RobotModelError(f"the model is neither an MJCF nor a URDF: its root element is <{document.root}>")
    elements = [one for one in document.elements if one.path[-1] == "joint" and "worldbody" in one.path]
    pairs, missing = matched(request, elements, "MJCF (files that it includes do not count)")
    for joint, element in pairs:
        armature = {} if joint.drive_inertia is None else {"armature": repr(joint.drive_inertia)}
        friction = {"damping": repr(joint.coulomb_viscous.viscous), "frictionloss": repr(joint.coulomb_viscous.coulomb)}
        document.set(element, friction | _STICTION | armature)
    return _changed(document, pairs, (*warnings, *missing))


_JOINT_TYPES = ("fixed", "revolute", "continuous", "prismatic")
_LEAST_MASS, _LEAST_INERTIA = 1e-9, 1e-12  # of links without: MuJoCo moves none of those [kg, kg m^2]
_TRIANGLE_TOLERANCE = 1e-9
"""Part by which the largest principal moment may exceed the sum of the others."""
STICTION_REFERENCE, STICTION_IMPEDANCE = "0.004 1", "0.999 0.999 0.001 0.5 2"
"""Of MuJoCo's dry friction, which is soft: by default, joints creep at rest, and it fades at speeds that are not low.
The time constant is twice the default time step, the shortest that MuJoCo takes."""
_STICTION = {"solreffriction": STICTION_REFERENCE, "solimpfriction": STICTION_IMPEDANCE}


def _urdf_to_mjcf(urdf_xml: str) -> tuple[str, tuple[str, ...]]:
    """Text of the MJCF, and what it lacks, in sentences.

    Raises
    ------
    RobotModelError
        When the text is not a valid URDF, a joint is of a type that MJCF lacks, or MuJoCo cannot read it.
    """
    import mujoco  # the extra `simulation`

    robot = parse_urdf(urdf_xml, "given as the model")
    for joint in robot.iterfind("joint"):
        if joint.get("type") not in _JOINT_TYPES:
            raise RobotModelError(
                f"the joint {joint.get('name')!r} is {joint.get('type')!r}; joints that become MJCF are "
                f"{', '.join(_JOINT_TYPES)}"
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


def _mended(robot: XmlElement) -> list[str]:
    """Change inertias that MuJoCo refuses; a warning for each kind."""
    moved = {joint_link(joint, "child") for joint in robot.iterfind("joint") if joint.get("type") != "fixed"}
    points, impossible = [], []
    for link in robot.iterfind("link"):
        inertial, name = link.find("inertial"), link.get("name", "")
        mass, tensor = (0.0, np.zeros((3, 3))) if inertial is None else mass_and_inertia(inertial)
        least, middle, largest = np.linalg.eigvalsh(tensor).tolist()
        possible = least >= -_TRIANGLE_TOLERANCE * largest and largest - middle - least <= _TRIANGLE_TOLERANCE * largest
        if inertial is not None and mass > 0.0 and not possible:
            impossible.append(name)
            mean = max(float(np.trace(tensor)) / 3.0, 0.0)
            for inertia in inertial.findall("inertia"):
                inertia.attrib |= {key: repr(mean if key in ("ixx", "iyy", "izz") else 0.0) for key in inertia.attrib}
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


def _left_out(robot: XmlElement) -> list[str]:
    warnings = ["the MJCF made from the URDF has no visuals; its root is fixed to the world, <freejoint/> frees it"]
    meshes = [one.get("name", "") for one in robot.iterfind("link") if one.find("collision/geometry/mesh") is not None]
    if meshes:
        warnings.append(f"collision meshes are left out, of the links {', '.join(meshes)}")
    mimics = [joint.get("name", "") for joint in robot.iterfind("joint") if joint.find("mimic") is not None]
    if mimics:
        warnings.append(f"the joints {', '.join(mimics)} mimic others in the URDF, and are free in the MJCF")
    return warnings


def matched(request: ExportRequest, elements: Sequence[Element], what: str) -> tuple[list[_Pair], list[str]]:
    """Joints with their XML elements; warnings about joints that the model lacks, and motors of several joints.

    Raises
    ------
    RobotModelError
        When it has none of them.
    """
    by_name = {element.attributes["name"]: element for element in elements if "name" in element.attributes}
    joints = request.alone
    pairs = [(joint, by_name[joint.joint]) for joint in joints if joint.joint in by_name]
    if not pairs:
        raise RobotModelError(
            f"the {what} has none of the joints {choices(joint.joint for joint in joints)}; it has {choices(by_name)}"
            + (f"; {choices(request.motor_names)} are motors that move several joints" if request.motor_names else "")
        )
    missing = [joint.joint for joint in joints if joint.joint not in by_name]
    warnings = [f"the {what} has no joint {choices(missing)}: left out"] if missing else []
    if request.motor_names:
        warnings.append(
            f"a {what} has friction joint by joint: the friction of the motors {choices(request.motor_names)}, which "
            "move several joints together, is left out"
        )
    return pairs, warnings


_ATTRIBUTE = re.compile(rb"""\s+([^\s=/>]+)\s*=\s*("[^"]*"|'[^']*')""")
_NAME = re.compile(rb"<[^\s/>]+")


@dataclass(slots=True)
class Element:
    """One element of an XML document."""

    path: tuple[str, ...]  # names of the elements around it, outermost first, its own last
    attributes: Mapping[str, str]  # as they are in the text
    start: int  # of its start tag [bytes]
    end: int = 0  # of its end tag; equal to `start` for a tag that closes itself [bytes]
    children: list[Element] = field(default_factory=list)  # direct ones, in the order of the text

    def child(self, name: str) -> Element | None:
        """The first direct child of this name."""
        return next((one for one in self.children if one.path[-1] == name), None)


_Pair = tuple[ExportedFriction, Element]
"""A joint and its element."""


class _XmlText:
    """An XML document and the changes to it.

    Parameters
    ----------
    text : of the document
    what : it is, for messages

    Attributes
    ----------
    elements, root : all elements in their order, and the name of the outermost one

    Raises
    ------
    RobotModelError
        When it is not well-formed; the message names the line.
    """

    def __init__(self, text: str, what: str) -> None:
        self._data = text.encode("utf-8")
        self._changes: list[tuple[int, int, bytes]] = []
        self.elements: list[Element] = []
        open_elements: list[Element] = []
        parser = expat.ParserCreate(encoding="utf-8")

        def start(name: str, attributes: dict[str, str]) -> None:
            path = (*open_elements[-1].path, name) if open_elements else (name,)
            element = Element(path, attributes, parser.CurrentByteIndex)
            if open_elements:
                open_elements[-1].children.append(element)
            open_elements.append(element)
            self.elements.append(element)

        def end(_: str) -> None:
            open_elements.pop().end = parser.CurrentByteIndex

        parser.StartElementHandler, parser.EndElementHandler = start, end
        try:
            parser.Parse(self._data, True)
        except expat.ExpatError as error:
            raise RobotModelError(f"the {what} is not valid XML, line {error.lineno}: {error}") from None
        self.root = self.elements[0].path[0]

    def set(self, element: Element, attributes: Mapping[str, str]) -> None:
        """Set attributes of an element; those that it has already keep their place."""
        tag = _NAME.match(self._data, element.start)
        if tag is None:
            raise RobotModelError(
                f"the element <{element.path[-1]}> comes from an XML entity, which cannot be changed: write "
                "the text of the entity in its place"
            )
        missing, at = dict(attributes), tag.end()
        while match := _ATTRIBUTE.match(self._data, at):
            name, at = match[1].decode("utf-8"), match.end()
            if name in missing:
                self._changes.append((*match.span(2), _quoted(missing.pop(name))))
        added = b"".join(b" " + name.encode("utf-8") + b"=" + _quoted(value) for name, value in missing.items())
        if added:
            self._changes.append((at, at, added))

    def replace_child(self, parent: Element, name: str, text: str) -> None:
        """Put a text in place of the first child of this name; where there is none, behind all, indented as these."""
        child = parent.child(name)
        if child is not None:
            end = self._data.index(b">", max(child.end, child.start)) + 1
            self._changes.append((child.start, end, text.encode("utf-8")))
        elif text and parent.end > parent.start:
            before = self._data[: parent.children[0].start if parent.children else 0]
            at = len(self._data[: parent.end].rstrip())
            self._changes.append((at, at, before[len(before.rstrip()) :] + text.encode("utf-8")))

    def text(self) -> str:
        """The document with all changes."""
        data = self._data
        for start, end, replacement in sorted(self._changes, reverse=True):
            data = data[:start] + replacement + data[end:]
        return data.decode("utf-8")


def _quoted(value: str) -> bytes:
    return b'"' + escape(value, {'"': "&quot;"}).encode("utf-8") + b'"'
