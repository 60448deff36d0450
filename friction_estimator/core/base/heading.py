"""Heading of the trunk: the gyroscope turns it, the standing feet hold it, and show the gyroscope's bias.

The attitude stage only integrates the yaw, so that it drifts with the bias about the vertical. A standing sole does not
turn about the vertical, but for a little twist: what the attitude and the joints make it turn is error of the yaw.

Soles twist in proportion to the way the robot makes, the more the less load they carry. So a robot at rest holds its
heading and learns the bias, and one that walks trusts a gyroscope whose bias is known.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from friction_estimator.core.config import Config
from friction_estimator.core.types import Attitude, BoolArray, FloatArray

_LEAST_LOAD = 0.02


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
    """

    def __init__(self, config: Config) -> None:
        self._config = config.base_state
        self._attitude = config.attitude
        self._rate_noise = config.sensors.angular_velocity_std**2
        self._holds = np.array([foot.contact == "surface" for foot in config.feet], dtype=bool)
        self.reset()

    def reset(self) -> None:
        """Begin anew: no correction, unknown bias."""
        count = self._holds.size
        self.state = np.zeros(2 + count)
        self.covariance = np.zeros((2 + count, 2 + count))
        self.covariance[1, 1] = self._attitude.gyro_bias_std**2
        self._standing = np.zeros(count, dtype=bool)
        self._landed_as = np.zeros((count, 3, 3))

    def step(
        self, foot_to_world: FloatArray, standing: BoolArray, load: FloatArray, way: float, dt: float, fresh: bool
    ) -> None:
        """Advance by one sample.

        Parameters
        ----------
        foot_to_world : (k, 3, 3) attitude of the soles, as the attitude stage has the world
        standing : (k,)
        load : (k,) normal forces relative to their mean over the standing feet
        way : that the robot has made since the last sample [m]
        dt : [s]
        fresh : False while the IMU is silent
        """
        self._predict(dt, fresh)
        standing = standing & self._holds
        landed = standing & ~self._standing
        self._standing = standing
        self._land(np.flatnonzero(landed).tolist(), foot_to_world)
        way = max(way, self._config.rest_speed * dt)
        turned = foot_to_world @ self._landed_as.transpose(0, 2, 1)
        for foot in np.flatnonzero(standing).tolist():
            twist = self._config.twist_std / min(max(float(load[foot]), _LEAST_LOAD), 1.0)
            self._correct(foot, _yaw(turned[foot]), twist * twist * way)

    def _predict(self, dt: float, fresh: bool) -> None:
        x, P = self.state, self.covariance
        x[0] -= dt * x[1]
        P[0] -= dt * P[1]
        P[:, 0] -= dt * P[:, 1]
        P[0, 0] += self._rate_noise * dt * dt if fresh else self._attitude.silent_rate**2 * dt
        P[1, 1] += self._attitude.gyro_bias_walk**2 * dt

    def _land(self, feet: list[int], foot_to_world: FloatArray) -> None:
        """A foot that lands is as well known as the heading and the joints."""
        for foot in feet:
            row, P = 2 + foot, self.covariance
            self._landed_as[foot] = foot_to_world[foot]
            self.state[row] = self.state[0]
            P[row] = P[0]
            P[:, row] = P[0]
            P[row, row] = P[0, 0] + self._config.rotation_std**2

    def _correct(self, foot: int, seen: float, twist_variance: float) -> None:
        """Use one standing foot, after it may have twisted a little.

        A foot farther from its yaw than the gate allows has twisted by what explains it: less of the difference then
        reaches the heading.
        """
        row, x, P = 2 + foot, self.state, self.covariance
        P[row, row] += twist_variance
        innovation = seen - (x[row] - x[0])
        spread = P[row, row] + P[0, 0] - 2.0 * P[row, 0] + self._config.rotation_std**2
        twisted = float(innovation / self._config.twist_gate) ** 2 - spread
        if twisted > 0.0:
            P[row, row] += twisted
            spread += twisted
        measured = P[row] - P[0]
        self.state = x + measured * (innovation / spread)
        self.covariance = P - np.outer(measured, measured / spread)

    def corrected(self, attitude: Attitude) -> Attitude:
        """Attitude with the heading that the feet hold, and its rate without the rest of the bias."""
        R = attitude.rotation_base_to_world
        up = R[2]  # the vertical in base axes
        bias_variance = float(self.covariance[1, 1])
        covariance = attitude.covariance.copy()
        covariance[2, 2] = self.covariance[0, 0]
        learned = min(0.0, bias_variance - self._attitude.gyro_bias_std**2)
        return replace(
            attitude,
            rotation_base_to_world=_turn(float(self.state[0])) @ R,
            angular_velocity=attitude.angular_velocity - self.state[1] * up,
            covariance=covariance,
            rate_covariance=attitude.rate_covariance + learned * np.outer(up, up),
        )


def _turn(yaw: float) -> FloatArray:
    cosine, sine = math.cos(yaw), math.sin(yaw)
    return np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]])


def _yaw(rotation: FloatArray) -> float:
    """Angle of the rotation about the vertical that is nearest to a rotation (3, 3) [rad]."""
    return math.atan2(rotation[1, 0] - rotation[0, 1], rotation[0, 0] + rotation[1, 1])
