"""Recursive least squares of every joint at once (Hashlamon & Erbatur 2014, eqs. 64-67)."""

from __future__ import annotations

import numpy as np

from friction_estimator.core.types import BoolArray, FloatArray


class RecursiveLeastSquares:
    """Least squares of ``y = phi^T theta`` for each of ``n`` joints, which eq. 59 keeps independent of each other.

    Parameters
    ----------
    initial_variance : (n, p) diagonal of P_RLS_0, 10 everywhere in Table II; zero where a joint has no such parameter,
        which then stays exactly zero as long as its regressor does
    forgetting : 1 never forgets, as printed

    Attributes
    ----------
    parameters : (n, p) Phi, zero at first (Table II)
    covariance : (n, p, p) P_RLS, in units of the measurement variance
    """

    def __init__(self, initial_variance: FloatArray, forgetting: float = 1.0) -> None:
        self.parameters = np.zeros(initial_variance.shape)
        self.covariance = initial_variance[:, :, None] * np.eye(initial_variance.shape[1])
        self._initial_variance = initial_variance
        self._forgetting = forgetting

    def step(self, regressor: FloatArray, measurement: FloatArray, active: BoolArray) -> FloatArray:
        """Update the joints that are ``active``; return the residuals before the update (eq. 65), (n,).

        Parameters
        ----------
        regressor : (n, p) rows phi
        measurement : (n,) friction; only read where active
        active : (n,) which joints adapt
        """
        P, phi, forgetting = self.covariance, regressor, self._forgetting
        error = measurement - (phi * self.parameters).sum(axis=1)  # eq. 65
        P_phi = (P @ phi[:, :, None])[:, :, 0]
        innovation = forgetting + (phi * P_phi).sum(axis=1)
        gain = P_phi / innovation[:, None]  # eq. 66
        self.parameters = np.where(active[:, None], self.parameters + gain * error[:, None], self.parameters)  # eq. 64
        # eq. 67, with K phi^T P written as a product that is symmetric to the last bit: forgetting amplifies the rest
        updated = (P - P_phi[:, :, None] * P_phi[:, None, :] / innovation[:, None, None]) / forgetting
        if (
            forgetting < 1.0
        ):  # what is not excited is not forgotten: no parameter becomes less certain than at the start
            wound_up = (np.diagonal(updated, axis1=1, axis2=2) > self._initial_variance).any(axis=1)
            active = active & ~wound_up
        self.covariance = np.where(active[:, None, None], updated, P)
        return error
