"""`identify` and `validate` from Python: what is put in comes out, and other recordings are predicted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import friction_estimator as fe
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.methods import METHODS, IdentifyOptions
from friction_estimator.io.identification_file import read_identification
from test.arm import ARM, COULOMB, JOINTS, NOISE, URDF, VISCOUS

pytest.importorskip("rosbags", reason="rosbags is not installed")

DRIVE_INERTIA = np.array([0.2, 0.1])


@pytest.fixture(scope="module")
def urdf() -> Path:
    return ARM


def recording(name: str, seed: int, friction: float = 1.0) -> fe.JointLog:
    """Motor torques of the arm on a sum of sines, with true friction times a factor."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, 12.0, 0.002)
    phase = rng.uniform(0.0, 2.0 * np.pi, (3, 2))
    frequency = 2.0 * np.pi * np.array([[0.2, 0.3], [0.5, 0.4], [0.9, 1.1]])
    amplitude = np.array([[0.7, 0.8], [0.3, 0.4], [0.1, 0.1]])
    angle = frequency[:, None] * time[None, :, None] + phase[:, None]
    q = (amplitude[:, None] * np.sin(angle)).sum(axis=0)
    v = (amplitude[:, None] * frequency[:, None] * np.cos(angle)).sum(axis=0)
    a = -(amplitude[:, None] * frequency[:, None] ** 2 * np.sin(angle)).sum(axis=0)
    lost = friction * (COULOMB * np.sign(v) + VISCOUS * v)
    effort = FixedBaseModel(URDF, JOINTS).torque(q, v, a) + DRIVE_INERTIA * a + lost
    return fe.JointLog(name, JOINTS, time, q, effort=effort + NOISE * rng.standard_normal(q.shape))


@pytest.fixture(scope="module")
def result(urdf: Path):
    return fe.identify(recording("first", 1), urdf, law="coulomb_viscous")


def test_the_parameters_that_were_put_in_come_out_within_their_error_bars(result) -> None:
    truth = np.column_stack([COULOMB, VISCOUS])
    assert result.joint_names == JOINTS and result.law_names == ("coulomb_viscous",) * 2
    assert (np.abs(result.values[:, :2] - truth) < 4.0 * result.sigma[:, :2] + 0.01 * truth).all()
    assert all(score.held_out_error < 2.0 * NOISE for score in result.scores)
    assert "method inverse_dynamics: motor torques of a robot with a fixed base were recorded" in (
        result.provenance.choices
    )


def test_the_speeds_that_identified_the_friction_are_kept_and_shown(result, tmp_path: Path) -> None:
    result.save(tmp_path / "params.yaml")
    slow, fast = read_identification(tmp_path / "params.yaml").friction.velocity_range.T
    assert (slow < 0.5).all() and (fast > 1.0).all() and (fast < 4.0).all()
    result.report(tmp_path / "page.html")
    assert "Friction over the speeds of the identification" in (tmp_path / "page.html").read_text()


def test_other_recordings_are_predicted_with_identified_inertia_and_friction(result, urdf: Path) -> None:
    validation = fe.validate(result, recording("second", 2), urdf)
    for score in validation.scores:
        assert score.held_out_error < 2.0 * NOISE < 0.3 * score.rigid_body_error
        assert score.rigid_body_error < score.torque_rms
    assert [samples.joint for samples in validation.samples] == list(JOINTS)
    assert not any("check whether" in text for text in validation.verdicts)


def test_a_change_of_friction_is_named_with_what_to_check(result, urdf: Path, tmp_path: Path) -> None:
    worn = fe.validate(result, recording("worn", 3, friction=1.6), urdf)
    assert all("check whether friction, payload or speed range differ" in text for text in worn.verdicts)
    worn.report(tmp_path / "page.html")
    assert "worn" in (tmp_path / "page.html").read_text()


