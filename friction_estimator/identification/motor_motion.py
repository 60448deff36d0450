"""Recorded motion seen from the motors: what moves and what loads each of them behind a coupling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.core.coupling import Coupling
from friction_estimator.core.exceptions import InputError, choices
from friction_estimator.core.types import BoolArray, FloatArray, IntArray
from friction_estimator.identification.motion import Motion
from friction_estimator.identification.stick import StickOptions, sliding

TORQUE = "joint_torque"
DRIVES = ("pwm", "current")
_GAP = 1.5
"""Stamps that are further apart, in periods, are no neighbours."""


@dataclass(frozen=True, slots=True)
class MotorSamples:
    """Signals of one motor at the output of its gearbox, one experiment after another.

    Attributes
    ----------
    motor : its name
    velocity, acceleration : (r,) [rad/s, rad/s^2]
    torque : (r,) what the gearbox passes on to the coupled joints, T^T tau_J [N m]
    drive : (r,) PWM or current in the unit of the recording, zero where the motor was not driven
    segment : (r,) stretch of time, unique over all experiments
    instant : (r,) number of the sample over all experiments
    slides : (r,) False in stick phases and their margins, and where a signal is missing
    """

    motor: str
    velocity: FloatArray
    acceleration: FloatArray
    torque: FloatArray
    drive: FloatArray
    segment: IntArray
    instant: IntArray
    slides: BoolArray

    def select(self, rows: BoolArray) -> MotorSamples:
        """The same with the rows (r,) that are True."""
        return MotorSamples(
            self.motor,
            self.velocity[rows],
            self.acceleration[rows],
            self.torque[rows],
            self.drive[rows],
            self.segment[rows],
            self.instant[rows],
            self.slides[rows],
        )


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


def motor_samples(
    motions: Sequence[Motion],
    coupling: Coupling,
    kind: str | None,
    stick: StickOptions,
    free: bool,
    inertia: Mapping[str, float],
) -> tuple[MotorSamples, ...]:
    """All experiments, motor by motor (Guedelha et al. 2017, section 3.4.2).

    Parameters
    ----------
    motions : of the joints, at least those of the coupling
    kind : input that drives the motors; the column of the k-th joint of the coupling holds that of its k-th motor.
        None, or missing in a motion: not driven
    free : the motors are not driven, so that the torque is friction and tells stick from slip (see `stick.sliding`)
    inertia : reflected inertia by motor, as far as known [kg m^2]

    Raises
    ------
    InputError
        When a joint or its torque was not recorded.
    """
    parts: list[list[MotorSamples]] = [[] for _ in coupling.motor_names]
    instants = segments = 0
    for motion in motions:
        columns = _columns(motion, coupling)
        stretch = np.cumsum(np.diff(motion.time, prepend=motion.time[:1]) > _GAP * motion.period, dtype=np.intp)
        velocity = coupling.motor_velocity(motion.velocity[:, columns])
        acceleration = coupling.motor_velocity(motion.acceleration[:, columns])
        torque = coupling.motor_torque(_torque(motion)[:, columns])
        drive = motion.inputs[kind][:, columns] if kind and kind in motion.inputs else np.zeros_like(torque)
        for k, motor in enumerate(coupling.motor_names):
            friction = -(torque[:, k] + inertia.get(motor, 0.0) * acceleration[:, k])
            known = np.isfinite(friction) & np.isfinite(drive[:, k])
            slides = sliding(velocity[:, k], stretch, motion.period, stick, np.nan_to_num(friction) if free else None)
            parts[k].append(
                MotorSamples(
                    motor,
                    velocity[:, k],
                    acceleration[:, k],
                    torque[:, k],
                    drive[:, k],
                    motion.segment + segments,
                    np.arange(instants, instants + motion.time.size),
                    slides & known,
                )
            )
        instants += motion.time.size
        segments += int(motion.segment.max(initial=-1)) + 1
    return tuple(_joined(motor, samples) for motor, samples in zip(coupling.motor_names, parts, strict=True))


def _columns(motion: Motion, coupling: Coupling) -> list[int]:
    missing = [joint for joint in coupling.joint_names if joint not in motion.joint_names]
    if missing:
        raise InputError(f"{motion.name} has no joint {choices(missing)}; it has {choices(motion.joint_names)}")
    return [motion.joint_names.index(joint) for joint in coupling.joint_names]


def _torque(motion: Motion) -> FloatArray:
    if TORQUE not in motion.inputs:
        raise InputError(
            f"{motion.name} has no {TORQUE!r}: the method 'motor' needs the torque behind the transmission; "
            f"it has {choices(motion.inputs)}"
        )
    return motion.inputs[TORQUE]


def _joined(motor: str, parts: Sequence[MotorSamples]) -> MotorSamples:
    """One after another; no samples when there are no parts."""
    none, number = np.zeros(0), np.zeros(0, dtype=np.intp)
    parts = [MotorSamples(motor, none, none, none, none, number, number, none.astype(bool)), *parts]
    names = ("velocity", "acceleration", "torque", "drive", "segment", "instant", "slides")
    return MotorSamples(motor, *(np.concatenate([getattr(part, name) for part in parts]) for name in names))
