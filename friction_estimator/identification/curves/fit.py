"""Fit of a friction curve (Egle 2021, eq. 6.4): its shape is searched from many starts, all else is a linear problem.

The second half finds the parameters that the data cannot identify, and the reasons.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import qmc

from friction_estimator.errors import ConfigError, choices
from friction_estimator.identification.curves.problem import (
    ZERO_SLOPES,
    CurveSamples,
    CurveShape,
    ExtraColumn,
    gradient_of,
)
from friction_estimator.identification.linear_problem import (
    LinearFit,
    NormalEquations,
    Prior,
    SolverOptions,
    folds_of,
    solve_values,
)
from friction_estimator.identification.result import VAGUE, more_motion, moves_one_way
from friction_estimator.identification.scoring import FoldedProblem
from friction_estimator.identification.uncertainty import left_out_covariance, with_uncertainty
from friction_estimator.laws import FrictionLaw, Role
from friction_estimator.laws.identified import JointLaw
from friction_estimator.types import BoolArray, FloatArray

_SCREENED_SAMPLES, _POLISHED_SAMPLES = 500, 5000
"""Samples that starts are compared on, and that the best one is refined on: more do not add information."""
_REFINED_STARTS = 12
_ROBUST_ROUNDS = 3
"""Searches of the best shape, each with the robust weights of the one before."""
_EVALUATIONS = 40, 200
_SCREENING_NOISE = 0.01
"""Of the friction, while starts are compared: nothing is known of it yet."""
_TOLERANCE = 1e-7, 1e-12
"""Of the search of a start, and of the best one."""


@dataclass(frozen=True, slots=True)
class CurveOptions:
    """How a curve is fitted."""

    robust: bool = True  # outliers count less; False: the plain squares of Egle 2021, eq. 6.4
    starts: int = 64  # how many shapes are tried
    # see CurveShape
    stribeck_velocity: float | None = None
    zero_slope: str = "none"

    def __post_init__(self) -> None:
        if self.starts < 1:
            raise ConfigError(f"{self.starts} starts: a fit needs at least one start")
        if self.zero_slope not in ZERO_SLOPES:
            raise ConfigError(f"unknown zero slope {self.zero_slope!r}; it is one of {choices(ZERO_SLOPES)}")
        if self.stribeck_velocity is not None and not self.stribeck_velocity > 0.0:
            raise ConfigError(f"the Stribeck velocity is {self.stribeck_velocity!r} rad/s, it must be above zero")

    @property
    def solver(self) -> SolverOptions:
        """Solver options of the linear problem."""
        return SolverOptions(robust=self.robust)

    def form(self, law: FrictionLaw, samples: CurveSamples) -> CurveShape:
        """Linear problems of a law through these samples, one for each shape of its curve."""
        return CurveShape(law, samples, self.stribeck_velocity, self.zero_slope)


@dataclass(frozen=True, slots=True)
class CurveFit:
    """A law through the samples; its covariance allows for residuals that are correlated in time.

    What the data does not show at all has the width of its bounds as standard deviation.
    """

    law: FrictionLaw  # that was fitted
    # (p) parameters of the law, then of the extra columns
    names: tuple[str, ...]
    units: tuple[str, ...]
    # (p,), (p, p)
    values: FloatArray
    covariance: FloatArray
    linear: LinearFit  # of the law about these values, with parameters of the shape counted from there
    prior: Prior  # of the parameters of `linear`

    @property
    def sigma(self) -> FloatArray:
        """Standard deviations (p,) of the parameters."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def extra_parameters(self) -> dict[str, float]:
        """Parameters of the extra columns by name."""
        first = len(self.law.parameters)
        return dict(zip(self.names[first:], self.values[first:].tolist(), strict=True))

    @property
    def friction(self) -> JointLaw:
        """The friction law with its parameters and their covariance, without those of the other columns."""
        q = len(self.law.parameters)
        return JointLaw(self.law, self.values[:q], self.covariance[:q, :q])


