"""Any friction law as Coulomb and viscous friction: what URDF, MJCF and most controllers can say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from friction_estimator.core.exceptions import ConfigError
from friction_estimator.core.friction.law import FrictionLaw, LinearFrictionLaw
from friction_estimator.core.types import FloatArray

_EXACT = 1e-12
_WORTH_TELLING = 0.01


@dataclass(frozen=True, slots=True)
class SimpleFriction:
    """``F_c sgn(dq) + F_v dq + offset`` next to the law that it stands in for.

    Attributes
    ----------
    coulomb : F_c, not negative [N m]
    viscous : F_v, not negative [N m s/rad]
    offset : [N m]
    torque_rms : RMS of the law over the velocities and loads of the projection [N m]
    error : RMS of law minus ``F_c sgn(dq) + F_v dq + offset`` there [N m]
    load_effect : largest difference from the mean of all loads [N m]
    asymmetry : largest difference of that mean between the directions, the offset apart [N m]
    shape : largest difference of what is then left from a straight line [N m]
    """

    coulomb: float
    viscous: float
    offset: float
    torque_rms: float
    error: float
    load_effect: float
    asymmetry: float
    shape: float

    @property
    def lost(self) -> tuple[str, ...]:
        """What F_c and F_v alone do not say, each with its size, in words; empty when they say nearly everything."""
        limit = _WORTH_TELLING * self.torque_rms
        parts = (
            ("the dependence on the load, up to", self.load_effect),
            ("the difference between the directions, up to", self.asymmetry),
            ("the shape over velocity (Stribeck), up to", self.shape),
            ("the offset,", abs(self.offset)),
        )
        return tuple(f"{what} {size:.2g} N m" for what, size in parts if size > limit)


def depends_on_load(law: FrictionLaw) -> bool:
    """Whether the law cannot be evaluated without a load."""
    try:
        law.torque(np.ones((1, len(law.parameter_names))), np.ones(1))
    except ConfigError:
        return True
    return False


def simplify(law: FrictionLaw, parameters: FloatArray, velocity: FloatArray, load: FloatArray) -> SimpleFriction:
    """Least-squares projection of a law on Coulomb friction, viscous friction and an offset.

    A law that is Coulomb and viscous friction keeps its parameters to the bit. The offset is part of the fit where both
    directions occur, so that it does not leak into the other two. F_c and F_v are held nonnegative: formats refuse
    friction that drives.

    Parameters
    ----------
    parameters : (p,) of the law
    velocity : (V,) at which the two should agree, none of them zero [rad/s]
    load : (L,) every one of which occurs at every velocity [N m]

    Returns
    -------
    The projection, with what it leaves out.
    """
    torque = _torque(law, parameters, velocity, load)
    mean = torque.mean(axis=0)
    both = velocity.min() < 0.0 < velocity.max()
    basis = np.column_stack((np.sign(velocity), velocity, np.full(velocity.size, float(both))))
    chi = _own_parameters(law, parameters)
    if chi is None or np.abs(basis @ chi - torque).max() > _EXACT * np.abs(torque).max():
        # without both directions the column of the offset is zero, and its minimum-norm solution too
        chi = np.asarray(lsq_linear(basis, mean, ([0.0, 0.0, -np.inf], np.inf)).x)
    simple = basis @ chi
    seen = (-velocity >= velocity.min()) & (-velocity <= velocity.max())  # in the other direction, too
    even = np.where(seen, 0.5 * (mean + _torque(law, parameters, -velocity, load).mean(axis=0)) - chi[2], 0.0)
    return SimpleFriction(
        coulomb=float(chi[0]),
        viscous=float(chi[1]),
        offset=float(chi[2]),
        torque_rms=_rms(torque),
        error=_rms(torque - simple),
        load_effect=_largest(torque - mean),
        asymmetry=_largest(even),
        shape=_largest(mean - simple - even),
    )


def _own_parameters(law: FrictionLaw, parameters: FloatArray) -> FloatArray | None:
    """F_c, F_v and no offset, as the law itself names them; None when it cannot or one is negative."""
    if not isinstance(law, LinearFrictionLaw):
        return None
    own = np.array([law.coulomb(parameters), law.viscous(parameters), 0.0], dtype=float)
    return own if (own >= 0.0).all() else None


def _torque(law: FrictionLaw, parameters: FloatArray, velocity: FloatArray, load: FloatArray) -> FloatArray:
    """Torque of the law at every velocity under every load, (L, V) [N m]."""
    rows = np.broadcast_to(parameters, (velocity.size, parameters.size))
    return np.stack([law.torque(rows, velocity, np.full(velocity.size, one)) for one in load])


def _largest(values: FloatArray) -> float:
    return float(np.abs(values).max())


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))
