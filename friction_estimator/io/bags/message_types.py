"""Message classes of rosbags, which want every field to be given: absent ones get the defaults of ROS."""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any

import numpy as np
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_typestore
from rosbags.typesys.store import Typestore

from friction_estimator.types import FloatArray


@lru_cache(maxsize=1)
def jazzy_typestore() -> Typestore:
    """Definitions of all messages of ROS 2 Jazzy."""
    return get_typestore(Stores.ROS2_JAZZY)


class BagMessageTypes:
    """Makes and serializes messages with rosbags.

    Parameters
    ----------
    typestore : definitions of the messages
    """

    def __init__(self, typestore: Typestore | None = None) -> None:
        self.typestore = typestore or jazzy_typestore()
        self._defaults: dict[str, dict[str, Any]] = {}

    def make(self, type_name: str, /, **fields: Any) -> Any:
        """Create a message; absent fields get their defaults."""
        defaults = self._defaults.get(type_name)
        if defaults is None:
            defaults = self._defaults[type_name] = self._default_fields(type_name)
        absent = {name: copy.deepcopy(value) for name, value in defaults.items() if name not in fields}
        return self.typestore.types[type_name](**fields, **absent)

    def floats(self, values: FloatArray) -> FloatArray:
        """What a ``float64[]`` field takes: an array (m,)."""
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
