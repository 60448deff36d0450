"""Estimates of one walk, as the estimator makes them from its readings, and their scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.random_robots.robots import RandomRobot
from benchmarks.random_robots.scores import Record, score
from benchmarks.random_robots.sensors import readings
from benchmarks.random_robots.walks import PERIOD, Walk
from friction_estimator.errors import InputError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.types import FloatArray, IntArray

ORACLES = ("", "true calibration", "true law", "both")
"""What the estimator is given beside the readings: nothing; the right URDF, and sensors with white noise and rounding
alone; the law of the true friction; both."""
_TRUE_LAW = {
    "coulomb_viscous": "coulomb_viscous",
    "asymmetric": "asymmetric",
    "load_dependent": "tanh_load",
    "stribeck": "three_slope",
    "lugre": "coulomb_viscous",
}
_LAW = ("law", "uncertainty")


def causes(robot: RandomRobot) -> tuple[str, ...]:
    """Kinds of problems that are right for a wrong joint of this robot."""
    found = ["uncertainty", "consistency"]  # noise and errors of the sensors, which every robot has
    if robot.kind != "coulomb_viscous" or robot.ripple or robot.stiffness:
        found += ["law", "disturbance"]
    if any(robot.effort_offset) or robot.kind == "asymmetric":
        found += ["passivity", "calibration"]
    return tuple(found)


def evaluate(walk: Walk, changes: Mapping[str, Any], oracle: str = "") -> Record:
    """Record of one walk.

    Parameters
    ----------
    walk : of a random robot
    changes : parameters of the estimator
    oracle : one of :data:`ORACLES`
    """
    robot = walk.robot
    if oracle in ("true calibration", "both"):
        robot = robot.calibrated
    parameters = dict(changes)
    if oracle in ("true law", "both"):
        parameters["identifier.law"] = _TRUE_LAW[robot.kind]
    estimator = Estimator(robot.estimator_config(parameters), robot.estimator_urdf(walk.urdf))
    friction, sigma, rows = estimate(estimator, walk, robot)
    record = score(PERIOD * rows.astype(np.float64), friction, sigma, walk.friction[rows], walk.stance[rows])
    diagnoses = estimator.diagnose()
    return {
        "seed": robot.seed,
        "simulator": robot.simulator,
        "oracle": oracle,
        "base": robot.base,
        "mass": robot.mass,
        "kind": robot.kind,
        **record,
        "problems": [list(one.kinds) for one in diagnoses],
        "notes": [list(one.noted) for one in diagnoses],
        "causes": list(causes(robot)),
        "findings": list(estimator.health.findings),
    }


def estimate(estimator: Estimator, walk: Walk, robot: RandomRobot) -> tuple[FloatArray, FloatArray, IntArray]:
    """Friction and sigma (m, n) at the joint samples of a walk, NaN where there is no estimate, and their rows."""
    events, stamps, rows = readings(walk, robot)
    friction, sigma = np.full((2, rows.size, len(walk.joint_names)), np.nan)
    index = {stamp: row for row, stamp in enumerate(stamps.tolist())}
    for reading in events:
        try:
            found = estimator.add(reading)
        except InputError:  # as the node does: the reading is not used
            continue
        for one in found:
            friction[index[one.stamp_ns]], sigma[index[one.stamp_ns]] = one.friction, one.sigma
    for one in estimator.flush():
        friction[index[one.stamp_ns]], sigma[index[one.stamp_ns]] = one.friction, one.sigma
    return friction, sigma, rows
