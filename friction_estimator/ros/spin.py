"""Start, loop and end of every node of this package: one executor, one loop, exit code 0 after a signal to end.

And the states of a managed node in between.
"""

from __future__ import annotations

import gc
import os
import re
import select
import signal
import sys
import time
import traceback
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TypeVar

import rclpy
from lifecycle_msgs.msg import State
from rclpy.clock import Clock, ClockType
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.signals import SignalHandlerOptions

from friction_estimator.errors import ConfigError, FrictionEstimatorError, located
from friction_estimator.io.documents import read_yaml
from friction_estimator.kernels import compiler
from friction_estimator.ros.executables import on_end_signals
from friction_estimator.ros.middleware import HEARTBEAT, HEARTBEAT_PERIOD, refuse_wrong_transitions, state_of

_Node = TypeVar("_Node", bound=Node)
Running = Callable[[], bool]
"""Returns False after the process has received a signal to end."""

IDLE = 0.1
"""Longest sleep of the loop [s], and so the longest delay after a signal while no message arrives."""

_LONG_COMPILATION = 1.0  # after which the compilation of the kernels is logged [s]
_PARAMS_FILE = re.compile("'--params-file (?P<path>.+)'. Error: (?P<reason>.*)")  # in an error of ROS
_SHORT_WAIT = 0.02  # between two looks at the subscribers [s]
_MATCHING = 0.5  # until a subscriber has found all publishers of this process [s]


