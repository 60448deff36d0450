"""References that use the true states or the true friction, which no estimator has."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.ndimage import minimum_filter1d

from benchmarks.accuracy.results import TRUE_STATES, Score
from benchmarks.accuracy.scoring import RunName, phase_scores
from benchmarks.shared.estimates import SETTLED, JointGroups, late_phases
from benchmarks.shared.walks import PERIOD, SimulatedRun, standing_joints, true_inputs
from friction_estimator.config import Config
from friction_estimator.estimation.observers.observed_friction import ObservedFriction
from friction_estimator.estimation.pipeline import Pipeline
from friction_estimator.io.robot import Robot
from friction_estimator.laws import linear_law_names, make_linear_law
from friction_estimator.types import BoolArray, FloatArray

AWAY = 0.15
"""From touch-down and lift-off, outside which samples count as "single support" [s]."""
_EVERY = 5  # samples; the fit of a law needs no more


def method_with_true_states(config: Config, urdf_xml: str, run: SimulatedRun) -> tuple[FloatArray, FloatArray]:
    """A method fed with the truth: its friction (m, n), and the true friction behind the method's own low-pass.

    Of an observer what it measures, without the law that is learned from it; NaN where it has no answer.
    """
    pipeline = Pipeline(config, urdf_xml)
    stage = pipeline.friction
    observer = stage.observer if isinstance(stage, ObservedFriction) else None
    friction, delayed = np.full_like(run.friction, np.nan), run.friction.copy()  # the last sample has no inputs
    for k, (frame, attitude, phase, dynamics) in enumerate(true_inputs(run, pipeline.robot)):
        friction[k] = (observer or stage).step(frame, attitude, phase, dynamics).friction
        if observer is not None:
            delayed[k] = observer.filter(run.friction[k], frame.dt)
    return friction, delayed


def single_support(run: SimulatedRun, limb: BoolArray) -> BoolArray:
    """Joints of the one limb whose foot touches the ground, away from touch-down and lift-off, (m, n)."""
    touching = np.array([sample.truth.contact for sample in run.samples])
    alone = (touching.sum(axis=1) == 1).astype(np.uint8)
    away = minimum_filter1d(alone, 2 * round(AWAY / PERIOD) + 1).astype(bool)
    return standing_joints(touching, limb) & away[:, None]


def method_scores(
    case: str, config: Config, robot: Robot, run: SimulatedRun, limb: BoolArray, groups: JointGroups
) -> list[Score]:
    """What the method costs by itself, against the truth and against the truth that is as late as the method."""
    friction, delayed = method_with_true_states(config, robot.urdf_xml, run)
    phases = late_phases(run)
    phases["single support"] = single_support(run, limb) & (phases["stance"] | phases["swing"])
    name, unknown = RunName(case, TRUE_STATES, 0), np.full_like(friction, np.nan)
    scores = phase_scores(name, config.observer, groups, friction, run.friction, unknown, phases)
    if (delayed == run.friction).all():
        return scores
    return scores + phase_scores(name, lag_apart(config.observer), groups, friction, delayed, unknown, phases)


def lag_apart(method: str) -> str:
    """Name of the method when it is held against a truth that is as late as it is."""
    return f"{method}, lag apart"


def best_law(law_name: str, velocity: FloatArray, load: FloatArray, friction: FloatArray) -> FloatArray:
    """Friction of the law that fits the true friction best, all arrays (m, n): least squares over these samples."""
    regressor = make_linear_law(law_name).regressor(velocity, load)
    fitted = np.empty_like(friction)
    for joint in range(friction.shape[1]):
        columns = regressor[:, joint]
        solution = np.linalg.lstsq(columns[::_EVERY], friction[::_EVERY, joint], rcond=None)[0]
        fitted[:, joint] = columns @ solution
    return fitted


def law_scores(case: str, run: SimulatedRun, groups: JointGroups) -> list[Score]:
    """No estimate by one of these laws alone has a smaller error; where the friction changes, a law for each part."""
    velocity, effort = (np.array([getattr(s.joints, what) for s in run.samples]) for what in ("velocity", "effort"))
    name, unknown = RunName(case, TRUE_STATES, 0), np.full_like(run.friction, np.nan)
    phases = late_phases(run)
    scores: list[Score] = []
    for law in linear_law_names():
        fitted = np.full_like(run.friction, np.nan)
        for part in _same_friction(run):
            fitted[part] = best_law(law, velocity[part], effort[part], run.friction[part])
        scores += phase_scores(name, f"law {law}", groups, fitted, run.friction, unknown, phases)
    return scores


def _same_friction(run: SimulatedRun) -> list[slice]:
    """The late samples, cut where the friction of the scenario changes."""
    first = round(SETTLED / PERIOD)
    changes = {round(setting.start / PERIOD) for setting in run.scenario.friction}
    cuts = [first, *sorted(cut for cut in changes if first < cut < run.time.size), run.time.size]
    return [slice(start, end) for start, end in pairwise(cuts)]
