"""Base position and velocity from the linear inverted pendulum (Hashlamon & Erbatur 2014, section 4, eqs. 7-33).

    foot wrenches ─► ZMP (8) ──────────────────────────────┐
    IMU ─► CoM acceleration (16) ─► jerk (14) ─► predict ─► correct ─► CoM ─► base position, velocity (32, 33)

This is ``base_state.method: lipm``, as published; ``odometry`` is in ``base/odometry.py``.

World: the robot starts above its origin, x forward, feet on z = 0. A standing foot does not slip, so its place in the
world, fixed when it lands, is the p_m of eq. 9; were it taken from the present base position, the position would
cancel out of eq. 19.
"""

from __future__ import annotations

import numpy as np

from friction_estimator.base.soles import LANDING_STD
from friction_estimator.config import Config
from friction_estimator.linear_algebra import DIVERGENCE_LIMIT, kalman_gain
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import (
    GRAVITY,
    Attitude,
    BaseState,
    BoolArray,
    ContactPhase,
    Dynamics,
    FloatArray,
    SensorFrame,
)

PROCESS_NOISE, MEASUREMENT_NOISE, INITIAL_COVARIANCE = 1.0, 1e-4, 10.0
"""Q_0, R_0 and P_0 of Table II, each times the identity."""
MEASUREMENT_WINDOW, PROCESS_WINDOW = 1000.0, 5000.0
"""N_R of eqs. 20-23 and N_Q of eqs. 27-31, Table II [samples]."""


class AdaptiveKalmanFilter:
    """Kalman filter of ``x_k = A x_{k-1} + B u_k + w``, ``z_k = C x_k + v`` with Q and R adapted in every correction.

    Parameters
    ----------
    state : (s,) x_0
    covariance : (s, s) P_0
    process_noise : (s,) diagonal of Q_0
    measurement_noise : (m,) diagonal of R_0
    process_window : N_Q [samples]
    measurement_window : N_R [samples]
    """

    def __init__(
        self,
        state: FloatArray,
        covariance: FloatArray,
        process_noise: FloatArray,
        measurement_noise: FloatArray,
        process_window: float,
        measurement_window: float,
    ) -> None:
        self.state = state
        self.covariance = covariance
        self.process_noise = process_noise
        self.measurement_noise = measurement_noise
        self._process_window = process_window
        self._measurement_window = measurement_window
        self._mean_residual = np.zeros_like(measurement_noise)
        self._mean_state_error = np.zeros_like(state)

    def predict(self, A: FloatArray, B_u: FloatArray) -> None:
        """A-priori state and covariance (eqs. 17, 18); ``B_u`` is ``B @ u``, (s,)."""
        self.state = A @ self.state + B_u
        self._propagated = A @ self.covariance @ A.T
        self.covariance = self._propagated.copy()
        self.covariance.ravel()[:: self.state.size + 1] += self.process_noise

    def correct(self, C: FloatArray, measurement: FloatArray) -> None:
        """Adapt R, update state and covariance by a measurement (m,) with C (m, s), adapt Q (eqs. 19-31).

        ``|diag(.)|`` of eqs. 22 and 27 is read as the absolute value of each diagonal element.
        """
        N_R, N_Q = self._measurement_window, self._process_window
        prior_state, P = self.state, self.covariance
        CP = C @ P
        CPC = CP @ C.T
        residual = measurement - C @ prior_state  # eq. 19
        alpha = (N_R - 1.0) / N_R
        self._mean_residual = alpha * self._mean_residual + residual / N_R  # eq. 20
        spread = (residual - self._mean_residual) ** 2 / (N_R - 1.0) - CPC.diagonal() / N_R  # eq. 23
        self.measurement_noise = np.abs(alpha * self.measurement_noise + spread)  # eq. 22
        CPC.ravel()[:: measurement.size + 1] += self.measurement_noise
        K = kalman_gain(CPC, CP)  # eq. 25
        correction = K @ residual
        self.state = prior_state + correction  # eq. 24
        self.covariance = P - K @ CP  # eq. 26
        self._adapt_process_noise(correction, N_Q)

    def _adapt_process_noise(self, state_error: FloatArray, N_Q: float) -> None:
        alpha = (N_Q - 1.0) / N_Q
        self._mean_state_error = alpha * self._mean_state_error + state_error / N_Q  # eq. 31
        spread = (self.covariance.diagonal() - self._propagated.diagonal()) / N_Q
        spread = spread + (state_error - self._mean_state_error) ** 2 / (N_Q - 1.0)  # eq. 28
        self.process_noise = np.abs(alpha * self.process_noise + spread)  # eq. 27


