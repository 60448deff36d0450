"""``report``: an HTML page of a recorded run or of an identification."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from friction_estimator.errors import BagError, ConfigError
from friction_estimator.io.bags.reader import storage_files
from friction_estimator.io.bags.recording import read_recording
from friction_estimator.io.identification import load_identification
from friction_estimator.io.robot import Robot, as_robot
from friction_estimator.messages.description import RunDescription
from friction_estimator.reports.identification import write_identification_report
from friction_estimator.reports.recording import write_report

_PARAMETER_SUFFIXES = (".yaml", ".yml")
_INPUTS = (
    "a report is made of a rosbag2 with friction estimates (its folder, or a .mcap or .db3 file, written by `replay`, "
    "`demo` or the recorder), or of a parameter file (.yaml, written by `identify`, `replay --save-params` or the node)"
)


def report(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str] = "report.html",
    *,
    title: str = "",
    robot: str | os.PathLike[str] | Robot | None = None,
    namespace: str = "",
    after: float = 0.0,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write one self-contained HTML page with figures and tables.

    Parameters
    ----------
    source : rosbag2 with friction estimates, or parameter file
    output : page to write; an older one is replaced
    title : of the page; empty: the name of the source
    robot : robot of a bag that does not name its robot
    namespace : of the topics in the bag
    after : samples of the bag before this time are left out of the tables [s]
    progress : called now and then with the number of messages done and of all

    Raises
    ------
    BagError
        When the bag cannot be read or has no friction estimate.
    ConfigError
        When the source is neither a bag nor a parameter file, or the parameter file is damaged.
    ReportError
        When the page cannot be written.
    """
    path = Path(source).expanduser()
    if path.suffix.lower() in _PARAMETER_SUFFIXES:
        if robot is not None or namespace or after:
            raise ConfigError(f"{path} is a parameter file: robot, namespace and after are options for a bag")
        try:
            identification = load_identification(path)
        except ConfigError as error:
            raise ConfigError(f"{error}; {_INPUTS}") from None
        write_identification_report(output, identification, title or path.stem)
        return
    description = None
    if robot is not None:
        chosen = as_robot(robot)
        description = RunDescription.of(chosen.config, chosen.urdf_xml, chosen.name, "")
    try:
        recording = read_recording(path, namespace, description, progress)
    except BagError as error:
        if path.is_dir() and storage_files(path) or path.is_file() and path.suffix in (".mcap", ".db3"):
            raise
        raise BagError(f"{error}; {_INPUTS}") from None
    write_report(output, recording, title or path.name, after)
