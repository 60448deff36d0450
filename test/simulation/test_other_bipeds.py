"""Bipeds unlike the built-in one: other hip order, axes that do not meet, feet drawn as meshes, arms."""

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from friction_estimator.config import config_from_parameters
from friction_estimator.errors import SimulationError
from friction_estimator.io.robot import load_robot
from friction_estimator.simulation import Simulator, make_noise, make_scenario
from friction_estimator.simulation.biped import KNEE, Biped

MESH = '<collision><geometry><mesh filename="package://nowhere/foot.stl"/></geometry></collision>'
FEET = {"a": "l_foot", "b": "r_foot"}


def link(name, mass, com="0 0 0", shape=""):
    size = 0.01 * mass
    return (
        f'<link name="{name}"><inertial><origin xyz="{com}"/><mass value="{mass}"/><inertia ixx="{size}" iyy="{size}" '
        f'izz="{size}" ixy="0" ixz="0" iyz="0"/></inertial>{shape}</link>'
    )


def joint(name, parent, child, xyz, axis, lower=-2.0, upper=2.0):
    return (
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/><origin xyz="{xyz}"/>'
        f'<axis xyz="{axis}"/><limit lower="{lower}" upper="{upper}" effort="300" velocity="20"/></joint>'
    )


def leg(side):
    """Hip pitch, roll and yaw in this order and apart; left knee and right ankle roll turn the other way round."""
    y, s = (0.06, "l") if side == "left" else (-0.06, "r")
    knee = "0 -1 0" if side == "left" else "0 1 0"
    ankle_roll = "1 0 0" if side == "left" else "-1 0 0"
    parts = [link(f"{s}_pitch_link", 1.5), joint(f"{s}_hip_pitch", "pelvis", f"{s}_pitch_link", f"0 {y} -0.1", "0 1 0")]
    for name, parent, mass, xyz, axis in (
        ("hip_roll", "pitch_link", 1.5, f"0.01 {0.6 * y} -0.03", "0.99 0 0.1"),
        ("hip_yaw", "roll_link", 3.0, "0.02 0 -0.08", "-0.1 0 0.99"),
        ("knee", "yaw_link", 2.5, "-0.04 0 -0.2", knee),
        ("ankle_pitch", "knee_link", 0.5, "0.01 0 -0.3", "0 1 0"),
        ("ankle_roll", "ankle_link", 1.0, "0 0 -0.02", ankle_roll),
    ):
        child = {"hip_roll": "roll_link", "hip_yaw": "yaw_link", "knee": "knee_link", "ankle_pitch": "ankle_link"}
        body = f"{s}_{child.get(name, 'foot')}"
        parts += [link(body, mass, "0 0 -0.03", MESH if name == "ankle_roll" else "")]
        parts += [joint(f"{s}_{name}", f"{s}_{parent}", body, xyz, axis)]
    return parts


def crooked(parts=()):
    """A biped of about 40 kg with two arm joints, one of which may not be at zero."""
    body = [link("pelvis", 20.0, "0 0 0.1"), *leg("left"), *leg("right"), link("upper_arm", 1.0, "0 0 -0.1")]
    body += [joint("shoulder", "pelvis", "upper_arm", "0 0.2 0.3", "0 1 0"), link("forearm", 0.7, "0 0 -0.1")]
    body += [joint("elbow", "upper_arm", "forearm", "0 0 -0.25", "0 1 0", -2.0, -0.2)]
    return f'<robot name="crooked">{"".join([*body, *parts])}</robot>'


def config(joints=(), sole_size=(0.2, 0.1)):
    parameters = {"feet.names": list(FEET), "imu.frame": "pelvis", "robot.joints": list(joints)}
    for foot, frame in FEET.items():
        parameters |= {f"feet.{foot}.frame": frame, f"feet.{foot}.sole_size": list(sole_size)}
    return config_from_parameters(parameters)


@pytest.fixture(scope="module")
def biped():
    return Biped(config(), crooked())


@pytest.fixture(scope="module")
def in_place():
    """1.2 s of stepping in place, with all joints."""
    stepping = simulator("in_place", 1.2)
    return [stepping.step() for _ in range(1200)]


def simulator(scenario="in_place", duration=3.0, joints=(), urdf_xml=None):
    return Simulator(config(joints), urdf_xml or crooked(), make_scenario(scenario, duration), make_noise("clean"))


angle = st.floats(-0.3, 0.3)


@settings(max_examples=30, deadline=None)
@given(st.tuples(angle, angle, angle, st.floats(0.2, 1.2), angle, angle), st.tuples(angle, angle, angle))
def test_inverse_kinematics_returns_the_angles_that_made_the_pose(biped, angles, attitude):
    model, data = biped.model, biped.model.createData()
    rotation = pin.rpy.rpyToMatrix(*attitude)
    q = pin.neutral(model)
    q[:3], q[3:7] = (0.3, -0.2, 0.7), pin.Quaternion(rotation).coeffs()
    for leg_of_biped in biped.legs:
        wanted = np.array(angles) * leg_of_biped.signs
        q[7 + leg_of_biped.columns] = wanted
        pin.framesForwardKinematics(model, data, q)
        sole = data.oMf[leg_of_biped.frame_id]
        found = leg_of_biped.inverse(q[None, :3], rotation[None], sole.translation[None], sole.rotation[None])
        np.testing.assert_allclose(found[0], wanted, atol=1e-8)


