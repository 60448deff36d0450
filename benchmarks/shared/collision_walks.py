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

from benchmarks.shared.random_walks import RandomWalks
from friction_estimator import compiled
from friction_estimator.errors import SimulationError
from friction_estimator.estimation.pipeline import Pipeline
from friction_estimator.io.parameters import load_parameters, save_parameters
from friction_estimator.io.robot import Robot
from friction_estimator.learning.external_torque import MobNetEstimate, MobNetEstimator, WholeBodyTorque
from friction_estimator.learning.network import Model
from friction_estimator.learning.signals import Signals, SignalStage
from friction_estimator.reference.base_state import resting_base
from friction_estimator.simulation import Push, Scenario
from friction_estimator.simulation.scenario import collisions
from friction_estimator.types import Attitude, ContactPhase, Dynamics, FloatArray, FrictionEstimate, SensorFrame

LENGTH = 40.0
"""Of a walk [s]."""
START_NS = 1_000_000_000
"""Stamp of the first sample [ns]."""
GAIT = {"step_length": 0.0, "step_side": 0.0, "step_turn": 0.0, "single_support": 0.7, "clearance": 0.05}
"""In place, as in the paper; times and heights are those of half of the walks of the training."""
SOURCES = ("MOB-Net", "MOB", "Kalman observer", "fused", "FTS-e2e")
IDENTIFICATION_SEED = 7000
"""Of the walk in which the Kalman observer identifies the friction before all others."""


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
    observed, observed_sigma, fused, fused_sigma : (m, n) external torque of the Kalman observer, and fused with MOB-Net
    end_to_end, end_to_end_sigma : (m, n) output of FTS-e2e without the torque of the ground
    contact, since : (m, k) of the estimated contact phase
    position : (m, n) of the joints [rad]
    rotation : (m, 3, 3) true rotation of the base
    """

    stamp_ns: np.ndarray
    residual: np.ndarray
    uncertainty: np.ndarray
    sigma: np.ndarray
    observed: np.ndarray
    observed_sigma: np.ndarray
    fused: np.ndarray
    fused_sigma: np.ndarray
    end_to_end: np.ndarray
    end_to_end_sigma: np.ndarray
    contact: np.ndarray
    since: np.ndarray
    position: np.ndarray
    rotation: np.ndarray

    @property
    def minutes(self) -> float:
        """Length of the walk."""
        return 1e-9 * float(self.stamp_ns[-1] - START_NS) / 60.0


class _KeptSignals(SignalStage):
    """Keeps the newest signals."""

    newest: Signals

    def step(
        self, frame: SensorFrame, attitude: Attitude, dynamics: Dynamics, wrenches: FloatArray | None = None
    ) -> Signals:
        """Use one frame."""
        self.newest = super().step(frame, attitude, dynamics, wrenches)
        return self.newest


class StudyEstimator(MobNetEstimator):
    """Fuses MOB-Net and Kalman observer, and keeps what the latter and FTS-e2e show at the newest sample.

    Parameters
    ----------
    robot, model, end_to_end : the built-in biped, its MOB-Net and its FTS-e2e

    Attributes
    ----------
    torques : (4, n) external torque of the Kalman observer, its sigma, and those of FTS-e2e
    """

    torques: tuple[FloatArray, FloatArray, FloatArray, FloatArray]

    def __init__(self, robot: Robot, model: Model, end_to_end: Model) -> None:
        super().__init__(robot.config, robot.urdf_xml, model, fused=True)
        self._stage = self._signals = _KeptSignals(self._pipeline.robot, robot.config.momentum.inputs_are_held)
        self._end_to_end = end_to_end.estimator()

    def _with_external_torque(
        self, estimate: FrictionEstimate, whole_body: WholeBodyTorque, frame: SensorFrame, ground: FloatArray
    ) -> MobNetEstimate:
        torque, sigma = self._end_to_end.step(self._signals.newest.inputs)
        torque, n = torque - self._signals.newest.external, estimate.position.size
        self.torques = estimate.external_torque, estimate.external_torque_sigma, torque[-n:], sigma[-n:]
        return super()._with_external_torque(estimate, whole_body, frame, ground)


class Walks:
    """Simulates walks, and keeps them in a folder.

    Parameters
    ----------
    robot, model, end_to_end : the built-in biped, its MOB-Net and its FTS-e2e
    folder : of the walks; one that is there is not simulated again
    """

    def __init__(self, robot: Robot, model: Model, end_to_end: Model, folder: Path) -> None:
        self._robot, self._folder = robot, folder
        self._models = model, end_to_end
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
            friction = self._folder / "friction.yaml"
            if not friction.exists():
                before = WalksInPlace(seed=IDENTIFICATION_SEED, length=LENGTH, exploration=False)
                estimator = StudyEstimator(self._robot, *self._models)
                self._walk(before, 0, estimator)
                save_parameters(friction, estimator.identified)
            estimator = StudyEstimator(self._robot, *self._models)
            estimator.restore(load_parameters(friction))
            temporary = path.with_name(f".{path.name}")
            np.savez(temporary, **self._walk(walks, number, estimator))
            temporary.replace(path)
            print(f"walk {path.stem} is done", file=sys.stderr)
        with np.load(path) as arrays:
            return WalkSignals(**arrays)

    def estimates(self, signals: WalkSignals) -> Iterator[dict[str, FrictionEstimate]]:
        """Estimates with the external torque of each of :data:`SOURCES`; the sigma of MOB is one."""
        base, n = resting_base(), signals.position.shape[1]
        torques = signals.residual - signals.uncertainty, signals.residual, signals.observed, signals.fused
        sigmas = signals.sigma, np.ones_like(signals.sigma), signals.observed_sigma, signals.fused_sigma
        pairs = [*zip(torques, sigmas, strict=True), (signals.end_to_end, signals.end_to_end_sigma)]
        joints = {
            source: (torque[:, -n:].astype(float), sigma[:, -n:].astype(float))
            for source, (torque, sigma) in zip(SOURCES, pairs, strict=True)
        }
        values = {item.name: getattr(self._unknown, item.name) for item in dataclasses.fields(self._unknown)}
        for k, stamp_ns in enumerate(signals.stamp_ns.tolist()):
            phase, position = ContactPhase(signals.contact[k], signals.since[k], ""), signals.position[k]
            same = {
                "stamp_ns": stamp_ns,
                "position": position,
                "velocity": position,
                "effort": position,
                "phase": phase,
            }
            yield {
                source: FrictionEstimate(
                    **values | {"external_torque": torque[k], "external_torque_sigma": sigma[k]},
                    **same,
                    base=base,
                    valid=np.ones(n, dtype=bool),
                )
                for source, (torque, sigma) in joints.items()
            }

    def _walk(self, walks: RandomWalks, number: int, estimator: StudyEstimator) -> dict[str, np.ndarray]:
        simulator = walks.simulator(self._robot, number)
        rotations: dict[int, np.ndarray] = {}
        columns: list[list[np.ndarray]] = [[] for _ in range(13)]
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
                            observed, observed_sigma, *end_to_end = estimator.torques
                            values = (whole.residual, whole.uncertainty, whole.sigma, observed, observed_sigma)
                            values += (estimate.external_torque, estimate.external_torque_sigma, *end_to_end)
                            values += (estimate.phase.contact, estimate.phase.since, estimate.position, rotation)
                            for column, value in zip(columns, values, strict=True):
                                column.append(np.array(value))
        except SimulationError as error:
            print(f"walk {number} of seed {walks.seed} ends: {error}", file=sys.stderr)
        names = [item.name for item in dataclasses.fields(WalkSignals)]
        kinds = (np.float32,) * 9 + (bool,) + (float,) * 3
        arrays = [np.array(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True)]
        return dict(zip(names, [np.array(stamps), *arrays], strict=True))
