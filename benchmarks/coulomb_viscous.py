"""Do F_c and F_v describe the friction of a short walk, and is their sigma right?

    python -m benchmarks.coulomb_viscous [--duration 10] [--seeds 3] [--observers kalman fbse momentum]

Prints a table as Markdown: over all joints and seeds, how often `F_c + F_v |dq|` is within two sigma at the slow end,
the middle and the fast end of the velocities; sigma is the largest of the three. Motors without friction count in the
columns of two sigma only. F_c and F_v of the true friction are those of the line through the true friction at the
instants, and with the weights, at which the estimator counts velocities (`estimation/visited_velocities.py`). Takes 30
minutes on two cores; one observer and one seed take five minutes. The robots talos_legs and g1 need example-robot-data
(``pip install example-robot-data``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.shared.command import add_processes, command, count, longer_than, make_parser
from benchmarks.shared.estimates import configure
from benchmarks.shared.pages import header, row
from benchmarks.shared.walks import find_case, simulate
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.visited_velocities import VisitedVelocities
from friction_estimator.io.robot import load_robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import FloatArray, FrictionEstimate, LawEstimate

WALKS = (
    ("suralp", "walk", "paper_std"),
    ("suralp", "walk", "realistic"),
    ("suralp", "walk", "paper"),
    ("suralp", "inertia_errors", "realistic"),
    ("suralp", "uneven", "paper_std"),
    ("suralp", "friction_stribeck", "paper_std"),
    ("suralp", "friction_stiction", "paper_std"),
    ("suralp", "friction_load", "paper_std"),
    ("talos_legs", "walk", "realistic"),
    ("g1", "walk", "realistic"),
)
"""Robot, case of `benchmarks.accuracy`, and noise level."""
_HEADING = (
    "observer", "robot", "case", "sensors", "sigma by largest friction, median", "largest", "largest error",
    "within 2 sigma: slow end", "middle", "fast end", "F_c", "F_v",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of the joints (n,) that were seen moving, at the end of one walk.

    Attributes
    ----------
    error, sigma : (n, 3) of ``F_c + F_v |dq|`` at the slow end, in the middle and at the fast end of the range [N m]
    parameter_error, parameter_sigma : (n, 2) of F_c [N m] and F_v [N m s/rad]
    largest : (n,) largest true friction of the walk [N m]
    """

    error: FloatArray
    sigma: FloatArray
    parameter_error: FloatArray
    parameter_sigma: FloatArray
    largest: FloatArray


