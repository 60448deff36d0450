"""Tables of all errors: overview, references, one section a case."""

from __future__ import annotations

import numpy as np

from benchmarks.accuracy.oracle import lag_apart
from benchmarks.accuracy.results import TRUE_STATES, Key, Results, Summary, summarise, truth_rms
from benchmarks.accuracy.scoring import law_of
from benchmarks.accuracy.targets import (
    BASELINE,
    RATIO,
    consistency_overview,
    consistency_table,
    push_table,
    ratio_to_baseline,
    runs_of,
    target_table,
)
from benchmarks.accuracy.wiener import METHODS
from benchmarks.shared.pages import NOTHING, number, row_of, table
from benchmarks.shared.walks import find_case

Summaries = dict[Key, Summary]


def overview(summaries: Summaries, results: Results) -> list[str]:
    """Mean error over the joints, stance / swing, of all observers and references, and the ratio to the baseline."""
    observers = results.settings["observers"]
    methods = [*observers, METHODS["applied"], METHODS["causal"]]
    judged = results.settings["judged"]
    rows = []
    for case, noise in runs_of(results):
        cells = [_means(summaries, (case, noise, method)) for method in methods]
        rows.append(
            [f"`{case}`", f"`{noise}`", *cells, _best_law(summaries, case), _ratio(summaries, case, noise, judged)]
        )
    return table(["case", "sensors", *methods, "best law", f"`{BASELINE}` / `{judged}`"], rows)


def _ratio(summaries: Summaries, case: str, noise: str, observer: str) -> str:
    """Error of the baseline over that of the observer, geometric mean over joints and phases; bold below the target."""
    ratios = ratio_to_baseline(summaries, case, noise, observer)
    if not ratios:
        return NOTHING
    both = float(np.exp(np.mean(np.log(list(ratios.values())))))
    return f"{both:.1f}" if both >= RATIO else f"**{both:.1f}**"


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
    """Errors of the methods with true states."""
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
    """Errors of the laws fitted to the true friction."""
    rows = []
    for case in results.settings["cases"]:
        laws = sorted(key[2] for key in summaries if key[:2] == (case, TRUE_STATES) and key[3] == "stance")
        for law in (law for law in laws if law.startswith("law ")):
            phases = [summaries[case, TRUE_STATES, law, phase].rmse for phase in ("stance", "swing")]
            rows.append([f"`{case}`", law.removeprefix("law "), *(row_of(rmse, 3) for rmse in phases)])
    return table(["case", "law", "stance", "swing"], rows)


def wiener_table(summaries: Summaries, results: Results) -> list[str]:
    """Errors of the Wiener bound and filters."""
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


PLACES = ("command", "targets", "overview", "consistency", "pushes")
"""Names of the tables of the page."""


def page_tables(results: Results) -> dict[str, list[str]]:
    """Tables of the page by their place."""
    summaries, labels, judged = summarise(results), results.labels, results.settings["judged"]
    return {
        "command": _made_by(results),
        "targets": target_table(summaries, labels, judged),
        "overview": overview(summaries, results),
        "consistency": consistency_overview(summaries, results, labels, judged),
        "pushes": push_table(results, [judged]),
    }


def details(results: Results) -> str:
    """Page with all tables and no explanations, which are on the page of the documentation."""
    summaries, labels, judged = summarise(results), results.labels, results.settings["judged"]
    sections = {
        "Accuracy: all tables": _made_by(results),
        "Targets": target_table(summaries, labels, judged),
        "Overview": overview(summaries, results),
        "Consistency": consistency_table(summaries, results, labels, judged),
        "Pushes": push_table(results, results.settings["observers"]),
        "True states": oracle_table(summaries, results),
        "Best law": law_table(summaries, results),
        "Wiener filters": wiener_table(summaries, results),
        "Base state, root mean square errors an axis": base_table(results),
    }
    lines = [line for title, tables in sections.items() for line in (f"## {title}", "", *tables)]
    for case in dict.fromkeys(case for case, _ in runs_of(results)):
        lines += case_section(case, summaries, results)
    return "\n".join(lines)[1:]


def _made_by(results: Results) -> list[str]:
    """Command, settings and failed runs."""
    settings = results.settings
    robot, duration, seeds = (settings[name] for name in ("robot", "duration", "seeds"))
    lines = [
        f"`{settings['command']}`",
        "",
        f"Robot `{robot}`, {duration:g} s a run, {seeds} seeds; joints {', '.join(results.labels)}.",
        "",
    ]
    if results.failures:
        rows = [[f"`{one.case}`", f"`{one.noise}`", str(one.seed), one.message] for one in results.failures]
        lines += table(["failed run", "sensors", "seed", "error"], rows)
    return lines
