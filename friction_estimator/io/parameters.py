"""Identified friction parameters in a YAML file that survives a crash while it is written."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from friction_estimator.config.validation import check_name
from friction_estimator.errors import ConfigError, choices, file_errors, located
from friction_estimator.io.documents import OutputFile, read_yaml, refuse_pipe, write_atomically, yaml_text
from friction_estimator.laws import FrictionLaw, law_names, make_law
from friction_estimator.laws.identified import (
    CALIBRATION,
    LARGEST_VALUE,
    SAVED_SCALARS,
    IdentifiedParameters,
    check_identified,
    joined,
)
from friction_estimator.laws.linear import ADDED_TERMS
from friction_estimator.types import AnyPath, FloatArray

FORMAT = "friction_estimator/identified_parameters"
VERSION = 1
"""Of the format; files of other versions are refused."""
IDENTIFICATION = "identification"
"""Section that an offline identification adds."""
_UNITS = "SI: torque in N m, velocity in rad/s, load in N m"

_ADDED_NAMES = {kind: tuple(term.name for term in terms) for kind, terms in ADDED_TERMS.items()}
_ADDED_NAMES["calibration"] = CALIBRATION
_RIPPLES = "ripples"
_VELOCITY_RANGE = "velocity_range"
"""Optional: offline identification has none."""
_KEYS = frozenset(
    ("law", "values", "units", "sigma", *SAVED_SCALARS, _VELOCITY_RANGE, _RIPPLES, *_ADDED_NAMES, "covariance")
).union(f"{kind}_covariance" for kind in _ADDED_NAMES)
"""Entries of a joint."""
_ROBOT = "robot"
"""Optional: an offline identification has none."""
_SIGMA_TOLERANCE = 1e-6
"""Relative difference between a standard deviation and its covariance."""


class ParameterFile:
    """File of identified parameters that no other process can write until :meth:`close`, or until this process ends.

    What others have written to the file is kept when it is overwritten: in the same folder, as ``NAME.previous.yaml``,
    and an offline identification also as ``NAME.identified.yaml``.

    Parameters
    ----------
    path : the file and its folder need not exist

    Attributes
    ----------
    saved_at : time of ``time.monotonic`` of the newest save in the background [s]; None before the first one
    error : why the newest save in the background failed; empty when it did not

    Raises
    ------
    ConfigError
        When the folder cannot be written, or another process has opened the file.
    """

    def __init__(self, path: AnyPath) -> None:
        self.path = Path(path).expanduser()
        self.saved_at: float | None = None
        self.error = ""
        self._written = ""
        with _writing(self.path):
            self._file = OutputFile(self.path)
        self._worker = ThreadPoolExecutor(1, "save_parameters")

    def save(self, identified: IdentifiedParameters) -> None:
        """Write identified parameters atomically: at every moment the file is the complete old or the complete new one.

        :func:`load_parameters` returns every number to the bit.

        Raises
        ------
        ConfigError
            When :func:`load_parameters` would refuse the file, or it cannot be written. The old file stays.
        """
        text = _document_text(self.path, parameters_document(identified))
        with _writing(self.path):
            self._keep_foreign_content()
            self._file.replace(text)
        self._written = text

    def save_in_background(self, identified: IdentifiedParameters) -> Future[None]:
        """Copy identified parameters, and save them in another thread; the result raises like :meth:`save`.

        The copy takes 30 us. YAML and disk take 20 ms and more, for which samples would wait.
        """
        return self._worker.submit(self._save_copy, copy.deepcopy(identified))

    def close(self) -> None:
        """Finish all saves, and let other processes open the file."""
        self._worker.shutdown()
        self._file.close()

    def _save_copy(self, identified: IdentifiedParameters) -> None:
        try:
            self.save(identified)
        except ConfigError as error:
            self.error = str(error)
            raise
        self.saved_at, self.error = time.monotonic(), ""

    def _keep_foreign_content(self) -> None:
        try:
            refuse_pipe(self.path)
            text = self.path.read_text(encoding="utf-8")
            document = read_document(self.path) if text != self._written else None
        except (FileNotFoundError, UnicodeDecodeError, ConfigError):
            return  # there is no file, or a damaged one: nothing in it that we could keep
        if document is not None:
            for name in ("previous", "identified") if IDENTIFICATION in document else ("previous",):
                write_atomically(self.path.with_suffix(f".{name}{self.path.suffix}"), text, self.path)


def save_parameters(path: AnyPath, identified: IdentifiedParameters) -> None:
    """Write identified parameters once; see :class:`ParameterFile`."""
    with closing(ParameterFile(path)) as file:
        file.save(identified)


def load_parameters(path: AnyPath) -> IdentifiedParameters:
    """Read identified parameters from a file of :func:`save_parameters`.

    Raises
    ------
    ConfigError
        When the file cannot be read, or is not such a file.
    """
    return parse_parameters(read_document(path), path)


def write_document(path: AnyPath, document: Mapping[str, Any]) -> None:
    """Write the content of a parameter file atomically, every number to the bit.

    Raises
    ------
    ConfigError
        When the file cannot be written, or could not be read again: the old file stays.
    """
    target = Path(path).expanduser()
    text = _document_text(target, document)
    with _writing(target):
        write_atomically(target, text)


def _document_text(target: Path, document: Mapping[str, Any]) -> str:
    with located(f"{target} is not written, the parameters cannot be true"):
        _from_document(document)
    return yaml_text(document)


def _writing(target: Path) -> AbstractContextManager[None]:
    return file_errors(f"write the parameters to {target}")


def read_document(path: AnyPath) -> dict[str, Any]:
    """Content of a parameter file.

    Raises
    ------
    ConfigError
        When it cannot be read or is no such file.
    """
    source = Path(path).expanduser()
    document = read_yaml(source)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ConfigError(f"{source} does not hold identified parameters: expected the line 'format: {FORMAT}'")
    for key, known in (("format_version", VERSION), ("units", _UNITS)):
        if document.get(key) != known or isinstance(document.get(key), bool):
            raise ConfigError(
                f"{source}: {key!r} is {document.get(key)!r}; this version reads {known!r}: identify again"
            )
    return document


def parse_parameters(document: Mapping[str, Any], path: AnyPath) -> IdentifiedParameters:
    """Parameters in the content of a file, see :func:`load_parameters`; the path is for messages.

    Raises
    ------
    ConfigError
        When they are incomplete, or cannot be true.
    """
    with located(Path(path).expanduser()):
        return _from_document(document)


def parameters_document(
    identified: IdentifiedParameters, sections: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Content of a parameter file.

    Parameters
    ----------
    identified : what the live node starts from
    sections : more to write by name, of plain Python types; it stands before the joints, so that a file that was cut
        short lacks some of these
    """
    return {
        "format": FORMAT,
        "format_version": VERSION,
        "units": _UNITS,
        **({_ROBOT: identified.robot} if identified.robot else {}),
        **sections,
        "joint_names": list(identified.joint_names),
        "joints": {joint: _joint_entry(identified, row) for row, joint in enumerate(identified.joint_names)},
    }


