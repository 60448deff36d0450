"""Walks of the built-in biped for the studies of collisions: simulated once, kept as arrays.

The robot walks in place on uneven ground, with the friction, the wrong masses and the sensor noise of the training,
as in section 5.3 of Lim et al. 2024. The arrays do not depend on a network: any model can be put on them afterwards.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.signal import butter, lfilter

from benchmarks.shared.random_walks import RandomWalks
from benchmarks.shared.walks import PERIOD
from friction_estimator.base.contact_phase import ground_wrenches
from friction_estimator.errors import SimulationError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.health import Health
from friction_estimator.estimation.pipeline import Pipeline, has_effort
from friction_estimator.io.parameters import load_parameters, save_parameters
from friction_estimator.io.robot import Robot
from friction_estimator.kernels import compiler
from friction_estimator.learning.external_torque import Fusion, Guard
from friction_estimator.learning.network import Model
from friction_estimator.learning.signals import SignalStage
from friction_estimator.learning.training_data import friction_columns
from friction_estimator.simulation import Push, Scenario
from friction_estimator.simulation.scenario import collisions
from friction_estimator.types import BaseState, ContactPhase, FloatArray, FrictionEstimate, SensorFrame

LENGTH = 40.0
"""Of a walk [s]."""
START_NS = 1_000_000_000
"""Stamp of the first sample [ns]."""
GAIT = {"step_length": 0.0, "step_side": 0.0, "step_turn": 0.0, "single_support": 0.7, "clearance": 0.05}
"""In place, as in the paper; times and heights are those of half of the walks of the training."""
BAND = (2.0, 15.0)
"""Of MOB-fric-BPF (section 5.3) [Hz]."""
IDENTIFICATION_SEED = 7000
"""Of the walk in which the Kalman observer identifies the friction before all others."""
Source = tuple[str, int]
"""Name of a source of the external torque, and number of the training; 0 where it has no networks."""


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
    inputs : (m, x) of the networks, see :class:`~friction_estimator.learning.signals.Signals`
    residual : (m, nv) of the momentum observer without the wrenches of the ground
    observed, observed_sigma : (m, n) external torque of the Kalman observer
    contact, since : (m, k) of the estimated contact phase
    rotation : (m, 3, 3) true rotation of the base
    """

    stamp_ns: np.ndarray
    inputs: np.ndarray
    residual: np.ndarray
    observed: np.ndarray
    observed_sigma: np.ndarray
    contact: np.ndarray
    since: np.ndarray
    rotation: np.ndarray

    @property
    def minutes(self) -> float:
        """Length of the walk."""
        return 1e-9 * float(self.stamp_ns[-1] - START_NS) / 60.0

    @property
    def position(self) -> np.ndarray:
        """Positions (m, n) of the joints [rad]."""
        return self.inputs[:, : self.observed.shape[1]]


class StudyEstimator(Estimator):
    """Keeps one row of :class:`WalkSignals` a sample, without the rotation.

    Parameters
    ----------
    robot : the built-in biped

    Attributes
    ----------
    rows : of all samples so far
    """

    def __init__(self, robot: Robot) -> None:
        super().__init__(robot.config, robot.urdf_xml)
        self._stage = SignalStage(self.pipeline.robot, robot.config.momentum.inputs_are_held)
        self.rows: list[tuple[Any, ...]] = []

    def process(self, frame: SensorFrame) -> list[FrictionEstimate]:
        """As of :class:`Estimator`, and keep a row."""
        estimates, sensed = super().process(frame), self.pipeline.sensed
        if sensed is None or not has_effort(frame):
            self._stage.reset()
            return estimates
        ground = np.empty_like(frame.wrenches)
        ground_wrenches(frame.wrenches, sensed.phase.contact, ground)
        signals = self._stage.step(frame, sensed.attitude, sensed.dynamics, ground)
        residual = signals.residual - signals.external
        one = estimates[-1]
        if np.isfinite(residual).all():
            values = signals.inputs, residual, one.external_torque, one.external_torque_sigma
            self.rows.append((frame.stamp_ns, *values, sensed.phase.contact.copy(), sensed.phase.since.copy()))
        return estimates


