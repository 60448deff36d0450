"""Friction over months: wear is found, and neither temperature nor outliers are taken for it."""

# ruff: noqa: E402  (what the imports need may be missing)

from __future__ import annotations

import pytest

pytest.importorskip("distributed", reason="the extra 'fleet' is not installed")

from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.fleet_drift import JOINTS, SURE, Case, number_of, simulate_table
from friction_estimator.cli.main import main
from friction_estimator.fleet.bags import ROWS, SCHEMA
from friction_estimator.fleet.wear import LOWER, STEADY, TOO_FEW_DAYS, WORN, JointTrend, joint_trends, read_rows

ROBOTS, THRESHOLD = 4, 0.1
COLD = Case(bags=3, colder=20.0)
"""The place gets colder by 20 K, which makes friction grow by 20 %."""


@pytest.fixture(scope="module")
def simulated():
    return simulate_table(COLD, np.random.default_rng(3), ROBOTS)


@pytest.fixture(scope="module")
def folder(simulated, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("friction")
    (made / ROWS).mkdir()
    pq.write_table(simulated[0], made / ROWS / "all.parquet")
    return made


def test_worn_joints_are_found_and_no_other_although_it_gets_colder(simulated) -> None:
    rows, truth = simulated
    trends = joint_trends(rows, THRESHOLD)
    states = {number_of(one.serial, one.joint): one.state for one in trends}
    worn = set(np.flatnonzero(truth.wear >= SURE).tolist())
    assert {k for k, state in states.items() if state == WORN} == worn and len(worn) == ROBOTS * JOINTS // 10
    assert {k for k, state in states.items() if state == LOWER} == set(np.flatnonzero(truth.lubricated).tolist())
    assert [one.state for one in trends[: len(worn)]] == [WORN] * len(worn)
    steady = [one for one in trends if truth.wear[number_of(one.serial, one.joint)] == 0.0 and one.state != LOWER]
    errors = [one.friction.growth[0] / one.friction.growth[1] for one in steady]
    assert np.mean(np.square(errors)) < 1.5 and all("check" in one.verdict for one in trends[: len(worn)])


@given(
    growth=st.floats(-0.5, 2.0),
    factor=st.floats(-0.01, 0.01),
    wrong=st.sets(st.integers(0, 29), min_size=1, max_size=7),
    size=st.floats(0.1, 10.0),
)
def test_a_line_is_exact_at_any_temperature_and_wrong_days_are_no_wear(
    growth: float, factor: float, wrong: set[int], size: float
) -> None:
    assert trend_of_30_days(growth, factor).friction.growth[0] == pytest.approx(growth, abs=0.03 * (1.0 + abs(growth)))
    off = np.ones(30)
    off[sorted(wrong)] = size
    steady = trend_of_30_days(0.0, factor, off)
    assert steady.state == STEADY and abs(steady.friction.growth[0]) < 0.03


def trend_of_30_days(growth: float, factor: float, off: np.ndarray | float = 1.0) -> JointTrend:
    days = np.arange(30)
    warmth = 10.0 * np.sin(days)
    friction = off * (1.0 + growth * days / 29.0) * np.exp(factor * warmth)
    made = {
        "serial": ["7"] * 30, "joint": ["knee"] * 30, "start": (days * 86_400_000_000).tolist(),
        "temperature": 20.0 + warmth, "coulomb": friction, "viscous": 2.0 * friction, "coulomb_sigma": 0.1 * friction,
        "viscous_sigma": 0.1 * friction, "usable": [True] * 30,
    }  # fmt: skip
    columns = [pa.array(made.get(name, [None] * 30), SCHEMA.field(name).type) for name in SCHEMA.names]
    (trend,) = joint_trends(pa.table(columns, SCHEMA), THRESHOLD)
    return trend


def test_few_days_give_no_verdict_and_old_bags_can_be_left_out(folder: Path) -> None:
    recent = joint_trends(read_rows(folder, datetime(2026, 2, 28)), THRESHOLD)
    assert {joint.state for joint in recent} == {TOO_FEW_DAYS}
    assert read_rows(folder, datetime(2027, 1, 1)).num_rows == 0


def test_the_command_ends_with_three_for_wear_and_writes_the_page(
    simulated, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", "-o", str(folder)]) == 3
    printed, page = capsys.readouterr().out, (folder / "fleet.html").read_text()
    for k in np.flatnonzero(simulated[1].wear >= SURE).tolist():
        name = f"joint_{k % JOINTS:02d} of unit_{k // JOINTS:02d}"
        assert f"{name}: friction +" in printed and name in page
    assert "figure-time" in page
    assert main(["fleet", "-o", str(folder), "--since", "2026-02-28"]) == 0
    assert f"0 of {ROBOTS * JOINTS} joints are worn" in capsys.readouterr().out
    assert main(["fleet", "-o", str(folder), "--since", "0d"]) == 1
    with pytest.raises(SystemExit) as end:
        main(["fleet", "-o", str(folder), "--since", "yesterday"])
    assert end.value.code == 2 and "'yesterday' is no date such as 2026-01-31" in capsys.readouterr().err


def test_a_file_that_is_no_friction_table_is_one_clear_error(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ROWS).mkdir()
    (tmp_path / ROWS / "other.parquet").write_text("no Parquet")
    assert main(["fleet", "-o", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "is no friction table" in error
