"""Claims about the friction of the instant: used where the law cannot tell the sign, and nowhere else."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from friction_estimator.estimation.kalman.frame import FrameOutput
from friction_estimator.estimation.kalman.instant_correction import correct_by_measurements
from friction_estimator.estimation.kalman.limb_estimates import empty_estimates
from friction_estimator.estimation.observers.fbse import FootBaseSensorEstimation
from friction_estimator.kernels.records import buffered
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import MeasuredFriction, SensorFrame
from test.biped import Instant, consistent_instant, suralp_config

CONFIG = suralp_config(fbse__base_angular_acceleration="gyro")
UNKNOWN = np.full((2, 12), np.nan), np.full((2, 12), np.nan)
FIRM = np.zeros(12, dtype=bool)
Arrays = tuple[np.ndarray, np.ndarray]


@pytest.fixture
def instant(urdf_xml) -> Instant:
    """The left foot stands; frictions of about 1 N m."""
    return consistent_instant(urdf_xml, np.random.default_rng(4), (True, False), minimum_norm=False)


def correct(
    friction: float,
    variance: float | np.ndarray,
    dry: float,
    residual: Arrays,
    measured: MeasuredFriction | None = None,
    transition: np.ndarray | None = None,
    calibration: Arrays | None = None,
    velocity: float | np.ndarray = 0.0,
) -> Arrays:
    """Friction (n,) of an estimate with this variance from its velocity, and what is left of the variance (n,).

    The residual is the external torque behind both low-passes (2, n), and the variance of its readings.
    """
    n = residual[0].shape[1]
    unknown, nowhere, corrected, sigma = np.full(n, np.nan), np.zeros(n, dtype=bool), np.empty(n), np.empty(n)
    (of_frame, now), (buffer, estimates) = buffered(FrameOutput.zeros(n, 0, 1)), buffered(empty_estimates(n, 1, 0, 1))
    now.friction[:], now.correctable_variance[:] = friction, variance
    now.external.slow[:], now.external.fast[:] = residual[0]
    now.external.slow_noise[:], now.external.fast_noise[:] = residual[1]
    errors = estimates.calibration
    errors.without_wrenches[:], errors.variance[:] = calibration or np.zeros((2, n))
    measured = measured or MeasuredFriction(unknown, unknown, unknown, nowhere)
    transition = nowhere if transition is None else transition
    correct_by_measurements(
        of_frame, buffer, np.full(n, dry), *measured, transition, np.zeros(n), np.full(n, velocity, dtype=float),
        corrected, sigma,
    )  # fmt: skip
    return corrected, sigma**2


def corrected(
    robot: RobotModel,
    instant: Instant,
    variance: float,
    feet: FootBaseSensorEstimation | None = None,
    frame: SensorFrame | None = None,
    residual: Arrays = UNKNOWN,
    transition: np.ndarray = FIRM,
    calibration: Arrays | None = None,
) -> Arrays:
    """Friction (12,) of an estimate of zero with this variance, and what is left of the variance (12,)."""
    frame = frame or instant.frame
    dynamics = robot.dynamics(frame.position, frame.velocity, frame.angular_velocity, frame.specific_force)
    feet = feet or FootBaseSensorEstimation(CONFIG, robot)
    measured = feet.measure(frame, frame.wrenches, instant.attitude, instant.phase, dynamics)
    return correct(0.0, variance, 5.0, residual, measured, transition, calibration, velocity=1.0)


def test_an_estimate_that_knows_nothing_becomes_the_measurement_on_the_standing_leg(robot, instant):
    friction, variance = corrected(robot, instant, 1e6)
    np.testing.assert_allclose(friction[:6], instant.friction[:6], atol=1e-3)
    np.testing.assert_array_equal(friction[6:], 0.0)
    assert (variance[:6] < 100.0).all()
    np.testing.assert_array_equal(variance[6:], 1e6)


def test_a_measurement_that_is_too_large_for_friction_corrects_nothing(robot, instant):
    """A torque of 20 N m that is no friction, as a foot makes that slips, acts on the first joint."""
    slipping = dataclasses.replace(instant.frame, effort=instant.frame.effort + 20.0 * (np.arange(12) == 0))
    friction, variance = corrected(robot, instant, 2.0, frame=slipping)
    assert friction[0] == 0.0 and variance[0] == pytest.approx(2.0)
    assert (variance[1:6] < 1.99).all()


def test_estimate_and_measurement_are_weighed_by_their_variances(robot, instant):
    """The Kalman update of a scalar: the posterior variance is the harmonic sum, the estimate lies between."""
    measured, posterior_of_nothing = corrected(robot, instant, 1e9)
    friction, variance = corrected(robot, instant, 2.0)
    expected = 1.0 / (1.0 / 2.0 + 1.0 / posterior_of_nothing)
    np.testing.assert_allclose(variance[:6], expected[:6], rtol=1e-5)
    np.testing.assert_allclose(friction[:6], (expected / posterior_of_nothing * measured)[:6], rtol=1e-5, atol=1e-9)


def test_what_calibration_explains_is_no_friction_and_its_doubt_counts(robot, instant):
    torque = np.linspace(-1.0, 1.0, 12)
    plain, less = corrected(robot, instant, 1e9), corrected(robot, instant, 1e9, calibration=(torque, np.full(12, 3.0)))
    np.testing.assert_allclose(less[0][:6], (plain[0] - torque)[:6], atol=1e-3)
    np.testing.assert_allclose(less[1][:6], plain[1][:6] + 3.0, rtol=1e-3)


def test_measured_noise_makes_the_measurement_count_less(robot, instant):
    """Noise that the monitor found, larger than the parameters have it."""
    feet, sensors = FootBaseSensorEstimation(CONFIG, robot), CONFIG.sensors
    _, by_parameters = corrected(robot, instant, 2.0, feet)
    feet.retune(dataclasses.replace(sensors, velocity_std=20.0 * sensors.velocity_std, force_std=20.0))
    feet.reset()
    _, by_measured_noise = corrected(robot, instant, 2.0, feet)
    assert (by_measured_noise[:6] > 1.5 * by_parameters[:6]).all()


def test_a_leg_in_the_air_is_corrected_by_the_momentum_observer_and_the_standing_one_is_not(robot, instant):
    residual = np.full((2, 12), 0.5), np.full((2, 12), 0.01)
    friction, variance = corrected(robot, instant, 2.0, residual=residual)
    np.testing.assert_array_equal(friction[:6], corrected(robot, instant, 2.0)[0][:6])
    assert (friction[6:] < -0.3).all() and (variance[6:] < 0.6).all()


def test_a_leg_whose_foot_lands_or_lifts_off_is_corrected_by_the_momentum_observer(robot, instant):
    """FBSE needs the acceleration of a foot that rolls or is hit; the momentum observer needs none."""
    residual = np.full((2, 12), 0.5), np.full((2, 12), 0.01)
    friction, variance = corrected(robot, instant, 2.0, residual=residual, transition=np.arange(12) < 6)
    np.testing.assert_allclose(friction[:6], friction[6:])
    assert (variance < 0.6).all()


def test_an_arm_without_feet_is_corrected_by_the_momentum_observer():
    friction, variance = correct(1.0, 1.0, 1.0, (np.full((2, 1), 2.0), np.full((2, 1), 0.01)))
    assert friction[0] < 0.0 and variance[0] < 0.5


def test_a_momentum_observer_that_lags_corrects_a_part_and_no_more_than_friction_can_be():
    prior_variance, knows = 0.5, np.arange(6) == 2
    variance = np.array([prior_variance, prior_variance, prior_variance, prior_variance, 0.03, prior_variance])
    external, noise = np.array([0.5, 0.5, 0.5, np.nan, 0.5, 8.0]), np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    measured = MeasuredFriction(*np.full((3, 6), np.nan), knows)
    friction, left = correct(1.0, variance, 1.0, (np.stack([external] * 2), np.stack([noise] * 2)), measured)
    assert 1.0 - 0.5 < friction[0] < 1.0 - 0.4 and 0.05 * prior_variance < left[0] < 0.2 * prior_variance
    assert friction[0] < friction[1] < 1.0 and left[0] < left[1] < prior_variance
    np.testing.assert_array_equal(friction[2:], 1.0)
    np.testing.assert_allclose(left[2:], variance[2:], rtol=1e-12)


def test_the_fast_low_pass_counts_where_the_readings_are_good_enough_and_the_slow_one_elsewhere():
    external, noise = np.array([[0.1, 0.1], [0.5, 0.5]]), np.array([[0.0, 0.0], [0.01, 1.0]])
    friction, _ = correct(1.0, 0.5, 1.0, (external, noise))
    assert friction[0] == pytest.approx(0.55, abs=0.02) and friction[1] == pytest.approx(0.92, abs=0.01)


def test_a_slow_joint_far_from_the_measured_friction_has_reversed_and_a_fast_one_has_not():
    """The law gives 3 N m and is sure to 0.05 N m; measured are -3 and 2.9 N m, to 0.3 N m."""
    std, everywhere = np.full(3, 0.3), np.ones(3, dtype=bool)
    measured, velocity = (
        MeasuredFriction(np.array([-3.0, -3.0, 2.9]), std, std, everywhere),
        np.array([2e-3, 1.0, 2e-3]),
    )
    friction, prior_variance = correct(3.0, 0.0025, 3.0, np.full((2, 2, 3), np.nan), measured, velocity=velocity)
    np.testing.assert_allclose(friction, [-3.0, 3.0, 3.0], atol=0.2)
    assert prior_variance[0] == pytest.approx(0.3**2, rel=0.01) and (prior_variance[1:] < 0.0026).all()
