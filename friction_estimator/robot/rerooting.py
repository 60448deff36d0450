"""A robot with another root link: the body with the IMU is the base of the estimator, wherever it is in the URDF."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import SubElement

import numpy as np
from pinocchio.rpy import matrixToRpy, rpyToMatrix

from friction_estimator.robot.urdf import joint_link, vector_of
from friction_estimator.types import FloatArray


def reroot(urdf_xml: str, joint_name: str) -> tuple[str, str]:
    """The same robot with the child of a joint as its root link, and the name of the root link before.

    The joints between both are reversed. One of the placement ``O R(q)`` has the placement ``R(q)^-1 O^-1`` seen from
    its child: the same position about the opposite axis, then a fixed placement.

    Parameters
    ----------
    urdf_xml : a checked URDF
    joint_name : of one of its joints
    """
    root = ElementTree.fromstring(urdf_xml)
    above = {joint_link(joint, "child"): joint for joint in root.findall("joint")}
    link = next(end for end, joint in above.items() if joint.get("name") == joint_name)
    while (joint := above.get(link)) is not None:
        parent, middle = joint_link(joint, "parent"), f"{joint.get('name')}_reversed"
        xyz, rpy = (vector_of(joint.find("origin"), part) for part in ("xyz", "rpy"))
        back = rpyToMatrix(rpy).T
        origin = {"xyz": _text(-back @ xyz), "rpy": _text(matrixToRpy(back))}
        axis = vector_of(joint.find("axis"), "xyz")
        about = axis if axis.any() else np.array([1.0, 0.0, 0.0])
        for part in [part for part in joint if part.tag in ("parent", "child", "origin", "axis")]:
            joint.remove(part)
        SubElement(root, "link", {"name": middle})
        fixed = SubElement(root, "joint", {"name": f"{middle}_origin", "type": "fixed"})
        for one, start, end in ((joint, link, middle), (fixed, middle, parent)):
            SubElement(one, "parent", {"link": start})
            SubElement(one, "child", {"link": end})
        SubElement(joint, "axis", {"xyz": _text(-about)})
        SubElement(fixed, "origin", origin)
        link = parent
    return ElementTree.tostring(root, encoding="unicode"), link


def _text(numbers: FloatArray) -> str:
    return " ".join(repr(number) for number in numbers.tolist())
