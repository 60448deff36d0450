"""Both sides of the equation go through the same filter, and no filter crosses a gap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from friction_estimator.errors import InputError
from friction_estimator.identification.recording.motion import Motion, to_motion
from friction_estimator.identification.recording.zero_phase import make_parallel_filter
from test.identification.recordings import GRAVITY, INERTIA, cutoff, parallel_filter, recording, torque


@pytest.fixture(scope="module")
def motion() -> Motion:
    return to_motion(recording(encoder=0.0, noise=0.0), cutoff(40.0))


def test_an_equation_that_holds_before_holds_behind(motion: Motion) -> None:
    columns = np.stack([motion.acceleration, np.sin(motion.position), np.sign(motion.velocity)], axis=2)
    chi = np.array([2.0, -3.0, 0.7])
    W, kept = parallel_filter(columns, motion, 10.0)
    y, same = parallel_filter(columns @ chi, motion, 10.0)
    assert np.array_equal(kept, same) and W.shape == (kept.size, 2, 3)
    assert np.allclose(W @ chi, y, atol=1e-9)


def test_inertia_and_gravity_come_back_from_noisy_samples(motion: Motion) -> None:
    log = recording(encoder=1e-3, noise=1.0)
    noisy = to_motion(log)
    assert noisy.effort is not None
    for joint in range(2):
        v = noisy.velocity[:, joint]
        columns = [noisy.acceleration[:, joint], np.sin(noisy.position[:, joint]), v, np.sign(v)]
        W, _ = parallel_filter(np.column_stack(columns), noisy)
        y, _ = parallel_filter(noisy.effort[:, joint], noisy)
        chi = np.linalg.lstsq(W, y, rcond=None)[0]
        assert chi[:2] == pytest.approx([INERTIA[joint], GRAVITY[joint]], rel=0.05)


def test_decimated_samples_do_not_alias(motion: Motion) -> None:
    ripple = np.sin(2.0 * np.pi * 61.0 * motion.time)
    filtered, kept = parallel_filter(ripple, motion, 10.0)
    assert np.all(np.diff(kept) == 20)  # 25 Hz from 500 Hz, 0.8 of the Nyquist frequency
    assert np.abs(filtered).max() < 5e-3


def test_nothing_crosses_a_gap(motion: Motion) -> None:
    log = recording(encoder=0.0, noise=0.0)
    rows = (log.time < 9.0) | (log.time > 9.5)
    cut = to_motion(log.rows(rows), cutoff(40.0))
    before = cut.time < 9.25
    column = np.where(before, 1.0, 1e6)
    filtered, kept = parallel_filter(column, cut, 10.0)
    assert np.allclose(filtered[before[kept]], 1.0) and np.allclose(filtered[~before[kept]], 1e6)
    assert np.diff(cut.time[kept]).max() > 0.5


def test_kept_samples_let_time_and_segments_follow(motion: Motion) -> None:
    line, kept = parallel_filter(motion.time, motion, 10.0)
    assert np.allclose(line, motion.time[kept], atol=1e-9)


def test_the_motions_own_band_is_the_default(motion: Motion) -> None:
    assert make_parallel_filter(motion).cutoff_hz == motion.parallel_hz == 20.0
    with pytest.raises(InputError, match="needs a cut-off"):
        make_parallel_filter(replace(motion, treatment=None))


def test_torque_of_the_exact_motion_is_the_exact_torque(motion: Motion) -> None:
    assert motion.effort is not None
    smooth = np.abs(motion.velocity).min(axis=1) > 0.3  # a sign of the velocity differs only near standstill
    model = torque(motion.position, motion.velocity, motion.acceleration)
    assert np.abs(model - motion.effort)[smooth].max() < 0.02


@pytest.mark.parametrize(("hz", "words"), [(300.0, "cannot be used"), (0.01, "cuts")])
def test_wrong_choices_are_refused_with_the_reason(motion: Motion, hz: float, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parallel_filter(motion.position, motion, hz)


def test_a_missing_number_is_not_spread(motion: Motion) -> None:
    column = motion.position.copy()
    column[700, 1] = np.nan
    with pytest.raises(InputError, match="not finite"):
        parallel_filter(column, motion, 10.0)
