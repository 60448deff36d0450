"""The method `motor` of `identify`: its options, and which logs show what."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from friction_estimator.cli.identify_coupling import coupling_of
from friction_estimator.cli.identify_laws import laws_of
from friction_estimator.cli.identify_values import SEARCH, motor_value
from friction_estimator.config.coupling import uncoupled
from friction_estimator.errors import ConfigError, choices
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.identification.motor.inputs import DRIVES
from friction_estimator.identification.motor.law import ZERO_SLOPES
from friction_estimator.identification.motor.method import UNDRIVEN, MotorOptions, identify_motor
from friction_estimator.identification.regression.least_squares import SolverOptions
from friction_estimator.identification.result import Identification
from friction_estimator.io.robot import Robot


def add_motor_arguments(group: argparse._ArgumentGroup) -> None:
    """Options that only this method has."""
    group.add_argument(
        "--inertia",
        type=motor_value,
        action="append",
        default=[],
        metavar="MOTOR=KGM2",
        help="known reflected inertia at the output of the motor's gearbox; may be repeated, the others are identified",
    )
    group.add_argument(
        "--identify-inertia",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="of motors without --inertia (default); --no-identify-inertia: they have none",
    )
    group.add_argument(
        "--zero-slope",
        choices=ZERO_SLOPES,
        help="of asymmetric_stribeck: in which directions friction leaves standstill with zero slope; none when not "
        "given",
    )
    group.add_argument(
        "--offset",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="a constant torque acts in the logs without drive, too; else where the law lets it be told from friction",
    )
    group.add_argument("--drive", choices=DRIVES, help="which column drives the motors, where both were recorded")
    group.add_argument(
        "--known-gain",
        type=motor_value,
        action="append",
        default=[],
        metavar="MOTOR=GAIN",
        help="torque per unit of the drive [N m]: logs may be driven while friction is identified, and no gain is; may "
        "be repeated, once a motor",
    )


def identify_motors(logs: Sequence[JointLog], robot: Robot | None, arguments: argparse.Namespace) -> Identification:
    """Run the method.

    Raises
    ------
    FrictionEstimatorError
        When the logs or the options do not fit.
    """
    names = logs[0].joint_names
    law, exceptions = laws_of(arguments, None)
    if exceptions:
        raise ConfigError("the method motor takes one law for all motors: --law LAW")
    gains = _by_motor("known-gain", arguments.known_gain)
    # a log whose drive counts by a known gain shows friction; it cannot show that gain again
    free, driven = (list(logs), []) if gains else split_driven(logs)
    options = _options(arguments, law, gains, _drive(logs, arguments) if gains else arguments.drive)
    return identify_motor(
        free, driven, coupling_of(arguments, robot, names) or uncoupled(names), options, arguments.command
    )


def _options(arguments: argparse.Namespace, law: str, gains: dict[str, float], drive: str | None) -> MotorOptions:
    printed = MotorOptions()
    inertia = _by_motor("inertia", arguments.inertia)
    negative = [motor for motor, value in inertia.items() if value < 0.0]
    if negative:
        raise ConfigError(f"--inertia of {choices(negative)} is negative: no body has that")
    wanted = arguments.stribeck_velocity or printed.stribeck_velocity
    return MotorOptions(
        law=law if arguments.law else printed.law,
        stribeck_velocity=None if wanted == SEARCH else wanted,
        zero_slope=arguments.zero_slope or printed.zero_slope,
        inertia=inertia,
        identify_inertia=arguments.identify_inertia is not False,
        offset=arguments.offset,
        drive=drive,
        known_gain=gains,
        solver=SolverOptions(robust=arguments.robust),
        cutoff_hz=arguments.cutoff,
        folds=arguments.folds,
    )


def _by_motor(option: str, given: Sequence[tuple[str, float]]) -> dict[str, float]:
    motors = [motor for motor, _ in given]
    twice = {motor for motor in motors if motors.count(motor) > 1}
    if twice:
        raise ConfigError(f"--{option} is given twice for {choices(twice)}")
    return dict(given)


def _drive(logs: Sequence[JointLog], arguments: argparse.Namespace) -> str:
    """Which recorded column a known gain multiplies."""
    recorded = [kind for kind in DRIVES if any(kind in log.inputs for log in logs)]
    if arguments.drive is not None and arguments.drive not in recorded:
        raise ConfigError(f"--drive {arguments.drive}: the logs have {choices(recorded)}")
    if arguments.drive is None and len(recorded) != 1:
        found = "both" if recorded else "neither of them"
        raise ConfigError(f"--known-gain multiplies 'pwm' or 'current'; the logs have {found}: say which with --drive")
    return str(arguments.drive or recorded[0])


def split_driven(logs: Sequence[JointLog]) -> tuple[list[JointLog], list[JointLog]]:
    """Logs of motors that were moved from outside, and logs of motors that were driven by PWM or current."""
    largest = {kind: max(_largest(log, kind) for log in logs) for kind in DRIVES}
    driven = [
        any(_largest(log, kind) > UNDRIVEN * largest[kind] for kind in DRIVES if largest[kind] > 0.0) for log in logs
    ]
    pairs = list(zip(logs, driven, strict=True))
    return [log for log, drives in pairs if not drives], [log for log, drives in pairs if drives]


def _largest(log: JointLog, kind: str) -> float:
    return float(np.nanmax(np.abs(log.inputs[kind]), initial=0.0)) if kind in log.inputs else 0.0
