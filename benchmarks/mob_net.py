"""How large are the errors of the Kalman observer, of MOB-Net and of both together in the external torque?

    python -m benchmarks.mob_net [MODEL] [--robot suralp] [--walks 3] [--seconds 40] [--seed 1000]

Foot wrenches are measured, so the external torque is zero in a walk that nothing disturbs. In other walks the swinging
legs are hit (Lim et al. 2024, section 5.3) every 3 s; the truth is the torque of these forces behind the low-pass of
the momentum observer. No walk is among those of the training. The Kalman observer identifies the friction in a walk
before; without MODEL it is alone. Prints root mean square errors as Markdown: of both kinds of walks, of the time from
the begin of each push to 0.1 s after its end, and of these times for pushes above the feet, in the leg that is hit: the
friction stage takes off what the foot sensors measure. The last figure but one is the largest ratio, over the joints,
of the error to that of observer or MOB-Net, whichever is better in the joint. Then prints the CPU time of the networks
for one sample, also with the sizes of Table 1. Takes ten minutes.
"""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

from benchmarks.shared.command import command, count, longer_than, make_parser
from benchmarks.shared.pages import header, row
from benchmarks.shared.random_walks import RandomWalks
from friction_estimator.errors import SimulationError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.kernels import compiler
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.learning.external_torque import MobNetEstimate, MobNetEstimator
from friction_estimator.learning.network import LimbModule, MobNet, Model, Network, load_model
from friction_estimator.learning.signals import GAIN
from friction_estimator.metrics import root_mean_square
from friction_estimator.simulation import Scenario
from friction_estimator.simulation.scenario import collisions
from friction_estimator.types import BoolArray, FloatArray

METHODS = ("Kalman observer", "MOB-Net", "fused")
FIRST_WALK = 100
"""Number of the walk in which the friction is identified; the others follow."""
START = 2.0
"""Time from which errors count: then all signals are known [s]."""
FALL = 1.0
"""Time before a fall that does not count [s]."""
AFTER = 0.1
"""Time after a push that still belongs to it [s]."""
PERIOD = 1e-3


class PushedWalks(RandomWalks):
    """Random walks in which the swinging legs are hit."""

    def scenario(self, robot: Robot, number: int) -> Scenario:
        """Scenario of a walk, with its pushes."""
        scenario = super().scenario(robot, number)
        return dataclasses.replace(scenario, pushes=collisions(scenario.gait, scenario.duration, number, pause=1.5))


@dataclasses.dataclass(frozen=True)
class WalkErrors:
    """Errors of one walk.

    Attributes
    ----------
    error, sigma : (3, m, n) of each of :data:`METHODS`, (1, m, n) without networks [N m]
    pushed : (m,) samples of the pushes
    hit : (m, n) joints of a leg that is hit above the foot
    identified : parameters of the Kalman observer at the end
    """

    error: FloatArray
    sigma: FloatArray
    pushed: BoolArray
    hit: BoolArray
    identified: IdentifiedParameters


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("mob_net", __doc__)
    parser.add_argument("model", type=Path, nargs="?", help="model of the robot; none: the Kalman observer alone")
    parser.add_argument("--robot", default="suralp", help="name in config/robots or path of a YAML")
    parser.add_argument("--walks", type=count, default=3, help="number of walks of each kind")
    parser.add_argument("--seconds", type=longer_than(START + 1.0), default=40.0, help="length of a walk")
    parser.add_argument("--seed", type=int, default=1000, help="of gaits, pushes and noise")
    options = parser.parse_args(arguments)
    robot = load_robot(options.robot)
    model = load_model(options.model, robot) if options.model else None
    compiler.prepare()
    same = {"seed": options.seed, "length": options.seconds, "exploration": False}
    kinds = {kind: kind(**same) for kind in (RandomWalks, PushedWalks)}
    start = walk_errors(robot, model, kinds[RandomWalks], FIRST_WALK, None).identified
    walked, pushed = (
        [walk_errors(robot, model, walks, FIRST_WALK + 1 + number, start) for number in range(options.walks)]
        for walks in kinds.values()
    )
    names = Estimator(robot.config, robot.urdf_xml).joint_names
    columns = ("", "", *names, "mean of the joints", "largest ratio to the better one", "within 1.96 sigma")
    print(header(columns))
    report("walks", walked)
    report("walks with pushes", pushed)
    report("pushes", [dataclasses.replace(w, error=w.error[:, w.pushed], sigma=w.sigma[:, w.pushed]) for w in pushed])
    for method, *ratios in zip(METHODS, *(np.abs(walk.error / walk.sigma) for walk in pushed), strict=False):
        hit = np.concatenate([ratio[walk.hit] for ratio, walk in zip(ratios, pushed, strict=True)])
        inside = 100.0 * np.mean(hit < 1.96)
        print(f"\n{method}: {inside:.0f} % within 1.96 sigma during pushes above the foot, in the leg that is hit")
    if model is None:
        return
    print(f"\nCPU time of the networks of this model: {1e3 * _cpu_time(model.networks):.3f} ms per sample")
    print(f"with the sizes of the paper: {1e3 * _cpu_time(_paper_networks()):.3f} ms per sample")


