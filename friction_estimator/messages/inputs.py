"""Serialized sensor messages, from a subscription or a bag, to samples."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from friction_estimator.config import Config, FootConfig
from friction_estimator.errors import InputError, choices
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import BODY, NANOSECONDS, CdrScanner
from friction_estimator.types import CommandSample, FloatArray, ImuSample, JointSample, WrenchSample

_COVARIANCE_REST = "64x"
_IMU_NUMBERS = f"104x 4d {_COVARIANCE_REST} 4d {_COVARIANCE_REST}"
"""Orientation with covariance; angular velocity, first of its covariance; acceleration, first of its covariance."""


class InputReader:
    """Reads and checks the serialized messages of one robot.

    Parameters
    ----------
    config : topics, frames and signs
    joint_names : (n) joints to read, in model order

    Every method raises :class:`InputError` with the topic and the reason when a message cannot be used.
    """

    def __init__(self, config: Config, joint_names: Sequence[str]) -> None:
        self._joints = _JointStates(
            config.output.joint_states_topic,
            joint_names,
            ("position", "velocity", "effort"),
            optional=("velocity", "effort"),
        )
        self._commands = _JointStates(config.compensation.desired_topic, joint_names, ("velocity",))
        self._imu_topic = config.imu.topic
        self._imu = _Stamped(config.imu.topic, topics.IMU, _IMU_NUMBERS, self._check_imu_frame)
        self._imu_frame = config.imu.frame
        self._feet = config.feet
        self._wrenches = [
            _Stamped(foot.wrench_topic, topics.WRENCH, "6d", partial(self._check_sole, foot)) for foot in config.feet
        ]

    def joint_state(self, raw: bytes) -> JointSample:
        """Joint sample of a sensor_msgs/JointState: any order, other joints are ignored.

        Velocity and effort are NaN where they are empty or all NaN.
        """
        stamp_ns, (position, velocity, effort) = self._joints.read(raw)
        return JointSample(stamp_ns, position, velocity, effort)

    def command(self, raw: bytes) -> CommandSample:
        """Desired velocities of a sensor_msgs/JointState, such as a joint command; its other fields are not used."""
        stamp_ns, values = self._commands.read(raw)
        return CommandSample(stamp_ns, values[0])

    def imu(self, raw: bytes) -> ImuSample:
        """IMU sample of a sensor_msgs/Imu; its orientation is not used."""
        stamp_ns, (wx, wy, wz, rate_variance, fx, fy, fz, force_variance) = self._imu.read(raw)
        for label, variance in (("angular_velocity", rate_variance), ("linear_acceleration", force_variance)):
            if variance == -1.0:
                raise InputError(
                    f"{self._imu_topic}: {label}_covariance[0] is -1, so the IMU does not measure it; "
                    "use an IMU that does, or set its variance"
                )
        sample = ImuSample(stamp_ns, np.array((wx, wy, wz)), np.array((fx, fy, fz)))
        if not math.isfinite(wx + wy + wz):
            raise InputError(f"{self._imu_topic}: angular_velocity is not finite: {sample.angular_velocity}")
        if not math.isfinite(fx + fy + fz):
            raise InputError(f"{self._imu_topic}: linear_acceleration is not finite: {sample.specific_force}")
        return sample

    def wrench(self, foot: int, raw: bytes) -> WrenchSample:
        """Foot sample of a geometry_msgs/WrenchStamped; the sign is flipped with ``feet.<name>.flip``.

        Parameters
        ----------
        foot : index into ``Config.feet``
        raw : wrench in and about the sole frame of that foot
        """
        stamp_ns, numbers = self._wrenches[foot].read(raw)
        values = np.array(numbers)
        if not math.isfinite(sum(numbers)):
            raise InputError(f"{self._feet[foot].wrench_topic}: the wrench is not finite: {values}")
        return WrenchSample(stamp_ns, foot, -values if self._feet[foot].flip else values)

    def _check_imu_frame(self, frame: str) -> None:
        if frame and frame != self._imu_frame:
            raise InputError(
                f"{self._imu_topic}: frame_id is {frame!r}, but imu.frame is {self._imu_frame!r}; "
                "set imu.frame to the URDF frame of the IMU"
            )

    def _check_sole(self, settings: FootConfig, frame: str) -> None:
        if frame and frame != settings.frame:
            raise InputError(
                f"{settings.wrench_topic}: frame_id is {frame!r}, but feet.{settings.name}.frame is "
                f"{settings.frame!r}; the wrench must be given in and about that sole frame"
            )


class _Stamped:
    """Reads the numbers of messages in which only the frame_id has a variable length.

    Parameters
    ----------
    topic, type_name : of the messages, for error texts
    numbers : fields after the header, in the format of :mod:`struct`
    check_frame : raises InputError for a frame_id that contradicts the configuration
    """

    def __init__(self, topic: str, type_name: str, numbers: str, check_frame: Callable[[str], None]) -> None:
        self._topic, self._type_name = topic, type_name
        self._numbers, self._check_frame = numbers, check_frame
        self._frame, self._frame_end = b"", 0
        self._encapsulation = b""
        self._struct = struct.Struct("")

    def read(self, raw: bytes) -> tuple[int, list[float]]:
        """Stamp [ns] and numbers."""
        try:
            if raw[:2] != self._encapsulation or raw[12 : self._frame_end] != self._frame:
                self._find_numbers(raw)
            sec, nanosec, *numbers = self._struct.unpack_from(raw)
        except (ValueError, struct.error) as error:
            raise _malformed(self._topic, self._type_name, raw, error) from None
        return _stamp(self._topic, sec, nanosec), numbers

    def _find_numbers(self, raw: bytes) -> None:
        """Store the offsets of the numbers after the frame_id of this message."""
        scanner = CdrScanner(raw)
        scanner.stamp()
        frame = scanner.string()
        self._check_frame(frame)
        end = scanner.offset
        padding = -(end - BODY) % 8
        self._struct = struct.Struct(f"{scanner.order}{BODY}x iI {end - 12 + padding}x {self._numbers}")
        self._frame, self._frame_end, self._encapsulation = bytes(raw[12:end]), end, bytes(raw[:2])


@dataclass(frozen=True, slots=True)
class _Layout:
    """Offsets of the numbers of a JointState.

    Attributes
    ----------
    size : smallest length of a message with this layout [bytes]
    parts, same : ranges between stamp and numbers, and their bytes in the message from which this layout was read. A
        message with the same bytes in these ranges has this layout.
    mask, structure : a message has this layout, too, if its bytes, as one whole number, masked with ``mask`` equal
        ``structure``; its padding may differ.
    stamp : the header stamp
    dtype, first, count : of the block from the first to the last number
    index : (r, n) indices of the numbers in that block, one row per field that is not empty
    rows : (r,) which of the fields these are; None: all of them
    """

    size: int
    parts: tuple[slice, ...]
    same: tuple[bytes, ...]
    mask: int
    structure: int
    stamp: struct.Struct
    dtype: np.dtype[np.float64]
    first: int
    count: int
    index: NDArray[np.intp]
    rows: list[int] | None

    def fits(self, raw: bytes) -> bool:
        """Whether a message has this layout."""
        if len(raw) < self.size:
            return False
        if all(raw[part] == same for part, same in zip(self.parts, self.same, strict=True)):
            return True
        return int.from_bytes(raw[: self.size], "little") & self.mask == self.structure


class _JointStates:
    """Reads the numbers of JointState messages with joints in any order, and with further joints.

    The layout of the newest message is kept, because most messages have the same names and lengths as the one before.

    Parameters
    ----------
    topic : of the messages, for error texts
    joint_names : (n) joints to read, in model order
    fields : fields to read, in the order of the message
    optional : fields that may be empty
    """

    def __init__(
        self, topic: str, joint_names: Sequence[str], fields: Sequence[str], optional: Sequence[str] = ()
    ) -> None:
        self._topic = topic
        self._joint_names = tuple(joint_names)
        self._fields = tuple(fields)
        self._optional = optional
        self._layout: _Layout | None = None

    def read(self, raw: bytes) -> tuple[int, FloatArray]:
        """Stamp [ns] and numbers (r, n): one row per field, NaN where an optional field is empty."""
        layout = self._layout
        if layout is None or not layout.fits(raw):
            layout = self._layout = self._read_layout(raw)
        block = np.frombuffer(raw, layout.dtype, layout.count, layout.first)
        values = block[layout.index].astype(np.float64, copy=False)
        if layout.rows is not None:
            present, values = values, np.full((len(self._fields), values.shape[1]), np.nan)
            values[layout.rows] = present
        if not math.isfinite(sum(values.reshape(-1).tolist())):
            self._check_finite(values)
        sec, nanosec = layout.stamp.unpack_from(raw, BODY)
        return _stamp(self._topic, sec, nanosec), values

    def _read_layout(self, raw: bytes) -> _Layout:
        """Parse a message: names, and length of every array."""
        try:
            scanner = CdrScanner(raw)
            scanner.stamp()
            scanner.string()
            names = [scanner.string() for _ in range(scanner.uint32())]
            counts, offsets = {}, {}
            for field in ("position", "velocity", "effort"):
                counts[field] = scanner.uint32()
                offsets[field] = scanner.floats(counts[field])
        except ValueError as error:
            raise _malformed(self._topic, topics.JOINT_STATE, raw, error) from None
        order = self._order(names)
        present = [field for field in self._fields if field not in self._optional or counts[field]]
        for field in present:
            if counts[field] != len(names):
                raise InputError(self._wrong_length(field, counts[field], len(names)))
        first = offsets[present[0]]  # all arrays lie on one grid of 8 bytes
        ends = [BODY + 8, *(offsets[field] + 8 * counts[field] for field in counts)]
        parts = (slice(0, 2), *(slice(end, offset) for end, offset in zip(ends, offsets.values(), strict=False)))
        index = np.stack([(offsets[field] - first) // 8 + order for field in present])
        return _Layout(
            scanner.offset,
            parts,
            tuple(bytes(raw[part]) for part in parts),
            mask := int.from_bytes(scanner.mask, "little"),
            mask & int.from_bytes(raw[: scanner.offset], "little"),
            struct.Struct(scanner.order + "iI"),
            np.dtype(scanner.order + "f8"),
            first,
            (offsets[present[-1]] - first) // 8 + len(names),
            index,
            None if len(present) == len(self._fields) else [self._fields.index(field) for field in present],
        )

    def _order(self, names: Sequence[str]) -> NDArray[np.intp]:
        """Index of each joint in the message, (n,)."""
        index = {name: place for place, name in enumerate(names)}
        missing = [name for name in self._joint_names if name not in index]
        if missing:
            raise InputError(f"{self._topic}: joint {choices(missing)} missing; the message holds {choices(names)}")
        if len(index) != len(names):
            twice = [name for name, count in Counter(names).items() if count > 1]
            raise InputError(f"{self._topic}: joint {choices(twice)} is named more than once")
        return np.array([index[name] for name in self._joint_names], dtype=np.intp)

    def _wrong_length(self, field: str, length: int, joints: int) -> str:
        if length == 0:
            return f"{self._topic}: {field} is empty, but the estimator needs {_NEEDED[field]}"
        return f"{self._topic}: {field} has {length} values for {joints} joint names"

    def _check_finite(self, values: FloatArray) -> None:
        """Raise InputError where a value is not finite, unless an optional field is all NaN: it is not measured."""
        for field, row in zip(self._fields, values, strict=True):
            bad = [name for name, good in zip(self._joint_names, np.isfinite(row), strict=True) if not good]
            if bad and not (field in self._optional and np.isnan(row).all()):
                raise InputError(f"{self._topic}: {field} of joint {choices(bad)} is not finite")


_NEEDED = {
    "position": "the joint positions",
    "velocity": "the joint velocities",
    "effort": "the motor torques",
}


def _stamp(topic: str, sec: int, nanosec: int) -> int:
    """Stamp [ns]; outputs could not hold one that is a second or more beyond ``sec``."""
    if nanosec >= NANOSECONDS:
        raise InputError(
            f"{topic}: the stamp has {nanosec} nanoseconds next to its seconds; less than {NANOSECONDS} fit"
        )
    return sec * NANOSECONDS + nanosec


def _malformed(topic: str, type_name: str, raw: bytes, reason: Any) -> InputError:
    return InputError(f"{topic}: {len(raw)} bytes are not a serialized {type_name}: {reason}")
