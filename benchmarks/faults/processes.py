"""Faults of process, files and middleware: signals, bad files, other nodes. A function a row lists what is wrong."""

from __future__ import annotations

import itertools
import math
import resource
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from std_srvs.srv import Trigger

from benchmarks.faults.live import TIME_OUT, NodeError, NodeProcess
from benchmarks.faults.node import FaultyRobot, LiveRun
from benchmarks.faults.offline import EstimatorDriver
from benchmarks.faults.readings import Walk
from benchmarks.faults.runs import AS_BEFORE, SIGMAS, Scorer, Stream, moving_rms
from friction_estimator.errors import ConfigError
from friction_estimator.io.parameters import load_parameters, save_parameters
from friction_estimator.io.resources import find_urdf

_BEFORE = 2.5
"""Good data before a fault [s]."""
_MEMORY = 3 * 2**30
"""Address space of a program that reads a bad file [byte]."""
_GROWTH = 20.0
"""Growth of the memory of a node that a subscriber may cause [MiB]."""
Wrong = list[str]


@dataclass(frozen=True, slots=True)
class ProcessFault:
    """One row of the table.

    Attributes
    ----------
    name, what, expected : for the command line and the table
    run : with the walk and a folder; what was not as expected
    """

    name: str
    what: str
    expected: str
    run: Callable[[Walk, Path], Wrong]


def process_faults() -> dict[str, ProcessFault]:
    """All rows by name."""
    rows = [*_signals(), *_files(), *_descriptions(), *_others()]
    return {row.name: row for row in rows}


def _signals() -> list[ProcessFault]:
    INT, TERM, HUP, QUIT = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT
    ends = "exit code 0, last compensation torque zero, parameters saved"
    importing = "as soon as the process handles signals, while it imports libraries"
    rows = []
    for one in (INT, TERM, HUP, QUIT):
        name, text = one.name.lower(), one.name
        rows += [
            ProcessFault(f"{name}_start", f"{text} {importing}", "exit code 0", partial(_end_at_start, one)),
            ProcessFault(
                f"{name}_ready", f"{text} when the node has just started", "exit code 0", partial(_end_when_ready, one)
            ),
            ProcessFault(f"{name}_run", f"{text} while the robot walks", ends, partial(_end_in_run, (one,), 0.0)),
        ]
    for one in (INT, TERM, HUP):
        for ms in (50, 150, 300):
            what = f"{one.name} twice, {ms} ms apart, while the robot walks"
            rows.append(
                ProcessFault(f"{one.name.lower()}_twice_{ms}", what, ends, partial(_end_in_run, (one, one), 1e-3 * ms))
            )
    launch, five = "SIGINT, and SIGTERM 150 ms later, as from a launch file", "SIGINT five times, 100 ms apart"
    killed = "the saved file is whole, no other file is left, the next node reads it"
    return [
        *rows,
        ProcessFault("sigint_sigterm_150", launch, ends, partial(_end_in_run, (INT, TERM), 0.15)),
        ProcessFault("sigint_five_times", five, ends, partial(_end_in_run, (INT,) * 5, 0.1)),
        ProcessFault("sigkill_run", "SIGKILL while the robot walks, after parameters were saved", killed, _killed),
        ProcessFault(
            "stopped", "SIGSTOP for two seconds while the robot walks", "estimates go on, exit code 0", _stopped
        ),
    ]


