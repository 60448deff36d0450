"""Joint signals in tidy tables (.csv, .npz): reading recorded logs, writing planned motions.

The columns are ``time``, ``position/<joint>``, ``velocity/<joint>``, ``effort/<joint>`` and others of that form.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from friction_estimator.errors import InputError, choices, file_errors, located
from friction_estimator.identification.joint_log import JointLog, JointTrajectory
from friction_estimator.io.documents import read_bytes, write_atomically
from friction_estimator.types import AnyPath, FloatArray

_ONLY_JOINT = "joint"
"""Name of the joint of a file with bare columns, when the caller gives none."""

_SIGNALS = ("position", "velocity", "effort")
_OF_MOTORS = ("pwm", "current")
_NO_MOTORS: Mapping[str, str] = MappingProxyType({})
_ALIASES = {"torque": "effort", "t": "time", "timestamp": "time", "stamp": "time"}
_ANGLE = {"rad": 1.0, "m": 1.0, "deg": math.pi / 180.0, "mrad": 1e-3, "rev": 2.0 * math.pi, "mm": 1e-3}
_SPEED = {f"{unit}/s": factor for unit, factor in _ANGLE.items()} | {"rpm": math.pi / 30.0}
_TORQUE = {"Nm": 1.0, "N m": 1.0, "N": 1.0, "mNm": 1e-3, "mN m": 1e-3, "kNm": 1e3}
_UNITS: dict[str, dict[str, float]] = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "position": _ANGLE,
    "command": _ANGLE,
    "velocity": _SPEED,
    **dict.fromkeys(("effort", "friction", "joint_torque", "external"), _TORQUE),
    "current": {"A": 1.0, "mA": 1e-3},
}
"""SI units, and what they are, by kind of column and its unit."""
_COUNTS = re.compile(r"(?:counts?|ticks?)\s*/\s*([0-9]+)")
"""Counts of an encoder, with their number in a turn."""
_UNIT = re.compile(r"\s*[\[(]([^\])]*)[\])]\s*$")
_HELP = (
    "columns are 'time', 'position/<joint>', 'velocity/<joint>', 'effort/<joint>' (or 'torque/<joint>'), in SI units, "
    "or with the unit behind the name, such as 'position/<joint> [deg]'"
)
_FORCE, _MOMENT = ("x", "y", "z"), ("mx", "my", "mz")
"""Columns of a wrench, ``<kind>/x``."""


_Kinds = dict[str, dict[str, FloatArray]]
"""Columns by kind and joint; the joint of a bare column is empty."""


def joint_log_from_table(
    path: AnyPath,
    joint_names: Sequence[str] | None = None,
    motor_places: Mapping[str, str] = _NO_MOTORS,
) -> JointLog:
    """Read a .csv or .npz in SI units.

    Parameters
    ----------
    path : the file. Columns are ``time``, ``position/<joint>`` and, where recorded, ``velocity/<joint>``,
        ``effort/<joint>`` (or ``torque/<joint>``) and ``<kind>/<joint>`` of any other kind. With a single joint the
        bare columns ``time, position, velocity, torque`` will do
    joint_names : (n) wanted joints, in this order; None: all, in the order of the file. It names the joint of a file
        with bare columns
    motor_places : joints by the names of the motors at their places: ``pwm/<motor>`` and ``current/<motor>`` are theirs

    Returns
    -------
    log : as recorded, not checked; its name is the file's

    Raises
    ------
    InputError
        When the file cannot be read, a column is missing or means nothing, or a joint is not there.
    """
    table = read_columns(path)
    with located(table.path):
        kinds = _by_kind(table.columns, motor_places)
        time = list(kinds.pop("time", {}).values())
        if len(time) != 1:
            raise InputError(f"there must be one column 'time'; the columns are {choices(table.columns)}; {_HELP}")
        wrenches = _wrenches(kinds)
        of_joints = {kind: joints for kind, joints in kinds.items() if kind not in wrenches}
        named = _name_joints(of_joints, joint_names)
        return replace(_assemble(table, time[0], _wanted(named, joint_names)), wrenches=wrenches)


def _by_kind(columns: Mapping[str, FloatArray], motor_places: Mapping[str, str]) -> _Kinds:
    """Columns in SI units; a drive that is named by its motor is that of the joint at the motor's place."""
    kinds: _Kinds = {}
    for label, values in columns.items():
        unit = _UNIT.search(label)
        kind, _, joint = (part.strip() for part in (label[: unit.start()] if unit else label).partition("/"))
        kind = _ALIASES.get(kind.lower(), kind.lower())
        if kind in _OF_MOTORS:
            joint = motor_places.get(joint, joint)
        joints = kinds.setdefault(kind, {})
        if joint in joints:
            raise InputError(f"the column {label!r} gives {kind} of {joint!r} a second time: leave one out")
        joints[joint] = values * _factor(label, kind, unit[1].strip()) if unit else values
    return kinds


