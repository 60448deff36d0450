"""Claims about the diagnosis: every problem is provoked by really making it happen, and a healthy walk raises none."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from friction_estimator.config import Config
from friction_estimator.estimation.diagnosis.diagnosis_monitor import (
    DiagnosisMonitor,
    FadingMean,
    NisMean,
)
from friction_estimator.estimation.diagnosis.joint_diagnosis import ADVICE, NO_PROBLEM, advice, diagnose
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.robot import load_robot
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.simulation import SimulationSample, Simulator, make_noise, make_scenario
from friction_estimator.types import JointEstimate, LawEstimate
from test.feeding import feed

ROBOT = load_robot("suralp")
NOISE = make_noise("paper_std")
AVERAGED = 4
"""Simulated samples that become one: held torques and forces count with their mean, which is their impulse."""
WITHOUT_CALIBRATION = {"kalman__link_mass_std": 0.0, "kalman__link_com_std": 0.0, "kalman__calibrate_sensors": False}
Change = Callable[[SimulationSample], SimulationSample]


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
) -> Estimator:
    estimator = Estimator(config, urdf_xml)
    if start is not None:
        estimator.restore(start)
    feed(estimator, samples)
    return estimator


def joints_with(estimator: Estimator, kind: str) -> set[str]:
    assert kind in ADVICE
    return {diagnosis.joint for diagnosis in estimator.diagnose() if kind in (*diagnosis.kinds, *diagnosis.note_kinds)}


@pytest.fixture(scope="module")
def walk() -> list[SimulationSample]:
    return recorded("walk", 6.0)


@pytest.fixture(scope="module")
def healthy(walk: list[SimulationSample]) -> Estimator:
    return watched(walk, config())


def test_a_healthy_walk_has_no_problem(healthy):
    assert advice(healthy.diagnose()) == ()
    figures = healthy.monitor.figures()
    assert (figures.nis > 0.2).all() and (figures.driving == 0.0).all()
    assert np.isfinite(figures.drift).sum() >= 4


def test_a_limb_that_is_pushed_all_the_time_is_reported(walk):
    """A torque of 40 N m that no motor made, at the left knee, for 0.15 s in each half second."""

    def spoil(sample: SimulationSample) -> SimulationSample:
        pushed = sample.joints.stamp_ns % 500_000_000 < 150_000_000
        effort = sample.joints.effort - np.where(np.arange(12) == 3, 40.0 * pushed, 0.0)
        return replace(sample, joints=replace(sample.joints, effort=effort))

    estimator = watched([spoil(sample) for sample in walk], config())
    pushed = joints_with(estimator, "disturbance")
    assert "l_knee" in pushed and not any(joint.startswith("r_") for joint in pushed)


def with_flipped_knee(walk):
    """The walk whose torque of the left knee has the wrong sign."""
    sign = np.where(np.arange(12) == 3, -1.0, 1.0)
    return [replace(one, joints=replace(one.joints, effort=one.joints.effort * sign)) for one in walk]


def test_a_flipped_torque_is_named(walk):
    estimator = watched(with_flipped_knee(walk), config())
    assert any("l_knee" in finding and "opposite sign" in finding for finding in estimator.health.findings)
    wrong = {one.joint for one in estimator.diagnose() if one.problems}
    assert "l_knee" in wrong and not any(joint.startswith("r_") for joint in wrong)


def test_a_flipped_torque_drives(walk):
    """Foot-base sensor estimation shows it; the Kalman observer takes most of such a torque for pushes."""
    estimator = watched(with_flipped_knee(walk), config(observer="fbse"))
    assert estimator.joint_names[3] == "l_knee"
    assert "l_knee" in joints_with(estimator, "passivity")
    assert not any(joint.startswith("r_") for joint in joints_with(estimator, "passivity"))
    assert any("check the sign" in text and "l_knee" in text for text in advice(estimator.diagnose()))


def test_a_biased_foot_is_calibration_of_its_leg(walk):
    """The sensor of the right foot is off by 20 N and 10 N."""
    bias = np.array([0.0, 20.0, 10.0, 0.0, 0.0, 0.0])

    def biased(sample: SimulationSample) -> SimulationSample:
        left, right = sample.wrenches
        return replace(sample, wrenches=(left, replace(right, wrench=right.wrench + bias)))

    estimator = watched([biased(sample) for sample in walk], config())
    assert "r_hip_roll" in joints_with(estimator, "calibration")
    assert not any(joint.startswith("l_") for joint in joints_with(estimator, "calibration"))
    assert not any("calibration" in diagnosis.kinds for diagnosis in estimator.diagnose())
    for wrong in ({"nis": np.full(12, 9.0)}, {"excess": np.full(12, 3.0)}):  # nothing accounts for that
        figures = replace(estimator.monitor.figures(), **wrong)
        assert not any(diagnosis.notes for diagnosis in diagnose(figures, estimator.joint_names))


@pytest.mark.parametrize(("factor", "inconsistent"), [(1.0, set()), (1.3, {"l_hip_roll"})])
def test_masses_too_large_without_calibration_make_innovations_too_large(walk, factor, inconsistent):
    """Of a law with few parameters; one of many slopes and its law error take much of the error for friction."""
    heavy = re.sub(r'mass value="([^"]*)"', lambda found: f'mass value="{factor * float(found[1])}"', ROBOT.urdf_xml)
    estimator = watched(walk, config(identifier__law="coulomb_viscous", **WITHOUT_CALIBRATION), heavy)
    assert inconsistent <= joints_with(estimator, "consistency") and bool(inconsistent) == bool(
        joints_with(estimator, "consistency")
    )


def test_friction_that_doubled_since_the_law_was_saved_is_drift(walk, healthy):
    def doubled(sample: SimulationSample) -> SimulationSample:
        return replace(sample, joints=replace(sample.joints, effort=sample.joints.effort + sample.truth.friction))

    estimator = watched([doubled(sample) for sample in walk], config(), start=healthy.identified)
    assert {"l_hip_pitch", "r_hip_pitch", "l_knee", "r_knee"} <= joints_with(estimator, "drift")
    assert any(text.startswith("note: the friction law has changed") for text in estimator.warnings())
    assert joints_with(estimator, "passivity") == set()


def test_standing_still_identifies_nothing_and_a_loaded_law_is_known(healthy):
    samples = recorded("stand", 1.6)
    assert joints_with(watched(samples, config()), "excitation") == set(healthy.joint_names)
    assert joints_with(watched(samples, config(), start=healthy.identified), "excitation") == set()


def test_forgetting_the_law_forgets_its_diagnosis(healthy):
    """What the law was at the start goes with the law; a restart of the filters alone keeps it."""
    estimator = Estimator(config(), ROBOT.urdf_xml)
    estimator.restore(healthy.identified)
    estimator.reset()
    assert estimator.monitor.figures().known_at_start.all()
    estimator.reset_to_prior()
    assert not estimator.monitor.figures().known_at_start.any()


def test_mean_innovation_stays_within_its_band_and_leaves_it_when_sigma_is_too_small():
    rng = np.random.default_rng(0)
    keep = np.exp(-0.01 / 10.0)
    right, wrong = NisMean(500, slack=1.0), NisMean(500, slack=1.0)
    for _ in range(400):
        square = rng.normal(size=500) ** 2
        right.add(square, keep)
        right.add(square, 1.0)  # an old innovation once more does not count
        wrong.add(1.6 * square, keep)
    assert right.count.max() <= 400.0
    outside = [float((mean > limit).mean()) for mean, limit in (one.mean_and_limit() for one in (right, wrong))]
    assert outside[0] < 0.01 and outside[1] > 0.9


def test_fading_mean_of_a_step_approaches_it_exponentially():
    mean, where = FadingMean(1, 2), np.array([True, False])
    assert np.isnan(mean.mean).all()
    for step in range(600):
        mean.add(0.99, where, float(step >= 400))
    assert mean.mean[0, 0] == pytest.approx((1 - 0.99**200) / (1 - 0.99**600))
    assert mean.effective_count[0] == pytest.approx(1.99 / 0.01, rel=0.01)
    assert np.isnan(mean.mean[0, 1]) and mean.effective_count[1] == 0.0


def test_sigma_is_judged_by_what_it_is_after_the_law_was_learned():
    """Two joints that move all the time: sigma is that of the friction for 4 s, then a fifth or two fifths of it."""
    laws = JointLaws(("coulomb_viscous",) * 2)
    monitor = DiagnosisMonitor(laws, laws.prior_std, 0.001)
    one, nothing = np.ones(2), np.zeros(2)
    law = LawEstimate(laws.prior_std, 0.1 * laws.prior_std, *(one,) * 5, np.ones((2, 2)))
    friction = one, one, one > 0.0, one, one, nothing, one, one, nothing, nothing > 0.0, law
    estimate = JointEstimate(*friction, stamp_ns=0, velocity=one, effort=one)
    for time in np.arange(0.0, 12.0, 0.01):
        sigma = one if time < 4.0 else np.array([0.2, 0.4])
        monitor.add(replace(estimate, stamp_ns=round(1e9 * time), sigma=sigma))
    np.testing.assert_allclose(monitor.figures().uncertainty, [0.2, 0.4])
    found = diagnose(monitor.figures(), ("sure", "unsure"))
    assert [diagnosis.kinds for diagnosis in found] == [(), ("uncertainty",)]


def test_without_samples_there_is_no_problem():
    estimator = Estimator(config(), ROBOT.urdf_xml)
    assert all(str(diagnosis) == NO_PROBLEM for diagnosis in estimator.diagnose())
    assert diagnose(estimator.monitor.figures(), estimator.joint_names) == estimator.diagnose()