class _EndRequest:
    """Records signals to end.

    The handlers of rclpy shut the context down at once, while a callback may still publish. Here the loop ends first,
    then the node may publish, log and save, and the context is shut down last.
    """

    def __init__(self) -> None:
        self._received = False

    def record(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal; a second one changes nothing: `ros2 launch` may send the same one twice."""
        self._received = True
        if number == signal.SIGHUP:
            _leave_dead_terminal()

    def running(self) -> bool:
        return not self._received and rclpy.ok()


def _leave_dead_terminal() -> None:
    """Write no more to a terminal that was closed: every line would be an error, at which the work would end."""
    for stream in (1, 2):
        poll = select.poll()
        poll.register(stream, 0)
        if poll.poll(0):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, stream)
            os.close(nothing)


class ManagedNode(LifecycleNode):
    """A managed node whose states are a stack: each state adds what it makes, and undoes it when the node leaves it.

    Its state is published as a heartbeat.

    A transition that fails is logged, and the node stays as it was. Errors while it leaves a state are logged too, but
    the state is left all the same.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._undo: list[ExitStack] = []
        self._error: Exception | None = None
        self._logs_errors, self._finalized = True, False
        self._heartbeat = self.create_publisher(State, "~/heartbeat", HEARTBEAT)
        self.create_timer(HEARTBEAT_PERIOD, self._beat, clock=Clock(clock_type=ClockType.STEADY_TIME))
        refuse_wrong_transitions(self)

    @abstractmethod
    def configure(self, undo: ExitStack) -> None:
        """Check files and parameters, and make what the node needs; ``undo`` gets the callbacks that release it."""

    @abstractmethod
    def activate(self, undo: ExitStack) -> None:
        """Start subscriptions, publications and timers; ``undo`` gets the callbacks that end them."""

    def bring_up(self) -> None:
        """Configure and activate the node; raises what these raise."""
        for trigger in (self.trigger_configure, self.trigger_activate):
            self._raise_error_of(trigger)

    def close(self) -> None:
        """Leave all states; raises the errors of that."""
        if not self._finalized:
            self._raise_error_of(self.trigger_shutdown)

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Do :meth:`configure`."""
        return self._outcome(partial(self._enter, self.configure), TransitionCallbackReturn.FAILURE)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Do :meth:`activate`."""
        return self._outcome(partial(self._enter, self.activate), TransitionCallbackReturn.FAILURE)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Undo :meth:`activate`."""
        return self._outcome(self._leave)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Undo :meth:`configure`."""
        return self._outcome(self._leave)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Undo all."""
        self._finalized = True
        return self._outcome(self._leave_all)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Undo all after an error that no transition expects; the node may be configured again."""
        return self._outcome(self._leave_all)

    def _beat(self) -> None:
        """Publish the state: while messages come, the only thread of the node works."""
        number, label = state_of(self)
        self._heartbeat.publish(State(id=number, label=label))

    def _enter(self, make: Callable[[ExitStack], None]) -> None:
        with ExitStack() as undo:
            make(undo)
            self._undo.append(undo.pop_all())

    def _leave(self) -> None:
        self._undo.pop().close()

    def _leave_all(self) -> None:
        with ExitStack() as stack:
            while self._undo:
                stack.enter_context(self._undo.pop(0))  # they close in reverse order, all of them

    def _outcome(
        self, work: Callable[[], None], on_error: TransitionCallbackReturn = TransitionCallbackReturn.SUCCESS
    ) -> TransitionCallbackReturn:
        """Do the work of a transition; ``on_error``: result after an error of this package."""
        try:
            work()
        except ExternalShutdownException as error:
            self._error, text, outcome = error, "the process ends", on_error
        except FrictionEstimatorError as error:
            self._error, text, outcome = error, str(error), on_error
        except Exception as error:  # rclpy would drop it without a word
            self._error, text, outcome = error, traceback.format_exc(), TransitionCallbackReturn.ERROR
        else:
            return TransitionCallbackReturn.SUCCESS
        if self._logs_errors:
            self.get_logger().error(text)
        return outcome

    def _raise_error_of(self, trigger: Callable[[], object]) -> None:
        """Do a transition; raise its error instead of logging it."""
        self._error, self._logs_errors = None, False
        try:
            trigger()
        finally:
            self._logs_errors = True
        if self._error is not None:
            raise self._error


def make_executor() -> Executor:
    """``EventsExecutor`` where rclpy has it, otherwise the single-threaded executor.

    The multi-threaded executor loses nearly all messages of four topics at 1 kHz.
    """
    try:
        from rclpy.experimental.events_executor import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor()
    return EventsExecutor()


def spin(node: Node, executor: Executor, running: Running) -> None:
    """Run callbacks until the process shall end.

    ``executor.spin()`` is not used, because that of ``EventsExecutor`` runs no callback in some releases.
    """
    spin_once = executor.spin_once
    while running():
        spin_once(timeout_sec=IDLE)


def await_subscribers(executor: Executor, publisher: Publisher, count: int, running: Running) -> None:
    """Spin until a topic has this number of subscribers, which would lose earlier messages.

    A publisher finds its subscribers before these have found all publishers, so a short pause follows.
    """
    while running() and publisher.get_subscription_count() < count:
        executor.spin_once(timeout_sec=_SHORT_WAIT)
    pause_ends = time.monotonic() + _MATCHING
    while count and running() and time.monotonic() < pause_ends:
        executor.spin_once(timeout_sec=_SHORT_WAIT)


def run(
    make_node: Callable[[], _Node],
    arguments: Sequence[str] | None = None,
    loop: Callable[[_Node, Executor, Running], None] = spin,
) -> int:
    """Run one node as a process.

    Parameters
    ----------
    make_node : builds the node; an error of this package here or later ends the process with one line
    arguments : command line, None for ``sys.argv``
    loop : work of the node until the end; the method ``close()`` of the node, if it has one, is called afterwards

    Returns
    -------
    int
        Exit code: 0 after a signal to end or the end of the loop, 1 after an error of this package. All signals to
        end are ignored afterwards: while Python finalizes, it would restore their default actions, which kill.
    """
    end = _EndRequest()
    on_end_signals(end.record)
    try:
        _run(make_node, arguments, loop, end)
    except ExternalShutdownException:
        on_end_signals(signal.SIG_IGN)
    except FrictionEstimatorError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        on_end_signals(signal.SIG_IGN)
    return 0


def _run(
    make_node: Callable[[], _Node],
    arguments: Sequence[str] | None,
    loop: Callable[[_Node, Executor, Running], None],
    end: _EndRequest,
) -> None:
    with _clear_errors_of_ros():
        rclpy.init(
            args=None if arguments is None else [sys.argv[0], *arguments],
            signal_handler_options=SignalHandlerOptions.NO,
        )
    node: _Node | None = None
    executor: Executor | None = None
    try:
        with _clear_errors_of_ros():
            node = make_node()
        executor = make_executor()
        on_end_signals(end.record)  # some releases of EventsExecutor replace the handlers
        executor.add_node(node)
        freeze()
        if end.running():  # a node takes seconds to build
            loop(node, executor, end.running)
    finally:
        _close(node, executor)


@contextmanager
def _clear_errors_of_ros() -> Iterator[None]:
    """Turn an error of ROS about the command line, or with security switched on, into one that names the remedy.

    Raises
    ------
    ConfigError
        Instead of the error of ROS.
    """
    try:
        yield
    except RuntimeError as error:  # RCLError
        reason = (
            str(error).partition(", at /")[0].splitlines()[0].removeprefix("failed to initialize rcl: ").rstrip(".")
        )
        if file := _PARAMS_FILE.search(reason):
            with located("--params-file"):
                read_yaml(Path(file["path"]))
            raise ConfigError(
                f"{file['path']}, given as --params-file, cannot be used: {file['reason']}. The keys are "
                "the name of the node or /**, below it ros__parameters, and below it the parameters, each a value or a "
                "list of values of one type"
            ) from None
        if "parse" in reason:
            raise ConfigError(
                f"the command line cannot be read: {reason}. Behind --ros-args a parameter is -p NAME:=VALUE, and a "
                "file of parameters is --params-file FILE"
            ) from None
        if os.environ.get("ROS_SECURITY_ENABLE") != "true":
            raise
        raise ConfigError(
            f"ROS cannot start with security (ROS_SECURITY_ENABLE is true): {reason}; ROS_SECURITY_KEYSTORE is "
            f"{os.environ.get('ROS_SECURITY_KEYSTORE') or 'not set'}. Make the keystore and the enclave of this node "
            "(docs/guides/security.md), or leave ROS_SECURITY_ENABLE out"
        ) from None


def compile_kernels(node: Node, running: Running) -> None:
    """Compile the numerical kernels before the first message; log one line if that takes long.

    Raises
    ------
    ExternalShutdownException
        After a signal to end: :func:`run` ends the node cleanly then.
    """
    log, started, logged = node.get_logger(), time.monotonic(), not compiler.is_new()
    if not compiler.COMPILED:
        log.warning(
            f"{compiler.NOT_COMPILED}: numerical kernels run as slow plain Python. "
            "The status 'load' in /diagnostics shows the highest possible rate of joint states"
        )

    def note(done: int, total: int) -> None:
        nonlocal logged
        if not logged and time.monotonic() - started > _LONG_COMPILATION:
            logged = True
            log.info(f"compiling numerical kernels ({done} of {total} ready); the next start reuses them")
        if not running():
            raise ExternalShutdownException()

    compiler.prepare(note)


def freeze() -> None:
    """Exclude all present objects from garbage collection, which would visit them again and again at 1 kHz."""
    gc.collect()
    gc.freeze()


def _close(node: Node | None, executor: Executor | None) -> None:
    """Close executor, node and context in the order that rclpy needs."""
    if executor is not None:
        executor.shutdown()
    try:
        close = getattr(node, "close", None)
        if close is not None:
            close()
    finally:
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
