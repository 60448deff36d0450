"""Options that several verbs share, and the progress bar."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from friction_estimator.config import OBSERVERS
from friction_estimator.errors import ConfigError
from friction_estimator.estimation.smoothing import SMOOTHING_LAG
from friction_estimator.io.bags.writer import STORAGES
from friction_estimator.io.documents import parse_value
from friction_estimator.io.robot import Robot, as_robot, load_robot
from friction_estimator.tables import Table, terminal_table

if TYPE_CHECKING:
    from rich.console import Console

    from friction_estimator.learning.external_torque import MobNetEstimator


def add_robot_arguments(
    parser: argparse.ArgumentParser,
    default: str | None = "suralp",
    what: str = "name of a robot in config/robots, or the path of its YAML",
) -> None:
    """Add the options ``--robot``, with this default and help text, and ``--set``."""
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


OptionTable = Mapping[str, tuple[Any, str] | tuple[Any, str, Any]]
"""Kind, help and default (else None) of options by ``--name METAVAR``, or ``-n --name METAVAR``.

The kind is the type, a list with the type of an option that may be repeated, the choices, ``bool`` for an option with a
``--no-`` form, or True for a flag.
"""


def add_options(group: argparse._ActionsContainer, table: OptionTable) -> None:
    """Add options to a parser: flags as keys of the table, with type, help text and default."""
    for words, (kind, text, *default) in table.items():
        flags = [word for word in words.split() if word.startswith("-")]
        settings: dict[str, Any] = {"default": default[0] if default else None}
        if metavar := words.partition(flags[-1])[2].strip():
            settings["metavar"] = metavar
        if kind is True:
            settings["action"] = "store_true"
        elif kind is bool:
            settings["action"] = argparse.BooleanOptionalAction
        elif isinstance(kind, list):
            settings |= {"action": "append", "type": kind[0]}
            text = f"{text}; may be repeated"
        else:
            settings["type" if callable(kind) else "choices"] = kind
        group.add_argument(*flags, help=text, **settings)


_SHARED: dict[str, OptionTable] = {
    "namespace": {"--namespace": (str, "namespace of the topics in bags", "")},
    "observer": {
        "--observer --method": (
            tuple(OBSERVERS),
            "method that measures friction; when not given, that of the robot's YAML",
        )
    },
    "overwrite": {"--overwrite": (True, "replace an older output of that name", False)},
    "params": {"--params": (Path, "parameter file with identified friction to start from")},
    "report": {"--report PAGE.html": (Path, "page of figures and tables to write")},
    "mob_net": {  # see :func:`mob_net_estimator`
        "--mob-net MODEL": (Path, "model of `train`: the external torque is that of MOB-Net"),
        "--mob-net-fused": (
            True,
            "with --mob-net: the external torque is that of MOB-Net and the friction stage, weighted by their errors",
            False,
        ),
    },
}
"""Options of the same meaning in several verbs."""


def add_shared_options(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add options that several verbs share, by their names in :data:`_SHARED`."""
    for name in names:
        add_options(parser, _SHARED[name])


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of verbs that write a bag."""
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the bag to write")
    parser.add_argument("--storage", choices=STORAGES, default=STORAGES[0], help="file format of the bag")
    add_shared_options(parser, "overwrite")


def add_smooth_option(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--smooth [SECONDS]``."""
    parser.add_argument(
        "--smooth",
        type=look_ahead,
        nargs="?",
        const=SMOOTHING_LAG,
        metavar="SECONDS",
        help="fixed-lag smoothing: each estimate also uses this many seconds of later data, inf: all of it; "
        f"{SMOOTHING_LAG:g} s when no number is given; only with the observer kalman",
    )


