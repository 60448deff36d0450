"""What counts as motion, and the band in which motion and torque are compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from friction_estimator.errors import InputError
from friction_estimator.identification.recording.sampling import (
    BANDS,
    comparison_band,
    motion_band,
    moving_joints,
    signal_to_noise,
)
from test.identification.recordings import recording


@pytest.mark.parametrize("rate", [100.0, 1000.0])
@pytest.mark.parametrize("noise", [1e-5, 1e-2])
def test_the_band_of_the_motion_is_that_of_its_lines_at_any_rate_and_noise(rate: float, noise: float) -> None:
    log = recording(rate=rate, encoder=0.0)
    position = log.position + noise * np.random.default_rng(0).normal(size=log.position.shape)
    for joint, slowest in enumerate((0.83, 0.97)):  # lines of which at least one in a thousand of the variance is above
        assert slowest < motion_band(log.time, position[:, joint]) < 2.0


def test_a_gap_does_not_widen_the_band() -> None:
    log = recording()
    gap = log.rows((log.time < 8.0) | (log.time > 8.3))
    assert comparison_band(gap) == pytest.approx(comparison_band(log), rel=0.2)


def test_noise_is_one_and_a_motion_is_many() -> None:
    rng = np.random.default_rng(1)
    assert signal_to_noise(rng.normal(size=5000)) == pytest.approx(1.0, rel=0.1)
    assert signal_to_noise(np.round(rng.uniform(size=5000))) == 0.0
    assert signal_to_noise(recording().position[:, 0]) > 100.0


def test_a_joint_that_rests_has_no_say_and_without_motion_there_is_no_band() -> None:
    log = recording()
    resting = 1e-4 * np.random.default_rng(0).integers(0, 2, log.time.size)
    three = np.column_stack([log.position, resting])
    assert moving_joints(three).tolist() == [True, True, False]
    whole = replace(log, joint_names=("hip", "knee", "toe"), position=three, velocity=None, effort=None)
    assert comparison_band(whole) == pytest.approx(
        BANDS * max(motion_band(log.time, column) for column in log.position.T)
    )
    noise = 1e-3 * np.random.default_rng(1).normal(size=log.position.shape)
    with pytest.raises(InputError, match="no joint moves"):
        comparison_band(replace(log, position=noise, velocity=None))
