"""Does the guard notice motions, loads and frictions from which the networks of MOB-Net have not learned?

    python -m benchmarks.unknown_motions MODEL [--seconds 9]

The model has learned from random walks (`benchmarks.mob_net_walks`). Nothing touches the robot but the ground, so the
external torque is the error. Columns, for each case: root mean square error of the joints and coverage of
sigma while all inputs are in the range of the training data, the part of such samples, and when the guard first found
the errors of a leg beyond sigma. Errors count from one second on. Fills a table of docs/results/mob_net.md. Takes four
minutes.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.shared.command import command, command_line, longer_than, make_parser
from benchmarks.shared.pages import DOCS, add_page, table
from benchmarks.shared.random_walks import ALL_FRICTION, LEG_EXTENSION, NOMINAL_MASS, RandomWalks
from benchmarks.shared.wrong_bodies import scaled_urdf
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.kernels import compiler
from friction_estimator.learning.external_torque import MobNetEstimate, MobNetEstimator
from friction_estimator.learning.network import Model, load_model
from friction_estimator.metrics import root_mean_square
from friction_estimator.simulation import (
    TABLE_I,
    FrictionSetting,
    Gait,
    Ground,
    Scenario,
    Simulator,
    make_noise,
)

PAGE = DOCS / "results" / "mob_net.md"
_HEADING = ("", "joints, mean [N m]", "within 1.96 sigma", "inputs in range", "noticed after [s]")
WALK = 105
"""Number of the walk of seed 1000."""
START = 1.0
"""Time from which errors count [s]."""
PERIOD = 1e-3
STILL = {"walks": False, "leg_extension": LEG_EXTENSION}


@dataclasses.dataclass(frozen=True)
class Case:
    """What differs from a walk of the training.

    Attributes
    ----------
    gait, ground : None: those of the walk
    mass, friction, effort : factors of all masses, of the friction torques, and of the motor torques that are measured
    noise : of the sensors
    """

    gait: Gait | None = None
    ground: Ground | None = None
    mass: float = 1.0
    friction: float = 1.0
    effort: float = 1.0
    noise: str = "paper_std"

    def scenario(self, scenario: Scenario) -> Scenario:
        """The walk with these differences."""
        factors = {name: self.friction for name in ("coulomb", "static", "viscous", "load_quadratic")}
        leg = (ALL_FRICTION.scaled(factors),) * len(TABLE_I)
        return dataclasses.replace(
            scenario,
            gait=self.gait or scenario.gait,
            ground=self.ground or scenario.ground,
            friction=(FrictionSetting(leg=leg, sticks=True),),
        )


CASES = {
    "a walk like those of the training": Case(),
    "other gait and flat ground": Case(Gait(), Ground()),
    "slope of 4 degrees": Case(Gait(), Ground(slope=math.radians(4.0))),
    "all masses a tenth larger": Case(mass=1.1),
    "all masses a quarter larger": Case(mass=1.25),
    "standing": Case(Gait(**STILL)),
    "squatting": Case(Gait(**STILL, squat_depth=0.18)),
    "half of the friction": Case(friction=0.5),
    "one and a half of the friction": Case(friction=1.5),
    "IMU tilted by 3 degrees": Case(noise="tilted_imu"),
    "motor torques shown a fifth too small": Case(effort=0.8),
}


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("unknown_motions", __doc__)
    parser.add_argument("model", type=Path, help="model of the built-in biped")
    parser.add_argument("--seconds", type=longer_than(START + 1.0), default=9.0, help="length of each case")
    add_page(parser, PAGE, "command", "unknown motions")
    options = parser.parse_args(arguments)
    robot = load_robot("suralp")
    model = load_model(options.model, robot)
    compiler.prepare()
    rows = [(name, *result(robot, model, case, options.seconds)) for name, case in CASES.items()]
    options.output.fill("command", [f"`{command_line('unknown_motions', arguments)}`"])
    options.output.fill("unknown motions", table(_HEADING, rows))


def result(robot: Robot, model: Model, case: Case, seconds: float) -> tuple[str, str, str, str]:
    """The figures of one case."""
    walks = RandomWalks(seed=1000, length=seconds, exploration=False)
    urdf_xml = scaled_urdf(robot.urdf_xml, case.mass / NOMINAL_MASS)
    scenario = case.scenario(walks.scenario(robot, WALK))
    simulator = Simulator(robot.config, urdf_xml, scenario, make_noise(case.noise), 1)
    config = dataclasses.replace(robot.config, stages="base_state")  # the friction is not needed
    estimator = MobNetEstimator(config, robot.urdf_xml, model)
    errors, sigmas, noticed, count = list[np.ndarray](), list[np.ndarray](), math.nan, 0
    for _ in range(round(seconds / PERIOD)):
        sample = simulator.step()
        joints = dataclasses.replace(sample.joints, effort=case.effort * sample.joints.effort)
        for reading in dataclasses.replace(sample, joints=joints).readings:
            for estimate in estimator.add(reading):
                count += simulator.time >= START
                if isinstance(estimate, MobNetEstimate) and simulator.time >= START:
                    whole = estimate.whole_body
                    errors.append((whole.residual - whole.uncertainty)[6:])
                    sigmas.append(whole.sigma[6:])
                    if math.isnan(noticed) and np.isnan(whole.external[6:]).any():
                        noticed = simulator.time
    error, sigma = np.array(errors), np.array(sigmas)
    inside = np.mean(np.abs(error) < 1.96 * sigma)
    return (
        f"{root_mean_square(error).mean():.1f}",
        f"{100.0 * inside:.0f} %",
        f"{100.0 * len(errors) / count:.0f} %",
        "" if math.isnan(noticed) else f"{noticed:.1f}",
    )


if __name__ == "__main__":
    sys.exit(main())
