"""Friction laws with parameters that shape their curve: nonlinear least squares identifies them from a recording."""

from __future__ import annotations

import numpy as np

from friction_estimator.laws.law import register_law, required_load
from friction_estimator.laws.linear import ASYMMETRIC_STRIBECK, LOAD_QUADRANTS, load_velocity_at
from friction_estimator.types import FloatArray

_Ranges = tuple[tuple[float, float] | None, ...]


class Makkar:
    """``g1 (tanh(g2 dq) - tanh(g3 dq)) + g4 tanh(g5 dq) + g6 dq`` (Hashlamon & Erbatur 2014, eq. 56)."""

    name: str = "makkar"
    parameter_names: tuple[str, ...] = ("gamma_1", "gamma_2", "gamma_3", "gamma_4", "gamma_5", "gamma_6")
    units: tuple[str, ...] = ("N m", "s/rad", "s/rad", "N m", "s/rad", "N m s/rad")
    nonnegative: tuple[bool, ...] = (True, True, True, True, True, True)
    needs_load: bool = False
    shape_range: _Ranges = (
        None,
        (0.1, 1e3),
        (0.1, 1e3),
        None,
        (0.1, 1e3),
        None,
    )

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque (n,) [N m] for parameters (n, 6) = gamma_1..gamma_6."""
        g1, g2, g3, g4, g5, g6 = parameters.T
        stribeck = g1 * (np.tanh(g2 * velocity) - np.tanh(g3 * velocity))
        return stribeck + g4 * np.tanh(g5 * velocity) + g6 * velocity

    def stribeck_region(self, parameters: FloatArray) -> FloatArray:
        """``2.3 / gamma_3``: two percent of the Stribeck effect are left there, (n, 6) -> (n,) [rad/s]."""
        return np.asarray(2.3 / parameters[..., 2])


class TanhStribeck:
    """``F_v dq + F_c tanh(a dq) (1 + S exp(-|dq / v_s|^2)) + tau_os`` (Egle 2021, eq. 3.5 with delta_s = 2).

    Not linear in S, v_s and a. The order of the parameters is that of the thesis' Table 6.1.
    """

    name: str = "tanh_stribeck"
    parameter_names: tuple[str, ...] = (
        "viscous",
        "coulomb",
        "stribeck",
        "stribeck_velocity",
        "offset",
        "slope",
    )
    units: tuple[str, ...] = ("N m s/rad", "N m", "", "rad/s", "N m", "s/rad")
    nonnegative: tuple[bool, ...] = (True, True, True, True, False, True)
    needs_load: bool = False
    shape_range: _Ranges = (
        None,
        None,
        (0.0, 10.0),
        (1e-3, 10.0),
        None,
        (0.1, 1e3),
    )

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque (n,) [N m] for parameters (n, 6) = F_v, F_c, S, v_s, tau_os, a."""
        f_v, f_c, s, v_s, offset, a = parameters.T
        bell = 1.0 + s * np.exp(-((velocity / v_s) ** 2))
        return f_v * velocity + f_c * np.tanh(a * velocity) * bell + offset

    def stribeck_region(self, parameters: FloatArray) -> FloatArray:
        """``2 v_s``: two percent of the Stribeck effect are left there, (n, 6) -> (n,) [rad/s]."""
        return np.asarray(2.0 * parameters[..., 3])


class StribeckLoad:
    """``sgn(dq) (f_c + (f_s - f_c) exp(-|dq / v_s|) + k_l |tau|^2) + k_v dq`` (Lim et al. 2024, eq. 23, our sign)."""

    name: str = "stribeck_load"
    parameter_names: tuple[str, ...] = ("coulomb", "static", "stribeck_velocity", "viscous", "load_quadratic")
    units: tuple[str, ...] = ("N m", "N m", "rad/s", "N m s/rad", "1/(N m)")
    nonnegative: tuple[bool, ...] = (True, True, True, True, True)
    needs_load: bool = True
    shape_range: _Ranges = (None, None, (1e-3, 10.0), None, None)

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque (n,) [N m] for parameters (n, 5) and load = motor torque (n,) [N m]."""
        load = required_load(self.name, load)
        f_c, f_s, v_s, k_v, k_l = parameters.T
        dry = f_c + (f_s - f_c) * np.exp(-np.abs(velocity / v_s)) + k_l * load**2
        return np.sign(velocity) * dry + k_v * velocity

    def stribeck_region(self, parameters: FloatArray) -> FloatArray:
        """``4 v_s``: two percent of the Stribeck effect are left there, (n, 5) -> (n,) [rad/s]."""
        return np.asarray(4.0 * parameters[..., 2])


class AsymmetricStribeckScaled:
    """The law ``asymmetric_stribeck`` with ``e = exp(-|dq| / v_s)``: the velocity over which it fades is a parameter.

    The print leaves the unit of the exponent open; with v_s = 1 deg/s it is ``asymmetric_stribeck``.
    """

    name: str = "asymmetric_stribeck_scaled"
    parameter_names: tuple[str, ...] = (*ASYMMETRIC_STRIBECK.parameter_names, "stribeck_velocity")
    units: tuple[str, ...] = (*ASYMMETRIC_STRIBECK.units, "rad/s")
    nonnegative: tuple[bool, ...] = (*ASYMMETRIC_STRIBECK.nonnegative, True)
    needs_load: bool = False
    shape_range: _Ranges = (None, None, None, None, (1e-3, 10.0))

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque (n,) [N m] for parameters (n, 5)."""
        return np.asarray((stribeck_columns(velocity, parameters[..., 4]) * parameters[..., :4]).sum(axis=-1))

    def stribeck_region(self, parameters: FloatArray) -> FloatArray:
        """``4 v_s``: two percent of the Stribeck effect are left there, (n, 5) -> (n,) [rad/s]."""
        return np.asarray(4.0 * parameters[..., 4])


