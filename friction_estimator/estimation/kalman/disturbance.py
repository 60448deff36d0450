"""External torque: the part that neither model, foot wrenches, friction nor calibration explain, within milliseconds.

A momentum observer (Lim et al. 2024, section 3.2) on the filtered joint velocities; the expected friction passes the
same low-pass. The torque is published, and large ones are pushes, during which identification pauses.
"""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.config import Config, SensorNoise
from friction_estimator.estimation.kalman.frame_friction import (
    LAW_VARIANCE,
    MODEL_ERROR_VARIANCE,
    REST_FRICTION,
    TORQUE,
    VELOCITY_VARIANCE,
    LawNow,
)
from friction_estimator.estimation.kalman.joint_motion import JointMotion
from friction_estimator.estimation.kalman.limb_bank import LimbEstimates
from friction_estimator.estimation.kalman.limb_state import Limb
from friction_estimator.estimation.observers.momentum import ResidualVariances, initial_residual, step_residual
from friction_estimator.linear_algebra import LARGEST
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import BoolArray, Dynamics, FloatArray, SensorFrame, record

GATE = 5.0
"""External torques within this many standard deviations of zero are noise."""
FRICTION_RATIO, SMALLEST_PUSH = 3.0, 1.0
"""A push exceeds SMALLEST_PUSH [N m] plus this many times the friction: smaller torques may be errors of the law."""
LONGEST_PUSH = 0.5
"""External torques that last longer are errors of the law [s]."""
PUSH_SETTLING = 0.03
"""For this long after a push the friction comes from the law alone [s]: about one time constant of the observer."""
_GAINS = 40.0, 120.0
"""Bandwidths of the momentum observer [rad/s]: a push shows within 25 ms; the friction of a joint that sticks changes
from one direction to the other within 50 ms."""
_CORRELATED = 0.2
"""Part of the filtered velocity's variance that passes the observer's differentiation: its errors are slow."""


@record(frozen=True, slots=True)
class Disturbance:
    """External torque of one instant.

    Attributes
    ----------
    torque, sigma : (n,) external torque and its standard deviation [N m]; NaN while unknown
    passed, noise : (2, n) torque behind a slow low-pass, which is ``torque``, and behind a fast one, and the part of
        their variance that the readings make [(N m)^2]
    large : (n,) True for joints where it is beyond its noise and beyond the friction; None where there is none
    wrenches : (k, 6) of the ground on the feet, calibrated [N, N m]
    """

    torque: FloatArray
    sigma: FloatArray
    passed: FloatArray
    noise: FloatArray
    large: BoolArray | None
    wrenches: FloatArray


@kernel
def is_large(torque: float, sigma: float, friction: float, gate: float, ratio: float, smallest: float) -> bool:
    """Whether an external torque is beyond its noise and beyond the friction; never with a sigma of NaN or zero."""
    size = abs(torque)
    return sigma > 0.0 and size > gate * sigma and size > ratio * abs(friction) + smallest


