"""Result of the method `motor`: parameters, scores, figures and findings of every motor, and what it predicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from friction_estimator.config.robot import Coupling
from friction_estimator.errors import InputError
from friction_estimator.identification.joint_log import JointLog, Motion, Treatment
from friction_estimator.identification.linear_problem import (
    SolverOptions,
    folds_of,
    held_out_prediction,
    rms,
    select_rows,
    solve_values,
)
from friction_estimator.identification.motor.fit import DriveFit, MotorFriction
from friction_estimator.identification.motor.problem import OFFSET, UNITS, weak_prior
from friction_estimator.identification.motor.samples import (
    MotorSamples,
    StickOptions,
    advanced,
    motor_samples,
    separated,
)
from friction_estimator.identification.recording.zero_phase import to_motion
from friction_estimator.identification.result import (
    DriveGain,
    Finding,
    FrictionSamples,
    JointScore,
    ParameterTable,
    joined,
)
from friction_estimator.identification.scoring import Rows
from friction_estimator.laws import make_law
from friction_estimator.laws.joint_laws import IdentifiedParameters
from friction_estimator.types import BoolArray, FloatArray

_FIGURE_SAMPLES = 2000


@dataclass(frozen=True, slots=True)
class MotorResult:
    """One motor.

    Attributes
    ----------
    free : all its samples of the free logs
    driving : (r,) its torque in them, zero unless a known gain and a drive make one [N m]
    friction : of the first phase
    gain : of the second phase, None without driven logs
    """

    free: MotorSamples
    driving: FloatArray
    friction: MotorFriction
    gain: DriveFit | None


def identified_friction(results: Sequence[MotorResult]) -> IdentifiedParameters:
    """Law and parameters by the name of the motor."""
    fits = [result.friction for result in results]
    variances = [_variances(friction.fit.residual) for friction in fits]
    return joined(
        [friction.motor for friction in fits],
        [friction.law_name for friction in fits],
        [(friction.values[:-1], friction.covariance[:-1, :-1]) for friction in fits],
        [unexplained for unexplained, _ in variances],
        [noise for _, noise in variances],
        [friction.fit.residual.size for friction in fits],
    )


def motor_parameters(results: Sequence[MotorResult]) -> ParameterTable:
    """Everything that was estimated, motor by motor; given values are not in it."""
    rows: list[tuple[str, str, float, float]] = []
    for result in results:
        friction, gain, motor = result.friction, result.gain, result.free.motor
        sigma = np.sqrt(np.diagonal(friction.covariance))
        estimated = [k for k in range(sigma.size) if sigma[k] > 0.0 or k < sigma.size - 1]
        rows += [
            (f"{motor}/{friction.names[k]}", friction.units[k], float(friction.values[k]), float(sigma[k]))
            for k in estimated
        ]
        if friction.offset_sigma > 0.0 and friction.gain is None:
            rows.append((f"{motor}/{OFFSET}", "N m", friction.offset, friction.offset_sigma))
        if gain is not None:
            spread = np.sqrt(np.diagonal(gain.covariance))
            rows.append((f"{motor}/drive_offset", "N m", gain.offset, float(spread[0])))
            rows.append((f"{motor}/drive_gain", UNITS[gain.kind], gain.gain, float(spread[1])))
    names, units, values, sigmas = zip(*rows, strict=True)
    return ParameterTable(names, units, np.array(values), np.array(sigmas))


def drive_gains(results: Sequence[MotorResult]) -> dict[str, DriveGain]:
    """Torque by PWM or current of the motors that were driven, by the name of the motor."""
    return {
        result.free.motor: DriveGain(result.gain.offset, result.gain.gain, UNITS[result.gain.kind])
        for result in results
        if result.gain is not None
    }


def motor_score(result: MotorResult, own: JointScore, solver: SolverOptions, folds: int) -> JointScore:
    """Errors of the first phase, with that of rows that the fit has not seen.

    Parameters
    ----------
    own : errors of the fit on its own rows
    """
    problem = result.friction.fit.problem

    def estimate(rows: BoolArray) -> FloatArray:
        seen = select_rows(problem, rows)
        return solve_values(seen, solver, weak_prior(seen)).values

    held_out = held_out_prediction(problem, folds_of(problem, folds), estimate)
    return replace(own, model_error=rms(problem.y - held_out))


def motor_figures(result: MotorResult) -> FrictionSamples:
    """Friction over velocity, stick phases among it, thinned out."""
    thin = slice(None, None, max(1, result.free.velocity.size // _FIGURE_SAMPLES))
    friction = result.friction
    velocity, acceleration, torque = (
        signal[thin] for signal in (result.free.velocity, result.free.acceleration, result.free.torque)
    )
    return FrictionSamples(
        result.free.motor,
        velocity,
        result.driving[thin] - torque - friction.values[-1] * acceleration + friction.offset,
        torque,
        friction.friction(velocity),
        friction.sigma(velocity, np.zeros_like(velocity)),
        result.free.slides[thin],
    )


def _variances(residual: FloatArray) -> tuple[float, float]:
    """Of what the law does not explain, and of white noise: that is what neighbouring samples do not share."""
    noise = float(0.5 * np.mean(np.diff(residual) ** 2))
    total = float(np.mean(residual**2))
    return max(total - noise, min(total, noise) * float(np.sqrt(2.0 / residual.size))), noise


_WEAK = 0.1
"""Share of Coulomb friction above which an offset is reported, and of the driving torque for an error."""
_SURE = 3.0
"""Standard deviations from zero."""


def motor_choices(results: Sequence[MotorResult], coupling: Coupling) -> tuple[str, ...]:
    """Decisions from the data, and the meaning of the numbers, one sentence each."""
    notes = ["friction with PWM = 0 has the back EMF in its viscous part (Guedelha et al. 2017, eq. 17)"]
    for joints, motors in coupling.groups:
        if len(joints) > 1:
            notes.append(
                f"{', '.join(joints)} are moved together by {', '.join(motors)}: their friction is given by the name "
                "of the motor, at the output of its gearbox"
            )
    if any(result.friction.offset_sigma == 0.0 for result in results):
        notes.append(
            "free logs are taken to have no constant torque: one of the torque sensor or of an offset current would "
            "make friction of the two directions differ by twice its size"
        )
    for result in results:
        free = result.free
        slowest = np.abs(free.velocity[free.slides]).min(initial=np.inf)
        notes.append(
            f"{free.motor}: {100 * free.slides.mean():.0f} % of the free samples slide, at {slowest:.2g} rad/s and "
            "more; the rest is standstill and its margins"
        )
    return tuple(notes)


def motor_findings(result: MotorResult) -> list[Finding]:
    """Findings about one motor beyond its scores."""
    return [*_about_static_friction(result), *_about_offset(result), *_about_gain(result)]


def _about_static_friction(result: MotorResult) -> list[Finding]:
    friction, motor = result.friction, result.free.motor
    if not friction.law.is_stribeck:
        return []
    found = []
    scale, unseen = friction.law.stribeck_velocity, friction.law.no_static
    if unseen != "none":
        where = "positive and the negative" if unseen == "both" else unseen
        found.append(
            Finding(
                1.3,
                f"{motor}: too few samples slide slower than {scale:.2g} rad/s in the {where} "
                "direction: static friction there is taken to be Coulomb friction; move it more slowly",
            )
        )
    p = len(friction.law.parameter_names)
    if friction.values.size - 1 > p:
        spread = float(np.sqrt(friction.covariance[p, p]))
        if not spread < 0.5 * friction.values[p]:
            found.append(
                Finding(
                    1.25,
                    f"{motor}: the Stribeck velocity {friction.values[p]:.2g} rad/s cannot be seen in this motion "
                    f"(sigma {spread:.2g}): take the published one, or move slower and faster",
                )
            )
    return found


def _about_offset(result: MotorResult) -> list[Finding]:
    friction, gain = result.friction, result.gain
    if friction.offset_sigma == 0.0 and gain is not None:
        if abs(gain.offset) > _SURE * float(np.sqrt(gain.covariance[0, 0])):
            return [
                Finding(
                    1.15,
                    f"{result.free.motor}: a constant torque of {gain.offset:.2g} N m shows when it is driven; if it "
                    "acts with PWM = 0 too (torque sensor, offset current), friction of the directions differs by it",
                )
            ]
    elif gain is not None:
        difference = gain.offset - friction.offset
        spread = float(np.hypot(np.sqrt(gain.covariance[0, 0]), friction.offset_sigma))
        if abs(difference) > _SURE * spread and abs(difference) > _WEAK * float(np.abs(friction.values[0])):
            return [
                Finding(
                    0.8,
                    f"{result.free.motor}: the constant torque is {friction.offset:.2g} N m free and {gain.offset:.2g} "
                    "N m driven: an offset of the torque sensor that moves, or an offset current of the driver",
                )
            ]
    return []


def _about_gain(result: MotorResult) -> list[Finding]:
    gain, motor = result.gain, result.free.motor
    if gain is None:
        return []
    spread, unit = float(np.sqrt(gain.covariance[1, 1])), gain.fit.problem.units[1]
    if gain.gain < _SURE * spread:
        return [
            Finding(
                1.6,
                f"{motor}: the drive gain {gain.gain:.3g} +- {spread:.2g} {unit} is not above zero: check sign and "
                f"column of the {gain.kind}, or record a log in which it is larger",
            )
        ]
    error = 100.0 * gain.fit.relative_error
    return [
        Finding(
            0.2 + (gain.fit.relative_error > _WEAK),
            f"{motor}: {gain.kind} gives {gain.gain:.3g} +- {spread:.2g} {unit}, the torque of driven motion less "
            f"friction is met to {error:.1f} %",
        )
    ]


@dataclass(frozen=True, slots=True)
class MotorPrediction:
    """Torque that each motor passes on to its joints, without and with a drive.

    Attributes
    ----------
    treatment : of the recordings
    delay : by which torques are late [s]
    coupling : of motors and joints
    drive : input that drives the motors
    stick : what counts as standing still
    laws, values : (n) friction law of every motor, and its parameters
    inertia : (n) reflected inertia [kg m^2]
    free_offset : (n) constant torque without a drive [N m]
    drive_offset, drive_gain : (n) torque by the drive, where it was identified; empty: it was not
    known_inertia, known_gain : what was given, by motor: slips are accepted with these
    """

    treatment: Treatment
    delay: float
    coupling: Coupling
    drive: str
    stick: StickOptions
    laws: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    inertia: tuple[float, ...]
    free_offset: tuple[float, ...]
    drive_offset: tuple[float, ...]
    drive_gain: tuple[float, ...]
    known_inertia: Mapping[str, float]
    known_gain: Mapping[str, float]

    def compared(self, logs: Sequence[JointLog], urdf_xml: str | None = None) -> tuple[Rows, list[Motion]]:
        """Rows of recordings of torques behind the transmission, and their motions; no URDF is needed."""
        free, driven = (list(logs), []) if self.known_gain else separated(logs)[:2]
        names = self.coupling.joint_names
        motions = [[to_motion(log.select(names), self.treatment) for log in part] for part in (free, driven)]
        return self.rows(*motions), motions[0] or motions[1]

    def rows(self, free: Sequence[Motion], driven: Sequence[Motion]) -> Rows:
        """Torques of all motions without a drive; where there are none, of those with one.

        Parameters
        ----------
        free, driven : of the joints of the coupling, after the treatment

        Raises
        ------
        InputError
            When all motions are driven, and no gain was identified.
        """
        if not free and not self.drive_gain:
            raise InputError("no drive gain was identified: compare with recordings of motors that are not driven")
        motions = [advanced(motion, self.delay) for motion in free or driven]
        known = self.known_inertia, self.known_gain
        return self.rows_of(
            motor_samples(motions, self.coupling, self.drive, self.stick, bool(free), *known), bool(free)
        )

    def rows_of(self, samples: Sequence[MotorSamples], free: bool) -> Rows:
        """Torques of samples of every motor (n), without a drive or with one, and what is predicted of them."""
        rigid, friction, usable = [], [], []
        for k, one in enumerate(samples):
            drive = np.nan_to_num(one.drive)
            constant, gain = self.free_offset[k], self.known_gain.get(one.motor, 0.0)
            if not free:
                constant, gain = self.drive_offset[k], self.drive_gain[k]
            law = make_law(self.laws[k])
            friction.append(-law.torque(np.array(self.values[k])[None, :], one.velocity))
            rigid.append(constant + gain * drive - self.inertia[k] * one.acceleration)
            usable.append(one.slides)

        def stacked(signals: Sequence[FloatArray]) -> FloatArray:
            return np.stack(signals, axis=1)

        torque = stacked([one.torque for one in samples])
        return Rows(
            names=tuple(one.motor for one in samples),
            velocity=stacked([one.velocity for one in samples]),
            load=torque,
            torque=torque,
            rigid=stacked(rigid),
            friction=stacked(friction),
            usable=np.stack(usable, axis=1),
            limits=np.full(len(samples), np.inf),
        )


def motor_prediction(
    results: Sequence[MotorResult],
    treatment: Treatment,
    delay: float,
    coupling: Coupling,
    kind: str,
    stick: StickOptions,
    known: tuple[Mapping[str, float], Mapping[str, float]],
) -> MotorPrediction:
    """What fits of all motors predict."""
    gains = [result.gain for result in results if result.gain is not None]
    fits = [result.friction for result in results]
    return MotorPrediction(
        treatment,
        delay,
        coupling,
        kind,
        stick,
        laws=tuple(fit.law_name for fit in fits),
        values=tuple(tuple(fit.values[:-1].tolist()) for fit in fits),
        inertia=tuple(float(fit.values[-1]) for fit in fits),
        free_offset=tuple(fit.offset for fit in fits),
        drive_offset=tuple(gain.offset for gain in gains),
        drive_gain=tuple(gain.gain for gain in gains),
        known_inertia=dict(known[0]),
        known_gain=dict(known[1]),
    )
