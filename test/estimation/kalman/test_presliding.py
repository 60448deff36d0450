"""Claims about friction that builds up over a distance after a reversal, and about finding out whether there is any."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from friction_estimator.config import KalmanConfig, SensorNoise
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.kalman.law_bounds import law_bounds
from friction_estimator.estimation.kalman.limb_filter import LimbFilter
from friction_estimator.estimation.kalman.limb_state import make_layout
from friction_estimator.estimation.kalman.stage import KalmanFriction
from friction_estimator.estimation.kalman.term_selection import load_presliding_variance
from friction_estimator.io.parameters import load_parameters, save_parameters
from friction_estimator.laws.joint_laws import JointLaws, MeanFriction, advance_strain, expected_friction
from friction_estimator.laws.linear import PRESLIDING
from friction_estimator.metrics import joint_errors
from test.biped import suralp_config
from test.estimation.kalman.synthetic import limb_of, motors, random_balances
from test.feeding import feed, stacked
from test.sway import SwayInstant, sway

DRY, VISCOUS = 4.0, 2.0


def with_presliding(instants: Sequence[SwayInstant], length: float, by_load: float = 0.0) -> list[SwayInstant]:
    """The same motion with the friction of Dahl (1968) in all joints, exact between two samples.

    It grows by the part ``by_load`` of the motor torque.
    """
    strain, before, changed = np.zeros(12), instants[0].joints.position, []
    for instant in instants:
        moved = instant.joints.position - before
        strain = np.sign(moved) + (strain - np.sign(moved)) * np.exp(-np.abs(moved) / length)
        before = instant.joints.position
        link, effort = instant.joints.effort - instant.friction, instant.joints.effort
        for _ in range(20 if by_load else 1):
            friction = (DRY + by_load * np.abs(effort)) * strain + VISCOUS * instant.joints.velocity
            effort = link + friction
        joints = dataclasses.replace(instant.joints, effort=effort)
        changed.append(dataclasses.replace(instant, joints=joints, friction=friction))
    return changed


def estimator_of(urdf_xml: str) -> Estimator:
    return Estimator(suralp_config(momentum__input_hold="trapezoid"), urdf_xml)


@pytest.fixture(scope="module")
def motion(urdf_xml) -> list[SwayInstant]:
    return list(sway(urdf_xml, 3.0, amplitude=0.02, turn=0.05))


def without_memory(instants: Sequence[SwayInstant]) -> list[SwayInstant]:
    """The same motion with as much friction, that of the velocity alone."""
    changed = []
    for instant in instants:
        friction = DRY * np.tanh(instant.joints.velocity / 0.01) + VISCOUS * instant.joints.velocity
        joints = dataclasses.replace(instant.joints, effort=instant.joints.effort + friction - instant.friction)
        changed.append(dataclasses.replace(instant, joints=joints, friction=friction))
    return changed


@pytest.mark.parametrize("length", [5e-4, 5e-3])
def test_friction_follows_the_strain_after_a_reversal_whatever_its_distance(urdf_xml, motion, length, tmp_path):
    instants = with_presliding(motion, length)
    estimator = estimator_of(urdf_xml)
    estimates = feed(estimator, instants) + estimator.flush()
    truth = np.array([instant.friction for instant in instants])
    late = np.arange(len(truth))[:, None] >= 1500
    errors = joint_errors(stacked(estimates, "friction"), truth, stacked(estimates, "sigma"), np.tile(late, (1, 12)))
    assert errors.relative_rmse.max() < 0.1
    within = np.abs(stacked(estimates, "friction") - truth) < 3.0 * stacked(estimates, "sigma")
    assert within[1500:].mean(axis=0).min() > 0.9

    assert estimator.identified.has_presliding

    save_parameters(tmp_path / "law.yaml", estimator.identified)
    again = estimator_of(urdf_xml)
    again.restore(load_parameters(tmp_path / "law.yaml"))
    first = feed(again, instants[1500:2000])
    errors = np.abs(stacked(first, "model") - truth[1500 : 1500 + len(first)])
    assert errors.max() > 0.5 * DRY  # nothing tells how far the strains were at the start,
    assert (errors < 3.0 * stacked(first, "model_sigma")).mean() > 0.95  # as sigma shows
    assert np.median(errors[300:]) < 0.03 * DRY

    (note,) = Estimator(suralp_config(observer="fbse", identifier__law="six_slope_load"), urdf_xml).restore(
        load_parameters(tmp_path / "law.yaml")
    )
    assert "the saved presliding and ripple are not used" in note


def test_where_friction_has_no_memory_the_terms_of_presliding_are_left_and_stay_left(urdf_xml, motion, tmp_path):
    estimator = estimator_of(urdf_xml)
    instants = without_memory(motion)
    estimates = feed(estimator, instants)
    assert not estimator.identified.has_presliding
    truth = np.array([instant.friction for instant in instants])[-len(estimates) :]
    errors = np.abs(stacked(estimates, "friction") - truth)
    assert (errors < 3.0 * stacked(estimates, "sigma")).mean() > 0.98  # before, then and after
    assert errors[1500:].max() < 0.1 * DRY

    save_parameters(tmp_path / "law.yaml", estimator.identified)
    again = estimator_of(urdf_xml)
    assert again.identified.has_presliding  # nothing is known yet
    again.restore(load_parameters(tmp_path / "law.yaml"))
    assert not again.identified.has_presliding
    again.restore(load_parameters(tmp_path / "law.yaml"))
    assert not again.identified.has_presliding
    again.reset_to_prior()
    assert again.identified.has_presliding


@pytest.mark.parametrize("restored", [False, True])
def test_filters_that_start_anew_while_sensors_are_wrong_go_on_when_these_are_right(urdf_xml, motion, restored):
    estimator = estimator_of(urdf_xml)
    instants = without_memory(motion)
    feed(estimator, instants)
    identified, stage = estimator.identified, estimator.pipeline.friction
    estimator.reset_to_prior()
    stage.set_sensor_fault(wrong=True, wrong_for=1.0)
    estimator.restore(identified) if restored else estimator.reset_to_prior()
    feed(estimator, instants[:300])
    stage.set_sensor_fault(wrong=False, wrong_for=1.0)
    estimates = feed(estimator, instants[300:600])
    assert np.isfinite(stacked(estimates, "friction")).all()


def test_sigma_holds_a_tenth_of_the_friction_that_grows_with_the_load_while_there_is_presliding(urdf_xml, motion):
    laws, values = JointLaws(("six_slope_load",) * 2, ["presliding"]), np.zeros((2, 12))
    values[:, 0], values[1, 7] = 3.0, 0.2
    variance = load_presliding_variance(laws, values, np.array([30.0, -30.0]))
    np.testing.assert_allclose(variance, [0.0, (0.1 * 0.2 * 30.0) ** 2], atol=1e-3)

    estimator = estimator_of(urdf_xml)
    feed(estimator, with_presliding(motion, 2e-3, by_load=0.15))
    (stage,) = [part for part in vars(estimator.pipeline).values() if isinstance(part, KalmanFriction)]
    load = stage.bank.newest[0].effort
    least = load_presliding_variance(stage.terms.laws, stage.bank.estimates.parameters, load)
    assert least.max() > 0.01 and (stage.unmodelled_variance > 0.9 * least).all()


def test_no_decision_is_made_without_motion(urdf_xml):
    estimator = estimator_of(urdf_xml)
    feed(estimator, without_memory(list(sway(urdf_xml, 2.0, amplitude=1e-5))))
    assert estimator.identified.has_presliding


LIMB = limb_of(np.array([0, 1]), np.array([0]))
FREE = KalmanConfig(innovation_gate=1e6, law_process_noise=0.0, law_error_memory=1e4)
TERMS = JointLaws(("coulomb_viscous",) * 2, ["presliding"])


def filter_with(laws: JointLaws) -> LimbFilter:
    layout = make_layout(LIMB, laws, FREE, SensorNoise(), True, motors(2))
    return LimbFilter(layout, FREE, np.zeros_like(law_bounds(laws)), laws.presliding)


def test_a_filter_that_leaves_the_terms_goes_on_as_if_it_had_never_had_them():
    law = JointLaws(TERMS.law_names)
    wide, narrow = filter_with(TERMS), filter_with(law)
    kept = np.ones(wide.layout.size, dtype=bool)
    kept[wide.layout["law"]] = TERMS.presliding.ravel() == 0.0
    windows = random_balances(wide.layout, np.random.default_rng(3))
    for limb_filter in (wide, narrow):
        limb_filter.start_from(windows[0].momentum, windows[0].momentum_covariance)
    for k, window in enumerate(windows[1:]):
        wide_now = wide.layout.size == kept.size
        small = window._replace(force_columns=np.ascontiguousarray(window.force_columns[:, kept]))
        wide.update(window if wide_now else small, frozen=False, contact_transition=False)
        narrow.update(small, frozen=False, contact_transition=False)
        if k == len(windows) // 2:
            assert np.abs(wide.state[kept] - narrow.state).max() > 1e-2
            wide.fix_presliding_at_zero()
            before, wide = wide, filter_with(law)
            wide.copy_identified(before, law.common_columns(TERMS))
            for one in (wide, narrow):  # momentum and law error begin anew
                one.reset()
                one.start_from(window.momentum, window.momentum_covariance)
    np.testing.assert_allclose(wide.state, narrow.state, atol=1e-4)
    np.testing.assert_allclose(wide.covariance, narrow.covariance, atol=1e-4)


def test_a_strain_depends_on_the_way_and_not_on_the_speed():
    """``z = 1 - 2 exp(-x / s)`` after a reversal, with an error as small as the steps are."""
    for steps in (100, 1000):
        strain, unknown = -np.ones(len(PRESLIDING)), np.ones(len(PRESLIDING))
        way = 2e-3
        for _ in range(steps):
            advance_strain(strain, unknown, way / steps)
        left = np.exp(-way / np.array(PRESLIDING))
        np.testing.assert_allclose(strain, 1.0 - 2.0 * left, atol=4.0 / steps)
        np.testing.assert_allclose(unknown, left, atol=4.0 / steps)


def test_presliding_adds_nothing_while_a_joint_slides_on_and_keeps_the_friction_of_before_after_a_reversal():
    laws = JointLaws(("six_slope_load",), ["presliding"])
    values, no_wave = np.zeros((1, laws.parameter_count)), np.empty((1, 0))
    values[0, 0] = values[0, -2] = DRY  # all dry friction builds up over the second distance

    def friction(velocity: float, strain: float, load: float = 0.0) -> float:
        mean, strains = MeanFriction.empty(*values.shape), np.full((1, len(PRESLIDING)), strain)
        at = np.array([velocity]), np.array([load]), np.array([1e-6])
        expected_friction(laws.table, values, *at, strains, no_wave, mean)
        return float(mean.torque[0])

    assert friction(0.5, 1.0) == pytest.approx(DRY)
    assert friction(0.5, -1.0) == pytest.approx(-DRY)
    assert friction(0.0, 0.3) == pytest.approx(0.3 * DRY)
    values[0, 7] = 0.02  # so does the part that grows with the load
    assert friction(0.5, 1.0, 50.0) == pytest.approx(DRY + 1.0)
    assert friction(0.0, 0.3, 50.0) == pytest.approx(0.3 * (DRY + 1.0))
    values[0, -2] = 0.1 * DRY  # too little to be presliding
    assert friction(0.0, 0.3, 50.0) == pytest.approx(0.03 * DRY)
