"""``benchmark`` plays a bag in real time into an estimator and prints what an estimate costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("mujoco", reason="the walk is simulated with MuJoCo")

import friction_estimator as fe
from friction_estimator.cli.main import main


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("benchmark") / "walk"
    fe.simulate(duration=2.3).save(path)
    return path


def test_cost_and_delay_of_the_estimates_of_a_bag(bag: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmark", str(bag), "--observer", "momentum", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["robot"], figures["observer"]) == ("suralp", "momentum")
    assert 0.0 < figures["CPU time of an estimate, median [us]"] <= figures["CPU time of an estimate, p99 [us]"]
    assert 0.0 < figures["joint states [Hz]"] <= 1010.0 and 0.0 < figures["delay, median [ms]"]
    assert main(["benchmark", str(bag)]) == 0
    shown = capsys.readouterr().out
    assert "12 joints, observer kalman" in shown and "the rate" in shown


def test_a_bag_that_is_too_short_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fe.simulate(duration=0.1).save(tmp_path / "walk")
    assert main(["benchmark", str(tmp_path / "walk")]) == 1
    assert "give a longer bag" in capsys.readouterr().err
