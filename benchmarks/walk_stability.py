"""Does the simulated biped stay up in every scenario, and how fast is the simulation?

    python -m benchmarks.walk_stability [--robot suralp] [--duration 60] [--scenario walk push ...] [--noise realistic]

Prints a line a scenario. ``cost`` is the processor time per simulated second. Friction is the root mean square of the
true friction torque [N m] from hip yaw to ankle roll over both legs, in stance and in swing. Takes ten minutes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import numpy as np

from benchmarks.shared.command import command, longer_than, make_parser
from friction_estimator.errors import SimulationError
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.simulation import Simulator, make_noise, make_scenario, noise_names, scenario_names


def survey(robot: Robot, name: str, duration: float, noise: str) -> bool:
    simulator = Simulator(robot.config, robot.urdf_xml, make_scenario(name, duration), make_noise(noise), seed=0)
    legs = np.array([[simulator.joint_names.index(joint) for joint in leg] for leg in simulator.leg_joint_names])
    squares = np.zeros((2, 6))
    counts = np.zeros(2)
    tilt, verdict, start = 0.0, "stands", time.process_time()
    try:
        while simulator.time < duration:
            truth = simulator.step().truth
            tilt = max(tilt, float(np.arccos(min(1.0, truth.rotation_base_to_world[2, 2]))))
            for leg, contact in zip(legs, truth.contact, strict=True):
                squares[int(not contact)] += truth.friction[leg] ** 2
                counts[int(not contact)] += 1
    except SimulationError as error:
        verdict = str(error)
    cost = (time.process_time() - start) / max(simulator.time, 1e-3)
    rms = np.sqrt(squares / np.maximum(counts, 1)[:, None])
    figures = "  ".join(" ".join(f"{value:4.2f}" for value in row) for row in rms)
    cost_text = f"cost {cost:5.3f}  tilt {np.degrees(tilt):5.2f} deg"
    print(f"{name:17s} {simulator.time:6.1f} s  {cost_text}  {figures}  {verdict}", flush=True)
    return verdict == "stands"


@command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser("walk_stability", __doc__)
    parser.add_argument("--robot", default="suralp", help="name in config/robots or path of a YAML")
    parser.add_argument("--duration", type=longer_than(0.0), default=60.0, help="simulated time of each run [s]")
    parser.add_argument("--scenario", nargs="+", default=scenario_names(), choices=scenario_names())
    parser.add_argument("--noise", default="clean", choices=noise_names())
    options = parser.parse_args(arguments)
    robot = load_robot(options.robot)
    return 0 if all([survey(robot, name, options.duration, options.noise) for name in options.scenario]) else 1


if __name__ == "__main__":
    sys.exit(main())
