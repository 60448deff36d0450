"""Does MOB-Net show an external torque that no training walk had, and what do random torques in its training change?

    python -m benchmarks.mob_net_walks walks --duration 360
    friction_estimator train walks -o mob_net.safetensors
    python -m benchmarks.torque_step walks MODEL... [--end-to-end MODEL...] [--without MODEL...] [--walks 3]

After section 5.1, Fig. 6 and Tables 10 and 11 of Lim et al. 2024: an external torque of 30 N m acts on the hip pitch
joint of the swinging leg for 0.1 s. FTS-e2e is their baseline: the same networks, trained with the same data and
settings, whose output is the external torque itself, as the foot sensors measure it. It is trained with ``walks`` where
its file does not exist. Sigma is that of the networks alone. ``--without`` names models of walks without random
torques. Prints, as Markdown, one figure for each training: errors and coverage of that joint from 0.1 s before to 0.2 s
after the begin of the torque, and of all joints in the rest of the walks. The truth passes the low-pass of the momentum
observer, as in the paper. Takes two minutes, and as long as ``train`` for the training.
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
from benchmarks.shared.random_walks import RandomWalks, TrueFeetReader
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.kernels import compiler
from friction_estimator.learning.network import Model, RobotIdentity, load_model
from friction_estimator.learning.signals import GAIN
from friction_estimator.learning.training_data import SignalRecording, load_signals, predicted
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
WITHOUT = "MOB-Net without random torques"


@dataclasses.dataclass(frozen=True)
class Step:
    """One step of the torque: its begin [s] and its joint."""

    start: float
    joint: int


StepWalk = tuple[SignalRecording, FloatArray, list[Step]]
"""A walk, the applied external torque (m, nv) behind the low-pass, and its steps."""


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("torque_step", __doc__)
    parser.add_argument("data", type=Path, help="data set with which the models were trained")
    parser.add_argument("models", type=Path, nargs="+", help="models of the built-in biped")
    parser.add_argument("--end-to-end", type=Path, nargs="+", default=[], help="as many of FTS-e2e")
    parser.add_argument("--without", type=Path, nargs="+", default=[], help="models trained without random torques")
    parser.add_argument("--walks", type=count, default=3, help="walks of 20 s")
    options = parser.parse_args(arguments)
    robot = load_robot("suralp")
    models = [load_model(path, robot) for path in options.models]
    for path, model in zip(options.end_to_end, models, strict=False):
        if not path.exists():
            train_end_to_end(robot, options.data, model, path)
    of_methods: dict[str, list[Model | None]] = {
        "MOB": [None],
        "FTS-e2e": [load_model(path, robot) for path in options.end_to_end],
        "MOB-Net": [*models],
        WITHOUT: [load_model(path, robot) for path in options.without],
    }
    compiler.prepare()
    walks = [walk_with_steps(robot, number) for number in range(options.walks)]
    print(f"{sum(len(steps) for *_, steps in walks)} steps of {TORQUE:g} N m\n")
    columns = ("", "hip pitch, step [N m]", "within 1.96 sigma", "paper", "joints, walking [N m]", "within 1.96 sigma")
    print(header((*columns, "paper")))
    for name, of_method in ((name, models) for name, models in of_methods.items() if models):
        paper = ["" if math.isnan(value) else f"{value:.1f}" for value in PAPER.get(name, (math.nan, math.nan))]
        figures = [figures_of(name, model, walks) for model in of_method]
        error, inside, mean, inside_walking = (", ".join(texts) for texts in zip(*figures, strict=True))
        print(row((name, error, inside, paper[0], mean, inside_walking, paper[1])))


def figures_of(name: str, model: Model | None, walks: Sequence[StepWalk]) -> tuple[str, str, str, str]:
    """Error and coverage of the hip pitch joint during the steps, and of all joints in the rest of the walks."""
    with_step, walking = list[FloatArray](), list[FloatArray]()  # error, and error over sigma
    for recording, applied, steps in walks:
        truth, residual = np.asarray(recording.true_external, dtype=float) + applied, recording.residual.astype(float)
        output, sigma = (
            (np.zeros_like(truth), np.full_like(truth, np.nan)) if model is None else predicted(model, recording)
        )
        error = (output if name == "FTS-e2e" else residual - output) - truth
        both = np.stack((error, error / sigma), axis=-1)
        time = PERIOD * (np.arange(len(recording)) + round(WALKS.length / PERIOD) - len(recording))
        undisturbed = np.ones(len(recording), dtype=bool)
        for step in steps:
            near = (time >= step.start - BEFORE) & (time < step.start + AFTER)
            undisturbed &= (time < step.start) | (time >= step.start + 1.0)
            with_step.append(both[near, 6 + step.joint])
        walking.append(both[undisturbed, 6:])
    parts = [np.moveaxis(np.concatenate(part), -1, 0) for part in (with_step, walking)]
    errors = [f"{root_mean_square(error).mean():.1f}" for error, _ in parts]
    inside = ["" if model is None else f"{np.mean(np.abs(ratio) < 1.96):.0%}" for _, ratio in parts]
    return errors[0], inside[0], errors[1], inside[1]


def train_end_to_end(robot: Robot, data: Path, model: Model, path: Path) -> None:
    """Train networks whose target is the measured external torque with the settings of a model, and write them."""
    from friction_estimator.learning.training import TrainingSettings, train

    recordings = [
        dataclasses.replace(one, residual=one.external, external=np.zeros_like(one.external))
        for one in (load_signals(path, RobotIdentity.from_robot(robot)) for path in sorted(data.glob("*.npz")))
    ]
    checkpoint = path.with_name(f"{path.name}.checkpoint")
    settings = TrainingSettings(**model.training["settings"])
    train(recordings, robot, settings, checkpoint, lambda epoch: print(epoch, file=sys.stderr)).save(path)
    checkpoint.unlink(missing_ok=True)


def walk_with_steps(robot: Robot, number: int, walks: RandomWalks = WALKS) -> StepWalk:
    """A random walk with steps of the torque.

    An external torque on a joint acts like a motor torque that the sensor does not show.
    """
    simulator, reader = walks.simulator(robot, number), TrueFeetReader(robot)
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
