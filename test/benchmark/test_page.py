"""The table stands between the markers of a page, and the text around it stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from friction_estimator.benchmark.rows import BEGIN, END, Figure, PageError, RowResult, fill
from friction_estimator.cli.main import main

PAGE = f"# Title\n\nBefore.\n\n{BEGIN}\nold text\n{END}\n\nAfter.\n"
STEP = Figure("step / floor", 96.26, must=12.0, aim=8.0, low=90.0, high=104.4, details={"step [us]": 1530.2})
SPEED = Figure("replay", 4.5, "x real time", must=4.0, aim=8.0, at_least=True)
LOST = Figure("lost samples", 0, must=0.0, aim=0.0)


def test_a_page_gets_one_line_a_figure_and_keeps_its_text() -> None:
    text = fill(PAGE, [RowResult("a", (STEP, SPEED, LOST)), RowResult("b", skipped="no URDF")], ["Machine: x."])
    assert text.startswith(f"# Title\n\nBefore.\n\n{BEGIN}\n") and text.endswith(f"{END}\n\nAfter.\n")
    assert "old text" not in text
    assert text.split(BEGIN)[1].split(END)[0].split("\n") == [
        "", "",
        "| what | measured | must | aim |",
        "|---|---|---|---|",
        "| step / floor | **96.3 (90 to 104)**; step [us] 1,530 | at most 12 | at most 8 |",
        "| replay | 4.5 x real time | at least 4 x real time | at least 8 x real time |",
        "| lost samples | 0 | 0 | 0 |",
        "",
        "- Machine: x.",
        "- `b` is not measured: no URDF",
        "", "",
    ]  # fmt: skip


def test_lines_of_rows_that_were_not_measured_again_stay_in_their_place() -> None:
    first = fill(PAGE, [RowResult("a", (STEP, SPEED))], ["Machine: x."])
    again = fill(first, [RowResult("a", (Figure("step / floor", 9.0, must=12.0, aim=8.0),))], ["Machine: y."])
    assert [line for line in again.splitlines() if line.startswith("| ") or line.startswith("- ")] == [
        "| what | measured | must | aim |",
        "| step / floor | 9 | at most 12 | at most 8 |",
        "| replay | 4.5 x real time | at least 4 x real time | at least 8 x real time |",
        "- Machine: y.",
        "- Lines of other rows are from earlier runs.",
    ]


@pytest.mark.parametrize("page", ["", BEGIN, END, f"{END}{BEGIN}"])
def test_a_page_without_markers_is_refused(page: str) -> None:
    with pytest.raises(PageError, match="begin of the benchmark"):
        fill(page, (), ())


def test_the_page_of_this_project_has_its_markers() -> None:
    page = (Path(__file__).parents[2] / "docs" / "results" / "performance.md").read_text(encoding="utf-8")
    assert fill(page, (), ())


def test_a_wrong_page_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("no markers")
    assert main(["benchmark", "--page", str(page)]) == 1
    assert "the page has no lines" in capsys.readouterr().err
    assert page.read_text() == "no markers"
