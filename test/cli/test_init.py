"""`init` writes a YAML that the other verbs take, and asks before it does."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest

import friction_estimator as fe
from friction_estimator.cli.main import main
from friction_estimator.io.robot import find_urdf


def test_the_yaml_is_shown_confirmed_written_and_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    fe.simulate("suralp", duration=0.5).save(tmp_path / "bag")
    output = tmp_path / "robot.yaml"
    words = ["init", str(find_urdf("suralp.urdf")), "-o", str(output), "--bag", str(tmp_path / "bag")]
    monkeypatch.setattr("sys.stdin", StringIO())
    assert main(words) == 1
    assert "add --yes" in capsys.readouterr().err and not output.exists()
    assert main([*words, "--yes"]) == 0
    shown = capsys.readouterr().out
    assert output.read_text() in shown and "Newest of 500 estimates from bag" in shown.replace("\n", " ")
    assert [foot.frame for foot in fe.load_robot(output).config.feet] == ["l_sole", "r_sole"]
    assert main([*words, "--yes"]) == 1
    assert "exists already: choose another name, or replace it (--overwrite)" in capsys.readouterr().err
