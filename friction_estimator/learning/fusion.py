"""External torque of the observer and of MOB-Net in one: weights from what both show, sigma for any correlation.

    x = n - w (n - k)        w = <n (n - k)> / <(n - k)^2>,  means over the last seconds

k is the torque of the observer, n that of MOB-Net. Both contain the external torque in full, so it is not in their
difference: the w that makes x^2 smallest also makes the error of x smallest, however the two errors are correlated (the
unit-gain minimum-variance combination), and neither variance has to be claimed. Whatever the correlation is, the
variance of the weighted error is at most w s_k^2 + (1 - w) s_n^2. The disagreement w (1 - w) (n - k)^2 is added, as in
the variance of a mixture, because either sigma may be too small.
"""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.types import FloatArray

MEMORY = 10.0
"""Time of the means: some steps of a walk, and about as long as the observer needs to identify the friction [s]."""
_PRIOR = 0.05
"""The sigmas of the first sample count as much as this time [s]."""
_CONTRADICTION = 1.96
"""Sigma holds both torques where they are further apart than this many standard deviations: one source is wrong."""
_OBSERVER_GAIN = 40.0
"""Bandwidth at which the Kalman observer takes off the foot wrenches [rad/s]."""


@kernel("V V V V T M f8 M V V")
def fuse_torques(
    observer: FloatArray,
    observer_sigma: FloatArray,
    network: FloatArray,
    network_sigma: FloatArray,
    J: FloatArray,
    unexpected: FloatArray,
    dt: float,
    state: FloatArray,
    torque: FloatArray,
    sigma: FloatArray,
) -> None:
    """Fused torque and sigma (n,), of the source that is known where only one is.

    Parameters
    ----------
    observer, observer_sigma, network, network_sigma : (n,) torques and standard deviations; NaN while unknown
    J : (k, 6, nv) of the soles
    unexpected : (k, 6) wrenches on the feet that are not the ground's: the observer takes off all that is measured
    dt : since the sample before [s]
    state : (4, n) ``<n (n - k)>``, ``<(n - k)^2>``, the time over which they are averaged, and the low-passed torque of
        ``unexpected``
    """
    means, squares, times, low_passed = state[0], state[1], state[2], state[3]
    base, keep = J.shape[2] - torque.size, math.exp(-_OBSERVER_GAIN * dt) if dt > 0.0 else 0.0
    for i in range(torque.size):
        value = 0.0
        for foot in range(unexpected.shape[0]):
            for axis in range(6):
                value += J[foot, axis, base + i] * unexpected[foot, axis]
        low_passed[i] = value + (keep * (low_passed[i] - value) if math.isfinite(low_passed[i]) else 0.0)
        k, n = observer[i] + low_passed[i], network[i]
        k_variance, n_variance, apart = observer_sigma[i] ** 2, network_sigma[i] ** 2, n - k
        torque[i], sigma[i] = (n, network_sigma[i]) if math.isfinite(n) else (k, observer_sigma[i])
        if not math.isfinite(apart + k_variance + n_variance):
            continue
        if times[i] == 0.0:
            means[i], squares[i], times[i] = n_variance, n_variance + k_variance, _PRIOR
        times[i] = min(times[i] + dt, MEMORY)
        part = dt / times[i]
        means[i] += part * (n * apart - means[i])
        squares[i] += part * (apart * apart - squares[i])
        w = min(max(means[i] / squares[i], 0.0), 1.0) if squares[i] > 0.0 else 0.5
        variance = w * k_variance + (1.0 - w) * n_variance + w * (1.0 - w) * apart * apart
        if apart * apart > _CONTRADICTION**2 * (k_variance + n_variance):
            variance = max(variance, (max(w, 1.0 - w) * apart / _CONTRADICTION) ** 2)
        torque[i], sigma[i] = n - w * apart, math.sqrt(variance)


class Fusion:
    """Fuses the external torques of the observer and of MOB-Net, sample by sample.

    Parameters
    ----------
    joint_count : n
    """

    def __init__(self, joint_count: int) -> None:
        self._state = np.zeros((4, joint_count))

    def step(
        self,
        observer: tuple[FloatArray, FloatArray],
        network: tuple[FloatArray, FloatArray],
        J: FloatArray,
        unexpected: FloatArray,
        dt: float,
    ) -> tuple[FloatArray, FloatArray]:
        """Torque and sigma (n,) of one sample from those of both sources, see :func:`fuse_torques`."""
        torque, sigma = np.empty((2, network[0].size))
        fuse_torques(*observer, *network, J, unexpected, dt, self._state, torque, sigma)
        return torque, sigma
