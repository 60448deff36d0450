"""Compiled: what the stamps and values of one stream show: two publishers, joints that turn on, stamps in packets.

Positions of joints change steadily, so each sample of them belongs to one of two :class:`Streams`, and those of the
second one are left out. Other readings have noise and impacts: that they come from two publishers shows in many of them
together (:class:`MixedStreams`), and not which ones are right.

Drivers that read a buffer, or stamp on arrival, give all readings of a packet nearly one stamp. The sensor has measured
evenly, and the last reading of a packet is as old as its stamp: they are spread (:class:`Packets`). Steps of other
stamps, with jitter or lost readings, hardly ever are much shorter than the mean step; in packets most of them are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from friction_estimator.estimation.health import Check, SensorFault
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.kernels.records import record
from friction_estimator.types import FloatArray, IndexMatrix, Indices, IntArray, Matrix, Tensor, Vector

MAX_DEVIATION = 0.1
"""Position from which a joint sample may differ from what the one before predicts [rad or m]: steps of encoders."""
_MAX_ACCELERATION = 2000.0
"""Largest acceleration of a joint for that prediction [rad/s^2 or m/s^2]: a leg that lands has a tenth of it."""
_MAX_SPEED = 30.0
"""Largest speed of a joint [rad/s or m/s], for its second sample: its velocity is not known yet."""
_FULL_TURN = 2.0 * math.pi
"""Positions of a joint that differ by it are the same angle [rad]."""
_MAX_TURN_DEVIATION = 0.25 * _FULL_TURN
"""A position that differs by more than this from whole turns of the expected one has not jumped by a turn [rad]."""
_MAX_TURNED = 1e7
"""Turns are counted up to this angle, then from zero [rad]: a wheel at 100 rad/s takes a day to get there."""
_PUBLISHER_TIMEOUT_NS = 1_000_000_000
"""A publisher that has sent nothing for this time has ended [ns]."""
_MISSED_PERIODS = 3
"""Number of periods without a sample of the first publisher, after which a jump of the positions is accepted."""
_STREAM_TIMEOUT_NS = 100_000_000
"""Time without a sample after which either of two streams has ended that have begun together [ns]."""
_FROZEN_SAMPLES = 10
"""Number of samples with the same bits in a row, after which a publisher whose positions change is preferred."""
_CLEAR_TURN = 9.0
"""In a clear turn, the reading is nearer to the stream before the newest one by three times, in squares, and by more
than differences that do not matter. The readings of one sensor, however noisy, do so by chance only."""
_TURNS = 20.0
"""Number of the newest turns that count."""
_MIXED_SHARE = 0.7
"""Share of clear turns among them from which two publishers are certain: in white noise of one axis it is a third."""
_TURNS_FOR_NS = 3_000_000_000.0
"""Time for which a turn counts at most [ns]: glitches twice a second are no publisher."""
_MIXED_FOR_NS = 1_000_000_000
"""Time since the last clear turn for which there are still two publishers: both may agree for half a step [ns]."""

_BLOCK = 256
"""Number of newest steps that show whether readings come in packets."""
_SHORT = 0.1
"""Steps below this part of the mean step are short: hardly any of stamps that jitter by half a period, none of samples
that are taken in pairs."""
_BEGIN = 0.5
"""Steps above this part of the mean step begin a packet; one that is shorter has lost a reading of the packet."""
_MIN_SIZE, _PAIR = 1.6, 2.5
"""Mean number of readings in a packet. Two readings with the very same stamp are no packet: of two publishers, or
positions and efforts in two messages."""
_MIN_PACKETS = 4
"""Number of packets in a block: with fewer, some pauses would pass for packets."""
_LOST = 1.5
"""Part of the median time between two packets, beyond which one between them was lost."""
_PHASE_GAIN = 0.5
"""Part of the difference between the end of the readings and the stamp of their packet that is corrected in a packet:
sizes differ because readings are lost, or because the driver polls unevenly."""
_LONGEST_NS = 100_000_000
"""Packets of joint states farther apart than this are not spread [ns]: their estimates would be of no use."""
_TEXT = "{}: stamps come in packets of {:.0f} readings every {:.1f} ms"
_SPREAD = "; they are spread evenly over this time. Stamp each reading when it is measured"
_TOO_LONG = (
    ", too long to spread them, so most readings are not used: stamp each reading when it is measured, or set "
    "synchronizer.max_wait above {:.3f}"
)


@record
class Streams(NamedTuple):
    """Newest samples of two publishers of joint states."""

    # (2, n)
    position: Matrix
    velocity: Matrix
    # (2,) of the newest sample, and usual distance of samples [ns]
    stamp: Indices
    period: Indices
    # (2,) number of samples so far, and of the newest ones in a row with the same bits
    samples: Indices
    unchanged: Indices
    # (1,) stamp of the first sample [ns]; 1 while it is not decided which stream is right
    first_stamp: Indices
    undecided: Indices
    # (n,) whole turns that are added to the position of each joint [rad]
    turned: Vector

    @staticmethod
    def initial(joints: int) -> Streams:
        """Streams of two publishers without any sample; ``joints`` is the number n of joints."""
        position, velocity = np.zeros((2, 2, joints))
        stamp, period, samples, unchanged = np.zeros((4, 2), dtype=np.int64)
        first, undecided = np.zeros((2, 1), dtype=np.int64)
        return Streams(position, velocity, stamp, period, samples, unchanged, first, undecided, np.zeros(joints))


@kernel
def _add_to_stream(streams: Streams, stream: int, stamp: int, position: FloatArray) -> None:
    """Add a sample (n,) to a stream; a stamp that is not later leaves the velocities as they are.

    Stamps that are nearly the same would make any difference of positions a speed, so that no velocity changes by more
    than the largest acceleration allows.
    """
    step, count, changed = stamp - streams.stamp[stream], streams.samples[stream], False
    largest = _MAX_SPEED if count == 1 else _MAX_ACCELERATION * 1e-9 * step
    streams.samples[stream] += 1
    if count and step == 0:
        return
    for joint in range(position.size):
        change = position[joint] - streams.position[stream, joint]
        changed = changed or change != 0.0
        if not count:
            streams.velocity[stream, joint] = 0.0
        elif step > 0:
            before = streams.velocity[stream, joint]
            streams.velocity[stream, joint] = before + min(max(change / (1e-9 * step) - before, -largest), largest)
        streams.position[stream, joint] = position[joint]
    streams.stamp[stream] = stamp
    if not count:
        streams.unchanged[stream] = streams.period[stream] = 0
    elif step > 0:
        streams.unchanged[stream] = 0 if changed else streams.unchanged[stream] + 1
        streams.period[stream] = step if count == 1 else min(step, 2 * streams.period[stream])


@kernel
def _tolerance(streams: Streams, stream: int, dt: float) -> float:
    """Difference from the predicted position that a joint may have after a time [s]."""
    speed = _MAX_SPEED if streams.samples[stream] == 1 else 0.0
    return 0.5 * _MAX_ACCELERATION * dt * dt + speed * abs(dt) + MAX_DEVIATION


@kernel
def _compare_streams(streams: Streams, stamp: int, position: FloatArray) -> tuple[int, int]:
    """Stream that a sample belongs to, 2: to none; and the joint that contradicts the first stream most."""
    deviation, difference, worst_joint = np.full(2, -math.inf), np.zeros(2), 0
    for stream in range(2):
        dt = 1e-9 * (stamp - streams.stamp[stream])
        tolerance = _tolerance(streams, stream, dt)
        for joint in range(position.size):
            change = position[joint] - streams.position[stream, joint]
            moved = streams.velocity[stream, joint] * dt
            beyond = abs(change) - 2.0 * abs(moved) - tolerance
            if beyond > deviation[stream]:
                deviation[stream] = beyond
                worst_joint = joint if stream == 0 else worst_joint
            difference[stream] = max(difference[stream], abs(change - moved))
    second = streams.samples[1] > 0
    if deviation[0] <= 0.0 and not (second and difference[1] < difference[0]):
        return 0, worst_joint
    return (1 if second and deviation[1] <= 0.0 else 2), worst_joint


@kernel
def count_turns(streams: Streams, stamp: int, position: FloatArray) -> None:
    """Let positions (n,) go on where the driver wraps them: a step by whole turns that the motion does not explain."""
    dt = 1e-9 * (stamp - streams.stamp[0])
    known = streams.samples[0] > 0 and abs(stamp - streams.stamp[0]) < _PUBLISHER_TIMEOUT_NS
    largest = min(_tolerance(streams, 0, dt), _MAX_TURN_DEVIATION)
    for joint in range(position.size):
        turned = streams.turned[joint] if abs(streams.turned[joint]) < _MAX_TURNED else 0.0
        ahead = position[joint] + turned - streams.position[0, joint] - streams.velocity[0, joint] * dt
        turns = _FULL_TURN * np.rint(ahead / _FULL_TURN)
        if known and abs(ahead - turns) < largest and abs(turned - turns) < _MAX_TURNED:
            turned -= turns
        streams.turned[joint] = turned
        position[joint] += turned


@entry_point
def select_publisher(streams: Streams, stamp: int, position: Vector) -> tuple[bool, bool, int]:
    """Decide whether a joint sample comes from the publisher that is used.

    Two publishers on one topic are separated by their positions. A sample that contradicts the first stream begins a
    second one, and samples belong to the nearer stream. The first stream is used while it goes on; when it ends, the
    second one takes its place: the positions have jumped. Of two streams that begin within a second, that is used whose
    positions change while the other one keeps all bits; until then none is.

    Returns
    -------
    used, switched : True where the sample is used, and where it does not continue those that were used: another stream
        was used wrongly so far, or the positions have jumped
    joint : whose position contradicts the first stream most
    """
    samples, unchanged, undecided = streams.samples, streams.unchanged, streams.undecided
    if samples[0] == 0:
        streams.first_stamp[0] = stamp
        _add_to_stream(streams, 0, stamp, position)
        return True, False, 0
    if samples[1] and abs(stamp - streams.stamp[1]) > (_STREAM_TIMEOUT_NS if undecided[0] else _PUBLISHER_TIMEOUT_NS):
        samples[1] = undecided[0] = 0
    stream, joint = _compare_streams(streams, stamp, position)
    if stream == 2:
        stream, samples[1], undecided[0] = 1, 0, abs(stamp - streams.first_stamp[0]) < _PUBLISHER_TIMEOUT_NS
    _add_to_stream(streams, stream, stamp, position)
    if samples[1] < 2:
        return stream == 0, False, joint
    switched = undecided[0] == 1 and unchanged[0] >= _FROZEN_SAMPLES and unchanged[1] == 0
    patience = _STREAM_TIMEOUT_NS if undecided[0] else _MISSED_PERIODS * streams.period[0]
    ended = stream == 1 and abs(stamp - streams.stamp[0]) > patience
    if switched or ended:
        for rows in (streams.position, streams.velocity):
            for column in range(position.size):
                rows[0, column], rows[1, column] = rows[1, column], rows[0, column]
        for pair in (streams.stamp, streams.period, samples, unchanged):
            pair[0], pair[1] = pair[1], pair[0]
        stream, undecided[0] = 1 - stream, 0
    elif unchanged[1] >= _FROZEN_SAMPLES and unchanged[0] == 0:
        undecided[0] = 0
    return stream == 0 and undecided[0] == 0, switched or ended, joint


@record
class MixedStreams(NamedTuple):
    """Whether the readings of s sensors come from two publishers in turns, judged by each of their p vectors alone.

    Readings of one publisher continue the newest one. Of two publishers that contradict each other, a reading often is
    far from the newest one and near the one before the other publisher's: a clear turn.

    Attributes
    ----------
    scale : (s, p, d) differences that matter
    values : (s, p, 2, d) newest readings of two streams, one after the other in the rows (s p 2, d)
    newest : (s, p) stream of the newest reading; -1 before the first one
    clear : (s, p) number of clear turns among the newest ones
    stamp : (s, p) of the newest clear turn [ns]
    repeated : (s,) of the newest reading with the stamp of another one [ns]
    """

    scale: Tensor
    values: Matrix
    newest: IndexMatrix
    clear: Matrix
    stamp: IndexMatrix
    repeated: Indices

    @staticmethod
    def initial(scale: FloatArray) -> MixedStreams:
        """Streams before the first reading."""
        s, p, d = scale.shape
        none = np.zeros((s, p), np.int64)
        return MixedStreams(scale, np.zeros((2 * s * p, d)), none - 1, np.zeros((s, p)), none, none[:, 0].copy())


@kernel
def _distance(scale: FloatArray, one: FloatArray, other: FloatArray) -> float:
    """Squared distance of two vectors (d,), as far as both have numbers."""
    distance = 0.0
    for j in range(scale.size):
        difference = (one[j] - other[j]) / scale[j]
        if not math.isnan(difference):
            distance += difference * difference
    return distance


@kernel
def add_to_streams(streams: MixedStreams, sensor: int, stamp: int, reading: FloatArray) -> None:
    """Add a reading (p d,), later than those before: each vector to its newest stream, or as a turn to the other."""
    parts, size = streams.scale.shape[1:]
    for part in range(parts):
        vector, scale = reading[part * size : (part + 1) * size], streams.scale[sensor, part]
        newest, row = streams.newest[sensor, part], 2 * (sensor * parts + part)
        if newest < 0:
            newest = 0
            streams.values[row + 1] = vector
        else:
            step = _distance(scale, vector, streams.values[row + newest])
            back = _distance(scale, vector, streams.values[row + 1 - newest])
            if back < step:
                _note_turn(streams, sensor, part, stamp, step > _CLEAR_TURN * (back + 1.0))
            if back < step or step > 1.0:
                newest = 1 - newest
        streams.newest[sensor, part] = newest
        streams.values[row + newest] = vector


@kernel
def _note_turn(streams: MixedStreams, sensor: int, part: int, stamp: int, clear: bool) -> None:
    count = streams.clear[sensor, part] * (1.0 - 1.0 / _TURNS)
    if clear:
        age = abs(stamp - streams.stamp[sensor, part]) / _TURNS_FOR_NS
        count = 1.0 + count * max(1.0 - age, 0.0)
        streams.stamp[sensor, part] = stamp
    streams.clear[sensor, part] = count


@kernel
def add_repeated(streams: MixedStreams, sensor: int, stamp: int, reading: FloatArray, known: FloatArray) -> None:
    """Note a reading with the stamp of a known one; all further ones of this stamp do not count: stamps stand still."""
    if stamp == streams.repeated[sensor]:
        return
    streams.repeated[sensor] = stamp
    parts, size = streams.scale.shape[1:]
    for part in range(parts):
        end = (part + 1) * size
        distance = _distance(streams.scale[sensor, part], reading[part * size : end], known[part * size : end])
        _note_turn(streams, sensor, part, stamp, distance > _CLEAR_TURN)


@kernel
def are_mixed(streams: MixedStreams, sensor: int, stamp: int) -> bool:
    """Whether two publishers have sent the newest readings before a stamp [ns]."""
    for part in range(streams.scale.shape[1]):
        certain = streams.clear[sensor, part] > _MIXED_SHARE * _TURNS
        if certain and abs(stamp - streams.stamp[sensor, part]) < _MIXED_FOR_NS:
            return True
    return False


@record
class Packets(NamedTuple):
    """What is known of the stamps of s streams.

    Attributes
    ----------
    newest, clock : (s,) stamps of the newest reading, as it came and as it was spread; long before if it was not [ns]
    steps, filled : (s, b), (s,) newest steps of the stamps, and how many there are [ns]
    period, spacing : (s,) time between two readings, and between two packets; zero where there are no packets [ns]
    longest : (s,) spacing beyond the period up to which packets are spread [ns]
    """

    newest: Indices
    clock: Indices
    steps: IndexMatrix
    filled: Indices
    period: Indices
    spacing: Indices
    longest: Indices

    @staticmethod
    def initial(sensors: int, max_wait: int) -> Packets:
        """Before the first reading of the joints (0) and of other sensors, whose readings are waited for [ns]."""
        newest, clock, period, spacing = np.zeros((4, 1 + sensors), np.int64)
        steps, filled = np.zeros((1 + sensors, _BLOCK), np.int64), np.full(1 + sensors, -1, np.int64)
        longest = np.array([_LONGEST_NS, *[max_wait] * sensors], dtype=np.int64)
        return Packets(newest, clock, steps, filled, period, spacing, longest)


@kernel
def spread(packets: Packets, stream: int, stamp: int, reset_after: int) -> int:
    """Stamp of the newest reading of a stream [ns], spread where it comes in a packet; ``reset_after``: a pause [ns].

    Each reading is a period later than the one before, and the last one of a packet is, on average, at its stamp.
    """
    step = stamp - packets.newest[stream]
    if packets.filled[stream] < 0 or abs(step) > reset_after:
        packets.filled[stream] = packets.period[stream] = packets.spacing[stream] = 0
        packets.newest[stream], packets.clock[stream] = stamp, stamp - reset_after
        return stamp
    if step >= 0:
        packets.newest[stream] = stamp
        packets.steps[stream, packets.filled[stream]] = step
        packets.filled[stream] += 1
        if packets.filled[stream] == _BLOCK:
            packets.filled[stream] = 0
            _measure(packets, stream)
    period, spacing = packets.period[stream], packets.spacing[stream]
    if period == 0 or spacing > packets.longest[stream] + period or step < -spacing:
        packets.clock[stream] = stamp - reset_after
        return stamp
    expected = packets.clock[stream] + period
    if step > _BEGIN * period:
        late = stamp - (spacing - period) - expected
        expected += late if 2 * abs(late) > spacing + period else round(_PHASE_GAIN * late)
    elif stamp - expected > reset_after // 2:  # the first packet that is spread has not begun
        return stamp
    packets.clock[stream] = max(expected, packets.clock[stream] + 1)
    return packets.clock[stream]


@kernel
def _measure(packets: Packets, stream: int) -> None:
    """Find size and distance of the packets from a block of steps, or that there are none."""
    steps = packets.steps[stream]
    begins, long = np.flatnonzero(steps > _BEGIN * np.mean(steps)), np.sum(steps > _SHORT * np.mean(steps))
    packets.period[stream] = packets.spacing[stream] = 0
    is_pair = begins.size * _PAIR > steps.size and 2 * np.sum(steps == 0) > steps.size - begins.size
    if begins.size < _MIN_PACKETS or long * _MIN_SIZE > steps.size or is_pair:
        return
    spacing, size = np.empty(begins.size - 1), np.diff(begins)
    for k in range(spacing.size):
        spacing[k] = np.sum(steps[begins[k] : begins[k + 1]])
    whole = spacing < _LOST * np.median(spacing)
    packets.spacing[stream] = round(np.mean(spacing[whole]))
    packets.period[stream] = round(np.sum(spacing[whole]) / np.sum(size[whole]))


def packet_checks(packets: Packets, topics: Sequence[str]) -> Iterator[Check]:
    """Findings about packets: those that are spread, and those that are too long; ``topics`` (s) of the streams."""
    rows: IntArray = np.stack((packets.period, packets.spacing, packets.longest), axis=1)
    for topic, (period, spacing, longest) in zip(topics, rows.tolist(), strict=True):
        text = _TEXT.format(topic, spacing / period, 1e-6 * spacing) if period else ""
        fits = spacing <= longest + period
        yield Check(SensorFault.PACKETS, topic, text + _SPREAD if text and fits else "")
        too_long = text + _TOO_LONG.format(1e-9 * (spacing - period))
        yield Check(SensorFault.LONG_PACKETS, topic, "" if fits else too_long)
