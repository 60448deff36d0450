"""Which joints of a fleet wear? Bags of robots that walk for some days, to try the verb ``fleet`` with.

    python -m benchmarks.fleet_walks FOLDER [--robots 3] [--days 21] [--duration 20]

One walk a day and robot, at the temperature of the day. A knee of the first robot wears, a hip of the last one gets new
lubricant, and two bags are broken. ``fleet.yaml`` in the folder names the robots. Takes three minutes.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from benchmarks.shared.bag_messages import BagMessageTypes, write_message
from benchmarks.shared.command import command, count, longer_than, make_parser
from friction_estimator.api.simulate import simulated, write_simulation
from friction_estimator.fleet.bag_task import ROBOTS_YAML
from friction_estimator.io.bags.writer import BagWriter
from friction_estimator.io.documents import write_atomically, yaml_text
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.kernels import compiler
from friction_estimator.simulation import (
    TABLE_I,
    FrictionSetting,
    ParametrisedLaw,
    Simulator,
    make_noise,
    make_scenario,
)

FIRST_DAY = datetime(2026, 1, 5, tzinfo=UTC)
WORN = 3
"""Place in the leg (the knee) of the joint of the first robot that wears."""
MAINTAINED = 2
"""Place in the leg (the hip pitch) of the joint of the last robot that gets new lubricant."""

_WEAR = 0.4  # part by which friction grows until the last day
_LUBRICATED = 0.75  # friction after the maintenance over that before
_MEAN_TEMPERATURE, _DAY_SWING, _WARMING = 20.0, 6.0, 0.1  # [degree Celsius], over a day, and each day
_COULOMB_PER_KELVIN, _VISCOUS_PER_KELVIN = -0.003, -0.01
_SPREAD = 0.1  # standard deviation of the friction of equal joints, relative
_DRY, _STRIBECK, _VISCOUS = "gamma_4", "gamma_1", "gamma_6"


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """What a simulated fleet does: every robot walks once a day, at an hour between 6 and 18.

    Attributes
    ----------
    robots, days : how many
    duration : of the longest bag; the shortest has half of it [s]
    seed : of everything random
    noise : sensor noise level
    """

    robots: int
    days: int
    duration: float
    seed: int = 0
    noise: str = "paper_std"

    def start(self, robot: int, day: int) -> datetime:
        """When a robot walks on a day."""
        return FIRST_DAY + timedelta(days=day, hours=float(self._random(robot, day).uniform(6.0, 18.0)))

    def temperature(self, robot: int, day: int) -> float:
        """Of the joints at that time [degree Celsius]: warmest at 15 h, and warmer every day."""
        hours = (self.start(robot, day) - FIRST_DAY).total_seconds() / 3600.0
        swing = _DAY_SWING * math.cos(2.0 * math.pi * (hours - 15.0) / 24.0)
        return _MEAN_TEMPERATURE + swing + _WARMING * hours / 24.0

    def bag_duration(self, robot: int, day: int) -> float:
        """Length of a bag [s]."""
        share = self._random(robot, day, 1).uniform(0.5, 1.0)
        return round(float(self.duration * share), 3)

    def factor(self, robot: int, leg: int, place: int, day: int) -> float:
        """Friction of a leg joint without temperature, over that of the nominal joint."""
        factor = math.exp(_SPREAD * float(self._random(robot, leg, place, 2).normal()))
        if (robot, leg, place) == (0, 0, WORN):
            factor *= 1.0 + _WEAR * day / max(self.days - 1, 1)
        if (robot, leg, place) == (self.robots - 1, 1, MAINTAINED) and 2 * day >= self.days:
            factor *= _LUBRICATED
        return factor

    def friction(self, robot: int, leg: int, place: int, day: int) -> ParametrisedLaw:
        """Friction law of a leg joint on a day."""
        factor, warmth = self.factor(robot, leg, place, day), self.temperature(robot, day) - _MEAN_TEMPERATURE
        dry, viscous = factor * (1.0 + _COULOMB_PER_KELVIN * warmth), factor * (1.0 + _VISCOUS_PER_KELVIN * warmth)
        return TABLE_I[place].scaled({_DRY: dry, _STRIBECK: dry, _VISCOUS: viscous})

    def _random(self, *place: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, *place))


def simulate_fleet(folder: Path, robot: Robot, plan: FleetPlan) -> int:
    """Write the bags of a fleet and their ``fleet.yaml``; return the number of bags.

    The last two bags are damaged: one is cut in half, of one only ``metadata.yaml`` is left.

    Raises
    ------
    BagError
        When a bag exists already or cannot be written.
    """
    compiler.prepare()
    walks = [(day, number) for day in range(plan.days) for number in range(plan.robots)]
    paths = []
    for day, number in walks:
        path = folder / f"unit_{number + 1}" / f"{plan.start(number, day):%Y-%m-%d_%H%M}"
        _write_walk(path, robot, plan, number, day)
        paths.append(path)
    _damage(folder / "unit_1" / "cut_off", paths[0], keep=0.5)
    _damage(folder / "unit_1" / "lost", paths[0], keep=0.0)
    entries = {
        f"unit_{number + 1}": {"robot": str(robot.name), "bags": [f"*/unit_{number + 1}/*"]}
        for number in range(plan.robots)
    }
    write_atomically(folder / ROBOTS_YAML, yaml_text({"robots": entries}))
    return len(walks) + 2


def _write_walk(path: Path, robot: Robot, plan: FleetPlan, number: int, day: int) -> None:
    duration, start_ns = plan.bag_duration(number, day), int(plan.start(number, day).timestamp() * 1e9)
    scenario = make_scenario("walk", duration=duration)
    seed = plan.seed + day * plan.robots + number
    named = Simulator(robot.config, robot.urdf_xml, scenario, make_noise(plan.noise), seed)
    joints = tuple(
        (joint, plan.friction(number, leg, place, day))
        for leg, names in enumerate(named.leg_joint_names)
        for place, joint in enumerate(names)
    )
    walk = replace(scenario, friction=(FrictionSetting(joints=joints),))
    simulator = Simulator(robot.config, robot.urdf_xml, walk, make_noise(plan.noise), seed, start_ns)

    def write_temperature(writer: BagWriter) -> None:
        kind = "sensor_msgs/msg/Temperature"
        message = BagMessageTypes().make(kind, temperature=plan.temperature(number, day))
        write_message(writer, "temperature", start_ns, message)

    source = f"simulated fleet, seed {plan.seed}, robot {number + 1}, day {day + 1}"
    samples = simulated(simulator, duration)
    write_simulation(path, samples, robot, simulator.joint_names, source, more=write_temperature)


def _damage(path: Path, whole: Path, keep: float) -> None:
    """A bag of which only a part of the messages is left, or none."""
    path.mkdir(parents=True, exist_ok=True)
    for file in whole.iterdir():
        content = file.read_bytes()
        if file.suffix == ".yaml":
            (path / file.name).write_bytes(content)
        elif keep > 0.0:
            (path / file.name).write_bytes(content[: int(keep * len(content))])


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("fleet_walks", __doc__)
    parser.add_argument("folder", type=Path, help="folder to write")
    parser.add_argument("--robots", type=count, default=3, help="number of robots")
    parser.add_argument("--days", type=count, default=21, help="number of days")
    parser.add_argument("--duration", type=longer_than(0.0), default=20.0, help="of the longest bag [s]")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    options = parser.parse_args(arguments)
    plan = FleetPlan(options.robots, options.days, options.duration, options.seed)
    bags = simulate_fleet(options.folder, load_robot("suralp"), plan)
    print(f"{options.folder}: {bags} bags, two of them broken, and fleet.yaml")


if __name__ == "__main__":
    sys.exit(main())
