"""How well can an external torque be known where friction sticks? Oracles with the friction model, and MOB-Net.

    python -m benchmarks.stiction_bound MODEL... [--walks 2] [-o docs/results/mob_net.md]

The friction of the simulated walks is set-valued: a joint at rest is held by any friction up to that of eq. 23 and
Table 4 of Lim et al. 2024. The oracles have exactly this model, true masses, and measured velocities and torques. What
they lack is the friction of a joint at rest: the first one takes it for zero, the second one for a linear function of
the inputs that MOB-Net has for the limb, fitted at rest in as many other walks, within the model's limits. Prints, as
Markdown, root mean square errors behind the low-pass of the residual, and those of MOB-Net in the same walks. Takes a
minute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

from benchmarks.shared.command import command, count, make_parser
from benchmarks.shared.pages import DOCS, add_page, header, row
from benchmarks.shared.random_walks import ALL_FRICTION, RandomWalks, TrueFeetReader
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.kernels import compiler
from friction_estimator.laws.published import StribeckLoad
from friction_estimator.learning.network import Model, limb_modules, load_model
from friction_estimator.learning.signals import GAIN
from friction_estimator.learning.training_data import SignalRecording, predicted
from friction_estimator.metrics import root_mean_square
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import BoolArray, FloatArray, IntArray

AT_REST = 0.01
"""A joint that is slower rests: five standard deviations of the velocity sensors [rad/s]."""
PERIOD = 1e-3
FOLLOWS = -np.expm1(-GAIN * PERIOD)
"""Part of a change that the low-pass of the residual shows after one sample."""
PLACE = "bound of sticking friction"


@dataclass(frozen=True, slots=True)
class Walk:
    """Signals of a walk, and its true friction (m, n) [N m]."""

    recording: SignalRecording
    friction: FloatArray

    @property
    def law(self) -> FloatArray:
        """Friction of the model (m, n), at rest the largest one."""
        n = self.friction.shape[1]
        velocity, effort = (self.recording.inputs[:, k * n : (k + 1) * n].astype(float) for k in (1, 2))
        parameters = np.tile(ALL_FRICTION.parameters, (n, 1))
        pairs = zip(velocity, effort, strict=True)
        return np.array([StribeckLoad().torque(parameters, *pair) for pair in pairs])

    @property
    def rests(self) -> BoolArray:
        """Whether a joint (m, n) rests."""
        n = self.friction.shape[1]
        return np.abs(self.recording.inputs[:, n : 2 * n]) < AT_REST


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("stiction_bound", __doc__)
    parser.add_argument("models", type=Path, nargs="+", help="models of the built-in biped")
    parser.add_argument("--walks", type=count, default=2, help="walks of 20 s, and as many for the fit")
    add_page(parser, DOCS / "results" / "mob_net.md", PLACE, optional=True)
    options = parser.parse_args(arguments)
    robot = load_robot("suralp")
    models = [load_model(path, robot) for path in options.models]
    compiler.prepare()
    fitted, walks = (
        [recorded(robot, RandomWalks(seed=seed, exploration=False), 100 + number) for number in range(options.walks)]
        for seed in (500, 501)
    )
    names = RobotModel(robot.config, robot.urdf_xml).joint_names
    at_rest = fit_at_rest(robot, fitted)
    errors = {
        "oracle, zero at rest": [np.where(one.rests, 0.0, one.law) - one.friction for one in walks],
        "oracle, linear at rest": [np.where(one.rests, at_rest(one), one.law) - one.friction for one in walks],
    }
    low_pass = [FOLLOWS], [1.0, FOLLOWS - 1.0]
    rows = {name: _rms([lfilter(*low_pass, one, axis=0) for one in parts]) for name, parts in errors.items()}
    for number, model in enumerate(models):
        rows[f"MOB-Net, training {number}"] = _rms([error_of(model, one.recording) for one in walks])[-len(names) :]
    rows["at rest [% of the time]"] = 100.0 * np.concatenate([one.rests for one in walks]).mean(axis=0)
    lines = [header(("", *names, "mean"))]
    lines += [row((name, *(f"{value:.1f}" for value in (*of_row, of_row.mean())))) for name, of_row in rows.items()]
    print(*lines, sep="\n")
    if options.output is not None:
        options.output.fill(PLACE, lines)


def recorded(robot: Robot, walks: RandomWalks, number: int) -> Walk:
    """Simulate a walk."""
    simulator, reader = walks.simulator(robot, number), TrueFeetReader(robot)
    friction = []
    for _ in range(round(walks.length / PERIOD)):
        sample = simulator.step()
        friction.append(sample.truth.friction)
        reader.expect(sample.truth)
        for reading in sample.readings:
            reader.add(reading)
    reader.flush()
    recording = reader.recording()
    return Walk(recording, np.array(friction)[-len(recording) :])


def fit_at_rest(robot: Robot, walks: Sequence[Walk]) -> Callable[[Walk], FloatArray]:
    """Friction (m, n) of a walk as a linear function of the inputs of each limb, fitted to joints at rest."""
    modules = [one for one in limb_modules(RobotModel(robot.config, robot.urdf_xml)) if not one.is_base]
    base = 6
    of_joint = {int(joint) - base: one.inputs for one in modules for joint in one.outputs}
    weights = {}
    for joint, inputs in of_joint.items():
        columns = np.concatenate([_with_constant(one, inputs)[one.rests[:, joint]] for one in walks])
        target = np.concatenate([one.friction[one.rests[:, joint], joint] for one in walks])
        weights[joint] = np.linalg.lstsq(columns, target, rcond=None)[0]

    def at_rest(walk: Walk) -> FloatArray:
        friction = [_with_constant(walk, of_joint[joint]) @ weights[joint] for joint in sorted(of_joint)]
        return np.clip(np.stack(friction, axis=1), -np.abs(walk.law), np.abs(walk.law))

    return at_rest


def error_of(model: Model, recording: SignalRecording) -> FloatArray:
    """Error (m, nv) of the external torque of MOB-Net."""
    true = np.asarray(recording.true_external, dtype=float)
    return np.asarray(recording.residual - predicted(model, recording)[0] - true)


def _with_constant(walk: Walk, inputs: IntArray) -> FloatArray:
    columns = walk.recording.inputs[:, inputs].astype(float)
    return np.hstack((columns, np.ones((len(columns), 1))))


def _rms(parts: Sequence[FloatArray]) -> FloatArray:
    return root_mean_square(np.concatenate(parts))


if __name__ == "__main__":
    sys.exit(main())
