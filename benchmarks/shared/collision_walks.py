"""Walks of the built-in biped for the studies of collisions: simulated once, kept as arrays.

The robot walks in place on uneven ground, with the friction, the wrong masses and the sensor noise of the training,
as in section 5.3 of Lim et al. 2024.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from friction_estimator import compiled
from friction_estimator.errors import SimulationError
from friction_estimator.estimation.pipeline import Pipeline
from friction_estimator.io.robot import Robot
from friction_estimator.learning.external_torque import MobNetEstimate, MobNetEstimator
from friction_estimator.learning.network import Model
from friction_estimator.learning.walks import RandomWalks
from friction_estimator.reference.base_state import resting_base
from friction_estimator.simulation import Push, Scenario
from friction_estimator.simulation.scenario import collisions
from friction_estimator.types import ContactPhase, FrictionEstimate

LENGTH = 40.0
"""Of a walk [s]."""
START_NS = 1_000_000_000
"""Stamp of the first sample [ns]."""
GAIT = {"step_length": 0.0, "step_side": 0.0, "step_turn": 0.0, "single_support": 0.7, "clearance": 0.05}
"""In place, as in the paper; times and heights are those of half of the walks of the training."""
SOURCES = ("MOB-Net", "MOB")


class WalksInPlace(RandomWalks):
    """Walks in place on uneven ground."""

    def scenario(self, robot: Robot, number: int) -> Scenario:
        """Scenario of a walk."""
        scenario = super().scenario(robot, number)
        return dataclasses.replace(scenario, gait=dataclasses.replace(scenario.gait, **GAIT))


class PushedWalks(WalksInPlace):
    """Walks in place in which swinging legs collide."""

    def scenario(self, robot: Robot, number: int) -> Scenario:
        """Scenario of a walk, with its pushes."""
        scenario = super().scenario(robot, number)
        return dataclasses.replace(scenario, pushes=collisions(scenario.gait, scenario.duration, number))


@dataclass(frozen=True, slots=True)
class WalkSignals:
    """One walk.

    Attributes
    ----------
    stamp_ns : (m,) of the samples [ns]
    residual, uncertainty, sigma : (m, nv) see :class:`~friction_estimator.learning.external_torque.WholeBodyTorque`
    contact, since : (m, k) of the estimated contact phase
    position : (m, n) of the joints [rad]
    rotation : (m, 3, 3) true rotation of the base
    """

    stamp_ns: np.ndarray
    residual: np.ndarray
    uncertainty: np.ndarray
    sigma: np.ndarray
    contact: np.ndarray
    since: np.ndarray
    position: np.ndarray
    rotation: np.ndarray

    @property
    def minutes(self) -> float:
        """Length of the walk."""
        return 1e-9 * float(self.stamp_ns[-1] - START_NS) / 60.0


class Walks:
    """Simulates walks, and keeps them in a folder.

    Parameters
    ----------
    robot, model : the built-in biped and its MOB-Net
    folder : of the walks; one that is there is not simulated again
    """

    def __init__(self, robot: Robot, model: Model, folder: Path) -> None:
        self._robot, self._model, self._folder = robot, model, folder
        self._unknown = Pipeline(robot.config, robot.urdf_xml).unknown
        compiled.prepare()

    def pushes(self, number: int, seed: int) -> tuple[Push, ...]:
        """Pushes of a walk of :class:`PushedWalks`."""
        walks = PushedWalks(seed=seed, length=LENGTH, exploration=False)
        return walks.scenario(self._robot, number).pushes

    def signals(self, number: int, seed: int, pushed: bool = False) -> WalkSignals:
        """Signals of a walk."""
        path = self._folder / f"{'pushed' if pushed else 'normal'}_{seed}_{number:03d}.npz"
        if not path.exists():
            walks = (PushedWalks if pushed else WalksInPlace)(seed=seed, length=LENGTH, exploration=False)
            self._folder.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}")
            np.savez(temporary, **self._walk(walks, number))
            temporary.replace(path)
            print(f"walk {path.stem} is done", file=sys.stderr)
        with np.load(path) as arrays:
            return WalkSignals(**arrays)

    def estimates(self, signals: WalkSignals) -> Iterator[dict[str, FrictionEstimate]]:
        """Estimates with the external torque of each of :data:`SOURCES`; the sigma of MOB is one."""
        base, n = resting_base(), signals.position.shape[1]
        torques = {"MOB-Net": signals.residual - signals.uncertainty, "MOB": signals.residual}
        sigmas = {"MOB-Net": signals.sigma, "MOB": np.ones_like(signals.sigma)}
        joints = {
            source: (torques[source][:, -n:].astype(float), sigmas[source][:, -n:].astype(float)) for source in SOURCES
        }
        for k, stamp_ns in enumerate(signals.stamp_ns.tolist()):
            phase, position = ContactPhase(signals.contact[k], signals.since[k], ""), signals.position[k]
            yield {
                source: FrictionEstimate(
                    stamp_ns,
                    position,
                    position,
                    position,
                    phase,
                    base,
                    dataclasses.replace(self._unknown, external_torque=torque[k], external_torque_sigma=sigma[k]),
                )
                for source, (torque, sigma) in joints.items()
            }

    def _walk(self, walks: RandomWalks, number: int) -> dict[str, np.ndarray]:
        robot = self._robot
        simulator = walks.simulator(robot, number)
        config = dataclasses.replace(robot.config, stages="base_state")  # the friction is not needed
        estimator = MobNetEstimator(config, robot.urdf_xml, self._model)
        rotations: dict[int, np.ndarray] = {}
        columns: list[list[np.ndarray]] = [[] for _ in range(7)]
        stamps: list[int] = []
        try:
            while simulator.time < simulator.duration:
                sample = simulator.step()
                rotations[sample.truth.stamp_ns] = sample.truth.rotation_base_to_world
                for reading in sample.readings:
                    for estimate in estimator.add(reading):
                        rotation = rotations.pop(estimate.stamp_ns)
                        if isinstance(estimate, MobNetEstimate):
                            whole = estimate.whole_body
                            stamps.append(estimate.stamp_ns)
                            values = (whole.residual, whole.uncertainty, whole.sigma, estimate.phase.contact)
                            values += (estimate.phase.since, estimate.position, rotation)
                            for column, value in zip(columns, values, strict=True):
                                column.append(np.array(value))
        except SimulationError as error:
            print(f"walk {number} of seed {walks.seed} ends: {error}", file=sys.stderr)
        names = [item.name for item in dataclasses.fields(WalkSignals)]
        kinds = (np.float32,) * 3 + (bool,) + (float,) * 3
        arrays = [np.array(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True)]
        return dict(zip(names, [np.array(stamps), *arrays], strict=True))
