"""What an exporter works from, and what it returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from textwrap import wrap

import numpy as np

from friction_estimator.config.robot import Coupling
from friction_estimator.errors import ConfigError, choices
from friction_estimator.identification.result import DriveGain, FrictionSamples, Identification
from friction_estimator.laws import FrictionLaw
from friction_estimator.laws.fit_law import CoulombViscousFit, fit_coulomb_viscous
from friction_estimator.laws.identified import IdentifiedParameters, JointLaw, parameters_sigma
from friction_estimator.types import FloatArray

_VELOCITY_BINS = 24  # between the slowest and the fastest sample
_LOAD_QUANTILES = (1.0 / 6.0, 0.5, 5.0 / 6.0)  # middles of three equal parts


def operating_range(samples: FrictionSamples) -> tuple[FloatArray, FloatArray]:
    """Velocities (m,) of some of the used samples, ascending and not zero, and their loads (m,); zero where unknown.

    In each bin of velocities these are the samples at some quantiles of the load. Load and velocity of a machine are
    seldom independent: where friction is most of the torque the load has the sign of the velocity. So they are kept in
    pairs.
    """
    known = bool(np.isfinite(samples.load).any())
    where = samples.used & np.isfinite(samples.velocity) & (samples.velocity != 0.0)
    if known:
        where &= np.isfinite(samples.load)
    velocity, load = samples.velocity[where], samples.load[where] if known else np.zeros(int(where.sum()))
    if not velocity.size:
        return velocity, load
    edges = np.linspace(velocity.min(), velocity.max(), _VELOCITY_BINS + 1)
    of_bin = np.clip(np.searchsorted(edges, velocity, side="right") - 1, 0, _VELOCITY_BINS - 1)
    chosen: set[int] = set()
    for one in np.unique(of_bin):
        rows = np.flatnonzero(of_bin == one)
        rows = rows[np.lexsort((velocity[rows], load[rows]))]
        chosen.update(rows[[int(share * rows.size) for share in _LOAD_QUANTILES]].tolist())
    kept = np.array(sorted(chosen, key=velocity.__getitem__))
    return velocity[kept], load[kept]


_CURVE_POINTS = 200  # of a range of velocities without samples
_UNKNOWN_SPEED = 1.0  # end of that range where it is not known [rad/s]


@dataclass(frozen=True, slots=True)
class ExportedFriction:
    """Friction of one joint, or of one motor that moves several."""

    joint: str  # its name
    law: FrictionLaw  # its friction law
    values: FloatArray  # (p,) of the law, in SI units
    sigma: FloatArray  # (p,) their standard deviations
    # the same as Coulomb and viscous friction, over the velocities at which the friction was seen
    coulomb_viscous: CoulombViscousFit
    velocity: FloatArray  # (m,) those velocities, ascending [rad/s]
    # inertia of motor and gear seen at the joint, None when it was not identified [kg m^2 or kg]
    drive_inertia: float | None
    drive: DriveGain | None = None  # torque by PWM or current, None when it was not identified
    constant: float = 0.0  # identified constant torque that is no part of the law [N m]

    @property
    def reduction(self) -> str:
        """What Coulomb and viscous friction do not express of this joint's law, in one sentence; empty when nothing."""
        if not self.coulomb_viscous.lost:
            return ""
        return (
            f"joint {self.joint!r}: the law {self.law.name!r} became Coulomb and viscous friction, least squares over "
            f"{self.velocity[0]:.3g} ... {self.velocity[-1]:.3g} rad/s; RMS torque "
            f"{self.coulomb_viscous.torque_rms:.2g} N m, not expressed: {'; '.join(self.coulomb_viscous.lost)}"
        )


def joint_frictions(identification: Identification, speed: float | None = None) -> tuple[ExportedFriction, ...]:
    """Friction of every joint of an identification.

    Parameters
    ----------
    identification : from a method or from a parameter file
    speed : agree with the law up to this speed [rad/s], at the loads that were seen; None: at the speeds that were
        seen, or up to 1 rad/s where they are not known

    Raises
    ------
    ConfigError
        When the speed is not positive.
    """
    if speed is not None and not 0.0 < speed < float("inf"):
        raise ConfigError(f"the speed {speed:g} rad/s is not a positive number")
    friction, sigma = identification.friction, parameters_sigma(identification.friction)
    samples, known = {one.joint: one for one in identification.samples}, _speeds(friction)
    joints, table, unseen = [], identification.parameters, unseen_joints(identification)
    for row, joint in enumerate(friction.joint_names):
        if joint in unseen:
            continue
        one = JointLaw.from_identified(friction, joint)
        law, values = one.law, one.values
        velocity, load = _motion(samples.get(joint), known[row], speed)
        simple = fit_coulomb_viscous(law, values, velocity, load)
        inertia = table.value(f"Ia {joint}")  # one that is grouped with inertias of links is not that of the drive
        armature, drive = inertia if inertia >= 0.0 else None, identification.drives.get(joint)
        constant = 0.0 if law.has_offset else float(np.nan_to_num(table.value(f"{joint}/offset")))
        joints.append(
            ExportedFriction(joint, law, values, sigma[row, : values.size], simple, velocity, armature, drive, constant)
        )
    return tuple(joints)


