"""Claims about joint states that carry no motor torques."""

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

UNKNOWN = np.full(12, np.nan)


@pytest.fixture(scope="module")
def swaying(urdf_xml):
    return list(sway(urdf_xml, 0.3))


def run(estimator, instants, effort=None):
    if effort is not None:
        instants = [replace(instant, joints=replace(instant.joints, effort=effort)) for instant in instants]
    return feed(estimator, instants)


@pytest.mark.parametrize("observer", OBSERVERS)
def test_base_and_contact_are_those_with_torques_and_friction_is_unknown(urdf_xml, swaying, observer):
    config = suralp_config(observer=observer)
    with_torques = run(Estimator(config, urdf_xml), swaying)
    estimator = Estimator(config, urdf_xml)
    without = run(estimator, swaying, UNKNOWN)
    for a, b in zip(with_torques[-50:], without[-50:], strict=True):
        np.testing.assert_array_equal(a.base.position_base_in_world, b.base.position_base_in_world)
        np.testing.assert_array_equal(a.base.rotation_base_to_world, b.base.rotation_base_to_world)
        assert a.phase.name == b.phase.name
        assert np.isnan(b.friction).all() and np.isnan(b.sigma).all() and not b.measured.any()
    assert estimator.health.without_effort == len(swaying)
    (event,) = [event for event in estimator.health.events if event.code == "missing_effort"]
    assert "carry no effort" in event.text and event.stamp_ns == swaying[0].joints.stamp_ns


def test_friction_starts_anew_when_torques_come_back(urdf_xml, swaying):
    config = suralp_config()
    half = len(swaying) // 2
    estimator = Estimator(config, urdf_xml)
    run(estimator, swaying[:half], UNKNOWN)
    back = run(estimator, swaying[half:])
    assert all(np.isfinite(estimate.friction).all() for estimate in back[1:])


def test_nothing_is_compensated_without_torques(urdf_xml, swaying):
    estimator = Estimator(suralp_config(compensation__enabled=True), urdf_xml)
    for estimate in run(estimator, swaying[:50], UNKNOWN):
        np.testing.assert_array_equal(estimate.compensation, 0.0)


def test_some_torques_missing_is_still_an_error(urdf_xml, swaying):
    effort = swaying[0].joints.effort.copy()
    effort[3] = np.nan
    with pytest.raises(InputError, match="joint effort"):
        run(Estimator(suralp_config(), urdf_xml), swaying[:1], effort)


def test_there_is_nothing_to_smooth_without_torques(urdf_xml, swaying):
    with pytest.raises(InputError, match="without smoothing"):
        run(SmoothedEstimator(suralp_config(), urdf_xml, 0.1), swaying[:1], UNKNOWN)
