"""Base state from standing feet, gyroscope and accelerometer: ``base_state.method: odometry``.

    attitude ─► heading that the soles hold ─► velocity by accelerometer and legs ─► tilt that explains the velocity
                                                                  │                                 │
    soles by the joints, in proportion to their load ─────────────┴─► place on the ground, height ◄─┘

World: the robot starts above its origin, x forward, the lowest sole on z = 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from friction_estimator.base.soles import (
    CorrectedAttitude,
    Heading,
    Heights,
    Places,
    Support,
    correct_heading,
    new_heading,
    new_heights,
    new_places,
    step_heading,
    step_heights,
    step_places,
    support_of,
)
from friction_estimator.base.velocity import (
    ACCELERATION_ERROR_TIME,
    SOLE_SPEED_STD,
    InertialVelocity,
    level_attitude,
    new_velocity,
    step_velocity,
    velocity_is_bounded,
)
from friction_estimator.config import Config
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.kernels.records import record, to_buffer
from friction_estimator.linear_algebra import Triple, cross, is_bounded, is_covariance, matmul_3x3, matvec_3x3
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import (
    Attitude,
    BaseState,
    BoolArray,
    ContactPhase,
    Dynamics,
    Flags,
    FloatArray,
    Matrix,
    SensorFrame,
    Vector,
)

REST_SPEED = 0.001
"""Soles of a robot at rest twist and settle as if it moved this fast [m/s]: joints at rest still give a little."""


@kernel
def _write_covariances(
    soles: FloatArray,
    attitude: CorrectedAttitude,
    imu_lever: FloatArray,
    velocity: InertialVelocity,
    standing: BoolArray,
    pose: FloatArray,
    twist: FloatArray,
) -> None:
    """Write the covariances (6, 6) of pose and twist, as far as attitude and velocity make them.

    ``R_true = exp(e) R``: the base leans about its standing soles, ``p_true = p + soles x e``.

    Parameters
    ----------
    soles : (k, 3) from the base origin to the soles, world axes [m]
    imu_lever : (3, 3) of the cross product with the IMU's position in the base [m]
    """
    covariance, rate_covariance = attitude.covariance, attitude.rate_covariance
    count, x, y, z = 0, 0.0, 0.0, 0.0
    for foot in range(standing.size):
        if standing[foot]:
            count += 1
            x, y, z = x + soles[foot, 0], y + soles[foot, 1], z + soles[foot, 2]
    part = 1.0 / max(count, 1)
    middle = part * x, part * y, part * z
    turn = matmul_3x3(attitude.rotation_base_to_world, imu_lever)
    rates = matmul_3x3(turn, rate_covariance)
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
        twist[i, i] += velocity.variance[i] + SOLE_SPEED_STD**2


@record
class OdometryState(NamedTuple):
    """The filters, ``speed`` (1,) over the ground [m/s], and position (3,) and lever (3, 3) of the IMU in the base."""

    heading: Heading
    velocity: InertialVelocity
    places: Places
    heights: Heights
    speed: Vector
    imu: Vector
    imu_lever: Matrix


@kernel
def _filters_are_valid(filters: OdometryState) -> bool:
    """Whether all states are finite, and covariances are."""
    heading, velocity, places, heights = filters.heading, filters.velocity, filters.places, filters.heights
    covariances = is_covariance(heading.covariance) and is_covariance(heights.covariance)
    base = (
        velocity_is_bounded(velocity)
        and is_bounded(heading.mean)
        and is_bounded(heights.mean)
        and is_bounded(filters.speed)
    )
    soles = is_bounded(heading.landing_attitude) and is_bounded(places.place) and is_bounded(places.place_variance)
    return covariances and base and soles


@kernel
def _hold_heading(
    heading: Heading,
    attitude: Attitude,
    support: Support,
    dynamics: Dynamics,
    distance: float,
    dt: float,
    imu_fresh: bool,
) -> None:
    """Correct the heading by the soles that stand and resist a twist, after travelling a distance [m]."""
    k = support.standing.size
    foot_to_world, holding = np.empty((k, 3, 3)), np.empty(k, dtype=np.bool_)
    for foot in range(k):
        foot_to_world[foot] = matmul_3x3(attitude.rotation_base_to_world, dynamics.foot_rotation_to_base[foot])
        holding[foot] = support.standing[foot] and heading.resists_twist[foot]
    step_heading(heading, foot_to_world, holding, support.load, distance, dt, imu_fresh)


@kernel
def _velocity_of_base(of_imu: FloatArray, R: FloatArray, omega: FloatArray, imu: FloatArray) -> Triple:
    """Velocity of the base origin from that of the IMU (3,), world axes, which is at ``imu`` (3,) in the base."""
    lever = matvec_3x3(R, cross(omega, imu))
    return of_imu[0] - lever[0], of_imu[1] - lever[1], of_imu[2] - lever[2]


@entry_point
def _step_odometry(
    filters: OdometryState,
    attitude: Attitude,
    contact: Flags,
    wrench_fresh: Flags,
    wrenches: Matrix,
    dynamics: Dynamics,
    dt: float,
    imu_fresh: bool,
    state: Matrix,
    covariances: Matrix,
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
    places, heights = filters.places, filters.heights
    support = support_of(contact, wrench_fresh, wrenches)
    distance = max(filters.speed[0], REST_SPEED) * dt
    _hold_heading(filters.heading, attitude, support, dynamics, distance, dt, imu_fresh)
    headed = correct_heading(filters.heading, attitude)
    step_velocity(
        filters.velocity, headed, attitude.specific_force, support, dynamics, filters.imu, dt, imu_fresh
    )  # fmt: skip
    base = level_attitude(filters.velocity, headed)
    R, omega = base.rotation_base_to_world, base.angular_velocity
    velocity = _velocity_of_base(filters.velocity.velocity, R, omega, filters.imu)
    filters.speed[0] = math.hypot(velocity[0], velocity[1])
    soles, pose, twist = np.empty((contact.size, 3)), covariances[:6], covariances[6:]
    for foot in range(contact.size):
        soles[foot, 0], soles[foot, 1], soles[foot, 2] = matvec_3x3(R, dynamics.foot_position_in_base[foot])
    _write_covariances(soles, base, filters.imu_lever, filters.velocity, support.standing, pose, twist)
    grown = 2.0 * ACCELERATION_ERROR_TIME * dt
    moved = dt * velocity[0], dt * velocity[1], dt * velocity[2]
    spread = grown * twist[0, 0], grown * twist[1, 1], grown * twist[2, 2]
    step_places(places, soles, support.standing, support.load, moved, spread)
    below = soles[:, 2].copy()
    step_heights(heights, below, support.standing, support.load, distance, moved[2], spread[2])
    pose[0, 0] += places.variance[0]
    pose[1, 1] += places.variance[1]
    pose[2, 2] += heights.covariance[0, 0]
    for i in range(3):
        for j in range(3):
            state[i, j] = R[i, j]
        state[3, i] = heights.mean[0] if i == 2 else places.position[i]
        state[4, i], state[5, i] = velocity[i], omega[i]
    return _filters_are_valid(filters) and is_bounded(state) and is_bounded(covariances)


class Odometry:
    """The base-state stage in which standing feet measure position and velocity, and hold heading and tilt.

    Parameters
    ----------
    config : ``base_state``, ``attitude``, ``sensors`` and the feet
    robot : whose IMU is where
    """

    def __init__(self, config: Config, robot: RobotModel) -> None:
        self._config = config
        self._imu, self._imu_lever = robot.imu_position_in_base, robot.imu_lever
        self.reset()

    def reset(self) -> None:
        """Begin anew, above the origin of the world, at the next sample."""
        config, feet = self._config, len(self._config.feet)
        heading, velocity = new_heading(config), new_velocity(config)
        places, heights, speed = new_places(feet), new_heights(feet), np.zeros(1)
        state = OdometryState(heading, velocity, places, heights, speed, self._imu, self._imu_lever)
        self._filters = to_buffer(state)

    def step(self, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics, frame: SensorFrame) -> BaseState:
        """Base state after one more sample; wrenches are used where ``frame.wrench_fresh``.

        Raises
        ------
        FloatingPointError
            When a state is no longer finite; call :meth:`reset` then.
        """
        state, covariances = np.empty((6, 3)), np.empty((12, 6))
        is_valid = _step_odometry(
            self._filters, attitude.buffer, phase.contact, frame.wrench_fresh, frame.wrenches, dynamics.buffer,
            frame.dt, frame.imu_fresh, state, covariances,
        )  # fmt: skip
        if not is_valid:
            raise FloatingPointError("the state of its filters was not finite")
        return BaseState(state[3], state[:3], state[4], state[5], covariances[:6], covariances[6:])
