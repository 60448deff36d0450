"""What standing soles hold: the heading of the trunk, its height, and its place on the ground.

Heading. The attitude stage only integrates the yaw, which drifts with the bias of the gyroscope about the vertical.
A standing sole does not turn about the vertical, but for a little twist: what the attitude and the joints make it turn
is error of the yaw. Soles twist in proportion to the distance that the robot travels, the more the less load they
carry. So a robot at rest holds its heading and learns the bias, and one that walks relies on a gyroscope whose bias is
known.

Height. A sole lands on an edge, which is not where its frame is, and lies flat only under load; a leg that carries is
shorter than one that does not. Taken at the first touch, the height of a sole is millimetres too large, at every step.
So the height of a sole is a state: while it carries little it follows the soles that carry much. No ground is assumed,
so stairs and slopes are as good as a level floor.

Place. The base stands over the soles in proportion to their load.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from friction_estimator.base.attitude import GYRO_BIAS_WALK, IMU_GAP_RATE
from friction_estimator.config import Config
from friction_estimator.kernels.compiler import kernel
from friction_estimator.kernels.records import record
from friction_estimator.linear_algebra import Triple
from friction_estimator.types import Attitude, BoolArray, Flags, FloatArray, Matrix, Tensor, Vector

ROTATION_STD = 0.002
"""Standard deviation of the rotation of a sole by the joints [rad]: encoder offsets and bending links."""
LANDING_STD = 0.003
"""Standard deviation of the distance by which a foot settles or slips while it lands [m]."""
SETTLE_STD = 0.01
"""Random walk of the height of a sole over the distance travelled [m/sqrt(m)]. Lightly loaded soles settle more."""
TWIST_STD = 0.1
"""Random walk of the heading of a sole over the distance travelled [rad/sqrt(m)]. Lightly loaded soles twist more."""
_TWIST_GATE = 3.0
"""A sole that is more than this many standard deviations from its heading has slipped."""
_HEIGHT_STD = 0.002
"""Standard deviation of the height of a sole by the joints [m]: encoder offsets and bending links."""
_MIN_LOAD = 0.02
"""A sole that carries a smaller part of the mean load than this moves as if it carried this part."""


@kernel
def _add_sole(x: FloatArray, P: FloatArray, row: int, offset: float, variance: float) -> None:
    """Add a sole that lands to the state, at that of the base plus an offset whose error has this variance."""
    x[row] = x[0] + offset
    for j in range(x.size):
        P[row, j] = P[0, j]
    for j in range(x.size):
        P[j, row] = P[j, 0]
    P[row, row] = P[0, 0] + variance


@kernel
def _correct_with_sole(
    x: FloatArray,
    P: FloatArray,
    row: int,
    measured: float,
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
    measured : the difference
    std : of the sole's random walk over a metre under the full load; larger the less it carries
    load : of the sole, as a part of the mean load
    distance : that the robot has travelled since the last sample [m]
    noise_variance : of ``measured``
    gate : number of standard deviations; infinite for none
    """
    std = std / min(max(load, _MIN_LOAD), 1.0)
    P[row, row] += std * std * distance
    innovation = measured - (x[row] - x[0])
    innovation_variance = P[row, row] + P[0, 0] - 2.0 * P[row, 0] + noise_variance
    slip_variance = (innovation / gate) ** 2 - innovation_variance
    if slip_variance > 0.0:
        P[row, row] += slip_variance
        innovation_variance += slip_variance
    cross_covariance = P[row] - P[0]
    for i in range(x.size):
        x[i] += cross_covariance[i] * (innovation / innovation_variance)
        for j in range(x.size):
            P[i, j] -= cross_covariance[i] * cross_covariance[j] / innovation_variance


@kernel
def _yaw_between(before: FloatArray, after: FloatArray) -> float:
    """Angle [rad] about the vertical that is nearest to the rotation ``after before^T`` of two attitudes (3, 3)."""
    sine, cosine = 0.0, 0.0
    for k in range(3):
        sine += after[1, k] * before[0, k] - after[0, k] * before[1, k]
        cosine += after[0, k] * before[0, k] + after[1, k] * before[1, k]
    return math.atan2(sine, cosine)


class Support(NamedTuple):
    """Feet that stand and how they share the weight; fields (k,)."""

    standing: Flags  # True for a foot that stands and whose sensor delivers
    normal_force: Vector  # of the ground on each foot [N]
    load: Vector  # normal force over the mean of the feet that stand


@kernel
def support_of(contact: BoolArray, wrench_fresh: BoolArray, wrenches: FloatArray) -> Support:
    """Feet (k,) in contact whose sensors deliver, and their loads by the wrenches (k, 6)."""
    k, count, total = contact.size, 0, 0.0
    standing, normal_force, load = np.empty(k, dtype=np.bool_), wrenches[:, 2].copy(), np.empty(k)
    for foot in range(k):
        standing[foot] = contact[foot] and wrench_fresh[foot]
        if standing[foot]:
            count += 1
            total += normal_force[foot]
    for foot in range(k):
        load[foot] = normal_force[foot] * (count / total) if total > 0.0 else 0.0
    return Support(standing, normal_force, load)


