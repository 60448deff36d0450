"""Simulated motors with stiction behind couplings: the study of Guedelha et al. 2017 stands on this."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.guedelha.__main__ import identify
from benchmarks.guedelha.limbs import TABLE_1, Mechanism, leg, torso
from benchmarks.guedelha.recordings import STEP, Hand, held, make_study, simulate
from benchmarks.shared.coupling import joint_torque, joint_velocity
from friction_estimator.laws import make_law


@pytest.fixture(scope="module")
def mechanism() -> Mechanism:
    return torso()


def test_friction_holds_what_it_can_and_slides_at_its_bound_otherwise() -> None:
    rng = np.random.default_rng(0)
    held_once = moved_once = False
    for _ in range(50):
        root = rng.normal(size=(3, 3))
        B, c = root @ root.T + np.eye(3), 3.0 * rng.normal(size=3)
        upper, lower = rng.uniform(0.5, 2.0, (2, 3))
        omega, dry = held(B, c, np.zeros(3), upper, lower)
        np.testing.assert_allclose(B @ omega + dry, c, atol=1e-8)
        rests = omega == 0.0
        assert (dry[rests] <= upper[rests] + 1e-8).all() and (dry[rests] >= -lower[rests] - 1e-8).all()
        np.testing.assert_allclose(dry[~rests], np.where(omega > 0.0, upper, -lower)[~rests], atol=1e-7)
        held_once, moved_once = held_once or rests.any(), moved_once or (~rests).any()
    assert held_once and moved_once


@pytest.mark.parametrize(("share", "moves"), [(0.98, False), (1.02, True)])
def test_a_motor_stays_at_rest_until_its_static_friction_is_exceeded(
    mechanism: Mechanism, share: float, moves: bool
) -> None:
    """The yaw motor alone: the upper body's weight does not turn it."""
    balanced = replace(mechanism, offset=np.zeros(3))
    pwm = np.zeros((300, 3))
    pwm[:, 0] = share * mechanism.friction[0, 2] / mechanism.gain[0]
    course = simulate(balanced, Hand(np.zeros((300, 3)), np.zeros(3), np.zeros(3)), pwm)
    assert (np.abs(course.position[-1, 0]) > 1e-6) == moves
    if not moves:
        np.testing.assert_allclose(course.joint_torque, 0.0, atol=1e-9)


def test_steady_motion_meets_the_law_and_the_coupling(mechanism: Mechanism) -> None:
    time = STEP * np.arange(1500)
    speed = np.array([0.1, -0.05, 0.08])
    pwm = np.zeros((time.size, 3))
    led = Hand(joint_velocity(mechanism.coupling, np.outer(time, speed)), np.full(3, 2000.0), np.full(3, 200.0))
    course = simulate(mechanism, led, pwm)
    np.testing.assert_allclose(course.motor_velocity[-1], speed, atol=2e-3)
    friction = make_law("asymmetric_stribeck").torque(mechanism.friction, course.motor_velocity[-1])
    torque = joint_torque(mechanism.coupling, mechanism.offset - friction)
    np.testing.assert_allclose(course.joint_torque[-1], torque, atol=0.05)


def test_the_leg_is_that_of_table_1() -> None:
    friction = leg().friction
    np.testing.assert_allclose(friction[:, 2:], [row[:2] for row in TABLE_1.values()])
    np.testing.assert_allclose(np.radians(friction[:, 1]), [row[2] for row in TABLE_1.values()])
    assert (friction[:, 0] > 0.0).all()


def test_what_went_into_the_simulated_torso_comes_out(mechanism: Mechanism) -> None:
    found = identify(make_study(mechanism, 9.0, seed=2)).parameters
    values = dict(zip(found.names, zip(found.values, found.sigma, strict=True), strict=True))
    for k, motor in enumerate(mechanism.coupling.motor_names):
        truth = {"coulomb": mechanism.friction[k, 0], "viscous": mechanism.friction[k, 1]}
        truth |= {"drive_gain": mechanism.gain[k], "drive_offset": mechanism.offset[k]}
        for name, went_in in truth.items():
            came_out, sigma = values[f"{motor}/{name}"]
            assert abs(came_out - went_in) < 4.0 * sigma, name
        assert values[f"{motor}/viscous"][0] == pytest.approx(truth["viscous"], rel=0.03)
        assert values[f"{motor}/drive_gain"][0] == pytest.approx(truth["drive_gain"], rel=0.02)
