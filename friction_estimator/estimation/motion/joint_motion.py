"""Joint velocities from encoders: a bank of stationary Kalman filters, and how probable each of their models is.

A walking joint rests for a second and then swings with 20 rad/s^2. One constant-acceleration Kalman filter is either
too noisy for the first or too slow for the second. Here several run side by side, all with their stationary gains:
interacting multiple models (Bar-Shalom, Li & Kirubarajan 2001, section 11.6.6). A joint now and then changes its
motion, so that no model is ever ruled out; each filter starts a period from the mean of all models.

The models are those of :mod:`stationary_filters`: white jerk for a moving joint, white acceleration near rest.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from friction_estimator.config import KalmanConfig, SensorNoise
from friction_estimator.estimation.motion.encoders import COARSE_STEP, initial_rounded_state, step_rounded_motion
from friction_estimator.estimation.motion.stationary_filters import MotionModels, StationaryFilters, stationary_filters
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.kernels.records import RecordTemplate, buffered, record, to_buffer
from friction_estimator.linear_algebra import is_bounded, unbounded_columns
from friction_estimator.types import FloatArray, Matrix, Tensor, Vector

_FINEST_POSITION = 1e-7
"""Lower bound on the noise of an encoder, or of a simulator's integrator [rad]."""
_SOJOURN_TIME, _COARSE_SOJOURN_TIME = 1.0, 2.0
"""Mean time until another motion model becomes the best for a joint [s]: about once a step of a walk. Coarse encoders
see fewer of the changes."""
_MAX_REPEAT_TIME = 0.1
"""A joint that has kept its reading for longer may move like one that has kept it for so long: it may start now [s]."""

_AXES = "the gyroscope's x axis", "the gyroscope's y axis", "the gyroscope's z axis"
_UNKNOWN_ANGLE = 1.0
"""Standard deviation of the angle, which nothing measures [rad]: far more than a trunk turns in a step."""
_FINEST_RATE = 1e-6
"""Lower bound on the noise of a gyroscope [rad/s]."""


@record
class JointMotion(NamedTuple):
    """Filtered motion of the joints."""

    # (n,) [rad, rad/s, rad/s^2]
    position: Vector
    velocity: Vector
    acceleration: Vector
    velocity_std: Vector  # (n,) standard deviation of the velocity [rad/s]

    @property
    def buffer(self) -> FloatArray:
        """Array with all values of the record, for kernels: new here, the own one of a lazy record."""
        return to_buffer(self)


@functools.cache
def _template(joints: int) -> RecordTemplate[JointMotion]:
    return RecordTemplate(JointMotion(*np.zeros((4, joints))))


def empty_motion(joints: int) -> tuple[FloatArray, Any]:
    """A motion of n joints to be filled: its fields are the rows of one array (4, n)."""
    motion = _template(joints).new()
    return motion.buffer[-4 * joints :].reshape(4, joints), motion


_COARSE_MODELS = MotionModels(np.array([0.1, 1e1, 1e3, 1e5, 1e7]), np.array([1e-5, 1e-3, 1e-1]))
"""Models for coarse encoders: fewer, because their readings show less of the motion and cost more. None is as dense as
the densest one for fine encoders: coarse readings do not rule it out within milliseconds, and its small probability
alone would leave the velocity uncertain by 6 mrad/s."""


@entry_point
def step_filters(
    state: Tensor,
    position: Vector,
    velocity: Vector,
    dt: float,
    filters: StationaryFilters,
    distance: Matrix,
) -> None:
    """Update all filters of the bank by a reading, in place.

    Parameters
    ----------
    state : (m, 3, n) position, velocity and acceleration of the joints, filter by filter [rad], [rad/s], [rad/s^2]
    position, velocity : (n,) readings [rad], [rad/s]
    dt : since the reading before [s]
    distance : (m, n) output: squared Mahalanobis distance of the reading
    """
    m, _, n = state.shape
    per_dt, per_square = 1.0 / dt, 1.0 / (dt * dt)
    for model in range(m):
        A, K, W = filters.transition[model], filters.gain[model], filters.information[model]
        for joint in range(n):
            x0, x1, x2 = state[model, 0, joint], state[model, 1, joint] * dt, state[model, 2, joint] * dt * dt
            q = A[0, 0] * x0 + A[0, 1] * x1 + A[0, 2] * x2
            dq = A[1, 0] * x0 + A[1, 1] * x1 + A[1, 2] * x2
            ddq = A[2, 0] * x0 + A[2, 1] * x1 + A[2, 2] * x2
            r0, r1 = position[joint] - q, velocity[joint] * dt - dq
            state[model, 0, joint] = q + K[0, 0] * r0 + K[0, 1] * r1
            state[model, 1, joint] = (dq + K[1, 0] * r0 + K[1, 1] * r1) * per_dt
            state[model, 2, joint] = (ddq + K[2, 0] * r0 + K[2, 1] * r1) * per_square
            distance[model, joint] = r0 * (W[0, 0] * r0 + W[0, 1] * r1) + r1 * (W[1, 0] * r0 + W[1, 1] * r1)


