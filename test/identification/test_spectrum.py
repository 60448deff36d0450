"""The cut-off lies between motion and noise, at any rate, and says why."""

from __future__ import annotations

import numpy as np
import pytest

from friction_estimator.errors import InputError
from friction_estimator.identification.recording.spectrum import choose_cutoff, joint_spectrum
from friction_estimator.identification.recording.zero_phase import to_motion
from friction_estimator.types import FloatArray
from test.identification.recordings import exact_motion, parallel_filter, recording


@pytest.mark.parametrize("rate", [100.0, 300.0, 1000.0, 5000.0])
def test_the_cutoff_is_above_the_motion_and_below_the_noise_at_any_rate(rate: float) -> None:
    log = recording(rate=rate, encoder=1e-4)
    found = choose_cutoff(log.time, log.position)
    assert 2.0 * 1.7 < found.cutoff_hz < 20.0  # the fastest line of the motion is at 1.7 Hz
    assert 1.7 < found.parallel_hz <= 0.5 * found.cutoff_hz


@pytest.mark.parametrize("encoder", [1e-4, 1e-3, 1e-2])
def test_behind_both_filters_the_acceleration_is_about_as_good_as_with_the_best_cutoff_or_errs_by_a_tenth(
    encoder: float,
) -> None:
    log = recording(encoder=encoder, with_velocity=False)
    exact = exact_motion(log.time)[2]

    def error(cutoff: float | None) -> float:
        motion = to_motion(log, cutoff)
        acceleration, kept = parallel_filter(motion.acceleration, motion)
        rows = (motion.time[kept] > 2.0) & (motion.time[kept] < 18.0)
        return float(np.std((acceleration - exact[np.searchsorted(log.time, motion.time[kept])])[rows]))

    errors = [error(cutoff) for cutoff in (3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0)]
    assert error(None) < max(1.5 * min(errors), 0.11 * float(np.std(exact)))  # a hundredth of its variance
    assert max(errors) > 20.0 * min(errors)


def test_a_finer_encoder_lets_more_through() -> None:
    def cutoff(encoder: float) -> float:
        log = recording(encoder=encoder)
        return choose_cutoff(log.time, log.position).cutoff_hz

    assert cutoff(1e-6) > cutoff(1e-4) > cutoff(3e-2)


def test_vibration_of_a_joint_stays_in_its_motion_and_out_of_the_comparison_with_the_torque() -> None:
    log = recording(encoder=1e-4)
    shaking = 0.004 * np.sin(2.0 * np.pi * 40.0 * log.time)  # 1 rad/s, as fast as the motion
    found = choose_cutoff(log.time, log.position[:, 0] + shaking)
    assert found.cutoff_hz >= 80.0 and found.parallel_hz < 15.0


def test_rounding_is_noise_below_the_rate_at_which_bits_change() -> None:
    position = exact_motion(np.arange(20_000) / 1000.0)[0][:, 0]
    for bit in (1e-2, 1e-3):
        rounded = np.round(position / bit) * bit
        spectrum = joint_spectrum(rounded, 1e-3, 0)
        changes = np.mean(np.abs(np.diff(rounded))) * 1000.0 / bit
        assert spectrum.floor == pytest.approx(bit**2 / 12.0 / min(500.0, changes), rel=0.5)
        assert spectrum.motion_hz < 2.5


def test_the_joint_that_needs_most_decides_for_all_and_one_that_rests_has_no_say() -> None:
    log = recording(encoder=1e-4)
    resting = 1e-4 * np.random.default_rng(0).integers(0, 2, log.time.size)
    found = choose_cutoff(log.time, np.column_stack([log.position, resting]), joint_names=("hip", "knee", "toe"))
    alone = [choose_cutoff(log.time, column).cutoff_hz for column in log.position.T]
    assert found.cutoff_hz == pytest.approx(max(alone))
    assert "hip" in found.reason or "knee" in found.reason


def test_the_cutoff_does_not_exceed_what_the_rate_allows() -> None:
    log = recording(rate=20.0, encoder=0.0)
    found = choose_cutoff(log.time, log.position)
    assert found.cutoff_hz <= 8.0 + 1e-9


def test_the_reason_has_the_share_of_the_torque_that_is_used() -> None:
    log = recording()
    found = choose_cutoff(log.time, log.position, None, log.effort)
    assert f"cut-off {found.cutoff_hz:.3g} Hz" in found.reason
    assert "% or more of the variance of every torque" in found.reason
    assert log.effort is not None
    absent: FloatArray = np.full_like(log.effort, np.nan)
    assert "torque lie" not in choose_cutoff(log.time, log.position, None, absent).reason


def test_without_motion_there_is_no_cutoff() -> None:
    log = recording()
    noise = 1e-3 * np.random.default_rng(1).normal(size=log.time.size)
    with pytest.raises(InputError, match="no joint moves"):
        choose_cutoff(log.time, noise)
    with pytest.raises(InputError, match="no joint moves"):
        choose_cutoff(log.time, np.ones_like(log.position))
    with pytest.raises(InputError, match="needs 32"):
        choose_cutoff(log.time[:20], log.position[:20])
