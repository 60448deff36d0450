"""What friction may depend on although the law does not say so, at every row of the fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from friction_estimator.identification.inverse_dynamics.estimation import Estimate
from friction_estimator.identification.inverse_dynamics.friction_columns import FrictionColumns
from friction_estimator.identification.inverse_dynamics.observation import Observation
from friction_estimator.identification.recording.motion import TEMPERATURE
from friction_estimator.types import FloatArray


def conditions(solution: Estimate) -> tuple[FloatArray, ...]:
    """Speed, position, load, time and, where recorded, temperature of the row's joint, each (r,).

    The load is that of the model, not the measured torque: groups of that would be chosen by its noise. A motor that
    moves several joints adds its own speed.
    """
    found = [
        _rows(solution, lambda one: np.abs(one.motion.velocity)),
        _rows(solution, lambda one: one.motion.position),
        _rows(solution, lambda one: solution.model.output_torque(one, solution.values)),
    ]
    instant = solution.fit.problem.instant
    if instant is not None:
        found.append(instant.astype(float))
    if all(TEMPERATURE in one.motion.inputs for one in solution.observations):
        found.append(np.nan_to_num(_rows(solution, lambda one: one.motion.inputs[TEMPERATURE])))
    return (*found, *_shared_motors(solution, found[0]))


def _shared_motors(solution: Estimate, speed: FloatArray) -> list[FloatArray]:
    """Speed (r,) of every motor that moves several joints, at their rows; that of the joint at the others."""
    friction = solution.model.friction
    if not isinstance(friction, FrictionColumns):
        return []
    found = []
    for direction in friction.directions[np.count_nonzero(friction.directions, axis=1) > 1]:

        def of_motor(one: Observation, direction: FloatArray = direction) -> FloatArray:
            return np.abs(one.motion.velocity @ direction)[:, None] * np.ones_like(one.motion.velocity)

        found.append(np.where(direction[solution.fit.problem.joint] != 0.0, _rows(solution, of_motor), speed))
    return found


def _rows(solution: Estimate, signal: Callable[[Observation], FloatArray]) -> FloatArray:
    """The usable rows (r,) of a signal (N, n) of every motion, in the order of the problem."""
    parts = zip(solution.observations, solution.usable, strict=True)
    return np.concatenate([signal(one)[one.filter.kept][mask] for one, mask in parts])
