"""What the method `inverse_dynamics` alone can tell of its result, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from friction_estimator.identification.inverse_dynamics.delay import delay_error
from friction_estimator.identification.inverse_dynamics.estimation import Estimate
from friction_estimator.identification.inverse_dynamics.friction_columns import OFFSET
from friction_estimator.identification.inverse_dynamics.joint_scores import RARE, outlier_shares
from friction_estimator.identification.regression.lack_of_fit import velocity_dependent_rms
from friction_estimator.identification.regression.verdict import Finding
from friction_estimator.identification.result import FrictionSamples
from friction_estimator.identification.rigid_body.physical_bounds import PhysicalInertia
from friction_estimator.laws import make_law

IMPOSSIBLE = (
    "no real bodies have these inertial parameters (they are {:.1f} standard deviations away): somebody else moved the "
    "robot, its torque is wrong in sign or scale, or the URDF's joints are not those of the data"
)
OTHER_SCALE = (
    "the inertial parameters are {:.3g} times those of the URDF: the torque may be in another unit, that of the motor "
    "before its gear, or of the wrong sign, or the URDF's masses are not those of the robot"
)
LEFT_OVER = "a constant torque that is no part of the law, the zero of the torque or gravity: {}"
WRONG_SHAPE = (
    "{}: the law {!r} leaves {:.2g} N m RMS that go with the velocity, {:.0%} of the friction: see the residuals; "
    "friction is of another shape{}, or the torque is late or holds something else"
)
LATE = (
    "the torque was {:.2f} +- {:.2f} ms late against the positions (early where negative) and was moved back: "
    "otherwise that would count as viscous friction"
)
NO_VISCOUS = (
    "{}: this motion does not tell viscous friction from a torque that is {:.1f} ms late: a single sine hardly does, "
    "move at several frequencies, or at constant speeds (identify --plan)"
)
_MANY_OUTLIERS = 0.01
"""Share of the rows; noise has none beyond six standard deviations."""
_VAGUE = 0.1
"""Share of a parameter that its sigma may be."""
_WRONG_SHAPE = 0.05
"""Share of the friction that goes with the velocity and is in no law."""
_SCALE = 5.0
"""Factor from the URDF's inertia that no wrong URDF explains."""
_FLEXIBLE = "six_slope"
"""Law without load that follows most shapes."""


def inverse_dynamics_findings(
    solution: Estimate, bodies: PhysicalInertia | None, samples: Sequence[FrictionSamples], laws: Sequence[str]
) -> list[Finding]:
    """Findings about bodies, their scale, the shape of the friction, constant torques and outliers.

    Parameters
    ----------
    bodies : the nearest ones that exist; None when no inertia is unknown
    samples, laws : (n) friction as the data show it, and the law of every joint
    """
    found = []
    if bodies is not None and not bodies.plausible:
        found.append(Finding(1.9, IMPOSSIBLE.format(bodies.distance)))
    scale = _scale(solution)
    if not 1.0 / _SCALE < scale < _SCALE:
        found.append(Finding(1.91, OTHER_SCALE.format(scale)))
    names = solution.observations[0].motion.joint_names
    for name, share in zip(names, outlier_shares(solution), strict=True):
        if share > _MANY_OUTLIERS:
            scored = "not used" if share > RARE else "neither used nor scored"
            found.append(
                Finding(1.1 + share, f"{name}: {share:.1%} of the samples are outliers and {scored} (pushes?)")
            )
    return [*found, *_about_delay(solution), *_about_shape(samples, laws), *_about_constants(solution, names, laws)]


def _scale(solution: Estimate) -> float:
    """How many times the URDF's the inertial parameters are that both know, by least squares in sigmas; 1 without."""
    first = solution.model.friction_count + solution.model.gain_count
    reference = np.append(np.full(first, np.nan), solution.model.body.reference)[solution.kept]
    known = np.isfinite(reference)
    sigma = np.sqrt(np.diagonal(solution.fit.covariance))
    known &= sigma > 0.0
    value, reference = solution.fit.values[known] / sigma[known], reference[known] / sigma[known]
    return float(value @ reference / (reference @ reference)) if reference.any() else 1.0


def _about_delay(solution: Estimate) -> list[Finding]:
    """A torque that was late, and viscous friction that may be nothing but that."""
    found = []
    if solution.delay:
        found.append(Finding(1.12, LATE.format(1e3 * solution.delay, 1e3 * solution.delay_sigma)))
    error, sigma = delay_error(solution), np.sqrt(np.diagonal(solution.fit.covariance))
    for name, value, late, spread in zip(solution.names, solution.fit.values, error, sigma, strict=True):
        if name.endswith("/viscous") and spread > _VAGUE * value and 2.0 * late**2 > spread**2:
            joint = name.removesuffix("/viscous")
            found.append(Finding(1.16, NO_VISCOUS.format(joint, 1e3 * solution.delay_sigma)))
    return found


def _about_shape(samples: Sequence[FrictionSamples], laws: Sequence[str]) -> list[Finding]:
    """Laws that do not have the shape of the friction."""
    found = []
    for seen, law in zip(samples, laws, strict=True):
        velocity, friction, fitted = seen.velocity[seen.used], seen.friction[seen.used], seen.fitted[seen.used]
        size = float(np.linalg.norm(fitted)) / max(np.sqrt(fitted.size), 1.0)
        left = velocity_dependent_rms(velocity, friction - fitted)
        if left > _WRONG_SHAPE * size > 0.0:
            other = "" if law == _FLEXIBLE else f" (try the law {_FLEXIBLE!r})"
            found.append(Finding(1.15, WRONG_SHAPE.format(seen.joint, law, left, left / size, other)))
    return found


def _about_constants(solution: Estimate, joint_names: Sequence[str], laws: Sequence[str]) -> list[Finding]:
    """Constant torques of joints whose law has no offset, in one sentence."""
    values = dict(zip(solution.model.names, solution.values, strict=True))
    constants = [
        f"{name} {values[f'{name}/{OFFSET}']:+.3g} N m"
        for name, law in zip(joint_names, laws, strict=True)
        if values.get(f"{name}/{OFFSET}", 0.0) and OFFSET not in make_law(law).parameter_names
    ]
    return [Finding(0.5, LEFT_OVER.format(", ".join(constants)))] if constants else []
