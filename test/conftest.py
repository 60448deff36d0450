"""Fixtures of all tests, the built-in biped, and how the tests are spread over processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: on small matrices threads only cost time
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:  # by nohup: processes that are tested must not inherit it
    signal.signal(signal.SIGHUP, lambda number, frame: None)

import pytest
from hypothesis import HealthCheck, settings

from friction_estimator.kernels import compiler
from friction_estimator.robot.model import RobotModel
from test.biped import URDF, suralp_config

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=30)
settings.register_profile("thorough", settings.get_profile("any machine"), max_examples=200)
settings.register_profile("long", settings.get_profile("any machine"), max_examples=10_000)
settings.load_profile("any machine")  # no claim depends on how busy the machine is


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run folders in two processes; tests asked for by file or name, or without pytest-xdist, run in this one.

    ``-n`` decides otherwise. The two processes come here, too, and start none. Kernels are compiled before them, in
    parallel: the two processes would wait for each other.
    """
    undecided = getattr(config.option, "numprocesses", 0) is None and "PYTEST_XDIST_WORKER" not in os.environ
    if undecided and not config.option.usepdb and all(Path(argument).is_dir() for argument in config.args):
        config.option.numprocesses = 2
        if not config.option.collectonly:
            subprocess.run([sys.executable, "-m", "friction_estimator", "compile"], cwd=config.rootpath, check=True)


def pytest_runtest_setup() -> None:
    """A kernel that would be compiled in a test, as it would be in the middle of a run, is an error."""
    compiler.prepare(final=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep a file in one process, and a folder with fixtures for all its files, too: nothing is simulated twice.

    This also keeps all nodes that talk over DDS in one process, one test after the other.
    """
    from xdist.scheduler import LoadFileScheduling

    class ByFixtures(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            folder = Path(file).parent
            return str(folder) if (config.rootpath / folder / "conftest.py").exists() else file

    return ByFixtures(config, log)


@pytest.fixture(scope="session")
def urdf_xml() -> str:
    return URDF.read_text()


@pytest.fixture
def robot(urdf_xml: str) -> RobotModel:
    return RobotModel(suralp_config(), urdf_xml)