def fit_curve(law: FrictionLaw, samples: CurveSamples, options: CurveOptions = CurveOptions()) -> CurveFit:
    """Fit a law: the shape by the trust region reflective method of scipy, the rest by linear least squares.

    Shapes are drawn over the law's ranges, denser where the velocities are. The best dozen is refined, and the best of
    these on more samples.

    Raises
    ------
    InputError
        When there are not more samples than parameters, or nothing moves.
    """
    form = options.form(law, samples.thinned(_POLISHED_SAMPLES))
    z = form.low
    if (form.high > form.low).any():
        z = _searched(form, options.form(law, samples.thinned(_SCREENED_SAMPLES)), options)
    found = solve_values(form.problem(z), options.solver, form.linear_prior(z))
    values = form.values(z, found.values)
    prior, slopes = form.prior(values), form.slopes(values)
    about = replace(found, values=np.where(form.shape, 0.0, values), prior=prior)
    linear = with_uncertainty(form.linearised(values), about)
    return CurveFit(law, form.names, form.units, values, linear.covariance * np.outer(slopes, slopes), linear, prior)


def with_left_out(
    fit: CurveFit, samples: CurveSamples, columns: Collection[ExtraColumn], options: CurveOptions
) -> CurveFit:
    """The fit with what extra columns that were left out may change, as far as the samples leave them open.

    Parameters
    ----------
    samples : those of the fit, with these columns, too
    """
    own = samples.thinned(_POLISHED_SAMPLES)
    signals = own.extra_columns[:, [one in columns for one in own.columns]]
    signals = signals[:, signals.any(axis=0)]
    if not signals.size:
        return fit
    std = samples.torque_rms / np.sqrt(np.mean(signals**2, axis=0))  # no more than the torque that was measured
    slopes = options.form(fit.law, own.without(columns)).slopes(fit.values)
    more = left_out_covariance(fit.linear, fit.prior, signals, std) * np.outer(slopes, slopes)
    return replace(fit, covariance=fit.covariance + more)


def refit(fit: CurveFit, samples: CurveSamples, options: CurveOptions = CurveOptions()) -> FloatArray:
    """Parameters (p,) of the same law for other samples, to first order about the fit."""
    form = options.form(fit.law, samples.thinned(_POLISHED_SAMPLES))
    return form.moved(fit.values, solve_values(form.linearised(fit.values), options.solver, fit.prior).values)


def held_out_curve_error(fit: CurveFit, samples: CurveSamples, options: CurveOptions, folds: int) -> FloatArray:
    """Measured minus predicted friction (N,), each sample by a linear fit that has not seen its fold [N m].

    Parameters
    ----------
    samples : those of ``fit``
    """
    problem, made = CurveShape(fit.law, samples).linearised(fit.values), fit.linear
    fold = folds_of(problem, folds)
    own = fold[samples.every(_POLISHED_SAMPLES)]
    folded = FoldedProblem.from_problem(made.problem, options.solver, fit.prior, own, made.weights)
    return folded.held_out_error(np.arange(fit.values.size), fit.prior, problem, fold)


def _searched(form: CurveShape, coarse: CurveShape, options: CurveOptions) -> FloatArray:
    """Coordinates (s,) of the shape with the smallest error."""
    s = form.low.size
    draws = qmc.Sobol(s, seed=0).random_base2(int(np.ceil(np.log2(options.starts))))[: options.starts]
    low, high = coarse.likely
    starts = sorted(low + draws * (high - low), key=lambda z: _left(coarse, z, False))[:_REFINED_STARTS]
    rivals = [_refined(coarse, start, options, 1, _EVALUATIONS[0], _TOLERANCE[0]) for start in starts]
    best = min(rivals, key=lambda z: _left(coarse, z, options.robust))
    return _refined(form, best, options, _ROBUST_ROUNDS if options.robust else 1, _EVALUATIONS[1], _TOLERANCE[1])


def _refined(
    form: CurveShape, z: FloatArray, options: CurveOptions, rounds: int, evaluations: int, tolerance: float
) -> FloatArray:
    """Coordinates (s,) of the nearest best shape, with the robust weights of the one before."""
    for _ in range(rounds):
        weights = solve_values(form.problem(z), options.solver, form.linear_prior(z)).weights
        inside = np.clip(z, form.low + 1e-9 * (form.high - form.low), form.high - 1e-9 * (form.high - form.low))
        z = least_squares(
            lambda z, weights=weights: _residual(form, z, weights), inside, bounds=(form.low, form.high),
            xtol=tolerance, ftol=tolerance, gtol=1e-15, max_nfev=evaluations,
        ).x  # fmt: skip
    return np.asarray(z)


