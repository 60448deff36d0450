"""Which joints should not be believed, why, and what to do: the figures of the newest estimates, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.config import TrustConfig
from friction_estimator.types import BoolArray, FloatArray

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
class TrustFigures:
    """What the newest estimates say about themselves; NaN where too few samples tell.

    Attributes
    ----------
    moving_time : (n,) how long each joint has moved since the start [s]
    known_at_start : (n,) True where the law came from an earlier run
    unlearned : (n,) smallest standard deviation of a parameter over that before any data; one: nothing is learned
    driving : (n,) share of the moving time in which the friction drives its joint beyond its noise; passive means 0
    friction, calibration : (n,) RMS of the friction while the joint moves, and of the torque that errors of model and
        sensors explain [N m]
    disturbed : (n,) share of the time in which a push kept the joint from learning
    consistency : (n,) mean normalised innovation squared, one for a right model
    consistency_limit : (n,) what that mean may reach by chance
    drift : (n,) RMS change of the law's torque since the start, at the velocities that occur [N m]
    drift_sigma : (n,) standard deviation of the law's torque, likewise [N m]
    law : (n,) RMS of the law's torque, likewise [N m]
    """

    moving_time: FloatArray
    known_at_start: BoolArray
    unlearned: FloatArray
    driving: FloatArray
    friction: FloatArray
    calibration: FloatArray
    disturbed: FloatArray
    consistency: FloatArray
    consistency_limit: FloatArray
    drift: FloatArray
    drift_sigma: FloatArray
    law: FloatArray


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
