"""Claims about the torque that cancels friction: what it is, when it is zero, and that it never exceeds its limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from friction_estimator.config import CompensationConfig
from friction_estimator.errors import ConfigError, InputError
from friction_estimator.estimation.compensation import (
    FrictionCompensation,
    TransmittedLaws,
    confident_torque,
    fade_near_standstill,
)
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import (
    BaseState,
    CommandSample,
    ContactPhase,
    FrictionEstimate,
    LawEstimate,
)
from test.biped import suralp_config
from test.estimates import estimate_from
from test.feeding import feed
from test.sway import sway

MS = 1_000_000
DT = 1e-3
COULOMB, VISCOUS = 0.6, 0.9
FREE = CompensationConfig(enabled=True, gain=1.0, fade_velocity=0.0, slew_rate=1e9, limit=1e9)


_NAMES = [field.name for kind in (FrictionEstimate, LawEstimate) for field in fields(kind) if field.name != "law"]
_UNUSED = np.full(1, np.nan)
_BASE, _PHASE = BaseState(*[_UNUSED] * 6), ContactPhase(np.empty(0, dtype=bool), np.empty(0), "")


def estimate(
    step: int, velocity: float, sigma: float = 0.0, parameters: tuple = (COULOMB, VISCOUS), **changes: object
) -> FrictionEstimate:
    """Estimate of one joint, one a millisecond; everything that compensation does not use is NaN or empty."""
    return estimate_from(
        **{
            **dict.fromkeys(_NAMES, _UNUSED),
            "stamp_ns": step * MS,
            "velocity": np.array([velocity]),
            "effort": np.zeros(1),
            "parameters": np.array([parameters]),
            "model_sigma": np.array([sigma]),
            "valid": np.ones(1, dtype=bool),
            "phase": _PHASE,
            "base": _BASE,
            "compensation": None,
            **changes,
        }
    )


def compensation(
    config: CompensationConfig = FREE, effort_limit: float = np.inf, noise: float = 0.0, **changes: object
):
    laws = TransmittedLaws(JointLaws(["coulomb_viscous"]), Transmission.from_coupling(None, ("knee",)))
    limit = np.array([effort_limit])
    stage = FrictionCompensation(replace(config, **changes), laws, limit, velocity_std=noise)
    stage.test.running[:], stage.test.law[:] = False, 1e3  # passed, with any law: see test_inactive_torque.py
    return stage


def settled(stage: FrictionCompensation, velocity: float, **fields: object) -> float:
    """Torque after long enough at one velocity."""
    return [float(stage.step(estimate(step, velocity, **fields))[0]) for step in range(100)][-1]


def track_sine(friction: Callable[[float], float], stage: FrictionCompensation | None) -> float:
    """RMS error of a joint (0.5 kg m^2, PD and inertial feed-forward) that follows a sine for two periods."""
    inertia, position, velocity, torque, errors = 0.5, 0.0, 2.0, 0.0, []
    for step in range(4000):
        t = step * DT
        wanted, rate, acceleration = np.sin(np.pi * t) / np.pi * 2.0, 2.0 * np.cos(np.pi * t), 0.0
        acceleration = -2.0 * np.pi * np.sin(np.pi * t)
        if stage is not None:
            torque = float(stage.step(estimate(step, velocity))[0])
        motor = inertia * acceleration + 200.0 * (wanted - position) + 10.0 * (rate - velocity) + torque
        for _ in range(10):
            velocity += 0.1 * DT * (motor - friction(velocity)) / inertia
            position += 0.1 * DT * velocity
        errors.append(position - np.sin(np.pi * (t + DT)) * 2.0 / np.pi)
    return float(np.sqrt(np.mean(np.square(errors))))


def test_friction_of_a_known_law_is_cancelled_in_closed_loop():
    def law(velocity: float) -> float:
        return COULOMB * np.tanh(velocity / 0.01) + VISCOUS * velocity

    without, with_it, frictionless = (
        track_sine(law, None), track_sine(law, compensation(fade_velocity=0.02)), track_sine(lambda _: 0.0, None),
    )  # fmt: skip
    assert with_it < 0.1 * without
    assert with_it < frictionless + 0.1 * without


def test_desired_velocities_are_those_of_the_newest_command_that_is_not_ahead():
    stage = compensation(velocity="desired")
    for stamp, velocity in ((0, 1.0), (10 * MS, -1.0)):
        stage.set_command(CommandSample(stamp, np.array([velocity])))
    torques = [float(stage.step(estimate(step, 5.0))[0]) for step in range(20)]
    assert torques[9] == pytest.approx(COULOMB + VISCOUS)
    assert torques[10] == pytest.approx(-COULOMB - VISCOUS)


def test_torque_is_zero_without_fresh_desired_velocities_with_the_reason():
    stage = compensation(velocity="desired", timeout=0.05)
    assert settled(stage, 1.0) == 0.0 and "no desired velocity within 0.05 s" in stage.idle_reason
    stage.set_command(CommandSample(100 * MS, np.array([1.0])))
    torques = np.array([float(stage.step(estimate(step, 1.0))[0]) for step in range(100, 200)])
    assert (torques[:51] > 1.0).all() and (torques[51:] == 0.0).all()
    stage.set_command(CommandSample(50 * MS, np.array([1.0])))  # the clock of the controller has started anew
    assert [float(stage.step(estimate(step, 1.0))[0]) > 0.0 for step in (50, 51)] == [False, True]


def test_torque_starts_from_zero_and_again_after_a_gap_or_a_jump_back():
    stage = compensation(slew_rate=100.0)
    torques = [float(stage.step(estimate(step, 1.0))[0]) for step in (*range(30), 200, 201, 10, 11)]
    np.testing.assert_allclose(np.diff(torques[:15]), 0.1)
    assert torques[29] == pytest.approx(COULOMB + VISCOUS)
    assert torques[30:] == pytest.approx([0.0, 0.1, 0.0, 0.1])


def test_limit_is_that_of_the_configuration_and_never_above_that_of_the_motor():
    assert settled(compensation(limit=1.0), -3.0) == -1.0
    assert settled(compensation(limit=1.0), 3.0) == 1.0
    assert settled(compensation(effort_limit=0.7), 3.0) == 0.7
    assert settled(compensation(gain=0.5), 1.0) == pytest.approx(0.5 * (COULOMB + VISCOUS))
    assert settled(compensation(gain=0.0), 1.0) == 0.0


def test_a_law_that_is_not_known_yet_compensates_nothing():
    full = COULOMB + VISCOUS
    for relative, part in ((0.0, 1.0), (0.5, 1.0), (0.75, 0.5), (1.0, 0.0), (3.0, 0.0), (np.nan, 0.0), (np.inf, 0.0)):
        assert settled(compensation(), 1.0, sigma=relative * full) == pytest.approx(part * full)


def test_a_law_that_would_drive_the_joint_is_not_obeyed():
    assert settled(compensation(), 1.0, parameters=(0.1, -2.0)) == 0.0
    assert settled(compensation(), -1.0, parameters=(0.1, -2.0)) == 0.0


def test_torque_fades_to_zero_with_the_speed():
    speeds = np.array([-0.04, -0.02, -0.01, 0.0, 1e-9, 0.005, 0.02, 1.0])
    torque = np.sign(speeds)
    np.testing.assert_allclose(
        fade_near_standstill(torque, speeds, 0.02), [-1.0, -1.0, -0.5, 0.0, 5e-8, 0.25, 1.0, 1.0]
    )


def resting_joint(stage: FrictionCompensation, noise: float = 2e-3) -> tuple[float, float]:
    """RMS compensation [N m] and path [rad] of a joint with dry friction that rests, its velocity measured with noise.

    Friction is sgn with sticking: it takes whatever torque is applied, up to COULOMB, while the joint does not move.
    """
    rng, inertia, velocity, path, torques = np.random.default_rng(5), 0.02, 0.0, 0.0, []
    for step in range(2000):
        measured = velocity + noise * rng.normal()
        torque = float(stage.step(estimate(step, measured, parameters=(COULOMB, 0.0)))[0])
        free = velocity + DT * torque / inertia
        velocity = np.sign(free) * max(abs(free) - DT * COULOMB / inertia, 0.0)
        path += abs(velocity) * DT
        torques.append(torque)
    return float(np.sqrt(np.mean(np.square(torques)))), path


def swinging(
    stage: FrictionCompensation, seconds: float, measured: float, sign: float = 1.0, start: float = 0.0
) -> None:
    """A joint whose measured friction is this part of what the law gives, while it swings once a second."""
    for step in range(round(start / DT), round((start + seconds) / DT)):
        position, velocity = np.sin(2.0 * np.pi * step * DT), 2.0 * np.pi * np.cos(2.0 * np.pi * step * DT)
        friction = np.array([COULOMB * np.sign(velocity) + VISCOUS * velocity])
        now = {"position": np.array([position]), "friction": friction}
        now["external_torque"] = (1.0 - measured) * friction  # the estimate follows the law
        stage.step(estimate(step, sign * velocity, **now))


@pytest.mark.parametrize(
    ("gain", "measured", "sign", "reason"),
    [
        (0.8, 1.0, 1.0, ""),
        (0.8, 0.8, 1.0, ""),  # what a gain below one is for
        (1.0, 0.7, 1.0, "over-compensation: the torque would put"),
        (0.8, 0.5, 1.0, "over-compensation"),
        (0.8, 1.0, -1.0, "the torque brakes the joint"),
    ],
)
def test_a_torque_that_is_not_passive_against_the_measured_friction_fades_out_with_the_reason(
    gain, measured, sign, reason
):
    stage = compensation(gain=gain)
    swinging(stage, 2.0, measured, sign)
    (state,) = stage.states([""])
    assert reason in state and float(stage.fade[0]) == (0.0 if reason else 1.0)
    if reason:
        swinging(stage, 4.0, 1.0)
        assert stage.states([""]) == ["compensated"] and float(stage.fade[0]) == 1.0


def test_a_torque_that_turns_into_a_brake_is_gone_after_a_quarter_of_a_second():
    stage = compensation(gain=0.8)
    swinging(stage, 3.0, 1.0)
    assert float(stage.fade[0]) == 1.0
    swinging(stage, 0.25, 1.0, sign=-1.0, start=3.0)
    assert float(stage.fade[0]) == 0.0


def test_the_torque_of_a_joint_in_doubt_fades_out_in_50_ms_and_in_again():
    stage, full = compensation(gain=1.0), COULOMB + VISCOUS
    valid = [True] * 100 + [False] * 200 + [True] * 700
    torques = np.array([stage.step(estimate(k, 1.0, valid=np.array([v])))[0] for k, v in enumerate(valid)])
    assert torques[99] == pytest.approx(full) and torques[125] == pytest.approx(0.5 * full, rel=0.05)
    assert (torques[151:300] == 0.0).all() and torques[550] == pytest.approx(0.5 * full, rel=0.05)
    assert torques[-1] == pytest.approx(full)
    stage.step(estimate(1000, 1.0, valid=np.array([False])))
    assert stage.states(["the encoder slips"]) == ["98% of the torque: the encoder slips"]


def test_a_resting_joint_with_a_sgn_law_does_not_chatter():
    chattering, _ = resting_joint(compensation())
    quiet, path = resting_joint(compensation(CompensationConfig(enabled=True)))
    assert chattering > 0.9 * COULOMB  # what the fade is for
    assert quiet < 0.25 * COULOMB and path == 0.0


def test_the_fade_is_never_narrower_than_the_noise_of_a_measured_velocity():
    noisy = resting_joint(compensation(fade_velocity=0.02), noise=0.045)[0]
    known = resting_joint(compensation(fade_velocity=0.02, noise=0.045), noise=0.045)[0]
    assert known < 0.4 * COULOMB < 0.8 * COULOMB < noisy
    stage = compensation(velocity="desired", noise=0.045)  # commands have no noise
    stage.set_command(CommandSample(0, np.array([1e-3])))
    assert settled(stage, 0.0) == pytest.approx(COULOMB, abs=2e-3)


@settings(max_examples=60, deadline=None)
@given(
    velocity=st.floats(-100.0, 100.0),
    sigma=st.floats(),
    coulomb=st.floats(),
    viscous=st.floats(),
    effort_limit=st.floats(0.0, 1e3),
)
def test_torque_is_finite_and_within_limits_whatever_was_identified(velocity, sigma, coulomb, viscous, effort_limit):
    stage = compensation(CompensationConfig(enabled=True), effort_limit=effort_limit)
    with np.errstate(all="ignore"):
        for step in range(5):
            fields = {"sigma": sigma, "parameters": (coulomb, viscous)}
            torque = stage.step(estimate(step, velocity * (-1.0) ** step, **fields))
            assert np.isfinite(torque).all() and np.abs(torque).max() <= min(effort_limit, 10.0)


@given(friction=st.floats(-1e3, 1e3), sigma=st.floats(0.0, 1e3))
def test_trust_never_turns_or_enlarges_a_torque(friction, sigma):
    torque = float(confident_torque(np.array([friction]), np.array([sigma]))[0])
    assert abs(torque) <= abs(friction) and torque * friction >= 0.0


def test_it_is_off_unless_asked_for_and_then_part_of_every_estimate(urdf_xml):
    instants = list(sway(urdf_xml, 2.5, amplitude=0.02, turn=0.05))

    def estimates(**changes: object) -> list[FrictionEstimate]:
        estimator = Estimator(suralp_config(observer="momentum", **changes), urdf_xml)
        return feed(estimator, instants) + estimator.flush()

    assert all(item.compensation is None for item in estimates())
    torque = np.array([item.compensation for item in estimates(compensation__enabled=True)])
    assert torque.shape == (len(instants), 12) and (torque[0] == 0.0).all() and (torque[-1] != 0.0).any()


def test_bad_desired_velocities_and_topics_are_refused(urdf_xml):
    estimator = Estimator(suralp_config(compensation__enabled=True, compensation__velocity="desired"), urdf_xml)
    with pytest.raises(InputError, match="desired velocity l_hip_pitch = nan"):
        estimator.add_command(CommandSample(0, np.array([0.0, 0.0, np.nan, *[0.0] * 9])))
    for topic in ("", "joint_states"):
        with pytest.raises(ConfigError, match="compensation.desired_topic"):
            suralp_config(
                compensation__enabled=True, compensation__velocity="desired", compensation__desired_topic=topic
            )
