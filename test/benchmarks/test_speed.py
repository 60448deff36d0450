"""Rows are chosen by name, a row that cannot be measured is a sentence, and the table keeps lines of other rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.shared.pages import Page
from benchmarks.speed import steps
from benchmarks.speed.__main__ import PAGE, PLACE, fill, main
from benchmarks.speed.rows import ROWS, Figure, Options, RowResult, Run, measure, row

STEP = Figure("step / floor", 96.26, must=12.0, aim=8.0, low=90.0, high=104.4, details={"step [us]": 1530.2})
SPEED = Figure("replay", 4.5, "x real time", must=4.0, aim=8.0, at_least=True)
LOST = Figure("lost samples", 0, must=0.0, aim=0.0)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(Options(blocks=2, steps=1), tmp_path)


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return Page(tmp_path / "page.md", [PLACE])


def ignore(done: float, total: float) -> None:
    pass


def test_a_page_gets_one_line_a_figure(page: Page) -> None:
    fill(page, [RowResult("a", (STEP, SPEED, LOST)), RowResult("b", skipped="no URDF")], "Machine: x.")
    assert page.lines(PLACE) == [
        "| what | measured | must | aim |",
        "|---|---|---|---|",
        "| step / floor | **96.3 (90 to 104)**; step [us] 1,530 | at most 12 | at most 8 |",
        "| replay | 4.5 x real time | at least 4 x real time | at least 8 x real time |",
        "| lost samples | 0 | 0 | 0 |",
        "",
        "- Machine: x.",
        "- `b` is not measured: no URDF",
    ]


def test_lines_of_rows_that_were_not_measured_again_stay_in_their_place(page: Page) -> None:
    fill(page, [RowResult("a", (STEP, SPEED))], "Machine: x.")
    fill(page, [RowResult("a", (Figure("step / floor", 9.0, must=12.0, aim=8.0),))], "Machine: y.")
    assert [line for line in page.lines(PLACE) if line.startswith(("| ", "- "))] == [
        "| what | measured | must | aim |",
        "| step / floor | 9 | at most 12 | at most 8 |",
        "| replay | 4.5 x real time | at least 4 x real time | at least 8 x real time |",
        "- Machine: y.",
        "- Lines of other rows are from earlier runs.",
    ]


def test_the_page_of_this_project_has_its_table() -> None:
    assert len(Page(PAGE, [PLACE]).lines(PLACE)) > 20


@pytest.mark.parametrize(
    "option", [["--only", "flight"], ["--blocks", "0"], ["--steps", "x"], ["--node-seconds", "-1"]]
)
def test_a_wrong_option_is_refused(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(option)
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    assert option[0] != "--only" or all(name in shown for name in ROWS)


def test_step_rows_are_ratios_with_quartiles(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "WARM_UP", 50)
    figures = [figure for name in ("kalman", "observers", "samples") for figure in measure(name, run, ignore).figures]
    assert len(figures) == 5
    published = [line.strip("| ").split(" | ") for line in Page(PAGE, [PLACE]).lines(PLACE)]
    targets = {cells[0]: tuple(cells[2:]) for cells in published}
    for figure in figures:
        assert figure.low is not None and figure.high is not None and 0.0 < figure.low <= figure.value <= figure.high
        assert figure.must is not None and figure.aim is not None and 1.0 < figure.aim < figure.must
        assert figure.missed == (figure.value > figure.must)
        assert targets[figure.what] == row(figure)[2:], "the page shows other targets than the benchmark has"


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
    page: Page, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(steps, "ROBOT", "no_such_robot")
    assert main(["--only", "kalman", "observers", "--blocks", "1", "-o", str(page.path)]) == 1
    captured = capsys.readouterr()
    assert "the row kalman failed" in captured.err and "the row observers failed" in captured.err


@pytest.mark.parametrize(
    ("value", "at_least", "missed"),
    [(2.0, False, False), (2.1, False, True), (2.0, True, False), (1.9, True, True),
     (float("nan"), False, True), (float("nan"), True, True)],
)  # fmt: skip
def test_a_figure_on_the_wrong_side_of_must_is_missed(value: float, at_least: bool, missed: bool) -> None:
    assert Figure("x", value, must=2.0, at_least=at_least).missed == missed
