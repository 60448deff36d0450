"""Every program in examples/ runs as it stands, and prints what its reader expects."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PRINTS = {
    "compensate": r"RMS tracking error: [\d.]+ mrad without, [\d.]+ mrad with compensation",
    "identify_arm": r"shoulder  F_c 1\.[45]\d\d \+- 0\.0\d\d N m   F_v 0\.[78]\d\d",
    "live_walk": r"4\.5 s +\w+ +left knee [+-][\d.]+ \+- [\d.]+ N m, true [+-]",
    "own_friction_law": r"direction +RMS error of the law alone",
    "own_robot": r"feet: +left, right\nRMS error after 1 s",
    "safe_compensation": r"4\.030 s: .* (?!0\.00)\d\.\d\d N m\n4\.110 s: .* 0\.00 N m\n5\.999 s: .* 0\.00 N m",
    "replay_and_plot": r"open .*friction\.html",
}
"""What each example prints, as a regular expression."""

pytest.importorskip("mujoco", reason="MuJoCo is not installed")
pytest.importorskip("rosbags", reason="rosbags is not installed")
pytest.importorskip("plotly", reason="plotly is not installed")


def test_every_example_is_tried_and_short() -> None:
    assert [path.stem for path in EXAMPLES] == sorted(PRINTS)
    assert all(len(path.read_text().splitlines()) <= 50 for path in EXAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_from_any_folder(path: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, path], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(PRINTS[path.stem], done.stdout), done.stdout
    if path.stem == "compensate":
        without, compensated = map(float, re.findall(r"([\d.]+) mrad", done.stdout))
        assert compensated < 0.5 * without


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda path: path.stem)
def test_the_cells_of_a_notebook_run_one_after_the_other(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra plot)")
    cells = json.loads(path.read_text())["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert not any(cell.get("outputs") for cell in cells)  # they would become stale
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", "\n".join(blocks).replace("duration=10.0", "duration=3.0")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(r"l_knee +[+-][\d.]+ \+- [\d.]+ N m", done.stdout) and "RMS error after 2 s" in done.stdout
