"""What was found of the motors, in the types that files, reports and the live node know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.identification.motor.drive_gain import UNITS, DriveGain
from friction_estimator.identification.motor.friction import MotorFriction
from friction_estimator.identification.motor.motion import MotorSamples
from friction_estimator.identification.motor.problem import OFFSET
from friction_estimator.identification.regression.least_squares import SolverOptions, solve
from friction_estimator.identification.regression.linear_problem import select_rows
from friction_estimator.identification.regression.validation import fold_numbers, held_out_prediction
from friction_estimator.identification.result import FrictionSamples, JointScore, ParameterTable
from friction_estimator.laws.identified import IdentifiedParameters
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
    gain: DriveGain | None


def identified_friction(results: Sequence[MotorResult]) -> IdentifiedParameters:
    """Law and parameters by the name of the motor, padded to the law with most parameters."""
    width = max(result.friction.values.size - 1 for result in results)
    values, covariance = np.zeros((len(results), width)), np.zeros((len(results), width, width))
    unexplained, noise = (np.zeros(len(results)) for _ in range(2))
    for row, result in enumerate(results):
        p = result.friction.values.size - 1
        values[row, :p] = result.friction.values[:p]
        covariance[row, :p, :p] = result.friction.covariance[:p, :p]
        unexplained[row], noise[row] = _variances(result.friction.fit.residual)
    return IdentifiedParameters(
        tuple(result.free.motor for result in results),
        tuple(result.friction.law_name for result in results),
        values,
        covariance,
        unexplained,
        noise,
        np.array([float(result.friction.fit.residual.size) for result in results]),
    )


def parameter_table(results: Sequence[MotorResult]) -> ParameterTable:
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
        if friction.offset_sigma > 0.0:
            rows.append((f"{motor}/{OFFSET}", "N m", friction.offset, friction.offset_sigma))
        if gain is not None:
            spread = np.sqrt(np.diagonal(gain.covariance))
            rows.append((f"{motor}/drive_offset", "N m", gain.offset, float(spread[0])))
            rows.append((f"{motor}/drive_gain", UNITS[gain.kind], gain.gain, float(spread[1])))
    names, units, values, sigmas = zip(*rows, strict=True)
    return ParameterTable(names, units, np.array(values), np.array(sigmas))


def motor_score(result: MotorResult, solver: SolverOptions, folds: int) -> JointScore:
    """Held-out error of the first phase: the torque behind the transmission by friction and inertia."""
    problem = result.friction.fit.problem
    used = result.free.slides
    acceleration = result.free.acceleration[used]

    def estimate(rows: BoolArray) -> FloatArray:
        return solve(select_rows(problem, rows), solver).values

    held_out = held_out_prediction(problem, fold_numbers(problem.segment, folds), estimate)
    torque = result.free.torque[used] - result.driving[used]
    inertia = float(result.friction.values[-1])
    return JointScore(
        result.free.motor,
        torque_rms=_rms(torque),
        rigid_body_error=_rms(torque + inertia * acceleration) if inertia > 0.0 else float("nan"),
        model_error=_rms(problem.y - held_out),
        fit_error=_rms(result.friction.fit.residual),
        samples=problem.y.size,
    )


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


def _rms(error: FloatArray) -> float:
    return float(np.sqrt(np.mean(error**2)))
