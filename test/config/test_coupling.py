"""Motors coupled to joints by a matrix (Guedelha et al. 2017, eqs. 11-12, 33-34)."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.shared.coupling import joint_torque, joint_velocity, motor_torque, motor_velocity
from friction_estimator.config.robot import Coupling, combined, uncoupled
from friction_estimator.errors import ConfigError

JOINTS, MOTORS = ("pitch", "roll", "yaw"), ("0B3M0", "0B3M1", "0B4M0")
ICUB = np.array([[0.5, -0.5, 0.0], [0.5, 0.5, 0.0], [0.275, 0.275, 0.55]])
TORSO = Coupling(JOINTS, MOTORS, ICUB)


def test_first_two_motors_turning_together_roll_the_torso_and_turn_it():
    np.testing.assert_allclose(joint_velocity(TORSO, np.array([1.0, 1.0, 0.0])), [0.0, 1.0, 0.55])


def test_power_is_the_same_on_both_sides():
    rng = np.random.default_rng(0)
    velocity, torque = rng.normal(size=(2, 50, 3))
    motor_power = (motor_velocity(TORSO, velocity) * motor_torque(TORSO, torque)).sum(axis=1)
    np.testing.assert_allclose(motor_power, (velocity * torque).sum(axis=1))


def test_there_and_back_is_where_it_started():
    signal = np.random.default_rng(1).normal(size=(7, 3))
    np.testing.assert_allclose(joint_velocity(TORSO, motor_velocity(TORSO, signal)), signal, atol=1e-12)
    np.testing.assert_allclose(joint_torque(TORSO, motor_torque(TORSO, signal)), signal, atol=1e-12)


def test_order_of_joints_and_motors_does_not_matter():
    rows, columns = [2, 0, 1], [1, 2, 0]
    other = Coupling(tuple(JOINTS[k] for k in rows), tuple(MOTORS[k] for k in columns), ICUB[np.ix_(rows, columns)])
    velocity = np.array([0.3, -0.2, 0.7])
    np.testing.assert_allclose(motor_velocity(other, velocity[rows]), motor_velocity(TORSO, velocity)[columns])


def test_groups_are_the_joints_that_share_motors():
    robot = combined([uncoupled(["knee"]), TORSO, uncoupled(["ankle"])])
    assert robot.groups == ((("knee",), ("knee",)), (JOINTS, MOTORS), (("ankle",), ("ankle",)))
    np.testing.assert_allclose(motor_velocity(robot, np.arange(5.0))[[0, 4]], [0.0, 4.0])


@pytest.mark.parametrize(
    ("joints", "motors", "matrix", "message"),
    [
        (("a", "b"), ("m", "n"), np.ones((2, 2)), "cannot be inverted"),
        (
            ("a", "b"),
            ("m", "n"),
            np.array([[1.0, 0.0], [1.0, 0.0]]),
            "columns of the motors 'n' .* are zero",
        ),
        (("a", "b"), ("m", "n"), np.array([[1.0, 1.0], [0.0, 0.0]]), "rows or columns of the joints 'b'"),
        (
            ("a", "b", "c"),
            ("l", "m", "n"),
            np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]),
            r"1 motors \('l'\) move 2 joints \('a', 'b'\)",
        ),
        (("a", "b"), ("m", "n"), np.ones((2, 3)), "square matrix .* it is 2 x 3"),
        (
            ("a", "b"),
            ("m",),
            np.ones((2, 1)),
            "as many motors as joints; it has the joints 'a', 'b' and the motors 'm'",
        ),
        (("a", "a"), ("m", "n"), np.eye(2), "joint names, each once; repeated: 'a'"),
        (("a", "b"), ("m", "n"), np.array([[1.0, np.nan], [0.0, 1.0]]), "not finite"),
        ((), (), np.zeros((0, 0)), "needs joint names"),
        (("a", "b"), ("b", "a"), np.eye(2), "name of another joint: 'a', 'b'"),
    ],
)
def test_what_cannot_be_a_coupling_is_refused(joints, motors, matrix, message):
    with pytest.raises(ConfigError, match=message):
        Coupling(joints, motors, matrix)


def test_two_couplings_cannot_share_a_joint():
    with pytest.raises(ConfigError, match="repeated: 'knee'"):
        combined([uncoupled(["knee"]), uncoupled(["hip", "knee"])])
