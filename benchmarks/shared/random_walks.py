"""Random walks of the simulated biped for training (Lim et al. 2024, sections 4.3 and 5.1).

Each walk has its own gait, random steps on uneven ground, and random torques on all joints but those of a leg that
stands. The joints outside the legs are held in half of the walks and move at random in the others, and in half of these
the robot stands. The nominal model stays that of the URDF; with all uncertainty the simulated robot is heavier and has
friction.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks.shared.wrong_bodies import scaled_urdf
from friction_estimator.errors import LearningError, SimulationError, choices
from friction_estimator.io.robot import Robot
from friction_estimator.kernels import compiler
from friction_estimator.learning.network import RobotIdentity
from friction_estimator.learning.signals import SignalStage
from friction_estimator.learning.training_data import SignalReader, SignalRecording
from friction_estimator.robot.model import RobotModel
from friction_estimator.simulation import (
    PERIOD_NS,
    TABLE_I,
    ControllerGains,
    FrictionSetting,
    Gait,
    Ground,
    ParametrisedLaw,
    Scenario,
    Simulator,
    make_noise,
)
from friction_estimator.simulation.biped import Biped
from friction_estimator.types import BoolArray, FloatArray, FrictionEstimate, GroundTruth, SensorFrame

UNCERTAINTIES = ("ideal", "noise", "all")
"""Levels of section 5.1: no error at all; noise of the sensors; noise, friction and a model that is too light."""
NOMINAL_MASS = 0.9
"""Mass of the nominal model as a part of the true mass, with all uncertainty (section 5.1)."""
FRICTION_LOSS = 10.0
"""Dry friction of MuJoCo that Table 4 adds to eq. 23 in the legs [N m]."""
ALL_FRICTION = ParametrisedLaw("stribeck_load", (5.0 + FRICTION_LOSS, 2.0 + FRICTION_LOSS, 1.51, 4.0, 0.002))
OTHER_FRICTION = ParametrisedLaw("stribeck_load", (5.0 + 8.0, 2.0 + 8.0, 1.51, 3.0, 0.002))
"""Eq. 23 and dry friction of Table 4 in the joints outside the legs."""
NO_FRICTION = ParametrisedLaw("coulomb_viscous", (0.0, 0.0))
STEP_DURATIONS = (0.6, 0.7, 0.8, 0.9)
"""Table 2, here of the single support [s]."""
CLEARANCES = (0.04, 0.05, 0.06, 0.07)
"""Largest heights of the swinging foot, Table 2 [m]."""
LARGEST_STEP = (0.25, 0.1, math.radians(15.0))
"""Largest length and side of a step as parts of the stretched leg, and largest turn [rad], with which the built-in gait
still walks on uneven ground with random torques. Table 2 has 0.20 m, 0.10 m and 20 degrees for a robot of 1.8 m."""
LEG_EXTENSION = 0.9
"""Height of the hips as a part of the stretched leg, so that the legs reach these steps."""
UNEVENNESS = 0.0075
"""Largest height of the ground over its mean, and depth below (section 4.3: 15 mm between patches) [m]."""
LARGEST_TORQUE = 50.0
"""Random torques of the leg joints (section 4.3) [N m]."""
LARGEST_OTHER_TORQUE = 1.0 / 6.0
"""Random torques of the other joints, in parts of their effort limit; never above those of the leg joints.

