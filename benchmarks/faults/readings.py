"""A walk as messages of its sensors, in the order of their arrival: what the faults change and all drivers read."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from friction_estimator.io.robot import Robot
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import JointStateTemplate
from friction_estimator.messages.sensors import SensorMessages
from friction_estimator.messages.topics import Topic
from friction_estimator.simulation import PERIOD_NS, SimulationSample, Simulator, make_noise, make_scenario
from friction_estimator.types import FloatArray, ImuSample, JointSample, WrenchSample

PERIOD = 1e-9 * PERIOD_NS
"""Of the simulated sensors [s]."""
_CYCLE = 3.0
"""Two steps of the built-in gait: after them the walk repeats itself [s]."""
_STEADY = 6.0
"""The gait is steady from here on [s]."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One message of a sensor.

    Attributes
    ----------
    arrival_ns : time of arrival [ns]
    index : number of the instant of the walk at which it was measured
    sample : values and stamp; a joint sample whose efforts are all NaN is a message without efforts
    friction : (n,) true friction torque at this instant [N m]
    names : joints that the message of a joint sample holds, in its order; None: all joints in the order of the model
    """

    arrival_ns: int
    index: int
    sample: JointSample | ImuSample | WrenchSample
    friction: FloatArray
    names: tuple[str, ...] | None = None

    @property
    def stamp_ns(self) -> int:
        """Stamp of the message [ns]."""
        return self.sample.stamp_ns

    def changed(self, **values: Any) -> Reading:
        """Copy with other values in the sample."""
        return replace(self, sample=replace(self.sample, **values))

    def shifted(self, stamp_ns: int) -> Reading:
        """Copy whose stamp is later by this time [ns]; it arrives when it did before."""
        return self.changed(stamp_ns=self.sample.stamp_ns + stamp_ns)


class Walk:
    """A walk of the built-in biped that goes on without end: after its first seconds it repeats whole gait cycles.

    Parameters
    ----------
    robot : that walks
    joint_names : (n)
    samples : sensors and truth of the scenario ``walk``: nine seconds, or more by whole cycles of three seconds
    """

    def __init__(self, robot: Robot, joint_names: Sequence[str], samples: Sequence[SimulationSample]) -> None:
        self.robot, self.joint_names, self.samples = robot, tuple(joint_names), samples
        cycle = round(_CYCLE / PERIOD)
        self._loop = (len(samples) - round(_STEADY / PERIOD)) // cycle * cycle

    def place(self, index: int) -> int:
        """Row of the samples for an instant, which may lie behind the end of the simulation."""
        count = len(self.samples)
        if index < count:
            return index
        return count - self._loop + (index - count) % self._loop

    def readings(self, first: int, count: int, start_ns: int = 0) -> list[Reading]:
        """Messages of these instants without any fault; joints last, as the robot publishes them.

        Parameters
        ----------
        first, count : instants
        start_ns : stamp of the instant zero [ns]
        """
        made = []
        for index in range(first, first + count):
            sample, stamp = self.samples[self.place(index)], start_ns + index * PERIOD_NS
            instant = (*sample.wrenches[::-1], sample.imu, sample.joints)
            made += [Reading(stamp, index, replace(one, stamp_ns=stamp), sample.truth.friction) for one in instant]
        return made


def simulated_walk(robot: Robot, duration: float) -> Walk:
    """Walk of this duration with the sensor noise ``paper_std`` [s]."""
    scenario = make_scenario("walk", duration)
    simulator = Simulator(robot.config, robot.urdf_xml, scenario, make_noise("paper_std"), seed=3)
    return Walk(robot, simulator.joint_names, [simulator.step() for _ in range(round(duration / PERIOD))])


class Messages:
    """Serializes readings.

    Parameters
    ----------
    robot : frames, signs and topics
    joint_names : (n) order of the joint samples

    Attributes
    ----------
    topics : topics of the messages
    """

    def __init__(self, robot: Robot, joint_names: Sequence[str]) -> None:
        self._sensors = SensorMessages(robot.config, joint_names)
        self.topics = self._sensors.topics
        self._joint_names = list(joint_names)
        self._templates: dict[tuple[str, ...], JointStateTemplate] = {}

    def build(self, reading: Reading) -> tuple[Topic, bytes]:
        """Topic and bytes of a message."""
        sample = reading.sample
        if isinstance(sample, JointSample):
            return self.topics[0], self._joint_state(sample, reading.names)
        return self._sensors.message(sample)

    def _joint_state(self, sample: JointSample, names: tuple[str, ...] | None) -> bytes:
        if names is None:
            _, raw = self._sensors.message(sample)
        else:
            if names not in self._templates:
                self._templates = {names: JointStateTemplate(topics.BASE_FRAME, names, with_state=True)}
            order = [self._joint_names.index(name) for name in names]
            values = (sample.position[order], sample.velocity[order], sample.effort[order])
            raw = self._templates[names].serialize(sample.stamp_ns, *values)
        return without_efforts(raw, len(names or self._joint_names)) if np.isnan(sample.effort).all() else raw


def without_efforts(raw: bytes, count: int) -> bytes:
    """Bytes of a JointState with an empty ``effort``, from those of one with this number of efforts."""
    end = len(raw) - 8 * count
    before = max(at for at in (end - 4, end - 8) if struct.unpack_from("<I", raw, at)[0] == count)
    return raw[:before] + struct.pack("<I", 0)
