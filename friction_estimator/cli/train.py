"""``train DATA... -o MODEL``: MOB-Net."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from friction_estimator.cli.arguments import (
    OptionTable,
    add_options,
    add_robot_arguments,
    add_shared_options,
    print_table,
    progress_bar,
    random_seed,
    robot_of,
    warn,
    whole_number,
)
from friction_estimator.io.robot import Robot
from friction_estimator.learning.network import Model, RobotIdentity
from friction_estimator.learning.training_data import (
    SignalRecording,
    load_signals,
    read_bag,
    training_doubts,
)
from friction_estimator.tables import Column, Table, make_table, number

_TRAIN: OptionTable = {
    "--epochs": (whole_number(1), "passes over the data, at most"),
    "--hidden": (whole_number(1), "hidden units of each limb's network"),
    "--seed": (random_seed, "random seed of weights and order of the data", 0),
    "--paper": (True, "sizes and settings of Lim et al. 2024: many hours without a GPU"),
    "--onnx FILE": (Path, "write the networks as ONNX, too, for programs in other languages"),
    "--restart": (True, "drop an interrupted training instead of continuing it"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``train``."""
    add_data_options(parser)
    parser.add_argument("-o", "--output", type=Path, required=True, help="model to write, NAME.safetensors")
    add_options(parser, _TRAIN)


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """Add the options about recordings and their robot."""
    parser.add_argument(
        "data",
        type=Path,
        nargs="+",
        help="rosbags of the robot with joint states, IMU and foot wrenches; or recordings of their signals, .npz, or "
        "folders with such files",
    )
    add_robot_arguments(parser)
    add_shared_options(parser, "namespace")


def read_recordings(arguments: argparse.Namespace, robot: Robot, with_observer: bool = False) -> list[SignalRecording]:
    """Read all recordings; ``with_observer``: those of bags get the external torque of the friction stage, too.

    Raises
    ------
    LearningError, BagError
        When one of them cannot be read or belongs to another robot.
    """
    identity, recordings = RobotIdentity.from_robot(robot), list[SignalRecording]()
    for path in arguments.data:
        if files := [path] if path.suffix == ".npz" else sorted(path.glob("*.npz")):
            recordings += [load_signals(file, identity) for file in files]
            continue
        with progress_bar(f"reading {path.name}") as progress:
            recording, warnings = read_bag(path, robot, arguments.namespace, progress, with_observer)
        recordings.append(recording)
        for text in warnings:
            warn(f"{path}: {text}")
    return recordings


def run(arguments: argparse.Namespace) -> None:
    """Read recordings, train MOB-Net, and write the model."""
    from friction_estimator.learning.training import PAPER, Epoch, TrainingSettings, train

    if arguments.onnx:  # a missing library is named before the work
        from friction_estimator.learning.onnx_file import write_onnx
    settings = dataclasses.replace(PAPER if arguments.paper else TrainingSettings(), seed=arguments.seed)
    if arguments.epochs:
        settings = dataclasses.replace(settings, epochs=arguments.epochs)
    if arguments.hidden:
        settings = dataclasses.replace(settings, leg_hidden=arguments.hidden, other_hidden=arguments.hidden)
    robot = robot_of(arguments)
    recordings = read_recordings(arguments, robot)
    for text in training_doubts(recordings, robot):
        warn(text)
    checkpoint = arguments.output.with_name(f"{arguments.output.name}.checkpoint")
    if arguments.restart:
        checkpoint.unlink(missing_ok=True)
    with progress_bar("training") as progress:

        def report(epoch: Epoch) -> None:
            progress(
                epoch.done,
                epoch.total,
                f"{epoch.module}: loss {epoch.training_loss:.3f}, validation {epoch.validation_loss:.3f}, "
                f"{epoch.validation_rmse:.2f} N m",
            )

        model = train(recordings, robot, settings, checkpoint, report)
    model.save(arguments.output)
    checkpoint.unlink(missing_ok=True)
    if arguments.onnx:
        write_onnx(model, arguments.onnx)
    print_table(_result_table(model))
    print(f"{arguments.output}: trained with {model.training['samples']} samples")


def _result_table(model: Model) -> Table:
    """What the training achieved on the data for validation."""
    columns = (
        "module", Column("inputs"), Column("hidden"), Column("weights"),
        Column("best epoch"), Column("loss"), Column("RMSE", "N m"),
    )  # fmt: skip
    rows = (
        (
            one["module"], str(network.module.inputs.size), str(network.hidden), str(network.weight_count),
            str(one["epoch"]), number(one["validation_loss"]), number(one["validation_rmse"]),
        )
        for one, network in zip(model.training["results"], model.networks, strict=True)
    )  # fmt: skip
    return make_table("Modules of MOB-Net, and errors in the validation data", columns, rows)
