"""Real time by sleeping to deadlines: a 1 ms ROS timer gives 989 to 996 Hz, this gives 1000."""

from __future__ import annotations

import time

_PATIENCE = 0.1


class Pace:
    """Keeps a loop at a multiple of real time.

    Parameters
    ----------
    factor : elapsed by real time; 0: no waiting

    Attributes
    ----------
    behind : how much later than due the loop last called :meth:`wait`, counted from the first deadline [s]
    """

    def __init__(self, factor: float) -> None:
        self._factor = factor
        self._start = time.perf_counter()
        self._moved = 0.0
        self.behind = 0.0

    def wait(self, elapsed: float) -> None:
        """Sleep until ``elapsed`` seconds (of the loop's own time) after the start are due.

        A short delay is caught up. After a longer one (0.1 s) the deadlines move, instead of a burst of samples.
        """
        if not self._factor:
            return
        delay = self._start + elapsed / self._factor - time.perf_counter()
        self.behind = self._moved + max(0.0, -delay)
        if delay > 0.0:
            time.sleep(delay)
        elif delay < -_PATIENCE:
            self._start -= delay
            self._moved -= delay
