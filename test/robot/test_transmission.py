"""Claims about the motors behind coupled joints: one set of equations, whatever the order of the joints."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.shared.coupling import joint_torque, motor_torque, motor_velocity
from friction_estimator.config import IdentifierConfig, config_from_parameters
from friction_estimator.config.robot import Coupling
from friction_estimator.errors import ConfigError
from friction_estimator.estimation.compensation import TransmittedLaws
from friction_estimator.estimation.health import Health
from friction_estimator.estimation.kalman.law_at_motion import LawAtMotion, PreslidingMemory, law_at_motion
from friction_estimator.estimation.kalman.limb_estimates import empty_estimates
from friction_estimator.estimation.kalman.limb_state import find_limbs
from friction_estimator.estimation.motion.joint_motion import JointMotion
from friction_estimator.estimation.observers.identifier import FrictionIdentifier, predict_friction
from friction_estimator.estimation.validity import Validity
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.robot.model import RobotModel
from friction_estimator.robot.transmission import Transmission
from test.biped import suralp_config

JOINTS = ("roll", "neck", "yaw", "elbow", "pitch")
TORSO = Coupling(
    ("pitch", "roll", "yaw"),
    ("m0", "m1", "m2"),
    np.array([[0.5, -0.5, 0.0], [0.5, 0.5, 0.0], [0.275, 0.275, 0.55]]),
)
PLACES = [4, 0, 2]
"""Of the torso's joints among all."""
LAW = "coulomb_viscous"


def test_coupled_motors_follow_the_matrix_and_all_others_their_joints():
    rng, motors = np.random.default_rng(0), Transmission.from_coupling(TORSO, JOINTS)
    assert motors.names == ("m1", "neck", "m2", "elbow", "m0")
    x = rng.normal(size=(7, 5))
    for mine, theirs in (
        (motors.velocity, motor_velocity),
        (motors.torque, motor_torque),
        (motors.at_joints, joint_torque),
    ):
        np.testing.assert_allclose(mine(x)[:, PLACES], theirs(TORSO, x[:, PLACES]), atol=1e-14)
        np.testing.assert_array_equal(mine(x)[:, [1, 3]], x[:, [1, 3]])


def test_without_coupling_everything_is_returned_untouched():
    motors, x = Transmission.from_coupling(None, JOINTS), np.random.default_rng(1).normal(size=5)
    assert motors.names == JOINTS and not motors.couples and motors.group.shape == (5, 1)
    functions = (motors.velocity, motors.torque, motors.at_joints, motors.coulomb_at_joints, motors.variance_at_joints)
    for function in (*functions, motors.velocity_std, motors.torque_std):
        assert function(x) is x


def test_variances_at_the_joints_use_the_whole_covariance_of_the_motors():
    """Against ``J P J^T`` of the whole map from all parameters and law errors to the friction of the joints."""
    rng, motors, laws, n, p = (
        np.random.default_rng(2),
        Transmission.from_coupling(TORSO, JOINTS),
        JointLaws([LAW] * 5),
        5,
        2,
    )
    root = rng.normal(size=(n * (p + 1),) * 2)
    P = root @ root.T
    columns = np.arange(n * (p + 1)).reshape(n, p + 1)[motors.group].reshape(n, -1)
    estimates = empty_estimates(n, p, 0, motors.group.shape[1])
    estimates.covariance[:] = P[columns[:, :, None], columns[:, None, :]]
    motion, still = JointMotion(np.zeros(n), rng.normal(size=n), *np.zeros((2, n))), np.zeros(n)
    found = LawAtMotion.zeros(n, p)
    law_at_motion(
        laws.table, motors.table, estimates, motion, still, 1e-3, np.zeros((n, 0)), PreslidingMemory.initial(n, 0),
        found,
    )  # fmt: skip
    for variance, law_error in ((found.variance, 0.0), (found.friction_variance, 1.0)):
        J = np.zeros((n, n, p + 1))
        J[np.arange(n), np.arange(n)] = np.column_stack((found.regressor, np.full(n, law_error)))
        J = motors.to_joints @ J.reshape(n, -1)
        np.testing.assert_allclose(variance, np.diagonal(J @ P @ J.T), rtol=1e-10)


def test_a_joint_that_moves_alone_has_the_coulomb_and_viscous_friction_that_are_published():
    rng, motors = np.random.default_rng(3), Transmission.from_coupling(TORSO, JOINTS)
    laws, values = JointLaws(["coulomb_viscous"] * 5), rng.uniform(0.1, 1.0, (5, 2))
    coulomb, viscous = motors.coulomb_at_joints(values[:, 0]), motors.variance_at_joints(values[:, 1])
    for joint in range(5):
        velocity = np.where(np.arange(5) == joint, -0.7, 0.0)
        friction = TransmittedLaws(laws, motors).torque(values, velocity, np.zeros(5))[joint]
        assert friction == pytest.approx(-coulomb[joint] - 0.7 * viscous[joint], rel=1e-12)


