"""Are the errors of the filter's states as large as its covariance predicts?

    python -m benchmarks.random_robots.state_consistency [--seeds 20]

Robots walk in the built-in simulator with everything that the filter's model has and nothing else: friction is the
default law, and the errors of URDF and sensors are drawn from the filter's prior. The normalised estimation error
squared (NEES) of every kind of state, over its number of states, is one for a consistent filter. Twenty seeds take
five minutes on two cores.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.random_robots.evaluation import estimate
from benchmarks.random_robots.robots import BUILTIN, IN_MODEL, LINK_COM_STD, LINK_MASS_STD, RandomRobot, draw
from benchmarks.random_robots.sensors import SensorErrors, draw_errors
from benchmarks.random_robots.walks import Walk, model_law, walk_builtin
from benchmarks.shared.command import add_processes, command, command_line, count, make_parser, setting
from benchmarks.shared.pages import DOCS, add_page, number, table
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.kalman.stage import KalmanFriction
from friction_estimator.simulation.biped import Biped
from friction_estimator.types import FloatArray, IntArray

PAGE = DOCS / "results" / "random_robots.md"
HEADING = ("states", "number", "NEES, mean", "median", "smallest", "largest")
_ALL = "together"
_EMPTY = 1e-9  # eigenvalues of the correlations below it are constraints of the filter
Errors = tuple[FloatArray, FloatArray]
"""Estimates minus truth (d,), and the covariance that the filter gives them (d, d)."""


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("random_robots.state_consistency", __doc__)
    parser.add_argument("--seeds", type=count, default=20)
    parser.add_argument("--set", nargs="+", type=setting, default=[], metavar="PARAM=VALUE", help="of the estimator")
    add_processes(parser)
    add_page(parser, PAGE, "states", optional=True)
    options = parser.parse_args(arguments)
    with ProcessPoolExecutor(options.processes) as pool:
        runs = pool.map(partial(perform, changes=dict(options.set)), range(options.seeds))
        limbs = [limb for run in runs for limb in run]
    lines = table(HEADING, [_row(kind, [limb[kind] for limb in limbs]) for kind in limbs[0]])
    print(*lines, sep="\n")
    if options.output is not None:
        used = command_line("random_robots.state_consistency", arguments)
        options.output.fill("states", [f"`{used}`", "", *lines])


def _row(kind: str, found: Sequence[tuple[float, int]]) -> list[str]:
    values = np.array([value for value, _ in found])
    return [kind, str(found[0][1]), *(number(float(part(values))) for part in (np.mean, np.median, np.min, np.max))]


def perform(seed: int, changes: Mapping[str, Any]) -> list[dict[str, tuple[float, int]]]:
    """NEES over the number of states, and this number, of every kind of state of each limb."""
    robot = model_robot(seed)
    walk = walk_builtin(robot)
    prior = {"kalman.link_mass_std": LINK_MASS_STD, "kalman.link_com_std": LINK_COM_STD * robot.length}
    estimator = Estimator(robot.estimator_config({**prior, **changes}), robot.nominal_urdf())
    errors = draw_errors(robot)
    gain = errors.effort_gain.reshape(2, -1)  # of each leg: the filter takes the torques to be right on average
    errors = replace(errors, effort_gain=(gain - gain.mean(axis=1, keepdims=True)).ravel())
    estimate(estimator, walk, robot, errors)
    return [{kind: nees(*one) for kind, one in limb.items()} for limb in state_errors(estimator, walk, errors)]


def model_robot(seed: int) -> RandomRobot:
    """A random robot whose errors are those of the filter's prior."""
    robot, rng = draw(seed, BUILTIN), np.random.default_rng([seed, 4])
    n = len(robot.dry)
    return replace(
        robot.corrected("URDF", "torques", "wrenches", "IMU", "stamps"),
        kind=IN_MODEL, shape=rng.uniform(0.0, 1.0, n).tolist(), ripple=0.0, teeth=[], rates=(1000, 1000, 1000), bits=20,
        velocity_cutoff=0.0, velocity_std=2e-3, effort_gain_std=0.01, wrench_delay=3e-3 * abs(rng.standard_normal()),
        specific_force_bias=0.3, force_bias=2.0, force_gain_std=0.01, datasheet=True,
    )  # fmt: skip


