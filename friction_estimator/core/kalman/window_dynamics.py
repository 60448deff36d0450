"""From a window of readings to what each limb's filter takes: momentum, forces, and columns of all that is unknown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.core.base.rotations import skew
from friction_estimator.core.config import Config, SensorNoise
from friction_estimator.core.kalman.limb_filter import LimbWindow
from friction_estimator.core.kalman.limb_state import LimbState
from friction_estimator.core.kalman.limbs import Limb
from friction_estimator.core.kalman.link_columns import LinkColumns
from friction_estimator.core.kalman.local_motion import CLEARLY
from friction_estimator.core.kalman.windows import Window
from friction_estimator.core.motor_side import MotorSide
from friction_estimator.core.robot_model import RobotModel
from friction_estimator.core.types import FloatArray

_FINEST_MOMENTUM = 1e-5
_CORRELATION_TIME = 0.1
"""Of errors that no mean over a window takes away: of the velocities, and of readings in phase with a chattering joint.

Their variance is multiplied by this time over the length of a window: as white noise from window to window they then
leave as much uncertainty over many windows as they do [s].
"""


@dataclass(frozen=True, slots=True)
class EndDynamics:
    """Dynamics at the end of a window; rows of the joints.

    Attributes
    ----------
    momentum : (n,) [kg m^2/s]
    joint_inertia : (n, n)
    gyro_lever : (n, 3) momentum per angular velocity of the base, lever arm of the IMU included
    accelerometer_lever : (n, 3) torque per specific force, zero columns for a fixed base
    bias : (n,) ``C^T v - g`` less what the specific force does [N m]
    foot_jacobian : (k, 6, n)
    """

    momentum: FloatArray
    joint_inertia: FloatArray
    gyro_lever: FloatArray
    accelerometer_lever: FloatArray
    bias: FloatArray
    foot_jacobian: FloatArray


class WindowDynamics:
    """Evaluates the robot model at the ends of windows, once for all limbs.

    Parameters
    ----------
    config : ``sensors``, ``kalman``
    robot : whose model is used; its last update is overwritten
    """

    def __init__(self, config: Config, robot: RobotModel) -> None:
        self._robot = robot
        self._links = LinkColumns(robot)
        self.retune(config.sensors)
        self._lever = skew(robot.imu_position_in_base)
        self.reset()

    def retune(self, noise: SensorNoise) -> None:
        """Other variances from now on, for this noise."""
        self._noise = noise
        self.wrench_variance: FloatArray = np.array([noise.force_std**2] * 3 + [noise.moment_std**2] * 3)

    def reset(self) -> None:
        """Forget the window before."""
        self._before: EndDynamics | None = None
        self._links.reset()
        self._effort = np.zeros(len(self._robot.joint_names))
        self._wrenches = np.zeros((len(self._robot.foot_names), 6))

    def advance(self, window: Window) -> EndDynamics:
        """Evaluate the end of a window; afterwards :meth:`of_limb` gives what it says of a limb."""
        robot, base = self._robot, self._robot.base_dofs
        end = window.end
        dynamics = robot.update(end.position, end.velocity, end.angular_velocity, window.specific_force)
        self._link_columns = self._links.over(window, dynamics)
        rows = dynamics.mass_matrix[base:]
        accelerometer = rows[:, :3] if base else np.zeros((rows.shape[0], 3))
        gyro = rows[:, 3:6] + rows[:, :3] @ self._lever if base else np.zeros((rows.shape[0], 3))
        now = EndDynamics(
            momentum=rows @ dynamics.velocity,
            joint_inertia=rows[:, base:],
            gyro_lever=gyro,
            accelerometer_lever=accelerometer,
            bias=dynamics.momentum_bias[base:] + accelerometer @ window.specific_force,
            foot_jacobian=dynamics.foot_jacobian[:, :, base:],
        )
        self._effort_before, self._wrenches_before = self._effort, self._wrenches
        self._effort, self._wrenches = window.effort, window.wrenches
        self._mean = now if self._before is None else _mean(self._before, now)
        self._before = self._now = now
        return now

    def momentum(self, limb: Limb, window: Window) -> tuple[FloatArray, FloatArray]:
        """Momentum of a limb at the end of the window (m,), and the covariance of its noise (m, m)."""
        rows, now = limb.joints, self._now
        inertia = now.joint_inertia[np.ix_(rows, rows)]
        gyro = now.gyro_lever[rows]
        covariance = (inertia * window.end.velocity_std[rows] ** 2) @ inertia.T
        covariance += (gyro * window.end.angular_velocity_std**2) @ gyro.T
        covariance.ravel()[:: rows.size + 1] += _FINEST_MOMENTUM**2
        return now.momentum[rows], covariance

    def of_limb(
        self, limb: Limb, motors: MotorSide, layout: LimbState, window: Window, state: FloatArray
    ) -> LimbWindow:
        """All that the window says of a limb with these motors whose filter has this state (size,)."""
        rows, mean = limb.joints, self._mean
        m = rows.size
        columns = np.zeros((m, layout.size))
        columns[:, layout.mismatch] = motors.to_joints
        columns[:, layout.law] = _law_columns(window.regressor[rows], motors)
        columns[:, layout.links] = self._link_columns[np.ix_(rows, rows)].reshape(m, -1)
        # Gains multiply the readings of the window before: their noise must not meet itself in this window's force.
        columns[:, layout.effort_gain] = np.diag(self._effort_before[rows])
        columns[:, layout.accelerometer_bias] = -mean.accelerometer_lever[rows]
        force = window.effort[rows] + mean.bias[rows] - mean.accelerometer_lever[rows] @ window.specific_force
        variance = np.diag(np.full(m, self._noise.effort_std**2 / window.samples))
        if mean.accelerometer_lever.any():
            lever = mean.accelerometer_lever[rows]
            uncertain = _variance_of_mean(self._noise.specific_force_std**2, window.specific_force_roughness, window)
            variance += (lever * uncertain) @ lever.T
        for index, foot in enumerate(limb.feet):
            torque_per_wrench = mean.foot_jacobian[foot][:, rows].T
            bias = layout.foot(layout.foot_bias, index)
            force = force + torque_per_wrench @ window.wrenches[foot]
            columns[:, bias] = torque_per_wrench
            columns[:, layout.foot(layout.foot_gain, index)] = torque_per_wrench * (
                self._wrenches_before[foot] - state[bias]
            )
            uncertain = _variance_of_mean(self.wrench_variance, window.wrench_roughness[foot], window)
            variance += (torque_per_wrench * uncertain) @ torque_per_wrench.T
        momentum, covariance = self.momentum(limb, window)
        of_law = window.regressor_variance[rows] * (_CORRELATION_TIME / window.duration)
        if motors.couples:
            variance += (motors.to_joints * of_law) @ motors.to_joints.T
        else:
            variance.ravel()[:: m + 1] += of_law
        return LimbWindow(window.duration, force, columns, variance, momentum, covariance)


def _law_columns(regressor: FloatArray, motors: MotorSide) -> FloatArray:
    """Torque of the joints per parameter of the motors' laws, (m, m p)."""
    m, p = regressor.shape
    blocks = np.zeros((m, m, p))
    if motors.couples:
        blocks = motors.to_joints[:, :, None] * regressor
    else:
        blocks[np.arange(m), np.arange(m)] = regressor
    return blocks.reshape(m, -1)


def _variance_of_mean(noise: FloatArray | float, roughness: FloatArray, window: Window) -> FloatArray:
    """Variance of a window's mean, of readings with this noise, or of what shakes, where that is clearly more."""
    return np.where(
        roughness > CLEARLY * noise, roughness * (_CORRELATION_TIME / window.duration), noise / window.samples
    )


def _mean(before: EndDynamics, now: EndDynamics) -> EndDynamics:
    """Halfway between two ends; the momentum is that of the end."""
    return EndDynamics(
        now.momentum,
        now.joint_inertia,
        now.gyro_lever,
        *(
            0.5 * (getattr(before, name) + getattr(now, name))
            for name in ("accelerometer_lever", "bias", "foot_jacobian")
        ),
    )
