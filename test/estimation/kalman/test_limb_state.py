"""Claims about the layout of a limb's state."""

from __future__ import annotations

import re

import numpy as np
import pytest

from friction_estimator.config import KalmanConfig, SensorNoise
from friction_estimator.estimation.kalman.limb_state import (
    CHANGED_FACTOR,
    SLIP_STD,
    LimbStateLayout,
    MotorPriors,
    make_layout,
    sensor_errors,
)
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.robot.model import RobotModel
from test.biped import suralp_config
from test.estimation.kalman.synthetic import limb_of, motors

LIMB = limb_of(np.array([1, 2, 4]), np.array([1]))
LAWS = JointLaws(("coulomb_viscous", "three_slope", "coulomb_viscous", "three_slope", "three_slope"))


def layout(
    config: KalmanConfig | None = None, noise: SensorNoise | None = None, floating: bool = True
) -> LimbStateLayout:
    return make_layout(LIMB, LAWS, config or KalmanConfig(), noise or SensorNoise(), floating, motors(5))


def test_blocks_cover_the_state_without_gaps():
    found = layout()
    blocks = [found[name] for name in found.first_state._fields]
    assert [block.stop - block.start for block in blocks] == [3, 3, 3 * 4, 3 * 4, 6, 6, 3, 3, 1, 1, 3, 3, 3, 3]
    assert [block.start for block in blocks] == [0, *(block.stop for block in blocks[:-1])]
    assert found.size == found.prior_std.size == blocks[-1].stop
    assert found.first_state.law == 6 and found.calibration == slice(18, found.size)
    assert found.foot_bias(0) == found["foot_bias"]


def test_after_a_change_usual_errors_are_larger_and_encoders_may_have_slipped():
    found, free = layout(), layout()["position_offset"]
    part = found.calibration
    changed, prior = found.changed_covariance(), found.prior_covariance()[part, part]
    slips = np.diagonal(changed)[free.start - part.start : free.stop - part.start]
    np.testing.assert_allclose(slips, SLIP_STD**2)
    others = slice(0, free.start - part.start)
    np.testing.assert_allclose(changed[others, others], CHANGED_FACTOR**2 * prior[others, others])
    assert not prior[-3:, -3:].any()


def test_a_joint_whose_law_is_shorter_has_nothing_to_learn_in_the_other_columns():
    prior = layout().prior_std[layout()["law"]].reshape(3, 4)
    np.testing.assert_array_equal(prior > 0.0, LAWS.prior_std[LIMB.joints] > 0.0)
    np.testing.assert_array_equal(prior[1, 2:], 0.0)


@pytest.mark.parametrize(
    ("name", "block", "usual"),
    [
        ("force_gain_std", "foot_gain", 0.01),
        ("effort_gain_std", "effort_gain", 0.01),
        ("specific_force_bias_std", "accelerometer_bias", 0.3),
        ("moment_bias_std", "foot_bias", 0.1),
    ],
)
def test_the_larger_of_usual_and_given_sensor_errors_counts(name, block, usual):
    for calibrate, given, expected in ((False, 0.0, 0.0), (False, 0.4, 0.4), (True, 0.003, usual), (True, 0.4, 0.4)):
        found = layout(KalmanConfig(calibrate_sensors=calibrate), SensorNoise(**{name: given}))
        np.testing.assert_array_equal(found.prior_std[found[block]][-1], expected)


def test_a_fixed_base_has_no_accelerometer_to_calibrate():
    found = layout(floating=False)
    np.testing.assert_array_equal(found.prior_std[found["accelerometer_bias"]], 0.0)


def test_motor_torques_are_right_on_average():
    found = layout()
    covariance = found.prior_covariance()
    gains = covariance[found["effort_gain"], found["effort_gain"]]
    np.testing.assert_allclose(gains.sum(axis=0), 0.0, atol=1e-18)
    assert np.linalg.eigvalsh(gains)[1:].min() == pytest.approx(
        sensor_errors(KalmanConfig(), SensorNoise()).effort_gain_std ** 2
    )
    others = np.delete(np.arange(found.size), np.r_[found["effort_gain"]])
    np.testing.assert_array_equal(covariance[np.ix_(others, others)], np.diag(found.prior_std[others] ** 2))


def test_offsets_rotor_inertias_and_deflections_are_as_large_as_the_motor_is_strong(urdf_xml):
    robot = RobotModel(suralp_config(), urdf_xml)
    priors = MotorPriors.from_robot(robot)
    np.testing.assert_allclose(priors.offset_std, 0.005 * robot.effort_limit)
    np.testing.assert_allclose(priors.armature_std, 3e-4 * robot.effort_limit)
    np.testing.assert_allclose(priors.compliance_std * robot.effort_limit, 0.0075)
    names = list(robot.joint_names)
    config = suralp_config(robot__joints=names, robot__armature=[0.02] * 12)
    given = MotorPriors.from_robot(RobotModel(config, urdf_xml))
    np.testing.assert_allclose(given.armature_std, 0.002)


def test_a_motor_without_effort_limit_is_as_strong_as_the_weight_of_the_robot(urdf_xml):
    robot = RobotModel(suralp_config(), re.sub(r'effort="[^"]*"', 'effort="0"', urdf_xml))
    np.testing.assert_allclose(MotorPriors.from_robot(robot).offset_std, 0.005 * 0.3 * robot.weight)