@kernel
def _mean_state(state: FloatArray, weight: FloatArray, out: FloatArray) -> None:
    """Write the weighted mean of the bank's states into the first rows of ``out`` (4, n), zero into the last."""
    out[:] = 0.0
    for model in range(state.shape[0]):
        for row in range(3):
            for joint in range(state.shape[2]):
                out[row, joint] += weight[model, joint] * state[model, row, joint]


@entry_point
def combine_models(state: Tensor, weight: Matrix, velocity_variance: Vector, out: Matrix) -> None:
    """Write the mean of the bank into ``out`` (4, n): position, velocity, acceleration, standard deviation of velocity.

    Parameters
    ----------
    state : (m, 3, n)
    weight : (m, n)
    velocity_variance : (m,) of each filter's velocity [rad^2/s^2]
    """
    m, _, n = state.shape
    _mean_state(state, weight, out)
    for model in range(m):
        for joint in range(n):
            spread = state[model, 1, joint] - out[1, joint]
            out[3, joint] += weight[model, joint] * (velocity_variance[model] + spread * spread)
    for joint in range(n):
        out[3, joint] = math.sqrt(out[3, joint])


@record
class BankState(NamedTuple):
    """State of the interacting models."""

    state: Tensor  # (m, 3, n) position, velocity, acceleration of n joints by each model
    probability: Matrix  # (m, n) of the models
    distance: Matrix  # (m, n) squared Mahalanobis distance of the newest reading


@entry_point
def step_motion(
    bank: BankState,
    position: Vector,
    velocity: Vector,
    dt: float,
    switch_probability: float,
    filters: StationaryFilters,
    out: Matrix,
) -> bool:
    """Advance the interacting models by one period, in place; the motion in ``out`` (4, n).

    Parameters
    ----------
    bank, filters : states of the models, in place; their filters for this period
    switch_probability : probability that the motion of a joint has changed its model

    Returns
    -------
    False where the motion is not finite
    """
    state, probability = bank.state, bank.probability
    m, _, n = state.shape
    _mean_state(state, probability, out)
    for model in range(m):
        for joint in range(n):
            same = (1.0 - switch_probability) * probability[model, joint]
            probability[model, joint] = same + switch_probability / m
            kept_share = same / probability[model, joint]
            for row in range(3):
                mean = out[row, joint]
                state[model, row, joint] = mean + kept_share * (state[model, row, joint] - mean)
    step_filters(state, position, velocity, dt, filters, bank.distance)
    log_likelihood = np.empty(m)
    for joint in range(n):
        for model in range(m):
            log_likelihood[model] = -0.5 * (bank.distance[model, joint] + filters.log_determinant[model])
        largest, total = log_likelihood.max(), 0.0
        for model in range(m):
            probability[model, joint] *= math.exp(log_likelihood[model] - largest)
            total += probability[model, joint]
        for model in range(m):
            probability[model, joint] /= total
    combine_models(state, probability, filters.velocity_variance / dt**2, out)
    return is_bounded(out)