@record
class Heading(NamedTuple):
    """Kalman filter of ``x = [c, b, f_1, ..., f_k]``.

    ``R_corrected = Rz(c) R``; ``b`` is what is left of the gyroscope's bias about the vertical, ``dc/dt = -b``; ``f_i``
    is the yaw of sole i since it landed, of which ``f_i - c`` is seen.
    """

    mean: Vector  # (2 + k,); rows of feet in the air mean nothing
    covariance: Matrix  # (2 + k, 2 + k)
    was_standing: Flags  # (k,) feet that held the heading at the last sample
    landing_attitude: Tensor  # (k, 3, 3) attitude of each sole when it landed
    resists_twist: Flags  # (k,) True for feet that may not turn; feet with `contact: point` may
    # of the gyroscope; `bias_prior` before any data [rad^2/s^2]
    rate_variance: float
    bias_walk: float
    bias_prior: float


def new_heading(config: Config) -> Heading:
    """State before the first sample: no correction of the heading, and an unknown bias."""
    k = len(config.feet)
    resists_twist: BoolArray = np.array([foot.contact == "surface" for foot in config.feet], dtype=bool)
    covariance, bias_prior = np.zeros((2 + k, 2 + k)), config.attitude.gyro_bias_std**2
    covariance[1, 1] = bias_prior
    return Heading(
        np.zeros(2 + k), covariance, np.zeros(k, dtype=bool), np.zeros((k, 3, 3)), resists_twist,
        config.sensors.angular_velocity_std**2, GYRO_BIAS_WALK, bias_prior,
    )  # fmt: skip


@kernel
def step_heading(
    heading: Heading,
    foot_to_world: FloatArray,
    standing: BoolArray,
    load: FloatArray,
    distance: float,
    dt: float,
    fresh: bool,
) -> None:
    """Advance the heading by one sample, in place.

    Parameters
    ----------
    foot_to_world : (k, 3, 3) attitude of the soles by joints and attitude filter
    standing : (k,) True for feet that stand and may not turn
    load : (k,) of the soles, as a part of the mean load
    distance : that the robot has travelled since the last sample [m]
    dt : [s]
    fresh : False without a reading of the IMU
    """
    x, P, was_standing, size = heading.mean, heading.covariance, heading.was_standing, heading.mean.size
    x[0] -= dt * x[1]
    for j in range(size):
        P[0, j] -= dt * P[1, j]
    for j in range(size):
        P[j, 0] -= dt * P[j, 1]
    P[0, 0] += heading.rate_variance * dt * dt if fresh else IMU_GAP_RATE**2 * dt
    P[1, 1] += heading.bias_walk**2 * dt
    for foot in range(standing.size):
        if standing[foot] and not was_standing[foot]:
            heading.landing_attitude[foot] = foot_to_world[foot]
            _add_sole(x, P, 2 + foot, 0.0, ROTATION_STD**2)
        was_standing[foot] = standing[foot]
    for foot in range(standing.size):
        if standing[foot]:
            measured = _yaw_between(heading.landing_attitude[foot], foot_to_world[foot])
            _correct_with_sole(x, P, 2 + foot, measured, TWIST_STD, load[foot], distance, ROTATION_STD**2, _TWIST_GATE)


class CorrectedAttitude(NamedTuple):
    """Attitude with the heading that the feet hold, and rate without the rest of the gyroscope's bias."""

    rotation_base_to_world: Matrix  # (3, 3)
    angular_velocity: Vector  # (3,) of the base, base axes [rad/s]
    covariance: Matrix  # (3, 3) of the rotation, world axes [rad^2]
    rate_covariance: Matrix  # (3, 3) of the angular velocity, base axes [rad^2/s^2]


@kernel
def correct_heading(heading: Heading, attitude: Attitude) -> CorrectedAttitude:
    """Turn the attitude by the correction of the heading, and subtract the bias about the vertical from the rate."""
    x, P, rotation = heading.mean, heading.covariance, attitude.rotation_base_to_world
    up = rotation[2].copy()  # the vertical in base axes
    cosine, sine = math.cos(x[0]), math.sin(x[0])
    corrected, heading_covariance = rotation.copy(), attitude.covariance.copy()
    bias_variance_change = min(0.0, P[1, 1] - heading.bias_prior)
    rate_covariance = attitude.rate_covariance.copy()
    for j in range(3):
        corrected[0, j] = cosine * rotation[0, j] - sine * rotation[1, j]
        corrected[1, j] = sine * rotation[0, j] + cosine * rotation[1, j]
        for i in range(3):
            rate_covariance[i, j] += bias_variance_change * up[i] * up[j]
    heading_covariance[2, 2] = P[0, 0]
    return CorrectedAttitude(corrected, attitude.angular_velocity - x[1] * up, heading_covariance, rate_covariance)


