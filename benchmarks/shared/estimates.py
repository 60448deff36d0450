"""Estimators driven over walks, and the joints and samples over which their errors are counted."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from benchmarks.shared.walks import PERIOD, SimulatedRun
from friction_estimator.config import Config, parameter_fields
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.smoothing import SmoothedEstimator
from friction_estimator.io.robot import load_robot
from friction_estimator.simulation import SimulationSample, make_noise
from friction_estimator.types import BaseState, BoolArray, FloatArray, FrictionEstimate, IntArray

SETTLED = 6.0
"""Errors count from here on [s]."""
CONSISTENT = float(chdtri(1.0, 0.05))
"""(error / sigma)^2 of a consistent estimate stays below this at 95 % of the samples."""
_Number = TypeVar("_Number", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Track:
    """Estimates, one row per sample of the run.

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
    """Configuration of an estimator with the noise parameters of the sensors' datasheet."""
    datasheet = dataclasses.asdict(make_noise(noise).datasheet(PERIOD))
    noise_parameters = {f"sensors.{name}": value for name, value in datasheet.items()}
    return changed_config(robot_name, {**noise_parameters, **changes})


def changed_config(robot_name: str, changes: Mapping[str, Any]) -> Config:
    """Configuration of a robot with other parameters or constants of methods (``kalman.innovation_gate``)."""
    known = {item.name for item in parameter_fields(())}
    constants = [key for key in changes if key not in known and not key.startswith("feet.")]
    config = load_robot(robot_name, {key: value for key, value in changes.items() if key not in constants}).config
    for section, name in (key.split(".") for key in constants):
        method = dataclasses.replace(getattr(config, section), **{name: changes[f"{section}.{name}"]})
        config = dataclasses.replace(config, **{section: method})
    return config


def drive(estimator: Estimator | SmoothedEstimator, samples: Sequence[SimulationSample]) -> list[FrictionEstimate]:
    """One estimate for each of these samples."""
    estimates: list[FrictionEstimate] = []
    for sample in samples:
        for reading in sample.readings:
            estimates += estimator.add(reading)
    return held(estimates + estimator.flush(), [sample.joints.stamp_ns for sample in samples])


def held(estimates: Sequence[FrictionEstimate], stamps: Sequence[int]) -> list[FrictionEstimate]:
    """The newest estimate at each stamp [ns]: a joint sample that repeats the one before gives none."""
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


@dataclass(frozen=True, slots=True)
class JointGroups:
    """Columns of the tables.

    Attributes
    ----------
    labels : (g) one per column
    members : (g, s) joint indices of each column
    """

    labels: tuple[str, ...]
    members: IntArray

    def fold(self, values: NDArray[_Number]) -> NDArray[_Number]:
        """Samples of every joint (m, n) as samples of every column (m * s, g)."""
        return values[:, self.members.T].reshape(-1, len(self.labels))


def joint_groups(joint_names: Sequence[str], limb: BoolArray) -> JointGroups:
    """Pair the joints of limbs that look alike.

    Parameters
    ----------
    joint_names : (n)
    limb : (k, n) True where a joint lies between the base and that foot

    Returns
    -------
    JointGroups
        The i-th joints of all limbs together, when the limbs share no joint, are equally long, leave no joint out and
        the names of each group share a word (``l_knee``, ``r_knee``); else every joint for itself.
    """
    chains = [np.flatnonzero(row) for row in limb]
    alone = JointGroups(tuple(joint_names), np.arange(len(joint_names))[:, None])
    once_each = limb.size > 0 and bool((limb.sum(axis=0) == 1).all())
    if not once_each or len({chain.size for chain in chains}) != 1:
        return alone
    members = np.array(chains).T
    labels = tuple(_common_words([joint_names[joint] for joint in group]) for group in members)
    if not all(labels) or len(set(labels)) < len(labels):
        return alone
    return JointGroups(labels, members)


def _common_words(names: Sequence[str]) -> str:
    """``hip yaw`` of ``l_hip_yaw`` and ``r_hip_yaw``, ``leg 1 joint`` of ``leg_left_1_joint`` and its mirror image."""
    return " ".join(
        words[0] for words in zip(*(name.split("_") for name in names), strict=False) if len(set(words)) == 1
    )


def late_phases(run: SimulatedRun) -> dict[str, BoolArray]:
    """Stance and swing (m, n) after the first seconds."""
    late = (run.time >= SETTLED - 0.5 * PERIOD)[:, None]
    return {"stance": run.stance & late, "swing": ~run.stance & late}
