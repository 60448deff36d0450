"""A copy of the URDF in which rviz's Effort display makes friction visible.

That display draws every effort relative to the effort limit of its joint. Friction is about a hundredth of it and would
be invisible, so the copy scales the limits down; nothing else changes.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from friction_estimator.errors import RobotModelError


def friction_urdf(urdf_xml: str, effort_fraction: float) -> str:
    """Scale the effort limit of every joint.

    Parameters
    ----------
    urdf_xml : text of a URDF
    effort_fraction : new limit by old limit, such as 0.01

    Raises
    ------
    RobotModelError
        When the text is not XML.
    """
    try:
        robot = ElementTree.fromstring(urdf_xml)
    except ElementTree.ParseError as error:
        raise RobotModelError(f"the URDF is not valid XML: {error}") from None
    for limit in robot.iterfind("joint/limit"):
        limit.set("effort", repr(float(limit.get("effort", "0")) * effort_fraction))
    return ElementTree.tostring(robot, encoding="unicode")
