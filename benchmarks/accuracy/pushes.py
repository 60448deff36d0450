"""Pushes: how large the external torque is said to be, how soon it is noticed, and what is left of it in the law."""

from __future__ import annotations

import numpy as np

from benchmarks.accuracy.joints import JointGroups
from benchmarks.accuracy.results import PushScore, Score
from benchmarks.accuracy.scoring import SETTLED, RunName, phase_scores
from benchmarks.accuracy.simulated_run import PERIOD, SimulatedRun
from benchmarks.accuracy.track import Track
from friction_estimator.simulation import Push
from friction_estimator.types import BoolArray

DETECTION = 5.0
"""An external torque beyond this many of its standard deviations, at any joint, is a detection."""
RECOVERY = 1.0
"""After a push the law should be as good as before within this time [s]."""
_LISTEN = 0.3  # a detection later than this after the start belongs to something else [s]
_SMALLEST = 1.0  # pushes that move no joint by more are not asked for a main joint [N m]


def push_scores(
    name: RunName, method: str, groups: JointGroups, run: SimulatedRun, track: Track
) -> tuple[list[PushScore], list[Score]]:
    """External torque of every push that the joints feel, and the errors of the friction from 1 s after each on."""
    pushes = [push for push in run.scenario.pushes if push.start + push.duration + RECOVERY <= run.time[-1]]
    loud = np.abs(track.external_torque) > DETECTION * track.external_sigma  # NaN is not
    detected = np.asarray(loud.any(axis=1))
    false_alarms = float(detected[_quiet(run)].mean())
    felt = [push for push in pushes if _felt(run, push)]
    records = [_push_score(name, method, groups, run, track, push, detected, false_alarms) for push in felt]
    if not pushes:
        return records, []
    after = _recovered(run, pushes)[:, None]
    phases = {"stance 1 s after": run.stance & after, "swing 1 s after": ~run.stance & after}
    return records, phase_scores(name, method, groups, track.friction, run.friction, track.sigma, phases)


def _felt(run: SimulatedRun, push: Push) -> bool:
    return push.start >= SETTLED and np.abs(run.external_torque[_last(push)]).max() > _SMALLEST


def _last(push: Push) -> int:
    """Last sample on which the push acts: the torque that is stamped then acts until the push ends."""
    return round((push.start + push.duration) / PERIOD) - 1


def _push_score(
    name: RunName,
    method: str,
    groups: JointGroups,
    run: SimulatedRun,
    track: Track,
    push: Push,
    detected: BoolArray,
    false_alarms: float,
) -> PushScore:
    first, last = round(push.start / PERIOD), _last(push)
    joint = int(np.abs(run.external_torque[last]).argmax())
    noticed = np.flatnonzero(detected[first : first + round(_LISTEN / PERIOD)])
    return PushScore(
        name.case, name.noise, name.seed, method, push.start,
        joint=groups.labels[int(np.flatnonzero((groups.members == joint).any(axis=1))[0])],
        truth=float(run.external_torque[last, joint]),
        estimate=float(track.external_torque[last + 1, joint]),
        delay=float(noticed[0]) * PERIOD if noticed.size else np.nan,
        false_alarms=false_alarms,
    )  # fmt: skip


def _quiet(run: SimulatedRun) -> BoolArray:
    """Late samples (m,) without a push in the second before."""
    quiet = run.time >= SETTLED
    for push in run.scenario.pushes:
        quiet &= (run.time < push.start) | (run.time > push.start + push.duration + RECOVERY)
    return quiet


def _recovered(run: SimulatedRun, pushes: list[Push]) -> BoolArray:
    """Samples (m,) from 1 s after the first late push on, save the pushes that follow and the second after each."""
    late = [push for push in pushes if push.start >= SETTLED]
    first = min((push.start + push.duration for push in late), default=np.inf)
    return _quiet(run) & (run.time > first)
