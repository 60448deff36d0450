"""Second phase: torque of a motor by PWM or current, once its friction is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.errors import InputError
from friction_estimator.identification.motor.friction import MotorFriction
from friction_estimator.identification.motor.motion import MotorSamples
from friction_estimator.identification.regression.least_squares import SolverOptions, solve
from friction_estimator.identification.regression.linear_problem import LinearFit, LinearProblem
from friction_estimator.types import FloatArray

UNITS = {"pwm": "N m/pwm", "current": "N m/A"}
_LEAST = 30
"""Samples for a line with an offset and the standard deviation of both."""


@dataclass(frozen=True, slots=True)
class DriveGain:
    """``motor torque = offset + gain * drive`` at the output of the gearbox.

    Attributes
    ----------
    motor : its name
    kind : ``pwm`` or ``current``
    offset : tau_0 [N m]
    gain : K_pwm* [N m per unit of the drive]
    covariance : (2, 2) of offset and gain, with what is not known of the friction
    fit : the linear problem that was solved
    """

    motor: str
    kind: str
    offset: float
    gain: float
    covariance: FloatArray
    fit: LinearFit


def fit_drive_gain(samples: MotorSamples, kind: str, friction: MotorFriction, solver: SolverOptions) -> DriveGain:
    """Gain and offset from ``tau + I domega + f(omega) = tau_0 + K u`` (Guedelha et al. 2017, eq. 32).

    Friction is held at what the first phase found. Its error moves gain and offset by ``A J``, with A the solution
    operator of this fit and J the Jacobian of the friction, so ``A J P J^T A^T`` adds to their covariance: an error in
    sigma+ or K_v does not average out over the samples.

    Raises
    ------
    InputError
        When samples are too few, or the drive does not change.
    """
    if samples.velocity.size < _LEAST:
        raise InputError(
            f"the motor {samples.motor!r} slides in {samples.velocity.size} samples of the driven logs, "
            f"{_LEAST} are needed: drive it until it moves"
        )
    if np.ptp(samples.drive) < 1e-9 * np.abs(samples.drive).max(initial=1.0):
        raise InputError(
            f"{kind} of the motor {samples.motor!r} is {samples.drive[0]:g} in all samples: it must change"
        )
    problem = LinearProblem(
        (f"{samples.motor}/drive_offset", f"{samples.motor}/drive_gain"),
        ("N m", UNITS[kind]),
        np.column_stack((np.ones_like(samples.drive), samples.drive)),
        samples.torque + friction.torque(samples.velocity, samples.acceleration),
        np.zeros(samples.drive.size, dtype=np.intp),
        samples.segment,
        np.array([False, False]),
        samples.instant,
    )
    fit = solve(problem, solver)
    weighted = problem.W * fit.weights[:, None]
    moved = np.linalg.solve(
        weighted.T @ problem.W, weighted.T @ friction.jacobian(samples.velocity, samples.acceleration)
    )
    covariance = fit.covariance + moved @ friction.covariance @ moved.T
    return DriveGain(samples.motor, kind, float(fit.values[0]), float(fit.values[1]), covariance, fit)
