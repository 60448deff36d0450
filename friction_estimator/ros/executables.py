"""The nodes as executables: `ros2 run friction_estimator NODE`, `python -m friction_estimator.ros.executables NODE`.

What a node imports takes a second, in which Ctrl-C would end in a traceback. So signals are minded before anything
slow is imported, here and nowhere else: this module itself imports nothing but Python's own.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from types import FrameType

NODES = ("estimator_node", "simulation_node", "replay_node", "recorder_node")


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
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)  # until the node minds them itself
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: on small matrices threads only cost time
    return int(importlib.import_module(f"friction_estimator.ros.{name}").main(arguments))


def _leave(number: int, frame: FrameType | None) -> None:
    """End at once: nothing has begun, and an exception would come up amidst the import of some library."""
    os._exit(0)


estimator_node = partial(run_node, "estimator_node")
simulation_node = partial(run_node, "simulation_node")
replay_node = partial(run_node, "replay_node")
recorder_node = partial(run_node, "recorder_node")


def main(words: Sequence[str]) -> int:
    """Run the node that the first word names, with the other words as its command line."""
    if not words or words[0] not in NODES:
        print(f"error: name the node to run, one of {', '.join(NODES)}", file=sys.stderr)
        return 2
    return run_node(words[0], words[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
