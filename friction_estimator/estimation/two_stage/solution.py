"""Second stage: the terms of a limb from the innovations of the first one, by least squares with a prior.

    (Lambda + 1) z = b        Lambda = sum e_A e_A^T / S,   b = sum e_A e_y / S

Rows of one motor depend on its own law and on the errors of the limb, so that Lambda has an arrow shape: laws are
eliminated motor by motor, and the errors follow from what is left (Schur complement).

What is constant in the balance is the last of the errors; :func:`one_sided_friction` finds the part that is friction.
"""

from __future__ import annotations

import numpy as np

from friction_estimator.types import FloatArray

_MIN_RELATIVE_VARIANCE = 1e-9
"""Lower bound on the variance of a saved term, over that of its prior."""
_SCALES, _WEIGHTS = np.array([0.0, 0.05, 0.1, 0.2])[:, None], np.array([3.0, 1.0, 1.0, 1.0]) / 6.0
"""One-sided friction over the dry friction, and probabilities; larger constant torques are errors of the links."""
_OFFSET_SHARE = 0.1
"""Probability that a torque sensor has an offset."""
_TAKEN_FOR_FRICTION = 0.15
"""Constant errors of model and sensors that pass for a constant torque, over the friction."""
_FLOOR = 0.07
"""Standard deviation of the one-sided part, over the friction, at least."""
_MIN_VARIANCE, _MIN_DENSITY = 1e-8, 1e-300
"""Lower bounds on the variance of a constant torque [(N m)^2], and on its probability density."""


class LimbSolution:
    """Information about the terms of a limb, and its solution.

    Parameters
    ----------
    motors, parameters, errors : m, p, c

    Attributes
    ----------
    information : (m, p + c + 1, p + c + 1) of every motor about its law, the errors, and the balance
    law, errors : (m, p), (c,) whitened terms
    rows : (m, p + c) both, as the rows of the motors have them
    law_covariance, error_covariance : (m, p, p), (c, c)
    """

    def __init__(self, motors: int, parameters: int, errors: int) -> None:
        self._parameters = parameters
        width = parameters + errors + 1
        self.information: FloatArray = np.zeros((motors, width, width))
        self.solve()

    def solve(self) -> None:
        """Solve for the terms and their covariance."""
        N, p = self.information, self._parameters
        inverse = np.linalg.inv(N[:, :p, :p] + np.eye(p))
        across = N[:, :p, p:]  # errors, and the balance as the last column
        G = inverse @ across
        left = (N[:, p:-1, p:] - across[:, :, :-1].swapaxes(1, 2) @ G).sum(axis=0)
        self.error_covariance = P = np.linalg.inv(left[:, :-1] + np.eye(len(left)))
        self.errors = P @ left[:, -1]
        G, own = G[:, :, :-1], G[:, :, -1]
        self.law_covariance = inverse + G @ P @ G.swapaxes(1, 2)
        self.law = own - G @ self.errors
        self.rows: FloatArray = np.hstack((self.law, np.tile(self.errors, (len(own), 1))))

    def forget_law(self, motor: int, share: float) -> None:
        """Keep this share of the information about the law of one motor; the solution stays as it is."""
        N, p = self.information[motor], self._parameters
        before = N[:-1, :-1] @ self.rows[motor]
        scale = np.ones(len(N))
        scale[:p] = np.sqrt(share)
        product = N[:-1, -1].copy()
        N *= scale[:, None] * scale
        N[:-1, -1] = N[-1, :-1] = product + N[:-1, :-1] @ self.rows[motor] - before

    def drop_terms(self, columns: slice) -> None:
        """Drop all information about some terms of the laws, whose columns mean something else from now on."""
        self.information[:, columns], self.information[:, :, columns] = 0.0, 0.0

    def set_law(
        self, motor: int, columns: slice, values: FloatArray, covariance: FloatArray, prior_std: FloatArray
    ) -> None:
        """Replace what is known of some terms (q,) of the law of one motor by values with a covariance (q, q).

        Terms without a prior, and those that the covariance gives no variance, stay at zero or keep their values.

        Parameters
        ----------
        prior_std : (p,) of all terms of the law
        """
        places = np.arange(columns.start or 0, columns.stop)
        known = (prior_std[places] > 0.0) & (np.diagonal(covariance) > 0.0)
        rows, std = places[known], prior_std[places[known]]
        N = self.information[motor]
        N[rows], N[:, rows] = 0.0, 0.0
        relative = covariance[np.ix_(known, known)] / np.outer(std, std)
        precision = np.linalg.inv(relative + _MIN_RELATIVE_VARIANCE * np.eye(rows.size))
        N[np.ix_(rows, rows)] = precision - np.eye(rows.size)
        N[rows, -1] = N[-1, rows] = precision @ (values[known] / std)


def one_sided_friction(
    offset: FloatArray, variance: FloatArray, prior_std: FloatArray, friction: FloatArray, model_std: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Part of the constant torques that is friction of one direction, and its variance.

    No motion tells it from the offset of a torque sensor. Motors of a robot are alike, and few sensors have an offset,
    so all motors decide together: one-sided friction is ``N(0, (a F)^2)`` with one ``a`` for all, which is zero where
    the motors show none.

    Parameters
    ----------
    offset, variance, prior_std : (n,) constant torque, its variance, and its standard deviation before any data [N m]
    friction : (n,) root mean square of the friction [N m]
    model_std : (n,) of :func:`model_error_std`

    Returns
    -------
    value, variance : (n,) [N m], [(N m)^2]
    """
    one_sided = (_SCALES * friction) ** 2  # (a, n)
    without = variance + model_std**2 + (_TAKEN_FOR_FRICTION * friction) ** 2 + one_sided + _MIN_VARIANCE
    with_offset = without + prior_std**2
    p0 = (1.0 - _OFFSET_SHARE) * _density(offset, without)
    p1 = _OFFSET_SHARE * _density(offset, with_offset)
    both = np.maximum(p0 + p1, _MIN_DENSITY)
    log_weight = np.log(both).sum(axis=1) + np.log(_WEIGHTS)
    weight = np.exp(log_weight - log_weight.max())
    weight = (weight / weight.sum())[:, None]
    gain = (p0 * one_sided / without + p1 * one_sided / with_offset) / both
    mean = (weight * gain * offset).sum(axis=0)
    square = (weight * ((gain * offset) ** 2 + one_sided * (1.0 - gain))).sum(axis=0)
    return mean, np.maximum(square - mean**2, 0.0) + (_FLOOR * friction) ** 2


def _density(value: FloatArray, variance: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-0.5 * value**2 / variance) / np.sqrt(variance))
