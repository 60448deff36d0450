"""Warnings about a log: sampling, constant columns, exchanged columns, units, signs of torques."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from friction_estimator.errors import InputError, choices
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.identification.recording.column_checks import column_suspicions, degree_suspicions
from friction_estimator.identification.recording.motion import Motion
from friction_estimator.identification.recording.sampling import find_stretches, repair, usual_period
from friction_estimator.identification.recording.torque_checks import (
    NetWork,
    TorqueSign,
    exchanged_torques,
    exchanged_with_model,
    net_works,
    torque_signs,
    torque_signs_with_model,
)
from friction_estimator.identification.recording.zero_phase import to_motion
from friction_estimator.types import FloatArray

_JITTER = 0.1  # of the period
_LOST = 0.01  # of the samples
_SLOWEST = 0.1  # s between samples: no joint's motion is seen with less


def data_warnings(log: JointLog, position_limits: FloatArray | None = None) -> tuple[str, ...]:
    """Look for the usual mistakes in recordings.

    Parameters
    ----------
    log : as recorded
    position_limits : (n, 2) of the joints, from the URDF; NaN or infinite where there is none [rad or m]

    Returns
    -------
    warnings : one sentence each, with the evidence; empty when the log looks sound

    Raises
    ------
    InputError
        When the log cannot be used at all: too short, time that runs backwards, a tenth of the samples bad, no joint
        that moves.
    """
    whole, notes = repair(log)
    period = usual_period(whole.time)
    if not np.ptp(whole.position, axis=0).any():
        raise InputError(f"{log.name}: every position is constant, so that no joint moves")
    found = [*notes, *_sampling(whole, period), *_constant(whole)]
    found += column_suspicions(whole, period)
    found += degree_suspicions(whole, period, position_limits)
    found += _torque(whole)
    return tuple(f"{log.name}: {text}" for text in found)


def check_torque_signs(motion: Motion, rigid_body_torque: FloatArray | None = None) -> tuple[str, ...]:
    """Find torques that have the wrong sign or belong to another joint.

    Parameters
    ----------
    motion : with effort
    rigid_body_torque : (N, n) inverse dynamics of the motion [N m]; without it, signs are looked for without a model
    """
    signs = torque_signs(motion) if rigid_body_torque is None else torque_signs_with_model(motion, rigid_body_torque)
    inertia = "its own acceleration" if rigid_body_torque is None else "the torque of the rigid-body model"
    found = [_wrong_sign(sign, inertia) for sign in signs if sign.reversed]
    named = {sign.joint for sign in signs if sign.reversed}
    found += [_takes_energy(work) for work in net_works(motion) if work.reversed and work.joint not in named]
    pairs = dict.fromkeys(exchanged_torques(motion), "velocity")
    if rigid_body_torque is not None:
        pairs = dict.fromkeys(exchanged_with_model(motion, rigid_body_torque), "weight and inertia") | pairs
    return (*found, *(_exchanged(*pair, what) for pair, what in pairs.items()))


def _wrong_sign(sign: TorqueSign, inertia: str) -> str:
    return (
        f"effort/{sign.joint} acts against {inertia} ({sign.inertia:.1f} sigma) and along the velocity like a negative "
        f"friction ({sign.friction:.1f} sigma): has it the wrong sign? effort is the torque of the motor on the joint"
    )


def _takes_energy(work: NetWork) -> str:
    return (
        f"effort/{work.joint} acts against its motion all along, {work.turns} times to and fro: the motor takes "
        f"{-work.work:.3g} J instead of giving what friction takes: has it the wrong sign, or did somebody else move "
        "the robot? effort is the torque of the motor on the joint"
    )


def _exchanged(one: str, other: str, what: str) -> str:
    return (
        f"effort/{one} answers to the {what} of {other}, and effort/{other} to that of {one}: are columns of these "
        "joints exchanged?"
    )


def _sampling(log: JointLog, period: float) -> Iterator[str]:
    if period > _SLOWEST:
        yield (
            f"samples are {period:.3g} s apart, too far for the motion of a joint: is time in milliseconds, or the log "
            "thinned out?"
        )
    stretches = find_stretches(log.time, period)
    lengths = [stretch.stop - stretch.start for stretch in stretches]
    jitter = float(np.average([stretch.jitter for stretch in stretches], weights=lengths))
    if jitter > _JITTER:
        yield (
            f"irregular sampling: steps between stamps vary by {100.0 * jitter:.0f} % of {1e3 * period:.4g} ms (RMS): "
            "record the stamps of the driver, not those of the receiver"
        )
    expected = round((log.time[-1] - log.time[0]) / period) + 1
    lost = expected - log.time.size
    if lost > _LOST * expected:
        yield (
            f"{lost} of {expected} samples are missing, in {len(stretches) - 1} gaps and one or two at a time; the "
            f"longest gap has {float(np.diff(log.time).max()):.3g} s: check the load of the recording computer"
        )


def _constant(log: JointLog) -> Iterator[str]:
    for kind, meaning in (
        ("position", "the joint did not move, so its friction cannot be identified"),
        ("velocity", "it is not measured; take the column out"),
        ("effort", "it is not measured; take the column or the joint out"),
    ):
        signal = getattr(log, kind)
        if signal is None:
            continue
        absent = np.isnan(signal).all(axis=0)
        still = np.ptp(log.position, axis=0) == 0.0
        flat = (np.ptp(np.nan_to_num(signal), axis=0) == 0.0) & ~absent & ((kind == "position") | ~still)
        names = [joint for joint, is_flat in zip(log.joint_names, flat, strict=True) if is_flat]
        if names:
            value = float(signal[0, log.joint_names.index(names[0])])
            yield f"{kind} of {choices(names)} is constant ({value:g}): {meaning}"


def _torque(log: JointLog) -> tuple[str, ...]:
    if log.effort is None or math.isnan(np.nanmax(np.abs(log.effort), initial=math.nan)):
        return ()
    try:
        return check_torque_signs(to_motion(log))
    except InputError:  # too short between its edges for this check; the method that needs the motion refuses it
        return ()
