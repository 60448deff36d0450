"""Planned motions of joints as a tidy .csv, with the column names that recorded logs have too."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np

from friction_estimator.errors import ConfigError
from friction_estimator.identification.joint_log import JointTrajectory
from friction_estimator.io.atomic import write_atomically


def write_trajectory_csv(path: str | os.PathLike[str], trajectory: JointTrajectory) -> None:
    """Write ``time``, ``position/<joint>``, ``velocity/<joint>``, ``acceleration/<joint>``, in SI units.

    Parameters
    ----------
    path : the file
    trajectory : what to write

    Raises
    ------
    ConfigError
        When the file cannot be written.
    """
    kinds = ("position", "velocity", "acceleration")
    header = ",".join(["time", *(f"{kind}/{joint}" for kind in kinds for joint in trajectory.joint_names)])
    text = io.StringIO()
    table = np.column_stack([trajectory.time, *(getattr(trajectory, kind) for kind in kinds)])
    np.savetxt(text, table, fmt="%.9g", delimiter=",", header=header, comments="")
    target = Path(path).expanduser()
    try:
        write_atomically(target, text.getvalue())
    except OSError as error:
        raise ConfigError(f"cannot write the trajectory to {target}: {error.strerror or error}") from None
