"""Claims about the footsteps after a collision: the simulated robot takes them from the middle of its walk."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from friction_estimator.collision.reaction import FootstepPlanner, Footsteps
from friction_estimator.errors import ConfigError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.robot import load_robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import FloatArray

pytest.importorskip("mujoco", reason="MuJoCo is not installed")

from friction_estimator.simulation import SimulationSample, Simulator, make_noise, make_scenario
from friction_estimator.simulation.footsteps import FootPose

ROBOT = load_robot("suralp", {"observer": "momentum"})
MODEL = RobotModel(ROBOT.config, ROBOT.urdf_xml)
LENGTH = 0.1
STANDS = 5.5
"""All footsteps are done this long after the collision [s]."""


class Walk:
    """A walk up to a moment, whose estimates the planner has seen."""

    def __init__(self, until: float) -> None:
        scenario = make_scenario("walk", until + STANDS)
        self.simulator = Simulator(ROBOT.config, ROBOT.urdf_xml, scenario, make_noise("realistic"))
        estimator, self.planner = Estimator(ROBOT.config, ROBOT.urdf_xml), FootstepPlanner(MODEL, LENGTH)
        self.soles: list[FloatArray] = []
        while self.simulator.time < until:
            sample = self.simulator.step()
            for wrench in sample.wrenches:
                estimator.add_wrench(wrench)
            estimator.add_imu(sample.imu)
            for self.estimate in estimator.add_joints(sample.joints):
                self.planner.step(self.estimate)
            self.soles.append(soles(sample))

    def go(self, footsteps: Footsteps) -> tuple[FloatArray, float]:
        """Take the footsteps: where the soles stand in the end, and the largest tilt of the trunk [rad]."""
        turns = np.arctan2(footsteps.rotation[:, 1, 0], footsteps.rotation[:, 0, 0]).tolist()
        places = footsteps.position[:, :2].tolist()
        self.simulator.walk_to(footsteps.standing, [FootPose(*xy, yaw) for xy, yaw in zip(places, turns, strict=True)])
        tilt = 0.0
        while self.simulator.time < self.simulator.duration - 1e-9:
            sample = self.simulator.step()
            tilt = max(tilt, float(np.arccos(min(sample.truth.rotation_base_to_world[2, 2], 1.0))))
        return soles(sample), tilt


def soles(sample: SimulationSample) -> FloatArray:
    """True places of both soles in the world (2, 3)."""
    at = MODEL.dynamics(sample.joints.position, sample.joints.velocity, np.zeros(3), np.zeros(3))
    return sample.truth.position_base_in_world + at.foot_position_in_base @ sample.truth.rotation_base_to_world.T


@pytest.fixture
def walk(request: pytest.FixtureRequest) -> Walk:
    return Walk(request.param)


@pytest.mark.parametrize("walk", [3.65], indirect=True)
def test_the_robot_goes_back_to_footprints_on_which_it_has_stood(walk: Walk) -> None:
    footsteps = walk.planner.rewind(walk.estimate)
    assert footsteps is not None and len(footsteps.position) == 3
    end, tilt = walk.go(footsteps)
    assert tilt < np.radians(1.0)
    before = np.array(walk.soles)
    for foot in (0, 1):
        assert end[foot, 0] < before[-1, foot, 0] - LENGTH
        assert np.linalg.norm(before[:, foot] - end[foot], axis=1).min() < 0.01


@pytest.mark.parametrize(
    ("walk", "force"),
    [(2.2, (-80.0, 0.0, 0.0)), (2.2, (0.0, 80.0, -300.0)), (2.2, (0.0, -80.0, 0.0))],
    indirect=["walk"],
)
def test_the_robot_steps_along_the_force_and_stands_with_its_feet_side_by_side(
    walk: Walk, force: tuple[float, float, float]
) -> None:
    footsteps = walk.planner.compliant(walk.estimate, np.array(force))
    assert footsteps is not None and len(footsteps.position) == 3
    end, tilt = walk.go(footsteps)
    assert tilt < np.radians(1.0)
    moved = (end - walk.soles[-1])[footsteps.standing, :2]
    along = np.array(force[:2]) / np.hypot(*force[:2])
    assert moved @ along > 0.9 * LENGTH and abs(moved @ along[::-1]) < 0.03
    assert abs(end[0, 0] - end[1, 0]) < 0.01 and abs(end[0, 1] - end[1, 1]) == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize("walk", [2.55], indirect=True)
def test_a_foot_that_is_about_to_land_lands_where_it_is(walk: Walk) -> None:
    """It has a twelfth of its swing left, in which it may go a sixth of a step."""
    back = walk.planner.rewind(walk.estimate)
    away = walk.planner.compliant(walk.estimate, np.array([-80.0, 0.0, 0.0]))
    assert back is not None and away is not None
    now = walk.soles[-1][1 - back.standing] - walk.soles[-1][back.standing]
    for footsteps in (back, away):
        assert np.hypot(*(footsteps.position[0] - now)[:2]) < 0.5 * LENGTH
    assert np.allclose(back.position[1], 0.0)  # the other foot steps in place, and only then both go back


def test_a_robot_at_its_start_or_in_the_air_gets_no_footsteps() -> None:
    walk = Walk(0.4)
    flying = replace(walk.estimate, phase=replace(walk.estimate.phase, contact=np.zeros(2, dtype=bool)))
    for estimate in (walk.estimate, flying):
        walk.planner.step(estimate)
        assert walk.planner.rewind(estimate) is None and walk.planner.compliant(estimate, np.ones(3)) is None


def test_footsteps_need_two_feet() -> None:
    config = replace(ROBOT.config, feet=ROBOT.config.feet[:1])
    with pytest.raises(ConfigError, match="need two feet, and this robot has 1"):
        FootstepPlanner(RobotModel(config, ROBOT.urdf_xml), LENGTH)