def _joint_entry(identified: IdentifiedParameters, row: int) -> dict[str, Any]:
    names = identified.parameter_names[row]
    p = len(names)
    covariance = identified.covariance[row, :p, :p]
    return {
        "law": identified.law_names[row],
        "values": dict(zip(names, identified.values[row, :p].tolist(), strict=True)),
        "units": dict(zip(names, make_law(identified.law_names[row]).units, strict=True)),
        "sigma": dict(zip(names, np.sqrt(np.maximum(np.diagonal(covariance), 0.0)).tolist(), strict=True)),
        **{name: float(getattr(identified, name)[row]) for name in SAVED_SCALARS},
        **_velocity_range(identified, row),
        **_added_terms(identified, row),
        "covariance": covariance.tolist(),  # last: a truncated list is never valid
    }


def _velocity_range(identified: IdentifiedParameters, row: int) -> dict[str, list[float]]:
    """Only where it is known."""
    ends = identified.velocity_range
    return {} if ends is None or not np.isfinite(ends[row]).all() else {_VELOCITY_RANGE: ends[row].tolist()}


def _added_terms(identified: IdentifiedParameters, row: int) -> dict[str, Any]:
    """Only where they are known."""
    entry: dict[str, Any] = {}
    if identified.ripples is not None and identified.ripples[row]:
        entry[_RIPPLES] = float(identified.ripples[row])
    for kind, names in _ADDED_NAMES.items():
        if (known := identified.added(kind, row)) is not None:
            values, covariance = (numbers.tolist() for numbers in known)
            entry |= {kind: dict(zip(names, values, strict=True)), f"{kind}_covariance": covariance}
    return entry


