"""``evaluate MODEL DATA...``: how far MOB-Net's external torque is from the measured or true one."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from friction_estimator import compiled
from friction_estimator.cli.arguments import robot_of
from friction_estimator.cli.train import add_data_arguments, recordings_of
from friction_estimator.learning.network import load_model
from friction_estimator.learning.recording import ExternalTorqueErrors, evaluate
from friction_estimator.tables import Column, Table, make_table, number, percent, terminal_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``evaluate`` to its parser."""
    parser.add_argument("model", type=Path, help="model that train wrote")
    add_data_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    """Read, estimate and print."""
    from rich.console import Console

    robot = robot_of(arguments)
    model = load_model(arguments.model, robot)
    compiled.prepare()
    errors = evaluate(model, recordings_of(arguments, robot, with_observer=True))
    Console().print(terminal_table(error_table(errors)))
    print(f"{errors.samples} samples")


def error_table(errors: ExternalTorqueErrors) -> Table:
    """Root mean square errors of each row, and their means over all joints, over limbs and over rows of the base."""
    columns: tuple[str | Column, ...] = (
        "row",
        Column("RMS"),
        *(Column(name, group="RMSE") for name in errors.rms),
        *(Column(name, group="within 1.96 sigma") for name in errors.coverage),
    )
    figures = (errors.truth_rms, *errors.rms.values(), *errors.coverage.values())
    values = [(name, [float(figure[row]) for figure in figures]) for row, name in enumerate(errors.rows)]
    base = sum(name.startswith("base ") for name in errors.rows)
    every = np.arange(len(errors.rows))
    groups = {"joints": every[base:], "base forces": every[: base // 2], "base moments": every[base // 2 : base]}
    groups |= {f"joints {name}": part for name, part in errors.limbs.items()}
    for name, part in groups.items():
        if part.size:
            values.append((f"mean of the {name}", [float(figure[part].mean()) for figure in figures]))
    parts = len(errors.coverage)
    rows = ((name, *map(number, row[:-parts]), *map(percent, row[-parts:])) for name, row in values)
    return make_table("External torque [N m, N]: size and errors", columns, rows)
