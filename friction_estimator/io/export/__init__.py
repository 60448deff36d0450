"""Identified friction in the formats of other programs: a format is a function of one of these files and a row here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from friction_estimator.errors import ConfigError, choices, lookup
from friction_estimator.io.export.c_header import export_c_header
from friction_estimator.io.export.exporter import ExportedFriction, ExportRequest, ExportResult, joint_frictions
from friction_estimator.io.export.joint_tables import export_isaac_lab, export_ros2_control
from friction_estimator.io.export.robot_models import export_drake, export_gazebo, export_mjcf, export_urdf

__all__ = ["FORMATS", "ExportRequest", "ExportResult", "ExportedFriction", "export_friction", "joint_frictions"]


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """One format for exported friction, as :data:`FORMATS` lists it."""

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
