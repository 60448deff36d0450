"""Columns of numbers from .csv and .npz, as programs and spreadsheets write them."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from friction_estimator.errors import InputError, choices
from friction_estimator.types import FloatArray

SUFFIXES = (".csv", ".npz")
_DELIMITERS = ",;\t"
_EMPTY = frozenset({"", "na", "n/a", "null", "none"})


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns of equal length.

    Attributes
    ----------
    path : of the file
    columns : (N,) each, by the name in the file; a number that is missing is NaN
    digest : SHA-256 of the file's content, hexadecimal
    """

    path: Path
    columns: Mapping[str, FloatArray]
    digest: str


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read a .csv (comma, semicolon or tab; decimal comma where it is not the separator) or an .npz.

    Raises
    ------
    InputError
        When the file cannot be read, has another suffix, or a cell is not a number: names line and column.
    """
    source = Path(path).expanduser()
    suffix = source.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{source}: files {choices([suffix])} cannot be read; give one of {choices(SUFFIXES)}")
    try:
        content = source.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror or error}") from None
    try:
        columns = _from_csv(content) if suffix == ".csv" else _from_npz(content)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    return Table(source, columns, hashlib.sha256(content).hexdigest())


def _from_npz(content: bytes) -> dict[str, FloatArray]:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            columns = {name: np.asarray(archive[name], dtype=float) for name in archive.files}
    except (ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile, AttributeError):
        raise InputError("is not an .npz that holds arrays of numbers only") from None
    for name, column in columns.items():
        if column.ndim != 1:
            raise InputError(f"the array {name!r} has the shape {column.shape}; one column (N,) a name is expected")
    if len({column.size for column in columns.values()}) > 1:
        raise InputError("lengths differ: " + ", ".join(f"{name!r} {column.size}" for name, column in columns.items()))
    return columns


def _from_csv(content: bytes) -> dict[str, FloatArray]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("is not a UTF-8 text") from None
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip(_DELIMITERS + " ")]
    if not lines:
        raise InputError("is empty")
    header = lines[0][1].lstrip("#% ")  # as numpy and Octave write it
    delimiter = max(_DELIMITERS, key=header.count)
    names = [name.strip().strip("\"'").strip() for name in header.split(delimiter)]
    twice = {name for name in names if name and names.count(name) > 1}
    if twice:
        raise InputError(f"the column {choices(twice)} is there more than once")
    rows = [(number, line) for number, line in lines[1:] if not line.startswith("#")]
    values = _numbers(names, rows, delimiter)
    return {name: np.ascontiguousarray(values[:, place]) for place, name in enumerate(names) if name}


def _numbers(names: Sequence[str], rows: Sequence[tuple[int, str]], delimiter: str) -> FloatArray:
    if not rows:
        return np.empty((0, len(names)))
    try:
        values = np.loadtxt([line for _, line in rows], delimiter=delimiter, ndmin=2, dtype=float, comments=None)
        if values.shape[1] == len(names):
            return values
    except ValueError:
        pass  # something is missing or not a number: look at every cell
    return np.array([_row(names, number, line.split(delimiter), delimiter) for number, line in rows])


def _row(names: Sequence[str], number: int, cells: Sequence[str], delimiter: str) -> list[float]:
    while len(cells) > len(names) and not cells[-1].strip():  # a separator at the end
        cells = cells[:-1]
    if len(cells) != len(names):
        raise InputError(f"line {number} has {len(cells)} cells, the header names {len(names)} columns")
    return [_cell(name, number, cell, delimiter) for name, cell in zip(names, cells, strict=True)]


def _cell(name: str, number: int, cell: str, delimiter: str) -> float:
    text = cell.strip().strip("\"'")
    if text.lower() in _EMPTY:
        return float("nan")
    try:
        return float(text if delimiter == "," else text.replace(",", "."))
    except ValueError:
        raise InputError(f"line {number}, column {name!r}: {text!r} is not a number") from None
