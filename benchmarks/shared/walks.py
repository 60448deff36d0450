"""Simulated walks: the cases, one run of a case as arrays, and inputs of an observer from the true states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.shared.wrong_bodies import perturbed_urdf
from friction_estimator.base.contact_phase import ContactPhaseDetector
from friction_estimator.config import Config
from friction_estimator.errors import ConfigError, SimulationError, choices
from friction_estimator.io.robot import Robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.simulation import (
    PERIOD_NS,
    Scenario,
    SimulationSample,
    Simulator,
    make_noise,
    make_scenario,
    scenario_names,
)
from friction_estimator.types import Attitude, BoolArray, ContactPhase, Dynamics, FloatArray, SensorFrame

MASS_STD = 0.10
"""Relative error of each link's mass in the case ``inertia_errors``."""
COM_STD = 0.005
"""Error of each link's centre of mass in the case ``inertia_errors``, per axis [m]."""
LEG_JOINTS = ("hip yaw", "hip roll", "hip pitch", "knee", "ankle pitch", "ankle roll")
"""Joints of a leg of the built-in biped, in their order."""
_CYCLE = 3.0  # two steps of the built-in gait [s]


@dataclass(frozen=True, slots=True)
class Case:
    """One experiment.

    Attributes
    ----------
    title : for the page
    scenario : for a duration [s]
    wrong_inertia : True when the estimator is given a URDF with other masses and centres of mass, another each seed
    """

    title: str
    scenario: Callable[[float], Scenario]
    wrong_inertia: bool = False

    def estimator_urdf(self, urdf_xml: str, seed: int) -> str:
        """URDF that the estimator is given; the simulator has the true one."""
        return perturbed_urdf(urdf_xml, MASS_STD, COM_STD, seed) if self.wrong_inertia else urdf_xml


def _named(name: str) -> Callable[[float], Scenario]:
    return lambda duration: make_scenario(name, duration)


def _pushed(name: str) -> Callable[[float], Scenario]:
    """The pushes one walking cycle later than in the scenario: the first comes when the law has settled."""

    def scenario(duration: float) -> Scenario:
        planned = make_scenario(name, duration)
        return replace(planned, pushes=tuple(replace(push, start=push.start + _CYCLE) for push in planned.pushes))

    return scenario


CASES: dict[str, Case] = {
    "walk": Case("Walk", _named("walk")),
    "inertia_errors": Case("Walk with wrong inertia: every mass 10 %, every centre of mass 5 mm", _named("walk"), True),
    "friction_change": Case(
        "Walk, Coulomb and Stribeck torque double at 10 s (half time of runs below 20 s)", _named("friction_change")
    ),
    "friction_load": Case("Walk with load-dependent friction, Lim et al. 2024, eq. 23", _named("friction_load")),
    "friction_stiction": Case("Walk with true stiction, solved as a constraint", _named("friction_stiction")),
    "squat": Case("Squat in double support", _named("squat")),
    "uneven": Case("Walk on uneven ground", _named("uneven")),
    "slope": Case("Walk on a slope", _named("slope")),
    "push": Case("Walk, base pushed by 150 N for 80 ms", _pushed("push")),
    "push_knee": Case("Walk, swinging knee pushed by 150 N for 80 ms", _pushed("push_knee")),
}
"""The cases of the page."""


def case_names() -> tuple[str, ...]:
    """Names of the cases: those of the page, and every scenario of the simulation."""
    return tuple(dict.fromkeys((*CASES, *scenario_names())))


def find_case(name: str) -> Case:
    """Case by name; a scenario that is no case of the page has its own name as title.

    Raises
    ------
    ConfigError
        When there is no such case; the message lists the names.
    """
    if name not in case_names():
        raise ConfigError(f"unknown case {name!r}; the cases are {choices(case_names())}")
    return CASES.get(name) or Case(f"scenario {name}", _named(name))


PERIOD = PERIOD_NS * 1e-9
"""Of the simulated sensors [s]."""


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """Sensor readings of one walk, and the truth.

    Attributes
    ----------
    scenario : its gait, friction and pushes
    samples : (m) one a period
    time : (m,) since the start [s]
    friction, external_torque : (m, n) true [N m]
    phases : (m) true contact phases: the estimator's own detector on the true wrenches
    stance : (m, n) True where the joint's limb stands; joints of no limb stand with any foot
    """

    scenario: Scenario
    samples: list[SimulationSample]
    time: FloatArray
    friction: FloatArray
    external_torque: FloatArray
    phases: list[ContactPhase]
    stance: BoolArray


