"""The method `motor` of `identify`: its options, and which logs show what."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from friction_estimator.cli.identify_coupling import coupling_of
from friction_estimator.cli.identify_laws import laws_of
from friction_estimator.cli.identify_values import SEARCH, motor_value
from friction_estimator.errors import ConfigError, choices
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.identification.motor.method import MotorOptions
from friction_estimator.identification.motor.problem import ZERO_SLOPES
from friction_estimator.identification.motor.samples import DRIVES
from friction_estimator.identification.regression.least_squares import SolverOptions
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


def motor_options(logs: Sequence[JointLog], robot: Robot | None, arguments: argparse.Namespace) -> MotorOptions:
    """Options of the method from the command line.

    Raises
    ------
    ConfigError
        When they do not fit.
    """
    law, exceptions = laws_of(arguments, None)
    if exceptions:
        raise ConfigError("the method motor takes one law for all motors: --law LAW")
    published = MotorOptions()
    wanted = arguments.stribeck_velocity or published.stribeck_velocity
    return MotorOptions(
        law=law if arguments.law else published.law,
        stribeck_velocity=None if wanted == SEARCH else wanted,
        zero_slope=arguments.zero_slope or published.zero_slope,
        inertia=_by_motor("inertia", arguments.inertia),
        identify_inertia=arguments.identify_inertia is not False,
        offset=arguments.offset,
        drive=arguments.drive,
        known_gain=_by_motor("known-gain", arguments.known_gain),
        solver=SolverOptions(robust=arguments.robust),
        cutoff_hz=arguments.cutoff,
        folds=arguments.folds,
        coupling=coupling_of(arguments, robot, logs[0].joint_names),
    )


def _by_motor(option: str, given: Sequence[tuple[str, float]]) -> dict[str, float]:
    motors = [motor for motor, _ in given]
    twice = {motor for motor in motors if motors.count(motor) > 1}
    if twice:
        raise ConfigError(f"--{option} is given twice for {choices(twice)}")
    return dict(given)
