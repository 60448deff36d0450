"""Rows of the performance table that start other processes: node, split graph, start of the node, demo, tests."""

from __future__ import annotations

import json
import math
import os
import subprocess
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.speed.live_nodes import LATENESS, RELAYED
from benchmarks.speed.rows import BenchmarkError, Figure, Progress, Run
from benchmarks.speed.waiting import WaitedProcesses, children
from benchmarks.speed.yardsticks import spread
from friction_estimator.config import Config
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.robot import robot_file
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import header_stamp, stamp_of
from friction_estimator.ros.processes import LoadMeter, cpu_seconds, environment
from friction_estimator.types import FloatArray, IntArray
from friction_estimator.views.live_view import VIEWS

ROBOT = "suralp"
_ROOT = Path(__file__).parents[2]
_WARM_UP = 3.0
"""Time before the measured window: discovery is over and the robot has begun to walk [s]."""
_MARGIN = 1.0
_WALK_SAMPLES = 10_000
"""Length of the bag that the robot plays again and again."""
_START_UP = 180.0
_PATIENCE = 30.0
_IDLE = 0.05
"""CPU of a process that has nothing left to do [cores]."""
_STARTS = 5
_DISCOVERY = 4.0
"""Time after which robot and listener have found each other, so that a start is not that of their middleware [s]."""
_VIEW_START = 10.0
"""Time in which a view imports its libraries and finds the topics, or ends [s]."""
_IN_FLIGHT_NS = 100_000_000
"""Estimates of this time may not have arrived [ns]."""
_SIMULATOR = "simulation: "
"""Start of the names of the simulator node's own diagnostics."""
_DEMO_PROCESSES = 2  # simulator and estimator; the demo itself records
_POLL = 0.2
_SLOWEST = 20.0
"""Longest time that the demo may take, in simulated durations, beyond two minutes for start and report."""


def node(run: Run, progress: Progress) -> list[Figure]:
    """CPU of the node against a node that only receives the inputs, lost samples, age of the estimates."""
    live = _measure(run, progress, "node", {"node": "all"})
    return [
        Figure(
            "node, 4 inputs at 1 kHz: CPU / CPU of a node that only receives and publishes one",
            live.cores["node"] / live.cores["yardstick"],
            must=1.9,
            aim=1.5,
            details={
                "node [cores]": live.cores["node"],
                "yardstick node [cores]": live.cores["yardstick"],
                "measured time [s]": run.options.node_seconds,
            },
        ),
        Figure("node: lost joint samples", live.lost, must=0.0, aim=0.0),
        *(
            Figure(
                f"node: age of the estimate at a subscriber, {name}",
                live.age[place],
                "ms",
                must,
                aim,
                details={
                    "of the yardstick node's messages [ms]": live.relay_age[place],
                    "lateness of the robot [ms]": live.late[place],
                },
            )
            for place, (name, must, aim) in enumerate((("p50", 1.0, 0.7), ("p99", 5.0, 3.0), ("longest", None, 1.0)))
        ),
    ]


def split(run: Run, progress: Progress) -> list[Figure]:
    """The same with base state and friction in two nodes (``graph:=split``)."""
    live = _measure(run, progress, "split", {"friction": "friction", "base_state": "base_state"})
    names = "friction", "base_state"
    return [
        Figure(
            "graph:=split: CPU of both nodes / CPU of a node that only receives and publishes one",
            sum(live.cores[name] for name in names) / live.cores["yardstick"],
            details={f"node {name} [cores]": live.cores[name] for name in names},
        ),
        Figure("graph:=split: lost joint samples", live.lost, must=0.0, aim=0.0),
        Figure(
            "graph:=split: age of the friction at a subscriber, p50",
            live.age[0],
            "ms",
            details={"p99 [ms]": live.age[1], "of the base state, p50 [ms]": live.base_age[0]},
        ),
    ]


def fast(run: Run, progress: Progress) -> list[Figure]:
    """The node with inputs at 2 kHz: lost samples, age of the estimates."""
    live = _measure(run, progress, "fast", {"node": "all"}, rate=2000)
    return [
        Figure(
            "node at 4 x 2 kHz: lost joint samples",
            live.lost,
            must=0.0,
            details={
                "node [cores]": live.cores["node"],
                "age of the estimates at a subscriber, p50 [ms]": live.age[0],
                "p99 [ms]": live.age[1],
                "longest [ms]": live.age[2],
            },
        )
    ]


