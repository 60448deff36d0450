"""A whole identification in the parameter file that the live node starts from: one format, more sections."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from friction_estimator.errors import ConfigError
from friction_estimator.identification.result import (
    Identification,
    JointScore,
    OperatingRange,
    ParameterTable,
    Provenance,
    operating_range,
)
from friction_estimator.io.documents import Lines
from friction_estimator.io.parameters import (
    IDENTIFICATION,
    parameters_document,
    parse_parameters,
    read_document,
    write_document,
)
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.types import BoolArray, FloatArray

_CONVERT: dict[str, Callable[[Any], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "tuple[float, ...]": lambda numbers: tuple(map(float, numbers)),
}

_Row = TypeVar("_Row", JointScore, OperatingRange)


@dataclass(frozen=True, slots=True)
class SavedIdentification:
    """What a parameter file holds; of a file that the live node has written only ``friction``.

    Attributes
    ----------
    friction : law and parameters of every joint
    parameters : everything that was estimated
    scores : one a joint
    ranges : velocities and loads that the fit used, one a joint
    condition : of the column-scaled observation matrix, NaN when not known
    verdicts : in words
    provenance : how it was made, None when not known
    """

    friction: IdentifiedParameters
    parameters: ParameterTable | None = None
    scores: tuple[JointScore, ...] = ()
    ranges: tuple[OperatingRange, ...] = ()
    condition: float = float("nan")
    verdicts: tuple[str, ...] = ()
    provenance: Provenance | None = None


def saved_form(identification: Identification) -> SavedIdentification:
    """What a file keeps of an identification: everything but the samples, of which it keeps the range."""
    return SavedIdentification(
        identification.friction,
        identification.parameters,
        identification.scores,
        tuple(found for samples in identification.samples if (found := operating_range(samples)) is not None),
        float(identification.condition),
        identification.verdicts,
        identification.provenance,
    )


def save_identification(path: str | os.PathLike[str], identification: Identification) -> None:
    """Write an identification as a parameter file, atomically.

    :func:`~friction_estimator.io.parameters.load_parameters` and the live node read its friction as from any other
    such file; :func:`load_identification` gives :func:`saved_form` back, every number to the bit.

    Raises
    ------
    ConfigError
        When the file cannot be written.
    """
    write_document(
        path, parameters_document(identification.friction, {IDENTIFICATION: _section(saved_form(identification))})
    )


def load_identification(path: str | os.PathLike[str]) -> SavedIdentification:
    """Read all that a parameter file holds, whoever wrote it.

    Raises
    ------
    ConfigError
        When the file cannot be read, is no such file, or is damaged.
    """
    document = read_document(path)
    friction = parse_parameters(document, path)
    if IDENTIFICATION not in document:
        return SavedIdentification(friction)
    try:
        return _from_section(document[IDENTIFICATION], friction)
    except (KeyError, TypeError, ValueError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ConfigError(f"{Path(path).expanduser()}: the section {IDENTIFICATION!r} is damaged: {reason}") from None


def _section(saved: SavedIdentification) -> dict[str, Any]:
    provenance, parameters = saved.provenance, saved.parameters
    if provenance is None or parameters is None:
        raise ValueError("an identification has a provenance and a table of parameters")
    return {
        "method": provenance.method,
        "command": provenance.command,
        "data": [{"name": name, "sha256": digest} for name, digest in provenance.data],
        "verdicts": Lines(saved.verdicts),
        "choices": Lines(provenance.choices),
        "condition": saved.condition,
        "scores": [_plain(asdict(score)) for score in saved.scores],
        "ranges": [_plain(asdict(one)) for one in saved.ranges],
        "parameters": list(_parameter_rows(parameters)),
    }


def _parameter_rows(table: ParameterTable) -> Iterator[dict[str, Any]]:
    columns = {
        "name": list(table.names),
        "unit": list(table.units),
        "value": table.values.tolist(),
        "sigma": table.sigma.tolist(),
        "reference": None if table.reference is None else table.reference.tolist(),
        "identifiable": None if table.identifiable is None else table.identifiable.tolist(),
    }
    known = {key: column for key, column in columns.items() if column is not None}
    for row in zip(*known.values(), strict=True):
        yield dict(zip(known, row, strict=True))


def _plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Without tuples and NumPy numbers, which YAML does not know."""
    return {
        key: list(value) if isinstance(value, tuple) else value.item() if isinstance(value, np.generic) else value
        for key, value in entry.items()
    }


def _from_section(section: Mapping[str, Any], friction: IdentifiedParameters) -> SavedIdentification:
    return SavedIdentification(
        friction,
        _parameter_table(section["parameters"]),
        _rows(JointScore, section["scores"]),
        _rows(OperatingRange, section["ranges"]),
        float(section["condition"]),
        tuple(map(str, section["verdicts"])),
        Provenance(
            command=str(section["command"]),
            method=str(section["method"]),
            data=tuple((str(entry["name"]), str(entry["sha256"])) for entry in section["data"]),
            choices=tuple(map(str, section["choices"])),
        ),
    )


def _parameter_table(rows: Sequence[Mapping[str, Any]]) -> ParameterTable:
    return ParameterTable(
        names=tuple(str(row["name"]) for row in rows),
        units=tuple(str(row["unit"]) for row in rows),
        values=_column(rows, "value"),
        sigma=_column(rows, "sigma"),
        reference=_column(rows, "reference") if any("reference" in row for row in rows) else None,
        identifiable=_flags(rows, "identifiable") if any("identifiable" in row for row in rows) else None,
    )


def _column(rows: Sequence[Mapping[str, Any]], key: str) -> FloatArray:
    return np.array([float(row[key]) for row in rows])


def _flags(rows: Sequence[Mapping[str, Any]], key: str) -> BoolArray:
    return np.array([bool(row[key]) for row in rows])


def _rows(kind: type[_Row], rows: Sequence[Mapping[str, Any]]) -> tuple[_Row, ...]:
    """Rows of a frozen dataclass whose fields are text, numbers or tuples of numbers."""
    return tuple(kind(**{item.name: _CONVERT[str(item.type)](row[item.name]) for item in fields(kind)}) for row in rows)
