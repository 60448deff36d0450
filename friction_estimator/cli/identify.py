"""``identify DATA... -o PARAMS.yaml``: friction, inertia and drive parameters from recordings."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from friction_estimator.api.check_motion import check_motion
from friction_estimator.api.identify import IdentificationResult, identify
from friction_estimator.cli.arguments import (
    OptionTable,
    add_options,
    add_robot_arguments,
    add_shared_options,
    given,
    names_of,
    output_console,
    positive,
    print_table,
    progress_bar,
    robot_of,
    seconds,
    warn,
    whole_number,
)
from friction_estimator.errors import ConfigError, choices
from friction_estimator.identification.curves.drive import DRIVES
from friction_estimator.identification.curves.problem import ZERO_SLOPES
from friction_estimator.identification.inverse_dynamics.options import COUPLED_FRICTION, LATE, VELOCITIES
from friction_estimator.identification.joint_log import ExternalWrench, Payload
from friction_estimator.identification.linear_problem import FOLDS
from friction_estimator.identification.methods import METHODS
from friction_estimator.identification.result import Candidate
from friction_estimator.reports.identification_tables import (
    candidate_table,
    check_table,
    parameter_table,
    score_table,
)
from friction_estimator.tables import number

_SEARCH = "search"
_MASS_NUMBERS, _POINT_NUMBERS, _BODY_NUMBERS = 1, 4, 10
"""Numbers of a payload: its mass; with the centre of mass; with the inertia."""


def _payload(text: str) -> tuple[str, Payload]:
    """Type of an option ``EXPERIMENT=FRAME:MASS[,X,Y,Z[,IXX,IYY,IZZ,IXY,IXZ,IYZ]]``, without inertia a point."""
    experiment, equals, body = text.rpartition("=")
    frame, colon, numbers = body.rpartition(":")
    try:
        values = [float(number) for number in numbers.split(",")]
    except ValueError:
        values = []
    counts = _MASS_NUMBERS, _POINT_NUMBERS, _BODY_NUMBERS
    if not (equals and experiment and colon and frame) or len(values) not in counts:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not of the form EXPERIMENT=FRAME:MASS, EXPERIMENT=FRAME:MASS,X,Y,Z or "
            "EXPERIMENT=FRAME:MASS,X,Y,Z,IXX,IYY,IZZ,IXY,IXZ,IYZ"
        )
    if not np.isfinite(values).all() or values[0] < 0.0:
        raise argparse.ArgumentTypeError(f"{text!r}: the mass cannot be negative, and every number must be finite")
    if len(values) == _MASS_NUMBERS:
        return experiment, Payload(frame, values[0])
    xx, yy, zz, xy, xz, yz = values[_POINT_NUMBERS:] or [0.0] * (_BODY_NUMBERS - _POINT_NUMBERS)
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if np.linalg.eigvalsh(inertia).min() < 0.0:
        raise argparse.ArgumentTypeError(f"{text!r}: no body has such an inertia, it must be positive semidefinite")
    return experiment, Payload(frame, values[0], np.array(values[1:_POINT_NUMBERS]), inertia)


def _wrench(text: str) -> ExternalWrench:
    """``FRAME=COLUMNS[@AXES]``."""
    frame, equals, rest = text.partition("=")
    columns, _, axes = rest.partition("@")
    if not (frame and equals and columns):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form FRAME=COLUMNS[@AXES]")
    return ExternalWrench(frame, columns, axes)


def _gain(text: str) -> tuple[str, float]:
    """``[JOINT=]GAIN``; without a joint, it is that of all."""
    joint, equals, gain = text.rpartition("=")
    try:
        return (joint if equals else "*"), float(gain)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form [JOINT=]GAIN") from None


def _positive_or_search(text: str) -> float | str:
    return text if text == _SEARCH else positive(text)


def _regressors(text: str) -> dict[str, bool | tuple[float, ...]]:
    """Options by name: what else friction depends on, and multiples of the position."""
    found, harmonics = {"temperature": False, "presliding": False}, list[float]()
    for word in names_of(text):
        name, star, multiple = word.partition("*")
        if word in found:
            found[word] = True
        elif name == "position":
            harmonics.append(positive(multiple) if star else 1.0)
        else:
            raise argparse.ArgumentTypeError(f"{word!r} is no regressor; there are {choices((*found, 'position[*K]'))}")
    return {**found, "harmonics": tuple(harmonics)}


def _motor_value(text: str) -> tuple[str, float]:
    """``MOTOR=NUMBER``."""
    motor, equals, value = text.rpartition("=")
    try:
        number_of_motor = float(value)
    except ValueError:
        number_of_motor = math.nan
    if not (equals and motor.strip()) or not math.isfinite(number_of_motor):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form MOTOR=NUMBER")
    return motor.strip(), number_of_motor


# fmt: off
_RECORDINGS: OptionTable = {
    "--base": (("fixed",), "the base does not move, e.g. of a robot that hangs in a stand; a URDF has a fixed base "
        "anyway"),
    "--joints NAME,...": (names_of, "only these joints, in this order"),
    "--kp [JOINT=]GAIN": ([_gain], "gain of drives that get positions, the column command/<joint>, of all joints or of "
        "those that a pattern matches [N m/rad]"),
    "--kd [JOINT=]GAIN": ([_gain], "gain of the velocity of such drives, in the same form [N m s/rad]"),
    "--payload EXPERIMENT=FRAME:MASS[,X,Y,Z[,IXX,IYY,IZZ,IXY,IXZ,IYZ]]": ([_payload], "body that was fixed to a frame "
        "of the URDF in one experiment (name of its file without suffix); without X,Y,Z its centre of mass and inertia "
        "are estimated"),
    "--wrench FRAME=COLUMNS[@AXES]": ([_wrench], "measured external force on a link, such as that of the ground on a "
        "foot: frame of the URDF, and name of the columns <name>/x, /y, /z [N] and, where recorded, /mx, /my, /mz "
        "[N m], in the axes of that frame or of another one (@base: those of the base)"),
    "--coupling YAML": (Path, "motors that move several joints together: robot.coupling of this YAML; when not given, "
        "that of the robot"),
}
_MODEL: OptionTable = {
    "--method": (tuple(METHODS), "identification method; when not given, the first that data and robot allow"),
    "--law [JOINT=]LAW": ([str], "friction law of all joints, or of those that a pattern such as *_knee matches. "
        "'auto': the law that predicts unseen data best, joint by joint"),
    "--payload-scale": (True, "estimate the mass of the payloads, too"),
    "--drive-gains": (True, "efforts are currents, or torques times an unknown factor: estimate the torque per unit of "
        "effort of every joint, from a payload of known mass or with --known-inertia"),
    "--known-inertia": (True, "take the URDF's inertia as it is, identify friction only"),
    "--coupled-friction": (COUPLED_FRICTION, "where friction is when motors move joints together: in the motors, as in "
        "the live node (default), or in every joint and, on top, in every motor that turns with several of them"),
    "--stribeck-velocity RAD/S": (_positive_or_search, "Stribeck velocity of load_velocity and, by the method motor, "
        "of all laws that have one; or 'search'. When not given, the method motor takes 1 deg/s as published, and "
        "inverse_dynamics searches"),
    "--regressors temperature,position[*K],presliding": (_regressors, "quantities on which dry friction also depends; "
        "position*K repeats K times in a turn, presliding is the distance since the last reversal"),
}
_DATA: OptionTable = {
    "--cutoff HZ": (positive, "cut-off of the zero-phase filter; else chosen by held-out errors"),
    "--velocity": (VELOCITIES, "measured velocity, or the derivative of the position, for inverse_dynamics; else "
        "chosen by held-out errors"),
    "--parallel-cutoff HZ": (positive, "cut-off of the filter on both sides of the equation of inverse_dynamics; else "
        "chosen by held-out errors"),
    "--dead-zone RAD/S": (positive, "slower samples are left out; not given, by inverse_dynamics those below 0.5 %% of "
        "the usual top speed, by the other methods those whose direction the noise of the velocity hides"),
    "--robust": (bool, "outliers count less (default)"),
    "--folds": (whole_number(2, "a number of folds: "), f"folds of the cross-validation; {FOLDS} when not given"),
    "--delay S": (seconds, "by which torques, or measured friction, are late; else chosen by held-out errors"),
    "--late": (LATE, "what of drives that get positions acts late: the command, or the whole torque, their feedback "
        "included; else chosen by held-out errors"),
    "--hold": (bool, "drives that get positions hold a command until the next one comes (--no-hold: they do not); else "
        "sigma allows for both"),
    "--offset": (bool, "a constant torque that the law lacks is identified; else chosen joint by joint. Of the method "
        "motor: in the logs without drive, too"),
    "--urdf-sigma SHARE": (positive, "relative standard deviation of the URDF's inertial parameters, for "
        "inverse_dynamics; else chosen by held-out errors"),
    "--max-sigma N_M": (positive, "friction less certain than this is left out by friction_curve, where the data has "
        "its standard deviation"),
}
_MOTOR: OptionTable = {
    "--inertia MOTOR=KGM2": ([_motor_value], "known reflected inertia at the output of the motor's gearbox; the others "
        "are identified"),
    "--identify-inertia": (bool, "identify the inertia of motors without --inertia (default); --no-identify-inertia: "
        "they have none"),
    "--zero-slope": (ZERO_SLOPES, "directions in which the friction of asymmetric_stribeck leaves standstill with zero "
        "slope; none when not given"),
    "--drive": (DRIVES, "column that drives the motors, where both were recorded"),
    "--known-gain MOTOR=GAIN": ([_motor_value], "torque per unit of the drive [N m]: logs may be driven while friction "
        "is identified, and no gain is; once a motor"),
    "--free FILE": ([Path], "this file of DATA is a log without drive torque, whatever its columns pwm and current "
        "have. When not given, logs whose drive is zero in nearly all samples are free"),
}
# fmt: on


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``identify``."""
    parser.add_argument(
        "data",
        type=Path,
        nargs="+",
        metavar="DATA",
        help="rosbag2, or .csv/.npz with the columns time, position/<joint>, velocity/<joint>, effort/<joint>, in SI "
        "units; several files are several experiments",
    )
    result = parser.add_mutually_exclusive_group(required=True)
    result.add_argument("-o", "--output", type=Path, metavar="PARAMS.yaml", help="file to write")
    result.add_argument(
        "--check",
        action="store_true",
        help="identify nothing: simulate the motion, or the commands, of the recording with known parameters, and list "
        "which of them it can show; no torque and no -o is needed",
    )
    add_recording_options(parser, "overwrite")
    add_options(parser.add_argument_group("model"), _MODEL)
    add_options(parser.add_argument_group("treatment of the data"), _DATA)
    add_options(parser.add_argument_group("method motor"), _MOTOR)


