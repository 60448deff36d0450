"""Pinocchio's model of a robot, and kernels that make the dynamics of a sample from pinocchio's results.

The model has the joints whose friction is estimated. The kernels add Jacobian, acceleration and pose of every sole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from friction_estimator.config import Config
from friction_estimator.errors import RobotModelError, choices
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.kernels.records import record
from friction_estimator.linear_algebra import cross, matmul_3x3, matvec_3x3, skew
from friction_estimator.robot.urdf import mimics
from friction_estimator.types import Dynamics, FlagMatrix, FloatArray, Matrix, Tensor, Vector

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
        raise RobotModelError(
            "the links of the URDF have no mass, so there are no dynamics to compare torques with: give their "
            "<inertial>"
        )
    set_armature(model, config.robot.armature, config.robot.joints)
    return model


def set_armature(model: pin.Model, armature: Sequence[float], joints: Sequence[str]) -> None:
    """Add the rotor inertias ``robot.armature`` of these joints to a model.

    Raises
    ------
    RobotModelError
        When there is not one value for each joint.
    """
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
        second_moment = -inertia.mass * (lever @ unit + unit @ lever)
        basis[4:, 1 + axis] = second_moment[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
    return basis


def massless_warnings(model: pin.Model, first_joint: int) -> Iterator[str]:
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
        raise RobotModelError(
            "the URDF has no movable joint, so there is no friction to estimate: give one that is revolute, "
            "continuous or prismatic"
        )
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


@record
class FeetTable(NamedTuple):
    """Where the feet are."""

    # (k, 3, 3), (k, 3) of the last joint of each foot, in base axes
    parent_rotation: Tensor
    parent_position: Matrix
    # (k, 3, 3), (k, 3) of each sole in the axes of that joint
    sole_rotation: Tensor
    sole_position: Matrix
    carries: FlagMatrix  # (k, nv) True where a velocity moves the foot
    floating: bool  # True where the first six velocities are those of the base


@entry_point
def velocity_seen_from_imu(imu: Vector, angular_velocity: Vector, velocity: Vector, v: Vector) -> None:
    """Write the velocities ``v`` (nv,) of base and joints in the frame where the IMU, at ``imu`` in the base, rests."""
    base, imu_velocity = v.size - velocity.size, cross(imu, angular_velocity)
    for axis in range(min(base, 3)):
        v[axis], v[3 + axis] = imu_velocity[axis], angular_velocity[axis]
    v[base:] = velocity


@entry_point
def dynamic_terms(
    mass: Matrix,
    coriolis: Matrix,
    jacobian: Matrix,
    jacobian_rate: Matrix,
    feet: FeetTable,
    gravity: Vector,
    position: Vector,
    velocity: Vector,
    specific_force: Vector,
    out: Dynamics,
) -> None:
    """Write :class:`Dynamics` from pinocchio's results, and from the sample for which they hold.

    Parameters
    ----------
    mass : (nv, nv) H, lower triangle
    coriolis : (nv, nv) transpose of C
    jacobian, jacobian_rate : (nv, 6) columns of the joints' Jacobian and its time derivative, about the base origin
    gravity : (nv,) generalised gravity of a fixed base; zero for a floating one
    position, velocity, specific_force : (n,), (nv,), (3,)
    """
    out.position[:], out.velocity[:], out.specific_force[:] = position, velocity, specific_force
    H, f, v, nv = out.mass_matrix, out.specific_force, out.velocity, gravity.size
    for i in range(nv):
        for j in range(i + 1):
            H[i, j] = H[j, i] = mass[i, j]
    for i in range(nv):
        g = gravity[i]
        if feet.floating:
            g += H[i, 0] * f[0] + H[i, 1] * f[1] + H[i, 2] * f[2]
        coriolis_force, transposed_force = 0.0, 0.0
        for j in range(nv):
            coriolis_force += coriolis[j, i] * v[j]
            transposed_force += coriolis[i, j] * v[j]
        out.bias[i], out.momentum_bias[i] = coriolis_force + g, transposed_force - g
    for foot in range(feet.parent_position.shape[0]):
        _sole_kinematics(jacobian, jacobian_rate, feet, foot, out)


@kernel
def _sole_kinematics(
    jacobian: FloatArray, jacobian_rate: FloatArray, feet: FeetTable, foot: int, out: Dynamics
) -> None:
    """Write Jacobian, acceleration and pose of a sole."""
    v, parent = out.velocity, feet.parent_rotation[foot]
    J, bias_acceleration = out.foot_jacobian[foot], out.foot_bias_acceleration[foot]
    J[:], bias_acceleration[:] = 0.0, 0.0
    R = matmul_3x3(parent, feet.sole_rotation[foot])
    p = matvec_3x3(parent, feet.sole_position[foot])
    motion, rate = np.zeros(6), np.zeros(6)  # twist of the foot and its derivative, about the base origin
    start = feet.parent_position[foot]
    p = p[0] + start[0], p[1] + start[1], p[2] + start[2]
    for axis in range(3):
        out.foot_position_in_base[foot, axis] = p[axis]
        for i in range(3):
            out.foot_rotation_to_base[foot, axis, i] = R[axis, i]
    for j in range(v.size):
        if feet.carries[foot, j]:
            column = jacobian[j]
            l0, l1, l2, w0, w1, w2 = column[0], column[1], column[2], column[3], column[4], column[5]
            for i in range(6):
                motion[i] += v[j] * column[i]
                rate[i] += v[j] * jacobian_rate[j, i]
            l0, l1, l2 = l0 + w1 * p[2] - w2 * p[1], l1 + w2 * p[0] - w0 * p[2], l2 + w0 * p[1] - w1 * p[0]
            for axis in range(3):
                J[axis, j] = R[0, axis] * l0 + R[1, axis] * l1 + R[2, axis] * l2
                J[3 + axis, j] = R[0, axis] * w0 + R[1, axis] * w1 + R[2, axis] * w2
    omega, alpha = (motion[3], motion[4], motion[5]), (rate[3], rate[4], rate[5])
    omega_cross_p, alpha_cross_p = cross(omega, p), cross(alpha, p)
    centripetal = cross(
        omega, (motion[0] + omega_cross_p[0], motion[1] + omega_cross_p[1], motion[2] + omega_cross_p[2])
    )
    for i in range(3):
        linear = rate[i] + alpha_cross_p[i] + centripetal[i]
        for axis in range(3):
            bias_acceleration[axis] += R[i, axis] * linear
            bias_acceleration[3 + axis] += R[i, axis] * alpha[i]


@entry_point
def link_error_columns(regressor: Matrix, link_errors: Tensor) -> FloatArray:
    """Torque (n, n, 4) per link error: last 10 n columns of the regressor (n, ...) times the basis (n, 10, 4)."""
    n = link_errors.shape[0]
    first = regressor.shape[1] - 10 * n
    columns = np.zeros((n, n, 4))
    for i in range(n):
        for j in range(n):
            for k in range(10):
                value = regressor[i, first + 10 * j + k]
                if value != 0.0:
                    for error in range(4):
                        columns[i, j, error] += value * link_errors[j, k, error]
    return columns
