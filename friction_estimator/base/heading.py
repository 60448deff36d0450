"""Heading of the trunk: the gyroscope turns it, the standing feet hold it, and show the gyroscope's bias.

The attitude stage only integrates the yaw, so that it drifts with the bias about the vertical. A standing sole does not
turn about the vertical, but for a little twist: what the attitude and the joints make it turn is error of the yaw.

Soles twist in proportion to the distance that the robot travels, the more the less load they carry. So a robot at rest
holds its heading and learns the bias, and one that walks trusts a gyroscope whose bias is known.
"""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.config import Config
from friction_estimator.types import BoolArray, FloatArray

_LEAST_LOAD = 0.02
"""A sole that carries a smaller part of the mean load than this twists as if it carried this part."""


@kernel
def step_heading(
    x: FloatArray,
    P: FloatArray,
    stood: BoolArray,
    landed_as: FloatArray,
    tuning: FloatArray,
    foot_to_world: FloatArray,
    standing: BoolArray,
    load: FloatArray,
    distance: float,
    dt: float,
    fresh: bool,
) -> None:
    """Advance state and covariance of :class:`HeadingFilter` by one sample, in place."""
    rate_variance, silent_rate, bias_walk, twist_std, rotation_std, twist_gate, rest_speed = (
        tuning[0], tuning[1], tuning[2], tuning[3], tuning[4], tuning[5], tuning[6],
    )  # fmt: skip
    size = x.size
    x[0] -= dt * x[1]
    for j in range(size):
        P[0, j] -= dt * P[1, j]
    for j in range(size):
        P[j, 0] -= dt * P[j, 1]
    P[0, 0] += rate_variance * dt * dt if fresh else silent_rate**2 * dt
    P[1, 1] += bias_walk**2 * dt
    distance = max(distance, rest_speed * dt)
    for foot in range(standing.size):
        if standing[foot] and not stood[foot]:  # as well known as the heading and the joints
            row = 2 + foot
            landed_as[foot] = foot_to_world[foot]
            x[row] = x[0]
            for j in range(size):
                P[row, j] = P[0, j]
            for j in range(size):
                P[j, row] = P[j, 0]
            P[row, row] = P[0, 0] + rotation_std**2
        stood[foot] = standing[foot]
    for foot in range(standing.size):
        if standing[foot]:
            twist = twist_std / min(max(load[foot], _LEAST_LOAD), 1.0)
            seen = _yaw_between(landed_as[foot], foot_to_world[foot])
            _correct(x, P, 2 + foot, seen, twist * twist * distance, rotation_std**2, twist_gate)


@kernel
def _correct(
    x: FloatArray, P: FloatArray, row: int, seen: float, twist_variance: float, rotation_variance: float, gate: float
) -> None:
    """Use one standing foot, after it may have twisted a little.

    A foot farther from its yaw than the gate allows has twisted by what explains it: less of the difference then
    reaches the heading.
    """
    P[row, row] += twist_variance
    innovation = seen - (x[row] - x[0])
    spread = P[row, row] + P[0, 0] - 2.0 * P[row, 0] + rotation_variance
    twisted = (innovation / gate) ** 2 - spread
    if twisted > 0.0:
        P[row, row] += twisted
        spread += twisted
    measured = P[row] - P[0]
    for i in range(x.size):
        x[i] += measured[i] * (innovation / spread)
        for j in range(x.size):
            P[i, j] -= measured[i] * measured[j] / spread


@kernel
def correct_heading(
    x: FloatArray,
    P: FloatArray,
    rotation: FloatArray,
    rate: FloatArray,
    covariance: FloatArray,
    rate_covariance: FloatArray,
    bias_prior: float,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Rotation, rate and their covariances with the heading that the feet hold, without the rest of the bias.

    Parameters
    ----------
    rotation, rate, covariance, rate_covariance : (3, 3), (3,), (3, 3), (3, 3) of the attitude stage
    bias_prior : variance of the bias before any data [rad^2/s^2]
    """
    up = rotation[2].copy()  # the vertical in base axes
    cosine, sine = math.cos(x[0]), math.sin(x[0])
    turned, heading_covariance = rotation.copy(), covariance.copy()
    learned = min(0.0, P[1, 1] - bias_prior)
    rest = rate_covariance.copy()
    for j in range(3):
        turned[0, j] = cosine * rotation[0, j] - sine * rotation[1, j]
        turned[1, j] = sine * rotation[0, j] + cosine * rotation[1, j]
        for i in range(3):
            rest[i, j] += learned * up[i] * up[j]
    heading_covariance[2, 2] = P[0, 0]
    return turned, rate - x[1] * up, heading_covariance, rest


@kernel
def _yaw_between(before: FloatArray, after: FloatArray) -> float:
    """Angle [rad] about the vertical that is nearest to the rotation ``after before^T`` of two attitudes (3, 3)."""
    sine, cosine = 0.0, 0.0
    for k in range(3):
        sine += after[1, k] * before[0, k] - after[0, k] * before[1, k]
        cosine += after[0, k] * before[0, k] + after[1, k] * before[1, k]
    return math.atan2(sine, cosine)


class HeadingFilter:
    """Kalman filter of ``x = [c, b, f_1, ..., f_k]``.

    ``R_corrected = Rz(c) R``; ``b`` is what is left of the gyroscope's bias about the vertical, ``dc/dt = -b``; ``f_i``
    is the yaw of sole i since it landed, of which ``f_i - c`` is seen.

    Parameters
    ----------
    config : ``base_state``, ``attitude`` and ``sensors``; feet with ``contact: point`` may turn and hold nothing

    Attributes
    ----------
    state : (2 + k,); rows of feet in the air mean nothing
    covariance : (2 + k, 2 + k)
    stood : (k,) feet that held the heading at the last sample
    landed_as : (k, 3, 3) attitude of each sole when it landed
    holds : (k,) True for feet that may not turn
    bias_prior : variance of the bias before any data [rad^2/s^2]
    tuning : parameters of :func:`step_heading`
    """

    def __init__(self, config: Config) -> None:
        base, attitude = config.base_state, config.attitude
        self.bias_prior = attitude.gyro_bias_std**2
        self.holds: BoolArray = np.array([foot.contact == "surface" for foot in config.feet], dtype=bool)
        self.tuning = np.array(
            [
                config.sensors.angular_velocity_std**2,
                attitude.silent_rate,
                attitude.gyro_bias_walk,
                base.twist_std,
                base.rotation_std,
                base.twist_gate,
                base.rest_speed,
            ]
        )
        self.reset()

    def reset(self) -> None:
        """Begin anew: no correction, unknown bias."""
        count = self.holds.size
        self.state = np.zeros(2 + count)
        self.covariance = np.zeros((2 + count, 2 + count))
        self.covariance[1, 1] = self.bias_prior
        self.stood: BoolArray = np.zeros(count, dtype=bool)
        self.landed_as = np.zeros((count, 3, 3))