@dataclass(frozen=True, slots=True)
class _Live:
    """Result of one live measurement.

    Attributes
    ----------
    cores : CPU time by name of the node, divided by real time
    lost : joint samples without an estimate
    age, relay_age, base_age, late : p50, p99 and maximum of the ages of the estimates, of the yardstick node's messages
        and of the base states at the listener, and of how late the robot sent [ms]
    """

    cores: dict[str, float]
    lost: int
    age: tuple[float, ...]
    relay_age: tuple[float, ...]
    base_age: tuple[float, ...]
    late: tuple[float, ...]


def _measure(run: Run, progress: Progress, name: str, nodes: dict[str, str], rate: int = 1000) -> _Live:
    """Run robot, nodes with these ``stages`` by their names, yardstick node and listener."""
    seconds, folder = run.options.node_seconds, _folder(run, name)
    config, bag = _bag(run, rate)
    with WaitedProcesses(folder, environment()) as processes:
        heard_topics = topics.FRICTION, topics.BASE_STATE
        types_heard = {RELAYED: topics.JOINT_STATE, **{topic.name: topic.type for topic in heard_topics}}
        listener = _listener(processes, folder / "heard.npz", types_heard)
        measured = {node: _estimator(processes, stages) for node, stages in nodes.items()}
        types = _input_types(config)
        relayed = config.output.joint_states_topic
        measured["yardstick"] = _role(processes, "yardstick", {"types": types, "relayed": relayed})
        total = round(rate * (_WARM_UP + seconds + _MARGIN))
        robot = _robot(processes, config, bag, folder, subscribers=len(measured), samples=total, rate=rate)
        start_ns = _await_start(processes, folder)
        _sleep_until(start_ns + int(1e9 * _WARM_UP), processes)
        before = {node: cpu_seconds(process.pid) for node, process in measured.items()}
        begun = time.monotonic()
        while (elapsed := time.monotonic() - begun) < seconds:
            progress(elapsed, seconds)
            time.sleep(min(0.5, seconds - elapsed))
            processes.check()
        elapsed = time.monotonic() - begun
        cores = {node: (cpu_seconds(process.pid) - before[node]) / elapsed for node, process in measured.items()}
        processes.wait(robot, _PATIENCE)
        for process in measured.values():
            _await_idle(process.pid)
        processes.end(listener)
    heard = np.load(folder / "heard.npz")
    window = start_ns + np.array([1e9 * _WARM_UP, 1e9 * (_WARM_UP + seconds)]).astype(np.int64)
    late = json.loads((folder / "robot.json").read_text())["late_ms"]
    ages, relayed_ages, base_ages = (
        _ages(heard[topic], window) for topic in (topics.FRICTION.name, RELAYED, topics.BASE_STATE.name)
    )
    lost = round(rate * seconds) - len(ages)
    return _Live(cores, lost, _quantiles(ages), _quantiles(relayed_ages), _quantiles(base_ages), tuple(late))


def views(run: Run, progress: Progress) -> list[Figure]:
    """CPU of the node and age of its estimates with each live view of its topics, and before and after it."""
    seconds, folder = run.options.node_seconds, _folder(run, "views")
    config, bag = _bag(run)
    names = [name for name in VIEWS if name == "web" or find_spec(name)]
    cores: list[dict[str, float]] = []
    windows: list[IntArray] = []
    with WaitedProcesses(folder, environment()) as processes:
        listener = _listener(processes, folder / "heard.npz", {topics.FRICTION.name: topics.JOINT_STATE})
        node = _estimator(processes, "all")
        turns = ["", *(turn for name in names for turn in (name, ""))]
        _robot(processes, config, bag, folder, subscribers=1, samples=round(1e3 * len(turns) * (seconds + _START_UP)))
        _await_start(processes, folder)
        for number, name in enumerate(turns):
            measured = {"node": node}
            if name:
                words = "view", "--view", name, "--view-port", "0"
                measured["view"] = processes.start(name, "friction_estimator", *words)
            time.sleep(_VIEW_START)
            begun, meter = time.time_ns(), LoadMeter({key: process.pid for key, process in measured.items()})
            meter.read()
            time.sleep(seconds)
            meter.read()
            processes.check()
            cores.append(meter.cores())
            windows.append(np.array([begun, time.time_ns() - _IN_FLIGHT_NS]))
            if name:
                processes.end(measured["view"])
            progress(number + 1, len(turns))
        processes.end(listener)
    heard = np.load(folder / "heard.npz")[topics.FRICTION.name]
    ages = [_quantiles(_ages(heard, window)) for window in windows]
    figures = []
    for during, name in zip(range(1, len(turns), 2), names, strict=True):
        without = 0.5 * (cores[during - 1]["node"] + cores[during + 1]["node"])
        details = {
            "node without [cores]": without,
            "process of the view [cores]": cores[during]["view"],
            "age of the estimates without, p50 [ms]": 0.5 * (ages[during - 1][0] + ages[during + 1][0]),
            "with, p50 [ms]": ages[during][0],
        }
        what = f"node while `view --view {name}` shows it: CPU / CPU without a view"
        figures.append(Figure(what, cores[during]["node"] / without, details=details))
    return figures


