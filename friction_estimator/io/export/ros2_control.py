"""Parameters of a controller of ros2_control, in the YAML that ROS 2 nodes read.

There is no common form for friction. What controllers have in common is the form of the parameters of a joint,
``<group>.<joint>.<name>`` (``__map_joints`` of generate_parameter_library), and one of them feeds torque forward:
joint_trajectory_controller adds ``gains.<joint>.ff_velocity_scale`` times the wanted velocity to its effort.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from friction_estimator.io.documents import yaml_text
from friction_estimator.io.export.exporter import (
    ExportedFriction,
    ExportOption,
    ExportRequest,
    ExportResult,
    hash_comment,
    register_exporter,
)

_EXPLANATION = (
    "gains.<joint>.ff_velocity_scale: read by joint_trajectory_controller; with the command interface 'effort' its",
    "  feed-forward is the viscous friction. With 'velocity' leave it out: there it scales the velocity itself.",
    "friction.<joint>: for controllers that compensate friction: coulomb sgn(dq) + viscous dq + offset, or exactly the",
    "  law with its parameters: docs/design/friction_laws.md of friction_estimator, and its export to a C header.",
    "Units: N m, rad/s, N m s/rad; N and m for prismatic joints. Friction has the sign of the velocity it resists.",
)
_COUPLING = (
    "coupling: joint velocity = matrix * motor velocity, row after row, one a joint. friction.<motor> is at the motor: "
    "its velocity is matrix^-1 dq, and its torque acts on the joints as matrix^-T torque."
)


_CONTROLLER = ExportOption(
    "controller", "Name of the controller, which is the name of its node.", "joint_trajectory_controller"
)


@register_exporter("ros2_control", options=(_CONTROLLER,))
def export_ros2_control(request: ExportRequest, controller: str) -> ExportResult:
    """YAML that ``--params-file`` takes, for the controller of that name."""
    parameters = {
        "joints": list(request.moved),
        "gains": _by_joint((joint.joint, {"ff_velocity_scale": joint.simple.viscous}) for joint in request.alone),
        "friction": _by_joint((joint.joint, _friction(joint)) for joint in request.joints),
    }
    coupled: tuple[str, ...] = ()
    if (coupling := request.coupling) is not None:
        parameters["coupling"] = {
            "joints": list(coupling.joint_names),
            "motors": list(coupling.motor_names),
            "matrix": coupling.matrix.ravel().tolist(),
        }
        coupled = (
            f"the friction of {', '.join(coupling.motor_names)} is that of motors which move several joints together: "
            "'gains' cannot express it, controllers must apply 'coupling'",
        )
    reductions = tuple(filter(None, (joint.reduction for joint in request.joints)))
    notes = (*request.origin, *_EXPLANATION, *((_COUPLING,) if coupled else ()), *reductions)
    document = {controller: {"ros__parameters": parameters}}
    return ExportResult(hash_comment(notes) + yaml_text(document), (*coupled, *reductions))


def _by_joint(entries: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """Entries under the names of their joints; a dot in a name opens a level.

    The parser of ROS 2 would else put the keys that follow a dotted one on the wrong level.
    """
    group: dict[str, Any] = {}
    for joint, entry in entries:
        level = group
        for part in joint.split("."):
            level = level.setdefault(part, {})
        level.update(entry)
    return group


def _friction(joint: ExportedFriction) -> dict[str, Any]:
    drive = joint.drive
    known = {} if drive is None else {"gain": drive.gain, "offset": drive.offset, "unit": drive.unit}
    return {
        **({"drive": known} if known else {}),
        "coulomb": joint.simple.coulomb,
        "viscous": joint.simple.viscous,
        "offset": joint.simple.offset + joint.constant,
        "law": joint.law.name,
        "parameter_names": list(joint.law.parameter_names),
        "parameters": joint.values.tolist(),
        "parameters_sigma": joint.sigma.tolist(),
    }
