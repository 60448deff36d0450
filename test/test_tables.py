"""Tables: one description gives the same content on the terminal and on a page; numbers have the digits they need."""

from __future__ import annotations

import io

import pytest

from friction_estimator.tables import Cell, Column, Table, html_table, number, percent, terminal_table, with_spread

TABLE = Table(
    "Errors of [the] estimate",
    (
        Column("joint", align="left"),
        Column("RMSE", "N m", "stance"),
        Column("bias", "N m", "stance"),
        Column("RMSE", "N m", "swing"),
        Column("F_c", "N m"),
    ),
    (
        (Cell("l_hip [left]"), Cell("0.1", "good"), Cell("-0.25"), Cell("–"), Cell("2.1")),
        (Cell("<b>"), Cell("0.4", "bad"), Cell("0.25"), Cell(""), Cell("–")),
    ),
)


def terminal_text(table: Table, width: int = 100) -> str:
    from rich.console import Console

    console = Console(file=io.StringIO(), width=width)
    console.print(terminal_table(table))
    return console.file.getvalue()


def test_a_column_without_any_known_number_is_shown_nowhere() -> None:
    assert [column.group for column in TABLE.without_empty_columns().columns] == ["", "stance", "stance", ""]
    assert "swing" not in html_table(TABLE) and "swing" not in terminal_text(TABLE)
    nothing = Table("x", TABLE.columns, ())
    assert [column.heading for column in nothing.without_empty_columns().columns] == ["joint"]


def test_the_terminal_shows_groups_units_and_names_as_they_are() -> None:
    shown = terminal_text(TABLE)
    for text in ("Errors of [the] estimate", "stance", "RMSE", "[N m]", "l_hip [left]", "<b>", "-0.25", "F_c", "2.1"):
        assert text in shown, text


def test_a_narrow_terminal_folds_texts_and_keeps_numbers() -> None:
    rows = ((Cell("l_ankle_pitch"), Cell("1.234567"), Cell("words that go on and on")),)
    columns = Column("joint"), Column("relative to the whole torque"), Column("verdict", align="left")
    shown = terminal_text(Table("t", columns, rows), width=48)
    assert all(text in shown for text in ("l_ankle_pitch", "1.234567", "relative to", "the whole", "words", "and on"))


def test_a_page_shows_groups_units_styles_and_typographic_signs_and_cannot_be_broken_by_names() -> None:
    page = html_table(TABLE)
    for text in (
        "<caption>Errors of [the] estimate</caption>",
        '<th colspan="2" class="group">stance</th>',
        "RMSE<br>[N m]",
        "F<sub>c</sub><br>[N m]",
        '<td class="right good">0.1</td>',
        "\N{MINUS SIGN}0.25",
        "&lt;b&gt;",
    ):
        assert text in page, text
    assert "<b>" not in page


@pytest.mark.parametrize(
    ("value", "spread", "text"),
    [
        (2.4567, 0.01234, "2.457 ± 0.012"),
        (-0.5, 0.25, "-0.50 ± 0.25"),
        (-0.001, 0.25, "0.00 ± 0.25"),
        (12345.6, 130.0, "12346 ± 130"),
        (1.234e-5, 2.3e-7, "(1.234 ± 0.023)·10^-5"),
        (3.0, 0.0, "3"),
        (0.0, 1e9, "(0.0 ± 1.0)·10^9"),
        (1.5, float("inf"), "1.5 ± ∞"),
        (float("nan"), 1.0, "–"),
    ],
)
def test_values_have_the_digits_that_their_spread_allows(value: float, spread: float, text: str) -> None:
    assert with_spread(value, spread) == text


@pytest.mark.parametrize(
    ("value", "sigma", "text"),
    [
        (2.4567, 0.01234, "2.457"),
        (0.01234, 0.01234, "0.012"),
        (2.4567, float("nan"), "2.46"),
        (2.4567, 0.0, "2.46"),
        (0.0, float("nan"), "0.00"),
        (98765.0, float("nan"), "98800"),
        (98765.0, 1200.0, "98800"),
        (1.3e-17, float("nan"), "1.30e-17"),
        (-0.00123, float("nan"), "-0.00123"),
        (float("nan"), 0.1, "–"),
    ],
)
def test_a_number_has_two_digits_of_its_sigma_or_three_of_its_own(value: float, sigma: float, text: str) -> None:
    assert number(value, sigma) == text


def test_signs_and_percentages() -> None:
    assert (number(0.1, signed=True), number(-0.1, signed=True)) == ("+0.100", "-0.100")
    ratios = (0.0, 0.0034, 0.87, 1.5, float("nan"))
    assert [percent(ratio) for ratio in ratios] == [
        "0 %",
        "0.3 %",
        "87 %",
        "150 %",
        "–",
    ]
