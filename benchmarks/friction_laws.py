"""How much of the true friction can each linear law represent at best?

    python -m benchmarks.friction_laws [--duration 10] [--velocity-noise 0.0005]

Least squares of each law over the true friction of simulated walks with exact signals, joint by joint, nonnegative
parameters kept so. Prints the remaining root mean square error [N m] per joint, both legs together, below which no
identification of that law gets. Takes two minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from benchmarks.shared.command import command, longer_than, make_parser
from benchmarks.shared.pages import header, row, row_of
from benchmarks.shared.walks import PERIOD
from friction_estimator.io.robot import load_robot
from friction_estimator.laws import LinearFrictionLaw, linear_law_names, make_linear_law
from friction_estimator.simulation import Simulator, make_noise, make_scenario
from friction_estimator.types import FloatArray

EVERY = 5
START = 1.0
JOINTS = 6


@dataclass(frozen=True)
class Walk:
    """Exact joint signals (m, n) of one walk."""

    velocity: FloatArray
    load: FloatArray
    friction: FloatArray


def walk(scenario: str, duration: float, velocity_noise: float) -> Walk:
    """Walk with white noise on the velocities of the laws [rad/s]; the friction is the true one."""
    robot = load_robot("suralp")
    simulator = Simulator(robot.config, robot.urdf_xml, make_scenario(scenario, duration), make_noise("clean"), seed=0)
    samples = [simulator.step() for _ in range(round(duration / PERIOD))][round(START / PERIOD) :: EVERY]
    velocity = np.array([sample.joints.velocity for sample in samples])
    velocity += velocity_noise * np.random.default_rng(0).normal(size=velocity.shape)
    load = np.array([sample.joints.effort for sample in samples])
    return Walk(velocity, load, np.array([sample.truth.friction for sample in samples]))


def unexplained(law: LinearFrictionLaw, data: Walk) -> FloatArray:
    """Root mean square (n,) [N m] of the error of the best parameters of the law."""
    lower = np.where(law.nonnegative, 0.0, -np.inf)
    left = []
    for velocity, load, friction in zip(data.velocity.T, data.load.T, data.friction.T, strict=True):
        phi = law.regressor(velocity, load)
        phi /= np.abs(phi).max(axis=0) + 1e-12
        left.append(phi @ lsq_linear(phi, friction, bounds=(lower, np.inf)).x - friction)
    return np.sqrt(np.square(left).mean(axis=1))


def cells(label: str, per_joint: FloatArray) -> tuple[str, str]:
    """One row of the table, both legs together."""
    values = np.sqrt(np.square(per_joint).reshape(2, JOINTS).mean(axis=0))
    return label, row_of(values)


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("friction_laws", __doc__)
    parser.add_argument("--duration", type=longer_than(START), default=10.0, help="of each walk [s]")
    parser.add_argument("--velocity-noise", type=float, default=5e-4, help="standard deviation [rad/s]")
    options = parser.parse_args(arguments)
    for scenario in ("walk", "friction_load", "friction_stiction", "friction_stribeck"):
        data = walk(scenario, options.duration, options.velocity_noise)
        print(header((scenario, "yaw roll pitch knee ankle-pitch ankle-roll")))
        print(row(cells("true friction", np.sqrt(np.square(data.friction).mean(axis=0)))))
        for name in linear_law_names():
            print(row(cells(f"`{name}`", unexplained(make_linear_law(name), data))), flush=True)
        print()


if __name__ == "__main__":
    sys.exit(main())
