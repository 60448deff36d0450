"""Timing of section 7.1, the pendulum, and the legs' inverse kinematics."""

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from friction_estimator.errors import SimulationError
from friction_estimator.simulation.biped import Biped
from friction_estimator.simulation.footsteps import LEFT, RIGHT, Gait, plan_footsteps
from friction_estimator.simulation.walk_plan import WalkPlan, com_from_zmp


@pytest.fixture(scope="module")
def biped(robot):
    return Biped(robot.config, robot.urdf_xml)


def test_single_support_starts_at_half_a_second_on_the_left_foot_and_lasts_600_ms():
    steps = plan_footsteps(Gait(), 0.1, 5.0)
    assert [step.foot for step in steps[:3]] == [RIGHT, LEFT, RIGHT]
    np.testing.assert_allclose([step.start for step in steps[:3]], [0.5, 2.0, 3.5])
    assert {step.duration for step in steps} == {0.6}


def test_the_walk_of_the_paper_stops_at_10_1_seconds():
    last = plan_footsteps(Gait(stop=9.6), 0.1, 100.0)[-1]
    assert last.start + last.duration == pytest.approx(10.1)


@pytest.mark.parametrize("side", [0.05, -0.05])
def test_sideways_the_feet_open_and_close_again_but_never_come_nearer_than_at_rest(side):
    steps = plan_footsteps(Gait(step_length=0.0, step_side=side), 0.1, 12.0)
    assert np.ptp([step.pose.x for step in steps]) == 0.0
    across = {LEFT: 0.1, RIGHT: -0.1}
    widths = []
    for step in steps:
        across[step.foot] = step.pose.y
        widths.append(across[LEFT] - across[RIGHT])
    np.testing.assert_allclose(widths[2::2], 0.2 if side > 0.0 else 0.2 + 2.0 * abs(side))
    np.testing.assert_allclose(widths[3::2], 0.2 + 2.0 * abs(side) if side > 0.0 else 0.2)
    assert across[LEFT] == pytest.approx(
        0.1 + side * 2 * sum(step.foot == (LEFT if side > 0 else RIGHT) for step in steps)
    )


@pytest.mark.parametrize(("time", "feet"), [(0.25, 2), (0.8, LEFT), (1.6, 2), (2.3, RIGHT), (3.1, 2), (3.8, LEFT)])
def test_contacts_of_the_simulated_feet_follow_the_plan(walk_contact, time, feet):
    expected = [True, True] if feet == 2 else [feet == LEFT, feet == RIGHT]
    assert walk_contact[round(time * 1000)].tolist() == expected


def test_plan_starts_at_rest_and_shares_the_whole_load(biped):
    plan = WalkPlan(Gait(), biped.dimensions(0.927), 10.0)
    start = plan.sample(np.array([-1e-3, 0.0, 1e-3]))
    assert np.abs(start.base[2, :2] - start.base[0, :2]).max() / 2e-3 < 3e-3
    share = plan.sample(np.arange(0.0, 10.0, 0.01)).load_share
    np.testing.assert_allclose(share.sum(axis=1), 1.0)
    assert share.min() >= 0.0


def test_centre_of_mass_fulfils_the_pendulum_equation():
    rng = np.random.default_rng(0)
    period, omega = 0.01, 3.9
    zmp = np.cumsum(rng.standard_normal((400, 2)), axis=0) * 1e-3
    com = com_from_zmp(zmp, period, omega)
    acceleration = (com[2:] - 2.0 * com[1:-1] + com[:-2]) / period**2
    np.testing.assert_allclose(com[1:-1] - acceleration / omega**2, zmp[1:-1], atol=1e-12)


angle = st.floats(-0.4, 0.4)


@settings(max_examples=60, deadline=None)
@given(st.tuples(angle, angle, angle, st.floats(0.05, 1.8), angle, angle), st.tuples(angle, angle, angle))
def test_inverse_kinematics_returns_the_angles_that_made_the_pose(biped, angles, attitude):
    model, data = biped.model, biped.model.createData()
    rotation = pin.rpy.rpyToMatrix(*attitude)
    q = pin.neutral(model)
    q[:3], q[3:7] = (0.3, -0.2, 0.7), pin.Quaternion(rotation).coeffs()
    for leg in biped.legs:
        q[7 + leg.columns] = angles
        pin.framesForwardKinematics(model, data, q)
        sole = data.oMf[leg.frame_id]
        found = leg.inverse(q[None, :3], rotation[None], sole.translation[None], sole.rotation[None])
        np.testing.assert_allclose(found[0], angles, atol=1e-7)


def test_a_sole_out_of_reach_is_refused(biped):
    far = np.array([[0.0, 0.0, 2.0]])
    with pytest.raises(SimulationError, match="the leg reaches 0.550 m"):
        biped.legs[0].inverse(far, np.eye(3)[None], np.zeros((1, 3)), np.eye(3)[None])
