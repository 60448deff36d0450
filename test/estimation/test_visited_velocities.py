"""Claims about Coulomb and viscous friction as a line over the velocities that a motor has had."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.coulomb_viscous import line_sigma
from friction_estimator.config import IdentifierConfig
from friction_estimator.errors import ConfigError
from friction_estimator.estimation.observers.identifier import FrictionIdentifier
from friction_estimator.estimation.visited_velocities import MIN_SPEED, VisitedVelocities
from friction_estimator.io.parameters import parameters_document, parse_parameters
from friction_estimator.laws.joint_laws import JointLaws

LAWS = ("six_slope_load", "coulomb_viscous", "load_quadrants", "asymmetric")


def visited(
    laws: JointLaws, velocity: np.ndarray, load: np.ndarray, duration: np.ndarray, std: float = 0.0
) -> VisitedVelocities:
    """After a motion (m, n)."""
    counted = VisitedVelocities(laws)
    for row in range(len(velocity)):
        phi = laws.regressor(velocity[row], load[row])
        counted.add_velocities(phi, velocity[row], np.full(velocity.shape[1], std), float(duration[row]))
    return counted


def motion(count: int = 4000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """To and fro with the same loads, so that an offset belongs to neither direction."""
    rng = np.random.default_rng(5)
    velocity, load = rng.gamma(1.5, 0.4, (count, 4)) + MIN_SPEED, rng.normal(0.0, 10.0, (count, 4))
    duration = rng.uniform(0.005, 0.02, count)
    return np.vstack((velocity, -velocity)), np.vstack((load, -load)), np.tile(duration, 2)


def test_coulomb_and_viscous_friction_are_the_least_squares_line_through_the_law_weighted_by_time():
    laws, (velocity, load, duration) = JointLaws(LAWS), motion()
    parameters = np.random.default_rng(6).uniform(0.0, 1.0, laws.prior_std.shape) * (laws.prior_std > 0.0)
    rows = visited(laws, velocity, load, duration).rows
    friction, root = laws.torque(parameters, velocity, load), np.sqrt(duration)
    for joint in range(4):
        basis = np.column_stack((np.sign(velocity[:, joint]), velocity[:, joint]))
        line, *_ = np.linalg.lstsq(root[:, None] * basis, root * friction[:, joint], rcond=None)
        np.testing.assert_allclose(rows[:, joint] @ parameters[joint], line, rtol=0.02, atol=1e-3)


def test_the_line_of_coulomb_viscous_friction_is_that_friction_whatever_the_motion():
    laws, one_speed = JointLaws(["coulomb_viscous"]), np.full((50, 1), 0.3)
    for counted in (VisitedVelocities(laws), visited(laws, one_speed, 0.0 * one_speed, np.full(50, 0.01))):
        np.testing.assert_allclose(counted.rows[:, 0], np.eye(2), atol=1e-6)


def test_standing_and_velocities_without_a_sure_sign_do_not_count():
    laws, slow, fast = JointLaws(["six_slope"]), np.full((50, 1), 0.5 * MIN_SPEED), np.full((50, 1), 0.5)
    none, times = np.zeros((50, 1)), np.full(50, 0.01)
    fresh = VisitedVelocities(laws)
    for counted in (visited(laws, slow, none, times), visited(laws, fast, none, times, std=0.2)):
        np.testing.assert_array_equal(counted.rows, fresh.rows)
        assert np.isnan(counted.velocity_range).all() and counted.moving_time[0] == 0.0
    assert visited(laws, fast, none, times, std=0.1).moving_time[0] == pytest.approx(0.5)


def test_the_range_holds_nine_tenths_of_the_time_in_motion():
    velocity, load, duration = motion(1000)
    found = visited(JointLaws(LAWS), velocity, load, duration).velocity_range
    speeds = np.sort(np.abs(velocity), axis=0)
    for joint in range(4):
        left_out = [np.mean(speeds[:, joint] < found[joint, 0]), np.mean(speeds[:, joint] > found[joint, 1])]
        assert max(left_out) < 0.08 and min(left_out) > 0.02  # bins of half an octave


def test_what_was_never_visited_is_not_known():
    """One speed says F_c + F_v |dq| there, and neither F_c nor F_v."""
    identifier = FrictionIdentifier(IdentifierConfig(law="six_slope"), ("one_speed", "resting"))
    velocity, no_load = np.array([0.3, 0.0]), np.zeros(2)
    learning, std = np.array([True, False]), np.array([0.0, np.inf])
    for _ in range(500):
        phi = identifier.regressor(velocity, no_load)
        identifier.visited.add_velocities(phi, velocity, std, 0.01)
        identifier.learn(phi, np.full(2, 0.7), np.full(2, 1e-3), learning)
    law = identifier.law
    sigma = line_sigma(law, np.array([[0.3, 0.3], [2.0, 2.0]]))
    assert sigma[0, 0] < 0.05 and min(sigma[1, 0], law.coulomb_sigma[0], law.viscous_sigma[0]) > 0.5
    assert law.coulomb[0] + 0.3 * law.viscous[0] == pytest.approx(0.7, abs=0.01)
    assert law.coulomb_sigma[1] > 1.0 and law.viscous_sigma[1] > 1.0 and np.isnan(law.velocity_range[1]).all()


def test_a_saved_range_gives_the_line_at_once_and_older_files_have_none():
    config = IdentifierConfig(law="six_slope")
    identifier, rng = FrictionIdentifier(config, ("knee", "resting")), np.random.default_rng(1)
    for _ in range(2000):
        velocity = np.array([rng.choice([-1.0, 1.0]) * rng.uniform(0.1, 0.8), 0.0])
        phi = identifier.regressor(velocity, np.zeros(2))
        identifier.visited.add_velocities(phi, velocity, np.zeros(2), 0.01)
        identifier.learn(phi, 0.4 * np.sign(velocity) + 0.5 * velocity, np.full(2, 1e-3), np.array([True, False]))
    document = parameters_document(identifier.identified)
    restarted = FrictionIdentifier(config, ("knee", "resting"))
    restarted.restore(parse_parameters(document, "saved.yaml"))
    np.testing.assert_array_equal(restarted.law.velocity_range, identifier.law.velocity_range)
    for name in ("coulomb", "viscous"):
        assert getattr(restarted.law, name)[0] == pytest.approx(getattr(identifier.law, name)[0], abs=0.02)
    del document["joints"]["knee"]["velocity_range"]
    assert "velocity_range" not in document["joints"]["resting"]
    older = FrictionIdentifier(config, ("knee", "resting"))
    older.restore(parse_parameters(document, "older.yaml"))
    assert np.isnan(older.law.velocity_range).all()
    document["joints"]["knee"]["velocity_range"] = [0.8, 0.1]
    with pytest.raises(ConfigError, match="two speeds, the smaller one first"):
        parse_parameters(document, "wrong.yaml")


def test_a_law_is_known_once_its_motor_has_moved_in_both_directions():
    """Forward, to and fro, noise at rest for a minute, and to and fro within that noise."""
    laws, count, rng = JointLaws(["coulomb_viscous"] * 4), 6000, np.random.default_rng(7)
    velocity = np.empty((count, 4))
    velocity[:, 0], velocity[:, 1] = 0.2, 0.2 * np.sin(np.linspace(0.0, 60.0, count))
    velocity[:, 2] = 0.05 * rng.normal(size=count)
    velocity[:, 3] = velocity[:, 1] + 0.05 * rng.normal(size=count)
    counted = visited(laws, velocity, np.zeros((count, 4)), np.full(count, 0.01), std=0.05)
    np.testing.assert_array_equal(counted.known, [False, True, False, True])
    counted.reset_to_prior()
    assert not counted.known.any()


def test_a_law_of_an_earlier_run_is_known_where_that_run_has_moved():
    identifier = FrictionIdentifier(IdentifierConfig(), ("still", "moved"))
    saved = identifier.identified
    assert not identifier.law.known.any()
    saved.velocity_range[1] = 0.1, 1.0
    identifier.restore(parse_parameters(parameters_document(saved), "saved.yaml"))
    np.testing.assert_array_equal(identifier.law.known, [False, True])


@pytest.mark.parametrize("velocity_range", [None, np.full((2, 2), np.nan)])
def test_a_law_that_was_given_without_a_run_is_known(velocity_range):
    identifier = FrictionIdentifier(IdentifierConfig(), ("one", "other"))
    given = replace(identifier.identified, velocity_range=velocity_range, samples=np.array([0.0, 1e6]))
    identifier.restore(given)
    np.testing.assert_array_equal(identifier.law.known, [False, True])
