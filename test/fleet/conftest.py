"""Three robots with one bag each, of which one is cut off, and a bag without any message."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import friction_estimator as fe


@pytest.fixture(scope="session")
def fleet_bags(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    folder = tmp_path_factory.mktemp("fleet") / "bags"
    walk = folder / "unit_1" / "walk"
    fe.simulate("suralp", duration=0.8).save(walk)
    for copy in ("unit_2/walk", "unit_3/cut_off", "unit_3/lost"):
        shutil.copytree(walk, folder / copy)
    (recorded,) = (folder / "unit_3" / "cut_off").glob("*.mcap")
    recorded.write_bytes(recorded.read_bytes()[: 9 * recorded.stat().st_size // 10])
    next((folder / "unit_3" / "lost").glob("*.mcap")).unlink()
    return folder
