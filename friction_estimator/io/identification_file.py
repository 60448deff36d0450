"""A whole identification in the parameter file that the live node starts from: one format, more sections."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from friction_estimator.errors import ConfigError
from friction_estimator.identification.prediction import CurvePrediction, TorquePrediction
from friction_estimator.identification.result import (
    Candidate,
    DriveGain,
    FrictionSamples,
    Identification,
    JointScore,
    ParameterTable,
    Provenance,
)
from friction_estimator.io.documents import Lines, TextBlock
from friction_estimator.io.parameters import (
    IDENTIFICATION,
    parameters_document,
    parse_parameters,
    read_document,
    write_document,
)
from friction_estimator.laws import make_law
from friction_estimator.laws.identified import IdentifiedParameters, parameters_sigma
from friction_estimator.types import AnyPath

_MAX_SAMPLES = 400
"""Samples of all joints together in a file: figures need no more, and the file stays small."""
_COLUMNS = {
    "name": "names", "unit": "units", "value": "values", "sigma": "sigma", "reference": "reference",
    "identifiable": "identifiable",
}  # fmt: skip
"""Attributes of a :class:`ParameterTable` by their entry in a row."""
_SAMPLE_COLUMNS = ("velocity", "friction", "load", "fitted", "sigma", "used")


def save_identification(path: AnyPath, identification: Identification) -> None:
    """Write an identification as a parameter file, atomically.

    :func:`~friction_estimator.io.parameters.load_parameters` and the live node read its friction as from any other
    parameter file. :func:`read_identification` returns the identification: every number to the bit, except for the
    samples and the errors of candidates, which have four digits. Of the samples, a file has some only.

    Raises
    ------
    ConfigError
        When the file cannot be written.
    """
    write_document(path, parameters_document(identification.friction, {IDENTIFICATION: _section(identification)}))


def read_identification(path: AnyPath) -> Identification:
    """Read an identification from a parameter file.

    A file that the live node or `replay` has written gives :func:`identification_of_parameters`.

    Raises
    ------
    ConfigError
        When the file cannot be read, is not a parameter file, or is damaged.
    """
    document = read_document(path)
    friction = parse_parameters(document, path)
    if IDENTIFICATION not in document:
        return identification_of_parameters(friction)
    try:
        return _from_section(document[IDENTIFICATION], friction)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ConfigError(
            f"{Path(path).expanduser()}: the section {IDENTIFICATION!r} is damaged: {reason}; identify again"
        ) from None


def identification_of_parameters(friction: IdentifiedParameters) -> Identification:
    """Identification without samples, scores and provenance, as of parameters that the live node has identified."""
    laws = [make_law(name) for name in friction.law_names]
    counts = [len(law.parameter_names) for law in laws]
    sigma = parameters_sigma(friction)
    table = ParameterTable(
        names=tuple(
            f"{joint}/{name}"
            for joint, law in zip(friction.joint_names, laws, strict=True)
            for name in law.parameter_names
        ),
        units=tuple(unit for law in laws for unit in law.units),
        values=np.concatenate([friction.values[row, :count] for row, count in enumerate(counts)]),
        sigma=np.concatenate([sigma[row, :count] for row, count in enumerate(counts)]),
    )
    return Identification(friction, table, (), (), math.nan, (), Provenance("", (), ()))


def _section(identification: Identification) -> dict[str, Any]:
    provenance, samples = identification.provenance, identification.samples
    share = _MAX_SAMPLES // max(len(samples), 1)
    return {
        "method": provenance.method,
        "command": provenance.command,
        "data": [{"name": name, "sha256": digest} for name, digest in provenance.data],
        "verdicts": Lines(identification.verdicts),
        "choices": Lines(provenance.choices),
        "condition": float(identification.condition),
        "scores": [_entry(score) for score in identification.scores],
        "parameters": list(_parameter_rows(identification.parameters)),
        "inertia": dict(identification.inertia),
        "bodies": dict(identification.bodies),
        "drives": _entry(identification.drives),
        "candidates": [_rounded(candidate) for candidate in identification.candidates],
        "predictions": [_prediction_entry(prediction) for prediction in identification.predictions],
        "samples": [
            {"joint": one.joint, "table": TextBlock(_samples_text(one, share))} for one in identification.samples
        ],
    }


def _parameter_rows(table: ParameterTable) -> Iterator[dict[str, Any]]:
    columns = {key: getattr(table, name) for key, name in _COLUMNS.items()}
    known = {key: np.asarray(column).tolist() for key, column in columns.items() if column is not None}
    for row in zip(*known.values(), strict=True):
        yield dict(zip(known, row, strict=True))


def _samples_text(samples: FrictionSamples, most: int) -> str:
    """Header and one line per sample, at most the given number of them, evenly spaced."""
    text = io.StringIO()
    columns = np.column_stack([getattr(samples, name) for name in _SAMPLE_COLUMNS])
    columns = columns[:: max(1, -(-len(columns) // max(most, 1)))]
    np.savetxt(text, columns, fmt="%.4g", header=" ".join(_SAMPLE_COLUMNS), comments="")
    return text.getvalue()


def _from_section(section: Mapping[str, Any], friction: IdentifiedParameters) -> Identification:
    return Identification(
        friction,
        _parameter_table(section["parameters"]),
        _value(tuple[JointScore, ...], section["scores"]),
        tuple(_samples(str(entry["joint"]), str(entry["table"])) for entry in section["samples"]),
        float(section["condition"]),
        _value(tuple[str, ...], section["verdicts"]),
        Provenance(
            command=str(section["command"]),
            method=str(section["method"]),
            data=tuple((str(entry["name"]), str(entry["sha256"])) for entry in section["data"]),
            choices=_value(tuple[str, ...], section["choices"]),
        ),
        _value(Mapping[str, float], section["inertia"]),
        _value(Mapping[str, DriveGain], section.get("drives", {})),
        tuple(map(_read_prediction, section.get("predictions", ()))),
        _value(tuple[Candidate, ...], section.get("candidates", ())),
        _value(Mapping[str, float], section.get("bodies", {})),
    )


def _rounded(candidate: Candidate) -> dict[str, Any]:
    """Errors with four digits: they compare candidates, and nothing is computed from them."""
    entry = asdict(candidate)
    return entry | {name: float(f"{entry[name]:.4g}") for name in ("error", "excess", "sigma")}


_PREDICTIONS: dict[str, type[Any]] = {"torque": TorquePrediction, "curve": CurvePrediction}


def _prediction_entry(prediction: Any) -> dict[str, Any]:
    """Plain numbers, texts and lists of a prediction."""
    kind = next(name for name, cls in _PREDICTIONS.items() if isinstance(prediction, cls))
    return {"kind": kind, **_entry(prediction)}


def _entry(value: Any) -> Any:
    if is_dataclass(value):
        return {item.name: _entry(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _entry(one) for key, one in value.items()}
    return [_entry(one) for one in value] if isinstance(value, tuple) else value


def _read_prediction(entry: Mapping[str, Any]) -> Any:
    """Prediction of an entry of :func:`_prediction_entry`, every number to the bit."""
    return _value(_PREDICTIONS[str(entry["kind"])], entry)


def _value(kind: Any, value: Any) -> Any:
    """What a file has in place of an object, tuple, mapping, array or number of this type."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return None if value is None else _value(inner[0], value)
    if origin is tuple:
        return tuple(_value(inner[0], one) for one in value)
    if origin is Mapping:
        return {str(name): _value(inner[1], one) for name, one in value.items()}
    if origin is np.ndarray:
        return np.array(value, dtype=float)
    make: Callable[..., Any] = kind
    if not is_dataclass(kind):
        return make(value)
    kinds = get_type_hints(kind)
    return make(**{item.name: _value(kinds[item.name], value[item.name]) for item in fields(kind)})


def _parameter_table(rows: Sequence[Mapping[str, Any]]) -> ParameterTable:
    def column(key: str, kind: type[Any] = float) -> Any:
        return np.array([kind(row[key]) for row in rows])

    known = {key for row in rows for key in row}
    return ParameterTable(
        names=tuple(str(row["name"]) for row in rows),
        units=tuple(str(row["unit"]) for row in rows),
        values=column("value"),
        sigma=column("sigma"),
        reference=column("reference") if "reference" in known else None,
        identifiable=column("identifiable", bool) if "identifiable" in known else None,
    )


def _samples(joint: str, text: str) -> FrictionSamples:
    names, *lines = text.splitlines() or [""]
    rows = np.array([line.split() for line in lines], dtype=float).reshape(len(lines), len(names.split()))
    columns = dict(zip(names.split(), rows.T, strict=True))
    missing = [name for name in _SAMPLE_COLUMNS if name not in columns]
    if missing:
        raise ValueError(f"the samples of {joint!r} lack the column {', '.join(missing)}")
    numbers = {name: np.ascontiguousarray(columns[name]) for name in _SAMPLE_COLUMNS[:-1]}
    return FrictionSamples(joint, **numbers, used=columns["used"] > 0.5)