def _files() -> list[ProcessFault]:
    def covariance(matrix: Callable[[np.ndarray], np.ndarray]) -> Callable[[dict[str, Any]], object]:
        return lambda joint: joint.update(covariance=matrix(np.array(joint["covariance"])).tolist())

    def value(number: float, name: str = "") -> Callable[[dict[str, Any]], object]:
        return lambda joint: joint["values"].update({name or next(iter(joint["values"])): number})

    indefinite = covariance(lambda P: P + 2.0 * P.max() * (1.0 - np.eye(len(P))))
    entries: list[tuple[str, str, Callable[[dict[str, Any]], object], tuple[str, ...]]] = [
        ("1e300", "a value of 1e300", value(1e300), ("l_knee",)),
        ("negative", "a viscous friction of -50 N m s/rad", value(-50.0, "viscous"), ("l_knee",)),
        (
            "coulomb",
            "a slope of -50 N m, so that the Coulomb friction is negative",
            value(-50.0),
            ("l_knee", "Coulomb"),
        ),
        ("nan", "a value that is NaN", value(math.nan), ("l_knee",)),
        (
            "asymmetric",
            "a covariance that is not symmetric",
            covariance(lambda P: P + np.triu(np.ones_like(P), 1)),
            ("l_knee", "covariance"),
        ),
        ("indefinite", "a covariance with a negative eigenvalue", indefinite, ("l_knee", "covariance")),
    ]
    line, sooner = "exit code 1; one line with file and joint", "exit code 1 at the start; the path is named"
    bomb = (f"{new}: &{new} [{','.join(9 * ['*' + old])}]\n" for old, new in itertools.pairwise("abcdefghi"))
    parameter = "/**: {{ros__parameters: {{{}}}}}\n".format
    documents = {
        "aliases": ("alias bomb", "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(bomb)),
        "deep": ("50,000 nested lists", "a: " + 50_000 * "[" + 50_000 * "]"),
        "large": ("100 MB of text", "a: '" + 100_000_000 * "x" + "'"),
        "recursive": ("a list that holds itself", "a: &a [*a]\n"),
        "int": ("!!int abc", parameter("observer: !!int abc")),
        "date": ("a date as a parameter", parameter("observer: 2024-13-45")),
        "tag": ("a stray !", parameter("observer: !")),
        "python": ("a Python object", "a: !!python/object/apply:os.getcwd []\n"),
        "number": ("a number of 10,000 digits", parameter(f"sensors: {{force_std: {10_000 * '9'}}}")),
    }
    in_time, cut = "exit code 1 within 20 s; one line with the file", "exit code 1; one line with the file"
    folder = "parameter file in a folder that cannot be written"
    return [
        *(
            ProcessFault(f"parameters_{name}", f"parameter file: {what}", line, partial(_bad_parameters, change, words))
            for name, what, change, words in entries
        ),
        ProcessFault("parameters_folder", folder, sooner, _bad_folder),
        ProcessFault("parameters_cut", "parameter file that was cut off in the middle", cut, _cut_parameters),
        *(
            ProcessFault(f"yaml_{name}", f"robot YAML: {what}", in_time, partial(_bad_document, text))
            for name, (what, text) in documents.items()
        ),
    ]


def _descriptions() -> list[ProcessFault]:
    refused, doubted = "exit code 1; the link is named", "a warning that names the link"
    masses = {"nan": refused, "abc": refused, "1,5": refused, "-3.0": refused, "1e6": doubted}
    rows = [
        ProcessFault(f"mass_{text}", f"URDF: a mass of {text}", outcome, partial(_bad_mass, text, outcome == refused))
        for text, outcome in masses.items()
    ]
    inertia = "URDF: an inertia that violates the triangle inequality"
    return [*rows, ProcessFault("inertia_triangle", inertia, doubted, _bad_inertia)]


def _others() -> list[ProcessFault]:
    rows = {
        "foot_topic": ("a foot topic with a space", "exit code 1; the parameter is named", _bad_topic),
        "qos_mismatch": (
            "publishers of best effort, inputs_reliable set",
            "`input joint_states` warns and names QoS",
            _mismatch,
        ),
        "best_effort": ("publishers of best effort, default node", "estimates as with others", _best_effort),
        "blocked_subscriber": ("a subscriber that never reads", "nothing lost, memory bounded", _blocked_subscriber),
        "second_estimator": (
            "a second estimator on the same topics and file",
            "a message names the file; the file stays whole; exit code 0 of the first",
            _second,
        ),
        "mid_walk": (
            "the node starts while the robot walks",
            "95 % within three sigma, error as in other walks",
            _mid_walk,
        ),
    }
    return [ProcessFault(name, *row) for name, row in rows.items()]


def _end_at_start(number: int, walk: Walk, folder: Path) -> Wrong:
    process = NodeProcess(folder)
    give_up = time.monotonic() + TIME_OUT
    while not _catches(process.process.pid, signal.SIGTERM) and time.monotonic() < give_up:
        time.sleep(0.005)
    return _exit_code(process, process.end(number))


def _catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal: Python alone has none but for SIGINT."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    caught = next((line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")), "0")
    return bool(int(caught, 16) >> (number - 1) & 1)


