"""A view in a thread with a bounded queue, and the choice of views."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Protocol

from friction_estimator.errors import ConfigError
from friction_estimator.views.frame import ViewFrame

VIEWS = {"web": "WebDisplay", "rerun": "RerunDisplay", "foxglove": "FoxgloveDisplay"}
"""Class of each view, in the module ``<name>_view``."""
_KEEPS = "rerun"
"""The view that writes recordings."""
_WAITING = 20
"""Frames that wait at most: one second."""


class Display(Protocol):
    """Where frames are drawn."""

    address: str
    """What to open, in words."""
    keeps: bool
    """Whether frames can be looked at later: others are shown in real time."""

    def draw(self, frame: ViewFrame) -> None:
        """Draw one frame."""
        ...

    def close(self) -> None:
        """End what was opened."""
        ...


def make_display(name: str, port: int, file: Path | None = None) -> Display:
    """Open a view.

    Parameters
    ----------
    name : one of :data:`VIEWS`
    port : of the local server that a browser or viewer opens; 0: a free one
    file : recording (.rrd) that is written in place of a server; for ``rerun`` only

    Raises
    ------
    ConfigError
        When the port is in use, or the view writes no file.
    """
    make: Callable[..., Display] = getattr(import_module(f"friction_estimator.views.{name}_view"), VIEWS[name])
    if file is None:
        return make(usable_port(port))
    if name != _KEEPS:
        raise ConfigError(f"the view {name!r} writes no file: leave it out, or choose the view {_KEEPS!r}")
    return make(port, file)


def usable_port(port: int) -> int:
    """The port, or a free one for 0.

    Raises
    ------
    ConfigError
        When it is in use.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise ConfigError(f"the view cannot use port {port}: {error.strerror}; choose another one") from None
        return int(probe.getsockname()[1])


class LiveView:
    """Draws frames in a thread. A frame for which there is no room is dropped and counted.

    Parameters
    ----------
    display : where they are drawn

    Attributes
    ----------
    dropped : number of frames
    """

    def __init__(self, display: Display) -> None:
        self.display = display
        self.dropped = 0
        self._frames: queue.Queue[ViewFrame | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._draw, name="view", daemon=True)

    def __enter__(self) -> LiveView:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._frames.put(None, timeout=5.0)
            self._thread.join(5.0)
        except queue.Full:  # the display hangs; its thread ends with the process
            pass
        self.display.close()

    def send(self, frame: ViewFrame) -> None:
        """Hand over a frame; returns at once."""
        try:
            self._frames.put_nowait(frame)
        except queue.Full:
            self.dropped += 1

    def _draw(self) -> None:
        while (frame := self._frames.get()) is not None:
            self.display.draw(frame)
