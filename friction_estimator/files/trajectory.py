"""Planned motions of joints as a tidy .csv, with the column names that recorded logs have too."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from friction_estimator.core.exceptions import ConfigError
from friction_estimator.core.types import FloatArray
from friction_estimator.files.atomic import write_atomically


def write_trajectory_csv(
    path: str | os.PathLike[str],
    joint_names: Sequence[str],
    time: FloatArray,
    position: FloatArray,
    velocity: FloatArray,
    acceleration: FloatArray,
) -> None:
    """Write ``time``, ``position/<joint>``, ``velocity/<joint>``, ``acceleration/<joint>``, in SI units.

    Parameters
    ----------
    path : the file
    joint_names : (n)
    time : (N,) [s]
    position, velocity, acceleration : (N, n)

    Raises
    ------
    ConfigError
        When the file cannot be written.
    """
    kinds = ("position", "velocity", "acceleration")
    header = ",".join(["time", *(f"{kind}/{joint}" for kind in kinds for joint in joint_names)])
    text = io.StringIO()
    table = np.column_stack([time, position, velocity, acceleration])
    np.savetxt(text, table, fmt="%.9g", delimiter=",", header=header, comments="")
    target = Path(path).expanduser()
    try:
        write_atomically(target, text.getvalue())
    except OSError as error:
        raise ConfigError(f"cannot write the trajectory to {target}: {error.strerror or error}") from None
