"""Exit codes, one clear line on stderr, and no import of what a verb does not need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import friction_estimator
from friction_estimator.cli.compile import ROOMS
from friction_estimator.cli.main import VERBS, main
from friction_estimator.ros.executables import END_SIGNALS


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["fly"],
        ["replay"],
        ["replay", "bag"],
        ["simulate", "-o", "x", "--scenario", "fly"],
        ["simulate", "-o", "x", "--duration", "-3"],
        ["simulate", "-o", "x", "--duration", "long"],
        ["replay", "bag", "-o", "x", "--set", "identifier.phases"],
        ["replay", "bag", "-o", "x", "--set", "a=[1"],
        ["replay", "bag", "-o", "x", "--storage", "hdf5"],
        ["replay", "bag", "-o", "x", "--smooth", "nan"],
        ["replay", "bag", "-o", "x", "--smooth", "-1"],
        ["report", "bag", "--after", "nan"],
        ["report", "bag", "--after", "inf"],
        ["report", "bag", "--after", "-1"],
        ["simulate", "-o", "x", "--duration", "nan"],
        ["plan", "arm.urdf", "-o", "x", "--margin", "nan"],
        ["plan", "arm.urdf", "-o", "x", "--max-velocity", "inf"],
    ],
)
def test_wrong_usage_ends_with_two(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "friction_estimator" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["replay", "nothing", "-o", "x"], "there is no bag at nothing"),
        (["report", "nothing"], "there is no bag at nothing; a report is made of a rosbag2 with friction estimates"),
        (["report", "nothing.yaml"], "cannot read nothing.yaml: No such file or directory; a report is made of"),
        (["report", "nothing.yaml", "--after", "1"], "nothing.yaml is a parameter file: robot, namespace and after"),
        (["replay", "nothing", "-o", "x", "--robot", "no_such_robot"], "no_such_robot"),
        (["replay", "nothing", "-o", "x", "--set", "identifer.law=makkar"], "did you mean 'identifier.law'"),
        (["replay", "nothing", "-o", "x", "--set", "robot.urdf="], "robot.urdf"),
        (
            ["replay", "nothing", "-o", "x", "--set", "robot.joints=a,b"],
            "expected a list of names, as in [left, right]",
        ),
        (
            ["replay", "nothing", "-o", "x", "--observer", "momentum", "--set", "observer=fbse"],
            "--observer momentum and --set observer=fbse contradict each other",
        ),
        (
            ["replay", "nothing", "-o", "x", "--set", "momentum.gain=.nan"],
            "(with momentum.gain replaced): momentum.gain = nan",
        ),
        (["replay", "nothing", "-o", "x", "--set", "momentum.gain=.inf"], "gain = inf"),
    ],
)
def test_work_that_fails_ends_with_one_and_one_line(
    words: list[str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("friction_estimator: error: ")
    assert reason in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert all(verb in shown for verb in VERBS)
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2
    assert capsys.readouterr().err == shown


@pytest.mark.parametrize("verb", ["simulate", "replay", "report"])
def test_help_of_a_verb_explains_its_options(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([verb, "--help"])
    assert ended.value.code == 0
    assert "--output" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("verb", "foreign"),
    [
        ("replay", ["mujoco", "rclpy", "plotly", "friction_estimator.simulation"]),
        ("report", ["mujoco", "rclpy", "friction_estimator.simulation"]),
        ("simulate", ["rclpy", "plotly"]),
    ],
)
def test_a_verb_does_not_import_what_it_does_not_need(verb: str, foreign: list[str]) -> None:
    code = (
        "import importlib, sys; importlib.import_module(f'friction_estimator.cli.{sys.argv[1]}'); "
        "print([name for name in sys.argv[2:] if name in sys.modules])"
    )
    process = run_python(code, verb, *foreign)
    assert process.stdout == "[]\n", process.stderr


def test_a_missing_package_is_named_with_the_command_that_installs_it() -> None:
    code = (
        "import sys; sys.modules['plotly'] = None; from friction_estimator.cli.main import main; "
        "sys.exit(main(['report', 'bag']))"
    )
    process = run_python(code)
    assert process.returncode == 1
    assert process.stderr == (
        f"friction_estimator: error: the Python package 'plotly' is missing: {sys.executable} -m pip install "
        "'plotly>=6.0'\n"
    )


def test_the_version_and_the_words_of_a_shell_come_without_a_verb(tmp_path: Path) -> None:
    pytest.importorskip("argcomplete", reason="argcomplete is not installed (extra terminal)")
    module = [sys.executable, "-m", "friction_estimator"]
    shown = subprocess.run([*module, "--version"], capture_output=True, text=True, timeout=120, check=True).stdout
    assert shown == f"friction_estimator {friction_estimator.__version__}\n"
    line, words = "friction_estimator replay --ov", tmp_path / "words"  # as bash calls a program to complete a line
    shell = {
        "_ARGCOMPLETE": "1",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE_STDOUT_FILENAME": words,
    }
    subprocess.run(module, env={**os.environ, **{name: str(value) for name, value in shell.items()}}, check=True)
    assert words.read_text().strip() == "--overwrite"


def test_module_and_command_are_the_same() -> None:
    process = subprocess.run(
        [sys.executable, "-m", "friction_estimator", "report", "nothing"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert process.returncode == 1
    assert process.stderr.startswith("friction_estimator: error: there is no bag at nothing; ")


@pytest.mark.parametrize("number", END_SIGNALS)
def test_every_signal_to_end_interrupts_a_verb(number: int) -> None:
    code = (
        "import os, sys; from friction_estimator.cli import main as cli\n"
        "cli.import_module = lambda name: os.kill(os.getpid(), int(sys.argv.pop()))\n"
        "sys.exit(cli.main())"
    )
    process = run_python(code, "report", "bag", str(int(number)))
    assert (process.returncode, process.stderr) == (1, "friction_estimator: error: interrupted\n")


@pytest.mark.parametrize(("given", "used"), [(None, "1"), ("3", "3")])
@pytest.mark.parametrize("module", ["cli.main", "ros.executables"])
def test_a_process_computes_with_one_thread_unless_set_otherwise(module: str, given: str | None, used: str) -> None:
    code = (
        "import os, sys\n"
        f"from friction_estimator.{module} import main\n"
        "assert 'numpy' not in sys.modules\n"  # it reads the variable when it is imported
        "sys.modules['friction_estimator.ros.estimator_node'] = None\n"
        "try: main(['estimator_node'])\n"
        "except (SystemExit, ImportError): print(os.environ['OMP_NUM_THREADS'])\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    environment |= {"OMP_NUM_THREADS": given} if given else {}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.split() == [used], done.stderr


def test_every_kernel_is_in_a_room_that_is_compiled_in_the_set_up() -> None:
    package = Path(main.__code__.co_filename).parents[1]
    rooms = {
        path.relative_to(package).parts[0]
        for path in package.rglob("*.py")
        if "compiler import entry_point" in path.read_text()
    }
    assert "estimation" in rooms and rooms <= {*ROOMS, "linear_algebra.py"}


def test_without_a_compiler_there_is_nothing_to_compile() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-m", "friction_estimator", "compile"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert "run as plain Python" in done.stdout
