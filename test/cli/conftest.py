"""A short walk in a bag, made once by the command line itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from friction_estimator.cli.main import main


@pytest.fixture(scope="session")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bag of 1 s, with ground truth."""
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    bag = tmp_path_factory.mktemp("walk") / "walk"
    assert main(["simulate", "-o", str(bag), "--duration", "1.0", "--seed", "4"]) == 0
    return bag


@pytest.fixture(scope="session")
def replayed(walk: Path) -> Path:
    """Its replay."""
    bag = walk.parent / "out"
    assert main(["replay", str(walk), "-o", str(bag)]) == 0
    return bag
