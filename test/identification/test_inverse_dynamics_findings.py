"""Claims about the findings of inverse dynamics: a wrong unit, mass or shape of friction is named."""

import re
from itertools import pairwise

import numpy as np
import pytest

from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.method import identify_inverse_dynamics
from friction_estimator.identification.inverse_dynamics.options import InverseDynamicsOptions
from friction_estimator.identification.result import Finding, Severity, sentences
from friction_estimator.laws import make_law

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
    found = verdicts(stribeck_of_the_shoulder)
    reported = [text for text in found if "leaves a part of the friction" in text]
    assert [text.split(":")[0] for text in reported] == ["shoulder"]
    assert any(re.match("shoulder: the law '.*' predicts unseen data better than 'coulomb_viscous'", x) for x in found)
    assert not any("the law 'coulomb_viscous'" in text for text in verdicts())


def test_a_torque_in_millinewtonmetres_is_reported():
    assert any(re.search("(99.|1e.03) times those of the URDF", text) for text in verdicts(scale=1000.0))
    assert not any("those of the URDF" in text for text in verdicts())


def factors(found):
    (text,) = [text for text in found if "are those of the URDF times" in text]
    return {joint: float(factor) for factor, joint in re.findall(r"([\d.]+) \((shoulder|elbow)\)", text)}


def test_torques_that_are_those_of_the_urdf_times_a_factor_are_named():
    assert factors(verdicts(scale=0.8)) == pytest.approx({"shoulder": 0.8, "elbow": 0.8}, abs=0.04)


def test_efforts_of_a_joint_in_another_unit_are_named_with_the_factor_that_they_lack():
    (found,) = [text for text in verdicts(scale=np.array([1.0, 0.2])) if "in another unit" in text]
    assert found.startswith("elbow: ")
    assert float(re.search(r"by ([\d.]+)", found)[1]) == pytest.approx(5.0, abs=0.2)
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


MOTOR = """<robot name="motor"><link name="base"/><link name="rotor"><inertial><mass value="0.1"/>
<inertia ixx="1e-5" iyy="1e-5" izz="2e-5" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="m" type="continuous">
<parent link="base"/><child link="rotor"/><axis xyz="0 0 1"/><limit effort="10" velocity="40"/></joint></robot>"""


def turning_motor(zero, way, seed=0):
    """A motor without load at constant speeds in one direction, F_c 0.35 N m, with an error of the torque's zero."""
    rng = np.random.default_rng(seed)
    speeds = np.concatenate(
        [np.append(np.linspace(a, b, 60), np.full(400, b)) for a, b in pairwise((0, 1, 2, 4, 8, 12))]
    )
    velocity = way * speeds[:, None]
    time = np.arange(len(velocity)) * 0.005
    acceleration = np.gradient(velocity, time, axis=0)
    effort = 0.002 * acceleration + 0.35 * np.sign(velocity) + 0.05 * velocity + zero
    effort += 0.02 * rng.normal(size=velocity.shape)
    motion = np.cumsum(velocity, axis=0) * 0.005, velocity, acceleration
    return as_motion(motion, effort, joints=("m",))


@pytest.mark.parametrize("way", [1.0, -1.0])
@pytest.mark.parametrize("zero", [-0.2, 0.0, 0.1, 0.3])
def test_one_direction_cannot_separate_coulomb_friction_from_the_zero_of_the_torque(zero, way):
    found = identify_inverse_dynamics([turning_motor(zero, way)], FixedBaseModel(MOTOR, ("m",)))
    coulomb = found.parameters.names.index("m/coulomb")
    assert abs(found.parameters.values[coulomb] - 0.35) < 2.0 * found.parameters.sigma[coulomb]
    (sentence,) = [text for text in found.verdicts if "one direction only" in text]
    assert "move in both directions, at several speeds" in sentence
    assert not any("move faster" in text or "of the URDF" in text for text in found.verdicts)


def test_in_both_directions_the_zero_of_the_torque_costs_no_certainty():
    both = [turning_motor(0.1, way) for way in (1.0, -1.0)]
    found = identify_inverse_dynamics(both, FixedBaseModel(MOTOR, ("m",)))
    coulomb = found.parameters.names.index("m/coulomb")
    assert found.parameters.values[coulomb] == pytest.approx(0.35, abs=0.01) and found.parameters.sigma[coulomb] < 0.01
    assert not any("one direction" in text for text in found.verdicts)


def test_each_thing_is_said_once_with_its_joints_and_faults_before_praise():
    said = sentences(
        [
            Finding(Severity.NOTE, "the torque is predicted with an error of {}", "hip", "2 %", 0.02),
            Finding(Severity.FAULT, "check the torque", "hip"),
            Finding(Severity.NOTE, "the torque is predicted with an error of {}", "knee", "5 %", 0.05),
            Finding(Severity.DOUBT, "viscous friction has a sigma of {}: move faster", "hip", "40 %"),
            Finding(Severity.NOTE, "the condition number is high"),
            Finding(Severity.FAULT, "check the torque", "knee"),
        ]
    )
    assert said == (
        "hip, knee: check the torque",
        "hip: viscous friction has a sigma of 40 %: move faster",
        "the condition number is high",
        "the torque is predicted with an error of 5 % (knee), 2 % (hip)",
    )


def friction_of_load(rate, law, seed=3):
    """The arm, whose joints lose a share ``rate`` of the torque that moves the links."""
    motion = move(seed)
    rigid = rigid_torque(motion)
    friction = coulomb_viscous(motion[1]) * 0.1 + rate * np.abs(rigid) * np.sign(motion[1])
    effort = rigid + friction + 0.05 * np.random.default_rng(seed).normal(size=friction.shape)
    options = InverseDynamicsOptions(law=law)
    return identify_inverse_dynamics([as_motion(motion, effort)], FixedBaseModel(URDF, JOINTS), options)


def test_friction_that_grows_with_the_load_is_chosen_and_advised_as_such():
    chosen = friction_of_load(0.12, "auto")
    assert all(make_law(name).depends_on_load for name in chosen.friction.law_names)
    plain = friction_of_load(0.12, "coulomb_viscous")
    (advice,) = [text for text in plain.verdicts if "predicts unseen data better" in text]
    law = re.search(r"the law '(\w+)', in which friction grows with the load", advice)[1]
    advised = friction_of_load(0.12, law)
    for k in range(len(JOINTS)):
        best = min(chosen.scores[k].held_out_error, advised.scores[k].held_out_error)
        assert max(chosen.scores[k].held_out_error, advised.scores[k].held_out_error) < 1.5 * best
        assert best < 0.3 * plain.scores[k].held_out_error
    without = friction_of_load(0.0, "auto")
    assert not any(make_law(name).depends_on_load for name in without.friction.law_names)
