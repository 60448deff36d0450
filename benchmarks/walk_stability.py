"""Does the simulated biped stay up, and how fast is the simulation? One row a scenario.

    python benchmarks/walk_stability.py [--duration 60] [--scenario walk push ...] [--noise realistic]

``cost`` is the computing time per simulated second. Friction is the root mean square of the true friction torque
[N m] from hip yaw to ankle roll over both legs, in stance and in swing.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from friction_estimator.core.exceptions import SimulationError
from friction_estimator.files.robot import load_robot
from friction_estimator.simulation import Simulator, make_noise, make_scenario, noise_names, scenario_names


def survey(name: str, duration: float, noise: str) -> bool:
    robot = load_robot("suralp")
    simulator = Simulator(robot.config, robot.urdf_xml, make_scenario(name, duration), make_noise(noise), seed=0)
    feet = len(robot.config.feet)
    squares = np.zeros((2, len(simulator.joint_names) // feet))
    counts = np.zeros(2)
    tilt, verdict, start = 0.0, "stands", time.perf_counter()
    try:
        while simulator.time < duration:
            truth = simulator.step().truth
            tilt = max(tilt, float(np.arccos(min(1.0, truth.rotation_base_to_world[2, 2]))))
            for leg, contact in zip(truth.friction.reshape(feet, -1), truth.contact, strict=True):
                squares[int(not contact)] += leg**2
                counts[int(not contact)] += 1
    except SimulationError as error:
        verdict = str(error)
    cost = (time.perf_counter() - start) / max(simulator.time, 1e-3)
    rms = np.sqrt(squares / np.maximum(counts, 1)[:, None])
    figures = "  ".join(" ".join(f"{value:4.2f}" for value in row) for row in rms)
    print(
        f"{name:16s} {simulator.time:6.1f} s  cost {cost:5.3f}  tilt {np.degrees(tilt):5.2f} deg  {figures}  {verdict}"
    )
    return verdict == "stands"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--duration", type=float, default=60.0, help="simulated time of each run [s]")
    parser.add_argument("--scenario", nargs="+", default=scenario_names(), choices=scenario_names())
    parser.add_argument("--noise", default="clean", choices=noise_names())
    arguments = parser.parse_args()
    return 0 if all([survey(name, arguments.duration, arguments.noise) for name in arguments.scenario]) else 1


if __name__ == "__main__":
    sys.exit(main())
