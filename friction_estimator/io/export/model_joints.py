"""Joints of a model file that friction belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from friction_estimator.errors import RobotModelError, choices
from friction_estimator.io.export.exporter import Job
from friction_estimator.io.export.joint_friction import JointFriction
from friction_estimator.io.export.xml_edit import Element


def matched(job: Job, elements: Sequence[Element], what: str) -> tuple[list[tuple[JointFriction, Element]], list[str]]:
    """Joints with their elements, and warnings about those that the model lacks, and about motors of several joints.

    Raises
    ------
    RobotModelError
        When it has none of them.
    """
    by_name = {element.attributes["name"]: element for element in elements if "name" in element.attributes}
    joints = job.alone
    pairs = [(joint, by_name[joint.joint]) for joint in joints if joint.joint in by_name]
    if not pairs:
        raise RobotModelError(
            f"the {what} has none of the joints {choices(joint.joint for joint in joints)}; it has {choices(by_name)}"
            + (f"; friction of {choices(job.motor_names)} is none of a joint" if job.motor_names else "")
        )
    missing = [joint.joint for joint in joints if joint.joint not in by_name]
    warnings = [f"the {what} has no joint {choices(missing)}: left out"] if missing else []
    if job.motor_names:
        warnings.append(
            f"a {what} has friction joint by joint: that of the motors {choices(job.motor_names)}, which move several "
            "joints together, is left out"
        )
    return pairs, warnings


def reductions(pairs: Sequence[tuple[JointFriction, Element]]) -> Iterator[str]:
    """What Coulomb and viscous friction do not say of these joints."""
    return filter(None, (joint.reduction for joint, _ in pairs))
