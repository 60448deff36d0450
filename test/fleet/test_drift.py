"""Friction over months: wear is found and dated, and neither temperature nor outliers are taken for it."""

# ruff: noqa: E402  (what the imports need may be missing)

from __future__ import annotations

import pytest

pytest.importorskip("distributed", reason="the extra 'fleet' is not installed")

import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.fleet_drift import IN_TIME, JOINTS, WEAR, Case, simulate_table
from friction_estimator import fleet
from friction_estimator.cli.main import main
from friction_estimator.errors import ConfigError
from friction_estimator.fleet.changes import find_changes
from friction_estimator.fleet.series import day_series, joint_series
from friction_estimator.fleet.wear import LEAST_PROBABILITY, LOWER, STEADY, WORN, drift_of_series, find_drift

ROBOTS, THRESHOLD = 4, 0.1
COLD = Case(bags=3, colder=20.0)
"""The place gets colder by 20 K, which makes friction grow by 20 %."""


@pytest.fixture(scope="module")
def simulated():
    return simulate_table(COLD, np.random.default_rng(3), ROBOTS)


@pytest.fixture(scope="module")
def drift(simulated):
    return find_drift(simulated[0], THRESHOLD)


def number(joint) -> int:
    return int(joint.days.series.serial[5:]) * JOINTS + int(joint.days.series.joint[6:])


def test_worn_joints_are_found_and_no_other_although_it_gets_colder(simulated, drift) -> None:
    _, truth = simulated
    worn = {int(k) for k in np.flatnonzero(truth.wear[:, -1] >= 0.15)}
    assert {number(joint) for joint in drift.worn} == worn and len(worn) == ROBOTS * JOINTS // 10
    assert [joint.state for joint in drift.joints[: len(worn)]] == [WORN] * len(worn)  # the worst first
    for joint in drift.worn:
        assert abs(joint.growth - WEAR) < 3.0 * joint.growth_sigma < 0.2
        assert 0.05 < joint.temperature_effect < 0.35
        assert "check" in joint.verdict and "temperature explains +" in joint.verdict


def test_without_temperatures_a_drift_of_the_whole_fleet_is_wander_and_not_wear(simulated, drift) -> None:
    rows, truth = simulated
    place = rows.schema.get_field_index("temperature")
    unknown = pa.nulls(rows.num_rows, pa.float64())
    blind = find_drift(rows.set_column(place, rows.schema.field(place), unknown), THRESHOLD)
    healthy = [joint for joint in blind.joints if truth.wear[number(joint), -1] == 0.0]
    assert np.median([np.ptp(joint.days.value[[0, -1]]) for joint in healthy]) > 0.05  # the cold is there
    assert {joint.state for joint in healthy} <= {STEADY, LOWER}
    assert blind.joints[0].days.slow.sum() > 3.0 * drift.joints[0].days.slow.sum()


def test_new_lubricant_is_a_step_down_on_its_day_and_no_wear(simulated, drift) -> None:
    _, truth = simulated
    (lubricated,) = truth.lubricated
    joint = next(joint for joint in drift.joints if number(joint) == lubricated)
    assert joint.state == LOWER and abs(joint.drop + 0.25) < 3.0 * joint.drop_sigma
    (change,) = joint.changes
    first_day = joint.days.day[0]
    assert change.kind == "step" and change.probability > 0.99
    assert change.earliest <= first_day + truth.lubricated_on[0] <= change.latest + 1.0
    assert "maintenance" in joint.verdict


def test_coulomb_friction_that_has_grown_four_days_ago_is_named_as_the_part_that_has_grown() -> None:
    rows, _ = simulate_table(Case(bags=3, colder=0.0), np.random.default_rng(8), 1)
    start = rows["start"].to_numpy()
    late = (start >= start.max().astype("datetime64[D]") - np.timedelta64(3, "D")) & (
        rows["joint"].to_numpy() == "joint_00"
    )
    grown = pa.array(rows["coulomb"].to_numpy() * np.where(late, 1.5, 1.0))
    place = rows.schema.get_field_index("coulomb")
    drift = find_drift(rows.set_column(place, rows.schema.field(place), grown), THRESHOLD)
    joint = next(joint for joint in drift.worn if joint.days.series.joint == "joint_00")
    (coulomb, coulomb_sigma), (viscous, viscous_sigma) = joint.coulomb, joint.viscous
    assert abs(coulomb - 0.5) < 3.0 * coulomb_sigma < 0.3
    assert abs(viscous) < 3.0 * viscous_sigma < 0.2


def test_sigma_that_is_too_small_in_the_table_is_found_out() -> None:
    rows, _ = simulate_table(Case(sigma=0.1, stated=0.3, colder=0.0), np.random.default_rng(4), 1)
    right, _ = simulate_table(Case(sigma=0.1, stated=1.0, colder=0.0), np.random.default_rng(4), 1)
    trusted, true = (
        np.median([np.median(joint.days.variance) for joint in find_drift(table, THRESHOLD).joints])
        for table in (rows, right)
    )
    assert 0.6 < trusted / true < 1.6


