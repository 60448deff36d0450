"""Friction laws as published: linear ones, and those whose shape nonlinear least squares finds from a recording."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from friction_estimator.laws.law import FrictionLaw, Parameter, Role, register_law, required_load
from friction_estimator.laws.linear import OFFSET_TERM, VISCOUS_TERM, LinearFrictionLaw, Shape, Side, Term
from friction_estimator.types import FloatArray

SIDES_OF_LOAD = ("motor", Side.DRIVING), ("generator", Side.DRIVEN)
"""Quadrants of the load power by the names in the parameters of a law."""
STRIBECK_VELOCITY = np.pi / 180.0
"""The published ``exp(-omega)`` of Guedelha et al. counts omega in deg/s, as their Table 1 does [rad/s]."""
_SLOPE = (0.1, 1e3)
"""Range of the slope of a hyperbolic tangent [s/rad]."""
_STRIBECK_VELOCITY = Parameter("stribeck_velocity", Role.SHAPE, "rad/s", (1e-3, 10.0))
_VISCOUS_ONLY = Parameter("viscous", Role.VISCOUS, "N m s/rad")
_FADES = (Shape.FADING, Shape.RISING)


ASYMMETRIC = register_law(
    LinearFrictionLaw(
        "asymmetric",
        tuple(
            term
            for name, side in (("positive", Side.FORWARD), ("negative", Side.BACKWARD))
            for term in (
                Term(f"coulomb_{name}", Shape.SIGN, side=side, coulomb=0.5),
                Term(f"viscous_{name}", Shape.LINEAR, side=side, unit="N m s/rad", viscous=0.5),
            )
        ),
    )
)
"""``F_c+ + F_v+ dq`` for positive velocities, ``-F_c- + F_v- dq`` for negative ones.

Eq. 19 of Guedelha et al. 2017 with the half-axes of its eqs. 27-28 for both of its terms.
"""

ASYMMETRIC_STRIBECK = register_law(
    LinearFrictionLaw(
        "asymmetric_stribeck",
        (
            Term("coulomb", Shape.RISING, STRIBECK_VELOCITY, coulomb=1.0),
            VISCOUS_TERM,
            Term("static_positive", Shape.FADING, STRIBECK_VELOCITY, side=Side.FORWARD),
            Term("static_negative", Shape.FADING, STRIBECK_VELOCITY, side=Side.BACKWARD),
        ),
    )
)
"""``K_c sgn(dq) (1 - e) + K_v dq + sigma+- sgn(dq) e`` with ``e = exp(-|dq| / (1 deg/s))``.

Guedelha et al. 2017, section 3.2.2: static friction sigma+ (sigma-) when starting in the positive (negative) direction,
fading to one Coulomb and viscous friction. This meets the limits of eqs. 23-25, which eqs. 26 and 29-31 with their
published signs do not: docs/design/equations.md.
"""

LOAD_QUADRANTS = register_law(
    LinearFrictionLaw(
        "load_quadrants",
        (
            *(
                Term(f"{name}_{owner}", Shape.SIGN, 1.0, power, side, unit, prior, coulomb=coulomb)
                for owner, side in SIDES_OF_LOAD
                for name, power, unit, prior, coulomb in (("coulomb", 0, "N m", 10.0, 0.5), ("load", 1, "", 0.3, 0.0))
            ),
            VISCOUS_TERM,
            OFFSET_TERM,
        ),
    )
)
"""``(alpha |tau| + beta) sgn(dq) + F_v dq + offset`` (Hamon et al. 2010, eqs. 17-20).

