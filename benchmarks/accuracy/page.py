"""docs/results/accuracy.md from the results: what was measured is all it says."""

from __future__ import annotations

from benchmarks.accuracy.details import (
    base_table,
    case_section,
    law_table,
    oracle_table,
    overview,
    wiener_table,
)
from benchmarks.accuracy.results import Results
from benchmarks.accuracy.study import study_table
from benchmarks.accuracy.summary import summarise
from benchmarks.accuracy.verdict import (
    BASELINE_NOTE,
    CONSISTENCY_NOTE,
    consistency_table,
    push_table,
    ratio_table,
    runs_of,
    target_table,
)

_HEAD = """# Accuracy

Made by `{command}`:
robot `{robot}`, {duration:g} s a run, number of seeds: {seeds} (one for `clean`, which knows no chance). The same
numbers, seed by seed, are in the JSON file beside this page; `--from` makes the page from it again.

Errors in N m after 6 s. The numbers in a cell are {labels}
(the same joint of all legs together; robots whose limbs differ: every joint for itself). Stance and swing are the true
ones, by the estimator's own contact detector on the true wrenches. Every observer gets the same recording and is told
the datasheet of the sensors; all else is the robot's YAML. `law alone` is the identified law without the observer. A
seed draws the noise, biases and gain errors of the sensors, and in `inertia_errors` the masses and centres of mass too;
the motion is the same. RMSE, NEES and the like are means over the seeds, ± is half of the largest difference between
two of them, bias the mean magnitude of the mean error.
"""
_MISSED = "Bold: missed ([what no law can reach](kalman.md#what-no-law-can-reach))."
_CONSISTENCY = """## Does sigma tell the truth?

NEES is the mean of (error / published sigma)^2: 1 is consistent, more is overconfident. "Inside" is the part of the
samples at which it is below 3.84, the 95 % quantile of chi-square with one degree of freedom. One joint at a time,
because the estimator publishes a sigma a joint and no covariance between joints; one sample at a time, because errors
are correlated over time, so that the band of a time average would need their unknown correlation, while the expected
part of the samples inside is 95 % whatever the correlation (only its scatter grows, which is why 90 % is asked). The
band has no lower end: a small error is no defect, a sigma that is always too wide is, and shows in the mean.
"""
_ORACLE = """## The oracle: what each method costs by itself

Exact sensors; attitude, angular velocity and acceleration, and contact phase from the simulator. `lag apart`: against
the true friction behind the observer's own low-pass or delay. Where an observer has no answer (FBSE in swing), the
samples do not count. "Away from landing": the standing leg, at least 0.15 s from touch-down and lift-off.
"""
_LAWS = """## The best law: what is left when the law alone speaks

Each linear law fitted by least squares to the *true* friction at the true velocity and motor torque, all samples after
6 s of that very run (before and after a change of the friction, separately). No law-only estimate is better.
An error of zero says that the law contains the friction that was simulated; how general it is show the other cases.
"""
_WIENER = """## The Wiener bound: how well a filter without a friction law could do

The momentum residual of each period, without a low-pass, is the true friction plus noise. Its noise is the difference
between noisy and exact sensors on the same motion, with the wrench of a foot in the air known to be zero, and its mean
taken off (a constant is a calibration error, not noise). With the spectra of both, from Hann windows of 1.024 s centred
in stance or swing, the best linear filter that may look ahead has the error integral S_f S_n / (S_f + S_n), the
`Wiener bound` of a stationary signal. `Wiener filter` is that filter at work, designed on every other block of 4 s
(less in short runs) and applied to the blocks between; `causal Wiener filter` the same without looking ahead
(Wiener-Hopf equations). All this is about filters of 1 s reach that do not change within stance or swing and know
neither law nor calibration: an observer with a law may be better, and one that calibrates will be where gains are wrong
(`realistic`).
"""
_STUDY = """## Beside the prototype

Before this package there was a prototype, on a walk of its own (110 kg, 12 joints; `paper_std`): what it reached, above
what is reached here. Its motion was another, so read orders of magnitude.
"""
_PUSHES = """## Pushes

External torque of the joint that feels the push most, at its end (80 ms), against the truth; detection is the first
sample at which any joint's external torque exceeds 5 of its sigmas; false alarms are the part of all other late samples
at which one does. The law after the push is in the table of the targets.
"""


def page(results: Results) -> str:
    """The whole page."""
    summaries, labels, judged = summarise(results), results.labels, results.settings["judged"]
    lines = [_HEAD.format(labels=", ".join(labels), **results.settings), *_failures(results)]
    lines += [f"## What it must show: `{judged}`", "", _MISSED, ""]
    lines += target_table(summaries, labels, judged)
    lines += [BASELINE_NOTE, "", *ratio_table(summaries, results, judged)]
    lines += [_CONSISTENCY, CONSISTENCY_NOTE, "", *consistency_table(summaries, results, labels, judged)]
    if results.pushes:
        lines += [_PUSHES, *push_table(results)]
    lines += ["## Overview", "", "RMSE, mean over the joints, stance / swing.", "", *overview(summaries, results)]
    lines += [_ORACLE, *oracle_table(summaries, results), _LAWS, *law_table(summaries, results)]
    lines += [_WIENER, *wiener_table(summaries, results)]
    if comparison := study_table(summaries):
        lines += [_STUDY, *comparison]
    lines += ["## Base state", "", "Root mean square errors an axis.", "", *base_table(results), "## All numbers", ""]
    for case in dict.fromkeys(case for case, _ in runs_of(results)):
        lines += case_section(case, summaries, results)
    return "\n".join(lines)


def _failures(results: Results) -> list[str]:
    if not results.failures:
        return []
    rows = [f"- `{f.case}`, `{f.noise}`, seed {f.seed}: {f.message}" for f in results.failures]
    return ["**Runs that failed, and are missing below:**", "", *rows, ""]
