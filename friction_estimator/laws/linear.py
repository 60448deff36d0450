"""Friction laws that are linear in their parameters, as sums of terms: what filters identify while the robot moves.

    friction = sum_j parameter_j term_j        term = shape of the velocity x power of the load x side x factor

A law is a table of terms. The compiled kernels evaluate any such table, so that a new law needs no code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from types import MappingProxyType

import numpy as np

from friction_estimator.errors import ConfigError, choices
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.laws.law import FrictionLaw, Parameter, Role, law_names, make_law, register_law, required_load
from friction_estimator.types import FloatArray, IndexMatrix, IntArray, Vector


class Shape(IntEnum):
    """How a term depends on the velocity; ``s`` is the term's scale [rad/s]."""

    SIGN = 0
    """``sgn(dq)``"""
    TANH = 1
    """``tanh(dq / s)``"""
    LINEAR = 2
    """``dq``"""
    CONSTANT = 3
    """``1``"""
    FADING = 4
    """``sgn(dq) exp(-|dq| / s)``"""
    RISING = 5
    """``sgn(dq) (1 - exp(-|dq| / s))``"""
    STRAIN = 6
    """``z - tanh(dq / 0.002)`` with the Dahl strain z of the presliding distance ``s`` [rad]: zero while sliding"""


class Side(IntEnum):
    """Where a term holds; the sides of the load are those of Hamon et al. 2010, eqs. 26-28."""

    BOTH = 0
    FORWARD = 1
    """``dq > 0``"""
    BACKWARD = 2
    """``dq < 0``"""
    DRIVING = 3
    """``tau dq > 0``; where the load or the velocity is zero the term counts half."""
    DRIVEN = 4
    """``tau dq < 0``; where the load or the velocity is zero the term counts half."""


class Factor(IntEnum):
    """Factor of a term by the position of the motor, for a ripple; 0 where no position is given."""

    NONE = 0
    SINE = 1
    """``sin(k q)`` of the position q of the motor, which has k ripples per turn"""
    COSINE = 2
    """``cos(k q)``"""


_STEEPEST_SCALE = 0.002
"""Scale of the steepest tangent: a sign to any encoder [rad/s]."""
PRESLIDING = 3e-4, 1.5e-3, 7e-3
"""Distances of :data:`PRESLIDING_TERMS` [rad]. Sums of them represent presliding distances from 0.2 to 10 mrad."""
_PADDING = -1
"""Shape code of a term that is zero."""
_SIGN, _TANH, _LINEAR, _CONSTANT, _FADING, _, _STRAIN = (int(shape) for shape in Shape)
_NO_FACTOR = int(Factor.NONE)
_BOTH, _FORWARD, _BACKWARD, _DRIVING, _DRIVEN = (int(side) for side in Side)
_ROLES = {Shape.LINEAR: Role.VISCOUS, Shape.CONSTANT: Role.OFFSET, Shape.FADING: Role.STRIBECK}
_SATURATED_ARGUMENT = 20.0
"""The hyperbolic tangent is one to the last bit beyond this argument."""


@dataclass(frozen=True, slots=True)
class Term:
    """One parameter of a linear law and the function of velocity and load that it multiplies."""

    name: str  # of the parameter
    shape: Shape  # of the velocity
    scale: float = 1.0  # velocity over which the shape changes, where it has one [rad/s]
    load_power: int = 0  # 0, 1 or 2: the term is multiplied by this power of `|tau|`
    side: Side = Side.BOTH  # where it holds
    unit: str = "N m"  # of the parameter, in SI for a revolute joint; empty for a pure number
    # standard deviation of the parameter before any data, about zero, wide enough for a humanoid, in SI units
    prior_std: float = 10.0
    nonnegative: bool = True  # True for a parameter that no passive joint has below zero
    # how the parameter counts in F_c and F_v of eq. 57, the mean of both directions without load
    coulomb: float = 0.0
    viscous: float = 0.0
    optional: bool = False  # True where inverse dynamics sets the parameter to zero when the data do not show it
    factor: Factor = Factor.NONE  # of the position

    @property
    def finest(self) -> float:
        """Velocity over which the term changes, zero where it jumps, infinite where it is a straight line [rad/s]."""
        if self.shape == Shape.STRAIN:
            return _STEEPEST_SCALE
        if self.side != Side.BOTH or self.shape not in (Shape.TANH, Shape.LINEAR, Shape.CONSTANT):
            return 0.0
        return self.scale if self.shape == Shape.TANH else math.inf

    @property
    def parameter(self) -> Parameter:
        """The parameter that the term multiplies."""
        role = Role.LOAD if self.load_power else _ROLES.get(self.shape, Role.COULOMB)
        bounds = (0.0 if self.nonnegative else -math.inf, math.inf)
        return Parameter(self.name, role, self.unit, bounds, self.prior_std, self.optional)


