"""One estimator over one run: what it said, as arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.accuracy.simulated_run import PERIOD, SimulatedRun
from friction_estimator.config import Config
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.smoothing import SmoothedEstimator
from friction_estimator.io.robot import load_robot
from friction_estimator.simulation import SimulationSample, make_noise
from friction_estimator.types import BaseState, FloatArray, FrictionEstimate


@dataclass(frozen=True, slots=True)
class Track:
    """Estimates, one row a sample of the run.

    Attributes
    ----------
    friction, sigma : (m, n) the estimate and its standard deviation [N m]
    model, model_sigma : (m, n) the identified law alone [N m]
    external_torque, external_sigma : (m, n) [N m]
    phase_names : (m) estimated contact phases
    base : (m) estimated base states
    """

    friction: FloatArray
    sigma: FloatArray
    model: FloatArray
    model_sigma: FloatArray
    external_torque: FloatArray
    external_sigma: FloatArray
    phase_names: list[str]
    base: list[BaseState]


def configure(robot_name: str, noise: str, changes: Mapping[str, Any]) -> Config:
    """Configuration of an estimator that was told the datasheet of the sensors."""
    datasheet = dataclasses.asdict(make_noise(noise).datasheet(PERIOD))
    told = {f"sensors.{name}": value for name, value in datasheet.items()}
    return load_robot(robot_name, {**told, **changes}).config


def drive(estimator: Estimator | SmoothedEstimator, samples: Sequence[SimulationSample]) -> list[FrictionEstimate]:
    """One estimate for each of these samples."""
    estimates: list[FrictionEstimate] = []
    for sample in samples:
        estimates += estimator.add_joints(sample.joints)
        estimates += estimator.add_imu(sample.imu)
        for wrench in sample.wrenches:
            estimates += estimator.add_wrench(wrench)
    return held(estimates + estimator.flush(), [sample.joints.stamp_ns for sample in samples])


def held(estimates: Sequence[FrictionEstimate], stamps: Sequence[int]) -> list[FrictionEstimate]:
    """The newest estimate at each stamp [ns]: a joint sample that repeats the one before has none of its own."""
    rows = np.searchsorted([estimate.stamp_ns for estimate in estimates], stamps, side="right") - 1
    return [estimates[row] for row in np.maximum(rows, 0)]


def estimate(config: Config, urdf_xml: str, run: SimulatedRun) -> Track:
    """Run the estimator over the samples."""
    estimates = drive(Estimator(config, urdf_xml), run.samples)

    def column(name: str) -> FloatArray:
        return np.array([getattr(one, name) for one in estimates])

    return Track(
        friction=column("friction"),
        sigma=column("sigma"),
        model=column("model"),
        model_sigma=column("model_sigma"),
        external_torque=column("external_torque"),
        external_sigma=column("external_torque_sigma"),
        phase_names=[one.phase.name for one in estimates],
        base=[one.base for one in estimates],
    )
