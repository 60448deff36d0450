"""Claims about the linear problem: its solution, robust weights and standard deviations."""

import numpy as np
import pytest

from friction_estimator.errors import InputError
from friction_estimator.identification.linear_problem import (
    ORDINARY,
    LinearProblem,
    Prior,
    SolverOptions,
)
from friction_estimator.identification.uncertainty import solve
from friction_estimator.linear_algebra import blas_threads, one_blas_thread

TRUTH = np.array([2.0, -0.5, 0.3])


def make_problem(noise, rng, instants=600, truth=TRUTH, nonnegative=(False, False, False)):
    """Two joints, six segments; noise (2, instants)."""
    W = rng.normal(size=(2, instants, 3)).cumsum(axis=1) / 10.0 % 2.0 - 1.0  # regressors move slowly too
    y = W @ truth + noise
    instant = np.tile(np.arange(instants), 2)
    return LinearProblem(
        ("a", "b", "c"),
        ("",) * 3,
        W.reshape(-1, 3),
        y.ravel(),
        np.repeat([0, 1], instants),
        instant * 6 // instants,
        np.array(nonnegative),
        instant,
    )


def coloured(rng, memory, instants=600):
    noise = rng.normal(size=(2, instants))
    for k in range(1, instants):
        noise[:, k] = memory * noise[:, k - 1] + np.sqrt(1.0 - memory**2) * noise[:, k]
    return noise


@pytest.mark.parametrize("options", [ORDINARY, SolverOptions()])
def test_noiseless_data_give_the_truth(options):
    fit = solve(make_problem(np.zeros((2, 600)), np.random.default_rng(0)), options)
    np.testing.assert_allclose(fit.values, TRUTH, atol=1e-10)
    assert fit.relative_error < 1e-10


def test_ordinary_least_squares_is_the_printed_one():
    problem = make_problem(np.random.default_rng(1).normal(size=(2, 600)), np.random.default_rng(2))
    fit = solve(problem, ORDINARY)
    W, y = problem.W, problem.y
    values = np.linalg.solve(W.T @ W, W.T @ y)
    variance = ((y - W @ values) ** 2).sum() / (1200 - 3)
    np.testing.assert_allclose(fit.values, values, rtol=1e-9)
    np.testing.assert_allclose(fit.white_covariance, variance * np.linalg.inv(W.T @ W), rtol=1e-8)


@pytest.mark.parametrize("memory", [0.0, 0.9])
def test_sigma_is_honest_for_white_and_for_coloured_residuals(memory):
    honest, printed = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        fit = solve(make_problem(coloured(rng, memory, 2000), rng, 2000), ORDINARY)
        error2 = (fit.values - TRUTH) ** 2
        honest.append(error2 / np.diagonal(fit.covariance))
        printed.append(error2 / np.diagonal(fit.white_covariance))
    assert 0.6 < np.mean(honest) < 1.5
    if memory:
        assert np.mean(printed) > 4.0  # what the paper's formula promises for coloured residuals


def test_a_noisy_joint_counts_less():
    rng = np.random.default_rng(4)
    problem = make_problem(rng.normal(size=(2, 600)) * [[0.05], [2.0]], rng)
    weighted, ordinary = (
        solve(problem, SolverOptions(weighted=on, robust=False, bounded=False)) for on in (True, False)
    )
    assert np.abs(weighted.values - TRUTH).max() < 0.3 * np.abs(ordinary.values - TRUTH).max()
    ratio = weighted.weights[0] / weighted.weights[-1]
    assert 1000 < ratio < 2600  # (2 / 0.05)^2 = 1600


def test_outliers_do_not_pull():
    rng = np.random.default_rng(5)
    noise = 0.05 * rng.normal(size=(2, 600))
    noise[:, 100:130] += 20.0
    problem = make_problem(noise, rng)
    robust, pulled = (solve(problem, SolverOptions(robust=on)) for on in (True, False))
    assert np.abs(robust.values - TRUTH).max() < 0.02
    assert np.abs(pulled.values - TRUTH).max() > 0.1


def test_bounds_hold_and_the_others_adapt():
    rng = np.random.default_rng(6)
    problem = make_problem(0.1 * rng.normal(size=(2, 600)), rng, nonnegative=(False, True, False))
    fit = solve(problem, SolverOptions(weighted=False, robust=False))
    reduced = np.linalg.lstsq(problem.W[:, [0, 2]], problem.y, rcond=None)[0]
    np.testing.assert_allclose(fit.values, [reduced[0], 0.0, reduced[1]], atol=1e-9)


def test_a_prior_decides_what_the_data_cannot():
    rng = np.random.default_rng(7)
    problem = make_problem(0.01 * rng.normal(size=(2, 600)), rng, truth=np.array([1.0, 1.0, 0.5]))
    problem.W[:, 1] = problem.W[:, 0]
    y = problem.W @ [1.0, 1.0, 0.5] + 0.01 * rng.normal(size=1200)
    twins = LinearProblem(
        problem.names, problem.units, problem.W, y, problem.joint, problem.segment, problem.nonnegative
    )
    fit = solve(twins, SolverOptions(), Prior.of_std(np.array([2.0, 2.0, np.inf])))
    np.testing.assert_allclose(fit.values, [1.0, 1.0, 0.5], atol=5e-3)
    assert np.sqrt(fit.covariance[0, 0]) > 1.0 > 10.0 * np.sqrt(fit.covariance[2, 2])


def test_too_few_rows_are_refused():
    rng = np.random.default_rng(8)
    with pytest.raises(InputError, match="usable samples"):
        solve(make_problem(np.zeros((2, 1)), rng, instants=1))


def test_blas_has_one_thread_meanwhile_and_its_own_number_again_after_an_error():
    def counts() -> list[int]:
        return [threads for _, _, threads in blas_threads()]

    libraries = blas_threads()
    before = [max(threads, 2) for _, _, threads in libraries]
    for (library, symbol, _), threads in zip(libraries, before, strict=True):
        getattr(library, symbol.format("set"))(threads)
    with pytest.raises(KeyError), one_blas_thread():
        assert counts() == [1] * len(before)
        raise KeyError
    assert counts() == before
    for library, symbol, threads in libraries:
        getattr(library, symbol.format("set"))(threads)


def test_what_a_bound_changes_is_in_the_sigma():
    """A parameter that is held at zero though the data have it below shifts the others: model or torque are wrong."""
    problem = make_problem(0.01 * coloured(np.random.default_rng(3), 0.9), np.random.default_rng(4))
    held = LinearProblem(
        problem.names, problem.units, problem.W, problem.y, problem.joint, problem.segment,
        np.array([False, True, False]), problem.instant,
    )  # fmt: skip
    free, bound = solve(problem), solve(held)
    assert bound.values[1] == 0.0
    moved = np.abs(bound.values - free.values)
    assert (np.sqrt(np.diagonal(bound.covariance)) > 0.9 * moved).all() and moved[1] == pytest.approx(0.5, abs=0.05)
