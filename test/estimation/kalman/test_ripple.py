"""Claims about friction that changes periodically with the position of the motors, and about finding that."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.kalman.ripple import RippleSearch
from friction_estimator.metrics import joint_errors
from test.biped import suralp_config
from test.feeding import feed, stacked
from test.sway import SwayInstant, sway

DRY, VISCOUS, MOTORS = 2.0, 1.0, 6


def searched(ripples: float, amplitude: float, windows: int = 600, noise: float = 1.0) -> int:
    """What a search finds whose motors swing by different ranges, with noise and now and then an impact."""
    rng, search = np.random.default_rng(5), RippleSearch(MOTORS)
    swing, rate = np.linspace(0.1, 0.4, MOTORS), np.linspace(3.0, 7.0, MOTORS)
    for time in 0.01 * np.arange(windows):
        position, speed = swing * np.sin(rate * time), swing * rate * np.cos(rate * time)
        torque = DRY * np.sign(speed) + VISCOUS * speed
        missed = torque * amplitude * np.sin(ripples * position + 0.7) + noise * rng.normal(size=MOTORS)
        missed[rng.random(MOTORS) < 0.02] = 100.0
        missed[rng.random(MOTORS) < 0.02] = np.nan
        search.add(
            position, speed, torque[:, None], np.ones((MOTORS, 1)), np.stack((missed, np.full(MOTORS, noise**2)))
        )
    return search.found()


@pytest.mark.parametrize("ripples", [40, 60, 200])
def test_the_number_of_ripples_a_turn_is_found_to_one(ripples):
    assert abs(searched(ripples, 0.3) - ripples) <= 1


def test_no_ripple_is_found_where_there_is_none_or_only_a_little():
    assert searched(60, 0.0) == 0
    assert searched(60, 0.02, windows=3000) == 0
    assert RippleSearch(MOTORS).found() == 0


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


def test_friction_with_a_ripple_is_followed_once_the_ripple_is_found(urdf_xml):
    instants = rippling(list(sway(urdf_xml, 4.0, amplitude=0.02, turn=0.05)), 240, 0.3)
    estimator = Estimator(suralp_config(momentum__input_hold="trapezoid"), urdf_xml)
    estimates = feed(estimator, instants) + estimator.flush()
    truth = np.array([instant.friction for instant in instants])
    late = np.arange(len(truth))[:, None] >= 3000
    sigma = stacked(estimates, "sigma")
    errors = joint_errors(stacked(estimates, "friction"), truth, sigma, np.tile(late, (1, 12)))
    assert errors.relative_rmse.max() < 0.1
    assert (np.abs(stacked(estimates, "friction") - truth) < 3.0 * sigma)[3000:].mean() > 0.95
