"""Bounded nonlinear least squares of a friction curve (Egle 2021, eq. 6.4), from many starts, with error bars.

The second half finds the parameters that the data cannot identify, and the reasons.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares, lsq_linear
from scipy.stats import qmc

from friction_estimator.errors import ConfigError
from friction_estimator.identification.curves.problem import CurveProblem, CurveSamples, gradient_of, torque_of
from friction_estimator.identification.linear_problem import (
    HUBER,
    LinearProblem,
    Prior,
    column_condition,
    folds_of,
    robust_std,
)
from friction_estimator.identification.result import JointLaw
from friction_estimator.identification.uncertainty import block_jackknife, residual_blocks
from friction_estimator.laws import FrictionLaw, Role
from friction_estimator.types import BoolArray, FloatArray

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
    """A law through the samples; its covariance allows for residuals that are correlated in time.

    What the data does not show at all has the width of its bounds as standard deviation.

    Attributes
    ----------
    law : that was fitted
    names, units : (p) parameters of the law, then of the further columns
    values, covariance : (p,), (p, p)
    lower, upper : (p,) bounds
    rivals : (k, p) all solutions found from other starts that explain the data as well, the best first
    scale : (g,) standard deviation of the residuals of every group, without outliers [N m]
    condition : of the Jacobian with columns of unit norm
    """

    law: FrictionLaw
    names: tuple[str, ...]
    units: tuple[str, ...]
    values: FloatArray
    covariance: FloatArray
    lower: FloatArray
    upper: FloatArray
    rivals: FloatArray
    scale: FloatArray
    condition: float

    @property
    def sigma(self) -> FloatArray:
        """Standard deviations (p,)."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def further(self) -> FloatArray:
        """Parameters (e,) of the further columns."""
        return self.values[len(self.law.parameters) :]

    @property
    def friction(self) -> JointLaw:
        """The law alone."""
        q = len(self.law.parameters)
        return JointLaw(self.law, self.values[:q], self.covariance[:q, :q])


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
    left = np.abs(problem.residual(z)) / scale[problem.samples.groups]
    weights = np.minimum(1.0, HUBER / np.maximum(left, 1e-300)) if options.robust else left**0
    covariance, condition = curve_covariance(problem, values, weights, scale)
    names, units = problem.names, problem.units
    return CurveFit(law, names, units, values, covariance, problem.lower, problem.upper, rivals, scale, condition)


def refit(fit: CurveFit, samples: CurveSamples, options: CurveOptions = CurveOptions()) -> FloatArray:
    """Parameters (p,) of the same law for other samples, from where it is."""
    problem = CurveProblem(fit.law, samples.thinned(_POLISHED))
    return _refine(problem, np.clip(fit.values, problem.lower, problem.upper), options.robust, _POLISHING)[0]


def held_out_curve_error(fit: CurveFit, samples: CurveSamples, options: CurveOptions, folds: int) -> FloatArray:
    """Measured minus predicted friction (N,), each sample by a fit that has not seen its fold [N m]."""
    fold, error = folds_of(time_rows(samples), folds), np.empty_like(samples.friction)
    for number in np.unique(fold):
        held_out = fold == number
        values = refit(fit, samples.select(~held_out), options)
        error[held_out] = samples.friction[held_out] - torque_of(fit.law, values, samples.select(held_out))
    return error


def time_rows(samples: CurveSamples, columns: FloatArray | None = None) -> LinearProblem:
    """Rows of the samples with these columns (N, p), or the velocity; groups are joints: errors differ in size."""
    W = samples.velocity[:, None] if columns is None else columns
    p = W.shape[1]
    return LinearProblem(
        names=("",) * p,
        units=("",) * p,
        W=W,
        y=samples.friction,
        joint=samples.groups,
        segment=samples.segment,
        nonnegative=np.zeros(p, dtype=bool),
        recording=samples.recording,
    )


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
    limits = np.array([ranges.get(unit, (-np.inf, np.inf)) for unit in problem.units]).T
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
        scale = residual_scale(problem, z)[problem.samples.groups]
        inside = np.clip(z, low + 1e-9 * (high - low), high - 1e-9 * (high - low))
        z = least_squares(
            lambda z, scale=scale: problem.residual(z) / scale, inside,
            lambda z, scale=scale: problem.jacobian(z) / scale[:, None], (low, high), "trf",
            loss="huber" if robust else "linear", f_scale=HUBER,
            xtol=effort.tolerance, ftol=effort.tolerance, gtol=None, max_nfev=effort.evaluations,
        ).x  # fmt: skip
    left = np.abs(problem.residual(z))
    return problem.from_z(z), float(np.mean(left) if robust else np.sqrt(np.mean(left**2)))


def residual_scale(problem: CurveProblem, z: FloatArray) -> FloatArray:
    """Standard deviation (g,) of the residuals of every group without outliers [N m].

    It is never below a millionth of the friction.
    """
    floor = 1e-6 * problem.samples.torque_rms
    left, groups = problem.residual(z), problem.samples.groups
    parts = (left[groups == group] for group in range(int(groups.max()) + 1))
    return np.array([max(robust_std(part) if part.size else 0.0, floor) for part in parts])


