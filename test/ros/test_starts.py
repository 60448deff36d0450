"""Claims about the states of the node: in every order of transitions, timers and URDFs it lives and says what it needs.

The real node goes through them in a process of its own, without waiting: a transition is a call of its service, and
all timers fire after each.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from friction_estimator.io.robot import load_robot, robot_file

CONFIGURE, CLEANUP, ACTIVATE, DEACTIVATE = "configure", "cleanup", "activate", "deactivate"
SHUTDOWN, URDF, OTHER_URDF, NO_TRANSITION = "shutdown", "URDF", "other URDF", "no transition"
UNCONFIGURED, INACTIVE, ACTIVE, FINALIZED = "unconfigured", "inactive", "active", "finalized"
STATES = {
    (UNCONFIGURED, CONFIGURE): INACTIVE,
    (INACTIVE, ACTIVATE): ACTIVE,
    (ACTIVE, DEACTIVATE): INACTIVE,
    (INACTIVE, CLEANUP): UNCONFIGURED,
    **{(state, SHUTDOWN): FINALIZED for state in (UNCONFIGURED, INACTIVE, ACTIVE)},
}
"""Transitions that there are."""
NUMBERS = {CONFIGURE: 1, CLEANUP: 2, ACTIVATE: 3, DEACTIVATE: 4, NO_TRANSITION: 99}
SHUTDOWNS = {UNCONFIGURED: 5, INACTIVE: 6, ACTIVE: 7, FINALIZED: 7}
BEFORE_THE_END = [
    (),
    (CONFIGURE,),
    (CONFIGURE, ACTIVATE),
    (CONFIGURE, ACTIVATE, DEACTIVATE),
    (URDF, CLEANUP),
    (OTHER_URDF,),
]
"""States and URDFs in which a node is shut down."""
STEPS = (CONFIGURE, ACTIVATE, DEACTIVATE, CLEANUP, URDF, OTHER_URDF)
STARTS = [("topic", True, 3), ("topic", False, 2), ("file", True, 2), ("file", False, 2)]
"""Source of the URDF, autostart, and the length of the sequences of steps that all are tried."""


def all_sequences(length: int) -> list[str]:
    """A walk in which every sequence of so many steps comes once: a path along all edges of their graph."""
    left = {words: list(STEPS) for words in itertools.product(STEPS, repeat=length - 1)}
    path, walk = [STEPS[: length - 1]], list[str]()
    while path:
        if left[path[-1]]:
            path.append((*path[-1][1:], left[path[-1]].pop()))
        else:
            walk.append(path.pop()[-1])
    return walk[::-1]


class Model:
    """What the node must be and say.

    Parameters
    ----------
    source : of the URDF, ``file`` or ``topic``
    autostart : parameter of the node
    """

    def __init__(self, source: str, autostart: bool) -> None:
        self.from_file, self.waits = source == "file", autostart and source == "topic"
        self.state = ACTIVE if autostart and self.from_file else UNCONFIGURED
        self.on_topic = ""
        self.used = URDF if self.from_file else ""

    def step(self, step: str) -> None:
        if step in (URDF, OTHER_URDF):
            self.on_topic = step
            if self.waits and self.state == UNCONFIGURED:
                self.state, self.used, self.waits = ACTIVE, step, False
        elif (self.state, step) in STATES and (step != CONFIGURE or self.from_file or self.on_topic):
            if step == CONFIGURE and not self.from_file:
                self.used, self.waits = self.on_topic, False
            self.state = STATES[self.state, step]

    def is_wrong(self, state: str, statuses: dict[str, tuple[bool, str]]) -> bool:
        """Whether the state or the statuses, with warning and text, are not as they must be."""
        words = {INACTIVE: "activate the node", FINALIZED: "start it to use it again", ACTIVE: ""}
        waits = (
            "configure the node" if self.from_file or self.on_topic else "waiting for the URDF on /robot_description"
        )
        warns, text = statuses["estimates"]
        is_wrong = state != self.state or not warns or words.get(state, waits) not in text
        if state in (INACTIVE, ACTIVE):
            warns, text = statuses["robot description"]
            differs = bool(self.on_topic) and self.on_topic != self.used
            is_wrong |= (warns, "link trunk" in text) != (differs, differs)
        return is_wrong


def walk_all() -> None:
    """Let nodes go through all walks; print what is wrong."""
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState
    from std_msgs.msg import String

    from friction_estimator.kernels import compiler
    from friction_estimator.ros import spin
    from friction_estimator.ros.estimator_node import EstimatorNode
    from friction_estimator.ros.middleware import state_of

    compiler.prepare()
    text = load_robot("suralp").urdf_xml
    texts = {
        URDF: text.replace("<link", "<!-- the same robot --> <link", 1),
        OTHER_URDF: re.sub(r'<mass value="[^"]*"', '<mass value="12.0"', text, count=1),
    }

    def walk(node: Any, executor: Any, model: Model, steps: Sequence[str]) -> None:
        statuses = dict[str, tuple[bool, str]]()
        reports = next(one for one in node.publishers if one.topic_name == "/diagnostics")
        publish = reports.publish

        def note(message: Any) -> None:
            statuses.update({one.name.partition(": ")[2]: (one.level > b"\0", one.message) for one in message.status})
            publish(message)

        reports.publish = note
        node.play(executor, lambda: False)
        for place, step in enumerate(("", *steps)):
            model.step(step)
            if step in texts:
                topic = next(one for one in node.subscriptions if one.topic_name == "/robot_description")
                topic.callback(String(data=texts[step]))
            elif step:
                number = SHUTDOWNS[state_of(node)[1]] if step == SHUTDOWN else NUMBERS[step]
                request = ChangeState.Request(transition=Transition(id=number))
                node._service_change_state.callback(request, ChangeState.Response())
            statuses.clear()
            for timer in list(node.timers):
                timer.callback()
            if model.is_wrong(state_of(node)[1], statuses):
                print("wrong:", ("start", *steps)[: place + 1][-5:], "is", state_of(node)[1], statuses, vars(model))

    for source, autostart, length in STARTS:
        arguments = ["--ros-args", "--params-file", str(robot_file("suralp")), "-p", "observer:=momentum"]
        arguments += ["-p", f"autostart:={autostart}".lower(), *(["-p", "robot.urdf:=''"] if source == "topic" else [])]
        for steps in [
            all_sequences(length),
            *((*before, SHUTDOWN, *NUMBERS, URDF, OTHER_URDF) for before in BEFORE_THE_END),
        ]:
            model = Model(source, autostart)
            code = spin.run(EstimatorNode, arguments, lambda *own, m=model, s=steps: walk(*own[:2], m, s))
            print(source, autostart, len(steps), "steps, exit code", code)


def test_in_every_order_of_transitions_timers_and_descriptions_the_node_lives_and_says_what_it_needs() -> None:
    command = [sys.executable, "-c", "from test.ros.test_starts import walk_all; walk_all()"]
    walked = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = [line for line in walked.stdout.splitlines() if not line.startswith(("[INFO]", "[WARN]", "[ERROR]"))]
    ends = [f"{source} {autostart}" for source, autostart, _ in STARTS for _ in range(1 + len(BEFORE_THE_END))]
    assert walked.returncode == 0 and len(lines) == len(ends), walked.stdout[-3000:]
    assert all(line.startswith(end) and line.endswith("exit code 0") for line, end in zip(lines, ends, strict=True))
