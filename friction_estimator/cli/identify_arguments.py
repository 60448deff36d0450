"""Options of `identify` and what they mean."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from friction_estimator.cli.arguments import add_robot_arguments
from friction_estimator.cli.identify_motor import SEARCH, add_motor_arguments
from friction_estimator.core.joint_log import Payload
from friction_estimator.identification.inverse_dynamics.options import COUPLED_FRICTION
from friction_estimator.identification.recording.differentiators import METHODS as FILTERS
from friction_estimator.identification.regression.validation import FOLDS

METHODS = ("inverse_dynamics", "friction_curve", "motor")

_POINT, _BODY = 4, 10


def add_identify_arguments(parser: argparse.ArgumentParser) -> None:
    """Everything but planning."""
    parser.add_argument(
        "data",
        type=Path,
        nargs="*",
        metavar="DATA",
        help="rosbag2, or .csv/.npz with the columns time, position/<joint>, velocity/<joint>, effort/<joint>, in SI "
        "units; several files are several experiments",
    )
    parser.add_argument("-o", "--output", type=Path, metavar="PARAMS.yaml", help="parameter file to write")
    parser.add_argument("--report", type=Path, metavar="PAGE.html", help="page of figures and tables to write")
    add_robot_arguments(parser, None, "URDF of something with a fixed base, or name or YAML of any robot")
    parser.add_argument("--joints", type=names_of, metavar="NAME,...", help="only these joints, in this order")
    parser.add_argument("--namespace", default="", help="of the topics in bags")
    _add_model_arguments(parser.add_argument_group("model"))
    _add_data_arguments(parser.add_argument_group("treatment of the data"))
    _add_curve_arguments(parser.add_argument_group("method friction_curve"))
    add_motor_arguments(parser.add_argument_group("method motor"))


def _add_model_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--method", choices=METHODS, help="how to identify; what data and robot allow when not given")
    group.add_argument(
        "--law",
        action="append",
        default=[],
        metavar="[JOINT=]LAW",
        help="friction law of all joints, or of those that a pattern such as *_knee matches; may be repeated",
    )
    group.add_argument(
        "--payload",
        type=payload_of,
        action="append",
        default=[],
        metavar="EXPERIMENT=FRAME:MASS,X,Y,Z[,IXX,IYY,IZZ,IXY,IXZ,IYZ]",
        help="body that was fixed to a frame of the URDF in one experiment (name of its file without suffix); may be "
        "repeated",
    )
    group.add_argument("--payload-scale", action="store_true", help="the payloads' mass is estimated, too")
    group.add_argument(
        "--known-inertia", action="store_true", help="take the URDF's inertia as it is, identify friction only"
    )
    group.add_argument(
        "--coupling",
        type=Path,
        metavar="YAML",
        help="motors that move several joints together; else robot.coupling of the YAML",
    )
    group.add_argument(
        "--coupled-friction",
        choices=COUPLED_FRICTION,
        help="where friction is when motors move joints together: in the motors, as the live node has it (default), or "
        "in every joint and, on top, in every motor that turns with several of them",
    )
    group.add_argument(
        "--stribeck-velocity",
        type=positive_or_search,
        metavar="RAD/S",
        help="of laws that have one, or 'search'; else searched, by the method motor 1 deg/s as printed",
    )
    group.add_argument(
        "--regressors",
        type=regressors_of,
        default=(),
        metavar="temperature,position[*K]",
        help="dry friction also depends on these; position*K repeats K times in a turn",
    )


def _add_curve_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--delay", type=duration, metavar="S", help="how late the friction is against the velocity; else found"
    )
    group.add_argument(
        "--max-sigma",
        type=positive,
        metavar="N_M",
        help="friction less certain than that is left out, where the data has its standard deviation",
    )


def _add_data_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--cutoff", type=positive, metavar="HZ", help="of the zero-phase filter; else from the spectrum")
    group.add_argument("--filter", choices=FILTERS, default=FILTERS[0], help="how derivatives are made")
    group.add_argument(
        "--parallel-cutoff", type=positive, metavar="HZ", help="of the filter on both sides of the equation"
    )
    group.add_argument(
        "--dead-zone", type=positive, metavar="RAD/S", help="slower samples are left out; else found from the residuals"
    )
    group.add_argument(
        "--robust", action=argparse.BooleanOptionalAction, default=True, help="outliers count less (Huber)"
    )
    group.add_argument("--folds", type=folds, default=FOLDS, help="of the cross-validation")


def positive(text: str) -> float:
    """Type of an option that is a positive number."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return value


def positive_or_search(text: str) -> float | str:
    """Type of ``--stribeck-velocity``: a positive number, or the word for a search."""
    return text if text == SEARCH else positive(text)


def duration(text: str) -> float:
    """Type of an option that is a time, zero or more."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time: seconds, zero or more")
    return value


def folds(text: str) -> int:
    """Type of ``--folds``."""
    if not text.isdecimal() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of folds: a whole number from 2 on")
    return int(text)


def regressors_of(text: str) -> tuple[bool, tuple[float, ...]]:
    """Type of ``--regressors``: whether friction depends on temperature, and multiples of the position."""
    temperature, harmonics = False, []
    for word in names_of(text):
        name, star, multiple = word.partition("*")
        if word == "temperature":
            temperature = True
        elif name == "position":
            harmonics.append(positive(multiple) if star else 1.0)
        else:
            raise argparse.ArgumentTypeError(f"{word!r} is no regressor; there are 'temperature' and 'position[*K]'")
    return temperature, tuple(harmonics)


def payload_of(text: str) -> tuple[str, Payload]:
    """Type of ``--payload``: ``EXPERIMENT=FRAME:MASS,X,Y,Z[,IXX,IYY,IZZ,IXY,IXZ,IYZ]``, without inertia a point."""
    experiment, equals, body = text.rpartition("=")
    frame, colon, numbers = body.rpartition(":")
    try:
        values = [float(number) for number in numbers.split(",")]
    except ValueError:
        values = []
    if not (equals and experiment and colon and frame) or len(values) not in (_POINT, _BODY):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not of the form EXPERIMENT=FRAME:MASS,X,Y,Z or "
            "EXPERIMENT=FRAME:MASS,X,Y,Z,IXX,IYY,IZZ,IXY,IXZ,IYZ"
        )
    if not np.isfinite(values).all() or values[0] < 0.0:
        raise argparse.ArgumentTypeError(f"{text!r}: the mass cannot be negative, and every number must be finite")
    xx, yy, zz, xy, xz, yz = values[_POINT:] or [0.0] * (_BODY - _POINT)
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if np.linalg.eigvalsh(inertia).min() < 0.0:
        raise argparse.ArgumentTypeError(f"{text!r}: no body has such an inertia, it must be positive semidefinite")
    return experiment, Payload(frame, values[0], np.array(values[1:_POINT]), inertia)


def names_of(text: str) -> tuple[str, ...]:
    """Type of an option that takes names separated by commas."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) != len(names):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of different names separated by commas")
    return names
