"""Which part of the constant torques is friction: the joints of a robot decide together."""

from __future__ import annotations

import numpy as np

from friction_estimator.estimation.kalman.limb_estimates import empty_estimates, split_offset
from friction_estimator.kernels.records import buffered
from friction_estimator.types import FloatArray

DRY = np.linspace(0.5, 2.0, 12)
SIGNS = np.tile((1.0, -1.0, -1.0), 4)
SENSOR = 2.0 * DRY


def shared(offset: FloatArray, std: FloatArray, asymmetry_std: float = 0.2) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the friction of one direction, over the dry friction, for identified offsets."""
    buffer, out = buffered(empty_estimates(12, 1, 0, 1))
    out.constant.offset[:], out.constant.offset_variance[:] = offset, std**2
    split_offset(buffer, DRY, SENSOR, asymmetry_std)
    return out.constant.asymmetric_friction / DRY, np.sqrt(out.constant.asymmetric_friction_variance) / DRY


def test_constant_torques_of_all_joints_in_proportion_to_their_friction_are_friction():
    mean, std = shared(0.4 * SIGNS * DRY, 0.05 * DRY)
    assert (np.abs(mean - 0.35 * SIGNS) < 0.07).all() and (std < 0.25).all()


def test_a_single_constant_torque_is_an_error_of_its_sensor():
    mean, std = shared(np.where(np.arange(12) == 3, 1.5, 0.05 * SIGNS) * DRY, 0.05 * DRY)
    assert (np.abs(mean) < 0.1).all() and (std < 0.3).all()


def test_small_constant_torques_are_no_friction_and_leave_its_prior_uncertainty():
    mean, std = shared(0.1 * SIGNS * DRY, 0.05 * DRY)
    assert (np.abs(mean) < 0.05).all() and ((0.15 <= std) & (std < 0.2)).all()


def test_what_no_data_show_keeps_its_prior():
    mean, std = shared(np.zeros(12), SENSOR)
    assert (mean == 0.0).all() and ((0.1 < std) & (std < 0.2)).all()


def test_without_asymmetry_nothing_is_friction():
    mean, std = shared(0.4 * SIGNS * DRY, 0.05 * DRY, asymmetry_std=0.0)
    assert (mean == 0.0).all() and (std == 0.0).all()


def test_joints_without_friction_and_without_any_window_stay_finite():
    buffer, out = buffered(empty_estimates(3, 1, 0, 1))
    split_offset(buffer, np.zeros(3), np.array([0.0, 1.0, 1.0]), 0.2)
    assert (
        np.isfinite(out.constant.asymmetric_friction).all()
        and np.isfinite(out.constant.asymmetric_friction_variance).all()
    )
