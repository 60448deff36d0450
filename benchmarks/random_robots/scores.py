"""Scores of the estimates of random robots: one record per robot, and shares over all joints of many records.

Samples count after 6 s of 20 s. Relative error: RMS of the error over RMS of the friction. Coverage: fraction of the
errors within 1.96 sigma, the smaller one of stance and swing. A joint is wrong when its relative error exceeds 0.25 (a
large error) or its coverage is below 0.85 (low coverage).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.shared.estimates import CONSISTENT, SETTLED
from benchmarks.shared.pages import number
from friction_estimator.metrics import joint_errors, mean
from friction_estimator.types import BoolArray, FloatArray

WRONG_ERROR, LOW_COVERAGE = 0.25, 0.85
"""A joint is wrong with a larger relative error, or a smaller coverage in stance or in swing."""
HEADING = (
    "", "robots", "joints", "low coverage", "large error", "wrong", "right joints not valid", "relative error, median",
    "90 %", "coverage, median", "NEES, median",
)  # fmt: skip

Record = dict[str, Any]


def score(time: FloatArray, friction: FloatArray, sigma: FloatArray, truth: FloatArray, stance: BoolArray) -> Record:
    """Scores of every joint (n) after the first six seconds, as lists.

    The relative error is the RMS error by the RMS of the true friction. Coverage is the part of the errors within 1.96
    sigma; ``coverage`` is the worse one of stance and swing.

    Parameters
    ----------
    time : (m,) since the start [s]
    friction, sigma, truth : (m, n) [N m]
    stance : (m, n)
    """
    late = np.broadcast_to(time[:, None] >= SETTLED, truth.shape)
    every = joint_errors(friction, truth, sigma, late)
    squares = np.divide((friction - truth) ** 2, sigma**2, out=np.full(truth.shape, np.inf), where=sigma > 0.0)
    lost = ~np.isfinite(friction)  # a sample without an estimate counts as not covered
    inside = np.where(lost, 0.0, squares <= CONSISTENT)
    phases = {"stance": late & stance, "swing": late & ~stance}
    record = {"error": every.relative_rmse, "nees": every.nees, "truth_rms": every.truth_rms, "bias": every.bias}
    for name, where in phases.items():
        record[f"error_{name}"] = joint_errors(friction, truth, sigma, where).relative_rmse
        record[f"coverage_{name}"] = mean(np.where(where, inside, np.nan))
    record["coverage"] = np.fmin(record["coverage_stance"], record["coverage_swing"])
    return {name: values.tolist() for name, values in record.items()}


def is_wrong(record: Mapping[str, Any]) -> BoolArray:
    """Joints (n) with a large error or a low coverage; one without any estimate is wrong."""
    return ~(np.array(record["error"], float) <= WRONG_ERROR) | ~(np.array(record["coverage"], float) >= LOW_COVERAGE)


def summary(label: str, records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Line of the table with :data:`HEADING` for the joints of all these robots."""

    def joints(name: str) -> FloatArray:
        return np.concatenate([np.array(record[name], float) for record in records])

    if not records:
        return [label, *["–"] * (len(HEADING) - 1)]
    error, coverage, nees = joints("error"), joints("coverage"), joints("nees")
    wrong = np.concatenate([is_wrong(record) for record in records])
    invalid = np.array([bool(kinds) for record in records for kinds in record["problems"]])
    return [
        label, str(len(records)), str(error.size), _share(~(coverage >= LOW_COVERAGE)), _share(~(error <= WRONG_ERROR)),
        _share(wrong), _share(invalid[~wrong]),
        *(number(float(np.nanquantile(error, part))) for part in (0.5, 0.9)),
        number(float(np.nanmedian(coverage))), number(float(np.nanmedian(nees))),
    ]  # fmt: skip


def _share(which: BoolArray) -> str:
    return f"{which.mean():.1%}" if which.size else "–"
