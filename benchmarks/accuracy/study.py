"""What a prototype reached before this package was written, on a walk of its own: 110 kg, 12 joints, ``paper_std``.

Errors [N m] from hip yaw to ankle roll, after 6 s of walking; kept to see that nothing was lost on the way.
"""

from __future__ import annotations

from benchmarks.accuracy.markdown import NOTHING, row_of, table
from benchmarks.accuracy.summary import Key, Summary
from benchmarks.accuracy.wiener_scores import METHODS

CASE, NOISE = "walk", "paper_std"
STUDY = {
    "fbse": {
        "stance": (0.14, 0.69, 0.69, 0.41, 0.16, 0.16),
        "swing": (0.09, 0.11, 0.83, 0.93, 0.42, 0.01),
    },
    "momentum": {
        "stance": (0.19, 0.48, 0.51, 0.25, 0.06, 0.04),
        "swing": (0.12, 0.52, 0.67, 0.67, 0.32, 0.04),
    },
    "kalman": {
        "stance": (0.035, 0.058, 0.061, 0.049, 0.025, 0.016),
        "swing": (0.025, 0.046, 0.041, 0.031, 0.015, 0.014),
    },
    METHODS["bound"]: {
        "stance": (0.042, 0.090, 0.087, 0.067, 0.026, 0.018),
        "swing": (0.037, 0.036, 0.062, 0.050, 0.010, 0.006),
    },
}
"""Method -> phase -> errors."""


def study_table(summaries: dict[Key, Summary]) -> list[str]:
    """The prototype's figures above ours."""
    rows = []
    for method, phases in STUDY.items():
        own = [summaries.get((CASE, NOISE, method, phase)) for phase in phases]
        if any(own):
            rows.append([f"{method}, prototype", *(row_of(errors, 3) for errors in phases.values())])
            rows.append([method, *(row_of(one.rmse, 3) if one is not None else NOTHING for one in own)])
    return table(["method", "stance", "swing"], rows) if rows else []
