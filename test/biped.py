"""The built-in biped, and exact motions of it that satisfy the no-slip constraint."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pinocchio as pin

from friction_estimator.config import Config, config_from_parameters, parameter_fields
from friction_estimator.types import Attitude, ContactPhase, SensorFrame

URDF = Path(__file__).parents[1] / "urdf" / "suralp.urdf"
GRAVITY = np.array([0.0, 0.0, -9.81])


def suralp_config(**changes: object) -> Config:
    """Configuration of the built-in biped; keywords with ``__`` for dots change parameters, or constants of methods."""
    parameters: dict[str, object] = {
        "feet.names": ["l_foot", "r_foot"],
        "feet.l_foot.frame": "l_sole",
        "feet.l_foot.phase": "left_support",
        "feet.r_foot.frame": "r_sole",
        "feet.r_foot.phase": "right_support",
    }
    parameters.update({key.replace("__", "."): value for key, value in changes.items()})
    known = {item.name for item in parameter_fields(("l_foot", "r_foot"))}
    config = config_from_parameters({key: value for key, value in parameters.items() if key in known})
    for section, name in (key.split(".") for key in parameters if key not in known):
        constant = {name: parameters[f"{section}.{name}"]}
        config = replace(config, **{section: replace(getattr(config, section), **constant)})
    return config


@dataclass(frozen=True)
class Instant:
    """One exactly consistent instant of the walking robot, computed in the WORLD frame by pinocchio alone."""

    frame: SensorFrame
    attitude: Attitude
    phase: ContactPhase
    friction: np.ndarray


def consistent_instant(
    urdf_xml: str, rng: np.random.Generator, standing: tuple[bool, bool], minimum_norm: bool
) -> Instant:
    """Random posture, velocities and wrenches with standing feet at rest, and what ideal sensors read there.

    With ``minimum_norm`` the accelerations are those that eqs. 42 and 46 would choose among the possible ones.
    """
    model = pin.buildModelFromXML(urdf_xml, pin.JointModelFreeFlyer())
    data = model.createData()
    rotation = pin.exp3(rng.normal(size=3) * 0.4)
    q = pin.neutral(model)
    q[:3], q[3:7] = rng.normal(size=3), pin.Quaternion(rotation).coeffs()
    q[7:] = rng.normal(size=12) * 0.2 + np.tile([0.0, 0.0, -0.4, 0.8, -0.4, 0.0], 2)
    feet = [model.getFrameId("l_sole"), model.getFrameId("r_sole")]
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    J = np.vstack([pin.getFrameJacobian(model, data, f, pin.LOCAL) for f, s in zip(feet, standing, strict=True) if s])
    v = _null_space_vector(J, rng.normal(size=18))
    pin.forwardKinematics(model, data, q, v, np.zeros(18))
    pin.updateFramePlacements(model, data)
    bias = np.concatenate(
        [
            pin.getFrameClassicalAcceleration(model, data, f, pin.LOCAL).vector
            for f, s in zip(feet, standing, strict=True)
            if s
        ]
    )
    a = _null_space_vector(J, rng.normal(size=18) * 3.0) - np.linalg.pinv(J) @ bias
    imu = model.getFrameId("imu_link")
    if minimum_norm:
        a = _with_minimum_norm_joints(model, data, imu, J, bias, a, standing)
    wrenches = rng.normal(size=(2, 6)) * [50, 50, 200, 10, 10, 10] + [0, 0, 500, 0, 0, 0]
    wrenches[~np.array(standing)] = 0.0
    external = [pin.Force.Zero() for _ in range(model.njoints)]
    for frame_id, wrench in zip(feet, wrenches, strict=True):
        frame = model.frames[frame_id]
        external[frame.parentJoint] += frame.placement.act(pin.Force(wrench))
    link_torque = pin.rnea(model, data, q, v, a, pin.StdVec_Force(external))[6:]
    friction = rng.normal(size=12)
    pin.forwardKinematics(model, data, q, v, a)
    pin.updateFramePlacements(model, data)
    acceleration = pin.getFrameClassicalAcceleration(model, data, imu, pin.LOCAL)
    specific_force = acceleration.linear - rotation.T @ GRAVITY
    stands = np.array(standing)
    return Instant(
        frame=SensorFrame(
            stamp_ns=0,
            dt=0.001,
            position=q[7:],
            velocity=v[6:],
            effort=link_torque + friction,
            angular_velocity=v[3:6],
            specific_force=specific_force,
            wrenches=wrenches,
            imu_fresh=True,
            wrench_fresh=np.array([True, True]),
            readings_per_sample=np.ones(3),
        ),
        attitude=Attitude(
            rotation_base_to_world=rotation,
            angular_velocity=v[3:6],
            angular_acceleration=a[3:6],
            specific_force=specific_force,
            covariance=np.zeros((3, 3)),
            rate_covariance=np.zeros((3, 3)),
        ),
        phase=ContactPhase(contact=stands, since=np.array([1.0, 1.0]), name=""),
        friction=friction,
    )


def _null_space_vector(J: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return vector - np.linalg.pinv(J) @ (J @ vector)


def _with_minimum_norm_joints(model, data, imu, J, bias, a, standing):
    """Replace omega_dot and the standing legs' accelerations by the minimum-norm ones for the same IMU acceleration."""
    columns = np.r_[3:6, [6 + j for leg in range(2) if standing[leg] for j in range(6 * leg, 6 * leg + 6)]]
    imu_map = pin.getFrameJacobian(model, data, imu, pin.LOCAL)[:3]
    # v_dot of the base follows from a fixed acceleration of the IMU point: a_I = imu_map @ a + const
    target = imu_map @ a
    lever = -np.linalg.solve(imu_map[:, :3], imu_map[:, 3:6])
    base = np.linalg.solve(imu_map[:, :3], target)
    moved = J[:, columns].copy()
    moved[:, :3] += J[:, :3] @ lever
    others = np.setdiff1d(np.arange(6, 18), columns)
    upsilon = -bias - J[:, :3] @ base - J[:, others] @ a[others]
    solution = np.linalg.pinv(moved) @ upsilon
    a = a.copy()
    a[columns] = solution
    a[:3] = base + lever @ solution[:3]
    return a
