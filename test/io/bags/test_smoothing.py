"""replay with ``smooth``: the same topics and stamps, later knowledge, and errors that name the choices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from friction_estimator.errors import ConfigError
from friction_estimator.io.bags.arrays import read_recording
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.bags.replay import replay_bag
from friction_estimator.io.robot import Robot
from friction_estimator.messages.recording import RunDescription

Recorded = list[tuple[str, int, Any]]
WriteBag = Callable[..., Path]


def stamps(bag: Path) -> list[tuple[str, int]]:
    return sorted((item.topic, item.time_ns) for item in BagReader(bag).messages() if "truth" not in item.topic)


def test_a_smoothed_bag_has_the_topics_of_a_live_one_and_is_marked_as_smoothed(
    robot: Robot, messages: Recorded, write_bag: WriteBag, tmp_path: Path
) -> None:
    bag = write_bag("bag", messages)
    live = replay_bag(bag, tmp_path / "live", robot.config, robot.urdf_xml)
    smoothed = replay_bag(bag, tmp_path / "smoothed", robot.config, robot.urdf_xml, smooth=2.0)
    assert smoothed.estimates == live.estimates
    a, b = read_recording(tmp_path / "live"), read_recording(tmp_path / "smoothed")
    assert {item.topic for item in BagReader(tmp_path / "live").messages()} == {
        item.topic for item in BagReader(tmp_path / "smoothed").messages()
    }
    np.testing.assert_array_equal(a.time, b.time)
    np.testing.assert_array_equal(a.position, b.position)
    assert np.isfinite(b.friction).all() and (b.sigma > 0.0).all()
    reader = BagReader(tmp_path / "smoothed")
    assert RunDescription.from_custom_data(reader.custom_data).smoothing == "at least 2 s ahead"
    assert a.description.smoothing == ""


def test_smoothed_estimates_are_recorded_at_the_time_of_their_joint_sample(
    robot: Robot, messages: Recorded, write_bag: WriteBag, tmp_path: Path
) -> None:
    replay_bag(write_bag("bag", messages), tmp_path / "out", robot.config, robot.urdf_xml, smooth=np.inf)
    friction = [time for topic, time in stamps(tmp_path / "out") if topic == "/joint_friction"]
    assert friction == [time for topic, time, _ in messages if topic == "joint_states"]


@pytest.mark.parametrize(
    ("changes", "smooth", "reason"),
    [
        (
            {"observer": "constrained"},
            2.0,
            "smoothing needs observer: 'kalman', 'two_stage'; 'constrained' has no smoother",
        ),
        ({}, 0.0, "the smoother must look ahead: 0 s is not a positive time"),
    ],
)
def test_what_cannot_be_smoothed_is_refused(
    robot: Robot,
    messages: Recorded,
    write_bag: WriteBag,
    tmp_path: Path,
    changes: dict[str, Any],
    smooth: float,
    reason: str,
) -> None:
    with pytest.raises(ConfigError, match=reason):
        replay_bag(
            write_bag("bag", messages),
            tmp_path / "out",
            replace(robot.config, **changes),
            robot.urdf_xml,
            smooth=smooth,
        )
    assert not (tmp_path / "out").exists()
