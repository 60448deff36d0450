"""Second stage: the terms of a limb from the innovations of the first one, by least squares with a prior.

    (Lambda + 1) z = b        Lambda = sum e_A e_A^T / S,   b = sum e_A e_y / S

Rows of one motor depend on its own law and on the errors of the limb, so that Lambda has an arrow shape: laws are
eliminated motor by motor, and the errors follow from what is left (Schur complement).

What is constant in the balance is the last of the errors; :func:`one_sided_friction` finds the part that is friction.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from friction_estimator.estimation.kalman.sensor_changes import (
    MEMORY_SECONDS,
    ChangedStates,
    ChangeInformation,
    change_information,
    subtract_wrench_delay,
)
from friction_estimator.estimation.two_stage.terms import LimbTerms
from friction_estimator.types import FloatArray, IntArray

_MIN_RELATIVE_VARIANCE = 1e-9
"""Lower bound on the variance of a saved term, over that of its prior."""
_SETTLED_NUMBERS = 60.0
"""Independent residuals of a motor from which on what was learned before may be compared with newer seconds."""
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
    others : number of further columns, which are not estimated

    Attributes
    ----------
    information : (m, s + 1, s + 1) of every motor about its law, the errors, other columns, and the balance
    law, errors : (m, p), (c,) whitened terms
    rows : (m, s) both, as the rows of the motors have them; zero for other columns
    law_covariance, error_covariance : (m, p, p), (c, c)
    """

    def __init__(self, motors: int, parameters: int, errors: int, others: int = 0) -> None:
        self._parameters, self._errors = parameters, errors
        size = parameters + errors + others
        self.information: FloatArray = np.zeros((motors, size + 1, size + 1))
        self.solve()

    def solve(self) -> None:
        """Solve for the terms and their covariance."""
        N, p, c = self.information, self._parameters, self._errors
        inverse, balance = np.linalg.inv(N[:, :p, :p] + np.eye(p)), N[:, :, -1:]
        across = np.concatenate((N[:, :p, p : p + c], balance[:, :p]), axis=2)
        of_errors = np.concatenate((N[:, p : p + c, p : p + c], balance[:, p : p + c]), axis=2)
        G = inverse @ across
        left = (of_errors - across[:, :, :-1].swapaxes(1, 2) @ G).sum(axis=0)
        self.error_covariance = P = np.linalg.inv(left[:, :-1] + np.eye(len(left)))
        self.errors = P @ left[:, -1]
        G, own = G[:, :, :-1], G[:, :, -1]
        self.law_covariance = inverse + G @ P @ G.swapaxes(1, 2)
        self.law = own - G @ self.errors
        self.rows: FloatArray = np.zeros((len(own), N.shape[2] - 1))
        self.rows[:, :p], self.rows[:, p : p + c] = self.law, self.errors

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


