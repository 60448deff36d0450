"""Claims about sigma where the model lacks something that the data show."""

import numpy as np
import pytest

from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.method import estimate_inverse_dynamics
from friction_estimator.identification.linear_problem import LinearProblem
from friction_estimator.identification.uncertainty import allowing_for_wrong_model, solve

from .arm import COULOMB, JOINTS, URDF, as_motion, coulomb_viscous, move, rigid_torque


def line(lacking=0.0, noise=0.1, samples=4000, seed=0):
    """``y = 2 + 3 x``, and what the model lacks: a function of another variable, which is returned, too."""
    rng = np.random.default_rng(seed)
    x, other = rng.uniform(0.0, 1.0, (2, samples))
    y = 2.0 + 3.0 * x + lacking * x * np.sin(6.0 * other) + noise * rng.normal(size=samples)
    same = np.zeros(samples, dtype=np.intp)
    problem = LinearProblem(
        ("a", "b"), ("", ""), np.column_stack((np.ones(samples), x)), y, same, same, np.zeros(2, dtype=bool)
    )
    return problem, x, other


def sigma(fit):
    return np.sqrt(np.diagonal(fit.covariance))


def test_a_right_model_keeps_its_sigma():
    wider = []
    for seed in range(20):
        problem, x, other = line(samples=1000, seed=seed)
        fit = solve(problem)
        wider.append(sigma(allowing_for_wrong_model(fit, (x, other))) / sigma(fit))
    assert np.median(wider) < 1.25  # of the largest of three estimates, each uncertain by a fifth


def test_sigma_grows_by_the_condition_that_the_model_lacks_alone():
    problem, x, other = line(lacking=2.0)
    fit = solve(problem)
    assert sigma(allowing_for_wrong_model(fit, (other,)))[1] > 5.0 * sigma(fit)[1]
    assert sigma(allowing_for_wrong_model(fit, (x,)))[1] < 2.0 * sigma(fit)[1]


def test_rows_that_are_rejected_at_the_same_speed_again_and_again_count_and_a_push_does_not():
    problem, x, _ = line(noise=0.02)
    fit = solve(problem)
    widths = []
    for rows in (x < 0.1, np.abs(np.arange(x.size) - 2000) < 150):
        problem.y[rows] += 2.0
        other = solve(problem)
        assert (other.weights[rows] == 0.0).mean() > 0.9  # the robust fit takes both for outliers
        widths.append(sigma(allowing_for_wrong_model(other, (x,))) / sigma(fit))
        problem.y[rows] -= 2.0
    assert widths[0].min() > 20.0 and widths[1].max() < 2.0


@pytest.mark.parametrize(
    "lacking",
    [
        lambda q, v, load: 0.4 * COULOMB * np.cos(q) * np.sign(v),
        lambda q, v, load: 0.1 * np.abs(load) * np.sign(v),
    ],
    ids=["position", "load"],
)
def test_friction_of_position_and_load_is_in_the_sigma_of_a_law_without_them(lacking):
    """F_c of truth is the mean over the recording."""
    close, widths = [], []
    for seed in range(4):
        motion = move(seed, 20.0)
        q, v, _ = motion
        load = rigid_torque(motion)
        extra = lacking(q, v, load)
        effort = load + coulomb_viscous(v) + extra + 0.5 * np.random.default_rng(seed).normal(size=q.shape)
        solution, _ = estimate_inverse_dynamics([as_motion(motion, effort)], FixedBaseModel(URDF, JOINTS))
        for joint, name in enumerate(JOINTS):
            place = solution.model.names.index(f"{name}/coulomb")
            truth = COULOMB[joint] + np.mean(extra[:, joint] * np.sign(v[:, joint]))
            spread = np.sqrt(solution.covariance[place, place])
            close.append(abs(solution.values[place] - truth) < 2.0 * spread)
            widths.append(spread / truth)
    assert np.mean(close) >= 0.85
    assert 0.01 < np.median(widths) < 0.1  # a right law has 0.004
