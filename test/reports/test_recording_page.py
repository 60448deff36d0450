"""The page: right numbers, nothing from a network, and figures that a browser really draws."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from friction_estimator.messages.recording import Recording, RunDescription
from friction_estimator.reports.page import ReportError, envelope_rows, even_rows
from friction_estimator.reports.recording_page import friction_over_time, paper_figure, recording_page
from friction_estimator.reports.recording_tables import (
    error_table,
    errors_by_part,
    learned_parameter_table,
    phase_table,
)
from test.reports.browser import drawn_page, needs_browser

FIGURES = ("figure-time", "figure-velocity", "figure-coulomb", "figure-viscous", "figure-paper")


def without_truth(recording: Recording) -> Recording:
    return replace(recording, truth=None, true_phases=())


def from_elsewhere(recording: Recording) -> Recording:
    """Of a bag that says nothing about itself and lacks the slow topics."""
    return replace(
        without_truth(recording), phases=(), model=None, coulomb=None, viscous=None, coulomb_sigma=None,
        viscous_sigma=None, description=RunDescription(),
    )  # fmt: skip


def test_stance_and_swing_are_separated_for_each_leg(recording: Recording) -> None:
    (stance_name, stance), (swing_name, swing) = errors_by_part(recording)
    assert (stance_name, swing_name) == ("stance", "swing")
    assert stance.count.tolist() == [2600.0, 2600.0, 3000.0, 3000.0]
    assert stance.rmse == pytest.approx([0.1, 0.1, 0.1, 0.1])
    assert swing.rmse[:2] == pytest.approx([0.3, 0.3])
    assert np.isnan(swing.rmse[2:]).all()
    assert swing.nees[:2] == pytest.approx([9.0, 9.0])


def test_the_first_seconds_can_be_left_out(recording: Recording) -> None:
    (_, stance), (_, swing) = errors_by_part(recording, after=1.2)
    assert stance.count[0] == 1600.0
    assert swing.count[0] == 200.0


def test_measured_and_modelled_parts_are_compared_when_the_legs_are_unknown(recording: Recording) -> None:
    parts = errors_by_part(replace(recording, description=RunDescription()))
    assert [name for name, _ in parts] == ["measured", "modelled"]
    assert parts[1][1].rmse[:2] == pytest.approx([0.3, 0.3])


def test_tables_say_what_the_arrays_hold(recording: Recording) -> None:
    errors, phases, parameters = error_table(recording), phase_table(recording), learned_parameter_table(recording)
    assert errors and phases and parameters
    assert [cell.text for cell in errors.rows[0]] == [
        "l_hip", "0.100", "0.100", "+0.10", "1.00", "0.300", "0.300", "-0.30", "9.00",
    ]  # fmt: skip
    assert [cell.text for cell in errors.rows[2]][5:] == ["–", "–", "–", "–"]
    assert [cell.style for cell in errors.rows[0]][4] == "good"
    assert [cell.style for cell in errors.rows[0]][8] == "fair"
    assert [(column.heading, column.unit) for column in phases.columns[1:]] == [
        ("double support", "N m"),
        ("right support", "N m"),
    ]
    assert [cell.text for cell in phases.rows[1]] == ["l_knee", "0.100", "0.300"]
    assert parameters.rows[0][1].text == "1.000 ± 0.020"
    assert [cell.text for cell in parameters.rows[0]][3:] == ["0.0879 to 0.997", "87 %", "87 %"]


def test_the_figure_of_the_paper_has_a_blue_and_a_dashed_red_line_for_every_joint(recording: Recording) -> None:
    figure = paper_figure(recording)
    estimated = [trace for trace in figure.data if trace.name == "estimated"]
    true = [trace for trace in figure.data if trace.name == "true"]
    assert len(estimated) == len(true) == 4
    assert {trace.line.dash for trace in true} == {"dash"}
    assert sum(trace.showlegend for trace in figure.data) == 2
    assert {title.text for title in figure.layout.annotations} == set(recording.joint_names)


def test_measured_and_modelled_parts_never_overlap(recording: Recording) -> None:
    traces = {}
    for trace in friction_over_time(recording).data:
        traces.setdefault(trace.name, trace)
    measured, modelled = (
        {*trace.x[np.isfinite(trace.y)].tolist()} for trace in map(traces.get, ("measured", "modelled"))
    )
    assert measured and modelled and not measured & modelled
    assert 1.0 - 1e-6 <= min(modelled) and max(modelled) < 1.4
    assert min(measured) == 0.0 and not [time for time in measured if 1.0 < time < 1.399]
    assert np.isnan(traces["measured"].y).sum() == np.isnan(traces["modelled"].y).sum() == 1  # the line breaks once


def test_every_panel_has_units(recording: Recording) -> None:
    for shown, lower in (
        (recording, {"error [N m]"}),
        (without_truth(recording), {"residual [N m]"}),
        (from_elsewhere(recording), set()),
    ):
        axes = friction_over_time(shown).layout
        titles = {axes[name].title.text for name in axes if name.startswith("yaxis")}
        assert titles == {"friction [N m]"} | lower


def test_below_the_friction_stands_its_error_in_the_band_of_two_standard_deviations(recording: Recording) -> None:
    figure = friction_over_time(recording)
    errors = [trace for trace in figure.data if trace.name == "estimate minus truth"]
    bands = [trace for trace in figure.data if trace.name == "2 standard deviations"]
    assert len(errors) == len(bands) == 4
    for joint, (error, band) in enumerate(zip(errors, bands, strict=True)):
        rows = np.round(1000.0 * error.x).astype(int)
        np.testing.assert_allclose(error.y, (recording.friction - recording.truth)[rows, joint], atol=1e-6)
        assert (band.y.max(), band.y.min()) == pytest.approx((0.2, -0.2))
        assert error.yaxis == band.yaxis
        upper = next(trace for trace in figure.data if trace.name == "truth" and trace.xaxis == error.xaxis)
        above, below = (figure.layout[f"yaxis{name[1:]}"] for name in (upper.yaxis, error.yaxis))
        assert below.domain[1] < above.domain[0]
        low, high = below.range
        assert low == -high and low < error.y.min() and error.y.max() < high


def test_without_truth_the_estimate_is_compared_with_the_identified_law(recording: Recording) -> None:
    figure = friction_over_time(without_truth(recording))
    residual = next(trace for trace in figure.data if trace.name == "estimate minus law")
    rows = np.round(1000.0 * residual.x).astype(int)
    law = np.interp(recording.time[rows], recording.model.time, recording.model.values[:, 0], left=np.nan, right=np.nan)
    np.testing.assert_allclose(residual.y, recording.friction[rows, 0] - law, atol=1e-3)


def test_decimation_keeps_every_spike() -> None:
    values = np.random.default_rng(2).normal(size=50_000)
    values[[7, 23_456, 49_999]] = [50.0, -60.0, 70.0]
    rows = envelope_rows(values, 1000)
    assert rows.size <= 1002
    assert (np.diff(rows) > 0).all()
    assert {0, 7, 23_456, 49_999} <= set(rows.tolist())
    assert envelope_rows(values[:10], 1000).tolist() == list(range(10))
    assert even_rows(10, 4).tolist() == [0, 3, 6, 9]


@pytest.mark.parametrize("change", [lambda recording: recording, without_truth, from_elsewhere])
def test_the_page_needs_no_network_and_stays_below_ten_megabytes(recording: Recording, change: object) -> None:
    page = recording_page(change(recording), "a bag").render()
    markup = re.sub(r"<script.*?</script>", "", page, flags=re.S)
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", markup)
    assert not re.search(r"<script[^>]+src=", page)
    assert "@import" not in markup and "url(" not in markup
    assert len(page) < 10e6


def test_names_from_a_bag_cannot_break_the_page(recording: Recording) -> None:
    evil = "<script>alert(1)</script>"
    names = (evil, *recording.joint_names[1:])
    description = replace(recording.description, robot=evil, limbs={"l_foot": names[:2], "r_foot": names[2:]})
    page = recording_page(replace(recording, joint_names=names, description=description), evil).render()
    assert evil not in page


def test_a_page_that_cannot_be_written_is_one_clear_error(recording: Recording, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ReportError, match="cannot write the report"):
        recording_page(recording, "a bag").write(tmp_path / "file" / "report.html")


@needs_browser
@pytest.mark.parametrize("change", [lambda recording: recording, from_elsewhere], ids=["full", "bare"])
def test_a_browser_draws_every_figure_without_an_error(recording: Recording, tmp_path: Path, change: object) -> None:
    shown = change(recording)
    recording_page(shown, "a bag").write(tmp_path / "report.html")
    shown_page = drawn_page(tmp_path / "report.html", tmp_path, 30000)
    figures = [
        name for name in FIGURES if shown.coulomb is not None or name not in ("figure-coulomb", "figure-viscous")
    ]
    for name in figures:
        start = shown_page.index(f'id="{name}"')
        end = min([at for at in (shown_page.find(f'id="{other}"', start + 1) for other in FIGURES) if at > 0],
                  default=len(shown_page))  # fmt: skip
        drawn = shown_page[start:end]
        lines = re.findall(r'class="js-line"[^>]* d="(M[^"]{20,})"', drawn)
        points = drawn.count('class="point"')
        assert len(lines) >= len(shown.joint_names) or points > 100, f"{name} was not drawn"
        assert all(joint in drawn for joint in shown.joint_names)


def test_long_recordings_open_on_their_end_and_keep_the_rest(recording: Recording) -> None:
    short = friction_over_time(recording)
    assert short.layout.xaxis.range is None
    stretched = friction_over_time(replace(recording, time=20.0 * recording.time))
    assert stretched.layout.xaxis.range == pytest.approx((59.98 - 12.0, 59.98), abs=0.01)
    truth = next(trace for trace in stretched.data if trace.name == "truth")
    assert truth.x[0] == 0.0
    assert (truth.x > 47.99).sum() == 600  # every sample of the window
