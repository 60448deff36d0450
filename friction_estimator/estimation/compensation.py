"""Feed-forward torque that cancels the friction that the identified law predicts (Hashlamon & Erbatur 2014, §7.4)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from friction_estimator.config import CompensationConfig
from friction_estimator.config.robot import SURE_SIGN
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import BoolArray, CommandSample, FloatArray, FrictionEstimate

_QUEUE = 1000
"""Number of commands kept that are newer than the joint states: one second at 1 kHz."""


@dataclass(frozen=True, slots=True)
class TransmittedLaws:
    """Friction of the joints from the laws of the motors, ``S f(S^T dq, S^-1 tau)`` (Guedelha et al. 2017, eq. 34).

    Attributes
    ----------
    laws : of the motors (n)
    motors : transmission between motors and joints
    """

    laws: JointLaws
    motors: Transmission

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray) -> FloatArray:
        """Friction (n,) [N m] of the joints for the motors' parameters (n, p), at velocities and torques of joints."""
        motors = self.motors
        return motors.at_joints(self.laws.torque(parameters, motors.velocity(velocity), motors.torque(load)))


class FrictionCompensation:
    """Torque to add to the motor command, one per joint-state sample.

    It starts at zero, changes at most with ``slew_rate``, and is zero for a joint whose law is not known well enough.
    It is zero for all joints after a gap of the joint states or while there is no fresh desired velocity.

    Parameters
    ----------
    config : limits
    laws : friction torque from parameters and velocity
    effort_limit : (n,) of the motors, infinite where the URDF gives none [N m]
    velocity_std : noise of measured velocities; the torque fades within three times this, or ``fade_velocity`` [rad/s]

    Attributes
    ----------
    gain : part of the friction that is cancelled, 0 to 1
    idle : why all torques are zero now, empty when they need not be
    compensated : (n,) True where the law was known well enough for some torque at the newest sample
    """

    def __init__(
        self, config: CompensationConfig, laws: TransmittedLaws, effort_limit: FloatArray, velocity_std: float
    ) -> None:
        self._laws = laws
        self._limit: FloatArray = np.minimum(effort_limit, config.limit)
        self._measured = config.velocity == "measured"
        self._max_relative_sigma, self._slew_rate = config.max_relative_sigma, config.slew_rate
        self._timeout = config.timeout
        noise = SURE_SIGN * velocity_std if self._measured else 0.0
        self._fade_velocity = max(config.fade_velocity, noise)
        self._commands: deque[CommandSample] = deque(maxlen=_QUEUE)
        self.gain = config.gain
        self.reset()

    def reset(self) -> None:
        """Start again from zero torque, without a desired velocity."""
        self._commands.clear()
        self._torque: FloatArray = np.zeros(self._limit.size)
        self._stamp_ns: int | None = None
        self.idle = "no joint state yet"
        self.compensated: BoolArray = np.zeros(self._limit.size, dtype=bool)

    def set_command(self, sample: CommandSample) -> None:
        """Add a command of the controller; a stamp that jumps back drops the older ones."""
        if self._commands and sample.stamp_ns < self._commands[-1].stamp_ns:
            self._commands.clear()
        self._commands.append(sample)

    def step(self, estimate: FrictionEstimate) -> FloatArray:
        """Torque to add to the motor command from the stamp of this estimate on, (n,) [N m]; always finite."""
        elapsed = self._elapsed(estimate.stamp_ns)
        velocity = self._velocity_at(estimate)
        if elapsed is None or velocity is None:
            self._torque = np.zeros(self._limit.size)
            self.compensated = np.zeros(self._limit.size, dtype=bool)
            return self._torque
        friction = self._laws.torque(estimate.parameters, velocity, estimate.effort)
        confident = confident_torque(friction, estimate.model_sigma / self._max_relative_sigma)
        wanted = bounded(self.gain * faded(confident, velocity, self._fade_velocity), self._limit)
        self.idle, self.compensated = "", confident != 0.0
        torque = bounded(self._torque + bounded(wanted - self._torque, self._slew_rate * elapsed), self._limit)
        self._torque = np.where(torque == torque, torque, 0.0)  # no NaN lasts
        return self._torque

    def _elapsed(self, stamp_ns: int) -> float | None:
        """Time since the sample before [s]; None after a gap, a jump back and at the start."""
        before, self._stamp_ns = self._stamp_ns, stamp_ns
        elapsed = None if before is None else 1e-9 * (stamp_ns - before)
        if elapsed is None or not 0.0 <= elapsed <= self._timeout:
            self.idle = "the joint states have just begun, or come more slowly than compensation.timeout"
            return None
        return elapsed

    def _velocity_at(self, estimate: FrictionEstimate) -> FloatArray | None:
        """Velocity at which the law is evaluated (n,); None while there is none."""
        if self._measured:
            return estimate.velocity
        commands, now = self._commands, estimate.stamp_ns
        while len(commands) > 1 and commands[1].stamp_ns <= now:
            commands.popleft()
        if commands and 0 <= now - commands[0].stamp_ns <= 1e9 * self._timeout:
            return commands[0].velocity
        self.idle = f"no desired velocity within {self._timeout:g} s"
        return None


def confident_torque(friction: FloatArray, sigma: FloatArray) -> FloatArray:
    """Friction where it is known: all of it below sigma = half of it, none of it above sigma = all of it.

    Continuous in both, so that it cannot switch to and fro.

    Parameters
    ----------
    friction : (n,) of the law [N m]
    sigma : (n,) its standard deviation [N m]
    """
    size = np.abs(friction)
    known = np.copysign(np.minimum(np.maximum(2.0 * (size - sigma), 0.0), size), friction)
    return np.where(np.isfinite(known), known, 0.0)


def faded(torque: FloatArray, velocity: FloatArray, fade_velocity: float) -> FloatArray:
    """Torque that only helps motion: in proportion to the speed below ``fade_velocity``, zero against the velocity.

    A torque with a jump at zero velocity, fed back from a velocity with noise or delay, makes a resting joint chatter.

    Parameters
    ----------
    torque : (n,) [N m]
    velocity : (n,) [rad/s]
    fade_velocity : zero for no fade [rad/s]
    """
    helping = np.where(torque * velocity > 0.0, torque, 0.0)
    if fade_velocity == 0.0:
        return helping
    return helping * np.minimum(np.abs(velocity) / fade_velocity, 1.0)


def bounded(values: FloatArray, limit: FloatArray | float) -> FloatArray:
    """Values within plus and minus a limit."""
    return np.minimum(np.maximum(values, -limit), limit)
