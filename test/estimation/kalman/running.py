"""Runs an estimator over samples, with some of them held back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from friction_estimator.estimation.estimator import Estimator
from friction_estimator.types import FrictionEstimate


def feed(
    estimator: Estimator,
    instants: Sequence[Any],
    silent_imu: Collection[int] = (),
    silent_foot: tuple[int, Collection[int]] = (0, ()),
) -> list[FrictionEstimate]:
    """All estimates of some instants; the IMU, or a foot, says nothing at the given ones."""
    estimates: list[FrictionEstimate] = []
    for k, instant in enumerate(instants):
        estimates += estimator.add_joints(instant.joints)
        if k not in silent_imu:
            estimates += estimator.add_imu(instant.imu)
        for wrench in instant.wrenches:
            if wrench.foot != silent_foot[0] or k not in silent_foot[1]:
                estimates += estimator.add_wrench(wrench)
    return estimates


def stacked(estimates: Sequence[FrictionEstimate], field: str) -> np.ndarray:
    """A field of all estimates, (t, n)."""
    return np.array([getattr(estimate, field) for estimate in estimates])
