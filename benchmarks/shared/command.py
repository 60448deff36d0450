"""Command line of a study: its inputs are checked before the work, and an error of the user is one line."""

from __future__ import annotations

import argparse
import functools
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from friction_estimator.errors import FrictionEstimatorError, InputError


def make_parser(name: str, documentation: str | None) -> argparse.ArgumentParser:
    """Parser of ``python -m benchmarks.NAME``; the docstring of the study is its help text."""
    return argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=documentation,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def command(main: Callable[[Sequence[str] | None], int | None]) -> Callable[..., int]:
    """Decorate the main function of a study: errors of the package end it with one line and exit code 1."""

    @functools.wraps(main)
    def run(arguments: Sequence[str] | None = None) -> int:
        try:
            return main(arguments) or 0
        except FrictionEstimatorError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1

    return run


def command_line(name: str, arguments: Sequence[str] | None) -> str:
    """Command that made a page, as a user types it."""
    return shlex.join(["python", "-m", f"benchmarks.{name}", *(sys.argv[1:] if arguments is None else arguments)])


def require(library: str, reason: str) -> None:
    """Check that an optional library is installed.

    Raises
    ------
    InputError
        When it is not; the message holds the command that installs it.
    """
    if find_spec(library) is None:
        raise InputError(f"{reason} need {library}: pip install {library}")


def add_processes(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--processes``."""
    parser.add_argument("--processes", type=count, default=os.cpu_count() or 1, help="number of parallel processes")


def count(text: str) -> int:
    """Argument type: a whole number of at least 1."""
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    return int(text)


def setting(text: str) -> tuple[str, Any]:
    """Argument type: a parameter of the estimator and its value in YAML, ``PARAM=VALUE``."""
    name, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"must be PARAM=VALUE, got {text}")
    return name, yaml.safe_load(value)


def longer_than(limit: float) -> Callable[[str], float]:
    """Argument type: a duration of more than this limit [s]."""

    def duration(text: str) -> float:
        if not float(text) > limit:
            raise argparse.ArgumentTypeError(f"must be more than {limit:g} s, got {text}")
        return float(text)

    return duration


def folder_with(*patterns: str) -> Callable[[str], Path]:
    """Argument type: a folder that holds at least one file of each pattern."""

    def folder(text: str) -> Path:
        missing = [pattern for pattern in patterns if not any(Path(text).glob(pattern))]
        if not Path(text).is_dir() or missing:
            raise argparse.ArgumentTypeError(f"{text} must be a folder that holds {', '.join(missing or patterns)}")
        return Path(text)

    return folder


def existing_path(text: str) -> Path:
    """Argument type: a file or folder that exists."""
    if not Path(text).exists():
        raise argparse.ArgumentTypeError(f"there is no file or folder {text}")
    return Path(text)


def output_file(text: str) -> Path:
    """Argument type: a file to write, in a folder that exists."""
    if not Path(text).parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {Path(text).parent} to write {Path(text).name} to")
    return Path(text)
