"""Claims about the comparison of hypotheses: what has changed is named, and what has not is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.kalman.hypotheses import TABLE, hypotheses_of
from friction_estimator.robot.model import RobotModel
from test.hopper import HOPPER, hopper_config, hopping

LEARN, FAULT = 2000, 750
"""Good instants, and those with a fault; 250 a second."""
Change = Callable[[Any], Any]


def joints(field: str, change: Callable[[np.ndarray], np.ndarray]) -> Change:
    return lambda one: replace(one, joints=replace(one.joints, **{field: change(getattr(one.joints, field))}))


HIP, KNEE = np.array([1.0, 0.0]), np.array([0.0, 1.0])
CHANGES: dict[str, tuple[Change, str]] = {
    "nothing": (lambda one: one, ""),
    "sign of effort": (joints("effort", lambda tau: tau - 2.0 * tau * KNEE), "the effort of joint 'knee' has the opp"),
    "unit of effort": (joints("effort", lambda tau: tau + 2.0 * tau * HIP), "the effort of joint 'hip' is 3 times"),
    "gain": (joints("effort", lambda tau: tau + 0.2 * tau * HIP), "the effort of joint 'hip' has become 1.20 times"),
    "velocity": (joints("velocity", lambda dq: dq + 9.0 * dq * KNEE), "position of joint 'knee' changes 0.1 times"),
}


def add(estimator: Estimator, one: Any) -> None:
    for reading in (one.wrench, one.imu, one.joints):
        estimator.add(reading)


@pytest.mark.parametrize("kind", CHANGES)
def test_what_has_changed_is_named_with_its_size(kind: str) -> None:
    change, text = CHANGES[kind]
    estimator, found = Estimator(hopper_config(), HOPPER), list[str]()
    samples = hopping(0, LEARN + FAULT)
    for one in samples[:LEARN]:
        add(estimator, one)
    assert estimator.health.findings == ()
    for one in samples[LEARN:]:
        add(estimator, change(one))
        found += [finding for finding in estimator.health.findings if "does not fit" not in finding]
    assert all(text in one for one in found) and bool(found) == bool(text)


def test_what_two_causes_explain_alike_stays_unexplained() -> None:
    """On a foot that rests, this slow motion shows an offset of the hip as another mass of either link."""
    estimator, found = Estimator(hopper_config(), HOPPER), set[str]()
    samples, change = hopping(0, LEARN + FAULT // 2), joints("position", lambda q: q + 0.1 * HIP)
    for one in samples[:LEARN]:
        add(estimator, one)
    for one in samples[LEARN:]:
        add(estimator, change(one))
        found.update(estimator.health.findings)
    (finding,) = found
    assert "'hip' does not fit any more" in finding


def test_a_wrong_sensor_is_in_doubt_until_it_is_right_again() -> None:
    estimator = Estimator(hopper_config(), HOPPER)
    samples = hopping(0, LEARN + 2 * FAULT)
    for one in samples[:LEARN]:
        add(estimator, one)
    for one in samples[LEARN : LEARN + FAULT]:
        add(estimator, CHANGES["unit of effort"][0](one))
    assert "is 3 times" in " ".join(estimator.doubts())
    for one in samples[LEARN + FAULT :]:
        add(estimator, one)
    assert estimator.health.findings == ()


def test_every_row_of_the_table_has_its_columns() -> None:
    robot = RobotModel(hopper_config(), HOPPER)
    hypotheses = hypotheses_of(robot, np.ones((2, 3)))
    assert {one.name for one in hypotheses} == {row.name for row in TABLE}
    ends = [one.columns.stop for one in hypotheses]
    assert [one.columns.start for one in hypotheses] == [0, *ends[:-1]]
    assert all(one.std.shape == (one.columns.stop - one.columns.start,) for one in hypotheses)
