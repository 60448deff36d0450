"""Options of the identification methods from the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import numpy as np

from friction_estimator.cli.arguments import warn
from friction_estimator.cli.identify_coupling import coupling_of
from friction_estimator.cli.identify_laws import laws_of
from friction_estimator.cli.identify_motor import motor_options
from friction_estimator.cli.identify_robot import described
from friction_estimator.cli.identify_usage import refuse_useless
from friction_estimator.cli.identify_values import SEARCH
from friction_estimator.errors import ConfigError
from friction_estimator.identification.friction_curve.fit import CurveOptions
from friction_estimator.identification.friction_curve.method import FrictionCurveOptions
from friction_estimator.identification.inverse_dynamics.friction_columns import LOAD_VELOCITY
from friction_estimator.identification.inverse_dynamics.options import MOTORS, InverseDynamicsOptions
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.identification.methods import METHODS
from friction_estimator.identification.recording.zero_phase import FilterOptions
from friction_estimator.identification.regression.least_squares import SolverOptions
from friction_estimator.identification.result import Identification
from friction_estimator.identification.rigid_body.rigid_body_columns import RigidBodyOptions
from friction_estimator.io.robot import Robot


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
    progress : called with the number of finished steps, and of all

    Raises
    ------
    FrictionEstimatorError
        When the method lacks something, or has no use for an option.
    """
    refuse_useless(arguments, method)
    options = _OPTIONS[method](logs, robot, arguments)
    return METHODS[method].run(logs, described(robot), options, progress, warn)


def _inverse_dynamics(
    logs: Sequence[JointLog], robot: Robot | None, arguments: argparse.Namespace
) -> InverseDynamicsOptions:
    if arguments.payload_scale and not arguments.payload:
        raise ConfigError("--payload-scale needs --payload: what was carried, up to its mass")
    temperature, harmonics = arguments.regressors or (False, ())
    law, joint_laws = laws_of(arguments, robot)
    if arguments.stribeck_velocity is not None and law != LOAD_VELOCITY:
        raise ConfigError(f"--stribeck-velocity is for the law {LOAD_VELOCITY!r} of this method, not for {law!r}")
    coupling = coupling_of(arguments, robot, logs[0].joint_names)
    if coupling is None and arguments.coupled_friction:
        raise ConfigError(
            "--coupled-friction is for motors that move joints together: name them with --coupling, or robot.coupling "
            "in the robot's YAML"
        )
    return InverseDynamicsOptions(
        law=law,
        joint_laws=joint_laws,
        stribeck_velocity=None if arguments.stribeck_velocity == SEARCH else arguments.stribeck_velocity,
        body=RigidBodyOptions(known_inertia=arguments.known_inertia, payload_scale=arguments.payload_scale),
        coupling=coupling,
        coupled_friction=arguments.coupled_friction or MOTORS,
        temperature=temperature,
        harmonics=harmonics,
        solver=SolverOptions(robust=arguments.robust),
        dead_zone=arguments.dead_zone,
        cutoff_hz=arguments.parallel_cutoff,
        folds=arguments.folds,
        filter=_filter(arguments),
    )


def _friction_curve(
    logs: Sequence[JointLog], robot: Robot | None, arguments: argparse.Namespace
) -> FrictionCurveOptions:
    law, joint_laws = laws_of(arguments, robot)
    return FrictionCurveOptions(
        law=law,
        joint_laws=joint_laws,
        coupling=coupling_of(arguments, robot, logs[0].joint_names),
        fit=CurveOptions(loss="huber" if arguments.robust else "linear"),
        delay=arguments.delay,
        dead_zone=arguments.dead_zone or 0.0,
        max_sigma=arguments.max_sigma or np.inf,
        folds=arguments.folds,
        filter=_filter(arguments),
    )


def _filter(arguments: argparse.Namespace) -> FilterOptions:
    usual = FilterOptions()
    return FilterOptions(arguments.cutoff, arguments.filter or usual.method)


_OPTIONS = {"inverse_dynamics": _inverse_dynamics, "friction_curve": _friction_curve, "motor": motor_options}
