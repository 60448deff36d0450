"""The benchmark of Coulomb and viscous friction: sigma is right after ten seconds of walking."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("mujoco")

from benchmarks.coulomb_viscous import measure


def test_ten_seconds_of_walking_give_coulomb_and_viscous_friction_with_a_sigma_that_is_right_and_small():
    lines = measure("suralp", "walk", "realistic", seed=0, observer="kalman", duration=10.0)
    assert (lines.sigma.max(axis=1) <= 0.1 * lines.largest).all()
    assert np.mean(np.abs(lines.error) <= 2.0 * lines.sigma) >= 0.9
    assert np.mean(np.abs(lines.parameter_error) <= 2.0 * lines.parameter_sigma) >= 0.9
