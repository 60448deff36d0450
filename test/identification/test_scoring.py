"""The one rule: candidates are compared by held-out errors, and the simplest within one standard error wins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from friction_estimator.identification.linear_problem import (
    DEFAULT_SOLVER,
    ORDINARY,
    LinearProblem,
    Prior,
    SolverOptions,
    folds_of,
    select_rows,
    solve_values,
)
from friction_estimator.identification.scoring import FoldedProblem, choose, pushes, scores_of
from friction_estimator.identification.uncertainty import solve


def problem(slope: float, noise: float = 0.5, rows: int = 400, seed: int = 0) -> LinearProblem:
    """``y = 1 + slope x`` and a column without effect."""
    rng = np.random.default_rng(seed)
    x, nothing = rng.normal(size=(2, rows))
    W = np.column_stack((np.ones(rows), x, nothing))
    y = W @ [1.0, slope, 0.0] + noise * rng.normal(size=rows)
    order = np.arange(rows)
    return LinearProblem(
        ("a", "b", "c"), ("",) * 3, W, y, np.zeros(rows, dtype=np.intp), order // 20, np.zeros(3, dtype=bool), order
    )


def nothing_known(columns: int) -> Prior:
    return Prior.of_std(np.full(columns, np.inf))


def folded_problem(made: LinearProblem, solver: SolverOptions = ORDINARY) -> FoldedProblem:
    prior = nothing_known(made.W.shape[1])
    return FoldedProblem.from_problem(made, solver, prior, folds_of(made))


def chosen(made: LinearProblem) -> int:
    folded = folded_problem(made, DEFAULT_SOLVER)
    candidates = [np.arange(count) for count in (1, 2, 3)]
    tried = [(columns, nothing_known(3)) for columns in candidates]
    number, rivals, table = folded.choose("columns", ("1", "2", "3"), tried)
    assert [candidate.chosen for candidate in table].index(True) == number == rivals[0]
    return number


def test_the_simplest_candidate_within_one_standard_error_wins() -> None:
    assert [chosen(problem(1.0, seed=seed)) for seed in range(10)] == [1] * 10
    assert [chosen(problem(0.0, seed=seed)) for seed in range(10)].count(0) >= 7


def test_a_push_does_not_decide() -> None:
    made = problem(1.0)
    made.y[200:203] += 1e3
    assert chosen(made) == 1


def test_folds_give_the_errors_of_separate_fits() -> None:
    made = problem(0.5)
    fold = folds_of(made)
    folded = folded_problem(made)
    columns = np.arange(3)
    error = folded.held_out_error(columns, nothing_known(3))
    for number in range(5):
        rest = fold != number
        values = np.linalg.lstsq(made.W[rest], made.y[rest], rcond=None)[0]
        np.testing.assert_allclose(error[~rest], (made.y - made.W @ values)[~rest], atol=1e-9)
    whole = np.linalg.lstsq(made.W, made.y, rcond=None)[0]
    np.testing.assert_allclose(folded.values(columns, nothing_known(3)), whole, atol=1e-9)


def test_at_most_a_twentieth_of_the_errors_are_pushes() -> None:
    error = np.ones(100)
    error[:3] = 50.0
    assert np.flatnonzero(pushes(error, 6.0)).tolist() == [0, 1, 2]
    error[:7] = np.arange(7) + 50.0
    assert np.flatnonzero(pushes(error, 6.0)).tolist() == [4, 5, 6]
    error[:30] = 50.0
    assert not pushes(error, 6.0).any()


def test_among_strengths_of_a_prior_the_error_of_the_best_itself_counts() -> None:
    made = problem(1.0)
    size = np.where(np.arange(400) // 20 % 2, 1.3, 0.7)[:, None]
    errors = made.y[:, None] * np.array([0.102, 0.1]) * size
    scores = [scores_of(error, made) for error in errors.T]
    assert choose("prior", ("strong", "weak"), scores)[0] == 1  # 2 % in every block: certain, and irrelevant
    assert choose("prior", ("strong", "weak"), scores, slack=scores[1].standard_error)[0] == 0


def test_held_out_errors_use_nothing_of_the_fold_that_they_are_about() -> None:
    made = problem(1.0)
    made.y[:80] += np.where(np.arange(80) % 2, 20.0, -3.0)  # the first fold is unlike the others
    fold, columns = folds_of(made), np.arange(3)
    error = folded_problem(made, DEFAULT_SOLVER).held_out_error(columns, nothing_known(3))
    for number in range(5):
        others = solve_values(select_rows(made, fold != number), DEFAULT_SOLVER, nothing_known(3)).values
        np.testing.assert_allclose(error[fold == number], (made.y - made.W @ others)[fold == number], atol=1e-3)


def test_what_a_fold_cannot_see_takes_its_prior() -> None:
    made = problem(1.0)
    made.W[:, 2] = np.where(np.arange(400) < 80, 5.0, 0.0)  # in the first fold alone
    made = replace(made, y=made.W @ [1.0, 1.0, 2.0])
    known = Prior(np.array([0.0, 0.0, 2.0]), np.diag([0.0, 0.0, 1.0]))
    folded = folded_problem(made)
    assert np.abs(folded.held_out_error(np.arange(3), known)).max() < 1e-6
    free = folded.held_out_error(np.arange(3), nothing_known(3))
    assert 5.0 < np.abs(free).max() < 20.0  # at zero, where nothing is known; it does not explode


def test_whole_recordings_are_left_out_where_each_shows_what_the_others_need() -> None:
    made = problem(1.0)
    recording = np.arange(400) // 100
    np.testing.assert_array_equal(folds_of(replace(made, recording=recording)), recording)
    made.W[:, 2] *= recording == 3  # one recording alone shows this column
    assert np.unique(folds_of(replace(made, recording=recording))).size == 5


def test_a_prior_that_is_not_independent_is_the_posterior_of_its_data() -> None:
    first, second = problem(0.7, seed=1), problem(0.7, seed=2)
    known = Prior(np.linalg.lstsq(first.W, first.y, rcond=None)[0], first.W.T @ first.W / 0.25)
    both = np.linalg.lstsq(np.vstack((first.W, second.W)), np.append(first.y, second.y), rcond=None)[0]
    alone = np.linalg.lstsq(second.W, second.y, rcond=None)[0]
    found = solve(second, prior=known).values
    assert np.linalg.norm(found - both) < 0.5 * np.linalg.norm(alone - both)
    np.testing.assert_allclose(known.select(np.array([1])).mean, known.mean[[1]])
