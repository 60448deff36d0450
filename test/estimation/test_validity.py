"""Claims about `valid`: 0 where a sensor is wrong or silent, the law is new or a number is not finite, and else 1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import compress, product
from types import SimpleNamespace

import numpy as np
import pytest

from friction_estimator.config import Config
from friction_estimator.estimation.diagnosis.innovations import InnovationExcess
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.health import Health
from friction_estimator.estimation.validity import ADVICE, NO_PROBLEM, Reason, Validity, advice
from friction_estimator.io.robot import load_robot
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.robot.transmission import Transmission
from friction_estimator.simulation import SimulationSample, Simulator, make_noise, make_scenario
from friction_estimator.types import FrictionEstimate
from test.feeding import feed

ROBOT = load_robot("suralp")
NOISE = make_noise("paper_std")
AVERAGED = 4
"""Simulated samples that become one: held torques and forces count with their mean, which is their impulse."""
WITHOUT_CALIBRATION = {"kalman__link_mass_std": 0.0, "kalman__link_com_std": 0.0, "kalman__calibrate_sensors": False}


def config(**changes: object) -> Config:
    """Configuration with the noise of the averaged sensors; keywords with ``__`` for dots change parameters."""
    told = NOISE.datasheet(AVERAGED * 1e-3)
    averaged = {name: getattr(told, name) / AVERAGED**0.5 for name in ("force_std", "moment_std", "specific_force_std")}
    rest = {name: getattr(told, name) for name in ("position_std", "velocity_std", "angular_velocity_std")}
    sensors = {f"sensors.{name}": value for name, value in {**averaged, **rest}.items()}
    return load_robot("suralp", {**sensors, **{key.replace("__", "."): value for key, value in changes.items()}}).config


def recorded(scenario: str, duration: float) -> list[SimulationSample]:
    simulator = Simulator(ROBOT.config, ROBOT.urdf_xml, make_scenario(scenario, duration), NOISE, 0)
    samples = [simulator.step() for _ in range(round(duration * 1000))]
    return [averaged(samples[k : k + AVERAGED]) for k in range(0, len(samples), AVERAGED)]


def averaged(group: Sequence[SimulationSample]) -> SimulationSample:
    first = group[0]
    wrenches = np.mean([[wrench.wrench for wrench in one.wrenches] for one in group], axis=0)
    return replace(
        first,
        joints=replace(first.joints, effort=np.mean([one.joints.effort for one in group], axis=0)),
        imu=replace(first.imu, specific_force=np.mean([one.imu.specific_force for one in group], axis=0)),
        wrenches=tuple(replace(one, wrench=mean) for one, mean in zip(first.wrenches, wrenches, strict=True)),
    )


def watched(
    samples: Sequence[SimulationSample],
    config: Config,
    urdf_xml: str = ROBOT.urdf_xml,
    start: IdentifiedParameters | None = None,
) -> tuple[Estimator, list[FrictionEstimate]]:
    estimator = Estimator(config, urdf_xml)
    if start is not None:
        estimator.restore(start)
    return estimator, feed(estimator, samples)


def reasons(estimator: Estimator) -> dict[str, Reason]:
    return {one.joint: one.kinds[0] for one in estimator.diagnose() if one.kinds}


@pytest.fixture(scope="module")
def walk() -> list[SimulationSample]:
    return recorded("walk", 6.0)


@pytest.fixture(scope="module")
def healthy(walk: list[SimulationSample]) -> Estimator:
    return watched(walk, config())[0]


def test_friction_is_valid_exactly_where_no_reason_holds_and_the_text_names_the_first_one():
    names, health = tuple("abcdefgh"), Health()
    validity = Validity(health, names, Transmission.from_coupling(None, names))
    wrong, new, infinite = np.array(list(product((False, True), repeat=3))).T
    health.invalid_joints = {
        name: f"the sensor of {name} is wrong" for name, hit in zip(names, wrong, strict=True) if hit
    }
    for field in ("friction", "sigma"):
        for value in (np.nan, np.inf, -np.inf):
            numbers = {"friction": np.ones(8), "sigma": np.ones(8), field: np.where(infinite, value, 1.0)}
            valid = validity.step(SimpleNamespace(law=SimpleNamespace(known=~new), **numbers))
            np.testing.assert_array_equal(valid, ~(wrong | new | infinite))
            found = validity.diagnose()
            flags = zip(wrong, infinite, new, strict=True)
            order = Reason.SENSOR, Reason.NUMBER, Reason.START
            assert [one.kinds for one in found] == [tuple(compress(order, holds)) for holds in flags]
            assert [str(one) for one in found[::3]] == [NO_PROBLEM, ADVICE[Reason.NUMBER], "the sensor of g is wrong"]
    sentences = advice(found)
    assert len(sentences) == len(Reason) and sentences[0].endswith("(e, f, g, h)")


@pytest.mark.parametrize("observer", ["kalman", "two_stage", "momentum", "fbse"])
def test_on_a_healthy_walk_friction_is_valid_once_every_joint_has_moved_in_both_directions(walk, observer):
    estimator, estimates = watched(walk, config(observer=observer))
    assert not estimates[0].valid.any()
    assert all(one.valid.all() for one in estimates if one.stamp_ns > 4e9)
    assert advice(estimator.diagnose()) == () and estimator.invalid_reasons() == ("",) * 12


def test_a_robot_that_stands_is_valid_with_a_law_of_an_earlier_run_alone(healthy):
    samples = recorded("stand", 1.6)
    estimator, estimates = watched(samples, config())
    assert set(reasons(estimator).values()) == {Reason.START} and not estimates[-1].valid.any()
    assert any("both directions" in text for text in estimator.warnings())
    estimator, estimates = watched(samples, config(), start=healthy.identified)
    assert all(one.valid.all() for one in estimates)
    estimator.reset()
    assert feed(estimator, samples[:9])[-1].valid.all()
    estimator.reset_to_prior()
    assert not feed(estimator, samples[9:99])[-1].valid.any()


def test_a_limb_that_is_pushed_is_valid_and_not_measured(walk):
    """A torque of 40 N m that no motor made, at the left knee, for 0.15 s in each half second: sigma tells the rest."""

    def spoil(sample: SimulationSample) -> SimulationSample:
        pushed = sample.joints.stamp_ns % 500_000_000 < 150_000_000
        effort = sample.joints.effort - np.where(np.arange(12) == 3, 40.0 * pushed, 0.0)
        return replace(sample, joints=replace(sample.joints, effort=effort))

    _, estimates = watched([spoil(sample) for sample in walk], config())
    late = [one for one in estimates if one.stamp_ns > 4e9]
    assert all(one.valid.all() for one in late)
    assert np.mean([one.measured[3] for one in late]) < 0.8


def test_a_flipped_torque_is_named_and_its_leg_is_not_valid(walk):
    sign = np.where(np.arange(12) == 3, -1.0, 1.0)
    flipped = [replace(one, joints=replace(one.joints, effort=one.joints.effort * sign)) for one in walk]
    estimator, estimates = watched(flipped, config())
    assert any("l_knee" in finding and "opposite sign" in finding for finding in estimator.health.findings)
    assert reasons(estimator)["l_knee"] is Reason.SENSOR and "opposite sign" in estimator.invalid_reasons()[3]
    assert not estimates[-1].valid[3] and estimates[-1].valid[6:].all()


def test_friction_that_doubled_since_the_law_was_saved_is_valid(walk, healthy):
    def doubled(sample: SimulationSample) -> SimulationSample:
        return replace(sample, joints=replace(sample.joints, effort=sample.joints.effort + sample.truth.friction))

    estimator, estimates = watched([doubled(sample) for sample in walk], config(), start=healthy.identified)
    assert reasons(estimator) == {} and all(one.valid.all() for one in estimates)


def test_joint_states_without_effort_have_no_valid_friction(walk):
    samples = [replace(one, joints=replace(one.joints, effort=np.full(12, np.nan))) for one in walk[:200]]
    estimator, estimates = watched(samples, config())
    assert not any(one.valid.any() for one in estimates)
    assert set(reasons(estimator).values()) == {Reason.NUMBER}


@pytest.mark.parametrize(("factor", "excess"), [(1.0, False), (1.5, True)])
def test_sigma_grows_with_innovations_that_masses_too_large_without_calibration_make(walk, factor, excess):
    heavy = re.sub(r'mass value="([^"]*)"', lambda found: f'mass value="{factor * float(found[1])}"', ROBOT.urdf_xml)
    estimator, _ = watched(walk, config(identifier__law="coulomb_viscous", **WITHOUT_CALIBRATION), heavy)
    assert (estimator.health.innovation_excess > 1.0) is excess
    assert (estimator.innovations.excess[:6] > 1.0).all() is np.bool_(excess)


def test_mean_innovation_stays_within_its_band_and_leaves_it_when_sigma_is_too_small():
    rng, joints = np.random.default_rng(0), 500
    keep = np.exp(-0.01)
    right, wrong = (InnovationExcess(Health(), np.zeros((0, joints), dtype=bool)) for _ in range(2))
    for _ in range(400):
        square = rng.normal(size=joints) ** 2
        inside = right.mean_and_limit(square, keep)
        again = right.mean_and_limit(square, 1.0)  # an old innovation once more does not count
        np.testing.assert_array_equal(inside, again)
        beyond = wrong.mean_and_limit(2.0 * square, keep)
    outside = [float((mean > limit).mean()) for mean, limit in (inside, beyond)]
    assert outside[0] < 0.01 and outside[1] > 0.9