def add_recording_options(parser: argparse.ArgumentParser, *shared: str) -> None:
    """Add the options about recordings and their robot; the files are arguments, not options."""
    add_robot_arguments(parser, None, "URDF of something with a fixed base, or name or YAML of any robot")
    add_shared_options(parser, "namespace", "report", *shared)
    add_options(parser, _RECORDINGS)


def recording_keywords(arguments: argparse.Namespace) -> dict[str, Any]:
    """Command-line arguments about recordings, as keywords of the functions ``identify`` and ``validate``.

    Raises
    ------
    ConfigError
        When the robot cannot be loaded, or an experiment has two payloads.
    """
    fixed = {} if arguments.base is None else {"robot.fixed_base": True, "observer": "momentum"}
    return {
        **given(arguments, "coupling", "joints", "namespace"),
        "robot": None if arguments.robot is None else robot_of(arguments, **fixed),
        "payloads": _once("payload", arguments.payload),
        "kp": _once("kp", arguments.kp) or None,
        "kd": _once("kd", arguments.kd) or None,
        "wrenches": arguments.wrench or [],
        "stage": progress_bar,
        "warn": warn,
    }


def run(arguments: argparse.Namespace) -> None:
    """Identify from the recordings, write the parameter file, and print the result."""
    if arguments.check:
        _check(arguments)
        return
    laws = _laws(arguments.law)
    if arguments.output.exists() and not arguments.overwrite:
        raise ConfigError(f"{arguments.output} exists already: choose another name, or replace it (--overwrite)")
    result = identify(
        arguments.data,
        method=arguments.method,
        command=arguments.command,
        **laws,
        **recording_keywords(arguments),
        **_options(arguments),
    )
    result.save(arguments.output)
    _print(result)
    print(f"parameters  {arguments.output}")
    if arguments.report is not None:
        with progress_bar("drawing"):
            result.report(arguments.report, arguments.output.stem)
        print(f"report      {arguments.report}")


