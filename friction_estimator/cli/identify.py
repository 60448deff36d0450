"""``identify DATA... -o PARAMS.yaml``: friction, inertia and drive parameters from recordings, with error bars."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from friction_estimator.api.identify import IdentificationResult, identify
from friction_estimator.api.rollouts import FITS
from friction_estimator.api.validate import check_motion
from friction_estimator.cli.arguments import (
    add_recording_arguments,
    names_of,
    once,
    output_console,
    positive,
    progress_bar,
    recording_keywords,
    seconds,
    whole_number,
)
from friction_estimator.errors import ConfigError, choices
from friction_estimator.identification.curves.drive import DRIVES
from friction_estimator.identification.curves.problem import ZERO_SLOPES
from friction_estimator.identification.inverse_dynamics.options import COUPLED_FRICTION, LATE, VELOCITIES
from friction_estimator.identification.linear_problem import FOLDS
from friction_estimator.identification.methods import METHODS
from friction_estimator.identification.result import Candidate
from friction_estimator.reports.identification_tables import candidate_table, check_table, parameter_table, score_table
from friction_estimator.tables import number, terminal_table

SEARCH = "search"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``identify`` to its parser."""
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
    parser.add_argument("--overwrite", action="store_true", help="replace an older file of that name")
    parser.add_argument("--report", type=Path, metavar="PAGE.html", help="page of figures and tables to write")
    add_recording_arguments(parser)
    _add_model_options(parser.add_argument_group("model"))
    _add_data_options(parser.add_argument_group("treatment of the data"))
    _add_motor_options(parser.add_argument_group("method motor"))


def _add_model_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--method", choices=tuple(METHODS), help="identification method; when not given, the first that data and robot "
        "allow"
    )  # fmt: skip
    _option(group, "--fit", choices=FITS, help="what is made small: errors of the torque (default), or, from there on, "
            "those of the positions that MuJoCo simulates under the recorded commands (minutes a limb)")  # fmt: skip
    group.add_argument(
        "--law",
        action="append",
        default=[],
        metavar="[JOINT=]LAW",
        help="friction law of all joints, or of those that a pattern such as *_knee matches; may be repeated. 'auto': "
        "the law that predicts unseen data best, joint by joint",
    )
    _flag(group, "--payload-scale", "estimate the mass of the payloads, too")
    _flag(group, "--known-inertia", "take the URDF's inertia as it is, identify friction only")
    _option(
        group,
        "--coupled-friction",
        choices=COUPLED_FRICTION,
        help="where friction is when motors move joints together: in the motors, as in the live node (default), or in "
        "every joint and, on top, in every motor that turns with several of them",
    )
    _option(
        group,
        "--stribeck-velocity",
        type=_positive_or_search,
        metavar="RAD/S",
        help="Stribeck velocity of load_velocity and, by the method motor, of all laws that have one; or 'search'. "
        "When not given, the method motor takes 1 deg/s as published, and inverse_dynamics searches",
    )
    group.add_argument(
        "--regressors",
        type=_regressors,
        metavar="temperature,position[*K],presliding",
        help="quantities on which dry friction also depends; position*K repeats K times in a turn, presliding is the "
        "distance since the last reversal",
    )


def _add_data_options(group: argparse._ArgumentGroup) -> None:
    _option(
        group,
        "--cutoff",
        type=positive,
        metavar="HZ",
        help="cut-off of the zero-phase filter; else chosen by held-out errors",
    )
    _option(group, "--velocity", choices=VELOCITIES, help="measured velocity, or the derivative of the position, for "
            "inverse_dynamics; else chosen by held-out errors")  # fmt: skip
    _option(group, "--parallel-cutoff", type=positive, metavar="HZ", help="cut-off of the filter on both sides of the "
            "equation of inverse_dynamics; else chosen by held-out errors")  # fmt: skip
    _option(group, "--dead-zone", type=positive, metavar="RAD/S", help="slower samples are left out; not given, by "
            "inverse_dynamics those below 0.5 %% of the usual top speed, by the other methods those whose direction "
            "the noise of the velocity hides")  # fmt: skip
    _option(group, "--robust", action=argparse.BooleanOptionalAction, help="outliers count less (default)")
    _option(
        group,
        "--folds",
        type=whole_number(2, "a number of folds: "),
        help=f"folds of the cross-validation; {FOLDS} when not given",
    )
    _option(group, "--delay", type=seconds, metavar="S", help="by which torques, or measured friction, are late; else "
            "chosen by held-out errors")  # fmt: skip
    _option(group, "--late", choices=LATE, help="what of drives that get positions acts late: the command, or the "
            "whole torque, their feedback included; else chosen by held-out errors")  # fmt: skip
    _option(group, "--hold", action=argparse.BooleanOptionalAction, help="drives that get positions hold a command "
            "until the next one comes (--no-hold: they do not); else sigma allows for both")  # fmt: skip
    _option(group, "--offset", action=argparse.BooleanOptionalAction, help="a constant torque that the law lacks is "
            "identified; else chosen joint by joint. Of the method motor: in the logs without drive, too")  # fmt: skip
    _option(group, "--urdf-sigma", type=positive, metavar="SHARE", help="relative standard deviation of the URDF's "
            "inertial parameters, for inverse_dynamics; else chosen by held-out errors")  # fmt: skip
    _option(group, "--max-sigma", type=positive, metavar="N_M", help="friction less certain than this is left out by "
            "friction_curve, where the data has its standard deviation")  # fmt: skip


