"""Serialized ROS messages (CDR): offsets of the numbers in received bytes, and templates of messages to send.

A serialized message is four bytes of encapsulation, of which the second is 1 for little and 0 for big endian, and a
body. In the body every number lies at a multiple of its size, counted from the start of the body; strings and
sequences begin with their length as a 32-bit number. A string ends with a zero byte, which its length counts. The
bytes that are skipped for alignment have undefined values: rclpy does not clear them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from friction_estimator.types import FloatArray

BODY = 4
"""Length of the encapsulation, hence offset of the body and of the stamp of a message with a header."""

NANOSECONDS = 1_000_000_000
"""In a second."""

_STAMP = struct.Struct("<iI")
_FLOAT = np.dtype("<f8")


def stamp_of(raw: bytes) -> int:
    """Stamp of a little-endian message that begins with a header [ns]."""
    sec, nanosec = _STAMP.unpack_from(raw, BODY)
    return int(sec) * NANOSECONDS + int(nanosec)


def header_stamp(message: Any) -> int:
    """Stamp of a deserialized message with a header [ns]."""
    stamp = message.header.stamp
    return stamp.sec * NANOSECONDS + stamp.nanosec


class CdrScanner:
    """Passes the fields of one received message one after another, and records which bytes are its structure.

    Parameters
    ----------
    raw : serialized message

    Attributes
    ----------
    order : ``<`` for little, ``>`` for big endian
    offset : of the next field, from the start of ``raw``
    mask : one byte for each passed byte: 255 where it is structure, 0 where it is a number or padding

    Raises
    ------
    ValueError
        When the encapsulation is not plain CDR. The methods raise it when a field does not fit into the message.
    """

    def __init__(self, raw: bytes) -> None:
        if len(raw) < BODY or raw[0] != 0 or raw[1] > 1:
            raise ValueError(f"its encapsulation {bytes(raw[:BODY]).hex() or 'is missing'} is not plain CDR")
        self._raw = raw
        self.order = "<" if raw[1] else ">"
        self.offset = BODY
        self.mask = bytearray(b"\xff\xff\x00\x00")

    def stamp(self) -> None:
        """Pass the stamp of a header."""
        self._pass(8, 4, 0)

    def uint32(self) -> int:
        """Pass a 32-bit number; return it."""
        at = self._pass(4, 4, 255)
        return int(struct.unpack_from(self.order + "I", self._raw, at)[0])

    def string(self) -> str:
        """Return the string at the read position, and move behind it."""
        length = self.uint32()
        at = self._pass(length, 1, 255)
        return bytes(self._raw[at : at + max(length - 1, 0)]).decode()

    def floats(self, count: int) -> int:
        """Pass ``float64`` numbers; return the offset of the first one."""
        return self._pass(8 * count, 8 if count else 1, 0)

    def _pass(self, length: int, alignment: int, mask: int) -> int:
        start = self.offset + -(self.offset - BODY) % alignment
        self.offset = start + length
        if self.offset > len(self._raw):
            raise ValueError("the message is cut off")
        self.mask += bytes(start - len(self.mask)) + bytes((mask,)) * length
        return start


class CdrWriter:
    """Serializes a message field by field, little endian.

    Attributes
    ----------
    buffer : all bytes so far; padding is zero
    stamps : offsets of the stamps of its headers
    slots : offset and length of its ``float64`` numbers, one a call of :meth:`zeros`
    """

    def __init__(self) -> None:
        self.buffer = bytearray(b"\x00\x01\x00\x00")
        self.stamps: list[int] = []
        self.slots: list[tuple[int, int]] = []

    def header(self, frame_id: str) -> None:
        """Append a std_msgs/Header with a zero stamp."""
        self.stamps.append(self.pack("iI", 4, 0, 0))
        self.string(frame_id)

    def pack(self, fields: str, size: int, *values: float) -> int:
        """Append numbers of one size [bytes], ``fields`` are the letters of :mod:`struct`; return their offset."""
        offset = self._align(size)
        self.buffer += struct.pack(f"<{fields}", *values)
        return offset

    def string(self, text: str) -> int:
        """Append a string; return the offset of its length."""
        data = text.encode() + b"\x00"
        offset = self.pack("I", 4, len(data))
        self.buffer += data
        return offset

    def strings(self, texts: Sequence[str]) -> None:
        """Append a sequence of strings."""
        self.pack("I", 4, len(texts))
        for text in texts:
            self.string(text)

    def zeros(self, count: int) -> None:
        """Append ``count`` zeros of type ``float64``, without a length in front of them."""
        self.slots.append((self._align(8) if count else len(self.buffer), count))
        self.buffer += bytes(8 * count)

    def _align(self, size: int) -> int:
        self.buffer += bytes(-(len(self.buffer) - BODY) % size)
        return len(self.buffer)


class Template:
    """A serialized message of which only stamps and numbers change.

    Parameters
    ----------
    writer : all fields of the message

    Attributes
    ----------
    buffer : the newest message
    """

    def __init__(self, writer: CdrWriter) -> None:
        self.buffer, self._stamps = writer.buffer, writer.stamps
        self._numbers = [np.frombuffer(self.buffer, _FLOAT, count, offset) for offset, count in writer.slots]

    def serialize(self, stamp_ns: int, *values: FloatArray) -> bytes:
        """Bytes of a message with this stamp [ns]; the arrays fill its numbers in the order of the fields."""
        for index, value in enumerate(values):
            self._numbers[index][:] = value if value.ndim == 1 else value.reshape(-1)
        seconds, nanoseconds = divmod(stamp_ns, NANOSECONDS)
        for offset in self._stamps:
            _STAMP.pack_into(self.buffer, offset, seconds, nanoseconds)
        return bytes(self.buffer)


class JointStateTemplate(Template):
    """Successive sensor_msgs/JointState messages of the same joints: of position, velocity and effort, or of effort.

    Parameters
    ----------
    frame_id : of the header
    joint_names : (n)
    with_state : whether position and velocity are given; otherwise they are empty
    """

    def __init__(self, frame_id: str, joint_names: Sequence[str], with_state: bool = False) -> None:
        writer = CdrWriter()
        writer.header(frame_id)
        writer.strings(joint_names)
        for given in (with_state, with_state, True):
            writer.pack("I", 4, len(joint_names) * given)
            if given:
                writer.zeros(len(joint_names))
        super().__init__(writer)


class StampedTemplate(Template):
    """Successive messages that consist of a header, optionally the name of a second frame, and numbers.

    Parameters
    ----------
    counts : lengths of the arrays of ``float64`` that fill the message
    frames : frame_id of the header, and child_frame_id where the message has one
    sequence : whether the message is a sequence with this one element, as in tf2_msgs/TFMessage
    """

    def __init__(self, counts: Sequence[int], *frames: str, sequence: bool = False) -> None:
        writer = CdrWriter()
        if sequence:
            writer.pack("I", 4, 1)
        writer.header(frames[0])
        for child in frames[1:]:
            writer.string(child)
        for count in counts:
            writer.zeros(count)
        super().__init__(writer)


def serialize_string(text: str) -> bytes:
    """Bytes of a std_msgs/String."""
    writer = CdrWriter()
    writer.string(text)
    return bytes(writer.buffer)
