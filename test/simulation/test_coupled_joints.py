"""Claims about a biped whose ankles are moved by two motors each: friction is learned where it arises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.shared.coupling import joint_torque, motor_velocity
from friction_estimator.config.robot import Coupling
from friction_estimator.errors import SimulationError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.smoothing import SmoothedEstimator
from friction_estimator.io.robot import load_robot
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.laws.law import make_law
from friction_estimator.robot.transmission import Transmission
from friction_estimator.simulation import (
    TABLE_I,
    FrictionSetting,
    ParametrisedLaw,
    Simulator,
    make_noise,
    make_scenario,
)
from friction_estimator.simulation.friction import InjectedFriction
from test.feeding import feed

T = np.array([[0.5, 0.5], [0.5, -0.5]])
JOINTS = [f"{side}_ankle_{axis}" for side in "lr" for axis in ("pitch", "roll")]
MOTORS = [f"{side}_ankle_{place}" for side in "lr" for place in ("inner", "outer")]
COUPLING = {
    "robot.coupling.joints": JOINTS,
    "robot.coupling.motors": MOTORS,
    "robot.coupling.matrix": np.kron(np.eye(2), T).ravel().tolist(),
}
ANKLES = [4, 5, 10, 11]
COULOMB, VISCOUS = 0.3, 0.9
MOTOR = ParametrisedLaw("makkar", (0.4, 100.0, 10.0, COULOMB, 100.0, VISCOUS))
SETTING = FrictionSetting(leg=(*TABLE_I[:4], MOTOR, MOTOR))
LATE = slice(2500, None)


@pytest.fixture(scope="module")
def walk():
    """Samples of a walk with noisy sensors, all four motors of the ankles with the same friction."""
    robot = load_robot("suralp", COUPLING)
    scenario = replace(make_scenario("walk", 4.0), friction=(SETTING,))
    simulator = Simulator(robot.config, robot.urdf_xml, scenario, make_noise("paper"), seed=2)
    return [simulator.step() for _ in range(4000)]


def run(estimator, samples):
    return feed(estimator, samples) + estimator.flush()


def estimated(walk, parameters):
    robot = load_robot("suralp", parameters)
    estimator = Estimator(robot.config, robot.urdf_xml)
    return estimator, run(estimator, walk)


@pytest.fixture(scope="module")
def motor_wise(walk):
    return estimated(walk, COUPLING)


@pytest.fixture(scope="module")
def joint_wise(walk):
    return estimated(walk, {})


def errors(estimates, walk, field="friction"):
    """(t, 4) of the ankles, once they have learned."""
    found = np.array([getattr(estimate, field) for estimate in estimates])
    return (found - np.array([sample.truth.friction for sample in walk]))[LATE, ANKLES]


def rms(values):
    return np.sqrt((values**2).mean())


def test_friction_is_injected_at_the_motors_and_felt_at_the_joints():
    coupling = Coupling(tuple(JOINTS[:2]), tuple(MOTORS[:2]), T)
    names = ("l_knee", *JOINTS[:2])
    setting = FrictionSetting(leg=(), joints=((JOINTS[0], MOTOR), (JOINTS[1], MOTOR.scaled({"gamma_4": 3.0}))))
    friction = InjectedFriction([setting], names, (), Transmission.from_coupling(coupling, names))
    velocity = np.array([2.0, 0.3, -0.1])
    motors = motor_velocity(coupling, velocity[1:])
    parameters = np.array([entry[1].parameters for entry in setting.joints])
    expected = joint_torque(coupling, make_law("makkar").torque(parameters, motors))
    np.testing.assert_allclose(friction.torque(np.zeros(3), velocity, np.zeros(3), 1e-3), [0.0, *expected], rtol=1e-12)
    stuck = replace(setting, leg=(MOTOR, MOTOR), sticks=True)
    with pytest.raises(SimulationError, match="cannot be held by stiction"):
        InjectedFriction([stuck], names, (JOINTS[:2],), Transmission.from_coupling(coupling, names))


def test_friction_learned_motor_by_motor_is_clearly_better_than_joint_by_joint(walk, motor_wise, joint_wise):
    """Of the ankles, the law alone as well; and only then does sigma cover the error."""
    consistency = []
    for field in ("friction", "model"):
        mine, theirs = (rms(errors(found[1], walk, field)) for found in (motor_wise, joint_wise))
        assert mine < 0.6 * theirs, (field, mine, theirs)
    for _, estimates in (motor_wise, joint_wise):
        sigma = np.array([estimate.sigma for estimate in estimates])[LATE, ANKLES]
        consistency.append(((errors(estimates, walk) / sigma) ** 2).mean())
    assert 0.02 < consistency[0] < 1.5 < consistency[1], consistency


def test_coulomb_and_viscous_friction_of_a_joint_are_those_of_moving_it_alone(walk, motor_wise):
    """Both motors turn with the joint's velocity, so that each joint has the lines of both motors."""
    coupling = Coupling(tuple(JOINTS[:2]), tuple(MOTORS[:2]), T)
    velocity = np.array([sample.joints.velocity for sample in walk])[:, ANKLES].reshape(-1, 2, 2)  # by leg
    motors = np.stack([motor_velocity(coupling, leg) for leg in velocity.swapaxes(0, 1)], axis=1).reshape(-1, 4)
    coulomb, viscous = np.array([line_of(speeds) for speeds in motors.T]).reshape(2, 2, 2).sum(axis=1).T
    last = motor_wise[1][-1]
    for value, sigma, truth in (
        (last.law.coulomb, last.law.coulomb_sigma, coulomb),
        (last.law.viscous, last.law.viscous_sigma, viscous),
    ):
        assert (np.abs(value[ANKLES] - np.repeat(truth, 2)) < 3.0 * sigma[ANKLES]).all(), (value[ANKLES], sigma[ANKLES])
        assert (sigma[ANKLES] < 0.5 * np.repeat(truth, 2)).all()


