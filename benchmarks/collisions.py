"""How soon does the external torque of MOB-Net, or of the momentum observer alone, show that a walking biped is hit?

    python -m benchmarks.collisions MODEL [--pushes 60] [--minutes 4]

After section 5.3 and Table 9 of Lim et al. 2024: pushes on foot, ankle and knee of the swinging leg, from the front and
from the outer side, with the force of half a sine of 100 to 200 N and 60 to 100 ms, at random moments of the swing. The
robot walks in place on uneven ground, with the friction, the wrong masses and the sensor noise of the training.
Thresholds come from other walks than false alarms and pushes, and no walk is among those of the training. Prints a
table as Markdown: detected pushes of each kind, mean delay from the first touch, and what was detected in the walks
without pushes. Takes 20 minutes.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.shared.command import command, count, make_parser
from benchmarks.shared.pages import header, row
from friction_estimator import compiled
from friction_estimator.collision.detector import Collision, CollisionDetector
from friction_estimator.collision.signals import FREE
from friction_estimator.collision.thresholds import ThresholdLearner, Thresholds
from friction_estimator.config import Config
from friction_estimator.errors import SimulationError
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.learning.external_torque import MobNetEstimator, with_external_torque
from friction_estimator.learning.network import Model, load_model
from friction_estimator.learning.walks import RandomWalks
from friction_estimator.robot.model import RobotModel
from friction_estimator.simulation import Scenario
from friction_estimator.simulation.scenario import LEG_TARGETS, collisions
from friction_estimator.types import FloatArray, FrictionEstimate

LENGTH = 40.0
"""Of a walk [s]."""
THRESHOLD_WALKS = 4
GAIT = {"step_length": 0.0, "step_side": 0.0, "step_turn": 0.0, "single_support": 0.7, "clearance": 0.05}
"""In place, as in the paper; times and heights are those of half of the walks of the training."""
THRESHOLD_SEED, PUSH_SEED, NORMAL_SEED = 3000, 2000, 4000
AFTER = 0.1
"""A detection this long after the end of a push belongs to it [s]."""
SOURCES = ("MOB-Net", "MOB")
METHODS = {
    "MOB-Net, OR": ("MOB-Net", (0, 1)),
    "MOB-Net, torque": ("MOB-Net", (0,)),
    "MOB-Net, sigma": ("MOB-Net", (1,)),
    "MOB": ("MOB", (0,)),
}
"""Source of the external torque, and which of torque and sigma are compared."""
CASES = tuple(f"{part}, {side}" for side in ("front", "side") for part in LEG_TARGETS)
"""Where and from where the legs are pushed, in the order of :func:`collisions`."""
FALSE = "false alarms, in the air", "false alarms, in contact"
Estimates = dict[str, FrictionEstimate]
"""By source."""
START = 1.0
"""Stamp of the first sample [s]."""
PAPER = {"MOB-Net, OR": (60, 11.9), "MOB-Net, torque": (53, 12.5), "MOB-Net, sigma": (58, 13.7), "MOB": (39, 20.2)}
"""Table 9: detected of 60, mean delay [ms]."""


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


class AllSources(MobNetEstimator):
    """Keeps the newest estimate with the external torque of every source."""

    def __init__(self, config: Config, urdf_xml: str, model: Model) -> None:
        super().__init__(config, urdf_xml, model)
        self.newest: Estimates = {}

    def _combine(
        self, estimate: FrictionEstimate, measured: FloatArray, torque: FloatArray, sigma: FloatArray
    ) -> FrictionEstimate:
        combined = super()._combine(estimate, measured, torque, sigma)
        sources = (combined, with_external_torque(estimate, measured, np.ones_like(measured)))
        self.newest = dict(zip(SOURCES, sources, strict=True))
        return combined


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("collisions", __doc__)
    parser.add_argument("model", type=Path, help="model of the built-in biped")
    parser.add_argument("--pushes", type=count, default=60, help="number of pushes")
    parser.add_argument("--minutes", type=float, default=4.0, help="walking without pushes")
    options = parser.parse_args(arguments)
    robot = load_robot("suralp")
    study = Study(robot, load_model(options.model, robot))
    for number in range(THRESHOLD_WALKS):
        study.learn(number)
    study.set_thresholds()
    minutes, number = 0.0, 0
    while minutes < options.minutes - 1e-6:
        minutes += study.count_false_alarms(number)
        number += 1
    number = 0
    while len(study.cases) < options.pushes:
        study.push(number, options.pushes)
        number += 1
    print(f"{study.minutes:.1f} minutes for the thresholds, {minutes:.1f} minutes for false alarms\n")
    study.report()


class Study:
    """Walks, thresholds, and what was detected.

    Parameters
    ----------
    robot, model : the built-in biped and its MOB-Net
    """

    def __init__(self, robot: Robot, model: Model) -> None:
        self._robot, self._model = robot, model
        self._robot_model = RobotModel(robot.config, robot.urdf_xml)
        self._learners = {source: ThresholdLearner(self._robot_model) for source in SOURCES}
        self._thresholds: dict[str, Thresholds] = {}
        self.minutes = 0.0
        self.false_alarms: dict[str, list[Collision]] = {method: [] for method in METHODS}
        self.cases: list[str] = []
        self.delays: dict[str, list[float]] = {method: [] for method in METHODS}

    def learn(self, number: int) -> None:
        """Learn thresholds from a walk."""
        walks = WalksInPlace(seed=THRESHOLD_SEED, length=LENGTH, exploration=False)

        def use(estimates: Estimates) -> None:
            for source, learner in self._learners.items():
                learner.step(estimates[source])

        self.minutes += self._walk(walks, number, use)

    def set_thresholds(self) -> None:
        """Thresholds of every method: infinite for the signal that it does not use."""
        for method, (source, signals) in METHODS.items():
            learned = self._learners[source].thresholds()
            values = np.full_like(learned.values, np.inf)
            values[:, signals] = learned.values[:, signals]
            self._thresholds[method] = dataclasses.replace(learned, values=values)

    def count_false_alarms(self, number: int) -> float:
        """Walk without pushes; return the minutes."""
        found, use = self._detecting()
        minutes = self._walk(WalksInPlace(seed=NORMAL_SEED, length=LENGTH, exploration=False), number, use)
        for method in METHODS:
            self.false_alarms[method] += found[method]
        return minutes

    def push(self, number: int, most: int) -> None:
        """Walk with pushes; note the delay of the detection of each, NaN where there is none [s]."""
        walks = PushedWalks(seed=PUSH_SEED, length=LENGTH, exploration=False)
        pushes = walks.scenario(self._robot, number).pushes[: most - len(self.cases)]
        found, use = self._detecting()
        self._walk(walks, number, use)
        self.cases += [CASES[index % len(CASES)] for index in range(len(pushes))]
        for method in METHODS:
            for push in pushes:
                delays = [1e-9 * one.stamp_ns - START - push.start for one in found[method]]
                hits = [delay for delay in delays if 0.0 <= delay <= push.duration + AFTER]
                self.delays[method].append(min(hits, default=math.nan))

    def report(self) -> None:
        """Print the tables."""
        counts = [f"{case} ({self.cases.count(case)})" for case in CASES]
        print(header(("method", *counts, "all", "mean delay [ms]", *FALSE, "paper: of 60", "paper: delay [ms]")))
        for method in METHODS:
            delays = np.array(self.delays[method])
            seen = np.isfinite(delays)
            hit = [np.sum(seen & [one == case for one in self.cases]) for case in CASES]
            delay = f"{1e3 * delays[seen].mean():.1f}" if seen.any() else ""
            false = self.false_alarms[method]
            standing = sum(one.in_contact for one in false)
            paper = PAPER.get(method, ("", ""))
            texts = (*hit, f"{seen.sum()} of {seen.size}", delay, len(false) - standing, standing, *paper)
            print(row((method, *map(str, texts))))
        print("\nThresholds of the external torque in the air [N m]\n")
        print(header(("", *self._robot_model.joint_names)))
        for source, learner in self._learners.items():
            print(row((source, *(f"{value:.1f}" for value in learner.thresholds().values[FREE, 0]))))

    def _walk(self, walks: RandomWalks, number: int, use: Callable[[Estimates], None]) -> float:
        """Give the estimates of every source to ``use``; return the minutes."""
        simulator = walks.simulator(self._robot, number)
        config = dataclasses.replace(self._robot.config, stages="base_state")  # the friction is not needed
        estimator = AllSources(config, self._robot.urdf_xml, self._model)
        compiled.prepare()
        try:
            while simulator.time < simulator.duration:
                for reading in simulator.step().readings:
                    if estimator.add(reading) and estimator.newest:
                        use(estimator.newest)
                        estimator.newest = {}
        except SimulationError as error:
            print(f"walk {number} of seed {walks.seed} ends: {error}", file=sys.stderr)
        print(f"walk {number} of seed {walks.seed}: {simulator.time:.0f} s", file=sys.stderr)
        return simulator.time / 60.0

    def _detecting(self) -> tuple[dict[str, list[Collision]], Callable[[Estimates], None]]:
        """Collisions by method, and the function that detects them."""
        found: dict[str, list[Collision]] = {method: [] for method in METHODS}
        detectors = {method: CollisionDetector(self._robot_model, self._thresholds[method]) for method in METHODS}

        def use(estimates: Estimates) -> None:
            for method, (source, _) in METHODS.items():
                found[method] += detectors[method].step(estimates[source])

        return found, use


if __name__ == "__main__":
    sys.exit(main())
