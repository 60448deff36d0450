"""A simulated walk that is made once: samples, frames and bag of the same motion."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from friction_estimator.estimation.health import Health
from friction_estimator.estimation.synchronizer import Synchronizer
from friction_estimator.io.bags.writer import BagWriter
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.messages import topics
from friction_estimator.messages.simulated import SensorMessages
from friction_estimator.simulation import SimulationSample, Simulator, make_noise, make_scenario
from friction_estimator.types import SensorFrame

NOISE = "paper_std"
_START_NS = 1_000_000_000
_SPARE = 1.0
"""Scenario time after the last sample, so that the walk does not stop before it [s]."""


@dataclass(frozen=True, slots=True)
class Walk:
    """Sensor samples of a simulated walk at 1 kHz.

    Attributes
    ----------
    robot : configuration and URDF
    joint_names : (n) order of the joint arrays
    samples : one a millisecond
    """

    robot: Robot
    joint_names: tuple[str, ...]
    samples: tuple[SimulationSample, ...]

    def frames(self) -> list[SensorFrame]:
        """Frames that the synchronizer makes of the samples, one for one."""
        config = self.robot.config
        synchronizer = Synchronizer(config.synchronizer, len(config.feet), True, Health())
        frames = []
        for sample in self.samples:
            for wrench in sample.wrenches:
                synchronizer.add_wrench(wrench)
            synchronizer.add_imu(sample.imu)
            frames += synchronizer.add_joints(sample.joints)
        return frames

    def write(self, path: Path, samples: int) -> None:
        """Write the first samples as sensor messages into a new rosbag2."""
        config = self.robot.config
        with BagWriter(path) as writer:
            messages = SensorMessages(config, self.joint_names)
            for sample in self.samples[:samples]:
                stamp = sample.joints.stamp_ns
                for foot, wrench in zip(config.feet, sample.wrenches, strict=True):
                    writer.write_raw(foot.wrench_topic, topics.WRENCH, stamp, messages.wrench(wrench))
                writer.write_raw(config.imu.topic, topics.IMU, stamp, messages.imu(sample.imu))
                joints = messages.joint_state(sample.joints)
                writer.write_raw(config.output.joint_states_topic, topics.JOINT_STATE, stamp, joints)


def make_simulator(robot: Robot, scenario: str, samples: int) -> Simulator:
    """Simulator of a robot that walks for this number of samples."""
    duration = 1e-3 * samples + _SPARE
    return Simulator(
        robot.config, robot.urdf_xml, make_scenario(scenario, duration), make_noise(NOISE), start_ns=_START_NS
    )


def simulate(robot_name: str, scenario: str, samples: int) -> Walk:
    """Simulate a walk.

    Raises
    ------
    FrictionEstimatorError
        When the robot is not found or cannot be simulated.
    """
    robot = load_robot(robot_name)
    simulator = make_simulator(robot, scenario, samples)
    return Walk(robot, simulator.joint_names, tuple(simulator.step() for _ in range(samples)))
