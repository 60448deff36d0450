"""One simulated experiment, as arrays: what every observer of the same case, sensors and seed is given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.base.contact_phase import ContactPhaseDetector
from friction_estimator.config import Config
from friction_estimator.errors import SimulationError
from friction_estimator.io.robot import Robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.simulation import PERIOD_NS, Scenario, SimulationSample, Simulator, make_noise
from friction_estimator.types import BoolArray, ContactPhase, FloatArray

PERIOD = PERIOD_NS * 1e-9
"""Of the simulated sensors [s]."""


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """What the sensors said, and the truth.

    Attributes
    ----------
    scenario : what happened
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
    """Let the simulated robot do what the scenario says.

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
    detector = ContactPhaseDetector(config.contact_phase, model.weight, names)
    fresh = np.ones(len(names), dtype=bool)
    return [detector.step(sample.truth.wrenches, fresh, PERIOD) for sample in samples]


def standing_joints(contact: BoolArray, limb: BoolArray) -> BoolArray:
    """Joints in stance (m, n), from the feet in contact (m, k) and the limbs' joints (k, n)."""
    on_a_limb = limb.any(axis=0)
    standing = (contact[:, :, None] & limb).any(axis=1)
    return np.where(on_a_limb, standing, np.asarray(contact.any(axis=1))[:, None])
