"""Changing attributes in an XML text while every other byte stays as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import escape

from friction_estimator.errors import RobotModelError

_ATTRIBUTE = re.compile(rb"""\s+([^\s=/>]+)\s*=\s*("[^"]*"|'[^']*')""")
_NAME = re.compile(rb"<[^\s/>]+")


@dataclass(slots=True)
class Element:
    """One element of the document.

    Attributes
    ----------
    path : names of the elements around it, outermost first, its own last
    attributes : as they are in the text
    start : of its start tag [bytes]
    end : of its end tag; equal to ``start`` for a tag that closes itself [bytes]
    children : direct ones, in the order of the text
    """

    path: tuple[str, ...]
    attributes: Mapping[str, str]
    start: int
    end: int = 0
    children: list[Element] = field(default_factory=list)


class XmlText:
    """An XML document and the changes to it.

    Parameters
    ----------
    text : of the document
    what : it is, for messages

    Raises
    ------
    RobotModelError
        When it is not well-formed; the message names the line.
    """

    def __init__(self, text: str, what: str) -> None:
        self._data = text.encode("utf-8")
        self._changes: list[tuple[int, int, bytes]] = []
        self.elements: list[Element] = []
        open_elements: list[Element] = []
        parser = expat.ParserCreate(encoding="utf-8")

        def start(name: str, attributes: dict[str, str]) -> None:
            path = (*open_elements[-1].path, name) if open_elements else (name,)
            element = Element(path, attributes, parser.CurrentByteIndex)
            if open_elements:
                open_elements[-1].children.append(element)
            open_elements.append(element)
            self.elements.append(element)

        def end(_: str) -> None:
            open_elements.pop().end = parser.CurrentByteIndex

        parser.StartElementHandler, parser.EndElementHandler = start, end
        try:
            parser.Parse(self._data, True)
        except expat.ExpatError as error:
            raise RobotModelError(f"the {what} is not valid XML, line {error.lineno}: {error}") from None

    @property
    def root(self) -> str:
        """Name of the outermost element."""
        return self.elements[0].path[0]

    def set(self, element: Element, attributes: Mapping[str, str]) -> None:
        """Set attributes of an element; those that it has already keep their place."""
        tag = _NAME.match(self._data, element.start)
        if tag is None:
            raise RobotModelError(f"the element <{element.path[-1]}> comes from an entity, which cannot be changed")
        missing, at = dict(attributes), tag.end()
        while match := _ATTRIBUTE.match(self._data, at):
            name, at = match[1].decode("utf-8"), match.end()
            if name in missing:
                self._changes.append((*match.span(2), _quoted(missing.pop(name))))
        added = b"".join(b" " + name.encode("utf-8") + b"=" + _quoted(value) for name, value in missing.items())
        if added:
            self._changes.append((at, at, added))

    def append(self, parent: Element, name: str, attributes: Mapping[str, str]) -> None:
        """Add a last child, indented as its siblings are.

        Raises
        ------
        RobotModelError
            When the parent has no children: its tag may close itself.
        """
        if not parent.children:
            raise RobotModelError(f"the element <{parent.path[-1]}> {parent.attributes.get('name', '')!r} is empty")
        before = self._data[: parent.children[0].start]
        indent = before[len(before.rstrip()) :]
        at = len(self._data[: parent.end].rstrip())
        tag = name.encode("utf-8") + b"".join(
            b" " + key.encode("utf-8") + b"=" + _quoted(value) for key, value in attributes.items()
        )
        self._changes.append((at, at, indent + b"<" + tag + b"/>"))

    def text(self) -> str:
        """The document with all changes."""
        data = self._data
        for start, end, replacement in sorted(self._changes, reverse=True):
            data = data[:start] + replacement + data[end:]
        return data.decode("utf-8")


def _quoted(value: str) -> bytes:
    return b'"' + escape(value, {'"': "&quot;"}).encode("utf-8") + b'"'
