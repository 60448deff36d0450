"""The simulated RX130L of Hamon et al. 2010, and the ratios of Tables III and IV."""

import numpy as np
import pytest

from benchmarks.hamon.__main__ import MODELS
from benchmarks.hamon.joint import (
    ARM_LENGTH,
    AS_PUBLISHED,
    JOINT,
    PAYLOADS,
    PERIOD,
    RANGE,
    Sensors,
    disk,
    record,
    reference_motion,
    shared_factors,
)
from benchmarks.hamon.models import compare
from friction_estimator.identification.recording.motion import Motion
from friction_estimator.types import GRAVITY

EVERY, SLOW_CUTOFF_HZ = 150, 0.6
"""Every how manieth sample, and a filter that is as slow: both sides of the equation go through it."""
TRUTHS = {"as published": AS_PUBLISHED, "shared": shared_factors()}


def motor_torque(truth, mass, position, velocity, acceleration):
    """Equation 25 with products apart (eq. 42), written as it stands there; also where the quadrant is certain."""
    fading = np.exp(-np.abs(velocity) / truth.stribeck_velocity)
    both = []
    for one in (truth.motor, truth.generator):
        weight = GRAVITY * np.cos(position)
        load = (one.inertia + one.inertia_fading * fading) * acceleration
        load += (one.moment + one.moment_fading * fading) * weight
        load += (one.payload + one.payload_fading * fading) * mass * ARM_LENGTH * (ARM_LENGTH * acceleration + weight)
        both.append((load, load + one.dry * np.sign(velocity)))
    driving = both[0][0] * velocity > 0.0
    torque = np.where(driving, both[0][1], both[1][1]) + truth.viscous * velocity + truth.offset
    return torque, (both[0][0] > 0.0) == (both[1][0] > 0.0)


@pytest.mark.parametrize("name", TRUTHS)
def test_the_joint_accelerates_as_in_equation_25(name):
    rng = np.random.default_rng(0)
    truth, mass = TRUTHS[name], 3.0
    position, velocity, acceleration = rng.uniform(-1.0, 1.0, (3, 200)) * [[RANGE], [0.2], [5.0]]
    torque, certain = motor_torque(truth, mass, position, velocity, acceleration)
    assert certain.sum() > 190
    for q, dq, wanted, tau in zip(*(one[certain] for one in (position, velocity, acceleration, torque)), strict=True):
        found, _ = truth.acceleration(float(tau), float(np.cos(q)), float(dq), float(np.sign(dq)), mass)
        assert found == pytest.approx(wanted, abs=1e-9)


def test_a_recording_goes_over_the_whole_range_and_its_torque_moves_the_joint():
    motion = reference_motion(1.2)
    log = record(AS_PUBLISHED, Sensors(1e-12, 0.0, 0.0, 0.0), PAYLOADS[1], 0, motion)
    position = log.position[:, 0]
    assert np.ptp(position) == pytest.approx(2.0 * RANGE, abs=0.01)
    velocity = np.gradient(position, PERIOD)
    torque, _ = motor_torque(AS_PUBLISHED, PAYLOADS[1], position, velocity, np.gradient(velocity, PERIOD))
    steady = np.abs(np.abs(motion[1]) - 1.2) < 0.01
    error = np.abs(log.effort[steady, 0] - torque[steady])
    assert np.percentile(error, 95) < 1.0 < 0.01 * np.abs(torque).max()  # N m; quadrants change in between


@pytest.fixture(scope="module")
def motions():
    """Torque of eq. 25 with the products of Table II along the planned motions."""
    position, velocity, acceleration = (signal[::EVERY, None] for signal in reference_motion())
    sensors, result = Sensors(), []
    for seed, mass in enumerate(PAYLOADS):
        torque, _ = motor_torque(AS_PUBLISHED, mass, position, velocity, acceleration)
        ripple = sum(np.sin(wave * position) for wave in sensors.ripple_waves)
        torque += (sensors.ripple + sensors.ripple_speed * np.abs(velocity)) * ripple
        torque += np.random.default_rng(seed).normal(size=torque.shape)
        time = EVERY * PERIOD * np.arange(len(position))
        result.append(
            Motion(
                f"{mass:g} kg", (JOINT,), EVERY * PERIOD, time, position, velocity, acceleration, torque, {},
                time.astype(np.intp), disk(mass) if mass else None, "", (), SLOW_CUTOFF_HZ,
            )
        )  # fmt: skip
    return result


def test_errors_fall_as_in_tables_iii_and_iv(motions):
    _, errors = compare(motions, True, SLOW_CUTOFF_HZ)
    _, alone = compare(motions[:1], False, SLOW_CUTOFF_HZ)
    every, slow, fast, held_out = np.divide(errors[MODELS[1]], errors[MODELS[0]])
    assert (every, slow, fast) == pytest.approx((0.66, 0.54, 1.02), abs=0.08)
    assert held_out == pytest.approx(every, abs=0.03)
    assert alone[MODELS[1]][0] / alone[MODELS[0]][0] == pytest.approx(0.81, abs=0.08)