_I3, _I9 = np.eye(3), np.eye(9)
_UP_GRAVITY = np.array([0.0, 0.0, GRAVITY])
"""Specific force of a body at rest, world axes [m/s^2]."""


def zero_moment_point(foot_positions: FloatArray, wrenches_world: FloatArray) -> FloatArray:
    """Zero moment point from foot positions and wrenches (eqs. 8, 9), (3,) [m].

    Parameters
    ----------
    foot_positions : (k, 3) sole origins, world
    wrenches_world : (k, 6) ground on foot about the sole origins, world axes; only feet with a vertical force count
    """
    force, moment = wrenches_world[:, :3], wrenches_world[:, 3:]
    normal = force[:, 2]
    # centre of pressure on the horizontal plane through the sole origin: moment about it is vertical
    center = np.zeros_like(foot_positions)
    center[:, 0] = -moment[:, 1] / normal
    center[:, 1] = moment[:, 0] / normal
    return (normal @ (foot_positions + center)) / normal.sum()


def com_acceleration(attitude: Attitude, imu_to_com: FloatArray) -> FloatArray:
    """Acceleration of the centre of mass from the IMU (eq. 16), world axes, (3,) [m/s^2].

    The lever arm runs from the IMU to the centre of mass, which is minus the published ``A_b r_I + c_offset`` when
    ``c_offset = p_b - c`` as in eq. 32: the published sign holds for the opposite lever arm.

    Parameters
    ----------
    imu_to_com : (3,) base axes [m]
    """
    omega, alpha = attitude.angular_velocity, attitude.angular_acceleration
    in_base = attitude.specific_force + np.cross(omega, np.cross(omega, imu_to_com)) + np.cross(alpha, imu_to_com)
    return attitude.rotation_base_to_world @ in_base - _UP_GRAVITY


