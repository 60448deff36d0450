"""Which number of a limb's state means what, and how well each is known before any data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.core.config import KalmanConfig, SensorNoise
from friction_estimator.core.friction.joint_laws import JointLaws
from friction_estimator.core.kalman.limbs import Limb
from friction_estimator.core.types import FloatArray

_BLOCKS = ("momentum", "mismatch", "law", "links", "foot_bias", "foot_gain", "effort_gain", "accelerometer_bias")


@dataclass(frozen=True, slots=True)
class LimbState:
    """Layout of the state of a limb of ``m`` joints with ``f`` feet and ``p`` law parameters a joint.

    ``[momentum (m), mismatch (m), law (m p), links (4 m), foot bias (6 f), foot gain (6 f), torque gain (m),
    accelerometer bias (3)]``; everything from ``links`` on is called calibration. Law and links are joint by joint;
    mismatch and law of joints that share motors are motor by motor.

    Attributes
    ----------
    size : of the state
    prior_std : (size,) before any data; zero for what is known, or switched off
    """

    momentum: slice
    mismatch: slice
    law: slice
    links: slice
    foot_bias: slice
    foot_gain: slice
    effort_gain: slice
    accelerometer_bias: slice
    size: int
    prior_std: FloatArray

    @property
    def calibration(self) -> slice:
        """All errors of model and sensors."""
        return slice(self.links.start, self.size)

    @property
    def learned(self) -> slice:
        """Law and calibration: what stays over a restart."""
        return slice(self.law.start, self.size)

    def prior_covariance(self) -> FloatArray:
        """Covariance before any data, (size, size).

        Nothing tells a common scale of all torques, forces and masses from the scale of friction. The motor torques
        are right on average, by convention: their gain errors add up to zero, and the filter keeps it so.
        """
        covariance = np.diag(self.prior_std**2)
        gains = covariance[self.effort_gain, self.effort_gain]
        gains -= gains.sum() / gains.shape[0] ** 2
        return covariance

    def foot(self, block: slice, foot: int) -> slice:
        """The part of ``foot_bias`` or ``foot_gain`` that belongs to the limb's foot number ``foot``."""
        return slice(block.start + 6 * foot, block.start + 6 * foot + 6)


def lay_out(limb: Limb, laws: JointLaws, config: KalmanConfig, noise: SensorNoise, floating: bool) -> LimbState:
    """State of a limb.

    Parameters
    ----------
    floating : False for a fixed base, which has no accelerometer
    """
    m, f = limb.joints.size, limb.feet.size
    bias = np.repeat(
        (max(config.force_bias_std, noise.force_bias_std), max(config.moment_bias_std, noise.moment_bias_std)), 3
    )
    accelerometer = max(config.specific_force_bias_std, noise.specific_force_bias_std) if floating else 0.0
    blocks = (
        np.zeros(m),
        np.full(m, config.mismatch_std),
        laws.prior_std[limb.joints].ravel(),
        np.tile((config.link_mass_std, *(config.link_com_std,) * 3), m),
        np.tile(bias, f),
        np.full(6 * f, max(config.force_gain_std, noise.force_gain_std)),
        np.full(m, max(config.effort_gain_std, noise.effort_gain_std)),
        np.full(3, accelerometer),
    )
    ends = np.cumsum([block.size for block in blocks]).tolist()
    parts = dict(
        zip(_BLOCKS, (slice(end - block.size, end) for block, end in zip(blocks, ends, strict=True)), strict=True)
    )
    return LimbState(**parts, size=ends[-1], prior_std=np.concatenate(blocks))
