"""The nodes as executables: `ros2 run friction_estimator NODE`, `python -m friction_estimator.ros.executables NODE`.

The imports of a node take about a second, in which Ctrl-C would end in a traceback. So this module, which imports only
the standard library, handles signals before it imports a node.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType, ModuleType

END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals that ask a process to end: Ctrl-C, ``kill``, a terminal or ssh connection that closes, Ctrl-backslash."""

NODES = {
    "estimator_node": ("estimator_node", "EstimatorNode"),
    "simulation_node": ("players", "SimulationNode"),
    "replay_node": ("players", "ReplayNode"),
    "recorder_node": ("recorder_node", "RecorderNode"),
}
"""Module and class of each node."""


def on_end_signals(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    """Set the handler of all :data:`END_SIGNALS`. An ignored SIGHUP stays ignored: ``nohup`` started the process."""
    for number in END_SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def open_standard_streams() -> None:
    """Connect streams that are closed, as those of a daemon (``>&-``), to nothing.

    The next file that is opened would get the number of the closed stream, and with it all that libraries print.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115 - for the whole process
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def run_node(name: str, arguments: Sequence[str] | None = None) -> int:
    """Import a node and run it.

    Parameters
    ----------
    name : one of :data:`NODES`
    arguments : command line, None for ``sys.argv``

    Returns
    -------
    int
        Exit code.
    """
    open_standard_streams()
    on_end_signals(_leave)  # until the node sets its own handlers
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: threads slow down operations on small matrices
    module, kind = NODES[name]
    node = getattr(import_module(f"friction_estimator.ros.{module}"), kind)
    return int(import_module("friction_estimator.ros.spin").run(node, arguments, node.play))


def import_module(name: str) -> ModuleType:
    """Import a module without garbage collection, which takes a tenth of the time and finds nothing."""
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        gc.enable()


def _leave(number: int, frame: FrameType | None) -> None:
    """End the process at once; an exception could surface in the import of any library."""
    os._exit(0)


estimator_node = partial(run_node, "estimator_node")
simulation_node = partial(run_node, "simulation_node")
replay_node = partial(run_node, "replay_node")
recorder_node = partial(run_node, "recorder_node")


def main(words: Sequence[str]) -> int:
    """Run the node with the name ``words[0]`` and the other words as its command line."""
    if not words or words[0] not in NODES:
        print(f"error: the first argument must be the node to run, one of {', '.join(NODES)}", file=sys.stderr)
        return 2
    return run_node(words[0], words[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