def test_joints_are_recognised_by_their_axes(biped):
    left, right = biped.legs
    roles = ("hip_yaw", "hip_roll", "hip_pitch", "knee", "ankle_pitch", "ankle_roll")
    assert left.joint_names == tuple(f"l_{role}" for role in roles)
    np.testing.assert_array_equal(left.signs, [1.0, 1.0, 1.0, -1.0, 1.0, 1.0])
    np.testing.assert_array_equal(right.signs, [1.0, 1.0, 1.0, 1.0, 1.0, -1.0])


def test_the_crooked_robot_walks_on_the_soles_of_the_yaml(biped):
    walking = simulator("walk", 3.2)
    samples = [walking.step() for _ in range(3200)]
    assert samples[800].truth.contact.tolist() == [True, False]
    assert samples[2300].truth.contact.tolist() == [False, True]
    assert samples[-1].truth.position_base_in_world[0] > 0.1
    assert min(sample.truth.rotation_base_to_world[2, 2] for sample in samples) > np.cos(0.05)
    knee = biped.legs[0].columns[KNEE]
    assert max(sample.joints.position[knee] for sample in samples) < -0.3  # bends the way its axis asks


def test_forces_and_accelerations_fit_together_with_and_without_locked_joints(biped, in_place, imu_of_pinocchio):
    legs = [name for leg_of_biped in biped.legs for name in leg_of_biped.joint_names]
    locked = sorted(legs, key=biped.column)
    stepping = simulator("in_place", 1.2, locked)
    for joints, count, samples in (((), 14, in_place), (locked, 12, [stepping.step() for _ in range(1200)])):
        model = Biped(config(joints), crooked())
        assert len(model.joint_names) == count
        assert model.mass == pytest.approx(biped.mass)
        for sample in samples[400::200]:
            specific_force, rate = imu_of_pinocchio(model, config(), sample)
            np.testing.assert_allclose(sample.imu.specific_force, specific_force, atol=1e-5)
            np.testing.assert_allclose(sample.imu.angular_velocity, rate, atol=1e-9)


def test_a_joint_that_must_not_be_at_zero_is_held_inside_its_limits(biped, in_place):
    column = biped.column("elbow")
    assert biped.posture[column] == pytest.approx(-0.25)
    position = [sample.joints.position[column] for sample in in_place]
    np.testing.assert_allclose(position, -0.25, atol=0.01)


def test_feet_without_shape_and_joints_without_load_are_refused():
    with pytest.raises(SimulationError, match="feet.a.sole_size"):
        Simulator(config(sole_size=()), crooked(), make_scenario("stand"), make_noise("clean"))
    idle = ['<link name="horn"/>', joint("wiggle", "pelvis", "horn", "0 0 0.5", "0 0 1")]
    with pytest.raises(SimulationError, match="'wiggle' move no mass"):
        simulator(urdf_xml=crooked(idle))


def test_the_humanoid_walks_while_its_arms_move_as_newton_and_euler_ask(imu_of_pinocchio):
    robot = load_robot("humanoid")
    biped = Biped(robot.config, robot.urdf_xml)
    assert biped.mass == pytest.approx(100.0)
    assert biped.joint_names == robot.config.robot.joints and len(biped.joint_names) == 33
    walking = Simulator(robot.config, robot.urdf_xml, make_scenario("whole_body", 2.4), make_noise("clean"))
    samples = [walking.step() for _ in range(2400)]
    position = np.array([sample.joints.position for sample in samples])
    friction = np.array([sample.truth.friction for sample in samples])
    moved = (position - biped.posture)[:, biped.others]
    lowest, highest = 0.4 * (biped.posture_limits - biped.posture)[:, biped.others]
    assert (np.abs(moved).max(axis=0) > 0.03).all() and (np.abs(friction).max(axis=0) > 0.1).all()
    assert (moved > lowest - 0.02).all() and (moved < highest + 0.02).all()
    assert samples[800].truth.contact.tolist() == [True, False]
    assert samples[2300].truth.contact.tolist() == [False, True]
    for sample in samples[400::400]:
        np.testing.assert_allclose(sample.truth.com_in_world, sample.reference.com_in_world, atol=0.003)
        specific_force, rate = imu_of_pinocchio(biped, robot.config, sample)
        np.testing.assert_allclose(sample.imu.specific_force, specific_force, atol=1e-5)
        np.testing.assert_allclose(sample.imu.angular_velocity, rate, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scenario"), [("talos_legs", "stand"), ("talos_legs", "in_place"), ("g1", "in_place")]
)
def test_robots_of_example_robot_data_stand_and_step_for_twenty_seconds(name, scenario):
    robot = load_robot(name)
    stepping = Simulator(robot.config, robot.urdf_xml, make_scenario(scenario, 20.0), make_noise("realistic"))
    samples = [stepping.step() for _ in range(20_000)]
    assert set(robot.config.robot.joints) <= set(stepping.joint_names)
    assert min(sample.truth.rotation_base_to_world[2, 2] for sample in samples) > np.cos(0.01)
    flights = np.mean([~sample.truth.contact for sample in samples], axis=0)
    np.testing.assert_allclose(flights, 0.2 if scenario == "in_place" else 0.0, atol=0.05)
