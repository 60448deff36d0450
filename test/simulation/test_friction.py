"""Injected friction: Table I, any law, per joint, changing in time."""

import numpy as np
import pytest

from friction_estimator.core.exceptions import SimulationError
from friction_estimator.core.friction import law_names
from friction_estimator.simulation import TABLE_I, FrictionSetting, JointFriction, make_scenario
from friction_estimator.simulation.friction import InjectedFriction

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
