"""External torque: what neither model, foot wrenches, friction nor calibration explain, within milliseconds.

A momentum observer (Lim et al. 2024, section 3.2) on the filtered joint velocities; what is expected of it passes the
same low-pass. It is published, and large torques are pushes, from which nothing is learned.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from friction_estimator.core.config import Config, KalmanConfig, SensorNoise
from friction_estimator.core.kalman.limbs import Limb
from friction_estimator.core.kalman.motion_bank import JointMotion
from friction_estimator.core.observers.momentum import MomentumObserver
from friction_estimator.core.robot_model import RobotModel
from friction_estimator.core.types import Attitude, BoolArray, ContactPhase, Dynamics, FloatArray, SensorFrame

_CORRELATED = 0.2
"""Part of the filtered velocity's variance that passes the observer's differentiation: its errors are slow."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """External torque of one instant: torque and sigma (n,) [N m]; NaN while unknown."""

    torque: FloatArray
    sigma: FloatArray


class DisturbanceObserver:
    """The observer of the external torque.

    Parameters
    ----------
    config : ``kalman.disturbance_gain``, ``momentum.input_hold``, ``sensors``
    robot : the model that also made the :class:`Dynamics`
    """

    def __init__(self, config: Config, robot: RobotModel) -> None:
        momentum = dataclasses.replace(config.momentum, gain=config.kalman.disturbance_gain)
        self._observer = MomentumObserver(dataclasses.replace(config, momentum=momentum), robot)
        self.retune(config.sensors)
        self._base_dofs = robot.base_dofs
        self._period = 1.0 / config.sensors.sigma_rate
        self.reset()

    def retune(self, noise: SensorNoise) -> None:
        """Other standard deviations from now on, for this noise."""
        self._noise = noise

    def reset(self) -> None:
        """Begin anew."""
        self._observer.reset()
        self._age = math.inf
        self._variance: FloatArray = np.zeros(0)

    def step(
        self,
        frame: SensorFrame,
        attitude: Attitude,
        phase: ContactPhase,
        dynamics: Dynamics,
        motion: JointMotion,
        expected: FloatArray,
        expected_variance: FloatArray,
    ) -> Disturbance:
        """Torque on the joints from outside.

        Parameters
        ----------
        expected : (n,) friction and calibration torque now [N m]
        expected_variance : (n,) [(N m)^2]
        """
        velocity = dynamics.velocity.copy()
        velocity[self._base_dofs :] = motion.velocity
        residual = self._observer.step(frame, attitude, phase, dataclasses.replace(dynamics, velocity=velocity))
        torque = self._observer.filter(expected, frame.dt) - residual.friction
        self._age += frame.dt
        if self._age >= self._period and frame.dt > 0.0:
            self._age = 0.0
            std = math.sqrt(_CORRELATED * float((motion.velocity_std**2).mean()))
            noise = dataclasses.replace(self._noise, velocity_std=std)
            self._variance = self._observer.variances(frame, dynamics, noise)[0]
        if not self._variance.size:
            return Disturbance(torque, np.full(torque.size, np.nan))
        sigma = np.sqrt(self._variance + expected_variance)
        return Disturbance(torque, np.where(np.isfinite(torque), sigma, np.nan))


class DisturbanceWatch:
    """Notices pushes, limb by limb.

    Parameters
    ----------
    config : gates and times
    limbs : joints that are judged together
    joint_count : n

    Attributes
    ----------
    pushed : (n,) True while the limb of a joint is pushed, and a little longer
    """

    def __init__(self, config: KalmanConfig, limbs: tuple[Limb, ...], joint_count: int) -> None:
        self._config = config
        self._limbs = limbs
        self._joint_count = joint_count
        self.reset()

    def reset(self) -> None:
        """Nothing has happened."""
        count = len(self._limbs)
        self._since_push = np.full(count, math.inf)
        self._since_release = np.full(count, math.inf)
        self._pushed_for = np.zeros(count)
        self._calm = True
        self.pushed: BoolArray = np.zeros(self._joint_count, dtype=bool)

    def step(self, disturbance: Disturbance, friction: FloatArray, dt: float) -> list[int]:
        """Judge one instant; return the limbs whose push has lasted too long to be one.

        Parameters
        ----------
        friction : (n,) what the law says now [N m]
        """
        config = self._config
        size = np.abs(np.where(np.isfinite(disturbance.sigma), disturbance.torque, 0.0))
        score = size / np.where(disturbance.sigma > 0.0, disturbance.sigma, np.inf)
        large = (score > config.disturbance_gate) & (
            size > config.disturbance_ratio * np.abs(friction) + config.smallest_push
        )
        lasting: list[int] = []
        self._since_release += dt
        if self._calm and not large.any():
            return lasting
        self.pushed = self.pushed.copy()  # the array of the instant before has left
        for index, limb in enumerate(self._limbs):
            rows = limb.joints
            if self._push(index, bool(large[rows].any()), dt):
                lasting.append(index)
            self.pushed[rows] = self._since_push[index] < config.push_settle
        self._calm = not self.pushed.any()
        return lasting

    def _push(self, index: int, large: bool, dt: float) -> bool:
        """Follow a push; True when it has lasted too long to be one. Then nothing is a push for as long again."""
        longest = self._config.longest_push
        large = large and self._since_release[index] > longest
        self._since_push[index] = 0.0 if large else self._since_push[index] + dt
        if self._since_push[index] >= self._config.push_settle:
            self._pushed_for[index] = 0.0
            return False
        self._pushed_for[index] += dt
        if self._pushed_for[index] < longest:
            return False
        self._since_push[index], self._since_release[index] = math.inf, 0.0
        return True
