"""Injected friction: Table I, any law, per joint, changing in time."""

import re
from dataclasses import replace

import numpy as np
import pytest

from friction_estimator.errors import ConfigError, SimulationError
from friction_estimator.laws import law_names, make_law
from friction_estimator.simulation import (
    TABLE_I,
    FrictionSetting,
    Gait,
    ParametrisedLaw,
    Simulator,
    make_noise,
    make_scenario,
)
from friction_estimator.simulation.friction import COMPILED_LAWS, InjectedFriction

LEGS = [[f"l{k}" for k in range(6)], [f"r{k}" for k in range(6)]]
JOINTS = LEGS[0] + LEGS[1] + ["neck"]
DRY = ParametrisedLaw("coulomb_viscous", (2.0, 0.5))


def at_speed(friction, velocity, dt=1e-3, position=0.0):
    """Torques (13,) when all joints have this velocity and no load."""
    return friction.torque(np.full(13, position), np.full(13, velocity), np.zeros(13), dt)


def test_friction_of_the_walk_is_equation_56_at_the_sampled_velocity(walk):
    gammas = np.array([joint.parameters for joint in TABLE_I] * 2)
    g1, g2, g3, g4, g5, g6 = gammas.T
    for sample in walk[::500]:
        v = sample.joints.velocity
        expected = g1 * (np.tanh(g2 * v) - np.tanh(g3 * v)) + g4 * np.tanh(g5 * v) + g6 * v
        np.testing.assert_allclose(sample.truth.friction, expected, atol=1e-12)


def test_friction_never_does_positive_work_on_the_joints(walk):
    for sample in walk:
        assert np.all(sample.truth.friction * sample.joints.velocity >= 0.0)


@pytest.mark.parametrize("name", COMPILED_LAWS)
def test_a_compiled_law_is_the_registered_one(name):
    law, rng = make_law(name), np.random.default_rng(0)
    parameters, velocity, load = rng.uniform(0.1, 50.0, (13, len(law.parameter_names))), *rng.standard_normal((2, 13))
    expected = law.torque(parameters, velocity, load)
    np.testing.assert_allclose(COMPILED_LAWS[name](parameters, velocity, load), expected, rtol=1e-12, atol=1e-12)


def test_unnamed_joints_are_frictionless_and_named_ones_override_the_leg():
    setting = FrictionSetting(joints=(("r3", ParametrisedLaw("coulomb_viscous", (2.0, 0.5))),))
    friction = at_speed(InjectedFriction([setting], JOINTS, LEGS), 2.0)
    assert friction[JOINTS.index("neck")] == 0.0
    assert friction[JOINTS.index("r3")] == pytest.approx(3.0)
    assert friction[JOINTS.index("l3")] == pytest.approx(0.3 + 1.8)
    others = replace(setting, others=ParametrisedLaw("coulomb_viscous", (1.0, 0.5)))
    friction[JOINTS.index("neck")] = 2.0
    np.testing.assert_array_equal(at_speed(InjectedFriction([others], JOINTS, LEGS), 2.0), friction)


def test_settings_take_over_at_their_start():
    low, high = (FrictionSetting(t, (ParametrisedLaw("coulomb_viscous", (c, 0.0)),) * 6) for t, c in ((0, 1), (2, 5)))
    friction = InjectedFriction([high, low], JOINTS, LEGS)
    seen = []
    for time in (0.0, 1.999, 2.0, 3.0):
        friction.advance(time)
        seen.append(at_speed(friction, 1.0)[0])
    assert seen == [1.0, 1.0, 5.0, 5.0]


def test_scenario_friction_change_doubles_the_dry_part_only():
    before, after = make_scenario("friction_change", 30.0).friction
    assert after.start == 10.0
    assert after.leg[0].parameters == (1.4, 100.0, 10.0, 1.2, 100.0, 0.9)
    assert before.leg == TABLE_I


def test_unknown_law_joint_or_parameter_count_is_refused_by_name():
    law = law_names()[0]
    with pytest.raises(ConfigError, match=law):
        InjectedFriction([FrictionSetting(leg=(ParametrisedLaw("butter", (1.0,)),) * 6)], JOINTS, LEGS)
    with pytest.raises(SimulationError, match="elbow"):
        InjectedFriction([FrictionSetting(joints=(("elbow", TABLE_I[0]),))], JOINTS, LEGS)
    with pytest.raises(SimulationError, match="takes 2 parameters"):
        InjectedFriction([FrictionSetting(leg=(ParametrisedLaw("coulomb_viscous", (1.0,)),) * 6)], JOINTS, LEGS)


