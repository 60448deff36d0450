"""How every node of this package starts, spins and ends: one executor, one loop, exit code 0 on SIGINT and SIGTERM."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

import rclpy
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node

from friction_estimator.core.exceptions import FrictionEstimatorError

_Node = TypeVar("_Node", bound=Node)

_IDLE = 0.5
"""Longest sleep of the loop [s]: how long a shutdown that no signal announces can stay unnoticed."""


def make_executor() -> Executor:
    """The fastest executor there is: ``EventsExecutor`` where rclpy has it, else the single-threaded one.

    Never the multi-threaded one: at four topics of 1 kHz it loses nearly all messages.
    """
    try:
        from rclpy.experimental.events_executor import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor()
    return EventsExecutor()


def spin(node: Node, executor: Executor) -> None:
    """Run callbacks until the context shuts down.

    ``executor.spin()`` would be the natural call, but the one of ``EventsExecutor`` runs no callback in some releases.
    """
    spin_once = executor.spin_once
    while node.context.ok():
        spin_once(timeout_sec=_IDLE)


def run(
    make_node: Callable[[], _Node],
    arguments: Sequence[str] | None = None,
    loop: Callable[[_Node, Executor], None] = spin,
) -> int:
    """Run one node as a process.

    Parameters
    ----------
    make_node : builds the node; an error of this package in it, or in the loop, ends the process with one line
    arguments : command line, None for ``sys.argv``
    loop : what to do until the shutdown

    Returns
    -------
    int
        Exit code: 0 after SIGINT, SIGTERM or the end of the loop, 1 after an error of this package.
    """
    rclpy.init(args=None if arguments is None else list(arguments))
    node: _Node | None = None
    executor: Executor | None = None
    try:
        node = make_node()
        executor = make_executor()
        executor.add_node(node)
        gc.collect()
        gc.freeze()  # all that start-up made stays anyway: the collector need not walk it at 1 kHz
        loop(node, executor)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except FrictionEstimatorError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        _end(node, executor)
    return 0


def _end(node: Node | None, executor: Executor | None) -> None:
    """Tear down in the order that rclpy survives; ``ros2 launch`` may send a second SIGINT meanwhile."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if executor is not None:
        executor.shutdown()
    if node is not None:
        close = getattr(node, "close", None)
        if close is not None:
            close()
        node.destroy_node()
    rclpy.try_shutdown()
