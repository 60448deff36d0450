"""The fault matrix in short: one live node goes through faults one after the other, and loses nothing."""

from __future__ import annotations

import pytest

from benchmarks.faults.matrix import stream_faults
from benchmarks.faults.node import LiveRun

BEFORE, SECONDS, AFTER = 2.5, 1.7, 1.2
LIVE = ("bursts", "clock_back")


@pytest.fixture(scope="module")
def live(walk, workplace):
    live = LiveRun(walk, workplace, BEFORE, seed=5, namespace="faults")
    try:
        live.start()
        yield live
    finally:
        live.close()


@pytest.mark.parametrize("name", LIVE)
def test_a_live_node_names_or_bridges_a_fault_and_recovers(live, walk, name):
    outcome = live.run(stream_faults(walk)[name], SECONDS, AFTER)
    assert outcome.shortcomings == ()


def test_after_all_faults_the_node_ends_with_exit_code_0_and_zero_torque(live):
    assert live.end() == []
