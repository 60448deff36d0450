"""Claims about the limb filter, on data that obey its own model."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from friction_estimator.config import KalmanConfig
from friction_estimator.estimation.kalman.limb_equations import adapt_law_error_variance
from friction_estimator.estimation.kalman.limb_filter import LAW_INFLATION, LimbFilter
from friction_estimator.estimation.kalman.limb_state import MotorPriors
from test.estimation.kalman.synthetic import JOINTS, LAW_STD, SyntheticLimb, filter_of, layout_of, motors

FREE = KalmanConfig(innovation_gate=1e6, law_process_noise=0.0, calibration_process_noise=0.0, law_error_memory=1e4)
"""Nothing but the linear Kalman filter."""
NOISY = {"law_error_std": 0.1, "force_std": 0.5, "momentum_std": 2e-3}


def learned(
    config: KalmanConfig, seed: int, windows: int = 600, priors: MotorPriors | None = None, **noise: float
) -> tuple[SyntheticLimb, LimbFilter]:
    """A limb and the filter that has seen it for some seconds."""
    limb_filter = filter_of(config, priors=priors)
    limb = SyntheticLimb(limb_filter.layout, np.random.default_rng(seed), **(noise or NOISY))
    limb.begin(limb_filter)
    for _ in range(windows):
        limb_filter.update(limb.balance(), frozen=False, contact_transition=False)
    return limb, limb_filter


def law_sigma(limb_filter: LimbFilter) -> np.ndarray:
    law = limb_filter.layout["law"]
    return np.sqrt(np.diagonal(limb_filter.covariance)[law])


@pytest.mark.parametrize("seed", [0, 1])
def test_without_noise_law_and_calibration_are_found_exactly(seed):
    quiet = dataclasses.replace(FREE, law_error_std=0.0)
    limb, limb_filter = learned(quiet, seed, priors=motors(JOINTS), momentum_std=1e-9)
    part = slice(limb_filter.layout.first_state.law, limb_filter.layout.size)
    np.testing.assert_allclose(limb_filter.state[part], limb.state[part], atol=2e-3)
    law = limb_filter.layout["law"]
    np.testing.assert_allclose(limb_filter.state[law], limb.state[law], atol=1e-3)


def test_errors_and_innovations_are_as_large_as_their_covariance():
    """Over 20 limbs: law, calibration and law error (NEES), and the innovations on the way (NIS)."""
    squares, dimensions, innovations = 0.0, 0, []
    for seed in range(20):
        limb_filter = filter_of(FREE, priors=motors(JOINTS))
        prior = limb_filter.layout["law"]
        limb_filter.covariance[prior, prior] = np.eye(prior.stop - prior.start) * LAW_STD**2
        limb = SyntheticLimb(limb_filter.layout, np.random.default_rng(seed), **NOISY)
        signs = np.random.default_rng(100 + seed).choice([-1.0, 1.0], prior.stop - prior.start)
        limb.state[prior] *= signs  # Gaussian about zero, as the prior says
        limb.begin(limb_filter)
        for _ in range(150):
            limb_filter.update(limb.balance(), frozen=False, contact_transition=False)
            innovations.append(limb_filter.fit.nis.copy())
        error, P = limb_filter.state - limb.state, limb_filter.covariance
        values, vectors = np.linalg.eigh(P)
        known = values > 1e-12 * values.max()
        squares += float(((vectors[:, known].T @ error) ** 2 / values[known]).sum())
        dimensions += int(known.sum())
    spread = 1.96 * np.sqrt(2.0 * dimensions)
    assert abs(squares - dimensions) < spread
    assert np.mean(innovations) == pytest.approx(1.0, abs=1.96 * np.sqrt(2.0 / np.size(innovations)))


@pytest.mark.parametrize(("true_std", "noise"), [(0.02, 0.02), (0.5, 1.0)])
def test_the_size_of_what_the_law_misses_is_found(true_std, noise):
    """Beginning at 0.1 N m; the smaller one shows with quieter sensors only."""
    config = dataclasses.replace(FREE, law_error_memory=3.0)
    noises = {"law_error_std": true_std, "force_std": noise * 0.5, "momentum_std": noise * 2e-3}
    found = [np.sqrt(learned(config, seed, 1500, **noises)[1].memory.law_error_variance).mean() for seed in range(3)]
    assert np.mean(found) == pytest.approx(true_std, rel=0.4)


def test_windows_that_show_too_little_leave_the_variance_of_the_law_error_as_it_is():
    """One joint, one parameter; an estimate as large as expected keeps the variance, a smaller one reduces it."""
    limb_filter = filter_of(dataclasses.replace(FREE, law_error_std=0.1))
    initial, memory, first = 0.01, limb_filter.memory, limb_filter.layout.first_state.law_error
    window = SyntheticLimb(limb_filter.layout, np.random.default_rng(0)).balance()

    def adapted(error: float, left: float) -> float:
        """Variance after a window with this estimate and this part of the variance left unknown."""
        limb_filter.reset_to_prior()
        memory.state[first], memory.covariance[first, first] = error, left * initial
        adapt_law_error_variance(memory, limb_filter.fit, window, limb_filter.table, 0.01, initial)
        return float(memory.law_error_variance[0])

    assert adapted(0.0, 0.9) == pytest.approx(initial, rel=1e-12)
    assert adapted(math.sqrt(0.5 * initial), 0.5) == pytest.approx(initial, rel=1e-12)
    assert adapted(0.0, 0.5) == pytest.approx(0.99 * initial) and adapted(0.2, 0.5) > 1.05 * initial


def change_friction(limb: SyntheticLimb) -> None:
    """The Coulomb terms of the first joint grow by 2 N m in all."""
    law = limb.layout["law"]
    limb.state[law.start : law.start + 3] += 2.0 / 3.0


def error_after_change(config: KalmanConfig) -> float:
    """Error of the friction, root mean square of the worse joint [N m], for half a second from 0.2 s after a change."""
    limb, limb_filter = learned(config, 3)
    change_friction(limb)
    errors = []
    for _ in range(70):
        window = limb.balance()
        limb_filter.update(window, frozen=False, contact_transition=False)
        errors.append(np.abs(limb.friction(window, limb_filter.state) - limb.friction(window, limb.state)).max())
    return float(np.sqrt(np.mean(np.square(errors[20:]))))


def test_changed_friction_is_estimated_within_a_fifth_of_a_second():
    error = error_after_change(KalmanConfig())
    assert error < 0.5
    never_noticed = KalmanConfig(min_change_duration=1e3, max_impact_duration=1e3)
    assert error < 0.6 * error_after_change(never_noticed)


def test_large_innovations_while_a_foot_lands_inflate_no_covariance():
    def opened(contact_transition: bool) -> float:
        limb, limb_filter = learned(KalmanConfig(), 3)
        before = law_sigma(limb_filter)
        change_friction(limb)
        for _ in range(10):
            limb_filter.update(limb.balance(), frozen=False, contact_transition=contact_transition)
        return float((law_sigma(limb_filter) / before).max())

    assert opened(contact_transition=True) < 1.1 < 1.5 < opened(contact_transition=False)


def test_impacts_do_not_move_the_law():
    """Thirty impacts, each a hundred times the noise and of random direction, 0.1 s apart."""

    def moved(config: KalmanConfig) -> np.ndarray:
        limb, limb_filter = learned(config, 5)
        law = limb_filter.layout["law"]
        before, sigma, rng = limb_filter.state[law].copy(), law_sigma(limb_filter), np.random.default_rng(9)
        for k in range(300):
            impulse = rng.normal(size=JOINTS) * 0.5 if k % 10 == 0 else None
            limb_filter.update(limb.balance(impulse), frozen=False, contact_transition=False)
        return np.abs(limb_filter.state[law] - before) / sigma

    assert moved(KalmanConfig()).max() < 2.0
    assert moved(FREE).max() > 3.0 * moved(KalmanConfig()).max()


def test_frozen_moves_neither_law_nor_calibration_and_still_follows_friction():
    errors, missed = [], []
    for seed in range(4):
        limb, limb_filter = learned(KalmanConfig(), seed, windows=400)
        law = limb_filter.layout["law"]
        part = slice(law.start, limb_filter.layout.size)
        state, covariance = limb_filter.state[part].copy(), limb_filter.covariance[law, law].copy()
        count = limb_filter.windows
        change_friction(limb)
        for number in range(100):
            window = limb.balance()
            limb_filter.update(window, frozen=True, contact_transition=False)
            truth = limb.friction(window, limb.state)
            if number >= 20:
                errors.append(limb.friction(window, limb_filter.state) - truth)
                missed.append(window.force_columns[:, law] @ limb_filter.state[law] - truth)
        np.testing.assert_array_equal(limb_filter.state[part], state)
        np.testing.assert_array_equal(limb_filter.covariance[law, law], covariance)
        assert limb_filter.windows == count
    assert np.square(errors).mean() < 0.25 * np.square(missed).mean()


def test_the_common_scale_of_the_torques_stays_fixed():
    """Gain errors of the motors add up to zero, and so surely that no data move their sum."""
    limb, limb_filter = learned(KalmanConfig(), 6, 100)
    gains = limb_filter.layout["effort_gain"]
    change_friction(limb)
    for k in range(200):
        limb_filter.update(
            limb.balance(np.ones(JOINTS) if k % 17 == 0 else None), frozen=k > 150, contact_transition=False
        )
        limb_filter.correct_foot_bias(0, np.full(6, 0.1), np.full(6, 0.1))
        assert abs(limb_filter.state[gains].sum()) < 1e-12
    assert np.abs(limb_filter.state[gains]).max() > 1e-4
    np.testing.assert_allclose(limb_filter.covariance[gains].sum(axis=0), 0.0, atol=1e-12)


def test_the_law_stays_within_a_standard_deviation_of_its_bounds():
    """A truth far beyond them: negative viscous friction in the data, none in the law."""
    config = KalmanConfig()
    free, bounded = filter_of(config), filter_of(config, bounded=True)
    viscous = bounded.layout.first_state.law + 3
    for limb_filter in (free, bounded):
        limb = SyntheticLimb(layout_of(config), np.random.default_rng(8), **NOISY)
        limb.state[viscous] = -3.0
        limb.begin(limb_filter)
        for _ in range(300):
            limb_filter.update(limb.balance(), frozen=False, contact_transition=False)
    assert free.state[viscous] < -2.0
    assert bounded.state[viscous] >= -1.001 * np.sqrt(bounded.covariance[viscous, viscous])


def test_an_unloaded_foot_gives_its_bias_and_what_hangs_on_it():
    limb, limb_filter = learned(KalmanConfig(), 7)
    bias = limb_filter.layout.foot_bias(0)
    before = np.diagonal(limb_filter.covariance)[bias].copy()
    for _ in range(50):
        reading = limb.state[bias] + np.random.default_rng(1).normal(size=6) * 0.01
        limb_filter.correct_foot_bias(0, reading, np.full(6, 0.01**2))
    np.testing.assert_allclose(limb_filter.state[bias], limb.state[bias], atol=0.03)
    assert (np.diagonal(limb_filter.covariance)[bias] < 0.01 * before).all()


def test_force_sensors_without_bias_are_not_given_one():
    limb_filter = filter_of(KalmanConfig(calibrate_sensors=False))
    limb_filter.correct_foot_bias(0, np.full(6, 3.0), np.full(6, 0.01))
    assert not limb_filter.state.any()


def test_time_without_measurements_forgets_the_law_error_and_keeps_the_law():
    limb, limb_filter = learned(KalmanConfig(), 2)
    layout = limb_filter.layout
    law, stationary = limb_filter.state[layout["law"]].copy(), limb_filter.memory.law_error_variance
    limb_filter.skip(5.0)
    assert not limb_filter.running
    np.testing.assert_allclose(limb_filter.state[layout["law_error"]], 0.0, atol=1e-9)
    np.testing.assert_allclose(np.diagonal(limb_filter.covariance)[layout["law_error"]], stationary, rtol=1e-6)
    np.testing.assert_array_equal(limb_filter.state[layout["law"]], law)
    limb.begin(limb_filter)
    assert limb_filter.running


def test_restarting_keeps_what_was_learned_and_forgetting_drops_it():
    _, limb_filter = learned(KalmanConfig(), 2)
    part = slice(limb_filter.layout.first_state.law, limb_filter.layout.size)
    state, covariance = limb_filter.state[part].copy(), limb_filter.covariance[part, part].copy()
    limb_filter.reset()
    np.testing.assert_array_equal(limb_filter.state[part], state)
    np.testing.assert_array_equal(limb_filter.covariance[part, part], covariance)
    assert not limb_filter.state[: part.start].any() and not limb_filter.running
    limb_filter.reset_to_prior()
    assert not limb_filter.state.any() and limb_filter.windows == 0
    np.testing.assert_array_equal(limb_filter.covariance[part, part], limb_filter.layout.prior_covariance()[part, part])


def test_after_a_change_law_sensors_and_links_are_open_and_the_momentum_is_not():
    _, limb_filter = learned(KalmanConfig(), 2)
    layout, before = limb_filter.layout, limb_filter.covariance.copy()
    for second in range(10):
        limb_filter.save_checkpoint(float(second))
    limb_filter.inflate_after_long_push()
    after, law, calibration = limb_filter.covariance, layout["law"], layout.calibration
    expected = (LAW_INFLATION * layout.prior_std[law]) ** 2
    np.testing.assert_allclose(np.diagonal(after - before)[law], expected)
    np.testing.assert_array_equal(after[: law.start, : law.start], before[: law.start, : law.start])
    np.testing.assert_array_equal(after[calibration, calibration], layout.changed_covariance())
    assert not after[calibration, : calibration.start].any()


def test_the_covariance_stays_symmetric_without_negative_variances():
    """Symmetric, and no variance below zero, after whatever happens."""
    limb, limb_filter = learned(KalmanConfig(), 1, 50)
    rng = np.random.default_rng(3)
    for k in range(300):
        impulse = rng.normal(size=JOINTS) * 3.0 if rng.uniform() < 0.1 else None
        limb_filter.update(limb.balance(impulse), frozen=rng.uniform() < 0.3, contact_transition=rng.uniform() < 0.3)
        if k % 50 == 0:
            limb_filter.skip(0.02)
            limb.begin(limb_filter)
        P = limb_filter.covariance
        np.testing.assert_array_equal(P, P.T)
        assert np.linalg.eigvalsh(P).min() > -1e-9 * P.diagonal().max()


def stuck_at(torque: float, sticks: bool) -> tuple[LimbFilter, np.ndarray]:
    """A first joint that rests in every second stretch of 20 windows, and its law error (w,) at the end of each.

    Parameters
    ----------
    torque : friction that the law does not have, while it rests, if it ``sticks`` [N m]
    """
    limb, limb_filter = learned(KalmanConfig(), 4, 300, force_std=0.2, momentum_std=1e-3)
    rests, held = np.array([25.0, 0.0]), []
    for window in range(80):
        resting = window % 40 >= 20
        limb.state[limb.layout.first_state.law_error] = torque if resting and sticks else 0.0
        read = limb.balance()._replace(stick_friction_squared=rests if resting else np.zeros(2))
        limb_filter.update(read, frozen=False, contact_transition=False)
        held.append(limb_filter.state[limb.layout.first_state.law_error])
    return limb_filter, np.array(held)


def test_a_joint_that_sticks_has_a_free_friction_at_rest_and_the_law_as_soon_as_it_moves():
    limb_filter, held = stuck_at(4.0, sticks=True)
    assert limb_filter.memory.stick_log_ratio[0] > 0.0 > limb_filter.memory.stick_log_ratio[1]
    np.testing.assert_array_equal(limb_filter.fit.free_at_rest, [True, False])
    np.testing.assert_allclose(held[61:80], 3.8, atol=0.6)
    assert np.abs(held[41:60]).max() < 0.3  # it moves between both rests


def test_friction_at_rest_is_free_while_the_dry_friction_is_not_known():
    limb, limb_filter = learned(KalmanConfig(), 4, 300, force_std=0.2, momentum_std=1e-3)
    at_rest = limb.balance()._replace(
        stick_friction_squared=np.full(2, 25.0), dry_friction_known=np.array([False, True])
    )
    limb_filter.update(at_rest, frozen=False, contact_transition=False)
    np.testing.assert_array_equal(limb_filter.fit.free_at_rest, [True, False])
    np.testing.assert_allclose(limb_filter.fit.stick_variance, [25.0 / 3.0, 0.0])


@pytest.mark.parametrize("torque", [-4.0, 4.0])
def test_a_torque_that_holds_a_joint_from_the_start_is_friction_and_no_offset_of_a_sensor(torque):
    limb_filter = filter_of(KalmanConfig(), priors=motors(JOINTS))
    layout = limb_filter.layout
    limb = SyntheticLimb(layout, np.random.default_rng(4), force_std=0.2, momentum_std=1e-3)
    limb.state[:], limb.state[layout["law_error"]] = 0.0, [torque, 0.0]
    limb.begin(limb_filter)
    for _ in range(20):
        limb.state[layout["law_error"]] = [torque, 0.0]
        at_rest = limb.balance()._replace(
            stick_friction_squared=np.full(2, 25.0), dry_friction_known=np.zeros(2, dtype=bool)
        )
        limb_filter.update(at_rest, frozen=False, contact_transition=False)
    offset, sigma = limb_filter.state[layout["effort_offset"]], np.sqrt(limb_filter.covariance.diagonal())
    assert (np.abs(offset) < sigma[layout["effort_offset"]]).all()
    held = limb_filter.state[layout["law_error"]]
    assert (np.abs(held - limb.state[layout["law_error"]]) < 2.0 * sigma[layout["law_error"]]).all()


def test_a_joint_that_rests_with_the_friction_of_its_law_keeps_the_variance_of_the_law():
    limb_filter, held = stuck_at(4.0, sticks=False)
    assert (limb_filter.memory.stick_log_ratio < 0.0).all()
    assert np.abs(held).max() < 0.3
