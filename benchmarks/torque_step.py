"""Does MOB-Net show an external torque that no training walk had, and does a network without momentum observer?

    python -m benchmarks.mob_net_walks walks --duration 360
    friction_estimator train walks -o mob_net.safetensors
    python -m benchmarks.torque_step walks mob_net.safetensors end_to_end.safetensors [--walks 3]

After section 5.1 and Fig. 6 of Lim et al. 2024: an external torque of 30 N m acts on the hip pitch joint of the
swinging leg for 0.1 s. FTS-e2e is their baseline: the same networks, trained with the same data and settings, whose
output is the external torque itself, as the foot sensors measure it. It is trained with ``walks`` where its file does
not exist. Prints, as Markdown, errors of that joint from 0.1 s before to 0.2 s after the begin of the torque, and
errors of all joints in the rest of the walks. The truth passes the low-pass of the momentum observer, as in the paper.
Takes two minutes, and as long as ``train`` for the training.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.shared.command import command, count, make_parser
from benchmarks.shared.pages import header, row
from benchmarks.shared.random_walks import RandomWalks
from friction_estimator import compiled
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.learning.evaluation import predicted
from friction_estimator.learning.network import RobotIdentity, load_model
from friction_estimator.learning.recording import SignalReader, SignalRecording, load_signals
from friction_estimator.learning.signals import GAIN
from friction_estimator.metrics import root_mean_square
from friction_estimator.simulation.footsteps import LEFT, plan_footsteps
from friction_estimator.types import FloatArray

TORQUE, DURATION = 30.0, 0.1
"""Of a step [N m], [s]."""
BEFORE, AFTER = 0.1, 0.2
"""Evaluated time before and after the begin of a step, as in Fig. 6 [s]."""
PAUSE = 2.0
"""From one step to the next [s]."""
PART_OF_SWING = 0.25, 0.5
"""Between which a step begins; then all of the evaluated time is in the swing."""
PERIOD = 1e-3
WALKS = RandomWalks(seed=5000, exploration=False)
PAPER = {"MOB": (37.05, 19.3), "FTS-e2e": (16.32, math.nan), "MOB-Net": (3.53, 1.31)}
"""Fig. 6 and Table 5: error of the hip pitch joint with a step, mean error of the leg while walking [N m]."""


@dataclasses.dataclass(frozen=True)
class Step:
    """One step of the torque: its begin [s] and its joint."""

    start: float
    joint: int


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("torque_step", __doc__)
    parser.add_argument("data", type=Path, help="data set with which the model was trained")
    parser.add_argument("model", type=Path, help="model of the built-in biped")
    parser.add_argument("end_to_end", type=Path, help="model of FTS-e2e; trained where it does not exist")
    parser.add_argument("--walks", type=count, default=3, help="walks of 20 s")
    options = parser.parse_args(arguments)
    robot = load_robot("suralp")
    if not options.end_to_end.exists():
        train_end_to_end(robot, options.data, options.end_to_end)
    model, end_to_end = load_model(options.model, robot), load_model(options.end_to_end, robot)
    compiled.prepare()
    with_step: dict[str, list[FloatArray]] = {name: [] for name in PAPER}
    while_walking: dict[str, list[FloatArray]] = {name: [] for name in PAPER}
    count_of_steps = 0
    for number in range(options.walks):
        recording, applied, steps = walk_with_steps(robot, number)
        truth = np.asarray(recording.true_external, dtype=float) + applied
        residual = recording.residual.astype(float)
        errors = {
            "MOB": residual - truth,
            "FTS-e2e": predicted(end_to_end, recording)[0] - truth,
            "MOB-Net": residual - predicted(model, recording)[0] - truth,
        }
        time = PERIOD * (np.arange(len(recording)) + round(WALKS.length / PERIOD) - len(recording))
        undisturbed = np.ones(len(recording), dtype=bool)
        for step in steps:
            near = (time >= step.start - BEFORE) & (time < step.start + AFTER)
            undisturbed &= (time < step.start) | (time >= step.start + 1.0)
            for name, error in errors.items():
                with_step[name].append(error[near, 6 + step.joint])
        for name, error in errors.items():
            while_walking[name].append(error[undisturbed, 6:])
        count_of_steps += len(steps)
    print(f"{count_of_steps} steps of {TORQUE:g} N m\n")
    print(header(("", "hip pitch, step [N m]", "joints, walking [N m]", "paper, step", "paper, walking")))
    for name, paper in PAPER.items():
        error = root_mean_square(np.concatenate(with_step[name]))
        mean = root_mean_square(np.concatenate(while_walking[name])).mean()
        print(row((name, *(f"{value:.2f}" if value == value else "" for value in (error, mean, *paper)))))


def train_end_to_end(robot: Robot, data: Path, path: Path) -> None:
    """Train networks whose target is the measured external torque, and write them."""
    from friction_estimator.learning.training import TrainingSettings, train

    recordings = [
        dataclasses.replace(one, residual=one.external, external=np.zeros_like(one.external))
        for one in (load_signals(path, RobotIdentity.of(robot)) for path in sorted(data.glob("*.npz")))
    ]
    checkpoint = path.with_name(f"{path.name}.checkpoint")
    train(recordings, robot, TrainingSettings(), checkpoint, lambda epoch: print(epoch, file=sys.stderr)).save(path)
    checkpoint.unlink(missing_ok=True)


def walk_with_steps(
    robot: Robot, number: int, walks: RandomWalks = WALKS
) -> tuple[SignalRecording, FloatArray, list[Step]]:
    """A random walk, the applied external torque (m, nv) behind the low-pass, and its steps.

    An external torque on a joint acts like a motor torque that the sensor does not show.
    """
    simulator, reader = walks.simulator(robot, number), SignalReader(robot.config, robot.urdf_xml)
    gait, rng = walks.scenario(robot, number).gait, np.random.default_rng([walks.seed, number, 3])
    steps, free = list[Step](), PAUSE
    for footstep in plan_footsteps(gait, 0.0, walks.length - gait.single_support):
        if footstep.start >= free:
            side = "l" if footstep.foot == LEFT else "r"
            start = footstep.start + footstep.duration * rng.uniform(*PART_OF_SWING)
            steps.append(Step(start, simulator.joint_names.index(f"{side}_hip_pitch")))
            free = footstep.start + PAUSE
    n = len(simulator.joint_names)
    total = round(walks.length / PERIOD)
    applied = np.zeros((total, 6 + n))
    low_passed = np.zeros(6 + n)
    for k in range(total):
        applied[k] = low_passed
        torque = np.zeros(n)
        for step in steps:
            if step.start <= k * PERIOD < step.start + DURATION:
                torque[step.joint] = TORQUE
        low_passed = low_passed + -math.expm1(-GAIN * PERIOD) * (np.concatenate((np.zeros(6), torque)) - low_passed)
        sample = simulator.step(torque)
        reader.expect(sample.truth)
        joints = dataclasses.replace(sample.joints, effort=sample.joints.effort - torque)
        for reading in dataclasses.replace(sample, joints=joints).readings:
            reader.add(reading)
    reader.flush()
    recording = reader.recording()
    return recording, applied[total - len(recording) :], steps


if __name__ == "__main__":
    sys.exit(main())
