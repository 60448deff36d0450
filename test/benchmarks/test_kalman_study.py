"""Claims of docs/results/kalman.md: the filter's other forms are the same filter."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("mujoco", reason="the runs of the study are simulated")

from benchmarks.kalman.forms import Problem, covariance_form, largest_difference, square_root_form, unscented_form
from benchmarks.kalman.variants import VARIANTS
from friction_estimator.config import KalmanConfig, SensorNoise
from friction_estimator.estimation.kalman.limb_state import Limb, LimbWindow, lay_out
from friction_estimator.io.robot import load_robot
from friction_estimator.laws.joint_laws import JointLaws


@pytest.fixture(scope="module")
def problem() -> Problem:
    rng, config = np.random.default_rng(0), KalmanConfig()
    limb = Limb(np.array([0, 1]), np.array([0]))
    layout = lay_out(limb, JointLaws(("coulomb_viscous",) * 2), config, SensorNoise(), floating=True)
    windows = []
    for _ in range(50):
        columns = rng.normal(size=(2, layout.size))
        columns[:, layout.momentum] = 0.0
        noise = np.diag(rng.uniform(0.5, 2.0, 2))
        windows.append(
            LimbWindow(
                0.01, rng.normal(size=2), columns, noise, rng.normal(size=2) * 0.1, 1e-4 * noise, *np.zeros((2, 2))
            )
        )
    return Problem(layout, config, windows)


def test_unscented_and_square_root_filter_are_the_kalman_filter(problem: Problem) -> None:
    plain = covariance_form(problem)
    moved = np.abs(plain.states[-1] - plain.states[0]).max()
    assert moved > 1e-3
    for other in (square_root_form(problem), unscented_form(problem)):
        assert max(largest_difference(other, plain)) < 1e-6


def test_every_variant_is_a_valid_configuration() -> None:
    for variant in VARIANTS:
        load_robot("suralp", variant.changes)
