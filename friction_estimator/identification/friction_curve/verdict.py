"""A friction curve in words, worst first."""

from __future__ import annotations

from collections.abc import Sequence

from friction_estimator.identification.friction_curve.fit import CurveFit
from friction_estimator.identification.friction_curve.identifiability import Identifiability
from friction_estimator.identification.result import JointScore

_USELESS, _POOR = 0.9, 0.3
"""Part of the friction that is left over on held-out data: as bad as nothing, and worth a word."""
_UNSTEADY = 1.5
"""Held-out error over that of the fit: more means that the segments do not agree."""


def curve_verdicts(curves: Sequence[tuple[JointScore, CurveFit, Identifiability]]) -> tuple[str, ...]:
    """What to think of each joint's law: useless ones, then what the data cannot show, then the good ones."""
    found = [item for score, fit, judged in curves for item in _of_joint(score, fit, judged)]
    return tuple(sentence for _, sentence in sorted(found, key=lambda item: -item[0]))


def _of_joint(score: JointScore, fit: CurveFit, judged: Identifiability) -> list[tuple[float, str]]:
    """Sentences with how bad they are."""
    left, joint = score.relative_error, score.joint
    measured = f"{left:.0%} of its friction ({score.torque_rms:.2g} N m RMS) on held-out segments"
    if left >= _USELESS:
        return [(3.0 + left, f"{joint}: {fit.law.name} leaves {measured}: no better than predicting zero")]
    said = [(1.0, reason) for reason in judged.reasons]
    if score.model_error > _UNSTEADY * score.fit_error:
        said.append((2.0, f"{joint}: the segments do not agree, {fit.law.name} leaves {measured}, "
                          f"but {score.fit_error / score.torque_rms:.0%} of the data it was fitted to"))  # fmt: skip
    elif left >= _POOR:
        said.append((1.5, f"{joint}: {fit.law.name} leaves {measured}: another law or better data is needed"))
    else:
        said.append((left / 10.0, f"{joint}: {fit.law.name} leaves {measured}"))
    return said