def _check(arguments: argparse.Namespace) -> None:
    """Print which parameters the motion can show."""
    keywords = recording_keywords(arguments)
    robot = keywords.pop("robot")
    if robot is None:
        raise ConfigError("--check simulates the robot: add --robot NAME_OR_FILE")
    unused = {
        "--payload": keywords.pop("payloads"), "--coupling": keywords.pop("coupling"),
        "--namespace": keywords.pop("namespace"), "--wrench": keywords.pop("wrenches"),
        "--method": arguments.method, "--report": arguments.report,
    }  # fmt: skip
    if any(unused.values()):
        raise ConfigError(f"--check takes no {choices(name for name, value in unused.items() if value)}: leave it out")
    checks = check_motion(arguments.data, robot, **keywords, **_laws(arguments.law), **_options(arguments))
    print_table(check_table(checks))


def _once(option: str, pairs: Sequence[tuple[str, Any]] | None) -> dict[str, Any]:
    """Values of a repeated option by name.

    Raises
    ------
    ConfigError
        When a name is given twice.
    """
    names = [name for name, _ in pairs or ()]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ConfigError(f"--{option} is given twice for {choices(twice)}: give it once")
    return dict(pairs or ())


def _laws(entries: Sequence[str] | None) -> dict[str, Any]:
    """Keywords of the laws that were given."""
    laws = [entry for entry in entries or () if "=" not in entry]
    if len(laws) > 1:
        raise ConfigError(f"--law names {choices(laws)} for all joints: one of them, others as JOINT=LAW")
    return {"law": laws[0] if laws else None, "joint_laws": tuple(entry for entry in entries or () if "=" in entry)}


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Options on the command line as keywords of :func:`identify`; those that were not given are left out."""
    known = {place for method in METHODS.values() for place in method.places} - {"law", "joint_laws", "coupling"}
    options = {name: value for name, value in vars(arguments).items() if name in known and value is not None}
    for name in ("inertia", "known_gain"):
        if name in options:
            options[name] = _once(name.replace("_", "-"), options[name])
    if "free" in options:
        if unknown := [str(path) for path in options["free"] if path not in arguments.data]:
            raise ConfigError(
                f"--free names {choices(unknown)}, not among the recordings {choices(map(str, arguments.data))}"
            )
        options["free"] = tuple(map(str, options["free"]))
    if options.get("stribeck_velocity") == _SEARCH:
        options["stribeck_velocity"] = None
    if arguments.regressors is not None:
        options |= arguments.regressors
    return options


def _print(result: IdentificationResult) -> None:
    """Choices, parameters with error bars, held-out errors and those of the baselines, verdicts."""
    console = output_console()
    console.print("what was chosen, and why", style="bold")
    for text in result.provenance.choices:
        print(f"- {text}")
    print()
    print_table(parameter_table(result.parameters))
    print_table(score_table(result.scores))
    if result.candidates:
        print_table(candidate_table([one for one in result.candidates if _is_close(one)]))
    condition = number(result.condition, digits=4)
    print(f"condition number of the observation matrix, columns of unit norm: {condition}")
    print()
    console.print("verdict", style="bold")
    for text in (*result.verdicts, *result.next_steps):
        print(f"- {text}")


def _is_close(candidate: Candidate) -> bool:
    """Whether a candidate was chosen, or predicts as well as the best one; the others are on the page."""
    return candidate.chosen or candidate.excess <= candidate.sigma
