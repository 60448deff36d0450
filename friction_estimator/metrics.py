"""How far an estimate is from the truth: pure functions of arrays, used by the report and by the benchmarks.

Throughout, ``m`` is the number of samples and ``n`` the number of joints; NaN in any input leaves that sample out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.types import BoolArray, FloatArray


@dataclass(frozen=True, slots=True)
class JointErrors:
    """Errors of each joint.

    Attributes
    ----------
    count : (n,) samples used
    rmse : (n,) root mean square error [N m]
    relative_rmse : (n,) rmse by the root mean square of the truth: 1 is as good as predicting zero
    bias : (n,) mean error [N m]
    nees : (n,) mean of (error / sigma)^2: 1 is consistent, more is overconfident
    truth_rms : (n,) root mean square of the truth [N m]
    """

    count: FloatArray
    rmse: FloatArray
    relative_rmse: FloatArray
    bias: FloatArray
    nees: FloatArray
    truth_rms: FloatArray


def root_mean_square(values: FloatArray) -> FloatArray:
    """Root mean square of every column, (n,); NaN samples do not count, a column without samples gives NaN."""
    return np.sqrt(mean(values**2))


def mean(values: FloatArray) -> FloatArray:
    """Mean of every column, (n,); NaN samples do not count, a column without samples gives NaN."""
    valid = np.isfinite(values)
    count = valid.sum(axis=0)
    total = np.where(valid, values, 0.0).sum(axis=0)
    return np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)


def joint_errors(
    estimate: FloatArray, truth: FloatArray, sigma: FloatArray | None = None, where: BoolArray | None = None
) -> JointErrors:
    """Errors of an estimate.

    Parameters
    ----------
    estimate, truth : (m, n) [N m]
    sigma : (m, n) standard deviation of the estimate [N m]; None gives NaN as NEES
    where : (m, n) samples to use; None means all
    """
    error = estimate - truth
    if where is not None:
        error = np.where(where, error, np.nan)
    used = np.isfinite(error)
    truth_rms = root_mean_square(np.where(used, truth, np.nan))
    rmse = root_mean_square(error)
    relative = np.divide(rmse, truth_rms, out=np.full(rmse.shape, np.nan), where=truth_rms > 0.0)
    return JointErrors(
        count=used.sum(axis=0).astype(float),
        rmse=rmse,
        relative_rmse=relative,
        bias=mean(error),
        nees=_normalised_squared_error(error, sigma),
        truth_rms=truth_rms,
    )


def _normalised_squared_error(error: FloatArray, sigma: FloatArray | None) -> FloatArray:
    """Mean of (error / sigma)^2 of every column, (n,); samples with sigma = 0 do not count."""
    if sigma is None:
        return np.full(error.shape[1], np.nan)
    ratio = np.divide(error, sigma, out=np.full(error.shape, np.nan), where=sigma > 0.0)
    return mean(ratio**2)


def phase_mask(time: FloatArray, intervals: list[tuple[float, float]]) -> BoolArray:
    """True (m,) for samples inside any of the intervals ``start <= t < end`` [s]; the time (m,) must increase."""
    mask = np.zeros(time.size, dtype=bool)
    for start, end in intervals:
        mask[slice(*np.searchsorted(time, (start, end)))] = True
    return mask
