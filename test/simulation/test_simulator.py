"""The robot walks, stands, squats, is pushed, and falls with a clear message."""

import re
from dataclasses import replace

import numpy as np
import pytest

from friction_estimator.errors import SimulationError
from friction_estimator.simulation import Push, Scenario, Simulator, make_noise, make_scenario, scenario_names
from friction_estimator.simulation.footsteps import Gait

WEIGHT = 110.0 * 9.81


def test_the_robot_walks_forward_for_six_seconds_and_stays_upright(walk):
    end = walk[-1].truth
    assert 0.3 < end.position_base_in_world[0] < 0.5
    assert min(sample.truth.rotation_base_to_world[2, 2] for sample in walk) > np.cos(0.02)


def test_swing_knees_reach_the_speed_that_makes_friction_visible(walk):
    assert 2.0 < max(np.abs(sample.joints.velocity).max() for sample in walk) < 3.5


def test_stamps_advance_by_exactly_one_millisecond_and_agree_between_sensors(robot):
    scenario = make_scenario("stand", 0.1)
    simulator = Simulator(robot.config, robot.urdf_xml, scenario, make_noise("clean"), start_ns=7_000_000_123)
    for k in range(5):
        sample = simulator.step()
        stamps = {sample.joints.stamp_ns, sample.imu.stamp_ns, sample.truth.stamp_ns}
        stamps |= {wrench.stamp_ns for wrench in sample.wrenches}
        assert stamps == {7_000_000_123 + k * 1_000_000}


def test_the_ground_carries_the_weight_of_the_standing_robot(make_simulator):
    simulator = make_simulator("stand", 1.0)
    truth = [simulator.step() for _ in range(1000)][-1].truth
    np.testing.assert_allclose(truth.wrenches[:, :3].sum(axis=0), [0.0, 0.0, WEIGHT], atol=0.1)
    np.testing.assert_allclose(truth.wrenches[:, 2], 0.5 * WEIGHT, atol=0.1)


def test_the_imu_of_the_standing_robot_reads_gravity_upward(make_simulator):
    sample = make_simulator("stand", 0.1).step()
    np.testing.assert_allclose(sample.imu.specific_force, [0.0, 0.0, 9.81], atol=0.01)


def test_equal_seeds_give_identical_runs_and_other_seeds_other_noise(make_simulator):
    def record(seed):
        simulator = make_simulator("walk", 1.0, "realistic", seed)
        samples = [simulator.step() for _ in range(400)]
        return np.array([np.concatenate([s.joints.velocity, s.wrenches[0].wrench, s.truth.friction]) for s in samples])

    first = record(3)
    np.testing.assert_array_equal(first, record(3))
    assert not np.array_equal(first, record(4))


@pytest.mark.parametrize("name", scenario_names())
def test_every_scenario_stays_up_for_its_first_seconds(make_simulator, name):
    simulator = make_simulator(name, 1.2, "paper_std")
    while simulator.time < simulator.duration:
        simulator.step()
    with pytest.raises(SimulationError, match="is over"):
        simulator.step()


def test_a_push_in_the_back_is_felt_and_survived(robot, walk):
    scenario = replace(make_scenario("walk", 6.0), pushes=(Push(2.3, 0.08, (150.0, 0.0, 0.0)),))
    pushed = Simulator(robot.config, robot.urdf_xml, scenario, make_noise("clean"))
    gaps = [pushed.step().truth.linear_velocity[0] - quiet.truth.linear_velocity[0] for quiet in walk[:5000]]
    assert gaps[2299] == 0.0
    assert 0.03 < max(gaps[2300:2500]) < 0.3
    assert abs(gaps[-1]) < 0.02


def test_a_fall_is_reported_with_its_time(robot):
    scenario = Scenario("shove", 5.0, pushes=(Push(0.5, 0.5, (0.0, 900.0, 0.0)),))
    simulator = Simulator(robot.config, robot.urdf_xml, scenario, make_noise("clean"))
    with pytest.raises(SimulationError, match=r"fell at t = \d\.\d{3} s in the scenario 'shove'"):
        for _ in range(5000):
            simulator.step()


