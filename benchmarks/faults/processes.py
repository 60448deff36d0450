"""Faults of process and middleware: signals, other nodes, odd messages. A function per row lists what is wrong."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from std_srvs.srv import Trigger

from benchmarks.faults.files import exit_code, file_faults
from benchmarks.faults.live import TIME_OUT, NodeError, NodeProcess
from benchmarks.faults.matrix import SAME, ProcessFault, Wrong
from benchmarks.faults.node import FaultyRobot, LiveRun
from benchmarks.faults.readings import Reading, Walk
from benchmarks.faults.runs import AS_BEFORE, SIGMAS, moving_rms
from benchmarks.faults.starts import start_faults
from benchmarks.faults.streams import SECOND
from benchmarks.faults.writers import writer_faults
from friction_estimator.errors import ConfigError
from friction_estimator.io.parameters import load_parameters
from friction_estimator.messages.cdr import JointStateTemplate
from friction_estimator.messages.topics import BASE_FRAME
from friction_estimator.types import ImuSample

_BEFORE = 2.5
"""Good data before a fault [s]."""
_GROWTH = 20.0
"""Growth of the memory of a node that other processes may cause [MiB]."""
_CLOCK = 40
"""Messages of the sensors between two messages on /clock: ten instants."""
_IN_SWING = 6800
"""Instant of the walk in the middle of a swing."""


def process_faults() -> dict[str, ProcessFault]:
    """All rows by name."""
    rows = [*_signals(), *start_faults(), *file_faults(), *writer_faults(), *_others()]
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
        ProcessFault("sigterm_save", "SIGTERM while parameters are saved", ends, _end_in_save),
        ProcessFault(
            "sigkill_run", "SIGKILL while the robot walks, after parameters were saved", killed, partial(_killed, False)
        ),
        ProcessFault(
            "sigkill_save",
            "SIGKILL while parameters are saved",
            "the saved file is whole, the next node reads it",
            partial(_killed, True),
        ),
        ProcessFault(
            "stopped", "SIGSTOP for two seconds while the robot walks", "estimates go on, exit code 0", _stopped
        ),
    ]


def _others() -> list[ProcessFault]:
    rows = {
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
        "second_without_file": (
            "a second estimator on the same topics, without a file",
            "`outputs` WARN of the first one; exit code 0 of both",
            _rival,
        ),
        "names_20000": (
            "joint states with 20,000 names, one joint is missing",
            "`input joint_states` ERROR names it; /diagnostics stay below 20 kB; estimates as before",
            _many_names,
        ),
        "imu_unsorted": (
            "20,000 IMU messages with stamps in any order, and no joint states",
            "memory bounded; estimates as before",
            _unsorted,
        ),
        "clock_loop": (
            "use_sim_time, and /clock and stamps of 3 s come again and again, as from a looped bag",
            "`sensors` WARN: restarted; nothing lost, error as in a loop of the streams; exit code 0",
            _looped,
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
    return exit_code(process, process.end(number))


def _catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal: Python alone has none but for SIGINT."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    caught = next((line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")), "0")
    return bool(int(caught, 16) >> (number - 1) & 1)


def _end_when_ready(number: int, walk: Walk, folder: Path) -> Wrong:
    process = NodeProcess(folder, "compensation.enabled:=true", f"identified_parameters:={folder / 'ready.yaml'}")
    process.await_output("estimating")
    return exit_code(process, process.end(number))


def _end_in_run(signals: tuple[int, ...], pause: float, walk: Walk, folder: Path) -> Wrong:
    with closing(LiveRun(walk, folder, _BEFORE, 0)) as live:
        live.start()
        torque = live.robot.compensation
        moved = any(np.frombuffer(raw[-live.robot.numbers :]).any() for raw in torque)
        wrong = live.end(*signals, pause=pause)
        return [*wrong, *_whole(live.saved), *([] if moved else ["friction was not compensated before the signal"])]


def _whole(file: Path) -> Wrong:
    """Whether a parameter file can be read, and no other file is left in its folder."""
    try:
        load_parameters(file)
    except ConfigError as error:
        return [str(error)]
    left = [path.name for path in file.parent.iterdir() if path.name.startswith(f".{file.name}") or ".tmp" in path.name]
    return [f"files that are left: {', '.join(left)}"] if left else []


def _end_in_save(walk: Walk, folder: Path) -> Wrong:
    with closing(LiveRun(walk, folder, _BEFORE, 0)) as live:
        live.start()
        _begin_saving(live)
        return [*live.end(signal.SIGTERM), *_whole(live.saved)]


def _begin_saving(live: LiveRun) -> None:
    """Call the service that saves, and wait for no answer."""
    client = live.robot.node.create_client(Trigger, "friction_estimator/save_parameters")
    live.robot.spin_until(client.service_is_ready, "service save_parameters")
    client.call_async(Trigger.Request())
    live.robot.spin(0.01)


def _killed(saving: bool, walk: Walk, folder: Path) -> Wrong:
    with closing(LiveRun(walk, folder, _BEFORE, 0)) as live:
        live.start()
        wrong = [] if live.robot.call(Trigger, "save_parameters").success else ["save_parameters failed"]
        if saving:
            _begin_saving(live)
        live.process.close()
        with closing(NodeProcess(folder, f"identified_parameters:={live.saved}")) as again:
            again.await_output("estimating")
            wrong += [] if "identified parameters read" in again.output else ["it is not read"]
            wrong += exit_code(again, again.end())
        return wrong if saving else wrong + _whole(live.saved)


def _stopped(walk: Walk, folder: Path) -> Wrong:
    with closing(LiveRun(walk, folder, 6.0, 0)) as live:
        live.start()
        live.process.send(signal.SIGSTOP)
        time.sleep(2.0)
        live.process.send(signal.SIGCONT)
        return [*_as_before(live, live.stream.good(3.0)), *live.end()]


def _as_before(live: LiveRun, readings: list[Reading], most: float = AS_BEFORE) -> Wrong:
    """Whether good data give an estimate each, with at most this multiple of the error before."""
    live.robot.clear()
    live.play(readings)
    _, errors, _ = live.scorer.errors(readings, live.robot.estimates(0.0, 0.0))
    lost = len(readings) // 4 - len(errors)
    wrong = [f"{lost} joint states without an estimate"] if lost else []
    if not moving_rms(errors).max() <= most * live.scorer.before:
        wrong.append(f"the error is {moving_rms(errors).max():.3f} N m, before {live.scorer.before:.3f} N m")
    return wrong


def _many_names(walk: Walk, folder: Path) -> Wrong:
    names = (*walk.joint_names[:-1], *(f"joint_{number}" for number in range(20_000)))
    message, zeros = JointStateTemplate(BASE_FRAME, names, with_state=True), np.zeros(len(names))
    with closing(LiveRun(walk, folder, 6.0, 0)) as live:
        live.start()
        publisher = live.robot.publishers[walk.robot.config.output.joint_states_topic]
        live.robot.clear()
        for _ in range(50):
            publisher.publish(message.serialize(time.time_ns(), zeros, zeros, zeros))
            live.robot.spin(0.04)
        texts = {one[0]: one[1:] for one in live.robot.estimates(0.0, time.monotonic()).texts if one[1] == "ERROR"}
        level, text = texts.get("input joint_states", ("", ""))
        wrong = [] if walk.joint_names[-1] in text else [f"`input joint_states` does not name the joint: {text[:100]}"]
        size = sum(len(key) + len(value) for values in live.robot.values.values() for key, value in values.items())
        size += sum(len(text) for _, text in texts.values())
        wrong += [f"/diagnostics have {size} characters"] if size > 20_000 else []
        return [*wrong, *_as_before(live, live.stream.good(3.0)), *live.end()]


def _unsorted(walk: Walk, folder: Path) -> Wrong:
    rng = np.random.default_rng(0)
    with closing(LiveRun(walk, folder, 6.0, 0)) as live:
        live.start()
        one = next(reading for reading in live.good[::-1] if isinstance(reading.sample, ImuSample))
        ahead = rng.integers(0, 400_000_000, 20_000).tolist()
        memory = live.process.memory
        live.robot.send([replace(one.shifted(stamp), arrival_ns=100_000 * k) for k, stamp in enumerate(ahead)])
        live.robot.spin(1.0)
        growth = live.process.memory - memory
        wrong = [f"the memory grows by {growth:.0f} MiB"] if growth > _GROWTH else []
        live.play(live.stream.good(2.0))
        return [*wrong, *_as_before(live, live.stream.good(3.0)), *live.end()]


def _looped(walk: Walk, folder: Path) -> Wrong:
    wrong: Wrong = []
    with closing(LiveRun(walk, folder, 6.0, 0, "use_sim_time:=true")) as live:
        clock = live.robot.node.create_publisher(Clock, "/clock", 10)
        live.start()
        bag = live.stream.good(3.0)

        def play(readings: Sequence[Reading]) -> None:
            for first in range(0, len(readings), _CLOCK):
                seconds, nanoseconds = divmod(readings[first].stamp_ns, SECOND)
                clock.publish(Clock(clock=Time(sec=seconds, nanosec=nanoseconds)))
                send(readings[first : first + _CLOCK])

        send, live.robot.send = live.robot.send, play
        for _ in range(3):
            wrong += _as_before(live, bag, SAME)
        live.robot.spin(1.5)
        texts = live.robot.estimates(0.0, time.monotonic()).texts
        named = any(name == "sensors" and level == "WARN" and "restarted" in text for name, level, text in texts)
        return [*wrong, *([] if named else ["`sensors` does not name the restart"]), *live.end()]


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
        return wrong + exit_code(process, process.end())


def _best_effort(walk: Walk, folder: Path) -> Wrong:
    with closing(NodeProcess(folder)) as process, closing(_best_effort_robot(walk)) as robot:
        process.await_output("estimating")
        robot.connect(compensation=False)
        good = walk.readings(0, 3000, time.time_ns())
        robot.send(good)
        robot.finish(good)
        wrong = [] if len(robot.friction) > 0.95 * 3000 else [f"{len(robot.friction)} of 3000 estimates"]
        return wrong + exit_code(process, process.end())


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
            live.play(live.stream.good(3.0))
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


def _rival(walk: Walk, folder: Path) -> Wrong:
    with closing(LiveRun(walk, folder, _BEFORE, 0)) as live:
        live.start()
        with closing(NodeProcess(folder, "inputs_reliable:=true")) as second:
            second.await_output("estimating")
            live.robot.clear()
            live.robot.send(live.stream.good(3.0))
            texts = live.robot.estimates(0.0, time.monotonic()).texts
            wrong = exit_code(second, second.end())
        named = any(name == "outputs" and level == "WARN" and "joint_friction" in text for name, level, text in texts)
        return [*wrong, *([] if named else ["`outputs` does not name the topic"]), *live.end()]


def _mid_walk(walk: Walk, folder: Path) -> Wrong:
    with closing(LiveRun(walk, folder, 6.0, 0)) as live:
        live.start(_IN_SWING)
        _, errors, sigma = live.scorer.errors(live.good, live.robot.estimates(0.0, 0.0))
        within = float((np.abs(errors) <= SIGMAS * sigma).mean())
        last = float(moving_rms(errors)[-1])
        wrong = [] if within >= 0.95 else [f"{100.0 * within:.0f} % within three sigma"]
        return [*wrong, *([] if last < 0.1 else [f"error of {last:.2f} N m after six seconds"]), *live.end()]
