"""Means over the newest estimates of all joints, at a low rate, from which the diagnosis is made.

estimate ─► moving? pushed? friction that drives? ─► FadingMean ─┐
         ─► normalised innovation squared ─► NisMean ────────┼─► DiagnosisFigures
         ─► torque of the law of the start and of now ─► LawDrift ┘
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import chdtri

from friction_estimator.config.robot import SURE_SIGN_SIGMAS
from friction_estimator.estimation.diagnosis.joint_diagnosis import (
    LONG_MOTION_TIME,
    MAX_PRIOR_RATIO,
    MIN_DIAGNOSIS_TIME,
    DiagnosisFigures,
)
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.linear_algebra import DIVERGENCE_LIMIT
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import BoolArray, FloatArray, FrictionEstimate, JointEstimate

PERIOD = 0.05
"""Time between the estimates that the diagnosis uses [s]."""
_MEMORY = 10.0
"""Time constant of its means [s]."""
_MIN_SPEED = 0.02
"""A joint moves above this speed [rad/s]: below it static friction decides."""
_PASSIVITY_GATE = 3.0
"""Friction drives a joint when it points along the motion by more than this many standard deviations; an external
torque pushes it when it is larger than this many."""
_MAX_KNOWN_RATIO = 0.4
"""A law becomes the reference for drift once its standard deviation is below this fraction of its torque; a fifth is
that of friction which differs between the directions."""
_CONFIDENCE = 0.999
"""Probability below the upper end of the chi-square band of the mean innovation."""
_CONSISTENCY_SLACK = 1.15
"""Factor on the upper end of that band: innovations of a low-passed measurement are not independent."""
_LARGEST_INNOVATION = 5.0
"""Larger innovations count as this many standard deviations: impacts are no error of the noise model."""
_MIN_KNOWN_SHARE = 0.8
"""Share of the newest moving time in which a law must have been known to become the law of the start."""


class FadingMean:
    """Means of ``r`` quantities of ``n`` joints over the samples that count for a joint, with fading weights.

    Parameters
    ----------
    rows, joints : r, n

    Attributes
    ----------
    weight : (n,) sum of the weights; the newest sample has the weight one
    """

    def __init__(self, rows: int, joints: int) -> None:
        self._sums = np.zeros((rows, joints))
        self.weight, self._squares = np.zeros((2, joints))

    def add(self, keep: float, counts: BoolArray | bool, *values: FloatArray | BoolArray | float) -> None:
        """Multiply the weights of the older samples by ``keep``, and add one sample of r values for the joints (n,).

        A sum that is not finite begins anew: a quantity may be unknown, and then is NaN in every sample.
        """
        is_valid = np.abs(self._sums) <= DIVERGENCE_LIMIT
        for row, value in enumerate(values):
            self._sums[row] = np.where(is_valid[row], keep * self._sums[row], 0.0) + np.where(counts, value, 0.0)
        self.weight = keep * self.weight + counts
        self._squares = keep * keep * self._squares + counts

    @property
    def mean(self) -> FloatArray:
        """Means (r, n); NaN for a joint without samples."""
        return np.asarray(self._sums / np.where(self.weight > 0.0, self.weight, np.nan))

    @property
    def effective_count(self) -> FloatArray:
        """(n,) number of samples of equal weight whose mean is as certain as this one."""
        return np.asarray(self.weight**2 / np.where(self._squares > 0.0, self._squares, 1.0))


class NisMean:
    """Windowed test of the normalised innovation squared (NIS; Bar-Shalom, Li & Kirubarajan 2001, section 5.4.2).

    Parameters
    ----------
    joints : n
    slack : factor on the upper end of the band; one for innovations that are independent
    """

    def __init__(self, joints: int, slack: float) -> None:
        self._mean, self._slack = FadingMean(1, joints), slack
        self._newest: FloatArray = np.full(joints, np.nan)

    def add(self, nis: FloatArray, keep: float) -> None:
        """Add the newest NIS (n,), older ones times ``keep``; a value that has not changed does not count again."""
        fresh = np.isfinite(nis) & (nis != self._newest)
        self._newest = nis.copy()
        self._mean.add(keep, fresh, np.minimum(nis, _LARGEST_INNOVATION**2))

    @property
    def count(self) -> FloatArray:
        """(n,) sum of the weights of the windows in the fading mean."""
        return self._mean.weight

    def mean_and_limit(self) -> tuple[FloatArray, FloatArray]:
        """Mean NIS (n,), and the upper end of its chi-square band (n,).

        The sum of N independent NIS of one joint has N degrees of freedom. Those of a low-passed measurement are not
        independent; then the band is wider than this, and the slack has to cover it.
        """
        count = np.maximum(self._mean.effective_count, 1.0)
        limit = self._slack * chdtri(count, 1.0 - _CONFIDENCE) / count
        return self._mean.mean[0], limit


class LawDrift:
    """Compares the law of the start with the present law, at the same velocities and loads.

    Parameters of one law may trade against each other without any change of its torque; so torques are compared, and
    only at speeds that the law of the start had seen. A law that starts from nothing is "of the start" as soon as it is
    known well enough; one of an earlier run (``known_at_start``) is at once, and for all speeds.

    Parameters
    ----------
    period : time between the estimates [s]
    laws : friction laws of the motors
    motors : that move the joints, in whose torque the laws are compared
    """

    def __init__(self, period: float, laws: JointLaws, motors: Transmission) -> None:
        self._min_weight = _MIN_KNOWN_SHARE * MIN_DIAGNOSIS_TIME / period
        self._laws, self._motors = laws, motors
        n, p = len(laws.law_names), laws.parameter_count
        self._keep_known = math.exp(-period / max(MIN_DIAGNOSIS_TIME, period))
        self._reference, self._reference_variance = np.full((n, p), np.nan), np.zeros(n)
        self._seen_speed = np.zeros(n)
        self.reset()

    def reset(self) -> None:
        """Drop the newest samples; the law of the start stays."""
        n = self._seen_speed.size
        self.change, self._known = FadingMean(3, n), FadingMean(1, n)

    def add(self, estimate: JointEstimate, counts: BoolArray, known_at_start: BoolArray, keep: float) -> None:
        """Compare both laws at one estimate, for joints (n,) that count; ``keep`` multiplies the older weights."""
        motors, speed, sigma = self._motors, np.abs(estimate.velocity), estimate.model_sigma
        phi = self._laws.regressor(motors.velocity(estimate.velocity), motors.torque(estimate.effort))
        law = motors.at_joints((phi * estimate.law.parameters).sum(axis=1))
        known = counts & (sigma < _MAX_KNOWN_RATIO * np.abs(law))
        self._known.add(self._keep_known, counts, known)
        undecided = np.isnan(self._reference[:, 0])
        self._seen_speed = np.where(undecided & known, np.maximum(self._seen_speed, speed), self._seen_speed)
        often = (self._known.weight > self._min_weight) & (self._known.mean[0] > _MIN_KNOWN_SHARE)
        begins = undecided & (known_at_start | often)
        self._reference[begins] = estimate.law.parameters[begins]
        self._seen_speed[begins & known_at_start] = np.inf
        self._reference_variance[begins & ~known_at_start] = sigma[begins & ~known_at_start] ** 2
        torque = (phi * (estimate.law.parameters - self._reference)).sum(axis=1)
        change = np.where(motors.to_joints != 0.0, motors.to_joints * torque, 0.0).sum(axis=1)
        within = counts & (speed <= self._seen_speed) & np.isfinite(change)
        self.change.add(keep, within, change**2, sigma**2 + self._reference_variance, law**2)


class DiagnosisMonitor:
    """Means over the newest estimates, at a low rate and for all joints at once.

    Parameters
    ----------
    laws : whose parameters the estimates hold
    prior_sigma : (n, p) standard deviations of the parameters before any data; NaN where unknown, zero where there is
        no such parameter
    velocity_std : noise of the velocities [rad/s]
    motors : that move the joints; None: one motor for each joint
    limb : (k, n) True where a joint lies between the base and that foot; None: one diagnosis for stance and swing
    period, memory : time between the estimates that are used, and time constant of the means [s]
    """

    def __init__(
        self,
        laws: JointLaws,
        prior_sigma: FloatArray,
        velocity_std: float,
        motors: Transmission | None = None,
        limb: BoolArray | None = None,
        period: float = PERIOD,
        memory: float = _MEMORY,
    ) -> None:
        self._limb = limb
        self._motors = motors or Transmission.from_coupling(None, laws.law_names)
        self._period, self._memory = period, memory
        self._laws = laws
        self._prior_sigma: FloatArray = np.where(prior_sigma > 0.0, prior_sigma, np.nan)
        self._min_speed = max(_MIN_SPEED, SURE_SIGN_SIGMAS * velocity_std)
        self._joint_count = len(laws.law_names)
        self.set_start()

    def set_start(self, parameters_sigma: FloatArray | None = None) -> None:
        """Restart: law drift is counted from the law of the next estimates.

        Parameters
        ----------
        parameters_sigma : (n, p) of parameters that came from an earlier run; None: nothing is known
        """
        n = self._joint_count
        self._drift = LawDrift(self._period, self._laws, self._motors)
        self._moving_time = np.zeros(n)
        self._known_at_start: BoolArray = np.zeros(n, dtype=bool)
        if parameters_sigma is not None:
            self._known_at_start = self._smallest_ratio(parameters_sigma) < MAX_PRIOR_RATIO
        self._parameters_sigma: FloatArray = np.full_like(self._prior_sigma, np.nan)
        self.reset()

    def reset(self) -> None:
        """Drop the newest samples and keep the law of the start, for a robot that was set down elsewhere."""
        n = self._joint_count
        self._all_samples, self._moving = FadingMean(1, n), FadingMean(3, n)
        self._sigmas, self._law_errors = ((FadingMean(2, n), FadingMean(2, n)) for _ in range(2))
        self._innovations, self._recent_innovations = (NisMean(n, _CONSISTENCY_SLACK) for _ in range(2))
        self._drift.reset()
        self._stamp_ns: int | None = None

    def add(self, estimate: JointEstimate) -> None:
        """Add an estimate to the means, unless less than a period has passed since the one before."""
        elapsed = math.inf if self._stamp_ns is None else 1e-9 * (estimate.stamp_ns - self._stamp_ns)
        if 0.0 <= elapsed < self._period * (1.0 - 1e-9):
            return
        if not 0.0 <= elapsed <= self._memory:
            elapsed = self._period
        self._stamp_ns = estimate.stamp_ns
        keep = math.exp(-elapsed / self._memory)
        moving = np.abs(estimate.velocity) > self._min_speed
        self._moving_time += np.where(moving, elapsed, 0.0)
        self._add_motion(estimate, moving & ~estimate.disturbed, keep)
        self._add_phases(estimate, moving, keep)
        self._innovations.add(estimate.nis, keep)
        self._recent_innovations.add(estimate.nis, math.exp(-elapsed / MIN_DIAGNOSIS_TIME))
        self._drift.add(estimate, moving & ~estimate.disturbed, self._known_at_start, keep)
        self._parameters_sigma = estimate.law.parameters_sigma

    def _add_motion(self, estimate: JointEstimate, counts: BoolArray, keep: float) -> None:
        """Count pushes, and where joints move without one: whether friction drives, its square, that of calibration.

        A push stops the identification of a whole limb, and counts for the joints where the external torque is beyond
        its noise and beyond the friction.

        Friction drives where it has the sign against the velocity beyond its noise (Egle 2021, eq. 7.9). This is
        evaluated at the motors: friction of a motor that moves several joints may well drive one of them.
        """
        friction, motors = estimate.friction, self._motors
        least = np.fmax(_PASSIVITY_GATE * estimate.external_torque_sigma, np.abs(friction))
        self._all_samples.add(keep, True, estimate.disturbed & (np.abs(estimate.external_torque) > least))
        at, torque = motors.velocity(estimate.velocity), motors.torque(friction)
        drives = -torque * np.sign(at) > _PASSIVITY_GATE * motors.torque_std(estimate.sigma)
        drives &= np.abs(at) > self._min_speed
        self._moving.add(keep, counts, drives, friction**2, estimate.calibration_torque**2)

    def _add_phases(self, estimate: JointEstimate, moving: BoolArray, keep: float) -> None:
        """Squares of friction and sigma, and of friction and law error of moving joints, in stance and in swing.

        Friction at rest is any torque up to the dry friction, which no law determines: there the law error is right.
        A sigma larger than the friction (RMS) counts as the friction: that of an unknown law would outlast all others.
        Sigma counts after some motion: before, laws are new.
        """
        stands: BoolArray = np.ones(self._joint_count, dtype=bool)
        if self._limb is not None and isinstance(estimate, FrictionEstimate):
            stands = np.asarray((estimate.phase.contact[:, None] & self._limb).any(axis=0))
        square, error = estimate.friction**2, (estimate.friction - estimate.model) ** 2
        settled = self._moving_time > LONG_MOTION_TIME
        for sigmas, law_errors, in_phase in zip(self._sigmas, self._law_errors, (stands, ~stands), strict=True):
            here = in_phase & ~estimate.disturbed
            sigmas.add(keep, here & settled, square, np.fmin(estimate.sigma**2, sigmas.mean[0]))
            law_errors.add(keep, here & moving, square, error)

    def _smallest_ratio(self, parameters_sigma: FloatArray) -> FloatArray:
        """Smallest standard deviation of a parameter over its prior, for each joint (n,)."""
        ratio = parameters_sigma / self._prior_sigma
        smallest = np.where(np.isfinite(ratio), ratio, np.inf).min(axis=1)
        return np.where(np.isfinite(smallest), smallest, np.nan)

    def _excess(self) -> FloatArray:
        """Size (n,) of the innovations of the last second: the largest of each limb that is inconsistent, else one."""
        nis, limit = self._recent_innovations.mean_and_limit()
        excess = np.sqrt(np.where(nis > limit, nis, 1.0))
        for limb in () if self._limb is None else self._limb:
            excess[limb] = excess[limb].max(initial=1.0)
        return excess

    def figures(self) -> DiagnosisFigures:
        """Figures of the newest estimates."""
        fewest = MIN_DIAGNOSIS_TIME / self._period

        def where_enough(values: FloatArray, count: FloatArray) -> FloatArray:
            """Values (r, n), NaN where there are too few samples (n,)."""
            return np.where(count >= fewest, values, np.nan)

        def largest_ratio(means: tuple[FadingMean, ...]) -> FloatArray:
            """Ratio of the second mean to the first one (RMS), in stance or in swing, where sigma counts."""
            ratios = [
                where_enough(mean.mean[1] / np.where(mean.mean[0] > 0.0, mean.mean[0], np.nan), sigmas.weight)
                for mean, sigmas in zip(means, self._sigmas, strict=True)
            ]
            return np.sqrt(np.fmax(*ratios))

        driving, friction, calibration = where_enough(self._moving.mean, self._moving.weight)
        nis, limit = where_enough(np.stack(self._innovations.mean_and_limit()), self._innovations.count)
        drift, drift_variance, law = where_enough(self._drift.change.mean, self._drift.change.weight)
        return DiagnosisFigures(
            moving_time=self._moving_time.copy(),
            known_at_start=self._known_at_start,
            prior_ratio=self._smallest_ratio(self._parameters_sigma),
            driving=driving,
            friction=np.sqrt(friction),
            calibration=np.sqrt(calibration),
            disturbed=where_enough(self._all_samples.mean, self._all_samples.weight)[0],
            nis=nis,
            nis_limit=limit,
            excess=self._excess(),
            drift=np.sqrt(drift),
            drift_sigma=np.sqrt(drift_variance),
            law=np.sqrt(law),
            uncertainty=largest_ratio(self._sigmas),
            law_error=largest_ratio(self._law_errors),
        )
