"""Motors that move several joints together: of ``--coupling``, else of the robot's YAML."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from friction_estimator.cli.identify_robot import movable_joints
from friction_estimator.config.coupling import Coupling
from friction_estimator.errors import ConfigError, choices
from friction_estimator.io.coupling import coupling_of_joints, load_couplings
from friction_estimator.io.robot import Robot


def couplings_of(arguments: argparse.Namespace, robot: Robot | None) -> tuple[Coupling, ...]:
    """Couplings that ``--coupling`` or else the robot's YAML names, group by group."""
    if arguments.coupling is not None:
        return load_couplings(arguments.coupling)
    coupling = None if robot is None else robot.config.robot.coupling.coupling()
    return () if coupling is None else coupling.parts


def coupling_of(arguments: argparse.Namespace, robot: Robot | None, joint_names: Sequence[str]) -> Coupling | None:
    """Coupling of these joints (n), those without one included; None when nothing is coupled.

    Raises
    ------
    ConfigError
        When the file couples other joints, robot.coupling joints that the robot lacks, or only a part of a coupled
        group is there.
    """
    couplings = couplings_of(arguments, robot)
    if not couplings:
        return None
    file = arguments.coupling
    if file is None and robot is not None:
        _check_named(couplings, movable_joints(robot.urdf_xml))
    if file is not None and not any(set(coupling.joint_names) & set(joint_names) for coupling in couplings):
        named = choices(name for coupling in couplings for name in coupling.joint_names)
        raise ConfigError(f"{file} couples {named}; the joints of data and robot are {choices(joint_names)}")
    try:
        return coupling_of_joints(couplings, joint_names)
    except ConfigError as error:
        raise ConfigError(f"{'robot.coupling' if file is None else file}: {error}") from None


def places_of_motors(couplings: Sequence[Coupling]) -> Mapping[str, str]:
    """The joint at whose place each motor stands: the k-th of its coupling."""
    pairs = [zip(coupling.motor_names, coupling.joint_names, strict=True) for coupling in couplings]
    return {motor: joint for pair in pairs for motor, joint in pair}


def _check_named(couplings: Sequence[Coupling], joint_names: Sequence[str]) -> None:
    unknown = {name for coupling in couplings for name in coupling.joint_names} - set(joint_names)
    if unknown:
        raise ConfigError(f"robot.coupling names the joint {choices(unknown)}; the robot has {choices(joint_names)}")
