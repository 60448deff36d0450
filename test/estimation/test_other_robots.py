"""Claims about robots that are not the built-in biped: four point feet, an arm, a waist under the IMU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

import friction_estimator as fe
from friction_estimator.config import Config, config_from_parameters
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.observers.fbse import FootBaseSensorEstimation
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import (
    Attitude,
    ContactPhase,
    ImuSample,
    JointSample,
    SensorFrame,
    WrenchSample,
)

LEGS = ("lf", "rf", "lh", "rh")


def link(name: str, mass: float, com: str = "0 0 -0.1") -> str:
    return (
        f'<link name="{name}"><inertial><origin xyz="{com}"/><mass value="{mass}"/>'
        '<inertia ixx="0.02" iyy="0.03" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )


def joint(name: str, parent: str, child: str, xyz: str, axis: str = "") -> str:
    kind = "revolute" if axis else "fixed"
    tail = f'<axis xyz="{axis}"/><limit lower="-3" upper="3" effort="100" velocity="20"/>' if axis else ""
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}"/>{tail}</joint>'
    )


def quadruped() -> str:
    parts = [link("trunk", 20.0, "0.02 0 0"), '<link name="imu"/>', joint("imu_mount", "trunk", "imu", "0.1 0.02 0.05")]
    for leg in LEGS:
        x, y = (0.3 if leg[1] == "f" else -0.3), (0.15 if leg[0] == "l" else -0.15)
        parts += [link(f"{leg}_hip", 1.0), link(f"{leg}_thigh", 2.0), link(f"{leg}_shank", 0.5)]
        parts += [f'<link name="{leg}_tip"/>', joint(f"{leg}_roll", "trunk", f"{leg}_hip", f"{x} {y} 0", "1 0 0")]
        parts += [joint(f"{leg}_pitch", f"{leg}_hip", f"{leg}_thigh", "0 0 0", "0 1 0")]
        parts += [joint(f"{leg}_knee", f"{leg}_thigh", f"{leg}_shank", "0 0 -0.3", "0 1 0")]
        parts += [joint(f"{leg}_end", f"{leg}_shank", f"{leg}_tip", "0 0 -0.3")]
    parts += [link("arm", 1.5), joint("shoulder", "trunk", "arm", "0.3 0 0.1", "0 1 0")]
    return f'<robot name="quadruped">{"".join(parts)}</robot>'


@pytest.fixture
def config():
    return quadruped_config()


def quadruped_config(**changes: object) -> Config:
    parameters: dict[str, object] = {
        "feet.names": list(LEGS),
        "imu.frame": "imu",
        "fbse.base_angular_acceleration": "gyro",
    }
    for leg in LEGS:
        parameters |= {f"feet.{leg}.frame": f"{leg}_tip", f"feet.{leg}.contact": "point"}
    return config_from_parameters(parameters | changes)


def test_fbse_is_exact_on_three_point_feet_and_leaves_the_arm_and_the_lifted_leg_alone(config):
    rng = np.random.default_rng(0)
    robot = RobotModel(config, quadruped())
    model = pin.buildModelFromXML(quadruped(), pin.JointModelFreeFlyer())
    data = model.createData()
    q = pin.neutral(model)
    q[7:] = rng.normal(size=13) * 0.2 + 0.3
    standing = np.array([True, True, True, False])
    feet = [model.getFrameId(f"{leg}_tip") for leg in LEGS]
    rows = [pin.computeFrameJacobian(model, data, q, foot, pin.LOCAL)[:3] for foot in feet[:3]]
    J = np.vstack(rows)
    v = _project(J, rng.normal(size=19))
    pin.forwardKinematics(model, data, q, v, np.zeros(19))
    pin.updateFramePlacements(model, data)
    bias = np.concatenate([pin.getFrameClassicalAcceleration(model, data, f, pin.LOCAL).linear for f in feet[:3]])
    a = _project(J, rng.normal(size=19)) - np.linalg.pinv(J) @ bias
    wrenches = np.zeros((4, 6))
    wrenches[:3, :3] = rng.normal(size=(3, 3)) * 10 + [0, 0, 80]
    forces = [pin.Force.Zero() for _ in range(model.njoints)]
    for foot, wrench in zip(feet, wrenches, strict=True):
        frame = model.frames[foot]
        forces[frame.parentJoint] += frame.placement.act(pin.Force(wrench))
    link_torque = pin.rnea(model, data, q, v, a, pin.StdVec_Force(forces))[6:]
    pin.forwardKinematics(model, data, q, v, a)
    pin.updateFramePlacements(model, data)
    imu = pin.getFrameClassicalAcceleration(model, data, model.getFrameId("imu"), pin.LOCAL).linear
    specific_force = imu + [0, 0, 9.81]
    friction = rng.normal(size=13)
    order = [list(model.names[2:]).index(name) for name in robot.joint_names]
    frame = SensorFrame(
        0, 1e-3, q[7:][order], v[6:][order], (link_torque + friction)[order],
        v[3:6], specific_force, wrenches, True, np.ones(4, dtype=bool), np.ones(5),
    )  # fmt: skip
    attitude = Attitude(np.eye(3), v[3:6], a[3:6], specific_force, np.zeros((3, 3)), np.zeros((3, 3)))
    dynamics = robot.dynamics(frame.position, frame.velocity, v[3:6], specific_force)
    phase = ContactPhase(standing, np.ones(4), "")
    measured = FootBaseSensorEstimation(config, robot).step(frame, attitude, phase, dynamics)
    known = [name.startswith(("lf_", "rf_", "lh_")) for name in robot.joint_names]
    np.testing.assert_array_equal(measured.available, known)
    np.testing.assert_allclose(measured.friction[known], friction[order][known], atol=1e-8)


@pytest.mark.parametrize(("observer", "measured"), [("fbse", 9), ("kalman", 13)])
def test_the_whole_path_runs_on_four_feet_and_names_its_phases(observer, measured):
    """FBSE measures the three standing legs, the Kalman observer also the lifted one and the arm."""
    estimator = Estimator(quadruped_config(observer=observer), quadruped())
    assert len(estimator.joint_names) == 13 and estimator.foot_names == LEGS
    position = np.array([{"pitch": 0.4, "knee": -0.8}.get(n.split("_")[-1], 0.0) for n in estimator.joint_names])
    upward, ground = np.array([0.0, 0.0, 9.81]), np.zeros((4, 6))
    ground[:3, 2] = 110.0
    statics = RobotModel(estimator.config, quadruped()).dynamics(position, np.zeros(13), np.zeros(3), upward)
    effort = statics.bias[6:] - np.tensordot(ground, statics.foot_jacobian[:, :, 6:], 2)
    estimates = []
    for k in range(300):
        stamp = k * 1_000_000
        estimates += estimator.add_joints(JointSample(stamp, position, np.zeros(13), effort))
        estimates += estimator.add_imu(ImuSample(stamp, np.zeros(3), upward))
        for foot in range(4):
            estimates += estimator.add_wrench(WrenchSample(stamp, foot, ground[foot]))
    assert len(estimates) == 300
    last = estimates[-1]
    assert last.phase.name == "lf+rf+lh"
    assert np.isfinite(last.friction).all() and last.measured.sum() == measured
    np.testing.assert_allclose(last.base.linear_velocity, 0.0, atol=1e-3)


def _project(J, vector):
    return vector - np.linalg.pinv(J) @ (J @ vector)


def test_a_humanoid_with_its_imu_above_the_waist_walks_and_its_waist_is_estimated():
    humanoid = fe.load_robot("humanoid")
    settings = humanoid.config.robot
    rotors = {
        name: rotor for name, rotor in zip(settings.joints, settings.armature, strict=True)
        if name.startswith(("l_hip", "l_knee", "l_ankle", "r_hip", "r_knee", "r_ankle", "waist"))
    }  # fmt: skip
    settings = replace(settings, joints=tuple(rotors), armature=tuple(rotors.values()))
    imu = replace(humanoid.config.imu, frame="torso")
    robot = replace(humanoid, config=replace(humanoid.config, robot=settings, imu=imu))
    walk = fe.simulate(robot, scenario="whole_body", duration=3.5, seed=1)
    result = fe.replay(walk)
    assert sorted(result.joint_names) == sorted(walk.joint_names)
    late = slice(2000, None)
    error, sigma = result.friction[late] - result.truth[late], result.sigma[late]
    assert (np.mean(np.abs(error) < 2.0 * sigma, axis=0) > 0.85).all()
    known = np.sqrt(np.mean(error**2, axis=0) / np.mean(result.truth[late] ** 2, axis=0))
    assert np.median(known) < 0.15 and (known < 0.6).all()
    truth = [sample.truth.linear_velocity for sample in walk.samples[-1000:]]
    np.testing.assert_allclose(result.linear_velocity[-1000:], truth, atol=0.02)  # of the pelvis, not of the torso