def simulate(robot: Robot, model: RobotModel, scenario: Scenario, noise: str, seed: int) -> SimulatedRun:
    """Simulate a scenario.

    Raises
    ------
    SimulationError
        When the robot falls, or its YAML lists the joints in another order than its URDF.
    """
    simulator = Simulator(robot.config, robot.urdf_xml, scenario, make_noise(noise), seed=seed)
    if simulator.joint_names != model.joint_names:
        raise SimulationError(f"robot.joints must be in the order of the URDF: {', '.join(model.joint_names)}")
    samples = [simulator.step() for _ in range(round(scenario.duration / PERIOD))]
    phases = _phases(robot.config, model, samples)
    return SimulatedRun(
        scenario=scenario,
        samples=samples,
        time=PERIOD * np.arange(len(samples), dtype=float),
        friction=np.array([sample.truth.friction for sample in samples]),
        external_torque=np.array([sample.truth.external_torque for sample in samples]),
        phases=phases,
        stance=standing_joints(np.array([phase.contact for phase in phases]), model.limb),
    )


def _phases(config: Config, model: RobotModel, samples: list[SimulationSample]) -> list[ContactPhase]:
    names = tuple(foot.support_name for foot in config.feet)
    detector = ContactPhaseDetector(model.weight, names)
    fresh = np.ones(len(names), dtype=bool)
    return [detector.step(sample.truth.wrenches, fresh, PERIOD) for sample in samples]


def standing_joints(contact: BoolArray, limb: BoolArray) -> BoolArray:
    """Joints in stance (m, n), from the feet in contact (m, k) and the limbs' joints (k, n)."""
    on_a_limb = limb.any(axis=0)
    standing = (contact[:, :, None] & limb).any(axis=1)
    return np.where(on_a_limb, standing, np.asarray(contact.any(axis=1))[:, None])


Inputs = tuple[SensorFrame, Attitude, ContactPhase, Dynamics]


def true_inputs(run: SimulatedRun, model: RobotModel) -> Iterator[Inputs]:
    """Arguments of ``Observer.step``, with the true attitude, angular velocity, acceleration and contact phase.

    The run must be one with clean sensors. The last sample is left out: it has no angular acceleration.
    """
    rate = np.array([sample.truth.angular_velocity for sample in run.samples])
    acceleration = np.diff(rate, axis=0) / PERIOD
    for k, angular_acceleration in enumerate(acceleration):
        sample = run.samples[k]
        specific_force = model.rotation_imu_to_base @ sample.imu.specific_force
        attitude = _attitude(sample.truth.rotation_base_to_world, rate[k], angular_acceleration, specific_force)
        yield _frame(sample, k), attitude, run.phases[k], _dynamics(model, sample, attitude)


def bare_inputs(run: SimulatedRun, model: RobotModel) -> Iterator[Inputs]:
    """What the momentum observer needs, straight from the sensors; attitude and angular acceleration are void.

    The wrench of a foot in the air is zero here, whatever the reading: that needs no friction law.
    """
    void = np.full(3, np.nan)
    for k, sample in enumerate(run.samples):
        rate, specific_force = (
            model.rotation_imu_to_base @ reading for reading in (sample.imu.angular_velocity, sample.imu.specific_force)
        )
        attitude = _attitude(np.full((3, 3), np.nan), rate, void, specific_force)
        frame = _frame(sample, k)
        unloaded = replace(frame, wrenches=np.where(run.phases[k].contact[:, None], frame.wrenches, 0.0))
        yield unloaded, attitude, run.phases[k], _dynamics(model, sample, attitude)


def _attitude(rotation: FloatArray, rate: FloatArray, acceleration: FloatArray, specific_force: FloatArray) -> Attitude:
    return Attitude(rotation, rate, acceleration, specific_force, np.zeros((3, 3)), np.zeros((3, 3)))


def _dynamics(model: RobotModel, sample: SimulationSample, attitude: Attitude) -> Dynamics:
    joints = sample.joints
    return model.dynamics(joints.position, joints.velocity, attitude.angular_velocity, attitude.specific_force)


def _frame(sample: SimulationSample, index: int) -> SensorFrame:
    wrenches = np.array([wrench.wrench for wrench in sample.wrenches])
    return SensorFrame(
        stamp_ns=sample.joints.stamp_ns,
        dt=PERIOD if index else 0.0,
        position=sample.joints.position,
        velocity=sample.joints.velocity,
        effort=sample.joints.effort,
        angular_velocity=sample.imu.angular_velocity,
        specific_force=sample.imu.specific_force,
        wrenches=wrenches,
        imu_fresh=True,
        wrench_fresh=np.ones(len(wrenches), dtype=bool),
        readings_per_sample=np.ones(1 + len(wrenches)),
    )
