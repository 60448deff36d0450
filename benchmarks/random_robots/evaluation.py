"""Estimates of one walk, as the estimator makes them from its readings, and their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.random_robots.robots import PARTS, RandomRobot
from benchmarks.random_robots.scores import Record, score
from benchmarks.random_robots.sensors import SensorErrors, draw_errors, readings
from benchmarks.random_robots.walks import PERIOD, Walk
from friction_estimator.errors import InputError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.laws import LinearFrictionLaw, make_linear_law
from friction_estimator.laws.fit_law import LawFit, fit_law
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.types import FloatArray, FrictionEstimate, IntArray

CALIBRATION, LAW, LAW_ALONE = "calibration", "law", "law alone"
ORACLES = (*PARTS, CALIBRATION, LAW, LAW_ALONE)
"""What may be right: one of the :data:`PARTS`, or all (the calibration); the law at the start, as far as its terms go.
"Law alone" is no observer but the best fit of its law to the true friction, at exact velocities and torques."""
_FIT_STEP = 10  # milliseconds between the samples of the fit
_KNOWN = 0.05  # standard deviation of a parameter that is known, as a part of its size


def evaluate(walk: Walk, changes: Mapping[str, Any], right: Sequence[str] = ()) -> Record:
    """Record of one walk.

    Parameters
    ----------
    walk : of a random robot
    changes : parameters of the estimator
    right : of :data:`ORACLES`
    """
    parts = PARTS if CALIBRATION in right else [part for part in right if part in PARTS]
    robot = walk.robot.corrected(*parts)
    estimator = Estimator(robot.estimator_config(dict(changes)), robot.estimator_urdf(walk.urdf))
    if LAW_ALONE in right:
        rows: IntArray = np.arange(0, len(walk.friction), _FIT_STEP)
        friction = np.column_stack(
            [
                law.torque(fit.values, walk.velocity[rows, joint], walk.torque[rows, joint])
                for joint, (law, fit) in enumerate(fit_laws(walk, estimator))
            ]
        )
        sigma = np.broadcast_to([fit.misfit for _, fit in fit_laws(walk, estimator)], friction.shape)
    else:
        if LAW in right:
            estimator.restore(_identified(walk, estimator))
        friction, sigma, rows, _ = estimate(estimator, walk, robot, draw_errors(robot))
    record = score(PERIOD * rows.astype(np.float64), friction, sigma, walk.friction[rows], walk.stance[rows])
    return {
        "seed": robot.seed,
        "simulator": robot.simulator,
        "right": list(right),
        "set": dict(changes),
        "base": robot.base,
        "mass": robot.mass,
        "kind": robot.kind,
        **record,
        "problems": [[one.reason.value] if one.reason else [] for one in estimator.diagnose()],
        "findings": list(estimator.health.findings),
    }


def fit_laws(walk: Walk, estimator: Estimator) -> list[tuple[LinearFrictionLaw, LawFit]]:
    """Law of the estimator for every joint (n), and its best fit to the true friction of the whole walk."""
    rows, found = slice(None, None, _FIT_STEP), []
    for joint, name in enumerate(estimator.identified.law_names):
        law = make_linear_law(name)
        velocity, load, friction = walk.velocity[rows, joint], walk.torque[rows, joint], walk.friction[rows, joint]
        found.append((law, fit_law(law, velocity, load, friction)))
    return found


def _identified(walk: Walk, estimator: Estimator) -> IdentifiedParameters:
    """The estimator's parameters with the best fits in place of the prior, where they are within the law's bounds.

    The terms of load and of velocity look alike in some joints, and the best fit has negative Coulomb friction.
    """
    start = estimator.identified
    values, covariance, residual = start.values.copy(), start.covariance.copy(), start.residual_variance.copy()
    for joint, (law, fit) in enumerate(fit_laws(walk, estimator)):
        if law.coulomb(fit.values) > 0.0:
            p = fit.values.size
            std = _KNOWN * np.maximum(np.abs(fit.values), _KNOWN * np.array(law.prior_std))
            values[joint, :p], covariance[joint, :p, :p] = fit.values, np.diag(std**2)
            residual[joint] = fit.misfit**2
    samples = np.full(len(values), float(len(walk.friction)))
    return replace(start, values=values, covariance=covariance, residual_variance=residual, samples=samples)


def estimate(
    estimator: Estimator, walk: Walk, robot: RandomRobot, errors: SensorErrors
) -> tuple[FloatArray, FloatArray, IntArray, FrictionEstimate]:
    """Friction and sigma (m, n) at the joint samples of a walk, NaN where there is none; their rows; last estimate."""
    events, stamps, rows = readings(walk, robot, errors)
    friction, sigma = np.full((2, rows.size, len(walk.joint_names)), np.nan)
    index, last = {stamp: row for row, stamp in enumerate(stamps.tolist())}, list[FrictionEstimate]()
    for reading in [*events, None]:
        try:
            found = estimator.flush() if reading is None else estimator.add(reading)
        except InputError:  # as the node does: the reading is not used
            continue
        for one in found:
            friction[index[one.stamp_ns]], sigma[index[one.stamp_ns]] = one.friction, one.sigma
        last = found or last
    return friction, sigma, rows, last[-1]
