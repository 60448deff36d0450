"""Claims about what a window shows of a limb: how uncertain its force is, and what may hold its motors."""

from __future__ import annotations

import numpy as np
import pytest

from friction_estimator.estimation.kalman.law_bounds import law_bounds
from friction_estimator.estimation.kalman.limb_equations import LimbBalance
from friction_estimator.estimation.kalman.limb_filter import LimbFilter
from friction_estimator.estimation.kalman.limb_state import MotorPriors, find_limbs, make_layout
from friction_estimator.estimation.kalman.local_motion import LocalMotion
from friction_estimator.estimation.kalman.window_dynamics import WindowDynamics, correlated_error_factor
from friction_estimator.estimation.kalman.windows import Window
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.robot.model import RobotModel
from test.biped import suralp_config

LENGTHS = (0.01, 0.02)
FORCE_STD = 1.0


def window(duration: float, wrench_roughness: float = 0.0, law_variance: float = 0.0) -> Window:
    """A biped at rest, a reading each millisecond; roughness of its forces [N^2], variance of its friction."""
    resting = LocalMotion(np.full(12, 0.1), np.zeros(12), np.full(12, 1e-3), np.zeros(3), np.full(3, 1e-3))
    return Window(
        time=duration, duration=duration, samples=round(duration / 1e-3), reading_counts=np.full(3, duration / 1e-3),
        end_motion=resting, angular_acceleration=np.zeros(3), acceleration=np.zeros(12), mean_acceleration=np.zeros(15),
        mean_acceleration_std=np.ones(15), effort=np.zeros(12),
        specific_force=np.array([0.0, 0.0, 9.81]),
        wrenches=np.zeros((2, 6)), wrench_shift=np.zeros(2), effort_rate=np.zeros(12),
        wrench_rate=np.zeros((2, 6)), normal_force=np.zeros((2, 2)), specific_force_roughness=np.zeros(3),
        wrench_roughness=np.tile([*np.full(3, wrench_roughness), 0.0, 0.0, 0.0], (2, 1)),
        regressor=np.zeros((12, 9)), motor_friction_variance=np.full(12, law_variance), complete=True, imu_fresh=True,
        wrench_fresh=np.ones(2, dtype=bool), disturbed=np.zeros(12, dtype=bool),
    )  # fmt: skip


def balance_of_leg(urdf_xml: str, window: Window) -> LimbBalance:
    """Balance of momentum of the first leg, with sensors that have noise in the forces of the feet only."""
    noise = {"force_std": FORCE_STD, "moment_std": 0.0, "effort_std": 0.0, "specific_force_std": 0.0}
    config = suralp_config(**{f"sensors__{name}": std for name, std in noise.items()})
    robot = RobotModel(config, urdf_xml)
    limb, laws = find_limbs(robot)[0], JointLaws(("six_slope_load",) * 12)
    layout = make_layout(limb, laws, config.kalman, config.sensors, True, MotorPriors.from_robot(robot))
    dynamics = WindowDynamics(config, robot, laws)
    for part in dynamics.parts(window):
        part()
    leg = LimbFilter(layout, config.kalman, law_bounds(laws)[limb.joints], laws.presliding[limb.joints])
    return balance(dynamics, leg)


def balance(dynamics: WindowDynamics, leg: LimbFilter) -> LimbBalance:
    """Balance of momentum of a leg over the newest window."""
    buffers = leg.buffers
    dynamics.balance_of_limb(buffers.limb, buffers.table, buffers.memory, buffers.balance)
    return leg.balance


@pytest.mark.parametrize("duration", LENGTHS)
def test_noise_of_a_moving_joint_is_averaged_over_the_window_and_lasts_for_a_tenth_of_a_second(urdf_xml, duration):
    one = balance_of_leg(urdf_xml, window(0.001))
    np.testing.assert_allclose(
        balance_of_leg(urdf_xml, window(duration)).force_variance * duration**2,
        one.force_variance * 0.001**2,
        atol=1e-12,
    )


