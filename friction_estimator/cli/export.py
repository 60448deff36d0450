"""``export PARAMS.yaml --to FORMAT -o OUT``: identified friction for simulators, controllers and firmware."""

from __future__ import annotations

import argparse
from pathlib import Path

from friction_estimator.cli.arguments import finite, warn
from friction_estimator.errors import ConfigError
from friction_estimator.identification.result import Identification
from friction_estimator.io.coupling import load_coupling
from friction_estimator.io.documents import write_atomically
from friction_estimator.io.export import ExportRequest, export_formats, export_friction, joint_frictions
from friction_estimator.io.export.exporter import unknown_ranges
from friction_estimator.io.identification import load_identification


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("params", type=Path, help="parameter file of `identify`, of the live node or of `replay`")
    parser.add_argument("--to", required=True, choices=[one.name for one in export_formats()], help="format to write")
    parser.add_argument("-o", "--output", type=Path, required=True, help="file to write")
    parser.add_argument("--model", type=Path, help="for urdf: the URDF to change; for mjcf: an MJCF, or a URDF")
    parser.add_argument(
        "--speed",
        type=finite,
        help="where the law becomes Coulomb and viscous friction, they agree with it up to this speed [rad/s]; without "
        "it at the velocities that were identified",
    )
    parser.add_argument(
        "--coupling",
        type=Path,
        metavar="YAML",
        help="motors of the file that move several joints together, as of `identify`",
    )
    for one in export_formats():
        for option in one.options:
            text = f"for {one.name}: {option.description} (default: {option.default})"
            parser.add_argument(f"--{option.name}", default=argparse.SUPPRESS, help=text)


def run(arguments: argparse.Namespace) -> None:
    """Read, convert, write."""
    _keep_inputs(arguments.output, arguments.params, arguments.model)
    saved = load_identification(arguments.params)
    joints = joint_frictions(saved, arguments.speed)
    model = _read_model(arguments.model) if arguments.model else ""
    coupling = load_coupling(arguments.coupling) if arguments.coupling else None
    request = ExportRequest(joints, _origin(arguments.params, saved), model, coupling)
    names = {option.name for one in export_formats() for option in one.options}
    options = {name: value for name, value in vars(arguments).items() if name in names}
    made = export_friction(arguments.to, request, **options)
    try:
        write_atomically(arguments.output.expanduser(), made.text)
    except OSError as error:
        raise ConfigError(f"cannot write {arguments.output}: {error.strerror or error}") from None
    if made.warnings and arguments.speed is None and (unknown := unknown_ranges(saved)):
        warn(
            f"{arguments.params} does not say at which velocities it holds for {', '.join(unknown)}: taken as +-1 rad/s"
        )
    for text in made.warnings:
        warn(text)
    print(arguments.output)


def _keep_inputs(output: Path, *inputs: Path | None) -> None:
    for given in inputs:
        if given is not None and output.expanduser().resolve() == given.expanduser().resolve():
            raise ConfigError(f"the output {output} is the input: name another file with -o")


def _read_model(path: Path) -> str:
    """Text of a model with its line ends as they are."""
    try:
        return path.expanduser().read_bytes().decode("utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read the model {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"cannot read the model {path}: it is not a UTF-8 text") from None


def _origin(path: Path, identification: Identification) -> tuple[str, ...]:
    """Where the numbers come from."""
    lines = [f"Joint friction of {path.name}, written by `friction_estimator export`."]
    provenance = identification.provenance
    if provenance.data:
        lines.append(f"Identified by the method {provenance.method} from")
        lines += [f"  {name} (SHA-256 {digest or 'unknown'})" for name, digest in provenance.data]
    return tuple(lines)
