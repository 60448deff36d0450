"""The Wiener bound of every column, in stance and in swing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.accuracy.joints import JointGroups
from benchmarks.accuracy.momentum_residual import momentum_residual
from benchmarks.accuracy.results import Score
from benchmarks.accuracy.scoring import SETTLED, late_phases, numbers
from benchmarks.accuracy.simulated_run import PERIOD, SimulatedRun
from benchmarks.accuracy.wiener import wiener_errors
from friction_estimator.metrics import root_mean_square
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import FloatArray

METHODS = {"bound": "Wiener bound", "applied": "Wiener filter", "causal": "causal Wiener filter"}
"""Fields of ``WienerErrors`` and the names of the methods in the tables."""


def wiener_scores(
    robot_name: str,
    case: str,
    clean: SimulatedRun,
    noisy: Mapping[str, SimulatedRun],
    model: RobotModel,
    groups: JointGroups,
) -> list[Score]:
    """Bound and filters for each noise level, from runs of the same motion with exact and with noisy sensors."""
    exact = momentum_residual(robot_name, clean, model)
    scores: list[Score] = []
    for level, run in noisy.items():
        noise = momentum_residual(robot_name, run, model) - exact
        # A constant is a calibration error, not noise: an estimator that calibrates is not charged for it either.
        scores += _level_scores(case, level, clean, noise - noise.mean(axis=0), groups)
    return scores


def _level_scores(case: str, level: str, run: SimulatedRun, noise: FloatArray, groups: JointGroups) -> list[Score]:
    late = slice(round(SETTLED / PERIOD), None)
    scores: list[Score] = []
    for phase, where in late_phases(run).items():
        columns = [
            wiener_errors(run.friction[late, members], noise[late, members], where[late, members])
            for members in groups.members
        ]
        rms = numbers(root_mean_square(groups.fold(np.where(where, run.friction, np.nan))))
        for attribute, method in METHODS.items():
            rmse = numbers(np.array([getattr(column, attribute) for column in columns]))
            scores.append(Score(case, level, 0, method, phase, rmse, rms))
    return scores
