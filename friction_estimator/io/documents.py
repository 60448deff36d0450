"""Documents on disk: YAML as the ROS parameter parser reads it, and files that are replaced as a whole."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from friction_estimator.errors import ConfigError


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # compiled where it is there
    """Safe loader that refuses a key given twice and, unlike plain PyYAML, reads ``1e-4`` as a number."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a plain name", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} is given twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


class Lines(list[str]):
    """Sentences to write one a line."""


class Block(str):
    """Text of several lines that is written line by line, without quotes."""


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Safe dumper for :class:`Lines` and :class:`Block` too."""


_Dumper.add_representer(
    Block, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|")
)
_Dumper.add_representer(
    Lines, lambda dumper, lines: dumper.represent_sequence("tag:yaml.org,2002:seq", lines, flow_style=False)
)


def yaml_text(document: Mapping[str, Any]) -> str:
    """YAML of plain types, :class:`Lines` and :class:`Block`: numbers to the bit, innermost lists on one line."""
    return yaml.dump(
        dict(document), Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=10**6, allow_unicode=True
    )


def read_yaml(path: Path) -> Any:
    """Contents of a YAML file.

    Raises
    ------
    ConfigError
        When the file cannot be read or is not YAML; the message names the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {_reason(error)}") from None
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {_where(error)}") from None


def parse_value(text: str) -> Any:
    """Value of one parameter written as in a YAML file, e.g. ``"1e-4"``, ``"true"`` or ``"[l_foot, r_foot]"``.

    Raises
    ------
    ConfigError
        When it is not YAML.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise ConfigError(f"{text!r} is not valid YAML: {_where(error)}") from None


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else "it is not a UTF-8 text"


def _where(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else problem


def write_atomically(target: Path, text: str) -> None:
    """Replace a file; line ends are written as they stand in the text.

    Raises
    ------
    OSError
        When it cannot be written; the old file is still there then.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    target = target.resolve()
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(target.parent, os.O_RDONLY)  # the rename itself must reach the disk too
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