@record
class Heights(NamedTuple):
    """Kalman filter of ``x = [z, f_1, ..., f_k]``.

    ``dz/dt = v_z``; ``f_i``, the height of sole i, is a random walk over the distance that the robot travels, the
    faster the less it carries: ``SETTLE_STD / share_i``. The joints see ``f_i - z``.
    """

    mean: Vector  # (1 + k,) [m]; rows of feet in the air mean nothing
    covariance: Matrix  # (1 + k, 1 + k), but for errors of the attitude [m^2]
    was_standing: Flags  # (k,) soles that stood at the last sample
    running: Flags  # (1,) False before the first sample, whose lowest sole is at z = 0


def new_heights(feet: int) -> Heights:
    """State before the first sample, of a robot with this number of feet."""
    was_standing, running = np.zeros(feet, dtype=bool), np.zeros(1, dtype=bool)
    covariance = np.zeros((1 + feet, 1 + feet))
    return Heights(np.zeros(1 + feet), covariance, was_standing, running)


@kernel
def step_heights(
    heights: Heights,
    soles: FloatArray,
    standing: BoolArray,
    load: FloatArray,
    distance: float,
    moved: float,
    variance_growth: float,
) -> None:
    """Advance the heights by one sample, in place.

    Parameters
    ----------
    soles : (k,) height of the soles over the base by the joints, negative below it [m]
    standing : (k,) True for feet that stand
    load : (k,) of the soles, as a part of the mean load
    distance : that the robot has travelled since the last sample [m]
    moved, variance_growth : height of the base by its velocity since then, and the variance of that [m], [m^2]
    """
    x, P, was_standing = heights.mean, heights.covariance, heights.was_standing
    if not heights.running[0]:
        heights.running[0] = True
        if soles.size:
            x[0] = -soles.min()
    x[0] += moved
    P[0, 0] += variance_growth
    for foot in range(standing.size):
        if standing[foot] and not was_standing[foot]:
            _add_sole(x, P, 1 + foot, soles[foot], LANDING_STD**2)
        was_standing[foot] = standing[foot]
    for foot in range(standing.size):
        if standing[foot]:
            _correct_with_sole(x, P, 1 + foot, soles[foot], SETTLE_STD, load[foot], distance, _HEIGHT_STD**2, math.inf)


@record
class Places(NamedTuple):
    """Horizontal position of the base: ``p = sum_i share_i (a_i - r_i)`` over the standing soles.

    ``r_i`` is the vector from the base to the sole by the joints, ``a_i`` the place of the sole, fixed when it lands by
    the position of the base that the other standing soles give at that instant. In the air the velocity carries on.
    """

    position: Vector  # (2,) of the base, world axes [m]; zero at the start
    variance: Vector  # (2,) of it, but for errors of the attitude [m^2]
    was_standing: Flags  # (k,) soles that stood at the last sample
    # (k, 2) of the soles [m], [m^2]
    place: Matrix
    place_variance: Matrix


def new_places(feet: int) -> Places:
    """State before the first sample: above the origin of the world, which the soles that stand then define."""
    place, place_variance = np.zeros((2, feet, 2))
    return Places(np.zeros(2), np.zeros(2), np.zeros(feet, dtype=bool), place, place_variance)


@kernel
def step_places(
    places: Places, soles: FloatArray, standing: BoolArray, load: FloatArray, moved: Triple, variance_growth: Triple
) -> None:
    """Advance position and places by one sample, in place.

    Parameters
    ----------
    soles : (k, 3) from the base to the soles, world axes [m]
    standing : (k,) True for feet that stand
    load : (k,) of the soles, as a part of the mean load
    moved, variance_growth : (3,) of the base by its velocity since the last sample, world axes [m], [m^2]
    """
    was_standing = places.was_standing
    held, carried, landed = 0.0, 0.0, False
    for foot in range(standing.size):
        if standing[foot]:
            carried += max(load[foot], 0.0)
            if was_standing[foot]:
                held += max(load[foot], 0.0)
            else:
                landed = True
    if held > 0.0:
        _place_base(places, soles, standing & was_standing, load, held)
    else:
        for axis in range(2):
            places.position[axis] += moved[axis]
            places.variance[axis] += variance_growth[axis]
    for foot in range(standing.size):
        if standing[foot] and not was_standing[foot]:
            for axis in range(2):
                places.place[foot, axis] = places.position[axis] + soles[foot, axis]
                places.place_variance[foot, axis] = places.variance[axis] + LANDING_STD**2
    if landed and carried > 0.0:
        _place_base(places, soles, standing, load, carried)
    for foot in range(standing.size):
        was_standing[foot] = standing[foot]


@kernel
def _place_base(places: Places, soles: FloatArray, carrying: BoolArray, load: FloatArray, total: float) -> None:
    """Write the position of the base by the soles that carry it, weighted by load, and its variance.

    Errors of the places are not averaged out: each sole was placed by the one before.
    """
    position, variance = places.position, places.variance
    for axis in range(2):
        position[axis] = variance[axis] = 0.0
        for foot in range(carrying.size):
            if carrying[foot]:
                share = max(load[foot], 0.0) / total
                position[axis] += share * (places.place[foot, axis] - soles[foot, axis])
                variance[axis] += share * places.place_variance[foot, axis]
