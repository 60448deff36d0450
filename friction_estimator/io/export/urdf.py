"""``<dynamics damping friction>`` on the joints of a URDF."""

from __future__ import annotations

from friction_estimator.io.export.exporter import Export, Job, register_exporter
from friction_estimator.io.export.model_joints import matched, reductions
from friction_estimator.io.export.xml_edit import XmlText
from friction_estimator.io.urdf import check_urdf


@register_exporter("urdf", model="the URDF of the robot")
def export_urdf(job: Job) -> Export:
    """The given URDF with other ``<dynamics>``; every other byte stays."""
    check_urdf(job.model, "given as the model")
    document = XmlText(job.model, "URDF")
    elements = [element for element in document.elements if element.path == ("robot", "joint")]
    pairs, warnings = matched(job, elements, "URDF")
    for joint, element in pairs:
        attributes = {"damping": repr(joint.simple.viscous), "friction": repr(joint.simple.coulomb)}
        dynamics = next((child for child in element.children if child.path[-1] == "dynamics"), None)
        if dynamics is None:
            document.append(element, "dynamics", attributes)
        else:
            document.set(dynamics, attributes)
        if element.attributes.get("type") == "fixed":
            warnings.append(f"joint {joint.joint!r} is fixed in the URDF: its friction has no effect")
    inertias = [joint.joint for joint, _ in pairs if joint.drive_inertia is not None]
    if inertias:
        warnings.append(f"a URDF cannot say the drive inertia of {', '.join(inertias)}: left out")
    return Export(document.text(), (*warnings, *reductions(pairs)))
