"""The method `motor`: from logs of coupled joints to friction and drive gain of each motor."""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from benchmarks.shared.coupling import joint_torque, joint_velocity, motor_velocity
from friction_estimator.config.robot import Coupling, combined, uncoupled
from friction_estimator.errors import ConfigError, InputError
from friction_estimator.identification.curves.motor import MotorOptions, identify_motor
from friction_estimator.identification.joint_log import JointLog
from test.identification.hand_motion import joint_log

JOINTS, MOTORS = ("pitch", "roll", "yaw"), ("0B3M0", "0B3M1", "0B4M0")
TORSO = Coupling(JOINTS, MOTORS, np.array([[0.5, -0.5, 0.0], [0.5, 0.5, 0.0], [0.275, 0.275, 0.55]]))
FRICTION = np.array([[0.6, 12.0, 1.3, 1.9], [0.9, 8.0, 1.2, 1.6], [0.4, 15.0, 0.9, 0.7]])
GAIN, OFFSET, INERTIA = np.array([0.25, 0.2, 0.3]), 0.12, 0.3
KNOWN = MotorOptions(inertia=MappingProxyType(dict.fromkeys(MOTORS, INERTIA)), cutoff_hz=5.0, folds=3)
NO_ROLL = np.array([1.0, np.nan, 1.0])
NAMES = ("coulomb", "viscous", "static_positive", "static_negative", "free_offset", "drive_offset", "drive_gain")


def torso_log(name: str, pwm: float = 0.0, **others):
    return joint_log(TORSO, FRICTION, GAIN, pwm, offset=OFFSET, inertia=INERTIA, name=name, **others)


@pytest.fixture(scope="module")
def logs():
    return [torso_log("free")], [torso_log("driven", pwm=20.0)]


@pytest.fixture(scope="module")
def found(logs):
    return identify_motor([*logs[0], *logs[1]], TORSO, KNOWN)


def test_what_went_into_every_motor_comes_out(found):
    truth = np.column_stack((FRICTION, np.full((3, 2), OFFSET), GAIN)).ravel()
    assert found.parameters.names == tuple(f"{motor}/{name}" for motor in MOTORS for name in NAMES)
    errors = (found.parameters.values - truth) / found.parameters.sigma
    assert np.abs(errors).max() < 4.0
    np.testing.assert_allclose(found.parameters.values, truth, rtol=0.15)


def test_friction_has_the_names_of_the_motors(found):
    assert found.friction.joint_names == MOTORS
    assert found.friction.law_names == ("asymmetric_stribeck",) * 3
    np.testing.assert_array_equal(found.friction.values.ravel(), found.parameters.values.reshape(3, -1)[:, :4].ravel())
    assert any(
        "pitch, roll, yaw are moved together by 0B3M0, 0B3M1, 0B4M0" in text for text in found.provenance.choices
    )


def test_noise_and_what_the_law_leaves_over_are_separated(found):
    """Torque noise of 0.05 N m a joint, seen from the motors; the law itself is exact."""
    noise = 0.05**2 * np.square(TORSO.matrix).sum(axis=0)
    np.testing.assert_allclose(found.friction.measurement_variance, noise, rtol=0.1)
    assert (found.friction.residual_variance < 0.1 * noise).all()


def test_scores_and_figures_are_those_of_the_motors(found):
    assert [score.joint for score in found.scores] == [samples.joint for samples in found.samples] == list(MOTORS)
    assert all(score.held_out_error < 0.05 * score.torque_rms for score in found.scores)
    for samples, row in zip(found.samples, FRICTION, strict=True):
        fast = samples.used & (np.abs(samples.velocity) > 0.1)
        coulomb = samples.friction[fast] - row[1] * samples.velocity[fast]
        np.testing.assert_allclose(coulomb * np.sign(samples.velocity[fast]), row[0], atol=0.3)
        assert samples.used.any() and not samples.used.all()


def test_the_verdict_names_gains_and_errors(found):
    (gains,) = [text for text in found.verdicts if text.startswith("pwm gives")]
    assert re.search(r"0\.3 \+- \S+ N m/pwm, the torque of driven motion is met to \S+ % \(0B4M0\)", gains)
    (errors,) = [text for text in found.verdicts if "the torque is predicted with an error of" in text]
    assert "(0B3M0)" in errors


def test_order_of_joints_and_motors_does_not_matter(logs):
    rows, columns = [2, 0, 1], [1, 0, 2]
    other = Coupling(
        tuple(JOINTS[k] for k in rows), tuple(MOTORS[k] for k in columns), TORSO.matrix[np.ix_(rows, columns)]
    )
    one, turned = (identify_motor(logs[0], coupling, KNOWN).friction for coupling in (TORSO, other))
    np.testing.assert_allclose(turned.values, one.values[columns], rtol=1e-6)


