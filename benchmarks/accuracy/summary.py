"""Records of several seeds as one: mean and spread."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from benchmarks.accuracy.results import TRUE_STATES, Results, Score
from benchmarks.accuracy.scoring import numbers
from friction_estimator.types import FloatArray

SMALL = 0.01
"""Friction below this is nothing that an error could be a part of [N m]."""
Key = tuple[str, str, str, str]
"""Case, noise, method, phase."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One method on one case at one noise level in one phase, (g,) a column; means over the seeds.

    Attributes
    ----------
    rmse, spread : [N m]; the spread is half of the largest difference between two seeds, NaN for a single seed
    relative : rmse by the root mean square of the truth; NaN where the truth is next to nothing
    bias : mean error [N m], averaged as a magnitude so that seeds do not cancel
    nees, inside : see :class:`Score`
    """

    rmse: FloatArray
    spread: FloatArray
    relative: FloatArray
    bias: FloatArray
    nees: FloatArray
    inside: FloatArray


def summarise(results: Results) -> dict[Key, Summary]:
    """All scores, seeds taken together."""
    grouped: dict[Key, list[Score]] = {}
    for score in results.scores:
        grouped.setdefault((score.case, score.noise, score.method, score.phase), []).append(score)
    return {key: _summary(scores) for key, scores in grouped.items()}


def _summary(scores: list[Score]) -> Summary:
    rmse, truth = np.array([s.rmse for s in scores]), np.array([s.truth_rms for s in scores]).mean(axis=0)
    mean = rmse.mean(axis=0)
    many = len(scores) > 1
    none = np.full(mean.shape, np.nan)
    return Summary(
        rmse=mean,
        spread=0.5 * np.ptp(rmse, axis=0) if many else none,
        relative=np.divide(mean, truth, out=none.copy(), where=truth > SMALL),
        bias=np.abs(_stacked(s.bias for s in scores)).mean(axis=0) if scores[0].bias else none,
        nees=_stacked(s.nees for s in scores).mean(axis=0) if scores[0].nees else none,
        inside=_stacked(s.inside for s in scores).mean(axis=0) if scores[0].inside else none,
    )


def _stacked(rows: Iterable[tuple[float, ...]]) -> FloatArray:
    return np.array(list(rows))


def truth_rms(results: Results, case: str, phase: str) -> tuple[float, ...]:
    """Root mean square of the true friction of a case, (g)."""
    rows = [
        score.truth_rms
        for score in results.scores
        if (score.case, score.phase) == (case, phase) and score.noise != TRUE_STATES
    ]
    return numbers(np.array(rows).mean(axis=0)) if rows else ()
