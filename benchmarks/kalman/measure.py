"""Errors of every variant on the built-in walk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.accuracy.cases import find_case
from benchmarks.accuracy.joints import JointGroups, joint_groups
from benchmarks.accuracy.scoring import CONSISTENT, late_phases
from benchmarks.accuracy.simulated_run import SimulatedRun, simulate
from benchmarks.accuracy.track import configure, drive
from benchmarks.kalman.variants import VARIANTS
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.robot import load_robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import BoolArray, FloatArray

ROBOT = "suralp"
_TOGETHER = 4
"""Variants that share one simulation."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Of one variant, per column of joints (g,).

    Attributes
    ----------
    stance, swing : root mean square error [N m]
    inside : part of all samples with an error inside its own 95 % interval
    """

    stance: FloatArray
    swing: FloatArray
    inside: FloatArray


@dataclass(frozen=True, slots=True)
class Job:
    """Some variants on one run."""

    noise: str
    seed: int
    duration: float
    variants: tuple[int, ...]


def measure_all(
    noises: Sequence[str], seeds: int, duration: float, processes: int
) -> Iterator[tuple[Job, dict[int, Errors]]]:
    """Every variant at every noise level and seed; results as they are ready, in order."""
    chunks = [tuple(range(len(VARIANTS)))[start::_TOGETHER] for start in range(_TOGETHER)]
    jobs = [Job(*job[:2], duration, job[2]) for job in product(noises, range(seeds), chunks)]
    with ProcessPoolExecutor(processes) as pool:
        yield from zip(jobs, pool.map(measure, jobs), strict=True)


def measure(job: Job) -> dict[int, Errors]:
    """Simulate once, then run the variants."""
    robot = load_robot(ROBOT)
    model = RobotModel(robot.config, robot.urdf_xml)
    groups = joint_groups(model.joint_names, model.limb)
    run = simulate(robot, model, find_case("walk").scenario(job.duration), job.noise, job.seed)
    results = {}
    for number in job.variants:
        variant = VARIANTS[number]
        config = configure(ROBOT, job.noise, variant.changes)
        results[number] = errors(run, variant.make(config, robot.urdf_xml), groups)
    return results


def errors(run: SimulatedRun, estimator: Estimator, groups: JointGroups) -> Errors:
    """Drive an estimator over a run."""
    estimates = drive(estimator, run.samples)
    error = np.array([estimate.friction for estimate in estimates]) - run.friction
    sigma = np.array([estimate.sigma for estimate in estimates])
    phases = late_phases(run)
    inside = error**2 <= CONSISTENT * sigma**2
    late = phases["stance"] | phases["swing"]
    return Errors(
        _rms(groups, error, phases["stance"]),
        _rms(groups, error, phases["swing"]),
        np.nanmean(groups.fold(np.where(late, inside, np.nan)), axis=0),
    )


def _rms(groups: JointGroups, error: FloatArray, where: BoolArray) -> FloatArray:
    return np.asarray(np.sqrt(np.nanmean(groups.fold(np.where(where, error, np.nan)) ** 2, axis=0)))
