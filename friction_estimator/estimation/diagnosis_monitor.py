"""Sums over the newest estimates of all joints, at a low rate, from which the diagnosis is made.

    estimate ─► moving? pushed? friction that drives? ─► FadingMean ─┐
             ─► normalised innovation squared ─► Innovations ────────┼─► DiagnosisFigures
             ─► torque of the law of the start and of now ─► LawDrift ┘

Compiled kernels add to the sums. The figures are computed from them on request, once a second in the node.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from friction_estimator.compiled import kernel
from friction_estimator.config import DiagnosisConfig
from friction_estimator.config.robot import SURE_SIGN
from friction_estimator.estimation.diagnosis import EVIDENCE, MOVED_LONG, UNLEARNED, DiagnosisFigures
from friction_estimator.laws.joint_laws import JointLaws, LawTable, regressor_of_motors
from friction_estimator.linear_algebra import LARGEST, bounded
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import BoolArray, FloatArray, FrictionEstimate

_SLOWEST = 0.02
"""A joint moves above this speed [rad/s]: below it static friction decides."""
_PASSIVITY_GATE = 3.0
"""Friction drives a joint when it points along the motion by more than this many standard deviations; an external
torque pushes it when it is larger than this many."""
_KNOWN = 0.4
"""A law becomes the reference for drift once its standard deviation is below this fraction of its torque; a fifth is
that of friction which differs between the directions."""
_CONFIDENCE = 0.999
"""Probability below the upper end of the chi-square band of the mean innovation."""
_CONSISTENCY_SLACK = 1.15
"""Factor on the upper end of that band: innovations of a low-passed measurement are not independent."""
_LARGEST_INNOVATION = 5.0
"""Larger innovations count as this many standard deviations: impacts are no error of the noise model."""
PERIOD = 0.01
"""Time between the estimates that the diagnosis uses [s]."""
_KNOWN_FOR = 0.8
"""Part of the newest moving time for which a law must have been known to become the law of the start."""


@dataclass(frozen=True, slots=True)
class RecordedEstimate:
    """The fields of a :class:`~friction_estimator.types.FrictionEstimate` that the diagnosis needs.

    Attributes
    ----------
    stamp_ns : stamp of the joint sample [ns]
    velocity, effort : (n,) of the joints [rad/s], [N m]
    friction, sigma : (n,) the estimate and its standard deviation [N m]
    external_torque, external_torque_sigma : (n,) of the disturbance observer [N m]
    model, model_sigma : (n,) torque of the law and its standard deviation [N m]
    parameters, parameters_sigma : (n, p) of the laws
    consistency : (n,) newest normalised innovation squared; NaN while there is none
    calibration_torque : (n,) that errors of model and sensors explain [N m]
    disturbed : (n,) True while a push stops the identification of the joint
    """

    stamp_ns: int
    velocity: FloatArray
    effort: FloatArray
    friction: FloatArray
    sigma: FloatArray
    external_torque: FloatArray
    external_torque_sigma: FloatArray
    model: FloatArray
    model_sigma: FloatArray
    parameters: FloatArray
    parameters_sigma: FloatArray
    consistency: FloatArray
    calibration_torque: FloatArray
    disturbed: BoolArray


@kernel
def _fade(sums: FloatArray, joint: int, keep: float, counts: bool) -> None:
    """Reduce the weight of the older samples of a joint in :class:`FadingMean`, and count a new one.

    Sums that are not finite begin anew: a quantity may be unknown, and then is NaN in every sample.
    """
    last = sums.shape[0] - 1
    if not bounded(sums[last - 1 :, joint]):
        sums[:, joint] = 0.0
    for row in range(last - 1):
        sums[row, joint] = keep * sums[row, joint] if abs(sums[row, joint]) <= LARGEST else 0.0
    one = 1.0 if counts else 0.0
    sums[last - 1, joint] = keep * keep * sums[last - 1, joint] + one
    sums[last, joint] = keep * sums[last, joint] + one


class FadingMean:
    """Means of ``r`` quantities of ``n`` joints over the samples that count for a joint, with fading weights.

    Parameters
    ----------
    rows, joints : r, n

    Attributes
    ----------
    sums : (r + 2, n) weighted sums, then sums of the squared weights and of the weights of the samples; the newest
        sample has the weight one. Kernels add to it.
    """

    def __init__(self, rows: int, joints: int) -> None:
        self.sums = np.zeros((rows + 2, joints))

    @property
    def weight(self) -> FloatArray:
        """(n,) sum of the weights."""
        return self.sums[-1]

    @property
    def mean(self) -> FloatArray:
        """(r, n); NaN for a joint without samples."""
        weight = np.where(self.weight > 0.0, self.weight, np.nan)
        return np.asarray(self.sums[:-2] / weight)

    @property
    def effective_count(self) -> FloatArray:
        """(n,) number of samples of equal weight whose mean is as certain as this one."""
        squares = self.sums[-2]
        return np.asarray(self.weight**2 / np.where(squares > 0.0, squares, 1.0))


@kernel("V V M f8 f8", unchecked=True)
def add_innovations(
    newest: FloatArray,
    consistency: FloatArray,
    sums: FloatArray,
    largest: float,
    keep: float,
) -> None:
    """Add normalised innovations squared (n,), cut at ``largest``, where they differ from ``newest``, in place."""
    for joint in range(newest.size):
        fresh = math.isfinite(consistency[joint]) and consistency[joint] != newest[joint]
        newest[joint] = consistency[joint]
        _fade(sums, joint, keep, fresh)
        if fresh:
            sums[0, joint] += min(consistency[joint], largest)


class Innovations:
    """Windowed test of the normalised innovation squared (NIS; Bar-Shalom, Li & Kirubarajan 2001, section 5.4.2).

    Parameters
    ----------
    joints : n
    """

    def __init__(self, joints: int) -> None:
        self._mean = FadingMean(1, joints)
        self._newest: FloatArray = np.full(joints, np.nan)

    def add(self, consistency: FloatArray, keep: float) -> None:
        """Add the newest NIS (n,); one that has not changed is an old one and does not count again."""
        add_innovations(self._newest, consistency, self._mean.sums, _LARGEST_INNOVATION**2, keep)

    @property
    def count(self) -> FloatArray:
        """(n,) number of innovations that count."""
        return self._mean.weight

    def mean_and_limit(self) -> tuple[FloatArray, FloatArray]:
        """Mean NIS (n,), and the upper end of its chi-square band (n,).

        The sum of N independent NIS of one joint has N degrees of freedom. Those of a low-passed measurement are not
        independent; then the band is wider than this, and ``_CONSISTENCY_SLACK`` has to cover it.
        """
        count = np.maximum(self._mean.effective_count, 1.0)
        limit = _CONSISTENCY_SLACK * chdtri(count, 1.0 - _CONFIDENCE) / count
        return self._mean.mean[0], limit


@kernel("V V M V B B LawTable M M f8 f8 f8 f8 M V V M M", unchecked=True)
def add_law_change(
    velocity: FloatArray,
    effort: FloatArray,
    parameters: FloatArray,
    model_sigma: FloatArray,
    counts: BoolArray,
    known_at_start: BoolArray,
    laws: LawTable,
    from_joints: FloatArray,
    to_joints: FloatArray,
    known_ratio: float,
    enough: float,
    keep_known: float,
    keep: float,
    reference: FloatArray,
    reference_variance: FloatArray,
    seen_speed: FloatArray,
    known_sums: FloatArray,
    change_sums: FloatArray,
) -> None:
    """Compare the laws of the start and of now at one instant, in place: see :class:`LawDrift`.

    Parameters
    ----------
    velocity, effort, model_sigma : (n,) of the joints
    parameters : (n, p) motor by motor
    counts : (n,) joints that move, and that nothing pushes
    from_joints, to_joints : ``matrix`` and ``to_joints`` of the motors
    known_ratio : a law is known when its sigma is below this part of its torque
    enough : samples after which a law that was known in most of them becomes the law of the start
    """
    n, p = laws.scales.shape
    phi, torque, change = np.empty((n, p)), np.zeros(n), np.zeros(n)
    law, motor_law = np.zeros(n), np.zeros(n)
    regressor_of_motors(laws, from_joints, to_joints, velocity, effort, phi)
    for motor in range(n):
        for i in range(p):
            motor_law[motor] += phi[motor, i] * parameters[motor, i]
    for joint in range(n):
        for motor in range(n):
            law[joint] += to_joints[joint, motor] * motor_law[motor]
        known = model_sigma[joint] < known_ratio * abs(law[joint])
        _fade(known_sums, joint, keep_known, counts[joint])
        if counts[joint] and known:
            known_sums[0, joint] += 1.0
        if math.isnan(reference[joint, 0]):
            if counts[joint] and known:
                seen_speed[joint] = max(seen_speed[joint], abs(velocity[joint]))
            often = known_sums[2, joint] > enough and known_sums[0, joint] > _KNOWN_FOR * known_sums[2, joint]
            if known_at_start[joint] or often:
                for i in range(p):
                    reference[joint, i] = parameters[joint, i]
                if known_at_start[joint]:
                    seen_speed[joint] = math.inf
                else:
                    reference_variance[joint] = model_sigma[joint] ** 2
    for motor in range(n):
        for i in range(p):
            torque[motor] += phi[motor, i] * (parameters[motor, i] - reference[motor, i])
    for joint in range(n):
        for motor in range(n):
            if to_joints[joint, motor] != 0.0:
                change[joint] += to_joints[joint, motor] * torque[motor]
        within = counts[joint] and abs(velocity[joint]) <= seen_speed[joint] and math.isfinite(change[joint])
        _fade(change_sums, joint, keep, within)
        if within:
            change_sums[0, joint] += change[joint] ** 2
            change_sums[1, joint] += model_sigma[joint] ** 2 + reference_variance[joint]
            change_sums[2, joint] += law[joint] ** 2


class LawDrift:
    """The law of the start and the law of now, at the same velocities and loads.

    Parameters of one law may trade against each other without any change of its torque; so torques are compared, and
    only at speeds that the law of the start had seen. A law that starts from nothing is "of the start" as soon as it is
    known well enough; one of an earlier run is at once, and for all speeds.

    Parameters
    ----------
    period : time between the estimates [s]
    laws : friction laws of the motors
    motors : that move the joints, in whose torque the laws are compared
    """

    def __init__(self, period: float, laws: JointLaws, motors: Transmission) -> None:
        self._enough = _KNOWN_FOR * EVIDENCE / period
        self._tables = laws.table, motors.matrix, motors.to_joints
        n, p = laws.table.scales.shape
        self._keep_known = math.exp(-period / max(EVIDENCE, period))
        self._reference, self._reference_variance = np.full((n, p), np.nan), np.zeros(n)
        self._seen_speed = np.zeros(n)
        self.restart()

    def restart(self) -> None:
        """Drop the newest samples; the law of the start stays."""
        n = self._seen_speed.size
        self._change, self._known = FadingMean(3, n), FadingMean(1, n)

    def add(
        self, estimate: FrictionEstimate | RecordedEstimate, counts: BoolArray, known_at_start: BoolArray, keep: float
    ) -> None:
        """Compare at one instant, for the joints (n,) that count."""
        add_law_change(
            estimate.velocity,
            estimate.effort,
            estimate.parameters,
            estimate.model_sigma,
            counts,
            known_at_start,
            *self._tables,
            _KNOWN,
            self._enough,
            self._keep_known,
            keep,
            self._reference,
            self._reference_variance,
            self._seen_speed,
            self._known.sums,
            self._change.sums,
        )

    @property
    def mean(self) -> FloatArray:
        """(3, n) mean squared change of the law's torque, its variance, mean squared torque of the law [(N m)^2]."""
        return self._change.mean

    @property
    def weight(self) -> FloatArray:
        """(n,) weight of the samples in these means."""
        return self._change.weight


