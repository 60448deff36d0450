"""Which parameters of a friction curve the data cannot identify, why, and the findings about a result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.identification.friction_curve.fit import CurveFit
from friction_estimator.identification.friction_curve.problem import CurveSamples
from friction_estimator.identification.regression.findings import Finding
from friction_estimator.identification.result import JointScore
from friction_estimator.laws import Role
from friction_estimator.laws.law import torque_gradient
from friction_estimator.types import BoolArray

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
    both_ways = np.concatenate((samples.velocity, -samples.velocity))
    load = None if samples.load is None else np.tile(samples.load, 2)
    effect = np.abs(torque_gradient(fit.law, fit.values, both_ways, load)).max(axis=0)
    roles = [parameter.role for parameter in fit.law.parameters]
    linear = np.array([role is not Role.SHAPE for role in roles])
    vague &= ~(linear & (fit.sigma * effect < _NEGLIGIBLE * samples.torque_rms))
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
    name = fit.law.parameter_names[k]
    if fit.sigma[k] <= _VAGUE * abs(fit.values[k]):
        others = np.append(fit.rivals[:, k], fit.values[k])
        return f"{joint}: {name} from {others.min():.3g} to {others.max():.3g} explains the data as well ({top})"
    sigma = np.where(fit.sigma > 0.0, fit.sigma, 1.0)
    mixed = np.abs(fit.covariance[k] / (sigma * sigma[k]))
    mixed[k] = 0.0
    partner = int(mixed.argmax())
    if mixed[partner] > _MIXED:
        return f"{joint}: {name} cannot be separated from {fit.law.parameter_names[partner]} ({top})"
    spread = f"{fit.values[k]:.3g} with a standard deviation of {fit.sigma[k]:.2g} {fit.law.units[k]}".rstrip()
    return f"{joint}: the data ({top}) does not show {name}, {spread}"


def _leaves_stribeck_region(fit: CurveFit, samples: CurveSamples) -> bool:
    """Whether there are speeds at which Coulomb and viscous friction alone are left."""
    return samples.top_speed > float(fit.law.stribeck_region(fit.values[None, :])[0])


def _are(fit: CurveFit, vague: BoolArray) -> str:
    names = [fit.law.parameter_names[k] for k in np.flatnonzero(vague)]
    if len(names) == 1:
        return f"{names[0]} is"
    return f"{', '.join(names[:-1])} and {names[-1]} are"


_USELESS, _POOR = 0.9, 0.3
"""Part of the friction that is left over on held-out data: no better than predicting zero, and poor."""
_UNSTEADY = 1.5
"""Held-out error over that of the fit: more means that the segments do not agree."""


def curve_findings(score: JointScore, fit: CurveFit, shown: Identifiability) -> list[Finding]:
    """Findings about the law of one joint: whether it is useful, and which parameters the data cannot show."""
    left, joint = score.relative_error, score.joint
    measured = f"{left:.0%} of its friction ({score.torque_rms:.2g} N m RMS) on held-out segments"
    if left >= _USELESS:
        return [Finding(3.0 + left, f"{joint}: {fit.law.name} leaves {measured}: no better than predicting zero")]
    found = [Finding(1.0, reason) for reason in shown.reasons]
    if score.model_error > _UNSTEADY * score.fit_error:
        own = f"{score.fit_error / score.torque_rms:.0%} of the data it was fitted to"
        text = f"{joint}: the segments do not agree, {fit.law.name} leaves {measured}, but {own}"
        found.append(Finding(2.0, text))
    elif left >= _POOR:
        found.append(Finding(1.5, f"{joint}: {fit.law.name} leaves {measured}: another law or better data is needed"))
    else:
        found.append(Finding(left / 10.0, f"{joint}: {fit.law.name} leaves {measured}"))
    return found
