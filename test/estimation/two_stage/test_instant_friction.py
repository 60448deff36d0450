"""Claims about the friction of the instant: it counts where the sign of the velocity is unknown, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from friction_estimator.estimation.observers.fbse import FootBaseSensorEstimation
from friction_estimator.estimation.two_stage.balance import RobotMaps, empty_records
from friction_estimator.estimation.two_stage.frame import correct_by_fbse
from friction_estimator.kernels.records import to_buffer
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import MeasuredFriction
from test.biped import Instant, consistent_instant, suralp_config

CONFIG = suralp_config(fbse__base_angular_acceleration="gyro")
LEFT, RIGHT = slice(0, 6), slice(6, 12)


@pytest.fixture
def instant(urdf_xml) -> Instant:
    """The left foot stands; frictions of about 1 N m."""
    return consistent_instant(urdf_xml, np.random.default_rng(4), (True, False), minimum_norm=False)


def measure(robot: RobotModel, instant: Instant) -> MeasuredFriction:
    frame = instant.frame
    dynamics = robot.dynamics(frame.position, frame.velocity, frame.angular_velocity, frame.specific_force)
    fbse = FootBaseSensorEstimation(CONFIG, robot)
    return fbse.measure(frame, frame.wrenches, instant.attitude, instant.phase, dynamics)


def corrected(
    robot: RobotModel,
    instant: Instant,
    sign_std: float,
    std: float = 0.0,
    dry: float = 5.0,
    standing: bool = True,
    offset: float = 0.0,
    one_sided: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, MeasuredFriction]:
    """Friction and sigma (12,) where the law gives zero, and what was measured.

    Parameters
    ----------
    sign_std, std : standard deviation of the law's friction from the unknown sign, and from all else
    offset, one_sided : constant torque in the balance, and the part of it that is friction
    """
    n, measured = 12, measure(robot, instant)
    maps = RobotMaps(
        robot.motors.table, robot.motors.couples, robot.limb, np.repeat((0, 1), 6), robot.imu_lever, 6, True
    )
    template, (learned_buffer, learned), *_ = empty_records(n, 2, 1, 1, 2)
    learned.dry[:], learned.effort_offset[:], learned.one_sided[:] = dry, offset, one_sided
    out = template.new()
    out.sign_variance[:], out.sigma[:] = sign_std**2, np.hypot(sign_std, std)
    correct_by_fbse(to_buffer(maps), learned_buffer, instant.frame.effort, np.full(n, standing), *measured, out.buffer)
    return out.friction, out.sigma, measured


def test_a_sign_that_is_not_known_at_all_is_measured_on_the_leg_that_stands(robot, instant):
    friction, sigma, measured = corrected(robot, instant, sign_std=1e3)
    np.testing.assert_allclose(friction[LEFT], instant.friction[LEFT], atol=1e-3)
    np.testing.assert_allclose(sigma[LEFT], measured.sigma[LEFT], rtol=1e-3)
    assert not friction[RIGHT].any()


def test_law_and_measurement_are_weighed_by_their_variances(robot, instant):
    usual = measure(robot, instant).sigma
    friction, sigma, measured = corrected(robot, instant, sign_std=float(usual[0]), std=0.1)
    assert friction[0] == pytest.approx(0.5 * measured.friction[0])
    assert sigma[0] ** 2 == pytest.approx(0.5 * usual[0] ** 2 + 0.01)


def test_where_the_sign_is_known_nothing_changes(robot, instant):
    friction, sigma, _ = corrected(robot, instant, sign_std=0.0, std=0.3)
    assert not friction.any() and (sigma == 0.3).all()


def test_a_foot_that_lands_or_lifts_off_measures_nothing(robot, instant):
    assert not corrected(robot, instant, sign_std=1e3, standing=False)[0].any()


def test_a_torque_that_is_too_large_for_friction_is_a_foot_that_slips(robot, instant):
    sigma = measure(robot, instant).sigma
    dry = 0.2 * float((np.abs(instant.friction[LEFT]) - 3.0 * sigma[LEFT]).max())
    friction, _, measured = corrected(robot, instant, sign_std=1e3, dry=dry)
    slips = np.abs(measured.friction[LEFT]) > 1.5 * dry + 3.0 * sigma[LEFT]
    assert slips.any() and not friction[LEFT][slips].any() and friction[LEFT][~slips].all()


def test_an_offset_of_the_torque_sensor_is_no_friction_and_one_sided_friction_is(robot, instant):
    friction, _, measured = corrected(robot, instant, sign_std=1e3, offset=0.3, one_sided=0.1)
    np.testing.assert_allclose(friction[LEFT], measured.friction[LEFT] - 0.2, rtol=1e-3)
