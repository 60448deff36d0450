"""How large are the errors of MOB-Net and of the Kalman observer in the external torque of a walk without pushes?

    python -m benchmarks.mob_net MODEL [--walk 100] [--seconds 40]

Foot wrenches are measured and taken off, so the true external torque is zero, and its root mean square is the error.
Prints a table as Markdown, of the second half of the walk: the Kalman observer starts without knowing the friction.
Then prints the CPU time of the networks for one sample, also with the sizes of Table 1. Takes about six minutes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.shared.command import command, longer_than, make_parser
from benchmarks.shared.pages import header, row
from friction_estimator import compiled
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.robot import load_robot
from friction_estimator.learning.external_torque import MobNetEstimator
from friction_estimator.learning.limbs import LimbModule
from friction_estimator.learning.network import MobNet, Network, load_model
from friction_estimator.learning.walks import RandomWalks
from friction_estimator.metrics import root_mean_square
from friction_estimator.simulation import SimulationSample
from friction_estimator.types import FloatArray


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("mob_net", __doc__)
    parser.add_argument("model", type=Path, help="model of the built-in biped")
    parser.add_argument("--walk", type=int, default=100, help="number of the walk of seed 1000")
    parser.add_argument("--seconds", type=longer_than(1.0), default=40.0, help="length of the walk")
    options = parser.parse_args(arguments)
    robot = load_robot("suralp")
    model = load_model(options.model, robot)
    compiled.prepare()
    walks = RandomWalks(seed=1000, length=options.seconds, exploration=False)
    simulator = walks.simulator(robot, options.walk)
    samples = [simulator.step() for _ in range(round(1000 * options.seconds))]
    kalman = Estimator(robot.config, robot.urdf_xml)
    estimators = {"Kalman observer": kalman, "MOB-Net": MobNetEstimator(robot.config, robot.urdf_xml, model)}
    print(header(("external torque [N m]", *kalman.joint_names, "mean", "within 1.96 sigma")))
    results = {name: _external_torque(estimator, samples) for name, estimator in estimators.items()}
    weights = {name: sigma**-2 for name, (_, sigma) in results.items()}
    total = np.sum(list(weights.values()), axis=0)
    mean = np.sum([weights[name] * torque for name, (torque, _) in results.items()], axis=0) / total
    results["both, weighted by their variances"] = mean, total**-0.5
    for name, (torque, sigma) in results.items():
        error = root_mean_square(torque)
        inside = np.mean(np.abs(torque) < 1.96 * sigma)
        print(row((name, *(f"{value:.2f}" for value in error), f"{error.mean():.2f}", f"{100.0 * inside:.0f} %")))
    print(f"\nCPU time of the networks of this model: {1e3 * _cpu_time(model.networks):.3f} ms a sample")
    print(f"with the sizes of the paper: {1e3 * _cpu_time(_paper_networks()):.3f} ms a sample")


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


def _external_torque(estimator: Estimator, samples: Sequence[SimulationSample]) -> tuple[FloatArray, FloatArray]:
    """Torque and sigma (m, n) of the second half."""
    estimates = [estimate for sample in samples for reading in sample.readings for estimate in estimator.add(reading)]
    half = estimates[len(estimates) // 2 :]
    return np.array([one.external_torque for one in half]), np.array([one.external_torque_sigma for one in half])


if __name__ == "__main__":
    sys.exit(main())
