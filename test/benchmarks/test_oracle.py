"""The references that know the truth."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.accuracy.oracle import best_law, method_with_true_states, single_support
from benchmarks.shared.estimates import configure
from friction_estimator.laws import linear_law_names, make_linear_law


@pytest.mark.parametrize(("mode", "largest"), [("gyro", 0.01), ("minimum_norm", 0.08)])
def test_fbse_is_exact_in_single_support_with_true_states(robot, clean_walk, model, mode, largest):
    """To 10 mN m with the true angular acceleration; as published, the minimum norm costs up to 80 mN m."""
    config = configure("suralp", "clean", {"observer": "fbse", "fbse.base_angular_acceleration": mode})
    friction, _ = method_with_true_states(config, robot.urdf_xml, clean_walk)
    where = single_support(clean_walk, model.limb)
    where[-1] = False  # the last sample has no angular acceleration
    error = (friction - clean_walk.friction)[where]
    assert error.size > 6 * 1000
    assert np.abs(error).max() < largest


def test_momentum_method_with_true_states_is_the_low_passed_truth(robot, clean_walk):
    config = configure("suralp", "clean", {"observer": "momentum"})
    friction, delayed = method_with_true_states(config, robot.urdf_xml, clean_walk)
    error = (friction - delayed)[1000:-1]
    assert np.sqrt((error**2).mean(axis=0)).max() < 0.04


@pytest.mark.parametrize("name", linear_law_names())
def test_best_law_recovers_a_friction_of_its_own_kind(name):
    rng = np.random.default_rng(0)
    velocity, load = rng.normal(0.0, 0.5, (4000, 3)), rng.normal(0.0, 40.0, (4000, 3))
    law = make_linear_law(name)
    parameters = rng.uniform(0.1, 1.0, (3, len(law.parameter_names)))
    friction = (law.regressor(velocity, load) * parameters).sum(axis=-1)
    np.testing.assert_allclose(best_law(name, velocity, load, friction), friction, atol=1e-8)


def test_best_law_has_the_smallest_error_of_all_parameters(clean_walk):
    """Any other parameters of the law do worse on the true friction of a walk."""
    velocity = np.array([sample.joints.velocity for sample in clean_walk.samples])
    effort = np.array([sample.joints.effort for sample in clean_walk.samples])
    best = best_law("coulomb_viscous", velocity, effort, clean_walk.friction)
    regressor = make_linear_law("coulomb_viscous").regressor(velocity, effort)
    error = ((best - clean_walk.friction) ** 2).mean(axis=0)
    for change in np.array([[0.05, 0.0], [-0.05, 0.0], [0.0, 0.05], [0.0, -0.05]]):
        other = best + (regressor * change).sum(axis=-1)
        assert (((other - clean_walk.friction) ** 2).mean(axis=0) > error).all()
