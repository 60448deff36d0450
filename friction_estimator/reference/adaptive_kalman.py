"""Adaptive Kalman filter that estimates its own noise covariances (Hashlamon & Erbatur 2014, eqs. 17-31)."""

from __future__ import annotations

import numpy as np

from friction_estimator.linear_algebra import kalman_gain
from friction_estimator.types import FloatArray


class AdaptiveKalmanFilter:
    """Kalman filter of ``x_k = A x_{k-1} + B u_k + w``, ``z_k = C x_k + v`` with Q and R adapted on the way.

    Parameters
    ----------
    state : (s,) x_0
    covariance : (s, s) P_0
    process_noise : (s,) diagonal of Q_0
    measurement_noise : (m,) diagonal of R_0
    process_window : N_Q [samples]
    measurement_window : N_R [samples]
    """

    def __init__(
        self,
        state: FloatArray,
        covariance: FloatArray,
        process_noise: FloatArray,
        measurement_noise: FloatArray,
        process_window: float,
        measurement_window: float,
    ) -> None:
        self.state = state
        self.covariance = covariance
        self.process_noise = process_noise
        self.measurement_noise = measurement_noise
        self._process_window = process_window
        self._measurement_window = measurement_window
        self._mean_residual = np.zeros_like(measurement_noise)
        self._mean_state_error = np.zeros_like(state)

    def predict(self, A: FloatArray, B_u: FloatArray) -> None:
        """A-priori state and covariance (eqs. 17, 18); ``B_u`` is ``B @ u``, (s,)."""
        self.state = A @ self.state + B_u
        self._propagated = A @ self.covariance @ A.T
        self.covariance = self._propagated.copy()
        self.covariance.ravel()[:: self.state.size + 1] += self.process_noise

    def correct(self, C: FloatArray, measurement: FloatArray) -> None:
        """Adapt R, update the state and covariance, adapt Q (eqs. 19-31).

        ``|diag(.)|`` of eqs. 22 and 27 is read as the absolute value of each diagonal element.
        """
        N_R, N_Q = self._measurement_window, self._process_window
        prior_state, P = self.state, self.covariance
        CP = C @ P
        CPC = CP @ C.T
        residual = measurement - C @ prior_state  # eq. 19
        alpha = (N_R - 1.0) / N_R
        self._mean_residual = alpha * self._mean_residual + residual / N_R  # eq. 20
        spread = (residual - self._mean_residual) ** 2 / (N_R - 1.0) - CPC.diagonal() / N_R  # eq. 23
        self.measurement_noise = np.abs(alpha * self.measurement_noise + spread)  # eq. 22
        CPC.ravel()[:: measurement.size + 1] += self.measurement_noise
        K = kalman_gain(CPC, CP)  # eq. 25
        correction = K @ residual
        self.state = prior_state + correction  # eq. 24
        self.covariance = P - K @ CP  # eq. 26
        self._adapt_process_noise(correction, N_Q)

    def _adapt_process_noise(self, state_error: FloatArray, N_Q: float) -> None:
        alpha = (N_Q - 1.0) / N_Q
        self._mean_state_error = alpha * self._mean_state_error + state_error / N_Q  # eq. 31
        spread = (self.covariance.diagonal() - self._propagated.diagonal()) / N_Q
        spread = spread + (state_error - self._mean_state_error) ** 2 / (N_Q - 1.0)  # eq. 28
        self.process_noise = np.abs(alpha * self.process_noise + spread)  # eq. 27
