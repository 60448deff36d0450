"""``damping``, ``frictionloss`` and ``armature`` on the joints of a MuJoCo model."""

from __future__ import annotations

from friction_estimator.errors import RobotModelError
from friction_estimator.io.export.exporter import Export, Job, register_exporter
from friction_estimator.io.export.joint_friction import JointFriction
from friction_estimator.io.export.model_joints import matched, reductions
from friction_estimator.io.export.urdf_to_mjcf import urdf_to_mjcf
from friction_estimator.io.export.xml_edit import XmlText


@register_exporter("mjcf", model="an MJCF, or the URDF to make one from,")
def export_mjcf(job: Job) -> Export:
    """The given MJCF with other friction, every other byte as it was; or a new one from a URDF."""
    warnings: tuple[str, ...] = ()
    document = XmlText(job.model, "model")
    if document.root == "robot":
        text, warnings = urdf_to_mjcf(job.model)
        document = XmlText(text, "MJCF")
    if document.root != "mujoco":
        raise RobotModelError(
            f"the model is neither an MJCF nor a URDF: its root element is <{document.root}>, expected <mujoco> or "
            "<robot>"
        )
    elements = [one for one in document.elements if one.path[-1] == "joint" and "worldbody" in one.path]
    pairs, missing = matched(job, elements, "MJCF (files that it includes do not count)")
    for joint, element in pairs:
        document.set(element, _attributes(joint))
    return Export(document.text(), (*warnings, *missing, *reductions(pairs)))


def _attributes(joint: JointFriction) -> dict[str, str]:
    attributes = {"damping": repr(joint.simple.viscous), "frictionloss": repr(joint.simple.coulomb)}
    if joint.drive_inertia is not None:
        attributes["armature"] = repr(joint.drive_inertia)
    return attributes