def reductions(joints: Iterable[ExportedFriction]) -> tuple[str, ...]:
    """What Coulomb and viscous friction do not express of the laws of these joints, one sentence each."""
    return tuple(filter(None, (joint.reduction for joint in joints)))


def unseen_joints(identification: Identification) -> tuple[str, ...]:
    """Joints whose friction an identification could not find, because they did not move: it is unknown, not zero."""
    friction = identification.friction
    if not identification.provenance.method:
        return ()
    return tuple(name for name, count in zip(friction.joint_names, friction.samples, strict=True) if count == 0)


def unknown_ranges(identification: Identification) -> tuple[str, ...]:
    """Joints without samples and speed range, for which the speeds of the identification are unknown."""
    friction = identification.friction
    known = {one.joint for one in identification.samples if operating_range(one)[0].size}
    ranges = zip(friction.joint_names, _speeds(friction), strict=True)
    known |= {joint for joint, speeds in ranges if np.isfinite(speeds).all()}
    return tuple(joint for joint in friction.joint_names if joint not in known)


def _speeds(friction: IdentifiedParameters) -> FloatArray:
    """Speeds (n, 2) between which the joints were in motion [rad/s], NaN where unknown."""
    unknown = np.full((len(friction.joint_names), 2), np.nan)
    return unknown if friction.velocity_range is None else friction.velocity_range


def _motion(samples: FrictionSamples | None, speeds: FloatArray, speed: float | None) -> tuple[FloatArray, FloatArray]:
    """Velocities (m,) and loads (m,) of the projection: those seen, stretched or shrunk to a given speed.

    Without samples they are those of the range of speeds (2,) in both directions, and without that up to 1 rad/s.
    """
    velocity, load = np.zeros((2, 0)) if samples is None else operating_range(samples)
    if velocity.size:
        return velocity * (1.0 if speed is None else speed / np.abs(velocity).max()), load
    if speed is None and np.isfinite(speeds).all():
        half = np.linspace(float(speeds[0]), float(speeds[1]), _CURVE_POINTS // 2)
        return np.concatenate((-half[::-1], half)), np.zeros(_CURVE_POINTS)
    return np.linspace(-1.0, 1.0, _CURVE_POINTS) * (_UNKNOWN_SPEED if speed is None else speed), np.zeros(_CURVE_POINTS)


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """Friction to export.

    Raises
    ------
    ConfigError
        When the friction of a motor of the coupling is missing.
    """

    joints: tuple[ExportedFriction, ...]  # friction of every joint
    origin: tuple[str, ...] = ()  # lines that name the source of the numbers, for comments
    model: str = ""  # text of the model that is changed, empty when there is none
    # of the motors among `joints` that move several joints together; None: there are none
    coupling: Coupling | None = None
    # identified bodies, see `identification.result.Identification`
    bodies: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        named = [joint.joint for joint in self.joints]
        missing = [motor for motor in self.motor_names if motor not in named]
        if missing:
            raise ConfigError(
                f"there is no friction of the motor {choices(missing)}, which moves joints together with others; "
                f"there is that of {choices(named)}: give the coupling with which it was identified"
            )

    @property
    def motor_names(self) -> tuple[str, ...]:
        """Motors that move several joints together."""
        return () if self.coupling is None else self.coupling.motor_names

    @property
    def alone(self) -> tuple[ExportedFriction, ...]:
        """Entries of ``joints`` that are no coupled motors."""
        return tuple(joint for joint in self.joints if joint.joint not in self.motor_names)

    @property
    def moved(self) -> tuple[str, ...]:
        """Joints (n) in the order of ``joints``: where that is a motor, the joint at its place."""
        coupling = self.coupling
        place = {} if coupling is None else dict(zip(coupling.motor_names, coupling.joint_names, strict=True))
        return tuple(place.get(joint.joint, joint.joint) for joint in self.joints)


@dataclass(frozen=True, slots=True)
class ExportResult:
    """Text of an exported file, and what its format cannot express."""

    text: str  # of the file
    warnings: tuple[str, ...] = ()  # what the format cannot express, one sentence each


_COMMENT_WIDTH = 118  # lines of 120 characters with the sign of the comment


def hash_comment(notes: Iterable[str]) -> str:
    """Lines that begin with ``#``, for YAML and Python."""
    return "".join(f"# {line}\n" for note in notes for line in wrap(note, _COMMENT_WIDTH, subsequent_indent="  "))
