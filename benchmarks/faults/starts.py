"""Starts of the node: where the URDF is, who brings the node up, and which sensor is missing. A row for each."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from std_msgs.msg import String

from benchmarks.faults.files import exit_code
from benchmarks.faults.live import NodeProcess
from benchmarks.faults.matrix import ProcessFault, Wrong
from benchmarks.faults.node import FaultyRobot
from benchmarks.faults.readings import Reading, Walk
from benchmarks.faults.runs import Stream
from benchmarks.faults.streams import IMU, JOINTS, WRENCHES, is_of
from friction_estimator.ros.middleware import LATCHED

_SECONDS = 5.0
"""Time that a node runs in its start [s]."""
_LATE = 3.0
"""Time after which a late URDF comes [s]."""
_SOURCES = {
    "file": "the URDF is in a file",
    "latched": "the URDF is on robot_description before the node starts",
    "late": f"the URDF is on robot_description after {_LATE:.0f} s",
    "changed": "the URDF is on robot_description, and another one in mid-run",
    "never": "there is no URDF",
}
_SENSORS: dict[str, tuple[tuple[type, ...], str, str]] = {
    "joints": (JOINTS, "input joint_states", "no message"),
    "imu": (IMU, "sensors", "imu"),
    "wrenches": (WRENCHES, "sensors", "foot"),
}
"""Sensors that are missing, and status and words that name them."""
_CONFIGURE, _CLEANUP, _ACTIVATE, _DEACTIVATE, _NONE = 1, 2, 3, 4, 99
"""Numbers of transitions; there is none of the last number."""


def start_faults() -> list[ProcessFault]:
    """All rows."""
    rows = [
        ProcessFault(
            f"start_{source}{'' if autostart else '_managed'}",
            f"{what}; autostart {'on' if autostart else 'off'}",
            "lives; statuses say what it waits for, or name the difference; "
            + ("" if source == "never" else "estimates"),
            partial(_start, source, autostart),
        )
        for source, what in _SOURCES.items()
        for autostart in (True, False)
    ]
    rows += [
        ProcessFault(
            f"start_no_{name}",
            f"no {name} from the start",
            f"lives; `{status}` names what is missing",
            partial(_without, name),
        )
        for name, (_, status, _) in _SENSORS.items()
    ]
    orders = "any two of configure, activate, deactivate, cleanup and a transition that does not exist, in each order"
    return [*rows, ProcessFault("start_orders", orders, "lives, and estimates after it", _orders)]


@contextmanager
def _node(walk: Walk, folder: Path, *parameters: str) -> Iterator[tuple[NodeProcess, FaultyRobot]]:
    with closing(FaultyRobot(walk)) as robot, closing(NodeProcess(folder, *parameters)) as process:
        yield process, robot


def _await_status(robot: FaultyRobot, name: str, words: str) -> None:
    """Wait until a status has these words."""

    def has() -> bool:
        return bool(robot.reports) and words in robot.reports[-1][1].get(name, ("", ""))[1]

    robot.spin_until(has, f"status {name} with {words!r}")


def _change(robot: FaultyRobot, *transitions: int) -> None:
    for number in transitions:
        robot.call(ChangeState, "change_state", ChangeState.Request(transition=Transition(id=number)))


def _estimates(walk: Walk, robot: FaultyRobot, keep: Callable[[Reading], bool] = lambda one: True) -> Wrong:
    """Whether good messages lead to estimates; ``keep``: those that are sent."""
    robot.connect(compensation=False)
    robot.send([one for one in Stream(walk, 0, time.time_ns()).good(_SECONDS) if keep(one)])
    return [] if robot.friction else ["no estimate"]


def _start(source: str, autostart: bool, walk: Walk, folder: Path) -> Wrong:
    text = walk.robot.urdf_xml
    parameters = [f"autostart:={str(autostart).lower()}", *([] if source == "file" else ["robot.urdf:=''"])]
    with _node(walk, folder, *parameters) as (process, robot):
        publisher = robot.node.create_publisher(String, "robot_description", LATCHED)
        if source in ("late", "never"):
            _await_status(robot, "estimates", "waiting for the URDF")
            robot.spin(_LATE if source == "late" else _SECONDS)
        if source not in ("file", "never"):
            publisher.publish(String(data=text))
        if not autostart and source != "never":
            _await_status(robot, "estimates", "configure the node")
            _change(robot, _CONFIGURE)
            _await_status(robot, "estimates", "activate the node")
            _change(robot, _ACTIVATE)
        wrong = [] if source == "never" else _estimates(walk, robot)
        if source == "changed":
            publisher.publish(String(data=re.sub(r'<mass value="[^"]*"', '<mass value="12.0"', text, count=1)))
            _await_status(robot, "robot description", "another URDF")
            wrong += [] if "another URDF" in process.output else ["the log does not name the other URDF"]
        return wrong + exit_code(process, process.end())


def _without(name: str, walk: Walk, folder: Path) -> Wrong:
    kinds, status, words = _SENSORS[name]
    with _node(walk, folder) as (process, robot):
        wrong = _estimates(walk, robot, lambda one: not is_of(one, kinds))
        _await_status(robot, status, words)
        return ([] if name == "joints" else wrong) + exit_code(process, process.end())


def _orders(walk: Walk, folder: Path) -> Wrong:
    transitions = (_CONFIGURE, _CLEANUP, _ACTIVATE, _DEACTIVATE, _NONE)
    with _node(walk, folder) as (process, robot):
        for pair in itertools.product(transitions, repeat=2):
            _change(robot, *pair)
        _change(robot, _DEACTIVATE, _CLEANUP, _CONFIGURE, _ACTIVATE)
        return _estimates(walk, robot) + exit_code(process, process.end())