class TrueLine:
    """The line through the true friction, with the weights of the velocities that an estimator counts.

    Parameters
    ----------
    friction : (m, n) true [N m]; ``row`` is the present one
    """

    def __init__(self, friction: FloatArray) -> None:
        self._friction, n = friction, friction.shape[1]
        self._gram, self._moments = np.zeros((n, 2, 2)), np.zeros((n, 2))
        self.row = 0

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Follow the velocities that are counted while this lasts."""
        add_velocities = VisitedVelocities.add_velocities

        def count(visited: VisitedVelocities, regressor: FloatArray, velocity: FloatArray, *rest: Any) -> None:
            before = visited.moving_time
            add_velocities(visited, regressor, velocity, *rest)
            weight = visited.moving_time - before
            basis = np.stack((np.sign(velocity), velocity), axis=1)
            self._gram += weight[:, None, None] * basis[:, :, None] * basis[:, None, :]
            self._moments += weight[:, None] * basis * self._friction[self.row][:, None]

        with patch.object(VisitedVelocities, "add_velocities", count):
            yield

    @property
    def parameters(self) -> FloatArray:
        """F_c and F_v (n, 2), NaN for a joint that has not been seen moving."""
        seen = np.linalg.matrix_rank(self._gram) == 2
        line = np.full_like(self._moments, np.nan)
        line[seen] = np.linalg.solve(self._gram[seen], self._moments[seen, :, None])[:, :, 0]
        return line


def measure(robot_name: str, case: str, noise: str, seed: int, observer: str, duration: float) -> Lines:
    """Walk, estimate, compare."""
    robot = load_robot(robot_name)
    model = RobotModel(robot.config, robot.urdf_xml)
    experiment = find_case(case)
    run = simulate(robot, model, experiment.scenario(duration), noise, seed)
    config = configure(robot_name, noise, {"observer": observer})
    estimator = Estimator(config, experiment.estimator_urdf(robot.urdf_xml, seed))
    truth, estimates = TrueLine(run.friction), list[FrictionEstimate]()
    with truth.counting():
        for truth.row, sample in enumerate(run.samples):
            for reading in sample.readings:
                estimates += estimator.add(reading)
    law = estimates[-1].law
    difference = np.column_stack((law.coulomb, law.viscous)) - truth.parameters
    seen = np.isfinite(difference).all(axis=1)
    low, high = law.velocity_range.T
    speeds = np.stack((low, 0.5 * (low + high), high))
    return Lines(
        (difference[:, 0] + difference[:, 1] * speeds).T[seen],
        line_sigma(law, speeds).T[seen],
        difference[seen],
        np.column_stack((law.coulomb_sigma, law.viscous_sigma))[seen],
        np.abs(run.friction).max(axis=0)[seen],
    )


def line_sigma(law: LawEstimate, speed: FloatArray) -> FloatArray:
    """Standard deviation of ``F_c + F_v |dq|`` at speeds (..., n) [rad/s], (..., n) [N m]."""
    variance = law.coulomb_sigma**2 + speed * (2.0 * law.coulomb_viscous_covariance + speed * law.viscous_sigma**2)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def cells(title: Sequence[str], walks: Sequence[Lines]) -> tuple[str, ...]:
    """One row of the table, of all seeds."""
    error, sigma, parameter_error, parameter_sigma, largest = (
        np.concatenate([getattr(lines, name) for lines in walks]) for name in Lines.__dataclass_fields__
    )
    rubs = largest > 0.0
    relative, wrong = (np.abs(part[rubs]).max(axis=1) / largest[rubs] for part in (sigma, error))
    inside = 100.0 * np.mean(np.abs(error) <= 2.0 * sigma, axis=0)
    alone = 100.0 * np.mean(np.abs(parameter_error) <= 2.0 * parameter_sigma, axis=0)
    return (
        *title,
        f"{100.0 * np.median(relative):.1f} %",
        f"{100.0 * relative.max():.1f} %",
        f"{100.0 * wrong.max():.1f} %",
        *(f"{share:.0f} %" for share in (*inside, *alone)),
    )


def rows(observers: Sequence[str], seeds: int, duration: float, processes: int) -> Iterator[tuple[str, ...]]:
    """All rows, as they are ready."""
    with ProcessPoolExecutor(processes) as pool:
        jobs = {
            key: [pool.submit(measure, *key[1:], seed, key[0], duration) for seed in range(seeds)]
            for key in ((observer, *walk) for observer, walk in product(observers, WALKS))
        }
        for key, futures in jobs.items():
            yield cells(key, [future.result() for future in futures])


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("coulomb_viscous", __doc__)
    parser.add_argument("--duration", type=longer_than(2.0), default=10.0, help="of each walk [s]")
    parser.add_argument("--seeds", type=count, default=3, help="of the sensor noise")
    observers = ("kalman", "fbse", "momentum")
    parser.add_argument("--observers", nargs="+", choices=observers, default=observers)
    add_processes(parser)
    options = parser.parse_args(arguments)
    for robot in dict.fromkeys(robot for robot, _, _ in WALKS):
        load_robot(robot)  # a missing URDF is an error before the work, not after it
    print(header(_HEADING), flush=True)
    for one in rows(options.observers, options.seeds, options.duration, options.processes):
        print(row(one), flush=True)


if __name__ == "__main__":
    sys.exit(main())
