"""Identified friction in the formats of other programs."""

from friction_estimator.io.export import c_header, mjcf, ros2_control, urdf
from friction_estimator.io.export.exporter import Export, Job, export_friction, exporter_names, needs_model
from friction_estimator.io.export.joint_friction import JointFriction, joint_frictions

__all__ = [
    "Export",
    "Job",
    "JointFriction",
    "c_header",
    "export_friction",
    "exporter_names",
    "joint_frictions",
    "mjcf",
    "needs_model",
    "ros2_control",
    "urdf",
]
