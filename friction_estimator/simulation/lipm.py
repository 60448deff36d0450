"""Centre-of-mass plan of the linear inverted pendulum for a given zero-moment point."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_banded

from friction_estimator.types import FloatArray


def com_from_zmp(zmp: FloatArray, period: float, omega: float) -> FloatArray:
    """Solve ``c - c'' / omega^2 = p`` with the centre of mass over the ZMP at both ends.

    The boundary-value problem is one tridiagonal system, well conditioned for any length, where integrating the
    unstable pendulum forward would diverge.

    Parameters
    ----------
    zmp : (K, d) zero-moment point at equidistant knots [m]
    period : time between knots [s]
    omega : ``sqrt(g / z_c)`` [1/s]

    Returns
    -------
    (K, d) centre of mass at the knots [m]
    """
    weight = 1.0 / (omega * period) ** 2
    bands = np.empty((3, zmp.shape[0]))
    bands[0], bands[1], bands[2] = -weight, 1.0 + 2.0 * weight, -weight
    bands[1, [0, -1]] = 1.0
    bands[0, 1] = bands[2, -2] = 0.0
    return solve_banded((1, 1), bands, zmp)
