"""Claims about the model of a robot with a fixed base: torques of any tree, payloads, locked joints, limits."""

import numpy as np
import pinocchio as pin
import pytest

from friction_estimator.errors import InputError, RobotModelError
from friction_estimator.identification.fixed_base_model import STANDARD_NAMES, FixedBaseModel
from friction_estimator.identification.joint_log import Payload
from friction_estimator.identification.rigid_body import RigidBody, RigidBodyOptions

ARM = """<robot name="arm">
  <link name="base"/>
  <joint name="slide" type="prismatic"><parent link="base"/><child link="l1"/><origin xyz="0 0 0.3" rpy="0.2 0 0"/>
    <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="9" velocity="9"/></joint>
  <joint name="turn" type="continuous"><parent link="l1"/><child link="l2"/><origin xyz="0.1 0 0.2" rpy="0 1.1 0"/>
    <axis xyz="0 1 0"/></joint>
  <joint name="elbow" type="revolute"><parent link="l2"/><child link="l3"/><origin xyz="0.4 0 0" rpy="0.3 0 0.5"/>
    <axis xyz="0 0 1"/><limit lower="-2" upper="2" effort="9" velocity="9"/></joint>
  <joint name="follower" type="revolute"><parent link="l3"/><child link="l4"/><origin xyz="0.3 0 0"/>
    <axis xyz="0 0 1"/><limit lower="-2" upper="2" effort="9" velocity="9"/>
    <mimic joint="elbow" multiplier="-1.5" offset="0.2"/></joint>
  <joint name="tool" type="fixed"><parent link="l4"/><child link="tool"/>
    <origin xyz="0.1 0.02 0" rpy="0 0.4 0.1"/></joint>
  {links}
</robot>"""
LINK = (
    '<link name="{0}"><inertial><origin xyz="0.{1} 0.02 -0.0{1}" rpy="0.1 0.2 0.3"/><mass value="{1}.5"/>'
    '<inertia ixx="0.03" ixy="0.001" ixz="0.002" iyy="0.04" iyz="-0.003" izz="0.05"/></inertial></link>'
)
URDF = ARM.format(links="".join(LINK.format(f"l{k}", k) for k in range(1, 5)) + '<link name="tool"/>')
JOINTS = ("elbow", "slide", "turn")
PAYLOAD = Payload("tool", 3.4, np.array([0.1, -0.2, 0.05]), np.diag([0.02, 0.03, 0.04]))


def random_motion(samples, joints=3):
    return np.random.default_rng(3).normal(size=(3, samples, joints))


def reference_torque(q, v, a, payload=None):
    """All joints by pinocchio's recursive algorithm, mimic joint moved by hand."""
    model = pin.buildModelFromXML(URDF)
    if payload is not None:
        frame = model.frames[model.getFrameId(payload.frame, pin.FrameType.BODY)]
        body = pin.Inertia(payload.mass, payload.com, payload.inertia)
        model.appendBodyToJoint(frame.parentJoint, body, frame.placement)
    elbow, slide, turn = q
    configuration = np.array([slide, np.cos(turn), np.sin(turn), elbow, -1.5 * elbow + 0.2])
    expand = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0], [-1.5, 0, 0]])
    return expand.T @ pin.rnea(model, model.createData(), configuration, expand @ v, expand @ a)


def test_torque_of_a_tree_with_prismatic_continuous_and_mimic_joints_is_that_of_recursive_newton_euler():
    q, v, a = random_motion(5)
    expected = [reference_torque(*sample) for sample in zip(q, v, a, strict=True)]
    np.testing.assert_allclose(FixedBaseModel(URDF, JOINTS).torque(q, v, a), expected, atol=1e-10)


def test_payload_torque_is_that_of_the_body_really_appended():
    q, v, a = random_motion(5)
    expected = [reference_torque(*sample, payload=PAYLOAD) for sample in zip(q, v, a, strict=True)]
    np.testing.assert_allclose(FixedBaseModel(URDF, JOINTS).torque(q, v, a, PAYLOAD), expected, atol=1e-10)


def test_joints_that_were_not_recorded_stand_at_zero():
    model = FixedBaseModel(URDF, ("turn",))
    q, v, a = random_motion(4, 1)
    full = np.zeros((3, 4, 3))
    full[:, :, 2] = np.stack((q, v, a))[..., 0]
    expected = FixedBaseModel(URDF, JOINTS).torque(*full)[:, [2]]
    np.testing.assert_allclose(model.torque(q, v, a), expected, atol=1e-10)


def test_links_behind_locked_joints_are_one_body_with_the_one_that_carries_them():
    model = FixedBaseModel(URDF, ("turn",))
    assert model.carried == {"turn": ("elbow", "follower")}
    assert model.standard_names == tuple(f"{name} turn" for name in STANDARD_NAMES)
    assert model.urdf_parameters[0] == pytest.approx(2.5 + 3.5 + 4.5)
    names = RigidBody(model, RigidBodyOptions()).names
    assert max(map(len, names)) < 20 and "Iyy turn + Ia turn" in names
    q, v, a = random_motion(4, 1)
    added = model.torque(q, v, a, PAYLOAD) - model.torque(q, v, a)
    full = np.zeros((3, 4, 3))
    full[:, :, 2] = np.stack((q, v, a))[..., 0]
    whole = FixedBaseModel(URDF, JOINTS)
    np.testing.assert_allclose(added, (whole.torque(*full, PAYLOAD) - whole.torque(*full))[:, [2]], atol=1e-10)


def test_limits_come_from_the_urdf():
    model = FixedBaseModel(URDF, JOINTS)
    np.testing.assert_allclose(model.upper_limit, [2.0, 1.0, np.inf])
    np.testing.assert_allclose(model.lower_limit, [-2.0, -1.0, -np.inf])


def test_wrong_names_are_answered_with_the_right_ones():
    with pytest.raises(RobotModelError, match="'knee'.*'elbow'"):
        FixedBaseModel(URDF, ("knee",))
    with pytest.raises(RobotModelError, match="follower.*mimic"):
        FixedBaseModel(URDF, ("elbow", "follower"))
    with pytest.raises(RobotModelError, match="not valid XML"):
        FixedBaseModel("<robot>", ("elbow",))
    with pytest.raises(InputError, match="'hand'.*'tool'"):
        FixedBaseModel(URDF, JOINTS).payload_parameters(Payload("hand", 1.0, np.zeros(3), np.eye(3)))
