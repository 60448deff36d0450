"""The live rows: messages with new stamps, and one short measurement with all processes."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.shared.bag_messages import BagMessageTypes, write_message
from benchmarks.speed import live
from benchmarks.speed.live_nodes import with_stamp
from benchmarks.speed.rows import Options, Run, measure
from benchmarks.speed.yardsticks import simulate
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.bags.writer import BagWriter
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import header_stamp, stamp_of
from test.headers import make_header

NEW = 1_700_000_000_123_456_789


def test_a_new_stamp_changes_nothing_else_of_a_serialized_message(tmp_path: Path) -> None:
    walk = simulate("suralp", "walk", 2)
    walk.write(tmp_path / "bag", 2)
    reader = BagReader(tmp_path / "bag")
    messages = list(reader.messages())
    assert len(messages) == 8
    for message in messages:
        assert stamp_of(message.raw) == message.time_ns
        changed = with_stamp(message.raw, NEW)
        assert header_stamp(reader.decode(message._replace(raw=changed))) == NEW
        assert with_stamp(changed, message.time_ns) == message.raw


@pytest.mark.slow
def test_the_node_row_measures_with_robot_node_yardstick_and_listener(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_WARM_UP", 1.0)
    monkeypatch.setattr(live, "_WALK_SAMPLES", 1000)
    result = measure("node", Run(Options(node_seconds=3.0), tmp_path), lambda done, total: None)
    assert result.failed == result.skipped == ""
    cpu, lost, *ages = result.figures
    assert cpu.value > 0.0 and 0 <= lost.value < 3000
    assert len(ages) == 3 and all(
        math.isfinite(age) for figure in ages for age in (figure.value, *figure.details.values())
    )


def test_ages_count_every_stamp_of_the_window_once() -> None:
    heard = np.array([(1, 5_000_001), (2, 1_000_002), (2, 9_000_002), (3, 3_000_003), (4, 4_000_004)])
    np.testing.assert_allclose(live._ages(heard, np.array([2, 4])), [1.0, 3.0])


def test_the_delay_of_the_demo_is_that_of_the_last_report_of_the_simulator(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "bag") as writer:
        types = BagMessageTypes()
        for stamp in (1_000_000_000, 2_000_000_000):
            message = types.make(topics.JOINT_STATE, header=make_header(types, stamp, ""))
            write_message(writer, "joint_states", stamp, message)
        for name, stamp in (("simulation: samples", 2_500_000_000), ("friction_estimator: estimates", 3_000_000_000)):
            status = types.make("diagnostic_msgs/msg/DiagnosticStatus", level=0, name=name)
            array = types.make(
                "diagnostic_msgs/msg/DiagnosticArray", header=make_header(types, stamp, ""), status=[status]
            )
            write_message(writer, "diagnostics", stamp, array)
    assert live._behind(tmp_path / "bag") == pytest.approx(0.5)
