import re

import numpy as np

from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.method import identify_inverse_dynamics

from .arm import JOINTS, URDF, as_motion, coulomb_viscous, move, rigid_torque


def verdicts(extra_friction=lambda velocity: 0.0, scale=1.0):
    motion = move(0, speed=0.5)
    friction = coulomb_viscous(motion[1]) + extra_friction(motion[1])
    noise = np.random.default_rng(1).normal(0.0, 0.1, friction.shape)
    torque = scale * (rigid_torque(motion) + friction + noise)
    return identify_inverse_dynamics([as_motion(motion, torque)], FixedBaseModel(URDF, JOINTS)).verdicts


def stribeck_of_the_shoulder(velocity):
    return np.array([6.0, 0.0]) * np.sign(velocity) * np.exp(-((velocity / 0.3) ** 2))


def test_friction_of_another_shape_than_its_law_is_reported_for_that_joint_only():
    reported = [text for text in verdicts(stribeck_of_the_shoulder) if "another shape" in text]
    assert [text.split(":")[0] for text in reported] == ["shoulder"]
    assert "six_slope" in reported[0]
    assert not any("another shape" in text for text in verdicts())


def test_a_torque_in_millinewtonmetres_is_reported():
    assert any(re.search("(99.|1e.03) times those of the URDF", text) for text in verdicts(scale=1000.0))
    assert not any("times those of the URDF" in text for text in verdicts())


def test_constant_torques_of_all_joints_are_one_sentence():
    reported = [text for text in verdicts() if "constant torque" in text]
    assert len(reported) == 1 and all(joint in reported[0] for joint in JOINTS)
