"""One walk with a feed-forward torque in the loop, and how far the centre of mass was from where it should be."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from benchmarks.compensation.controllers import controller_gains
from benchmarks.compensation.methods import NO_FRICTION, PERIOD, make_method
from friction_estimator.errors import SimulationError
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.simulation import SimulationSample, Simulator, make_noise, make_scenario, with_friction
from friction_estimator.types import FloatArray

NOISE = "paper_std"
STRIDE = 5
"""Every fifth sample is judged."""

STEP_LENGTHS = (0.10, 0.09, 0.11, 0.08, 0.12)
"""Each walk has another one [m], so that a mean over walks does not hang on where single feet happen to settle."""


@dataclass(frozen=True)
class Walk:
    """What one walk was like, one row every 5 ms.

    Attributes
    ----------
    time : (m,) [s]
    wanted, actual : (m, 2) centre of mass in the world, x and y [m]
    over_feet : (m, 2) error of the centre of mass relative to the feet that carry it [m]
    joints : (m, n) error of the joint positions [rad]
    fell : why it ended early, empty when it did not
    """

    time: FloatArray
    wanted: FloatArray
    actual: FloatArray
    over_feet: FloatArray
    joints: FloatArray
    fell: str = ""

    @property
    def root_square_error(self) -> FloatArray:
        """RSE of the centre of mass, x and y (Hashlamon & Erbatur 2014, eq. 70), (m, 2) [m]."""
        return np.abs(self.wanted - self.actual)


def walk(controller: str, method: str, step_length: float, duration: float) -> Walk:
    """Walk as in section 7.1; the torque made from a sample acts in the next period, as on a robot."""
    robot = load_robot("suralp")
    scenario = make_scenario("walk_and_stop", duration)
    scenario = dataclasses.replace(scenario, gait=dataclasses.replace(scenario.gait, step_length=step_length))
    if method == NO_FRICTION:
        scenario = with_friction(scenario, "coulomb_viscous", (0.0, 0.0))
    gains = controller_gains(robot, controller)
    simulator = Simulator(robot.config, robot.urdf_xml, scenario, make_noise(NOISE), gains=gains)
    compute, torque, judged, fell = make_method(method, robot, NOISE), None, [], ""
    for count in range(round(duration / PERIOD)):
        try:
            sample = simulator.step(torque)
        except SimulationError as error:
            fell = str(error)
            break
        torque = compute(sample) if compute is not None else None
        if count % STRIDE == 0:
            judged.append(sample)
    return _walk_of(robot, judged, fell)


def _walk_of(robot: Robot, samples: list[SimulationSample], fell: str) -> Walk:
    model = RobotModel(robot.config, robot.urdf_xml)
    return Walk(
        time=STRIDE * PERIOD * np.arange(len(samples)),
        wanted=np.array([sample.reference.com_in_world[:2] for sample in samples]),
        actual=np.array([sample.truth.com_in_world[:2] for sample in samples]),
        over_feet=np.array([error_over_feet(model, sample) for sample in samples]),
        joints=np.array([sample.reference.position - sample.joints.position for sample in samples]),
        fell=fell,
    )


def error_over_feet(model: RobotModel, sample: SimulationSample) -> FloatArray:
    """Centre of mass relative to the soles, weighted by the load on them, minus the same of the reference posture.

    Where the feet have settled in the world does not matter then. The reference soles are level and straight ahead, so
    their axes are those of the world.

    Returns
    -------
    (2,) x and y [m]
    """
    still, upright = np.zeros(sample.joints.position.size), np.array([0.0, 0.0, 9.81])
    actual = model.dynamics(sample.joints.position, still, np.zeros(3), upright)
    wanted = model.dynamics(sample.reference.position, still, np.zeros(3), upright)
    is_at = (model.centre_of_mass(actual)[0] - actual.foot_position_in_base) @ sample.truth.rotation_base_to_world.T
    arms = model.centre_of_mass(wanted)[0] - wanted.foot_position_in_base
    should_be_at = np.einsum("kji,kj->ki", wanted.foot_rotation_to_base, arms)
    load = np.maximum(sample.truth.wrenches[:, 2], 0.0)
    return np.asarray(load @ (is_at - should_be_at)[:, :2] / max(load.sum(), 1e-9))
