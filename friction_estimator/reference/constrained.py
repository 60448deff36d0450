"""Constrained-dynamics observer: friction from joint accelerations, without force sensors (Egle 2021, chapters 5-7).

The acceleration that the motor torques would cause without friction is compared with the differentiated one; the
difference, times the inertia that the constraints leave, is the friction. Foot sensors only show which feet stand. In
single support and for swinging limbs the friction is unique, but where much of the robot hangs on a joint the least
error of its acceleration is a large torque: friction less certain than ``max_sigma`` is not given.

Central differences and the trimmed end of a phase need the future, so the estimate is that of an earlier instant, and
``filter`` delays other signals alike.
"""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.config import Config
from friction_estimator.reference.constrained_friction import ConstrainedFriction, ConstrainedSolution
from friction_estimator.reference.differentiation import DelayLine, DerivativeWeights, Differentiator
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import Attitude, ContactPhase, Dynamics, FloatArray, MeasuredFriction, SensorFrame


class ConstrainedDynamicsObserver:
    """Friction at an instant up to half a window or ``trim_end`` ago, whichever is longer.

    Parameters
    ----------
    config : ``constrained``, ``sensors`` and the feet's kind of contact
    robot : the model that also made the :class:`Dynamics`
    """

    def __init__(self, config: Config, robot: RobotModel) -> None:
        settings = config.constrained
        self._signal, self._trim_start, self._max_sigma = settings.signal, settings.trim_start, settings.max_sigma
        self._motion_frequency = settings.motion_frequency
        self._regularised = settings.double_support == "regularised"
        self._friction = ConstrainedFriction(config, robot)
        after = settings.window // 2 if settings.differences == "central" else 0
        self._line = DelayLine(settings.window - 1 - after, after, settings.trim_end)
        derivative = 2 if settings.signal == "position" else 1
        self._differentiator = Differentiator(settings.order, derivative, settings.motion_frequency)
        self._sigma_period = 1.0 / config.sensors.sigma_rate
        self._unknown = np.full(len(robot.joint_names), np.nan)
        self.reset()

    def reset(self) -> None:
        """Begin with an empty window at the next frame."""
        self._line.reset()
        self._quiet_for = 0.0
        self._sigma_key = b""
        self._sigma_age = math.inf
        self._sigma = self._noise_sigma = np.empty(0)
        self._motion = np.zeros(self._unknown.size)

    def filter(self, signal: FloatArray, dt: float) -> FloatArray:
        """The signal as it was at the instant whose friction the last step gave."""
        return self._line.filter(signal)

    def step(self, frame: SensorFrame, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics) -> MeasuredFriction:
        """Friction at the delayed instant, of the joints whose friction is unique and certain enough there."""
        self._line.push(frame, attitude, phase, dynamics)
        self._watch(frame, phase)
        self._sigma_age += frame.dt
        friction, sigma, noise_sigma = self._unknown.copy(), self._unknown.copy(), self._unknown.copy()
        available = np.zeros(friction.size, dtype=bool)
        if self._line.ready and self._quiet_for > self._needed_quiet():
            standing = self._line.delayed.phase.contact
            unique = self._friction.unique(standing)
            if unique.any() or self._regularised:
                joints = self._friction.joints
                friction[joints] = self._measure(standing.tobytes())
                sigma[joints], noise_sigma[joints] = self._sigma, self._noise_sigma
                available = (unique | (self._regularised & np.isfinite(sigma))) & (sigma <= self._max_sigma)
                for values in (friction, sigma, noise_sigma):
                    values[~available] = np.nan
        return MeasuredFriction(friction, sigma, noise_sigma, available)

    def _watch(self, frame: SensorFrame, phase: ContactPhase) -> None:
        """Count how long no sensor has been silent and no foot has landed or left [s]."""
        self._quiet_for = min(self._quiet_for + frame.dt, float(phase.since.min(initial=math.inf)))
        if not (frame.imu_fresh and frame.wrench_fresh.all()):
            self._quiet_for = 0.0

    def _needed_quiet(self) -> float:
        """The whole window, and ``trim_start`` before the delayed instant, must lie in one phase [s]."""
        return max(self._line.age, self._line.lag + self._trim_start) - 1e-9

    def _measure(self, key: bytes) -> FloatArray:
        """Friction of the torque-controlled joints at the delayed instant, (m,); refreshes its sigma."""
        times, frames = self._line.window()
        weights = self._differentiator.weights(times)
        samples = np.array([getattr(frame, self._signal) for frame in frames])
        acceleration = weights.values @ samples
        forget = min(self._motion_frequency * self._line.delayed.frame.dt, 1.0)
        self._motion = np.maximum(acceleration**2, self._motion + forget * (acceleration**2 - self._motion))
        solution = self._friction.solve(self._line.delayed, acceleration)
        self._refresh_sigma(solution, weights, key)
        return solution.friction

    def _refresh_sigma(self, solution: ConstrainedSolution, weights: DerivativeWeights, key: bytes) -> None:
        if key == self._sigma_key and self._sigma_age < self._sigma_period:
            return
        self._sigma_key, self._sigma_age = key, 0.0
        white, lasting = self._friction.variances(solution, weights, self._motion)
        self._sigma, self._noise_sigma = np.sqrt(white + lasting), np.sqrt(white)
