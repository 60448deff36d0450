"""What standing soles hold: the heading of the trunk, its height, and its place on the ground.

Heading. The attitude stage only integrates the yaw, which drifts with the bias of the gyroscope about the vertical.
A standing sole does not turn about the vertical, but for a little twist: what the attitude and the joints make it turn
is error of the yaw. Soles twist in proportion to the distance that the robot travels, the more the less load they
carry. So a robot at rest holds its heading and learns the bias, and one that walks trusts a gyroscope whose bias is
known.

Height. A sole lands on an edge, which is not where its frame is, and lies flat only under load; a leg that carries is
shorter than one that does not. Taken at the first touch, the height of a sole is millimetres too large, at every step.
So the height of a sole is a state: while it carries little it follows the soles that carry much. No ground is assumed,
so stairs and slopes are as good as a level floor.

Place. The base stands over the soles in proportion to their load.
"""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.base.attitude import IMU_GAP_RATE
from friction_estimator.compiled import kernel
from friction_estimator.config import BaseStateConfig, Config
from friction_estimator.linear_algebra import Vector
from friction_estimator.types import BoolArray, FloatArray

ROTATION_STD = 0.002
"""Standard deviation of the rotation of a sole by the joints [rad]: encoder offsets and bending links."""
_TWIST_GATE = 3.0
"""A sole that is more than this many standard deviations from its heading has slipped."""
_HEIGHT_STD = 0.002
"""Standard deviation of the height of a sole by the joints [m]: encoder offsets and bending links."""
_LEAST_LOAD = 0.02
"""A sole that carries a smaller part of the mean load than this moves as if it carried this part."""


@kernel
def _land(x: FloatArray, P: FloatArray, row: int, offset: float, variance: float) -> None:
    """Begin the state of a sole that lands: that of the base plus an offset, whose error has this variance."""
    x[row] = x[0] + offset
    for j in range(x.size):
        P[row, j] = P[0, j]
    for j in range(x.size):
        P[j, row] = P[j, 0]
    P[row, row] = P[0, 0] + variance


@kernel
def _use_sole(
    x: FloatArray,
    P: FloatArray,
    row: int,
    seen: float,
    std: float,
    load: float,
    distance: float,
    noise_variance: float,
    gate: float,
) -> None:
    """Correct with the difference ``x[row] - x[0]`` that the joints show, after the sole may have moved a little.

    A sole farther from its place than the gate allows has moved by what explains it: less of the difference then
    reaches the base.

    Parameters
    ----------
    seen : the difference
    std : of the sole's random walk over a metre under the full load; larger the less it carries
    load : of the sole, as a part of the mean load
    distance : that the robot has travelled since the last sample [m]
    noise_variance : of ``seen``
    gate : number of standard deviations; infinite for none
    """
    std = std / min(max(load, _LEAST_LOAD), 1.0)
    P[row, row] += std * std * distance
    innovation = seen - (x[row] - x[0])
    spread = P[row, row] + P[0, 0] - 2.0 * P[row, 0] + noise_variance
    moved = (innovation / gate) ** 2 - spread
    if moved > 0.0:
        P[row, row] += moved
        spread += moved
    measured = P[row] - P[0]
    for i in range(x.size):
        x[i] += measured[i] * (innovation / spread)
        for j in range(x.size):
            P[i, j] -= measured[i] * measured[j] / spread


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
    rate_variance, silent_rate, bias_walk = tuning[0], tuning[1], tuning[2]
    twist_std, rotation_std, twist_gate = tuning[3], tuning[4], tuning[5]
    size = x.size
    x[0] -= dt * x[1]
    for j in range(size):
        P[0, j] -= dt * P[1, j]
    for j in range(size):
        P[j, 0] -= dt * P[j, 1]
    P[0, 0] += rate_variance * dt * dt if fresh else silent_rate**2 * dt
    P[1, 1] += bias_walk**2 * dt
    for foot in range(standing.size):
        if standing[foot] and not stood[foot]:
            landed_as[foot] = foot_to_world[foot]
            _land(x, P, 2 + foot, 0.0, rotation_std**2)
        stood[foot] = standing[foot]
    for foot in range(standing.size):
        if standing[foot]:
            seen = _yaw_between(landed_as[foot], foot_to_world[foot])
            _use_sole(x, P, 2 + foot, seen, twist_std, load[foot], distance, rotation_std**2, twist_gate)


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
                IMU_GAP_RATE,
                attitude.gyro_bias_walk,
                base.twist_std,
                ROTATION_STD,
                _TWIST_GATE,
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