def _add_motor_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--inertia",
        type=_motor_value,
        action="append",
        metavar="MOTOR=KGM2",
        help="known reflected inertia at the output of the motor's gearbox; may be repeated, the others are identified",
    )
    _option(
        group,
        "--identify-inertia",
        action=argparse.BooleanOptionalAction,
        help="identify the inertia of motors without --inertia (default); --no-identify-inertia: they have none",
    )
    _option(
        group,
        "--zero-slope",
        choices=ZERO_SLOPES,
        help="directions in which the friction of asymmetric_stribeck leaves standstill with zero slope; none when not "
        "given",
    )
    _option(group, "--drive", choices=DRIVES, help="column that drives the motors, where both were recorded")
    group.add_argument(
        "--known-gain",
        type=_motor_value,
        action="append",
        metavar="MOTOR=GAIN",
        help="torque per unit of the drive [N m]: logs may be driven while friction is identified, and no gain is; may "
        "be repeated, once a motor",
    )
    _option(
        group,
        "--free",
        type=Path,
        action="append",
        metavar="FILE",
        help="this file of DATA is a log without drive torque, whatever its columns pwm and current have; may be "
        "repeated. When not given, logs whose drive is zero in nearly all samples are free",
    )


def run(arguments: argparse.Namespace) -> None:
    """Identify, write, print."""
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
    given = recording_keywords(arguments)
    robot = given.pop("robot")
    if robot is None:
        raise ConfigError("--check simulates the robot: add --robot NAME_OR_FILE")
    unused = {
        "--payload": given.pop("payloads"), "--coupling": given.pop("coupling"), "--namespace": given.pop("namespace"),
        "--wrench": given.pop("wrenches"), "--method": arguments.method, "--report": arguments.report,
    }  # fmt: skip
    if any(unused.values()):
        raise ConfigError(f"--check takes no {choices(name for name, value in unused.items() if value)}: leave it out")
    checks = check_motion(arguments.data, robot, **given, **_laws(arguments.law), **_options(arguments))
    output_console().print(terminal_table(check_table(checks)))


def _laws(given: Sequence[str]) -> dict[str, Any]:
    """Keywords of the laws that were given."""
    laws = [entry for entry in given if "=" not in entry]
    if len(laws) > 1:
        raise ConfigError(f"--law names {choices(laws)} for all joints: one of them, others as JOINT=LAW")
    return {"law": laws[0] if laws else None, "joint_laws": tuple(entry for entry in given if "=" in entry)}


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Keywords of the methods that were given; the others keep the default of the method."""
    known = {"fit"}.union(*(method.places for method in METHODS.values())) - {"law", "joint_laws", "coupling"}
    given = {name: value for name, value in vars(arguments).items() if name in known and value is not None}
    for name in ("inertia", "known_gain"):
        if name in given:
            given[name] = once(name.replace("_", "-"), given[name])
    if "free" in given:
        if unknown := [str(path) for path in given["free"] if path not in arguments.data]:
            raise ConfigError(
                f"--free names {choices(unknown)}, not among the recordings {choices(map(str, arguments.data))}"
            )
        given["free"] = tuple(map(str, given["free"]))
    if given.get("stribeck_velocity") == SEARCH:
        given["stribeck_velocity"] = None
    if arguments.regressors is not None:
        given |= arguments.regressors
    return given


def _print(result: IdentificationResult) -> None:
    """Choices, parameters with error bars, held-out errors and those of the baselines, verdicts."""
    console = output_console()
    console.print("what was chosen, and why", style="bold")
    for text in result.provenance.choices:
        console.print(f"- {text}", markup=False, soft_wrap=True)
    console.print()
    console.print(terminal_table(parameter_table(result.parameters)))
    console.print(terminal_table(score_table(result.scores)))
    if result.candidates:
        console.print(terminal_table(candidate_table([one for one in result.candidates if _is_close(one)])))
    condition = number(result.condition, digits=4)
    console.print(f"condition number of the observation matrix, columns of unit norm: {condition}")
    console.print()
    console.print("verdict", style="bold")
    for text in (*result.verdicts, *result.next_steps):
        console.print(f"- {text}", markup=False, soft_wrap=True)


def _is_close(candidate: Candidate) -> bool:
    """Whether a candidate was chosen, or predicts as well as the best one; the others are on the page."""
    return candidate.chosen or candidate.excess <= candidate.sigma


def _flag(group: argparse._ArgumentGroup, name: str, help: str) -> None:
    group.add_argument(name, action="store_true", default=None, help=help)


def _option(group: argparse._ArgumentGroup, name: str, **settings: Any) -> None:
    """An option whose absence leaves the default of the method."""
    group.add_argument(name, default=None, **settings)


def _positive_or_search(text: str) -> float | str:
    return text if text == SEARCH else positive(text)


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