class LinearFrictionLaw(FrictionLaw):
    """A friction law that is linear in its parameters.

    Parameters
    ----------
    name : the key in the registry
    terms : (p), one per parameter

    Attributes
    ----------
    name, terms : as given
    parameters : (p) of the terms
    depends_on_load : True where the torque cannot be computed without the load
    """

    is_linear = True

    def __init__(self, name: str, terms: tuple[Term, ...]) -> None:
        self.name = name
        self.terms = terms
        self.parameters = tuple(term.parameter for term in terms)
        self.depends_on_load = any(term.load_power or term.side in (Side.DRIVING, Side.DRIVEN) for term in terms)
        self._codes, self._scales = term_table(terms)
        self._coulomb = np.array([term.coulomb for term in terms])
        self._viscous = np.array([term.viscous for term in terms])

    def regressor(self, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Regressor phi with ``torque = sum_j phi[..., j] * parameters[..., j]``.

        Parameters
        ----------
        velocity : (...) of any shape [rad/s]
        load : (...) broadcasts against it [N m]; load-dependent laws need it

        Returns
        -------
        (..., p)

        Raises
        ------
        ConfigError
            When the law needs a load and there is none.
        """
        velocity = np.asarray(velocity, dtype=float)
        tau = np.broadcast_to(required_load(self.name, load), velocity.shape) if self.depends_on_load else velocity
        flat = np.ascontiguousarray(velocity).ravel(), np.array(tau, dtype=float).ravel()
        return _law_regressor(self._codes, self._scales, *flat).reshape(*velocity.shape, len(self.terms))

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque (n,) [N m]: regressor times parameters (n, p)."""
        return np.asarray((self.regressor(velocity, load) * parameters).sum(axis=-1))

    def coulomb(self, parameters: FloatArray) -> FloatArray:
        """F_c of eq. 57 [N m]: what is left of the friction when viscous friction and load are taken away.

        The plateau beyond any Stribeck effect, the mean of both directions. Linear in the parameters:
        (..., p) -> (...).
        """
        return np.asarray(parameters @ self._coulomb)

    def viscous(self, parameters: FloatArray) -> FloatArray:
        """F_v of eq. 57 [N m s/rad], the mean of both directions. Linear in the parameters: (..., p) -> (...)."""
        return np.asarray(parameters @ self._viscous)


def linear_law_names() -> tuple[str, ...]:
    """Names of the laws that are linear in their parameters."""
    return tuple(name for name in law_names() if make_law(name).is_linear)


def make_linear_law(name: str) -> LinearFrictionLaw:
    """Law by name that least squares and Kalman filters can identify.

    Raises
    ------
    ConfigError
        When the law is unknown or not linear in its parameters.
    """
    law = make_law(name)
    if not isinstance(law, LinearFrictionLaw):
        raise ConfigError(
            f"the friction law {name!r} is not linear in its parameters and cannot be identified recursively; "
            f"the linear laws are {choices(linear_law_names())}"
        )
    return law


_STEEP = Term("sign", Shape.TANH, _STEEPEST_SCALE)
SHAPE, _POWER, _SIDE, _BASE_ROW, FACTOR = range(5)
"""Columns of :func:`term_table`."""


def term_table(terms: Sequence[Term | None]) -> tuple[IntArray, FloatArray]:
    """Codes (p, 5) and scales (p,) of a law's terms for the kernels; None is a term that is zero.

    A code is shape, power of the load, side, base row and factor. The base row is that of an earlier term that differs
    only in power and factor, and has neither; for a presliding term that of the steep tanh term that is subtracted from
    it; else its own row.
    """
    codes, scales = np.full((len(terms), 5), _PADDING, dtype=np.int64), np.ones(len(terms))
    for row, term in enumerate(terms):
        if term is None:
            continue
        unloaded = _STEEP if term.shape == Shape.STRAIN else replace(term, load_power=0, factor=Factor.NONE)
        earlier = ((k, other) for k, other in enumerate(terms[:row]) if other is not None)
        base_rows = (k for k, other in earlier if _function_key(other) == _function_key(unloaded))
        codes[row] = term.shape, term.load_power, term.side, next(base_rows, row), term.factor
        scales[row] = term.scale
    return codes, scales


def _function_key(term: Term) -> tuple[Shape, float, int, Side, Factor]:
    return term.shape, term.scale, term.load_power, term.side, term.factor


@kernel
def presliding_of_load(codes: IntArray, parameters: FloatArray, strain: FloatArray) -> tuple[float, float]:
    """How far dry friction that changes with load or position has built up after a reversal.

    It has the presliding of the friction without load and ripple: ``sum_k w_k z_k + (1 - sum_k w_k) tanh(dq / s)``
    takes the place of ``tanh(dq / s)``, with weights ``w_k`` in proportion to the torques m that are positive. Their
    sum is 0 where these add up to less than a quarter of F_c, and 1 where they add up to three quarters.

    Parameters
    ----------
    codes, parameters : (p, 5), (p,) of one law
    strain : (s,) Dahl strains

    Returns
    -------
    sliding, held : ``1 - sum_k w_k``, ``sum_k w_k z_k``
    """
    plateau, total, held, strains = 0.0, 0.0, 0.0, 0
    for j in range(parameters.size):
        if codes[j, SHAPE] == _STRAIN and strains < strain.size:
            torque = max(parameters[j], 0.0)
            total += torque
            held += torque * strain[strains]
            strains += 1
        elif codes[j, SHAPE] in (_TANH, _SIGN) and codes[j, _POWER] == 0:
            plateau += parameters[j]
    part = min(2.0 * total / max(plateau, total) - 0.5, 1.0) if total > 0.0 else 0.0
    return (1.0 - part, part * held / total) if part > 0.0 else (1.0, 0.0)


@kernel
def fill_regressor(
    phi: FloatArray,
    codes: IntArray,
    scales: FloatArray,
    velocity: float,
    load: float,
    strain: FloatArray,
    sliding: float,
    held: float,
    wave: FloatArray,
) -> None:
    """Write the terms (p,) of one law at one velocity and load.

    Parameters
    ----------
    phi, codes, scales : (p,) output; (p, 5), (p,) of :func:`term_table`
    strain : (s,) Dahl strains; (0,): the motor slides on
    sliding, held : parts of the dry friction that changes with load or position, see :func:`presliding_of_load`; 1, 0:
        the motor slides on
    wave : (2,) sine and cosine of its position; (0,): the mean over all positions
    """
    strains = 0
    direction = 1.0 if velocity > 0.0 else (-1.0 if velocity < 0.0 else 0.0)
    push = 1.0 if load > 0.0 else (-1.0 if load < 0.0 else 0.0)
    driving = 0.5 * (1.0 + push * direction)
    for j in range(codes.shape[0]):
        shape, power, side, base_row = codes[j, SHAPE], codes[j, _POWER], codes[j, _SIDE], codes[j, _BASE_ROW]
        if shape == _PADDING:
            phi[j] = 0.0
            continue
        if shape == _STRAIN:
            phi[j] = 0.0
            if strain.size > 0:
                phi[j] = strain[strains] - (phi[base_row] if base_row < j else math.tanh(velocity / _STEEPEST_SCALE))
                strains += 1
            continue
        if base_row < j:
            value = phi[base_row]
        elif shape == _TANH:
            x = velocity / scales[j]
            value = direction if abs(x) >= _SATURATED_ARGUMENT else 1.0 - 2.0 / (math.exp(2.0 * x) + 1.0)
        elif shape == _SIGN:
            value = direction
        elif shape == _LINEAR:
            value = velocity
        elif shape == _CONSTANT:
            value = 1.0
        else:
            fading = math.exp(-abs(velocity) / scales[j])
            value = direction * (fading if shape == _FADING else 1.0 - fading)
        if base_row == j:
            if side == _FORWARD and velocity <= 0.0 or side == _BACKWARD and velocity >= 0.0:
                value = 0.0
            elif side == _DRIVING:
                value *= driving
            elif side == _DRIVEN:
                value *= 1.0 - driving
        is_varied = power > 0 or codes[j, FACTOR] != _NO_FACTOR
        if is_varied and side == _BOTH and shape in (_TANH, _SIGN):
            value = sliding * value + held
        for _ in range(power):
            value *= abs(load)
        if codes[j, FACTOR] != _NO_FACTOR:
            value *= wave[codes[j, FACTOR] - 1] if wave.size > 0 else 0.0
        phi[j] = value


@entry_point
def _law_regressor(codes: IndexMatrix, scales: Vector, velocity: Vector, load: Vector) -> FloatArray:
    """Terms (r, p) of one law at velocities and loads (r,)."""
    phi, none = np.empty((velocity.size, codes.shape[0])), np.empty(0)
    for row in range(velocity.size):
        fill_regressor(phi[row], codes, scales, velocity[row], load[row], none, 1.0, 0.0, none)
    return phi


VISCOUS_TERM = Term("viscous", Shape.LINEAR, unit="N m s/rad", viscous=1.0)
OFFSET_TERM = Term("offset", Shape.CONSTANT, prior_std=5.0, nonnegative=False, optional=True)
_SLOPE_NAMES = ("tanh_steep", "tanh_middle", "tanh_flat")
_SIX_NAMES = ("tanh_0.002", "tanh_0.01", "tanh_0.032", "tanh_0.1", "tanh_0.32", "tanh_1")
_SIX_SCALES = (0.002, 0.01, 10**-1.5, 0.1, 10**-0.5, 1.0)


def tanh_slopes(
    name: str,
    slopes: dict[str, float],
    load_std: tuple[float, float] | None = None,
    narrow: Mapping[str, float] = MappingProxyType({}),
) -> LinearFrictionLaw:
    """``sum_k a_k tanh(dq / v_k) + F_v dq``, and ``(k_l |tau| + k_q tau^2) tanh(dq / 0.002)`` where it depends on load.

    Single tangents may be negative, their sum is F_c. Both load terms are held nonnegative: a curve that bends down
    over the load would drive the joint.

    Parameters
    ----------
    name : the key in the registry
    slopes : v_k of each tangent by the name of its parameter [rad/s]
    load_std : prior standard deviations of k_l [-] and k_q [1/(N m)]; None: no load terms
    narrow : prior standard deviations of single tangents, where they are not 10 N m
    """
    tangents = [
        Term(key, Shape.TANH, scale, prior_std=narrow.get(key, 10.0), nonnegative=False, coulomb=1.0)
        for key, scale in slopes.items()
    ]
    load = [
        Term(f"load_{kind}", Shape.TANH, _STEEPEST_SCALE, power, unit=unit, prior_std=std)
        for kind, power, unit, std in zip(
            ("linear", "quadratic"), (1, 2), ("", "1/(N m)"), load_std or (), strict=False
        )
    ]
    return LinearFrictionLaw(name, (*tangents, VISCOUS_TERM, *load))


COULOMB_VISCOUS = register_law(
    LinearFrictionLaw("coulomb_viscous", (Term("coulomb", Shape.SIGN, coulomb=1.0), VISCOUS_TERM))
)
"""``F_c sgn(dq) + F_v dq`` (Hashlamon & Erbatur 2014, eq. 57)."""

_SIX = dict(zip(_SIX_NAMES, _SIX_SCALES, strict=True))
_NARROW = {"tanh_1": 0.3}
"""A joint that is never fast enough cannot separate the softest tangent from F_v: its friction counts as viscous."""

_THREE_SLOPE = register_law(tanh_slopes("three_slope", dict(zip(_SLOPE_NAMES, (0.015, 0.06, 0.3), strict=True))))
"""``k_1 tanh(dq/0.015) + k_2 tanh(dq/0.06) + k_3 tanh(dq/0.3) + F_v dq``.

Differences of tangents of fixed slope follow a Stribeck curve as eq. 56 of Hashlamon & Erbatur 2014 does, and are
linear in the unknowns.
"""

TANH_LOAD = register_law(
    tanh_slopes("tanh_load", dict(zip(_SLOPE_NAMES, (0.008, 0.06, 0.3), strict=True)), (0.3, 0.01))
)
"""Three slopes ``+ (k_l |tau| + k_q tau^2) tanh(dq/0.002)``, the first slope steeper than in ``three_slope``.

The linear term is that of Hamon et al. 2010, eq. 17, the quadratic one that of Lim et al. 2024, eq. 23, with the motor
torque as the load.
"""

SIX_SLOPE = register_law(tanh_slopes("six_slope", _SIX, narrow=_NARROW))
"""``sum_k a_k tanh(dq/v_k) + F_v dq`` with ``v_k`` = 0.002, 0.01, 0.032, 0.1, 0.32, 1 rad/s.

The sharpest tangent is a sign to any encoder. From 0.01 on neighbouring tangents overlap so far that a tangent of any
slope between them is met to a few percent.
"""

SIX_SLOPE_LOAD = register_law(tanh_slopes("six_slope_load", _SIX, (0.02, 0.0005), _NARROW))
"""Six slopes ``+ (k_l |tau| + k_q tau^2) tanh(dq/0.002)``: the default of the Kalman observer.

The load terms are those of ``tanh_load`` with narrower priors: where friction does not depend on the load they stay
near zero.
"""

PRESLIDING_TERMS = tuple(
    Term(f"presliding_{1e3 * length:g}_mrad", Shape.STRAIN, length, prior_std=3.0) for length in PRESLIDING
)
"""``sum_k m_k (z_k - tanh(dq / 0.002))``: after a reversal dry friction builds up over a distance.

``dz_k/dt = (dq - |dq| z_k) / s_k`` (Dahl 1968) with the distances :data:`PRESLIDING`. The terms are added to
those of a law, which then is the friction of a motor that slides on.
"""

MAX_RIPPLES = 300
"""Largest number of ripples in a turn: harmonic drives have two in a turn of the motor."""
_RIPPLING = ("coulomb", Shape.TANH, _STEEPEST_SCALE, "N m"), ("viscous", Shape.LINEAR, 1.0, "N m s/rad")
RIPPLE_TERMS = tuple(
    Term(
        f"ripple_{name}_{factor.name.lower()}", shape, scale, unit=unit, prior_std=3.0, nonnegative=False, factor=factor
    )
    for name, shape, scale, unit in _RIPPLING
    for factor in (Factor.SINE, Factor.COSINE)
)
"""``(a_s sin(k q) + a_c cos(k q)) tanh(dq / 0.002) + (b_s sin(k q) + b_c cos(k q)) dq``.

The friction of gears with teeth changes with the position q, k times a turn. The terms are added to those of a law,
which then is the mean friction. The dry part has the presliding of the friction without ripple, see
:func:`presliding_of_load`.
"""

ADDED_TERMS = {"ripple": RIPPLE_TERMS, "presliding": PRESLIDING_TERMS}
"""Terms that the Kalman observer adds to every law where the data show them, by kind and in this order."""
