"""Claims about the check of the data before a training."""

from __future__ import annotations

import re

import numpy as np
import pytest

from friction_estimator.io.robot import Robot
from friction_estimator.learning.training_data import SignalRecording, training_doubts
from test.hopper import HOPPER, hopper_config

ROBOT = Robot("hopper", hopper_config(), HOPPER, None)


def recording(seconds: float = 400.0, speed: float = 1.0, held: float = 0.0, missing: float = 0.0) -> SignalRecording:
    """Walking with a model that is 30 N too light; for a part of the time something carries 100 N."""
    rng, m = np.random.default_rng(0), round(100.0 * seconds)
    inputs = rng.standard_normal((m, 18)).astype(np.float32)
    inputs[:, 2:4] *= speed
    external = 20.0 * rng.standard_normal((m, 8)).astype(np.float32)
    residual = external + rng.standard_normal((m, 8)).astype(np.float32)
    residual[:, 2] += 30.0
    residual[: round(held * m), 2] += 100.0
    return SignalRecording(inputs, residual, external, None, np.array([0]), 0.01)


def test_good_data_raise_no_doubt():
    assert training_doubts([recording()], ROBOT) == ()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (recording(seconds=60.0), "60 s of data are few"),
        (recording(held=0.2), "for 20% of the time a force on the base changes .*first 0.0 s into recording 1"),
        (recording(speed=1e-3), "hardly move, .*: hip, knee"),
    ],
    ids=["few", "held", "still"],
)
def test_poor_data_are_named(data, text):
    (found,) = training_doubts([data], ROBOT)
    assert re.search(text, found)