@kernel("V V V V V V B M M f8 f8 f8 f8 V M M B", unchecked=True)
def add_motion(
    velocity: FloatArray,
    friction: FloatArray,
    sigma: FloatArray,
    external_torque: FloatArray,
    external_torque_sigma: FloatArray,
    calibration_torque: FloatArray,
    disturbed: BoolArray,
    from_joints: FloatArray,
    to_joints: FloatArray,
    slowest: float,
    gate: float,
    elapsed: float,
    keep: float,
    moving_time: FloatArray,
    always_sums: FloatArray,
    moving_sums: FloatArray,
    counts: BoolArray,
) -> None:
    """Count pushes, and where joints move without one: whether friction drives, its square, that of calibration.

    A push stops the identification of a whole limb, and counts for the joints where the external torque is beyond its
    noise and beyond the friction.

    Friction drives where it has the sign against the velocity beyond its noise (Egle 2021, eq. 7.9). This is judged at
    the motors: friction of a motor that moves several joints may well drive one of them.

    Parameters
    ----------
    velocity, ..., disturbed : (n,) of the estimate
    from_joints, to_joints : ``matrix`` and ``to_joints`` of the motors
    slowest : a joint moves above this speed [rad/s]
    gate : standard deviations beyond which friction drives, or an external torque is a push
    elapsed : time since the sample before [s]
    moving_time : (n,) in place [s]
    counts : (n,) output: joints that move, and that nothing pushes
    """
    n = velocity.size
    for joint in range(n):
        moving = abs(velocity[joint]) > slowest
        counts[joint] = moving and not disturbed[joint]
        if moving:
            moving_time[joint] += elapsed
        _fade(always_sums, joint, keep, True)
        external = abs(external_torque[joint])
        if disturbed[joint] and external > max(gate * external_torque_sigma[joint], abs(friction[joint])):
            always_sums[0, joint] += 1.0
        _fade(moving_sums, joint, keep, counts[joint])
        if counts[joint]:
            at, torque, variance = 0.0, 0.0, 0.0
            for other in range(n):
                at += velocity[other] * to_joints[other, joint]
                torque += friction[other] * from_joints[other, joint]
                variance += (sigma[other] * from_joints[other, joint]) ** 2
            if -torque * np.sign(at) > gate * math.sqrt(variance) and abs(at) > slowest:
                moving_sums[0, joint] += 1.0
            moving_sums[1, joint] += friction[joint] ** 2
            moving_sums[2, joint] += calibration_torque[joint] ** 2


