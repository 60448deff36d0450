"""What the method `motor` reads from a log: quiet velocities, torques behind the transmission, drives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from friction_estimator.config.coupling import Coupling
from friction_estimator.errors import InputError, choices
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.identification.recording.motion import Motion
from friction_estimator.identification.recording.zero_phase import to_motion
from friction_estimator.types import FloatArray

TORQUE = "joint_torque"
DRIVES = ("pwm", "current")


def quiet_motion(log: JointLog, cutoff_hz: float | None) -> Motion:
    """Motion with as little noise in its velocities as their spectrum allows: near standstill friction hangs on them.

    The torque is not filtered: noise in it averages out, that of a velocity inside of a friction law does not.
    """
    motion = to_motion(log, cutoff_hz)
    if cutoff_hz is not None or not np.isfinite(motion.parallel_hz):
        return motion
    said = f"velocities are filtered at {motion.parallel_hz:.3g} Hz: near standstill friction hangs on their noise"
    return replace(to_motion(log, motion.parallel_hz), choices=(*motion.choices, said))


def drive_kind(motions: Sequence[Motion], wanted: str | None) -> str:
    """Which of the recorded inputs drives the motors.

    Raises
    ------
    InputError
        When it was not recorded in all of them, or nothing tells which one is meant.
    """
    common = [kind for kind in DRIVES if all(kind in motion.inputs for motion in motions)]
    if wanted is not None and wanted not in common:
        raise InputError(
            f"the input {wanted!r} was not recorded in all driven logs; all of them have {choices(common)}"
        )
    if wanted is None and len(common) != 1:
        found = "both" if common else "neither of them"
        raise InputError(f"driven logs need 'pwm' or 'current' as an input column; they have {found}: say which to use")
    return wanted or common[0]


def joint_columns(motion: Motion, coupling: Coupling) -> list[int]:
    """Which columns of a motion are the joints of a coupling.

    Raises
    ------
    InputError
        When one was not recorded.
    """
    missing = [joint for joint in coupling.joint_names if joint not in motion.joint_names]
    if missing:
        raise InputError(f"{motion.name} has no joint {choices(missing)}; it has {choices(motion.joint_names)}")
    return [motion.joint_names.index(joint) for joint in coupling.joint_names]


def motor_torque(motion: Motion, coupling: Coupling, columns: list[int]) -> FloatArray:
    """Torques (N, n) of the motors [N m], NaN where that of one of their joints is missing.

    Raises
    ------
    InputError
        When there is none at all of one of the joints.
    """
    if TORQUE not in motion.inputs:
        raise InputError(
            f"{motion.name} has no {TORQUE!r}: the method 'motor' needs the torque behind the transmission; "
            f"it has {choices(motion.inputs)}"
        )
    of_joints = motion.inputs[TORQUE][:, columns]
    missing = np.isnan(of_joints)
    if missing.all(axis=0).any():
        without = [coupling.joint_names[k] for k in np.flatnonzero(missing.all(axis=0))]
        raise InputError(f"{motion.name} has no {TORQUE!r} of {choices(without)}: leave the joint out, or record it")
    torque = coupling.motor_torque(np.nan_to_num(of_joints))
    torque[missing @ (coupling.matrix != 0.0)] = np.nan
    return torque


def motor_drive(motion: Motion, coupling: Coupling, columns: list[int], kind: str | None, free: bool) -> FloatArray:
    """PWM or current (N, n) of the motors; zero in a free log that does not have it.

    Raises
    ------
    InputError
        When a driven log has none of one of the motors.
    """
    if kind is None or kind not in motion.inputs:
        return np.zeros((motion.time.size, len(columns)))
    drive = motion.inputs[kind][:, columns]
    never = np.isnan(drive).all(axis=0)
    if never.any() and not free:
        without = [coupling.motor_names[k] for k in np.flatnonzero(never)]
        raise InputError(f"{motion.name} has no {kind!r} of the motors {choices(without)}: leave their joints out")
    return np.where(never, 0.0, drive)
