"""Fit of a linear law to a friction torque: to samples, to the curve of another law; Coulomb-viscous friction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.laws.law import FrictionLaw, make_law, torque_gradient
from friction_estimator.laws.linear import COULOMB_VISCOUS, LinearFrictionLaw, make_linear_law
from friction_estimator.types import BoolArray, FloatArray

_ZERO_SHARE = 1e-9
"""Nonnegative parameters below this share of the largest one, in units of their prior, are zero."""
_SAMPLE_FLOOR, _CURVE_FLOOR = 1e-4, 1e-3
"""Smallest error of samples and of a curve, as a share of the friction."""
_INDEPENDENT_SAMPLES = 20.0
"""Number of samples that all count as for the error of a law's shape, which lasts a stretch of the motion."""
_SPEEDS = np.geomspace(1e-3, 10.0, 40)
_VELOCITY = np.concatenate((-_SPEEDS[::-1], _SPEEDS))
"""Velocities at which laws are compared [rad/s]."""
_COMPARED_LOADS = (0.0, -30.0, -10.0, 10.0, 30.0)
"""Loads at which a law that depends on them is compared [N m]."""
_NAMED_OFFSET_SHARE, _LOST_SHARE = 0.05, 0.01
"""Shares of the friction: an offset that a note names, and a part that an export reports as lost."""
_EXACT_SHARE = 1e-12
"""Part of the friction below which a difference of two laws is rounding."""


@dataclass(frozen=True, slots=True)
class LawFit:
    """Parameters of a linear law that is nearest to a friction torque."""

    values: FloatArray  # (p,)
    covariance: FloatArray  # (p, p) of what the torque leaves open and of what the law cannot represent
    gradient: FloatArray  # (p, N) of the values by the torque of every sample
    offset: float  # constant part of the torque that the law lacks, where it was fitted [N m]
    misfit: float  # RMS of what else the law cannot represent [N m]


class SampleNoise:
    """Friction torque (N,) of samples with independent errors, which count by their weight.

    What the law cannot represent does not average out as noise does: for the covariance, the samples count as twenty.

    Attributes
    ----------
    rounds : number of fits, each weighted with the misfit of the one before
    refreshed : True: the covariance has the misfit of the last fit; False: the one that this fit was weighted with
    inflation : factor of the error for the covariance
    """

    rounds, refreshed = 2, True

    def __init__(self, friction: FloatArray, weight: FloatArray | float = 1.0) -> None:
        self._root = np.sqrt(np.broadcast_to(weight, friction.shape))
        self._floor = _SAMPLE_FLOOR * self.rms(friction) or 1.0
        self.inflation = float(np.sqrt(max(friction.size / _INDEPENDENT_SAMPLES, 1.0)))

    def whiten(self, rows: FloatArray, misfit: float) -> FloatArray:
        """Rows (N, ...) in standard deviations, when the law has the error ``misfit`` [N m]; a symmetric operator."""
        return (rows.T * self._root).T / max(misfit, self._floor)

    def rms(self, error: FloatArray) -> float:
        """RMS of an error (N,) [N m]."""
        return float(np.sqrt(np.mean((error * self._root) ** 2)))


class CurveNoise:
    """Friction torque (N,) of a curve on a grid, known with a covariance.

    Where the curve was never seen it weighs nothing. The grid counts as ``independent`` measurements.
    """

    rounds, refreshed, inflation = 3, False, 1.0

    def __init__(
        self, friction: FloatArray, covariance: FloatArray, residual_variance: float, independent: int
    ) -> None:
        self._covariance, self._share = covariance, friction.size / independent
        size = _CURVE_FLOOR**2 * np.mean(friction**2)
        self._weights = 1.0 / (np.diagonal(covariance) + residual_variance + size)
        self._variance = residual_variance + _CURVE_FLOOR**2 * np.average(friction**2, weights=self._weights)

    def whiten(self, rows: FloatArray, misfit: float) -> FloatArray:
        """See :meth:`SampleNoise.whiten`."""
        noise = (self._variance + misfit**2) * self._share
        variance, vectors = np.linalg.eigh(self._covariance + noise * np.eye(len(rows)))
        return np.asarray(vectors / np.sqrt(variance) @ (vectors.T @ rows))

    def rms(self, error: FloatArray) -> float:
        """See :meth:`SampleNoise.rms`."""
        return float(np.sqrt(np.average(error**2, weights=self._weights)))


