"""Docstrings of this package for the API page: entries are ``name : what it is``, and types are in the signature.

mkdocstrings takes the text behind the colon of an entry for a type. This extension moves it below the name.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_SECTION = re.compile(r"^(Parameters|Attributes)\n-+\n", re.MULTILINE)
_ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.+)$", re.MULTILINE)
_ROLE = re.compile(r":\w+:`~?([\w.]+)`")


class PlainEntries(griffe.Extension):
    """Descriptions of entries below their names, and reStructuredText markup as Markdown."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of an object before it is parsed."""
        if obj.docstring is None:
            return
        text = _ROLE.sub(lambda found: f"`{found[1].rpartition('.')[2]}`", obj.docstring.value).replace("``", "`")
        parts = re.split(r"(?m)^(?=\w[\w ]*\n-{3,}\n)", text)
        obj.docstring.value = "".join(_ENTRY.sub(r"\1\n    \2", p) if _SECTION.match(p) else p for p in parts)
