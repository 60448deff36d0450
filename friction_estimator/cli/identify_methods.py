"""Which method `identify` takes, and its options from the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import numpy as np

from friction_estimator.cli.arguments import warn
from friction_estimator.cli.identify_coupling import coupling_of
from friction_estimator.cli.identify_laws import law_of_each, laws_of
from friction_estimator.cli.identify_motor import identify_motors
from friction_estimator.cli.identify_usage import refuse_useless
from friction_estimator.cli.identify_values import SEARCH
from friction_estimator.errors import ConfigError, InputError
from friction_estimator.identification.friction_curve.fit import CurveOptions
from friction_estimator.identification.friction_curve.method import FrictionCurveOptions, identify_friction_curve
from friction_estimator.identification.inverse_dynamics.load_velocity_friction import LOAD_VELOCITY
from friction_estimator.identification.inverse_dynamics.method import identify_inverse_dynamics
from friction_estimator.identification.inverse_dynamics.options import MOTORS, InverseDynamicsOptions
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.identification.recording.at_motors import at_motors
from friction_estimator.identification.recording.checks import torque_suspicions
from friction_estimator.identification.recording.differentiators import METHODS as FILTERS
from friction_estimator.identification.recording.motion import Motion
from friction_estimator.identification.recording.zero_phase import to_motion
from friction_estimator.identification.regression.least_squares import SolverOptions
from friction_estimator.identification.result import Identification
from friction_estimator.identification.rigid_body.fixed_base_model import FixedBaseModel
from friction_estimator.identification.rigid_body.rigid_body_columns import RigidBodyOptions
from friction_estimator.io.robot import Robot
from friction_estimator.robot.transmission import Transmission

_SEGMENT = 1.0
"""Stretches of time that the cross-validation keeps together [s]."""

_NEEDS = (
    "inverse_dynamics needs effort/<joint> and --robot with the URDF of something with a fixed base; friction_curve "
    "needs friction/<joint>, or a bag of a walking robot with its sensors and --robot with its YAML; motor needs "
    "joint_torque/<joint>"
)


def choose_method(logs: Sequence[JointLog], robot: Robot | None) -> tuple[str, str]:
    """Method that the data and the robot allow, and why in a sentence.

    Raises
    ------
    InputError
        When they allow none; the message says what each needs.
    """
    if all("joint_torque" in log.inputs for log in logs):
        return "motor", "method motor: the torque behind the transmission was recorded"
    if all("friction" in log.inputs for log in logs):
        return "friction_curve", "method friction_curve: measured friction torque is in the data"
    if robot is not None and not robot.config.robot.fixed_base:
        return "friction_curve", "method friction_curve: the robot walks, so the estimator must measure friction first"
    if robot is not None and all(log.effort is not None for log in logs):
        return "inverse_dynamics", "method inverse_dynamics: motor torques of a robot with a fixed base"
    raise InputError(f"{logs[0].name} with this robot allows no method: {_NEEDS}")


def identify_with(
    method: str,
    logs: Sequence[JointLog],
    robot: Robot | None,
    arguments: argparse.Namespace,
    progress: Callable[[float, float], None],
) -> Identification:
    """Run a method with the options of the command line.

    Parameters
    ----------
    progress : called with the number of logs that are filtered, and of all

    Raises
    ------
    FrictionEstimatorError
        When the method lacks something, or has no use for an option.
    """
    refuse_useless(arguments, method)
    if method == "motor":
        return identify_motors(logs, robot, arguments)
    span = sum(float(log.time[-1] - log.time[0]) for log in logs if log.time.size)
    segment = min(_SEGMENT, span / (2 * arguments.folds)) or _SEGMENT  # shorter where folds would find too few
    motions: list[Motion] = []
    for log in logs:
        progress(len(motions), len(logs) + 1)  # the fit itself comes last
        motions.append(to_motion(log, arguments.cutoff, arguments.filter or FILTERS[0], segment_duration=segment))
    progress(len(logs), len(logs) + 1)
    if method == "friction_curve":
        return _friction_curve(motions, robot, arguments)
    return _inverse_dynamics(motions, robot, arguments)


def _inverse_dynamics(motions: Sequence[Motion], robot: Robot | None, arguments: argparse.Namespace) -> Identification:
    if robot is None:
        raise ConfigError("the method inverse_dynamics needs the robot: say --robot with the path of its URDF")
    if not robot.config.robot.fixed_base:
        raise ConfigError(
            "the method inverse_dynamics needs a fixed base, this robot walks; if it hung in a stand, say "
            "--set robot.fixed_base=true --set observer=momentum, else take the method friction_curve"
        )
    names = motions[0].joint_names
    options = _inverse_dynamics_options(names, robot, arguments)
    model = FixedBaseModel(robot.urdf_xml, names)
    _doubt_torques(motions, model)
    return identify_inverse_dynamics(motions, model, options, arguments.command)


def _inverse_dynamics_options(
    joint_names: Sequence[str], robot: Robot, arguments: argparse.Namespace
) -> InverseDynamicsOptions:
    if arguments.payload_scale and not arguments.payload:
        raise ConfigError("--payload-scale needs --payload: what was carried, up to its mass")
    temperature, harmonics = arguments.regressors or (False, ())
    law, joint_laws = laws_of(arguments, robot)
    if arguments.stribeck_velocity is not None and law != LOAD_VELOCITY:
        raise ConfigError(f"--stribeck-velocity is for the law {LOAD_VELOCITY!r} of this method, not for {law!r}")
    coupling = coupling_of(arguments, robot, joint_names)
    if coupling is None and arguments.coupled_friction:
        raise ConfigError(
            "--coupled-friction is for motors that move joints together: name them with --coupling, or robot.coupling "
            "in the robot's YAML"
        )
    place = arguments.coupled_friction or MOTORS
    if joint_laws:
        law_of_each(law, joint_laws, Transmission.of(coupling if place == MOTORS else None, joint_names).names)
    return InverseDynamicsOptions(
        law=law,
        joint_laws=joint_laws,
        stribeck_velocity=None if arguments.stribeck_velocity == SEARCH else arguments.stribeck_velocity,
        body=RigidBodyOptions(known_inertia=arguments.known_inertia, payload_scale=arguments.payload_scale),
        coupling=coupling,
        coupled_friction=place,
        temperature=temperature,
        harmonics=harmonics,
        solver=SolverOptions(robust=arguments.robust),
        dead_zone=arguments.dead_zone,
        cutoff_hz=arguments.parallel_cutoff,
        folds=arguments.folds,
    )


def _doubt_torques(motions: Sequence[Motion], model: FixedBaseModel) -> None:
    """Warn of wrong signs that only the URDF's inertia shows; others were told when the log was read."""
    if not model.urdf_parameters.any():
        return
    for motion in motions:
        if motion.effort is None:
            continue
        told = {text.split()[0] for text in torque_suspicions(motion)}  # each begins with effort/<joint>
        rigid = model.torque(motion.position, motion.velocity, motion.acceleration, motion.payload)
        for text in torque_suspicions(motion, rigid):
            if text.split()[0] not in told:
                warn(f"{motion.name}: {text}")


def _friction_curve(motions: Sequence[Motion], robot: Robot | None, arguments: argparse.Namespace) -> Identification:
    options = FrictionCurveOptions(
        fit=CurveOptions(loss="huber" if arguments.robust else "linear"),
        delay=arguments.delay,
        dead_zone=arguments.dead_zone or 0.0,
        max_sigma=arguments.max_sigma or np.inf,
        folds=arguments.folds,
    )
    coupling = coupling_of(arguments, robot, motions[0].joint_names)
    if coupling is not None:
        motors = Transmission.of(coupling, motions[0].joint_names)
        motions = [at_motors(motion, motors) for motion in motions]
    laws = law_of_each(*laws_of(arguments, robot), motions[0].joint_names)
    return identify_friction_curve(motions, laws, options, arguments.command)
