"""Gives an estimator the samples of instants, some of them held back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from friction_estimator.estimation.estimator import Estimator
from friction_estimator.types import FrictionEstimate


def feed(
    estimator: Estimator,
    instants: Iterable[Any],
    without_imu: Collection[int] = (),
    without_foot: tuple[int, Collection[int]] = (0, ()),
) -> list[FrictionEstimate]:
    """Estimates of instants; samples of the IMU, or of one foot, are left out at the given numbers."""
    estimates: list[FrictionEstimate] = []
    for k, instant in enumerate(instants):
        estimates += estimator.add_joints(instant.joints)
        if k not in without_imu:
            estimates += estimator.add_imu(instant.imu)
        for wrench in instant.wrenches:
            if wrench.foot != without_foot[0] or k not in without_foot[1]:
                estimates += estimator.add_wrench(wrench)
    return estimates


def stacked(estimates: Sequence[FrictionEstimate], field: str) -> np.ndarray:
    """A field of all estimates, (t, n)."""
    return np.array(list(map(attrgetter(field), estimates)))
