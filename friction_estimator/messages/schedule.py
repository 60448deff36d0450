"""When the slow topics leave, by header stamp alone, so that the live node and a replay publish the same messages."""

from __future__ import annotations

from friction_estimator.messages.topics import When

_DISPLAY_PERIOD_NS = 100_000_000


class OutputSchedule:
    """Divides time into slots of ``1 / slow_rate``; the first sample in a slot carries the slow topics.

    What is only looked at (``When.DISPLAY``) leaves with the first slow sample of every tenth of a second.

    Parameters
    ----------
    slow_rate : [Hz]
    """

    def __init__(self, slow_rate: float) -> None:
        self._period_ns = max(1, round(1e9 / slow_rate))
        self.reset()

    def reset(self) -> None:
        """Let everything leave with the next sample."""
        self._slot: int | None = None
        self._display_slot: int | None = None
        self._state: object = None

    def due(self, stamp_ns: int, state: object = None) -> frozenset[When]:
        """What leaves with the sample of this stamp.

        Parameters
        ----------
        stamp_ns : header stamp of the sample [ns]; may jump back
        state : anything comparable; what leaves on ``CHANGE`` leaves when it differs from the state before
        """
        slot = stamp_ns // self._period_ns
        if slot != self._slot:
            self._slot, self._state = slot, state
            return self._display(stamp_ns // _DISPLAY_PERIOD_NS)
        if state != self._state:
            self._state = state
            return _CHANGED
        return _SAMPLE

    def _display(self, slot: int) -> frozenset[When]:
        if slot == self._display_slot:
            return _SLOW
        self._display_slot = slot
        return _ALL


_SAMPLE = frozenset({When.SAMPLE})
_CHANGED = frozenset({When.SAMPLE, When.CHANGE})
_SLOW = frozenset({When.SAMPLE, When.CHANGE, When.SLOW})
_ALL = frozenset(When)