def report(kind: str, walks: Sequence[WalkErrors]) -> None:
    """Print the rows of one kind of walks."""
    error, sigma = (np.concatenate([getattr(walk, name) for walk in walks], axis=1) for name in ("error", "sigma"))
    weights, methods = sigma[:2] ** -2, METHODS[: len(error)]
    if len(error) > 1:
        by_sigma = np.sum(weights * error[:2], axis=0) / weights.sum(axis=0)
        error = np.concatenate((error, by_sigma[None]))
        sigma = np.concatenate((sigma, weights.sum(axis=0)[None] ** -0.5))
        methods = (*METHODS, "both, weighted by sigma alone")
    rms = np.array([root_mean_square(one) for one in error])
    for number, method in enumerate(methods):
        ratio = np.max(rms[number] / rms[:2].min(axis=0))
        inside = 100.0 * np.mean(np.abs(error[number]) < 1.96 * sigma[number])
        texts = (*(f"{value:.2f}" for value in (*rms[number], rms[number].mean(), ratio)), f"{inside:.0f} %")
        print(row((kind, method, *texts)))


def walk_errors(
    robot: Robot, model: Model | None, walks: RandomWalks, number: int, start: IdentifiedParameters | None
) -> WalkErrors:
    """Simulate a walk and estimate its external torque."""
    simulator = walks.simulator(robot, number)
    kalman = Estimator(robot.config, robot.urdf_xml)
    fused = MobNetEstimator(robot.config, robot.urdf_xml, model, fused=True) if model else None
    for estimator in (kalman, fused):
        if start is not None and estimator is not None:
            estimator.restore(start)
    stamps, truth, estimates = list[int](), list[FloatArray](), dict[int, list[FloatArray]]()
    for _ in range(round(walks.length / PERIOD)):
        try:
            sample = simulator.step()
        except SimulationError as fall:
            print(f"walk {number} ends: {fall}", file=sys.stderr)
            stamps = stamps[: -round(FALL / PERIOD)]
            break
        stamps.append(sample.truth.stamp_ns)
        truth.append(sample.truth.external_torque)
        for reading in sample.readings:
            for one in kalman.add(reading):
                estimates[one.stamp_ns] = [one.external_torque, one.external_torque_sigma]
            for one in fused.add(reading) if fused else ():
                values = estimates[one.stamp_ns]
                whole = one.whole_body if isinstance(one, MobNetEstimate) else None
                torques = values if whole is None else (whole.residual - whole.uncertainty, whole.sigma)
                values += [torque[-one.position.size :] for torque in torques]
                values += [one.external_torque, one.external_torque_sigma]
    kept = [k for k, stamp in enumerate(stamps) if k * PERIOD >= START and stamp in estimates]
    gain = -math.expm1(-GAIN * PERIOD)
    true = lfilter([0.0, gain], [1.0, gain - 1.0], np.array(truth), axis=0)[kept]
    torques = np.array([estimates[stamps[k]] for k in kept]).swapaxes(0, 1)
    time_of = PERIOD * np.array(kept)
    pushed, hit = np.zeros(time_of.size, dtype=bool), np.zeros(true.shape, dtype=bool)
    for push in walks.scenario(robot, number).pushes:
        now = (time_of >= push.start) & (time_of < push.start + push.duration + AFTER)
        pushed |= now
        side, part = push.target.split("_")
        of_leg = [joint.startswith(f"{side[0]}_") for joint in kalman.joint_names]
        hit |= np.outer(now, np.array(of_leg) & (part != "foot"))
    return WalkErrors(torques[::2] - true, torques[1::2], pushed, hit, kalman.identified)


def _paper_networks() -> list[Network]:
    """Six modules of random weights with the sizes of Table 1: inputs, hidden units, outputs."""
    rng, networks, row = np.random.default_rng(0), list[Network](), 0
    for i, s, o in ((30, 150, 6), (30, 150, 6), (34, 200, 8), (34, 200, 8), (50, 200, 3), (74, 200, 6)):
        shapes = {"w_input": (i, 3 * s), "b_input": (3 * s,), "w_hidden": (s, 3 * s), "b_hidden": (3 * s,)}
        shapes |= {"w_output": (s, 2 * o), "b_output": (2 * o,), "input_mean": (i,), "output_mean": (o,)}
        tensors = {name: 0.1 * rng.standard_normal(shape) for name, shape in shapes.items()}
        tensors |= {"input_std": np.ones(i), "output_std": np.ones(o)}
        networks.append(Network(LimbModule(str(row), row + np.arange(o), np.arange(i)), tensors))
        row += o
    return networks


def _cpu_time(networks: Sequence[Network], samples: int = 1000) -> float:
    """Of one sample [s]."""
    width = 1 + max(int(network.module.inputs.max()) for network in networks)
    network = MobNet(networks, sum(one.module.outputs.size for one in networks))
    inputs = np.random.default_rng(1).standard_normal((samples, width))
    start = time.process_time()
    for x in inputs:
        network.step(x)
    return (time.process_time() - start) / samples


if __name__ == "__main__":
    sys.exit(main())
