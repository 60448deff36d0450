"""Claims about friction that builds up over a distance after a reversal, on an exact swaying motion."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.parameters import load_parameters, save_parameters
from friction_estimator.laws.joint_laws import JointLaws, advance_strain
from friction_estimator.laws.linear import PRESLIDING
from friction_estimator.metrics import joint_errors
from test.biped import suralp_config
from test.feeding import feed, stacked
from test.sway import SwayInstant, sway

DRY, VISCOUS = 5.0, 2.0


def with_presliding(instants: Sequence[SwayInstant], length: float) -> list[SwayInstant]:
    """The same motion with the friction of Dahl (1968) in all joints, exact between two samples."""
    strain, before, changed = np.zeros(12), instants[0].joints.position, []
    for instant in instants:
        moved = instant.joints.position - before
        strain = np.sign(moved) + (strain - np.sign(moved)) * np.exp(-np.abs(moved) / length)
        before = instant.joints.position
        friction = DRY * strain + VISCOUS * instant.joints.velocity
        effort = instant.joints.effort + friction - instant.friction
        joints = dataclasses.replace(instant.joints, effort=effort)
        changed.append(dataclasses.replace(instant, joints=joints, friction=friction))
    return changed


def estimator_of(urdf_xml: str) -> Estimator:
    return Estimator(suralp_config(momentum__input_hold="trapezoid", kalman__presliding=True), urdf_xml)


@pytest.fixture(scope="module")
def motion(urdf_xml) -> list[SwayInstant]:
    return list(sway(urdf_xml, 3.0, amplitude=0.02, turn=0.05))


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

    save_parameters(tmp_path / "law.yaml", estimator.identified)
    again = estimator_of(urdf_xml)
    again.restore(load_parameters(tmp_path / "law.yaml"))
    first = feed(again, instants[1500:2000])
    errors = np.abs(stacked(first, "model") - truth[1500 : 1500 + len(first)])
    assert errors.max() > 0.5 * DRY  # nothing tells how far the strains were at the start,
    assert (errors < 3.0 * stacked(first, "model_sigma")).mean() > 0.95  # as sigma shows
    assert np.median(errors[300:]) < 0.02 * DRY

    (note,) = Estimator(suralp_config(), urdf_xml).restore(load_parameters(tmp_path / "law.yaml"))
    assert "kalman.presliding: true" in note


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
    laws = JointLaws(("six_slope_load",), presliding=True)
    values = np.zeros((1, 1, laws.parameter_count))
    values[0, 0, 0] = values[0, 0, -2] = DRY  # all dry friction builds up over the second distance

    def friction(velocity: float, strain: float) -> float:
        at = np.array([[velocity]]), np.zeros((1, 1)), np.full((1, 1), 1e-6)
        return float(laws.expected_friction(values, *at, np.full((1, 1, len(PRESLIDING)), strain))[1][0, 0])

    assert friction(0.5, 1.0) == pytest.approx(DRY)
    assert friction(0.5, -1.0) == pytest.approx(-DRY)
    assert friction(0.0, 0.3) == pytest.approx(0.3 * DRY)
