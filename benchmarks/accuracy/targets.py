"""Targets of the errors, and the tables that compare the results with them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.accuracy.results import Key, PushScore, Results, Summary
from benchmarks.accuracy.scoring import law_of
from benchmarks.shared.pages import NOTHING, number, table
from friction_estimator.types import BoolArray, FloatArray

Summaries = dict[Key, Summary]

BASELINE = "fbse"
RATIO = 5.0
"""Smallest ratio of the error of the baseline to that of the observer."""
INSIDE = 0.90
"""Smallest part of the samples inside the 95 % band."""
TOO_WIDE = 0.05
"""A mean NEES below this means that sigma is too wide to be of use."""
NEGLIGIBLE = 1e-3
"""Errors below this do not count for the consistency of sigma [N m]."""
MAIN_JOINT = 0.10
"""Relative error of the main joint's external torque when a push ends."""
DELAY = 0.020
"""Longest time until a push is detected [s]."""

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


def consistent(summary: Summary) -> bool:
    """True when sigma is not too small at any joint where it matters."""
    return bool((summary.inside[judged_joints(summary)] >= INSIDE).all())


def useful(summary: Summary) -> bool:
    """True when sigma is not too wide at any joint where it matters."""
    return bool((summary.nees[judged_joints(summary)] >= TOO_WIDE).all())


def ratio_to_baseline(summaries: Summaries, case: str, noise: str, method: str) -> dict[str, float]:
    """Error of the baseline over that of the method: geometric mean over the joints, by phase."""
    ratios: dict[str, float] = {}
    for phase in ("stance", "swing"):
        own, other = (summaries.get((case, noise, name, phase)) for name in (method, BASELINE))
        if own is None or other is None:
            continue
        usable = np.isfinite(own.rmse) & np.isfinite(other.rmse) & (own.rmse > 0.0) & (other.rmse > 0.0)
        if usable.any():
            ratios[phase] = float(np.exp(np.mean(np.log(other.rmse[usable] / own.rmse[usable]))))
    return ratios


PUSH_HEADING = (
    "observer", "sensors", "main joint", "truth", "within 10 %", "worst error", "detected within 20 ms",
    "slowest detection", "false alarms",
)  # fmt: skip


def target_table(summaries: Summaries, labels: tuple[str, ...], observer: str) -> list[str]:
    """Errors and limits of all targets whose cases were run."""
    rows = []
    for target in TARGETS:
        for phase, limits in target.limits.items():
            summary = summaries.get((target.case, target.noise, observer, phase))
            if summary is None or len(limits) != len(labels):
                continue
            values, kept = reached(target, phase, summary)
            unit = ", part of the RMS" if target.relative else ""
            cells = [_with_limit(*cell) for cell in zip(values, limits, kept, strict=True)]
            rows.append([f"`{target.case}`, `{target.noise}`{unit}", phase, *cells, f"{kept.sum()} of {kept.size}"])
    return table(["case, sensors", "phase", *labels, "reached"], rows)


def _with_limit(value: float, limit: float, kept: bool) -> str:
    """A value and its limit; bold when the value exceeds it."""
    text = f"{number(value, 3)} {'≤' if kept else '>'} {number(limit, 3).rstrip('0')}"
    return text if kept else f"**{text}**"


def consistency_table(summaries: Summaries, results: Results, labels: tuple[str, ...], observer: str) -> list[str]:
    """Worst joint of each run: the part of the samples inside the band, and the mean NEES."""
    rows = []
    for case, noise in runs_of(results):
        cells = []
        for method in (observer, law_of(observer)):
            for phase in ("stance", "swing"):
                key = (case, noise, method, phase)
                cells.append(_consistency([summaries[key]] if key in summaries else [], labels))
        rows.append([f"`{case}`", f"`{noise}`", *cells])
    heading = ["case", "sensors", "stance", "swing", "law alone, stance", "law alone, swing"]
    return table(heading, rows)


def consistency_overview(summaries: Summaries, results: Results, labels: tuple[str, ...], observer: str) -> list[str]:
    """Worst joint in stance or swing of every case, one column per sensor level."""
    rows = []
    for case in results.settings["cases"]:
        cells = []
        for noise in results.settings["noise"]:
            keys = [(case, noise, observer, phase) for phase in ("stance", "swing")]
            cells.append(_consistency([summaries[key] for key in keys if key in summaries], labels))
        rows.append([f"`{case}`", *cells])
    return table(["case", *(f"`{noise}`" for noise in results.settings["noise"])], rows)


def _consistency(phases: Sequence[Summary], labels: tuple[str, ...]) -> str:
    """Smallest part of the samples inside, its joint, and the range of the NEES; bold or italic when out of bounds."""
    joints = [(phase.inside[k], k, phase.nees[k]) for phase in phases for k in np.flatnonzero(judged_joints(phase))]
    if not joints:
        return NOTHING
    inside, worst, _ = min(joints)
    nees = [float(one[2]) for one in joints]
    text = f"{number(float(inside))} ({labels[worst]}); {number(min(nees))}-{number(max(nees))}"
    if not all(map(consistent, phases)):
        return f"**{text}**"
    return text if all(map(useful, phases)) else f"*{text}*"


def push_table(results: Results, observers: Collection[str]) -> list[str]:
    """External torque at the end of all pushes that the joints feel."""
    groups: dict[tuple[str, str], list[PushScore]] = {}
    for push in (push for push in results.pushes if push.method in observers):
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
    """Cases and noise levels with estimates, in the order of the options of the command."""
    made = {(score.case, score.noise) for score in results.scores if score.method in results.settings["observers"]}
    wanted = [(case, noise) for case in results.settings["cases"] for noise in results.settings["noise"]]
    return [run for run in wanted if run in made]


def _bold(text: str, good: bool) -> str:
    return text if good else f"**{text}**"
