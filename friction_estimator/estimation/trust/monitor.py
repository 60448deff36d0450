"""Watches the estimates of all joints at a low rate: sums over the newest ones, from which doubts are made.

    estimate ─► moving? pushed? friction that drives? ─► FadingMean ─┐
             ─► normalised innovation squared ─► Innovations ────────┼─► TrustFigures
             ─► torque of the law of the start and of now ─► LawDrift ┘

Compiled kernels add to the sums. The figures are made from them when somebody asks, once a second in the node.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from scipy.special import chdtri

from friction_estimator.compiled import kernel
from friction_estimator.config import TrustConfig
from friction_estimator.estimation.trust.verdict import TrustFigures
from friction_estimator.laws.joint_laws import JointLaws, regressor_of_motors
from friction_estimator.robot.transmission import MotorSide
from friction_estimator.types import BoolArray, FloatArray, IntArray

_NOISE_MARGIN = 3.0
"""Speeds below this many standard deviations of the velocity have no sure sign."""
_KNOWN_FOR = 0.8
"""Part of the newest moving time for which a law must have been known to become the law of the start."""


class TrustEvidence(Protocol):
    """What of a :class:`~friction_estimator.types.FrictionEstimate` is looked at: the same names and units."""

    @property
    def stamp_ns(self) -> int:
        """Stamp of the joint sample [ns]."""
        ...

    @property
    def velocity(self) -> FloatArray:
        """Of the joints, (n,) [rad/s]."""
        ...

    @property
    def effort(self) -> FloatArray:
        """Motor torque, (n,) [N m]."""
        ...

    @property
    def friction(self) -> FloatArray:
        """The estimate, (n,) [N m]."""
        ...

    @property
    def sigma(self) -> FloatArray:
        """Its standard deviation, (n,) [N m]."""
        ...

    @property
    def model_sigma(self) -> FloatArray:
        """Standard deviation of the law's prediction, (n,) [N m]."""
        ...

    @property
    def parameters(self) -> FloatArray:
        """Of the law, (n, p)."""
        ...

    @property
    def parameters_sigma(self) -> FloatArray:
        """Their standard deviations, (n, p)."""
        ...

    @property
    def consistency(self) -> FloatArray:
        """Newest normalised innovation squared, (n,); NaN while there is none."""
        ...

    @property
    def calibration_torque(self) -> FloatArray:
        """Torque that errors of model and sensors explain, (n,) [N m]."""
        ...

    @property
    def disturbed(self) -> BoolArray:
        """True while a push keeps the joint from learning, (n,)."""
        ...


@kernel
def _fade(
    total: FloatArray, weight_square: FloatArray, weight: FloatArray, joint: int, keep: float, counts: bool
) -> None:
    """Let the older samples of a joint weigh less, and count a new one."""
    for row in range(total.shape[0]):
        total[row, joint] *= keep
    one = 1.0 if counts else 0.0
    weight_square[joint] = keep * keep * weight_square[joint] + one
    weight[joint] = keep * weight[joint] + one


@kernel("M V V M B f8")
def add_sample(
    total: FloatArray,
    weight_square: FloatArray,
    weight: FloatArray,
    values: FloatArray,
    where: BoolArray,
    keep: float,
) -> None:
    """Add a sample to the sums of :class:`FadingMean`, in place."""
    for joint in range(where.size):
        _fade(total, weight_square, weight, joint, keep, where[joint])
        if where[joint]:
            for row in range(total.shape[0]):
                total[row, joint] += values[row, joint]