def test_recursive_least_squares_learn_the_motors_from_the_friction_of_the_joints():
    """Exact joint friction in, exact motor parameters out; a joint that is not measured stops its whole group."""
    rng, motors = np.random.default_rng(5), Transmission.from_coupling(TORSO, JOINTS)
    truth = rng.uniform(0.2, 1.0, (5, 2))
    config = IdentifierConfig(law="coulomb_viscous", initial_covariance=1e6)
    identifier = FrictionIdentifier(config, JOINTS, motors)
    at_joints = TransmittedLaws(identifier.laws, motors)

    def learn(active):
        velocity = rng.normal(size=5)
        friction = at_joints.torque(truth, velocity, np.zeros(5))
        regressor = identifier.regressor(velocity, np.zeros(5))
        measured = np.where(active, friction, np.nan)
        identifier.learn(regressor, measured, np.full(5, 1e-3), active)
        predicted, sigma = np.empty(5), np.empty(5)
        predict_friction(identifier.buffer, motors.to_joints, regressor, predicted, sigma)
        return predicted, friction

    for _ in range(200):
        predicted, friction = learn(np.ones(5, dtype=bool))
    np.testing.assert_allclose(identifier.law.parameters, truth, atol=1e-4)
    np.testing.assert_allclose(predicted, friction, atol=1e-3)
    assert identifier.identified.joint_names == ("m1", "neck", "m2", "elbow", "m0")
    before = identifier.identified
    learn(np.array([True, True, True, False, False]))
    samples = identifier.identified.samples - before.samples
    np.testing.assert_array_equal(samples, [0, 1, 0, 0, 0])
    assert np.isfinite(identifier.law.parameters).all()


def test_a_joint_is_known_once_the_laws_of_all_its_motors_are():
    """The motors m and n move a and b together, the third joint has its own."""
    coupled, joints = Coupling(("a", "b"), ("m", "n"), np.array([[0.5, 0.5], [0.5, -0.5]])), ("a", "b", "c")
    validity = Validity(Health(), joints, Transmission.from_coupling(coupled, joints))
    for known, valid in (((1, 0, 1), (0, 0, 1)), ((1, 1, 0), (1, 1, 0)), ((0, 0, 1), (0, 0, 1))):
        law = SimpleNamespace(known=np.array(known, dtype=bool))
        step = validity.step(SimpleNamespace(law=law, friction=np.ones(3), sigma=np.ones(3)))
        np.testing.assert_array_equal(step, np.array(valid, dtype=bool))


def ankles(**changes):
    joints = [f"{side}_ankle_{axis}" for side in "lr" for axis in ("pitch", "roll")]
    parameters = {
        "robot.coupling.joints": joints,
        "robot.coupling.motors": ["li", "lo", "ri", "ro"],
        "robot.coupling.matrix": np.kron(np.eye(2), [[0.5, 0.5], [0.5, -0.5]]).ravel().tolist(),
    }
    return parameters | {f"robot.coupling.{key}": value for key, value in changes.items()}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"matrix": [1.0, 0.0]}, "2 numbers; the 4 joints of robot.coupling.joints need 4 rows of 4 numbers"),
        ({"motors": ["a", "b", "c"]}, "as many motors as joints"),
        ({"matrix": [1.0] * 16}, "cannot be inverted"),
    ],
)
def test_a_coupling_that_is_none_is_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        config_from_parameters(ankles(**changes))


def test_names_that_do_not_fit_the_robot_are_refused(urdf_xml):
    changed = ankles(joints=["l_ankle_pitch", "l_ankle_roll", "r_ankle_pitch", "tail"])
    with pytest.raises(ConfigError, match="names the joint 'tail'; the joints are"):
        RobotModel(suralp_config(**changed), urdf_xml)
    with pytest.raises(ConfigError, match="the motor 'l_knee' has the name of another joint"):
        RobotModel(suralp_config(**ankles(motors=["l_knee", "lo", "ri", "ro"])), urdf_xml)


def test_the_kalman_observer_refuses_motors_that_move_two_limbs(urdf_xml):
    legs = {"joints": ["l_ankle_roll", "r_ankle_roll"], "motors": ["a", "b"], "matrix": [0.5, 0.5, 0.5, -0.5]}
    robot = RobotModel(suralp_config(**ankles(**legs)), urdf_xml)
    with pytest.raises(ConfigError, match="'b' move joints of different limbs"):
        robot.motors.select(find_limbs(robot)[0].joints)
