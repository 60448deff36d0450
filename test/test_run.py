"""run.py, the parts that need no download; the rest is what `.ci/run` does on a clean clone."""

import importlib.util
import re
import shutil
import sys
from distutils.core import run_setup  # setuptools brings it
from pathlib import Path
from types import ModuleType

import pytest

import friction_estimator

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """run.py of a copy of the project in a folder with a space in its name."""
    copy = tmp_path / "a copy"
    copy.mkdir()
    for name in ("run.py", "setup.py"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "requirements", copy / "requirements")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the copy holds only what is in the folder of run.py
    spec = importlib.util.spec_from_file_location("run_of_a_copy", copy / "run.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def finish(run: ModuleType) -> None:
    """Bring the environment into the state after a finished preparation, without the packages."""
    run.DEMO_READY.write_text(run.fingerprint(run.DEMO))
    run.READY.write_text(run.fingerprint(run.SETUP))


def is_ready(run: ModuleType) -> bool:
    return run.is_ready(run.DEMO_READY, run.DEMO) and run.is_ready(run.READY, run.SETUP)


def base_python() -> str:
    return getattr(sys, "_base_executable", sys.executable)


def test_a_sourced_ros_and_an_active_environment_do_not_leak_in(run: ModuleType) -> None:
    cleaned = run.clean_environment(
        {
            "AMENT_PREFIX_PATH": "/opt/ros/jazzy:/home/me/ws/install/a",
            "LD_LIBRARY_PATH": "/opt/ros/jazzy/lib:/opt/ros/jazzy2/lib:/usr/local/cuda/lib64:/home/me/ws/install/a/lib",
            "PYTHONPATH": "/opt/ros/jazzy/lib/python3.12/site-packages",
            "VIRTUAL_ENV": "/home/me/venv",
            "RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp",
            "PIP_TARGET": "/home/me/packages",
            "PIP_USER": "1",
            "ROS_DOMAIN_ID": "7",
        }
    )
    assert cleaned == {
        "LD_LIBRARY_PATH": "/opt/ros/jazzy2/lib:/usr/local/cuda/lib64",
        "PIP_USER": "0",
        "ROS_DOMAIN_ID": "7",
    }


def test_an_environment_counts_only_when_finished_unchanged_and_in_its_place(run: ModuleType) -> None:
    run.PYTHON.parent.mkdir(parents=True)
    run.PYTHON.symlink_to(sys.executable)
    assert not is_ready(run)  # as after an interrupted preparation
    finish(run)
    assert is_ready(run)

    run.SETUP.write_text(run.SETUP.read_text() + "\n")
    assert not is_ready(run)
    finish(run)
    run.DEMO.write_text("numpy==2.0.0\n")
    assert not is_ready(run)
    finish(run)
    run.PYTHON.unlink()  # the Python of the system was replaced by another version
    run.PYTHON.symlink_to("/bin/sh")
    assert not is_ready(run)


def test_a_venv_of_somebody_else_is_renamed_and_kept(run: ModuleType) -> None:
    run.VENV.mkdir()
    (run.VENV / "precious").touch()
    run.make_room()
    (backup,) = run.ROOT.glob(".venv.backup-*")
    assert (backup / "precious").exists()
    assert not run.VENV.exists()


@pytest.mark.parametrize("target", ["/nonexistent", "."])
def test_a_link_at_the_place_of_the_venv_is_renamed_and_not_followed(run: ModuleType, target: str) -> None:
    run.VENV.symlink_to(target)
    (run.ROOT / run.OWNER.name).touch()  # what a followed link would find
    run.make_room()
    (backup,) = run.ROOT.glob(".venv.backup-*")
    assert backup.is_symlink()
    assert run.DEMO.exists()


def test_a_half_made_environment_of_our_own_is_removed(run: ModuleType) -> None:
    run.VENV.mkdir()
    run.OWNER.touch()
    run.make_room()
    assert sorted(path.name for path in run.ROOT.iterdir()) == ["requirements", "run.py", "setup.py"]


def test_an_unsuitable_python_is_refused_with_the_versions(
    run: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = {"PATH": ""}
    assert run.find_python(environment) == base_python()
    monkeypatch.setattr(run, "VERSIONS", ((3, 7),))
    with pytest.raises(SystemExit) as stopped:
        run.find_python(environment)
    assert stopped.value.code == 1
    assert "install one of CPython 3.7" in capsys.readouterr().err


def test_every_requirement_of_the_package_is_pinned() -> None:
    package = run_setup(str(ROOT / "setup.py"), stop_after="init")
    pinned: set[str] = set()
    for name in ("demo", "test"):  # the tests have both
        text = (ROOT / "requirements" / f"{name}.txt").read_text()
        lines = [line for line in text.splitlines() if line[:1].isalnum()]
        names = {line.split("==")[0] for line in lines}
        assert not pinned & names
        pinned |= names
        wanted = {re.split(r"[\[<>=]", one)[0] for one in (*package.install_requires, *package.extras_require[name])}
        assert wanted <= pinned
        assert all("==" in line for line in lines)
        assert len(re.findall(r"^[a-z0-9].*\n    --hash=sha256:[0-9a-f]{64}", text, re.MULTILINE)) == len(lines)


def test_every_file_has_the_same_version() -> None:
    version = friction_estimator.__version__
    for name in ("package.xml", "CITATION.cff", "CHANGELOG.md"):
        assert re.search(rf"(?m)(<version>|^version: |^## ){re.escape(version)}\b", (ROOT / name).read_text()), name
