"""The page of an identification: right numbers, right curves, and figures that a browser really draws."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from friction_estimator.identification.result import Identification
from friction_estimator.io.export import joint_frictions
from friction_estimator.io.identification_file import read_identification, save_identification
from friction_estimator.reports.identification_page import (
    friction_over_load,
    friction_over_velocity,
    identification_page,
    parameters_of_unit,
    residuals,
)
from friction_estimator.reports.identification_tables import parameter_table, quadrant_table, score_table
from friction_estimator.reports.page import ReportError
from test.known_identification import NOISE, TRUTH, make_identification
from test.reports.browser import drawn_page, needs_browser


@pytest.fixture(scope="module")
def identification() -> Identification:
    return make_identification()


def traces(figure: object, name: str, panel: int = 0) -> list:
    axis = "x" if panel == 0 else f"x{panel + 1}"
    return [trace for trace in figure.data if trace.name == name and (trace.xaxis or "x") == axis]


def test_used_and_left_out_samples_are_drawn_apart(identification: Identification) -> None:
    (used,), (left_out,) = (
        traces(friction_over_velocity(identification), name) for name in ("used", "left out of the fit")
    )
    samples = identification.samples[0]
    assert (len(used.x), len(left_out.x)) == (samples.used.sum(), (~samples.used).sum())
    assert np.abs(used.x).min() > 0.02 > np.abs(left_out.x).max()


def test_a_law_of_velocity_alone_is_a_line_with_its_band_in_each_direction(identification: Identification) -> None:
    lines, bands = (
        traces(friction_over_velocity(identification), name, 2) for name in ("law", "2 standard deviations")
    )
    assert len(lines) == len(bands) == 2
    samples = identification.samples[2]
    coulomb, viscous = identification.friction.values[2, :2]
    for line, band, sign in zip(lines, bands, (-1.0, 1.0), strict=True):
        assert (np.sign(line.x) == sign).all()
        np.testing.assert_allclose(line.y, coulomb * sign + viscous * line.x, rtol=1e-5)
        sigma = np.sort(samples.sigma[np.sign(samples.velocity) == sign])
        width = 0.5 * (band.y[: len(line.x)] - band.y[: len(line.x) - 1 : -1])
        np.testing.assert_allclose(np.sort(width), 2.0 * sigma, rtol=1e-2)


def test_a_law_of_velocity_and_load_is_drawn_at_the_load_of_each_sample(identification: Identification) -> None:
    figure = friction_over_velocity(identification)
    (law,) = traces(figure, "law, at the load of each sample")
    assert traces(figure, "law") == []
    np.testing.assert_allclose(np.sort(law.y), np.sort(identification.samples[0].fitted), rtol=1e-5)


def test_quadrants_show_the_slopes_that_were_injected(identification: Identification) -> None:
    figure = friction_over_load(identification)
    lines = traces(figure, "law at the median speed of the quadrant")
    slopes = [float(np.polyfit(line.x, line.y, 1)[0]) for line in lines]
    _, motor, _, generator, *_ = TRUTH["hip"][1]
    assert slopes == pytest.approx([motor, motor, -generator, -generator], abs=2e-3)
    (forward,) = traces(figure, "drives, forward")
    assert (forward.x > 0.0).all() and (forward.y > 0.0).all()
    dry = np.polyval(np.polyfit(lines[0].x, lines[0].y, 1), forward.x)
    assert np.std(forward.y - dry) == pytest.approx(NOISE, rel=0.2)


def test_laws_without_load_have_no_quadrants(identification: Identification) -> None:
    knee = replace(identification, samples=identification.samples[1:])
    assert friction_over_load(knee) is None and quadrant_table(knee) is None
    assert "Friction over load" not in identification_page(knee, "knee").render()


def test_load_dependence_that_the_law_misses_shows_in_the_quadrants(identification: Identification) -> None:
    samples = identification.samples[0]
    driven = np.sign(samples.velocity * samples.load) < 0.0
    missed = replace(samples, friction=samples.friction + 0.4 * np.sign(samples.velocity) * driven)
    table = quadrant_table(replace(identification, samples=(missed,)))
    means = {row[0].text: float(row[5].text.replace("−", "-")) for row in table.rows}
    assert means["hip, driven, forward"] == pytest.approx(0.4, abs=0.03)
    assert means["hip, driven, backward"] == pytest.approx(-0.4, abs=0.03)
    assert abs(means["hip, drives, forward"]) < 0.03


def test_residuals_stand_between_lines_of_twice_their_rms(identification: Identification) -> None:
    (line,) = traces(residuals(identification), "twice the RMS", 1)
    samples = identification.samples[1]
    rms = np.sqrt(np.mean((samples.friction - samples.fitted)[samples.used] ** 2))
    assert np.nanmax(line.y) == pytest.approx(2.0 * rms) == -np.nanmin(line.y)


def test_parameters_are_drawn_by_unit_with_two_standard_deviations(identification: Identification) -> None:
    figure = parameters_of_unit(identification, "N m s/rad")
    estimated = next(trace for trace in figure.data if trace.name == "estimated")
    known = next(trace for trace in figure.data if trace.name == "known before")
    table = identification.parameters
    rows = [row for row, unit in enumerate(table.units) if unit == "N m s/rad"]
    assert list(estimated.y) == [table.names[row] for row in rows]
    np.testing.assert_array_equal(estimated.x, table.values[rows])
    np.testing.assert_array_equal(estimated.error_x.array, 2.0 * table.sigma[rows])
    np.testing.assert_array_equal(known.x, table.reference[rows])
    gain = parameters_of_unit(identification, "N m/A")
    assert len(next(trace for trace in gain.data if trace.name == "not identifiable").x) == 1


def test_tables_say_what_the_arrays_hold(identification: Identification) -> None:
    scores = {row[0].text: row for row in score_table(identification.scores).rows}
    score = identification.scores[0]
    assert [cell.text for cell in scores["hip"]] == [
        "hip", f"{score.torque_rms:.1f}", f"{score.rigid_body_error:.2f}", f"{score.held_out_error:.4f}", "0.3 %",
        f"{score.fit_error:.4f}", "990",
    ]  # fmt: skip
    assert scores["hip"][3].style == "good"
    rows = {row[0].text: row for row in parameter_table(identification.parameters).rows}
    assert rows["ankle/coulomb"][1].text == "0.8013 ± 0.0061"
    assert rows["ankle/coulomb"][4].text == "significant"
    assert rows["ankle/coulomb"][5].text == "0.8"
    assert rows["ankle/coulomb"][6].text.endswith("0.4 sigma")
    assert rows["ZZ_3R + 0.4 MX_4"][4].text == "may be zero"
    assert rows["<b>drive gain</b>"][4].text == "not identifiable"


def test_a_model_that_is_worse_than_a_baseline_is_red(identification: Identification) -> None:
    poor = replace(identification.scores[0], rigid_body_error=0.04)
    table = score_table((poor, replace(poor, rigid_body_error=float("nan"))))
    assert [row[3].style for row in table.rows] == ["bad", "good"]
    assert table.rows[1][2].text == "–"


def test_the_page_has_how_it_was_made_and_needs_no_network(identification: Identification) -> None:
    page = identification_page(identification, "friction.yaml").render()
    markup = re.sub(r"<script.*?</script>", "", page, flags=re.S)
    provenance = identification.provenance
    for text in (provenance.command, *provenance.choices, *identification.verdicts, *np.ravel(provenance.data)):
        assert str(text).replace("'", "&#x27;") in markup
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", markup) and "@import" not in markup
    assert "<b>drive gain</b>" not in page and len(page) < 10e6


def test_a_bare_identification_has_a_page_too(identification: Identification) -> None:
    table = replace(identification.parameters, reference=None, identifiable=None)
    bare = replace(identification, parameters=table, scores=(), samples=(), verdicts=(), condition=float("nan"))
    page = identification_page(bare, "bare").render()
    assert "known before" not in page and "Held-out errors" not in page and "hip/viscous" in page


@pytest.mark.parametrize("change", ["no samples", "none used", "load unknown", "no motion", "a motor"])
def test_odd_samples_have_a_page_and_a_file_too(identification: Identification, tmp_path: Path, change: str) -> None:
    samples = identification.samples[0]
    columns = ("velocity", "friction", "load", "fitted", "sigma", "used")
    odd = {
        "no samples": {name: getattr(samples, name)[:0] for name in columns},
        "none used": {"used": np.zeros(samples.used.size, dtype=bool)},
        "load unknown": {"load": np.full(samples.load.size, np.nan)},
        "no motion": {"velocity": np.zeros(samples.velocity.size)},
        "a motor": {"joint": "motor_7"},
    }[change]
    changed = replace(identification, samples=(replace(samples, **odd), *identification.samples[1:]))
    assert "Friction over velocity" in identification_page(changed, change).render()
    save_identification(tmp_path / "odd.yaml", changed)
    joints = joint_frictions(read_identification(tmp_path / "odd.yaml"))
    assert all(np.isfinite([joint.coulomb_viscous.coulomb, joint.coulomb_viscous.viscous]).all() for joint in joints)


def test_a_page_that_cannot_be_written_is_one_clear_error(identification: Identification, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ReportError, match="cannot write the report"):
        identification_page(identification, "x").write(tmp_path / "file" / "page.html")


@needs_browser
def test_a_browser_draws_every_figure_without_an_error(identification: Identification, tmp_path: Path) -> None:
    identification_page(identification, "friction.yaml").write(tmp_path / "page.html")
    shown_page = drawn_page(tmp_path / "page.html", tmp_path, 5000)
    parts = re.split(r'<div id="(figure-[\w-]+)"', shown_page)
    drawn = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert {"figure-velocity", "figure-load", "figure-residuals", "figure-unit-0", "figure-unit-4"} <= set(drawn)
    for name, body in drawn.items():
        assert 'class="point"' in body, f"{name} was not drawn"
    assert all(joint in drawn["figure-velocity"] for joint in TRUTH)
