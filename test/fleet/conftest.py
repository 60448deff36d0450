"""A small simulated fleet, made once, and two workers in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def fleet_bags(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two robots, two days, one walk a day of 1 to 2 s, two broken bags."""
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    folder = tmp_path_factory.mktemp("fleet") / "bags"
    from benchmarks.fleet_walks import main

    assert main([str(folder), "--robots", "2", "--days", "2", "--duration", "2"]) == 0
    return folder


@pytest.fixture(scope="module")
def scheduler():
    """Address of a scheduler with two workers."""
    from friction_estimator.fleet import run

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "_local_security", lambda: None)  # the tests connect to it by its address
        with run.local_or_given_cluster(None, 2) as client:
            yield client.cluster.scheduler_address
