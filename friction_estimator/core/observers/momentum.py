"""Momentum observer in discrete form, driven by the IMU (Lim et al. 2024, section 3.2, eqs. 4-11; Bledt et al. 2018).

Seen from the translating frame in which the IMU is at rest, the joint rows of the momentum balance need neither
attitude nor base velocity:

    p_j = (H v)_j,    dp_j/dt = tau - tau_friction + (C^T v - g)_j + (J^T F)_j

with gravity = minus the measured specific force inside g. The observer gives the friction after a first-order low-pass
of bandwidth K_0 (eq. 11), in stance and in swing.
"""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.core.config import Config, SensorNoise
from friction_estimator.core.observers.noise import SensorVariances, constant_variances, white_variances
from friction_estimator.core.robot_model import RobotModel
from friction_estimator.core.types import (
    Attitude,
    BoolArray,
    ContactPhase,
    Dynamics,
    FloatArray,
    MeasuredFriction,
    SensorFrame,
)


class MomentumObserver:
    """Friction as the low-passed momentum residual.

    Parameters
    ----------
    config : ``momentum`` and ``sensors``
    robot : the model that also made the :class:`Dynamics`
    """

    def __init__(self, config: Config, robot: RobotModel) -> None:
        self._gain = config.momentum.gain
        self._forward = config.momentum.input_hold == "forward"
        self._limb = robot.limb
        self._base_dofs = robot.base_dofs
        self._noise = config.sensors
        self._sigma_period = 1.0 / config.sensors.sigma_rate
        self._joint_count = len(robot.joint_names)
        self.reset()

    def reset(self) -> None:
        """Begin with a zero residual at the next frame; ready again after about four time constants."""
        self._momentum: FloatArray | None = None
        self._residual = np.zeros(self._joint_count)
        self._running_for = np.zeros(self._joint_count)
        self._was_known = np.zeros(self._joint_count, dtype=bool)
        self._filtered: FloatArray | None = None
        self._sigma = self._noise_sigma = np.full(self._joint_count, np.nan)
        self._sigma_age = math.inf

    def step(self, frame: SensorFrame, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics) -> MeasuredFriction:
        """Friction of all joints whose sensors speak."""
        base = self._base_dofs
        momentum = dynamics.mass_matrix[base:] @ dynamics.velocity
        foot_torque = dynamics.foot_jacobian.reshape(-1, dynamics.velocity.size).T @ frame.wrenches.ravel()
        # Split by how the terms live between samples: C^T v is smooth, torque, wrench and specific force are held.
        # The specific force acts through g = -H[:, :3] (-f).
        held = frame.effort + foot_torque[base:]
        smooth = dynamics.momentum_bias[base:]
        if base:
            gravity_torque = dynamics.mass_matrix[base:, :3] @ attitude.specific_force
            held = held - gravity_torque
            smooth = smooth + gravity_torque
        known = self._known_joints(frame)
        if self._momentum is not None and frame.dt > 0.0:
            self._integrate(momentum - self._momentum, held, smooth, frame.dt)
            steady = known & self._was_known  # what was held at the last frame acts on this step
            self._residual = np.where(steady, self._residual, 0.0)
            self._running_for = np.where(steady, self._running_for + frame.dt, 0.0)
        self._was_known = known
        self._momentum, self._held, self._smooth = momentum, held, smooth
        self._refresh_sigma(frame, dynamics)
        available = known & (self._running_for * self._gain > 4.0)
        friction, sigma, noise_sigma = (
            np.where(available, values, np.nan) for values in (self._residual, self._sigma, self._noise_sigma)
        )
        return MeasuredFriction(friction, sigma, noise_sigma, available)

    def filter(self, signal: FloatArray, dt: float) -> FloatArray:
        """The observer's own first-order low-pass (eq. 11), first axis joints."""
        if self._filtered is None:
            self._filtered, self._last_signal = signal.copy(), signal
        elif dt > 0.0:
            decay = math.exp(-self._gain * dt)
            self._filtered = decay * self._filtered + (1.0 - decay) * 0.5 * (signal + self._last_signal)
            self._last_signal = signal
        return self._filtered

    def _integrate(self, momentum_change: FloatArray, held: FloatArray, smooth: FloatArray, dt: float) -> None:
        """One step of eq. 10, exact for inputs that are constant over the step."""
        mean_held = self._held if self._forward else 0.5 * (self._held + held)
        known_force = mean_held + 0.5 * (self._smooth + smooth)
        friction = known_force - momentum_change / dt
        decay = math.exp(-self._gain * dt)
        self._residual = decay * self._residual + (1.0 - decay) * friction

    def _known_joints(self, frame: SensorFrame) -> BoolArray:
        """Joints whose torque balance needs no silent sensor, (n,)."""
        known = np.full(self._joint_count, frame.imu_fresh)
        if not frame.wrench_fresh.all():
            known &= ~self._limb[~frame.wrench_fresh].any(axis=0)
        return known

    def _refresh_sigma(self, frame: SensorFrame, dynamics: Dynamics) -> None:
        self._sigma_age += frame.dt
        if self._sigma_age >= self._sigma_period and frame.dt > 0.0:
            self._sigma_age = 0.0
            white, lasting = self.variances(frame, dynamics)
            self._sigma, self._noise_sigma = np.sqrt(white + lasting), np.sqrt(white)

    def variances(
        self, frame: SensorFrame, dynamics: Dynamics, noise: SensorNoise | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Stationary variances of the residual from white noise, and from biases and gain errors, (n,) [(N m)^2].

        White noise of the momentum passes the filter's high-pass ``(1 - d) / dt * (1 - z^-1) / (1 - d z^-1)``, that of
        all else its low-pass ``(1 - d) / (1 - d z^-1)``, with ``d = exp(-K_0 dt)``. Constant errors of the momentum
        are stopped, those of all else pass. Noise of the joint positions, and of the velocities through C^T v, is
        small beside these and left out.
        """
        dt = frame.dt
        decay = math.exp(-self._gain * dt)
        high_pass = ((1.0 - decay) / dt) ** 2 * 2.0 / (1.0 + decay)
        low_pass = (1.0 - decay) / (1.0 + decay)
        noise = noise or self._noise
        white = white_variances(noise, frame, self._base_dofs)
        constant = constant_variances(noise, frame, self._base_dofs)
        momentum = dynamics.mass_matrix[self._base_dofs :] ** 2 @ white.velocity
        return (
            high_pass * momentum + low_pass * self._force_variance(white, dynamics),
            self._force_variance(constant, dynamics),
        )

    def _force_variance(self, variances: SensorVariances, dynamics: Dynamics) -> FloatArray:
        """Variance of everything but the momentum, (n,)."""
        base = self._base_dofs
        force = variances.effort + np.einsum("kij,ki->j", dynamics.foot_jacobian[:, :, base:] ** 2, variances.wrench)
        if base:
            force += (dynamics.mass_matrix[base:, :3] ** 2).sum(axis=1) * variances.specific_force
        return np.asarray(force)