alpha and beta take the index m in the two quadrants of (dq, tau) where the load power ``tau dq`` is positive (the motor
drives), and g in the two where it is negative (it is driven); eq. 26 takes that sign from the motor torque. Without
load power both halves count, as ``sgn(0) = 0`` makes of the published P.
"""


class Makkar(FrictionLaw):
    """``g1 (tanh(g2 dq) - tanh(g3 dq)) + g4 tanh(g5 dq) + g6 dq`` (Hashlamon & Erbatur 2014, eq. 56)."""

    name = "makkar"
    parameters = (
        Parameter("gamma_1", Role.STRIBECK),
        Parameter("gamma_2", Role.SHAPE, "s/rad", _SLOPE),
        Parameter("gamma_3", Role.SHAPE, "s/rad", _SLOPE),
        Parameter("gamma_4", Role.COULOMB),
        Parameter("gamma_5", Role.SHAPE, "s/rad", _SLOPE),
        Parameter("gamma_6", Role.VISCOUS, "N m s/rad"),
    )

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque (n,) [N m] for parameters (n, 6) = gamma_1..gamma_6."""
        g1, g2, g3, g4, g5, g6 = parameters.T
        stribeck = g1 * (np.tanh(g2 * velocity) - np.tanh(g3 * velocity))
        return stribeck + g4 * np.tanh(g5 * velocity) + g6 * velocity

    def stribeck_region(self, parameters: FloatArray) -> FloatArray:
        """``2.3 / gamma_3``: two percent of the Stribeck effect are left there, (n, 6) -> (n,) [rad/s]."""
        return np.asarray(2.3 / parameters[..., 2])


class TanhStribeck(FrictionLaw):
    """``F_v dq + F_c tanh(a dq) (1 + S exp(-|dq / v_s|^2)) + tau_os`` (Egle 2021, eq. 3.5 with delta_s = 2).

    Not linear in S, v_s and a. The order of the parameters is that of the thesis' Table 6.1.
    """

    name = "tanh_stribeck"
    parameters = (
        _VISCOUS_ONLY,
        Parameter("coulomb", Role.COULOMB),
        Parameter("stribeck", Role.SHAPE, "", (0.0, 10.0)),
        _STRIBECK_VELOCITY,
        Parameter("offset", Role.OFFSET, bounds=(-math.inf, math.inf)),
        Parameter("slope", Role.SHAPE, "s/rad", _SLOPE),
    )

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque (n,) [N m] for parameters (n, 6) = F_v, F_c, S, v_s, tau_os, a."""
        f_v, f_c, s, v_s, offset, a = parameters.T
        bell = 1.0 + s * np.exp(-((velocity / v_s) ** 2))
        return f_v * velocity + f_c * np.tanh(a * velocity) * bell + offset

    def stribeck_region(self, parameters: FloatArray) -> FloatArray:
        """``2 v_s``: two percent of the Stribeck effect are left there, (n, 6) -> (n,) [rad/s]."""
        return np.asarray(2.0 * parameters[..., 3])


class StribeckLoad(FrictionLaw):
    """``sgn(dq) (f_c + (f_s - f_c) exp(-|dq / v_s|) + k_l |tau|^2) + k_v dq`` (Lim et al. 2024, eq. 23, our sign)."""

    name = "stribeck_load"
    parameters = (
        Parameter("coulomb", Role.COULOMB),
        Parameter("static", Role.STRIBECK),
        _STRIBECK_VELOCITY,
        _VISCOUS_ONLY,
        Parameter("load_quadratic", Role.LOAD, "1/(N m)"),
    )
    depends_on_load = True

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque (n,) [N m] for parameters (n, 5) and load = motor torque (n,) [N m]."""
        load = required_load(self.name, load)
        f_c, f_s, v_s, k_v, k_l = parameters.T
        dry = f_c + (f_s - f_c) * np.exp(-np.abs(velocity / v_s)) + k_l * load**2
        return np.sign(velocity) * dry + k_v * velocity

    def stribeck_region(self, parameters: FloatArray) -> FloatArray:
        """``4 v_s``: two percent of the Stribeck effect are left there, (n, 5) -> (n,) [rad/s]."""
        return np.asarray(4.0 * parameters[..., 2])


