"""How far the friction law has moved since the start, in torque and where the joint moves."""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.config import TrustConfig
from friction_estimator.estimation.trust.evidence import TrustEvidence
from friction_estimator.estimation.trust.fading_mean import FadingMean
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.robot.transmission import MotorSide
from friction_estimator.types import BoolArray, FloatArray

_MOST = 0.8
"""Of the newest moving time: the law must have been known for so much of it."""


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
        self._laws = laws
        self._motors = motors
        n, p = len(laws.law_names), laws.parameter_count
        self._keep_known = math.exp(-config.period / max(config.evidence, config.period))
        self._reference = np.full((n, p), np.nan)
        self._reference_variance = np.zeros(n)
        self._seen_speed = np.zeros(n)
        self.restart()

    def restart(self) -> None:
        """Drop the newest samples; the law of the start stays."""
        n = len(self._laws.law_names)
        self._change = FadingMean(3, n)
        self._known = FadingMean(1, n)

    def add(self, estimate: TrustEvidence, moving: BoolArray, known_at_start: BoolArray, keep: float) -> None:
        """Compare at one instant, for the joints that move (n,)."""
        motors = self._motors
        regressor = self._laws.regressor(motors.velocity(estimate.velocity), motors.torque(estimate.effort))
        law = motors.at_joints((regressor * estimate.parameters).sum(axis=1))
        variance = estimate.model_sigma**2
        known = estimate.model_sigma < self._config.known * np.abs(law)
        self._known.add(known[None].astype(float), moving, self._keep_known)
        waiting = np.isnan(self._reference[:, 0])
        speed = np.abs(estimate.velocity)
        if waiting.any():
            self._seen_speed = np.where(waiting & moving & known, np.maximum(self._seen_speed, speed), self._seen_speed)
            self._take_reference(estimate, waiting, known_at_start)
        change = motors.at_joints((regressor * (estimate.parameters - self._reference)).sum(axis=1)) ** 2
        both = variance + self._reference_variance
        within = moving & (speed <= self._seen_speed) & np.isfinite(change)
        self._change.add(np.stack((change, both, law**2)), within, keep)

    def _take_reference(self, estimate: TrustEvidence, waiting: BoolArray, known_at_start: BoolArray) -> None:
        enough = self._known.weight * self._config.period > _MOST * self._config.evidence
        known = enough & (self._known.mean[0] > _MOST)
        first = waiting & (known_at_start | known)
        self._reference[first] = estimate.parameters[first]
        self._reference_variance = np.where(first & ~known_at_start, estimate.model_sigma**2, self._reference_variance)
        self._seen_speed = np.where(first & known_at_start, np.inf, self._seen_speed)

    @property
    def mean(self) -> FloatArray:
        """(3, n) mean squared change of the law's torque, its variance, mean squared torque of the law [(N m)^2]."""
        return self._change.mean

    @property
    def weight(self) -> FloatArray:
        """(n,) how many samples these means rest on."""
        return self._change.weight
