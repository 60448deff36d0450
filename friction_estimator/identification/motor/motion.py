"""Recorded motion seen from the motors: what moves and what loads each of them behind a coupling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from friction_estimator.config.coupling import Coupling
from friction_estimator.identification.motor.inputs import joint_columns, motor_drive, motor_torque
from friction_estimator.identification.motor.stick import StickOptions, sliding
from friction_estimator.identification.recording.motion import Motion
from friction_estimator.types import BoolArray, FloatArray, IntArray

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
        return MotorSamples(self.motor, *(getattr(self, name)[rows] for name in _SIGNALS))


_SIGNALS = tuple(field.name for field in fields(MotorSamples))[1:]


def motor_samples(
    motions: Sequence[Motion],
    coupling: Coupling,
    kind: str | None,
    stick: StickOptions,
    free: bool,
    inertia: Mapping[str, float],
    known_gain: Mapping[str, float],
) -> tuple[MotorSamples, ...]:
    """All experiments, motor by motor (Guedelha et al. 2017, section 3.4.2).

    Parameters
    ----------
    motions : of the joints, at least those of the coupling
    kind : input that drives the motors; the column of the k-th joint of the coupling holds that of its k-th motor.
        None, or missing in a motion: not driven
    free : the motors are not driven, or their torque is known by the gain, so that the rest of the torque is friction
        and tells stick from slip (see `stick.sliding`)
    inertia : reflected inertia by motor, as far as known [kg m^2]
    known_gain : torque per unit of the drive by motor, where it is known [N m per unit]

    Raises
    ------
    InputError
        When a joint or its torque was not recorded.
    """
    parts: list[tuple[MotorSamples, ...]] = []
    instants = segments = 0
    for motion in motions:
        parts.append(_of_one_motion(motion, coupling, kind, stick, free, inertia, known_gain, segments, instants))
        instants += motion.time.size
        segments += int(motion.segment.max(initial=-1)) + 1
    return tuple(_joined(motor, [part[k] for part in parts]) for k, motor in enumerate(coupling.motor_names))


def _of_one_motion(
    motion: Motion,
    coupling: Coupling,
    kind: str | None,
    stick: StickOptions,
    free: bool,
    inertia: Mapping[str, float],
    known_gain: Mapping[str, float],
    segments: int,
    instants: int,
) -> tuple[MotorSamples, ...]:
    """One experiment, after so many segments and instants of others."""
    columns = joint_columns(motion, coupling)
    stretch = np.cumsum(np.diff(motion.time, prepend=motion.time[:1]) > _GAP * motion.period, dtype=np.intp)
    velocity = coupling.motor_velocity(motion.velocity[:, columns])
    acceleration = coupling.motor_velocity(motion.acceleration[:, columns])
    torque, drive = motor_torque(motion, coupling, columns), motor_drive(motion, coupling, columns, kind, free)
    found = []
    for k, motor in enumerate(coupling.motor_names):
        driving = known_gain.get(motor, 0.0) * drive[:, k]
        friction = driving - torque[:, k] - inertia.get(motor, 0.0) * acceleration[:, k]
        slides = sliding(velocity[:, k], stretch, motion.period, stick, np.nan_to_num(friction) if free else None)
        found.append(
            MotorSamples(
                motor,
                velocity[:, k],
                acceleration[:, k],
                torque[:, k],
                drive[:, k],
                motion.segment + segments,
                np.arange(instants, instants + motion.time.size),
                slides & np.isfinite(friction) & np.isfinite(drive[:, k]),
            )
        )
    return tuple(found)


def _joined(motor: str, parts: Sequence[MotorSamples]) -> MotorSamples:
    """One after another; no samples when there are no parts."""
    none, number = np.zeros(0), np.zeros(0, dtype=np.intp)
    parts = [MotorSamples(motor, none, none, none, none, number, number, none.astype(bool)), *parts]
    return MotorSamples(motor, *(np.concatenate([getattr(part, name) for part in parts]) for name in _SIGNALS))
