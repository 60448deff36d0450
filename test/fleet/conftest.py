"""A small simulated fleet, made once, and two workers in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from friction_estimator.cli.main import main


@pytest.fixture(scope="session")
def fleet_bags(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two robots, two days, one walk a day of 1 to 2 s, two broken bags."""
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    folder = tmp_path_factory.mktemp("fleet") / "bags"
    assert main(["simulate", "-o", str(folder), "--fleet", "2x2", "--duration", "2"]) == 0
    return folder


@pytest.fixture(scope="session")
def scheduler():
    """Address of a scheduler with two workers."""
    import distributed

    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address
