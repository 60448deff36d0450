"""Rows are chosen by name, a row that cannot be measured is a sentence, and JSON has all numbers."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from friction_estimator.benchmark import steps
from friction_estimator.benchmark.rows import ROWS, Figure, Options, RowResult, Run, measure
from friction_estimator.cli.main import main


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(Options(blocks=2, steps=1), tmp_path)


def ignore(done: float, total: float) -> None:
    pass


def test_a_wrong_row_is_refused_with_the_names_of_all_rows(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["benchmark", "--only", "kalman", "flight"])
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    assert "flight" in shown and all(name in shown for name in ROWS)


@pytest.mark.parametrize("option", [["--blocks", "0"], ["--steps", "many"], ["--node-seconds", "-1"]])
def test_a_wrong_length_is_refused(option: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["benchmark", *option])
    assert ended.value.code == 2


def test_chosen_step_rows_leave_nothing_but_json_on_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(steps, "WARM_UP", 50)
    assert main(["benchmark", "--only", "samples", "observers", "kalman", "--blocks", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {"processor", "cores", "load average before", "load average after", "command"} <= set(document["machine"])
    assert [row["name"] for row in document["rows"]] == ["kalman", "observers", "samples"]
    figures = [figure for row in document["rows"] for figure in row["figures"]]
    assert [(figure["must"], figure["aim"]) for figure in figures] == [
        (12.0, 8.0), (2.0, 1.5), (8.0, 5.0), (8.0, 5.0), (None, None)
    ]  # fmt: skip
    for figure in figures:
        assert 0.0 < figure["low"] <= figure["value"] <= figure["high"]
        assert figure["missed"] == (figure["must"] is not None and figure["value"] > figure["must"])


def test_endurance_takes_at_least_ten_blocks_of_steps(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "WARM_UP", 0)
    count, growth, ratio, error = measure("endurance", run, ignore).figures
    assert count.value == 1000 and growth.unit == "MiB" and ratio.value > 0.0
    assert 0.0 < error.details["last tenth [N m]"] < 0.5 and error.value < 1.0  # the law is known better at the end


def test_without_the_urdf_of_the_large_robot_its_row_is_skipped_and_names_the_package(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot = tmp_path / "large.yaml"
    robot.write_text("/**: {ros__parameters: {robot: {urdf: package://no-such-package/robot.urdf}}}")
    monkeypatch.setattr(steps, "LARGE_ROBOT", str(robot))
    result = measure("joints", run, ignore)
    assert result.figures == () and result.failed == ""
    assert "'example-robot-data'" in result.skipped


def test_a_row_that_fails_leaves_the_others_and_ends_with_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(steps, "ROBOT", "no_such_robot")
    assert main(["benchmark", "--only", "kalman", "observers", "--blocks", "1"]) == 1
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert "the row kalman failed" in captured.err and "the row observers failed" in captured.err


@pytest.mark.parametrize(
    ("value", "at_least", "missed"),
    [(2.0, False, False), (2.1, False, True), (2.0, True, False), (1.9, True, True),
     (float("nan"), False, True), (float("nan"), True, True)],
)  # fmt: skip
def test_a_figure_on_the_wrong_side_of_must_is_missed(value: float, at_least: bool, missed: bool) -> None:
    figure = Figure("x", value, must=2.0, at_least=at_least)
    assert figure.missed == missed
    (written,) = json.loads(json.dumps(RowResult("row", (figure,)).to_json(), allow_nan=False))["figures"]
    assert written["missed"] == missed
    assert written["value"] == (None if math.isnan(value) else value)
