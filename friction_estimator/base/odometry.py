"""Base state from standing feet, gyroscope and accelerometer: ``base_state.method: odometry``.

    attitude ─► heading that the soles hold ─► velocity by accelerometer and legs ─► tilt that explains the velocity
                                                                  │                                 │
    soles by the joints, in proportion to their load ─────────────┴─► place on the ground, height ◄─┘

World: the robot starts above its origin, x forward, the lowest sole on z = 0.
"""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.base.soles import (
    HeadingFilter,
    SoleHeights,
    SolePlaces,
    correct_heading,
    step_heading,
    step_heights,
    step_places,
)
from friction_estimator.base.velocity import (
    ACCELERATION_ERROR_TIME,
    VARIANCE,
    VELOCITY,
    InertialVelocity,
    level_attitude,
    step_velocity,
)
from friction_estimator.compiled import kernel
from friction_estimator.config import Config
from friction_estimator.linear_algebra import bounded, cross, is_covariance, product, turned
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import Attitude, BaseState, BoolArray, ContactPhase, Dynamics, FloatArray, SensorFrame

REST_SPEED = 0.001
"""Soles of a robot at rest twist and settle as if it moved this fast [m/s]: joints at rest still give a little."""


@kernel
def write_covariances(
    soles: FloatArray,
    rotation: FloatArray,
    covariance: FloatArray,
    rate_covariance: FloatArray,
    imu_lever: FloatArray,
    velocity_state: FloatArray,
    sole_speed_variance: float,
    standing: BoolArray,
    pose: FloatArray,
    twist: FloatArray,
) -> None:
    """Write the covariances (6, 6) of pose and twist, as far as attitude and velocity make them.

    ``R_true = exp(e) R``: the base leans about its standing soles, ``p_true = p + soles x e``.

    Parameters
    ----------
    soles : (k, 3) from the base origin to the soles, world axes [m]
    rotation, covariance, rate_covariance : (3, 3) of the attitude
    imu_lever : (3, 3) of the cross product with the IMU's position in the base [m]
    velocity_state : of :class:`InertialVelocity`
    sole_speed_variance : how fast standing soles creep [m^2/s^2]
    """
    count, x, y, z = 0, 0.0, 0.0, 0.0
    for foot in range(standing.size):
        if standing[foot]:
            count += 1
            x, y, z = x + soles[foot, 0], y + soles[foot, 1], z + soles[foot, 2]
    part = 1.0 / max(count, 1)
    middle = part * x, part * y, part * z
    turn = product(rotation, imu_lever)
    rates = product(turn, rate_covariance)
    for j in range(3):
        column = cross(middle, (covariance[0, j], covariance[1, j], covariance[2, j]))
        for i in range(3):
            pose[3 + i, 3 + j], twist[3 + i, 3 + j] = covariance[i, j], rate_covariance[i, j]
            pose[i, 3 + j] = pose[3 + j, i] = column[i]
            twist[i, 3 + j] = twist[3 + i, j] = 0.0
    for i in range(3):
        lean = cross(middle, (pose[i, 3], pose[i, 4], pose[i, 5]))
        for j in range(3):
            pose[i, j] = lean[j]
            twist[i, j] = rates[i, 0] * turn[j, 0] + rates[i, 1] * turn[j, 1] + rates[i, 2] * turn[j, 2]
        twist[i, i] += velocity_state[VARIANCE, i] + sole_speed_variance


