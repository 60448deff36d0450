"""Checks of samples: they are copied to one kind of array, and refused where they cannot be true.

sample ─► numbers, lengths, stamp ─► glitches ─► publisher (joint states only) ─► copy of the sample
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from friction_estimator.config import Config
from friction_estimator.errors import InputError
from friction_estimator.estimation.health import Health
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.kernels.records import buffered, record
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import (
    CommandSample,
    FloatArray,
    ImuSample,
    Indices,
    JointSample,
    Matrix,
    Vector,
    WrenchSample,
)

_MAX_ANGULAR_VELOCITY = 100.0
"""Larger readings of a gyroscope are glitches: no trunk turns sixteen times a second [rad/s]."""
_MAX_SPECIFIC_FORCE = 2000.0
"""Larger readings of an accelerometer are glitches: those for 200 g are not made for robots [m/s^2]."""
_MAX_VELOCITY = 100.0
"""Larger velocities of a joint are glitches: no joint of a robot turns sixteen times a second [rad/s or m/s]."""
_MAX_EFFORT = 1e4
"""Larger motor torques are glitches [N m or N]."""
_MAX_WRENCH = 1e5
"""Larger forces [N] and moments [N m] on a foot are glitches: ten tonnes."""
_MAX_STAMP = 2**62
"""Larger stamps overflow in differences [ns]."""
_WRENCH_NAMES = ("force x", "force y", "force z", "moment x", "moment y", "moment z")
_MISSING_EFFORT = (
    "joint states carry no effort, the motor torques: friction is not estimated (NaN); attitude, contact phase and "
    "base state are"
)
_CONTRADICTING = (
    "joint states contradict those before (the position of {!r} is {:g}, and before it was {:g}) and are not used: "
    "check the encoder, and whether a second node publishes joint states"
)
_MISSING_VELOCITY = "joint states carry no velocity: velocities are found from the positions by a Kalman filter"

_MAX_DEVIATION = 0.1
"""Position from which a joint sample may differ from what the one before predicts [rad or m]: steps of encoders."""
_MAX_ACCELERATION = 2000.0
"""Largest acceleration of a joint for that prediction [rad/s^2 or m/s^2]: a leg that lands has a tenth of it."""
_PUBLISHER_TIMEOUT_NS = 1_000_000_000
"""A publisher that has sent nothing for this time has ended [ns]."""
_MISSED_PERIODS = 3
"""Number of periods without a sample of the first publisher, after which a jump of the positions is accepted."""
_STREAM_TIMEOUT_NS = 100_000_000
"""Time without a sample after which either of two streams has ended that have begun together [ns]."""
_FROZEN_SAMPLES = 10
"""Number of samples with the same bits in a row, after which a publisher whose positions change is preferred."""

_BAD_POSITION, _BAD_VELOCITY, _BAD_EFFORT, _CONTRADICTION, _NO_EFFORT, _VALID = range(6)
"""What is wrong with a joint sample; with the first four it is not used."""


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

    @staticmethod
    def initial(joints: int) -> Streams:
        """Streams of two publishers without any sample; ``joints`` is the number n of joints."""
        rows, numbers = np.zeros((2, 2, joints)), np.zeros((4, 2), dtype=np.int64)
        return Streams(*rows, *numbers, *np.zeros((2, 1), dtype=np.int64))


@kernel
def _add_to_stream(streams: Streams, stream: int, stamp: int, position: FloatArray) -> None:
    """Add a sample (n,) to a stream; a stamp that is not later leaves the velocities as they are."""
    step, count, changed = stamp - streams.stamp[stream], streams.samples[stream], False
    streams.samples[stream] += 1
    if count and step == 0:
        return
    for joint in range(position.size):
        change = position[joint] - streams.position[stream, joint]
        changed = changed or change != 0.0
        if not count:
            streams.velocity[stream, joint] = 0.0
        elif step > 0:
            streams.velocity[stream, joint] = change / (1e-9 * step)
        streams.position[stream, joint] = position[joint]
    streams.stamp[stream] = stamp
    if not count:
        streams.unchanged[stream] = streams.period[stream] = 0
    elif step > 0:
        streams.unchanged[stream] = 0 if changed else streams.unchanged[stream] + 1
        streams.period[stream] = step if count == 1 else min(step, 2 * streams.period[stream])


@kernel
def _compare_streams(streams: Streams, stamp: int, position: FloatArray) -> tuple[int, int]:
    """Stream that a sample belongs to, 2: to none; and the joint that contradicts the first stream most."""
    deviation, difference, worst_joint = np.full(2, -math.inf), np.zeros(2), 0
    for stream in range(2):
        dt = 1e-9 * (stamp - streams.stamp[stream])
        for joint in range(position.size):
            change = position[joint] - streams.position[stream, joint]
            moved = streams.velocity[stream, joint] * dt
            beyond = abs(change) - 2.0 * abs(moved) - 0.5 * _MAX_ACCELERATION * dt * dt - _MAX_DEVIATION
            if beyond > deviation[stream]:
                deviation[stream] = beyond
                worst_joint = joint if stream == 0 else worst_joint
            difference[stream] = max(difference[stream], abs(change - moved))
    second = streams.samples[1] > 0
    if deviation[0] <= 0.0 and not (second and difference[1] < difference[0]):
        return 0, worst_joint
    return (1 if second and deviation[1] <= 0.0 else 2), worst_joint


@entry_point
def select_publisher(streams: Streams, stamp: int, position: Vector) -> tuple[bool, bool, int]:
    """Decide whether a joint sample comes from the publisher that is used.

    Two publishers on one topic are separated by their positions. A sample that contradicts the first stream begins a
    second one, and samples belong to the nearer stream. The first stream is used while it goes on; when it ends, the
    second one takes its place: the positions have jumped. Of two streams that begin within a second, that is used whose
    positions change while the other one keeps all bits; until then none is.

    Returns
    -------
    used, switched : True where the sample is used, and where it has shown that another stream was used wrongly so far
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
    return stream == 0 and undecided[0] == 0, switched, joint