@entry_point
def bound_velocity_by_repeats(
    position: Vector, step: Vector, dt: float, last: Vector, held: Vector, out: Matrix
) -> None:
    """Bound the velocity of joints whose encoders keep repeating a reading, in place of ``out`` of :func:`step_motion`.

    A position that stays within one step of its encoder has moved by less than that step in the meantime.

    Parameters
    ----------
    position : (n,) readings
    step : (n,) resolution of each encoder; 0: none, nothing is bounded [rad]
    dt : period [s]
    last, held : (n,) reading before [rad], and how long it has been the same [s], in place
    """
    for joint in range(position.size):
        held[joint] = min(held[joint] + dt, _MAX_REPEAT_TIME) if position[joint] == last[joint] else 0.0
        last[joint] = position[joint]
        if 0.0 < step[joint] < out[3, joint] * held[joint]:
            fastest = step[joint] / held[joint]
            out[1, joint] = min(max(out[1, joint], -fastest), fastest)
            out[3, joint] = fastest


class MotionSource(Protocol):
    """Where the stage gets the motion of the joints from: a filter, or the smoother of a recording."""

    def step(self, position: FloatArray, velocity: FloatArray, dt: float) -> JointMotion:
        """Motion at the newest reading of positions and velocities (n,)."""
        ...

    def retune(self, noise: SensorNoise, encoder_step: FloatArray) -> None:
        """Use this noise and these resolutions (n,) of the encoders from now on."""
        ...

    def reset(self) -> None:
        """Begin anew with the next reading."""
        ...


class MotionBank:
    """Gains of the stationary filters of all models, for the present period and noise.

    Parameters
    ----------
    models : m of them
    noise : of the joint positions and velocities
    """

    def __init__(self, models: MotionModels, noise: SensorNoise) -> None:
        self.models = models
        self.count = models.jerk_densities.size + models.acceleration_densities.size
        self.retune(noise)

    def retune(self, noise: SensorNoise) -> None:
        """Use the gains of this noise from now on."""
        self.position_std = max(noise.position_std, _FINEST_POSITION)
        self.velocity_std = noise.independent_velocity_std
        self._filters: dict[int, tuple[FloatArray, StationaryFilters]] = {}
        self.newest: tuple[float, Any] = (math.nan, None)

    def begin(self, position: FloatArray, velocity: FloatArray) -> FloatArray:
        """States (m, 3, n) with the first reading."""
        state = np.zeros((self.count, 3, position.size))
        state[:, 0] = position
        if math.isfinite(self.velocity_std):
            state[:, 1] = velocity
        return state

    def first_motion(self, state: FloatArray) -> JointMotion:
        """Motion at the first reading, from the states of :meth:`begin`."""
        n = state.shape[2]
        std = self.velocity_std if math.isfinite(self.velocity_std) else 1.0
        rows, motion = empty_motion(n)
        rows[:] = state[0, 0], state[0, 1], np.zeros(n), np.full(n, std)
        first: JointMotion = motion
        return first

    @staticmethod
    def nearby_period(dt: float) -> tuple[int, float]:
        """Number and length [s] of the period within 5 % of ``dt`` for which gains are computed: they change slowly."""
        key = round(10.0 * math.log(dt))
        return key, math.exp(0.1 * key)

    def filters(self, dt: float) -> tuple[FloatArray, StationaryFilters]:
        """Buffer and record of the filters of a period near ``dt`` [s], see :meth:`nearby_period`."""
        key, period = self.nearby_period(dt)
        if key not in self._filters:
            filters = stationary_filters(self.models, self.position_std, self.velocity_std, period)
            self._filters[key] = buffered(filters)
        self.newest = dt, self._filters[key]
        return self._filters[key]


