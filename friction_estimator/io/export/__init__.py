"""Identified friction in the formats of other programs: the formats by name, and the short ones.

A format is a function and a row of ``FORMATS``; the larger ones have a file each. Controllers of ros2_control have no
common form for friction. What they have in common is the form of the parameters of a joint, ``<group>.<joint>.<name>``
(``__map_joints`` of generate_parameter_library), and one of them feeds torque forward: joint_trajectory_controller adds
``gains.<joint>.ff_velocity_scale`` times the wanted velocity to its effort.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from friction_estimator.errors import ConfigError, choices, lookup
from friction_estimator.io.documents import nested, yaml_text
from friction_estimator.io.export.c_header import export_c_header
from friction_estimator.io.export.exporter import (
    ExportedFriction,
    ExportRequest,
    ExportResult,
    hash_comment,
    joint_frictions,
    reductions,
)
from friction_estimator.io.export.robot_models import export_drake, export_gazebo, export_mjcf, export_urdf

__all__ = ["FORMATS", "ExportRequest", "ExportResult", "ExportedFriction", "export_friction", "joint_frictions"]


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


def export_ros2_control(request: ExportRequest, controller: str = "joint_trajectory_controller") -> ExportResult:
    """YAML that ``--params-file`` takes, for the controller of that name."""
    parameters = {
        "joints": list(request.moved),
        "gains": nested({f"{joint.joint}.ff_velocity_scale": joint.coulomb_viscous.viscous for joint in request.alone}),
        "friction": nested(
            {f"{joint.joint}.{name}": value for joint in request.joints for name, value in _friction(joint).items()}
        ),
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
    reduced = reductions(request.joints)
    notes = (*request.origin, *_EXPLANATION, *((_COUPLING,) if coupled else ()), *reduced)
    document = {controller: {"ros__parameters": parameters}}
    return ExportResult(hash_comment(notes) + yaml_text(document), (*coupled, *reduced))


def _friction(joint: ExportedFriction) -> dict[str, Any]:
    drive = joint.drive
    known = {} if drive is None else {"gain": drive.gain, "offset": drive.offset, "unit": drive.unit}
    return {
        **({"drive": known} if known else {}),
        "coulomb": joint.coulomb_viscous.coulomb,
        "viscous": joint.coulomb_viscous.viscous,
        "offset": joint.coulomb_viscous.offset + joint.constant,
        "law": joint.law.name,
        "parameter_names": list(joint.law.parameter_names),
        "parameters": joint.values.tolist(),
        "parameters_sigma": joint.sigma.tolist(),
    }


_ISAAC_LAB = (
    "Use: ImplicitActuatorCfg(joint_names_expr=list(IDENTIFIED['friction']), stiffness=..., damping=..., **IDENTIFIED)",
    "friction (static) and dynamic_friction are efforts, N m or N, in Isaac Sim 5.0 and later; in Isaac Sim 4.5 they "
    "are coefficients without a unit, and these numbers are wrong there (docstring of ActuatorBaseCfg, Isaac Lab 2.3).",
    "viscous_friction is in N m s/rad or N s/m, armature in kg m^2 or kg. Names of joints are regular expressions. "
    "The law has no static friction above the dynamic one: both are the Coulomb friction.",
)


def export_isaac_lab(request: ExportRequest) -> ExportResult:
    """A Python module with the dictionary ``IDENTIFIED``, which needs no import.

    Raises
    ------
    ConfigError
        When all friction is that of motors that move several joints.
    """
    joints, reduced = request.alone, reductions(request.alone)
    if not joints:
        raise ConfigError("Isaac Lab has friction joint by joint: that of motors which move several cannot be exported")
    coulomb = {joint.joint: joint.coulomb_viscous.coulomb for joint in joints}
    tables = {
        "friction": coulomb,
        "dynamic_friction": coulomb,
        "viscous_friction": {joint.joint: joint.coulomb_viscous.viscous for joint in joints},
        "armature": {joint.joint: joint.drive_inertia for joint in joints if joint.drive_inertia is not None},
    }
    notes = (*request.origin, *_ISAAC_LAB, *reduced)
    lines = ["IDENTIFIED = {"]
    for name, table in tables.items():
        if table:
            entries = (f"        {re.escape(joint)!r}: {value!r}," for joint, value in table.items())
            lines += [f"    {name!r}: {{", *entries, "    },"]
    motors = (f"the friction of {', '.join(request.motor_names)}, which move several joints, is left out",)
    return ExportResult(
        hash_comment(notes) + "\n".join([*lines, "}", ""]), (*(motors if request.motor_names else ()), *reduced)
    )


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """One format."""

    export: Callable[..., ExportResult]  # function of the request, with the options as keywords that have defaults
    model: str = ""  # kind of model that the function changes, in words; empty when it needs none
    # description by name of the keyword, which is an option of the verb `export` as well
    options: Mapping[str, str] = field(default_factory=dict)


_URDF = "the URDF of the robot"
_INERTIA = "'identified': links are the real bodies nearest to the identified ones; 'urdf': they stay (default: urdf)"
_CONTROLLER = "name of the controller, which is the name of its node (default: joint_trajectory_controller)"
FORMATS: Mapping[str, ExportFormat] = {
    "c_header": ExportFormat(export_c_header),
    "drake": ExportFormat(export_drake, _URDF),
    "gazebo": ExportFormat(export_gazebo, "the SDF or the URDF of the robot"),
    "isaac_lab": ExportFormat(export_isaac_lab),
    "mjcf": ExportFormat(export_mjcf, "an MJCF, or the URDF to make one from"),
    "ros2_control": ExportFormat(export_ros2_control, options={"controller": _CONTROLLER}),
    "urdf": ExportFormat(export_urdf, _URDF, {"inertia": _INERTIA}),
}
"""The formats by name."""


def export_friction(name: str, request: ExportRequest, **options: str) -> ExportResult:
    """Write friction in one of the formats.

    Parameters
    ----------
    name : of the format
    request : friction, and the model that is changed where the format needs one
    options : of this format, see :attr:`ExportFormat.options`

    Raises
    ------
    ConfigError
        When there is no such format, the model is missing or superfluous, or the format has no such option.
    RobotModelError
        When the model cannot be read or has none of the joints.
    """
    chosen = lookup(FORMATS, name, "format")
    if chosen.model and not request.model:
        raise ConfigError(f"the format {name!r} changes a model: give {chosen.model} (--model)")
    if request.model and not chosen.model:
        changing = choices(other for other, one in FORMATS.items() if one.model)
        raise ConfigError(f"the format {name!r} takes no model; the formats that change a model are {changing}")
    if unknown := set(options) - set(chosen.options):
        known = choices(chosen.options)
        raise ConfigError(f"the format {name!r} has no option {choices(unknown)}; its options are {known}")
    return chosen.export(request, **options)