def fit_law(
    law: LinearFrictionLaw,
    velocity: FloatArray,
    load: FloatArray,
    friction: FloatArray,
    noise: SampleNoise | CurveNoise | None = None,
    with_prior: bool = True,
    free_offset: bool = False,
) -> LawFit:
    """Least squares of a linear law to a friction torque, within the bounds of its parameters.

    Parameters
    ----------
    law : whose parameters are fitted
    velocity, load, friction : (N,) [rad/s], [N m], [N m]
    noise : how well the friction is known; None: independent samples of equal weight
    with_prior : the prior of the law decides what the friction leaves open
    free_offset : a constant torque that the law lacks is fitted as well, so that it does not bend the rest
    """
    noise = SampleNoise(friction) if noise is None else noise
    columns, prior, nonnegative = law.regressor(velocity, load), np.array(law.prior_std), np.array(law.nonnegative)
    p = prior.size
    if free_offset := free_offset and not law.has_offset:
        columns = np.column_stack((columns, np.ones(velocity.size)))
        prior, nonnegative = np.append(prior, np.abs(friction).max() + 1.0), np.append(nonnegative, False)
    scale, known = (prior, np.eye(prior.size)) if with_prior else (np.ones(prior.size), np.zeros((0, prior.size)))
    misfit = weighted_with = 0.0
    values = np.zeros(prior.size)
    for _ in range(noise.rounds):
        weighted_with = misfit
        right = np.append(noise.whiten(friction, misfit), np.zeros(len(known)))
        rows = np.vstack((noise.whiten(columns, misfit) * scale, known))
        values = _bounded_least_squares(rows, right, nonnegative) * scale
        misfit = noise.rms(columns @ values - friction)
    size = misfit if noise.refreshed else weighted_with
    whitened = noise.whiten(columns, size) * scale
    inverse = np.linalg.pinv(np.vstack((whitened, known)))[:, : velocity.size]
    inflated_inverse = np.linalg.pinv(np.vstack((whitened / noise.inflation, known)))
    gradient = scale[:, None] * noise.whiten(inverse.T, size).T
    return LawFit(
        values[:p],
        (inflated_inverse @ inflated_inverse.T * np.outer(scale, scale))[:p, :p],
        gradient[:p],
        float(values[p]) if free_offset else 0.0,
        misfit,
    )


def _bounded_least_squares(rows: FloatArray, right: FloatArray, nonnegative: BoolArray) -> FloatArray:
    """Least squares (p,); no value below zero that must not be."""
    values = np.linalg.lstsq(rows, right, rcond=None)[0]
    small = _ZERO_SHARE * np.abs(values).max(initial=0.0)
    if (nonnegative & (values < -small)).any():
        from scipy.optimize import lsq_linear  # takes 0.05 s, and a node that starts with no saved law does without

        values = lsq_linear(rows, right, (np.where(nonnegative, 0.0, -np.inf), np.inf), method="bvls").x
    return np.where(nonnegative & (values < small), 0.0, values)


def fit_law_to_curve(
    target: LinearFrictionLaw, law: FrictionLaw, values: FloatArray, covariance: FloatArray, residual_variance: float
) -> LawFit:
    """Fit of a linear law to the curve of another law, on a grid of velocities from 1 mrad/s to 10 rad/s.

    The curve's error at each velocity and the correlation between them follow from its covariance: where it was never
    seen it weighs nothing, and there the target keeps its prior. The grid counts as many independent measurements as
    the target has parameters. A constant torque that the target lacks is fitted as well.

    Parameters
    ----------
    target : law whose parameters are fitted
    law, values, covariance : the curve, parameters (q,) and their covariance (q, q)
    residual_variance : of what the curve itself does not explain [(N m)^2]
    """
    loads = _COMPARED_LOADS if law.depends_on_load else _COMPARED_LOADS[:1]
    velocity, load = (grid.ravel() for grid in np.meshgrid(_VELOCITY, loads))
    curve, slopes = law.torque(values[None, :], velocity, load), torque_gradient(law, values, velocity, load)
    noise = CurveNoise(curve, slopes @ covariance @ slopes.T, residual_variance, len(target.parameters))
    return fit_law(target, velocity, load, curve, noise, free_offset=True)


def with_linear_laws(
    identified: IdentifiedParameters, joint_names: Sequence[str], law_names: Sequence[str]
) -> tuple[IdentifiedParameters, tuple[str, ...]]:
    """Parameters of nonlinear laws as parameters of the linear laws that a robot's filters have.

    Parameters
    ----------
    identified : any; joints with a linear law, or that this robot lacks, stay as they are
    joint_names, law_names : (n) of the robot here

    Returns
    -------
    identified : ready for filters
    notes : which curve was fitted by another law, and what that law cannot represent; one sentence a joint
    """
    wanted = dict(zip(joint_names, law_names, strict=True))
    rows = [
        row
        for row, (joint, law) in enumerate(zip(identified.joint_names, identified.law_names, strict=True))
        if joint in wanted and law != wanted[joint] and not make_law(law).is_linear
    ]
    if not rows:
        return identified, ()
    n, count = identified.values.shape
    width = max(count, *(len(make_law(name).parameters) for name in law_names))
    laws, values, covariance = list(identified.law_names), np.zeros((n, width)), np.zeros((n, width, width))
    values[:, :count], covariance[:, :count, :count] = identified.values, identified.covariance
    residual_variance, notes = identified.residual_variance.copy(), []
    for row in rows:
        joint, saved = identified.joint_names[row], make_law(identified.law_names[row])
        target, q = make_linear_law(wanted[joint]), len(saved.parameters)
        found = fit_law_to_curve(
            target, saved, values[row, :q].copy(), covariance[row, :q, :q].copy(), float(residual_variance[row])
        )
        p = found.values.size
        laws[row], values[row], covariance[row] = target.name, 0.0, 0.0
        values[row, :p], covariance[row, :p, :p] = found.values, found.covariance
        residual_variance[row] += found.misfit**2
        notes.append(_fit_note(joint, saved.name, target.name, found))
    changed = replace(
        identified, law_names=tuple(laws), values=values, covariance=covariance, residual_variance=residual_variance
    )
    return changed, tuple(notes)