class JointMotionFilter:
    """Interacting multiple models of all joints.

    Parameters
    ----------
    config : ``jerk_densities``, ``acceleration_densities``
    noise : of the joint positions and velocities
    joint_names : (n,) for error messages
    """

    def __init__(self, config: KalmanConfig, noise: SensorNoise, joint_names: Sequence[str]) -> None:
        self._names = joint_names
        models = MotionModels(np.array(config.jerk_densities), np.array(config.acceleration_densities))
        self._bank = MotionBank(models, noise)
        self._coarse: FloatArray = np.zeros(0)
        self._fine: FloatArray = np.zeros(0)
        self.reset()

    def reset(self) -> None:
        """Begin at rest with the next reading."""
        self._running = False

    def retune(self, noise: SensorNoise, encoder_step: FloatArray) -> None:
        """Use this noise from now on, and bounds where encoders are coarse.

        Parameters
        ----------
        noise : of the readings
        encoder_step : (n,) resolution of each encoder, 0 where it is not known [rad]
        """
        self._bank.retune(noise)
        coarse = np.where(encoder_step > COARSE_STEP, encoder_step, 0.0)
        coarse = coarse if coarse.any() else np.zeros(0)
        self._fine = np.zeros(0) if coarse.size or not encoder_step.any() else encoder_step
        if not np.array_equal(coarse, self._coarse):
            self._coarse = coarse
            self.reset()

    def _begin(self, position: FloatArray, velocity: FloatArray) -> JointMotion:
        """Motion by the first reading."""
        self._running, self._rounded = True, None
        self._last, self._held = position.copy(), np.zeros(position.size)
        state = self._bank.begin(position, velocity)
        if self._coarse.size:
            densities = np.concatenate([_COARSE_MODELS.jerk_densities, _COARSE_MODELS.acceleration_densities])
            jerk = _COARSE_MODELS.jerk_densities.size
            self._rounded = to_buffer(
                initial_rounded_state(densities, jerk, self._coarse, position, self._bank.position_std)
            )
        else:
            probability = np.full((self._bank.count, position.size), 1.0 / self._bank.count)
            self._state = to_buffer(BankState(state, probability, np.empty_like(probability)))
        return self._bank.first_motion(state)

    def step(self, position: FloatArray, velocity: FloatArray, dt: float) -> JointMotion:
        """Motion after one more reading of positions and velocities (n,), ``dt`` [s] after the one before.

        Raises
        ------
        FloatingPointError
            When the motion is no longer finite; call :meth:`reset` then.
        """
        if not self._running or dt == 0.0:
            return self._begin(position, velocity)
        out, motion = empty_motion(position.size)
        if self._rounded is not None:
            noise = self._bank.position_std, self._bank.velocity_std
            switch_probability = -math.expm1(-dt / _COARSE_SOJOURN_TIME)
            is_valid = step_rounded_motion(self._rounded, position, velocity, *noise, dt, switch_probability, out)
        else:
            switch_probability = -math.expm1(-dt / _SOJOURN_TIME)
            newest = self._bank.newest
            filters = newest[1] if dt == newest[0] else self._bank.filters(dt)
            is_valid = step_motion(self._state, position, velocity, dt, switch_probability, filters[0], out)
        if not is_valid:
            failed = unbounded_columns(self._names, out)
            raise FloatingPointError(f"the filtered motion of {failed} was not finite: check its position and velocity")
        if self._fine.size:
            bound_velocity_by_repeats(position, self._fine, dt, self._last, self._held, out)
        result: JointMotion = motion
        return result


class RotationFilter:
    """Angular velocity of the base by its gyroscope, filtered like joints of which only the velocity is measured.

    All joints of a limb share the noise of the gyroscope, by the momentum that they have with the base, so that raw
    readings would pass for friction of them all at once.

    Parameters
    ----------
    config : ``jerk_densities``, ``acceleration_densities``
    noise : of the gyroscope
    """

    def __init__(self, config: KalmanConfig, noise: SensorNoise) -> None:
        self._filter = JointMotionFilter(config, noise, _AXES)
        self.retune(noise)
        self.reset()

    def reset(self) -> None:
        """Begin anew with the next reading."""
        self._angle: FloatArray = np.zeros(3)
        self._filter.reset()

    def retune(self, noise: SensorNoise) -> None:
        """Use this noise from now on."""
        rate_std = max(noise.angular_velocity_std, _FINEST_RATE)
        like_joints = dataclasses.replace(
            noise, position_std=_UNKNOWN_ANGLE, velocity_std=rate_std, velocity_cutoff=0.0
        )
        self._filter.retune(like_joints, np.zeros(3))

    def step(self, angular_velocity: FloatArray, dt: float) -> JointMotion:
        """Rotation about the axes of the base (3,) after a reading [rad/s], ``dt`` [s] after the one before.

        Raises
        ------
        FloatingPointError
            When it is no longer finite; call :meth:`reset` then.
        """
        self._angle = self._angle + dt * angular_velocity
        return self._filter.step(self._angle, angular_velocity, dt)