_LINEAR = load_velocity_at(1.0)


class LoadVelocity:
    """``[alpha |tau| + beta + ((gamma - alpha) |tau| + delta - beta) exp(-|dq| / q_s)] sgn(dq) + F_v dq + offset``.

    Hamon et al. 2010, eqs. 22-30: beta is ``coulomb``, delta ``static``, alpha ``load`` and gamma ``load_static``, each
    with one value where the motor drives (``tau dq > 0``) and one where it is driven. As in ``load_quadrants``, which
    this law is without the exponential, tau is the motor torque: docs/equations.md.
    """

    name: str = "load_velocity"
    parameter_names: tuple[str, ...] = (*_LINEAR.parameter_names, "stribeck_velocity")
    units: tuple[str, ...] = (*_LINEAR.units, "rad/s")
    nonnegative: tuple[bool, ...] = (*_LINEAR.nonnegative, True)
    needs_load: bool = True
    shape_range: _Ranges = (*(None,) * 10, (1e-3, 10.0))

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque (n,) [N m] for parameters (n, 11) and load = motor torque (n,) [N m]."""
        columns = load_velocity_columns(velocity, required_load(self.name, load), parameters[..., 10])
        return np.asarray((columns * parameters[..., :10]).sum(axis=-1))

    def stribeck_region(self, parameters: FloatArray) -> FloatArray:
        """``4 q_s``: two percent of the Stribeck effect are left there, (n, 11) -> (n,) [rad/s]."""
        return np.asarray(4.0 * parameters[..., 10])


def stribeck_columns(velocity: FloatArray, stribeck_velocity: FloatArray | float) -> FloatArray:
    """Columns of K_c, K_v, sigma+ and sigma- (Guedelha et al. 2017, eqs. 29-31, with the signs of eqs. 23-25).

    Parameters
    ----------
    velocity : (...) [rad/s]
    stribeck_velocity : v_s in ``e = exp(-|dq| / v_s)``, broadcasts against it [rad/s]

    Returns
    -------
    (..., 4) : ``[sgn(dq) (1 - e), dq, e where dq > 0, -e where dq < 0]``
    """
    direction = np.sign(velocity)
    fading = direction * np.exp(-np.abs(velocity) / stribeck_velocity)
    forward, backward = np.maximum(fading, 0.0), np.minimum(fading, 0.0)
    return np.stack((direction - fading, velocity, forward, backward), axis=-1)


def load_velocity_columns(velocity: FloatArray, load: FloatArray, stribeck_velocity: FloatArray | float) -> FloatArray:
    """Columns of the ten parameters that the torque is linear in (Hamon et al. 2010, eqs. 26-30).

    Parameters
    ----------
    velocity : (...) [rad/s]
    load : (...) broadcasts against it [N m]
    stribeck_velocity : q_s, broadcasts against it [rad/s]

    Returns
    -------
    (..., 10)
    """
    dry = LOAD_QUADRANTS.regressor(velocity, load)
    fading = np.exp(-np.abs(velocity) / stribeck_velocity)
    columns = np.empty((*velocity.shape, 10))
    for first, side in ((0, 0), (4, 2)):
        for place, column in ((first, dry[..., side]), (first + 2, dry[..., side + 1])):
            columns[..., place] = column * (1.0 - fading)
            columns[..., place + 1] = column * fading
    columns[..., 8:] = dry[..., 4:]
    return columns


for _law in (Makkar(), TanhStribeck(), StribeckLoad(), AsymmetricStribeckScaled(), LoadVelocity()):
    register_law(_law)
