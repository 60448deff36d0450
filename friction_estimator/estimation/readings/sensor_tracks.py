"""Compiled: readings of the other sensors, sorted by stamp, and their values at the stamps of joint states."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from friction_estimator.estimation.readings.publishers import (
    MixedStreams,
    Packets,
    add_repeated,
    add_to_streams,
    are_mixed,
    spread,
)
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.kernels.records import record
from friction_estimator.types import Flags, FloatArray, IndexMatrix, Indices, IntArray, Matrix, Tensor, Vector

_MAX_BRIDGED_PERIODS = 3.0
"""A gap of a sensor is bridged up to this many of its usual periods, and its last value is held for half as long."""
_PERIOD_GAIN = 0.1
"""Weight of the newest step in the usual period."""
_RATE_WINDOW = 100
"""Number of frames over which the new readings of a sensor are counted."""
_MIN_READINGS_PER_FRAME = 1e-3
"""Least number of new readings that a frame counts of a sensor, since it divides variances."""
MAX_QUEUE_LENGTH = 5000
"""Samples of a sensor that are kept at most: no stamps, however strange, use up memory and time."""
MAX_ARRIVED = 32
"""Readings that have arrived, at most, before they are inserted."""
NEVER = -(2**63)
"""Stamp of what has not happened [ns]."""
RESET_AFTER_NS = 500_000_000
"""A gap or a backward jump of the joint-state stamps by more than this restarts the filters [ns]."""
_STALE_AFTER_NS = 100_000_000
"""A sensor whose newest message is older than this is not used [ns]."""
_MISSING_SAMPLE_RATIO = 1.8
"""Joint samples farther apart than this many usual periods have something missing between them."""
_MIN_MOVING_STEPS = 3.0
"""A joint whose reading has changed by more than this many steps of its encoder changes it in the next sample, too."""
_STEP_TOLERANCE = 1e-9
"""Steps that differ by less are equal [rad or m]. The resolution is the smallest step or difference of steps so far."""
_MAX_REPETITIONS = 5
"""Largest number of repetitions in a row that are left out: joints may stop, and an estimate must not wait long."""
WAITS, USED, REPEATS, GAP, CHANGED = 0, 1, 2, 4, 8
"""Results of :func:`read_sensors`."""


@record
class Tracks(NamedTuple):
    """Recent readings of s sensors, at most q of each, and the joint states for which they were used.

    Attributes
    ----------
    stamps, values : (s, q) [ns], (s, q, 6)
    length, late : (s,) readings that are kept, and those that came too late
    mixed : (s,) joint states for which readings of two publishers came
    newest, period : (s,) newest stamps, and usual time between readings [ns]
    arrived_sensor, arrived_stamp, arrived : (r,), (r,), (r, 6) readings that are not among the others yet
    used_stamp, last_value : (s,), (s, 6) at the newest joint state: stamp of the newest reading used [ns], and values
    frames, new_per_frame : (s,) joint states so far, and new readings for each of them
    fresh, readings_per_sample : (s,) False for silent sensors; how often each is read per joint state, at most once
    joint_period : (1,) usual time between joint states [ns]
    joint_position : (n,) positions of the newest joint state that was used [rad or m]
    joint_steps : (2, n) resolution of each joint's readings, and its newest step while any joint changes [rad or m]
    skipped_time, repeated : (1,) time of the joint states left out since the last frame [s]; number of the newest ones
        in a row that repeat the one before
    streams : of each sensor, whether two publishers send its readings
    packets : of the joint states and each sensor, whether their stamps come in packets
    first : of the sensors that are used
    max_wait : a reading that is newer than the joint state by at most this may stand for an older one [ns]
    """

    stamps: IndexMatrix
    values: Tensor
    length: Indices
    newest: Indices
    late: Indices
    mixed: Indices
    period: Vector
    arrived_sensor: Indices
    arrived_stamp: Indices
    arrived: Matrix
    used_stamp: Indices
    last_value: Matrix
    frames: Indices
    new_per_frame: Vector
    fresh: Flags
    readings_per_sample: Vector
    joint_period: Vector
    joint_position: Vector
    joint_steps: Matrix
    skipped_time: Vector
    repeated: Indices
    streams: MixedStreams
    packets: Packets
    first: int
    max_wait: int

    @staticmethod
    def initial(joints: int, scale: FloatArray, first: int, max_wait: int) -> Tracks:
        """Record before the first reading; sensors with an index below ``first`` are not used, and always fresh.

        ``scale`` (s, 2, 3) holds differences of their readings that matter.
        """
        sensors = len(scale)
        fresh = np.arange(sensors) < first
        return Tracks(
            stamps=np.zeros((sensors, MAX_QUEUE_LENGTH), np.int64),
            values=np.zeros((sensors, MAX_QUEUE_LENGTH, 6)),
            length=np.zeros(sensors, np.int64),
            newest=np.full(sensors, NEVER, np.int64),
            late=np.zeros(sensors, np.int64),
            mixed=np.zeros(sensors, np.int64),
            period=np.zeros(sensors),
            arrived_sensor=np.zeros(MAX_ARRIVED, np.int64),
            arrived_stamp=np.zeros(MAX_ARRIVED, np.int64),
            arrived=np.zeros((MAX_ARRIVED, 6)),
            used_stamp=np.full(sensors, -1, np.int64),
            last_value=np.zeros((sensors, 6)),
            frames=np.zeros(sensors, np.int64),
            new_per_frame=np.zeros(sensors),
            fresh=fresh,
            readings_per_sample=np.where(fresh, 1.0, _MIN_READINGS_PER_FRAME),
            joint_period=np.zeros(1),
            joint_position=np.zeros(joints),
            joint_steps=np.array([[np.inf], [0.0]]) * np.ones(joints),
            skipped_time=np.zeros(1),
            repeated=np.zeros(1, np.int64),
            streams=MixedStreams.initial(scale),
            packets=Packets.initial(sensors, max_wait),
            first=first,
            max_wait=max_wait,
        )


@kernel
def _filtered_period(period: float, step: int) -> float:
    """Usual period after one more step [ns]: the mean of the newest steps, in which a gap counts as three periods.

    Noisy stamps make half of all steps shorter than the period, and some much shorter.
    """
    return (
        period + _PERIOD_GAIN * (min(float(step), _MAX_BRIDGED_PERIODS * period) - period)
        if period > 0.0
        else float(step)
    )


@kernel
def _drop_oldest(own: IntArray, rows: FloatArray, length: int, count: int) -> int:
    """Drop readings at the front; return how many are left."""
    if count > 0:
        for k in range(length - count):
            own[k] = own[k + count]
            for j in range(6):
                rows[k, j] = rows[k + count, j]
    return length - count


@kernel
def _insert_reading(tracks: Tracks, sensor: int, stamp: int, value: FloatArray, used: int) -> None:
    """Insert a reading in the order of the stamps; one with a known stamp is dropped, one that is too late is counted.

    Readings that are older than the newest one by more than ``RESET_AFTER_NS`` are dropped.

    Parameters
    ----------
    sensor, stamp, value : whose reading, its stamp [ns], (6,)
    used : stamp of the newest joint state that was used [ns]
    """
    own, rows, length = tracks.stamps[sensor], tracks.values[sensor], tracks.length[sensor]
    if length and stamp < own[length - 1] - RESET_AFTER_NS:
        length = 0
    if length == 0 or stamp > own[length - 1]:
        if length:
            tracks.period[sensor] = _filtered_period(tracks.period[sensor], stamp - own[length - 1])
        drop = 0
        while drop < length and own[drop] < stamp - RESET_AFTER_NS:
            drop += 1
        if length - drop == own.size:
            drop += 1
        index = length = _drop_oldest(own, rows, length, drop)
        tracks.newest[sensor] = stamp
    elif stamp < used:
        tracks.late[sensor] += 1
        return
    else:
        index = length - 1
        while index > 0 and own[index - 1] >= stamp:
            index -= 1
        if own[index] == stamp:
            add_repeated(tracks.streams, sensor, stamp, value, rows[index])
            return
        if length == own.size:
            if index == 0:
                return
            length = _drop_oldest(own, rows, length, 1)
            index -= 1
        for k in range(length, index, -1):
            own[k] = own[k - 1]
            for j in range(6):
                rows[k, j] = rows[k - 1, j]
    own[index] = stamp
    rows[index] = value
    tracks.length[sensor] = length + 1


@entry_point
def insert_readings(tracks: Tracks, count: int, used: int) -> None:
    """Insert the first ``count`` readings that have arrived; ``used``: stamp of the newest joint state used [ns]."""
    for k in range(count):
        sensor = tracks.arrived_sensor[k]
        stamp = spread(tracks.packets, 1 + sensor, tracks.arrived_stamp[k], RESET_AFTER_NS)
        _insert_reading(tracks, sensor, stamp, tracks.arrived[k], used)


@entry_point
def spread_joint_stamp(tracks: Tracks, stamp: int) -> int:
    """Stamp of the newest joint state, spread where they come in packets [ns]."""
    return spread(tracks.packets, 0, stamp, RESET_AFTER_NS)


@kernel
def _read_tracks(tracks: Tracks, stamp: int, out: FloatArray) -> bool:
    """Values of all sensors at a stamp; readings that no later stamp needs are dropped.

    Parameters
    ----------
    stamp : of the joint state [ns]
    out : (2, s, 6) output: values, the last known one of a sensor that is not fresh; newest reading as it came, NaN
        where none has come since the previous call

    Returns
    -------
    True where ``fresh`` or ``readings_per_sample`` have changed
    """
    changed = False
    out[0], out[1] = 0.0, np.nan
    for sensor in range(tracks.first, tracks.length.size):
        own, rows, length = tracks.stamps[sensor], tracks.values[sensor], tracks.length[sensor]
        last, is_fresh = tracks.last_value[sensor], False
        if length > 0:
            passed, new = 0, 1 if tracks.used_stamp[sensor] < own[0] <= stamp else 0
            if new:
                add_to_streams(tracks.streams, sensor, own[0], rows[0])
            while passed + 1 < length and own[passed + 1] <= stamp:
                passed += 1
                new += 1
                add_to_streams(tracks.streams, sensor, own[passed], rows[passed])
            length = tracks.length[sensor] = _drop_oldest(own, rows, length, passed)
            tracks.frames[sensor] = min(tracks.frames[sensor] + 1, _RATE_WINDOW)
            tracks.new_per_frame[sensor] += (new - tracks.new_per_frame[sensor]) / tracks.frames[sensor]
            before = tracks.used_stamp[sensor] = own[0]
            if new > 0:
                out[1, sensor] = rows[0]
            longest = min(_MAX_BRIDGED_PERIODS * tracks.period[sensor], float(_STALE_AFTER_NS))
            part = 0.0
            if before == stamp:
                is_fresh = True
            elif before > stamp:
                is_fresh = before - stamp <= tracks.max_wait
            elif length > 1 and own[1] - before <= longest:
                is_fresh, part = True, (stamp - before) / (own[1] - before)
            else:  # nothing newer has come, although the joint state has waited for it
                is_fresh = stamp - before <= 0.5 * longest
            if are_mixed(tracks.streams, sensor, stamp):  # which one of them is right is not known
                is_fresh, tracks.mixed[sensor], out[1, sensor] = False, tracks.mixed[sensor] + 1, np.nan
            else:
                for j in range(6):
                    last[j] = rows[0, j] if part == 0.0 else (1.0 - part) * rows[0, j] + part * rows[1, j]
        out[0, sensor] = last
        count = min(max(tracks.new_per_frame[sensor], _MIN_READINGS_PER_FRAME), 1.0)
        if tracks.fresh[sensor] != is_fresh or tracks.readings_per_sample[sensor] != count:
            tracks.fresh[sensor], tracks.readings_per_sample[sensor], changed = is_fresh, count, True
    return changed


@kernel
def _is_complete(tracks: Tracks, stamp: int, newest: int, used: int) -> bool:
    """Whether a joint state need not wait any longer; parameters as of :func:`read_sensors`."""
    overdue, period = newest - stamp - tracks.max_wait, tracks.joint_period[0]
    if used != NEVER and 0.0 < _MISSING_SAMPLE_RATIO * period < stamp - used <= RESET_AFTER_NS and overdue < 0:
        return False  # the sample between is lost or late: give it the time to come
    complete, slowest = True, 0.0
    for sensor in range(tracks.first, tracks.newest.size):
        complete = complete and tracks.newest[sensor] >= stamp
        slowest = max(slowest, tracks.period[sensor])
    return complete or (overdue >= 0 and overdue >= min(slowest, float(_STALE_AFTER_NS)))


@kernel
def _is_repetition(tracks: Tracks, position: FloatArray) -> bool:
    """Whether a joint state repeats the one before, although a joint moves.

    Positions of the joint state before under a new stamp come from a driver that has missed a cycle of its bus. A
    filter that uses such a sample sees the joints stand still for one period and then jump by two; one in a
    hundred makes friction three times worse. A sample that is missing costs nothing. But joints at rest and coarse
    encoders also repeat themselves. So a repetition counts as a missed cycle only where a joint has just moved by
    several steps of its encoder, which no joint stops within a period.
    """
    before, steps, changed, moves = tracks.joint_position, tracks.joint_steps, False, False
    for joint in range(position.size):
        changed = changed or position[joint] != before[joint]
        moves = moves or abs(steps[1, joint]) > _MIN_MOVING_STEPS * steps[0, joint]
    if changed:
        for joint in range(position.size):
            step = position[joint] - before[joint]
            if abs(step) > _STEP_TOLERANCE:
                steps[0, joint] = min(steps[0, joint], abs(step))
            if abs(step - steps[1, joint]) > _STEP_TOLERANCE:
                steps[0, joint] = min(steps[0, joint], abs(step - steps[1, joint]))
            steps[1, joint] = step
    tracks.repeated[0] = tracks.repeated[0] + 1 if moves and not changed else 0
    return 0 < tracks.repeated[0] <= _MAX_REPETITIONS


@entry_point
def read_sensors(
    tracks: Tracks,
    count: int,
    stamp: int,
    newest: int,
    used: int,
    forced: bool,
    position: Vector,
    out: Tensor,
) -> tuple[int, float]:
    """Read the values of all sensors at the oldest waiting joint state, if it need not wait any longer.

    Parameters
    ----------
    count : of the readings that have arrived
    stamp, newest, used : of this joint state, of the newest one, and of the newest one that was used [ns]
    forced : True where it may not wait
    position : (n,) of this joint state [rad or m]
    out : see :func:`_read_tracks`

    Returns
    -------
    ``WAITS``, or sum of ``USED`` and what is true of ``REPEATS`` (no frame is to be made), ``GAP`` (filters restart),
    ``CHANGED`` (``fresh`` or ``readings_per_sample``)
    dt : time since the last frame, zero where filters restart [s]
    """
    insert_readings(tracks, count, used)
    if not (forced or _is_complete(tracks, stamp, newest, used)):
        return WAITS, 0.0
    flags, dt = USED, 0.0
    if _read_tracks(tracks, stamp, out):
        flags += CHANGED
    if used != NEVER:
        step = stamp - used
        if 0 < step <= RESET_AFTER_NS:
            tracks.joint_period[0] = _filtered_period(tracks.joint_period[0], step)
        if step > RESET_AFTER_NS:
            flags += GAP
        else:
            dt = step / 1e9
    repeats = False
    if dt == 0.0:
        tracks.skipped_time[0], tracks.repeated[0] = 0.0, 0
    else:
        repeats = _is_repetition(tracks, position)
    tracks.joint_position[:] = position
    if repeats:
        tracks.skipped_time[0] += dt
        return flags + REPEATS, 0.0
    dt, tracks.skipped_time[0] = dt + tracks.skipped_time[0], 0.0
    return flags, dt
