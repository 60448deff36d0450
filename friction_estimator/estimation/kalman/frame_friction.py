"""Friction of one frame: law at the filtered motion, plus the model error, corrected by the friction of the instant.

Law. The velocity is known to a standard deviation only, so that friction is its mean over the uncertain velocity.

Correction. A joint that crosses zero, or sticks and chatters, turns its friction around within milliseconds. No filter
follows, and the law follows only as well as the velocity is known. But while its foot stands firmly, foot-base sensor
estimation (Hashlamon & Erbatur 2014, section 5) measures the friction of the instant: noisy, and far better than an
unknown sign. Both are weighed by their variances. A foot that lands, lifts off or chatters is no firm ground to the
method: it moves, and errors are newton metres. Legs in the air and arms have no such ground: the momentum observer of
the external torque corrects them, later and by less.

Chatter. A joint that dry friction holds back may reverse from one reading to the next, by less than a step of its
encoder. The filtered velocity is then that of the mean motion, and the friction of the instant may be the opposite one.
How far the velocity of the instant is from the filtered one is found from how far the friction of the instant is from
the law.
"""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.config import Config, SensorNoise
from friction_estimator.estimation.kalman.joint_motion import JointMotion
from friction_estimator.estimation.kalman.limb_bank import LimbEstimates
from friction_estimator.estimation.kalman.limb_state import part_at_rest
from friction_estimator.estimation.observers.fbse import FootBaseSensorEstimation
from friction_estimator.laws.joint_laws import JointLaws, advance_strain, expected_friction
from friction_estimator.linear_algebra import bounded
from friction_estimator.robot.model import RobotModel
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import (
    Attitude,
    BoolArray,
    ContactPhase,
    Dynamics,
    FloatArray,
    IntArray,
    SensorFrame,
    record,
)

# Rows of LawNow.terms
REGRESSOR_VARIANCE, TORQUE, MODEL_ERROR, LAW_VARIANCE = range(4)
VELOCITY_VARIANCE, FRICTION_VARIANCE, MODEL_ERROR_VARIANCE, REST_VARIANCE, REST_FRICTION = range(4, 9)

ANYWHERE = 1.0 / 3.0
"""Variance of a strain that is anywhere between -1 and 1."""
_SLACK, _GATE = 1.5, 3.0
"""A friction of the instant above this multiple of the largest friction by the law, and this many of its standard
deviations more, is an error of a foot that slips or tilts: the method assumes that it does not accelerate."""
_LEAST_CHATTER, _MOST_CHATTER = 1e-4, 0.03
"""Bounds on the standard deviation of the velocity that no reading shows [rad/s]."""
_CHATTER_STEP = 0.02
"""Relative change of its variance by a friction of the instant that is off by a standard deviation too many."""
_FAR, _SLOW = 5.0, 0.01
"""Standard deviations of the velocity beyond which its sign is sure, and below which the law is a straight line."""
_ROOT_TWO = math.sqrt(2.0)
_REACH = 3.0
"""Standard deviations of the velocity within which a joint may have reversed."""
_LAGS = 0.3, 0.1
"""Part of the variance by the uncertain velocity that the slow and the fast low-pass of the momentum observer miss: a
joint may begin to move as fast as the observer follows. With it, sigma is right for 14-bit encoders."""
_SAMPLING_ERROR = 0.3e-3
"""Time by which velocity and torque of a message may be apart [s]: within it, the friction of a joint that sticks turns
around when it stops hard."""
CORRECTION_THRESHOLD = 0.2
"""Friction whose standard deviation from the velocity is below this is not corrected [N m]: the method is noisier."""


@record(frozen=True, slots=True)
class LawNow:
    """The law at the present velocity, which is known to a standard deviation only.

    Attributes
    ----------
    regressor : (n, p) mean over the uncertain velocity, motor by motor
    terms : (9, n) rows as named at the top of this file: variance of the motors' torque from the uncertain velocity;
        torque and model error of the joints [N m]; variance of the torque from its parameters, variance from the
        uncertain velocity, variance of torque plus model error from both estimates, and variance of the model error
        while nothing is measured [(N m)^2]; largest friction that may hold the joint, as far as it rests now [N m]
    """

    regressor: FloatArray
    terms: FloatArray


