"""Claims about the sum of law and law error, and about its sigma and that of the external torque."""

from __future__ import annotations

import numpy as np

from friction_estimator.estimation.kalman.disturbance import EXTERNAL_TORQUE_GATE
from friction_estimator.estimation.kalman.frame import FrameOutput, combine_law_and_law_error


def test_sigma_covers_the_external_torque_as_far_as_it_may_be_friction():
    """All of what brakes a joint, and what drives it up to the friction; without a push, what is beyond the noise."""
    out = FrameOutput.zeros(6, 0, 1)
    out.law.torque[:], out.law.friction_variance[:], out.law.law_error_variance[:] = 2.0, 0.01, 0.01
    out.external.slow[:] = 0.5, 30.0, -30.0, 30.0, -30.0, -0.9 * EXTERNAL_TORQUE_GATE
    out.external.sigma[:], out.law.velocity_std[:] = 1.0, 0.01
    out.disturbed[:3] = out.measured[3:] = True
    combine_law_and_law_error(np.ones(6), np.zeros(6), out)
    beyond = np.sqrt(30.0**2 - EXTERNAL_TORQUE_GATE**2)
    np.testing.assert_allclose(out.sigma, np.sqrt(0.01 + np.square([0.5, 2.0, 30.0, 0.0, beyond, 0.0])))


def test_sigma_of_the_external_torque_holds_a_law_error_that_is_larger_than_its_variance():
    """A push below the friction is taken up by the law error; then it is as likely to be external."""
    out = FrameOutput.zeros(3, 0, 1)
    out.law.law_error[:], out.law.law_error_variance[:] = [1.0, 5.0, 5.0], 4.0
    out.external.sigma[:], out.law.velocity_std[:] = 3.0, 0.01
    out.measured[:2] = True
    combine_law_and_law_error(np.ones(3), np.zeros(3), out)
    np.testing.assert_allclose(out.external_torque_sigma, [3.0, np.sqrt(9.0 + 25.0 - 4.0), 3.0])


def test_sigma_of_the_external_torque_holds_what_the_slow_low_pass_has_not_shown_beyond_the_noise():
    out = FrameOutput.zeros(3, 0, 1)
    out.external.sigma[:], out.external.fast_noise[:] = 3.0, 4.0
    out.external.slow[:], out.external.fast[:] = [1.0, 1.0, -1.0], [1.0, 2.9, -6.0]
    out.law.velocity_std[:] = 0.01
    combine_law_and_law_error(np.ones(3), np.zeros(3), out)
    np.testing.assert_allclose(out.external_torque_sigma, [3.0, 3.0, np.sqrt(9.0 + 25.0 - 4.0)])
