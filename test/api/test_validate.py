"""`validate` on the recordings of the identification has the error of its fit, to the last digit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import friction_estimator as fe
from friction_estimator.config.robot import Coupling
from test.arm import ARM
from test.identification.hand_motion import joint_log
from test.identification.recordings import arm_recording

TORSO = Coupling(("pitch", "roll"), ("m0", "m1"), np.array([[0.5, -0.5], [0.5, 0.5]]))
STRIBECK = np.array([[0.6, 12.0, 1.3, 1.9], [0.9, 8.0, 1.2, 1.6]])
COUPLING_YAML = """/**:
  ros__parameters:
    robot:
      coupling:
        joints: [pitch, roll]
        motors: [m0, m1]
        matrix: [0.5, -0.5, 0.5, 0.5]
"""


def errors_agree(result: fe.IdentificationResult, logs: list[fe.JointLog], robot: Path | None, folder: Path) -> None:
    result.save(folder / "params.yaml")
    again = fe.validate(folder / "params.yaml", logs, robot)
    assert [score.joint for score in again.scores] == [score.joint for score in result.scores]
    for own, score in zip(result.scores, again.scores, strict=True):
        assert score.held_out_error == own.fit_error > 0.0
        assert score.torque_rms == own.torque_rms


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"cutoff": 6.0, "delay": 0.01, "robust": False},
        {"law": "six_slope", "known_inertia": True, "harmonics": (1.0,)},
        {"law": "load_quadrants", "offset": False},
        {"law": "load_velocity", "dead_zone": 0.02},
    ],
    ids=["automatic", "cut-off and delay", "harmonics", "load", "Stribeck velocity"],
)
def test_validation_repeats_the_fit_errors_of_motor_torques(options: dict[str, object], tmp_path: Path) -> None:
    logs = [arm_recording(seed, late=0.004, constant=1.5) for seed in (1, 2)]
    errors_agree(fe.identify(logs, ARM, **{"law": "coulomb_viscous", **options}), logs, ARM, tmp_path)


@pytest.mark.parametrize("law", ["coulomb_viscous", "tanh_stribeck"])
def test_validation_repeats_the_fit_errors_of_measured_friction(law: str, tmp_path: Path) -> None:
    log = arm_recording(1, late=0.05, constant=0.7, kind="friction")
    result = fe.identify(log, law=law)
    assert any(name.endswith("/offset") for name in result.parameters.names)
    errors_agree(result, [log], None, tmp_path)


@pytest.mark.parametrize("free", [True, False])
def test_validation_repeats_the_fit_errors_of_torques_behind_the_transmission(free: bool, tmp_path: Path) -> None:
    (tmp_path / "coupling.yaml").write_text(COUPLING_YAML)
    gain = np.array([0.25, 0.2])
    logs = [joint_log(TORSO, STRIBECK, gain, pwm=20.0, offset=0.12, inertia=0.3, name="driven")]
    logs += [joint_log(TORSO, STRIBECK, gain, offset=0.12, inertia=0.3)] if free else []
    result = fe.identify(logs, coupling=tmp_path / "coupling.yaml")
    errors_agree(result, logs, None, tmp_path)
    found = dict(zip(result.parameters.names, result.parameters.values, strict=True))
    assert [found[f"{motor}/drive_gain"] for motor in ("m0", "m1")] == pytest.approx(gain, rel=0.1)


def test_a_recording_with_another_gain_is_named_as_such() -> None:
    result = fe.identify(arm_recording(1), ARM, law="coulomb_viscous")
    other = arm_recording(2)
    assert not any("times the prediction" in text for text in fe.validate(result, other, ARM).verdicts)
    scaled = other.changed(lambda kind, signal: signal / 1.2 if kind == "effort" else signal)
    verdicts = fe.validate(result, scaled, ARM).verdicts
    assert any("the torque is 0.83 (shoulder), 0.83 (elbow) times the prediction" in text for text in verdicts)


def test_a_recording_that_shows_too_few_samples_is_refused_with_the_numbers() -> None:
    result = fe.identify(arm_recording(1), ARM, law="coulomb_viscous")
    with pytest.raises(
        fe.FrictionEstimatorError, match=r"too few samples .*shoulder \d+, elbow \d+, and 20 are needed"
    ):
        fe.validate(result, arm_recording(2, seconds=2.2), ARM)
    assert all(score.samples >= 20 for score in fe.validate(result, arm_recording(2, seconds=6.0), ARM).scores)
