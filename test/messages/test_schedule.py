"""When slow topics leave depends on header stamps alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from friction_estimator.messages.outputs import OutputSchedule
from friction_estimator.messages.topics import When

MS = 1_000_000


def slow_stamps(stamps: list[int], rate: float = 50.0) -> list[int]:
    schedule = OutputSchedule(rate)
    return [stamp for stamp in stamps if When.SLOW in schedule.due(stamp)]


def test_slow_topics_leave_at_their_rate() -> None:
    assert slow_stamps([k * MS for k in range(1000)]) == [k * 20 * MS for k in range(50)]


def test_every_sample_carries_the_fast_topics() -> None:
    schedule = OutputSchedule(50.0)
    assert all(When.SAMPLE in schedule.due(k * MS) for k in range(100))


def test_slow_topics_leave_with_every_sample_that_comes_slower() -> None:
    stamps = [k * 100 * MS for k in range(20)]
    assert slow_stamps(stamps) == stamps


def test_markers_leave_at_ten_hertz() -> None:
    schedule = OutputSchedule(50.0)
    shown = [k for k in range(1000) if When.DISPLAY in schedule.due(k * MS)]
    assert shown == list(range(0, 1000, 100))


def test_a_change_leaves_at_once_and_only_once() -> None:
    schedule = OutputSchedule(50.0)
    states = ["stance"] * 5 + ["swing"] * 5
    changed = [k for k, state in enumerate(states) if When.CHANGE in schedule.due(k * MS, state)]
    assert changed == [0, 5]


@given(st.lists(st.integers(0, 10**10), max_size=60), st.integers(0, 60))
def test_what_leaves_from_a_slot_on_does_not_depend_on_when_one_started(stamps: list[int], start: int) -> None:
    stamps = sorted(stamps)
    late = stamps[start:]
    if not late:
        return
    later_slots = [stamp for stamp in late if stamp // (20 * MS) > late[0] // (20 * MS)]
    expected = [stamp for stamp in slow_stamps(stamps) if stamp in later_slots]
    assert [stamp for stamp in slow_stamps(late) if stamp in later_slots] == expected


def test_time_that_jumps_back_starts_anew() -> None:
    assert slow_stamps([500 * MS, 501 * MS, 0, MS]) == [500 * MS, 0]
