"""Watches the estimates and gathers what tells whether to believe them."""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.config import TrustConfig
from friction_estimator.estimation.trust.drift import LawDrift
from friction_estimator.estimation.trust.evidence import TrustEvidence
from friction_estimator.estimation.trust.fading_mean import FadingMean
from friction_estimator.estimation.trust.figures import TrustFigures
from friction_estimator.estimation.trust.innovations import Innovations
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.robot.transmission import MotorSide
from friction_estimator.types import BoolArray, FloatArray

_NOISE_MARGIN = 3.0
"""Speeds below this many standard deviations of the velocity have no sure sign."""


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
        self._unlearned: FloatArray = np.full(n, np.nan)
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
        free = ~estimate.disturbed
        moving = np.abs(estimate.velocity) > self._slowest
        self._always.add(estimate.disturbed[None].astype(float), np.ones(self._joints, dtype=bool), keep)
        squares = self._drives(estimate), estimate.friction**2, estimate.calibration_torque**2
        self._moving.add(np.stack(squares), moving & free, keep)
        self._innovations.add(estimate.consistency, keep)
        self._unlearned = self._smallest_ratio(estimate.parameters_sigma)
        self._moving_time += elapsed * moving
        self._drift.add(estimate, moving & free, self._known_at_start, keep)

    def _drives(self, estimate: TrustEvidence) -> BoolArray:
        """Where friction drives, beyond the noise (Egle 2021, eq. 7.9): at the motors, of a joint alone it well may."""
        motors = self._motors
        velocity = motors.velocity(estimate.velocity)
        backwards = -motors.torque(estimate.friction) * np.sign(velocity)
        drives = backwards > self._config.passivity_gate * motors.torque_std(estimate.sigma)
        return drives & (np.abs(velocity) > self._slowest)

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
            unlearned=self._unlearned,
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