@entry_point
def _check_joint_sample(
    sample: Matrix, low: Vector, high: Vector, streams: Streams, stamp: int
) -> tuple[int, int, bool]:
    """What is wrong with a joint sample, of which joint, and whether another publisher was used wrongly so far.

    Parameters
    ----------
    sample : (3, n) position, velocity and effort; the last two may be all NaN
    low, high : (n,) ends of the position
    """
    position, velocity, effort = sample[0], sample[1], sample[2]
    n, with_effort, with_velocity = position.size, 0, 0
    for joint in range(n):
        with_velocity += not math.isnan(velocity[joint])
        with_effort += not math.isnan(effort[joint])
    for joint in range(n):
        if not low[joint] <= position[joint] <= high[joint]:
            return _BAD_POSITION, joint, False
        if with_velocity and not abs(velocity[joint]) <= _MAX_VELOCITY:
            return _BAD_VELOCITY, joint, False
        if with_effort and not abs(effort[joint]) <= _MAX_EFFORT:
            return _BAD_EFFORT, joint, False
    used, switched, joint = select_publisher(streams, stamp, position)
    return (_VALID if with_effort else _NO_EFFORT) if used else _CONTRADICTION, joint, switched


class SampleChecks:
    """Copies samples, and refuses those that cannot be true.

    Every method returns the stamp as an ``int``, and values in a new array of ``float64``.

    Parameters
    ----------
    config : limits of the readings
    robot : names and limits of the joints
    health : counters to update

    Attributes
    ----------
    switched : True where the samples before the newest joint sample were those of a publisher that is not the robot

    Raises
    ------
    InputError
        By every method, when a sample cannot be used.
    """

    def __init__(self, config: Config, robot: RobotModel, health: Health) -> None:
        self._joint_names, self._health = robot.joint_names, health
        self._joint_limits = robot.lowest_position, robot.highest_position
        self._wrench_names = [f"wrench of {foot.name}" for foot in config.feet]
        self.switched = False
        self.reset()

    def reset(self) -> None:
        """Forget the positions so far."""
        self._stream_buffer, self._streams = buffered(Streams.initial(len(self._joint_names)))

    def joints(self, sample: JointSample) -> JointSample | None:
        """Check a joint sample; None where it contradicts the samples before.

        Velocity and effort that are None, empty or all NaN are not measured.
        """
        stamp, names = sample.stamp_ns, self._joint_names
        if type(stamp) is not int or abs(stamp) > _MAX_STAMP:
            stamp = _as_stamp(stamp, "joint sample")
        try:
            table = np.array((sample.position, sample.velocity, sample.effort), dtype=np.float64)
        except (TypeError, ValueError):
            table = None
        if table is None or table.shape != (3, len(names)):
            table = np.stack(
                (
                    _as_array(sample.position, "joint position", names),
                    _as_array(sample.velocity, "joint velocity", names, optional=True),
                    _as_array(sample.effort, "joint effort", names, optional=True),
                )
            )
        wrong, joint, self.switched = _check_joint_sample(table, *self._joint_limits, self._stream_buffer, stamp)
        if wrong < _CONTRADICTION:
            raise InputError(self._describe_glitch(wrong, joint, table))
        position, velocity, effort = table
        if wrong == _CONTRADICTION:
            text = _CONTRADICTING.format(names[joint], position[joint], self._streams.position[0, joint])
            self._health.contradicting += 1
            self._health.add_lasting_event("contradicting_positions", stamp, text)
            return None
        if wrong == _NO_EFFORT:
            self._health.without_effort += 1
            self._health.add_lasting_event("missing_effort", stamp, _MISSING_EFFORT)
        if math.isnan(velocity[0]):
            self._health.add_lasting_event("missing_velocity", stamp, _MISSING_VELOCITY)
        return JointSample(stamp, position, velocity, effort)

    def imu(self, sample: ImuSample) -> tuple[int, FloatArray]:
        """Check a sample of the IMU: stamp, and angular velocity and specific force (6,)."""
        stamp = sample.stamp_ns
        if type(stamp) is not int or abs(stamp) > _MAX_STAMP:
            stamp = _as_stamp(stamp, "IMU sample")
        rate = _as_limited_array(sample.angular_velocity, _MAX_ANGULAR_VELOCITY, "angular velocity", "xyz")
        force = _as_limited_array(sample.specific_force, _MAX_SPECIFIC_FORCE, "specific force", "xyz")
        return stamp, np.array((rate, force)).reshape(6)

    def wrench(self, sample: WrenchSample) -> tuple[int, FloatArray]:
        """Check a foot wrench: stamp and values (6,)."""
        stamp, names = sample.stamp_ns, self._wrench_names
        if type(stamp) is not int or abs(stamp) > _MAX_STAMP:
            stamp = _as_stamp(stamp, "wrench sample")
        if not isinstance(sample.foot, (int, np.integer)) or not 0 <= sample.foot < len(names):
            known = f"0 to {len(names) - 1}, in the order of Config.feet" if names else "none, this robot has no feet"
            raise InputError(f"foot {sample.foot!r} of a wrench sample is unknown; the feet are {known}")
        return stamp, _as_limited_array(sample.wrench, _MAX_WRENCH, names[sample.foot], _WRENCH_NAMES)

    def command(self, sample: CommandSample) -> CommandSample:
        """Check desired velocities."""
        stamp = _as_stamp(sample.stamp_ns, "command sample")
        return CommandSample(
            stamp, _as_limited_array(sample.velocity, _MAX_VELOCITY, "desired velocity", self._joint_names)
        )

    def _describe_glitch(self, wrong: int, joint: int, sample: FloatArray) -> str:
        """Why a joint sample is refused: what :func:`_check_joint_sample` found."""
        name, (low, high), value = self._joint_names[joint], self._joint_limits, sample[wrong, joint]
        if wrong == _BAD_VELOCITY:
            return f"joint velocity {name} = {value} cannot be true; the limit is {_MAX_VELOCITY:g}"
        if wrong == _BAD_EFFORT:
            return f"joint effort {name} = {value} cannot be true; the limit is {_MAX_EFFORT:g}"
        ends = f"between {low[joint]:g} and {high[joint]:g}, margin included"
        return f"joint position {name} = {value} cannot be true; by the URDF it is {ends}"


