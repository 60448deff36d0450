"""Second phase: torque by PWM or current, friction held."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from friction_estimator.errors import InputError
from friction_estimator.identification.linear_problem import ORDINARY
from friction_estimator.identification.motor.fit import fit_drive_gain, fit_motor_friction
from friction_estimator.identification.motor.problem import FrictionUnknowns, MotorLaw
from test.identification.hand_motion import STRIBECK, motor_samples

INERTIA, GAIN, OFFSET = 0.4, 0.25, -0.3


@pytest.fixture
def friction():
    samples = motor_samples("asymmetric_stribeck", STRIBECK, INERTIA, noise=0.2, seed=5)
    unknowns = FrictionUnknowns(MotorLaw("asymmetric_stribeck"), inertia=None)
    return fit_motor_friction(samples.select(samples.instant < 2500), unknowns, np.zeros(2500), ORDINARY)


def driven(noise=0.0, seed=0):
    samples = motor_samples("asymmetric_stribeck", STRIBECK, INERTIA, OFFSET, noise, seed)
    pwm = 30.0 * np.sin(samples.instant / 90.0) + 20.0 * np.sign(samples.velocity)  # motors are driven where they go
    return replace(samples, drive=pwm, torque=samples.torque + GAIN * pwm)


def test_noiseless_data_give_what_went_in(friction):
    exact = replace(friction, values=np.array([*STRIBECK, INERTIA]))
    found = fit_drive_gain(driven(), "pwm", exact, ORDINARY)
    assert (found.offset, found.gain) == pytest.approx((OFFSET, GAIN), abs=1e-10)


def test_what_is_not_known_of_the_friction_is_not_known_of_the_gain(friction):
    """Draw the friction anew, as its covariance allows, and see how gain and offset move."""
    rng = np.random.default_rng(1)
    samples = driven()
    draws = rng.multivariate_normal([*STRIBECK, INERTIA], friction.covariance, size=400)
    fits = [fit_drive_gain(samples, "pwm", replace(friction, values=draw), ORDINARY) for draw in draws[:60]]
    moved = np.cov([[one.offset, one.gain] for one in fits], rowvar=False)
    one = fit_drive_gain(driven(noise=0.2), "pwm", friction, ORDINARY)
    np.testing.assert_allclose(
        np.sqrt(np.diagonal(moved)), np.sqrt(np.diagonal(one.covariance - one.fit.covariance)), rtol=0.35
    )
    assert one.covariance[1, 1] > 1.1 * one.fit.covariance[1, 1]


def test_gain_and_offset_are_within_their_errors(friction):
    found = fit_drive_gain(driven(noise=0.2, seed=3), "pwm", friction, ORDINARY)
    error = np.array([found.offset - OFFSET, found.gain - GAIN])
    assert (np.abs(error) < 3.5 * np.sqrt(np.diagonal(found.covariance))).all()


def test_current_has_its_own_unit(friction):
    assert fit_drive_gain(driven(), "current", friction, ORDINARY).fit.problem.units == ("N m", "N m/A")


def test_a_drive_that_does_not_change_is_refused(friction):
    samples = driven()
    with pytest.raises(InputError, match="pwm of the motor 'motor' is 12 in all samples: it must change"):
        fit_drive_gain(replace(samples, drive=np.full_like(samples.drive, 12.0)), "pwm", friction, ORDINARY)


def test_a_motor_that_sticks_all_the_time_is_refused(friction):
    samples = driven()
    with pytest.raises(InputError, match="slides in 0 samples of the driven logs, 30 are needed"):
        fit_drive_gain(samples.select(samples.velocity > 99.0), "pwm", friction, ORDINARY)
