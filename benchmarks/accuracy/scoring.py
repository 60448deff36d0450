"""From a track and the truth to records: errors, consistency, base state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from benchmarks.accuracy.joints import JointGroups
from benchmarks.accuracy.results import BaseScore, Numbers, Score
from benchmarks.accuracy.simulated_run import PERIOD, SimulatedRun
from benchmarks.accuracy.track import Track
from friction_estimator.metrics import joint_errors, mean
from friction_estimator.types import BoolArray, FloatArray

SETTLED = 6.0
"""Errors count from here on [s]."""
CONSISTENT = float(chdtri(1.0, 0.05))
"""(error / sigma)^2 of a consistent estimate stays below this at 95 % of the samples."""
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


def late_phases(run: SimulatedRun) -> dict[str, BoolArray]:
    """Stance and swing (m, n) after the first seconds."""
    late = (run.time >= SETTLED - 0.5 * PERIOD)[:, None]
    return {"stance": run.stance & late, "swing": ~run.stance & late}


def numbers(values: FloatArray) -> Numbers:
    """As they travel in a record."""
    return tuple(float(value) for value in values)


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
