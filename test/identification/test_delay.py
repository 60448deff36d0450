"""Claims about torques that are recorded late: the delay is a parameter, and no viscous friction."""

import numpy as np
import pytest

from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.method import (
    estimate_inverse_dynamics,
    identify_inverse_dynamics,
)
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.identification.recording.motion import to_motion

from .arm import COULOMB, JOINTS, OFFSET, URDF, VISCOUS, move, rigid_torque, sine

RATE = 250.0


def one_sine(hz):
    return sine(hz, 0.7, 30.0, 1.0 / RATE)


def recording(motion, coulomb=COULOMB, viscous=VISCOUS, late=0.0):
    rng = np.random.default_rng(0)
    friction = coulomb * np.sign(motion[1]) + viscous * motion[1] + OFFSET
    effort = rigid_torque(motion) + friction + 0.2 * rng.normal(size=friction.shape)
    effort = np.roll(effort, round(late * RATE), axis=0)
    position = motion[0] + 1e-4 * rng.normal(size=friction.shape)
    return to_motion(JointLog("run", JOINTS, np.arange(len(effort)) / RATE, position, None, effort))


def friction(solution):
    places = [solution.model.names.index(f"{j}/{p}") for j in JOINTS for p in ("coulomb", "viscous")]
    return solution.values[places], np.sqrt(np.diagonal(solution.covariance))[places]


@pytest.mark.parametrize("late", [0.0, 0.008, -0.008])
def test_a_late_torque_is_no_viscous_friction_even_in_a_single_sine(late):
    solution, _ = estimate_inverse_dynamics([recording(one_sine(1.0), late=late)], FixedBaseModel(URDF, JOINTS))
    assert (solution.delay != 0.0) == (late != 0.0)
    assert abs(solution.delay - late) < 3.0 * solution.delay_sigma < 0.0025
    values, sigma = friction(solution)
    truth = np.column_stack((COULOMB, VISCOUS)).ravel()
    assert np.abs((values - truth) / sigma).max() < 2.0
    assert np.abs(values / truth - 1.0).max() < 0.05  # F_v is 13 % off where the delay is not known


def test_moved_torques_are_reported():
    result = identify_inverse_dynamics([recording(one_sine(1.0), late=0.008)], FixedBaseModel(URDF, JOINTS))
    assert any("late compared with the positions" in verdict for verdict in result.verdicts)


def test_several_frequencies_know_the_delay_and_lose_nothing():
    motion = move(0, 20.0, 1.0 / RATE)
    solution, _ = estimate_inverse_dynamics([recording(motion)], FixedBaseModel(URDF, JOINTS))
    assert solution.delay == 0.0 and solution.delay_sigma < 1e-3


def test_a_sine_without_steps_of_friction_does_not_show_viscous_friction_and_that_is_reported():
    """Dry friction has steps that a late torque moves; without them a delay is viscous friction."""
    little = 0.03 * VISCOUS
    motion = recording(one_sine(0.5), np.zeros(2), little, late=0.004)
    result = identify_inverse_dynamics([motion], FixedBaseModel(URDF, JOINTS))
    sigma = np.sqrt(result.friction.covariance[:, 1, 1])
    assert (np.abs(result.friction.values[:, 1] - little) < 3.0 * sigma).all()
    assert any("cannot separate viscous friction from a torque" in verdict for verdict in result.verdicts)