def test_stiction_holds_a_resting_joint_and_the_truth_is_what_the_solver_applied(make_simulator):
    standing = replace(make_scenario("friction_stiction", 0.4), gait=Gait(walks=False))
    simulator = make_simulator(standing)
    rest = [simulator.step() for _ in range(100)][-1]
    pull = np.zeros(12)
    pull[0] = 0.6  # hip yaw holds up to 1.5 N m
    held = [simulator.step(pull) for _ in range(100)][-1]
    assert held.truth.friction[0] - rest.truth.friction[0] == pytest.approx(0.6, rel=0.2)  # the feet hold a little too
    assert abs(held.joints.velocity[0]) < 1e-4
    assert abs(held.joints.position[0] - rest.joints.position[0]) < 2e-5
    pull[0] += 40.0
    slipping = [simulator.step(pull) for _ in range(3)][-1]
    assert slipping.truth.friction[0] == pytest.approx(1.5 + 0.9 * slipping.joints.velocity[0], abs=1e-9)


def test_stiction_of_a_walk_is_bounded_and_resists_the_motion(recorded):
    setting = make_scenario("friction_stiction").friction[0]
    limit = np.array([joint.parameters[0] for joint in setting.leg] * 2)
    samples = recorded("friction_stiction", 2.5)
    velocity = np.array([sample.joints.velocity for sample in samples])
    dry = np.array([sample.truth.friction for sample in samples]) - 0.9 * velocity
    assert np.all(np.abs(dry) < limit + 1e-6)
    moving = np.abs(velocity) > 0.05
    assert moving.any(axis=0).all()
    np.testing.assert_allclose(dry[moving], (np.sign(velocity) * limit)[moving], atol=1e-6)


def test_stiction_grows_with_the_load_of_a_resting_joint():
    law = ParametrisedLaw("stribeck_load", (5.0, 7.0, 1.5, 4.0, 0.002))
    friction = InjectedFriction([FrictionSetting(leg=(law,) * 6, sticks=True)], JOINTS, LEGS)
    still, load = np.zeros(13), np.full(13, 100.0)
    assert friction.stiction(still, still, load)[0] == pytest.approx(7.0 + 0.002 * 100.0**2, rel=1e-5)
    assert friction.torque(still, still + 2.0, load, 1e-3)[0] == pytest.approx(4.0 * 2.0)


def test_lugre_friction_builds_up_over_the_presliding_distance_and_is_a_spring_below_it():
    friction = InjectedFriction([FrictionSetting(leg=(DRY,) * 6, presliding=2e-3)], JOINTS, LEGS)
    speed, dt, travelled, torque = 1e-3, 1e-3, [], []
    for step in range(10_000):
        torque.append(at_speed(friction, speed, dt)[0])
        travelled.append(speed * dt * (step + 1))
    expected = 2.0 * (1.0 - np.exp(-np.array(travelled) / 2e-3)) + 0.5 * speed
    np.testing.assert_allclose(torque, expected, rtol=1e-9)
    backward = [at_speed(friction, -speed, dt)[0] for _ in range(10)]
    expected = 2.0 * 2.0 * (1.0 - np.exp(-10 * speed * dt / 2e-3)) + 2.0 * 0.5 * speed
    assert torque[-1] - backward[-1] == pytest.approx(expected, rel=0.01)


def test_ripple_has_its_amplitude_and_number_of_periods_in_a_turn():
    setting = FrictionSetting(leg=(DRY,) * 6, ripple=0.3, ripples_per_turn=60.0)
    friction = InjectedFriction([setting], JOINTS, LEGS)
    turn = np.linspace(0.0, 2.0 * np.pi, 600, endpoint=False)
    torque = np.array([at_speed(friction, 1.0, position=angle)[0] for angle in turn])
    spectrum = np.abs(np.fft.rfft(torque)) / torque.size
    assert spectrum[0] == pytest.approx(2.5)
    assert 2.0 * spectrum[60] == pytest.approx(0.3 * 2.5)


def test_warming_takes_its_part_of_the_viscous_friction_only():
    friction = InjectedFriction([FrictionSetting(leg=(DRY,) * 6, warming=0.4)], JOINTS, LEGS)
    torques = []
    for time in (0.0, 30.0, 60.0, 90.0):
        friction.advance(time)
        torques.append(at_speed(friction, 2.0)[0])
    assert torques == pytest.approx([3.0, 2.8, 2.6, 2.6])


@pytest.mark.parametrize("changes", [{"sticks": True}, {"presliding": 1e-3}])
def test_laws_without_dry_friction_at_rest_cannot_stick(changes):
    with pytest.raises(SimulationError, match="'makkar' has no dry friction at rest"):
        InjectedFriction([FrictionSetting(**changes)], JOINTS, LEGS)


def test_steep_friction_does_not_make_light_joints_chatter(robot):
    """An eighth of the mass with the same friction: a joint would otherwise jump by 0.27 rad/s in a millisecond."""
    light = re.sub(r'<mass value="([0-9.]+)"', lambda m: f'<mass value="{float(m[1]) / 8.0}"', robot.urdf_xml)
    light = re.sub(r'(i[xyz]{2})="([-0-9.]+)"', lambda m: f'{m[1]}="{float(m[2]) / 8.0}"', light)
    simulator = Simulator(robot.config, light, make_scenario("walk", 1.3), make_noise("clean"))
    velocity = [simulator.step().joints.velocity for _ in range(1300)]
    assert np.abs(np.diff(velocity, axis=0)).max() < 0.15
