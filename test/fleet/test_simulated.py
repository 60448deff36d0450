"""A simulated fleet: wear, maintenance and temperature by plan, robots that differ, bags that show it."""

from __future__ import annotations

import pytest

pytest.importorskip("mujoco", reason="MuJoCo is not installed")

from pathlib import Path

import numpy as np

from benchmarks.fleet_walks import MAINTAINED, WORN, FleetPlan
from friction_estimator.io.bags.reader import BagReader

PLAN = FleetPlan(robots=3, days=21, duration=20.0)
DAYS = range(PLAN.days)


def test_a_knee_wears_a_hip_gets_new_lubricant_and_all_other_joints_stay_as_they_are() -> None:
    for robot, leg, place in np.ndindex(PLAN.robots, 2, 6):
        factor = np.array([PLAN.factor(robot, leg, place, day) for day in DAYS]) / PLAN.factor(robot, leg, place, 0)
        if (robot, leg, place) == (0, 0, WORN):
            assert factor == pytest.approx(np.linspace(1.0, 1.4, PLAN.days))
        elif (robot, leg, place) == (PLAN.robots - 1, 1, MAINTAINED):
            assert set(factor[:11]) == {1.0} and factor[11:] == pytest.approx(0.75)
        else:
            assert set(factor) == {1.0}


def test_robots_differ_and_the_friction_of_a_warm_afternoon_is_lower() -> None:
    equal = [PLAN.factor(robot, 0, 0, 0) for robot in range(PLAN.robots)]
    assert len(set(equal)) == PLAN.robots and np.ptp(equal) < 1.0
    walks = [(robot, day) for robot in range(PLAN.robots) for day in DAYS]
    warmth = np.array([PLAN.temperature(*walk) for walk in walks])
    hour = np.array([PLAN.start(*walk).hour for walk in walks])
    assert warmth[(hour >= 13) & (hour < 17)].min() > warmth[hour < 8].max()
    friction = [PLAN.friction(1, 0, 0, day).parameters[5] for day in DAYS]
    assert np.corrcoef(friction, [PLAN.temperature(1, day) for day in DAYS])[0, 1] < -0.99


def test_bags_have_the_time_length_and_temperature_of_the_plan_and_two_are_broken(fleet_bags: Path) -> None:
    plan = FleetPlan(robots=2, days=2, duration=2.0)
    for robot, day in np.ndindex(plan.robots, plan.days):
        start = plan.start(robot, day)
        reader = BagReader(fleet_bags / f"unit_{robot + 1}" / f"{start:%Y-%m-%d_%H%M}")
        assert reader.start_ns * 1e-9 == pytest.approx(start.timestamp(), abs=0.01)
        assert (reader.end_ns - reader.start_ns) * 1e-9 == pytest.approx(plan.bag_duration(robot, day), abs=0.05)
        (message,) = reader.messages(["/temperature"])
        assert reader.decode(message).temperature == plan.temperature(robot, day)
    assert "cut off" in BagReader(fleet_bags / "unit_1" / "cut_off").damage
    assert [file.suffix for file in (fleet_bags / "unit_1" / "lost").iterdir()] == [".yaml"]