def test_wear_is_found_within_a_week_of_15_percent_although_neighbouring_days_are_alike() -> None:
    rows, truth = simulate_table(Case(memory=0.7), np.random.default_rng(6), ROBOTS)
    series = joint_series(rows)
    alike = float(np.median([days.slow.sum() for days in day_series(series)]))
    assert 0.6 < alike / Case().day ** 2 < 1.4
    for k in np.flatnonzero(truth.wear[:, -1] >= 0.15):
        evening = float(np.floor(series[0].time[0])) + np.flatnonzero(truth.wear[k] >= 0.15)[0] + IN_TIME
        found = drift_of_series([one.where(one.time < evening + 1.0) for one in series], THRESHOLD)
        assert k in {number(joint) for joint in found.worn}
        assert all(truth.wear[number(joint), -1] > 0.0 for joint in found.worn)


def test_the_noise_of_days_is_the_same_where_bags_are_rare() -> None:
    series = joint_series(simulate_table(Case(bags=3, colder=0.0), np.random.default_rng(6), 2)[0])
    rare = [one.where(np.floor(one.time) % 3 == 0) for one in series]
    rarely, daily = (np.median([np.median(one.variance) for one in day_series(fleet)]) for fleet in (rare, series))
    assert 0.5 < rarely / daily < 2.0


def test_few_days_give_no_verdict_and_old_bags_can_be_left_out(simulated, tmp_path: Path) -> None:
    pq.write_table(simulated[0], tmp_path / "all.parquet")
    recent = fleet.drift(tmp_path, since=datetime(2026, 2, 28))
    assert {joint.state for joint in recent.joints} == {"too few days"}
    with pytest.raises(ConfigError, match="there is no friction since 2027-01-01"):
        fleet.drift(tmp_path, since=datetime(2027, 1, 1))


def test_the_command_leaves_out_old_bags_by_date_or_age(
    simulated, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(simulated[0], tmp_path / "all.parquet")
    assert main(["fleet", "drift", str(tmp_path), "--since", "2026-02-28"]) == 0
    assert f"0 of {ROBOTS * JOINTS} joints are worn" in capsys.readouterr().out
    assert main(["fleet", "drift", str(tmp_path), "--since", "0d"]) == 1
    assert "there is no friction since" in capsys.readouterr().err
    with pytest.raises(SystemExit) as end:
        main(["fleet", "drift", str(tmp_path), "--since", "yesterday"])
    assert end.value.code == 2 and "'yesterday' is no date such as 2026-01-31" in capsys.readouterr().err


def test_one_wrong_day_is_no_wear(drift) -> None:
    for joint in (one for one in drift.joints if one.state == STEADY):
        value = joint.days.value.copy()
        value[-2] += 1.0
        wrong = find_changes(replace(joint.days, value=value))
        assert wrong.growth.above(np.log1p(THRESHOLD)) < LEAST_PROBABILITY
        assert abs(wrong.growth.mean - np.log1p(joint.growth)) < 2.0 * max(wrong.growth.sigma, 0.01)


def test_the_command_ends_with_three_for_wear_and_writes_the_page(
    simulated, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, truth = simulated
    page = tmp_path / "drift.html"
    pq.write_table(rows, tmp_path / "all.parquet")
    assert main(["fleet", "drift", str(tmp_path), "-o", str(page)]) == 3
    printed = capsys.readouterr().out
    worn = [k for k in np.flatnonzero(truth.wear[:, -1] >= 0.15)]
    names = [f"joint_{k % JOINTS:02d} of unit_{k // JOINTS:02d}" for k in worn]
    text = page.read_text()
    assert all(f"{name}: friction +" in printed for name in names)
    assert all(name in text for name in names)
    places = re.findall(r'<[a-z]+[^>]*\sid="([^"]+)"', text)
    assert {"time", "figure-time", "figure-temperature"} <= set(places) and len(places) == len(set(places))
    assert main(["fleet", "drift", str(tmp_path), "--threshold", "0.8"]) == 0
    healthy = rows.filter(pc.equal(rows["serial"], "unit_00"))
    assert {joint.state for joint in find_drift(healthy, 0.8).joints} <= {STEADY, LOWER}


def test_links_of_the_page_lead_to_the_newest_reports_that_are_there(simulated, tmp_path: Path) -> None:
    rows, page = simulated[0], tmp_path / "drift.html"
    place = rows.schema.get_field_index("report")
    reported = rows.set_column(place, rows.schema.field(place), pa.array(["reports/newest.html"] * rows.num_rows))
    half = pc.less(rows["start"], pa.scalar(datetime(2026, 2, 1), rows["start"].type))
    for folder, part in (("older", half), ("newer", pc.invert(half))):
        (tmp_path / folder / "replay").mkdir(parents=True)
        pq.write_table(reported.filter(part), tmp_path / folder / "replay" / "rows.parquet")
    (tmp_path / "newer" / "reports").mkdir()
    (tmp_path / "newer" / "reports" / "newest.html").touch()
    fleet.drift([tmp_path / "older", tmp_path / "newer" / "replay"], page=page)
    assert 'href="newer/reports/newest.html"' in page.read_text()
    fleet.drift(tmp_path / "older", page=page)
    assert "newest.html" not in page.read_text()


def test_a_table_of_both_methods_or_of_none_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, reason in (([], "there is no friction"), (["replay", "identify"], "rows of replay and identify")):
        for name in words:
            (tmp_path / name).mkdir()
        assert main(["fleet", "drift", str(tmp_path)]) == 1
        assert reason in capsys.readouterr().err