@kernel("V V V V B B V f8 f8 f8 M M", unchecked=True)
def add_phase(
    velocity: FloatArray,
    friction: FloatArray,
    sigma: FloatArray,
    model: FloatArray,
    disturbed: BoolArray,
    stands: BoolArray,
    moving_time: FloatArray,
    settled: float,
    slowest: float,
    keep: float,
    stance_sums: FloatArray,
    swing_sums: FloatArray,
) -> None:
    """Add the squares of friction and sigma, and of friction and model error of moving joints, in stance or in swing.

    Friction at rest is any torque up to the dry friction, which no law determines: there the model error is right.
    A sigma larger than the friction (RMS) counts as the friction: that of an unknown law would outlast all others.

    Parameters
    ----------
    velocity, friction, sigma, model, disturbed : (n,) of the estimate
    stands : (n,) joints in stance
    moving_time, settled : (n,) how long each joint has moved, and from where on sigma counts: before, laws are new [s]
    slowest : a joint moves above this speed [rad/s]
    keep : weight of the samples before
    """
    last = stance_sums.shape[0] - 1
    for joint in range(friction.size):
        counts = moving_time[joint] > settled
        for sums, in_phase in ((stance_sums, stands[joint]), (swing_sums, not stands[joint])):
            here = in_phase and not disturbed[joint]
            _fade(sums, joint, keep, counts and here)
            if counts and here:
                sums[0, joint] += friction[joint] ** 2
                sums[1, joint] += min(sigma[joint] ** 2, sums[0, joint] / sums[last, joint])
            if here and abs(velocity[joint]) > slowest:
                sums[2, joint] += friction[joint] ** 2
                sums[3, joint] += (friction[joint] - model[joint]) ** 2


