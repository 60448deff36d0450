"""Variants of the Kalman stage with one thing changed, and their errors on the built-in walk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from benchmarks.shared.estimates import CONSISTENT, JointGroups, configure, drive, joint_groups, late_phases
from benchmarks.shared.walks import SimulatedRun, find_case, simulate
from friction_estimator.config import Config
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.smoothing import SmoothedEstimator
from friction_estimator.io.robot import load_robot
from friction_estimator.metrics import root_mean_square
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import FloatArray

LAG = 2.0
"""Of the smoother [s]."""
_SENSOR_ERRORS = ("force_bias", "moment_bias", "force_gain", "effort_gain", "specific_force_bias")
_EXACT_MODEL = {"kalman.link_mass_std": 0.0, "kalman.link_com_std": 0.0}
_DATASHEET = {**_EXACT_MODEL, "kalman.calibrate_sensors": False}
_PERFECT_SENSORS = {**_DATASHEET, **{f"sensors.{name}_std": 0.0 for name in _SENSOR_ERRORS}}


def _smoothed(config: Config, urdf_xml: str) -> Estimator:
    return SmoothedEstimator(config, urdf_xml, LAG)


def _one_filter(jerk_density: float) -> Mapping[str, Any]:
    return {"kalman.jerk_densities": (jerk_density,), "kalman.acceleration_densities": ()}


@dataclass(frozen=True)
class Variant:
    """One row of the table.

    Attributes
    ----------
    title : of the row
    changes : parameters that differ from the robot's YAML and the datasheet
    make : from configuration and URDF to what is driven
    """

    title: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    make: Callable[[Config, str], Estimator] = Estimator


VARIANTS = (
    Variant("as it is"),
    Variant(f"smoother, {LAG:g} s ahead", make=_smoothed),
    Variant("no calibration states", _PERFECT_SENSORS),
    Variant("priors exactly those of the datasheet, masses right", _DATASHEET),
    Variant("no law error state", {"kalman.law_error_std": 0.0}),
    Variant("no motion models that keep the velocity", {"kalman.acceleration_densities": ()}),
    Variant("one motion filter, jerk 1e3", _one_filter(1e3)),
    Variant("one motion filter, jerk 1e5", _one_filter(1e5)),
    Variant("velocities nearly as read (one filter, jerk 1e12)", _one_filter(1e12)),
    Variant("law six_slope", {"identifier.law": "six_slope"}),
    Variant("law three_slope", {"identifier.law": "three_slope"}),
    Variant("law tanh_load", {"identifier.law": "tanh_load"}),
    Variant("law coulomb_viscous", {"identifier.law": "coulomb_viscous"}),
    Variant("window 5 ms", {"kalman.window": 0.005}),
    Variant("window 20 ms", {"kalman.window": 0.02}),
    Variant("impacts are not noticed", {"kalman.innovation_gate": 1e6}),
)


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
        root_mean_square(groups.fold(np.where(phases["stance"], error, np.nan))),
        root_mean_square(groups.fold(np.where(phases["swing"], error, np.nan))),
        np.nanmean(groups.fold(np.where(late, inside, np.nan)), axis=0),
    )
