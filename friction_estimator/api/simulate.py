"""``simulate``: a biped walks in MuJoCo, with the sensors of a real robot and the true friction; ``example``: simulated
recordings of an arm and of a leg.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from friction_estimator.errors import ConfigError, choices
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.io.bags.writer import STORAGES, BagWriter
from friction_estimator.io.robot import Robot, as_robot
from friction_estimator.kernels import compiler
from friction_estimator.messages.recording import RunDescription
from friction_estimator.messages.sensors import SensorMessages, TruthMessages
from friction_estimator.types import AnyPath, FloatArray, Progress, ShortRepr

if TYPE_CHECKING:  # MuJoCo is imported where something is simulated, and not where a simulation may be read
    from friction_estimator.simulation import SimulationSample, Simulator

ARM_COULOMB, ARM_VISCOUS, ARM_NOISE = np.array([1.5, 0.6]), np.array([0.8, 0.3]), 0.05
"""True friction of shoulder and elbow [N m], [N m s/rad], and standard deviation of their recorded torques [N m]."""
_LEG_COULOMB, _LEG_VISCOUS, _LEG_ARMATURE = np.array([0.3, 0.15]), np.array([0.2, 0.1]), np.array([0.05, 0.05])
_LEG_GAINS, _LEG_DELAY, _LEG_NOISE = (20.0, 0.5), 0.01, 1e-4
"""Friction of hip and knee, and armature [kg m^2]; gains of the drives [N m/rad, N m s/rad], delay [s], noise [rad]."""
_START_NS = 1_000_000_000
"""First stamp: many tools take a zero stamp for a missing one [ns]."""
_PROGRESS_STRIDE = 100  # samples between two notes of progress


@dataclass(frozen=True, slots=True, repr=False)
class Simulation(ShortRepr):
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

    def save(self, path: AnyPath, *, storage: str = STORAGES[0], overwrite: bool = False) -> None:
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
    robot: AnyPath | Robot = "suralp",
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
    progress : called with the number of finished samples, and of all

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
    """Simulator of a robot in a scenario, and a text that describes the simulation.

    Parameters
    ----------
    robot : loaded robot with a URDF
    scenario : name of the scenario, one of :func:`~friction_estimator.simulation.scenario_names`
    duration : length of the scenario [s]
    noise : name of the sensor noise level, one of :func:`~friction_estimator.simulation.noise_names`
    seed : random seed of the sensor noise
    """
    from friction_estimator.simulation import Simulator, make_noise, make_scenario

    chosen, level = make_scenario(scenario, duration=duration), make_noise(noise)
    compiler.prepare()
    simulator = Simulator(robot.config, robot.urdf_xml, chosen, level, seed=seed, start_ns=_START_NS)
    return simulator, f"simulation of {scenario!r}, sensors {noise!r}, seed {seed}"


def simulated(simulator: Simulator, duration: float, progress: Progress | None = None) -> Iterator[SimulationSample]:
    """Advance a simulation by ``duration`` [s]; yield one sample each control period of 1 ms."""
    from friction_estimator.simulation import PERIOD_NS

    steps = round(duration * 1e9 / PERIOD_NS)
    for step in range(steps):
        if progress is not None and step % _PROGRESS_STRIDE == 0:
            progress(step, steps)
        yield simulator.step()


def write_simulation(
    path: AnyPath,
    samples: Iterable[SimulationSample],
    robot: Robot,
    joint_names: tuple[str, ...],
    source: str,
    storage: str = STORAGES[0],
    overwrite: bool = False,
    more: Callable[[BagWriter], None] | None = None,
) -> tuple[int, int]:
    """Write sensors and ground truth as a rosbag2; return the numbers of joint samples and of messages.

    Parameters
    ----------
    path : folder of the bag
    samples : of the simulation, one each millisecond
    robot : configuration and URDF of the simulated robot
    joint_names : (n) order of the joint arrays in the samples
    source : what was simulated, in words
    storage : ``mcap`` or ``sqlite3``
    overwrite : replace an older bag of that name
    more : called with the open bag before the samples, to write further messages

    Raises
    ------
    BagError
        When the bag exists already or cannot be written.
    """
    config, count = robot.config, 0
    description = RunDescription.from_config(config, robot.urdf_xml, robot.name, source)
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


def example(name: str = "arm", seed: int = 1) -> JointLog:
    """Return a simulated recording of the robot with the same name in ``config/robots``.

    Parameters
    ----------
    name : ``"arm"``: two joints move for 8 s along a planned motion, with 1.5 and 0.6 N m of Coulomb friction, 0.8 and
        0.3 N m s/rad of viscous friction, and 0.05 N m of noise on the motor torques. ``"leg"``: the drives of two
        joints, ``kp=20, kd=0.5``, follow positions for 12 s and apply their torque 10 ms late, with 0.3 and 0.15 N m,
        0.2 and 0.1 N m s/rad, and an armature of 0.05 kg m^2; no torque is recorded
    seed : of motion and noise; another one is another experiment

    Returns
    -------
    JointLog
        Arrays ``time`` (N,), ``position`` (N, n), and ``effort`` or the input ``command`` (N, n).

    Raises
    ------
    ConfigError
        When there is no such example.

    Examples
    --------
    >>> import friction_estimator as fe
    >>> fe.example("arm").joint_names
    ('shoulder', 'elbow')
    """
    examples = {"arm": _arm, "leg": _leg}
    if name not in examples:
        raise ConfigError(f"there is no example {name!r}; there is {choices(examples)}")
    return examples[name](seed)


def _arm(seed: int) -> JointLog:
    """Measured torques along a planned motion."""
    # not above: to replay a bag takes no planner, whose import takes two seconds
    from friction_estimator.api.plan import plan_excitation
    from friction_estimator.identification.fixed_base_model import FixedBaseModel

    robot = as_robot("arm")
    plan = plan_excitation(robot, duration=8.0, seeds=1, seed=seed, max_acceleration=15.0)
    model = FixedBaseModel(robot.urdf_xml, plan.joint_names)
    rigid = model.torque(plan.position, plan.velocity, plan.acceleration)
    friction = ARM_COULOMB * np.sign(plan.velocity) + ARM_VISCOUS * plan.velocity
    noise = ARM_NOISE * np.random.default_rng(seed).standard_normal(rigid.shape)
    return JointLog(f"arm_{seed}", plan.joint_names, plan.time, plan.position, effort=rigid + friction + noise)


def _leg(seed: int) -> JointLog:
    """Positions and commanded positions of a hanging leg."""
    from friction_estimator.simulation.simulator import Drives, rollout

    robot, random = as_robot("leg"), np.random.default_rng(seed)
    time = np.arange(0.0, 12.0, 0.001)
    frequency = 0.15 * np.array([1, 2, 3, 5, 7, 11])[:, None]
    size = random.uniform(0.5, 1.2, (6, 2)) * [0.2, 0.33] / np.sqrt(frequency / 0.15)
    phase = random.uniform(0.0, 2.0 * np.pi, (6, 2))
    command = [1.2, -0.8] + np.sum(size * np.sin(2.0 * np.pi * frequency * time[:, None, None] + phase), axis=1)
    kp, kd = (np.full(command.shape, gain) for gain in _LEG_GAINS)
    names, delay = ("hip", "knee"), np.full(2, _LEG_DELAY)
    drives = Drives(names, kp, kd, lambda _: _LEG_COULOMB, _LEG_VISCOUS, _LEG_ARMATURE, np.zeros(2), delay)
    position = rollout(robot.urdf_xml, drives, time, command, command[0])
    noise = _LEG_NOISE * random.standard_normal(position.shape)
    return JointLog(f"leg_{seed}", names, time, position + noise, inputs={"command": command})