def test_joint_by_joint_the_friction_of_coupled_motors_is_not_a_law_of_the_velocity(logs, found):
    alone = identify_motor(logs[0], uncoupled(JOINTS), replace(KNOWN, inertia={}))
    share = [score.held_out_error / score.torque_rms for score in alone.scores]
    assert min(share) > 2.0 * max(score.held_out_error / score.torque_rms for score in found.scores)


def test_inertia_is_found_when_asked_for():
    brisk = [torso_log("free", noise=0.01)]
    inertia = identify_motor(brisk, TORSO, MotorOptions(identify_inertia=True, cutoff_hz=5.0, folds=3)).parameters
    values = [inertia.values[inertia.names.index(f"{motor}/inertia")] for motor in MOTORS]
    np.testing.assert_allclose(values, INERTIA, rtol=0.1)


def test_a_current_makes_a_torque_constant(logs):
    driven = torso_log("driven", pwm=20.0, kind="current")
    table = identify_motor([*logs[0], driven], TORSO, KNOWN).parameters
    assert table.units[table.names.index("0B3M0/drive_gain")] == "N m/A"
    assert table.values[table.names.index("0B3M0/drive_gain")] == pytest.approx(0.25, rel=0.02)


def test_a_known_gain_makes_a_driven_log_a_free_one(found):
    driven = [torso_log("driven", pwm=20.0)]
    known = replace(KNOWN, known_gain=dict(zip(MOTORS, GAIN, strict=True)))
    again = identify_motor(driven, TORSO, known)
    np.testing.assert_allclose(again.friction.values, found.friction.values, rtol=0.2)


def test_a_hole_in_one_joints_torque_is_a_hole_for_its_motors_only(logs, found):
    knee = uncoupled(["knee"])
    both = combined([TORSO, knee])
    free = joint_log(both, np.vstack((FRICTION, FRICTION[:1])), np.append(GAIN, 0.2), inertia=INERTIA)
    torque = free.inputs["joint_torque"].copy()
    torque[1000:3000, 3] = np.nan
    options = replace(KNOWN, inertia=dict.fromkeys(both.motor_names, INERTIA))
    whole, holed = (identify_motor([log], both, options) for log in (free, changed(free, "joint_torque", torque)))
    lost = whole.friction.samples - holed.friction.samples
    assert (lost[:3] == 0.0).all() and 1000 < lost[3] <= 2000


def without(log, kind):
    return replace(log, inputs={name: signal for name, signal in log.inputs.items() if name != kind})


def changed(log, kind, values):
    return replace(log, inputs={**log.inputs, kind: values})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda free, driven: ([], []), "needs logs of joints that are moved"),
        (lambda free, driven: ([without(free[0], "joint_torque")], driven), "free has no 'joint_torque'.* has 'pwm'"),
        (
            lambda free, driven: (free, [changed(driven[0], "current", driven[0].inputs["pwm"])]),
            "they have both: choose one by --drive",
        ),
        (
            lambda free, driven: ([changed(free[0], "joint_torque", -free[0].inputs["joint_torque"])], driven),
            "pushes the motor '0B3M0' along with its motion",
        ),
        (lambda free, driven: ([free[0].select(("pitch", "yaw"))], driven), "free has no joint 'roll'"),
        (
            lambda free, driven: ([changed(free[0], "joint_torque", NO_ROLL * free[0].inputs["joint_torque"])], driven),
            "free has no 'joint_torque' of 'roll': leave the joint out",
        ),
        (
            lambda free, driven: (free, [changed(driven[0], "pwm", NO_ROLL * driven[0].inputs["pwm"])]),
            "driven has no 'pwm' of the motors '0B3M1'",
        ),
    ],
)
def test_unusable_logs_are_refused_in_words(logs, spoil, message):
    with pytest.raises(InputError, match=message):
        identify_motor([log for part in spoil(*logs) for log in part], TORSO, KNOWN)


def test_a_driven_log_needs_the_gains_of_all_motors_or_of_none(logs):
    with pytest.raises(InputError, match="driven is driven: give the known gain of '0B3M1', '0B4M0', too"):
        identify_motor(logs[1], TORSO, replace(KNOWN, known_gain={"0B3M0": 0.25}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (MotorOptions(inertia={"knee": 1.0}), "inertia names 'knee'; the motors are '0B3M0', '0B3M1', '0B4M0'"),
        (MotorOptions(known_gain={"knee": 1.0}), "known_gain names 'knee'"),
        (MotorOptions(law="asymmetric", offset=True), "cannot be separated from the friction of 'asymmetric'"),
        (MotorOptions(law="coulomb_viscous", stribeck_velocity=None), "is searched for 'asymmetric_stribeck'"),
        (MotorOptions(law="six_slope_load"), "needs the load"),
    ],
)
def test_impossible_options_are_refused(logs, options, message):
    with pytest.raises(ConfigError, match=message):
        identify_motor([*logs[0], *logs[1]], TORSO, options)


