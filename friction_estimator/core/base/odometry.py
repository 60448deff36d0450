"""Base state from standing feet, gyroscope and accelerometer: ``base_state.method: odometry``.

    attitude ─► heading that the soles hold ─► velocity by accelerometer and legs ─► tilt that explains the velocity
                                                                  │                                 │
    soles by the joints, in proportion to their load ─────────────┴─► place on the ground, height ◄─┘

World: the robot starts above its origin, x forward, the lowest sole on z = 0.
"""

from __future__ import annotations

import numpy as np

from friction_estimator.core.base.heading import HeadingFilter
from friction_estimator.core.base.inertial_velocity import InertialVelocity
from friction_estimator.core.base.rotations import cross, skew
from friction_estimator.core.base.sole_heights import SoleHeights
from friction_estimator.core.base.sole_places import SolePlaces
from friction_estimator.core.config import Config
from friction_estimator.core.types import (
    Attitude,
    BaseState,
    BoolArray,
    ContactPhase,
    Dynamics,
    FloatArray,
    SensorFrame,
)


class Odometry:
    """The base-state stage in which standing feet measure position and velocity, and hold heading and tilt.

    Parameters
    ----------
    config : ``base_state``, ``attitude``, ``sensors`` and the feet
    imu_position_in_base : (3,) r_I
    """

    def __init__(self, config: Config, imu_position_in_base: FloatArray) -> None:
        self._config = config.base_state
        self._imu = imu_position_in_base
        self._heading = HeadingFilter(config)
        self._inertial = InertialVelocity(config, imu_position_in_base)
        self._places = SolePlaces(len(config.feet), config.base_state.landing_std)
        self._heights = SoleHeights(config.base_state, len(config.feet))
        self.reset()

    def reset(self) -> None:
        """Begin anew, above the origin of the world, at the next sample."""
        for part in (self._heading, self._inertial, self._places, self._heights):
            part.reset()
        self._speed = 0.0

    def step(self, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics, frame: SensorFrame) -> BaseState:
        """Advance by one sample; wrenches are used where ``frame.wrench_fresh``."""
        standing = phase.contact & frame.wrench_fresh
        load = _relative_load(frame.wrenches[:, 2], standing)
        way = max(self._speed, self._config.rest_speed) * frame.dt
        foot_to_world = attitude.rotation_base_to_world @ dynamics.foot_rotation_to_base
        self._heading.step(foot_to_world, standing, load, way, frame.dt, frame.imu_fresh)
        attitude = self._heading.corrected(attitude)
        self._inertial.step(attitude, standing, dynamics, frame)
        attitude = self._inertial.levelled(attitude)
        R = attitude.rotation_base_to_world
        velocity = self._inertial.velocity - R @ cross(attitude.angular_velocity, self._imu)
        self._speed = float(np.hypot(velocity[0], velocity[1]))
        velocity_covariance = self._velocity_covariance(attitude)
        soles = dynamics.foot_position_in_base @ R.T
        spread = 2.0 * self._config.acceleration_error_time * frame.dt * velocity_covariance.diagonal()
        moved = frame.dt * velocity
        self._places.step(soles[:, :2], standing, load, moved[:2], spread[:2])
        self._heights.step(soles[:, 2], standing, load, way, float(moved[2]), float(spread[2]))
        return self._output(attitude, velocity, velocity_covariance, soles, standing)

    def _velocity_covariance(self, attitude: Attitude) -> FloatArray:
        lever = attitude.rotation_base_to_world @ skew(self._imu)
        return np.asarray(np.diag(self._inertial.published_variance) + lever @ attitude.rate_covariance @ lever.T)

    def _output(
        self,
        attitude: Attitude,
        velocity: FloatArray,
        velocity_covariance: FloatArray,
        soles: FloatArray,
        standing: BoolArray,
    ) -> BaseState:
        pose_covariance, twist_covariance = np.zeros((6, 6)), np.zeros((6, 6))
        # R_true = exp(e) R: the base leans about its soles, p_true = p + soles x e
        lever = skew(soles[standing].mean(axis=0)) if standing.any() else np.zeros((3, 3))
        pose_covariance[3:, 3:] = attitude.covariance
        pose_covariance[:3, 3:] = lever @ attitude.covariance
        pose_covariance[3:, :3] = pose_covariance[:3, 3:].T
        pose_covariance[:3, :3] = lever @ pose_covariance[3:, :3]
        pose_covariance.ravel()[:21:7] += [*self._places.variance, self._heights.covariance[0, 0]]
        twist_covariance[:3, :3] = velocity_covariance
        twist_covariance[3:, 3:] = attitude.rate_covariance
        return BaseState(
            position_base_in_world=np.array([*self._places.position, self._heights.state[0]]),
            rotation_base_to_world=attitude.rotation_base_to_world,
            linear_velocity=velocity,
            angular_velocity=attitude.angular_velocity,
            pose_covariance=pose_covariance,
            twist_covariance=twist_covariance,
        )


def _relative_load(load: FloatArray, standing: BoolArray) -> FloatArray:
    """Normal forces relative to their mean over the standing feet, (k,)."""
    mean = load[standing].mean() if standing.any() else 1.0
    return np.asarray(load / mean) if mean > 0.0 else np.zeros_like(load)