def line_of(speeds):
    """F_c and F_v of the line through the true friction of a motor over these speeds (N,), away from standstill."""
    moving = speeds[np.abs(speeds) > 0.01][:, None]
    friction = make_law("makkar").torque(np.array([MOTOR.parameters]), moving)[:, 0]
    return np.linalg.lstsq(np.column_stack((np.sign(moving), moving)), friction, rcond=None)[0]


def test_what_was_learned_is_saved_motor_by_motor_and_used_at_once(walk, motor_wise, joint_wise):
    identified: IdentifiedParameters = motor_wise[0].identified
    assert [identified.joint_names[row] for row in ANKLES] == MOTORS
    robot = load_robot("suralp", COUPLING)
    restored = Estimator(robot.config, robot.urdf_xml)
    assert restored.restore(identified) == ()
    for name in ("values", "covariance", "residual_variance"):
        np.testing.assert_allclose(getattr(restored.identified, name), getattr(identified, name), rtol=1e-9, atol=1e-12)
    fresh = Estimator(robot.config, robot.urdf_xml)
    known, unknown = (run(estimator, walk[:100])[-1].model_sigma[ANKLES] for estimator in (restored, fresh))
    assert (known < 0.2 * unknown).all()
    (note,) = restored.restore(joint_wise[0].identified)
    assert note == f"nothing was saved of {', '.join(MOTORS)}: there the law starts anew"


def test_smoothed_estimates_are_better_than_the_live_ones_behind_a_coupling_too(walk, motor_wise):
    robot = load_robot("suralp", COUPLING)
    smoothed = run(SmoothedEstimator(robot.config, robot.urdf_xml, 1.0), walk)
    assert rms(errors(smoothed, walk)) < 0.95 * rms(errors(motor_wise[1], walk))