class FadingMean:
    """Means of ``r`` quantities of ``n`` joints over the samples that count for a joint, old ones less and less.

    Parameters
    ----------
    rows, joints : r, n

    Attributes
    ----------
    total : (r, n) weighted sums
    weight_square, weight : (n,) sums of the squared weights and of the weights of the samples; the newest weighs one
    """

    def __init__(self, rows: int, joints: int) -> None:
        self.total = np.zeros((rows, joints))
        self.weight_square, self.weight = np.zeros(joints), np.zeros(joints)

    @property
    def sums(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What the kernels add to: ``total``, ``weight_square``, ``weight``."""
        return self.total, self.weight_square, self.weight

    def add(self, values: FloatArray, where: BoolArray, keep: float) -> None:
        """Add one sample.

        Parameters
        ----------
        values : (r, n), only read where the sample counts
        where : (n,) for which joints it counts
        keep : what is left of the weight of each older sample, 0 to 1
        """
        add_sample(*self.sums, values, where, keep)

    @property
    def mean(self) -> FloatArray:
        """(r, n); NaN for a joint without samples."""
        weight = np.where(self.weight > 0.0, self.weight, np.nan)
        return np.asarray(self.total / weight)

    @property
    def effective_count(self) -> FloatArray:
        """(n,) how many samples of equal weight would have a mean as certain as this one."""
        return np.asarray(self.weight**2 / np.where(self.weight_square > 0.0, self.weight_square, 1.0))


@kernel("V V M V V f8 f8")
def add_innovations(
    newest: FloatArray,
    consistency: FloatArray,
    total: FloatArray,
    weight_square: FloatArray,
    weight: FloatArray,
    largest: float,
    keep: float,
) -> None:
    """Add normalised innovations squared (n,), cut at ``largest``, where they differ from ``newest``, in place."""
    for joint in range(newest.size):
        fresh = math.isfinite(consistency[joint]) and consistency[joint] != newest[joint]
        newest[joint] = consistency[joint]
        _fade(total, weight_square, weight, joint, keep, fresh)
        if fresh:
            total[0, joint] += min(consistency[joint], largest)


class Innovations:
    """Windowed test of the normalised innovation squared (NIS; Bar-Shalom, Li & Kirubarajan 2001, section 5.4.2).

    Parameters
    ----------
    config : confidence, largest counted innovation
    joints : n
    """

    def __init__(self, config: TrustConfig, joints: int) -> None:
        self._config = config
        self._mean = FadingMean(1, joints)
        self._newest: FloatArray = np.full(joints, np.nan)

    def add(self, consistency: FloatArray, keep: float) -> None:
        """Look at the newest NIS (n,); one that stands still is an old one and does not count again."""
        add_innovations(self._newest, consistency, *self._mean.sums, self._config.largest_innovation**2, keep)

    @property
    def count(self) -> FloatArray:
        """(n,) how many innovations count."""
        return self._mean.weight

    def mean_and_limit(self) -> tuple[FloatArray, FloatArray]:
        """Mean NIS (n,), and the upper end of its chi-square band (n,).

        The sum of N independent NIS of one joint has N degrees of freedom. Those of a low-passed measurement are not
        independent; then the band is wider than this, and ``consistency_slack`` has to cover it.
        """
        count = np.maximum(self._mean.effective_count, 1.0)
        limit = self._config.consistency_slack * chdtri(count, 1.0 - self._config.confidence) / count
        return self._mean.mean[0], limit


@kernel("V V M V B B IT M M M f8 f8 f8 f8 M V V M V V M V V")
def add_law_change(
    velocity: FloatArray,
    effort: FloatArray,
    parameters: FloatArray,
    model_sigma: FloatArray,
    counts: BoolArray,
    known_at_start: BoolArray,
    codes: IntArray,
    scales: FloatArray,
    from_joints: FloatArray,
    to_joints: FloatArray,
    known_ratio: float,
    enough: float,
    keep_known: float,
    keep: float,
    reference: FloatArray,
    reference_variance: FloatArray,
    seen_speed: FloatArray,
    known_total: FloatArray,
    known_square: FloatArray,
    known_weight: FloatArray,
    change_total: FloatArray,
    change_square: FloatArray,
    change_weight: FloatArray,
) -> None:
    """Compare the laws of the start and of now at one instant, in place: see :class:`LawDrift`.

    Parameters
    ----------
    velocity, effort, model_sigma : (n,) of the joints
    parameters : (n, p) motor by motor
    counts : (n,) joints that move, and that nothing pushes
    codes, scales : of the laws
    from_joints, to_joints : ``matrix`` and ``to_joints`` of the motors
    known_ratio : a law is known when its sigma is below this part of its torque
    enough : samples after which a law that was known in most of them becomes the law of the start
    """
    n, p = scales.shape
    phi, torque, change = np.empty((n, p)), np.zeros(n), np.zeros(n)
    law, own = np.zeros(n), np.zeros(n)
    regressor_of_motors(codes, scales, from_joints, to_joints, velocity, effort, phi)
    for motor in range(n):
        for i in range(p):
            own[motor] += phi[motor, i] * parameters[motor, i]
    for joint in range(n):
        for motor in range(n):
            law[joint] += to_joints[joint, motor] * own[motor]
        known = model_sigma[joint] < known_ratio * abs(law[joint])
        _fade(known_total, known_square, known_weight, joint, keep_known, counts[joint])
        if counts[joint] and known:
            known_total[0, joint] += 1.0
        if math.isnan(reference[joint, 0]):
            if counts[joint] and known:
                seen_speed[joint] = max(seen_speed[joint], abs(velocity[joint]))
            often = known_weight[joint] > enough and known_total[0, joint] > _KNOWN_FOR * known_weight[joint]
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
        _fade(change_total, change_square, change_weight, joint, keep, within)
        if within:
            change_total[0, joint] += change[joint] ** 2
            change_total[1, joint] += model_sigma[joint] ** 2 + reference_variance[joint]
            change_total[2, joint] += law[joint] ** 2


class LawDrift:
    """The law of the start and the law of now, at the same velocities and loads.

    Parameters of one law may trade against each other without any change of its torque; so torques are compared, and
    only at speeds that the law of the start had seen. A law that starts from nothing is "of the start" as soon as it is
    known well enough; one of an earlier run is at once, and for all speeds.

    Parameters
    ----------
    config : when a law is known
    laws : friction laws of the motors
    motors : that move the joints, in whose torque the laws are compared
    """

    def __init__(self, config: TrustConfig, laws: JointLaws, motors: MotorSide) -> None:
        self._config = config
        self._tables = laws.codes, laws.scales, motors.matrix, motors.to_joints
        n, p = laws.scales.shape
        self._keep_known = math.exp(-config.period / max(config.evidence, config.period))
        self._reference, self._reference_variance = np.full((n, p), np.nan), np.zeros(n)
        self._seen_speed = np.zeros(n)
        self.restart()

    def restart(self) -> None:
        """Drop the newest samples; the law of the start stays."""
        n = self._seen_speed.size
        self._change, self._known = FadingMean(3, n), FadingMean(1, n)

    def add(self, estimate: TrustEvidence, counts: BoolArray, known_at_start: BoolArray, keep: float) -> None:
        """Compare at one instant, for the joints (n,) that count."""
        config = self._config
        add_law_change(
            estimate.velocity,
            estimate.effort,
            estimate.parameters,
            estimate.model_sigma,
            counts,
            known_at_start,
            *self._tables,
            config.known,
            _KNOWN_FOR * config.evidence / config.period,
            self._keep_known,
            keep,
            self._reference,
            self._reference_variance,
            self._seen_speed,
            *self._known.sums,
            *self._change.sums,
        )

    @property
    def mean(self) -> FloatArray:
        """(3, n) mean squared change of the law's torque, its variance, mean squared torque of the law [(N m)^2]."""
        return self._change.mean

    @property
    def weight(self) -> FloatArray:
        """(n,) how many samples these means rest on."""
        return self._change.weight


@kernel("V V V V B M M f8 f8 f8 f8 V M V V M V V B")
def add_motion(
    velocity: FloatArray,
    friction: FloatArray,
    sigma: FloatArray,
    calibration_torque: FloatArray,
    disturbed: BoolArray,
    from_joints: FloatArray,
    to_joints: FloatArray,
    slowest: float,
    gate: float,
    elapsed: float,
    keep: float,
    moving_time: FloatArray,
    always_total: FloatArray,
    always_square: FloatArray,
    always_weight: FloatArray,
    moving_total: FloatArray,
    moving_square: FloatArray,
    moving_weight: FloatArray,
    counts: BoolArray,
) -> None:
    """Count pushes, and where joints move without one: whether friction drives, its square, that of calibration.

    Friction drives where it has the sign against the velocity beyond its noise (Egle 2021, eq. 7.9). This is judged at
    the motors: friction of a motor that moves several joints may well drive one of them.

    Parameters
    ----------
    velocity, ..., disturbed : (n,) of the estimate
    from_joints, to_joints : ``matrix`` and ``to_joints`` of the motors
    slowest : a joint moves above this speed [rad/s]
    gate : standard deviations beyond which friction drives
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
        _fade(always_total, always_square, always_weight, joint, keep, True)
        if disturbed[joint]:
            always_total[0, joint] += 1.0
        _fade(moving_total, moving_square, moving_weight, joint, keep, counts[joint])
        if counts[joint]:
            at, torque, variance = 0.0, 0.0, 0.0
            for other in range(n):
                at += velocity[other] * to_joints[other, joint]
                torque += friction[other] * from_joints[other, joint]
                variance += (sigma[other] * from_joints[other, joint]) ** 2
            if -torque * np.sign(at) > gate * math.sqrt(variance) and abs(at) > slowest:
                moving_total[0, joint] += 1.0
            moving_total[1, joint] += friction[joint] ** 2
            moving_total[2, joint] += calibration_torque[joint] ** 2


class TrustMonitor:
    """Sums over the newest estimates, at a low rate and for all joints at once.

    Parameters
    ----------
    config : memory and limits
    laws : whose parameters the estimates hold
    prior_sigma : (n, p) standard deviations of the parameters before any data; NaN where unknown, zero where there is
        no such parameter
    velocity_std : noise of the velocities [rad/s]
    motors : that move the joints; None: every joint has its own
    """

    def __init__(
        self,
        config: TrustConfig,
        laws: JointLaws,
        prior_sigma: FloatArray,
        velocity_std: float,
        motors: MotorSide | None = None,
    ) -> None:
        self._motors = motors or MotorSide.of(None, laws.law_names)
        self._config = config
        self._laws = laws
        self._prior_sigma: FloatArray = np.where(prior_sigma > 0.0, prior_sigma, np.nan)
        self._slowest = max(config.slowest, _NOISE_MARGIN * velocity_std)
        self._joints = len(laws.law_names)
        self.forget()

    def forget(self, parameters_sigma: FloatArray | None = None) -> None:
        """Begin anew: what comes next is the start.

        Parameters
        ----------
        parameters_sigma : (n, p) of parameters that came from an earlier run; None: nothing is known
        """
        n = self._joints
        self._drift = LawDrift(self._config, self._laws, self._motors)
        self._moving_time = np.zeros(n)
        self._known_at_start: BoolArray = np.zeros(n, dtype=bool)
        if parameters_sigma is not None:
            self._known_at_start = self._smallest_ratio(parameters_sigma) < self._config.unlearned
        self._parameters_sigma: FloatArray = np.full_like(self._prior_sigma, np.nan)
        self.restart()

    def restart(self) -> None:
        """Drop the newest samples; the start stays what it was. For a robot that was set down elsewhere."""
        n = self._joints
        self._always, self._moving = FadingMean(1, n), FadingMean(3, n)
        self._innovations = Innovations(self._config, n)
        self._drift.restart()
        self._stamp_ns: int | None = None

    def add(self, estimate: TrustEvidence) -> None:
        """Look at an estimate, unless the one before is younger than ``trust.period``."""
        elapsed = math.inf if self._stamp_ns is None else 1e-9 * (estimate.stamp_ns - self._stamp_ns)
        if 0.0 <= elapsed < self._config.period * (1.0 - 1e-9):
            return
        if not 0.0 <= elapsed <= self._config.memory:
            elapsed = self._config.period
        self._stamp_ns = estimate.stamp_ns
        self._use(estimate, elapsed)

    def _use(self, estimate: TrustEvidence, elapsed: float) -> None:
        keep = math.exp(-elapsed / self._config.memory)
        counts = np.empty(self._joints, dtype=bool)
        add_motion(
            estimate.velocity,
            estimate.friction,
            estimate.sigma,
            estimate.calibration_torque,
            estimate.disturbed,
            self._motors.matrix,
            self._motors.to_joints,
            self._slowest,
            self._config.passivity_gate,
            elapsed,
            keep,
            self._moving_time,
            *self._always.sums,
            *self._moving.sums,
            counts,
        )
        self._innovations.add(estimate.consistency, keep)
        self._drift.add(estimate, counts, self._known_at_start, keep)
        self._parameters_sigma = estimate.parameters_sigma

    def _smallest_ratio(self, parameters_sigma: FloatArray) -> FloatArray:
        """How little each joint (n,) has learned: of its parameters the one best known, over its prior."""
        ratio = parameters_sigma / self._prior_sigma
        smallest = np.where(np.isfinite(ratio), ratio, np.inf).min(axis=1)
        return np.where(np.isfinite(smallest), smallest, np.nan)

    def figures(self) -> TrustFigures:
        """What the newest estimates say."""
        fewest = self._config.evidence / self._config.period
        disturbed = _enough(self._always.mean, self._always.weight, fewest)[0]
        driving, friction, calibration = _enough(self._moving.mean, self._moving.weight, fewest)
        consistency, limit = _enough(np.stack(self._innovations.mean_and_limit()), self._innovations.count, fewest)
        drift, drift_variance, law = _enough(self._drift.mean, self._drift.weight, fewest)
        return TrustFigures(
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
        )


def _enough(values: FloatArray, count: FloatArray, fewest: float) -> FloatArray:
    """Values (r, n), NaN where they rest on too few samples (n,)."""
    return np.where(count >= fewest, values, np.nan)