@kernel("IT M V M V V V V V T V V V V V f8 V M M M M IM M M M")
def law_at_motion(
    codes: IntArray,
    scales: FloatArray,
    finest: FloatArray,
    parameters: FloatArray,
    model_error: FloatArray,
    model_error_variance: FloatArray,
    sliding_variance: FloatArray,
    rest_part: FloatArray,
    dry_friction: FloatArray,
    covariance: FloatArray,
    position: FloatArray,
    velocity: FloatArray,
    velocity_std: FloatArray,
    before: FloatArray,
    effort: FloatArray,
    dt: float,
    ripples: FloatArray,
    strain: FloatArray,
    unknown: FloatArray,
    from_joints: FloatArray,
    to_joints: FloatArray,
    group: IntArray,
    weights: FloatArray,
    phi: FloatArray,
    out: FloatArray,
) -> None:
    """Write the fields of :class:`LawNow`: the regressor ``phi`` (n, p) and the terms ``out`` (9, n).

    The standard deviation of the velocity of a joint whose friction is free at rest gets, in place, what the velocity
    changes within the time that velocity and torque of a message may be apart.

    Parameters
    ----------
    codes, scales, finest : of the laws
    parameters, model_error, ..., covariance : of :class:`LimbEstimates`
    position, velocity, velocity_std, effort : (n,) of the joints
    before : (n,) velocity of the frame before, in place
    dt : time since the frame before [s]
    ripples : (n,) periods of the motors' friction in a turn; (0,) without ripple
    strain, unknown : (n, s) Dahl strains of the motors, and what is left of their errors at the start, in place
    from_joints, to_joints, group, weights : ``matrix``, ``to_joints``, ``group``, ``weights`` of the motors
    """
    n, g = group.shape
    p = scales.shape[1]
    work, wave = np.zeros((9, n)), np.empty((n, 2 * min(ripples.size, 1)))
    at_motors, std, load, motor_torque, motor_variance = work[0], work[1], work[2], work[3], work[4]
    part, more, present, holding = work[5], work[6], work[7], work[8]
    for joint in range(n):
        if dt > 0.0 and rest_part[joint] > 0.0:
            change = (velocity[joint] - before[joint]) * (_SAMPLING_ERROR / dt)
            velocity_std[joint] = math.sqrt(velocity_std[joint] ** 2 + change * change)
        before[joint] = velocity[joint]
    for motor in range(n):
        for a in range(g):
            joint = group[motor, a]
            if a > 0 and joint == motor:  # the group has fewer motors
                break
            at_motors[motor] += velocity[joint] * to_joints[joint, motor]
            load[motor] += effort[joint] * from_joints[joint, motor]
            std[motor] += (velocity_std[joint] * to_joints[joint, motor]) ** 2
        std[motor] = math.sqrt(std[motor])
        advance_strain(strain[motor], unknown[motor], at_motors[motor] * dt)
        if ripples.size > 0:
            angle = 0.0
            for joint in range(n):
                angle += ripples[motor] * position[joint] * to_joints[joint, motor]
            wave[motor, 0], wave[motor, 1] = math.sin(angle), math.cos(angle)
    expected_friction(
        codes, scales, finest, parameters, at_motors, load, std, strain, wave, phi, motor_torque, motor_variance
    )
    for motor in range(n):
        error = 0.0
        for k in range(unknown.shape[1]):
            error += unknown[motor, k] * parameters[motor, p - unknown.shape[1] + k]
        motor_variance[motor] += ANYWHERE * error * error
    out[:] = 0.0
    variance, torque, missed, law_variance = out[REGRESSOR_VARIANCE], out[TORQUE], out[MODEL_ERROR], out[LAW_VARIANCE]
    velocity_variance, full = out[VELOCITY_VARIANCE], out[FRICTION_VARIANCE]
    missed_variance, rest_variance, rest_friction = out[MODEL_ERROR_VARIANCE], out[REST_VARIANCE], out[REST_FRICTION]
    variance[:] = motor_variance
    for motor in range(n):
        holding[motor] = dry_friction[motor] * part_at_rest(at_motors[motor], std[motor])
        present[motor] = sliding_variance[motor] + rest_part[motor] * holding[motor] ** 2
        if present[motor] < model_error_variance[motor]:  # the motor has left its rest
            part[motor] = math.sqrt(present[motor] / model_error_variance[motor])
        else:
            part[motor] = 1.0
            more[motor] = present[motor] - model_error_variance[motor]
    for joint in range(n):
        for a in range(g):
            motor, share = group[joint, a], weights[joint, a]
            torque[joint] += share * motor_torque[motor]
            missed[joint] += share * part[motor] * model_error[motor]
            velocity_variance[joint] += share * share * motor_variance[motor]
            missed_variance[joint] += share * share * present[motor]
            rest_variance[joint] += share * share * (present[motor] - sliding_variance[motor])
            rest_friction[joint] += abs(share) * holding[motor]
            full[joint] += share * share * more[motor]
        P = covariance[joint]
        for a in range(g):
            for b in range(g):
                share = weights[joint, a] * weights[joint, b]
                if share != 0.0:
                    left, right = phi[group[joint, a]], phi[group[joint, b]]
                    rows, columns = a * (p + 1), b * (p + 1)
                    left_part, right_part = part[group[joint, a]], part[group[joint, b]]
                    law, cross = 0.0, left_part * right_part * P[rows + p, columns + p]
                    for i in range(p):
                        row = P[rows + i]
                        product = row[columns + i] * right[i]
                        if a == b:  # symmetric
                            for j in range(i):
                                product += 2.0 * row[columns + j] * right[j]
                        else:
                            for j in range(p):
                                product += row[columns + j] * right[j] if j != i else 0.0
                        law += left[i] * product
                        cross += (
                            right_part * left[i] * row[columns + p] + left_part * P[rows + p, columns + i] * right[i]
                        )
                    law_variance[joint] += share * law
                    full[joint] += share * (law + cross)
        law_variance[joint] = max(law_variance[joint], 0.0)
        full[joint] = max(full[joint], 0.0)