def _factor(label: str, kind: str, unit: str) -> float:
    """SI units in the unit of a column; units of kinds that have no meaning here are not looked at."""
    known = _UNITS.get(kind)
    if known is None:
        return 1.0
    counts = _COUNTS.fullmatch(unit) if known is _ANGLE else None
    if counts is not None and int(counts[1]) > 0:
        return 2.0 * math.pi / int(counts[1])
    if unit not in known:
        turn = " or counts/N with N counts a turn" if known is _ANGLE else ""
        raise InputError(f"the column {label!r} is in {unit!r}, expected {choices(known)}{turn}")
    return known[unit]


def _wrenches(kinds: _Kinds) -> Mapping[str, FloatArray]:
    """Forces, ``<kind>/x, y, z``, with their moments, ``<kind>/mx, my, mz``, (N, 6) by kind; x is no joint there."""
    joints, found = set(kinds.get("position", ())), {}
    for kind, part in kinds.items():
        if set(part) in ({*_FORCE}, {*_FORCE, *_MOMENT}) and not joints & set(part):
            none = np.zeros_like(part["x"])
            found[kind] = np.column_stack([part.get(axis, none) for axis in (*_FORCE, *_MOMENT)])
    return MappingProxyType(found)


def _name_joints(kinds: _Kinds, joint_names: Sequence[str] | None) -> _Kinds:
    """Give the bare columns of a file with one joint the name of that joint."""
    bare = [kind for kind, joints in kinds.items() if "" in joints]
    if not bare:
        return kinds
    named = sorted({joint for joints in kinds.values() for joint in joints} - {""})
    wanted = list(dict.fromkeys(named or joint_names or [_ONLY_JOINT]))
    if len(wanted) != 1:
        raise InputError(
            f"the column {choices(bare)} does not name its joint; bare names are for files with one joint, but there "
            f"are {choices(wanted)}; {_HELP}"
        )
    if twice := [kind for kind in bare if len(kinds[kind]) > 1]:
        raise InputError(
            f"the column {choices(twice)} is there with and without the name of the joint {wanted[0]!r}: leave one out"
        )
    return {kind: dict.fromkeys(wanted, *joints.values()) for kind, joints in kinds.items()}


def _wanted(kinds: _Kinds, joint_names: Sequence[str] | None) -> _Kinds:
    """Columns of the wanted joints. A column without a position is an error where it may be that of a wanted joint."""
    if joint_names is None:
        return kinds
    present = kinds.get("position", {})
    if missing := [joint for joint in joint_names if joint not in present]:
        raise InputError(f"there is no position of {choices(missing)}; the joints are {choices(present)}")
    for kind in _SIGNALS:
        joints = kinds.get(kind, {})
        lacking = set(joint_names) - set(joints)
        strange = [f"{kind}/{joint}" for joint in joints if joint not in present]
        if lacking and strange:
            raise InputError(
                f"there is no {kind} of {choices(lacking)}, but the column {choices(strange)}, whose joint has no "
                "position: is a name misspelt?"
            )
    wanted = {kind: [joint for joint in joint_names if joint in joints] for kind, joints in kinds.items()}
    return {kind: {joint: kinds[kind][joint] for joint in joints} for kind, joints in wanted.items() if joints}


def _assemble(table: Columns, time: FloatArray, kinds: _Kinds) -> JointLog:
    names = tuple(kinds.get("position", ()))
    if not names:
        raise InputError(f"there is no column of positions; the columns are {choices(table.columns)}; {_HELP}")
    inputs = {kind: _block(kind, names, joints) for kind, joints in kinds.items() if kind not in _SIGNALS}
    signals = {kind: _block(kind, names, kinds[kind], True) for kind in _SIGNALS if kind in kinds}
    return JointLog(
        table.path.stem,
        names,
        time,
        signals["position"],
        signals.get("velocity"),
        signals.get("effort"),
        MappingProxyType(inputs),
        digest=table.digest,
    )


def _block(kind: str, names: Sequence[str], joints: Mapping[str, FloatArray], needed: bool = False) -> FloatArray:
    """Columns (N, n) of one kind; NaN where a joint has none, unless each of them needs one."""
    unknown = [joint for joint in joints if joint not in names]
    missing = [f"{kind}/{joint}" for joint in names if joint not in joints]
    if unknown:
        raise InputError(f"{kind} is given for {choices(unknown)}, position only for {choices(names)}")
    if needed and missing:
        raise InputError(f"the column {choices(missing)} is missing; there is {kind} of {choices(joints)}")
    absent = np.full(next(iter(joints.values())).size, np.nan)
    return np.column_stack([joints.get(joint, absent) for joint in names])


