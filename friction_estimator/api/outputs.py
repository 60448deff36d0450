"""``export`` and ``report``: results in the formats of simulators, controllers and firmware, and as an HTML page."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from friction_estimator.errors import BagError, ConfigError, file_errors
from friction_estimator.identification.result import Identification
from friction_estimator.io.bags.arrays import read_recording
from friction_estimator.io.bags.reader import storage_files
from friction_estimator.io.documents import read_bytes, write_atomically
from friction_estimator.io.export import ExportRequest, export_friction, joint_frictions
from friction_estimator.io.export.exporter import unknown_ranges, unseen_joints
from friction_estimator.io.identification_file import read_identification
from friction_estimator.io.robot import Robot, as_robot, load_coupling
from friction_estimator.messages.recording import RunDescription
from friction_estimator.reports.identification_page import identification_page
from friction_estimator.reports.recording_page import recording_page
from friction_estimator.robot.urdf import MAX_SIZE
from friction_estimator.types import AnyPath, Progress


def export(
    parameters: AnyPath | Identification,
    to: str,
    path: AnyPath,
    *,
    model: AnyPath | None = None,
    speed: float | None = None,
    coupling: AnyPath | None = None,
    **options: Any,
) -> tuple[str, ...]:
    """Write identified friction for another program.

    Parameters
    ----------
    parameters : parameter file of ``identify``, ``replay`` or the live node, or a result of
        :func:`~friction_estimator.identify`
    to : name of a format, such as ``urdf``; an unknown one raises an error that lists them
    path : file to write
    model : file of the robot model into which the friction is written, for formats that need one, see
        ``friction_estimator export --help``
    speed : speed up to which Coulomb and viscous friction agree with the law [rad/s]; None: the velocities of the
        identification
    coupling : YAML with ``robot.coupling``, motors that move several joints together
    options : of the format, e.g. ``controller="arm_controller"`` of ros2_control

    Returns
    -------
    warnings : what the format cannot express, one sentence each

    Raises
    ------
    ConfigError
        When format or option is unknown, an input is missing, or the file cannot be written.

    Examples
    --------
    >>> import friction_estimator as fe
    >>> result = fe.replay(fe.simulate("suralp", duration=0.05))
    >>> result.save_parameters("/tmp/params.yaml")
    >>> warnings = fe.export("/tmp/params.yaml", "c_header", "/tmp/friction.h")
    """
    output = Path(path).expanduser()
    for given in (parameters, model):
        if isinstance(given, (str, os.PathLike)) and output.resolve() == Path(given).expanduser().resolve():
            raise ConfigError(f"the output {path} is the input: give another file")
    origin: tuple[str, ...] = ()
    if isinstance(parameters, (str, os.PathLike)):
        origin = (f"Joint friction of {Path(parameters).name}, written by `friction_estimator export`.",)
        parameters = read_identification(parameters)
    request = ExportRequest(
        joint_frictions(parameters, speed),
        (*origin, *_sources(parameters)),
        "" if model is None else _read_model(Path(model).expanduser()),
        None if coupling is None else load_coupling(coupling),
        parameters.bodies,
    )
    made = export_friction(to, request, **options)
    if unseen := unseen_joints(parameters):
        text = (
            f"the recordings show no friction of {', '.join(unseen)} (it stood, or its torque was not measured): what "
            "the model has stays"
        )
        made = replace(made, warnings=(text, *made.warnings))
    with file_errors(f"write {path}"):
        write_atomically(output, made.text)
    if made.warnings and speed is None and (unknown := unknown_ranges(parameters)):
        return (
            f"the velocities at which the friction of {', '.join(unknown)} was identified are not known: +-1 rad/s is "
            "assumed",
            *made.warnings,
        )
    return made.warnings


def _read_model(path: Path) -> str:
    """Text of a model with its line ends as they are."""
    with file_errors(f"read the model {path}"):
        return read_bytes(path, MAX_SIZE).decode("utf-8")


def _sources(identification: Identification) -> tuple[str, ...]:
    """Where the numbers come from."""
    provenance = identification.provenance
    if not provenance.data:
        return ()
    files = (f"  {name} (SHA-256 {digest or 'unknown'})" for name, digest in provenance.data)
    return (f"Identified by the method {provenance.method} from", *files)


_PARAMETER_SUFFIXES = (".yaml", ".yml")
_INPUTS = (
    "a report is made of a rosbag2 with friction estimates (its folder, or a .mcap or .db3 file, written by `replay`, "
    "`demo` or the recorder), or of a parameter file (.yaml, written by `identify`, `replay --save-params` or the node)"
)


def report(
    source: AnyPath,
    output: AnyPath = "report.html",
    *,
    title: str = "",
    robot: AnyPath | Robot | None = None,
    namespace: str = "",
    after: float = 0.0,
    progress: Progress | None = None,
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
            identification = read_identification(path)
        except ConfigError as error:
            raise ConfigError(f"{error}; {_INPUTS}") from None
        identification_page(identification, title or path.stem).write(output)
        return
    description = None
    if robot is not None:
        chosen = as_robot(robot)
        description = RunDescription.from_config(chosen.config, chosen.urdf_xml, chosen.name, "")
    try:
        recording = read_recording(path, namespace, description, progress)
    except BagError as error:
        if path.is_dir() and storage_files(path) or path.is_file() and path.suffix in (".mcap", ".db3"):
            raise
        raise BagError(f"{error}; {_INPUTS}") from None
    recording_page(recording, title or path.name, after).write(output)