def law_now(
    laws: JointLaws,
    motors: Transmission,
    estimates: LimbEstimates,
    position: FloatArray,
    motion: JointMotion,
    before: FloatArray,
    effort: FloatArray,
    dt: float,
    ripples: FloatArray,
    strain: FloatArray,
    unknown: FloatArray,
) -> LawNow:
    """Evaluate the laws of the motors for a motion of the joints and their motor torques (n,).

    In place are the standard deviation of the velocity, its value before, and the strains; see :func:`law_at_motion`.
    """
    phi, out = np.empty(laws.scales.shape), np.empty((9, effort.size))
    law_at_motion(
        laws.codes,
        laws.scales,
        laws.finest,
        estimates.parameters,
        estimates.model_error,
        estimates.model_error_variance,
        estimates.sliding_variance,
        estimates.rest_part,
        estimates.dry_friction,
        estimates.covariance,
        position,
        motion.velocity,
        motion.velocity_std,
        before,
        effort,
        dt,
        ripples,
        strain,
        unknown,
        motors.matrix,
        motors.to_joints,
        motors.group,
        motors.weights,
        phi,
        out,
    )
    return LawNow(phi, out)


@kernel("M V V V V")
def allow_for_chatter(
    law: FloatArray, velocity: FloatArray, velocity_std: FloatArray, chatter: FloatArray, rest_part: FloatArray
) -> None:
    """Let the friction be the opposite one as likely as the velocity of the instant is, in place.

    A law that is nearly a sign has the mean ``F erf(|dq| / (sqrt(2) std))`` over a velocity of this standard deviation:
    so much smaller it becomes with the chatter, and its mean square stays. A motor whose friction is free at rest
    sticks and does not chatter.

    Parameters
    ----------
    law : (9, n) terms of :class:`LawNow`
    velocity, velocity_std : (n,) of the joints by the filter
    chatter : (n,) variance of the velocity that no reading shows
    rest_part : (n,) of :class:`LimbEstimates`
    """
    for i in range(chatter.size):
        std, speed = velocity_std[i], abs(velocity[i])
        both = math.sqrt(std * std + chatter[i])
        if chatter[i] > _LEAST_CHATTER**2 and rest_part[i] <= 0.0 < std and speed < _FAR * both:
            if speed > _SLOW * std:
                scale = math.erf(speed / (_ROOT_TWO * both)) / math.erf(speed / (_ROOT_TWO * std))
            else:
                scale = std / both
            law[VELOCITY_VARIANCE, i] += (1.0 - scale * scale) * law[TORQUE, i] ** 2
            law[TORQUE, i] *= scale