class NewestSeconds:
    """Information of the newest seconds about a limb, for the comparison of changes.

    Its states are the laws of all motors, the errors of the limb, and the other columns (n,).

    Parameters
    ----------
    solution : whose information grows by what windows add
    terms : of the limb
    """

    def __init__(self, solution: LimbSolution, terms: LimbTerms) -> None:
        self._solution, self._terms = solution, terms
        self.places: dict[str, IntArray] = {"joint": terms.joints, "foot": terms.feet, "robot": np.full(1, -1)}
        self.reset()

    def reset(self) -> None:
        """Drop all seconds."""
        self._sums: deque[FloatArray] = deque(maxlen=MEMORY_SECONDS + 1)  # the last second is not complete
        self._numbers: deque[float] = deque(maxlen=MEMORY_SECONDS + 1)
        self._learned: deque[FloatArray | None] = deque(maxlen=MEMORY_SECONDS + 1)
        self._total = 0.0
        self.begin_second()

    def begin_second(self) -> None:
        """Begin the sums of another second."""
        if self._sums:
            self.add()
        else:
            self.rebase()
        self._sums.append(np.zeros_like(self._base))
        self._numbers.append(0.0)
        settled = self._total >= _SETTLED_NUMBERS * self._terms.joints.size
        self._learned.append(self._base if settled else None)

    def add(self, numbers: float = 0.0) -> None:
        """Add what windows have added since the call before; ``numbers``: of independent residuals in it."""
        self._sums[-1] += self._solution.information - self._base
        self._numbers[-1] += numbers
        self._total += numbers
        self.rebase()

    def rebase(self) -> None:
        """Count as added what comes from now on."""
        self._base: FloatArray = self._solution.information.copy()

    def learned_before(self) -> tuple[FloatArray, FloatArray] | None:
        """States (n,) and covariance (n, n) before the newest seconds, zero for columns that are not estimated."""
        before = self._learned[0] if len(self._learned) > MEMORY_SECONDS else None
        if before is None:
            return None
        N, estimated = self._dense(before), self._place(self._terms.width)
        state, covariance = np.zeros(len(N) - 1), np.zeros((len(N) - 1, len(N) - 1))
        P = np.linalg.inv(N[:estimated, :estimated] + np.eye(estimated))
        state[:estimated], covariance[:estimated, :estimated] = P @ N[:estimated, -1], P
        return state, covariance

    def change_information(self, state: FloatArray, covariance: FloatArray, seconds: int) -> ChangeInformation:
        """Information of the newest seconds about changes, with this prior."""
        self.add()
        N, terms = self._dense(np.sum(list(self._sums)[-seconds - 1 :], axis=0)), self._terms
        numbers = round(sum(list(self._numbers)[-seconds - 1 :]))
        found = change_information(N[:-1, :-1], N[:-1, -1], float(N[-1, -1]), numbers, state, covariance)
        late, wrenches = (
            slice(self._place(start), self._place(stop))
            for start, stop in ((terms.torque_delay, terms.offset), (terms.wrench_delay, terms.torque_delay))
        )
        subtract_wrench_delay(found, late, wrenches, terms.torque_delay_std / (terms.wrench_delay_std or 1.0))
        return found

    def changed_states(self, kind: str, count: int) -> ChangedStates:
        """States of a kind of change, of this number of places."""
        terms, (m, p) = self._terms, self._terms.law_std.shape
        if kind == "law":
            return ChangedStates(np.arange(m * p).reshape(m, p), np.ones((m, p)), terms.law_std)
        one = np.ones(1)
        kinds: dict[str, tuple[int, FloatArray, FloatArray]] = {
            "effort_gain": (terms.width, one, one),
            "position_offset": (terms.positions, one, one),
            "links": (terms.links, terms.link_std, np.ones(4)),
            "effort_offset": (terms.offset, one, terms.offset_std[:, None]),
            "foot_bias": (terms.foot_bias, one, terms.wrench_std[0]),
            "foot_gain": (terms.foot_gain, one, terms.wrench_std[1]),
            "wrench_delay": (terms.wrench_delay, one, np.full(1, terms.wrench_delay_std)),
            "torque_delay": (terms.torque_delay, one, np.full(1, terms.torque_delay_std)),
            "accelerometer_bias": (terms.accelerometer, one, np.full(3, terms.specific_force_std)),
        }
        first, std, unit = kinds[kind]
        shape = count, unit.shape[-1]
        states = self._place(first) + np.arange(shape[0] * shape[1]).reshape(shape)
        return ChangedStates(states, np.broadcast_to(std, shape), np.broadcast_to(unit, shape))

    def _place(self, column: int) -> int:
        """State of a column that is not of a law."""
        m, p = self._terms.law_std.shape
        return (m - 1) * p + column

    def _dense(self, information: FloatArray) -> FloatArray:
        """Information (n + 1, n + 1) about all states and the balance, from that of the motors."""
        (m, p), n = self._terms.law_std.shape, self._place(self._terms.size)
        dense = np.zeros((n + 1, n + 1))
        for motor, N in enumerate(information):
            rows = np.r_[motor * p : (motor + 1) * p, m * p : n + 1]
            dense[np.ix_(rows, rows)] += N
        return dense


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
