"""``evaluate MODEL DATA...``: errors of the external torque of MOB-Net."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from friction_estimator.cli.arguments import (
    print_table,
    robot_of,
)
from friction_estimator.cli.train import add_data_options, read_recordings
from friction_estimator.kernels import compiler
from friction_estimator.learning.network import load_model
from friction_estimator.learning.training_data import (
    ExternalTorqueErrors,
    evaluate,
)
from friction_estimator.tables import Column, Table, make_table, number, percent


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``evaluate``."""
    parser.add_argument("model", type=Path, help="model that train wrote")
    add_data_options(parser)


def run(arguments: argparse.Namespace) -> None:
    """Read recordings, estimate their external torque with MOB-Net, and print the errors."""
    robot = robot_of(arguments)
    model = load_model(arguments.model, robot)
    compiler.prepare()
    errors = evaluate(model, read_recordings(arguments, robot, with_observer=True))
    print_table(_external_torque_table(errors))
    print(f"{errors.samples} samples")


def _external_torque_table(errors: ExternalTorqueErrors) -> Table:
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
