"""Yardsticks of the rows: a simulated walk, the floor of pinocchio calls, and the comparison of CPU times."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pinocchio as pin

from friction_estimator.estimation.health import Health
from friction_estimator.estimation.readings.synchronizer import Synchronizer
from friction_estimator.io.bags.writer import BagWriter
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.messages.sensors import SensorMessages
from friction_estimator.simulation import SimulationSample, Simulator, make_noise, make_scenario
from friction_estimator.types import FloatArray, Reading, SensorFrame

STEPS = 100
"""Calls in one block: ten windows of the observer kalman."""
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
        synchronizer = Synchronizer(config.synchronizer, len(self.joint_names), len(config.feet), True, Health())
        frames = []
        for sample in self.samples:
            for wrench in sample.wrenches:
                synchronizer.add(1 + wrench.foot, wrench.stamp_ns, wrench.wrench)
            reading = np.concatenate((sample.imu.angular_velocity, sample.imu.specific_force))
            synchronizer.add(0, sample.imu.stamp_ns, reading)
            frames += synchronizer.add_joints(sample.joints)
        return frames

    def doubled(self) -> Walk:
        """The walk at 2 kHz: a sample between each two, the mean of their readings."""
        between = [_mean(first, last) for first, last in zip(self.samples, self.samples[1:], strict=False)]
        pairs = zip(self.samples, between, strict=False)
        return replace(self, samples=(*(sample for pair in pairs for sample in pair), self.samples[-1]))

    def write(self, path: Path, samples: int) -> None:
        """Write the first samples as sensor messages into a new rosbag2."""
        with BagWriter(path) as writer:
            messages = SensorMessages(self.robot.config, self.joint_names)
            for sample in self.samples[:samples]:
                for topic, raw in messages.build(sample.readings):
                    writer.write_raw(topic.name, topic.type, sample.joints.stamp_ns, raw)


def _mean(first: SimulationSample, last: SimulationSample) -> SimulationSample:
    """Sample in the middle between two; the truth is that of the first."""

    def middle(one: Reading, other: Reading) -> Any:
        values = {
            field.name: 0.5 * (getattr(one, field.name) + getattr(other, field.name))
            for field in fields(one)
            if isinstance(getattr(one, field.name), np.ndarray)
        }
        return replace(one, stamp_ns=(one.stamp_ns + other.stamp_ns) // 2, **values)

    wrenches = tuple(middle(one, other) for one, other in zip(first.wrenches, last.wrenches, strict=True))
    return replace(first, joints=middle(first.joints, last.joints), imu=middle(first.imu, last.imu), wrenches=wrenches)


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


class Floor:
    """All terms, inverse dynamics, and Jacobian and classical acceleration of every sole, called from Python.

    Parameters
    ----------
    robot : configuration and URDF of a walking robot
    frames : whose joint positions, joint velocities and angular velocities are used
    """

    def __init__(self, robot: Robot, frames: Sequence[SensorFrame]) -> None:
        self.model = pin.buildModelFromXML(robot.urdf_xml, pin.JointModelFreeFlyer())
        self.data = self.model.createData()
        self.soles = [self.model.getFrameId(foot.frame) for foot in robot.config.feet]
        upright, at_rest = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], np.zeros(3)
        self.states = [
            (
                np.concatenate((upright, frame.position)),
                np.concatenate((at_rest, frame.angular_velocity, frame.velocity)),
            )
            for frame in frames
        ]
        self._acceleration = np.zeros(self.model.nv)

    def __call__(self, number: int) -> None:
        """Run the calls for one state."""
        model, data = self.model, self.data
        q, v = self.states[number]
        pin.computeAllTerms(model, data, q, v)
        pin.rnea(model, data, q, v, self._acceleration)
        for sole in self.soles:
            pin.getFrameJacobian(model, data, sole, pin.LOCAL)
        for sole in self.soles:
            pin.getFrameClassicalAcceleration(model, data, sole, pin.LOCAL)


class Spread(TypedDict):
    """Median and quartiles, as keyword arguments of a figure."""

    value: float
    low: float
    high: float


@contextmanager
def as_in_node() -> Iterator[None]:
    """Exclude all present objects from garbage collection, as in the estimator node."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def interleave(
    cases: Mapping[str, Callable[[int], object]], blocks: int, progress: Callable[[float, float], None]
) -> dict[str, FloatArray]:
    """CPU time of the cases in turn, a block of calls each.

    CPU time does not count the pauses in which other processes run, which are longer in longer calls.

    Parameters
    ----------
    cases : functions of the number of the call, which counts up from 0
    blocks : how often each case has its turn

    Returns
    -------
    (blocks, STEPS) CPU times of the calls of each case, the cost of reading the clock taken off [s]
    """
    times = {name: np.full((blocks, STEPS), np.nan) for name in cases}  # written now: memory may not grow meanwhile
    clock = time.thread_time
    with as_in_node():
        for block in range(blocks):
            cost = np.median([clock() - clock() for _ in range(STEPS)])
            for name, call in cases.items():
                durations = times[name][block]
                for k in range(STEPS):
                    before = clock()
                    call(block * STEPS + k)
                    durations[k] = clock() - before
                durations += cost  # a negative number
            progress(block + 1, blocks)
    return times


def spread(values: FloatArray) -> Spread:
    """Median and quartiles."""
    low, value, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
    return {"value": value, "low": low, "high": high}


def ratio(durations: FloatArray, yardstick: FloatArray) -> Spread:
    """Ratio of the medians of two cases (blocks, STEPS): median and quartiles over the blocks."""
    return spread(np.median(durations, axis=1) / np.median(yardstick, axis=1))


def microseconds(durations: FloatArray) -> float:
    """Median [us]."""
    return float(1e6 * np.median(durations))
