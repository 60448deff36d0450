"""The page's answer: targets, consistency, pushes and the ratio to the printed method, for one observer."""

from __future__ import annotations

import numpy as np

from benchmarks.accuracy.markdown import NOTHING, judged, number, table
from benchmarks.accuracy.results import PushScore, Results
from benchmarks.accuracy.scoring import law_of
from benchmarks.accuracy.summary import Key, Summary
from benchmarks.accuracy.targets import (
    BASELINE,
    DELAY,
    INSIDE,
    MAIN_JOINT,
    RATIO,
    TARGETS,
    USELESS,
    honest,
    judged_joints,
    ratio_to_baseline,
    reached,
    useful,
)

Summaries = dict[Key, Summary]
PUSH_HEADING = (
    "observer", "sensors", "main joint", "truth", "within 10 %", "worst error", "detected within 20 ms",
    "slowest detection", "false alarms",
)  # fmt: skip


def target_table(summaries: Summaries, labels: tuple[str, ...], observer: str) -> list[str]:
    """Every cell of the target against the limit; the cases that were not run are left out."""
    rows = []
    for target in TARGETS:
        for phase, limits in target.limits.items():
            summary = summaries.get((target.case, target.noise, observer, phase))
            if summary is None or len(limits) != len(labels):
                continue
            values, kept = reached(target, phase, summary)
            unit = ", part of the RMS" if target.relative else ""
            cells = [judged(*cell) for cell in zip(values, limits, kept, strict=True)]
            rows.append([f"`{target.case}`, `{target.noise}`{unit}", phase, *cells, f"{kept.sum()} of {kept.size}"])
    return table(["case, sensors", "phase", *labels, "reached"], rows)


def ratio_table(summaries: Summaries, results: Results, observer: str) -> list[str]:
    """How many times below the printed method."""
    rows = []
    for case, noise in runs_of(results):
        ratios = ratio_to_baseline(summaries, case, noise, observer)
        if ratios:
            both = float(np.exp(np.mean(np.log(list(ratios.values())))))
            cells = [number(ratios[phase], 1) if phase in ratios else NOTHING for phase in ("stance", "swing")]
            rows.append([f"`{case}`", f"`{noise}`", *cells, _bold(f"{both:.1f}", both >= RATIO)])
    return table(["case", "sensors", "stance", "swing", f"mean (asked: {RATIO:g})"], rows)


def consistency_table(summaries: Summaries, results: Results, labels: tuple[str, ...], observer: str) -> list[str]:
    """Worst joint of each run: the part of the samples inside the band, and the mean NEES."""
    rows = []
    for case, noise in runs_of(results):
        cells = []
        for method in (observer, law_of(observer)):
            for phase in ("stance", "swing"):
                summary = summaries.get((case, noise, method, phase))
                cells.append(_consistency(summary, labels) if summary is not None else NOTHING)
        rows.append([f"`{case}`", f"`{noise}`", *cells])
    heading = ["case", "sensors", "stance", "swing", "law alone, stance", "law alone, swing"]
    return table(heading, rows)


def _consistency(summary: Summary, labels: tuple[str, ...]) -> str:
    judged = judged_joints(summary)
    if not judged.any():
        return NOTHING
    worst = int(np.where(judged, summary.inside, np.inf).argmin())
    low, high = summary.nees[judged].min(), summary.nees[judged].max()
    text = f"{number(float(summary.inside[worst]))} ({labels[worst]}); {number(float(low))}-{number(float(high))}"
    if honest(summary):
        return text if useful(summary) else f"*{text}*"
    return f"**{text}**"


CONSISTENCY_NOTE = (
    f"Each cell: the smallest part of the samples inside the band of any joint (asked: {INSIDE:g}), that joint, and "
    f"the range of the mean NEES over the joints. Bold: sigma lies. Italic: a NEES below {USELESS:g}, so sigma is "
    "uselessly wide. Joints with an error below 1 mN m are not asked."
)


def push_table(results: Results) -> list[str]:
    """All pushes that the joints feel, all observers."""
    groups: dict[tuple[str, str], list[PushScore]] = {}
    for push in results.pushes:
        groups.setdefault((push.method, push.noise), []).append(push)
    return table(PUSH_HEADING, [_push_row(method, noise, group) for (method, noise), group in groups.items()])


def _push_row(method: str, noise: str, pushes: list[PushScore]) -> list[str]:
    error = np.array([abs(push.estimate - push.truth) / abs(push.truth) for push in pushes])
    delay = np.array([push.delay for push in pushes])
    near, soon = error <= MAIN_JOINT, delay <= DELAY  # an estimate or detection that is not there is neither
    truth = [abs(push.truth) for push in pushes]
    slowest = f"{1e3 * delay.max():.0f} ms" if np.isfinite(delay).all() else "missed"
    return [
        method,
        f"`{noise}`",
        ", ".join(sorted({push.joint for push in pushes})),
        f"{min(truth):.0f}-{max(truth):.0f} N m",
        _bold(f"{near.sum()} of {near.size}", bool(near.all())),
        f"{100.0 * error.max():.0f} %" if np.isfinite(error).all() else NOTHING,
        _bold(f"{soon.sum()} of {soon.size}", bool(soon.all())),
        slowest,
        f"{100.0 * np.mean([push.false_alarms for push in pushes]):.2f} %",
    ]


def runs_of(results: Results) -> list[tuple[str, str]]:
    """Cases and noise levels that were estimated, in the order in which they were asked for."""
    made = {(score.case, score.noise) for score in results.scores if score.method in results.settings["observers"]}
    asked = [(case, noise) for case in results.settings["cases"] for noise in results.settings["noise"]]
    return [run for run in asked if run in made]


def _bold(text: str, good: bool) -> str:
    return text if good else f"**{text}**"


BASELINE_NOTE = (
    f"Error of `{BASELINE}` by that of the observer: geometric mean over the joints; the last column is that of both "
    "phases. Bold: less than asked."
)
