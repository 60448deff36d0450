"""How soon does the external torque of MOB-Net, or of another source, show that a walking biped is hit?

    python -m benchmarks.collisions MODEL END_TO_END [--pushes 60] [--minutes 10] [--walks FOLDER]

After section 5.3 and Table 9 of Lim et al. 2024: pushes on foot, ankle and knee of the swinging leg, from the front and
from the outer side, with the force of half a sine of 100 to 200 N and 60 to 100 ms, at random moments of the swing. The
robot walks in place on uneven ground, with the friction, the wrong masses and the sensor noise of the training.
Thresholds come from other walks than false alarms and pushes, and no walk is among those of the training. Prints, as
Markdown: detected pushes of each kind with their mean delay from several moments on, false alarms, how they become
fewer with the length of the walk that shows the thresholds, and the error of the identified wrench. The other sources
are the momentum observer alone, the Kalman observer, which identifies the friction in a walk before, MOB-Net fused with
the latter, and FTS-e2e. Takes an hour; walks that are in the folder already are not simulated again.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pinocchio as pin

from benchmarks.shared.collision_walks import LENGTH, SOURCES, START_NS, Walks, WalkSignals
from benchmarks.shared.command import command, count, longer_than, make_parser
from benchmarks.shared.pages import header, row
from friction_estimator.collision.detector import Collision, CollisionDetector
from friction_estimator.collision.thresholds import FREE, ThresholdLearner, Thresholds
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.learning.network import load_model
from friction_estimator.learning.signals import GAIN
from friction_estimator.robot.model import RobotModel
from friction_estimator.simulation import Push
from friction_estimator.simulation.scenario import LEG_TARGETS
from friction_estimator.types import FloatArray

THRESHOLD_SEED, PUSH_SEED, NORMAL_SEED = 3000, 2000, 6000
AFTER = 0.1
"""A detection this long after the end of a push belongs to it [s]."""
METHODS = {
    "MOB-Net, OR": ("MOB-Net", (0, 1)),
    "MOB-Net, torque": ("MOB-Net", (0,)),
    "MOB-Net, sigma": ("MOB-Net", (1,)),
    "FTS-e2e, torque": ("FTS-e2e", (0,)),
    "FTS-e2e, sigma": ("FTS-e2e", (1,)),
    "MOB": ("MOB", (0,)),
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
    "FTS-e2e, torque": (53, 28.3), "FTS-e2e, sigma": (1, 261.0), "MOB": (39, 20.2),
}  # fmt: skip
"""Table 9: detected of 60, mean delay [ms]."""
PUSHED_JOINTS = {"knee": "knee", "ankle": "ankle_pitch"}
PERIOD = 1e-3


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("collisions", __doc__)
    parser.add_argument("model", type=Path, help="model of the built-in biped")
    parser.add_argument("end_to_end", type=Path, help="model of FTS-e2e, which benchmarks.torque_step trains")
    parser.add_argument("--pushes", type=count, default=60, help="number of pushes")
    parser.add_argument(
        "--minutes", type=longer_than(0.0), default=10.0, help="walking for the thresholds, and for false alarms"
    )
    parser.add_argument("--walks", type=Path, default=Path("collision_walks"), help="folder of the simulated walks")
    options = parser.parse_args(arguments)
    robot = load_robot("suralp")
    models = (load_model(path, robot) for path in (options.model, options.end_to_end))
    study = Study(robot, Walks(robot, *models, options.walks))
    walks = math.ceil(60.0 * options.minutes / LENGTH - 1e-9)
    study.learn(walks)
    study.count_false_alarms(walks)
    number = 0
    while len(study.cases) < options.pushes:
        study.push(number, options.pushes - len(study.cases))
        number += 1
    study.report()


class Study:
    """Walks, thresholds, and what was detected.

    Parameters
    ----------
    robot : the built-in biped
    walks : its walks
    """

    def __init__(self, robot: Robot, walks: Walks) -> None:
        self._walks, self._robot = walks, RobotModel(robot.config, robot.urdf_xml)
        self._joints = pin.buildModelFromXML(robot.urdf_xml)
        self._thresholds: dict[float, dict[str, Thresholds]] = {}  # by minutes
        self._false: dict[float, dict[str, list[Collision]]] = {}
        self.cases: list[str] = []
        self._delays: dict[str, list[float]] = {method: [] for method in METHODS}
        self._risen: list[list[float]] = []  # time from the first touch to each of LEVELS
        self._wrench_errors: list[FloatArray] = []

    def learn(self, walks: int) -> None:
        """Learn thresholds, and keep those after 1, 2, 4, ... walks."""
        learners, minutes = {source: ThresholdLearner(self._robot) for source in SOURCES}, 0.0
        for number in range(walks):
            signals = self._walks.signals(number, THRESHOLD_SEED)
            for estimates in self._walks.estimates(signals):
                for source, learner in learners.items():
                    learner.step(estimates[source])
            minutes += signals.minutes
            if number + 1 == walks or (number + 1).bit_count() == 1:
                self._thresholds[minutes] = {name: _of_method(learners, name) for name in METHODS}

    def count_false_alarms(self, walks: int) -> None:
        """Detect in walks without pushes."""
        self._false = {minutes: {method: [] for method in METHODS} for minutes in self._thresholds}
        for number in range(walks):
            signals = self._walks.signals(number, NORMAL_SEED)
            for minutes, found in self._detected(signals, self._thresholds).items():
                for method in METHODS:
                    self._false[minutes][method] += found[method]

    def push(self, number: int, most: int) -> None:
        """Detect the pushes of a walk; the delay of one that is not detected is NaN."""
        signals, pushes = self._walks.signals(number, PUSH_SEED, True), self._walks.pushes(number, PUSH_SEED)[:most]
        minutes = max(self._thresholds)
        found = self._detected(signals, {minutes: self._thresholds[minutes]})[minutes]
        for index, push in enumerate(pushes):
            self.cases.append(CASES[index % len(CASES)])
            largest = math.hypot(*push.force)
            parts = [0.5 if math.isnan(level) else level / largest for level in LEVELS.values()]
            self._risen.append([push.duration / math.pi * math.asin(part) for part in parts])
            for method in METHODS:
                delays = [1e-9 * (one.stamp_ns - START_NS) - push.start for one in found[method]]
                hits = [delay for delay in delays if 0.0 <= delay <= push.duration + AFTER]
                self._delays[method].append(min(hits, default=math.nan))
            self._wrench_errors.append(self._wrench_error(signals, push))

    def report(self) -> None:
        """Print the tables."""
        last = max(self._thresholds)
        counts = [f"{case} ({self.cases.count(case)})" for case in CASES]
        print(header(("method", *counts, "all", "false, in the air", "in contact", "paper: of 60", "paper: delay")))
        for method in METHODS:
            seen = np.isfinite(self._delays[method])
            hit = [np.sum(seen & [one == case for one in self.cases]) for case in CASES]
            paper = PAPER.get(method, ("", ""))
            texts = (*hit, f"{seen.sum()} of {seen.size}", *_places(self._false[last][method]), *paper)
            print(row((method, *map(str, texts))))
        print("\nMean delay [ms] from the moment at which the force reaches\n")
        print(header(("method", *LEVELS)))
        for method in METHODS:
            delays = 1e3 * (np.array(self._delays[method])[:, None] - np.array(self._risen))
            print(row((method, *(f"{value:.1f}" for value in np.nanmean(delays, axis=0)))))
        print(f"\nFalse alarms in {last:.1f} minutes, in the air and in contact, with thresholds of\n")
        print(header(("method", *(f"{minutes:.1f} min" for minutes in self._thresholds))))
        for method in METHODS:
            places = [_places(self._false[minutes][method]) for minutes in self._thresholds]
            print(row((method, *(f"{air} + {contact}" for air, contact in places))))
        print("\nThresholds of the external torque in the air [N m]\n")
        print(header(("", *self._robot.joint_names)))
        for method in (name for name, (_, signals) in METHODS.items() if signals == (0,)):
            values = self._thresholds[last][method].values[FREE, 0]
            print(row((method, *(f"{value:.1f}" for value in values))))
        print("\nError of the identified wrench where the force behind the low-pass of the residual is largest\n")
        print(header(("pushes", "force [N]", "error [N]", "angle [deg]", "moment about the base [N m]", "error [N m]")))
        for case in CASES:
            of_case = [error for error, one in zip(self._wrench_errors, self.cases, strict=True) if one == case]
            if of_case:
                print(row((case, *(f"{value:.1f}" for value in np.mean(of_case, axis=0)))))

    def _detected(
        self, signals: WalkSignals, thresholds: dict[float, dict[str, Thresholds]]
    ) -> dict[float, dict[str, list[Collision]]]:
        """Collisions in a walk, for thresholds of several lengths."""
        detectors = {
            minutes: {method: CollisionDetector(self._robot, one) for method, one in of_methods.items()}
            for minutes, of_methods in thresholds.items()
        }
        found = {minutes: {method: list[Collision]() for method in METHODS} for minutes in thresholds}
        for estimates in self._walks.estimates(signals):
            for minutes, of_methods in detectors.items():
                for method, detector in of_methods.items():
                    found[minutes][method] += detector.step(estimates[METHODS[method][0]])
        return found

    def _wrench_error(self, signals: WalkSignals, push: Push) -> FloatArray:
        """Force, its error and angle to the truth [deg], moment about the base, and its error, at the largest force."""
        times = 1e-9 * (signals.stamp_ns - START_NS)
        begin, true, wrenches = int(np.searchsorted(times, push.start)), np.zeros(6), list[FloatArray]()
        for k in range(begin, begin + round((push.duration + 0.03) / PERIOD)):
            wrenches.append(true)
            inside = times[k] < push.start + push.duration
            force = signals.rotation[k].T @ push.force_at(times[k]) * inside
            acting = np.concatenate((force, np.cross(self._pushed_point(signals.position[k], push.target), force)))
            true = true - math.expm1(-GAIN * PERIOD) * (acting - true)
        largest = int(np.argmax([np.linalg.norm(wrench[:3]) for wrench in wrenches]))
        true, k = wrenches[largest], begin + largest
        found = (signals.residual[k] - signals.uncertainty[k])[:6].astype(float)
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
        data, configuration = self._joints.createData(), pin.neutral(self._joints)
        for name, value in zip(self._robot.joint_names, position, strict=True):
            configuration[self._joints.joints[self._joints.getJointId(name)].idx_q] = value
        pin.forwardKinematics(self._joints, data, configuration)
        return data.oMi[self._joints.getJointId(f"{side[0]}_{PUSHED_JOINTS[part]}")].translation


def _of_method(learners: dict[str, ThresholdLearner], method: str) -> Thresholds:
    """Thresholds of a method: infinite for the signal that it does not use."""
    source, signals = METHODS[method]
    learned = learners[source].thresholds()
    values = np.full_like(learned.values, np.inf)
    values[:, signals] = learned.values[:, signals]
    return dataclasses.replace(learned, values=values)


def _places(found: list[Collision]) -> tuple[int, int]:
    """Number of collisions in the air and in contact."""
    standing = sum(one.in_contact for one in found)
    return len(found) - standing, standing


if __name__ == "__main__":
    sys.exit(main())
