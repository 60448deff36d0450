"""Claims about the verb `export`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from friction_estimator.cli.main import main
from friction_estimator.io.export import FORMATS
from friction_estimator.io.identification_file import save_identification
from friction_estimator.io.parameters import save_parameters
from friction_estimator.io.robot import share_directory
from test.known_identification import make_identification

EXPORTER_NAMES = list(FORMATS)
URDF = share_directory() / "urdf" / "suralp.urdf"


@pytest.fixture
def params(tmp_path: Path) -> Path:
    save_identification(tmp_path / "friction.yaml", make_identification(("l_hip_yaw", "l_hip_roll")))
    return tmp_path / "friction.yaml"


@pytest.mark.parametrize("name", EXPORTER_NAMES)
def test_every_format_is_written_and_named_on_stdout(
    name: str, params: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = params.parent / "new" / "out"
    model = ["--model", str(URDF)] if name in ("urdf", "mjcf", "gazebo", "drake") else []
    assert main(["export", str(params), "--to", name, "-o", str(out), *model]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    assert "l_hip_yaw" in out.read_text()


def test_the_velocity_of_the_agreement_can_be_given(params: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(params.parent / "out.urdf")
    for speed, top in ((["--speed", "0.25"], 0.25), ([], 1.28)):
        assert main(["export", str(params), "--to", "urdf", "--model", str(URDF), "-o", out, *speed]) == 0
        ends = re.search(r"least squares over (\S+) \.\.\. (\S+) rad/s", capsys.readouterr().err)
        assert ends and max(-float(ends[1]), float(ends[2])) == pytest.approx(top, abs=0.02)
    assert main(["export", str(params), "--to", "urdf", "--model", str(URDF), "-o", out, "--speed", "-1"]) == 1
    assert "the speed -1 rad/s is not a positive number" in capsys.readouterr().err


def test_a_file_of_the_live_node_is_exported_with_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    friction = make_identification(("hip", "knee")).friction
    save_parameters(tmp_path / "live.yaml", friction)
    command = ["export", str(tmp_path / "live.yaml"), "--to", "ros2_control", "-o", str(tmp_path / "out.yaml")]
    assert main(command) == 0
    assert (
        "the velocities at which the friction of hip, knee was identified are not known: +-1 rad/s is assumed"
        in capsys.readouterr().err
    )
    assert main([*command, "--speed", "2"]) == 0
    assert "is assumed" not in capsys.readouterr().err
    save_parameters(tmp_path / "live.yaml", replace(friction, velocity_range=np.array([[0.1, 0.8], [0.2, 0.9]])))
    assert main(command) == 0
    warning = capsys.readouterr().err
    assert "is assumed" not in warning and "least squares over -0.8 ... 0.8 rad/s" in warning


def test_line_ends_of_the_model_stay(params: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, out = params.parent / "dos.urdf", params.parent / "out.urdf"
    model.write_bytes(URDF.read_bytes().replace(b"\n", b"\r\n"))
    assert main(["export", str(params), "--to", "urdf", "--model", str(model), "-o", str(out)]) == 0
    assert b"\n" not in out.read_bytes().replace(b"\r\n", b"")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "c_header", "-o", "{params}"], "is the input: give another file"),
        (["--to", "urdf", "--model", "{model}", "-o", "{model}"], "is the input: give another file"),
        (["--to", "urdf", "-o", "out"], "'urdf' changes a model: give the URDF of the robot (--model)"),
        (["--to", "urdf", "--model", "no.urdf", "-o", "out"], "cannot read the model no.urdf: No such file"),
    ],
)
def test_wrong_files_fail_in_one_line_and_change_nothing(
    arguments: list[str], message: str, params: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = params.parent / "model.urdf"
    model.write_text(URDF.read_text())
    before = {path: path.read_bytes() for path in params.parent.iterdir()}
    filled = [word.format(params=params, model=model) for word in arguments]
    assert main(["export", str(params), *filled]) == 1
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 1 and message in errors[0]
    assert {path: path.read_bytes() for path in params.parent.iterdir()} == before


def test_an_unknown_format_is_wrong_usage_and_the_choices_are_named(
    params: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["export", str(params), "--to", "sdf", "-o", "out"])
    assert stop.value.code == 2
    errors = capsys.readouterr().err
    assert all(name in errors for name in EXPORTER_NAMES)
