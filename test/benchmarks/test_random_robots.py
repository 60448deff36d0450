"""Random robots: scores of estimates that are known, and friction of the second simulator that obeys MuJoCo's law."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("mujoco", reason="the robots walk in MuJoCo")

from dataclasses import replace

import mujoco
import pinocchio as pin

from benchmarks.random_robots.__main__ import main
from benchmarks.random_robots.mujoco_friction import ElasticGears, MujocoFriction, set_friction, solved_dry_friction
from benchmarks.random_robots.robots import KINDS, MUJOCO, PARTS, SIMULATORS, draw, resized_urdf
from benchmarks.random_robots.scores import HEADING, is_wrong, score, summary
from benchmarks.random_robots.sensors import draw_errors, readings
from benchmarks.random_robots.state_consistency import nees
from benchmarks.random_robots.walks import Walk, Walker
from friction_estimator.io.robot import load_robot
from friction_estimator.simulation.biped import Biped
from friction_estimator.types import ImuSample, JointSample, WrenchSample

DT = 2.5e-4
SLIDER = f"""
<mujoco><option timestep="{DT}" integrator="implicitfast" gravity="0 0 0"/><worldbody><body>
<joint name="hinge" type="hinge" axis="0 0 1"/><geom type="box" size=".1 .1 .1" mass="30"/>
</body></worldbody></mujoco>"""


def one_joint(robot, **fields):
    """The robot with one joint, of coefficients 2 N m and 0.5 N m s/rad."""
    return replace(
        robot, dry=[2.0], viscous=[0.5], shape=[0.0], ripple=0.0, teeth=[], armature=[0.2], stiffness=0.0, **fields
    )


@pytest.fixture
def robot():
    return one_joint(draw(1, MUJOCO), kind="coulomb_viscous")


def slide(robot, torque, steps=4000):
    """Velocity and friction (steps,) of one joint with this torque."""
    model = mujoco.MjModel.from_xml_string(SLIDER)
    data, friction, dofs = mujoco.MjData(model), MujocoFriction(robot), np.array([0])
    model.dof_solref[:], model.dof_solimp[:, :2] = (2e-3, 1.0), 0.9999
    velocities, frictions = np.empty((2, steps))
    for k in range(steps):
        velocities[k] = data.qvel[0]
        form = friction.form(data.qpos.copy(), data.qvel.copy(), np.array([torque]), DT)
        set_friction(model, dofs, form)
        data.qfrc_applied[0] = torque - form.known[0]
        mujoco.mj_step(model, data)
        frictions[k] = (form.known + form.damping * velocities[k] + solved_dry_friction(model, data, dofs))[0]
    return velocities, frictions


def test_a_joint_sticks_below_its_dry_friction_and_slides_with_coulomb_and_viscous_friction_above(robot):
    velocity, friction = slide(robot, 1.5)
    assert np.abs(velocity).max() < 1e-3 and friction[-1] == pytest.approx(1.5, rel=0.01)
    velocity, friction = slide(robot, 3.0)
    assert velocity[-1] > 0.1
    np.testing.assert_allclose(friction[400:], 2.0 + 0.5 * velocity[400:], rtol=0.01)


def test_friction_of_each_kind_is_its_formula_in_both_directions(robot):
    v, tau = np.array([0.4]), np.array([-10.0])

    def slides(kind, shape, direction):
        friction = MujocoFriction(replace(robot, kind=kind, shape=[shape], stribeck_velocity=0.2))
        form = friction.form(np.zeros(1), direction * v, tau, DT)
        return float((form.known + direction * (form.dry + form.damping * v))[0])

    stribeck = 2.0 * (1.0 + 0.5 * np.exp(-4.0)) + 0.5 * 0.4
    assert [slides("stribeck", 1.5, d) for d in (1, -1)] == pytest.approx([stribeck, -stribeck])
    assert [slides("asymmetric", 0.2, d) for d in (1, -1)] == pytest.approx([1.2 * 2.2, -0.8 * 2.2])
    assert [slides("load_dependent", 0.05, d) for d in (1, -1)] == pytest.approx([2.7, -2.7])


def test_a_bristle_is_elastic_at_first_and_slides_at_the_coulomb_torque(robot):
    lugre = MujocoFriction(replace(robot, kind="lugre", shape=[1.0], viscous=[0.0], presliding=1e-3))
    torques = [float(lugre.form(np.zeros(1), np.array([0.1]), np.zeros(1), 1e-4).known[0]) for _ in range(2000)]
    assert torques[1] == pytest.approx(2.0 * 0.1 * 1e-4 / 1e-3, rel=0.02)
    assert torques[-1] == pytest.approx(2.0, rel=1e-3)


def test_an_elastic_gear_holds_its_motor_below_the_dry_friction_and_passes_the_rest_on_above(robot):
    for torque, friction, at_joint in ((1.5, 1.5, 0.0), (5.0, 2.0, 3.0)):
        gears = ElasticGears(replace(robot, stiffness=1e4, play=1e-3), np.zeros(1))
        form = MujocoFriction(robot).form(np.zeros(1), np.zeros(1), np.zeros(1), DT)
        pairs = [gears.step(np.array([torque]), form, np.zeros(1), np.zeros(1), 6e-5) for _ in range(20_000)]
        assert pairs[-1][0][0] == pytest.approx(at_joint, abs=2.0 if at_joint else 1e-6)
        assert pairs[-1][0][0] + pairs[-1][1][0] == pytest.approx(torque, rel=1e-3)
        assert abs(pairs[-1][1][0]) <= friction + 1e-9
        assert abs(gears.position[0]) == pytest.approx(1e-3 + pairs[-1][0][0] / 1e4 if at_joint else 0.0, abs=1e-6)


def test_scores_count_late_samples_and_the_worse_phase():
    time = np.arange(0.0, 12.0, 0.01)
    late, stance = time >= 6.0, np.ones((time.size, 2), bool)
    stance[::4] = False
    truth, sigma = np.full((time.size, 2), 2.0), np.full((time.size, 2), 0.1)
    estimate = truth + 0.1
    estimate[~late] = 100.0
    estimate[::4, 1] = 2.3  # three sigma, in swing alone
    record = score(time, estimate, sigma, truth, stance)
    assert record["error"] == pytest.approx([0.05, np.sqrt(0.75 * 0.01 + 0.25 * 0.09) / 2.0])
    assert record["nees"] == pytest.approx([1.0, 3.0])
    assert record["coverage"] == [1.0, 0.0] and record["coverage_stance"] == [1.0, 1.0]
    assert is_wrong(record).tolist() == [False, True]
    estimate[:, 0] = np.nan
    assert is_wrong(score(time, estimate, sigma, truth, stance)).tolist() == [True, True]


def test_the_summary_has_the_shares_of_wrong_joints_and_of_right_ones_that_are_not_valid():
    record = {
        "error": [0.1, 0.3, 0.3, 0.1], "coverage": [1.0, 1.0, 0.5, 0.9], "nees": [1.0, 1.0, 4.0, 1.0],
        "problems": [["sensor"], ["sensor"], [], []],
    }  # fmt: skip
    cells = dict(zip(HEADING, summary("all", [record, record]), strict=True))
    assert (cells["joints"], cells["low coverage"], cells["large error"], cells["wrong"]) == (
        "8",
        "25.0%",
        "50.0%",
        "50.0%",
    )
    assert cells["right joints not valid"] == "50.0%"
    assert len(summary("none", [])) == len(HEADING)


def test_a_seed_is_one_robot_and_ten_seeds_have_every_kind_in_both_simulators():
    assert draw(3, MUJOCO) == draw(3, MUJOCO) and draw(3, MUJOCO).mass != draw(5, MUJOCO).mass
    for simulator in SIMULATORS:
        robots = [draw(seed, simulator) for seed in range(10)]
        assert {robot.kind for robot in robots} == set(KINDS)
        assert all(25.0 <= robot.mass <= 130.0 for robot in robots)
    first, again = draw(3, MUJOCO), draw(3, MUJOCO, attempt=1)
    assert again.dry == pytest.approx([0.6 * dry for dry in first.dry]) and again.rates == first.rates


def test_a_robot_of_another_size_has_its_masses_lengths_and_inertias():
    xml = load_robot("suralp").urdf_xml
    small, large = (pin.buildModelFromXML(text) for text in (xml, resized_urdf(xml, 2.0, 1.5)))
    np.testing.assert_allclose(large.inertias[3].mass, 2.0 * small.inertias[3].mass)
    np.testing.assert_allclose(large.inertias[3].lever, 1.5 * small.inertias[3].lever)
    np.testing.assert_allclose(large.inertias[3].inertia, 4.5 * small.inertias[3].inertia)
    np.testing.assert_allclose(large.jointPlacements[4].translation, 1.5 * small.jointPlacements[4].translation)


def test_sensors_read_at_their_rates_with_the_delay_gain_and_tilt_that_were_drawn():
    time = np.arange(2000) * 1e-3
    ramp = np.repeat(time[:, None], 12, axis=1)
    feet = np.repeat(time[:, None], 12, axis=1).reshape(-1, 2, 6)
    gravity = np.tile((0.0, 0.0, 9.81), (2000, 1))
    drawn = draw(1, MUJOCO).corrected(*PARTS)
    exact = replace(
        drawn, rates=(500, 200, 100), bits=20, velocity_cutoff=60.0, effort_std=0.0, wrench_delay=2.5e-3,
        effort_delay=2e-3, tilt=0.05, specific_force_std=0.0, force_std=0.0,
    )  # fmt: skip
    walk = Walk(exact, "", ("joint",) * 12, ramp, np.ones_like(ramp), ramp, ramp, np.zeros_like(gravity), gravity, feet)
    found, stamps, rows = readings(walk, exact, draw_errors(exact))
    joints, imu, wrenches = (
        [one for one in found if isinstance(one, kind)] for kind in (JointSample, ImuSample, WrenchSample)
    )
    assert (len(joints), len(imu), len(wrenches)) == (1000, 400, 400)
    assert [one.stamp_ns for one in joints] == stamps.tolist() and [one.stamp_ns for one in found] == sorted(
        one.stamp_ns for one in found
    )
    last = rows[-1]
    np.testing.assert_allclose(joints[-1].position, time[last], atol=np.pi / 2**20 * 1.01)
    np.testing.assert_allclose(joints[-1].velocity, 1.0, atol=0.01)
    np.testing.assert_allclose(joints[-1].effort, time[last] - 2e-3)
    np.testing.assert_allclose(wrenches[-1].wrench, 1.990 - 2.5e-3)
    angle = np.arccos(imu[0].specific_force[2] / 9.81)
    assert 0.0 < angle <= 0.05 + 1e-9 and np.linalg.norm(imu[0].specific_force) == pytest.approx(9.81)


def test_normalised_errors_of_a_right_covariance_are_one_and_a_constraint_takes_a_state_away():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((3, 3))
    root -= root.mean(axis=0)  # errors whose sum is zero
    found = [nees(root @ rng.standard_normal(3), root @ root.T) for _ in range(4000)]
    assert {rank for _, rank in found} == {2}
    assert np.mean([value for value, _ in found]) == pytest.approx(1.0, rel=0.05)
    assert nees(np.array([2.0, 5.0]), np.diag([1.0, 0.0])) == (4.0, 1)  # a state that is known does not count


def test_robots_whose_records_are_in_the_file_are_not_made_anew(tmp_path, capsys):
    records, walks = tmp_path / "records.jsonl", tmp_path / "walks"
    scores = {"error": [0.1, 0.5], "coverage": [1.0, 1.0], "nees": [1.0, 1.0]}
    fields = {**scores, "problems": [[], ["sensor"]]}
    names = {"right": [], "set": {"kalman.window": 0.02}}
    robots = ({"seed": seed, "simulator": SIMULATORS[seed % 2], "kind": KINDS[0]} for seed in range(2))
    records.write_text("".join(json.dumps({**robot, **names, **fields}) + "\n" for robot in robots))
    given = ["--robots", "2", "--walks", str(walks), "--records", str(records), "--set", "kalman.window=0.02"]
    assert main(given) == 0
    out = capsys.readouterr().out
    assert "| all | 2 | 4 | 0.0% | 50.0% | 50.0% | 0.0% |" in out
    assert "| mujoco | 1 | 2 |" in out and not list(walks.iterdir())


def test_friction_of_the_second_simulator_is_what_the_inverse_dynamics_leave_of_the_motor_torques():
    """Newton and Euler on the recorded signals, driven by the IMU, with the true URDF."""
    walker = Walker(replace(draw(17, MUJOCO), start=0.3))
    rows = [walker.step(k) for k in range(-200, 700)][200:]
    position, velocity, torque, friction, imu, wrenches = (np.array(column) for column in zip(*rows, strict=True))
    config = walker.robot.true_config()
    model = Biped(config, walker.urdf).model
    data, body = model.createData(), model.frames[model.getFrameId(config.imu.frame)].placement
    model.gravity.linear = np.zeros(3)
    force, rate = imu[:, :3] @ body.rotation.T, imu[:, 3:] @ body.rotation.T
    turn, acceleration = (np.gradient(values, 1e-3, axis=0) for values in (rate, velocity))
    errors = []
    for k in range(350, 690, 7):
        q, v, a = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        q[7:], v[3:6], v[6:] = position[k], rate[k], velocity[k]
        lever = np.cross(turn[k], body.translation) + np.cross(rate[k], np.cross(rate[k], body.translation))
        a[:3], a[3:6], a[6:] = force[k] - lever, turn[k], acceleration[k]
        needed = pin.rnea(model, data, q, v, a)
        for foot, wrench in zip(config.feet, wrenches[k], strict=True):
            needed -= pin.computeFrameJacobian(model, data, q, model.getFrameId(foot.frame), pin.LOCAL).T @ wrench
        errors.append(torque[k] - needed[6:] - friction[k])
    assert np.abs(friction).max() > 0.5
    assert np.median(np.abs(errors), axis=0).max() < 0.02
