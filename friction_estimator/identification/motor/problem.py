"""The first phase as a linear problem: what is unknown of a motor, and its columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar

from friction_estimator.identification.motor.law import MotorLaw
from friction_estimator.identification.motor.motion import MotorSamples
from friction_estimator.identification.regression.linear_problem import LinearProblem
from friction_estimator.laws import make_law
from friction_estimator.types import FloatArray

INERTIA, OFFSET = "inertia", "free_offset"
_GRID = 30
"""Stribeck velocities that are tried, evenly in the logarithm."""
_SLOWEST, _FASTEST = 0.02, 0.98
"""Quantiles of the speed between which a Stribeck velocity can show."""


@dataclass(frozen=True, slots=True)
class FrictionUnknowns:
    """What is not known of a motor that is not driven.

    Attributes
    ----------
    law : of its friction, with the Stribeck velocity to take or to begin a search with
    search : the Stribeck velocity is unknown, too
    inertia : reflected inertia, None when unknown [kg m^2]
    offset : a constant torque acts as well (see `MotorFriction.offset`); eq. 19 has none
    """

    law: MotorLaw
    search: bool = False
    inertia: float | None = 0.0
    offset: bool = False

    @property
    def extra(self) -> tuple[str, ...]:
        """Names of the unknowns that are not of the law, in the order of their columns."""
        return (INERTIA,) * (self.inertia is None) + (OFFSET,) * self.offset


def friction_problem(
    samples: MotorSamples, law: MotorLaw, measured: FloatArray, extra: tuple[str, ...]
) -> LinearProblem:
    """``measured = W chi``: free parameters of the law, then the extra unknowns (eqs. 20-21, 29-31).

    Parameters
    ----------
    samples : of one motor, stick phases left out
    measured : (r,) torque of the drive less all that is known [N m]
    extra : of `FrictionUnknowns.extra`
    """
    parameters = make_law(law.name)
    free = np.flatnonzero(~law.constrained)
    others = {
        INERTIA: (samples.acceleration, "kg m^2", True),
        OFFSET: (-np.ones_like(samples.velocity), "N m", False),
    }
    return LinearProblem(
        names=tuple(f"{samples.motor}/{name}" for name in (*(law.parameter_names[k] for k in free), *extra)),
        units=(*(parameters.units[k] for k in free), *(others[name][1] for name in extra)),
        W=np.column_stack((law.columns(samples.velocity) @ law.basis, *(others[name][0] for name in extra))),
        y=measured,
        joint=np.zeros(measured.size, dtype=np.intp),
        segment=samples.segment,
        nonnegative=np.array([*(parameters.nonnegative[k] for k in free), *(others[name][2] for name in extra)]),
        instant=samples.instant,
    )


def with_column(problem: LinearProblem, name: str, unit: str, rate: FloatArray) -> LinearProblem:
    """The problem linearised about one more parameter: its change has a column, too."""
    return replace(
        problem,
        names=(*problem.names, name),
        units=(*problem.units, unit),
        W=np.column_stack((problem.W, rate)),
        nonnegative=np.append(problem.nonnegative, False),
    )


def best_stribeck_velocity(
    samples: MotorSamples, law: MotorLaw, measured: FloatArray, extra: tuple[str, ...], weights: FloatArray
) -> MotorLaw:
    """The law whose Stribeck velocity leaves the least weighted sum of squares.

    Static friction that nothing shows at a Stribeck velocity is Coulomb friction there (`MotorLaw.as_seen`).
    """
    root = np.sqrt(weights)

    def remaining(logarithm: float) -> float:
        tried = _at(law, logarithm, samples.velocity)
        W = friction_problem(samples, tried, measured, extra).W * root[:, None]
        scale = np.maximum(np.linalg.norm(W, axis=0), np.finfo(float).tiny)
        y = measured * root
        return float(np.sum((y - W @ (np.linalg.lstsq(W / scale, y, rcond=None)[0] / scale)) ** 2))

    low, high = np.log(search_range(samples.velocity))
    grid = np.linspace(low, high, _GRID)
    best = int(np.argmin([remaining(point) for point in grid]))
    around = grid[max(best - 1, 0)], grid[min(best + 1, _GRID - 1)]
    return _at(law, float(minimize_scalar(remaining, bounds=around, method="bounded").x), samples.velocity)


def search_range(velocity: FloatArray) -> tuple[float, float]:
    """Between which a Stribeck velocity can show, for velocities (r,) of a sliding motor [rad/s]."""
    low, high = np.quantile(np.abs(velocity), (_SLOWEST, _FASTEST))
    return float(low), float(high)


def _at(law: MotorLaw, logarithm: float, velocity: FloatArray) -> MotorLaw:
    """The law at a Stribeck velocity, given by its logarithm, without static friction that nothing shows there."""
    return replace(law, stribeck_velocity=float(np.exp(logarithm))).as_seen(velocity)
