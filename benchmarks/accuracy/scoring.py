"""Records from the estimates of one run and its truth: errors, consistency, base state, pushes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.accuracy.results import BaseScore, PushScore, Score, numbers
from benchmarks.shared.estimates import CONSISTENT, SETTLED, JointGroups, Track, late_phases
from benchmarks.shared.walks import PERIOD, SimulatedRun
from friction_estimator.metrics import joint_errors, mean
from friction_estimator.simulation import Push
from friction_estimator.types import BoolArray, FloatArray

_BASE_SETTLED = 1.0


@dataclass(frozen=True, slots=True)
class RunName:
    """Which run a record belongs to."""

    case: str
    noise: str
    seed: int


def phase_scores(
    name: RunName,
    method: str,
    groups: JointGroups,
    estimate: FloatArray,
    truth: FloatArray,
    sigma: FloatArray,
    phases: dict[str, BoolArray],
) -> list[Score]:
    """One score for each phase.

    Parameters
    ----------
    estimate, truth, sigma : (m, n) [N m]
    phases : name -> (m, n) samples that count
    """
    estimate, truth, sigma = (groups.fold(values) for values in (estimate, truth, sigma))
    return [_score(name, method, phase, estimate, truth, sigma, groups.fold(where)) for phase, where in phases.items()]


def _score(
    name: RunName,
    method: str,
    phase: str,
    estimate: FloatArray,
    truth: FloatArray,
    sigma: FloatArray,
    where: BoolArray,
) -> Score:
    errors = joint_errors(estimate, truth, sigma, where)
    squares = np.divide(estimate - truth, sigma, out=np.full(truth.shape, np.nan), where=where & (sigma > 0.0)) ** 2
    inside = mean(np.where(np.isnan(squares), np.nan, squares <= CONSISTENT))
    return Score(
        name.case, name.noise, name.seed, method, phase,
        numbers(errors.rmse), numbers(errors.truth_rms), numbers(errors.bias), numbers(errors.nees), numbers(inside),
    )  # fmt: skip


def track_scores(name: RunName, method: str, groups: JointGroups, run: SimulatedRun, track: Track) -> list[Score]:
    """The estimate, and the law alone, in stance and in swing after the first seconds."""
    phases = late_phases(run)
    estimate = phase_scores(name, method, groups, track.friction, run.friction, track.sigma, phases)
    law = phase_scores(name, law_of(method), groups, track.model, run.friction, track.model_sigma, phases)
    return estimate + law


def law_of(method: str) -> str:
    """Name of the method "the law that it identified, alone"."""
    return f"{method}: law alone"


def base_score(name: RunName, run: SimulatedRun, track: Track) -> BaseScore:
    """Estimated base state against the truth."""
    late = slice(round(_BASE_SETTLED / PERIOD), None)
    truth = [sample.truth for sample in run.samples]
    pairs = list(zip(track.base, truth, strict=True))
    velocity = np.array([b.linear_velocity - t.linear_velocity for b, t in pairs[late]])
    tilt = np.array([b.rotation_base_to_world[2, :2] - t.rotation_base_to_world[2, :2] for b, t in pairs[late]])
    drift = track.base[-1].position_base_in_world - truth[-1].position_base_in_world
    return BaseScore(
        name.case, name.noise, name.seed,
        velocity=float(np.sqrt((velocity**2).mean())),
        tilt=float(np.sqrt((tilt**2).mean())),
        drift=float(np.linalg.norm(drift)),
    )  # fmt: skip


DETECTION = 5.0
"""An external torque beyond this many of its standard deviations, at any joint, is a detection."""
RECOVERY = 1.0
"""After a push the law should be as good as before within this time [s]."""
_LISTEN = 0.3  # a detection later than this after the start belongs to something else [s]
_SMALLEST = 1.0  # pushes with smaller external torques at all joints have no main joint [N m]


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
