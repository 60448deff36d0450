"""Readings of the sensors other than the joints, sorted by stamp, and their values at the stamps of joint states."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from friction_estimator.arrays import arrays, pack
from friction_estimator.compiled import kernel
from friction_estimator.types import Block, BoolArray, Flags, FloatArray, IndexTable, Indices, IntArray, Matrix, Vector

_LONGEST_GAP = 3.0
"""A gap of a sensor is bridged up to this many of its usual periods, and its last value is held for half as long."""
_NEWEST_STEP = 0.1
"""Weight of the newest step in the usual period."""
_FRAMES = 100
"""Number of frames over which the new readings of a sensor are counted."""
_FEWEST = 1e-3
"""Least number of new readings that a frame counts of a sensor, since it divides variances."""
LONGEST_QUEUE = 5000
"""Samples of a sensor that are kept at most: no stamps, however strange, use up memory and time."""
NEVER = np.iinfo(np.int64).min
"""Stamp of what has not happened [ns]."""


@arrays
class Queues(NamedTuple):
    """Readings of s sensors, at most q of each.

    Attributes
    ----------
    stamps, values : (s, q) [ns], (s, q, 6)
    length, late : (s,) readings that are kept, and those that came too late
    newest, period : (s,) newest stamps, and usual time between readings [ns]
    """

    stamps: IndexTable
    values: Block
    length: Indices
    newest: Indices
    late: Indices
    period: Vector


@arrays
class Current(NamedTuple):
    """What s sensors read at the newest joint state.

    Attributes
    ----------
    used, last : (s,), (s, 6) stamp of the newest reading used [ns], and values
    frames, new : (s,) joint states so far, and new readings for each of them
    fresh, readings : (s,) False for silent sensors; how often each is read per joint state, at most once
    """

    used: Indices
    frames: Indices
    new: Vector
    last: Matrix
    fresh: Flags
    readings: Vector


@kernel("f8 i8")
def follow_period(period: float, step: int) -> float:
    """Usual period after one more step [ns]: the mean of the newest steps, in which a gap counts as three periods.

    Noisy stamps make half of all steps shorter than the period, and some much shorter.
    """
    return period + _NEWEST_STEP * (min(float(step), _LONGEST_GAP * period) - period) if period > 0.0 else float(step)


@kernel
def _drop_oldest(own: IntArray, rows: FloatArray, length: int, count: int) -> int:
    """Drop readings at the front; return how many are left."""
    if count > 0:
        for k in range(length - count):
            own[k] = own[k + count]
            for j in range(6):
                rows[k, j] = rows[k + count, j]
    return length - count


@kernel("[Queues] i8 i8 V i8 i8")
def insert_reading(queues: Queues, sensor: int, stamp: int, value: FloatArray, used: int, reset_after: int) -> None:
    """Insert a reading in the order of the stamps; one with a known stamp is dropped, one that is too late is counted.

    Parameters
    ----------
    sensor, stamp, value : whose reading, its stamp [ns], (6,)
    used : stamp of the newest joint state that was used [ns]
    reset_after : readings that are older than the newest one by more than this are not wanted any more [ns]
    """
    own, rows, length = queues.stamps[sensor], queues.values[sensor], queues.length[sensor]
    if length and stamp < own[length - 1] - reset_after:
        length = 0
    if length == 0 or stamp > own[length - 1]:
        if length:
            queues.period[sensor] = follow_period(queues.period[sensor], stamp - own[length - 1])
        drop = 0
        while drop < length and own[drop] < stamp - reset_after:
            drop += 1
        if length - drop == own.size:
            drop += 1
        place = length = _drop_oldest(own, rows, length, drop)
        queues.newest[sensor] = stamp
    elif stamp < used:
        queues.late[sensor] += 1
        return
    else:
        place = length - 1
        while place > 0 and own[place - 1] >= stamp:
            place -= 1
        if own[place] == stamp:
            return
        if length == own.size:
            if place == 0:
                return
            length = _drop_oldest(own, rows, length, 1)
            place -= 1
        for k in range(length, place, -1):
            own[k] = own[k - 1]
            for j in range(6):
                rows[k, j] = rows[k - 1, j]
    own[place] = stamp
    rows[place] = value
    queues.length[sensor] = length + 1


@kernel("[Queues] [Current] i8 i8 i8 i8 T")
def read_tracks(
    queues: Queues, current: Current, first: int, stamp: int, max_wait: int, stale_after: int, out: FloatArray
) -> bool:
    """Values of all sensors at a stamp; readings that no later stamp needs are dropped.

    Parameters
    ----------
    first : of the sensors that are used
    stamp : of the joint state [ns]
    max_wait : a reading that is newer than the joint state by at most this may stand for an older one [ns]
    stale_after : longest gap that is bridged [ns]
    out : (2, s, 6) output: values, the last known one of a sensor that is not fresh; newest reading as it came, NaN
        where none has come since the previous call

    Returns
    -------
    True where ``fresh`` or ``readings`` have changed
    """
    changed = False
    out[1] = np.nan
    for sensor in range(first, queues.length.size):
        own, rows, length = queues.stamps[sensor], queues.values[sensor], queues.length[sensor]
        last, is_fresh = current.last[sensor], False
        if length > 0:
            passed, new = 0, 1 if current.used[sensor] < own[0] <= stamp else 0
            while passed + 1 < length and own[passed + 1] <= stamp:
                passed += 1
                new += 1
            length = queues.length[sensor] = _drop_oldest(own, rows, length, passed)
            current.frames[sensor] = min(current.frames[sensor] + 1, _FRAMES)
            current.new[sensor] += (new - current.new[sensor]) / current.frames[sensor]
            before = current.used[sensor] = own[0]
            if new > 0:
                out[1, sensor] = rows[0]
            longest = min(_LONGEST_GAP * queues.period[sensor], float(stale_after))
            part = 0.0
            if before == stamp:
                is_fresh = True
            elif before > stamp:
                is_fresh = before - stamp <= max_wait
            elif length > 1 and own[1] - before <= longest:
                is_fresh, part = True, (stamp - before) / (own[1] - before)
            else:  # nothing newer has come, although the joint state has waited for it
                is_fresh = stamp - before <= 0.5 * longest
            for j in range(6):
                last[j] = rows[0, j] if part == 0.0 else (1.0 - part) * rows[0, j] + part * rows[1, j]
        out[0, sensor] = last
        count = min(max(current.new[sensor], _FEWEST), 1.0)
        if current.fresh[sensor] != is_fresh or current.readings[sensor] != count:
            current.fresh[sensor], current.readings[sensor], changed = is_fresh, count, True
    return changed


class SensorTracks:
    """Recent readings (6,) of s sensors.

    Parameters
    ----------
    sensors : s
    first : sensors before this one are not used: their value is zero, and they always count as fresh
    max_wait, stale_after, reset_after : of the synchronizer [ns]

    Attributes
    ----------
    newest, fresh, readings : see :class:`Queues` and :class:`Current`
    """

    def __init__(self, sensors: int, first: int, max_wait: int, stale_after: int, reset_after: int) -> None:
        self._first, self._reset_after, self._waits = first, reset_after, (max_wait, stale_after)
        stamps, values = np.zeros((sensors, LONGEST_QUEUE), np.int64), np.zeros((sensors, LONGEST_QUEUE, 6))
        length, late, frames = np.zeros((3, sensors), np.int64)
        self.fresh: BoolArray = np.arange(sensors) < first
        self.readings = np.where(self.fresh, 1.0, _FEWEST)
        newest = np.full(sensors, NEVER, np.int64)
        self._queue_buffer, self._queues = pack(Queues(stamps, values, length, newest, late, np.zeros(sensors)))
        self.newest: IntArray = self._queues.newest
        current = Current(
            np.full(sensors, -1, np.int64), frames, np.zeros(sensors), np.zeros((sensors, 6)), self.fresh.copy(),
            self.readings.copy(),
        )  # fmt: skip
        self._current_buffer, self._current = pack(current)

    def insert(self, sensor: int, stamp: int, value: FloatArray, used: int) -> None:
        """Insert a reading (6,), see :func:`insert_reading`."""
        insert_reading(self._queue_buffer, sensor, stamp, value, used, self._reset_after)

    @property
    def period(self) -> float:
        """Usual time between the readings of the slowest sensor that is used [ns]."""
        return max(self._queues.period[self._first :].tolist(), default=0.0)

    def complete(self, stamp: int) -> bool:
        """Whether every sensor has a reading that is at least as new."""
        return all(newest >= stamp for newest in self.newest[self._first :].tolist())

    def read(self, stamp: int) -> FloatArray:
        """Values and new readings (2, s, 6) at the stamp of a joint state; see :func:`read_tracks`.

        ``fresh`` and ``readings`` are new arrays where they change.
        """
        out = np.zeros((2, len(self.newest), 6))
        if read_tracks(self._queue_buffer, self._current_buffer, self._first, stamp, *self._waits, out):
            self.fresh, self.readings = self._current.fresh.copy(), self._current.readings.copy()
        return out

    def drop_newer(self, stamp: int) -> None:
        """Drop the readings after a stamp."""
        for sensor in range(len(self.newest)):
            kept = self.stamps(sensor)
            kept = kept[kept <= stamp]
            self._queues.length[sensor] = kept.size
            self.newest[sensor] = kept[-1] if kept.size else NEVER

    def stamps(self, sensor: int) -> IntArray:
        """Stamps of the readings of a sensor that are kept [ns]."""
        return self._queues.stamps[sensor, : self._queues.length[sensor]]

    def delays(self, stamp: int) -> list[float]:
        """A stamp minus that of the newest reading of each sensor that is used [ns]; NaN before the first reading."""
        newest = self.newest[self._first :].tolist()
        return [math.nan if own == NEVER else float(stamp - own) for own in newest]

    def late(self) -> list[int]:
        """Number of readings of each sensor that is used that came too late."""
        late: list[int] = self._queues.late[self._first :].tolist()
        return late