def _from_document(document: Mapping[str, Any]) -> IdentifiedParameters:
    joints = document.get("joints")
    if not isinstance(joints, dict) or list(joints) != document.get("joint_names"):
        raise ConfigError(
            f"'joints' must hold one entry for each of joint_names, in this order: {document.get('joint_names')}"
        )
    for joint in joints:
        check_name("the name of a joint", joint)
    laws = [_law(joint, entry) for joint, entry in joints.items()]
    parameters, scalars, velocity_range = [], [], np.full((n := len(joints), 2), np.nan)
    optional: dict[str, Any] = {_VELOCITY_RANGE: velocity_range, _RIPPLES: np.zeros(n)}
    for kind, names in _ADDED_NAMES.items():
        s = len(names)
        optional |= {kind: np.zeros((n, s)), f"{kind}_covariance": np.full((n, s, s), np.inf)}
    for row, ((joint, entry), law) in enumerate(zip(joints.items(), laws, strict=True)):
        count = len(law.parameter_names)
        values = _values(joint, entry, law.parameter_names)
        covariance = _numbers(joint, entry, "covariance", (count, count))
        _check_units(joint, entry, law, covariance)
        parameters.append((values, covariance))
        scalars.append([_numbers(joint, entry, name, ()) for name in SAVED_SCALARS])
        if _VELOCITY_RANGE in entry:
            velocity_range[row] = _rising_speeds(joint, entry)
        if _RIPPLES in entry:
            optional[_RIPPLES][row] = _numbers(joint, entry, _RIPPLES, ())
        for kind, names in _ADDED_NAMES.items():
            if kind in entry:
                optional[kind][row] = _values(joint, entry, names, kind)
                key, shape = f"{kind}_covariance", (len(names), len(names))
                optional[key][row] = _numbers(joint, entry, key, shape)
    numbers = np.array(scalars).reshape(-1, len(SAVED_SCALARS)).T
    optional[_ROBOT] = str(document.get(_ROBOT, ""))
    identified = replace(joined(tuple(joints), [law.name for law in laws], parameters, *numbers), **optional)
    check_identified(identified)
    return identified


def _law(joint: str, entry: Any) -> FrictionLaw:
    if not isinstance(entry, dict) or "law" not in entry:
        raise ConfigError(f"'law' of the joint {joint!r} is missing; the laws are {choices(law_names())}")
    if unknown := set(entry) - _KEYS:
        raise ConfigError(f"the joint {joint!r} has {choices(map(str, unknown))}; it may have {choices(_KEYS)}")
    with located(f"joint {joint!r}"):
        return make_law(str(entry["law"]))


def _values(joint: str, entry: Mapping[str, Any], names: tuple[str, ...], key: str = "values") -> FloatArray:
    values = entry.get(key)
    if not isinstance(values, dict) or set(values) != set(names):
        raise ConfigError(f"{key!r} of the joint {joint!r} must hold {choices(names)}")
    return _numbers(joint, {key: [values[name] for name in names]}, key, (len(names),))


def _check_units(joint: str, entry: Mapping[str, Any], law: FrictionLaw, covariance: FloatArray) -> None:
    """Refuse other units, and standard deviations that are not those of the covariance: somebody has edited one."""
    units = dict(zip(law.parameter_names, law.units, strict=True))
    if entry.get("units") != units:
        raise ConfigError(f"'units' of the joint {joint!r} are {entry.get('units')}; they must be {units}")
    sigma = _values(joint, entry, law.parameter_names, "sigma")
    expected = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    if not np.allclose(sigma, expected, rtol=_SIGMA_TOLERANCE, atol=0.0):
        raise ConfigError(
            f"'sigma' of the joint {joint!r} is not the root of the diagonal of its 'covariance': change "
            "both, or neither"
        )


def _rising_speeds(joint: str, entry: Mapping[str, Any]) -> FloatArray:
    ends = _numbers(joint, entry, _VELOCITY_RANGE, (2,))
    if not 0.0 < ends[0] < ends[1] <= LARGEST_VALUE:
        raise ConfigError(
            f"{_VELOCITY_RANGE!r} of the joint {joint!r} is {ends.tolist()}: two speeds, the smaller one first"
        )
    return ends


def _numbers(joint: str, entry: Mapping[str, Any], key: str, shape: tuple[int, ...]) -> FloatArray:
    try:
        numbers = np.asarray(entry[key], dtype=float)
        if any(isinstance(number, bool) for number in np.asarray(entry[key], dtype=object).flat):
            raise TypeError
    except (KeyError, TypeError, ValueError):
        raise ConfigError(f"{key!r} of the joint {joint!r} is missing or not a number") from None
    if numbers.shape != shape or not np.isfinite(numbers).all():
        wanted = "x".join(map(str, shape)) or "one"
        raise ConfigError(f"{key!r} of the joint {joint!r} must hold {wanted} finite numbers, it is {entry[key]!r}")
    return numbers
