"""Yardsticks do what they are named after, in blocks that alternate with what is measured."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from benchmarks.speed import yardsticks
from benchmarks.speed.yardsticks import STEPS, interleave, ratio, simulate
from friction_estimator.robot.model import RobotModel


def test_the_floor_calls_what_it_names_on_the_states_of_the_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    walk = simulate("suralp", "walk", 3)
    frames = walk.frames()
    floor, model = yardsticks.Floor(walk.robot, frames), RobotModel(walk.robot.config, walk.robot.urdf_xml)
    assert [frame.stamp_ns for frame in frames] == [sample.joints.stamp_ns for sample in walk.samples]
    assert tuple(floor.model.names[2:]) == model.joint_names == walk.joint_names
    calls: Counter[str] = Counter()

    def counted(name: str) -> Any:
        function = getattr(yardsticks.pin, name)

        def call(*arguments: Any) -> Any:
            calls[name] += 1
            return function(*arguments)

        return call

    names = ("computeAllTerms", "rnea", "getFrameJacobian", "getFrameClassicalAcceleration")
    for name in names:
        monkeypatch.setattr(yardsticks.pin, name, counted(name))
    floor(2)
    assert calls == dict(zip(names, (1, 1, 2, 2), strict=True))
    frame = frames[2]
    dynamics = model.dynamics(frame.position, frame.velocity, frame.angular_velocity, frame.specific_force)
    np.testing.assert_allclose(np.triu(floor.data.M), np.triu(dynamics.mass_matrix), rtol=1e-12, atol=1e-12)


def test_blocks_of_the_cases_alternate_and_count_the_calls() -> None:
    calls: list[tuple[str, int]] = []
    done: list[tuple[float, float]] = []
    cases = {name: lambda k, name=name: calls.append((name, k)) for name in ("a", "b")}
    times = interleave(cases, 2, lambda part, whole: done.append((part, whole)))
    expected = [(name, block * STEPS + k) for block in range(2) for name in ("a", "b") for k in range(STEPS)]
    assert calls == expected and done == [(1, 2), (2, 2)]
    assert all(times[name].shape == (2, STEPS) and np.isfinite(times[name]).all() for name in cases)


def test_the_ratio_is_that_of_the_block_medians() -> None:
    yardstick_times = np.outer([1.0, 2.0, 4.0, 1.0, 1.0], np.ones(STEPS))
    times = yardstick_times * np.array([[3.0], [2.0], [4.0], [5.0], [1.0]])
    times[:, :10] = 1e3  # outliers
    assert ratio(times, yardstick_times) == {"value": 3.0, "low": 2.0, "high": 4.0}
