"""How every node of this package starts, spins and ends: one executor, one loop, exit code 0 on SIGINT and SIGTERM."""

from __future__ import annotations

import gc
import signal
import sys
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TypeVar

import rclpy
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.signals import SignalHandlerOptions

from friction_estimator.errors import FrictionEstimatorError

_Node = TypeVar("_Node", bound=Node)
Running = Callable[[], bool]
"""False once the process was asked to end."""

IDLE = 0.1
"""Longest sleep of the loop [s]: how long a signal can stay unnoticed while no message comes."""

_MATCHING = 0.5


class _EndRequest:
    """Remembers SIGINT and SIGTERM.

    rclpy's own handlers shut the context down at once, under the feet of a callback that still publishes. Here the loop
    ends first, then the node may publish, log and save, and the context goes last.
    """

    def __init__(self) -> None:
        self._asked = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._remember)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self._asked = True  # "ros2 launch" may send the same signal twice, so the second one is no other wish

    def running(self) -> bool:
        return not self._asked and rclpy.ok()


def make_executor() -> Executor:
    """The fastest executor there is: ``EventsExecutor`` where rclpy has it, else the single-threaded one.

    Never the multi-threaded one: at four topics of 1 kHz it loses nearly all messages.
    """
    try:
        from rclpy.experimental.events_executor import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor()
    return EventsExecutor()


def spin(node: Node, executor: Executor, running: Running) -> None:
    """Run callbacks until the process shall end.

    ``executor.spin()`` would be the natural call, but the one of ``EventsExecutor`` runs no callback in some releases.
    """
    spin_once = executor.spin_once
    while running():
        spin_once(timeout_sec=IDLE)


def await_subscribers(executor: Executor, publisher: Publisher, count: int, running: Running) -> None:
    """Spin until a topic has that many subscribers: what is sent before is lost to them.

    A publisher learns of its subscribers before these have learnt of all publishers, so a short pause follows.
    """
    while running() and publisher.get_subscription_count() < count:
        executor.spin_once(timeout_sec=0.02)
    pause_ends = time.monotonic() + _MATCHING
    while count and running() and time.monotonic() < pause_ends:
        executor.spin_once(timeout_sec=0.02)


def run(
    make_node: Callable[[], _Node],
    arguments: Sequence[str] | None = None,
    loop: Callable[[_Node, Executor, Running], None] = spin,
) -> int:
    """Run one node as a process.

    Parameters
    ----------
    make_node : builds the node; an error of this package in it, or in the loop, ends the process with one line
    arguments : command line, None for ``sys.argv``
    loop : what to do until the end; a method ``close()`` of the node is called after it

    Returns
    -------
    int
        Exit code: 0 after SIGINT, SIGTERM or the end of the loop, 1 after an error of this package.
    """
    end = _EndRequest()
    rclpy.init(
        args=None if arguments is None else [sys.argv[0], *arguments], signal_handler_options=SignalHandlerOptions.NO
    )
    node: _Node | None = None
    executor: Executor | None = None
    try:
        node = make_node()
        executor = make_executor()
        executor.add_node(node)
        freeze()
        if end.running():  # a node takes seconds to build
            loop(node, executor, end.running)
    except ExternalShutdownException:
        pass
    except FrictionEstimatorError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        _close(node, executor)
    return 0


def end_if_asked(running: Running) -> None:
    """Leave the loop from within long work, once the process was asked to end.

    Raises
    ------
    ExternalShutdownException
        :func:`run` ends the node cleanly after it.
    """
    if not running():
        raise ExternalShutdownException()


def freeze() -> None:
    """Take all that exists out of the collector's sight: it stays anyway, and need not be walked at 1 kHz."""
    gc.collect()
    gc.freeze()


def _close(node: Node | None, executor: Executor | None) -> None:
    """Tear down in the order that rclpy survives."""
    if executor is not None:
        executor.shutdown()
    if node is not None:
        close = getattr(node, "close", None)
        if close is not None:
            close()
        node.destroy_node()
    rclpy.try_shutdown()