class Walks:
    """Simulates walks, and keeps them in a folder.

    Parameters
    ----------
    robot : the built-in biped
    folder : of the walks; one that is there is not simulated again
    """

    def __init__(self, robot: Robot, folder: Path) -> None:
        self._robot, self._folder = robot, folder
        compiler.prepare()

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
                estimator = StudyEstimator(self._robot)
                self._walk(before, 0, estimator)
                save_parameters(friction, estimator.identified)
            estimator = StudyEstimator(self._robot)
            estimator.restore(load_parameters(friction))
            temporary = path.with_name(f".{path.name}")
            np.savez(temporary, **self._walk(walks, number, estimator))
            temporary.replace(path)
            print(f"walk {path.stem} is done", file=sys.stderr)
        with np.load(path) as arrays:
            return WalkSignals(**arrays)

    def _walk(self, walks: RandomWalks, number: int, estimator: StudyEstimator) -> dict[str, np.ndarray]:
        simulator = walks.simulator(self._robot, number)
        rotations: dict[int, np.ndarray] = {}
        try:
            while simulator.time < simulator.duration:
                sample = simulator.step()
                rotations[sample.truth.stamp_ns] = sample.truth.rotation_base_to_world
                for reading in sample.readings:
                    estimator.add(reading)
        except SimulationError as error:
            print(f"walk {number} of seed {walks.seed} ends: {error}", file=sys.stderr)
        names = [item.name for item in dataclasses.fields(WalkSignals)]
        kinds = (np.int64, *(np.float32,) * 4, bool, float)
        columns = [
            np.array(column, dtype=kind) for column, kind in zip(zip(*estimator.rows, strict=True), kinds, strict=True)
        ]
        return dict(zip(names, [*columns, np.array([rotations[row[0]] for row in estimator.rows])], strict=True))


@dataclass(frozen=True, slots=True)
class Sources:
    """External torque of each source, with networks of one or more trainings.

    Parameters
    ----------
    robot : the built-in biped
    models : a MOB-Net of each training
    """

    robot: Robot
    models: Sequence[Model]

    def torques(self, signals: WalkSignals) -> tuple[dict[Source, tuple[FloatArray, FloatArray]], list[FloatArray]]:
        """External torque and sigma (m, n) of each source in a walk, and the wrenches (m, 6) on the base by MOB-Net.

        Sources without a sigma have ones.
        """
        m, n = signals.observed.shape
        found, wrenches = dict[Source, tuple[FloatArray, FloatArray]](), list[FloatArray]()
        observed = signals.observed.astype(float), signals.observed_sigma.astype(float)
        for seed, model in enumerate(self.models):
            network = model.estimator()
            outputs = np.array([network.step(x) for x in signals.inputs.astype(float)])
            external = signals.residual - outputs[:, 0]
            mob_net, fusion = (external[:, -n:].copy(), outputs[:, 1, -n:].copy()), Fusion(n)
            fused, guard = np.empty((2, m, n)), Guard(model, True, Health())
            for k in range(m):
                fused[:, k] = fusion.step((observed[0][k], observed[1][k]), (mob_net[0][k], mob_net[1][k]), PERIOD)
            held = np.array([guard.sigma(external[k], outputs[k, 1], PERIOD) for k in range(m)])[:, -n:]
            found[("MOB-Net", seed)], found[("fused", seed)] = (mob_net[0], held), (fused[0], fused[1])
            wrenches.append(external[:, :6])
        velocity, effort = (signals.inputs[:, k * n : (k + 1) * n].astype(float) for k in (1, 2))
        mob, sigma = signals.residual[:, -n:].astype(float), np.ones((m, n))
        corrected = mob + np.einsum("mnp,np->mn", friction_columns(velocity, effort), self.models[0].friction)
        band = butter(1, BAND, "bandpass", fs=1.0 / PERIOD)
        found |= {("MOB", 0): (mob, sigma), ("MOB-fric", 0): (corrected, sigma), ("Kalman observer", 0): observed}
        found[("MOB-fric-BPF", 0)] = np.ascontiguousarray(lfilter(*band, corrected, axis=0)), sigma
        return found, wrenches

    def estimates(
        self, signals: WalkSignals, torques: dict[Source, tuple[FloatArray, FloatArray]]
    ) -> Iterator[dict[Source, FrictionEstimate]]:
        """Estimates with the external torque of each source."""
        unknown, n = Pipeline(self.robot.config, self.robot.urdf_xml).unknown_friction, signals.observed.shape[1]
        values = {item.name: getattr(unknown, item.name) for item in dataclasses.fields(unknown)}
        values |= dict.fromkeys(("position", "velocity", "effort"), np.zeros(n)) | {"base": BaseState.at_rest()}
        values["valid"] = np.ones(n, dtype=bool)
        for k, stamp_ns in enumerate(signals.stamp_ns.tolist()):
            values |= {"stamp_ns": stamp_ns, "phase": ContactPhase(signals.contact[k], signals.since[k], "")}
            yield {
                source: FrictionEstimate(**values | {"external_torque": torque[k], "external_torque_sigma": sigma[k]})
                for source, (torque, sigma) in torques.items()
            }
