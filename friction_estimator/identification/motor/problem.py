"""Friction of one motor as a linear problem: its law, the constraint at standstill, and the unknowns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar

from friction_estimator.errors import ConfigError, choices
from friction_estimator.identification.linear_problem import LinearProblem, Prior
from friction_estimator.identification.motor.samples import MotorSamples
from friction_estimator.laws import make_law, make_linear_law
from friction_estimator.laws.linear import ASYMMETRIC_STRIBECK, STRIBECK_VELOCITY
from friction_estimator.laws.nonlinear import ASYMMETRIC_STRIBECK_SCALED
from friction_estimator.types import BoolArray, FloatArray

ZERO_SLOPES = ("none", "positive", "negative", "both")
SLOW_SAMPLES = 1.0
"""Static friction shows when the samples of its direction are worth one at the Stribeck velocity. A sample at another
speed is worth ``exp(-2 |dq| / v_s) / exp(-2)``, its share in the inverse variance of the static friction."""
_DIRECTIONS = {(False, False): "none", (True, False): "positive", (False, True): "negative", (True, True): "both"}


@dataclass(frozen=True, slots=True)
class MotorLaw:
    """A linear law, or the asymmetric Stribeck law at a Stribeck velocity of choice.

    Attributes
    ----------
    name : of a linear law that needs no load
    stribeck_velocity : of ``asymmetric_stribeck`` [rad/s]; other laws have none of their own here
    zero_slope : directions in which friction must leave standstill with zero slope (section 4.1.2): at ``0+`` the
        slope of ``asymmetric_stribeck`` is ``K_v - (sigma+ - K_c) / v_s``, so ``sigma+ = K_c + v_s K_v``
    no_static : directions in which nothing slides slowly enough to show a static friction: there it is K_c, which an
        extrapolation by ``exp(|dq| / v_s)`` would miss by thousands of N m
    """

    name: str
    stribeck_velocity: float = STRIBECK_VELOCITY
    zero_slope: str = "none"
    no_static: str = "none"

    def __post_init__(self) -> None:
        make_linear_law(self.name)
        if self.zero_slope not in ZERO_SLOPES:
            raise ConfigError(f"unknown zero slope {self.zero_slope!r}; it is one of {choices(ZERO_SLOPES)}")
        if not self.is_stribeck and (self.zero_slope != "none" or self.stribeck_velocity != STRIBECK_VELOCITY):
            raise ConfigError(
                f"a Stribeck velocity and a zero slope at standstill are for the law {ASYMMETRIC_STRIBECK.name!r}, "
                f"not for {self.name!r}"
            )
        if not self.stribeck_velocity > 0.0:
            raise ConfigError(f"the Stribeck velocity is {self.stribeck_velocity!r} rad/s, it must be above zero")

    @property
    def is_stribeck(self) -> bool:
        """Whether the law has a Stribeck velocity that can be chosen."""
        return self.name == ASYMMETRIC_STRIBECK.name

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """(p)."""
        return make_linear_law(self.name).parameter_names

    def columns(self, velocity: FloatArray) -> FloatArray:
        """Regressor (r, p) at velocities (r,) [rad/s]."""
        if self.is_stribeck:
            return ASYMMETRIC_STRIBECK_SCALED.columns(velocity, self.stribeck_velocity)
        return make_linear_law(self.name).regressor(velocity)

    @property
    def offset_shows(self) -> bool:
        """Whether a constant torque can be separated: not when both directions have their own dry friction."""
        velocity = np.concatenate((np.linspace(-1.0, 1.0, 101), np.geomspace(1e-3, 1.0, 50)))
        columns, ones = self.columns(velocity), np.ones(velocity.size)
        rest = ones - columns @ np.linalg.lstsq(columns, ones, rcond=None)[0]
        return bool(np.linalg.norm(rest[velocity != 0.0]) > 1e-6)

    def as_seen(self, velocity: FloatArray) -> MotorLaw:
        """The law without the static friction that velocities (r,) of a sliding motor do not show."""
        if not self.is_stribeck:
            return self
        forward, backward = (count < SLOW_SAMPLES for count in self.slow_samples(velocity))
        return replace(self, no_static=_DIRECTIONS[forward, backward])

    def slow_samples(self, velocity: FloatArray) -> tuple[float, float]:
        """Samples at one Stribeck velocity that show as much of both static frictions as velocities (r,) do."""
        shown = np.exp(2.0 - 2.0 * np.abs(velocity) / self.stribeck_velocity)
        return float(shown[velocity > 0.0].sum()), float(shown[velocity < 0.0].sum())

    @property
    def constrained(self) -> BoolArray:
        """(p) True for a parameter that a constraint gives, and the others leave free."""
        return self._sides(self.zero_slope) | self._sides(self.no_static)

    def _sides(self, directions: str) -> BoolArray:
        """(p) True for the static friction of these directions."""
        sides = {"none": (), "positive": (2,), "negative": (3,), "both": (2, 3)}[directions]
        return np.isin(np.arange(len(self.parameter_names)), sides)

    @property
    def basis(self) -> FloatArray:
        """N (p, k): the parameters that meet the constraint are ``N z``, z the free ones in their order."""
        held = self.constrained
        basis = np.eye(held.size)
        basis[held, 0] = 1.0
        basis[self._sides(self.zero_slope), 1] = self.stribeck_velocity
        return basis[:, ~held]

    def basis_rate(self, free: FloatArray) -> FloatArray:
        """Change (p,) of the parameters ``N z`` with the Stribeck velocity, z (k,) kept."""
        return np.where(self._sides(self.zero_slope), free[1], 0.0)

    def rate(self, velocity: FloatArray, values: FloatArray) -> FloatArray:
        """Change (r,) of the friction with the Stribeck velocity, parameters (p,) kept [N m s/rad].

        ``sgn(dq) (sigma - K_c) e |dq| / v_s^2``.
        """
        fading = np.exp(-np.abs(velocity) / self.stribeck_velocity)
        static = np.where(velocity > 0.0, values[2], values[3])
        return np.asarray((static - values[0]) * fading * velocity / self.stribeck_velocity**2)


def registered_law(law: MotorLaw, searched: bool) -> str:
    """Name of the law in the registry: with the Stribeck velocity as a parameter unless it is 1 deg/s."""
    scaled = law.is_stribeck and (searched or law.stribeck_velocity != STRIBECK_VELOCITY)
    return ASYMMETRIC_STRIBECK_SCALED.name if scaled else law.name


INERTIA, OFFSET, GAIN = "inertia", "free_offset", "drive_gain"
UNITS = {"pwm": "N m/pwm", "current": "N m/A"}
_LARGEST = 10.0
"""Largest torque of one parameter, as a multiple of the largest measured one."""
_VANISHING = 1e-12
"""A column that is smaller shows nothing of its parameter."""
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
    gain : the drive's torque per unit is unknown, too: of logs that are all driven; which input drives. None: known
    """

    law: MotorLaw
    search: bool = False
    inertia: float | None = 0.0
    offset: bool = False
    gain: str | None = None

    @property
    def extra(self) -> tuple[str, ...]:
        """Names of the unknowns that are not of the law, in the order of their columns."""
        return (INERTIA,) * (self.inertia is None) + (OFFSET,) * self.offset + (GAIN,) * (self.gain is not None)