def test_damping_that_only_a_driven_motor_has_is_found_with_its_gain(logs):
    """A winding that is closed when it is driven, and open when not."""
    speed = motor_velocity(TORSO, np.gradient(logs[1][0].position, logs[1][0].time, axis=0))
    torque = logs[1][0].inputs["joint_torque"] - joint_torque(TORSO, 30.0 * speed)
    table = identify_motor([*logs[0], changed(logs[1][0], "joint_torque", torque)], TORSO, KNOWN).parameters
    found = dict(zip(table.names, table.values, strict=True))
    assert [found[f"{motor}/drive_damping"] for motor in MOTORS] == pytest.approx([30.0] * 3, rel=0.05)
    assert [found[f"{motor}/drive_gain"] for motor in MOTORS] == pytest.approx(GAIN, rel=0.03)
    assert [found[f"{motor}/viscous"] for motor in MOTORS] == pytest.approx(FRICTION[:, 1], rel=0.05)


def test_a_drive_that_does_not_change_is_refused(logs):
    held = changed(logs[1][0], "pwm", np.full_like(logs[1][0].inputs["pwm"], 12.0))
    with pytest.raises(InputError, match="pwm of the motor '0B3M0' is 12 in all samples: it must change"):
        identify_motor([*logs[0], held], TORSO, KNOWN)


def test_a_motor_that_sticks_while_it_is_driven_is_refused(logs):
    turned = motor_velocity(TORSO, logs[1][0].position) * [1.0, 1.0, 0.0]
    still = replace(logs[1][0], position=joint_velocity(TORSO, turned))
    with pytest.raises(InputError, match="'0B4M0' slides in 0 samples of the driven logs, 30 are needed"):
        identify_motor([*logs[0], still], TORSO, KNOWN)


def test_a_drive_that_was_not_recorded_is_refused(logs):
    with pytest.raises(InputError, match="'current' was not recorded in all driven logs; all of them have 'pwm'"):
        identify_motor([*logs[0], *logs[1]], TORSO, replace(KNOWN, drive="current"))


def test_static_friction_that_was_not_seen_is_reported(logs):
    fast = replace(KNOWN, dead_zone=0.12)
    reported = identify_motor(logs[0], TORSO, fast).verdicts
    shown = [text for text in reported if "the data does not show static_" in text]
    assert all(any(motor in text for text in shown) for motor in MOTORS)


def test_a_stribeck_velocity_that_is_not_seen_is_reported(logs):
    options = replace(KNOWN, stribeck_velocity=None, dead_zone=0.12)
    found = identify_motor(logs[0], TORSO, options)
    assert found.friction.law_names == ("asymmetric_stribeck_scaled",) * 3
    assert any("does not show stribeck_velocity" in text for text in found.verdicts)
    assert found.friction.values[:, 2:4].max() < 10.0  # no static friction of thousands of newton metres


def test_losses_of_a_gear_under_load_are_separated_from_friction_where_the_gain_is_known():
    """Torque behind the gear: 92.3 % of what dry friction leaves of the motor torque, which 1 / 93.5 % of it drives."""
    time = 2e-3 * np.arange(10_000)
    velocity = 2.0 * np.sin(1.4 * time + 0.1) + 1.2 * np.sin(3.8 * time + 1.0)
    position = -2.0 / 1.4 * np.cos(1.4 * time + 0.1) - 1.2 / 3.8 * np.cos(3.8 * time + 1.0)
    motor = 6.0 * np.sin(1.1 * time + 0.4) + 4.0 * np.sin(2.6 * time + 2.0)
    losses = np.where(motor * velocity > 0.0, 0.077, 1.0 / 0.935 - 1.0) * np.abs(motor)
    behind = motor - (losses + 0.4) * np.sign(velocity) - 0.08 * velocity
    noise = np.random.default_rng(3).normal(size=time.size)
    inputs = {"joint_torque": (behind + 0.02 * noise)[:, None], "current": (motor / 1.9)[:, None]}
    log = JointLog("driven", ("j",), time, position[:, None], inputs=MappingProxyType(inputs))
    alone, options = uncoupled(("j",)), MotorOptions(law="load_quadrants", drive="current", known_gain={"j": 1.9})
    table = identify_motor([log], alone, options).parameters
    found = dict(zip(table.names, zip(table.values, table.sigma, strict=True), strict=True))
    truth = {"coulomb_motor": 0.4, "load_motor": 0.077, "coulomb_generator": 0.4, "load_generator": 1.0 / 0.935 - 1.0}
    for name, value in truth.items():
        assert abs(found[f"j/{name}"][0] - value) < 3.0 * found[f"j/{name}"][1] < 0.1 * value
    with pytest.raises(ConfigError, match="the torque of the motor: give its gain"):
        identify_motor([log], alone, replace(options, known_gain={}))
