"""``train DATA... -o MODEL``: networks that learn the error of the momentum observer (MOB-Net)."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from friction_estimator.cli.arguments import (
    add_robot_arguments,
    progress_bar,
    random_seed,
    robot_of,
    warn,
    whole_number,
)
from friction_estimator.io.robot import Robot
from friction_estimator.learning.network import Model, RobotIdentity
from friction_estimator.learning.recording import SignalRecording, load_signals, read_bag, training_doubts
from friction_estimator.tables import Column, Table, make_table, number, terminal_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``train`` to its parser."""
    add_data_arguments(parser)
    parser.add_argument("-o", "--output", type=Path, required=True, help="model to write, NAME.safetensors")
    parser.add_argument("--epochs", type=whole_number(1), help="passes over the data, at most")
    parser.add_argument("--hidden", type=whole_number(1), help="hidden units of each limb's network")
    parser.add_argument("--seed", type=random_seed, default=0, help="random seed of weights and order of the data")
    parser.add_argument(
        "--paper", action="store_true", help="sizes and settings of Lim et al. 2024: many hours without a GPU"
    )
    parser.add_argument(
        "--onnx", type=Path, metavar="FILE", help="write the networks as ONNX, too, for programs in other languages"
    )
    parser.add_argument("--restart", action="store_true", help="drop an interrupted training instead of continuing it")


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """The data that two verbs read."""
    parser.add_argument(
        "data",
        type=Path,
        nargs="+",
        help="rosbags of the robot with joint states, IMU and foot wrenches; or recordings of their signals, .npz, or "
        "folders with such files",
    )
    add_robot_arguments(parser)
    parser.add_argument("--namespace", default="", help="namespace of the topics in bags")


def recordings_of(arguments: argparse.Namespace, robot: Robot, with_observer: bool = False) -> list[SignalRecording]:
    """All recordings; those of bags also with the external torque of the friction stage, where it is wanted.

    Raises
    ------
    LearningError, BagError
        When one of them cannot be read or belongs to another robot.
    """
    identity, recordings = RobotIdentity.of(robot), list[SignalRecording]()
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
    """Read, train and write."""
    from rich.console import Console

    from friction_estimator.learning.training import PAPER, Epoch, TrainingSettings, train

    if arguments.onnx:  # a missing library is named before the work
        from friction_estimator.learning.onnx_file import write_onnx
    settings = dataclasses.replace(PAPER if arguments.paper else TrainingSettings(), seed=arguments.seed)
    if arguments.epochs:
        settings = dataclasses.replace(settings, epochs=arguments.epochs)
    if arguments.hidden:
        settings = dataclasses.replace(settings, leg_hidden=arguments.hidden, other_hidden=arguments.hidden)
    robot = robot_of(arguments)
    recordings = recordings_of(arguments, robot)
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
    Console().print(terminal_table(result_table(model)))
    print(f"{arguments.output}: trained with {model.training['samples']} samples")


def result_table(model: Model) -> Table:
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
