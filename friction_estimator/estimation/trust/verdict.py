"""From figures to words: which joints are not to be believed, why, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.config import TrustConfig
from friction_estimator.estimation.trust.figures import TrustFigures
from friction_estimator.types import BoolArray

ADVICE = {
    "excitation": "its law is not known: move it in phases that are learned from, or load earlier parameters",
    "passivity": "friction drives instead of braking: check the sign and offset of the torque, and the model",
    "calibration": "errors of model and sensors explain more torque than friction: calibrate masses and sensors",
    "drift": "friction has changed since the start: recalibrate, identify anew",
    "consistency": "innovations are larger than predicted: check the model, the stamps and the noise in sensors",
    "disturbance": "pushed too often to learn: free it, or check the torque and the model",
}
"""What each kind of doubt means, and what to do about it."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """One reason not to believe: a key of :data:`ADVICE`, and its figures in words."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class JointTrust:
    """The verdict on one joint.

    Attributes
    ----------
    joint : name
    doubts : why it should not be believed; empty: nothing speaks against it
    """

    joint: str
    doubts: tuple[Doubt, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of the doubts."""
        return tuple(doubt.kind for doubt in self.doubts)

    def __str__(self) -> str:
        return "; ".join(f"{doubt.kind}: {doubt.text}" for doubt in self.doubts) or "nothing against it"


def judge(figures: TrustFigures, config: TrustConfig, joint_names: Sequence[str]) -> tuple[JointTrust, ...]:
    """Verdict on every joint (n)."""
    doubtful = {kind: where.tolist() for kind, where in _doubtful(figures, config)}
    return tuple(
        JointTrust(joint, tuple(Doubt(kind, _words(kind, figures, row)) for kind in ADVICE if doubtful[kind][row]))
        for row, joint in enumerate(joint_names)
    )


def in_words(verdicts: Sequence[JointTrust]) -> tuple[str, ...]:
    """One sentence for each kind of doubt that there is: what it means, what to do, and which joints it is about."""
    joints = {kind: [verdict.joint for verdict in verdicts if kind in verdict.kinds] for kind in ADVICE}
    return tuple(f"{ADVICE[kind]} ({', '.join(names)})" for kind, names in joints.items() if names)


def _doubtful(figures: TrustFigures, config: TrustConfig) -> Iterator[tuple[str, BoolArray]]:
    """Each kind of doubt and where (n,) it holds; a comparison with NaN, too few samples, never does."""
    still = (figures.moving_time < config.evidence) & ~figures.known_at_start & np.isfinite(figures.disturbed)
    yield "excitation", still | (figures.unlearned > config.unlearned)
    yield "passivity", figures.driving > config.driving_share
    yield "calibration", figures.calibration > config.calibration_ratio * figures.friction
    large = figures.drift > config.drift_ratio * figures.law
    yield "drift", large & (figures.drift > config.drift_gate * figures.drift_sigma)
    yield "consistency", figures.consistency > figures.consistency_limit
    yield "disturbance", figures.disturbed > config.disturbed_share


def _words(kind: str, figures: TrustFigures, row: int) -> str:
    f = figures
    if kind == "excitation":
        known = "" if np.isnan(f.unlearned[row]) else f", no parameter better than {f.unlearned[row]:.0%} of its prior"
        return f"moved for {f.moving_time[row]:.1f} s{known}"
    if kind == "passivity":
        return f"drives {f.driving[row]:.0%} of the time it moves"
    if kind == "calibration":
        return (
            f"{f.calibration[row]:.2g} N m explained by errors of model and sensors, friction {f.friction[row]:.2g} N m"
        )
    if kind == "drift":
        return f"its law has changed by {f.drift[row]:.2g} of {f.law[row]:.2g} N m since the start"
    if kind == "consistency":
        return (
            f"mean squared innovation {f.consistency[row]:.2f} times its variance, limit {f.consistency_limit[row]:.2f}"
        )
    return f"pushed {f.disturbed[row]:.0%} of the time"
