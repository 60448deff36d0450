"""Serialized sensor messages to samples, from a subscription or a bag; those of a simulated robot, and its truth."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from friction_estimator.base.contact_phase import ContactPhaseDetector
from friction_estimator.config import Config, FootConfig, ImuConfig
from friction_estimator.errors import InputError, choices
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import (
    BODY,
    NANOSECONDS,
    CdrScanner,
    JointStateTemplate,
    StampedTemplate,
    serialize_string,
)
from friction_estimator.messages.outputs import ODOMETRY_SIZES, OutputSchedule, odometry_numbers
from friction_estimator.messages.topics import Topic, When
from friction_estimator.types import (
    CommandSample,
    FloatArray,
    GroundTruth,
    ImuSample,
    JointSample,
    Reading,
    WrenchSample,
)

Sample = JointSample | ImuSample | WrenchSample | CommandSample
_COVARIANCE_REST = "64x"
_IMU_NUMBERS = f"104x 4d {_COVARIANCE_REST} 4d {_COVARIANCE_REST}"
"""Orientation with covariance; angular velocity, first of its covariance; acceleration, first of its covariance."""


_NO_ORIENTATION = np.array([0.0, 0.0, 0.0, 1.0, -1.0] + 8 * [0.0])
"""Quaternion and covariance of an IMU that does not measure its orientation."""
_UNKNOWN_COVARIANCE = np.zeros(9)


class InputReader:
    """Reads and checks the serialized messages of one robot.

    Every method raises :class:`InputError` with the topic and the reason when a message cannot be read. Whether the
    numbers can be true, and are finite, is the question of :class:`~friction_estimator.estimation.estimator.Estimator`.

    Parameters
    ----------
    config : topics, frames and signs
    joint_names : (n) joints to read, in model order

    Attributes
    ----------
    by_topic : the method that reads the messages of a topic, by its relative name
    """

    def __init__(self, config: Config, joint_names: Sequence[str]) -> None:
        self._joint_states = _JointStates(
            config.output.joint_states_topic,
            joint_names,
            ("position", "velocity", "effort"),
            optional=("velocity", "effort"),
        )
        self._commands = _JointStates(config.compensation.desired_topic, joint_names, ("velocity",))
        self._imu_topic = config.imu.topic
        check_imu = partial(_check_frame, config.imu.topic, "imu", config.imu)
        self._imu = _Stamped(config.imu.topic, topics.IMU, _IMU_NUMBERS, check_imu)
        self._feet = config.feet
        self._wrenches = [
            _Stamped(
                foot.wrench_topic,
                topics.WRENCH,
                "6d",
                partial(_check_frame, foot.wrench_topic, f"feet.{foot.name}", foot),
            )
            for foot in config.feet
        ]
        self.by_topic: dict[str, Callable[[bytes], Sample]] = {
            config.output.joint_states_topic: self.joint_state,
            config.imu.topic: self.imu,
            config.compensation.desired_topic: self.command,
            **{foot.wrench_topic: partial(self.wrench, number) for number, foot in enumerate(config.feet)},
        }

    def joint_state(self, raw: bytes) -> JointSample:
        """Joint sample of a sensor_msgs/JointState: any order, other joints are ignored.

        Velocity and effort are NaN where they are empty or all NaN.
        """
        stamp_ns, (position, velocity, effort) = self._joint_states.read(raw)
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
        return ImuSample(stamp_ns, np.array((wx, wy, wz)), np.array((fx, fy, fz)))

    def wrench(self, foot: int, raw: bytes) -> WrenchSample:
        """Foot sample of a geometry_msgs/WrenchStamped; the sign is flipped with ``feet.<name>.flip``.

        Parameters
        ----------
        foot : index into ``Config.feet``
        raw : wrench in and about the sole frame of that foot
        """
        stamp_ns, numbers = self._wrenches[foot].read(raw)
        values = np.array(numbers)
        return WrenchSample(stamp_ns, foot, -values if self._feet[foot].flip else values)


def _check_frame(topic: str, section: str, settings: ImuConfig | FootConfig, frame: str) -> None:
    if frame and frame not in (settings.frame, settings.message_frame):
        raise InputError(
            f"{topic}: frame_id is {choices([frame])}, but {section}.frame is {settings.frame!r}; set it to the URDF "
            f"frame in which the sensor measures, or {section}.message_frame where only the names differ"
        )


@dataclass(frozen=True, slots=True)
class _Structure:
    """The bytes of a message that are no numbers: encapsulation, names and lengths.

    A message with the same bytes has its numbers at the same offsets; its padding may differ.
    """

    size: int
    mask: int
    value: int

    @classmethod
    def from_scan(cls, raw: bytes, scanner: CdrScanner) -> _Structure:
        """Structure of what a scanner has passed of a message."""
        mask = int.from_bytes(scanner.mask, "little")
        return cls(scanner.offset, mask, mask & int.from_bytes(raw[: scanner.offset], "little"))

    def is_that_of(self, raw: bytes) -> bool:
        """Whether a message has this structure."""
        return len(raw) >= self.size and int.from_bytes(raw[: self.size], "little") & self.mask == self.value


_UNKNOWN = _Structure(0, 0, -1)
"""No message has it."""


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
        self._structure, self._struct = _UNKNOWN, struct.Struct("")

    def read(self, raw: bytes) -> tuple[int, list[float]]:
        """Stamp [ns] and numbers."""
        try:
            if not self._structure.is_that_of(raw):
                self._find_numbers(raw)
            sec, nanosec, *numbers = self._struct.unpack_from(raw, BODY)
        except (ValueError, struct.error) as error:
            raise _malformed(self._topic, self._type_name, raw, error) from None
        return _stamp(self._topic, sec, nanosec), numbers

    def _find_numbers(self, raw: bytes) -> None:
        """Store the offsets of the numbers after the frame_id of this message."""
        scanner = CdrScanner(raw)
        scanner.stamp()
        self._check_frame(scanner.string())
        skipped = scanner.offset - BODY - 8
        self._struct = struct.Struct(f"{scanner.order}iI {skipped + -skipped % 8}x {self._numbers}")
        self._structure = _Structure.from_scan(raw, scanner)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Offsets of the numbers of a JointState."""

    structure: _Structure  # of the messages with this layout
    dtype: np.dtype[np.float64]  # of the block from the first to the last number
    first: int  # its offset [byte]
    count: int  # of its numbers
    index: NDArray[np.intp]  # (r, n) indices of the numbers in that block, one row per field that is not empty
    rows: list[int]  # (r,) which of the fields these are


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
        if layout is None or not layout.structure.is_that_of(raw):
            layout = self._layout = self._read_layout(raw)
        stamp = struct.unpack_from(f"{layout.dtype.str[0]}iI", raw, BODY)
        block = np.frombuffer(raw, layout.dtype, layout.count, layout.first)
        values = block[layout.index].astype(np.float64, copy=False)
        if len(layout.rows) < len(self._fields):
            present, values = values, np.full((len(self._fields), values.shape[1]), np.nan)
            values[layout.rows] = present
        return _stamp(self._topic, *stamp), values

    def _read_layout(self, raw: bytes) -> _Layout:
        """Parse a message: names, and length of every array."""
        try:
            scanner, names, counts, offsets = _scan_joint_state(raw)
        except ValueError as error:
            raise _malformed(self._topic, topics.JOINT_STATE, raw, error) from None
        order = self._order(names)
        present = [field for field in self._fields if field not in self._optional or counts[field]]
        for field in present:
            if counts[field] != len(names):
                raise InputError(self._wrong_length(field, counts[field], len(names)))
        first = offsets[present[0]]  # all arrays lie on one grid of 8 bytes
        return _Layout(
            _Structure.from_scan(raw, scanner),
            np.dtype(scanner.order + "f8"),
            first,
            (offsets[present[-1]] - first) // 8 + len(names),
            np.stack([(offsets[field] - first) // 8 + order for field in present]),
            [self._fields.index(field) for field in present],
        )

    def _order(self, names: Sequence[str]) -> NDArray[np.intp]:
        """Index of each joint in the message, (n,)."""
        index = {name: number for number, name in enumerate(names)}
        missing = [name for name in self._joint_names if name not in index]
        if missing:
            raise InputError(f"{self._topic}: joint {choices(missing)} missing; the message holds {choices(names)}")
        if len(index) != len(names):
            twice = [name for name, count in Counter(names).items() if count > 1]
            raise InputError(
                f"{self._topic}: joint {choices(twice)} is named more than once: give each joint of the "
                "driver its own name"
            )
        return np.array([index[name] for name in self._joint_names], dtype=np.intp)

    def _wrong_length(self, field: str, length: int, joints: int) -> str:
        if length == 0:
            return f"{self._topic}: {field} is empty, but the estimator needs {_NEEDED[field]}"
        return f"{self._topic}: {field} has {length} values for {joints} joint names"


def _scan_joint_state(raw: bytes) -> tuple[CdrScanner, list[str], dict[str, int], dict[str, int]]:
    """Pass a JointState: joint names, and length and offset of each field."""
    scanner, counts, offsets = CdrScanner(raw), {}, {}
    scanner.stamp()
    scanner.string()
    names = [scanner.string() for _ in range(scanner.uint32())]
    for field in ("position", "velocity", "effort"):
        counts[field] = scanner.uint32()
        offsets[field] = scanner.floats(counts[field])
    return scanner, names, counts, offsets


Run = tuple[tuple[str, ...], NDArray[np.void]]
"""Joint names (m), and fields ``sec``, ``nanosec``, ``position``, ``velocity`` and ``effort`` of k JointState messages.

The last three are (k, m), or have another number of columns where the messages have another number of values.
"""


def read_joint_states(raws: Iterable[bytes]) -> Iterator[Run]:
    """JointState messages as arrays, in runs with the same joints and lengths; ValueError for another message."""
    layout = _UNKNOWN, tuple[str, ...](), np.dtype(np.void)

    def layout_of(raw: bytes) -> tuple[_Structure, tuple[str, ...], np.dtype[np.void]]:
        nonlocal layout
        if not layout[0].is_that_of(raw):
            scanner, names, counts, offsets = _scan_joint_state(raw)
            order = scanner.order
            fields: Any = {
                "names": ["sec", "nanosec", *counts],
                "formats": [f"{order}i4", f"{order}u4", *((f"{order}f8", (count,)) for count in counts.values())],
                "offsets": [BODY, BODY + 4, *offsets.values()],
                "itemsize": scanner.offset,
            }
            layout = _Structure.from_scan(raw, scanner), tuple(names), np.dtype(fields)
        return layout

    for (structure, names, kind), run in groupby(raws, layout_of):
        yield names, np.frombuffer(b"".join([raw[: structure.size] for raw in run]), kind)


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
    return InputError(
        f"{topic}: {len(raw)} bytes are not a serialized {type_name}: {reason}; check the type that its publisher has"
    )


class SensorMessages:
    """Serializes the input messages of one robot.

    Parameters
    ----------
    config : frames and signs
    joint_names : (n) order of the joint samples

    Attributes
    ----------
    topics : topics of the messages of :meth:`build`
    """

    def __init__(self, config: Config, joint_names: Sequence[str]) -> None:
        self.topics = topics.sensor_topics(config)
        self._joint_states = JointStateTemplate(topics.BASE_FRAME, joint_names, with_state=True)
        self._imu = StampedTemplate((_NO_ORIENTATION.size, 3, 9, 3, 9), config.imu.frame)
        self._wrenches = [StampedTemplate((6,), foot.frame) for foot in config.feet]
        self._flip = [foot.flip for foot in config.feet]

    def build(self, readings: Sequence[Reading]) -> list[tuple[Topic, bytes]]:
        """Messages of these samples in their order, as (topic, serialized message)."""
        return [self.message(reading) for reading in readings]

    def message(self, reading: Reading) -> tuple[Topic, bytes]:
        """Topic and bytes of a sample: a JointState, an Imu without orientation or a WrenchStamped in the sole frame.

        The wrench is negated for sensors with a flipped sign.
        """
        stamp_ns = reading.stamp_ns
        if isinstance(reading, JointSample):
            raw = self._joint_states.serialize(stamp_ns, reading.position, np.asarray(reading.velocity), reading.effort)
            return self.topics[0], raw
        if isinstance(reading, ImuSample):
            rate, force = reading.angular_velocity, reading.specific_force
            unknown = _UNKNOWN_COVARIANCE
            return self.topics[1], self._imu.serialize(stamp_ns, _NO_ORIENTATION, rate, unknown, force, unknown)
        wrench = -reading.wrench if self._flip[reading.foot] else reading.wrench
        return self.topics[2 + reading.foot], self._wrenches[reading.foot].serialize(stamp_ns, wrench)


class TruthMessages:
    """Serializes the ground truth of one simulated robot.

    Parameters
    ----------
    config : feet and slow rate
    joint_names : (n) order of the friction torques

    Attributes
    ----------
    topics : topics of the messages that :meth:`build` can return
    """

    def __init__(self, config: Config, joint_names: Sequence[str]) -> None:
        feet = config.feet
        self.topics = topics.truth_topics(config)
        names = tuple(foot.support_name for foot in feet)
        self._phase_name = ContactPhaseDetector(1.0, names).name
        self._schedule = OutputSchedule(config.output.slow_rate)
        self._torque = JointStateTemplate(topics.BASE_FRAME, joint_names)
        self._odometry = StampedTemplate(ODOMETRY_SIZES, topics.ODOM_FRAME, topics.BASE_FRAME)
        self._wrenches = [(topics.true_wrench(foot.name), StampedTemplate((6,), foot.frame)) for foot in feet]

    def build(self, truth: GroundTruth) -> list[tuple[Topic, bytes]]:
        """Messages that are due with this sample, as (topic, serialized message)."""
        stamp_ns = truth.stamp_ns
        due = self._schedule.due(stamp_ns, truth.contact.tobytes())
        built = [(topics.TRUE_FRICTION, self._torque.serialize(stamp_ns, truth.friction))]
        if When.CHANGE in due:
            built.append((topics.TRUE_CONTACT_PHASE, serialize_string(self._phase_name(truth.contact))))
        if When.SLOW in due:
            base = self._odometry.serialize(stamp_ns, *odometry_numbers(truth))
            built.append((topics.TRUE_EXTERNAL_TORQUE, self._torque.serialize(stamp_ns, truth.external_torque)))
            built.append((topics.TRUE_BASE_STATE, base))
            for (topic, template), wrench in zip(self._wrenches, truth.wrenches, strict=True):
                built.append((topic, template.serialize(stamp_ns, wrench)))
        return built
