"""The tables hold the numbers of the records, and the JSON file keeps them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from benchmarks.accuracy.__main__ import main
from benchmarks.accuracy.results import (
    BaseScore,
    Failure,
    PushScore,
    Results,
    Score,
    merge,
    read_json,
    summarise,
    write_json,
)
from benchmarks.accuracy.runs import Job, perform_all
from benchmarks.accuracy.tables import details, page_tables
from benchmarks.accuracy.targets import consistent, ratio_to_baseline, useful
from friction_estimator.errors import InputError

LABELS = ("hip yaw", "hip roll", "hip pitch", "knee", "ankle pitch", "ankle roll")
SETTINGS = {
    "command": "python -m benchmarks.accuracy", "robot": "suralp", "cases": ["walk", "push_knee"],
    "noise": ["paper_std"], "observers": ["fbse", "momentum"], "judged": "momentum", "seeds": 2, "duration": 22.0,
}  # fmt: skip


def score(method, phase, rmse, seed=0, inside=0.95, case="walk"):
    six = (1.0,) * 6
    return Score(case, "paper_std", seed, method, phase, (rmse,) * 6, six, (0.0,) * 6, six, (inside,) * 6)


@pytest.fixture
def results():
    scores = [score("fbse", phase, 0.20, seed) for phase in ("stance", "swing") for seed in (0, 1)]
    scores += [score("momentum", "stance", 0.01, 0), score("momentum", "stance", 0.03, 1)]
    scores += [score("momentum", "swing", 0.05, seed, inside=0.5) for seed in (0, 1)]
    push = PushScore("push_knee", "paper_std", 0, "momentum", 7.0, "knee", 20.0, 19.0, math.nan, 0.0)
    bases = tuple(BaseScore("walk", "paper_std", seed, 0.002, 0.001, 0.01) for seed in (0, 1))
    failure = Failure("push_knee", "paper_std", 1, "the robot fell")
    return Results(SETTINGS, LABELS, tuple(scores), (push,), bases, (failure,))


def line_of(text, *parts):
    return next(line for line in text.splitlines() if all(part in line for part in parts))


def page(results):
    """All tables of the page."""
    return "\n".join(line for lines in page_tables(results).values() for line in lines)


def test_seeds_become_mean_and_spread(results):
    summary = summarise(results)["walk", "paper_std", "momentum", "stance"]
    np.testing.assert_allclose(summary.rmse, 0.02)
    np.testing.assert_allclose(summary.spread, 0.01)


def test_target_cells_show_missed_limits(results):
    """Stance 0.02 keeps all limits; swing 0.05 exceeds those of hip yaw (0.04) and ankles (0.02)."""
    text = page(results)
    assert "6 of 6" in line_of(text, "`walk`, `paper_std`", "| stance |")
    swing = line_of(text, "`walk`, `paper_std`", "| swing |")
    assert "3 of 6" in swing
    assert "**0.050 > 0.04**" in swing


def test_ratio_to_the_published_method_is_per_phase_and_together(results):
    assert ratio_to_baseline(summarise(results), "walk", "paper_std", "momentum") == pytest.approx(
        {"stance": 10.0, "swing": 4.0}
    )
    assert "| 6.3 |" in line_of(page(results), "`walk`", "`paper_std`", "0.200 / 0.200")


def test_sigma_that_is_too_small_or_too_wide_is_found(results):
    summaries = summarise(results)
    assert consistent(summaries["walk", "paper_std", "momentum", "stance"])
    assert useful(summaries["walk", "paper_std", "momentum", "stance"])
    assert not consistent(summaries["walk", "paper_std", "momentum", "swing"])
    wide = dataclasses.replace(summaries["walk", "paper_std", "momentum", "stance"], nees=np.full(6, 0.01))
    assert not useful(wide)
    tiny = dataclasses.replace(summaries["walk", "paper_std", "momentum", "swing"], rmse=np.full(6, 1e-4))
    assert consistent(tiny)


def test_tables_show_missed_pushes_and_failed_runs(results):
    text = page(results)
    assert text.count("the robot fell") == details(results).count("the robot fell") == 1
    assert "missed" in line_of(text, "momentum", "20-20 N m")
    assert "the robot fell" in line_of(text, "| 1 |")


def test_json_gives_the_same_page_again(results, tmp_path):
    write_json(results, tmp_path / "results.json")
    again = read_json(tmp_path / "results.json")
    assert page(again) == page(results) and details(again) == details(results)
    assert again.scores == results.scores


def test_order_of_the_parts_does_not_matter(results):
    parts = [Results(labels=LABELS, scores=(one,)) for one in results.scores]
    assert merge(SETTINGS, parts) == merge(SETTINGS, parts[::-1])


def test_another_file_is_refused(tmp_path):
    (tmp_path / "other.json").write_text("[1, 2]")
    with pytest.raises(InputError, match="does not hold the results"):
        read_json(tmp_path / "other.json")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--cases", "dance"],
        ["--observers", "crystal_ball"],
        ["--duration", "5"],
        ["--seeds", "0"],
        ["-o", "no/such/folder.md"],
    ],
)
def test_wrong_usage_ends_with_code_2(arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2


def test_wrong_parameter_is_refused_before_the_work(tmp_path, capsys):
    assert main(["--set", "momentum.gian=3", "--results", str(tmp_path)]) == 1
    assert "momentum.gain" in capsys.readouterr().err


def test_command_measures_a_case_and_writes_page_and_json(tmp_path, capsys):
    output = tmp_path / "accuracy.md"
    arguments = ["--cases", "squat", "--noise", "paper_std", "--observers", "momentum", "--seeds", "1"]
    assert (
        main([*arguments, "--duration", "7.1", "--processes", "2", "-o", str(output), "--results", str(tmp_path)]) == 0
    )
    tables = tmp_path / "accuracy_details.md"
    assert capsys.readouterr().out.split() == [str(output.with_suffix(".json")), str(tables), str(output)]
    for text in (output.read_text(), tables.read_text()):
        assert "`squat`" in text and "Wiener filter" in text
    measured = summarise(read_json(output.with_suffix(".json")))["squat", "paper_std", "momentum", "stance"]
    assert 0.01 < np.nanmean(measured.rmse) < 1.0


def test_a_job_that_fails_is_a_record_beside_those_of_the_others():
    """A robot that does not exist is refused with the package's message; any other error has its type in front."""
    jobs = [
        Job("nobody", "walk", "paper_std", 0, 8.0, ("fbse",)),
        Job("suralp", "walk", "paper_std", 1, "long", ("fbse",)),
    ]
    failures = sorted(
        (part.failures for part in perform_all(jobs, 1, lambda line: None)), key=lambda found: found[0].seed
    )
    assert [found[0].seed for found in failures] == [0, 1]
    assert "nobody" in failures[0][0].message and failures[1][0].message.startswith("TypeError: ")
