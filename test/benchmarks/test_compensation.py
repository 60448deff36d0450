"""Friction compensation in closed loop: the walk of the paper comes nearer to its plan."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("mujoco", reason="the walk is simulated with MuJoCo")

from benchmarks.compensation.__main__ import controller_table, summary
from benchmarks.compensation.walks import (
    EXACT,
    NONE,
    OURS,
    PERIOD,
    PUBLISHED,
    Walk,
    error_over_feet,
    published_torque_loop,
    walk,
)
from friction_estimator.simulation import Simulator, make_noise, make_scenario

DURATION = 4.0


@pytest.fixture(scope="module")
def without() -> Walk:
    return walk(OURS, NONE, 0.1, DURATION)


@pytest.fixture(scope="module")
def with_exact_law() -> Walk:
    return walk(OURS, EXACT, 0.1, DURATION)


def test_a_law_that_is_exactly_known_is_cancelled(without: Walk, with_exact_law: Walk) -> None:
    left = summary([with_exact_law]) / summary([without])
    assert left[4] < 0.2  # joint errors
    assert (left[:4] < 0.6).all()  # centre of mass, in the world and over the feet


def test_a_law_learned_on_the_way_gains_more_than_the_ten_percent_of_the_paper(without: Walk) -> None:
    """In the joints: where single feet settle moves the centre of mass of one walk by more."""
    left = summary([walk(OURS, "momentum, measured", 0.1, DURATION)]) / summary([without])
    assert left[4] < 0.9


def test_the_published_gains_carry_the_robot_with_the_feedforward_of_the_plan() -> None:
    run = walk(PUBLISHED, NONE, 0.1, DURATION)
    assert run.fell == "" and run.root_square_error.max() < 0.02


def test_the_published_torque_loop_is_a_low_pass_of_the_estimate() -> None:
    loop = published_torque_loop(lambda _: np.ones(12))
    torques = [loop(None) for _ in range(500)]
    assert torques[-1][0] == pytest.approx(1.0 - np.exp(-2.0 * 500 * PERIOD), abs=1e-3)
    assert torques[-1][11] == pytest.approx(1.0 - np.exp(-4.0 * 500 * PERIOD), abs=1e-3)


def test_error_over_the_feet_is_how_far_the_ankles_lean(robot, model) -> None:
    simulator = Simulator(robot.config, robot.urdf_xml, make_scenario("stand", 0.1), make_noise("clean"))
    sample = simulator.step()
    assert np.abs(error_over_feet(model, sample)).max() < 1e-4
    names = model.joint_names
    sample.reference.position[[names.index("l_ankle_pitch"), names.index("r_ankle_pitch")]] += 0.01
    lean = error_over_feet(model, sample)
    assert abs(lean[0]) == pytest.approx(0.01 * sample.truth.com_in_world[2], rel=0.2) and abs(lean[1]) < 1e-4


def test_the_table_has_the_gain_of_each_method_and_the_falls(without: Walk, with_exact_law: Walk) -> None:
    fallen = Walk(*[np.zeros((1, 2))] * 5, fell="the robot fell")
    text = "\n".join(controller_table({NONE: [without], EXACT: [with_exact_law], "x": [fallen]}))
    assert "| x | fell in 1 of 1 walks |" in text
    gain = 100.0 * (1.0 - summary([with_exact_law])[4] / summary([without])[4])
    assert f"| {gain:.0f} |" in text
