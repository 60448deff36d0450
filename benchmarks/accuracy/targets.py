"""What the estimate must reach, and whether it does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.accuracy.summary import Key, Summary
from friction_estimator.types import BoolArray, FloatArray

BASELINE = "fbse"
RATIO = 5.0
"""How many times the error must be below that of the baseline."""
INSIDE = 0.90
"""Part of the samples that must lie inside the 95 % band."""
USELESS = 0.05
"""A mean NEES below says that sigma is so wide that it tells nothing."""
NEGLIGIBLE = 1e-3
"""Errors below are not asked whether their sigma is right [N m]."""
MAIN_JOINT = 0.10
"""Relative error of the main joint's external torque when a push ends."""
DELAY = 0.020
"""Until a push must be detected [s]."""

_STANCE = (0.05, 0.07, 0.08, 0.06, 0.03, 0.02)
_SWING = (0.04, 0.06, 0.06, 0.05, 0.02, 0.02)


@dataclass(frozen=True, slots=True)
class Target:
    """Largest errors of one case at one noise level; columns from hip yaw to ankle roll.

    Attributes
    ----------
    limits : phase -> one limit a column, [N m] or a part of the root mean square of the true friction
    relative : True for the latter
    """

    case: str
    noise: str
    limits: dict[str, tuple[float, ...]]
    relative: bool = False


def _scaled(factor: float, limits: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(factor * limit for limit in limits)


TARGETS = (
    Target("walk", "paper_std", {"stance": _STANCE, "swing": _SWING}),
    Target("inertia_errors", "paper_std", {"stance": _STANCE, "swing": _SWING}),
    Target(
        "walk",
        "realistic",
        {"stance": (0.06, 0.08, 0.14, 0.08, 0.05, 0.03), "swing": (0.06, 0.06, 0.06, 0.05, 0.03, 0.02)},
    ),
    Target(
        "walk",
        "paper",
        {"stance": (0.08, 0.11, 0.14, 0.09, 0.05, 0.03), "swing": (0.14, 0.11, 0.19, 0.13, 0.07, 0.02)},
    ),
    Target("friction_change", "paper_std", {"stance": _scaled(1.5, _STANCE), "swing": _scaled(1.5, _SWING)}),
    Target(
        "friction_load",
        "paper_std",
        {"stance": (0.15,) * 6, "swing": (0.12, 0.25, 0.12, 0.12, 0.12, 0.25)},
        relative=True,
    ),
    Target("push_knee", "paper_std", {"stance 1 s after": _STANCE, "swing 1 s after": _SWING}),
    Target("push", "paper_std", {"stance 1 s after": _STANCE, "swing 1 s after": _SWING}),
)


def reached(target: Target, phase: str, summary: Summary) -> tuple[FloatArray, BoolArray]:
    """Value of each column, and whether it keeps the limit."""
    values = summary.relative if target.relative else summary.rmse
    return values, values <= np.array(target.limits[phase])


def judged_joints(summary: Summary) -> BoolArray:
    """Columns (g,) whose sigma matters: there are samples, and errors of more than a millinewton metre."""
    return np.asarray(np.isfinite(summary.inside) & (summary.rmse >= NEGLIGIBLE))


def honest(summary: Summary) -> bool:
    """True when sigma does not lie at any joint where it matters."""
    return bool((summary.inside[judged_joints(summary)] >= INSIDE).all())


def useful(summary: Summary) -> bool:
    """True when sigma is not uselessly wide at any joint where it matters."""
    return bool((summary.nees[judged_joints(summary)] >= USELESS).all())


def ratio_to_baseline(summaries: dict[Key, Summary], case: str, noise: str, method: str) -> dict[str, float]:
    """How many times the error of the baseline is larger: geometric mean over the joints, by phase."""
    ratios: dict[str, float] = {}
    for phase in ("stance", "swing"):
        own, other = (summaries.get((case, noise, name, phase)) for name in (method, BASELINE))
        if own is None or other is None:
            continue
        usable = np.isfinite(own.rmse) & np.isfinite(other.rmse) & (own.rmse > 0.0) & (other.rmse > 0.0)
        if usable.any():
            ratios[phase] = float(np.exp(np.mean(np.log(other.rmse[usable] / own.rmse[usable]))))
    return ratios
