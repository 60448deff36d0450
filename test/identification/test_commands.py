"""Identification from commands and gains of drives: no torque was recorded."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.commands import ARMATURE, COULOMB, URDF, VISCOUS, recording
from friction_estimator.api.identify import identify
from friction_estimator.api.validate import validate
from friction_estimator.errors import ConfigError, InputError
from friction_estimator.identification.inverse_dynamics.method import run
from friction_estimator.identification.inverse_dynamics.options import InverseDynamicsOptions
from friction_estimator.identification.joint_log import RobotDescription
from friction_estimator.identification.recording.torque_checks import with_drive_torque


@pytest.mark.parametrize(("kp", "kd", "feedback"), [(20.0, 0.5, True), (40.0, 2.0, False)])
def test_friction_armature_and_delay_follow_from_commands_whatever_the_gains(kp, kd, feedback):
    log = with_drive_torque(recording(kp, kd, 0.01, 0, duration=12.0, feedback=feedback), kp, kd)
    options = InverseDynamicsOptions(late="torque" if feedback else "command", harmonics=())
    table = run([log], RobotDescription(URDF, fixed_base=True), options).parameters
    found = dict(zip(table.names, zip(table.values, table.sigma, strict=True), strict=True))
    for joint, coulomb, armature in zip(("hip", "knee"), COULOMB, ARMATURE, strict=True):
        value, sigma = found[f"{joint}/coulomb"]
        assert abs(value - coulomb) < 3.0 * sigma < 0.1 * coulomb
        assert abs(found[f"Ia {joint}"][0] - armature) < 0.1 * armature
        assert abs(found[f"{joint}/delay"][0] - 0.01) < 1e-3
        assert abs(found[f"{joint}/encoder_offset"][0]) < 3.0 * found[f"{joint}/encoder_offset"][1]


def test_sigma_holds_whether_a_drive_holds_its_commands_until_that_is_stated():
    log = with_drive_torque(recording(40.0, 2.0, 0.0, 0, duration=12.0, hold=True), 40.0, 2.0)
    sigmas = []
    for hold in (None, True):
        options = InverseDynamicsOptions(late=None if hold is None else "torque", hold=hold, harmonics=())
        table = run([log], RobotDescription(URDF, fixed_base=True), options).parameters
        found = dict(zip(table.names, zip(table.values, table.sigma, strict=True), strict=True))
        for k, joint in enumerate(("hip", "knee")):
            for name, truth in (("viscous", VISCOUS[k]), ("delay", 0.0)):
                value, sigma = found[f"{joint}/{name}"]
                assert abs(value - truth) < 2.0 * sigma
        sigmas.append(found["hip/viscous"][1])
    assert sigmas[1] < 0.1 * sigmas[0]


def test_the_identified_robot_follows_the_commands_in_mujoco_as_the_recorded_one(tmp_path):
    pytest.importorskip("mujoco")
    (tmp_path / "leg.urdf").write_text(URDF)
    log = recording(20.0, 0.5, 0.01, 1, duration=8.0)
    options = InverseDynamicsOptions(late="torque", harmonics=())
    found = run([with_drive_torque(log, 20.0, 0.5)], RobotDescription(URDF, fixed_base=True), options)
    scores = validate(found, log, tmp_path / "leg.urdf", kp=20.0, kd=0.5, rollout=True).rollouts
    assert [score.joint for score in scores] == ["hip", "knee"]
    for score in scores:
        assert score.identified < 0.1 * score.urdf < 0.1 * score.travel
    with pytest.raises(InputError, match="command/<joint>"):
        validate(found, replace(log, effort=log.position), tmp_path / "leg.urdf", rollout=True)


def short():
    return recording(20.0, 0.5, 0.0, 0, duration=1.0)


def test_gains_come_from_patterns_or_from_columns_of_the_recording():
    log = short()
    by_pattern = with_drive_torque(log, {"*": 20.0, "k*": 10.0}, 0.5)
    shape = np.ones_like(log.position)
    columns = {**log.inputs, "kp": shape * [20.0, 10.0], "kd": 0.5 * shape}
    by_column = with_drive_torque(replace(log, inputs=columns))
    np.testing.assert_array_equal(by_pattern.effort, by_column.effort)
    error = log.inputs["command"] - log.position
    velocity = np.gradient(log.position, log.time, axis=0)
    np.testing.assert_allclose(by_pattern.effort[5:-5], (error * [20.0, 10.0] - 0.5 * velocity)[5:-5], atol=0.3)


def test_a_measured_torque_is_kept_where_no_gain_is_given():
    log = replace(short(), effort=np.ones((500, 2)))
    assert with_drive_torque(log) is log


@pytest.mark.parametrize(
    ("kp", "kd", "error", "message"),
    [
        (20.0, None, ConfigError, "gain kd"),
        ({"ankle": 20.0}, 0.5, ConfigError, "'ankle' matches no joint; the joints are 'hip', 'knee'"),
        ({"hip": 20.0}, 0.5, ConfigError, "kp of 'knee' is missing"),
        (-20.0, 0.5, ConfigError, "negative"),
    ],
)
def test_a_wrong_gain_is_refused_with_the_choices(kp, kd, error, message):
    with pytest.raises(error, match=message):
        with_drive_torque(short(), kp, kd)


def test_gains_without_a_command_are_refused():
    with pytest.raises(InputError, match="command/<joint>"):
        identify(replace(short(), inputs={}), kp=20.0, kd=0.5)
