"""Motor torque of drives that get positions, from their commands, readings and gains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from types import MappingProxyType

import numpy as np
from scipy.interpolate import make_interp_spline

from friction_estimator.errors import ConfigError, InputError, choices
from friction_estimator.identification.joint_log import COMMAND, COMMANDED, KD, KP, JointLog
from friction_estimator.identification.recording.sampling import find_stretches, repair, usual_period
from friction_estimator.identification.recording.zero_phase import velocity_is_complete
from friction_estimator.types import FloatArray

Gain = float | Mapping[str, float]
"""Gain of all drives, or of joints by name or pattern such as ``*_calf``, of which the last one that matches holds."""
_DEGREE = 5


def with_drive_torque(log: JointLog, kp: Gain | None = None, kd: Gain | None = None) -> JointLog:
    """The log with the torque ``kp (q_des - q) - kd dq`` of drives that get positions as its ``effort``.

    Parameters
    ----------
    log : with the column ``command/<joint>``, q_des [rad], of every joint
    kp, kd : gains of the drives [N m/rad, N m s/rad]; None: the columns ``kp/<joint>`` and ``kd/<joint>``

    Returns
    -------
    log : the same one without gains when it has a measured torque, or no command

    Raises
    ------
    ConfigError
        When a gain is missing, negative, or of a joint that is not there.
    InputError
        When gains are given and there is no command.
    """
    given = kp is not None or kd is not None
    if not given and (log.effort is not None or not {COMMAND, KP, KD} <= set(log.inputs)):
        return log
    if COMMAND not in log.inputs or np.isnan(log.inputs[COMMAND]).all(axis=0).any():
        raise InputError(
            f"{log.name}: gains of the drives need the column command/<joint> of every joint, the commanded position; "
            f"it has {choices(('position', *log.inputs))}"
        )
    log, _ = repair(log)
    stiffness, damping = (_gains(log, kind, gain) for kind, gain in ((KP, kp), (KD, kd)))
    commanded = stiffness * log.inputs[COMMAND]
    effort = commanded - stiffness * log.position - damping * _velocity(log)
    if not np.isfinite(effort).all():
        raise InputError(f"{log.name}: a command or gain is missing in some samples: leave them out")
    inputs = {**log.inputs, COMMANDED: commanded, KP: stiffness, KD: damping}
    return replace(log, effort=effort, inputs=MappingProxyType(inputs))


def _gains(log: JointLog, kind: str, given: Gain | None) -> FloatArray:
    """Gains (N, n) of all joints."""
    if given is None:
        if kind not in log.inputs:
            raise ConfigError(f"{log.name}: the gain {kind} of the drives is missing: give it, or the column {kind}")
        return log.inputs[kind]
    by_pattern = given if isinstance(given, Mapping) else {"*": given}
    gains = np.full(len(log.joint_names), np.nan)
    for pattern, gain in by_pattern.items():
        matches = np.array([fnmatchcase(joint, pattern) for joint in log.joint_names])
        if not matches.any():
            raise ConfigError(f"{kind}: {pattern!r} matches no joint; the joints are {choices(log.joint_names)}")
        gains[matches] = gain
    wrong = [joint for joint, gain in zip(log.joint_names, gains, strict=True) if not 0.0 <= gain < np.inf]
    if wrong:
        raise ConfigError(f"{kind} of {choices(wrong)} is missing or negative: give it for every joint, zero or more")
    return np.tile(gains, (log.time.size, 1))


def _velocity(log: JointLog) -> FloatArray:
    """Measured velocity (N, n), or the derivative of the position without phase or low-pass [rad/s]."""
    if log.velocity is not None and velocity_is_complete(log):
        return log.velocity
    velocity = np.zeros_like(log.position)
    for stretch in find_stretches(log.time, usual_period(log.time)):
        rows = slice(stretch.start, stretch.stop)
        if stretch.stop - stretch.start > _DEGREE:
            spline = make_interp_spline(log.time[rows], log.position[rows], k=_DEGREE)
            velocity[rows] = spline.derivative()(log.time[rows])
    return velocity
