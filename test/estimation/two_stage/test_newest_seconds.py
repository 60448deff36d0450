"""Claims about what the newest seconds show of a change, on a limb that obeys the equations of both stages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from friction_estimator.estimation.kalman.sensor_changes import ChangeComparison
from friction_estimator.estimation.two_stage.solution import LimbSolution, NewestSeconds
from friction_estimator.estimation.two_stage.terms import LimbTerms

M, P, WINDOWS = 2, 3, 50
"""Motors of a limb with one foot, terms of a law, windows in a second."""


def terms_of_limb() -> LimbTerms:
    starts = np.cumsum([P, 6, 6, M, 3, 1, 1, M, M, M, 4 * M]).tolist()
    wrench_std = np.array([[2.0] * 3 + [0.1] * 3, [0.01] * 6])
    return LimbTerms(
        np.arange(M), np.zeros(1, dtype=np.int64), np.ones((M, P)), wrench_std, np.eye(M), np.full(M, 0.5), 0.3, 3e-3,
        3e-4, np.array([0.1, 0.005, 0.005, 0.005]), *starts,
    )  # fmt: skip


class Limb:
    """A limb whose balance has random columns, terms drawn from their priors, and white noise of unit variance."""

    def __init__(self, seed: int) -> None:
        self.terms, self.rng = terms_of_limb(), np.random.default_rng(seed)
        width, size = self.terms.width, self.terms.size
        self.solution = LimbSolution(M, P, width - P, size - width)
        self.newest = NewestSeconds(self.solution, self.terms)
        self.comparison = ChangeComparison([self.newest], ("hip", "knee"), ("sole",))
        self.law, self.errors = self.rng.normal(size=(M, P)), self.rng.normal(size=size - P)
        self.errors[width - P :] = 0.0
        self.time = 0.0

    def run(self, seconds: float) -> None:
        size = self.terms.size
        scale = np.full(size, 0.3)
        scale[self.terms.width :] = 20.0  # these columns are in SI units
        for _ in range(round(seconds * WINDOWS)):
            columns = scale * self.rng.normal(size=(M, size))
            own = np.zeros((M, size), dtype=bool)
            own[:, self.terms.width : self.terms.positions] = ~np.eye(M, dtype=bool)
            columns[own] = 0.0
            z = np.hstack((self.law, np.tile(self.errors, (M, 1))))
            y = (columns * z).sum(axis=1) + self.rng.normal(size=M)
            rows = np.column_stack((columns, y))
            self.solution.information += rows[:, :, None] * rows[:, None, :]
            self.newest.add(M)
            self.time += 1.0 / WINDOWS
            self.comparison.advance(self.time)


def change(column: str, index: int, size: float) -> Callable[[Limb], None]:
    def changed(limb: Limb) -> None:
        limb.errors[getattr(limb.terms, column) - P + index] += size

    return changed


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("changed", "kind", "place", "size"),
    [
        (change("width", 1, 0.2), "effort_gain", 1, 0.2),
        (change("positions", 0, -0.05), "position_offset", 0, -0.05),
        (change("accelerometer", 2, 4.0), "accelerometer_bias", -1, 1.2),
        (change("wrench_delay", 0, 3.0), "wrench_delay", 0, 9e-3),
        (change("links", 5, 0.05), "links", 1, 0.05),
    ],
)
def test_the_right_change_is_the_most_likely_one_with_its_size_in_si_units(changed, kind, place, size, seed):
    limb = Limb(seed)
    limb.run(8.0)
    changed(limb)
    limb.run(3.5)
    found = limb.comparison.found
    assert found is not None and (found.kind, found.place) == (kind, place)
    assert found.size == pytest.approx(size, rel=0.3)


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_found_where_nothing_changes_also_after_a_law_was_forgotten(seed):
    limb = Limb(seed)
    limb.run(8.0)
    limb.solution.solve()
    limb.newest.add()
    limb.solution.forget_law(0, 0.05)
    limb.newest.rebase()
    limb.run(5.0)
    assert limb.comparison.found is None


def test_friction_that_changes_is_named_as_such():
    limb = Limb(0)
    limb.run(8.0)
    limb.law[1] += (3.0, 0.0, 3.0)
    limb.run(2.5)
    found = limb.comparison.found
    assert found is not None and (found.kind, found.place) == ("law", 1)


def test_a_limb_that_has_learned_for_less_than_the_compared_seconds_is_not_compared():
    limb = Limb(0)
    limb.run(2.0)
    change("width", 1, 0.5)(limb)
    limb.run(1.5)
    assert limb.comparison.found is None
