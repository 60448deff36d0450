"""Claims about the findings of inverse dynamics: a wrong unit, mass or shape of friction is named."""

import re

import numpy as np
import pytest

from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.method import identify_inverse_dynamics

from .arm import JOINTS, URDF, as_motion, coulomb_viscous, move, rigid_torque


def verdicts(extra_friction=lambda velocity: 0.0, scale=1.0, urdf=URDF):
    motion = move(0, speed=0.5)
    friction = coulomb_viscous(motion[1]) + extra_friction(motion[1])
    noise = np.random.default_rng(1).normal(0.0, 0.1, friction.shape)
    torque = scale * (rigid_torque(motion) + friction + noise)
    return identify_inverse_dynamics([as_motion(motion, torque)], FixedBaseModel(urdf, JOINTS)).verdicts


def stribeck_of_the_shoulder(velocity):
    return np.array([6.0, 0.0]) * np.sign(velocity) * np.exp(-((velocity / 0.3) ** 2))


def test_friction_of_another_shape_than_its_law_is_reported_for_that_joint_only():
    reported = [text for text in verdicts(stribeck_of_the_shoulder) if "another shape" in text]
    assert [text.split(":")[0] for text in reported] == ["shoulder"]
    assert "six_slope" in reported[0]
    assert not any("another shape" in text for text in verdicts())


def test_a_torque_in_millinewtonmetres_is_reported():
    assert any(re.search("(99.|1e.03) times those of the URDF", text) for text in verdicts(scale=1000.0))
    assert not any("those of the URDF" in text for text in verdicts())


def factors(found):
    (text,) = [text for text in found if "are those of the URDF times" in text]
    return {joint: float(factor) for joint, factor in re.findall(r"(shoulder|elbow) ([\d.]+)", text)}


def test_torques_that_are_those_of_the_urdf_times_a_factor_are_named():
    assert factors(verdicts(scale=0.8)) == pytest.approx({"shoulder": 0.8, "elbow": 0.8}, abs=0.04)


def test_efforts_of_a_joint_in_another_unit_are_named_with_the_factor_that_they_lack():
    (found,) = [text for text in verdicts(scale=np.array([1.0, 0.2])) if "in another unit" in text]
    assert float(re.search(r"elbow ([\d.]+)", found)[1]) == pytest.approx(5.0, abs=0.2)
    assert "shoulder" not in found


def test_masses_of_a_urdf_that_are_doubled_are_named_and_a_wrong_centre_of_mass_is_not():
    doubled = URDF.replace('mass value="4.0"', 'mass value="8.0"').replace('mass value="2.5"', 'mass value="5.0"')
    assert factors(verdicts(urdf=doubled)) == pytest.approx({"shoulder": 0.5, "elbow": 0.5}, abs=0.05)
    moved = URDF.replace('origin xyz="0.15 0.01 0.02"', 'origin xyz="0.15 0.05 0.02"')
    assert moved != URDF
    assert not any("those of the URDF" in text for text in verdicts(urdf=moved))


def test_constant_torques_of_all_joints_are_one_sentence():
    reported = [text for text in verdicts() if "constant torque" in text]
    assert len(reported) == 1 and all(joint in reported[0] for joint in JOINTS)