SUFFIXES = (".csv", ".npz")
_DELIMITERS = ",;\t"
_EMPTY = frozenset({"", "na", "n/a", "null", "none"})
_MAX_BYTES = 2_000_000_000
"""Largest file, and largest content of a compressed one: two hours at 1 kHz of 12 joints."""
_MAX_COLUMNS = 1000  # of a table


@dataclass(frozen=True, slots=True)
class Columns:
    """Named columns of equal length."""

    path: Path  # of the file
    columns: Mapping[str, FloatArray]  # (N,) each, by the name in the file; a number that is missing is NaN
    digest: str  # SHA-256 of the file's content, hexadecimal


def read_columns(path: AnyPath) -> Columns:
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
    with file_errors(f"read {source}", InputError):
        content = read_bytes(source, _MAX_BYTES)
    with located(source):
        columns = _from_csv(content) if suffix == ".csv" else _from_npz(content)
    return Columns(source, columns, hashlib.sha256(content).hexdigest())


def _from_npz(content: bytes) -> dict[str, FloatArray]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_members(archive)
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            columns = {name: np.asarray(arrays[name], dtype=float) for name in arrays.files}
    except InputError:
        raise
    except Exception:  # zipfile, zlib and numpy let many kinds of errors through
        raise InputError(
            "is not an .npz that holds arrays of numbers only: write it with numpy.savez(path, **columns)"
        ) from None
    if len({column.size for column in columns.values()}) > 1:
        raise InputError("lengths differ: " + ", ".join(f"{name!r} {column.size}" for name, column in columns.items()))
    return columns


def _check_members(archive: zipfile.ZipFile) -> None:
    """Refuse what would need more memory than a table has, before anything is unpacked."""
    members = archive.infolist()
    unpacked = sum(member.file_size for member in members)
    if unpacked > _MAX_BYTES or len(members) > _MAX_COLUMNS:
        raise InputError(
            f"holds {len(members)} arrays of {unpacked / 1e6:.0f} MB; at most {_MAX_COLUMNS} of {_MAX_BYTES / 1e6:g} "
            "MB are read: split the recording, or leave columns out"
        )
    for member in members:
        with archive.open(member) as stream:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(stream)
        name = member.filename.removesuffix(".npy")
        if dtype.kind not in "biuf":
            raise InputError(f"the array {name!r} does not hold numbers: its type is {dtype}; leave it out")
        if len(shape) != 1:
            raise InputError(
                f"the array {name!r} has the shape {shape}; one column (N,) a name is expected: save the columns of "
                f"{name!r} as '{name}/<joint>', each by itself"
            )
        if shape[0] * dtype.itemsize > member.file_size:
            raise InputError(f"the array {name!r} is cut off: it has less than {shape[0]} numbers; copy the file again")


def _from_csv(content: bytes) -> dict[str, FloatArray]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("is not a UTF-8 text: save it as one") from None
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip(_DELIMITERS + " ")]
    if not lines:
        raise InputError("is empty: a line of names and lines of numbers are needed")
    header = lines[0][1].lstrip("#% ")  # as numpy and Octave write it
    delimiter = max(_DELIMITERS, key=header.count)
    names = [name.strip().strip("\"'").strip() for name in header.split(delimiter)]
    if len(names) > _MAX_COLUMNS:
        raise InputError(f"has {len(names)} columns; at most {_MAX_COLUMNS} are read: leave some out")
    twice = [name for name, count in Counter(names).items() if name and count > 1]
    if twice:
        raise InputError(f"the column {choices(twice)} is there more than once: give each its own name")
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


def write_trajectory_csv(path: AnyPath, trajectory: JointTrajectory) -> None:
    """Write ``time``, ``position/<joint>``, ``velocity/<joint>``, ``acceleration/<joint>``, in SI units.

    Parameters
    ----------
    path : the file
    trajectory : what to write

    Raises
    ------
    ConfigError
        When the file cannot be written.
    """
    kinds = ("position", "velocity", "acceleration")
    header = ",".join(["time", *(f"{kind}/{joint}" for kind in kinds for joint in trajectory.joint_names)])
    text = io.StringIO()
    table = np.column_stack([trajectory.time, *(getattr(trajectory, kind) for kind in kinds)])
    np.savetxt(text, table, fmt="%.9g", delimiter=",", header=header, comments="")
    target = Path(path).expanduser()
    with file_errors(f"write the trajectory to {target}"):
        write_atomically(target, text.getvalue())
