"""Where two motors share an ankle, what does it bring to learn friction motor by motor instead of joint by joint?

    python -m benchmarks.coupled_ankles [--duration 8] [--seed 1]

Prints the table of docs/results/kalman.md, "Joints that share motors": RMS errors over the second half of a simulated
walk with two motors behind each ankle, with sensors of the level ``paper``. The friction of the ankles is 1.11 N m.
Takes two minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.shared.command import command, longer_than, make_parser
from benchmarks.shared.estimates import drive
from benchmarks.shared.pages import header, row
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.smoothing import SmoothedEstimator
from friction_estimator.io.robot import load_robot
from friction_estimator.simulation import (
    TABLE_I,
    FrictionSetting,
    ParametrisedLaw,
    SimulationSample,
    Simulator,
    make_noise,
    make_scenario,
)
from friction_estimator.types import FloatArray, FrictionEstimate

COUPLING = {
    "robot.coupling.joints": [f"{side}_ankle_{axis}" for side in "lr" for axis in ("pitch", "roll")],
    "robot.coupling.motors": [f"{side}_ankle_{place}" for side in "lr" for place in ("inner", "outer")],
    "robot.coupling.matrix": np.kron(np.eye(2), [[0.5, 0.5], [0.5, -0.5]]).ravel().tolist(),
}
MOTOR = ParametrisedLaw("makkar", (0.4, 100.0, 10.0, 0.3, 100.0, 0.9))
METHODS = ("kalman", "kalman, smoothed", "fbse")
_LAG = 1.0


def walk(duration: float, seed: int) -> list[SimulationSample]:
    """Sensor readings and the truth."""
    robot = load_robot("suralp", COUPLING)
    friction = (FrictionSetting(leg=(*TABLE_I[:4], MOTOR, MOTOR)),)
    scenario = replace(make_scenario("walk", duration), friction=friction)
    simulator = Simulator(robot.config, robot.urdf_xml, scenario, make_noise("paper"), seed)
    return [simulator.step() for _ in range(round(1000.0 * duration))]


def estimates_of(
    method: str, parameters: dict[str, object], samples: Sequence[SimulationSample]
) -> list[FrictionEstimate]:
    """All estimates of one method."""
    observer, _, smoothed = method.partition(", ")
    robot = load_robot("suralp", {"observer": observer, **parameters})
    estimator = (
        SmoothedEstimator(robot.config, robot.urdf_xml, _LAG) if smoothed else Estimator(robot.config, robot.urdf_xml)
    )
    return drive(estimator, samples)


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("coupled_ankles", __doc__)
    parser.add_argument("--duration", type=longer_than(1.0), default=8.0, help="of the walk [s]")
    parser.add_argument("--seed", type=int, default=1, help="of the sensor noise")
    options = parser.parse_args(arguments)
    samples = walk(options.duration, options.seed)
    late, ankles = slice(len(samples) // 2, None), [4, 5, 10, 11]
    others = [joint for joint in range(12) if joint not in ankles]
    truth = np.array([sample.truth.friction for sample in samples])

    def rms(error: FloatArray, joints: list[int]) -> float:
        return float(np.sqrt((error[late][:, joints] ** 2).mean()))

    print(f"friction of the ankles: {rms(truth, ankles):.2f} N m RMS\n")
    heading = "observer", "learned", "ankles [N m]", "law alone [N m]", "error^2 / sigma^2", "other joints [N m]"
    print(header(heading))
    for method in METHODS:
        for learned, parameters in (("joint by joint", {}), ("motor by motor", COUPLING)):
            found = estimates_of(method, parameters, samples)
            friction, sigma, model = (
                np.array([getattr(one, name) for one in found]) for name in ("friction", "sigma", "model")
            )
            error = friction - truth
            errors = f"{rms(error, ankles):.3f}", f"{rms(model - truth, ankles):.3f}"
            consistency = f"{rms(error / sigma, ankles) ** 2:.2f}"
            print(row((method, learned, *errors, consistency, f"{rms(error, others):.3f}")), flush=True)


if __name__ == "__main__":
    sys.exit(main())
