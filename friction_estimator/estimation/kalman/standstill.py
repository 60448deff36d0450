"""What may hold a motor at rest: whether it rests, and the variance of a friction that is not known there."""

from __future__ import annotations

from friction_estimator.kernels.compiler import kernel

_REST_SPEED = 2e-3
"""Speed below which dry friction may hold a joint at rest [rad/s]."""
DRY_FRICTION_SPEED = 0.02
"""Speed at which the dry friction of a joint is evaluated [rad/s]."""
UNIFORM_VARIANCE = 1.0 / 3.0
"""Variance of what may be anywhere between -1 and 1: a strain, or the friction at rest over its largest size."""


@kernel
def stick_probability(velocity: float, std: float) -> float:
    """One for a motor at rest, and next to zero for one that moves, at a velocity with this standard deviation."""
    square = velocity * velocity / (_REST_SPEED**2 + std * std)
    return 1.0 / (1.0 + square * square)
