"""Findings about a result, one sentence each, the most severe first."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.identification.result import JointScore
from friction_estimator.laws import linear_law_names, make_linear_law
from friction_estimator.laws.joint_laws import IdentifiedParameters
from friction_estimator.laws.linear import LinearFrictionLaw

_GOOD = 0.1
"""Relative error of a torque that is predicted well."""
_OVERFIT = 1.5
"""Error on unseen segments over that of the fit."""
_ILL = 1000.0
"""Condition number above which single parameters are uncertain."""
_UNSEEN_SHARE = 0.5
"""A parameter whose sigma is more than this share of its prior was not seen."""
_VAGUE = 0.3
"""Relative standard deviation of Coulomb and viscous friction above which a finding is reported."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence and how severe it is: 2 do not use the result, 1 use it with care, 0 good to know."""

    weight: float
    text: str


def verdicts(
    scores: Sequence[JointScore],
    friction: IdentifiedParameters,
    condition: float,
    further: Sequence[Finding] = (),
    optional: Collection[str] = (),
) -> tuple[str, ...]:
    """Findings about an identification, one sentence each, the most severe first.

    Parameters
    ----------
    scores : (n) held-out errors
    friction : (n) parameters
    condition : of the column-scaled observation matrix
    further : findings of the method itself
    optional : names among those of the parameters whose friction may as well be zero
    """
    findings = list(further)
    for score in scores:
        findings += _about_score(score)
    for joint in range(len(friction.joint_names)):
        findings += _about_parameters(friction, joint, friction.joint_names[joint] in optional)
    if condition > _ILL:
        findings.append(
            Finding(
                0.9,
                f"the motion excites some parameters badly (condition number {condition:.0f}, {_ILL:.0f} is fair): "
                "single inertial parameters are uncertain, friction usually is not",
            )
        )
    return sentences(findings)


def sentences(findings: Sequence[Finding]) -> tuple[str, ...]:
    """The findings as sentences, the most severe first."""
    return tuple(finding.text for finding in sorted(findings, key=lambda finding: -finding.weight))


def _about_score(score: JointScore) -> list[Finding]:
    joint, relative = score.joint, score.relative_error
    if not score.samples:
        return [Finding(2.0, f"{joint}: never moved fast enough, so its friction is unknown: record faster motion")]
    found = []
    quality = f"its torque is predicted with an error of {100 * relative:.1f} % on segments that the fit has not seen"
    if not relative < 1.0:
        found.append(Finding(1.95, f"{joint}: no better than predicting zero ({quality}); do not use it"))
    elif relative > _GOOD:
        found.append(Finding(1.0 + 0.5 * relative, f"{joint}: {quality}; below {100 * _GOOD:.0f} % is good"))
    else:
        found.append(Finding(0.1 + relative, f"{joint}: {quality}"))
    if score.model_error > _OVERFIT * score.fit_error:
        found.append(
            Finding(
                1.2,
                f"{joint}: the error on unseen segments is {score.model_error / score.fit_error:.1f} times that of the "
                "fit: too many parameters for this motion, or the robot changed; record more, or other, motion",
            )
        )
    if np.isfinite(score.rigid_body_error) and score.model_error > score.rigid_body_error:
        text = f"{joint}: friction does not improve the prediction, the rigid body alone is better: check the torque"
        found.append(Finding(1.8, text))
    return found


def _about_parameters(friction: IdentifiedParameters, joint: int, optional: bool) -> list[Finding]:
    """Parameters of a linear law that the data do not show; `friction_curve` reports those of other laws."""
    if friction.law_names[joint] not in linear_law_names() or not friction.samples[joint]:
        return []
    law = make_linear_law(friction.law_names[joint])
    name, values = friction.joint_names[joint], friction.values[joint]
    sigma = np.sqrt(np.diagonal(friction.covariance[joint]))
    found = []
    for k in map(int, np.flatnonzero(law.nonnegative)):
        parameter = law.parameter_names[k]
        if sigma[k] > _UNSEEN_SHARE * max(law.prior_std[k], abs(values[k])):
            text = (
                f"{name}: {parameter} cannot be seen in this motion (sigma {sigma[k]:.3g} {law.units[k]}): move faster"
            )
            found.append(Finding(1.5, text))
        elif values[k] <= 0.0 and not optional:
            text = f"{name}: {parameter} would be negative and was held at zero: check the torque and the model"
            found.append(Finding(1.1, text))
    return found + _about_sizes(friction, joint, law)


def _about_sizes(friction: IdentifiedParameters, joint: int, law: LinearFrictionLaw) -> list[Finding]:
    """Coulomb and viscous friction that are not known well."""
    found = []
    p = len(law.parameter_names)
    basis = np.eye(p)
    for what, unit, weights in (
        ("Coulomb", "N m", law.coulomb(basis)),
        ("viscous", "N m s/rad", law.viscous(basis)),
    ):
        value = float(weights @ friction.values[joint, :p])
        spread = float(np.sqrt(weights @ friction.covariance[joint, :p, :p] @ weights))
        if value > 0.0 and _VAGUE * value < spread:
            how = (
                f"has a standard deviation of {100 * spread / value:.0f} %: record more motion"
                if spread < value
                else f"does not differ from zero ({value:.2g} +- {spread:.2g} {unit})"
            )
            found.append(Finding(1.05, f"{friction.joint_names[joint]}: {what} friction {how}"))
    return found