@kernel("M V V T V V M M M M b1 B BM f8 V b1 i8 V V M V V M M f8 f8 f8 M M V M B")
def step_disturbance(
    H: FloatArray,
    generalised_velocity: FloatArray,
    beta: FloatArray,
    J: FloatArray,
    specific_force: FloatArray,
    effort: FloatArray,
    wrenches: FloatArray,
    wrench_bias: FloatArray,
    wrench_gain: FloatArray,
    residual_state: FloatArray,
    imu_fresh: bool,
    wrench_fresh: BoolArray,
    limb: BoolArray,
    dt: float,
    gains: FloatArray,
    forward: bool,
    base: int,
    joint_velocity: FloatArray,
    velocity_std: FloatArray,
    law: FloatArray,
    calibration_torque: FloatArray,
    calibration_variance: FloatArray,
    residual_variance: FloatArray,
    low_pass: FloatArray,
    gate: float,
    ratio: float,
    smallest: float,
    calibrated: FloatArray,
    passed: FloatArray,
    sigma: FloatArray,
    noise: FloatArray,
    large: BoolArray,
) -> bool:
    """External torque: the expected friction behind the observer's low-pass, less the residual; True if one is large.

    The fast low-pass gets the input of the slow one, which follows from two of its outputs.

    Parameters
    ----------
    H, ..., base : of :func:`~friction_estimator.estimation.observers.momentum.step_residual`
    gains : (2,) bandwidths of the slow and the fast low-pass [rad/s]
    wrench_bias, wrench_gain : (k, 6) of the foot sensors, taken away first
    joint_velocity, velocity_std : (n,) filtered, in place of that in ``generalised_velocity``
    law : (9, n) terms of :class:`LawNow`
    calibration_torque, calibration_variance : (n,) that errors of model and sensors explain [N m], [(N m)^2]
    residual_variance : (2, n) of the residual behind both; NaN while unknown [(N m)^2]
    low_pass : (4, n) state: filtered signal, NaN before the first sample, the newest signal, and ``passed``
    gate, ratio, smallest : a torque is large beyond this many sigma, and this many times the friction plus a torque
    calibrated : (k, 6) output: wrenches without bias and gain error
    passed, sigma, noise, large : (2, n), (n,), (2, n), (n,) output
    """
    v, torque = generalised_velocity.copy(), passed[0]
    filtered, last, slow, fast = low_pass[0], low_pass[1], low_pass[2], low_pass[3]
    for i in range(effort.size):
        v[base + i] = joint_velocity[i]
    for foot in range(wrenches.shape[0]):
        for axis in range(6):
            reading = wrenches[foot, axis] - wrench_bias[foot, axis]
            calibrated[foot, axis] = reading * (1.0 - wrench_gain[foot, axis])
    step_residual(
        H, v, beta, J, specific_force, effort, calibrated, residual_state, imu_fresh, wrench_fresh, limb, dt, gains[0],
        forward, base, torque,
    )  # fmt: skip
    decay, fast_decay, found = math.exp(-gains[0] * dt), math.exp(-gains[1] * dt), False
    for i in range(effort.size):
        expected = law[TORQUE, i] + calibration_torque[i]
        if not abs(filtered[i] + last[i]) <= LARGEST:
            filtered[i] = expected
        elif dt > 0.0:
            filtered[i] = decay * filtered[i] + (1.0 - decay) * 0.5 * (expected + last[i])
        last[i] = expected
        torque[i] = filtered[i] - torque[i]
        variance = law[LAW_VARIANCE, i] + law[VELOCITY_VARIANCE, i] + calibration_variance[i]
        variance += law[MODEL_ERROR_VARIANCE, i]
        sigma[i] = math.sqrt(residual_variance[0, i] + variance) if math.isfinite(torque[i]) else math.nan
        if not abs(slow[i] + fast[i]) <= LARGEST:
            fast[i] = torque[i]
        elif dt > 0.0:
            now = (torque[i] - decay * slow[i]) / (1.0 - decay)
            fast[i] = fast_decay * fast[i] + (1.0 - fast_decay) * now
        slow[i], passed[1, i] = torque[i], fast[i]
        for row in range(2):
            by_velocity = gains[row] * H[base + i, base + i] * velocity_std[i]
            noise[row, i] = residual_variance[row, i] + by_velocity * by_velocity
        large[i] = is_large(torque[i], sigma[i], max(abs(law[TORQUE, i]), law[REST_FRICTION, i]), gate, ratio, smallest)
        found = found or large[i]
    return found


