"""Bounded nonlinear least squares of a friction curve (Egle 2021, eq. 6.4), from many starts, with error bars."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares, lsq_linear
from scipy.stats import qmc

from friction_estimator.errors import ConfigError
from friction_estimator.identification.friction_curve.problem import CurveProblem, CurveSamples
from friction_estimator.identification.regression.least_squares import HUBER, MAD, column_condition
from friction_estimator.identification.regression.linear_problem import LinearProblem
from friction_estimator.identification.regression.uncertainty import block_jackknife, residual_blocks
from friction_estimator.laws import FrictionLaw
from friction_estimator.laws.law import torque_gradient
from friction_estimator.types import FloatArray

_SCREENED, _POLISHED = 500, 5000
"""Samples that starts are compared on, and that the best one is refined on: more do not add information."""
_REFINED = 12
_RIVAL = 1.01
"""A solution that leaves less than one percent more over than the best one explains the data as well."""


@dataclass(frozen=True, slots=True)
class CurveOptions:
    """How a curve is fitted.

    Attributes
    ----------
    robust : Huber's loss, in which outliers count less; False: the plain squares of eq. 6.4
    starts : how many shapes are tried
    """

    robust: bool = True
    starts: int = 64

    def __post_init__(self) -> None:
        if self.starts < 1:
            raise ConfigError(f"{self.starts} starts: a fit needs at least one start")


@dataclass(frozen=True, slots=True)
class _Effort:
    """How hard the solver tries: rounds of a robust scale, evaluations a round, relative change that ends it."""

    rounds: int
    evaluations: int
    tolerance: float


_SCREENING, _POLISHING = _Effort(1, 40, 1e-6), _Effort(3, 200, 1e-11)


@dataclass(frozen=True, slots=True)
class CurveFit:
    """A law through the samples.

    Attributes
    ----------
    law : that was fitted
    values : (p,)
    covariance : (p, p) allowing for residuals that are correlated in time; what the data does not show at all has the
        width of its bounds
    lower, upper : (p,) bounds
    rivals : (k, p) all solutions found from other starts that explain the data as well, the best first
    scale : standard deviation of the residuals without outliers [N m]
    condition : of the Jacobian with columns of unit norm
    """

    law: FrictionLaw
    values: FloatArray
    covariance: FloatArray
    lower: FloatArray
    upper: FloatArray
    rivals: FloatArray
    scale: float
    condition: float

    @property
    def sigma(self) -> FloatArray:
        """Standard deviations (p,)."""
        return np.sqrt(np.diagonal(self.covariance))

    def predict(self, velocity: FloatArray, load: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Torque and its standard deviation, (N,) each [N m]: the band widens where no data was."""
        slope = torque_gradient(self.law, self.values, velocity, load)
        variance = np.einsum("ij,jk,ik->i", slope, self.covariance, slope)
        return self.law.torque(self.values[None, :], velocity, load), np.sqrt(np.maximum(variance, 0.0))


def fit_curve(law: FrictionLaw, samples: CurveSamples, options: CurveOptions = CurveOptions()) -> CurveFit:
    """Fit a law by the trust region reflective method of scipy, from many starts.

    Shapes are drawn over the law's ranges, denser where the velocities are; the parameters that the torque is linear in
    follow from each by bounded linear least squares. The best dozen is refined, and the best of these on more samples.

    Raises
    ------
    InputError
        When there are not more samples than parameters, or nothing moves.
    """
    coarse = CurveProblem(law, samples.thinned(_SCREENED))
    refined = [_refine(coarse, start, options.robust, _SCREENING) for start in _starts(coarse, options.starts)]
    refined.sort(key=lambda found: found[1])
    rivals = np.array([values for values, left in refined if left <= _RIVAL * refined[0][1]])
    problem = CurveProblem(law, samples.thinned(_POLISHED))
    values = _refine(problem, np.clip(rivals[0], problem.lower, problem.upper), options.robust, _POLISHING)[0]
    z = problem.to_z(values)
    scale = residual_scale(problem, z)
    left = np.abs(problem.residual(z))
    weights = np.minimum(1.0, HUBER * scale / np.maximum(left, 1e-300)) if options.robust else left**0
    covariance, condition = curve_covariance(problem, values, weights)
    return CurveFit(law, values, covariance, problem.lower, problem.upper, rivals, scale, condition)


def refit(fit: CurveFit, samples: CurveSamples, options: CurveOptions = CurveOptions()) -> FloatArray:
    """Parameters (p,) of the same law for other samples, from where it is."""
    problem = CurveProblem(fit.law, samples.thinned(_POLISHED))
    return _refine(problem, np.clip(fit.values, problem.lower, problem.upper), options.robust, _POLISHING)[0]


