"""Tables with every number: overview, references, and one section a case."""

from __future__ import annotations

import numpy as np

from benchmarks.accuracy.cases import find_case
from benchmarks.accuracy.markdown import NOTHING, number, row_of, table
from benchmarks.accuracy.oracle import lag_apart
from benchmarks.accuracy.results import TRUE_STATES, Results
from benchmarks.accuracy.scoring import law_of
from benchmarks.accuracy.summary import Key, Summary, truth_rms
from benchmarks.accuracy.verdict import runs_of
from benchmarks.accuracy.wiener_scores import METHODS

Summaries = dict[Key, Summary]


def overview(summaries: Summaries, results: Results) -> list[str]:
    """Mean error over the joints, stance / swing, of every observer, beside the references."""
    observers = results.settings["observers"]
    methods = [*observers, METHODS["applied"], METHODS["causal"]]
    rows = []
    for case, noise in runs_of(results):
        cells = [_means(summaries, (case, noise, method)) for method in methods]
        rows.append([f"`{case}`", f"`{noise}`", *cells, _best_law(summaries, case)])
    return table(["case", "sensors", *methods, "best law"], rows)


def _means(summaries: Summaries, run: tuple[str, str, str]) -> str:
    cells = [summaries[*run, phase].rmse for phase in ("stance", "swing") if (*run, phase) in summaries]
    texts = [number(float(np.nanmean(c)), 3) if np.isfinite(c).any() else NOTHING for c in cells]
    return " / ".join(texts) or NOTHING


def _best_law(summaries: Summaries, case: str) -> str:
    """The law whose best fit has the smallest mean error, both phases."""
    laws = {key[2] for key in summaries if key[:2] == (case, TRUE_STATES) and key[2].startswith("law ")}
    if not laws:
        return NOTHING

    def error(law: str) -> float:
        return sum(float(np.nansum(summaries[case, TRUE_STATES, law, phase].rmse)) for phase in ("stance", "swing"))

    best = min(sorted(laws), key=error)
    return f"{_means(summaries, (case, TRUE_STATES, best))} {best.removeprefix('law ')}"


def oracle_table(summaries: Summaries, results: Results) -> list[str]:
    """What each method costs by itself."""
    rows = []
    for case in results.settings["cases"]:
        for observer in results.settings["observers"]:
            for method in (observer, lag_apart(observer)):
                key = (case, TRUE_STATES, method)
                if (*key, "stance") in summaries:
                    phases = [summaries[*key, phase].rmse for phase in ("stance", "swing", "single support")]
                    rows.append([f"`{case}`", method, *(row_of(rmse, 3) for rmse in phases)])
    return table(["case", "method", "stance", "swing", "single support away from landing"], rows)


def law_table(summaries: Summaries, results: Results) -> list[str]:
    """The best fits of every law."""
    rows = []
    for case in results.settings["cases"]:
        laws = sorted(key[2] for key in summaries if key[:2] == (case, TRUE_STATES) and key[3] == "stance")
        for law in (law for law in laws if law.startswith("law ")):
            phases = [summaries[case, TRUE_STATES, law, phase].rmse for phase in ("stance", "swing")]
            rows.append([f"`{case}`", law.removeprefix("law "), *(row_of(rmse, 3) for rmse in phases)])
    return table(["case", "law", "stance", "swing"], rows)


def wiener_table(summaries: Summaries, results: Results) -> list[str]:
    """Bound and filters."""
    rows = []
    for case, noise in runs_of(results):
        for method in METHODS.values():
            if (case, noise, method, "stance") in summaries:
                phases = [summaries[case, noise, method, phase].rmse for phase in ("stance", "swing")]
                rows.append([f"`{case}`", f"`{noise}`", method, *(row_of(rmse, 3) for rmse in phases)])
    return table(["case", "sensors", "method", "stance", "swing"], rows)


def base_table(results: Results) -> list[str]:
    """Base state, all seeds together."""
    rows = []
    for case, noise in runs_of(results):
        scores = [score for score in results.bases if (score.case, score.noise) == (case, noise)]
        velocity, tilt = (float(np.mean([getattr(s, what) for s in scores])) for what in ("velocity", "tilt"))
        drift = max(score.drift for score in scores)
        rows.append([f"`{case}`", f"`{noise}`", f"{1e3 * velocity:.1f}", f"{1e3 * tilt:.1f}", f"{1e3 * drift:.0f}"])
    heading = ["case", "sensors", "velocity [mm/s]", "tilt [mrad]", "position at the end, largest [mm]"]
    return table(heading, rows)


def case_section(case: str, summaries: Summaries, results: Results) -> list[str]:
    """All numbers of one case."""
    lines = [f"### `{case}`: {find_case(case).title}", ""]
    phases = [(phase, truth_rms(results, case, phase)) for phase in ("stance", "swing")]
    lines += ["RMS of the true friction: " + "; ".join(f"{p} {row_of(v)}" for p, v in phases if v) + ".", ""]
    for noise in (noise for one, noise in runs_of(results) if one == case):
        lines += [f"Sensors `{noise}`:", ""]
        methods = [m for o in results.settings["observers"] for m in (o, law_of(o))] + list(METHODS.values())
        rows = []
        for method in methods:
            for key in (key for key in summaries if key[:3] == (case, noise, method)):
                if np.isfinite(summaries[key].rmse).any():
                    rows.append([method, key[3], *_cells(summaries[key])])
        lines += table(["method", "phase", "RMSE", "± seeds", "relative", "bias", "NEES", "inside 95 %"], rows)
    return lines


def _cells(summary: Summary) -> list[str]:
    columns = (summary.rmse, summary.spread, summary.relative, summary.bias, summary.nees, summary.inside)
    digits = (3, 3, 2, 2, 2, 2)
    return [
        row_of(values, places) if np.isfinite(values).any() else NOTHING
        for values, places in zip(columns, digits, strict=True)
    ]