class DiagnosisMonitor:
    """Sums over the newest estimates, at a low rate and for all joints at once.

    Parameters
    ----------
    config : ``memory``
    laws : whose parameters the estimates hold
    prior_sigma : (n, p) standard deviations of the parameters before any data; NaN where unknown, zero where there is
        no such parameter
    velocity_std : noise of the velocities [rad/s]
    motors : that move the joints; None: one motor for each joint
    limb : (k, n) True where a joint lies between the base and that foot; None: one diagnosis for stance and swing
    period : time between the estimates that are used [s]
    """

    def __init__(
        self,
        config: DiagnosisConfig,
        laws: JointLaws,
        prior_sigma: FloatArray,
        velocity_std: float,
        motors: Transmission | None = None,
        limb: BoolArray | None = None,
        period: float = PERIOD,
    ) -> None:
        self._limb, self._period = limb, period
        self._motors = motors or Transmission.of(None, laws.law_names)
        self._memory = config.memory
        self._laws = laws
        self._prior_sigma: FloatArray = np.where(prior_sigma > 0.0, prior_sigma, np.nan)
        self._slowest = max(_SLOWEST, SURE_SIGN * velocity_std)
        self._joints = len(laws.law_names)
        self.forget()

    def forget(self, parameters_sigma: FloatArray | None = None) -> None:
        """Begin anew: the next estimates are the start.

        Parameters
        ----------
        parameters_sigma : (n, p) of parameters that came from an earlier run; None: nothing is known
        """
        n = self._joints
        self._drift = LawDrift(self._period, self._laws, self._motors)
        self._moving_time = np.zeros(n)
        self._known_at_start: BoolArray = np.zeros(n, dtype=bool)
        if parameters_sigma is not None:
            self._known_at_start = self._smallest_ratio(parameters_sigma) < UNLEARNED
        self._parameters_sigma: FloatArray = np.full_like(self._prior_sigma, np.nan)
        self.restart()

    def restart(self) -> None:
        """Drop the newest samples and keep the law of the start, for a robot that was set down elsewhere."""
        n = self._joints
        self._always, self._moving = FadingMean(1, n), FadingMean(3, n)
        self._stance, self._swing = FadingMean(4, n), FadingMean(4, n)
        self._innovations = Innovations(n)
        self._drift.restart()
        self._stamp_ns: int | None = None

    def add(self, estimate: FrictionEstimate | RecordedEstimate) -> None:
        """Use an estimate, unless less than the period has passed since the one before."""
        elapsed = math.inf if self._stamp_ns is None else 1e-9 * (estimate.stamp_ns - self._stamp_ns)
        if 0.0 <= elapsed < self._period * (1.0 - 1e-9):
            return
        if not 0.0 <= elapsed <= self._memory:
            elapsed = self._period
        self._stamp_ns = estimate.stamp_ns
        self._use(estimate, elapsed)

    def _use(self, estimate: FrictionEstimate | RecordedEstimate, elapsed: float) -> None:
        keep = math.exp(-elapsed / self._memory)
        counts = np.empty(self._joints, dtype=bool)
        add_motion(
            estimate.velocity,
            estimate.friction,
            estimate.sigma,
            estimate.external_torque,
            estimate.external_torque_sigma,
            estimate.calibration_torque,
            estimate.disturbed,
            self._motors.matrix,
            self._motors.to_joints,
            self._slowest,
            _PASSIVITY_GATE,
            elapsed,
            keep,
            self._moving_time,
            self._always.sums,
            self._moving.sums,
            counts,
        )
        stands: BoolArray = np.ones(self._joints, dtype=bool)
        if self._limb is not None and not isinstance(estimate, RecordedEstimate):
            stands = np.asarray((estimate.phase.contact[:, None] & self._limb).any(axis=0))
        add_phase(
            estimate.velocity,
            estimate.friction,
            estimate.sigma,
            estimate.model,
            estimate.disturbed,
            stands,
            self._moving_time,
            MOVED_LONG,
            self._slowest,
            keep,
            self._stance.sums,
            self._swing.sums,
        )
        self._innovations.add(estimate.consistency, keep)
        self._drift.add(estimate, counts, self._known_at_start, keep)
        self._parameters_sigma = estimate.parameters_sigma

    def _smallest_ratio(self, parameters_sigma: FloatArray) -> FloatArray:
        """Smallest standard deviation of a parameter over its prior, for each joint (n,)."""
        ratio = parameters_sigma / self._prior_sigma
        smallest = np.where(np.isfinite(ratio), ratio, np.inf).min(axis=1)
        return np.where(np.isfinite(smallest), smallest, np.nan)

    def figures(self) -> DiagnosisFigures:
        """Figures of the newest estimates."""
        fewest = EVIDENCE / self._period
        disturbed = _enough(self._always.mean, self._always.weight, fewest)[0]
        driving, friction, calibration = _enough(self._moving.mean, self._moving.weight, fewest)
        consistency, limit = _enough(np.stack(self._innovations.mean_and_limit()), self._innovations.count, fewest)
        drift, drift_variance, law = _enough(self._drift.mean, self._drift.weight, fewest)
        phases = np.stack([_enough(part.mean, part.weight, fewest) for part in (self._stance, self._swing)])
        squares = np.where(phases[:, ::2] > 0.0, phases[:, ::2], np.nan)
        uncertainty, law_error = np.fmax(*np.sqrt(phases[:, 1::2] / squares))
        return DiagnosisFigures(
            moving_time=self._moving_time.copy(),
            known_at_start=self._known_at_start,
            unlearned=self._smallest_ratio(self._parameters_sigma),
            driving=driving,
            friction=np.sqrt(friction),
            calibration=np.sqrt(calibration),
            disturbed=disturbed,
            consistency=consistency,
            consistency_limit=limit,
            drift=np.sqrt(drift),
            drift_sigma=np.sqrt(drift_variance),
            law=np.sqrt(law),
            uncertainty=uncertainty,
            law_error=law_error,
        )


def _enough(values: FloatArray, count: FloatArray, fewest: float) -> FloatArray:
    """Values (r, n), NaN where there are too few samples (n,)."""
    return np.where(count >= fewest, values, np.nan)