@kernel("V M B T B V f8 M B V V V B M M f8 V M B B V V V M V V M M B B M V T M T V M f8 b1 M M", unchecked=True)
def step_odometry(
    heading: FloatArray,
    heading_covariance: FloatArray,
    heading_stood: BoolArray,
    landed_as: FloatArray,
    holds: BoolArray,
    heading_tuning: FloatArray,
    bias_prior: float,
    velocity_state: FloatArray,
    accelerated: BoolArray,
    velocity_tuning: FloatArray,
    place: FloatArray,
    place_variance: FloatArray,
    place_stood: BoolArray,
    sole_place: FloatArray,
    sole_place_variance: FloatArray,
    landing_variance: float,
    height: FloatArray,
    height_covariance: FloatArray,
    height_stood: BoolArray,
    height_running: BoolArray,
    height_tuning: FloatArray,
    settings: FloatArray,
    speed: FloatArray,
    rotation: FloatArray,
    rate: FloatArray,
    specific_force: FloatArray,
    covariance: FloatArray,
    rate_covariance: FloatArray,
    contact: BoolArray,
    wrench_fresh: BoolArray,
    wrenches: FloatArray,
    generalised_velocity: FloatArray,
    foot_jacobian: FloatArray,
    foot_position: FloatArray,
    foot_rotation: FloatArray,
    imu: FloatArray,
    imu_lever: FloatArray,
    dt: float,
    imu_fresh: bool,
    state: FloatArray,
    covariances: FloatArray,
) -> bool:
    """Advance all filters by one sample, in place, and write the fields of :class:`BaseState`.

    Parameters
    ----------
    state : (6, 3) rotation, position, velocity, angular velocity
    covariances : (12, 6) of the pose, of the twist

    Returns
    -------
    False where a state has become useless: not finite, or no covariance
    """
    rest_speed, error_time, sole_speed_variance = settings[0], settings[1], settings[2]
    k = contact.size
    standing, holding = np.empty(k, dtype=np.bool_), np.empty(k, dtype=np.bool_)
    count, total = 0, 0.0
    normal_force, load, heights = np.empty(k), np.empty(k), np.empty(k)
    soles, foot_to_world = np.empty((k, 3)), np.empty((k, 3, 3))
    for foot in range(k):
        standing[foot] = contact[foot] and wrench_fresh[foot]
        holding[foot] = standing[foot] and holds[foot]
        normal_force[foot] = wrenches[foot, 2]
        foot_to_world[foot] = product(rotation, foot_rotation[foot])
        if standing[foot]:
            count += 1
            total += normal_force[foot]
    for foot in range(k):
        load[foot] = normal_force[foot] * (count / total) if total > 0.0 else 0.0
    distance = max(speed[0], rest_speed) * dt
    step_heading(
        heading, heading_covariance, heading_stood, landed_as, heading_tuning,
        foot_to_world, holding, load, distance, dt, imu_fresh,
    )  # fmt: skip
    R, omega, tilt_covariance, omega_covariance = correct_heading(
        heading, heading_covariance, rotation, rate, covariance, rate_covariance, bias_prior
    )
    step_velocity(
        velocity_state, accelerated, velocity_tuning, R, specific_force, tilt_covariance, standing, normal_force,
        foot_jacobian, foot_rotation, foot_position, generalised_velocity, dt, imu_fresh, imu,
    )  # fmt: skip
    R, tilt_covariance = level_attitude(velocity_state, R, tilt_covariance, velocity_tuning)
    lever = turned(R, cross(omega, imu))
    velocity = (
        velocity_state[VELOCITY, 0] - lever[0],
        velocity_state[VELOCITY, 1] - lever[1],
        velocity_state[VELOCITY, 2] - lever[2],
    )
    speed[0] = math.hypot(velocity[0], velocity[1])
    for foot in range(k):
        soles[foot, 0], soles[foot, 1], soles[foot, 2] = turned(R, foot_position[foot])
        heights[foot] = soles[foot, 2]
    pose, twist = covariances[:6], covariances[6:]
    write_covariances(
        soles, R, tilt_covariance, omega_covariance, imu_lever, velocity_state, sole_speed_variance, standing, pose,
        twist,
    )  # fmt: skip
    grown = 2.0 * error_time * dt
    moved = dt * velocity[0], dt * velocity[1], dt * velocity[2]
    spread = grown * twist[0, 0], grown * twist[1, 1], grown * twist[2, 2]
    step_places(
        place, place_variance, place_stood, sole_place, sole_place_variance, landing_variance,
        soles, standing, load, moved, spread,
    )  # fmt: skip
    step_heights(
        height, height_covariance, height_stood, height_running, height_tuning,
        heights, standing, load, distance, moved[2], spread[2],
    )  # fmt: skip
    pose[0, 0] += place_variance[0]
    pose[1, 1] += place_variance[1]
    pose[2, 2] += height_covariance[0, 0]
    for i in range(3):
        for j in range(3):
            state[i, j] = R[i, j]
        state[3, i] = height[0] if i == 2 else place[i]
        state[4, i], state[5, i] = velocity[i], omega[i]
    return (
        is_covariance(heading_covariance) and is_covariance(height_covariance) and bounded(velocity_state)
        and bounded(heading) and bounded(height) and bounded(landed_as) and bounded(sole_place)
        and bounded(sole_place_variance) and bounded(speed) and bounded(state) and bounded(covariances)
    )  # fmt: skip


class Odometry:
    """The base-state stage in which standing feet measure position and velocity, and hold heading and tilt.

    Parameters
    ----------
    config : ``base_state``, ``attitude``, ``sensors`` and the feet
    robot : whose IMU is where
    """

    def __init__(self, config: Config, robot: RobotModel) -> None:
        base, feet = config.base_state, len(config.feet)
        self._imu = robot.imu_position_in_base
        self._imu_lever = robot.imu_lever
        self._heading = HeadingFilter(config)
        self._velocity = InertialVelocity(config)
        self._places = SolePlaces(feet, base.landing_std)
        self._heights = SoleHeights(base, feet)
        sole_speed_variance = self._velocity.sole_speed_variance
        self._settings = np.array([REST_SPEED, ACCELERATION_ERROR_TIME, sole_speed_variance])
        self.reset()

    def reset(self) -> None:
        """Begin anew, above the origin of the world, at the next sample."""
        heading, velocity, places, heights = self._heading, self._velocity, self._places, self._heights
        for part in (heading, velocity, places, heights):
            part.reset()
        self._state = (
            *(heading.state, heading.covariance, heading.stood, heading.landed_as, heading.holds, heading.tuning),
            heading.bias_prior,
            *(velocity.state, velocity.accelerated, velocity.tuning),
            *(places.position, places.variance, places.stood, places.place, places.place_variance),
            places.landing_variance,
            *(heights.state, heights.covariance, heights.stood, heights.running, heights.tuning),
            self._settings,
            np.zeros(1),
        )

    def step(self, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics, frame: SensorFrame) -> BaseState:
        """Advance by one sample; wrenches are used where ``frame.wrench_fresh``.

        Raises
        ------
        FloatingPointError
            When a state is no longer finite; :meth:`reset` mends it.
        """
        state, covariances = np.empty((6, 3)), np.empty((12, 6))
        sound = step_odometry(
            *self._state,
            attitude.rotation_base_to_world,
            attitude.angular_velocity,
            attitude.specific_force,
            attitude.covariance,
            attitude.rate_covariance,
            phase.contact,
            frame.wrench_fresh,
            frame.wrenches,
            dynamics.velocity,
            dynamics.foot_jacobian,
            dynamics.foot_position_in_base,
            dynamics.foot_rotation_to_base,
            self._imu,
            self._imu_lever,
            frame.dt,
            frame.imu_fresh,
            state,
            covariances,
        )
        if not sound:
            raise FloatingPointError("the state of its filters was not finite")
        return BaseState(state[3], state[:3], state[4], state[5], covariances[:6], covariances[6:])
