"""Claims about joint states that carry no velocities: they are found from the positions, however they are missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from friction_estimator.config import OBSERVERS
from friction_estimator.errors import InputError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.smoothing import SmoothedEstimator
from test.biped import suralp_config
from test.feeding import feed
from test.sway import sway

MISSING = [None, np.zeros(0), np.full(12, np.nan)]


@pytest.fixture(scope="module")
def swaying(urdf_xml):
    return list(sway(urdf_xml, 0.5))


def run(estimator, instants, velocity):
    return feed(estimator, [replace(one, joints=replace(one.joints, velocity=velocity)) for one in instants])


@pytest.mark.parametrize("observer", OBSERVERS)
def test_velocities_are_found_from_the_positions(urdf_xml, swaying, observer):
    estimator = Estimator(suralp_config(observer=observer), urdf_xml)
    estimates = run(estimator, swaying, None)
    found, true = (np.array([one.velocity for one in part]) for part in (estimates, [one.joints for one in swaying]))
    assert np.abs(found - true)[100:].max() < 0.05 * np.abs(true).max()
    assert all(np.isfinite(estimate.friction).all() for estimate in estimates[1:] if estimate.measured.all())
    (event,) = estimator.health.events
    assert event.code == "missing_velocity" and event.stamp_ns == swaying[0].joints.stamp_ns


def test_it_does_not_matter_how_a_driver_leaves_velocities_out(urdf_xml, swaying):
    friction = [[one.friction for one in run(Estimator(suralp_config(), urdf_xml), swaying, v)] for v in MISSING]
    np.testing.assert_array_equal(friction[0], friction[1])
    np.testing.assert_array_equal(friction[0], friction[2])


def test_recordings_without_velocities_can_be_smoothed(urdf_xml, swaying):
    estimator = SmoothedEstimator(suralp_config(), urdf_xml, 0.1)
    estimates = run(estimator, swaying, None) + estimator.flush()
    assert len(estimates) == len(swaying) and all(np.isfinite(one.friction).all() for one in estimates[1:])


def test_velocities_that_come_and_go_restart_nothing(urdf_xml, swaying):
    estimator = Estimator(suralp_config(), urdf_xml)
    feed(estimator, swaying[:200])
    back = run(estimator, swaying[200:300], None) + feed(estimator, swaying[300:])
    assert all(np.isfinite(estimate.friction).all() for estimate in back)
    assert not estimator.health.restarts and not estimator.health.error_restarts


def test_some_velocities_missing_is_still_an_error(urdf_xml, swaying):
    velocity = swaying[0].joints.velocity.copy()
    velocity[3] = np.nan
    with pytest.raises(InputError, match="joint velocity"):
        run(Estimator(suralp_config(), urdf_xml), swaying[:1], velocity)
