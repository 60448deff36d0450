"""First phase: friction of a motor that is not driven. Second phase: its torque by PWM or current."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from friction_estimator.errors import InputError
from friction_estimator.identification.linear_problem import LinearFit, LinearProblem, SolverOptions, rms, solve_values
from friction_estimator.identification.motor.problem import (
    GAIN,
    INERTIA,
    OFFSET,
    UNITS,
    FrictionUnknowns,
    MotorLaw,
    best_stribeck_velocity,
    friction_problem,
    registered_law,
    search_range,
    weak_prior,
    with_column,
)
from friction_estimator.identification.motor.samples import MotorSamples
from friction_estimator.identification.result import propagated_sigma
from friction_estimator.identification.uncertainty import solve
from friction_estimator.laws import make_law
from friction_estimator.types import FloatArray

_ROUNDS = 2
_SURE = 3.0
"""Standard deviations from zero that a gain must have, where friction is unknown, too."""
_LEAST_SHARE = 0.01
"""Share of the torque that the drive must explain then."""


@dataclass(frozen=True, slots=True)
class DriveFit:
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


@dataclass(frozen=True, slots=True)
class MotorFriction:
    """Friction and reflected inertia of one motor, at the output of its gearbox.

    Attributes
    ----------
    motor : its name
    law_name : in the registry
    law : the columns behind it
    values : (q + 1) parameters of the law, then the inertia [kg m^2]
    covariance : (q + 1, q + 1) zero where a value was given
    offset, offset_sigma : constant torque that acts on the motor although it is not driven, tau_0 and the offset of the
        torque sensor together; zero when it was not estimated [N m]
    fit : the linear problem that was solved, for its residuals and condition
    gain : torque by the drive, where it was an unknown of the same problem
    """

    motor: str
    law_name: str
    law: MotorLaw
    values: FloatArray
    covariance: FloatArray
    offset: float
    offset_sigma: float
    fit: LinearFit
    gain: DriveFit | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """(q + 1) of the values."""
        return (*make_law(self.law_name).parameter_names, INERTIA)

    @property
    def units(self) -> tuple[str, ...]:
        """(q + 1) of the values."""
        return (*make_law(self.law_name).units, "kg m^2")

    def friction(self, velocity: FloatArray) -> FloatArray:
        """Friction torque (r,) at velocities (r,) of the motor [N m], in the sign of the velocity."""
        return make_law(self.law_name).torque(self.values[None, :-1], velocity)

    def torque(self, velocity: FloatArray, acceleration: FloatArray) -> FloatArray:
        """What the motor must give before anything reaches the joints: friction and inertia (r,) [N m]."""
        return self.friction(velocity) + self.values[-1] * acceleration

    def jacobian(self, velocity: FloatArray, acceleration: FloatArray) -> FloatArray:
        """Derivative (r, q + 1) of `torque` by the values."""
        p = len(self.law.parameter_names)
        columns = [self.law.columns(velocity)]
        if self.values.size - 1 > p:
            columns.append(self.law.rate(velocity, self.values[:p])[:, None])
        return np.hstack([*columns, acceleration[:, None]])

    def sigma(self, velocity: FloatArray, acceleration: FloatArray) -> FloatArray:
        """Standard deviation (r,) of `torque` from that of the values [N m]."""
        return propagated_sigma(self.jacobian(velocity, acceleration), self.covariance)


def fit_motor_friction(
    samples: MotorSamples, unknowns: FrictionUnknowns, driving: FloatArray, solver: SolverOptions
) -> MotorFriction:
    """Friction from ``driving - tau = I domega + f(omega)`` (Guedelha et al. 2017, eqs. 19-22 and 29-31, our sign).

    Parameters
    ----------
    samples : of the motor, stick phases left out
    unknowns : what to find
    driving : (r,) torque of the motor, zero with PWM = 0 [N m]
    solver : weights and bounds

    Raises
    ------
    InputError
        When samples are too few, or all in one direction.
    """
    law = unknowns.law.as_seen(samples.velocity)
    _check_enough(samples, law)
    measured = driving - samples.torque - (unknowns.inertia or 0.0) * samples.acceleration
    problem = friction_problem(samples, law, measured, unknowns)
    if not unknowns.search:
        return _result(samples.motor, law, solve(problem, solver, weak_prior(problem)), unknowns)
    for _ in range(_ROUNDS):  # weights and Stribeck velocity each as if the other were known
        weights = solve_values(problem, solver, weak_prior(problem)).weights
        law = best_stribeck_velocity(samples, law, measured, unknowns, weights)
        problem = friction_problem(samples, law, measured, unknowns)
    best = solve(problem, solver, weak_prior(problem))
    free = best.values[: law.basis.shape[1]]
    rate = law.rate(samples.velocity, law.basis @ free) + law.columns(samples.velocity) @ law.basis_rate(free)
    if not rate.any():  # no static friction shows in either direction, and with it no Stribeck velocity
        low, high = search_range(samples.velocity)
        return _result(samples.motor, law, best, unknowns, law.stribeck_velocity * np.log(high / low) / np.sqrt(12.0))
    both = with_column(problem, f"{samples.motor}/stribeck_velocity", "rad/s", rate)
    widened = solve(both, solver, weak_prior(both))
    found = np.append(best.values, 0.0)  # of the linearised problem, at the point where it was linearised
    return _result(samples.motor, law, replace(widened, values=found, residual=best.residual), unknowns)


def _check_enough(samples: MotorSamples, law: MotorLaw) -> None:
    wanted = 10 * (len(law.parameter_names) + 2)
    for direction, word in ((1.0, "positive"), (-1.0, "negative")):
        count = np.count_nonzero(np.sign(samples.velocity) == direction)
        if count < wanted:
            raise InputError(
                f"the motor {samples.motor!r} slides in {count} samples in the {word} direction, {wanted} are needed: "
                "move it to and fro, slowly and fast, or leave its joint out (--joints)"
            )


def _result(
    motor: str, law: MotorLaw, fit: LinearFit, unknowns: FrictionUnknowns, stribeck_sigma: float | None = None
) -> MotorFriction:
    """From the free parameters of a fit to all parameters of the registered law and the inertia.

    ``stribeck_sigma`` is that of a Stribeck velocity that was searched and is no parameter of the fit [rad/s].
    """
    law_name = registered_law(law, unknowns.search)
    p, k = law.basis.shape
    q = len(make_law(law_name).parameter_names)
    values, spread = np.zeros(q + 1), np.zeros((q + 1, fit.values.size))  # how all values hang on the free ones
    values[:p], spread[:p, :k] = law.basis @ fit.values[:k], law.basis
    values[p:q] = law.stribeck_velocity
    if unknowns.search and stribeck_sigma is None:
        spread[p, -1] = 1.0
        spread[:p, -1] = law.basis_rate(fit.values[:k])
    values[-1] = unknowns.inertia or 0.0
    if INERTIA in unknowns.extra:
        values[-1], spread[-1, k] = fit.values[k], 1.0
    offset = k + unknowns.extra.index(OFFSET) if unknowns.offset else None
    covariance = spread @ fit.covariance @ spread.T
    if stribeck_sigma is not None:
        covariance[p, p] = stribeck_sigma**2
    return MotorFriction(
        motor,
        law_name,
        law,
        values,
        covariance,
        0.0 if offset is None else float(fit.values[offset]),
        0.0 if offset is None else float(np.sqrt(fit.covariance[offset, offset])),
        fit,
        _gain_of(motor, fit, k, unknowns),
    )


def _gain_of(motor: str, fit: LinearFit, first: int, unknowns: FrictionUnknowns) -> DriveFit | None:
    """The drive's gain and constant torque of a fit that had them, its extra unknowns beginning at a column."""
    if unknowns.gain is None:
        return None
    places = {name: first + k for k, name in enumerate(unknowns.extra)}
    offset, gain = places.get(OFFSET), places[GAIN]
    covariance = np.zeros((2, 2))
    covariance[1, 1] = fit.covariance[gain, gain]
    if offset is not None:
        covariance = fit.covariance[np.ix_([offset, gain], [offset, gain])]
    constant = 0.0 if offset is None else float(fit.values[offset])
    spread = float(np.sqrt(fit.covariance[gain, gain]))
    size = float(np.std(fit.problem.W[:, gain]))
    if not float(fit.values[gain]) * size > max(_SURE * spread * size, _LEAST_SHARE * rms(fit.problem.y)):
        raise InputError(
            f"friction and drive gain of the motor {motor!r} cannot be separated by driven logs alone: record a log "
            "with PWM = 0 while the joint is moved from outside, or give the known gain (--known-gain)"
        )
    return DriveFit(motor, unknowns.gain, constant, float(fit.values[gain]), covariance, fit)


_LEAST = 30
"""Samples for a line with an offset and the standard deviation of both."""


def fit_drive_gain(samples: MotorSamples, kind: str, friction: MotorFriction, solver: SolverOptions) -> DriveFit:
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
    return DriveFit(samples.motor, kind, float(fit.values[0]), float(fit.values[1]), covariance, fit)