def _as_stamp(stamp: Any, what: str) -> int:
    try:
        number = operator.index(stamp)
    except TypeError:
        raise InputError(f"the stamp of a {what} is {stamp!r}; whole nanoseconds are needed") from None
    if abs(number) > _MAX_STAMP:
        raise InputError(f"the stamp of a {what} is {number} ns, which no clock shows")
    return number


def _as_array(values: Any, what: str, names: Sequence[str], optional: bool = False) -> FloatArray:
    """Copy of an array, one number for each name; NaN for optional values that are missing."""
    if optional and (values is None or np.size(values) == 0):
        return np.full(len(names), np.nan)
    try:
        copy = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} is {str(values)[:80]!r}; an array of {len(names)} numbers is needed") from None
    if copy.shape != (len(names),):
        raise InputError(f"{what} has the shape {copy.shape}; {len(names)} values are needed: {', '.join(names)}")
    return copy


def _as_limited_array(values: Any, limit: float, what: str, names: Sequence[str]) -> FloatArray:
    """Copy of an array whose values are at most ``limit`` in size."""
    try:
        copy = np.array(values, dtype=np.float64)
        if copy.shape == (len(names),) and math.hypot(*copy.tolist()) <= limit:
            return copy
    except (TypeError, ValueError):
        pass
    copy = _as_array(values, what, names)
    if (wrong := ~(np.abs(copy) <= limit)).any():
        worst = int(np.flatnonzero(wrong)[0])
        raise InputError(f"{what} {names[worst]} = {copy[worst]} cannot be true; the limit is {limit:g}")
    return copy
