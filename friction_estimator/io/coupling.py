"""Coupling matrices of motors and joints from a YAML file.

    couplings:
      torso:                                  # any name
        joints: [torso_pitch, torso_roll, torso_yaw]
        motors: [0B3M0, 0B3M1, 0B4M0]
        matrix:                               # joint velocity = matrix * motor velocity, behind the gearboxes
          - [0.5, -0.5, 0.0]
          - [0.5, 0.5, 0.0]
          - [0.275, 0.275, 0.55]

Joints that it does not name have a motor of their own, with the joint's name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from friction_estimator.config.coupling import Coupling, combined, uncoupled
from friction_estimator.errors import ConfigError, choices
from friction_estimator.io.documents import read_yaml
from friction_estimator.types import FloatArray

_KEYS = ("joints", "motors", "matrix")


def load_coupling(path: str | os.PathLike[str], joint_names: Sequence[str] | None = None) -> Coupling:
    """Read a coupling.

    Parameters
    ----------
    path : a file as above
    joint_names : joints of the robot or log; those that the file does not name are uncoupled. Groups of the file of
        which none of the joints is wanted are left out. None: all of the file and nothing else

    Raises
    ------
    ConfigError
        When the file cannot be read or is not such a file, or only a part of a coupled group is wanted.
    """
    couplings = load_couplings(path)
    try:
        return combined(couplings) if joint_names is None else coupling_of_joints(couplings, joint_names)
    except ConfigError as error:
        raise ConfigError(f"{Path(path).expanduser()}: {error}") from None


def load_couplings(path: str | os.PathLike[str]) -> tuple[Coupling, ...]:
    """Every group of a file. Raises ConfigError when it cannot be read or is not such a file."""
    source = Path(path).expanduser()
    document = read_yaml(source)
    groups = document.get("couplings") if isinstance(document, Mapping) else None
    if not isinstance(groups, Mapping) or not groups:
        raise ConfigError(f"{source} does not hold couplings: expected 'couplings:' and named groups below it")
    try:
        return tuple(_coupling(str(name), entry) for name, entry in groups.items())
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


def coupling_of_joints(couplings: Sequence[Coupling], joint_names: Sequence[str]) -> Coupling:
    """Those groups of which there are joints, and the other joints (n) with a motor each.

    Raises
    ------
    ConfigError
        When only a part of a coupled group is there.
    """
    return combined(_wanted(couplings, joint_names))


def _wanted(couplings: Sequence[Coupling], joint_names: Sequence[str]) -> list[Coupling]:
    kept = [coupling for coupling in couplings if set(coupling.joint_names) & set(joint_names)]
    missing = [name for coupling in kept for name in coupling.joint_names if name not in joint_names]
    if missing:
        raise ConfigError(
            f"{choices(missing)} shares motors with joints of the data, and is not among them: record it too, or leave "
            f"these out; there are {choices(joint_names)}"
        )
    coupled = {name for coupling in kept for name in coupling.joint_names}
    alone = [name for name in joint_names if name not in coupled]
    return [*kept, uncoupled(alone)] if alone else kept


def _coupling(name: str, entry: Any) -> Coupling:
    if not isinstance(entry, Mapping) or set(entry) != set(_KEYS):
        raise ConfigError(f"the coupling {name!r} must hold {choices(_KEYS)}")
    joints, motors = (_names(name, entry, key) for key in ("joints", "motors"))
    try:
        return Coupling(joints, motors, _matrix(entry["matrix"]))
    except ConfigError as error:
        raise ConfigError(f"coupling {name!r}: {error}") from None


def _names(name: str, entry: Mapping[str, Any], key: str) -> tuple[str, ...]:
    names = entry[key]
    if not isinstance(names, list) or not all(isinstance(item, str) for item in names):
        raise ConfigError(f"'{key}' of the coupling {name!r} must be a list of names, it is {names!r}")
    return tuple(names)


def _matrix(rows: Any) -> FloatArray:
    try:
        return np.array(rows, dtype=float)
    except (TypeError, ValueError):
        raise ConfigError(f"'matrix' must be a list of rows of numbers, all as long, it is {rows!r}") from None
