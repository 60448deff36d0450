"""Checks of samples: they are copied to one kind of array, and refused where they cannot be true.

sample ─► numbers, lengths, stamp ─► glitches ─► zeros, turns, publisher (joint states only) ─► copy of the sample
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from friction_estimator.config import Config
from friction_estimator.errors import InputError
from friction_estimator.estimation.health import Check, Health, SensorFault
from friction_estimator.estimation.readings.publishers import (
    MAX_DEVIATION,
    MixedStreams,
    Streams,
    add_to_streams,
    are_mixed,
    count_turns,
    select_publisher,
)
from friction_estimator.kernels.compiler import entry_point
from friction_estimator.kernels.records import buffered
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import (
    CommandSample,
    FloatArray,
    ImuSample,
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
_ZEROS = (
    "{}: joint states in which positions, velocities and efforts of all joints are zero are not used: the driver has "
    "no readings of the motors yet, or a second node publishes zeros; publish what the motors report and nothing else"
)
_MISSING_VELOCITY = "joint states carry no velocity: velocities are found from the positions by a Kalman filter"

_VELOCITY_SCALE, _EFFORT_SCALE = 0.3, 0.01
"""Differences of velocities [rad/s or m/s], and of efforts over the weight [m], that show two publishers."""
_MIN_ZEROS, _MIN_ZEROS_SHARE = 10, 0.01
"""Number of joint states that are all zero, and their share, from which they are named."""
_BAD_POSITION, _BAD_VELOCITY, _BAD_EFFORT, _ALL_ZERO, _CONTRADICTION, _NO_EFFORT, _VALID = range(7)
"""What is wrong with a joint sample; with the first five it is not used."""


@entry_point
def _check_joint_sample(
    sample: Matrix, low: Vector, high: Vector, streams: Streams, mixed: MixedStreams, stamp: int
) -> tuple[int, int, bool, bool]:
    """What is wrong with a joint sample, of which joint, whether it does not continue those before, and two publishers.

    Parameters
    ----------
    sample : (3, n) position, velocity and effort; the last two may be all NaN; in place: positions go on over turns
    low, high : (n,) ends of the position
    """
    position, velocity, effort = sample[0], sample[1], sample[2]
    n, with_effort, with_velocity, all_zero = position.size, 0, 0, True
    for joint in range(n):
        all_zero = all_zero and position[joint] == 0.0 == effort[joint] and not abs(velocity[joint]) > 0.0
        with_velocity += not math.isnan(velocity[joint])
        with_effort += not math.isnan(effort[joint])
    for joint in range(n):
        if not low[joint] <= position[joint] <= high[joint]:
            return _BAD_POSITION, joint, False, False
        if with_velocity and not abs(velocity[joint]) <= _MAX_VELOCITY:
            return _BAD_VELOCITY, joint, False, False
        if with_effort and not abs(effort[joint]) <= _MAX_EFFORT:
            return _BAD_EFFORT, joint, False, False
    if all_zero:
        return _ALL_ZERO, 0, False, False
    count_turns(streams, stamp, position)
    used, switched, joint = select_publisher(streams, stamp, position)
    if not used:
        return _CONTRADICTION, joint, switched, False
    add_to_streams(mixed, 0, stamp, sample.reshape(-1))
    return _VALID if with_effort else _NO_EFFORT, joint, switched, are_mixed(mixed, 0, stamp)


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
    switched : True where the newest joint sample does not continue those before: they were those of a publisher that is
        not the robot, or the positions have jumped

    Raises
    ------
    InputError
        By every method, when a sample cannot be used.
    """

    def __init__(self, config: Config, robot: RobotModel, health: Health) -> None:
        self._joint_names, self._health, self._topic = robot.joint_names, health, config.output.joint_states_topic
        self._checked = 0, 0
        self._joint_limits = robot.lowest_position, robot.highest_position
        self._wrench_names = [f"wrench of {foot.name}" for foot in config.feet]
        scale = np.array([MAX_DEVIATION, _VELOCITY_SCALE, _EFFORT_SCALE * robot.weight])
        self._scale = np.repeat(scale, len(self._joint_names)).reshape(1, 3, -1)
        self.switched = False
        self.reset()

    def reset(self) -> None:
        """Forget the positions so far."""
        self._stream_buffer, self._streams = buffered(Streams.initial(len(self._joint_names)))
        self._mixed_buffer, _ = buffered(MixedStreams.initial(self._scale))

    @property
    def zeros(self) -> Check:
        """Whether joint states that are all zero have come since :meth:`checks` was called."""
        zeros, frames = self._health.zeros - self._checked[0], self._health.frames - self._checked[1]
        found = zeros >= _MIN_ZEROS and zeros > _MIN_ZEROS_SHARE * frames
        return Check(SensorFault.ZEROS, self._topic, _ZEROS.format(self._topic) if found else "")

    def checks(self) -> Iterator[Check]:
        """What the joint states since the previous call were."""
        yield self.zeros
        self._checked = self._health.zeros, self._health.frames

    def joints(self, sample: JointSample) -> JointSample | None:
        """Check a joint sample; None where it contradicts the samples before, or is all zero.

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
        wrong, joint, self.switched, mixed = _check_joint_sample(
            table, *self._joint_limits, self._stream_buffer, self._mixed_buffer, stamp
        )
        self._health.mixed += mixed
        if wrong == _ALL_ZERO:
            self._health.zeros += 1
            return None
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
