"""What the parameters of a friction law cannot be: nonnegative ones negative, nor F_c."""

from __future__ import annotations

import numpy as np

from friction_estimator.core.friction.joint_laws import JointLaws
from friction_estimator.core.types import FloatArray

_SWEEPS = 2
"""Moving to one bound may leave another."""


def law_bounds(laws: JointLaws) -> FloatArray:
    """Rows (n, b, p) whose product with a joint's parameters is never negative; zero rows bind nothing."""
    p = laws.parameter_count
    single = np.eye(p) * laws.nonnegative[:, :, None]
    return np.concatenate((single, laws.coulomb_weights[:, None, :]), axis=1)


def within_bounds(parameters: FloatArray, covariance: FloatArray, bounds: FloatArray) -> FloatArray:
    """The nearest parameters (n, p) within their bounds (n, b, p), in the metric of the covariance (n, p, p).

    For a Gaussian that is the most likely point within the bounds (Simon 2010), one bound after the other.
    """
    parameters = parameters.copy()
    for _ in range(_SWEEPS):
        if ((bounds @ parameters[:, :, None]) >= 0.0).all():
            break
        for bound in np.moveaxis(bounds, 1, 0):
            value = (bound * parameters).sum(axis=1)
            if (value >= 0.0).all():
                continue
            direction = (covariance @ bound[:, :, None])[:, :, 0]
            variance = (bound * direction).sum(axis=1)
            step = np.where((value < 0.0) & (variance > 0.0), -value / np.where(variance > 0.0, variance, 1.0), 0.0)
            parameters += direction * step[:, None]
    single = np.diagonal(bounds[:, : parameters.shape[1]], axis1=1, axis2=2) > 0.0
    return np.where(single, np.maximum(parameters, 0.0), parameters)  # what the sweeps have left
