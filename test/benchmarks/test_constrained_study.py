"""Claims of docs/results/constrained.md on the rigid walk: figures 6.1-6.3 of Egle 2021."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.constrained.__main__ import GAIT, JOINT, single_support
from benchmarks.constrained.measure import rigid_friction
from benchmarks.constrained.rigid_walk import rigid_walk


@pytest.fixture(scope="module")
def walk(robot):
    return rigid_walk(robot, GAIT, 2.4, "r_knee")


def rms(values: np.ndarray) -> np.ndarray:
    return np.sqrt((values**2).mean(axis=0))


def test_single_support_is_exact_and_double_support_is_not(robot, walk):
    """Figure 6.1: friction of the knee alone is found there and nowhere else."""
    error = rigid_friction(robot, walk, "exact") - walk.friction
    single = walk.contact.sum(axis=1) == 1
    assert single.sum() > 1500
    assert np.abs(error[single]).max() < 1e-8
    assert np.abs(error[~single][:, JOINT]).max() > 0.1


def test_phase_error_of_the_knee_is_larger_in_stance_than_in_swing(robot, walk):
    """Figures 6.2 and 6.3; central differences are far better in both."""
    stance, swing = (single_support(walk, right=stands) for stands in (True, False))
    backward, central = (
        rigid_friction(robot, walk, name)[:, JOINT] - walk.friction[:, JOINT] for name in ("backward", "central")
    )
    assert rms(backward[stance]) > 2.0 * rms(backward[swing])
    assert rms(backward[stance]) > 50.0 * rms(central[stance])