@kernel
def step_heights(
    x: FloatArray,
    P: FloatArray,
    stood: BoolArray,
    running: BoolArray,
    tuning: FloatArray,
    soles: FloatArray,
    standing: BoolArray,
    load: FloatArray,
    distance: float,
    moved: float,
    spread: float,
) -> None:
    """Advance state and covariance of :class:`SoleHeights` by one sample, in place."""
    settle_std, height_std, landing_std = tuning[0], tuning[1], tuning[2]
    if not running[0]:
        running[0] = True
        if soles.size:
            x[0] = -soles.min()
    x[0] += moved
    P[0, 0] += spread
    for foot in range(standing.size):
        if standing[foot] and not stood[foot]:
            _land(x, P, 1 + foot, soles[foot], landing_std**2)
        stood[foot] = standing[foot]
    for foot in range(standing.size):
        if standing[foot]:
            _use_sole(x, P, 1 + foot, soles[foot], settle_std, load[foot], distance, height_std**2, math.inf)


class SoleHeights:
    """Kalman filter of ``x = [z, f_1, ..., f_k]``.

    ``dz/dt = v_z``; ``f_i``, the height of sole i, is a random walk over the distance that the robot travels, the
    faster the less it carries: ``settle_std / share_i``. The joints see ``f_i - z``.

    Parameters
    ----------
    config : ``base_state``
    feet : their number k

    Attributes
    ----------
    state : (1 + k,) [m]; rows of feet in the air mean nothing
    covariance : (1 + k, 1 + k), but for errors of the attitude [m^2]
    stood : (k,) soles that stood at the last sample
    running : (1,) False before the first sample, whose lowest sole is at z = 0
    tuning : parameters of :func:`step_heights`
    """

    def __init__(self, config: BaseStateConfig, feet: int) -> None:
        self.tuning = np.array([config.settle_std, _HEIGHT_STD, config.landing_std])
        self._feet = feet
        self.reset()

    def reset(self) -> None:
        """Begin anew with the next sample, whose lowest sole is at z = 0."""
        self.state = np.zeros(1 + self._feet)
        self.covariance = np.zeros((1 + self._feet, 1 + self._feet))
        self.stood: BoolArray = np.zeros(self._feet, dtype=bool)
        self.running: BoolArray = np.zeros(1, dtype=bool)


@kernel
def step_places(
    position: FloatArray,
    variance: FloatArray,
    stood: BoolArray,
    place: FloatArray,
    place_variance: FloatArray,
    landing_variance: float,
    soles: FloatArray,
    standing: BoolArray,
    load: FloatArray,
    moved: Vector,
    spread: Vector,
) -> None:
    """Advance position and places of :class:`SolePlaces` by one sample, in place."""
    held, carried, landed = 0.0, 0.0, False
    for foot in range(standing.size):
        if standing[foot]:
            carried += max(load[foot], 0.0)
            if stood[foot]:
                held += max(load[foot], 0.0)
            else:
                landed = True
    if held > 0.0:
        _rest_on(position, variance, place, place_variance, soles, standing & stood, load, held)
    else:
        for axis in range(2):
            position[axis] += moved[axis]
            variance[axis] += spread[axis]
    for foot in range(standing.size):
        if standing[foot] and not stood[foot]:
            for axis in range(2):
                place[foot, axis] = position[axis] + soles[foot, axis]
                place_variance[foot, axis] = variance[axis] + landing_variance
    if landed and carried > 0.0:
        _rest_on(position, variance, place, place_variance, soles, standing, load, carried)
    for foot in range(standing.size):
        stood[foot] = standing[foot]


@kernel
def _rest_on(
    position: FloatArray,
    variance: FloatArray,
    place: FloatArray,
    place_variance: FloatArray,
    soles: FloatArray,
    carrying: BoolArray,
    load: FloatArray,
    total: float,
) -> None:
    """Errors of the places are not averaged out: each sole was placed by the one before."""
    for axis in range(2):
        position[axis] = variance[axis] = 0.0
        for foot in range(carrying.size):
            if carrying[foot]:
                share = max(load[foot], 0.0) / total
                position[axis] += share * (place[foot, axis] - soles[foot, axis])
                variance[axis] += share * place_variance[foot, axis]


class SolePlaces:
    """Horizontal position of the base: ``p = sum_i share_i (a_i - r_i)`` over the standing soles.

    ``r_i`` is the vector from the base to the sole by the joints, ``a_i`` the place of the sole, fixed when it lands by
    the position of the base that the other standing soles give at that instant. In the air the velocity carries on.

    Parameters
    ----------
    feet : their number k
    landing_std : how far a foot slips while it lands [m]

    Attributes
    ----------
    position : (2,) of the base, world axes [m]; zero at the start
    variance : (2,) of it, but for errors of the attitude [m^2]
    stood : (k,) soles that stood at the last sample
    place, place_variance : (k, 2) of the soles [m], [m^2]
    landing_variance : [m^2]
    """

    def __init__(self, feet: int, landing_std: float) -> None:
        self._feet = feet
        self.landing_variance = landing_std**2
        self.reset()

    def reset(self) -> None:
        """Begin anew, above the origin of the world; the soles that stand then define it."""
        self.position, self.variance = np.zeros(2), np.zeros(2)
        self.stood: BoolArray = np.zeros(self._feet, dtype=bool)
        self.place = np.zeros((self._feet, 2))
        self.place_variance = np.zeros((self._feet, 2))
