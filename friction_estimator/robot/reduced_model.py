"""Pinocchio's model of a robot from its URDF, with the joints whose friction is estimated."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
import pinocchio as pin

from friction_estimator.config import Config
from friction_estimator.errors import RobotModelError, choices
from friction_estimator.linear_algebra import skew
from friction_estimator.robot.urdf import mimics
from friction_estimator.types import FloatArray

_MAX_JOINTS = 150
"""Pinocchio's memory grows with the cube of the joints: 0.07 GB here, and 2 GB at 300 joints."""


def build_model(config: Config, urdf_xml: str) -> pin.Model:
    """Model of pinocchio with the joints of ``robot.joints``; all others are locked at zero.

    Raises
    ------
    RobotModelError
        When the URDF cannot be read, has too many joints or none, no mass, or lacks one of these joints.
    """
    try:
        if config.robot.fixed_base:
            model = pin.buildModelFromXML(urdf_xml)
        else:
            model = pin.buildModelFromXML(urdf_xml, pin.JointModelFreeFlyer())
    except (ValueError, RuntimeError) as error:
        raise RobotModelError(f"the URDF cannot be read: {error}") from None
    first_joint = 1 if config.robot.fixed_base else 2
    movable, driven = list(model.names[first_joint:]), mimics(urdf_xml)
    wanted = config.robot.joints or tuple(name for name in movable if name not in driven)
    if without_motor := driven.intersection(config.robot.joints):
        raise RobotModelError(
            f"robot.joints names {choices(without_motor)}, which <mimic> other joints: they have no motor, and their "
            "friction cannot be estimated; leave them out"
        )
    missing = [name for name in wanted if name not in movable]
    if missing:
        raise RobotModelError(
            f"robot.joints names {choices(missing)}, not in the URDF; its movable joints are {choices(movable)}"
        )
    locked = [model.getJointId(name) for name in movable if name not in wanted]
    model = pin.buildReducedModel(model, locked, pin.neutral(model)) if locked else model
    _check_joints(model, first_joint)
    if not pin.computeTotalMass(model) > 0.0:
        raise RobotModelError("the links of the URDF have no mass, so there are no dynamics to compare torques with")
    _set_armature(model, config.robot.armature, config.robot.joints)
    return model


def _set_armature(model: pin.Model, armature: Sequence[float], joints: Sequence[str]) -> None:
    if not armature:
        return
    if len(armature) != len(joints):
        raise RobotModelError(
            f"robot.armature has {len(armature)} values but robot.joints has {len(joints)} names; "
            "give one value for each of robot.joints"
        )
    inertia = np.zeros(model.nv)
    for name, value in zip(joints, armature, strict=True):
        inertia[model.joints[model.getJointId(name)].idx_v] = value
    model.armature = inertia


def identity_of(model: pin.Model, joint_names: Sequence[str]) -> str:
    """Hash of names, limits and masses, by which parameters of another robot are recognised."""
    rows = slice(-len(joint_names), None)
    numbers = (
        model.lowerPositionLimit[rows], model.upperPositionLimit[rows], model.effortLimit[rows],
        [inertia.mass for inertia in model.inertias],
    )  # fmt: skip
    text = repr((joint_names, [[f"{number:.6g}" for number in row] for row in numbers]))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def link_error_basis(inertia: pin.Inertia) -> FloatArray:
    """Dynamic parameters (10, 4) of a link per relative error of its mass, and per shift of its centre of mass [m]."""
    basis = np.zeros((10, 4))
    basis[:, 0] = inertia.toDynamicParameters()
    basis[1:4, 1:] = inertia.mass * np.eye(3)
    lever = skew(inertia.lever)
    for axis in range(3):
        unit = skew(np.eye(3)[axis])
        turned = -inertia.mass * (lever @ unit + unit @ lever)
        basis[4:, 1 + axis] = turned[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
    return basis


def massless(model: pin.Model, first_joint: int) -> Iterator[str]:
    """A warning about joints that move no mass: their motor torque is all friction."""
    masses = [inertia.mass for inertia in model.inertias]
    empty = [
        model.names[joint]
        for joint in range(first_joint, model.njoints)
        if not sum(masses[moved] for moved in model.subtrees[joint]) > 0.0
    ]
    if empty:
        yield f"joints that move no mass: {', '.join(empty)}; give their links an <inertial> in the URDF"


def _check_joints(model: pin.Model, first_joint: int) -> None:
    if model.njoints <= first_joint:
        raise RobotModelError("the URDF has no movable joint, so there is no friction to estimate")
    if model.njoints - first_joint > _MAX_JOINTS:
        raise RobotModelError(
            f"the URDF has {model.njoints - first_joint} movable joints, more than {_MAX_JOINTS}: name those whose "
            "friction is estimated in robot.joints"
        )
    for index in range(first_joint, model.njoints):
        if model.joints[index].nv != 1:
            raise RobotModelError(
                f"joint {model.names[index]!r} has {model.joints[index].nv} degrees of freedom; "
                "only revolute, continuous and prismatic joints have a friction torque, "
                "so leave it out of robot.joints"
            )
