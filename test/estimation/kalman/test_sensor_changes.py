"""Claims about the comparison of what may have changed, on a limb that obeys the filter's own model."""

from __future__ import annotations

import numpy as np
import pytest

from friction_estimator.config import KalmanConfig
from friction_estimator.estimation.kalman.law_bounds import law_bounds
from friction_estimator.estimation.kalman.limb_filter import LimbFilter
from friction_estimator.estimation.kalman.limb_state import make_layout
from friction_estimator.estimation.kalman.sensor_changes import ChangeComparison, LimbFilterChanges, LimbNormalEquations
from friction_estimator.laws.joint_laws import JointLaws
from test.estimation.kalman.synthetic import (
    JOINTS,
    NOISE,
    WINDOW,
    SyntheticLimb,
    filter_of,
    layout_of,
    limb_of,
    motors,
    random_balances,
)

NOISY = {"law_error_std": 0.1, "force_std": 0.5, "momentum_std": 2e-3}
NAMES = (("hip", "knee"), ("sole",))


def compared(changes, seed: int, seconds: float = 7.0) -> ChangeComparison:
    """Comparison of one limb: ten seconds without a change, then each change in turn, followed by some seconds."""
    limb_filter = filter_of(KalmanConfig(), priors=motors(JOINTS))
    limb = SyntheticLimb(limb_filter.layout, np.random.default_rng(seed), **NOISY)
    comparison = ChangeComparison([LimbFilterChanges(limb_filter)], *NAMES)
    limb.begin(limb_filter)
    for change in (None, *changes):
        if change is not None:
            change(limb)
        for _ in range(round((10.0 if change is None else seconds) / WINDOW)):
            limb_filter.update(limb.balance(), frozen=False, contact_transition=False)
            limb_filter.save_checkpoint(limb.time)
            comparison.advance(limb.time)
    return comparison


def add(block: str, index: int, size: float):
    def change(limb: SyntheticLimb) -> None:
        limb.state[getattr(limb.layout.first_state, block) + index] += size

    return change


def late_torques(limb: SyntheticLimb) -> None:
    limb.state[limb.layout["torque_delay"]] += 0.005
    limb.state[limb.layout["wrench_delay"]] -= 0.005


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("change", "cause", "size"),
    [
        (add("effort_gain", 1, 0.2), ("effort_gain", 1), 0.2),
        (add("effort_gain", 0, 2.0), ("effort_gain", 0), 2.0),
        (add("accelerometer_bias", 0, 0.8), ("accelerometer_bias", -1), 0.8),
        (add("wrench_delay", 0, 0.005), ("wrench_delay", 0), 0.005),
        (late_torques, ("torque_delay", -1), 0.005),
    ],
)
def test_the_right_change_of_a_sensor_is_the_most_likely_one_with_its_size(change, cause, size, seed):
    found = compared([change], seed).found
    assert found is not None and found.runner_up and (found.kind, found.place) == cause
    assert found.size == pytest.approx(size, rel=0.1)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_nothing_is_found_where_nothing_changes(seed):
    assert compared([lambda limb: None], seed).found is None


def test_changed_friction_is_no_change_of_a_sensor():
    def brake(limb: SyntheticLimb) -> None:
        limb.state[limb.layout["law"]] += 2.0

    found = compared([brake], 0, seconds=3.0).found
    assert found is None or (found.kind == "law" and not found.runner_up)


def test_a_sensor_that_is_right_again_has_not_changed():
    gain = {sign: add("effort_gain", 1, sign * 0.5) for sign in (1.0, -1.0)}
    assert compared([gain[1.0]], 0).found is not None
    assert compared([gain[1.0], gain[-1.0]], 0).found is None


def test_limbs_with_and_without_feet_are_compared_together():
    config, priors = KalmanConfig(), motors(2 * JOINTS)
    limbs = [limb_of(np.arange(JOINTS), np.array([0])), limb_of(np.arange(JOINTS, 2 * JOINTS), np.zeros(0, dtype=int))]
    laws = JointLaws(("three_slope",) * 2 * JOINTS)
    layouts = [make_layout(limb, laws, config, NOISE, True, priors) for limb in limbs]
    bounds = np.zeros_like(law_bounds(laws))
    filters = [LimbFilter(layout, config, bounds[:JOINTS], laws.presliding[:JOINTS]) for layout in layouts]
    comparison = ChangeComparison(
        [LimbFilterChanges(one) for one in filters], ("hip", "knee", "shoulder", "elbow"), ("sole",)
    )
    robot = [SyntheticLimb(layout, np.random.default_rng(4), **NOISY) for layout in layouts]
    for limb, limb_filter in zip(robot, filters, strict=True):
        limb.begin(limb_filter)
    for number in range(round(16.0 / WINDOW)):
        if number == round(10.0 / WINDOW):
            add("effort_gain", 1, 1.0)(robot[1])
        for limb, limb_filter in zip(robot, filters, strict=True):
            limb_filter.update(limb.balance(), frozen=False, contact_transition=False)
            limb_filter.save_checkpoint(limb.time)
        comparison.advance(robot[0].time)
    assert comparison.found is not None and comparison.found[:2] == ("effort_gain", 3)


def test_the_balance_is_that_of_a_regression_with_the_states_integrated_out():
    layout = layout_of(KalmanConfig(), priors=motors(JOINTS))
    rng, normal_equations = np.random.default_rng(3), LimbNormalEquations(layout)
    variance, part = np.full(JOINTS, 0.01), slice(layout.first_state.law, layout.size)
    windows = random_balances(layout, rng, count=11)
    for window in windows:
        normal_equations.add(window, variance)
    normal_equations.begin_second()
    state, root = rng.normal(size=layout.size), rng.normal(size=(layout.size, layout.size))
    covariance = root @ root.T / layout.size
    found = normal_equations.change_information(state, covariance, 1)

    first, block = windows[0], windows[1:]
    A = WINDOW * sum(window.force_columns for window in block)
    y = WINDOW * sum(window.force for window in block) - (block[-1].momentum - first.momentum)
    R = first.momentum_covariance + block[-1].momentum_covariance
    R = R + WINDOW**2 * sum(window.force_variance for window in block)
    friction = A[:, layout["law_error"]]
    R = R + friction @ np.diag(variance) @ friction.T
    A = A[:, part]
    S = R + A @ covariance[part, part] @ A.T
    changes = np.eye(layout.size - part.start)
    late = layout.first_state.torque_delay - part.start
    changes[layout.first_state.wrench_delay - part.start : layout["wrench_delay"].stop - part.start, late] = -1.0
    columns, residual = A @ changes, y - A @ state[part]
    np.testing.assert_allclose(found.information, columns.T @ np.linalg.solve(S, columns), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.product, columns.T @ np.linalg.solve(S, residual), rtol=1e-6, atol=1e-9)
    assert found.square == pytest.approx(residual @ np.linalg.solve(S, residual), rel=1e-6)
    assert found.numbers == JOINTS
