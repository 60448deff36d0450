"""Claims about the dynamics: every quantity against an independent computation in the world frame."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest

from friction_estimator.config import config_from_parameters
from friction_estimator.errors import RobotModelError
from friction_estimator.io.robot import load_robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import BaseState
from test.biped import suralp_config

EPS = 1e-6


@pytest.fixture
def sample():
    rng = np.random.default_rng(1)
    return {
        "position": rng.normal(size=12) * 0.3,
        "velocity": rng.normal(size=12),
        "angular_velocity": rng.normal(size=3),
        "specific_force": rng.normal(size=3) + [0.0, 0.0, 9.81],
    }


@pytest.fixture
def world(urdf_xml):
    """Pinocchio on its own: the model, its data and a random base pose and velocity."""
    model = pin.buildModelFromXML(urdf_xml, pin.JointModelFreeFlyer())
    return model, model.createData(), pin.SE3(pin.exp3(np.array([0.3, -0.2, 0.9])), np.array([1.0, 2.0, 0.6]))


def test_joint_rows_of_the_dynamics_do_not_depend_on_attitude_or_base_velocity(robot, sample, world):
    """Galilean invariance: the IMU-driven joint torques are those of the world frame."""
    model, data, base = world
    d = robot.dynamics(**sample)
    rng = np.random.default_rng(2)
    joint_acceleration, omega_dot = rng.normal(size=12), rng.normal(size=3)
    v = np.r_[rng.normal(size=3), sample["angular_velocity"], sample["velocity"]]
    q = np.r_[base.translation, pin.Quaternion(base.rotation).coeffs(), sample["position"]]
    r = robot.imu_position_in_base
    omega = sample["angular_velocity"]
    imu_acceleration = sample["specific_force"] + base.rotation.T @ [0, 0, -9.81]
    origin = imu_acceleration - np.cross(omega_dot, r) - np.cross(omega, np.cross(omega, r))
    a = np.r_[origin - np.cross(omega, v[:3]), omega_dot, joint_acceleration]
    in_world = pin.rnea(model, data, q, v, a)[6:]
    a_gauge = np.r_[np.cross(r, omega_dot), omega_dot, joint_acceleration]
    np.testing.assert_allclose((d.mass_matrix @ a_gauge + d.bias)[6:], in_world, atol=1e-9)


def test_momentum_bias_is_the_rate_of_the_joint_momentum_without_forces(robot, sample):
    """d(H v)/dt = C^T v - g when H dv/dt + b = 0, checked by moving on for a moment."""
    d = robot.dynamics(**sample)
    model, data = robot._model, robot._data
    free = -np.linalg.solve(d.mass_matrix, d.bias)
    momenta = []
    q0 = pin.neutral(model)
    q0[7:] = sample["position"]
    for step in (-EPS, EPS):
        q = pin.integrate(model, q0, step * d.velocity)
        v = d.velocity + step * free
        momenta.append((pin.crba(model, data, q) @ v)[6:])
    np.testing.assert_allclose((momenta[1] - momenta[0]) / (2 * EPS), d.momentum_bias[6:], atol=1e-5)


def test_foot_bias_acceleration_is_the_derivative_of_the_jacobian_times_velocity(robot, sample):
    d = robot.dynamics(**sample)
    model = robot._model
    data = model.createData()
    q0 = pin.neutral(model)
    q0[7:] = sample["position"]
    for foot, name in enumerate(["l_sole", "r_sole"]):
        frame = model.getFrameId(name)
        velocities = []
        for step in (-EPS, EPS):
            pin.forwardKinematics(model, data, pin.integrate(model, q0, step * d.velocity), d.velocity)
            pin.updateFramePlacements(model, data)
            velocities.append(pin.getFrameVelocity(model, data, frame, pin.LOCAL_WORLD_ALIGNED).vector)
        R = d.foot_rotation_to_base[foot]
        derivative = (velocities[1] - velocities[0]) / (2 * EPS)
        # the base axes turn while it moves: LOCAL_WORLD_ALIGNED is taken in the axes of the middle instant
        np.testing.assert_allclose(np.kron(np.eye(2), R.T) @ derivative, d.foot_bias_acceleration[foot], atol=1e-6)


def test_foot_jacobian_is_the_derivative_of_the_foot_pose(robot, sample):
    d = robot.dynamics(**sample)
    for joint in range(12):
        poses = []
        for step in (-EPS, EPS):
            moved = dict(sample, position=sample["position"] + step * np.eye(12)[joint])
            other = robot.dynamics(**moved)
            poses.append(
                [pin.SE3(R, p) for R, p in zip(other.foot_rotation_to_base, other.foot_position_in_base, strict=True)]
            )
        for foot in range(2):
            twist = pin.log6(poses[0][foot].actInv(poses[1][foot])).vector / (2 * EPS)
            np.testing.assert_allclose(twist, d.foot_jacobian[foot][:, 6 + joint], atol=1e-7)


def test_inverse_dynamics_derivatives_match_finite_differences(robot, sample):
    rng = np.random.default_rng(5)
    a, wrenches = rng.normal(size=18), rng.normal(size=(2, 6)) * 100.0
    d = robot.dynamics(**sample)
    by_position, by_velocity = robot.inverse_dynamics_derivatives(d, a, wrenches)

    def torque(position, velocity):
        model, data = robot._model, robot._model.createData()
        q = pin.neutral(model)
        q[7:] = position
        forces = [pin.Force.Zero() for _ in range(model.njoints)]
        for name, wrench in zip(["l_sole", "r_sole"], wrenches, strict=True):
            frame = model.frames[model.getFrameId(name)]
            forces[frame.parentJoint] += frame.placement.act(pin.Force(wrench))
        against_gravity = np.r_[sample["specific_force"], np.zeros(15)]
        return pin.rnea(model, data, q, velocity, a + against_gravity, pin.StdVec_Force(forces))

    q, v = sample["position"], d.velocity
    expected = a @ d.mass_matrix + d.bias - np.einsum("kiv,ki->v", d.foot_jacobian, wrenches)
    np.testing.assert_allclose(torque(q, v), expected, atol=1e-9)
    numeric = np.array([(torque(q + EPS * e, v) - torque(q - EPS * e, v)) / (2 * EPS) for e in np.eye(12)]).T
    np.testing.assert_allclose(by_position, numeric, atol=1e-5)
    numeric = np.array([(torque(q, v + EPS * e) - torque(q, v - EPS * e)) / (2 * EPS) for e in np.eye(18)]).T
    np.testing.assert_allclose(by_velocity, numeric, atol=1e-5)


def test_foot_acceleration_derivatives_match_finite_differences(robot, sample):
    a = np.random.default_rng(6).normal(size=18)
    d = robot.dynamics(**sample)
    by_position, by_velocity = robot.foot_acceleration_derivatives(d, a)

    def acceleration(position, velocity):
        model, data = robot._model, robot._model.createData()
        q = pin.neutral(model)
        q[7:] = position
        pin.forwardKinematics(model, data, q, velocity, a)
        pin.updateFramePlacements(model, data)
        frames = [model.getFrameId(name) for name in ("l_sole", "r_sole")]
        return np.array([pin.getFrameClassicalAcceleration(model, data, f, pin.LOCAL).vector for f in frames])

    q, v = sample["position"], d.velocity
    difference = [(acceleration(q + EPS * e, v) - acceleration(q - EPS * e, v)) / (2 * EPS) for e in np.eye(12)]
    np.testing.assert_allclose(by_position, np.moveaxis(difference, 0, 2), atol=1e-6)
    difference = [(acceleration(q, v + EPS * e) - acceleration(q, v - EPS * e)) / (2 * EPS) for e in np.eye(18)]
    np.testing.assert_allclose(by_velocity, np.moveaxis(difference, 0, 2), atol=1e-6)


def test_centre_of_mass_velocity_is_relative_to_the_base(robot, sample):
    d = robot.dynamics(**sample)
    moved = [
        robot.dynamics(**dict(sample, position=sample["position"] + s * EPS * sample["velocity"])) for s in (-1, 1)
    ]
    before, after = (robot.centre_of_mass(at)[0] for at in moved)
    np.testing.assert_allclose(robot.centre_of_mass(d)[1], (after - before) / (2 * EPS), atol=1e-7)


@pytest.fixture(scope="module")
def upper_body():
    """A humanoid in flight whose IMU is above the waist, and the same one in pinocchio."""
    humanoid = load_robot("humanoid")
    imu = dataclasses.replace(humanoid.config.imu, frame="torso")
    robot = RobotModel(dataclasses.replace(humanoid.config, imu=imu), humanoid.urdf_xml)
    model, rng = pin.buildModelFromXML(humanoid.urdf_xml, pin.JointModelFreeFlyer()), np.random.default_rng(3)
    columns = [model.joints[model.getJointId(name)].idx_v for name in robot.joint_names]
    model.armature[columns] = robot.armature
    data, q = model.createData(), pin.integrate(model, pin.neutral(model), 0.5 * rng.normal(size=model.nv))
    v, a = rng.normal(size=(2, model.nv))
    a[:6] = 0.0
    a[:6] = -np.linalg.solve(pin.crba(model, data, q)[:6, :6], pin.rnea(model, data, q, v, a)[:6])  # it flies
    torque = pin.rnea(model, data, q, v, a)
    pin.forwardKinematics(model, data, q, v, a)
    pin.updateFramePlacements(model, data)
    torso = model.getFrameId("torso")
    rate = pin.getFrameVelocity(model, data, torso).angular
    acceleration = pin.getFrameClassicalAcceleration(model, data, torso, pin.LOCAL)
    R = data.oMf[torso].rotation
    dynamics = robot.dynamics(q[1:][columns], v[columns], rate, acceleration.linear + R.T @ [0.0, 0.0, 9.81])
    return robot, dynamics, (model, data), torque[columns], np.r_[np.zeros(3), acceleration.angular, a[columns]]


def test_an_imu_above_the_waist_makes_the_upper_body_the_base_and_motor_torques_stay_the_same(upper_body):
    robot, dynamics, _, torque, acceleration = upper_body
    assert robot.root == "base_link"
    np.testing.assert_allclose((dynamics.mass_matrix @ acceleration + dynamics.bias)[6:], torque, atol=1e-9)


def test_pose_and_twist_of_the_root_link_follow_from_those_of_the_upper_body(upper_body):
    robot, dynamics, (model, data), *_ = upper_body
    torso, root = (model.getFrameId(name) for name in ("torso", "base_link"))
    at, rng = data.oMf[torso], np.random.default_rng(4)
    twist = pin.getFrameVelocity(model, data, torso)
    spread = rng.normal(size=(2, 6, 6))
    pose_covariance, twist_covariance = (one @ one.T for one in spread)

    def found(turn, shift, change):
        rotation, velocity = pin.exp3(turn) @ at.rotation, at.rotation @ twist.linear
        return robot.state_of_root(
            BaseState(
                at.translation + shift, rotation, velocity + change[:3], twist.angular + change[3:],
                pose_covariance, twist_covariance,
            ),
            dynamics,
        )  # fmt: skip

    nothing = np.zeros(6)
    state, place, motion = (
        found(nothing[:3], nothing[:3], nothing),
        data.oMf[root],
        pin.getFrameVelocity(model, data, root),
    )
    np.testing.assert_allclose(state.position_base_in_world, place.translation, atol=1e-12)
    np.testing.assert_allclose(state.rotation_base_to_world, place.rotation, atol=1e-12)
    np.testing.assert_allclose(state.linear_velocity, place.rotation @ motion.linear, atol=1e-12)
    np.testing.assert_allclose(state.angular_velocity, motion.angular, atol=1e-12)

    of_pose, of_twist = np.empty((2, 6, 6))
    for k, step in enumerate(EPS * np.eye(6)):
        moved, faster = found(step[3:], step[:3], nothing), found(nothing[:3], nothing[:3], step)
        turn = pin.log3(moved.rotation_base_to_world @ place.rotation.T)
        of_pose[:, k] = np.r_[moved.position_base_in_world - place.translation, turn] / EPS
        change = faster.linear_velocity - state.linear_velocity, faster.angular_velocity - motion.angular
        of_twist[:, k] = np.r_[change] / EPS
    np.testing.assert_allclose(state.pose_covariance, of_pose @ pose_covariance @ of_pose.T, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(state.twist_covariance, of_twist @ twist_covariance @ of_twist.T, rtol=1e-4, atol=1e-5)


def test_rotor_inertia_adds_to_the_diagonal_of_the_joint_it_is_given_for(urdf_xml, sample, robot):
    names = ["r_knee", *(name for name in robot.joint_names if name != "r_knee")]
    geared = RobotModel(suralp_config(robot__joints=names, robot__armature=[0.5] + [0.0] * 11), urdf_xml)
    difference = geared.dynamics(**sample).mass_matrix - robot.dynamics(**sample).mass_matrix
    expected = np.zeros((18, 18))
    knee = 6 + robot.joint_names.index("r_knee")
    expected[knee, knee] = 0.5
    np.testing.assert_allclose(difference, expected, atol=1e-12)


def test_joints_left_out_are_locked(urdf_xml):
    robot = RobotModel(suralp_config(robot__joints=["l_knee", "r_knee"]), urdf_xml)
    assert robot.joint_names == ("l_knee", "r_knee")
    assert robot.mass == pytest.approx(110.0, abs=2.0)
    np.testing.assert_array_equal(robot.limb, [[True, False], [False, True]])


def test_limbs_come_from_the_tree(robot):
    np.testing.assert_array_equal(robot.limb, np.kron(np.eye(2, dtype=bool), np.ones((1, 6), dtype=bool)))


def test_continuous_joints_and_a_fixed_base_work():
    xml = """<robot name="pendulum"><link name="world"/>
    <link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="pivot" type="continuous"><parent link="world"/><child link="rod"/><axis xyz="0 1 0"/></joint>
    </robot>"""
    config = config_from_parameters({"robot.fixed_base": True, "observer": "momentum"})
    pendulum = RobotModel(config, xml)
    d = pendulum.dynamics(np.array([0.7]), np.array([2.0]), np.zeros(3), np.zeros(3))
    assert d.mass_matrix == pytest.approx(0.1 + 2 * 0.25)
    assert d.bias == pytest.approx(2 * 9.81 * 0.5 * np.sin(0.7))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"feet__l_foot__frame": "sole_left"}, r"feet\.l_foot\.frame = 'sole_left'.*'l_sole'"),
        ({"imu__frame": "imu"}, r"imu\.frame = 'imu'.*'imu_link'"),
        ({"imu__frame": "l_sole"}, r"'l_ankle_roll' of the leg of 'l_foot'.* above a waist"),
        ({"robot__joints": ["l_knee", "l_toe"]}, r"'l_toe'.*'l_ankle_pitch'"),
        ({"robot__joints": ["l_knee"]}, r"feet.r_foot.frame = 'r_sole' hangs on no joint of robot.joints"),
        ({"robot__joints": ["l_knee", "r_knee"], "robot__armature": [0.1]}, r"1 values .* 2 names"),
    ],
)
def test_names_that_are_not_in_the_urdf_are_answered_with_those_that_are(urdf_xml, changes, message):
    with pytest.raises(RobotModelError, match=message):
        RobotModel(suralp_config(**changes), urdf_xml)


@pytest.mark.parametrize(
    "broken", ["", "not xml", "<robot name='x'><link/></robot>", "<robot name='x'><link name='a'/></robot>"]
)
def test_unreadable_urdf_is_one_clear_error(broken):
    with pytest.raises(RobotModelError):
        RobotModel(suralp_config(), broken)


def mimicking(urdf_xml: str, leader: str) -> str:
    """The biped whose right knee follows another joint."""
    end = f'<mimic joint="{leader}" multiplier="-2"/></joint>'
    before, name, after = urdf_xml.partition('<joint name="r_knee"')
    return before + name + after.replace("</joint>", end, 1)


def test_joints_without_a_motor_are_held_still_with_a_warning_and_refused_by_name(urdf_xml):
    model = RobotModel(suralp_config(), mimicking(urdf_xml, "l_knee"))
    assert "r_knee" not in model.joint_names and len(model.joint_names) == 11
    assert "joints that <mimic> others have no motor, and are held at zero: r_knee" in model.warnings
    config = suralp_config(robot__joints=("l_knee", "r_knee"))
    with pytest.raises(RobotModelError, match="robot.joints names 'r_knee', which <mimic> other joints"):
        RobotModel(config, mimicking(urdf_xml, "l_knee"))


def test_a_joint_that_mimics_itself_is_refused_and_one_that_mimics_nothing_is_held_still(urdf_xml):
    with pytest.raises(RobotModelError, match="'r_knee' mimics itself"):
        RobotModel(suralp_config(), mimicking(urdf_xml, "r_knee"))
    assert "r_knee" not in RobotModel(suralp_config(), mimicking(urdf_xml, "not_there")).joint_names  # a reduced URDF


def test_two_feet_on_one_limb_are_refused(urdf_xml):
    config = suralp_config()
    left = config.feet[0]
    feet = (left, dataclasses.replace(left, name="heel", frame="l_foot"))
    with pytest.raises(RobotModelError, match="the feet .* are on one limb"):
        RobotModel(dataclasses.replace(config, feet=feet), urdf_xml)


def test_the_identity_of_a_robot_is_that_of_its_names_limits_and_masses(urdf_xml, robot):
    assert RobotModel(suralp_config(), urdf_xml).identity == robot.identity
    changes = (("l_knee", "knee_l"), ('mass value="', 'mass value="1'), ('effort="150', 'effort="151'))
    for old, new in changes:
        assert old in urdf_xml
        assert RobotModel(suralp_config(), urdf_xml.replace(old, new)).identity != robot.identity
