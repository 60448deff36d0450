"""Options that several verbs share, and the progress bar."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from friction_estimator.errors import ConfigError, choices
from friction_estimator.identification.joint_log import ExternalWrench, Payload
from friction_estimator.io.documents import parse_value
from friction_estimator.io.robot import Robot, as_robot, load_robot
from friction_estimator.views.live_view import VIEWS, LiveView, make_display

if TYPE_CHECKING:
    from rich.console import Console

    from friction_estimator.learning.external_torque import MobNetEstimator

VIEW_PORT = 8765
_POINT, _BODY = 4, 10
"""Numbers of a payload: mass and centre of mass; with the inertia."""


def add_robot_arguments(
    parser: argparse.ArgumentParser,
    default: str | None = "suralp",
    what: str = "name of a robot in config/robots, or the path of its YAML",
) -> None:
    """``--robot`` and ``--set``."""
    parser.add_argument("--robot", default=default, help=what)
    parser.add_argument(
        "--set",
        dest="settings",
        metavar="NAME=VALUE",
        type=_setting,
        action="append",
        default=[],
        help="replace one parameter of the robot, e.g. identifier.phases=all, or a list in quotes, "
        "e.g. 'feet.names=[l_foot, r_foot]'; may be repeated",
    )


def add_mob_net_arguments(parser: argparse.ArgumentParser) -> None:
    """``--mob-net`` and ``--fused``, see :func:`mob_net_estimator`."""
    parser.add_argument(
        "--mob-net", type=Path, metavar="MODEL", help="model of `train`: the external torque is that of MOB-Net"
    )
    parser.add_argument(
        "--fused",
        action="store_true",
        help="with --mob-net: the external torque is that of MOB-Net and the observer, weighted by their errors",
    )


def mob_net_estimator(arguments: argparse.Namespace, robot: Robot) -> MobNetEstimator | None:
    """Estimator with the external torque of MOB-Net; None without ``--mob-net``.

    Raises
    ------
    ConfigError, LearningError
        When there is no model, or it is not one of this robot.
    """
    if arguments.mob_net is None:
        if arguments.fused:
            raise ConfigError("--fused needs a model of MOB-Net: add --mob-net MODEL")
        return None
    from friction_estimator.learning.external_torque import MobNetEstimator
    from friction_estimator.learning.network import load_model

    return MobNetEstimator(robot.config, robot.urdf_xml, load_model(arguments.mob_net, robot), arguments.fused)


def add_simulation_arguments(parser: argparse.ArgumentParser, duration: float) -> None:
    """``--scenario``, ``--noise``, ``--duration`` with its default [s], and ``--seed``."""
    from friction_estimator.simulation import noise_names, scenario_names  # MuJoCo is needed here only

    parser.add_argument("--scenario", choices=scenario_names(), default="walk", help="motion of the robot")
    parser.add_argument("--noise", choices=noise_names(), default="paper_std", help="sensor noise level")
    parser.add_argument("--duration", type=positive_seconds, default=duration, help="simulated time [s]")
    parser.add_argument(
        "--seed",
        type=random_seed,
        default=0,
        help="random seed of the sensor noise; the same seed gives the same readings",
    )


def add_recording_arguments(parser: argparse.ArgumentParser) -> None:
    """Which recordings of which robot, of verbs that identify or validate: all but the files themselves."""
    add_robot_arguments(parser, None, "URDF of something with a fixed base, or name or YAML of any robot")
    parser.add_argument("--base", choices=("fixed",), help="the base does not move, e.g. of a robot that hangs in a "
                        "stand; a URDF has a fixed base anyway")  # fmt: skip
    parser.add_argument("--joints", type=names_of, metavar="NAME,...", help="only these joints, in this order")
    parser.add_argument("--namespace", default="", help="namespace of the topics in bags")
    for gain, unit in (("kp", "N m/rad"), ("kd", "N m s/rad")):
        parser.add_argument(
            f"--{gain}",
            type=_gain,
            action="append",
            default=[],
            metavar="[JOINT=]GAIN",
            help=f"gain of drives that get positions, the column command/<joint>, of all joints or of those that a "
            f"pattern matches [{unit}]; may be repeated",
        )
    parser.add_argument(
        "--payload",
        type=payload,
        action="append",
        default=[],
        metavar="EXPERIMENT=FRAME:MASS,X,Y,Z[,IXX,IYY,IZZ,IXY,IXZ,IYZ]",
        help="body that was fixed to a frame of the URDF in one experiment (name of its file without suffix); may be "
        "repeated",
    )
    parser.add_argument(
        "--wrench",
        type=_wrench,
        action="append",
        default=[],
        metavar="FRAME=COLUMNS[@AXES]",
        help="measured external force on a link, such as that of the ground on a foot: frame of the URDF, and name of "
        "the columns <name>/x, /y, /z [N] and, where recorded, /mx, /my, /mz [N m], in the axes of that frame or of "
        "another one (@base: those of the base); may be repeated",
    )
    parser.add_argument(
        "--coupling",
        type=Path,
        metavar="YAML",
        help="motors that move several joints together; when not given, robot.coupling of the robot's YAML",
    )


def recording_keywords(arguments: argparse.Namespace) -> dict[str, Any]:
    """Keywords of ``identify`` and ``validate`` from the options of :func:`add_recording_arguments`.

    Raises
    ------
    ConfigError
        When the robot cannot be loaded, or an experiment has two payloads.
    """
    fixed = {} if arguments.base is None else {"robot.fixed_base": True, "observer": "momentum"}
    return {
        "robot": None if arguments.robot is None else robot_of(arguments, **fixed),
        "coupling": arguments.coupling,
        "payloads": once("payload", arguments.payload),
        "joints": arguments.joints,
        "namespace": arguments.namespace,
        "kp": once("kp", arguments.kp) or None,
        "kd": once("kd", arguments.kd) or None,
        "wrenches": arguments.wrench,
        "stage": progress_bar,
        "warn": warn,
    }


def robot_of(arguments: argparse.Namespace, **overrides: Any) -> Robot:
    """Load the robot that was asked for, with its URDF; an override of None changes nothing.

    Parameters
    ----------
    overrides : parameters with an option of the same name

    Raises
    ------
    ConfigError
        When ``--set`` contradicts such an option, or the robot names no URDF.
    """
    given = {name: value for name, value in overrides.items() if value is not None}
    settings = dict(arguments.settings)
    for name, value in given.items():
        if settings.get(name, value) != value:
            raise ConfigError(f"--{name} {value} and --set {name}={settings[name]} contradict each other: give one")
    return as_robot(load_robot(arguments.robot, {**given, **settings}))


def add_view_arguments(parser: argparse.ArgumentParser) -> None:
    """``--view``, ``--view-port`` and ``--view-file``, see :func:`opened_view`."""
    parser.add_argument(
        "--view",
        choices=tuple(VIEWS),
        help="show the robot with its friction: web is a page for any browser and needs nothing else",
    )
    parser.add_argument(
        "--view-port",
        type=whole_number(0, "a port: "),
        default=VIEW_PORT,
        help="port of the view on this machine; over ssh, forward it with `ssh -L`; 0: a free one",
    )
    parser.add_argument(
        "--view-file", type=Path, metavar="FILE.rrd", help="with --view rerun: write a recording, open no port"
    )


@contextmanager
def opened_view(arguments: argparse.Namespace) -> Iterator[LiveView | None]:
    """The view that was asked for, with its address on stderr; None without ``--view``."""
    if arguments.view is None:
        if arguments.view_file is not None:
            raise ConfigError("--view-file needs --view rerun")
        yield None
        return
    with LiveView(make_display(arguments.view, arguments.view_port, arguments.view_file)) as view:
        print(f"view    {view.display.address}", file=sys.stderr, flush=True)
        yield view
    if view.dropped:
        warn(f"the view was too slow for {view.dropped} frames, which it did not draw; the estimates are complete")


def output_console(width: int = 120) -> Console:
    """Console on stdout; where that is no terminal, lines have this width."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else width)


