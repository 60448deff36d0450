"""Claims about friction that changes periodically with the position of the motors, and about finding that."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from friction_estimator.errors import ConfigError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.kalman.ripple import RippleSearch
from friction_estimator.estimation.smoothing import SmoothedEstimator
from friction_estimator.io.parameters import load_parameters, save_parameters
from friction_estimator.laws.linear import RIPPLE_TERMS
from friction_estimator.metrics import joint_errors
from friction_estimator.types import FloatArray, FrictionEstimate
from test.biped import suralp_config
from test.feeding import feed, stacked
from test.sway import SwayInstant, sway

DRY, VISCOUS, MOTORS = 2.0, 1.0, 6


def searched(
    ripples: float,
    amplitude: float | FloatArray,
    windows: int = 600,
    noise: float = 1.0,
    bump: float = 0.0,
    known: int = 0,
) -> int:
    """What two looks find of motors that swing by different ranges, with noise and now and then an impact.

    With a ``bump``, friction is larger by this part of it within a hundredth of a radian of one position.
    """
    rng, search = np.random.default_rng(5), RippleSearch(MOTORS)
    swing, rate = np.linspace(0.1, 0.4, MOTORS), np.linspace(3.0, 7.0, MOTORS)
    for time in 0.01 * np.arange(windows):
        position, speed = swing * np.sin(rate * time), swing * rate * np.cos(rate * time)
        torque = DRY * np.sign(speed) + VISCOUS * speed
        missed = torque * amplitude * np.sin(ripples * position + 0.7) + noise * rng.normal(size=MOTORS)
        missed += torque * bump * (np.abs(position - 0.05) < 0.01)
        missed[rng.random(MOTORS) < 0.02] = 100.0
        missed[rng.random(MOTORS) < 0.02] = np.nan
        search.add(
            position,
            speed,
            torque[:, None],
            np.ones((MOTORS, 1)),
            np.stack((missed, np.full(MOTORS, noise**2))),
            slice(1, 1),
        )
    first = search.detect(known)
    assert known or first == 0  # one look alone finds no ripple
    return search.detect(known)


@pytest.mark.parametrize("ripples", [40, 60, 200])
def test_the_number_of_ripples_a_turn_is_found_to_one(ripples):
    assert abs(searched(ripples, 0.3) - ripples) <= 1


@pytest.mark.parametrize("known", [56, 58, 60, 61, 63])
def test_more_windows_correct_a_number_that_was_found_before(known):
    assert searched(60, 0.3, windows=3000, known=known) == 60
    assert searched(60, 0.0, windows=3000, known=known) == known


def test_no_ripple_is_found_where_there_is_none_or_only_a_little():
    assert searched(60, 0.0) == 0
    assert searched(60, 0.02, windows=3000) == 0
    assert RippleSearch(MOTORS).detect() == 0


def test_a_ripple_is_in_most_motors_or_it_is_something_else():
    assert searched(60, np.array([0.0, 0.0, 0.0, 0.3, 0.3, 0.3]), windows=3000) == 0
    assert searched(60, np.array([0.25, 0.25, 0.25, 0.3, 0.3, 0.3]), windows=3000) == 60


def test_friction_that_is_larger_at_one_position_is_no_ripple():
    assert searched(60, 0.0, windows=3000, bump=2.0) == 0


def rippling(instants: list[SwayInstant], ripples: int, amplitude: float) -> list[SwayInstant]:
    """The same motion with friction that changes with the positions of the joints."""
    changed = []
    for instant in instants:
        velocity = instant.joints.velocity
        friction = DRY * np.tanh(velocity / 0.01) + VISCOUS * velocity
        friction *= 1.0 + amplitude * np.sin(ripples * instant.joints.position)
        joints = dataclasses.replace(instant.joints, effort=instant.joints.effort + friction - instant.friction)
        changed.append(dataclasses.replace(instant, joints=joints, friction=friction))
    return changed


CONFIG = suralp_config(momentum__input_hold="trapezoid")


RIPPLES = 200


@pytest.fixture(scope="module")
def motion(urdf_xml) -> list[SwayInstant]:
    return list(sway(urdf_xml, 5.0, amplitude=0.02, turn=0.05))


@pytest.fixture(scope="module")
def instants(motion) -> list[SwayInstant]:
    return rippling(motion, RIPPLES, 0.3)


@pytest.fixture(scope="module")
def found(urdf_xml, instants) -> tuple[Estimator, list[FrictionEstimate]]:
    """An estimator that has seen the motion with ripples, and its estimates."""
    estimator = Estimator(CONFIG, urdf_xml)
    return estimator, feed(estimator, instants) + estimator.flush()


def assert_follows(
    estimates: Sequence[FrictionEstimate], instants: Sequence[SwayInstant], settled: int, most: float = 0.15
) -> None:
    """The estimates are right, and sigma is, from this sample on; a number that is wrong by one costs a tenth."""
    friction, sigma, truth = (
        stacked(estimates, "friction"), stacked(estimates, "sigma"), np.array([one.friction for one in instants])
    )  # fmt: skip
    late = np.tile(np.arange(len(truth))[:, None] >= settled, (1, 12))
    assert joint_errors(friction, truth, sigma, late).relative_rmse.max() < most
    assert (np.abs(friction - truth) < 3.0 * sigma)[late].mean() > 0.95


def test_a_ripple_is_found_and_reported_and_the_next_run_begins_with_it(urdf_xml, instants, found, tmp_path):
    estimator, estimates = found
    assert_follows(estimates, instants, 4000)
    (event,) = estimator.health.events
    assert event.code == "ripple" and f"{estimator.identified.ripples[0]:.0f} periods per turn" in event.text
    assert abs(estimator.identified.ripples - RIPPLES).max() <= 1.0

    save_parameters(tmp_path / "law.yaml", estimator.identified)
    saved = load_parameters(tmp_path / "law.yaml")
    for name in ("ripples", "ripple", "ripple_covariance"):
        np.testing.assert_array_equal(getattr(saved, name), getattr(estimator.identified, name))

    again = Estimator(CONFIG, urdf_xml)
    again.restore(saved)
    assert_follows(feed(again, instants[:1500]) + again.flush(), instants[:1500], 100)
    assert not again.health.events

    (note,) = Estimator(suralp_config(observer="fbse", identifier__law="six_slope_load"), urdf_xml).restore(saved)
    assert "the saved presliding and ripple are not used" in note


def test_parameters_with_and_without_ripple_are_restored_whatever_the_run_has_found(urdf_xml, motion):
    plain, rippled = (Estimator(CONFIG, urdf_xml) for _ in range(2))
    feed(plain, motion[:1500])
    rippled.restore(dataclasses.replace(plain.identified, **some_ripple(60.0)))
    assert rippled.identified.has_ripple
    with_ripple, without = rippled.identified, plain.identified

    plain.restore(with_ripple)  # its friction has no ripple: the filter learns that the terms are small
    assert plain.identified.has_ripple
    assert_follows(feed(plain, motion[:1500]) + plain.flush(), motion[:1500], 1000)
    plain.restore(without)  # this file contains no ripple
    assert plain.identified.has_ripple
    plain.restore(dataclasses.replace(without, **some_ripple(100.0)))
    assert (plain.identified.ripples == 100.0).all()
    plain.reset_to_prior()
    assert not plain.identified.has_ripple


def some_ripple(ripples: float) -> dict[str, FloatArray]:
    """Fields of identified parameters with a ripple that is known a little."""
    t = len(RIPPLE_TERMS)
    covariance = np.tile(0.04 * np.eye(t), (12, 1, 1))
    return {"ripples": np.full(12, ripples), "ripple": np.full((12, t), 0.2), "ripple_covariance": covariance}


@pytest.mark.parametrize("wrong", [-1.0, 1e300, np.nan])
def test_ripples_that_no_gear_has_are_refused(urdf_xml, wrong):
    estimator = Estimator(CONFIG, urdf_xml)
    with pytest.raises(ConfigError, match="'ripples' of the joint 'l_hip_yaw'"):
        estimator.restore(dataclasses.replace(estimator.identified, **some_ripple(wrong)))


def test_smoothed_estimates_have_the_ripple_before_it_is_found_too(urdf_xml, instants):
    estimator = SmoothedEstimator(CONFIG, urdf_xml, np.inf)
    assert_follows(feed(estimator, instants) + estimator.flush(), instants, 100)
    assert [event.code for event in estimator.health.events] == ["ripple"]


def test_a_saved_number_of_ripples_that_is_wrong_is_corrected_and_the_waves_are_kept(urdf_xml, motion):
    """Sine and cosine are turned so that friction stays the same where the joints are, in ranges of 0.1 to 0.5 rad."""
    instants = rippling(motion, 240, 0.3)
    first = Estimator(CONFIG, urdf_xml)
    feed(first, instants)
    saved, again = first.identified, Estimator(CONFIG, urdf_xml)
    again.restore(dataclasses.replace(saved, ripples=saved.ripples + 6.0))
    estimates = feed(again, instants) + again.flush()
    assert again.health.events[0].code == "ripple"
    assert (np.abs(again.identified.ripples - 240.0) <= 3.0).all()
    assert_follows(estimates, instants, 4000, most=0.2)