def start(run: Run, progress: Progress) -> list[Figure]:
    """Start of the node's process until its first estimate has arrived at a subscriber that is there already."""
    folder = _folder(run, "start")
    config, bag = _bag(run)
    durations = []
    with WaitedProcesses(folder, environment()) as processes:
        samples = round(1e3 * (_STARTS + 1) * _START_UP)
        _robot(processes, config, bag, folder, subscribers=0, samples=samples)
        _await_start(processes, folder)
        for repeat in range(_STARTS + 1):
            output = folder / f"first_{repeat}.npz"
            listener = _listener(processes, output, {topics.FRICTION.name: topics.JOINT_STATE}, first=True)
            time.sleep(_DISCOVERY)
            begun_ns = time.time_ns()
            estimator = _estimator(processes, "all")
            processes.wait(listener, _START_UP)
            durations.append(1e-9 * (int(np.load(output)[topics.FRICTION.name][0, 1]) - begun_ns))
            processes.end(estimator)
            progress(repeat + 1, _STARTS + 1)
    figures = spread(np.array(durations[1:]))  # the first start fills the caches
    return [
        Figure(
            "start of the node to the first estimate, warm cache",
            **figures,
            unit="s",
            must=2.5,
            aim=1.5,
            details={"very first start [s]": durations[0]},
        )
    ]


def _folder(run: Run, name: str) -> Path:
    folder = run.folder / name
    folder.mkdir()
    return folder