def test_another_biped_with_other_names_order_and_legs_walks_too(robot):
    urdf = robot.urdf_xml.replace('xyz="0 0 -0.28"', 'xyz="0 0 -0.33"').replace('xyz="0 0 -0.27"', 'xyz="0 0 -0.3"')
    urdf = re.sub(r'"l_(\w+)"', r'"port_\1"', urdf)
    urdf = re.sub(r'"r_(\w+)"', r'"starboard_\1"', urdf)
    feet = (
        replace(robot.config.feet[1], name="b", frame="starboard_sole"),
        replace(robot.config.feet[0], name="a", frame="port_sole"),
    )
    joints = ("starboard_knee", "port_hip_roll")
    config = replace(robot.config, feet=feet, robot=replace(robot.config.robot, joints=joints))
    simulator = Simulator(config, urdf, make_scenario("walk", 3.0), make_noise("clean"))
    samples = [simulator.step() for _ in range(3000)]
    assert simulator.joint_names == joints
    assert [leg[3] for leg in simulator.leg_joint_names] == ["starboard_knee", "port_knee"]
    assert samples[800].truth.contact.tolist() == [False, True]
    assert max(abs(sample.joints.velocity[0]) for sample in samples[500:1100]) > 1.5
    assert samples[-1].truth.position_base_in_world[2] > 0.68


def test_unknown_names_are_refused_and_the_valid_ones_listed():
    with pytest.raises(SimulationError, match="'in_place'.*'walk'"):
        make_scenario("moonwalk")
    with pytest.raises(SimulationError, match="'left_knee'"):
        Push(1.0, 0.1, (1.0, 0.0, 0.0), "nose")
    with pytest.raises(SimulationError, match="lasts more than 0"):
        make_scenario("walk", -1.0)


def test_steps_that_the_legs_cannot_make_are_refused_at_once(robot):
    scenario = Scenario("splits", 5.0, Gait(step_length=0.9))
    with pytest.raises(SimulationError, match="shorten the steps"):
        Simulator(robot.config, robot.urdf_xml, scenario, make_noise("clean"))


def test_feedforward_reaches_the_joints_and_the_reported_effort(make_simulator):
    helped, alone = make_simulator("stand", 0.5), make_simulator("stand", 0.5)
    push = np.zeros(12)
    push[3] = 5.0
    first, other = helped.step(push), alone.step()
    np.testing.assert_allclose(first.joints.effort - other.joints.effort, push, atol=1e-12)
    second, other = helped.step(push), alone.step()
    assert second.joints.velocity[3] > other.joints.velocity[3] + 1e-4


def test_feedforward_of_the_true_friction_keeps_the_centre_of_mass_nearer_to_its_reference(make_simulator, walk):
    """Friction compensation of Hashlamon & Erbatur 2014, section 7.4, by the truth of the sample before."""

    def error(samples):
        errors = [sample.truth.com_in_world - sample.reference.com_in_world for sample in samples]
        return np.sqrt(np.mean(np.square(errors), axis=0))

    simulator = make_simulator()
    helped = [simulator.step()]
    while len(helped) < 3000:
        helped.append(simulator.step(helped[-1].truth.friction))
    assert np.all(error(helped)[:2] < 0.7 * error(walk[:3000])[:2])


def test_feedforward_of_the_wrong_shape_is_refused(make_simulator):
    simulator = make_simulator("stand", 0.1)
    for wrong in (np.zeros(3), np.full(12, np.nan)):
        with pytest.raises(SimulationError, match="12 finite torques"):
            simulator.step(wrong)


def test_centre_of_mass_of_truth_and_reference_agree_while_standing(make_simulator):
    simulator = make_simulator("stand", 0.2)
    sample = [simulator.step() for _ in range(200)][-1]
    np.testing.assert_allclose(sample.truth.com_in_world, sample.reference.com_in_world, atol=2e-3)
    np.testing.assert_allclose(sample.joints.position, sample.reference.position, atol=0.02)