def given(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Values of the command-line arguments ``names``, as keywords of a function."""
    return {name: getattr(arguments, name) for name in names}


def mob_net_estimator(arguments: argparse.Namespace, robot: Robot) -> MobNetEstimator | None:
    """Estimator with the external torque of MOB-Net; None without ``--mob-net``.

    Raises
    ------
    ConfigError, LearningError
        When there is no model, or it is not one of this robot.
    """
    if arguments.mob_net is None:
        if arguments.mob_net_fused:
            raise ConfigError("--mob-net-fused needs a model of MOB-Net: add --mob-net MODEL")
        return None
    from friction_estimator.learning.external_torque import MobNetEstimator
    from friction_estimator.learning.network import load_model

    return MobNetEstimator(robot.config, robot.urdf_xml, load_model(arguments.mob_net, robot), arguments.mob_net_fused)


def add_simulation_arguments(parser: argparse.ArgumentParser, duration: float) -> None:
    """Add ``--scenario``, ``--noise``, ``--duration`` with its default [s], and ``--seed``."""
    from friction_estimator.simulation import noise_names, scenario_names  # MuJoCo is needed here only

    options: OptionTable = {
        "--scenario": (scenario_names(), "motion of the robot", "walk"),
        "--noise": (noise_names(), "sensor noise level", "paper_std"),
        "--duration": (_positive_seconds, "simulated time [s]", duration),
        "--seed": (random_seed, "random seed of the sensor noise; the same seed gives the same readings", 0),
    }
    add_options(parser, options)


def robot_of(arguments: argparse.Namespace, **overrides: Any) -> Robot:
    """Load the robot of ``--robot`` and ``--set``, with its URDF.

    Parameters
    ----------
    overrides : parameters that have an option of the same name; None: not given

    Raises
    ------
    ConfigError
        When ``--set`` contradicts such an option, or the robot names no URDF.
    """
    chosen = {name: value for name, value in overrides.items() if value is not None}
    settings = dict(arguments.settings)
    for name, value in chosen.items():
        if settings.get(name, value) != value:
            raise ConfigError(f"--{name} {value} and --set {name}={settings[name]} contradict each other: give one")
    return as_robot(load_robot(arguments.robot, {**chosen, **settings}))


def output_console(width: int = 120) -> Console:
    """Console on stdout; where that is no terminal, lines have this width."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else width)


def print_table(table: Table) -> None:
    """Print a table on stdout."""
    output_console().print(terminal_table(table))


def warn(text: str) -> None:
    """Print a warning as one line on stderr."""
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
_positive_seconds = _number_type(lambda value: 0.0 < value < math.inf, "a positive number of seconds")
seconds = _number_type(lambda value: 0.0 <= value < math.inf, "a number of seconds from 0 on")
look_ahead = _number_type(lambda value: value > 0.0, "a positive number of seconds or inf")
"""A time [s], or ``inf`` for all there is."""


def whole_number(least: int, what: str = "") -> Callable[[str], int]:
    """Type of an option that is a whole number from ``least`` on.

    Parameters
    ----------
    what : the number in words, for the text of the ``argparse.ArgumentTypeError`` about any other value
    """

    def number(text: str) -> int:
        if not text.replace("_", "").isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}a whole number from {least} on")
        return int(text)

    return number


random_seed = whole_number(0, "a seed: ")


def names_of(text: str) -> tuple[str, ...]:
    """Type of an option that takes names separated by commas.

    Raises
    ------
    argparse.ArgumentTypeError
        When a name is empty or given twice.
    """
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) != len(names):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of different names separated by commas")
    return names


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
    """Function that shows progress; it takes the finished work, the whole work and, where it changes, the title.

    The progress goes to stderr: as a bar on a terminal, else as a line every few seconds.
    """
    if not sys.stderr.isatty() or find_spec("rich") is None:
        yield _progress_lines(title)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

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


def _progress_lines(title: str) -> Callable[..., None]:
    """Progress as lines: the first one after a few seconds, so that short work shows none."""
    latest = time.monotonic()

    def show(done: float, total: float, now: str = title) -> None:
        nonlocal latest
        if total and time.monotonic() >= latest + _LINE_PERIOD:
            latest = time.monotonic()
            print(f"{now}: {100.0 * done / total:.0f} %", file=sys.stderr, flush=True)

    return show