def test_a_saved_result_validates_as_the_result_itself(result, urdf: Path, tmp_path: Path) -> None:
    result.save(tmp_path / "params.yaml")
    assert read_identification(tmp_path / "params.yaml").inertia == result.inertia
    saved = fe.validate(tmp_path / "params.yaml", recording("second", 2), urdf)
    direct = fe.validate(result, recording("second", 2), urdf)
    assert saved.scores[0].held_out_error == pytest.approx(direct.scores[0].held_out_error, rel=1e-6)


def test_measured_friction_is_compared_with_the_law_alone() -> None:
    def log(name: str, phase: float) -> fe.JointLog:
        time = np.arange(0.0, 20.0, 0.005)
        v = 1.5 * np.sin(time + phase) + np.sin(2.6 * time)
        q = -1.5 * np.cos(time + phase) - np.cos(2.6 * time) / 2.6
        noise = 0.02 * np.random.default_rng(4).standard_normal(time.size)
        friction = 0.8 * np.sign(v) + 0.3 * v + noise
        return fe.JointLog(name, ("joint",), time, q[:, None], v[:, None], inputs={"friction": friction[:, None]})

    result = fe.identify(log("a", 0.0), law="coulomb_viscous")
    np.testing.assert_allclose(result.values, [[0.8, 0.3]], atol=0.01)
    (score,) = fe.validate(result, log("b", 1.0)).scores
    assert score.held_out_error < 0.1 * score.torque_rms and np.isnan(score.rigid_body_error)


def test_the_given_method_law_and_options_are_used_and_wrong_ones_are_one_clear_error(urdf: Path) -> None:
    log = recording("first", 1)
    result = fe.identify(log, urdf, joint_laws=["elb*=three_slope"], law="coulomb_viscous", known_inertia=True, folds=3)
    assert result.law_names == ("coulomb_viscous", "three_slope")
    with pytest.raises(fe.FrictionEstimatorError, match="has no option 'max_sigma': it is for friction_curve"):
        fe.identify(log, urdf, max_sigma=0.1)
    with pytest.raises(fe.FrictionEstimatorError, match="has no option 'speed': the method has"):
        fe.identify(log, urdf, speed=0.1)
    with pytest.raises(fe.FrictionEstimatorError, match="unknown method 'magic'; the methods are"):
        fe.identify(log, urdf, method="magic")
    with pytest.raises(fe.FrictionEstimatorError, match="allows no method"):
        fe.identify(log)
    with pytest.raises(fe.FrictionEstimatorError, match="no friction was identified for 'shoulder'"):
        fe.validate(fe.identify(log, urdf, joints=["elbow"], folds=2), log, urdf)


def test_the_source_of_the_velocity_can_be_given(urdf: Path) -> None:
    log = recording("one", 1)
    measured = replace(log, velocity=np.gradient(log.position, log.time, axis=0))
    for velocity in ("measured", "differentiated"):
        found = fe.identify(measured, urdf, velocity=velocity, cutoff=20.0)
        assert any(f"{velocity} velocity" in text for text in found.provenance.choices)
    with pytest.raises(fe.FrictionEstimatorError, match="the measured velocity is wanted"):
        fe.identify(log, urdf, velocity="measured")
    with pytest.raises(fe.FrictionEstimatorError, match="'differentiated', 'measured'"):
        fe.identify(log, urdf, velocity="guessed")


def test_a_plan_moves_every_joint_within_its_limits(urdf: Path) -> None:
    plan = fe.plan_excitation(urdf, duration=6.0, harmonics=3, seeds=1, max_acceleration=12.0)
    assert plan.joint_names == JOINTS and plan.position.shape == (plan.time.size, 2)
    assert (np.abs(plan.position) <= [2.0, 2.2]).all() and (np.abs(plan.velocity) <= [3.0, 4.0]).all()
    with pytest.raises(fe.FrictionEstimatorError, match="planning has no option 'speed'"):
        fe.plan_excitation(urdf, speed=1.0)


def test_every_option_of_a_method_is_a_typed_keyword_of_identify() -> None:
    stated = {"law", "joint_laws", "coupling"}  # arguments of their own
    of_methods = set().union(*(method.places for method in METHODS.values())) - stated
    assert set(IdentifyOptions.__annotations__) == of_methods
