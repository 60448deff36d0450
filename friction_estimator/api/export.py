"""``export``: identified friction in the formats of simulators, controllers and firmware."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from friction_estimator.api.identify import IdentificationResult
from friction_estimator.api.recordings import Path_
from friction_estimator.errors import ConfigError
from friction_estimator.identification.result import Identification
from friction_estimator.io.documents import read_bytes, write_atomically
from friction_estimator.io.export import ExportRequest, export_friction, joint_frictions
from friction_estimator.io.export.exporter import unknown_ranges
from friction_estimator.io.identification import load_identification
from friction_estimator.io.robot import load_coupling
from friction_estimator.robot.urdf import MAX_SIZE


def export(
    parameters: Path_ | IdentificationResult,
    to: str,
    path: Path_,
    *,
    model: Path_ | None = None,
    speed: float | None = None,
    coupling: Path_ | None = None,
    **options: Any,
) -> tuple[str, ...]:
    """Write identified friction for another program.

    Parameters
    ----------
    parameters : parameter file of ``identify``, ``replay`` or the live node, or a result of
        :func:`~friction_estimator.identify`
    to : ``urdf``, ``mjcf``, ``ros2_control`` or ``c_header``
    path : file to write
    model : for urdf the URDF that is changed, for mjcf an MJCF or a URDF
    speed : speed up to which Coulomb and viscous friction agree with the law [rad/s]; None: the velocities of the
        identification
    coupling : YAML of motors that move several joints together
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
    if isinstance(parameters, IdentificationResult):
        identification = parameters.identification
    else:
        identification = load_identification(parameters)
        origin = (f"Joint friction of {Path(parameters).name}, written by `friction_estimator export`.",)
    request = ExportRequest(
        joint_frictions(identification, speed),
        (*origin, *_sources(identification)),
        "" if model is None else _read_model(Path(model)),
        None if coupling is None else load_coupling(Path(coupling)),
    )
    made = export_friction(to, request, **options)
    try:
        write_atomically(output, made.text)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from None
    if made.warnings and speed is None and (unknown := unknown_ranges(identification)):
        return (
            f"the velocities at which the friction of {', '.join(unknown)} was identified are not known: +-1 rad/s is "
            "assumed",
            *made.warnings,
        )
    return made.warnings


def _read_model(path: Path) -> str:
    """Text of a model with its line ends as they are."""
    try:
        return read_bytes(path.expanduser(), MAX_SIZE).decode("utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read the model {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"cannot read the model {path}: it is not a UTF-8 text") from None


def _sources(identification: Identification) -> tuple[str, ...]:
    """Where the numbers come from."""
    provenance = identification.provenance
    if not provenance.data:
        return ()
    files = (f"  {name} (SHA-256 {digest or 'unknown'})" for name, digest in provenance.data)
    return (f"Identified by the method {provenance.method} from", *files)
