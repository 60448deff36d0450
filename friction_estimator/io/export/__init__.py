"""Identified friction in the formats of other programs."""

from friction_estimator.io.export import c_header, joint_tables, robot_models
from friction_estimator.io.export.exporter import (
    ExportedFriction,
    ExportFormat,
    ExportOption,
    ExportRequest,
    ExportResult,
    export_formats,
    export_friction,
    joint_frictions,
)

__all__ = [
    "ExportFormat",
    "ExportOption",
    "ExportRequest",
    "ExportResult",
    "ExportedFriction",
    "c_header",
    "export_formats",
    "export_friction",
    "joint_frictions",
    "joint_tables",
    "robot_models",
]