@kernel("M V V V B f8 B M")
def combine_law_and_model_error(
    law: FloatArray,
    external: FloatArray,
    unmodelled: FloatArray,
    measured_at: FloatArray,
    pushed: BoolArray,
    oldest: float,
    measured: BoolArray,
    out: FloatArray,
) -> float:
    """Law plus model error, or the law alone while nothing can be measured.

    Parameters
    ----------
    law : (9, n) terms of :class:`LawNow`
    external : (n,) residual torque of the disturbance observer [N m]
    unmodelled : (n,) variance of the torque that neither law nor calibration represents [(N m)^2]
    measured_at : (n,) when a window was last used [s]; before ``oldest`` the model error is not known any more
    pushed : (n,) joints that something pushes
    measured : (n,) output
    out : (6, n) output: friction, sigma, model sigma, external torque [N m]; variance of the friction without the part
        of the uncertain velocity, and that part where the friction of the instant may correct it, else zero [(N m)^2]

    Returns
    -------
    Largest variance that may be corrected [(N m)^2]; NaN where the friction or a standard deviation is not finite
    """
    friction, sigma, model_sigma = out[0], out[1], out[2]
    external_torque, variance, correctable = out[3], out[4], out[5]
    velocity_variance, largest = law[VELOCITY_VARIANCE], 0.0
    for i in range(unmodelled.size):
        measured[i] = measured_at[i] > oldest and not pushed[i]
        missed = law[MODEL_ERROR, i] if measured[i] else 0.0
        alone = law[LAW_VARIANCE, i] + law[MODEL_ERROR_VARIANCE, i] + unmodelled[i]
        variance[i] = law[FRICTION_VARIANCE, i] + unmodelled[i] if measured[i] else alone
        if pushed[i] and math.isfinite(external[i]):  # a part of what pushes may be friction
            variance[i] += min(abs(external[i]), abs(law[TORQUE, i]) + law[REST_FRICTION, i]) ** 2
        friction[i] = law[TORQUE, i] + missed
        sigma[i] = math.sqrt(variance[i] + velocity_variance[i])
        model_sigma[i] = math.sqrt(alone + velocity_variance[i])
        external_torque[i] = external[i] + missed
        correctable[i] = 0.0
        if measured[i]:
            at_rest = min(law[REST_VARIANCE, i], law[FRICTION_VARIANCE, i])
            variance[i] -= at_rest
            correctable[i] = velocity_variance[i] + at_rest
            largest = max(largest, correctable[i])
    return largest if bounded(friction) and bounded(sigma) and bounded(model_sigma) else math.nan


@kernel("V V V V V V V V B V V V")
def weigh_measurement(
    friction: FloatArray,
    velocity_variance: FloatArray,
    other_variance: FloatArray,
    velocity: FloatArray,
    velocity_std: FloatArray,
    chatter: FloatArray,
    measured: FloatArray,
    sigma: FloatArray,
    known: BoolArray,
    calibration_torque: FloatArray,
    calibration_variance: FloatArray,
    dry_friction: FloatArray,
) -> None:
    """Weigh the estimate (n,) against the measurement where that is known and can be friction, in place.

    The variance of the chatter grows while the squared differences between both exceed their variance, and falls
    otherwise, as much as that of the velocity counts in it. A measurement far outside holds for a joint that chatters:
    it has reversed. Joints at rest show nothing, because friction may hold them with any torque.

    Parameters
    ----------
    friction, velocity_variance, other_variance : estimate, the part of its variance that the uncertain velocity makes,
        and the other part; nothing is learned from estimates whose velocity may not be corrected
    velocity, velocity_std : of the joints by the filter
    chatter : variance of the velocity that no reading shows, in place
    measured, sigma, known : of :class:`~friction_estimator.types.MeasuredFriction`
    calibration_torque, calibration_variance : torque that the other errors of model and sensors make
    dry_friction : largest friction that may hold the joint
    """
    for joint in range(friction.size):
        if known[joint] and math.isfinite(measured[joint] * sigma[joint]):
            variance = sigma[joint] ** 2 + calibration_variance[joint]
            torque = measured[joint] - calibration_torque[joint]
            largest = _SLACK * max(abs(friction[joint]), dry_friction[joint])
            if abs(torque) < largest + _GATE * math.sqrt(variance):
                if velocity_variance[joint] > 0.0:
                    square, speed = (torque - friction[joint]) ** 2, velocity[joint] ** 2 / _REACH**2
                    total = velocity_variance[joint] + other_variance[joint] + variance
                    far = square > _GATE**2 * total
                    part = 1.0 if far else velocity_variance[joint] / total
                    part *= 1.0 - part_at_rest(velocity[joint], 0.0)
                    part /= 1.0 + (speed / (velocity_std[joint] ** 2 + chatter[joint])) ** 2
                    if far:
                        reversed = 1.0 / (1.0 + (speed / chatter[joint]) ** 2)
                        velocity_variance[joint] = max(velocity_variance[joint], reversed * square)
                    change = math.exp(_CHATTER_STEP * part * (min(square / total, _GATE**2) - 1.0))
                    chatter[joint] = min(max(change * chatter[joint], _LEAST_CHATTER**2), _MOST_CHATTER**2)
                gain = velocity_variance[joint] / (velocity_variance[joint] + variance)
                friction[joint] += gain * (torque - friction[joint])
                velocity_variance[joint] *= 1.0 - gain


