"""Finding and reading what stands in files: robots (YAML and URDF) and identified parameters."""

from friction_estimator.io.identification import load_identification, save_identification
from friction_estimator.io.parameters import load_parameters, save_parameters
from friction_estimator.io.resources import robot_file, robot_names, share_directory
from friction_estimator.io.robot import Robot, load_robot

__all__ = [
    "Robot",
    "load_identification",
    "load_parameters",
    "load_robot",
    "robot_file",
    "robot_names",
    "save_identification",
    "save_parameters",
    "share_directory",
]