def friction_problem(
    samples: MotorSamples, law: MotorLaw, measured: FloatArray, unknowns: FrictionUnknowns
) -> LinearProblem:
    """``measured = W chi``: free parameters of the law, then the extra unknowns (eqs. 20-21, 29-31).

    Parameters
    ----------
    samples : of one motor, stick phases left out
    measured : (r,) torque of the drive less all that is known [N m]
    unknowns : what else is not known
    """
    extra = unknowns.extra
    parameters = make_law(law.name)
    free = np.flatnonzero(~law.constrained)
    others = {
        INERTIA: (samples.acceleration, "kg m^2", True),
        OFFSET: (-np.ones_like(samples.velocity), "N m", False),
        GAIN: (-samples.drive, UNITS.get(unknowns.gain or "", ""), False),
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


def weak_prior(problem: LinearProblem) -> Prior:
    """Prior about zero that decides only what the motion leaves open, such as one tangent of many.

    No single parameter gives more than ten times the largest torque that was measured.
    """
    return Prior.of_std(_LARGEST * np.abs(problem.y).max() / np.maximum(np.abs(problem.W).max(axis=0), _VANISHING))


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
    samples: MotorSamples, law: MotorLaw, measured: FloatArray, unknowns: FrictionUnknowns, weights: FloatArray
) -> MotorLaw:
    """The law whose Stribeck velocity leaves the least weighted sum of squares.

    Static friction that nothing shows at a Stribeck velocity is Coulomb friction there (`MotorLaw.as_seen`).
    """
    root = np.sqrt(weights)

    def remaining(logarithm: float) -> float:
        tried = _at(law, logarithm, samples.velocity)
        W = friction_problem(samples, tried, measured, unknowns).W * root[:, None]
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
