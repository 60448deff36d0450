"""A short ``repr`` for dataclasses with large arrays."""

from __future__ import annotations

import numpy as np


class ShortRepr:
    """Base of dataclasses with large fields, whose ``repr`` has the shapes of arrays and the first letters of texts."""

    __slots__ = ()

    def __repr__(self) -> str:
        names = getattr(self, "__dataclass_fields__", ())
        shown = (f"{name}={_shortened(getattr(self, name))}" for name in names)
        return f"{type(self).__name__}({', '.join(shown)})"


_LETTERS, _ITEMS = 40, 4
"""Letters of a text, and items of a list, that a short ``repr`` shows."""


def _shortened(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"<{' x '.join(map(str, value.shape))} {value.dtype}>"
    if isinstance(value, (tuple, list, dict)) and len(value) > _ITEMS:
        return f"<{len(value)} items>"
    text = repr(value)
    short = isinstance(value, ShortRepr) or len(text) <= _LETTERS
    return text if short else f"<{type(value).__name__} {text[:_LETTERS]}...>"
