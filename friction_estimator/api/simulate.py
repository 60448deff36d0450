"""``simulate``: a biped walks in MuJoCo, with the sensors of a real robot and the true friction."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from friction_estimator import compiled
from friction_estimator.io.bags.writer import STORAGES, BagWriter
from friction_estimator.io.robot import Robot, as_robot
from friction_estimator.messages.description import RunDescription
from friction_estimator.messages.simulated import SensorMessages, TruthMessages
from friction_estimator.types import Brief, FloatArray

if TYPE_CHECKING:  # MuJoCo is imported where something is simulated, and not where a simulation may be read
    from friction_estimator.simulation import SimulationSample, Simulator

Progress = Callable[[float, float], None]
"""Called now and then with the amount of work that is done, and with the whole."""

_START_NS = 1_000_000_000
"""First stamp: many tools take a zero stamp for a missing one [ns]."""
_PROGRESS_STRIDE = 100


@dataclass(frozen=True, slots=True, repr=False)
class Simulation(Brief):
    """Sensor readings and ground truth of a walk with ``m`` joint states.

    Attributes
    ----------
    robot : configuration and URDF of the robot that walked
    joint_names : (n) order of the joint arrays
    source : what was simulated, in words
    samples : one each millisecond, with the sensor readings of that time
    """

    robot: Robot
    joint_names: tuple[str, ...]
    source: str
    samples: tuple[SimulationSample, ...]

    @property
    def time(self) -> FloatArray:
        """Time of each joint state since the first one, (m,) [s]."""
        stamps = np.array([sample.joints.stamp_ns for sample in self._with_joints()])
        return (stamps - stamps[0]) * 1e-9

    @property
    def position(self) -> FloatArray:
        """Measured joint positions, (m, n) [rad]."""
        return np.array([sample.joints.position for sample in self._with_joints()])

    @property
    def velocity(self) -> FloatArray:
        """Measured joint velocities, (m, n) [rad/s]."""
        return np.array([sample.joints.velocity for sample in self._with_joints()])

    @property
    def effort(self) -> FloatArray:
        """Measured motor torques reflected to the joints, (m, n) [N m]."""
        return np.array([sample.joints.effort for sample in self._with_joints()])

    @property
    def friction(self) -> FloatArray:
        """True friction torques, (m, n) [N m]."""
        return np.array([sample.truth.friction for sample in self._with_joints()])

    def _with_joints(self) -> list[SimulationSample]:
        """Samples with a joint state: all of them unless the sensor level has slower joint states."""
        return [sample for sample in self.samples if sample.delivered[0]]

    def save(self, path: str | os.PathLike[str], *, storage: str = STORAGES[0], overwrite: bool = False) -> None:
        """Write sensor and ground-truth messages as a rosbag2.

        Parameters
        ----------
        path : folder of the bag
        storage : ``mcap`` or ``sqlite3``
        overwrite : replace an older bag of that name

        Raises
        ------
        BagError
            When the bag exists already or cannot be written.
        """
        write_simulation(path, self.samples, self.robot, self.joint_names, self.source, storage, overwrite)


def simulate(
    robot: str | os.PathLike[str] | Robot = "suralp",
    *,
    scenario: str = "walk",
    duration: float = 20.0,
    noise: str = "paper_std",
    seed: int = 0,
    progress: Progress | None = None,
) -> Simulation:
    """Let a biped walk in MuJoCo.

    Parameters
    ----------
    robot : name of a robot in ``config/robots``, path of its YAML, or what :func:`~friction_estimator.load_robot` gave
    scenario : what the robot does, one of :func:`~friction_estimator.simulation.scenario_names`
    duration : [s]
    noise : sensor noise level, one of :func:`~friction_estimator.simulation.noise_names`
    seed : random seed of the sensor noise; the same seed gives the same samples
    progress : called now and then

    Raises
    ------
    ConfigError
        When robot, scenario or noise is unknown; the message names the valid choices.

    Examples
    --------
    >>> import friction_estimator as fe
    >>> walk = fe.simulate("suralp", duration=0.05)
    >>> walk.friction.shape
    (50, 12)
    """
    loaded = as_robot(robot)
    simulator, source = make_simulator(loaded, scenario, duration, noise, seed)
    samples = tuple(simulated(simulator, duration, progress))
    return Simulation(loaded, simulator.joint_names, source, samples)


def make_simulator(robot: Robot, scenario: str, duration: float, noise: str, seed: int) -> tuple[Simulator, str]:
    """Simulator of a robot in a scenario, and what it simulates in words."""
    from friction_estimator.simulation import Simulator, make_noise, make_scenario

    chosen, level = make_scenario(scenario, duration=duration), make_noise(noise)
    compiled.prepare()
    simulator = Simulator(robot.config, robot.urdf_xml, chosen, level, seed=seed, start_ns=_START_NS)
    return simulator, f"simulation of {scenario!r}, sensors {noise!r}, seed {seed}"


def simulated(simulator: Simulator, duration: float, progress: Progress | None = None) -> Iterator[SimulationSample]:
    """Samples of a simulation, one a control period."""
    from friction_estimator.simulation import PERIOD_NS

    steps = round(duration * 1e9 / PERIOD_NS)
    for step in range(steps):
        if progress is not None and step % _PROGRESS_STRIDE == 0:
            progress(step, steps)
        yield simulator.step()


def write_simulation(
    path: str | os.PathLike[str],
    samples: Iterable[SimulationSample],
    robot: Robot,
    joint_names: tuple[str, ...],
    source: str,
    storage: str = STORAGES[0],
    overwrite: bool = False,
    more: Callable[[BagWriter], None] | None = None,
) -> tuple[int, int]:
    """Write sensors and ground truth as a rosbag2; return the numbers of joint samples and of messages.

    ``more`` is called with the open bag, to write what else it holds.

    Raises
    ------
    BagError
        When the bag exists already or cannot be written.
    """
    config, count = robot.config, 0
    description = RunDescription.of(config, robot.urdf_xml, robot.name, source)
    with BagWriter(path, storage, description.to_custom_data(), overwrite) as writer:
        if more is not None:
            more(writer)
        sensors, truths = SensorMessages(config, joint_names), TruthMessages(config, joint_names)
        for sample in samples:
            sensed = sensors.build(sample.readings)
            for topic, message in (*sensed, *truths.build(sample.truth)):
                writer.write_raw(topic.name, topic.type, sample.joints.stamp_ns, message)
            count += 1
    return count, writer.message_count
