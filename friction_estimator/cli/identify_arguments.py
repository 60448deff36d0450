"""Options of `identify`, but those of planning and of the method `motor`."""

from __future__ import annotations

import argparse
from pathlib import Path

from friction_estimator.cli.arguments import add_robot_arguments, seconds
from friction_estimator.cli.identify_motor import add_motor_arguments
from friction_estimator.cli.identify_usage import METHODS
from friction_estimator.cli.identify_values import (
    folds,
    names_of,
    payload_of,
    positive,
    positive_or_search,
    regressors_of,
)
from friction_estimator.identification.inverse_dynamics.options import COUPLED_FRICTION
from friction_estimator.identification.recording.filters import METHODS as FILTERS
from friction_estimator.identification.regression.linear_problem import FOLDS


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
        help="of load_velocity and, by the method motor, of all laws that have one; or 'search'. When not given, the "
        "method motor takes 1 deg/s as printed, the other one searches",
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
        "--delay", type=seconds, metavar="S", help="how late the friction is against the velocity; else found"
    )
    group.add_argument(
        "--max-sigma",
        type=positive,
        metavar="N_M",
        help="friction less certain than that is left out, where the data has its standard deviation",
    )


def _add_data_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--cutoff", type=positive, metavar="HZ", help="of the zero-phase filter; else from the spectrum")
    group.add_argument("--filter", choices=FILTERS, help=f"how derivatives are made; {FILTERS[0]} when not given")
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
