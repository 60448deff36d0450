"""Claims about the whole Kalman stage on an exact swaying motion: accuracy, silence, and what it keeps."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from friction_estimator.base import contact_phase
from friction_estimator.config import config_from_parameters
from friction_estimator.errors import ConfigError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.kalman import stage
from friction_estimator.estimation.kalman.limb_bank import LimbBank, first_fit_decreasing
from friction_estimator.io.parameters import load_parameters, save_parameters
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import JointSample
from test.biped import suralp_config
from test.estimation.kalman.test_window_dynamics import window
from test.feeding import feed, stacked
from test.pendulum import PENDULUM
from test.sway import SwayInstant, friction_law, sway

CONTINUOUS = {"momentum__input_hold": "trapezoid"}
"""The motion is exact at its stamps; nothing is held between them."""


@pytest.fixture(scope="module")
def swaying(urdf_xml):
    return list(sway(urdf_xml, 3.0, amplitude=0.02, turn=0.05))


@pytest.fixture(scope="module")
def learned(urdf_xml, swaying):
    """An estimator that has seen three seconds, and what it said. To look at only."""
    estimator = Estimator(suralp_config(**CONTINUOUS), urdf_xml)
    return estimator, feed(estimator, swaying) + estimator.flush()


def fresh(urdf_xml: str, **changes: object) -> Estimator:
    return Estimator(suralp_config(**CONTINUOUS, **changes), urdf_xml)


def later(instants: list[SwayInstant], milliseconds: int) -> list[SwayInstant]:
    """The same samples with later stamps."""
    shift = milliseconds * 1_000_000

    def moved(sample):
        return dataclasses.replace(sample, stamp_ns=sample.stamp_ns + shift)

    return [
        dataclasses.replace(
            i, joints=moved(i.joints), imu=moved(i.imu), wrenches=tuple(moved(wrench) for wrench in i.wrenches)
        )
        for i in instants
    ]


def assert_same(one: IdentifiedParameters, other: IdentifiedParameters, atol: float = 0.0) -> None:
    assert (one.joint_names, one.law_names) == (other.joint_names, other.law_names)
    for name in ("values", "covariance", "residual_variance", "samples"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12, atol=atol)


def test_friction_of_an_exact_motion_is_right_to_ten_millinewton_metres(learned, swaying):
    """After 2.5 s, friction of 0.6 N m and beyond: its direction is uncertain for a moment at each reversal."""
    _, estimates = learned
    assert len(estimates) == len(swaying)
    truth = np.array([instant.friction for instant in swaying])
    errors = np.abs(stacked(estimates, "friction") - truth)
    assert errors[2500:].max() < 0.01 < 0.05 * np.sqrt((truth[2500:] ** 2).mean()) and errors[1500:].max() < 0.04
    assert (errors < 3.0 * stacked(estimates, "sigma"))[1500:].all()
    assert stacked(estimates, "measured")[500:].all() and not stacked(estimates, "disturbed").any()


def test_a_constant_error_of_a_torque_sensor_is_hardly_taken_for_friction_and_sigma_holds_the_rest(urdf_xml, swaying):
    offset = np.where(np.arange(12) == 3, 1.0, 0.0)
    shifted = [
        dataclasses.replace(one, joints=dataclasses.replace(one.joints, effort=one.joints.effort + offset))
        for one in swaying
    ]
    estimates = feed(fresh(urdf_xml), shifted)
    errors = np.abs(stacked(estimates, "friction") - np.array([one.friction for one in swaying]))[2000:]
    assert errors[:, 3].max() < 0.3 and np.delete(errors, 3, axis=1).max() < 0.1
    assert (errors < 2.0 * stacked(estimates, "sigma")[2000:]).all()


def test_sigma_holds_friction_that_differs_between_the_directions(urdf_xml, swaying):
    friction = np.sqrt((np.array([one.friction for one in swaying[2000:]]) ** 2).mean(axis=0))
    both, same = (
        np.sqrt((stacked(feed(fresh(urdf_xml, kalman__asymmetry_std=std), swaying), "sigma")[2000:] ** 2).mean(axis=0))
        for std in (0.2, 0.0)
    )
    more = np.sqrt(both**2 - same**2)
    assert (more > 0.1 * friction).all() and (more < 0.25 * friction).all()


def test_the_motion_of_the_joints_is_left_as_it_is(urdf_xml, swaying, monkeypatch):
    """The smoother hands the same motion to two stages."""
    estimator, motions = fresh(urdf_xml), []
    source = estimator.pipeline.friction._motion
    step = source.step

    def recorded(*reading):
        motion = step(*reading)
        motions.append((motion, [values.copy() for values in motion]))
        return motion

    monkeypatch.setattr(source, "step", recorded)
    feed(estimator, swaying[:200])
    assert len(motions) == 200
    for motion, before in motions:
        np.testing.assert_array_equal(list(motion), before)


def test_friction_at_rest_may_be_anything_until_the_balance_of_momentum_shows_it(urdf_xml):
    standing = list(sway(urdf_xml, 0.5, amplitude=0.0))
    sigma = stacked(feed(fresh(urdf_xml), standing), "sigma")
    assert (sigma[:100] > 10.0).all() and (sigma[-1] < 3.5).all()


def test_the_law_alone_knows_the_friction_of_the_velocities_it_has_seen(learned, swaying):
    estimator, _ = learned
    identified = estimator.identified
    laws = JointLaws(identified.law_names)
    seen = np.array([instant.joints.velocity for instant in swaying[1000:]])
    low, high = np.quantile(seen, 0.05, axis=0), np.quantile(seen, 0.95, axis=0)
    for part in np.linspace(0.0, 1.0, 21):
        velocity = low + part * (high - low)
        torque = (laws.regressor(velocity, np.zeros(12)) * identified.values).sum(axis=1)
        np.testing.assert_allclose(torque, friction_law(velocity), atol=0.1)


def test_order_and_names_of_the_joints_do_not_matter(urdf_xml, swaying):
    """The same robot with right and left renamed, so that the URDF tree is walked in the other order."""
    swapped_xml = re.sub(r"\b([lr])_", lambda side: {"l": "z", "r": "a"}[side[1]] + "_", urdf_xml)
    config = config_from_parameters({"feet.names": ["r", "l"], "feet.r.frame": "a_sole", "feet.l.frame": "z_sole"})
    one, other = Estimator(suralp_config(), urdf_xml), Estimator(config, swapped_xml)
    names = [{"l": "z", "r": "a"}[name[0]] + name[1:] for name in one.joint_names]
    order = [names.index(name) for name in other.joint_names]
    assert order != sorted(order)

    def swapped(instant):
        j = instant.joints
        joints = JointSample(j.stamp_ns, j.position[order], j.velocity[order], j.effort[order])
        wrenches = tuple(dataclasses.replace(wrench, foot=1 - wrench.foot) for wrench in instant.wrenches)
        return dataclasses.replace(instant, joints=joints, wrenches=wrenches)

    reference = feed(one, swaying[:700])
    estimates = feed(other, [swapped(instant) for instant in swaying[:700]])
    assert stacked(reference, "measured")[-1].all()
    for name in ("friction", "sigma", "external_torque"):
        np.testing.assert_allclose(stacked(estimates, name), stacked(reference, name)[:, order], atol=1e-7)


def test_a_silent_foot_leaves_the_law_of_its_limb_alone_speaking(urdf_xml, swaying):
    estimator, silent = fresh(urdf_xml), range(1000, 1400)
    estimates = feed(estimator, swaying[:2000], without_foot=(0, silent)) + estimator.flush()
    measured = stacked(estimates, "measured")
    assert not measured[1045:1400, :6].any() and measured[1045:1400, 6:].all() and measured[1500:].all()
    friction, model = stacked(estimates, "friction"), stacked(estimates, "model")
    np.testing.assert_array_equal(friction[1045:1400, :6], model[1045:1400, :6])
    truth = np.array([instant.friction for instant in swaying[:2000]])
    assert np.abs(friction - truth)[1045:1400].max() < 0.15
    parameters = stacked(estimates, "law.parameters")
    np.testing.assert_array_equal(parameters[1060, :6], parameters[1390, :6])
    assert not np.array_equal(parameters[1060, 6:], parameters[1390, 6:])


def test_friction_of_the_instant_counts_on_firm_feet_only(urdf_xml, swaying, monkeypatch):
    """A foot is firm here with more than half of the weight; the instant counts for all velocities, or for none."""
    monkeypatch.setattr(contact_phase, "CONTACT_FRACTION", 0.5)

    def friction(std):
        monkeypatch.setattr(stage, "CORRECTION_THRESHOLD", std)
        return stacked(feed(fresh(urdf_xml), swaying[:2000]), "friction")

    always, never = friction(1e-9), friction(1e3)
    loads = np.array([instant.wrenches[0].wrench[2] for instant in swaying[: len(always)]])
    lately = np.lib.stride_tricks.sliding_window_view(loads / loads[0], 50)  # at first it has half of the weight
    firm, light = lately.min(axis=1) > 1.005, lately.max(axis=1) < 0.995
    firm[:750] = light[:750] = False  # not yet known to stand, and the law at rest is not known
    assert firm.sum() > 100 and light.sum() > 100
    left = (always != never)[49:, :6].any(axis=1)
    assert left[firm].all() and not left[light].any()


def test_a_silent_imu_leaves_the_law_alone_speaking(urdf_xml, swaying):
    estimator = fresh(urdf_xml)
    estimates = feed(estimator, swaying[:1800], without_imu=range(1000, 1400)) + estimator.flush()
    assert len(estimates) == 1800
    measured = stacked(estimates, "measured")
    assert measured[990].all() and not measured[1045:1400].any() and measured[1600:].all()
    quiet = estimates[1060:1390]
    np.testing.assert_array_equal(stacked(quiet, "friction"), stacked(quiet, "model"))
    np.testing.assert_array_equal(quiet[0].law.parameters, quiet[-1].law.parameters)
    assert (stacked(quiet, "sigma") > 0.0).all()


def test_frozen_keeps_the_law_and_still_measures(urdf_xml, swaying):
    estimator = fresh(urdf_xml)
    feed(estimator, swaying[:1000])
    before = estimator.identified
    estimator.frozen = True
    estimates = feed(estimator, swaying[1000:1300])
    after = estimator.identified
    np.testing.assert_array_equal(after.values, before.values)
    np.testing.assert_array_equal(after.covariance, before.covariance)
    assert stacked(estimates, "measured").all()
    assert not np.array_equal(stacked(estimates, "friction"), stacked(estimates, "model"))
    estimator.frozen = False
    feed(estimator, swaying[1300:1500])
    assert not np.array_equal(estimator.identified.values, before.values)


def test_reset_keeps_the_law_and_forget_drops_it(urdf_xml, swaying):
    estimator = fresh(urdf_xml)
    feed(estimator, swaying[:1000])
    before = estimator.identified
    estimator.reset()
    np.testing.assert_array_equal(estimator.identified.values, before.values)
    again = feed(estimator, later(swaying[:300], 1000))
    assert not again[0].measured.any() and again[-1].measured.all()
    np.testing.assert_array_equal(again[0].law.parameters, before.values)
    estimator.reset_to_prior()
    np.testing.assert_array_equal(estimator.identified.values, 0.0)
    np.testing.assert_array_equal(estimator.identified.samples, 0.0)


def test_what_is_saved_in_a_file_is_what_another_estimator_starts_from(urdf_xml, learned, swaying, tmp_path):
    saved = learned[0].identified
    save_parameters(tmp_path / "parameters.yaml", saved)
    loaded = load_parameters(tmp_path / "parameters.yaml")
    assert_same(loaded, saved)
    estimator = fresh(urdf_xml)
    estimator.restore(loaded)
    assert_same(estimator.identified, saved, atol=1e-3)
    first = feed(estimator, swaying[1500:1700])
    truth = np.array([instant.friction for instant in swaying[1500:1700]])[: len(first)]
    moving = np.abs(np.array([instant.joints.velocity for instant in swaying[1500:1700]]))[: len(first)] > 0.03
    assert np.abs(stacked(first, "model") - truth)[moving].max() < 0.15
    assert stacked(first, "model_sigma")[moving].max() < 0.3


def test_parameters_of_another_law_are_refused_and_of_a_few_joints_taken(urdf_xml, learned):
    saved = learned[0].identified
    with pytest.raises(ConfigError, match="'six_slope_load', not 'three_slope'"):
        fresh(urdf_xml, identifier__law="three_slope").restore(saved)
    few = dataclasses.replace(
        saved, joint_names=saved.joint_names[3:5], law_names=saved.law_names[3:5], values=saved.values[3:5],
        covariance=saved.covariance[3:5], residual_variance=saved.residual_variance[3:5],
        measurement_variance=saved.measurement_variance[3:5], samples=saved.samples[3:5],
        velocity_range=saved.velocity_range[3:5],
    )  # fmt: skip
    estimator = fresh(urdf_xml)
    estimator.restore(few)
    found = estimator.identified.values
    np.testing.assert_allclose(found[3:5], saved.values[3:5], atol=1e-3)
    np.testing.assert_array_equal(np.delete(found, [3, 4], axis=0), 0.0)


def test_an_arm_on_a_fixed_base_needs_neither_imu_nor_feet():
    """A driven pendulum: Coulomb 0.4 N m and viscous 0.1 N m s/rad are found from its joint states alone."""
    estimator = Estimator(config_from_parameters({"robot.fixed_base": True}), PENDULUM)
    inertia, leverage = 0.1 + 2 * 0.25, 2 * 9.81 * 0.5
    angle, velocity, estimates, truth = 0.5, 0.0, [], []
    for k in range(5000):
        effort = 6.0 * np.sin(3.0 * k * 1e-3)
        truth.append(0.4 * np.tanh(velocity / 0.02) + 0.1 * velocity)
        estimates += estimator.add_joints(
            JointSample(k * 1_000_000, np.array([angle]), np.array([velocity]), np.array([effort]))
        )
        for _ in range(5):
            friction = 0.4 * np.tanh(velocity / 0.02) + 0.1 * velocity
            velocity += 2e-4 * (effort - leverage * np.sin(angle) - friction) / inertia
            angle += 2e-4 * velocity
    estimates += estimator.flush()
    errors = stacked(estimates, "friction")[2500:, 0] - truth[2500:]
    assert np.sqrt((errors**2).mean()) < 0.02
    assert estimates[-1].law.coulomb[0] + estimates[-1].law.viscous[0] == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("costs", "groups"),
    [
        ([12.0, 12.0], [[0], [1]]),
        ([1.0, 1.0, 9.0, 3.0], [[2], [3, 0, 1]]),
        ([5.0], [[0]]),
        ([4.0, 3.0, 2.0], [[0], [1], [2]]),
    ],
)
def test_small_limbs_share_a_frame_that_costs_no_more_than_the_largest_limb(costs, groups):
    assert first_fit_decreasing(costs) == groups


def test_the_work_of_a_window_is_done_when_the_next_one_is_complete(urdf_xml):
    """Also where a window has fewer samples than its work has parts."""
    config = suralp_config()
    bank = LimbBank(config, RobotModel(config, urdf_xml), JointLaws(("six_slope_load",) * 12))
    for samples in range(1, 13):
        bank.begin_window(window(samples * 1e-3), usable=True)
        assert any(bank.advance_work(frozen=False) for _ in range(samples)), samples
        assert not bank.advance_work(frozen=False)
