"""Claims about the events of an estimator: none is lost while they are few, none is repeated while it lasts."""

from __future__ import annotations

from friction_estimator.estimation.health import EVENTS_KEPT, Health

SECOND = 1_000_000_000


def test_events_of_different_kinds_are_all_kept_in_order():
    health = Health()
    health.add_event("gap", 1 * SECOND, "no joint states")
    health.add_lasting_event("missing_effort", 1 * SECOND, "no effort")
    assert [event.code for event in health.events] == ["gap", "missing_effort"]
    assert str(health.events[0]) == "at 1.000 s: no joint states"


def test_a_condition_that_lasts_is_one_event_and_another_one_when_it_comes_back():
    health = Health()
    for stamp in (1, 2, 3, 4, 20, 21, 2):
        health.add_lasting_event("repeated_stamp", stamp * SECOND, "no new stamp")
    assert [event.stamp_ns for event in health.events] == [1 * SECOND, 20 * SECOND, 2 * SECOND]


def test_restarts_in_quick_succession_are_one_event_and_all_are_counted():
    health = Health()
    for restart in range(400):
        health.gaps, health.frames = health.gaps + 1, health.frames + 1
        health.add_restart("gap", restart * 3600 * SECOND, "no joint states for 3600 s")
    health.frames += 2000
    health.add_restart("time_jump", 7 * SECOND, "time jumped back by 3 s")
    assert [event.code for event in health.events] == ["gap", "time_jump"] and health.restarts == 400
    assert str(health.events[1]) == "at 7.000 s: time jumped back by 3 s: filters restarted"


def test_the_newest_events_are_kept_and_all_are_counted():
    health = Health()
    for stamp in range(3 * EVENTS_KEPT):
        health.add_event("gap", stamp, "no joint states")
    assert health.event_count == 3 * EVENTS_KEPT and len(health.events) == EVENTS_KEPT
    assert [event.stamp_ns for event in health.events_since(3 * EVENTS_KEPT - 2)] == [58, 59]
    assert len(health.events_since(0)) == EVENTS_KEPT and health.events_since(health.event_count) == ()


def test_a_restart_after_an_error_names_its_class_so_that_a_bug_is_not_taken_for_numbers_that_are_not_finite():
    health = Health()
    health.add_error_restart("attitude", 1 * SECOND, ValueError("operands could not be broadcast together"))
    (event,) = health.events
    assert event.text == "attitude restarted: ValueError: operands could not be broadcast together"
    assert health.error_restarts == 1