def _residual(form: CurveShape, z: FloatArray, weights: FloatArray | float) -> FloatArray:
    """What the best linear parameters of a shape leave, (N,), times the roots of the weights."""
    problem = form.problem(z)
    weights = np.broadcast_to(weights, problem.y.shape)
    chi = NormalEquations.from_problem(problem, weights).values(problem.nonnegative, form.linear_prior(z))
    return np.asarray((problem.y - problem.W @ chi) * np.sqrt(weights))


def _left(form: CurveShape, z: FloatArray, robust: bool) -> float:
    error = _residual(form, z, 1.0 / float(np.mean((_SCREENING_NOISE * form.problem(z).y) ** 2)))
    return float(np.mean(np.abs(error)) if robust else np.mean(error**2))


_NEGLIGIBLE_EFFECT = 0.05
"""A parameter that the torque is linear in is also shown where its standard deviation changes the friction, at
standstill too, by less than this share."""
_CREEP_SHARE = 1e-6
"""Share of the velocity at which static friction is all that acts."""
_MIXED_CORRELATION = 0.9
"""Parameters whose errors are correlated more than that can hardly be separated."""


def parameter_identifiability(
    joint: str, fit: CurveFit, samples: CurveSamples
) -> tuple[BoolArray, tuple[tuple[str, str, str], ...]]:
    """Which parameters (p,) of a joint the samples show; and text, joint and detail of the reasons why others are not.

    Viscous friction of a joint that never leaves the Stribeck region is not shown, whatever its standard deviation.
    """
    tried = [
        replace(samples, velocity=factor * samples.velocity) for factor in (1.0, -1.0, _CREEP_SHARE, -_CREEP_SHARE)
    ]
    effects = np.max([np.abs(gradient_of(fit.law, fit.values, one)).max(axis=0) for one in tried], axis=0)
    roles = [*(parameter.role for parameter in fit.law.parameters), *[Role.OFFSET] * len(fit.extra_parameters)]
    linear = np.array([role is not Role.SHAPE for role in roles])
    small = linear & (fit.sigma * effects < _NEGLIGIBLE_EFFECT * samples.torque_rms)
    vague, top = (fit.sigma > VAGUE * np.abs(fit.values)) & ~small, f"|dq| < {samples.top_speed:.2g} rad/s"
    inside = samples.top_speed <= float(fit.law.stribeck_region(fit.friction.values[None, :])[0])
    vague |= inside & np.array([role is Role.VISCOUS for role in roles])
    if inside and vague.any():
        return ~vague, ((f"never left the Stribeck region, {{}}, so {_are(fit, vague)} not identifiable", joint, top),)
    if vague.any() and moves_one_way(samples.velocity):
        text = f"moved in one direction only, so {_are(fit, vague)} not identifiable: {more_motion(samples.velocity)}"
        return ~vague, ((text, joint, ""),)
    reasons = (
        (text, joint, detail) for text, detail in (_unexplained(fit, int(k), top) for k in np.flatnonzero(vague))
    )
    return ~vague, tuple(reasons)


def _unexplained(fit: CurveFit, k: int, top: str) -> tuple[str, str]:
    """Name the parameter that takes this one's place, if there is one: text and detail of a finding."""
    sigma = np.where(fit.sigma > 0.0, fit.sigma, 1.0)
    mixed = np.abs(fit.covariance[k] / (sigma * sigma[k])) * (np.arange(sigma.size) != k)
    partner = int(mixed.argmax())
    if mixed[partner] > _MIXED_CORRELATION:
        return f"{fit.names[k]} cannot be separated from {fit.names[partner]}, {{}}", top
    spread = f"{fit.values[k]:.3g} with a standard deviation of {fit.sigma[k]:.2g} {fit.units[k]}".rstrip()
    return f"the data does not show {fit.names[k]}: {{}}", f"{spread}, {top}"


def _are(fit: CurveFit, vague: Sequence[bool] | BoolArray) -> str:
    *others, last = (name for name, unsure in zip(fit.names, vague, strict=True) if unsure)
    return f"{', '.join(others)} and {last} are" if others else f"{last} is"