def _fit_note(joint: str, saved: str, target: str, found: LawFit) -> str:
    text = f"{joint}: the curve of {saved} was fitted by {target} with an error of {found.misfit:.2g} N m RMS"
    if abs(found.offset) > _NAMED_OFFSET_SHARE * max(np.hypot(found.misfit, found.offset), _CURVE_FLOOR):
        text += f", without its offset of {found.offset:.2g} N m"
    return text


@dataclass(frozen=True, slots=True)
class CoulombViscousFit:
    """``F_c sgn(dq) + F_v dq + offset`` in place of a law: what URDF, MJCF and most controllers can represent."""

    coulomb: float  # F_c, not negative [N m]
    viscous: float  # F_v, not negative [N m s/rad]
    offset: float  # [N m]
    torque_rms: float  # RMS of the law over the velocities and loads of the fit [N m]
    error: float  # RMS of law minus `F_c sgn(dq) + F_v dq + offset` there [N m]
    asymmetry: float  # largest difference between the directions, without the offset; of a law without load [N m]
    shape: float  # largest difference that is then left: what depends on the load, or bends over velocity [N m]
    depends_on_load: bool  # whether the law has a load

    @property
    def lost(self) -> tuple[str, ...]:
        """Parts of the law that F_c and F_v cannot represent, each with its size; empty when they are negligible."""
        limit = _LOST_SHARE * self.torque_rms
        shape = "the dependence on load and velocity" if self.depends_on_load else "the shape over velocity (Stribeck)"
        parts = (
            (f"{shape}, up to", self.shape),
            ("the difference between the directions, up to", self.asymmetry),
            ("the offset,", abs(self.offset)),
        )
        return tuple(f"{what} {size:.2g} N m" for what, size in parts if size > limit)


def fit_coulomb_viscous(
    law: FrictionLaw, parameters: FloatArray, velocity: FloatArray, load: FloatArray
) -> CoulombViscousFit:
    """Least-squares fit of Coulomb friction, viscous friction and an offset to a law.

    A law that is Coulomb and viscous friction keeps its parameters to the bit. The offset is part of the fit where both
    directions occur, so that it does not bias the other two. F_c and F_v are held nonnegative: formats refuse friction
    that drives.

    Parameters
    ----------
    parameters : (p,) of the law
    velocity : (m,) at which the two should agree, none of them zero [rad/s]
    load : (m,) that goes with each velocity [N m]
    """
    torque = law.torque(parameters[None, :], velocity, load)
    both = bool(velocity.min() < 0.0 < velocity.max())
    basis = np.column_stack((np.sign(velocity), velocity, np.ones(velocity.size)))
    chi = _coulomb_viscous_parameters(law, parameters)
    if chi is None or _max_abs(basis @ chi - torque) > _EXACT_SHARE * _max_abs(torque):
        found = fit_law(COULOMB_VISCOUS, velocity, load, torque, with_prior=False, free_offset=both)
        chi = np.append(found.values, found.offset)
    residual = torque - basis @ chi
    even_part = np.zeros(velocity.size)
    if both and not law.depends_on_load:
        seen = (-velocity >= velocity.min()) & (-velocity <= velocity.max())  # in the other direction, too
        even_part = np.where(seen, 0.5 * (torque + law.torque(parameters[None, :], -velocity, load)) - chi[2], 0.0)
    return CoulombViscousFit(
        coulomb=float(chi[0]),
        viscous=float(chi[1]),
        offset=float(chi[2]),
        torque_rms=_rms(torque),
        error=_rms(residual),
        asymmetry=_max_abs(even_part),
        shape=_max_abs(residual - even_part),
        depends_on_load=law.depends_on_load,
    )


def _coulomb_viscous_parameters(law: FrictionLaw, parameters: FloatArray) -> FloatArray | None:
    """F_c, F_v and no offset, as a linear law has them; None where one is negative or the law is not linear."""
    if not isinstance(law, LinearFrictionLaw):
        return None
    own = np.array([law.coulomb(parameters), law.viscous(parameters), 0.0], dtype=float)
    return own if (own >= 0.0).all() else None


def _max_abs(values: FloatArray) -> float:
    return float(np.abs(values).max())


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))
