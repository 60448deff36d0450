"""The door of the estimator: samples are copied to one kind of array, and refused where they cannot be true.

sample ─► numbers, lengths, stamp ─► glitches ─► publisher (joint states only) ─► copy of the sample
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.config import Config
from friction_estimator.errors import InputError
from friction_estimator.estimation.health import Health
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import CommandSample, FloatArray, ImuSample, IntArray, JointSample, WrenchSample

_MAX_ANGULAR_VELOCITY = 100.0
"""Larger readings of a gyroscope are glitches: no trunk turns sixteen times a second [rad/s]."""
_MAX_SPECIFIC_FORCE = 2000.0
"""Larger readings of an accelerometer are glitches: those for 200 g are not made for robots [m/s^2]."""
MAX_VELOCITY = 100.0
"""Larger velocities of a joint are glitches: no joint of a robot turns sixteen times a second [rad/s or m/s]."""
MAX_EFFORT = 1e4
"""Larger motor torques are glitches [N m or N]."""
_MAX_WRENCH = 1e5
"""Larger forces [N] and moments [N m] on a foot are glitches: ten tonnes."""
_LARGEST_STAMP = 2**62
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

_FARTHEST = 0.1
"""Position from which a joint sample may differ from what the one before predicts [rad or m]: steps of encoders."""
_ACCELERATION = 2000.0
"""Largest acceleration of a joint for that prediction [rad/s^2 or m/s^2]: a leg that lands has a tenth of it."""
_ALIVE_NS = 1_000_000_000
"""A publisher that has sent nothing for this time has ended [ns]."""
_PERIODS = 3
"""Usual periods without a sample of the first publisher, after which a jump of the positions is believed."""
_PATIENCE_NS = 100_000_000
"""Time without a sample after which either of two streams has ended that have begun together [ns]."""
_SAME = 10
"""Samples with the same bits in a row, after which the publisher whose positions change is the right one."""

POSITION, VELOCITY, EFFORT, NOTHING, NO_EFFORT = range(5)


@kernel("V V V V V")
def find_glitch(
    position: FloatArray,
    velocity: FloatArray,
    effort: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> tuple[int, int]:
    """What of a joint sample cannot be true, and of which joint; ``NO_EFFORT`` where all else can be.

    Parameters
    ----------
    position, velocity, effort : (n,) of the sample; velocity and effort may be all NaN
    low, high : (n,) ends of the position
    """
    n, known, measured = position.size, 0, 0
    for joint in range(n):
        measured += not math.isnan(velocity[joint])
        known += not math.isnan(effort[joint])
    for joint in range(n):
        if not low[joint] <= position[joint] <= high[joint]:
            return POSITION, joint
        if measured and not abs(velocity[joint]) <= MAX_VELOCITY:
            return VELOCITY, joint
        if known and not abs(effort[joint]) <= MAX_EFFORT:
            return EFFORT, joint
    return (NOTHING if known else NO_EFFORT), 0


@kernel("V f8")
def all_within(values: FloatArray, limit: float) -> bool:
    """Whether all values are finite and at most ``limit`` in size."""
    for value in values:
        if not abs(value) <= limit:
            return False
    return True


@kernel("V M M I i8 f8 f8 I M")
def compare_streams(
    position: FloatArray,
    positions: FloatArray,
    velocities: FloatArray,
    stamps: IntArray,
    stamp: int,
    acceleration: float,
    farthest: float,
    joints: IntArray,
    distances: FloatArray,
) -> None:
    """How far a joint sample is from what two streams predict.

    Parameters
    ----------
    position, stamp : (n,) of the sample, and its stamp [ns]
    positions, velocities, stamps : (2, n), (2, n), (2,) of the newest sample of each stream
    acceleration, farthest : bounds of the error of the prediction
    joints, distances : (2,), (2, 2) output: joint with the largest change beyond what is possible; this change minus
        its bound, and largest difference to the prediction, one row each
    """
    for stream in range(2):
        dt = 1e-9 * (stamp - stamps[stream])
        joints[stream], distances[0, stream], distances[1, stream] = 0, -math.inf, 0.0
        for joint in range(position.size):
            change, moved = position[joint] - positions[stream, joint], velocities[stream, joint] * dt
            beyond = abs(change) - 2.0 * abs(moved) - 0.5 * acceleration * dt * dt - farthest
            if beyond > distances[0, stream]:
                joints[stream], distances[0, stream] = joint, beyond
            distances[1, stream] = max(distances[1, stream], abs(change - moved))


@kernel("V M M I i8 i8")
def add_to_stream(
    position: FloatArray, positions: FloatArray, velocities: FloatArray, stamps: IntArray, stream: int, stamp: int
) -> bool:
    """Add a sample (n,) to one of the streams of :func:`compare_streams`, in place; True where a position has changed.

    A stamp that is not later leaves the velocities as they are.
    """
    step, changed = stamp - stamps[stream], False
    for joint in range(position.size):
        change = position[joint] - positions[stream, joint]
        changed = changed or change != 0.0
        if step > 0:
            velocities[stream, joint] = change / (1e-9 * step)
        positions[stream, joint] = position[joint]
    stamps[stream] = stamp
    return changed


class JointStreams:
    """Separates the joint samples of two publishers on one topic by their positions.

    A sample that contradicts the first stream begins a second one, and samples belong to the nearer stream. The first
    stream is used while it goes on; when it ends, the second one takes its place: the positions have jumped. Of two
    streams that begin within a second, that is used whose positions change while the other one keeps all bits; until
    then none is.

    Parameters
    ----------
    joints : n

    Attributes
    ----------
    switched : True where the newest sample has shown that another stream was used wrongly so far
    """

    def __init__(self, joints: int) -> None:
        self.switched = False
        self._positions, self._velocities = np.zeros((2, joints)), np.zeros((2, joints))
        self._stamps: IntArray = np.zeros(2, dtype=np.int64)
        self._joints, self._distances = np.zeros(2, dtype=np.int64), np.zeros((2, 2))
        self._counts, self._same, self._periods = [0, 0], [0, 0], [0, 0]
        self._began, self._undecided = 0, False

    def uses(self, stamp: int, position: FloatArray) -> bool:
        """Whether a sample is one of the stream that is used."""
        self.switched = False
        if not self._counts[0]:
            self._began = stamp
            self._add(0, stamp, position)
            return True
        compare_streams(
            position, self._positions, self._velocities, self._stamps, stamp, _ACCELERATION, _FARTHEST, self._joints,
            self._distances,
        )  # fmt: skip
        if self._counts[1] and abs(stamp - int(self._stamps[1])) > (_PATIENCE_NS if self._undecided else _ALIVE_NS):
            self._counts[1], self._undecided = 0, False
        counts, same, (excess, difference) = self._counts, self._same, self._distances
        stream = 0 if excess[0] <= 0.0 and not (counts[1] and difference[1] < difference[0]) else 1
        if stream and (not counts[1] or excess[1] > 0.0):
            counts[1] = 0
            self._undecided = abs(stamp - self._began) < _ALIVE_NS
        self._add(stream, stamp, position)
        if counts[1] < 2:
            return not stream
        still, second_still = (number >= _SAME for number in same)
        self.switched = self._undecided and still and not same[1]
        patience = _PATIENCE_NS if self._undecided else _PERIODS * self._periods[0]
        ended = stream == 1 and abs(stamp - self._stamps[0]) > patience
        if self.switched or ended:
            self._swap()
            stream = 1 - stream
        self._undecided = self._undecided and not (self.switched or ended or (second_still and not same[0]))
        return not stream and not self._undecided

    def difference(self) -> tuple[int, float]:
        """Joint whose position contradicted the first stream most, and that of the first stream."""
        joint = int(self._joints[0])
        return joint, float(self._positions[0, joint])

    def _swap(self) -> None:
        for rows in (self._positions, self._velocities, self._stamps):
            rows[:] = rows[::-1].copy()
        for values in (self._counts, self._same, self._periods):
            values.reverse()

    def _add(self, stream: int, stamp: int, position: FloatArray) -> None:
        step, count = stamp - int(self._stamps[stream]), self._counts[stream]
        self._counts[stream] += 1
        if count and step == 0:
            return
        changed = add_to_stream(position, self._positions, self._velocities, self._stamps, stream, stamp)
        if not count:
            self._velocities[stream], self._same[stream], self._periods[stream] = 0.0, 0, 0
        elif step > 0:
            self._same[stream] = 0 if changed else self._same[stream] + 1
            self._periods[stream] = step if count == 1 else min(step, 2 * self._periods[stream])


class SampleChecks:
    """Copies samples, and refuses those that cannot be true.

    Parameters
    ----------
    config : limits of the readings
    robot : names and limits of the joints
    health : counters to update

    Every method returns a sample whose arrays are new, contiguous and of ``float64``, and whose stamp is an ``int``.

    Raises
    ------
    InputError
        By every method, when a sample cannot be used.
    """

    def __init__(self, config: Config, robot: RobotModel, health: Health) -> None:
        self._joint_names, self._health = robot.joint_names, health
        self._joint_limits = robot.lowest_position, robot.highest_position
        self._wrench_names = [f"wrench of {foot.name}" for foot in config.feet]
        self._streams = JointStreams(len(robot.joint_names))

    @property
    def switched(self) -> bool:
        """Whether the samples before the newest joint sample were those of a publisher that is not the robot."""
        return self._streams.switched

    def reset(self) -> None:
        """Forget the positions so far."""
        self._streams = JointStreams(len(self._joint_names))

    def joints(self, sample: JointSample) -> JointSample | None:
        """Check a joint sample; None for one that contradicts those before.

        Velocity and effort that are None, empty or all NaN are not measured.
        """
        stamp, names = _stamp(sample.stamp_ns, "joint sample"), self._joint_names
        position = _numbers(sample.position, "joint position", names)
        velocity = _numbers(sample.velocity, "joint velocity", names, optional=True)
        effort = _numbers(sample.effort, "joint effort", names, optional=True)
        glitch, joint = find_glitch(position, velocity, effort, *self._joint_limits)
        if glitch < NOTHING:
            raise InputError(self._describe_glitch(glitch, joint, position, velocity, effort))
        if not self._streams.uses(stamp, position):
            joint, before = self._streams.difference()
            text = _CONTRADICTING.format(names[joint], position[joint], before)
            self._health.contradicting += 1
            self._health.add_lasting_event("contradicting_positions", stamp, text)
            return None
        if glitch == NO_EFFORT:
            self._health.without_effort += 1
            self._health.add_lasting_event("missing_effort", stamp, _MISSING_EFFORT)
        if math.isnan(velocity[0]):
            self._health.add_lasting_event("missing_velocity", stamp, _MISSING_VELOCITY)
        return JointSample(stamp, position, velocity, effort)

    def imu(self, sample: ImuSample) -> ImuSample:
        """Check a sample of the IMU."""
        stamp = _stamp(sample.stamp_ns, "IMU sample")
        rate = _within(sample.angular_velocity, _MAX_ANGULAR_VELOCITY, "angular velocity", "xyz")
        return ImuSample(stamp, rate, _within(sample.specific_force, _MAX_SPECIFIC_FORCE, "specific force", "xyz"))

    def wrench(self, sample: WrenchSample) -> WrenchSample:
        """Check a foot wrench."""
        stamp, count = _stamp(sample.stamp_ns, "wrench sample"), len(self._wrench_names)
        try:
            foot = operator.index(sample.foot)
        except TypeError:
            foot = -1
        if not 0 <= foot < count:
            known = f"0 to {count - 1}, in the order of Config.feet" if count else "none, this robot has no feet"
            raise InputError(f"foot {sample.foot!r} of a wrench sample is unknown; the feet are {known}")
        return WrenchSample(stamp, foot, _within(sample.wrench, _MAX_WRENCH, self._wrench_names[foot], _WRENCH_NAMES))

    def command(self, sample: CommandSample) -> CommandSample:
        """Check desired velocities."""
        stamp = _stamp(sample.stamp_ns, "command sample")
        return CommandSample(stamp, _within(sample.velocity, MAX_VELOCITY, "desired velocity", self._joint_names))

    def _describe_glitch(
        self, glitch: int, joint: int, position: FloatArray, velocity: FloatArray, effort: FloatArray
    ) -> str:
        """Why a joint sample is refused: what :func:`find_glitch` found."""
        name, (low, high) = self._joint_names[joint], self._joint_limits
        if glitch == VELOCITY:
            return f"joint velocity {name} = {velocity[joint]} cannot be true; the limit is {MAX_VELOCITY:g}"
        if glitch == EFFORT:
            return f"joint effort {name} = {effort[joint]} cannot be true; the limit is {MAX_EFFORT:g}"
        ends = f"between {low[joint]:g} and {high[joint]:g}, margin included"
        return f"joint position {name} = {position[joint]} cannot be true; by the URDF it is {ends}"


def _stamp(stamp: Any, what: str) -> int:
    try:
        number = operator.index(stamp)
    except TypeError:
        raise InputError(f"the stamp of a {what} is {stamp!r}; whole nanoseconds are needed") from None
    if abs(number) > _LARGEST_STAMP:
        raise InputError(f"the stamp of a {what} is {number} ns, which no clock shows")
    return number


def _numbers(values: Any, what: str, names: Sequence[str], optional: bool = False) -> FloatArray:
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


def _within(values: Any, limit: float, what: str, names: Sequence[str]) -> FloatArray:
    """Copy of an array whose values are at most ``limit`` in size."""
    copy = _numbers(values, what, names)
    if not all_within(copy, limit):
        worst = int(np.flatnonzero(~(np.abs(copy) <= limit))[0])
        raise InputError(f"{what} {names[worst]} = {copy[worst]} cannot be true; the limit is {limit:g}")
    return copy