class ScaledStribeck(FrictionLaw):
    """A linear law whose fading and rising terms all have one scale, with that Stribeck velocity as last parameter.

    Parameters
    ----------
    name : the key in the registry
    linear : the law at a Stribeck velocity of any size
    """

    def __init__(self, name: str, linear: LinearFrictionLaw) -> None:
        self.name = name
        self._unit = LinearFrictionLaw(name, _scaled(linear, 1.0))
        self.parameters = (*self._unit.parameters, _STRIBECK_VELOCITY)
        self.depends_on_load = linear.depends_on_load
        self._viscous = [k for k, term in enumerate(linear.terms) if term.shape is Shape.LINEAR]

    def at(self, stribeck_velocity: float) -> LinearFrictionLaw:
        """The law at one Stribeck velocity [rad/s]: linear in the rest."""
        return LinearFrictionLaw(f"{self.name} at a Stribeck velocity", _scaled(self._unit, stribeck_velocity))

    def columns(
        self, velocity: FloatArray, stribeck_velocity: FloatArray | float, load: FloatArray | None = None
    ) -> FloatArray:
        """Columns (..., p - 1) of the parameters that the torque is linear in.

        Parameters
        ----------
        velocity : (...) [rad/s]
        stribeck_velocity : broadcasts against it [rad/s]
        load : (...) broadcasts against it [N m]; load-dependent laws need it
        """
        columns = self._unit.regressor(velocity / stribeck_velocity, load)
        columns[..., self._viscous] = velocity[..., None]
        return columns

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque (n,) [N m] for parameters (n, p)."""
        return np.asarray((self.columns(velocity, parameters[..., -1], load) * parameters[..., :-1]).sum(axis=-1))

    def stribeck_region(self, parameters: FloatArray) -> FloatArray:
        """``4 v_s``: two percent of the Stribeck effect are left there, (n, p) -> (n,) [rad/s]."""
        return np.asarray(4.0 * parameters[..., -1])


def _scaled(law: LinearFrictionLaw, stribeck_velocity: float) -> tuple[Term, ...]:
    return tuple(replace(term, scale=stribeck_velocity) if term.shape in _FADES else term for term in law.terms)


for _law in (Makkar(), TanhStribeck(), StribeckLoad()):
    register_law(_law)

ASYMMETRIC_STRIBECK_SCALED = register_law(ScaledStribeck("asymmetric_stribeck_scaled", ASYMMETRIC_STRIBECK))
"""``asymmetric_stribeck`` with ``e = exp(-|dq| / v_s)``: the published unit of the exponent is open (1 deg/s there)."""

LOAD_VELOCITY = register_law(
    ScaledStribeck(
        "load_velocity",
        LinearFrictionLaw(
            "load_velocity",
            (
                *(
                    Term(f"{name}_{owner}", shape, 1.0, power, side, unit, prior, coulomb=coulomb)
                    for owner, side in SIDES_OF_LOAD
                    for name, shape, power, unit, prior, coulomb in (
                        ("coulomb", Shape.RISING, 0, "N m", 10.0, 0.5),
                        ("static", Shape.FADING, 0, "N m", 10.0, 0.0),
                        ("load", Shape.RISING, 1, "", 0.3, 0.0),
                        ("load_static", Shape.FADING, 1, "", 0.3, 0.0),
                    )
                ),
                VISCOUS_TERM,
                OFFSET_TERM,
            ),
        ),
    )
)
"""``[alpha |tau| + beta + ((gamma - alpha) |tau| + delta - beta) exp(-|dq| / q_s)] sgn(dq) + F_v dq + offset``.

Hamon et al. 2010, eqs. 22-30: beta is ``coulomb``, delta ``static``, alpha ``load`` and gamma ``load_static``, each
with one value where the motor drives (``tau dq > 0``) and one where it is driven. As in ``load_quadrants``, which this
law is without the exponential, tau is the motor torque: docs/design/equations.md.
"""
