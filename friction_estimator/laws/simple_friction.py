"""Any friction law as Coulomb and viscous friction: what URDF, MJCF and most controllers can say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from friction_estimator.laws.law import FrictionLaw
from friction_estimator.laws.linear import LinearFrictionLaw
from friction_estimator.types import FloatArray

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
    asymmetry : largest difference between the directions, the offset apart; of a law without load [N m]
    shape : largest difference that is then left: what depends on the load, or bends over velocity [N m]
    load_dependent : whether the law has a load
    """

    coulomb: float
    viscous: float
    offset: float
    torque_rms: float
    error: float
    asymmetry: float
    shape: float
    load_dependent: bool

    @property
    def lost(self) -> tuple[str, ...]:
        """What F_c and F_v alone do not say, each with its size, in words; empty when they say nearly everything."""
        limit = _WORTH_TELLING * self.torque_rms
        shape = "the dependence on load and velocity" if self.load_dependent else "the shape over velocity (Stribeck)"
        parts = (
            (f"{shape}, up to", self.shape),
            ("the difference between the directions, up to", self.asymmetry),
            ("the offset,", abs(self.offset)),
        )
        return tuple(f"{what} {size:.2g} N m" for what, size in parts if size > limit)


def simplify(law: FrictionLaw, parameters: FloatArray, velocity: FloatArray, load: FloatArray) -> SimpleFriction:
    """Least-squares projection of a law on Coulomb friction, viscous friction and an offset.

    A law that is Coulomb and viscous friction keeps its parameters to the bit. The offset is part of the fit where both
    directions occur, so that it does not leak into the other two. F_c and F_v are held nonnegative: formats refuse
    friction that drives.

    Parameters
    ----------
    parameters : (p,) of the law
    velocity : (m,) at which the two should agree, none of them zero [rad/s]
    load : (m,) that goes with each velocity [N m]

    Returns
    -------
    The projection, with what it leaves out.
    """
    torque, with_load = _torque(law, parameters, velocity, load), law.needs_load
    both = velocity.min() < 0.0 < velocity.max()
    # without both directions the column of the offset is zero, and its minimum-norm solution too
    basis = np.column_stack((np.sign(velocity), velocity, np.full(velocity.size, float(both))))
    chi = _own_parameters(law, parameters)
    if chi is None or _largest(basis @ chi - torque) > _EXACT * _largest(torque):
        chi = np.asarray(lsq_linear(basis, torque, ([0.0, 0.0, -np.inf], np.inf)).x)
    rest = torque - basis @ chi
    even = np.zeros(velocity.size)
    if both and not with_load:
        seen = (-velocity >= velocity.min()) & (-velocity <= velocity.max())  # in the other direction, too
        even = np.where(seen, 0.5 * (torque + _torque(law, parameters, -velocity, load)) - chi[2], 0.0)
    return SimpleFriction(
        coulomb=float(chi[0]),
        viscous=float(chi[1]),
        offset=float(chi[2]),
        torque_rms=_rms(torque),
        error=_rms(rest),
        asymmetry=_largest(even),
        shape=_largest(rest - even),
        load_dependent=with_load,
    )


def _own_parameters(law: FrictionLaw, parameters: FloatArray) -> FloatArray | None:
    """F_c, F_v and no offset, as the law itself names them; None when it cannot or one is negative."""
    if not isinstance(law, LinearFrictionLaw):
        return None
    own = np.array([law.coulomb(parameters), law.viscous(parameters), 0.0], dtype=float)
    return own if (own >= 0.0).all() else None


def _torque(law: FrictionLaw, parameters: FloatArray, velocity: FloatArray, load: FloatArray) -> FloatArray:
    """Torque of the law (m,) [N m]."""
    return law.torque(np.broadcast_to(parameters, (velocity.size, parameters.size)), velocity, load)


def _largest(values: FloatArray) -> float:
    return float(np.abs(values).max())


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))
