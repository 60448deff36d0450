"""Friction of a walking robot's bag for `identify`: the estimator runs over it first."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from friction_estimator.cli.arguments import warn
from friction_estimator.cli.identify_logs import is_table
from friction_estimator.cli.progress import progress_bar
from friction_estimator.errors import InputError
from friction_estimator.estimation.diagnosis import advice
from friction_estimator.estimation.smoothing import SMOOTHING_LAG
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.io.bags.recording import joint_log_from_bag
from friction_estimator.io.bags.replay import replay
from friction_estimator.io.robot import Robot


def measured_friction(
    paths: Sequence[Path], logs: Sequence[JointLog], robot: Robot, arguments: argparse.Namespace
) -> tuple[list[JointLog], str]:
    """The same logs with the friction that the estimator measures, and what was done in a sentence.

    Parameters
    ----------
    paths : of the logs

    Raises
    ------
    FrictionEstimatorError
        When a file is no bag, or lacks a sensor.
    """
    smooth = SMOOTHING_LAG if robot.config.observer == "kalman" else None
    measured = []
    for path, log in zip(paths, logs, strict=True):
        if "friction" in log.inputs:
            measured.append(log)
            continue
        if is_table(path):
            raise InputError(
                f"{path} holds no measured friction, 'friction/<joint>', and is no bag: friction of a walking robot "
                "is estimated from a bag with joint states, IMU and foot wrenches"
            )
        with tempfile.TemporaryDirectory() as folder, progress_bar(f"estimating friction of {path.name}") as progress:
            bag = Path(folder) / path.name
            result = replay(
                path,
                bag,
                robot.config,
                robot.urdf_xml,
                copy_inputs=True,
                namespace=arguments.namespace,
                robot=Path(str(arguments.robot or "")).stem,
                smooth=smooth,
                progress=progress,
            )
            found = joint_log_from_bag(
                bag, robot.config.output.joint_states_topic, log.joint_names, namespace=arguments.namespace
            )
        for text in (*result.missing, *advice(result.diagnoses)):
            warn(f"{log.name}: {text}")
        measured.append(replace(found, name=log.name, payload=log.payload, digest=log.digest))
    ahead = "" if smooth is None else f" --smooth {smooth:g}"
    return measured, (
        f"friction measured by the observer {robot.config.observer!r}, as `replay{ahead}` does: "
        "keep its output with that command to identify more than once"
    )
