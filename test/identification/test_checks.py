"""Mistakes in recordings are named with their evidence; sound recordings raise no suspicion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from friction_estimator.errors import InputError
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.identification.recording.checks import data_warnings
from friction_estimator.identification.recording.motion import to_motion
from friction_estimator.identification.recording.sampling import repair
from friction_estimator.identification.recording.torque_checks import torque_suspicions
from friction_estimator.types import FloatArray
from test.identification.recordings import GRAVITY, INERTIA, recording

SWAP = [1, 0]
LIMITS = np.array([[-2.0, 2.0], [-2.5, 2.5]])
DEGREES = np.degrees(1.0)


def only(log: JointLog, **options: FloatArray) -> str:
    """The data_warnings as one text."""
    return "\n".join(data_warnings(log, **options))


def with_nan(log: JointLog, count: int, kind: str = "effort") -> JointLog:
    signal = getattr(log, kind).copy()
    signal[np.random.default_rng(2).choice(log.time.size, count, replace=False), 1] = np.nan
    return replace(log, **{kind: signal})


@pytest.mark.parametrize(("rate", "encoder"), [(50.0, 3e-3), (100.0, 0.0), (300.0, 1e-5), (1000.0, 3e-3)])
@pytest.mark.parametrize("with_velocity", [True, False])
def test_a_sound_recording_raises_no_suspicion(rate: float, encoder: float, with_velocity: bool) -> None:
    log = recording(rate=rate, encoder=encoder, with_velocity=with_velocity)
    assert data_warnings(log, LIMITS) == ()
    assert data_warnings(replace(log, effort=None)) == ()


MISTAKES: dict[str, tuple[Callable[[JointLog], JointLog], str]] = {
    "position in degrees": (lambda log: replace(log, position=DEGREES * log.position), "is the position in degrees"),
    "velocity in degrees": (lambda log: replace(log, velocity=DEGREES * log.velocity), "in degrees a second"),
    "both in degrees": (
        lambda log: replace(log, position=DEGREES * log.position, velocity=DEGREES * log.velocity),
        "degrees",
    ),
    "velocity in rpm": (lambda log: replace(log, velocity=30.0 / np.pi * log.velocity), "revolutions a minute"),
    "time in milliseconds": (lambda log: replace(log, time=1e3 * log.time), "is time in milliseconds"),
    "velocity reversed": (lambda log: replace(log, velocity=-log.velocity), "have the wrong sign"),
    "velocity at the motor": (lambda log: replace(log, velocity=100.0 * log.velocity), "gear ratio"),
    "position and velocity": (
        lambda log: replace(log, position=log.velocity, velocity=log.position),
        "is the derivative of velocity/hip",
    ),
    "velocity and effort": (
        lambda log: replace(log, effort=log.velocity, velocity=log.effort),
        "check that it is the right column",
    ),
    "position and effort": (
        lambda log: replace(log, position=log.effort, effort=log.position, velocity=None),
        "rougher than effort/hip",
    ),
    "velocities of two joints": (
        lambda log: replace(log, velocity=log.velocity[:, SWAP]),
        "velocity/hip is the derivative of position/knee",
    ),
    "positions of two joints": (lambda log: replace(log, position=log.position[:, SWAP]), "joints exchanged"),
    "constant position": (
        lambda log: replace(log, position=np.column_stack([log.position[:, 0], np.ones(log.time.size)])),
        "position of 'knee' is constant (1)",
    ),
    "constant effort": (
        lambda log: replace(log, effort=np.column_stack([log.effort[:, 0], np.zeros(log.time.size)])),
        "effort of 'knee' is constant (0)",
    ),
    "a hundred NaN": (lambda log: with_nan(log, 100), "100 samples with missing numbers left out"),
    "jitter": (
        lambda log: replace(log, time=log.time + 5e-4 * np.random.default_rng(4).uniform(-1.0, 1.0, log.time.size)),
        "irregular sampling",
    ),
    "doubled stamps": (
        lambda log: replace(log, time=np.where(np.arange(log.time.size) % 50 == 1, log.time - 0.002, log.time)),
        "200 samples with the stamp of the one before",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_evidence(mistake: str) -> None:
    damage, words = MISTAKES[mistake]
    assert words in only(damage(recording()))


def about_torques(log: JointLog, change: Callable[[FloatArray], FloatArray]) -> str:
    """Suspicions about changed torques as one text, against a rough model."""
    motion = to_motion(log)
    assert motion.effort is not None
    rough = 0.7 * INERTIA * motion.acceleration + 1.2 * GRAVITY * np.sin(motion.position)
    return "\n".join(torque_suspicions(replace(motion, effort=change(motion.effort)), rough))


def test_torques_of_another_sign_joint_or_unit_are_named_against_a_rough_model_and_no_others() -> None:
    log = recording()
    assert about_torques(log, lambda effort: effort) == ""
    one = about_torques(log, lambda effort: effort * [1.0, -1.0])
    assert "effort/knee acts against" in one and "effort/hip" not in one
    assert "effort/hip answers to the weight and inertia of knee" in about_torques(log, lambda effort: effort[:, SWAP])
    unit = about_torques(log, lambda effort: effort / [1.0, 100.0])
    assert "effort/knee is 0.00" in unit and "effort/hip" not in unit
    motion = to_motion(log)
    with pytest.raises(InputError, match="has the shape"):
        torque_suspicions(motion, motion.position[1:])


def test_reversed_torques_of_joints_that_move_against_each_other_are_not_called_exchanged() -> None:
    time = np.arange(4000) / 200.0
    swing = 0.8 * np.sin(1.3 * time)
    other = 0.2 * np.sin(np.outer(time, [3.1, 2.2]))
    motion = to_motion(JointLog("swing", ("hip", "knee"), time, np.column_stack((swing, -swing)) + other))
    rigid = 10.0 * np.sin(motion.position) + 0.3 * motion.acceleration
    effort = -(rigid + np.tanh(motion.velocity / 0.02) + 0.5 * motion.velocity)
    named = torque_suspicions(replace(motion, effort=effort), rigid)
    assert len(named) == 2 and all("has it the wrong sign?" in text for text in named)


def test_a_hand_that_moves_a_robot_without_friction_is_no_reversed_torque() -> None:
    assert about_torques(replace(recording(), effort=GRAVITY * np.sin(recording().position)), lambda one: one) == ""


def test_pushes_do_not_hide_a_reversed_torque() -> None:
    log = recording()
    assert log.effort is not None
    pushed = log.effort.copy()
    for start in range(700, 10000, 3700):
        pushed[start : start + 60] += [400.0, 200.0]
    assert about_torques(replace(log, effort=pushed), lambda effort: effort) == ""
    reported = about_torques(replace(log, effort=-pushed), lambda effort: effort)
    assert "effort/hip acts against" in reported and "effort/knee acts against" in reported


def test_limits_of_the_joints_reveal_degrees_and_wrong_joints() -> None:
    log = recording(with_velocity=False)
    assert "is it in degrees" in only(
        replace(log, position=DEGREES * log.position, effort=None), position_limits=LIMITS
    )
    assert "is it another joint's" in only(replace(log, position=log.position + 3.0), position_limits=LIMITS)
    assert only(log, position_limits=np.full((2, 2), np.nan)) == ""
    with pytest.raises(InputError, match="expected \\(2, 2\\)"):
        data_warnings(log, LIMITS[:1])


def test_a_joint_that_turns_many_times_is_not_in_degrees() -> None:
    time = np.arange(5000) / 500.0
    position = (12.0 * time + np.sin(3.0 * time))[:, None]
    assert data_warnings(JointLog("wheel", ("wheel",), time, position)) == ()


UNUSABLE: dict[str, tuple[Callable[[JointLog], JointLog], str]] = {
    "two rows": (
        lambda log: JointLog("short", log.joint_names, log.time[:2], log.position[:2]),
        "2 samples are too few",
    ),
    "no rows": (lambda log: JointLog("empty", log.joint_names, log.time[:0], log.position[:0]), "0 samples"),
    "too many NaN": (lambda log: with_nan(log, 3000, "position"), "position/knee 3000"),
    "nothing but NaN": (
        lambda log: replace(log, position=log.position * [1.0, np.nan]),
        "position/knee holds no number",
    ),
    "time backwards": (lambda log: replace(log, time=log.time[::-1].copy()), "time does not increase"),
    "time all zero": (lambda log: replace(log, time=np.zeros_like(log.time)), "repeat the one before"),
    "time is another column": (lambda log: replace(log, time=log.position[:, 0]), "is it the column of the time"),
    "coarse stamps": (lambda log: replace(log, time=np.round(log.time, 2)), "time needs more digits"),
    "no motion": (lambda log: replace(log, position=np.ones_like(log.position)), "no joint moves"),
}


@pytest.mark.parametrize("fault", UNUSABLE)
def test_a_log_that_cannot_be_used_is_refused_with_the_reason(fault: str) -> None:
    damage, words = UNUSABLE[fault]
    with pytest.raises(InputError, match=words):
        data_warnings(damage(recording()))


def test_repair_leaves_a_sound_log_as_it_is() -> None:
    log = recording()
    same, notes = repair(log)
    assert notes == () and same.position is log.position


def test_late_samples_are_put_in_their_place() -> None:
    log = recording()
    order = np.arange(log.time.size)
    order[[300, 301, 900, 901]] = order[[301, 300, 901, 900]]
    back, notes = repair(log.rows(order))
    assert np.array_equal(back.time, log.time) and np.array_equal(back.position, log.position)
    assert "2 samples whose stamp was late" in notes[0]


def test_a_torque_that_one_joint_lacks_altogether_is_left_alone() -> None:
    log = recording()
    assert log.effort is not None
    lacking = replace(log, effort=log.effort * [1.0, np.nan])
    same, notes = repair(lacking)
    assert notes == () and same.time.size == log.time.size
    assert data_warnings(lacking) == ()


def test_a_temperature_at_a_lower_rate_is_filled_and_friction_that_was_not_measured_is_not() -> None:
    log = recording()
    temperature, friction = np.full((2, log.time.size, 2), np.nan)
    temperature[::500, 0] = 20.0 + log.time[::500]
    friction[100:200] = 1.0
    filled, _ = repair(replace(log, inputs={"temperature": temperature, "friction": friction}))
    known = slice(0, 500 * 19)
    assert np.allclose(filled.inputs["temperature"][known, 0], 20.0 + log.time[known])
    assert np.isnan(filled.inputs["temperature"][:, 1]).all()
    assert np.array_equal(filled.inputs["friction"], friction, equal_nan=True)


@pytest.mark.parametrize("offset", [0.0, 1.7e9])
def test_stamps_that_were_printed_with_few_digits_are_evened_out(offset: float) -> None:
    log = recording(rate=300.0)
    rounded = replace(log, time=np.round(log.time + 0.0004, 3) + offset)
    even, notes = repair(rounded)
    assert "rounded to 0.001 s" in notes[0]
    assert np.abs(even.time - offset - log.time - 0.0004).max() < 6e-4  # the first stamp keeps its rounding
    assert np.ptp(np.diff(even.time)) < 1e-6
    assert not any("irregular" in text for text in data_warnings(rounded))


def test_stamps_that_stray_more_than_their_digits_stay_as_they_are() -> None:
    log = recording(rate=300.0)
    late = np.abs(np.random.default_rng(6).normal(scale=1.5e-3, size=log.time.size))
    stray = np.sort(np.round(log.time + late, 3)) + 1e-12 * np.arange(log.time.size)
    stray = stray[np.concatenate([[True], np.diff(stray) > 5e-4])]
    rows = slice(0, stray.size)
    same, notes = repair(JointLog("stray", log.joint_names, stray, log.position[rows], None, None))
    assert notes == () and np.array_equal(same.time, stray)


@given(
    st.integers(0, 2**16),
    st.floats(0.5, 3.0),
    st.floats(0.0, 1.0),
    st.sampled_from([1.0, -1.0]),
    st.booleans(),
)
def test_the_sign_of_friction_is_right_in_one_direction_with_long_rests_and_wrong_only_where_it_gives_power(
    seed: int, coulomb: float, viscous: float, way: float, both_ways: bool
) -> None:
    """A joint about the vertical has nothing but friction; at rest, that is any torque up to breaking away."""
    rng = np.random.default_rng(seed)
    time = np.arange(3000) / 200.0
    swing = np.sin(2.0 * np.pi * rng.uniform(0.3, 0.5) * time + rng.uniform(0.0, 6.0))
    velocity = way * 1.5 * (swing if both_ways else np.maximum(swing, 0.0)) ** 3
    position = np.cumsum(velocity) / 200.0
    held = coulomb * rng.uniform(-1.0, 1.0, 30).repeat(100)
    friction = np.where(np.abs(velocity) < 1e-3, held, coulomb * np.sign(velocity) + viscous * velocity)
    effort = friction + 0.02 * coulomb * rng.normal(size=time.size)
    motion = to_motion(JointLog("yaw", ("yaw",), time, position[:, None], effort=effort[:, None]))
    assert motion.effort is not None
    rough = 1e-3 * motion.acceleration
    assert torque_suspicions(motion, rough) == ()
    named = torque_suspicions(replace(motion, effort=-motion.effort), rough)
    assert not both_ways or any("has it the wrong sign?" in text for text in named)


def test_columns_of_a_joint_that_stands_are_not_doubted() -> None:
    log, noise = recording(), np.random.default_rng(3)
    assert log.velocity is not None and log.effort is not None
    still = log.changed(lambda _, signal: np.column_stack([signal[:, 0], noise.normal(0.0, 1e-4, log.time.size)]))
    found = data_warnings(still)
    assert [text for text in found if "knee" in text] == [text for text in found if "the joint stands still" in text]
