"""Momentum observer in discrete form, driven by the IMU (Lim et al. 2024, section 3.2, eqs. 4-11; Bledt et al. 2018).

Seen from the translating frame in which the IMU is at rest, the joint rows of the momentum balance need neither
attitude nor base velocity:

    p_j = (H v)_j,    dp_j/dt = tau - tau_friction + (C^T v - g)_j + (J^T F)_j

with gravity = minus the measured specific force inside g. The observer gives the friction after a first-order low-pass
of bandwidth K_0 (eq. 11), in stance and in swing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from friction_estimator.config import Config, SensorNoise
from friction_estimator.config.robot import SIGMA_RATE, SensorVariances, sensor_variances
from friction_estimator.kernels.compiler import entry_point
from friction_estimator.kernels.records import buffered, record, unbuffered_record
from friction_estimator.linear_algebra import DIVERGENCE_LIMIT
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import (
    Attitude,
    ContactPhase,
    Dynamics,
    FlagMatrix,
    Flags,
    FloatArray,
    Matrix,
    MeasuredFriction,
    SensorFrame,
    Vector,
)

_SETTLING_CONSTANTS = 4.0
"""Time constants after which the residual counts."""


# Rows of the state of step_residual
_RESIDUAL, _RUNNING_FOR, _MOMENTUM, _HELD, _SMOOTH = range(5)


@unbuffered_record
class ObserverInputs(NamedTuple):
    """What acts on the joints in one frame, see :class:`SensorFrame`; the effort may have rows of the base, zero."""

    effort: Vector
    wrenches: Matrix
    imu_fresh: bool
    wrench_fresh: Flags
    dt: float


@record
class ResidualTable(NamedTuple):
    """Constants of the residual."""

    limb: FlagMatrix  # (k, n) True where a row needs the wrench of that foot
    gain: float  # bandwidth K_0 [rad/s]
    held: bool  # True where inputs act until the next sample
    base: int  # degrees of freedom of the base


@entry_point
def step_residual(
    dynamics: Dynamics, inputs: ObserverInputs, table: ResidualTable, state: Matrix, friction: Vector
) -> None:
    """One step of eq. 10, exact for inputs that are constant over the step; state in place.

    The balance is split by how its terms live between samples: C^T v is smooth, torque, wrench and specific force are
    held. The specific force acts through ``g = H[:, :3] f``. Rows are the last of the velocities: the joints, or all.

    Parameters
    ----------
    state : (5, n) residual, how long it has been running [s], momentum, inputs that are held and inputs that are smooth
        at the last sample; the momentum is NaN where a sensor was silent, and before the first sample
    friction : (n,) output: the residual, NaN until it has run for some time constants
    """
    H, v, beta, J = dynamics.mass_matrix, dynamics.velocity, dynamics.momentum_bias, dynamics.foot_jacobian
    effort, specific_force, dt, gain = inputs.effort, dynamics.specific_force, inputs.dt, table.gain
    n, k = effort.size, len(J)
    residual, running_for, momentum = state[_RESIDUAL], state[_RUNNING_FOR], state[_MOMENTUM]
    held, smooth = state[_HELD], state[_SMOOTH]
    decay = math.exp(-gain * dt)
    for i in range(n):
        row = v.size - n + i
        p, gravity, foot_torque, known = 0.0, 0.0, 0.0, inputs.imu_fresh
        for j in range(v.size):
            p += H[row, j] * v[j]
        if table.base:
            gravity = H[row, 0] * specific_force[0] + H[row, 1] * specific_force[1] + H[row, 2] * specific_force[2]
        for foot in range(k):
            for axis in range(6):
                foot_torque += J[foot, axis, row] * inputs.wrenches[foot, axis]
            if table.limb[foot, i] and not inputs.wrench_fresh[foot]:
                known = False
        held_now, smooth_now = effort[i] + foot_torque - gravity, beta[row] + gravity
        if dt > 0.0:
            if known and not math.isnan(momentum[i]):  # what was held at the last frame acts on this step
                force = (held[i] if table.held else 0.5 * (held[i] + held_now)) + 0.5 * (smooth[i] + smooth_now)
                residual[i] = decay * residual[i] + (1.0 - decay) * (force - (p - momentum[i]) / dt)
                running_for[i] += dt
            if not (
                known and abs(residual[i]) <= DIVERGENCE_LIMIT and running_for[i] >= 0.0 and not math.isnan(momentum[i])
            ):
                residual[i] = running_for[i] = 0.0
        momentum[i], held[i], smooth[i] = p if known else math.nan, held_now, smooth_now
        friction[i] = residual[i] if known and running_for[i] * gain > _SETTLING_CONSTANTS else math.nan


@entry_point
def _residual_variances(
    dynamics: Dynamics,
    effort: Vector,
    wrenches: Matrix,
    readings_per_sample: Vector,
    sensors: SensorVariances,
    dt: float,
    gains: Vector,
    base: int,
) -> tuple[FloatArray, FloatArray]:
    """Stationary variances of the residual from white noise (g, n), and from biases and gain errors (n,) [(N m)^2].

    White noise of the momentum passes the filter's high-pass ``(1 - d) / dt * (1 - z^-1) / (1 - d z^-1)``, that of all
    else its low-pass ``(1 - d) / (1 - d z^-1)``, with ``d = exp(-K_0 dt)``. Constant errors of the momentum are
    stopped, those of all else pass. Noise of the joint positions, and of the velocities through C^T v, is small in
    comparison and left out.

    Parameters
    ----------
    readings_per_sample : (1 + k,) of IMU and feet: noise of a slow sensor is the same for several samples
    gains : (g,) bandwidths K_0 [rad/s]
    """
    n, H, J = effort.size, dynamics.mass_matrix, dynamics.foot_jacobian
    noise, systematic = np.empty((gains.size, n)), np.empty(n)
    for i in range(n):
        row = base + i
        momentum, force, systematic_sum = 0.0, sensors.effort, sensors.effort_gain * effort[i] ** 2
        for j in range(n):
            momentum += H[row, base + j] ** 2 * sensors.velocity
        if base:
            for axis in range(3):
                momentum += H[row, 3 + axis] ** 2 * sensors.angular_velocity
                force += H[row, axis] ** 2 * sensors.specific_force / readings_per_sample[0]
                systematic_sum += H[row, axis] ** 2 * sensors.specific_force_bias
        for foot in range(J.shape[0]):
            for axis in range(6):
                square, is_force = J[foot, axis, row] ** 2, axis < 3
                bias = sensors.force_bias if is_force else sensors.moment_bias
                white = sensors.force if is_force else sensors.moment
                force += square * white / readings_per_sample[1 + foot]
                systematic_sum += square * (bias + sensors.force_gain * wrenches[foot, axis] ** 2)
        systematic[i] = systematic_sum
        for number in range(gains.size):
            decay = math.exp(-gains[number] * dt)
            high_pass = ((1.0 - decay) / dt) ** 2 * 2.0 / (1.0 + decay)
            low_pass = (1.0 - decay) / (1.0 + decay)
            noise[number, i] = high_pass * momentum + low_pass * force
    return noise, systematic


@entry_point
def first_order_low_pass(filtered: Vector, last: Vector, signal: Vector, decay: float) -> None:
    """First-order low-pass (eq. 11) of a signal (s,); output and last signal in place; ``decay``: ``exp(-K dt)``."""
    for i in range(signal.size):
        filtered[i] = decay * filtered[i] + (1.0 - decay) * 0.5 * (signal[i] + last[i])
        last[i] = signal[i]


def initial_residual(joints: int) -> FloatArray:
    """State (5, n) of :func:`step_residual` before the first sample."""
    state = np.zeros((5, joints))
    state[_MOMENTUM] = math.nan
    return state


class ResidualVariances:
    """Variances of the momentum residual, computed at ``SIGMA_RATE``: :func:`_residual_variances`.

    Parameters
    ----------
    noise : of the sensors
    gains : (g) bandwidths of the observer [rad/s]
    robot : the model that also made the :class:`Dynamics`

    Attributes
    ----------
    white, systematic : (g, n), (n,) from white noise, and from biases and gain errors [(N m)^2]; NaN before the first
        call of :meth:`compute`
    """

    def __init__(self, noise: SensorNoise, gains: Sequence[float], robot: RobotModel) -> None:
        self._gains, self._base_dofs, self._joint_count = np.array(gains), robot.base_dofs, len(robot.joint_names)
        self._period = 1.0 / SIGMA_RATE
        self.retune(noise)
        self.reset()

    def retune(self, noise: SensorNoise) -> None:
        """Use the standard deviations of this noise from now on."""
        self._sensors = sensor_variances(noise)

    def reset(self) -> None:
        """Let the variances be due at the next sample."""
        self._age = math.inf
        self.white: FloatArray = np.full((self._gains.size, self._joint_count), np.nan)
        self.systematic: FloatArray = self.white[0]

    def due(self, dt: float) -> bool:
        """Whether the variances are too old after a further ``dt`` [s], so that :meth:`compute` must be called."""
        self._age += dt
        return not self._age < self._period and dt > 0.0

    def compute(self, frame: SensorFrame, dynamics: Dynamics, velocity_variance: float | None = None) -> None:
        """Compute the variances at a frame; ``velocity_variance`` replaces that of the joint velocities [rad^2/s^2]."""
        self._age = 0.0
        sensors = self._sensors
        if velocity_variance is not None:
            sensors = sensors._replace(velocity=velocity_variance)
        self.white, self.systematic = _residual_variances(
            dynamics.buffer, frame.effort, frame.wrenches, frame.readings_per_sample, *sensors, frame.dt, self._gains,
            self._base_dofs,
        )  # fmt: skip


class MomentumObserver:
    """Friction as the low-passed momentum residual.

    Parameters
    ----------
    config : ``momentum`` and ``sensors``
    robot : the model that also made the :class:`Dynamics`
    """

    def __init__(self, config: Config, robot: RobotModel) -> None:
        self._gain = config.momentum.gain
        table = ResidualTable(robot.limb, self._gain, config.momentum.inputs_are_held, robot.base_dofs)
        self._table_buffer, self._table = buffered(table)
        self._variances = ResidualVariances(config.sensors, (self._gain,), robot)
        self.reset()

    def reset(self) -> None:
        """Begin with a zero residual at the next frame; ready again after about four time constants."""
        self._state = initial_residual(self._table.limb.shape[1])
        self._filtered: FloatArray | None = None
        self._variances.reset()
        self._sigma = self._noise_sigma = self._variances.white[0]

    def step(self, frame: SensorFrame, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics) -> MeasuredFriction:
        """Friction of all joints in one frame; unknown for joints whose sensors are silent."""
        friction = np.empty(frame.effort.size)
        inputs = frame.effort, frame.wrenches, frame.imu_fresh, frame.wrench_fresh, frame.dt
        step_residual(dynamics.buffer, *inputs, self._table_buffer, self._state, friction)
        available = np.isfinite(friction)
        variances = self._variances
        if variances.due(frame.dt):
            variances.compute(frame, dynamics)
            white = variances.white[0]
            self._sigma, self._noise_sigma = np.sqrt(white + variances.systematic), np.sqrt(white)
        if available.all():
            return MeasuredFriction(friction, self._sigma, self._noise_sigma, available)
        sigma, noise_sigma = (np.where(available, values, np.nan) for values in (self._sigma, self._noise_sigma))
        return MeasuredFriction(friction, sigma, noise_sigma, available)

    def filter(self, signal: FloatArray, dt: float) -> FloatArray:
        """First-order low-pass of the observer (eq. 11), for a signal of any shape."""
        if self._filtered is None:
            self._filtered, self._last_signal = signal.ravel().copy(), signal.ravel().copy()
        elif dt > 0.0:
            first_order_low_pass(self._filtered, self._last_signal, signal.ravel(), math.exp(-self._gain * dt))
        return self._filtered.copy().reshape(signal.shape)
