"""Readings of the sensors other than the joints, sorted by stamp, and their values at the stamps of joint states."""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.types import BoolArray, FloatArray, IntArray

_LONGEST_GAP = 3.0
"""A gap of a sensor is bridged up to this many of its usual periods, and its last value is held for half as long."""
_FRAMES = 100
"""Number of frames over which the new readings of a sensor are counted."""
_FEWEST = 1e-3
"""Least number of new readings that a frame counts of a sensor, since it divides variances."""
LONGEST_QUEUE = 5000
"""Samples of a sensor that are kept at most: no stamps, however strange, use up memory and time."""
NEVER = np.iinfo(np.int64).min
"""Stamp of what has not happened [ns]."""

_LENGTH, _USED, _SEEN, _LATE = range(4)
"""Columns of the counts: readings that are kept; stamp of the newest one used [ns]; frames; readings that came too
late."""
_PERIOD, _READINGS = range(2)
"""Columns of the figures: usual time between readings [ns], new readings in a frame."""


@kernel("f8 i8", unchecked=True)
def follow_period(period: float, step: int) -> float:
    """Usual period after one more step [ns]: shorter steps count at once, longer ones slowly."""
    return min(float(step), period + 0.1 * (step - period)) if period > 0.0 else float(step)


@kernel
def _drop_oldest(own: IntArray, rows: FloatArray, length: int, count: int) -> int:
    """Drop readings at the front; return how many are left."""
    if count > 0:
        for k in range(length - count):
            own[k] = own[k + count]
            for j in range(6):
                rows[k, j] = rows[k + count, j]
    return length - count


@kernel("IM T IM M I i8 i8 V i8 i8", unchecked=True)
def insert_reading(
    stamps: IntArray,
    values: FloatArray,
    counts: IntArray,
    figures: FloatArray,
    newest: IntArray,
    sensor: int,
    stamp: int,
    value: FloatArray,
    used: int,
    reset_after: int,
) -> None:
    """Insert a reading in the order of the stamps; one with a known stamp is dropped, one that is too late is counted.

    Parameters
    ----------
    stamps, values, counts, figures, newest : of :class:`SensorTracks`, in place
    sensor, stamp, value : whose reading, its stamp [ns], (6,)
    used : stamp of the newest joint state that was used [ns]
    reset_after : readings that are older than the newest one by more than this are not wanted any more [ns]
    """
    own, rows, length = stamps[sensor], values[sensor], counts[sensor, _LENGTH]
    if length and stamp < own[length - 1] - reset_after:
        length = 0
    if length == 0 or stamp > own[length - 1]:
        if length:
            figures[sensor, _PERIOD] = follow_period(figures[sensor, _PERIOD], stamp - own[length - 1])
        drop = 0
        while drop < length and own[drop] < stamp - reset_after:
            drop += 1
        if length - drop == own.size:
            drop += 1
        place = length = _drop_oldest(own, rows, length, drop)
        newest[sensor] = stamp
    elif stamp < used:
        counts[sensor, _LATE] += 1
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
    for j in range(6):
        rows[place, j] = value[j]
    counts[sensor, _LENGTH] = length + 1


