"""Signals of one motor behind a coupling: quiet velocities, torques, drives, and the samples in which it slides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from friction_estimator.config.robot import Coupling
from friction_estimator.errors import ConfigError, InputError, choices
from friction_estimator.identification.curve_problem import FURTHER
from friction_estimator.identification.joint_log import FRICTION, JointLog, Motion
from friction_estimator.types import BoolArray, FloatArray, IntArray

TORQUE = "joint_torque"
DRIVES = ("pwm", "current")


def advanced(motion: Motion, delay: float) -> Motion:
    """The motion with torques that are moved to earlier times [s]; NaN where nothing was recorded late enough."""
    rows = round(delay / motion.period)
    if rows == 0 or TORQUE not in motion.inputs:
        return motion
    torque = np.full_like(motion.inputs[TORQUE], np.nan)
    for start, stop in motion.stretches:
        length = max(stop - start - rows, 0)
        torque[start : start + length] = motion.inputs[TORQUE][stop - length : stop]
    return replace(motion, inputs={**motion.inputs, TORQUE: torque})


def stretch_numbers(motion: Motion) -> IntArray:
    """Number (N,) of the stretch without a gap that every sample belongs to."""
    return np.repeat(np.arange(len(motion.stretches)), [stop - start for start, stop in motion.stretches])


def as_curves(motion: Motion, coupling: Coupling, kind: str | None, free: bool, stick: StickOptions) -> Motion:
    """The motion of the motors, with their torque while they slide as friction, and further columns of it."""
    columns = joint_columns(motion, coupling)
    torque, drive = motor_torque(motion, coupling, columns), motor_drive(motion, coupling, columns, kind, free)
    velocity, acceleration = (
        coupling.motor_velocity(signal[:, columns]) for signal in (motion.velocity, motion.acceleration)
    )
    stretch = stretch_numbers(motion)
    slides = np.stack([sliding(speed, stretch, motion.period, stick) for speed in velocity.T], axis=1)
    inputs = {FRICTION: np.where(slides, -torque, np.nan), FURTHER + "inertia": acceleration}
    if not free:
        inputs[FURTHER + "drive"] = np.nan_to_num(drive)
    position = coupling.motor_velocity(motion.position[:, columns])
    return replace(
        motion, joint_names=coupling.motor_names, position=position, velocity=velocity, acceleration=acceleration,
        effort=None, inputs=inputs,
    )  # fmt: skip


def drive_kind(logs: Sequence[JointLog], wanted: str | None) -> str:
    """Which of the recorded inputs drives the motors.

    Raises
    ------
    InputError
        When it was not recorded in all of them, or both were and none was chosen.
    """
    common = [kind for kind in DRIVES if all(kind in log.inputs for log in logs)]
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


STOP_NOISE = 4.0
"""Standard deviations of its noise beyond which the sign of a velocity is certain."""
START_RATIO = 2.0
"""What must be reached at least once in a slip, as a multiple of the velocity that ends it."""
_NOISE_WINDOW = 0.5
"""Length of the windows in which noise is separated from motion [s]."""
_MOVES = 0.1
"""A window is in motion when its slowest sample is faster than this share of the RMS velocity."""


@dataclass(frozen=True, slots=True)
class StickOptions:
    """What counts as standing still.

    Attributes
    ----------
    stop_velocity : a slip ends when the speed falls below it [rad/s]; None takes it from the noise of the velocity
    start_velocity : a slip counts when it exceeds this at least once [rad/s]; None: twice ``stop_velocity``
    margin : cut from both ends of every slip: filters have smeared the stick phase into it [s]
    shortest : slips that are shorter after that are left out [s]
    """

    stop_velocity: float | None = None
    start_velocity: float | None = None
    margin: float = 0.05
    shortest: float = 0.05

    def __post_init__(self) -> None:
        for name in ("stop_velocity", "start_velocity", "margin", "shortest"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value >= 0.0):
                raise ConfigError(f"{name} of the stick phases is {value!r}, it must be a number, zero or above")


def velocity_noise(velocity: FloatArray, stretch: IntArray, period: float) -> float:
    """Standard deviation of the noise in a velocity (N,) [rad/s], from its quietest quarter of windows in motion.

    Within half a second motion by hand is close to a parabola; what is left around it is noise. The lower quartile
    passes over the windows where it is not. Windows at rest do not count: there an encoder reads one and the same
    step and has no noise at all. The parabola takes three of the samples, and more of a filtered signal, whose noise is
    then a little larger than estimated.
    """
    length = max(round(_NOISE_WINDOW / period), 6)
    starts = [k for k in range(0, velocity.size - length + 1, length) if stretch[k] == stretch[k + length - 1]]
    if not starts:
        return 0.0
    windows = np.stack([velocity[k : k + length] for k in starts], axis=1)
    moves = np.abs(windows).min(axis=0) > _MOVES * np.sqrt(np.mean(velocity**2))
    if moves.any():
        windows = windows[:, moves]
    basis = np.linalg.qr(np.vander(np.linspace(-1.0, 1.0, length), 3))[0]
    around = windows - basis @ (basis.T @ windows)
    return float(np.sqrt(np.quantile((around**2).sum(axis=0) / (length - 3), 0.25)))


def thresholds(options: StickOptions, noise: float) -> tuple[float, float]:
    """Velocities that end and that make a slip [rad/s], the second not below the first."""
    stop = STOP_NOISE * noise if options.stop_velocity is None else options.stop_velocity
    start = START_RATIO * stop if options.start_velocity is None else options.start_velocity
    return stop, max(start, stop)


def sliding(
    velocity: FloatArray,
    stretch: IntArray,
    period: float,
    options: StickOptions,
    friction: FloatArray | None = None,
) -> BoolArray:
    """Where one motor slides, all else are stick phases and their margins.

    A slip is a stretch in one direction that stays above ``stop_velocity`` and somewhere exceeds ``start_velocity``
    (hysteresis: noise cannot start one). When the friction torque is known, it must have taken power from the motor
    over the whole of the slip: what merely springs back in the transmission gives power, and is no slip. The whole slip
    is accepted or left out, never single samples, which would prefer those whose noise has the right sign.

    Parameters
    ----------
    velocity : (N,) [rad/s]
    stretch : (N,) number of the stretch without a gap in time; no slip reaches over two of them
    period : between two samples [s]
    friction : (N,) torque that resists the motion [N m], None when not known

    Returns
    -------
    (N,)
    """
    stop, start = thresholds(options, velocity_noise(velocity, stretch, period))
    direction = np.where(np.abs(velocity) > stop, np.sign(velocity), 0.0)
    margin, shortest = round(options.margin / period), max(round(options.shortest / period), 1)
    slides = np.zeros(velocity.size, dtype=bool)
    for begin, end in _runs(direction, stretch):
        slip = slice(begin, end)
        if direction[begin] == 0.0 or np.abs(velocity[slip]).max() < start:
            continue
        if friction is not None and friction[slip] @ velocity[slip] <= 0.0:
            continue
        if end - begin - 2 * margin >= shortest:
            slides[begin + margin : end - margin] = True
    return slides


def _runs(direction: FloatArray, stretch: IntArray) -> list[tuple[int, int]]:
    """Begin and end of every stretch with one direction in one stretch."""
    change = np.flatnonzero((np.diff(direction) != 0.0) | (np.diff(stretch) != 0)) + 1
    edges = [0, *change.tolist(), direction.size]
    return [(begin, end) for begin, end in zip(edges[:-1], edges[1:], strict=True) if end > begin]


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
        and separates stick from slip (see `sliding`)
    inertia : reflected inertia by motor, as far as known [kg m^2]
    known_gain : torque per unit of the drive by motor, where it is known [N m per unit]

    Raises
    ------
    InputError
        When a joint or its torque was not recorded.
    """
    parts: dict[str, list[MotorSamples]] = {motor: [] for motor in coupling.motor_names}
    instants = segments = 0  # of the experiments so far
    for motion in motions:
        columns = joint_columns(motion, coupling)
        stretch = stretch_numbers(motion)
        velocity = coupling.motor_velocity(motion.velocity[:, columns])
        acceleration = coupling.motor_velocity(motion.acceleration[:, columns])
        torque, drive = motor_torque(motion, coupling, columns), motor_drive(motion, coupling, columns, kind, free)
        for k, motor in enumerate(coupling.motor_names):
            driving = known_gain.get(motor, 0.0) * drive[:, k]
            friction = driving - torque[:, k] - inertia.get(motor, 0.0) * acceleration[:, k]
            slides = sliding(velocity[:, k], stretch, motion.period, stick, np.nan_to_num(friction) if free else None)
            parts[motor].append(
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
        instants += motion.time.size
        segments += int(motion.segment.max(initial=-1)) + 1
    return tuple(_joined(motor, found) for motor, found in parts.items())


def _joined(motor: str, parts: Sequence[MotorSamples]) -> MotorSamples:
    """One after another; no samples when there are no parts."""
    none, number = np.zeros(0), np.zeros(0, dtype=np.intp)
    parts = [MotorSamples(motor, none, none, none, none, number, number, none.astype(bool)), *parts]
    return MotorSamples(motor, *(np.concatenate([getattr(part, name) for part in parts]) for name in _SIGNALS))


UNDRIVEN = 0.01
"""A drive below this share of its largest value in the other logs counts as zero."""
_FEW = 0.05
"""Share of driven samples below which a warning asks whether the log is meant to be driven."""
LEFT_OUT = "it counts as free, without these samples"


def separated(logs: Sequence[JointLog]) -> tuple[list[JointLog], list[JointLog], list[str]]:
    """Logs without and with a drive, and why; a few driven samples of a free log lose their torque."""
    largest = {kind: max(_largest(log, kind) for log in logs) for kind in DRIVES}
    free, driven, reasons = [], [], []
    for log in logs:
        rows = _driven_rows(log, largest)
        if rows.mean() >= _FEW:
            driven.append(log)
            reasons.append(_why_driven(log, rows))
        else:
            free.append(_without(log, rows) if rows.any() else log)
            reasons += [f"{_drive_of(log, rows)}: {LEFT_OUT}"] if rows.any() else []
    return free, driven, reasons


def _without(log: JointLog, rows: BoolArray) -> JointLog:
    """The log without torque and drive at these samples (N,)."""
    holes = {TORQUE: np.nan, **dict.fromkeys(DRIVES, 0.0)}
    return log.changed(lambda kind, signal: np.where(rows[:, None] & (kind in holes), holes.get(kind, 0.0), signal))


def _largest(log: JointLog, kind: str) -> float:
    return float(np.nanmax(np.abs(log.inputs[kind]), initial=0.0)) if kind in log.inputs else 0.0


def _driven_rows(log: JointLog, largest: Mapping[str, float]) -> BoolArray:
    """Where (N,) a PWM or current is above a hundredth of the largest one of all logs."""
    driven: BoolArray = np.zeros(log.time.size, dtype=bool)
    for kind in DRIVES:
        if kind in log.inputs and largest[kind] > 0.0:
            driven |= (np.abs(np.nan_to_num(log.inputs[kind])) > UNDRIVEN * largest[kind]).any(axis=1)
    return driven


def _why_driven(log: JointLog, driven: BoolArray) -> str:
    return f"{log.name} counts as driven: {_drive_of(log, driven).partition(': ')[2]}"


def _drive_of(log: JointLog, driven: BoolArray) -> str:
    size = ", ".join(f"{kind} up to {_largest(log, kind):.3g}" for kind in DRIVES if _largest(log, kind) > 0.0)
    since = log.time[np.argmax(driven)] - log.time[0]
    return (
        f"{log.name}: {size}; {np.count_nonzero(driven)} of {driven.size} samples have a drive, the "
        f"first one {since:.3f} s after its start"
    )
