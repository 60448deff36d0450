"""Claims about the whole path, from raw samples to friction estimates, on an exact swaying motion."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

from friction_estimator.config import config_from_parameters
from friction_estimator.errors import ConfigError, InputError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.types import JointSample
from test.biped import suralp_config
from test.feeding import feed, stacked
from test.pendulum import PENDULUM
from test.sway import DT, sway


@pytest.fixture(scope="module")
def swaying(urdf_xml):
    return list(sway(urdf_xml, 3.0, amplitude=0.02, turn=0.05))


# Without sensor noise the filters need not smooth: what is left is the method.
QUIET = {
    "attitude__acceleration_std": 0.01,
    "attitude__gyro_bias_std": 0.0,
    "attitude__angular_acceleration_cutoff": 300.0,
    "sensors__angular_velocity_std": 1e-6,
}


def run(urdf_xml, instants, **changes):
    estimator = Estimator(suralp_config(**changes), urdf_xml)
    return estimator, feed(estimator, instants) + estimator.flush()


@pytest.fixture(scope="module")
def on_swaying(urdf_xml, swaying):
    """Estimator and estimates of the whole motion, once for each set of changed parameters."""
    return cache(partial(run, urdf_xml, swaying))


def errors(estimates, instants, since=1.5):
    late = [(e, i) for e, i in zip(estimates, instants, strict=True) if e.stamp_ns * 1e-9 > since]
    return np.array([e.friction - i.friction for e, i in late])


def test_every_joint_sample_becomes_one_estimate_at_its_stamp(urdf_xml, swaying):
    _, estimates = run(urdf_xml, swaying[:200])
    assert [e.stamp_ns for e in estimates] == [i.joints.stamp_ns for i in swaying[:200]]


def test_fbse_in_double_support_is_good_to_the_differentiated_gyro(on_swaying, swaying):
    _, estimates = on_swaying(observer="fbse", fbse__base_angular_acceleration="gyro", **QUIET)
    assert all(e.measured.all() for e in estimates[100:])
    assert np.abs(errors(estimates, swaying)).max() < 0.08


def test_printed_fbse_pays_for_the_minimum_norm_when_the_trunk_turns(on_swaying, swaying):
    printed = errors(on_swaying(observer="fbse", **QUIET)[1], swaying)
    gyro = errors(on_swaying(observer="fbse", fbse__base_angular_acceleration="gyro", **QUIET)[1], swaying)
    assert np.sqrt((printed**2).mean()) > 3.0 * np.sqrt((gyro**2).mean())


def test_momentum_observer_is_the_low_passed_truth(urdf_xml, swaying):
    _, estimates = run(urdf_xml, swaying, observer="momentum", momentum__input_hold="trapezoid", **QUIET)
    decay, low_passed, targets = np.exp(-30.0 * DT), np.zeros(12), []
    last = swaying[0].friction
    for instant in swaying:
        low_passed = decay * low_passed + (1 - decay) * 0.5 * (last + instant.friction)
        last = instant.friction
        targets.append(low_passed)
    difference = np.array([e.friction - t for e, t in zip(estimates, targets, strict=True)])[1000:]
    assert np.abs(difference).max() < 5e-3


def test_identified_law_is_the_injected_one(on_swaying):
    """0.6 N m and 0.9 N m s/rad went in; the smooth sign costs a little."""
    estimator, estimates = on_swaying(observer="momentum")
    moving = estimates[-1].law.parameters_sigma[:, 1] < 0.2
    assert moving.sum() >= 6
    np.testing.assert_allclose(estimates[-1].law.coulomb[moving], 0.6, atol=0.1)
    np.testing.assert_allclose(estimator.identified.values, estimates[-1].law.parameters)


def test_joints_may_have_different_laws(urdf_xml, on_swaying):
    """Three laws in one robot: where there is motion all find the same F_c and F_v, and no joint sees the others."""
    entries = ("*_knee=three_slope", "l_hip_*=tanh_load")
    mixed, estimates = on_swaying(observer="momentum", identifier__joint_laws=entries)
    single, plain = on_swaying(observer="momentum")
    laws = dict(zip(mixed.joint_names, mixed.identified.law_names, strict=True))
    assert (laws["r_knee"], laws["l_hip_roll"]) == ("three_slope", "tanh_load")
    others = [k for k, law in enumerate(laws.values()) if law == "coulomb_viscous"]
    assert len(others) == 7
    np.testing.assert_array_equal(estimates[-1].law.parameters[others, 2:], 0.0)
    np.testing.assert_allclose(estimates[-1].law.parameters[others, :2], plain[-1].law.parameters[others], rtol=1e-9)
    np.testing.assert_allclose(estimates[-1].friction[others], plain[-1].friction[others], rtol=1e-9)
    knees = [mixed.joint_names.index(name) for name in ("l_knee", "r_knee")]
    np.testing.assert_allclose(estimates[-1].law.coulomb[knees], 0.6, atol=0.1)
    target = Estimator(mixed.config, urdf_xml)
    target.restore(mixed.identified)
    np.testing.assert_array_equal(target.identified.values, mixed.identified.values)
    with pytest.raises(ConfigError, match="l_hip_yaw: 'tanh_load', not 'coulomb_viscous'"):
        single.restore(mixed.identified)


def test_base_state_follows_the_trunk(on_swaying, swaying):
    _, estimates = on_swaying(observer="kalman")
    late = list(zip(estimates, swaying, strict=True))[1000:]
    position = np.array([e.base.position_base_in_world - i.position for e, i in late])
    velocity = np.array([e.base.linear_velocity - i.velocity for e, i in late])
    assert np.abs(position).max() < 5e-3
    assert np.sqrt((velocity**2).mean()) < 5e-3


def test_names_and_order_of_the_joints_do_not_matter(urdf_xml, swaying):
    """The same robot with right and left renamed, so that the URDF tree is walked in the other order."""
    swapped_xml = re.sub(r"\b([lr])_", lambda side: {"l": "z", "r": "a"}[side[1]] + "_", urdf_xml)
    config = config_from_parameters(
        {"feet.names": ["r", "l"], "feet.r.frame": "a_sole", "feet.l.frame": "z_sole", "observer": "momentum"}
    )
    reference = run(urdf_xml, swaying[:400], observer="momentum")[1]
    estimator = Estimator(config, swapped_xml)
    old_names = Estimator(suralp_config(), urdf_xml).joint_names
    new_names = [name.replace("l_", "z_", 1) if name[0] == "l" else name.replace("r_", "a_", 1) for name in old_names]
    order = [new_names.index(name) for name in estimator.joint_names]
    assert order != sorted(order)
    estimates = []
    for instant in swaying[:400]:
        j = instant.joints
        estimates += estimator.add_joints(
            JointSample(j.stamp_ns, j.position[order], j.velocity[order], j.effort[order])
        )
        estimates += estimator.add_imu(instant.imu)
        for wrench in instant.wrenches:
            estimates += estimator.add_wrench(replace(wrench, foot=1 - wrench.foot))
    for a, b in zip(reference, estimates, strict=True):
        np.testing.assert_allclose(b.friction, a.friction[order], atol=1e-9)


def test_a_silent_foot_falls_back_to_the_law_and_recovers(urdf_xml, swaying):
    estimator = Estimator(suralp_config(observer="momentum"), urdf_xml)
    measured = []
    for k, instant in enumerate(swaying[:2000]):
        estimates = estimator.add_joints(instant.joints) + estimator.add_imu(instant.imu)
        for wrench in instant.wrenches:
            if wrench.foot == 1 or not 800 <= k < 1300:
                estimates += estimator.add_wrench(wrench)
        measured += [e.measured for e in estimates]
    measured = np.array(measured + [e.measured for e in estimator.flush()])
    assert len(measured) == 2000
    assert not measured[810:1300, :6].any() and measured[810:1300, 6:].all()
    assert measured[1600:].all()


@pytest.mark.parametrize("observer", ["fbse", "momentum"])
@pytest.mark.parametrize("silent", [range(1000, 1060), range(1000, 1700)])
def test_a_foot_sensor_that_drops_out_spoils_neither_the_friction_nor_the_law(
    urdf_xml, swaying, on_swaying, observer, silent
):
    """What a silent sensor last said is not a measurement: no error grows, and the law is not poisoned."""

    def worst(estimates):
        pairs = list(zip(estimates, swaying, strict=True))[900:]
        return max(np.where(e.measured, np.abs(e.friction - i.friction) / e.sigma, 0.0).max() for e, i in pairs)

    undisturbed, reference = on_swaying(observer=observer)
    estimator = Estimator(suralp_config(observer=observer), urdf_xml)
    estimates = feed(estimator, swaying, without_foot=(0, silent)) + estimator.flush()
    assert not any(estimates[k].measured[:6].any() for k in silent[2:])
    assert worst(estimates) < 1.1 * worst(reference) + 0.5
    np.testing.assert_allclose(estimator.identified.values[:, 0], undisturbed.identified.values[:, 0], atol=0.05)


def test_a_start_in_the_middle_of_the_motion_settles(urdf_xml, swaying):
    _, estimates = run(urdf_xml, swaying[700:])
    tilt = [
        np.linalg.norm(np.cross(e.base.rotation_base_to_world[2], i.rotation[2]))
        for e, i in zip(estimates, swaying[700:], strict=True)
    ]
    sigma = [np.sqrt(e.base.pose_covariance[3, 3] + e.base.pose_covariance[4, 4]) for e in estimates]
    assert max(tilt[1500:]) < np.radians(1.0)
    assert np.mean(np.square(np.array(tilt) / sigma)) < 1.5


def test_a_silent_imu_silences_the_measurement_not_the_estimate(urdf_xml, swaying):
    estimator = Estimator(suralp_config(), urdf_xml)
    estimates = feed(estimator, swaying[:600], without_imu=range(300, 600)) + estimator.flush()
    assert len(estimates) == 600
    assert estimates[250].measured.all() and not estimates[-1].measured.any()
    assert np.isfinite(estimates[-1].friction).all() and np.isfinite(estimates[-1].sigma).all()


def test_a_jump_back_in_time_restarts_the_filters_and_keeps_what_was_learned(urdf_xml, swaying):
    estimator = Estimator(suralp_config(), urdf_xml)
    last = None
    for instant in [*swaying[:1500], *swaying[:300]]:
        for estimate in (
            *estimator.add_joints(instant.joints),
            *estimator.add_imu(instant.imu),
            *(e for wrench in instant.wrenches for e in estimator.add_wrench(wrench)),
        ):
            if estimate.stamp_ns == 0 and last is not None:
                moved = np.abs(estimate.law.parameters - last.law.parameters)  # at most by a window that was being used
                assert (moved <= 0.02 * last.law.parameters_sigma).all() and last.law.coulomb[0] > 0.3
            last = estimate
    assert estimator.health.time_jumps == 1 and last.stamp_ns == 299_000_000


@pytest.mark.parametrize("observer", ["fbse", "kalman"])
def test_freezing_stops_learning_and_forgetting_drops_it(urdf_xml, swaying, observer):
    estimator, _ = run(urdf_xml, swaying[:500], observer=observer)
    learned = estimator.identified.values
    assert np.abs(learned).max() > 0.1
    estimator.frozen = True
    feed(estimator, swaying[500:800])
    np.testing.assert_array_equal(estimator.identified.values, learned)
    estimator.reset_to_prior()
    np.testing.assert_array_equal(estimator.identified.values, 0.0)


def test_friction_of_a_sensor_set_is_finite_from_the_first_sample(urdf_xml, swaying):
    _, estimates = run(urdf_xml, swaying[:3])
    for estimate in estimates:
        assert isinstance(estimate.friction, np.ndarray)
        assert np.isfinite(estimate.friction).all() and np.isfinite(estimate.sigma).all()


def test_arrays_of_an_estimate_do_not_change_later(urdf_xml, swaying):
    estimator, estimates = run(urdf_xml, swaying[:100])
    kept = [(e, e.friction.copy(), e.law.parameters.copy(), e.base.position_base_in_world.copy()) for e in estimates]
    feed(estimator, swaying[100:200])
    for estimate, friction, parameters, position in kept:
        np.testing.assert_array_equal(estimate.friction, friction)
        np.testing.assert_array_equal(estimate.law.parameters, parameters)
        np.testing.assert_array_equal(estimate.base.position_base_in_world, position)


@pytest.fixture(scope="module")
def learned(urdf_xml, swaying):
    """An estimator after half a second, which stays as it is."""
    return run(urdf_xml, swaying[:500])[0]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("velocity", np.nan, r"joint velocity l_hip_roll = nan cannot be true"),
        ("velocity", 1e3, r"joint velocity l_hip_roll = 1000.0 cannot be true; the limit is 100"),
        ("effort", np.nan, r"joint effort l_hip_roll = nan cannot be true"),
        ("effort", 1e200, r"joint effort l_hip_roll = 1e\+200 cannot be true; the limit is 10000"),
        ("position", np.inf, r"joint position l_hip_roll = inf cannot be true"),
        ("position", 1e100, r"l_hip_roll = 1e\+100 cannot be true; by the URDF it is between -6.78"),
    ],
)
def test_a_glitch_is_refused_and_changes_nothing(learned, swaying, field, value, message):
    before = learned.identified.values
    sample = swaying[500].joints
    broken = getattr(sample, field).copy()
    broken[1] = value
    with pytest.raises(InputError, match=message):
        learned.add_joints(replace(sample, **{field: broken}))
    np.testing.assert_array_equal(learned.identified.values, before)
    with pytest.raises(InputError, match="angular velocity y = 500.0 cannot be true"):
        learned.add_imu(replace(swaying[500].imu, angular_velocity=np.array([0.0, 500.0, 0.0])))
    with pytest.raises(InputError, match="specific force x = -inf cannot be true"):
        learned.add_imu(replace(swaying[500].imu, specific_force=np.array([-np.inf, 0.0, 9.8])))
    with pytest.raises(InputError, match="wrench of r_foot force z = nan cannot be true"):
        learned.add_wrench(replace(swaying[500].wrenches[1], wrench=np.array([0, 0, np.nan, 0, 0, 0])))


def test_a_joint_without_limits_may_turn_for_long_but_not_jump(urdf_xml):
    estimator = Estimator(config_from_parameters({"robot.fixed_base": True, "observer": "momentum"}), PENDULUM)
    velocity, effort = np.array([80.0]), np.zeros(1)

    def add(k, position):
        return estimator.add_joints(JointSample(k * 1_000_000, np.array([position]), velocity, effort))

    for k in range(1000):
        add(k, 5e5 + 0.08 * k)
    assert [len(add(k, 0.08 * (k - 1000))) for k in range(1000, 1003)] == [0, 0, 0]
    assert "position of 'pivot' is 0, and before it was 500080" in estimator.health.events[-1].text
    assert sum(len(add(k, 0.08 * (k - 1000))) for k in range(1003, 1100)) == 97  # it stays there
    with pytest.raises(InputError, match="pivot = 10000000000.0 cannot be true; by the URDF"):
        add(1100, 1e10)


def test_a_joint_sample_of_another_robot_is_refused(urdf_xml, swaying):
    estimator, sample = Estimator(suralp_config(), urdf_xml), swaying[0].joints
    for field in ("position", "velocity", "effort"):
        with pytest.raises(
            InputError, match=rf"joint {field} has the shape \(11,\); 12 values are needed: l_hip_yaw, "
        ):
            estimator.add_joints(replace(sample, **{field: np.zeros(11)}))
    with pytest.raises(InputError, match="a dict is no sample: add a JointSample, ImuSample, WrenchSample or Command"):
        estimator.add({})


@pytest.mark.parametrize("observer", ["fbse", "kalman"])
def test_one_torque_spike_below_the_limits_does_not_spoil_the_law(urdf_xml, swaying, on_swaying, observer):
    _, undisturbed = on_swaying(observer=observer)
    joints = swaying[1500].joints
    spiked = [
        *swaying[:1500],
        replace(swaying[1500], joints=replace(joints, effort=joints.effort + 5000.0)),
        *swaying[1501:],
    ]
    _, estimates = run(urdf_xml, spiked, observer=observer)
    difference = np.abs(stacked(estimates[2000:], "model") - stacked(undisturbed[2000:], "model"))
    assert difference.max() < 0.2 and difference.mean() < 0.01


def test_noisy_velocities_with_an_offset_are_no_motion_of_a_joint_at_rest():
    """As drivers publish them whose steps leave zero out; the position stays within a step of its encoder."""
    estimator = Estimator(config_from_parameters({"robot.fixed_base": True, "observer": "momentum"}), PENDULUM)
    noise = np.random.default_rng(0).normal(scale=4.0, size=(6000, 1))
    for row, velocity in enumerate(0.022 * (np.round(noise) - 0.5)):
        estimator.add_joints(JointSample(2_000_000 * row, np.array([-0.0015]), velocity, np.array([-0.018])))
    assert estimator.health.findings == ()


def test_an_arm_on_a_fixed_base_needs_neither_imu_nor_feet():
    """A pendulum that swings out: Coulomb 0.2 N m and viscous 0.1 N m s/rad are found from its joint states alone."""
    config = config_from_parameters({"robot.fixed_base": True, "observer": "momentum"})
    estimator = Estimator(config, PENDULUM)
    inertia, leverage = 0.1 + 2 * 0.25, 2 * 9.81 * 0.5
    angle, velocity, estimates = 2.5, 0.0, []
    for k in range(8000):
        sample = JointSample(k * 1_000_000, np.array([angle]), np.array([velocity]), np.zeros(1))
        estimates += estimator.add_joints(sample)
        for _ in range(10):
            friction = 0.2 * np.tanh(velocity / 1e-3) + 0.1 * velocity
            velocity += 1e-4 * (-leverage * np.sin(angle) - friction) / inertia
            angle += 1e-4 * velocity
    estimates += estimator.flush()
    assert len(estimates) == 8000
    assert estimates[-1].law.coulomb[0] == pytest.approx(0.2, abs=0.02)
    assert estimates[-1].law.viscous[0] == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("observer", ["fbse", "momentum", "kalman"])
def test_a_push_shows_as_external_torque_of_its_size_and_nothing_shows_without_one(urdf_xml, swaying, observer):
    """5 N m too little at the left knee for 0.3 s, which is what a push that bends it looks like."""
    pushed = [
        replace(
            i, joints=replace(i.joints, effort=i.joints.effort + np.eye(12)[3] * (-5.0 if 2000 <= k < 2300 else 0.0))
        )
        for k, i in enumerate(swaying)
    ]
    estimator = Estimator(suralp_config(observer=observer), urdf_xml)
    estimates = feed(estimator, pushed[:2000])
    estimator.frozen = True
    estimates += feed(estimator, pushed[2000:2300])
    before, during = estimates[1990], estimates[2290]
    assert abs(before.external_torque[3]) < 3.0 * before.external_torque_sigma[3]
    assert during.external_torque[3] - before.external_torque[3] == pytest.approx(5.0, abs=0.7)
    others = np.delete(np.abs(during.external_torque), 3)
    assert others.max() < 1.5
