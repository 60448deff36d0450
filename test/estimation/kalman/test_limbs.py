"""Claims about limbs: found from the tree of the robot, whatever its joints are called."""

from __future__ import annotations

from friction_estimator.config import config_from_parameters
from friction_estimator.estimation.kalman.limb_state import find_limbs
from friction_estimator.robot.model import RobotModel
from test.estimation.test_other_robots import joint, link, quadruped, quadruped_config


def limbs(robot: RobotModel) -> list[tuple[set[str], set[str]]]:
    """Names of the joints and feet of every limb."""
    found = find_limbs(robot)
    joints = sorted(index for limb in found for index in limb.joints.tolist())
    assert joints == list(range(len(robot.joint_names)))
    return [({robot.joint_names[k] for k in limb.joints}, {robot.foot_names[k] for k in limb.feet}) for limb in found]


def test_a_biped_has_two_legs(robot):
    left, right = limbs(robot)
    assert left == ({name for name in robot.joint_names if name.startswith("l_")}, {"l_foot"})
    assert right == ({name for name in robot.joint_names if name.startswith("r_")}, {"r_foot"})


def test_four_legs_and_an_arm_are_five_limbs():
    found = limbs(RobotModel(quadruped_config(), quadruped()))
    assert sorted(len(joints) for joints, _ in found) == [1, 3, 3, 3, 3]
    for joints, feet in found:
        assert feet == ({next(iter(joints)).split("_")[0]} if len(joints) == 3 else set())


def test_arms_on_a_torso_are_one_limb_with_it():
    """The waist moves both arms, so their torque balances hang together."""
    parts = [link("pelvis", 10.0), '<link name="imu_link"/>', joint("mount", "pelvis", "imu_link", "0 0 0")]
    parts += [link("torso", 15.0), joint("waist", "pelvis", "torso", "0 0 0.2", "0 0 1")]
    for side in ("a", "b"):
        parts += [link(f"{side}_arm", 2.0), joint(f"{side}_shoulder", "torso", f"{side}_arm", "0 0 0.3", "0 1 0")]
        parts += [link(f"{side}_leg", 5.0), joint(f"{side}_hip", "pelvis", f"{side}_leg", "0 0 -0.1", "0 1 0")]
    xml = f'<robot name="humanoid">{"".join(parts)}</robot>'
    config = config_from_parameters({"feet.names": ["b"], "feet.b.frame": "b_leg"})
    found = limbs(RobotModel(config, xml))
    assert sorted(found, key=lambda limb: sorted(limb[0])) == [
        ({"a_hip"}, set()),
        ({"waist", "a_shoulder", "b_shoulder"}, set()),
        ({"b_hip"}, {"b"}),
    ]


def test_an_arm_on_a_fixed_base_is_one_limb_without_feet():
    parts = ['<link name="world"/>', link("upper", 3.0), link("fore", 2.0)]
    parts += [
        joint("shoulder", "world", "upper", "0 0 1", "0 1 0"),
        joint("elbow", "upper", "fore", "0 0 -0.4", "0 1 0"),
    ]
    config = config_from_parameters({"robot.fixed_base": True})
    assert limbs(RobotModel(config, f'<robot name="arm">{"".join(parts)}</robot>')) == [({"shoulder", "elbow"}, set())]
