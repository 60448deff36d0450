"""Feed-forward torque that cancels the friction that the identified law predicts (Hashlamon & Erbatur 2014, §7.4)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.config import CompensationConfig
from friction_estimator.config.robot import SURE_SIGN_SIGMAS
from friction_estimator.estimation.health import JOINTS, Check, SensorFault
from friction_estimator.estimation.inactive_torque import InactiveTorqueTest
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.linear_algebra import DIVERGENCE_LIMIT
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import BoolArray, CommandSample, FloatArray, FrictionEstimate

_MAX_COMMANDS = 1000
"""Number of commands kept that are newer than the joint states: one second at 1 kHz."""
_ENERGY_TIME = 2.0
"""Time constant of the energies [s]: a step and more, over which errors of the robot model cancel."""
_ENERGY_TOLERANCE = 0.15
"""Part of the energy of friction by which that of the torque may be larger. On walks with realistic sensors and masses
that are wrong by 15 % this part is at most 0.06, because gravity gives no energy over a step."""
_BRAKING_TIME = 0.1
"""Time constant of the energy that a torque takes from a joint [s]. Only its sign counts, which no model affects."""
_ENERGY_TIMES = np.array([[_ENERGY_TIME]] * 3 + [[_BRAKING_TIME]] * 2)
"""Time constants of the five energies of :class:`PassivityCheck`."""
_FADE_OUT_TIME, _FADE_IN_TIME = 0.05, 0.5
"""Times in which a torque fades [s]: fast enough to do no harm, and slow enough to shake no joint."""
_TOO_LARGE = (
    "over-compensation: the torque would put {:.2g} W more into the joint than friction takes: reduce "
    "compensation.gain, or let the law be learned again"
)
_INACTIVE = (
    "{:.0f} +- {:.0f} % of friction_compensation is in the effort of {} and does not act, as if the drive ignored or "
    "limited it and reported the command: publish the measured torque, or let the drive apply all of it"
)
_NOT_MEASURED = "{:.0f} +- {:.0f} % of friction_compensation acts on {} and is not in the effort: add it to the effort"
_ENDED = ". Compensation has ended there until the next reset"
_BRAKES = "the torque brakes the joint: check the signs of velocity, desired velocity and effort"


@dataclass(frozen=True, slots=True)
class TransmittedLaws:
    """Friction of the joints from the laws of the motors (Guedelha et al. 2017, eq. 34).

    ``friction = A f(A^T dq, A^-1 tau)`` with ``A = T^-T``.
    """

    laws: JointLaws  # of the motors (n)
    motors: Transmission  # transmission between motors and joints

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray) -> FloatArray:
        """Friction (..., n) [N m] of joints for parameters (..., n, p) of motors, at velocities and torques (n,)."""
        motors = self.motors
        return motors.at_joints(self.laws.torque(parameters, motors.velocity(velocity), motors.torque(load)))


class PassivityCheck:
    """Passivity check: which torques give a joint more energy than its friction takes, or take energy from it.

    The friction is measured: that of the estimate, minus what the momentum observer finds on top of it. So a law that
    is too large is found even where the estimate has the same error. Energies are torques times changes of the
    position, so that a wrong velocity does not hide what it does to the torque. The windows are low-pass filters.

    Parameters
    ----------
    joints : n

    Attributes
    ----------
    excess : (n,) mean power of the torque beyond that of the friction [W]
    too_large : (n,) True where a torque gives more energy than friction takes, beyond its uncertainty
    brakes : (n,) True where a torque takes energy from the joint instead: more than half of what it exchanges
    """

    def __init__(self, joints: int) -> None:
        self._energy = np.zeros((5, joints))
        self._position: FloatArray | None = None
        self.excess = np.zeros(joints)
        self.too_large: BoolArray = np.zeros(joints, dtype=bool)
        self.brakes = self.too_large

    def step(
        self, position: FloatArray, measured: FloatArray, sigma: FloatArray, torque: FloatArray, dt: float
    ) -> None:
        """Add the energies of a step of time [s].

        Parameters
        ----------
        position : (n,) [rad or m]
        measured, sigma : (n,) friction, and its standard deviation [N m]
        torque : (n,) that need not have been applied [N m]
        """
        before, self._position = self._position, position
        if before is None:
            return
        step = position - before
        work, uncertain = torque * step, sigma * np.abs(step)
        rows = np.nan_to_num(np.stack((work, measured * step, uncertain, work, np.abs(work))), posinf=DIVERGENCE_LIMIT)
        self._energy = np.exp(-dt / _ENERGY_TIMES) * self._energy + rows
        given, taken, uncertain, recent_work, exchanged = self._energy
        self.excess = (given - taken) / _ENERGY_TIME
        slack = np.maximum(uncertain, _ENERGY_TOLERANCE * np.abs(taken))
        self.too_large, self.brakes = given - taken > slack, recent_work < -0.5 * exchanged


class FrictionCompensation:
    """Torque to add to the motor command, one per joint-state sample.

    It starts at zero, changes at most with ``slew_rate``, and is zero for a joint whose law is not known well enough.
    A joint begins with a test of its drive, and has no torque where that does not act (:class:`InactiveTorqueTest`).
    It is zero for all joints after a gap of the joint states or while there is no fresh desired velocity. It fades out
    where the estimate is not valid, or where it would give the joint more energy than friction takes
    (:class:`PassivityCheck`), and in again when the reason is gone.

    Parameters
    ----------
    config : limits
    laws : friction torque from parameters and velocity
    effort_limit : (n,) of the motors, infinite where the URDF gives none [N m]
    velocity_std : noise of measured velocities; the torque fades within three times this, or ``fade_velocity`` [rad/s]

    Attributes
    ----------
    gain : part of the friction that is cancelled, 0 to 1
    idle_reason : why all torques are zero now, empty when they need not be
    compensated : (n,) True where the law was known well enough for some torque at the newest sample
    trusted : (n,) False where the torque fades out
    fade : (n,) part of the torque that is left where the estimate is not valid, 0 to 1
    passivity : check of the torques before they fade
    test : whether the torques act as the effort says
    """

    def __init__(
        self, config: CompensationConfig, laws: TransmittedLaws, effort_limit: FloatArray, velocity_std: float
    ) -> None:
        self._laws = laws
        self._limit: FloatArray = np.minimum(effort_limit, config.limit)
        self._measured = config.velocity == "measured"
        self._slew_rate = config.slew_rate
        self._timeout = config.timeout
        noise = SURE_SIGN_SIGMAS * velocity_std if self._measured else 0.0
        self._fade_velocity = max(config.fade_velocity, noise)
        self._commands: deque[CommandSample] = deque(maxlen=_MAX_COMMANDS)
        self.gain = config.gain
        self.reset()

    def reset(self) -> None:
        """Start again from zero torque, without a desired velocity."""
        self._commands.clear()
        self._torque: FloatArray = np.zeros(self._limit.size)
        self._stamp_ns: int | None = None
        self.idle_reason = "no joint state yet"
        self.compensated: BoolArray = np.zeros(self._limit.size, dtype=bool)
        self.trusted: BoolArray = np.ones(self._limit.size, dtype=bool)
        self.fade, self.passivity = np.ones(self._limit.size), PassivityCheck(self._limit.size)
        self.test = InactiveTorqueTest(self._limit.size, self._laws.laws.parameter_count)

    def states(self, invalid_reasons: Sequence[str]) -> list[str]:
        """State of each joint (n) in words, with the reason; the parameter is ``Estimator.invalid_reasons()``."""
        check, fade, texts = self.passivity, self.fade.tolist(), []
        for joint, reason in enumerate(invalid_reasons):
            if check.too_large[joint]:
                reason = _TOO_LARGE.format(check.excess[joint])
            elif check.brakes[joint]:
                reason = _BRAKES
            elif self.test.failed[joint]:
                reason = self._inactive_text(joint, "the joint")
            state = "compensated" if self.compensated[joint] else "at rest, or its law is not known well enough"
            texts.append(f"{fade[joint]:.0%} of the torque: {reason}" if reason else state)
        return texts

    def checks(self, topic: str) -> Iterator[Check]:
        """Whether the torque acts as the effort on this topic says."""
        failed = self.test.failed
        text = f"{topic}: {self._inactive_text(int(failed.argmax()), f'joint {JOINTS}')}" if failed.any() else ""
        yield Check(SensorFault.COMPENSATION, topic, text, failed)

    def _inactive_text(self, joint: int, name: str) -> str:
        """What the test of a joint has found, and what follows."""
        part, sigma = 100.0 * self.test.part[joint], 100.0 * self.test.sigma[joint]
        return (_INACTIVE if part > 0.0 else _NOT_MEASURED).format(abs(part), sigma, name) + _ENDED

    def set_command(self, sample: CommandSample) -> None:
        """Add a command of the controller; a stamp that jumps back drops the older ones."""
        if self._commands and sample.stamp_ns < self._commands[-1].stamp_ns:
            self._commands.clear()
        self._commands.append(sample)

    def step(self, estimate: FrictionEstimate) -> FloatArray:
        """Torque to add to the motor command from the stamp of this estimate on, (n,) [N m]; always finite."""
        elapsed = self._elapsed(estimate.stamp_ns)
        velocity, test, parameters = self._velocity_at(estimate), self.test, estimate.law.parameters
        if elapsed is None or velocity is None:
            self._torque = np.zeros(self._limit.size)
            self.compensated = np.zeros(self._limit.size, dtype=bool)
            return self._torque
        friction, tested = self._laws.torque(np.stack((parameters, test.law)), velocity, estimate.effort)
        known = 2.0 * estimate.model_sigma < np.abs(friction)
        confident = confident_torque(test.limited(friction, tested), estimate.model_sigma)
        desired = saturated(self.gain * fade_near_standstill(confident, velocity, self._fade_velocity), self._limit)
        measured = estimate.friction - estimate.external_torque
        known_friction = np.where(np.isnan(measured), estimate.friction, measured)
        self.passivity.step(estimate.position, known_friction, estimate.sigma, desired, elapsed)
        self.trusted = estimate.valid & ~self.passivity.too_large & ~self.passivity.brakes & ~test.failed
        self.fade = np.clip(
            self.fade + np.where(self.trusted, elapsed / _FADE_IN_TIME, -elapsed / _FADE_OUT_TIME), 0.0, 1.0
        )
        sends = (desired != 0.0) & (self.fade == 1.0)
        test.add(
            elapsed, self._torque, sends * friction, sends * tested, estimate.model,
            estimate.calibration_torque, measured - estimate.model,
        )  # fmt: skip
        desired = self.fade * test.levels(estimate.stamp_ns, elapsed, parameters, known) * desired
        self.idle_reason, self.compensated = "", (confident != 0.0) & (self.fade > 0.0)
        torque = saturated(self._torque + saturated(desired - self._torque, self._slew_rate * elapsed), self._limit)
        self._torque = np.where(torque == torque, torque, 0.0)  # no NaN lasts
        return self._torque

    def _elapsed(self, stamp_ns: int) -> float | None:
        """Time since the sample before [s]; None after a gap, a jump back and at the start."""
        before, self._stamp_ns = self._stamp_ns, stamp_ns
        elapsed = None if before is None else 1e-9 * (stamp_ns - before)
        if elapsed is None or not 0.0 <= elapsed <= self._timeout:
            self.idle_reason = "the joint states have just begun, or come more slowly than compensation.timeout"
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
        self.idle_reason = f"no desired velocity within {self._timeout:g} s"
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


def fade_near_standstill(torque: FloatArray, velocity: FloatArray, fade_velocity: float) -> FloatArray:
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


def saturated(values: FloatArray, limit: FloatArray | float) -> FloatArray:
    """Values within plus and minus a limit."""
    return np.minimum(np.maximum(values, -limit), limit)
