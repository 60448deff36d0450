"""How soon does the external torque of MOB-Net, or of another source, show that a walking biped is hit?

    python -m benchmarks.collisions MODEL... [--pushes 60] [--minutes 10] [--walks FOLDER] [-o PAGE]

After section 5.3 and Table 9 of Lim et al. 2024: pushes on foot, ankle and knee of the swinging leg, from the front and
from the outer side, with the force of half a sine of 100 to 200 N and 60 to 100 ms, at random moments of the swing. The
robot walks in place on uneven ground, with the friction, the wrong masses and the sensor noise of the training.
Thresholds come from other walks than false alarms and pushes, and no walk is among those of the training. Prints, as
Markdown: detected pushes of each kind with their mean delay from several moments on, false alarms, how they become
fewer with the length of the walk that shows the thresholds, and the error of the identified wrench; with networks of
several trainings one figure for each. The other sources are the momentum observer alone, with a friction model, and
behind a band-pass, the Kalman observer, which identifies the friction in a walk before, and MOB-Net fused with the
latter. Takes an hour; walks that are in the folder already are not simulated again.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from benchmarks.shared.collision_walks import LENGTH, START_NS, Source, Sources, Walks, WalkSignals
from benchmarks.shared.command import command, count, longer_than, make_parser
from benchmarks.shared.pages import DOCS, add_page, header, row
from benchmarks.shared.walks import PERIOD
from friction_estimator.collision.detector import FREE, Collision, CollisionDetector, ThresholdLearner, Thresholds
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.learning.network import load_model
from friction_estimator.learning.signals import GAIN
from friction_estimator.robot.model import RobotModel
from friction_estimator.simulation import Push
from friction_estimator.simulation.scenario import LEG_TARGETS
from friction_estimator.types import FloatArray

THRESHOLD_SEED, PUSH_SEED, NORMAL_SEED = 3100, 2100, 6100
AFTER = 0.1
"""A detection this long after the end of a push belongs to it [s]."""
METHODS = {
    "MOB-Net, OR": ("MOB-Net", (0, 1)),
    "MOB-Net, torque": ("MOB-Net", (0,)),
    "MOB-Net, sigma": ("MOB-Net", (1,)),
    "MOB": ("MOB", (0,)),
    "MOB-fric": ("MOB-fric", (0,)),
    "MOB-fric-BPF": ("MOB-fric-BPF", (0,)),
    "Kalman observer": ("Kalman observer", (0,)),
    "fused, torque": ("fused", (0,)),
}
"""Source of the external torque, and which of torque and sigma are compared."""
CASES = tuple(f"{part}, {side}" for side in ("front", "side") for part in LEG_TARGETS)
"""Where and from where the legs are pushed, in the order of the pushes."""
LEVELS = {"first touch": 0.0, "20 N": 20.0, "50 N": 50.0, "half the largest force": math.nan}
"""Forces from which delays count [N]; NaN: half of the largest."""
PAPER = {
    "MOB-Net, OR": (60, 11.9), "MOB-Net, torque": (53, 12.5), "MOB-Net, sigma": (58, 13.7),
    "MOB": (39, 20.2), "MOB-fric": (50, 17.6), "MOB-fric-BPF": (13, 16.3),
}  # fmt: skip
"""Table 9: detected of 60, mean delay [ms]."""
PUSHED_JOINTS = {"knee": "knee", "ankle": "ankle_pitch"}
PLACES = ("detected collisions", "delays", "false alarms", "thresholds", "wrenches")
"""Of the tables on the page."""
Method = tuple[str, int]
"""One of :data:`METHODS`, and number of the training."""


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("collisions", __doc__)
    parser.add_argument("models", type=Path, nargs="+", help="models of the built-in biped")
    parser.add_argument("--pushes", type=count, default=60, help="number of pushes")
    parser.add_argument(
        "--minutes", type=longer_than(0.0), default=10.0, help="walking for the thresholds, and for false alarms"
    )
    parser.add_argument("--walks", type=Path, default=Path("collision_walks"), help="folder of the simulated walks")
    add_page(parser, DOCS / "results" / "collisions.md", *PLACES, optional=True)
    options = parser.parse_args(arguments)
    robot = load_robot("suralp")
    models = [load_model(path, robot) for path in options.models]
    study = Study(robot, Walks(robot, options.walks), Sources(robot, models))
    walks = math.ceil(60.0 * options.minutes / LENGTH - 1e-9)
    study.learn(walks)
    study.count_false_alarms(walks)
    number = 0
    while len(study.cases) < options.pushes:
        study.push(number, options.pushes - len(study.cases))
        number += 1
    for place, lines in zip(PLACES, study.tables(), strict=True):
        print(f"\n{place}\n", *lines, sep="\n")
        if options.output is not None:
            options.output.fill(place, lines)


class Study:
    """Walks, thresholds, and what was detected.

    Parameters
    ----------
    robot : the built-in biped
    walks, sources : its walks, and its sources of the external torque
    """

    def __init__(self, robot: Robot, walks: Walks, sources: Sources) -> None:
        self._walks, self._sources, self._robot = walks, sources, RobotModel(robot.config, robot.urdf_xml)
        self._joint_model = pin.buildModelFromXML(robot.urdf_xml)
        self._thresholds: dict[float, dict[Method, Thresholds]] = {}  # by minutes
        self._false: dict[float, dict[Method, list[Collision]]] = {}
        self.cases: list[str] = []
        self._delays: dict[Method, list[float]] = {}
        self._risen: list[list[float]] = []  # time from the first touch to each of LEVELS
        self._wrench_errors: list[FloatArray] = []

    def learn(self, walks: int) -> None:
        """Learn thresholds, and keep those after 1, 2, 4, ... walks."""
        learners, minutes = dict[Source, ThresholdLearner](), 0.0
        for number in range(walks):
            signals = self._walks.signals(number, THRESHOLD_SEED)
            torques, _ = self._sources.torques(signals)
            for estimates in self._sources.estimates(signals, torques):
                for source, estimate in estimates.items():
                    learners.setdefault(source, ThresholdLearner(self._robot)).step(estimate)
            minutes += signals.minutes
            if number + 1 == walks or (number + 1).bit_count() == 1:
                self._thresholds[minutes] = {
                    (method, seed): _of_signals(learner, signals_of_method)
                    for method, (name, signals_of_method) in METHODS.items()
                    for (source, seed), learner in learners.items()
                    if source == name and (seed == 0 or number + 1 == walks)
                }

    def count_false_alarms(self, walks: int) -> None:
        """Detect in walks without pushes."""
        self._false = {minutes: {one: [] for one in methods} for minutes, methods in self._thresholds.items()}
        for number in range(walks):
            signals = self._walks.signals(number, NORMAL_SEED)
            found = self._detected(signals, self._sources.torques(signals)[0], self._thresholds)
            for minutes, of_methods in found.items():
                for method, collisions in of_methods.items():
                    self._false[minutes][method] += collisions

    def push(self, number: int, most: int) -> None:
        """Detect the pushes of a walk; the delay of one that is not detected is NaN."""
        signals, pushes = self._walks.signals(number, PUSH_SEED, True), self._walks.pushes(number, PUSH_SEED)[:most]
        torques, wrenches = self._sources.torques(signals)
        minutes = max(self._thresholds)
        found = self._detected(signals, torques, {minutes: self._thresholds[minutes]})[minutes]
        for index, push in enumerate(pushes):
            self.cases.append(CASES[index % len(CASES)])
            largest = math.hypot(*push.force)
            parts = [0.5 if math.isnan(level) else level / largest for level in LEVELS.values()]
            self._risen.append([push.duration / math.pi * math.asin(part) for part in parts])
            for method, collisions in found.items():
                delays = [1e-9 * (one.stamp_ns - START_NS) - push.start for one in collisions]
                hits = [delay for delay in delays if 0.0 <= delay <= push.duration + AFTER]
                self._delays.setdefault(method, []).append(min(hits, default=math.nan))
            errors = [self._wrench_error(signals, wrench, push) for wrench in wrenches]
            self._wrench_errors.append(np.mean(errors, axis=0))

    def tables(self) -> Iterator[list[str]]:
        """Lines of the tables, in the order of :data:`PLACES`."""
        last = max(self._thresholds)
        methods = [method for method in METHODS if (method, 0) in self._thresholds[last]]
        counts = [f"{case} ({self.cases.count(case)})" for case in CASES]
        lines = [header(("method", *counts, "all", "false alarms in the air", "in contact", "paper, of 60"))]
        for method in methods:
            seen = [np.isfinite(delays) for delays in _of_trainings(self._delays, method)]
            hit = [_figures([int(np.sum(one & [c == case for c in self.cases])) for one in seen]) for case in CASES]
            places = zip(*map(_places, _of_trainings(self._false[last], method)), strict=True)
            every = f"{_figures([one.sum() for one in seen])} of {len(self.cases)}"
            lines.append(row((method, *hit, every, *map(_figures, places), str(PAPER.get(method, ("",))[0]))))
        yield lines
        lines = [header(("method", *LEVELS, "paper"))]
        for method in methods:
            every = [np.array(one)[:, None] - self._risen for one in _of_trainings(self._delays, method)]
            means = [_mean_delays(1e3 * delays) for delays in every]
            paper = f"{PAPER[method][1]}" if method in PAPER else ""
            lines.append(row((method, *(_figures(values) for values in zip(*means, strict=True)), paper)))
        yield lines
        lines = [header(("method", *(f"{minutes:.1f} min" for minutes in self._thresholds)))]
        for method in methods:
            places = [_places(self._false[minutes][method, 0]) for minutes in self._thresholds]
            lines.append(row((method, *(f"{air} + {contact}" for air, contact in places))))
        yield lines
        lines = [header(("", *self._robot.joint_names))]
        for method in (name for name in methods if METHODS[name][1] == (0,)):
            values = self._thresholds[last][method, 0].values[FREE, 0]
            lines.append(row((method, *(f"{value:.1f}" for value in values))))
        yield lines
        columns = ("force [N]", "its error [N]", "angle [degrees]", "moment about the base [N m]", "its error [N m]")
        lines = [header(("pushes", *columns))]
        for case in CASES:
            of_case = [error for error, one in zip(self._wrench_errors, self.cases, strict=True) if one == case]
            if of_case:
                lines.append(row((case, *(f"{value:.1f}" for value in np.mean(of_case, axis=0)))))
        yield lines

    def _detected(
        self,
        signals: WalkSignals,
        torques: dict[Source, tuple[FloatArray, FloatArray]],
        thresholds: dict[float, dict[Method, Thresholds]],
    ) -> dict[float, dict[Method, list[Collision]]]:
        """Collisions in a walk, for thresholds of several lengths."""
        detectors = {
            minutes: {method: CollisionDetector(self._robot, one) for method, one in of_methods.items()}
            for minutes, of_methods in thresholds.items()
        }
        found = {minutes: {method: list[Collision]() for method in one} for minutes, one in thresholds.items()}
        for estimates in self._sources.estimates(signals, torques):
            for minutes, of_methods in detectors.items():
                for (method, seed), detector in of_methods.items():
                    found[minutes][method, seed] += detector.step(estimates[METHODS[method][0], seed])
        return found

    def _wrench_error(self, signals: WalkSignals, estimated: FloatArray, push: Push) -> FloatArray:
        """Force, its error and angle to the truth [deg], moment about the base, and its error, at the largest force."""
        times = 1e-9 * (signals.stamp_ns - START_NS)
        begin, true, wrenches = int(np.searchsorted(times, push.start)), np.zeros(6), list[FloatArray]()
        for k in range(begin, begin + round((push.duration + 0.03) / PERIOD)):
            wrenches.append(true)
            inside = times[k] < push.start + push.duration
            force = signals.rotation[k].T @ push.force_at(times[k]) * inside
            position = signals.position[k].astype(float)
            acting = np.concatenate((force, np.cross(self._pushed_point(position, push.target), force)))
            true = true - math.expm1(-GAIN * PERIOD) * (acting - true)
        largest = int(np.argmax([np.linalg.norm(wrench[:3]) for wrench in wrenches]))
        true, found = wrenches[largest], estimated[begin + largest]
        sizes = [np.linalg.norm(part) for part in (true[:3], found[:3] - true[:3], true[3:], found[3:] - true[3:])]
        cosine = true[:3] @ found[:3] / (sizes[0] * np.linalg.norm(found[:3]))
        return np.array([sizes[0], sizes[1], math.degrees(math.acos(min(cosine, 1.0))), sizes[2], sizes[3]])

    def _pushed_point(self, position: FloatArray, target: str) -> FloatArray:
        """Point (3,) on which a push acts, in the base frame [m]."""
        side, part = target.split("_")
        if part == "foot":
            gravity = np.array([0.0, 0.0, 9.81])
            dynamics = self._robot.dynamics(position, np.zeros_like(position), np.zeros(3), gravity)
            return dynamics.foot_position_in_base["lr".index(side[0])]
        data, configuration = self._joint_model.createData(), pin.neutral(self._joint_model)
        for name, value in zip(self._robot.joint_names, position, strict=True):
            configuration[self._joint_model.joints[self._joint_model.getJointId(name)].idx_q] = value
        pin.forwardKinematics(self._joint_model, data, configuration)
        return data.oMi[self._joint_model.getJointId(f"{side[0]}_{PUSHED_JOINTS[part]}")].translation


def _of_trainings(values: Mapping[Method, Any], method: str) -> list[Any]:
    return [value for (name, _), value in values.items() if name == method]


def _of_signals(learner: ThresholdLearner, signals: tuple[int, ...]) -> Thresholds:
    """Thresholds of a method: infinite for the signal that it does not use."""
    learned = learner.thresholds()
    values = np.full_like(learned.values, np.inf)
    values[:, signals] = learned.values[:, signals]
    return dataclasses.replace(learned, values=values)


def _mean_delays(delays: FloatArray) -> FloatArray:
    """Mean of the detected pushes (p, levels); NaN without any."""
    seen = delays[np.isfinite(delays).all(axis=1)]
    return seen.mean(axis=0) if len(seen) else np.full(delays.shape[1], np.nan)


def _figures(values: Sequence[float]) -> str:
    """One figure for each training, or one where all are the same; counts without decimals."""
    texts = [f"{value:.1f}" if isinstance(value, float) else str(value) for value in values]
    return texts[0] if len(set(texts)) == 1 else ", ".join(texts)


def _places(found: list[Collision]) -> tuple[int, int]:
    """Number of collisions in the air and in contact."""
    standing = sum(one.in_contact for one in found)
    return len(found) - standing, standing


if __name__ == "__main__":
    sys.exit(main())