class DisturbanceObserver:
    """The observer of the external torque.

    Parameters
    ----------
    config : ``momentum.input_hold``, ``sensors``
    robot : the model that also made the :class:`Dynamics`
    """

    def __init__(self, config: Config, robot: RobotModel) -> None:
        self._settings = np.array(_GAINS), config.momentum.inputs_are_held, robot.base_dofs
        self._limb, self._shape = robot.limb, (len(robot.joint_names), len(robot.foot_names))
        self._variances = [ResidualVariances(config.sensors, gain, robot) for gain in _GAINS]
        self.reset()

    def retune(self, noise: SensorNoise) -> None:
        """Use the standard deviations of this noise from now on."""
        for variances in self._variances:
            variances.retune(noise)

    def reset(self) -> None:
        """Begin anew."""
        n = self._shape[0]
        self._state = initial_residual(n)
        self._low_pass: FloatArray = np.full((4, n), np.nan)
        self._residual_variance: FloatArray = np.full((2, n), np.nan)
        for variances in self._variances:
            variances.reset()

    def step(
        self, frame: SensorFrame, dynamics: Dynamics, motion: JointMotion, law: LawNow, estimates: LimbEstimates
    ) -> Disturbance:
        """Torque on the joints from outside, and the calibrated wrenches.

        Parameters
        ----------
        motion, law, estimates : filtered motion of the joints, law at that motion, calibration
        """
        n, k = self._shape
        for row, variances in enumerate(self._variances):
            if variances.due(frame.dt):
                variances.compute(frame, dynamics, _CORRELATED * float((motion.velocity_std**2).mean()))
                self._residual_variance[row] = variances.white
        wrenches, passed, noise = np.empty((k, 6)), np.empty((2, n)), np.empty((2, n))
        sigma, large = np.empty(n), np.empty(n, dtype=bool)
        found = step_disturbance(
            dynamics.mass_matrix,
            dynamics.velocity,
            dynamics.momentum_bias,
            dynamics.foot_jacobian,
            dynamics.specific_force,
            frame.effort,
            frame.wrenches,
            estimates.wrench_bias,
            estimates.wrench_gain,
            self._state,
            frame.imu_fresh,
            frame.wrench_fresh,
            self._limb,
            frame.dt,
            *self._settings,
            motion.velocity,
            motion.velocity_std,
            law.terms,
            estimates.calibration_torque,
            estimates.calibration_variance,
            self._residual_variance,
            self._low_pass,
            GATE,
            FRICTION_RATIO,
            SMALLEST_PUSH,
            wrenches,
            passed,
            sigma,
            noise,
            large,
        )
        return Disturbance(passed[0], sigma, passed, noise, large if found else None, wrenches)


class DisturbanceWatch:
    """Notices pushes, limb by limb.

    Parameters
    ----------
    limbs : joints that are judged together
    joint_count : n

    Attributes
    ----------
    pushed : (n,) True while the limb of a joint is pushed, and a little longer
    """

    def __init__(self, limbs: tuple[Limb, ...], joint_count: int) -> None:
        self._limbs = limbs
        self._joint_count = joint_count
        self.reset()

    def reset(self) -> None:
        """Nothing has happened."""
        count = len(self._limbs)
        self._since_push, self._pushed_for = [math.inf] * count, [0.0] * count
        self._time, self._released_at = 0.0, [-math.inf] * count
        self._calm = True
        self.pushed: BoolArray = np.zeros(self._joint_count, dtype=bool)

    def step(self, large: BoolArray | None, dt: float) -> list[int]:
        """Judge one instant; return the limbs whose push has lasted too long to be one.

        Parameters
        ----------
        large : (n,) joints with a large external torque; None where there is none
        """
        lasting: list[int] = []
        self._time += dt
        if self._calm and large is None:
            return lasting
        self.pushed = self.pushed.copy()  # the array of the instant before has left
        for index, limb in enumerate(self._limbs):
            rows = limb.joints
            if self._push(index, large is not None and bool(large[rows].any()), dt):
                lasting.append(index)
            self.pushed[rows] = self._since_push[index] < PUSH_SETTLING
        self._calm = not self.pushed.any()
        return lasting

    def _push(self, index: int, large: bool, dt: float) -> bool:
        """Follow a push; True when it has lasted too long to be one. Then nothing is a push for as long again."""
        large = large and not self._time - self._released_at[index] <= LONGEST_PUSH
        self._since_push[index] = 0.0 if large else self._since_push[index] + dt
        if self._since_push[index] >= PUSH_SETTLING:
            self._pushed_for[index] = 0.0
            return False
        self._pushed_for[index] += dt
        if self._pushed_for[index] < LONGEST_PUSH:
            return False
        self._since_push[index], self._released_at[index] = math.inf, self._time
        return True