def _starts(problem: CurveProblem, count: int) -> list[FloatArray]:
    """The most promising parameters (p,), best first."""
    shape = problem.shape
    if not shape.any():
        return [_with_linear_part(problem, np.zeros(shape.size))[0]]
    draws = qmc.Sobol(int(shape.sum()), seed=0).random_base2(int(np.ceil(np.log2(count))))[:count]
    low, high = (problem.to_z(limits)[shape] for limits in _likely(problem))
    found = []
    for draw in low + draws * (high - low):
        z = np.zeros(shape.size)
        z[shape] = draw
        found.append(_with_linear_part(problem, problem.from_z(z)))
    found.sort(key=lambda start: start[1])
    return [values for values, _ in found[:_REFINED]]


def _likely(problem: CurveProblem) -> tuple[FloatArray, FloatArray]:
    """Where shapes are drawn: velocities that occur, ratios up to two, within the law's ranges; (p,) each."""
    speeds = np.abs(problem.samples.velocity)
    slow, fast = max(float(np.quantile(speeds, 0.05)), 0.01 * speeds.max()), float(speeds.max())
    ranges = {"rad/s": (slow, fast), "s/rad": (1.0 / fast, 2.0 / slow), "": (0.0, 2.0)}
    limits = np.array([ranges.get(unit, (-np.inf, np.inf)) for unit in problem.law.units]).T
    low, high = (np.clip(limit, problem.lower, problem.upper) for limit in limits)
    return low, high


def _with_linear_part(problem: CurveProblem, values: FloatArray) -> tuple[FloatArray, float]:
    """Best linear parameters for this shape, and what they leave over."""
    linear = ~problem.shape
    bounds = problem.lower[linear], problem.upper[linear]
    found = lsq_linear(problem.linear_columns(values)[:, linear], problem.samples.friction, bounds)
    values = values.copy()
    values[linear] = found.x
    return values, float(found.cost)


def _refine(problem: CurveProblem, values: FloatArray, robust: bool, effort: _Effort) -> tuple[FloatArray, float]:
    """Parameters (p,) from a start, and what they leave over; a robust loss estimates its scale on the way."""
    z = problem.to_z(values)
    low, high = problem.to_z(problem.lower), problem.to_z(problem.upper)
    for _ in range(effort.rounds if robust else 1):
        scale = HUBER * residual_scale(problem, z)
        inside = np.clip(z, low + 1e-9 * (high - low), high - 1e-9 * (high - low))
        loss = "huber" if robust else "linear"
        z = least_squares(
            problem.residual, inside, problem.jacobian, (low, high), "trf", loss=loss, f_scale=scale,
            xtol=effort.tolerance, ftol=effort.tolerance, gtol=None, max_nfev=effort.evaluations,
        ).x  # fmt: skip
    left = np.abs(problem.residual(z))
    return problem.from_z(z), float(np.mean(left) if robust else np.sqrt(np.mean(left**2)))


def residual_scale(problem: CurveProblem, z: FloatArray) -> float:
    """Standard deviation of the residuals without outliers; never below a millionth of the friction [N m]."""
    floor = 1e-6 * problem.samples.torque_rms
    return max(MAD * float(np.median(np.abs(problem.residual(z)))), floor)


def curve_covariance(problem: CurveProblem, values: FloatArray, weights: FloatArray) -> tuple[FloatArray, float]:
    """Covariance (p, p) of the parameters, and the condition number of the Jacobian.

    The law is linear in its parameters nearby, so leaving out one block of time after another costs a linear solution
    each. Samples more often do not make it smaller, because blocks are as long as the residuals remember. The bounds
    count as a weak prior: what no sample shows has the width of its bounds as standard deviation.

    Parameters
    ----------
    values : (p,) at the solution
    weights : (N,) robust weights of the samples
    """
    z = problem.to_z(values)
    residual, W = -problem.residual(z), problem.jacobian(z)
    count, p = W.shape
    floor = (1e-9 * problem.samples.torque_rms) ** 2
    variance = max(float((weights * residual**2).sum() / max(count - p, 1)), floor)
    linear = LinearProblem(
        names=problem.law.parameter_names,
        units=problem.law.units,
        W=W,
        y=residual,
        joint=np.zeros(count, dtype=np.intp),
        segment=problem.samples.segment,
        nonnegative=np.zeros(p, dtype=bool),
    )
    width = problem.to_z(problem.upper) - problem.to_z(problem.lower)
    posterior = np.asarray(np.linalg.inv((W.T * weights) @ W / variance + np.diag(width**-2.0)), dtype=float)
    blocks = residual_blocks(linear, residual)
    covariance = block_jackknife(linear, weights / variance, blocks, width, posterior)
    slopes = problem.slopes(values)
    return covariance * np.outer(slopes, slopes), column_condition(W)