def test_noise_of_a_joint_at_rest_is_white():
    duration = 0.01
    moving, slow, resting = (correlated_error_factor(speed, duration) for speed in (0.5, -0.01, 0.0))
    assert resting == 1.0 and moving == pytest.approx(0.1 / duration) and 9.0 < slow < moving


@pytest.mark.parametrize("duration", LENGTHS)
def test_what_shakes_counts_as_an_error_that_stays_for_a_tenth_of_a_second(urdf_xml, duration):
    """Its variance times its time is that of white noise from window to window."""
    quiet, shaken = (
        balance_of_leg(urdf_xml, window(duration, wrench_roughness=rough)) for rough in (FORCE_STD**2, 100.0)
    )
    per_reading = quiet.force_variance * round(duration / 1e-3) / FORCE_STD**2
    np.testing.assert_allclose(shaken.force_variance, per_reading * 100.0, atol=1e-9)


@pytest.mark.parametrize("duration", LENGTHS)
def test_friction_at_an_uncertain_velocity_is_as_uncertain_for_a_tenth_of_a_second(urdf_xml, duration):
    sure, unsure = (balance_of_leg(urdf_xml, window(duration, law_variance=variance)) for variance in (0.0, 0.25))
    more = unsure.force_variance - sure.force_variance
    np.testing.assert_allclose(more, 0.25 * 0.1 / duration * np.eye(6), atol=1e-9)


def test_a_joint_may_stick_with_the_dry_friction_of_its_law_and_with_anything_before_that_is_known(urdf_xml):
    """Law parameters of three motors at rest, or slow: a known law, the same while the motor moves, and the prior."""
    config = suralp_config()
    robot, laws = RobotModel(config, urdf_xml), JointLaws(("coulomb_viscous",) * 12)
    limb = find_limbs(robot)[0]
    layout = make_layout(limb, laws, config.kalman, config.sensors, True, MotorPriors.from_robot(robot))
    leg = LimbFilter(layout, config.kalman, law_bounds(laws)[limb.joints], laws.presliding[limb.joints])
    known = slice(layout.first_state.law, layout.first_state.law + 4)
    leg.state[known], leg.covariance[known, known] = (4.0, 0.0, 4.0, 0.0), np.diag((0.2, 0.0, 0.2, 0.0))
    prior = leg.covariance[layout.first_state.law + 4, layout.first_state.law + 4]
    dynamics = WindowDynamics(config, robot, laws)
    still = window(0.01)._replace(regressor=np.zeros((12, 2)))
    moved = still.end_motion._replace(position=still.end_motion.position + 0.01 * 0.05 * (np.arange(12) == 1))
    for one in (still, still._replace(end_motion=moved)):
        for part in dynamics.parts(one):
            part()
    found = balance(dynamics, leg)
    np.testing.assert_allclose(found.dry_friction[:3] ** 2, [16.2, 16.2, prior], rtol=1e-2)
    np.testing.assert_allclose(found.stick_friction_squared[:3], [16.2, 0.0, prior], rtol=1e-2, atol=1e-3)
    np.testing.assert_array_equal(found.dry_friction_known[:3], [True, True, False])


def test_a_gear_that_deflects_or_an_encoder_that_slips_adds_the_torque_of_another_position(urdf_xml):
    rng = np.random.default_rng(0)
    readings = window(0.01)._replace(
        effort=rng.normal(size=12) * 50.0, wrenches=rng.normal(size=(2, 6)) * [[50.0, 50.0, 500.0, 20.0, 20.0, 5.0]]
    )
    compliance = np.where(np.arange(12) < 6, rng.uniform(0.0, 2e-6, 12), 0.0)
    deflected = readings.end_motion.position - compliance * readings.effort
    by_readings = balance_of_leg(urdf_xml, readings)
    truth = balance_of_leg(urdf_xml, readings._replace(end_motion=readings.end_motion._replace(position=deflected)))
    compliances, offsets = by_readings.force_columns[:, -12:-6], by_readings.force_columns[:, -6:]
    error = by_readings.force - truth.force
    assert np.abs(error).max() > 0.01
    np.testing.assert_allclose(compliances @ compliance[:6], error, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(offsets @ (compliance * readings.effort)[:6], error, rtol=1e-3, atol=1e-4)
