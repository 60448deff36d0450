"""What can MOB-Net learn from without a robot? Random walks of the simulated biped (Lim et al. 2024, section 4.3).

    python -m benchmarks.mob_net_walks FOLDER [--duration 360] [--robot suralp] [--seed 0] [--no-exploration]

Each walk of at most 20 s has its own gait, and one in which the robot falls is lost as a whole. An interrupted run is
continued by the same command: walks that are there stay. ``friction_estimator train FOLDER`` reads them. An hour of
walks takes six minutes.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.shared.command import add_processes, command, longer_than, make_parser
from benchmarks.shared.random_walks import UNCERTAINTIES, RandomWalks, write_walks
from friction_estimator.io.robot import load_robot
from friction_estimator.simulation import noise_names

LONGEST = 20.0


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("mob_net_walks", __doc__)
    parser.add_argument("folder", type=Path, help="folder of the files")
    parser.add_argument("--robot", default="suralp", help="name of a robot in config/robots, or the path of its YAML")
    parser.add_argument("--duration", type=longer_than(0.0), default=360.0, help="of all walks together [s]")
    parser.add_argument("--seed", type=int, default=0, help="of gaits, torques and noise")
    parser.add_argument("--noise", choices=noise_names(), default="paper_std", help="sensor noise level")
    parser.add_argument("--uncertainty", choices=UNCERTAINTIES, default="all", help="errors of sensors and model")
    parser.add_argument("--no-exploration", dest="exploration", action="store_false", help="no random torques")
    add_processes(parser)
    options = parser.parse_args(arguments)
    length = min(options.duration, LONGEST)
    walks = RandomWalks(options.uncertainty, options.noise, options.seed, length, options.exploration)
    number = math.ceil(options.duration / length - 1e-9)
    for path, reason in write_walks(options.folder, load_robot(options.robot), walks, number, options.processes):
        print(f"{path} is left out: {reason}" if reason else path)


if __name__ == "__main__":
    sys.exit(main())
