"""Injected friction: Table I, any law, per joint, changing in time."""

import re
from dataclasses import replace

import numpy as np
import pytest

from friction_estimator.errors import SimulationError
from friction_estimator.laws import law_names, make_law
from friction_estimator.simulation import (
    TABLE_I,
    FrictionSetting,
    Gait,
    JointFriction,
    Simulator,
    make_noise,
    make_scenario,
)
from friction_estimator.simulation.friction import COMPILED_LAWS, InjectedFriction

LEGS = [[f"l{k}" for k in range(6)], [f"r{k}" for k in range(6)]]
JOINTS = LEGS[0] + LEGS[1] + ["neck"]


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
    setting = FrictionSetting(joints=(("r3", JointFriction("coulomb_viscous", (2.0, 0.5))),))
    friction = InjectedFriction([setting], JOINTS, LEGS).torque(np.full(13, 2.0), np.zeros(13))
    assert friction[JOINTS.index("neck")] == 0.0
    assert friction[JOINTS.index("r3")] == pytest.approx(3.0)
    assert friction[JOINTS.index("l3")] == pytest.approx(0.3 + 1.8)


def test_settings_take_over_at_their_start():
    low, high = (FrictionSetting(t, (JointFriction("coulomb_viscous", (c, 0.0)),) * 6) for t, c in ((0, 1), (2, 5)))
    friction = InjectedFriction([high, low], JOINTS, LEGS)
    seen = []
    for time in (0.0, 1.999, 2.0, 3.0):
        friction.advance(time)
        seen.append(friction.torque(np.ones(13), np.zeros(13))[0])
    assert seen == [1.0, 1.0, 5.0, 5.0]


def test_scenario_friction_change_doubles_the_dry_part_only():
    before, after = make_scenario("friction_change", 30.0).friction
    assert after.start == 10.0
    assert after.leg[0].parameters == (1.4, 100.0, 10.0, 1.2, 100.0, 0.9)
    assert before.leg == TABLE_I


def test_unknown_law_joint_or_parameter_count_is_refused_by_name():
    law = law_names()[0]
    with pytest.raises(SimulationError, match=law):
        InjectedFriction([FrictionSetting(leg=(JointFriction("butter", (1.0,)),) * 6)], JOINTS, LEGS)
    with pytest.raises(SimulationError, match="elbow"):
        InjectedFriction([FrictionSetting(joints=(("elbow", TABLE_I[0]),))], JOINTS, LEGS)
    with pytest.raises(SimulationError, match="takes 2 parameters"):
        InjectedFriction([FrictionSetting(leg=(JointFriction("coulomb_viscous", (1.0,)),) * 6)], JOINTS, LEGS)


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
    limit = np.array(setting.leg_stiction * 2)
    samples = recorded("friction_stiction", 2.5)
    velocity = np.array([sample.joints.velocity for sample in samples])
    dry = np.array([sample.truth.friction for sample in samples]) - 0.9 * velocity
    assert np.all(np.abs(dry) < limit + 1e-6)
    moving = np.abs(velocity) > 0.05
    assert moving.any(axis=0).all()
    np.testing.assert_allclose(dry[moving], (np.sign(velocity) * limit)[moving], atol=1e-6)


def test_stiction_of_the_wrong_size_or_sign_is_refused():
    for wrong in ((1.0, 2.0), (1.0, -1.0, 1.0, 1.0, 1.0, 1.0)):
        with pytest.raises(SimulationError, match="leg_stiction must be 6 torques"):
            InjectedFriction([FrictionSetting(leg_stiction=wrong)], JOINTS, LEGS)


def test_steep_friction_does_not_make_light_joints_chatter(robot):
    """An eighth of the mass with the same friction: a joint would otherwise jump by 0.27 rad/s in a millisecond."""
    light = re.sub(r'<mass value="([0-9.]+)"', lambda m: f'<mass value="{float(m[1]) / 8.0}"', robot.urdf_xml)
    light = re.sub(r'(i[xyz]{2})="([-0-9.]+)"', lambda m: f'{m[1]}="{float(m[2]) / 8.0}"', light)
    simulator = Simulator(robot.config, light, make_scenario("walk", 1.3), make_noise("clean"))
    velocity = [simulator.step().joints.velocity for _ in range(1300)]
    assert np.abs(np.diff(velocity, axis=0)).max() < 0.15