@kernel("IM T IM M M B V i8 i8 i8 i8 T", unchecked=True)
def read_tracks(
    stamps: IntArray,
    values: FloatArray,
    counts: IntArray,
    figures: FloatArray,
    last: FloatArray,
    fresh: BoolArray,
    readings: FloatArray,
    first: int,
    stamp: int,
    max_wait: int,
    stale_after: int,
    out: FloatArray,
) -> bool:
    """Values of all sensors at a stamp; readings that no later stamp needs are dropped.

    Parameters
    ----------
    stamps, values, counts, figures, last, fresh, readings : of :class:`SensorTracks`, in place
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
    for sensor in range(first, counts.shape[0]):
        own, rows, length = stamps[sensor], values[sensor], counts[sensor, _LENGTH]
        is_fresh = False
        if length > 0:
            passed, new = 0, 1 if counts[sensor, _USED] < own[0] <= stamp else 0
            while passed + 1 < length and own[passed + 1] <= stamp:
                passed += 1
                new += 1
            length = counts[sensor, _LENGTH] = _drop_oldest(own, rows, length, passed)
            counts[sensor, _SEEN] = min(counts[sensor, _SEEN] + 1, _FRAMES)
            figures[sensor, _READINGS] += (new - figures[sensor, _READINGS]) / counts[sensor, _SEEN]
            before = counts[sensor, _USED] = own[0]
            if new > 0:
                out[1, sensor] = rows[0]
            longest = min(_LONGEST_GAP * figures[sensor, _PERIOD], float(stale_after))
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
                last[sensor, j] = rows[0, j] if part == 0.0 else (1.0 - part) * rows[0, j] + part * rows[1, j]
        for j in range(6):
            out[0, sensor, j] = last[sensor, j]
        count = min(max(figures[sensor, _READINGS], _FEWEST), 1.0)
        if fresh[sensor] != is_fresh or readings[sensor] != count:
            fresh[sensor], readings[sensor], changed = is_fresh, count, True
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
    newest : (s,) newest stamps [ns]
    fresh : (s,) False for sensors that were silent at the newest joint state
    readings : (s,) how often each sensor is read per joint state, at most once
    """

    def __init__(self, sensors: int, first: int, max_wait: int, stale_after: int, reset_after: int) -> None:
        self._first, self._reset_after = first, reset_after
        self._stamps: IntArray = np.zeros((sensors, LONGEST_QUEUE), dtype=np.int64)
        self._values = np.zeros((sensors, LONGEST_QUEUE, 6))
        self._counts: IntArray = np.zeros((sensors, 4), dtype=np.int64)
        self._counts[:, _USED] = -1
        self._figures, self._last = np.zeros((sensors, 2)), np.zeros((sensors, 6))
        self.newest: IntArray = np.full(sensors, NEVER, dtype=np.int64)
        self.fresh: BoolArray = np.arange(sensors) < first
        self.readings = np.where(self.fresh, 1.0, _FEWEST)
        self._now = self.fresh.copy(), self.readings.copy()
        self._waits = max_wait, stale_after

    def insert(self, sensor: int, stamp: int, value: FloatArray, used: int) -> None:
        """Insert a reading (6,), see :func:`insert_reading`."""
        insert_reading(
            self._stamps, self._values, self._counts, self._figures, self.newest, sensor, stamp, value, used,
            self._reset_after,
        )  # fmt: skip

    def complete(self, stamp: int) -> bool:
        """Whether every sensor has a reading that is at least as new."""
        return all(newest >= stamp for newest in self.newest[self._first :].tolist())

    def read(self, stamp: int) -> FloatArray:
        """Values and new readings (2, s, 6) at the stamp of a joint state; see :func:`read_tracks`.

        ``fresh`` and ``readings`` are new arrays where they change.
        """
        out = np.zeros((2, len(self.newest), 6))
        if read_tracks(
            self._stamps, self._values, self._counts, self._figures, self._last, *self._now, self._first, stamp,
            *self._waits, out,
        ):  # fmt: skip
            self.fresh, self.readings = self._now[0].copy(), self._now[1].copy()
        return out

    def drop_newer(self, stamp: int) -> None:
        """Drop the readings after a stamp."""
        for sensor in range(len(self.newest)):
            kept = self.stamps(sensor)
            kept = kept[kept <= stamp]
            self._counts[sensor, _LENGTH] = kept.size
            self.newest[sensor] = kept[-1] if kept.size else NEVER

    def stamps(self, sensor: int) -> IntArray:
        """Stamps of the readings of a sensor that are kept [ns]."""
        return self._stamps[sensor, : self._counts[sensor, _LENGTH]]

    def delays(self, stamp: int) -> list[float]:
        """A stamp minus that of the newest reading of each sensor that is used [ns]; NaN before the first reading."""
        newest = self.newest[self._first :].tolist()
        return [math.nan if own == NEVER else float(stamp - own) for own in newest]

    def late(self) -> list[int]:
        """Number of readings of each sensor that is used that came too late."""
        late: list[int] = self._counts[self._first :, _LATE].tolist()
        return late
