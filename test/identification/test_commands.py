"""Identification from commands and gains of drives: no torque was recorded."""

from dataclasses import replace
from xml.etree import ElementTree

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


def test_a_leg_alone_and_both_legs_in_one_table_give_the_same_numbers():
    root = ElementTree.fromstring(URDF)
    base = root.find("joint").find("parent").get("link")
    for element in [one for one in root if one.get("name") != base]:
        other = ElementTree.fromstring(ElementTree.tostring(element))
        for part in other.iter():
            for key in {"name", "link"} & set(part.attrib):
                if part.get(key) != base:
                    part.set(key, f"left_{part.get(key)}")
        root.append(other)
    robot = RobotDescription(ElementTree.tostring(root, encoding="unicode"), fixed_base=True)
    first, second = (recording(20.0, 0.5, 0.01, seed, duration=8.0) for seed in (0, 1))
    names = (*first.joint_names, *(f"left_{name}" for name in second.joint_names))
    both = replace(
        first,
        joint_names=names,
        position=np.hstack((first.position, second.position)),
        inputs={"command": np.hstack((first.inputs["command"], second.inputs["command"]))},
    )
    options = InverseDynamicsOptions(late="torque", hold=False, harmonics=())
    together = run([with_drive_torque(both, 20.0, 0.5)], robot, options)
    for part in (names[:2], names[2:]):
        alone = run([with_drive_torque(both.select(part), 20.0, 0.5)], robot, options)
        for name, value, sigma in zip(
            alone.parameters.names, alone.parameters.values, alone.parameters.sigma, strict=True
        ):
            place = together.parameters.names.index(name)
            np.testing.assert_allclose(together.parameters.values[place], value, rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(together.parameters.sigma[place], sigma, rtol=1e-6)


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


def test_the_delay_that_noise_of_the_positions_feigns_is_in_its_sigma():
    """The torque of a drive has the noise of its feedback, and the columns have the derivatives of the same noise."""
    log = with_drive_torque(recording(40.0, 2.0, 0.0, 0, duration=12.0), 40.0, 2.0)
    options = InverseDynamicsOptions(late="torque", hold=False, harmonics=(), cutoff_hz=35.0, parallel_hz=17.5)
    table = run([log], RobotDescription(URDF, fixed_base=True), options).parameters
    delay, sigma = table.value("hip/delay"), table.sigma[table.names.index("hip/delay")]
    assert 0.2e-3 < abs(delay) < 2.0 * sigma < 1.5e-3


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
