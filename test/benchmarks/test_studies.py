"""Every study starts, refuses missing inputs before the work, and has a page with places for its tables."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

pytest.importorskip("mujoco", reason="most studies simulate walks")

import numpy as np

from benchmarks.shared import figures
from benchmarks.shared.command import command, require
from benchmarks.shared.pages import Page, header, number, row, row_of, table
from friction_estimator.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = sorted(path.parent.name for path in (ROOT / "benchmarks").glob("*/__main__.py"))
FILES = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if path.stem != "__init__")
WRONG = {
    **dict.fromkeys(("external_torque", "foot_force", "icub", "pendulum", "tx40"), ["no/such/folder"]),
    **dict.fromkeys(
        ("accuracy", "compensation", "constrained", "egle", "guedelha", "kalman", "real_robots", "robots", "tutorial"),
        ["-o", "no/such/page.md"],
    ),
    **dict.fromkeys(("base_walks", "coulomb_viscous", "friction_laws"), ["--duration", "0"]),
    "blame": ["--seeds", "0"],
    "collisions": ["model.safetensors", "--pushes", "0"],
    "commands": ["--seeds", "0"],
    "damaged_recordings": ["no_such_log.csv"],
    "faults": ["--random", "0"],
    "fleet_drift": ["--seeds", "0"],
    "speed": ["--blocks", "0"],
    "hamon": ["--slowest", "0.3"],
    "random_robots": ["--robots", "0"],
    "joints": ["no_such_parameters.yaml"],
    "mob_net": ["model.safetensors", "--seconds", "0"],
    "mob_net_walks": ["walks", "--duration", "0"],
    "rollouts": ["no_such_log.npz", "no_such_robot.urdf"],
    "sigma_coverage": ["--seeds", "0"],
    "walk_stability": ["--scenario", "dance"],
    "wrong_sensors": ["--random", "0"],
}


def study(name: str):
    if name.startswith("fleet"):
        pytest.importorskip("pyarrow", reason="the extra 'fleet' is not installed")
    return importlib.import_module(f"benchmarks.{name}.__main__" if name in FOLDERS else f"benchmarks.{name}")


@pytest.mark.parametrize("name", FOLDERS + FILES)
def test_help_of_a_study_has_its_question_its_command_and_its_duration(name, capsys):
    with pytest.raises(SystemExit) as end:
        study(name).main(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert end.value.code == 0
    assert "?" in text and f"python -m benchmarks.{name}" in text
    assert re.search(r"\b(seconds?|minutes?|hours)\b", text)


@pytest.mark.parametrize("name", FOLDERS + FILES)
def test_a_missing_input_or_wrong_option_ends_a_study_before_the_work_with_one_line(name, capsys):
    with pytest.raises(SystemExit) as end:
        study(name).main(WRONG[name])
    assert end.value.code == 2
    assert f"python -m benchmarks.{name}: error: argument " in capsys.readouterr().err.splitlines()[-1]


def test_a_study_starts_as_a_command_from_the_repository():
    command = [sys.executable, "-m", "benchmarks.accuracy", "--help"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.returncode == 0 and "--cases" in done.stdout, done.stderr


def test_a_missing_library_is_named_with_the_command_that_installs_it(capsys):
    main = command(lambda arguments: require("no_such_library", "MATLAB v7.3 files"))
    assert main([]) == 1
    assert capsys.readouterr().err == "error: MATLAB v7.3 files need no_such_library: pip install no_such_library\n"


def test_a_table_replaces_what_is_between_its_markers_only(tmp_path):
    path = tmp_path / "page.md"
    Page(path, ["one", "two"])
    path.write_text("Words.\n\n" + path.read_text() + "\nMore words.\n")
    for rows in ([("1", "2")], [("3", "4")]):
        Page(path, ["two"]).fill("two", table(("a", "b"), rows))
    text = path.read_text()
    assert text.startswith("Words.") and text.endswith("More words.\n")
    assert "| 3 | 4 |" in text and "| 1 | 2 |" not in text
    with pytest.raises(ArgumentTypeError, match="begin of the three"):
        Page(path, ["three"])
    with pytest.raises(InputError):
        require("no_such_library", "This study")


def test_numbers_have_no_negative_zero_and_dashes_for_what_is_not_there():
    assert [number(value) for value in (0.125, -0.001, float("nan"))] == ["0.12", "0.00", "–"]
    assert row_of([1.0, float("nan")], 1) == "1.0 –"
    assert table(["a", "b"], [["1", "2"]]) == ["| a | b |", "|---|---|", "| 1 | 2 |", ""]
    assert header(("a", "b")) == "| a | b |\n|---|---|" and row((1, "b")) == "| 1 | b |"


def test_a_figure_has_its_labels_and_ticks_and_is_the_same_file_each_time(tmp_path):
    panel = figures.Panel("Title", "time [s]", "torque <N m>", legend=True)
    panel.line([0.0, 1.0, np.nan, 2.0, 3.0], [0.0, 1.0, np.nan, 1.0, 0.0], figures.BLUE, "estimate")
    panel.dots([1.0, 1.0, 2.0], [0.5, 0.5, 0.5], figures.RED)
    panel.band(0.5, 1.0)
    other = figures.Panel(x_limits=(0.0, 10.0), y_limits=(0.0, 1.0))
    figures.share_limits([panel, other], "x")
    assert panel.x_limits == other.x_limits == (-0.12, 10.0)
    texts = []
    for name in ("figure.svg", "again.svg"):
        figures.draw(tmp_path / name, [[panel, other]])
        texts.append((tmp_path / name).read_text())
    assert texts[0] == texts[1]
    for part in ("Title", "time [s]", "torque &lt;N m&gt;", "estimate", ">0.4<", ">10<"):
        assert part in texts[0], part
