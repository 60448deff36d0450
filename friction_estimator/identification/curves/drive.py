"""Recordings of motors that move joints: friction as the torque behind the transmission shows it, with its columns.

The first part finds stick phases of a motor from its velocity: samples in which it slides are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

import numpy as np
from scipy.ndimage import maximum_filter1d

from friction_estimator.config.robot import Coupling
from friction_estimator.errors import ConfigError, InputError, choices
from friction_estimator.identification.curves.problem import COLUMN, ExtraColumn
from friction_estimator.identification.joint_log import DRIVEN, FRICTION_INPUT, SLIDES, JointLog
from friction_estimator.identification.recording.motion import Motion, Treatment, at_motors, to_motions
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import BoolArray, FloatArray, IntArray

_STOP_NOISE = 4.0
"""Standard deviations of its noise beyond which the sign of a velocity is certain."""
BY_HAND = 0.5
"""Time within which the velocity of a motor that a hand moves is close to a parabola [s]."""
_PARABOLA_SAMPLES = 10
"""Independent samples within which any velocity is taken for one."""
_LEAST_SPEED_IN_MOTION = 0.1
"""A window is in motion when its slowest sample is faster than this share of the RMS velocity."""
_SLIP_MARGIN = 0.05
"""Cut from both ends of every slip: filters have smeared the stick phase into it [s]."""


def velocity_noise(velocity: FloatArray, stretch: IntArray, period: float, window: float) -> float:
    """Standard deviation of the noise in a velocity (N,) [rad/s], from its quietest quarter of windows in motion.

    Within a window [s] motion is close to a parabola; what is left around it is noise. The lower quartile leaves out
    the windows where it is not. Windows at rest do not count: there an encoder reads one and the same step and has no
    noise at all. The parabola takes up three degrees of freedom, more in a filtered signal, whose noise is then a
    little larger than estimated. ``stretch`` (N,) numbers the stretches without a gap in time.
    """
    length = max(round(window / period), _PARABOLA_SAMPLES)
    starts = [k for k in range(0, velocity.size - length + 1, length) if stretch[k] == stretch[k + length - 1]]
    if not starts:
        return 0.0
    windows = np.stack([velocity[k : k + length] for k in starts], axis=1)
    moves = np.abs(windows).min(axis=0) > _LEAST_SPEED_IN_MOTION * np.sqrt(np.mean(velocity**2))
    if moves.any():
        windows = windows[:, moves]
    basis = np.linalg.qr(np.vander(np.linspace(-1.0, 1.0, length), 3))[0]
    around = windows - basis @ (basis.T @ windows)
    return float(np.sqrt(np.quantile((around**2).sum(axis=0) / (length - 3), 0.25)))


def least_certain_speed(velocity: FloatArray, stretch: IntArray, period: float, cutoff_hz: float) -> float:
    """Speed from which on the sign of a velocity (N,) is certain [rad/s]; below, the joint may be at rest.

    ``stretch`` (N,) numbers the stretches without a gap in time, ``period`` [s] is that of the samples, and
    ``cutoff_hz`` the cut-off of the low-pass that the velocity has passed.
    """
    return _STOP_NOISE * velocity_noise(velocity, stretch, period, min(0.5 * _PARABOLA_SAMPLES / cutoff_hz, BY_HAND))


def sliding(velocity: FloatArray, stretch: IntArray, period: float, dead_zone: float | None = None) -> BoolArray:
    """True (N,) where one motor slides; False in stick phases, reversals, edges of stretches, and their margins.

    Parameters
    ----------
    velocity : (N,) [rad/s]
    stretch : (N,) number of the stretch without a gap in time
    period : between two samples [s]
    dead_zone : slower samples stick [rad/s]; None: four standard deviations of the noise of the velocity
    """
    stop = _STOP_NOISE * velocity_noise(velocity, stretch, period, BY_HAND) if dead_zone is None else dead_zone
    direction = np.where(np.abs(velocity) > stop, np.sign(velocity), 0.0)
    change = (np.diff(direction) != 0.0) | (np.diff(stretch) != 0)
    margin = round(_SLIP_MARGIN / period)
    sticks = (direction == 0.0) | (margin > 0) & (np.append(change, True) | np.append(True, change))
    return ~maximum_filter1d(sticks, max(2 * margin - 1, 1), mode="nearest")


JOINT_TORQUE = "joint_torque"
DRIVES = ("pwm", "current")
_UNITS = {"pwm": "N m/pwm", "current": "N m/A"}
INERTIA = ExtraColumn("inertia", "kg m^2", nonnegative=True)
DAMPING = ExtraColumn("drive_damping", "N m s/rad", nonnegative=True)
"""Of a motor that is driven, beyond its friction without drive: back EMF of a winding that is closed then only."""
FREE_OFFSET, DRIVE_OFFSET = ExtraColumn("free_offset", "N m"), ExtraColumn("drive_offset", "N m")
DRIVE_GAIN = "drive_gain"
_VALUES_LEFT_OUT = {JOINT_TORQUE: np.nan, **dict.fromkeys(DRIVES, 0.0)}
"""What driven samples of a free log have in place of their torque and drive."""
COUNTS_AS_FREE = "it counts as free, without these samples"
_UNDRIVEN = 0.01
"""A drive below this share of its largest value in the other logs counts as zero."""
_FEW_DRIVEN = 0.05
"""Share of driven samples below which a warning asks whether the log is meant to be driven."""
_MOST_POWER_BACK = 0.1
"""Share of the power that friction may give back before the torque is taken to have the wrong sign."""


@dataclass(frozen=True, slots=True)
class DriveRecording:
    """How recordings show the friction of motors: ``I domega + f(omega) - tau_0 - K u = -tau``.

    Guedelha et al. 2017, eqs. 19-22 and 29-32, in our sign. Logs without and with a drive are rows of one problem: the
    columns of the drive are zero where there was none. The torque ``K u`` is the load of a motor whose gain is known.
    """

    coupling: Coupling  # of motors and joints
    drive: str  # input that drives the motors
    dead_zone: float | None = None  # speed below which a motor sticks, see sliding [rad/s]
    # reflected inertia of the motors, as far as known [kg m^2]
    inertia: Mapping[str, float] = field(default_factory=dict)
    # torque per unit of the drive, as far as known; then all logs show friction, driven or not
    gain: Mapping[str, float] = field(default_factory=dict)

    def for_motor(self, motor: str) -> DriveRecording:
        """Reduce the recording to a motor and those that move the same joints."""
        part = self.coupling.part_of(motor)
        return self if part is None else replace(self, coupling=part)

    @property
    def gain_column(self) -> ExtraColumn:
        """Column of the torque per unit of the drive signal (PWM or current)."""
        return ExtraColumn(DRIVE_GAIN, _UNITS[self.drive])

    @property
    def columns(self) -> tuple[ExtraColumn, ...]:
        """Columns of the measured torque besides friction: inertia, offsets, damping and torque of the drive."""
        return INERTIA, FREE_OFFSET, DRIVE_OFFSET, DAMPING, self.gain_column

    def motions(self, logs: Sequence[JointLog], treatment: Treatment, folds: int) -> list[Motion]:
        """Motions of the motors, logs without a drive first.

        Raises
        ------
        InputError
            When a joint, its torque or its drive was not recorded.
        """
        free, driven = (list(logs), []) if self.gain else separated(logs)[:2]
        chosen = [log.select(self.coupling.joint_names) for log in (*free, *driven)]
        made = to_motions(chosen, treatment, folds)
        return [self._at_motors(motion, is_driven=k >= len(free)) for k, motion in enumerate(made)]

    def _at_motors(self, motion: Motion, is_driven: bool) -> Motion:
        """Motion of the motors, with their friction while they slide and all columns."""
        coupling = self.coupling
        motors = Transmission.from_coupling(coupling, coupling.joint_names)
        position, velocity, acceleration = map(motors.velocity, (motion.position, motion.velocity, motion.acceleration))
        drive = np.nan_to_num(recorded := self._drive_of(motion, is_driven))
        gains = np.array([self.gain.get(motor, 0.0) for motor in coupling.motor_names])
        known = np.array([self.inertia.get(motor, 0.0) for motor in coupling.motor_names])
        friction = gains * drive - motor_torque(motion, coupling)
        if not is_driven:
            self._check_sign(np.nan_to_num(friction), velocity)
        friction -= known * acceleration
        slides = np.column_stack([sliding(one, motion.stretch, motion.period, self.dead_zone) for one in velocity.T])
        ones = np.ones_like(velocity)
        inputs = {
            FRICTION_INPUT: np.where(np.isfinite(recorded), friction, np.nan),
            SLIDES: slides,
            DRIVEN: ones * is_driven,
            COLUMN + INERTIA.name: acceleration,
            COLUMN + FREE_OFFSET.name: -ones * (not is_driven),
            COLUMN + DRIVE_OFFSET.name: -ones * is_driven,
            COLUMN + DAMPING.name: velocity * is_driven,
            COLUMN + DRIVE_GAIN: -drive * is_driven,
        }
        effort = np.where(gains > 0.0, gains * drive, np.nan)
        return replace(
            motion, joint_names=coupling.motor_names, position=position, velocity=velocity, acceleration=acceleration,
            effort=effort, inputs=inputs,
        )  # fmt: skip

    def _drive_of(self, motion: Motion, is_driven: bool) -> FloatArray:
        """PWM or current (N, n) of the motors; zero in a free log that does not have it."""
        if self.drive not in motion.inputs:
            return np.zeros_like(motion.position)
        drive = motion.inputs[self.drive]
        never = np.isnan(drive).all(axis=0)
        if never.any() and is_driven:
            without = [self.coupling.motor_names[k] for k in np.flatnonzero(never)]
            raise InputError(
                f"{motion.name} has no {self.drive!r} of the motors {choices(without)}: leave their joints out"
            )
        return np.where(never, 0.0, drive)

    def _check_sign(self, friction: FloatArray, velocity: FloatArray) -> None:
        """Refuse a torque of motors that are not driven which is zero, or drives them: (N, n) each."""
        power = friction * velocity
        for k, motor in enumerate(self.coupling.motor_names):
            if not friction[:, k].any():
                raise InputError(
                    f"{JOINT_TORQUE!r} of the motor {motor!r} is zero in all samples without drive: was it recorded?"
                )
            if power[:, k].sum() < -_MOST_POWER_BACK * np.abs(power[:, k]).sum():
                raise InputError(
                    f"{JOINT_TORQUE!r} pushes the motor {motor!r} along with its motion although it is not driven: it "
                    "has the wrong sign (it is the torque that the joint exerts on its child link), or the coupling "
                    "matrix has"
                )


def motor_torque(motion: Motion, coupling: Coupling) -> FloatArray:
    """Torques (N, n) of the motors [N m], NaN where that of one of their joints is missing.

    Parameters
    ----------
    motion : of the joints of the coupling

    Raises
    ------
    InputError
        When a joint has no torque at all.
    """
    if JOINT_TORQUE not in motion.inputs:
        raise InputError(
            f"{motion.name} has no {JOINT_TORQUE!r}: the method 'motor' needs the torque behind the transmission; "
            f"it has {choices(motion.inputs)}"
        )
    of_joints = motion.inputs[JOINT_TORQUE]
    missing = np.isnan(of_joints)
    if missing.all(axis=0).any():
        without = [coupling.joint_names[k] for k in np.flatnonzero(missing.all(axis=0))]
        raise InputError(
            f"{motion.name} has no {JOINT_TORQUE!r} of {choices(without)}: leave the joint out, or record it"
        )
    torque = Transmission.from_coupling(coupling, coupling.joint_names).torque(np.nan_to_num(of_joints))
    torque[missing @ (coupling.matrix != 0.0)] = np.nan
    return torque


def drive_kind(logs: Sequence[JointLog], wanted: str | None) -> str:
    """Which recorded input drives the motors: ``pwm`` or ``current``.

    Raises
    ------
    InputError
        When no such input is in all logs, or both are and ``wanted`` is None.
    """
    common = [kind for kind in DRIVES if logs and all(kind in log.inputs for log in logs)]
    if wanted is not None and wanted not in common:
        raise InputError(
            f"the input {wanted!r} was not recorded in all driven logs; all of them have {choices(common)}"
        )
    if wanted is None and len(common) != 1:
        found = "both" if common else "neither of them"
        raise InputError(
            f"driven logs need 'pwm' or 'current' as an input column; they have {found}: choose one by --drive"
        )
    return wanted or common[0]


def separated(logs: Sequence[JointLog]) -> tuple[list[JointLog], list[JointLog], list[str]]:
    """Logs without and with a drive, and the reasons; a log with few driven samples counts as free without these."""
    drives = [{kind: np.abs(np.nan_to_num(log.inputs[kind])) for kind in DRIVES if kind in log.inputs} for log in logs]
    largest = {kind: max(float(one[kind].max(initial=0.0)) for one in drives if kind in one)
               for kind in DRIVES if any(kind in one for one in drives)}  # fmt: skip
    free, driven, reasons = [], [], []
    for log, own in zip(logs, drives, strict=True):
        rows: BoolArray = np.zeros(log.time.size, dtype=bool)
        for kind, drive in own.items():
            rows |= (drive > _UNDRIVEN * largest[kind]).any(axis=1) & (largest[kind] > 0.0)
        sizes = ", ".join(f"{kind} up to {drive.max(initial=0.0):.3g}" for kind, drive in own.items() if drive.any())
        when = f"the first one {log.time[np.argmax(rows)] - log.time[0]:.3f} s after its start"
        why = f"{sizes}; {np.count_nonzero(rows)} of {rows.size} samples have a drive, {when}"
        if rows.mean() >= _FEW_DRIVEN:
            driven.append(log)
            reasons.append(f"{log.name} counts as driven: {why}")
        elif rows.any():
            holes = {kind: hole for kind, hole in _VALUES_LEFT_OUT.items() if kind in log.inputs}
            without = {kind: np.where(rows[:, None], hole, log.inputs[kind]) for kind, hole in holes.items()}
            free.append(replace(log, inputs={**log.inputs, **without}))
            reasons.append(f"{log.name}: {why}: {COUNTS_AS_FREE}")
        else:
            free.append(log)
    return free, driven, reasons


def without_drive(logs: Sequence[JointLog], free: Sequence[str]) -> tuple[list[JointLog], list[str]]:
    """Remove PWM and current from the logs that are stated to be free of a drive; with a sentence about each of them.

    Parameters
    ----------
    free : names of logs, or paths of their files

    Raises
    ------
    ConfigError
        When none of the logs has such a name.
    """
    stated = {log.name: [text for text in free if _names(text, log)] for log in logs}
    if unknown := set(free).difference(*stated.values()):
        raise ConfigError(
            f"{choices(unknown)} is stated to be free and is none of the recordings; they are {choices(stated)}"
        )
    kept = [
        replace(
            log, inputs={kind: one for kind, one in log.inputs.items() if not stated[log.name] or kind not in DRIVES}
        )
        for log in logs
    ]
    return kept, [f"{name} counts as free, as given" for name, given in stated.items() if given]


def _names(text: str, log: JointLog) -> bool:
    """Whether a text is the name of a log, or ends as the path of its file does."""
    own, path = PurePath(log.name).parts, PurePath(text)
    return own in (path.parts[-len(own) :], (*path.parent.parts, path.stem)[-len(own) :])


def curve_motions(
    logs: Sequence[JointLog],
    joint: str,
    treatment: Treatment,
    folds: int,
    coupling: Coupling | None = None,
    drive: DriveRecording | None = None,
) -> list[Motion]:
    """Motions with the friction of a joint, or of the motors that move it together, as the input ``friction``.

    Parameters
    ----------
    logs, joint : recordings, and the joint or motor
    treatment : how signals are filtered
    folds : number of parts of each recording for the validation
    coupling : of the motor with others that move the same joints
    drive : how friction follows from the torque behind the transmission; None: it was measured
    """
    if drive is not None:
        return drive.motions(logs, treatment, folds)
    joints = (joint,) if coupling is None else coupling.joint_names
    group = Transmission.from_coupling(coupling, joints)
    return [at_motors(motion, group) for motion in to_motions([log.select(joints) for log in logs], treatment, folds)]
