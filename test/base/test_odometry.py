"""Claims about the base state by standing feet, through the whole path."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from friction_estimator.estimation.estimator import Estimator
from test.biped import suralp_config
from test.feeding import feed
from test.sway import sway

START = 1000


@pytest.fixture(scope="module")
def swaying(urdf_xml):
    return list(sway(urdf_xml, 3.0, amplitude=0.02, turn=0.03))


def follow(urdf_xml, swaying, method, silent=range(0)):
    """Base states, and the instants they are of."""
    estimator = Estimator(suralp_config(base_state__method=method), urdf_xml)
    unknown = np.full(len(estimator.joint_names), np.nan)
    instants = (dataclasses.replace(i, joints=dataclasses.replace(i.joints, effort=unknown)) for i in swaying)
    estimates = feed(estimator, instants, without_imu=silent)
    return [estimate.base for estimate in estimates], swaying[: len(estimates)]


def tilts(bases, instants):
    """Errors about the horizontal axes [rad], (s, 2)."""
    turned = [base.rotation_base_to_world @ true.rotation.T for base, true in zip(bases, instants, strict=True)]
    return Rotation.from_matrix(turned[START:]).as_rotvec()[:, :2]


@pytest.fixture(scope="module")
def odometry(urdf_xml, swaying):
    return follow(urdf_xml, swaying, "odometry")


def test_legs_show_the_tilt_that_the_accelerometer_takes_for_gravity(urdf_xml, swaying, odometry):
    """A trunk that sways is accelerated; the attitude stage alone leans with it."""
    alone = tilts(*follow(urdf_xml, swaying, "lipm"))
    assert np.sqrt((alone**2).mean()) > 1e-3
    assert np.sqrt((tilts(*odometry) ** 2).mean()) < 0.5 * np.sqrt((alone**2).mean())


def test_position_and_tilt_are_within_their_sigma_which_stays_below_the_size_of_the_robot(odometry):
    bases, instants = odometry
    moved = np.array([true.position for true in instants]) - instants[0].position
    errors = np.array([base.position_base_in_world for base in bases]) - bases[0].position_base_in_world - moved
    covariance = np.array([base.pose_covariance for base in bases])
    sigma = np.sqrt(covariance.diagonal(axis1=1, axis2=2))
    assert (np.abs(errors[START:]) < 2.0 * sigma[START:, :3]).all()
    assert (np.abs(tilts(bases, instants)) < 2.0 * sigma[START:, 3:5]).all()
    assert sigma[START:, :3].max() < 0.03
    assert np.linalg.eigvalsh(covariance[START::100]).min() > -1e-12


def test_the_tilt_is_kept_while_the_imu_is_silent(urdf_xml, swaying):
    silent = range(2000, 2300)
    bases, _ = follow(urdf_xml, swaying, "odometry", silent)
    rotations = np.array([base.rotation_base_to_world for base in bases])
    turned = Rotation.from_matrix(rotations[silent] @ rotations[silent.start - 1].T).as_rotvec()
    assert np.abs(turned[:, :2]).max() < 1e-3
    assert np.isfinite([base.position_base_in_world for base in bases]).all()
