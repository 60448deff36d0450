"""MuJoCo and pinocchio see the same robot; forces and accelerations fit together."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from friction_estimator.errors import SimulationError
from friction_estimator.simulation import Push, Simulator, make_noise, make_scenario
from friction_estimator.simulation.biped import Biped
from friction_estimator.simulation.physics import Physics


@pytest.fixture(scope="module")
def biped(robot):
    return Biped(robot.config, robot.urdf_xml)


@pytest.fixture
def physics(robot, biped):
    return Physics(biped, robot.config, robot.urdf_xml, 0.0005)


def pinocchio_state(physics):
    """Configuration and velocity of the simulated robot as pinocchio writes them."""
    pose, twist = physics.base_pose, physics.base_twist
    quaternion = pin.Quaternion(pose[3], *pose[4:])
    q = np.concatenate([pose[:3], quaternion.coeffs(), physics.position])
    v = np.concatenate([quaternion.matrix().T @ twist[:3], twist[3:], physics.velocity])
    return q, v, quaternion.matrix()


def base_to_world(rotation, n):
    """Matrix that turns the linear base velocity from base axes (pinocchio) to world axes (MuJoCo)."""
    T = np.eye(6 + n)
    T[:3, :3] = rotation
    return T


def random_state(physics, rng):
    quaternion = rng.standard_normal(4)
    physics.data.qpos[:3] = rng.standard_normal(3) + [0.0, 0.0, 5.0]
    physics.data.qpos[3:7] = quaternion / np.linalg.norm(quaternion)
    physics.data.qpos[7:] = rng.uniform(-0.4, 0.4, physics.data.qpos.size - 7)
    physics.data.qvel[:] = rng.standard_normal(physics.data.qvel.size)


@pytest.mark.parametrize("seed", range(3))
def test_mass_matrix_and_bias_of_mujoco_equal_those_of_pinocchio(physics, biped, seed):
    import mujoco

    random_state(physics, np.random.default_rng(seed))
    mujoco.mj_forward(physics.model, physics.data)
    q, v, rotation = pinocchio_state(physics)
    data = biped.model.createData()
    T = base_to_world(rotation, len(biped.joint_names))
    M = pin.crba(biped.model, data, q)
    M = np.triu(M) + np.triu(M, 1).T
    M_mujoco = np.zeros_like(M)
    for column in range(M.shape[0]):
        unit = np.zeros(M.shape[0])
        unit[column] = 1.0
        mujoco.mj_mulM(physics.model, physics.data, M_mujoco[column], unit)
    np.testing.assert_allclose(T.T @ M_mujoco @ T, M, atol=1e-9)
    # zero MuJoCo acceleration of the base origin is -omega x v in pinocchio's spatial acceleration
    a = np.zeros_like(v)
    a[:3] = -np.cross(v[3:6], v[:3])
    bias = pin.rnea(biped.model, data, q, v, a)
    np.testing.assert_allclose(T.T @ physics.data.qfrc_bias, bias, atol=1e-8)


def test_accelerations_wrenches_and_torques_fulfil_newton_and_euler(make_simulator, biped, robot):
    simulator = make_simulator()
    physics, data = simulator._physics, biped.model.createData()
    worst = 0.0
    for period in range(2400):
        effort = simulator.step().joints.effort
        if period % 100 == 99:
            q, v, rotation = pinocchio_state(physics)
            position, velocity = physics.position, physics.velocity
            physics.advance(effort)
            _, wrenches = physics.signals(position, velocity, effort, np.arange(effort.size))
            a = physics.data.qacc.copy()
            a[:3] = rotation.T @ a[:3] - np.cross(v[3:6], v[:3])
            tau = pin.rnea(biped.model, data, q, v, a)
            for foot, wrench in zip(robot.config.feet, wrenches, strict=True):
                frame = biped.model.getFrameId(foot.frame)
                tau -= pin.computeFrameJacobian(biped.model, data, q, frame, pin.LOCAL).T @ wrench
            tau[6:] -= effort
            worst = max(worst, float(np.abs(tau).max()))
    assert worst < 1e-6


@pytest.mark.parametrize(
    ("scenario", "duration"), [("walk", 6.0), ("friction_stiction", 2.5), ("uneven", 8.0), ("slope", 6.0)]
)
def test_imu_equals_the_acceleration_that_pinocchio_computes_from_the_samples(
    recorded, biped, robot, scenario, duration, imu_of_pinocchio
):
    for sample in recorded(scenario, duration)[50:2500:150]:
        specific_force, rate = imu_of_pinocchio(biped, robot.config, sample)
        np.testing.assert_allclose(sample.imu.specific_force, specific_force, atol=1e-5)
        np.testing.assert_allclose(sample.imu.angular_velocity, rate, atol=1e-9)


def test_rotor_inertia_reaches_both_models(robot):
    armature = tuple(0.01 * k for k in range(12))
    config = replace(robot.config, robot=replace(robot.config.robot, armature=armature))
    biped = Biped(config, robot.urdf_xml)
    physics = Physics(biped, config, robot.urdf_xml, 0.0005)
    np.testing.assert_allclose(physics.model.dof_armature[6:], armature)
    np.testing.assert_allclose(biped.model.armature[6:], armature)


def test_a_robot_that_cannot_walk_is_refused_with_the_reason(robot):
    one_foot = replace(robot.config, feet=robot.config.feet[:1])
    with pytest.raises(SimulationError, match="two feet"):
        Biped(one_foot, robot.urdf_xml)
    typo = replace(robot.config, feet=(robot.config.feet[0], replace(robot.config.feet[1], frame="r_soul")))
    with pytest.raises(SimulationError, match="r_soul"):
        Biped(typo, robot.urdf_xml)
    with pytest.raises(SimulationError, match="turning about"):
        Biped(robot.config, robot.urdf_xml.replace('<axis xyz="0 0 1"/>', '<axis xyz="1 0 0"/>', 1))
    with pytest.raises(SimulationError, match="'l_hip_yaw' of the URDF is of another type"):
        Biped(robot.config, robot.urdf_xml.replace('type="revolute"', 'type="continuous"', 1))


def test_external_torque_is_the_jacobian_transpose_of_the_push_and_zero_without(robot, biped):
    model, data = biped.model, biped.model.createData()
    force = np.array([100.0, -60.0, 30.0])
    scenario = replace(make_scenario("stand", 0.2), pushes=(Push(0.05, 0.05, tuple(force), "right_knee"),))
    simulator = Simulator(robot.config, robot.urdf_xml, scenario, make_noise("clean"))
    for period in range(200):
        sample = simulator.step()
        truth = sample.truth
        expected = np.zeros(12)
        if 50 <= period < 100:
            orientation = pin.Quaternion(truth.rotation_base_to_world).coeffs()
            q = np.concatenate([truth.position_base_in_world, orientation, sample.joints.position])
            knee = model.getFrameId("r_knee")
            jacobian = pin.computeFrameJacobian(model, data, q, knee, pin.LOCAL_WORLD_ALIGNED)
            expected = jacobian[:3, 6:].T @ force
            assert np.abs(expected).max() > 5.0
        np.testing.assert_allclose(truth.external_torque, expected, atol=0.02)
