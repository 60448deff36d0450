"""``identify DATA... -o PARAMS.yaml``: friction, inertia and drive parameters from recordings, with error bars."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from friction_estimator.cli.arguments import warn
from friction_estimator.cli.identify_arguments import add_identify_arguments
from friction_estimator.cli.identify_laws import law_in_words
from friction_estimator.cli.identify_logs import Experiments, read_experiments
from friction_estimator.cli.identify_methods import identify_with
from friction_estimator.cli.identify_pipeline import measured_friction
from friction_estimator.cli.identify_plan import add_plan_arguments, run_plan
from friction_estimator.cli.identify_robot import described, identified_robot
from friction_estimator.cli.identify_tables import print_identification
from friction_estimator.cli.identify_usage import PLAN, refuse_useless
from friction_estimator.cli.progress import progress_bar
from friction_estimator.identification.methods import choose_method
from friction_estimator.identification.recording.checks import data_warnings
from friction_estimator.identification.result import Identification
from friction_estimator.identification.rigid_body.fixed_base_model import FixedBaseModel
from friction_estimator.io.coupling import load_couplings
from friction_estimator.io.identification import save_identification
from friction_estimator.io.robot import Robot
from friction_estimator.types import FloatArray


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.set_defaults(wrong_usage=parser.error, default_of=parser.get_default)
    add_identify_arguments(parser)
    add_plan_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    """Plan, or identify."""
    if arguments.plan is not None:
        if arguments.data:
            arguments.wrong_usage("--plan takes no DATA: it says what to move before there is any")
        if arguments.robot is None:
            arguments.wrong_usage("--plan needs --robot: the path of a URDF")
        refuse_useless(arguments, PLAN)
        run_plan(arguments)
        return
    if not arguments.data or arguments.output is None:
        arguments.wrong_usage("identify DATA... -o PARAMS.yaml, or identify --plan OUT --robot ROBOT")
    identification = _identified(arguments)
    save_identification(arguments.output, identification)
    print_identification(identification, _told_motors(arguments, identification.friction.joint_names))
    print(f"parameters  {arguments.output}")
    if arguments.report is not None:
        _report(arguments, identification)
        print(f"report      {arguments.report}")


def _identified(arguments: argparse.Namespace) -> Identification:
    experiments = read_experiments(arguments, identified_robot(arguments))
    logs, notes = list(experiments.logs), list(experiments.notes)
    for log in logs:
        for text in data_warnings(log, _position_limits(experiments.robot, log.joint_names)):
            warn(text)
    method, reason = _method(arguments, experiments)
    notes.append(reason)
    if (
        method == "friction_curve"
        and experiments.robot is not None
        and any("friction" not in log.inputs for log in logs)
    ):
        logs, text = measured_friction(arguments.data, logs, experiments.robot, arguments)
        notes.append(text)
    if method != "motor" and (text := law_in_words(arguments, experiments.robot)):
        notes.append(text)
    with progress_bar(f"identifying, method {method}") as progress:
        found = identify_with(method, logs, experiments.robot, arguments, progress)
    provenance = replace(found.provenance, command=arguments.command, choices=(*notes, *found.provenance.choices))
    return replace(found, provenance=provenance)


def _told_motors(arguments: argparse.Namespace, names: Sequence[str]) -> tuple[str, ...]:
    """Motors of ``--coupling`` whose friction stands in the file under these names."""
    if arguments.coupling is None:
        return ()
    motors = (name for coupling in load_couplings(arguments.coupling) for name in coupling.motor_names)
    return tuple(name for name in motors if name in names)


def _method(arguments: argparse.Namespace, experiments: Experiments) -> tuple[str, str]:
    if arguments.method is not None:
        return arguments.method, f"method {arguments.method}, as told"
    return choose_method(experiments.logs, described(experiments.robot))


def _position_limits(robot: Robot | None, joint_names: Sequence[str]) -> FloatArray | None:
    """(n, 2) of the URDF, None without one."""
    if robot is None:
        return None
    model = FixedBaseModel(robot.urdf_xml, joint_names)
    return np.column_stack([model.lower_limit, model.upper_limit])


def _report(arguments: argparse.Namespace, identification: Identification) -> None:
    from friction_estimator.report.identification import write_identification_report

    with progress_bar("drawing"):
        write_identification_report(arguments.report, identification, arguments.output.stem)
