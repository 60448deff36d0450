"""Formats without a model: parameters of a controller of ros2_control, and a Python module for Isaac Lab.

Controllers of ros2_control have no common form for friction. What they have in common is the form of the parameters of
a joint, ``<group>.<joint>.<name>`` (``__map_joints`` of generate_parameter_library), and one of them feeds torque
forward: joint_trajectory_controller adds ``gains.<joint>.ff_velocity_scale`` times the wanted velocity to its effort.
"""

from __future__ import annotations

import re
from typing import Any

from friction_estimator.errors import ConfigError
from friction_estimator.io.documents import nested, yaml_text
from friction_estimator.io.export.exporter import (
    ExportedFriction,
    ExportRequest,
    ExportResult,
    hash_comment,
    reductions,
)

_EXPLANATION = (
    "gains.<joint>.ff_velocity_scale: read by joint_trajectory_controller; with the command interface 'effort' its",
    "  feed-forward is the viscous friction. With 'velocity' leave it out: there it scales the velocity itself.",
    "friction.<joint>: for controllers that compensate friction: coulomb sgn(dq) + viscous dq + offset, or exactly the",
    "  law with its parameters: docs/design/friction_laws.md of friction_estimator, and its export to a C header.",
    "Units: N m, rad/s, N m s/rad; N and m for prismatic joints. Friction has the sign of the velocity it resists.",
)
_COUPLING = (
    "coupling: joint velocity = matrix * motor velocity, row after row, one per joint. friction.<motor> is at the "
    "motor: its velocity is matrix^-1 dq, and its torque acts on the joints as matrix^-T torque."
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