def _bag(run: Run, rate: int = 1000) -> tuple[Config, Path]:
    """Configuration of the robot and the bag that it plays, of samples at 1 or 2 kHz."""
    walk, bag = run.walk(ROBOT, "walk", _WALK_SAMPLES), run.folder / f"walk_played_{rate}"
    if not bag.exists():
        (walk if rate == 1000 else walk.doubled()).write(bag, rate // 1000 * _WALK_SAMPLES - 1)
    return walk.robot.config, bag


def _input_types(config: Config) -> dict[str, str]:
    """Input topics with their types in the order of sending: joints last, as from the simulator."""
    return {topic.name: topic.type for topic in reversed(topics.sensor_topics(config))}


def _estimator(processes: WaitedProcesses, stages: str) -> subprocess.Popen[bytes]:
    parameters = ("--ros-args", "--params-file", str(robot_file(ROBOT)), "-p", f"stages:={stages}")
    return processes.start(f"estimator_{stages}", "friction_estimator.ros.executables", "estimator_node", *parameters)


def _role(processes: WaitedProcesses, role: str, settings: dict[str, object]) -> subprocess.Popen[bytes]:
    return processes.start(role, "benchmarks.speed.live_nodes", role, json.dumps(settings))


def _robot(
    processes: WaitedProcesses,
    config: Config,
    bag: Path,
    folder: Path,
    subscribers: int,
    samples: int,
    rate: int = 1000,
) -> subprocess.Popen[bytes]:
    settings = {
        "bag": str(bag),
        "rate": rate,
        "topics": list(_input_types(config)),
        "subscribers": subscribers,
        "samples": samples,
        "report": str(folder / "robot.json"),
    }
    return _role(processes, "robot", settings)


def _listener(
    processes: WaitedProcesses, output: Path, types: dict[str, str], first: bool = False
) -> subprocess.Popen[bytes]:
    """Start a listener to topics of these types, and wait until it has subscribed."""
    process = _role(processes, "listener", {"types": types, "output": str(output), "first": first})
    processes.wait_until(output.with_suffix(".ready").exists, _START_UP, "the listener has not started")
    return process


def _await_start(processes: WaitedProcesses, folder: Path) -> int:
    """Stamp of the first sample [ns]."""
    report = folder / "robot.json"
    processes.wait_until(report.exists, _START_UP, "the nodes have not subscribed to the topics of the robot")
    return int(json.loads(report.read_text())["start_ns"])


def _sleep_until(time_ns: int, processes: WaitedProcesses) -> None:
    time.sleep(max(0.0, 1e-9 * (time_ns - time.time_ns())))
    processes.check()


def _await_idle(pid: int) -> None:
    """Wait until a node has used all messages in its queues, at most for 30 s."""
    give_up = time.monotonic() + _PATIENCE
    used, is_idle = cpu_seconds(pid), False
    while not is_idle and time.monotonic() < give_up:
        time.sleep(1.0)
        before, used = used, cpu_seconds(pid)
        is_idle = used - before < _IDLE


def _ages(heard: IntArray, window: IntArray) -> FloatArray:
    """Ages of the messages with a stamp in the window when they arrived, each stamp once [ms]."""
    stamps, first = np.unique(heard[:, 0], return_index=True)
    inside = (stamps >= window[0]) & (stamps < window[1])
    ages: FloatArray = 1e-6 * (heard[first, 1] - stamps)[inside]
    return ages


def _quantiles(ages: FloatArray) -> tuple[float, ...]:
    """The p50, p99 and maximum."""
    return tuple(np.quantile(ages, LATENESS).tolist()) if ages.size else (math.nan,) * len(LATENESS)


def demo(run: Run, progress: Progress) -> list[Figure]:
    """Demo without a terminal: delay of the simulation, and CPU of demo, simulator and estimator together."""
    seconds, folder = run.options.demo_seconds, run.folder / "demo"
    with WaitedProcesses(run.folder) as processes:
        options = ("--headless", "--duration", str(seconds), "--output", str(folder))
        process = processes.start("demo", "friction_estimator", "demo", *options)
        cores = _cores_of_the_walk(process, processes, 120.0 + _SLOWEST * seconds, progress)
    simulated = {"simulated time [s]": seconds}
    return [
        Figure("demo: behind real time at the end", _behind(folder / "run"), "s", must=0.1, details=simulated),
        Figure("demo: CPU of all its processes", cores, "cores", must=1.4, aim=1.0),
    ]


def tests(run: Run, progress: Progress) -> list[Figure]:
    """Tests as README runs them, in the environment of this Python."""
    before = os.times()
    with WaitedProcesses(run.folder) as processes:
        processes.wait(processes.start("tests", "pytest", cwd=_ROOT), math.inf)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    duration = {"duration [min]": (after.elapsed - before.elapsed) / 60.0}
    return [Figure("README's test command: CPU time", used / 60.0, "min", must=6.0, aim=3.6, details=duration)]


def _cores_of_the_walk(
    process: subprocess.Popen[bytes], processes: WaitedProcesses, patience: float, progress: Progress
) -> float:
    """CPU time divided by real time while the simulator's process runs; waits for the end of the demo."""
    meter, give_up = LoadMeter({}), time.monotonic() + patience
    while process.poll() is None:
        if time.monotonic() > give_up:
            raise BenchmarkError(f"the demo has not ended after {patience:.0f} s")
        started = children(process.pid)
        if len(started) >= _DEMO_PROCESSES:
            meter.pids = meter.pids or {str(pid): pid for pid in (process.pid, *started)}
            meter.read()
            progress(meter.seconds, patience)
        time.sleep(_POLL)
    processes.check(process)
    if not (cores := meter.cores()):
        raise BenchmarkError("the demo ended before its simulator had run")
    return sum(cores.values())


def _behind(bag: Path) -> float:
    """Wall-clock time of the simulator's last report minus the stamp of the last joint state [s].

    The simulator stamps its samples from the wall clock at its start on, and reports after the last one.
    """
    reader = BagReader(bag)
    joint_states = reader.find_topic("joint_states", topics.JOINT_STATE) or ""
    last_sample = last_report = 0
    for message in reader.messages((joint_states, topics.NODE_STATUS.name)):
        if message.topic == joint_states:
            last_sample = stamp_of(message.raw)
            continue
        decoded = reader.decode(message)
        if any(status.name.startswith(_SIMULATOR) for status in decoded.status):
            last_report = header_stamp(decoded)
    if not last_sample or not last_report:
        raise BenchmarkError(f"the bag {bag} of the demo lacks joint states or diagnostics of the simulator")
    return 1e-9 * (last_report - last_sample)
