"""simulate, replay and report do what their options say."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from friction_estimator.cli.main import main
from friction_estimator.io.bags.arrays import read_recording
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.identification_file import save_identification
from friction_estimator.io.parameters import load_parameters, save_parameters
from test.known_identification import make_identification


def contents(bag: Path) -> list[tuple[str, int, bytes]]:
    return [(item.topic, item.time_ns, bytes(item.raw)) for item in BagReader(bag).messages()]


def test_simulated_bags_hold_all_sensors_at_one_kilohertz_and_the_truth(walk: Path) -> None:
    reader = BagReader(walk)
    stamps: dict[str, list[int]] = {}
    for message in reader.messages():
        stamps.setdefault(message.topic, []).append(message.time_ns)
    for topic in ("/joint_states", "/imu/data", "/l_foot/wrench", "/r_foot/wrench", "/ground_truth/joint_friction"):
        assert np.diff(stamps[topic]).tolist() == 999 * [1_000_000]
    assert {"/ground_truth/base_state", "/ground_truth/contact_phase", "/ground_truth/l_foot/wrench"} <= set(stamps)


def test_the_same_seed_gives_the_same_bag_and_another_seed_does_not(tmp_path: Path) -> None:
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    for name, seed in (("one", "4"), ("same", "4"), ("other", "5")):
        assert main(["simulate", "-o", str(tmp_path / name), "--duration", "0.2", "--seed", seed]) == 0
    one, same, other = (contents(tmp_path / name) for name in ("one", "same", "other"))
    repeated, changed = one == same, one != other  # plain truth values: explaining a difference would take minutes
    assert repeated
    assert changed


def test_replay_gives_an_estimate_for_every_sample_and_keeps_the_truth(replayed: Path) -> None:
    recording = read_recording(replayed)
    assert recording.time.size == 1000
    assert recording.truth is not None and np.isfinite(recording.truth).all()
    assert recording.description.robot == "suralp"
    assert recording.description.source == "simulation of 'walk', sensors 'paper_std', seed 4"
    assert {phase.name for phase in recording.phases} == {"double_support", "left_support"}


def test_observer_storage_and_parameters_are_options_of_replay(
    walk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, saved = tmp_path / "first", tmp_path / "second", tmp_path / "params.yaml"
    options = ["--observer", "momentum", "--storage", "sqlite3", "--set", "identifier.phases=all"]
    assert main(["replay", str(walk), "-o", str(first), *options, "--save-params", str(saved)]) == 0
    assert capsys.readouterr().out == f"{first}: 1000 estimates\n"
    assert next(first.glob("*.db3"))
    description = read_recording(first).description
    assert (description.observer, description.law) == ("momentum", "coulomb_viscous")
    assert main(["replay", str(walk), "-o", str(second), *options, "--params", str(saved)]) == 0
    start = read_recording(second).coulomb
    assert start is not None
    np.testing.assert_allclose(start.values[0], load_parameters(saved).values[:, 0], atol=0.05)


def test_an_older_output_is_only_replaced_when_allowed(
    walk: Path, replayed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = shutil.copytree(replayed, tmp_path / "out")
    (old / "of_the_older_output").touch()
    command = ["replay", str(walk), "-o", str(old)]
    assert main(command) == 1
    assert "exists already" in capsys.readouterr().err
    assert (old / "of_the_older_output").exists()
    assert main([*command, "--overwrite"]) == 0
    repeated = contents(old) == contents(replayed)
    assert repeated and not (old / "of_the_older_output").exists()


def test_report_writes_one_page(replayed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("plotly", reason="plotly is not installed")
    page = tmp_path / "deep" / "report.html"
    assert main(["report", str(replayed), "-o", str(page)]) == 0
    assert capsys.readouterr().out == f"{page}\n"
    text = page.read_text()
    for expected in ("l_hip_yaw", "r_ankle_roll", "suralp", "kalman", "sensors &#x27;paper_std&#x27;", "RMSE, stance"):
        assert expected in text
    assert [path.name for path in page.parent.iterdir()] == ["report.html"]


def test_report_of_a_parameter_file_is_the_page_of_its_identification(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("plotly", reason="plotly is not installed")
    identification = make_identification()
    save_identification(tmp_path / "arm.yaml", identification)
    save_parameters(tmp_path / "live.yaml", identification.friction)
    page = tmp_path / "page.html"
    assert main(["report", str(tmp_path / "arm.yaml"), "-o", str(page)]) == 0
    assert capsys.readouterr().out == f"{page}\n"
    for expected in ("Held-out errors", "Friction over load", "ZZ_3R + 0.4 MX_4", "Quadrants", "run_1.csv"):
        assert expected in page.read_text()
    assert main(["report", str(tmp_path / "live.yaml"), "-o", str(page)]) == 0
    assert "hip/coulomb_motor" in page.read_text()
    assert "condition number" not in page.read_text() and ">nan<" not in page.read_text()


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("robot.yaml", "/**: {ros__parameters: {observer: fbse}}\n", "does not hold identified parameters"),
        ("log.csv", "time,position\n", "is not a rosbag2"),
        ("folder/log.csv", "time,position\n", "holds no .mcap or .db3 file"),
    ],
)
def test_a_report_of_anything_else_names_the_valid_inputs(
    name: str, content: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("plotly", reason="plotly is not installed")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(content)
    source = (tmp_path / name).parent if "/" in name else tmp_path / name
    assert main(["report", str(source), "-o", str(tmp_path / "page.html")]) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert reason in error and "written by `replay`" in error and "written by `identify`" in error
    assert not (tmp_path / "page.html").exists()


def test_a_bag_that_was_cut_gives_a_warning(walk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = (walk / "walk.mcap").read_bytes()
    (tmp_path / "cut.mcap").write_bytes(data[: int(0.7 * len(data))])
    command = ["replay", str(tmp_path / "cut.mcap"), "-o", str(tmp_path / "out"), "--observer", "momentum"]
    assert main(command) == 0
    captured = capsys.readouterr()
    assert "warning: " in captured.err and "cut off" in captured.err
    assert captured.out.startswith(f"{tmp_path / 'out'}: ")
