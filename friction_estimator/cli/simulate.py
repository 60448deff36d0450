"""``simulate -o BAG``: the walking biped, with sensors and ground truth, into a bag."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from friction_estimator import compiled
from friction_estimator.cli.arguments import add_robot_arguments, positive_seconds, random_seed, robot_of
from friction_estimator.cli.progress import progress_bar
from friction_estimator.config import Config
from friction_estimator.io.bags.writer import STORAGES, BagWriter
from friction_estimator.messages import topics
from friction_estimator.messages.description import RunDescription
from friction_estimator.messages.simulated import SensorMessages, TruthMessages
from friction_estimator.simulation import PERIOD_NS, Simulator, make_noise, make_scenario, noise_names, scenario_names

_START_NS = 1_000_000_000  # not zero: many tools take a zero stamp for a missing one


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the bag to write")
    add_robot_arguments(parser)
    parser.add_argument("--scenario", choices=scenario_names(), default="walk", help="what the robot does")
    parser.add_argument("--noise", choices=noise_names(), default="paper_std", help="how good the sensors are")
    parser.add_argument("--duration", type=positive_seconds, default=20.0, help="[s]")
    parser.add_argument(
        "--seed", type=random_seed, default=0, help="of the sensor noise; the same seed gives the same bag"
    )
    parser.add_argument("--storage", choices=STORAGES, default=STORAGES[0], help="file format of the bag")
    parser.add_argument("--overwrite", action="store_true", help="replace an older bag of that name")


def run(arguments: argparse.Namespace) -> None:
    """Simulate and write."""
    robot = robot_of(arguments)
    scenario = make_scenario(arguments.scenario, duration=arguments.duration)
    noise = make_noise(arguments.noise)
    source = f"simulation of {arguments.scenario!r}, sensors {arguments.noise!r}, seed {arguments.seed}"
    description = RunDescription.of(robot.config, robot.urdf_xml, Path(arguments.robot).stem, source)
    with (
        BagWriter(arguments.output, arguments.storage, description.to_custom_data(), arguments.overwrite) as writer,
        progress_bar("simulating") as progress,
    ):
        compiled.prepare()
        simulator = Simulator(robot.config, robot.urdf_xml, scenario, noise, seed=arguments.seed, start_ns=_START_NS)
        count = record(simulator, robot.config, writer, arguments.duration, progress)
    print(f"{arguments.output}: {count * PERIOD_NS * 1e-9:.3f} s, {writer.message_count} messages")


def record(
    simulator: Simulator,
    config: Config,
    writer: BagWriter,
    duration: float,
    progress: Callable[[float, float], None],
) -> int:
    """Write sensors and ground truth of a simulation; return the number of joint samples."""
    sensors, truths = SensorMessages(config, simulator.joint_names), TruthMessages(config, simulator.joint_names)
    steps = round(duration * 1e9 / PERIOD_NS)
    for step in range(steps):
        sample = simulator.step()
        stamp = sample.joints.stamp_ns
        joints = sensors.joint_state(sample.joints)
        writer.write_raw(config.output.joint_states_topic, topics.JOINT_STATE, stamp, joints)
        writer.write_raw(config.imu.topic, topics.IMU, stamp, sensors.imu(sample.imu))
        for foot, wrench in zip(config.feet, sample.wrenches, strict=True):
            writer.write_raw(foot.wrench_topic, topics.WRENCH, stamp, sensors.wrench(wrench))
        for topic, message in truths.build(sample.truth):
            writer.write_raw(topic.name, topic.type, stamp, message)
        if step % 100 == 0:
            progress(step, steps)
    return steps
