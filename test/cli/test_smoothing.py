"""``replay --smooth``: later knowledge makes the same walk better known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from friction_estimator.cli.main import main
from friction_estimator.io.bags.arrays import read_recording


def test_a_smoothed_replay_is_nearer_to_the_truth_than_a_live_one(walk: Path, replayed: Path, tmp_path: Path) -> None:
    assert main(["replay", str(walk), "-o", str(tmp_path / "smoothed"), "--smooth"]) == 0
    live, smoothed = read_recording(replayed), read_recording(tmp_path / "smoothed")
    assert smoothed.truth is not None
    np.testing.assert_array_equal(live.time, smoothed.time)
    early = slice(300, 700)  # before the live stage has identified the law
    errors = [np.sqrt(((one.friction - smoothed.truth)[early] ** 2).mean()) for one in (smoothed, live)]
    assert errors[0] < 0.9 * errors[1]
    assert smoothed.description.smoothing == "at least 2 s ahead"


def test_smoothing_another_observer_is_one_clear_error(
    walk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["replay", str(walk), "-o", str(tmp_path / "out"), "--smooth", "1", "--observer", "momentum"]
    assert main(command) == 1
    assert capsys.readouterr().err.splitlines() == [
        "friction_estimator: error: smoothing needs observer: 'kalman', 'two_stage'; 'momentum' has no smoother"
    ]