@kernel("V V B M M V")
def weigh_residual(
    friction: FloatArray,
    velocity_variance: FloatArray,
    measured: BoolArray,
    external: FloatArray,
    noise: FloatArray,
    dry_friction: FloatArray,
) -> None:
    """Weigh the estimate (n,) against the torque that a momentum observer does not explain with it, in place.

    Parameters
    ----------
    friction, velocity_variance : estimate, and the part of its variance that the uncertain velocity makes
    measured : joints that foot-base sensor estimation has measured: it needs no momentum, and no low-pass
    external, noise : (2, n) torque that the estimate leaves to be explained, behind the slow and the fast low-pass of
        the observer [N m], and the variance that the readings make in it; NaN: unknown. The better one counts
    dry_friction : largest friction that may hold the joint
    """
    for joint in range(friction.size):
        unsure = velocity_variance[joint]
        slow, fast = noise[0, joint] + _LAGS[0] * unsure, noise[1, joint] + _LAGS[1] * unsure
        variance, missed = (fast, external[1, joint]) if fast < slow else (slow, external[0, joint])
        if unsure > CORRECTION_THRESHOLD**2 and not measured[joint] and math.isfinite(variance * missed):
            largest = _SLACK * max(abs(friction[joint]), dry_friction[joint])
            if abs(friction[joint] - missed) < largest + _GATE * math.sqrt(variance):
                gain = unsure / (unsure + variance)
                friction[joint] -= gain * missed
                velocity_variance[joint] *= 1.0 - gain


class InstantCorrection:
    """Corrects an estimate whose error comes from an uncertain velocity, by the friction of the instant.

    Parameters
    ----------
    config : ``fbse``, ``sensors``
    robot : the model that also made the :class:`Dynamics`

    Attributes
    ----------
    chatter : (n,) variance of the joint velocities that no reading shows [rad^2/s^2]
    """

    def __init__(self, config: Config, robot: RobotModel) -> None:
        self.chatter: FloatArray = np.full(len(robot.joint_names), _LEAST_CHATTER**2)
        self._walks = bool(robot.base_dofs) and bool(robot.foot_names)
        self._observer = FootBaseSensorEstimation(config, robot)

    def reset(self) -> None:
        """Begin anew."""
        self._observer.reset()

    def retune(self, noise: SensorNoise) -> None:
        """Use the standard deviations of this noise from now on."""
        self._observer.retune(noise)

    def correct(
        self,
        friction: FloatArray,
        velocity_variance: FloatArray,
        other_variance: FloatArray,
        motion: JointMotion,
        frame: SensorFrame,
        wrenches: FloatArray,
        external: FloatArray,
        noise: FloatArray,
        attitude: Attitude,
        phase: ContactPhase,
        transition: BoolArray,
        dynamics: Dynamics,
        calibration: tuple[FloatArray, FloatArray],
        dry_friction: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Weigh the estimate against the measurement of the instant.

        Parameters
        ----------
        friction : (n,) the estimate [N m]
        velocity_variance : (n,) the part of its variance that the uncertain velocity makes, zero where nothing shall be
            corrected [(N m)^2]
        other_variance : (n,) the other part
        motion : of the joints by the filter
        wrenches : (k, 6) of the ground on the feet, calibrated
        external, noise : (2, n) of :func:`weigh_residual`
        frame, attitude, phase, dynamics : outputs of the stages before
        transition : (n,) joints whose foot lands or lifts off
        calibration : torque that the other errors of model and sensors make, and its variance, (n,), (n,)
        dry_friction : (n,) largest friction that may hold each joint [N m]

        Returns
        -------
        friction, velocity_variance : (n,), (n,) what is left of it
        """
        corrected, left, standing = friction.copy(), velocity_variance.copy(), np.zeros(friction.size, dtype=bool)
        if self._walks:
            measured = self._observer.measure(frame, wrenches, attitude, phase, dynamics)
            known = other_variance, motion.velocity, motion.velocity_std, self.chatter
            standing = measured.available & ~transition
            quantities = measured.friction, measured.sigma, standing
            weigh_measurement(corrected, left, *known, *quantities, *calibration, dry_friction)
        weigh_residual(corrected, left, standing, external, noise, dry_friction)
        return corrected, left