def _end_when_ready(number: int, walk: Walk, folder: Path) -> Wrong:
    process = NodeProcess(folder, "compensation.enabled:=true", f"identified_parameters:={folder / 'ready.yaml'}")
    process.await_output("estimating")
    return _exit_code(process, process.end(number))


def _end_in_run(signals: tuple[int, ...], pause: float, walk: Walk, folder: Path) -> Wrong:
    with closing(LiveRun(walk, folder, _BEFORE, 0)) as live:
        live.start()
        torque = live.robot.compensation
        moved = any(np.frombuffer(raw[-live.robot.numbers :]).any() for raw in torque)
        wrong = live.end(*signals, pause=pause)
        return [*wrong, *_whole(live.saved), *([] if moved else ["friction was not compensated before the signal"])]


def _exit_code(process: NodeProcess, code: int) -> Wrong:
    wrong = [] if code == 0 else [f"exit code {code}"]
    return wrong + (["a traceback"] if "Traceback" in process.output else [])


def _whole(file: Path) -> Wrong:
    """Whether a parameter file can be read, and no other file is left in its folder."""
    try:
        load_parameters(file)
    except ConfigError as error:
        return [str(error)]
    left = [path.name for path in file.parent.iterdir() if path.name.startswith(f".{file.name}") or ".tmp" in path.name]
    return [f"files that are left: {', '.join(left)}"] if left else []


def _killed(walk: Walk, folder: Path) -> Wrong:
    with closing(LiveRun(walk, folder, _BEFORE, 0)) as live:
        live.start()
        wrong = [] if live.robot.call(Trigger, "save_parameters").success else ["save_parameters failed"]
        live.process.close()
        with closing(NodeProcess(folder, f"identified_parameters:={live.saved}")) as again:
            again.await_output("estimating")
            read = "identified parameters read" in again.output
            return [*wrong, *_exit_code(again, again.end()), *_whole(live.saved), *([] if read else ["it is not read"])]


def _stopped(walk: Walk, folder: Path) -> Wrong:
    with closing(LiveRun(walk, folder, 6.0, 0)) as live:
        live.start()
        live.process.send(signal.SIGSTOP)
        time.sleep(2.0)
        live.process.send(signal.SIGCONT)
        live.robot.clear()
        good = live.stream.good(3.0)
        live.robot.send(good)
        live.robot.finish(good)
        _, errors, _ = live.scorer.errors(good, live.robot.estimates(0.0, 0.0))
        lost = len(good) // 4 - len(errors)
        wrong = [f"{lost} joint states without an estimate"] if lost else []
        if not moving_rms(errors).max() <= AS_BEFORE * live.scorer.before:
            wrong.append(f"the error is {moving_rms(errors).max():.3f} N m")
        return wrong + live.end()


def _good_parameters(walk: Walk, file: Path) -> dict[str, Any]:
    """Content of a parameter file after some seconds of walking."""
    driver = EstimatorDriver(walk)
    driver.feed(walk.readings(0, 6000, 1))
    save_parameters(file, driver.estimator.identified)
    document: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return document


def _bad_parameters(
    change: Callable[[dict[str, Any]], object], words: tuple[str, ...], walk: Walk, folder: Path
) -> Wrong:
    file = folder / "bad.yaml"
    document = _good_parameters(walk, file)
    change(document["joints"]["l_knee"])
    file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return _refused(folder, (file.name, *words), f"identified_parameters:={file}")