def warn(text: str) -> None:
    """One line on stderr."""
    print(f"friction_estimator: warning: {text}", file=sys.stderr)


def _number_type(valid: Callable[[float], bool], wanted: str) -> Callable[[str], float]:
    """Type of an option that is a number of which this holds; it refuses all other texts."""

    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not valid(value):
            raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
        return value

    return number


finite = _number_type(math.isfinite, "a number")
"""A number; the function that uses it checks its range."""
positive = _number_type(lambda value: 0.0 < value < math.inf, "a positive number")
positive_seconds = _number_type(lambda value: 0.0 < value < math.inf, "a positive number of seconds")
seconds = _number_type(lambda value: 0.0 <= value < math.inf, "a number of seconds from 0 on")
look_ahead = _number_type(lambda value: value > 0.0, "a positive number of seconds, nor inf")
"""A time [s], or ``inf`` for all there is."""


def whole_number(least: int, what: str = "") -> Callable[[str], int]:
    """Type of an option that is a whole number from ``least`` on; ``what`` it is stands in the error."""

    def number(text: str) -> int:
        if not text.replace("_", "").isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}a whole number from {least} on")
        return int(text)

    return number


random_seed = whole_number(0, "a seed: ")


def names_of(text: str) -> tuple[str, ...]:
    """Type of an option that takes names separated by commas."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) != len(names):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of different names separated by commas")
    return names


def payload(text: str) -> tuple[str, Payload]:
    """Type of an option ``EXPERIMENT=FRAME:MASS,X,Y,Z[,IXX,IYY,IZZ,IXY,IXZ,IYZ]``, without inertia a point."""
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


def once(option: str, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Values of a repeated option by name.

    Raises
    ------
    ConfigError
        When a name is given twice.
    """
    names = [name for name, _ in pairs]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ConfigError(f"--{option} is given twice for {choices(twice)}: give it once")
    return dict(pairs)


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


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    try:
        return name, parse_value(value)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[..., None]]:
    """Give a function that takes how much is done, how much there is, and, if it changes, the title.

    The progress goes to stderr: as a bar on a terminal, else as a line every few seconds.
    """
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    except ModuleNotFoundError:
        yield progress_lines(title)
        return
    if not sys.stderr.isatty():
        yield progress_lines(title)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total, now=title: bar.update(task, completed=done, total=total, description=now)


_LINE_PERIOD = 5.0
"""Time between two lines of progress where stderr is no terminal [s]."""


def progress_lines(title: str) -> Callable[..., None]:
    """Progress as lines: the first one after a few seconds, so that short work shows none."""
    latest = time.monotonic()

    def show(done: float, total: float, now: str = title) -> None:
        nonlocal latest
        if total and time.monotonic() >= latest + _LINE_PERIOD:
            latest = time.monotonic()
            print(f"{now}: {100.0 * done / total:.0f} %", file=sys.stderr, flush=True)

    return show