def curve_covariance(
    problem: CurveProblem, values: FloatArray, weights: FloatArray, scale: FloatArray
) -> tuple[FloatArray, float]:
    """Covariance (p, p) of the parameters, and the condition number of the Jacobian.

    The law is linear in its parameters nearby, so leaving out one block of time after another costs a linear solution
    each. Samples more often do not make it smaller, because blocks are as long as the residuals remember. The bounds
    count as a weak prior: what no sample shows has the width of its bounds as standard deviation.

    Parameters
    ----------
    values : (p,) at the solution
    weights : (N,) robust weights of the samples
    scale : (g,) of :func:`residual_scale`
    """
    z = problem.to_z(values)
    residual, W = -problem.residual(z), problem.jacobian(z)
    count, p = W.shape
    floor = (1e-9 * problem.samples.torque_rms) ** 2
    groups = problem.samples.groups
    variance = np.full(count, floor)
    for group in range(scale.size):
        rows = groups == group
        freedom = max(rows.sum() * (1.0 - p / count), 1.0)
        variance[rows] = max(float((weights * residual**2)[rows].sum()) / freedom, floor)
    linear = replace(time_rows(problem.samples, W), y=residual)
    width = problem.to_z(problem.upper) - problem.to_z(problem.lower)
    posterior = np.asarray(np.linalg.inv((W.T * (weights / variance)) @ W + np.diag(width**-2.0)), dtype=float)
    blocks = residual_blocks(linear, residual)
    covariance = block_jackknife(linear, weights / variance, blocks, Prior.of_std(width), posterior)
    slopes = problem.slopes(values)
    return covariance * np.outer(slopes, slopes), column_condition(W)


_VAGUE = 0.3
"""A parameter is known when its standard deviation is below this part of its value,"""
_NEGLIGIBLE = 0.05
"""or, where the torque is linear in it, when what is not known of it is below this part of the friction."""
_ONE_WAY = 0.02
"""A joint moves in one direction only when less than this part of its samples shows the other one."""
_MIXED = 0.9
"""Parameters whose errors are correlated more than that can hardly be separated."""


@dataclass(frozen=True, slots=True)
class Identifiability:
    """Which parameters of a fit the data show.

    Attributes
    ----------
    identifiable : (p) False for parameters that the samples do not show
    reasons : sentences with the joint's name, one a cause; empty when all parameters are identifiable
    """

    identifiable: BoolArray
    reasons: tuple[str, ...]


def parameter_identifiability(joint: str, fit: CurveFit, samples: CurveSamples) -> Identifiability:
    """Compare standard deviations, rival solutions and the speeds that occurred with what the law needs.

    Parameters
    ----------
    joint : name for the sentences
    fit, samples : of that joint
    """
    vague = _vague(fit, samples)
    return Identifiability(~vague, tuple(_reasons(joint, fit, samples, vague)) if vague.any() else ())


def _vague(fit: CurveFit, samples: CurveSamples) -> BoolArray:
    """Parameters (p) that are too uncertain, by the covariance or because other solutions are as good."""
    unsure = np.maximum(fit.sigma, np.abs(fit.rivals - fit.values).max(axis=0))
    vague = unsure > _VAGUE * np.abs(fit.values)
    backward = replace(samples, velocity=-samples.velocity)
    effects = [np.abs(gradient_of(fit.law, fit.values, one)).max(axis=0) for one in (samples, backward)]
    roles = [*(parameter.role for parameter in fit.law.parameters), *[Role.OFFSET] * fit.further.size]
    linear = np.array([role is not Role.SHAPE for role in roles])
    vague &= ~(linear & (fit.sigma * np.maximum(*effects) < _NEGLIGIBLE * samples.torque_rms))
    if not _leaves_stribeck_region(fit, samples):
        vague |= np.array([role is Role.VISCOUS for role in roles])
    return vague


def _reasons(joint: str, fit: CurveFit, samples: CurveSamples, vague: BoolArray) -> list[str]:
    top = f"|dq| < {samples.top_speed:.2g} rad/s"
    if not _leaves_stribeck_region(fit, samples):
        return [f"{joint} never left the Stribeck region ({top}), so {_are(fit, vague)} not identifiable"]
    if min((samples.velocity > 0.0).mean(), (samples.velocity < 0.0).mean()) < _ONE_WAY:
        return [f"{joint} moved in one direction only, so {_are(fit, vague)} not identifiable"]
    return [_unexplained(joint, fit, int(k), top) for k in np.flatnonzero(vague)]


def _unexplained(joint: str, fit: CurveFit, k: int, top: str) -> str:
    """Name the parameter that takes this one's place, if there is one."""
    name = fit.names[k]
    if fit.sigma[k] <= _VAGUE * abs(fit.values[k]):
        others = np.append(fit.rivals[:, k], fit.values[k])
        return f"{joint}: {name} from {others.min():.3g} to {others.max():.3g} explains the data as well ({top})"
    sigma = np.where(fit.sigma > 0.0, fit.sigma, 1.0)
    mixed = np.abs(fit.covariance[k] / (sigma * sigma[k]))
    mixed[k] = 0.0
    partner = int(mixed.argmax())
    if mixed[partner] > _MIXED:
        return f"{joint}: {name} cannot be separated from {fit.names[partner]} ({top})"
    spread = f"{fit.values[k]:.3g} with a standard deviation of {fit.sigma[k]:.2g} {fit.units[k]}".rstrip()
    return f"{joint}: the data ({top}) does not show {name}, {spread}"


def _leaves_stribeck_region(fit: CurveFit, samples: CurveSamples) -> bool:
    """Whether there are speeds at which Coulomb and viscous friction alone are left."""
    return samples.top_speed > float(fit.law.stribeck_region(fit.friction.values[None, :])[0])


def _are(fit: CurveFit, vague: BoolArray) -> str:
    names = [fit.names[k] for k in np.flatnonzero(vague)]
    if len(names) == 1:
        return f"{names[0]} is"
    return f"{', '.join(names[:-1])} and {names[-1]} are"
