"""Messages of rosbags from their fields, for bags that no robot has recorded."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from rosbags.interfaces import Nodetype

from friction_estimator.io.bags.reader import jazzy_typestore
from friction_estimator.io.bags.writer import BagWriter
from friction_estimator.types import FloatArray


def write_message(writer: BagWriter, topic: str, time_ns: int, message: Any) -> None:
    """Write a message of rosbags that was recorded at a time [ns]."""
    raw = jazzy_typestore().serialize_cdr(message, message.__msgtype__)
    writer.write_raw(topic, message.__msgtype__, time_ns, raw)


class BagMessageTypes:
    """Makes and serializes messages with rosbags.

    Attributes
    ----------
    typestore : definitions of the messages
    """

    def __init__(self) -> None:
        self.typestore = jazzy_typestore()
        self._defaults: dict[str, dict[str, Any]] = {}

    def make(self, type_name: str, /, **fields: Any) -> Any:
        """Create a message; absent fields get their defaults."""
        defaults = self._defaults.get(type_name)
        if defaults is None:
            defaults = self._defaults[type_name] = self._default_fields(type_name)
        absent = {name: copy.deepcopy(value) for name, value in defaults.items() if name not in fields}
        return self.typestore.types[type_name](**fields, **absent)

    def floats(self, values: FloatArray) -> FloatArray:
        """Convert an array (m,) to what a ``float64[]`` field takes."""
        return np.ascontiguousarray(values, dtype=np.float64)

    def serialize(self, message: Any) -> bytes | memoryview:
        """CDR bytes of a message."""
        return self.typestore.serialize_cdr(message, message.__msgtype__)

    def _default_fields(self, type_name: str) -> dict[str, Any]:
        _, fields = self.typestore.fielddefs[type_name]
        return {name: self._default(*description) for name, description in fields}

    def _default(self, kind: Nodetype, detail: Any) -> Any:
        if kind == Nodetype.NAME:
            return self.make(detail)
        if kind == Nodetype.BASE:
            return _ZEROS.get(detail[0], 0)
        (element_kind, element), length = detail
        if element_kind == Nodetype.BASE and element[0] not in ("string", "wstring"):
            return np.zeros(length if kind == Nodetype.ARRAY else 0, dtype=_DTYPES.get(element[0], element[0]))
        count = length if kind == Nodetype.ARRAY else 0
        return [self._default(element_kind, element) for _ in range(count)]


_ZEROS = {"string": "", "wstring": "", "bool": False, "float32": 0.0, "float64": 0.0}
_DTYPES = {"octet": "uint8", "byte": "uint8", "char": "uint8"}
