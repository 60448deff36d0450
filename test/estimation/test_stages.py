"""Claims about the two parts of the pipeline that can run as processes of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.robot import load_robot
from friction_estimator.messages import topics
from friction_estimator.simulation import SimulationSample, Simulator, make_noise, make_scenario
from friction_estimator.types import FrictionEstimate
from test.feeding import feed

ROBOT = load_robot("suralp")


@pytest.fixture(scope="module")
def samples() -> list[SimulationSample]:
    simulator = Simulator(ROBOT.config, ROBOT.urdf_xml, make_scenario("walk", 1.2), make_noise("realistic"), seed=0)
    return [simulator.step() for _ in range(1200)]


def estimated(samples: list[SimulationSample], **changes: object) -> list[FrictionEstimate]:
    estimator = Estimator(replace(ROBOT.config, **changes), ROBOT.urdf_xml)
    return feed(estimator, samples) + estimator.flush()


@pytest.mark.parametrize(("stages", "compensates"), [("friction", True), ("base_state", False)])
def test_friction_is_compensated_where_it_is_estimated(samples, stages, compensates):
    compensation = replace(ROBOT.config.compensation, enabled=True, velocity="measured")
    config = replace(ROBOT.config, stages=stages, compensation=compensation)
    found = [estimate.compensation for estimate in estimated(samples[:50], stages=stages, compensation=compensation)]
    assert found and all((torque is not None) == compensates for torque in found)
    assert (topics.COMPENSATION in topics.output_topics(config)) == compensates


@pytest.mark.parametrize("observer", ["kalman", "fbse", "momentum"])
def test_both_parts_give_exactly_what_the_whole_pipeline_gives(samples, observer):
    whole, base, friction = (
        estimated(samples, observer=observer, stages=stages) for stages in ("all", "base_state", "friction")
    )
    assert len(whole) == len(base) == len(friction) == len(samples)
    for all_of_it, its_base, its_friction in zip(whole, base, friction, strict=True):
        for name in all_of_it.base.__slots__:
            np.testing.assert_array_equal(getattr(its_base.base, name), getattr(all_of_it.base, name))
            assert np.isnan(getattr(its_friction.base, name)).all()
        for name in ("friction", "sigma", "model", "external_torque", "measured"):
            np.testing.assert_array_equal(getattr(its_friction, name), getattr(all_of_it, name))
        np.testing.assert_array_equal(its_friction.law.parameters, all_of_it.law.parameters)
        assert its_base.phase.name == its_friction.phase.name == all_of_it.phase.name
        assert np.isnan(its_base.friction).all()