In the built-in humanoid these are the 50 N m of the waist and about the 3 to 15 N m of the arms in section 4.3."""
TORQUE_DURATIONS = (0.1, 0.5)
"""Shortest and longest time that a random torque is on, and off (section 4.3) [s]."""
_START_NS = 1_000_000_000
_GAINS = ControllerGains(other_bandwidth=120.0)  # joints outside the legs must follow in spite of their friction
_PERIOD = PERIOD_NS * 1e-9


@dataclass(frozen=True, slots=True)
class RandomWalks:
    """What a series of random walks has in common.

    Attributes
    ----------
    uncertainty : one of :data:`UNCERTAINTIES`
    noise : sensor noise level unless the uncertainty is ``ideal``
    seed : walk k of the same seed is always the same
    length : of one walk [s]
    exploration : True: random torques on all joints but those of a standing leg
    """

    uncertainty: str = "all"
    noise: str = "paper_std"
    seed: int = 0
    length: float = 20.0
    exploration: bool = True

    def __post_init__(self) -> None:
        if self.uncertainty not in UNCERTAINTIES:
            raise LearningError(f"unknown uncertainty {self.uncertainty!r}; the levels are {choices(UNCERTAINTIES)}")
        make_noise(self.noise)

    def scenario(self, robot: Robot, number: int) -> Scenario:
        """Gait, ground and friction of a walk."""
        rng = np.random.default_rng([self.seed, number])
        biped = Biped(robot.config, robot.urdf_xml)
        leg, moves = biped.legs[0].length, bool(biped.others.size) and number % 2 == 1
        length, side, turn = LARGEST_STEP
        gait = Gait(
            single_support=float(rng.choice(STEP_DURATIONS)),
            clearance=float(rng.choice(CLEARANCES)),
            step_length=length * leg,
            step_side=side * leg,
            step_turn=turn,
            leg_extension=LEG_EXTENSION,
            random_steps=int(rng.integers(2**31)),
        )
        ground = Ground(height=UNEVENNESS, seed=int(rng.integers(2**31)))
        if moves:
            gait = dataclasses.replace(gait, walks=number % 4 == 1, random_posture=int(rng.integers(2**31)))
        sticks = self.uncertainty == "all"
        law, others = (ALL_FRICTION, OTHER_FRICTION) if sticks else (NO_FRICTION, None)
        friction = FrictionSetting(leg=(law,) * len(TABLE_I), others=others, sticks=sticks)
        return Scenario(f"random walk {number} of seed {self.seed}", self.length, gait, (friction,), ground=ground)

    def simulator(self, robot: Robot, number: int) -> Simulator:
        """Simulator of a walk."""
        urdf_xml = scaled_urdf(robot.urdf_xml, 1.0 / NOMINAL_MASS) if self.uncertainty == "all" else robot.urdf_xml
        noise = make_noise("clean" if self.uncertainty == "ideal" else self.noise)
        seed = int(np.random.default_rng([self.seed, number, 1]).integers(2**31))
        scenario = self.scenario(robot, number)
        return Simulator(robot.config, urdf_xml, scenario, noise, seed, _START_NS, _GAINS)


class TorqueExploration:
    """Random torques that are stepwise on and off, for each joint on its own (section 4.3).

    Parameters
    ----------
    limb : (k, n) True where a joint lies between the base and that foot
    largest : (n,) torques [N m]
    seed : of the random numbers
    """

    def __init__(self, limb: BoolArray, largest: FloatArray, seed: list[int]) -> None:
        self._limb, self._largest = limb, largest
        self._rng = np.random.default_rng(seed)
        n = limb.shape[1]
        self._torque, self._left, self._on = np.zeros(n), np.zeros(n), np.zeros(n, dtype=bool)

    def step(self, contact: BoolArray) -> FloatArray:
        """Torques (n,) of this period; joints of a leg whose foot touches the ground get none."""
        self._left -= _PERIOD
        for joint in np.flatnonzero(self._left <= 0.0):
            self._left[joint] = self._rng.uniform(*TORQUE_DURATIONS)
            self._on[joint] = not self._on[joint]
            largest = float(self._largest[joint])
            self._torque[joint] = self._rng.uniform(-largest, largest) if self._on[joint] else 0.0
        return np.where(self._limb[contact].any(axis=0), 0.0, self._torque)


def largest_torques(robot: RobotModel) -> FloatArray:
    """Largest random torque of each joint (n,) [N m]."""
    return np.where(
        robot.limb.any(axis=0), LARGEST_TORQUE, np.minimum(LARGEST_OTHER_TORQUE * robot.effort_limit, LARGEST_TORQUE)
    )


class TrueFeetReader(SignalReader):
    """A :class:`SignalReader` of a simulation: the recording has the external torque of the true foot wrenches, too."""

    def __init__(self, robot: Robot) -> None:
        super().__init__(robot.config, robot.urdf_xml)
        self._true_stage = SignalStage(self.pipeline.robot, robot.config.momentum.inputs_are_held)
        self._wrenches, self._true_external = dict[int, FloatArray](), list[FloatArray]()

    def expect(self, truth: GroundTruth) -> None:
        """Add the true foot wrenches of a joint sample that will be added."""
        self._wrenches[truth.stamp_ns] = truth.wrenches

    def process(self, frame: SensorFrame) -> list[FrictionEstimate]:
        """Keep the signals, and the external torque of the true wrenches."""
        count, estimates, sensed = self._count, super().process(frame), self.pipeline.sensed
        wrenches = self._wrenches.pop(frame.stamp_ns)
        external = self._true_stage.step(frame, sensed.attitude, sensed.dynamics, wrenches).external
        if self._count > count:
            self._true_external.append(external)
        return estimates

    def recording(self) -> SignalRecording:
        """Recording with the signals of all samples so far, and the truth."""
        return dataclasses.replace(super().recording(), true_external=np.array(self._true_external, dtype=np.float32))


def record_walk(robot: Robot, walks: RandomWalks, number: int) -> SignalRecording:
    """Simulate one walk and record its signals.

    Raises
    ------
    SimulationError
        When the robot falls.
    """
    compiler.prepare()
    simulator, reader = walks.simulator(robot, number), TrueFeetReader(robot)
    model = RobotModel(robot.config, robot.urdf_xml)
    seed = [walks.seed, number, 2]
    exploration = TorqueExploration(model.limb, largest_torques(model), seed) if walks.exploration else None
    contact = np.ones(len(model.limb), dtype=bool)
    for _ in range(round(walks.length / _PERIOD)):
        sample = simulator.step(exploration.step(contact) if exploration else None)
        contact = sample.truth.contact
        reader.expect(sample.truth)
        for reading in sample.readings:
            reader.add(reading)
    reader.flush()
    return reader.recording()


def write_walks(
    folder: Path, robot: Robot, walks: RandomWalks, count: int, jobs: int = 1
) -> Iterator[tuple[Path, str]]:
    """Write walks 0 to ``count - 1``, one ``.npz`` each; files that are there already stay.

    Yields each new file as it is written, with the reason in place of the file where the robot falls.

    Parameters
    ----------
    folder : of the files
    robot : whose URDF is the nominal model
    walks : what to simulate
    count : number of walks
    jobs : walks that are simulated at the same time, each in a process
    """
    paths = [folder / f"{walks.seed:04d}_{number:04d}.npz" for number in range(count)]
    tasks = [(robot, walks, number, path) for number, path in enumerate(paths) if not path.exists()]
    compiler.prepare()  # once, so that the processes load the kernels from the cache
    if jobs <= 1:
        yield from (_write_walk(*task) for task in tasks)
        return
    with ProcessPoolExecutor(min(jobs, max(len(tasks), 1)), get_context("spawn")) as pool:
        for future in as_completed([pool.submit(_write_walk, *task) for task in tasks]):
            yield future.result()


def _write_walk(robot: Robot, walks: RandomWalks, number: int, path: Path) -> tuple[Path, str]:
    try:
        record_walk(robot, walks, number).save(path, RobotIdentity.from_robot(robot))
    except SimulationError as error:
        return path, str(error)
    return path, ""