def _cut_parameters(walk: Walk, folder: Path) -> Wrong:
    file = folder / "cut.yaml"
    _good_parameters(walk, file)
    text = file.read_text(encoding="utf-8")
    file.write_text(text[: len(text) // 2], encoding="utf-8")
    return _refused(folder, (file.name,), f"identified_parameters:={file}")


def _bad_folder(walk: Walk, folder: Path) -> Wrong:
    blocker = folder / "no_folder"
    blocker.write_text("a file", encoding="utf-8")
    return _refused(folder, ("no_folder",), f"identified_parameters:={blocker / 'saved.yaml'}")


def _bad_topic(walk: Walk, folder: Path) -> Wrong:
    return _refused(folder, ("l_foot", "topic"), "feet.l_foot.topic:='l foot/wrench'")


def _bad_mass(text: str, refused: bool, walk: Walk, folder: Path) -> Wrong:
    return _urdf_with(walk, folder, "mass", {"value": text}, refused)


def _bad_inertia(walk: Walk, folder: Path) -> Wrong:
    return _urdf_with(walk, folder, "inertia", {"ixx": "9.0", "iyy": "0.1", "izz": "0.1"}, False)


def _urdf_with(walk: Walk, folder: Path, tag: str, values: Mapping[str, str], refused: bool) -> Wrong:
    """Whether the node refuses or doubts a URDF whose first leg link has other inertial values."""
    tree = ElementTree.parse(find_urdf(walk.robot.config.robot.urdf, ()))
    link = next(
        link
        for link in tree.getroot().iterfind("link")
        if "knee" in link.get("name", "") or "shank" in link.get("name", "")
    )
    found = link.find(f"inertial/{tag}")
    if found is None:
        return [f"the link {link.get('name')} has no {tag}"]
    found.attrib.update(values)
    file = folder / "bad.urdf"
    tree.write(file)
    name = link.get("name", "")
    if refused:
        return _refused(folder, (name,), f"robot.urdf:={file}")
    with closing(NodeProcess(folder, f"robot.urdf:={file}")) as process:
        process.await_output("estimating")
        wrong = _exit_code(process, process.end())
        return wrong if name in process.output else [*wrong, f"the link {name} is not named"]


def _refused(folder: Path, words: tuple[str, ...], *parameters: str) -> Wrong:
    """Whether a node with these parameters ends with exit code 1 and one line that holds these words."""
    process = NodeProcess(folder, *parameters)
    give_up = time.monotonic() + TIME_OUT
    while process.process.poll() is None and "estimating" not in process.output and time.monotonic() < give_up:
        time.sleep(0.05)
    if process.process.poll() is None:
        code = process.end()
        return [f"the node starts, and ends with exit code {code}"]
    return _one_line(process.process.returncode, process.output, words)


def _one_line(code: int, output: str, words: tuple[str, ...]) -> Wrong:
    lines = [line for line in output.splitlines() if line.startswith(("error: ", "friction_estimator: error: "))]
    wrong = [] if code == 1 else [f"exit code {code}"]
    if "Traceback" in output:
        wrong.append(f"a traceback that ends with {output.strip().splitlines()[-1][:120]!r}")
    elif len(lines) != 1:
        wrong.append(f"{len(lines)} lines begin with 'error:'")
    missing = [word for word in words if lines and word not in lines[0]]
    return wrong + ([f"{', '.join(missing)} not named in {lines[0][:160]!r}"] if missing else [])


def _bad_document(text: str, walk: Walk, folder: Path) -> Wrong:
    file = folder / "bad_robot.yaml"
    file.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "friction_estimator", "simulate", "-o", str(folder / "bag"), "--duration", "0.1"]
    command += ["--robot", str(file)]
    limit = partial(resource.setrlimit, resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20.0, preexec_fn=limit, check=False)
    except subprocess.TimeoutExpired:
        return ["no end after 20 s"]
    return _one_line(done.returncode, done.stderr, (file.name,))


def _best_effort_robot(walk: Walk) -> FaultyRobot:
    best_effort = QoSProfile(reliability=ReliabilityPolicy.BEST_EFFORT, history=HistoryPolicy.KEEP_LAST, depth=2000)
    return FaultyRobot(walk, qos=best_effort)


def _mismatch(walk: Walk, folder: Path) -> Wrong:
    with (
        closing(NodeProcess(folder, "inputs_reliable:=true")) as process,
        closing(_best_effort_robot(walk)) as robot,
    ):
        process.await_output("estimating")
        robot.send(walk.readings(0, 3000, time.time_ns()))
        texts = robot.estimates(0.0, time.monotonic()).texts
        named = any(
            name == "input joint_states" and level != "OK" and "qos" in text.lower() for name, level, text in texts
        )
        wrong = [] if named else ["`input joint_states` does not name QoS"]
        return wrong + _exit_code(process, process.end())


def _best_effort(walk: Walk, folder: Path) -> Wrong:
    with closing(NodeProcess(folder)) as process, closing(_best_effort_robot(walk)) as robot:
        process.await_output("estimating")
        robot.connect(compensation=False)
        good = walk.readings(0, 3000, time.time_ns())
        robot.send(good)
        robot.finish(good)
        wrong = [] if len(robot.friction) > 0.95 * 3000 else [f"{len(robot.friction)} of 3000 estimates"]
        return wrong + _exit_code(process, process.end())


_READER = """
import rclpy, time
from rclpy.qos import QoSProfile, ReliabilityPolicy, HistoryPolicy
from sensor_msgs.msg import JointState
rclpy.init()
node = rclpy.create_node("never_reads")
qos = QoSProfile(reliability=ReliabilityPolicy.RELIABLE, history=HistoryPolicy.KEEP_ALL)
node.create_subscription(JointState, "joint_friction", print, qos)
print("subscribed", flush=True)
time.sleep(600.0)
"""


def _blocked_subscriber(walk: Walk, folder: Path) -> Wrong:
    live = LiveRun(walk, folder, 6.0, 0)
    reader = subprocess.Popen([sys.executable, "-c", _READER], stdout=subprocess.PIPE)
    try:
        live.start()
        if reader.stdout is None or not reader.stdout.readline():
            raise NodeError("the subscriber does not start")
        live.robot.spin(1.0)
        reader.send_signal(signal.SIGSTOP)
        memory, lost = live.process.memory, 0
        for _ in range(5):
            live.robot.clear()
            good = live.stream.good(3.0)
            live.robot.send(good)
            live.robot.finish(good)
            lost += 3000 - len(live.robot.friction)
        growth = live.process.memory - memory
        wrong = [f"{lost} estimates lost"] if lost else []
        wrong += [f"the memory grows by {growth:.0f} MiB"] if growth > _GROWTH else []
        return wrong + live.end()
    finally:
        reader.kill()
        reader.wait()
        live.close()


def _second(walk: Walk, folder: Path) -> Wrong:
    with closing(LiveRun(walk, folder, _BEFORE, 0)) as live:
        live.start()
        with closing(NodeProcess(folder, "inputs_reliable:=true", f"identified_parameters:={live.saved}")) as second:
            give_up = time.monotonic() + 15.0
            while second.process.poll() is None and time.monotonic() < give_up and "another" not in second.output:
                live.robot.spin(0.2)
            good = live.stream.good(2.0)
            live.robot.send(good)
            named = live.saved.name in second.output and "another" in second.output
            wrong = [] if named else ["the second node does not warn about the file"]
            if second.end() not in (0, 1) or "Traceback" in second.output:
                wrong.append(f"exit code {second.process.returncode} of the second node")
        return [*wrong, *live.end(), *_whole(live.saved)]


def _mid_walk(walk: Walk, folder: Path) -> Wrong:
    driver, stream, scorer = EstimatorDriver(walk), Stream(walk, 0, time.time_ns()), Scorer()
    stream.index = 6800  # in the middle of a swing
    good = stream.good(6.0)
    _, errors, sigma = scorer.errors(good, driver.feed(good))
    within = float((np.abs(errors) <= SIGMAS * sigma).mean())
    last = float(moving_rms(errors)[-1])
    wrong = [] if within >= 0.95 else [f"{100.0 * within:.0f} % within three sigma"]
    return wrong + ([] if last < 0.1 else [f"error of {last:.2f} N m after six seconds"])