class BaseStateEstimator:
    """The base-state stage, as published.

    Parameters
    ----------
    config : the feet
    robot : whose centre of mass follows the pendulum
    """

    def __init__(self, config: Config, robot: RobotModel) -> None:
        self._landing_variance = LANDING_STD**2
        self._robot = robot
        self._imu = robot.imu_position_in_base
        self._foot_count = len(config.feet)
        self.reset()

    def reset(self) -> None:
        """Begin anew, above the origin of the world, at the next sample."""
        self._running = False
        self._anchor = np.full((self._foot_count, 3), np.nan)
        self._anchored = np.zeros(self._foot_count, dtype=bool)
        self._anchor_variance = np.zeros((self._foot_count, 3))
        self._drift_variance = np.zeros(3)

    def step(self, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics, frame: SensorFrame) -> BaseState:
        """Base state after one more sample; wrenches are used where ``frame.wrench_fresh``.

        Raises
        ------
        FloatingPointError
            When the state is no longer finite; call :meth:`reset` then.
        """
        standing = phase.contact & frame.wrench_fresh
        R = attitude.rotation_base_to_world
        com_in_base, com_velocity_in_base = self._robot.centre_of_mass(dynamics)
        com_from_base = R @ com_in_base
        feet_from_base = dynamics.foot_position_in_base @ R.T
        acceleration = com_acceleration(attitude, com_in_base - self._imu)
        if not self._running:
            self._start(com_from_base, feet_from_base, acceleration)
        elif frame.dt > 0.0:
            self._predict(acceleration, frame.dt)
            self._place_feet(standing, self._kalman.state[:3] - com_from_base + feet_from_base)
            if standing.any():
                self._correct(attitude, standing, dynamics, frame.wrenches, com_from_base, feet_from_base)
        self._last_acceleration = acceleration
        if not max(np.abs(self._kalman.state).max(), np.abs(self._kalman.covariance).max()) <= DIVERGENCE_LIMIT:
            raise FloatingPointError("the state of its filter was not finite")
        com_velocity = np.cross(attitude.angular_velocity, com_in_base) + com_velocity_in_base
        return self._output(attitude, com_from_base, R @ com_velocity)

    def _start(self, com_from_base: FloatArray, feet_from_base: FloatArray, acceleration: FloatArray) -> None:
        """Table II, but from the kinematics instead of zero, so that the world starts under the robot."""
        height = -feet_from_base[:, 2].min() if self._foot_count else 0.0
        base = np.array([0.0, 0.0, height])
        state = np.concatenate((base + com_from_base, np.zeros(3), acceleration))
        self._running = True
        self._kalman = AdaptiveKalmanFilter(
            state,
            INITIAL_COVARIANCE * np.eye(9),
            np.full(9, PROCESS_NOISE),
            np.full(3, MEASUREMENT_NOISE),
            PROCESS_WINDOW,
            MEASUREMENT_WINDOW,
        )

    def _predict(self, acceleration: FloatArray, dt: float) -> None:
        """Eqs. 13, 14 and 17 with B u = T * jerk = the change of the measured acceleration."""
        A = _I9.copy()
        A[:3, 3:6] = A[3:6, 6:] = dt * _I3
        A[:3, 6:] = 0.5 * dt * dt * _I3
        B_u = np.zeros(9)
        B_u[6:] = acceleration - self._last_acceleration
        self._kalman.predict(A, B_u)

    def _place_feet(self, contact: BoolArray, feet_in_world: FloatArray) -> None:
        """Fix the place of feet that land; it is no better known than the base was, which the filter cannot observe."""
        landed = contact & ~self._anchored
        if landed.any():
            first = np.isnan(self._anchor).all()  # these feet define the world
            known = self._kalman.covariance.ravel()[::10][:3] + self._drift_variance + self._landing_variance
            self._anchor[landed] = feet_in_world[landed]
            self._anchor_variance[landed] = 0.0 if first else known
        if contact.any():
            self._drift_variance = self._anchor_variance[contact].mean(axis=0)
        self._anchored = contact

    def _correct(
        self,
        attitude: Attitude,
        contact: BoolArray,
        dynamics: Dynamics,
        wrenches: FloatArray,
        com_from_base: FloatArray,
        feet_from_base: FloatArray,
    ) -> None:
        R = attitude.rotation_base_to_world
        foot_to_world = R @ dynamics.foot_rotation_to_base[contact]
        force = (foot_to_world @ wrenches[contact, :3, None])[..., 0]
        load = force[:, 2]
        if load.min() <= 0.0:
            return
        anchor = self._anchor[contact]
        base = (load / load.sum()) @ (anchor - feet_from_base[contact])
        moment = (foot_to_world @ wrenches[contact, 3:, None])[..., 0]
        self._kalman.correct(*_lipm(base + com_from_base, zero_moment_point(anchor, np.hstack((force, moment)))))

    def _output(self, attitude: Attitude, com_from_base: FloatArray, com_velocity: FloatArray) -> BaseState:
        """Eqs. 32 and 33 with ``c_offset = p_b - c``; the motion of the CoM in the base is measured, not neglected."""
        R = attitude.rotation_base_to_world
        kalman = self._kalman
        pose_covariance, twist_covariance = np.zeros((6, 6)), np.zeros((6, 6))
        pose_covariance[:3, :3] = kalman.covariance[:3, :3] + np.diag(self._drift_variance)
        pose_covariance[3:, 3:] = attitude.covariance
        twist_covariance[:3, :3] = kalman.covariance[3:6, 3:6]
        twist_covariance[3:, 3:] = attitude.rate_covariance
        return BaseState(
            position_base_in_world=kalman.state[:3] - com_from_base,
            rotation_base_to_world=R,
            linear_velocity=kalman.state[3:6] - com_velocity,
            angular_velocity=attitude.angular_velocity,
            pose_covariance=pose_covariance,
            twist_covariance=twist_covariance,
        )


def _lipm(com: FloatArray, zmp: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eq. 12 as a measurement: C (3, 9) and the ZMP (3,), for the present height of the CoM.

    The z row describes motion about the plane z = z_c, so that plane is the ZMP's height plus z_c.
    """
    height = (com - zmp)[2]
    C = np.zeros((3, 9))
    C[:, :3] = _I3
    C[:, 6:] = -height / GRAVITY * _I3
    return C, np.array([zmp[0], zmp[1], zmp[2] + height])