def nees(error: FloatArray, covariance: FloatArray) -> tuple[float, int]:
    """``e^T P^-1 e`` over the rank of P, and the rank: states that a constraint binds count once."""
    std = np.sqrt(np.diagonal(covariance))
    known = std > 0.0
    values, vectors = np.linalg.eigh(covariance[np.ix_(known, known)] / np.outer(std[known], std[known]))
    free = values > _EMPTY
    along = vectors[:, free].T @ (error[known] / std[known])
    return float(np.sum(along**2 / values[free]) / free.sum()), int(free.sum())


def state_errors(estimator: Estimator, walk: Walk, sensors: SensorErrors) -> Iterator[dict[str, Errors]]:
    """Errors of every kind of state of each limb at the end of a walk; the only place that reads the filters.

    Readings are ``(1 + gain) truth + bias``, at their stamps as old as the delay; links are those of the true URDF
    against the given one.
    """
    stage = estimator.pipeline.friction
    assert isinstance(stage, KalmanFriction)
    bank = stage.bank
    robot, links = walk.robot, _link_errors(walk)
    rotation = estimator.pipeline.robot.rotation_imu_to_base
    for one in bank.filters:
        layout, joints, feet = one.layout, one.limb.joints, one.limb.feet
        places = np.arange(layout.first_state.links, layout.first_state.foot_bias).reshape(-1, 4)
        truth: dict[str, tuple[slice | IntArray, FloatArray]] = {
            "law": (layout["law"], _law(robot, layout["law"], joints)),
            "masses": (places[:, 0], links[joints, 0]),
            "centres of mass": (places[:, 1:].ravel(), links[joints, 1:].ravel()),
            "foot biases": (layout["foot_bias"], sensors.wrench_bias[feet].ravel()),
            "foot gains": (layout["foot_gain"], sensors.wrench_gain[feet].ravel()),
            "torque gains": (layout["effort_gain"], sensors.effort_gain[joints]),
            "accelerometer bias": (layout["accelerometer_bias"], rotation @ sensors.force_bias),
            "wrench delay": (layout["wrench_delay"], np.full(feet.size, robot.wrench_delay)),
            "torque delay": (layout["torque_delay"], np.zeros(1)),
        }
        indices = {kind: np.r_[where] for kind, (where, _) in truth.items()}
        values = {kind: np.asarray(value, float) for kind, (_, value) in truth.items()}
        indices[_ALL], values[_ALL] = np.concatenate([*indices.values()]), np.concatenate([*values.values()])
        yield {
            kind: (one.state[index] - values[kind], one.covariance[np.ix_(index, index)])
            for kind, index in indices.items()
        }


def _law(robot: RandomRobot, block: slice, joints: IntArray) -> FloatArray:
    """Parameters of the law of these joints, and zeros for terms that the filter has besides."""
    parameters = np.zeros((joints.size, (block.stop - block.start) // joints.size))
    for row, joint in enumerate(joints):
        true = model_law(robot.dry[joint], robot.viscous[joint], robot.shape[joint])
        parameters[row, : len(true)] = true
    return parameters.ravel()


def _link_errors(walk: Walk) -> FloatArray:
    """Relative error of the mass and shift of the centre of mass (n, 4) of every link, true against given URDF."""
    config = walk.robot.true_config()
    true, given = (Biped(config, xml).model for xml in (walk.urdf, walk.robot.nominal_urdf()))
    rows = [true.getJointId(name) for name in walk.joint_names]
    pairs = [(true.inertias[row], given.inertias[row]) for row in rows]
    return np.array([(t.mass / g.mass - 1.0, *(t.lever - g.lever)) for t, g in pairs])


if __name__ == "__main__":
    sys.exit(main())
