"""Both stages of one limb, the noise that they adapt, and what every frame uses of their solution."""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

import numpy as np

from friction_estimator.config import SensorNoise
from friction_estimator.estimation.kalman.law_bounds import project_laws
from friction_estimator.estimation.two_stage.balance import Learned
from friction_estimator.estimation.two_stage.solution import LimbSolution, NewestSeconds
from friction_estimator.estimation.two_stage.terms import LimbTerms
from friction_estimator.estimation.two_stage.window import CORRELATION_TIME, StageOne
from friction_estimator.kernels.records import buffered_zeros, to_buffer
from friction_estimator.linear_algebra import is_bounded
from friction_estimator.types import FloatArray, IntArray

WINDOW = 0.02
"""Length of a window [s]."""
FORGETTING_TIME = 60.0
"""Time after which information counts 1/e [s]."""
_LAW_KEPT = 0.05
"""Part of the information about a law that is kept when it no longer holds."""
_WHITE_STD_TIME, _WHITE_STD_GAIN = 1.0, 0.3
"""Time over which the noise of the balance is adapted [s], and the part of the difference that is used."""
_MIN_WHITE_STD, _MIN_SCALE = 1e-3, 1e-3
"""Lower bounds on the noise of the balance [N m], and on the factor on the variance of the momentum and its inverse."""
_MIN_STD_OVER_LAW, _MIN_LAW_ERROR_STD = 0.02, 1e-3
"""Standard deviation of the law's error, over the root mean square of the law's torque, and in addition [N m]."""
_RIPPLE_SHARE = 0.2
"""Prior standard deviation of the amplitude of a ripple, over the root mean square of the law's torque."""
_LAW_MEMORY = 2.0
"""Time over which the mean square of the law's torque is taken [s]."""
_FIRST_WHITE_STD = 0.001
"""Noise of the balance before any data, over the strength of the motors."""
_MIN_BIAS_VARIANCE = 1e-8
"""Lower bound on the variance of an unloaded foot's mean reading, in the square of the unit."""
_CHANGE_STD, _MIN_LOG_RATIO = 0.5, 3.0
"""Standard deviation of a change of friction, over the friction, and the log-likelihood ratio that shows one."""
_MIN_WINDOWS = 150.0
"""Windows after which a law may have changed: before that it is still being learned."""
_INDEPENDENT = WINDOW / CORRELATION_TIME
"""Independent residuals in a window."""
_CHECKPOINT_PERIOD, _CHECKPOINT_COUNT = 1.0, 7
"""Time between two copies of the information, to go back to [s], and their number."""


class _Checkpoint(NamedTuple):
    """Copy of what a limb has learned."""

    information: FloatArray
    white_std: FloatArray
    windows: float


class LimbObserver:
    """Two-stage filter of one limb.

    Parameters
    ----------
    terms : of the limb
    strength : (m,) of its motors [N m]
    bounds : (m, b, p) of their laws, see :func:`law_bounds`

    Attributes
    ----------
    terms, terms_buffer : as given, and the buffer behind it
    stage, buffer : first stage, and the buffer behind it
    solution : second stage
    windows : number of windows that were used
    """

    def __init__(self, terms: LimbTerms, strength: FloatArray, bounds: FloatArray) -> None:
        self._bounds = bounds
        self.terms, self.terms_buffer = terms, to_buffer(terms)
        (m, p), s = terms.law_std.shape, terms.size
        self._first_white_std = _FIRST_WHITE_STD * strength
        self.buffer, self.stage = buffered_zeros(
            StageOne, impulse=(m, s + 1), variance=m, white_std=m, momentum_scale=m, nis_sum=m, lag_sum=m, innovation=m,
            windows=1, change=m, change_information=m, nis=m, unexplained=m, unexplained_variance=m, delay_torque=m,
            columns=(m, s + 1),
        )  # fmt: skip
        self.solution = LimbSolution(m, p, terms.width - p, s - terms.width)
        self.newest = NewestSeconds(self.solution, terms)
        self._law_mean_square: FloatArray = np.zeros(m)
        self.reset_to_prior()

    def reset_to_prior(self) -> None:
        """Drop all information."""
        self.solution.information[:] = 0.0
        self.solution.solve()
        self.newest.reset()
        self._numbers = 0.0
        self.stage.white_std[:], self.stage.momentum_scale[:] = self._first_white_std, 1.0
        self._law_mean_square = np.zeros_like(self._law_mean_square)
        self.windows = 0.0
        self._checkpoints: deque[_Checkpoint] = deque(maxlen=_CHECKPOINT_COUNT)
        self._mark: _Checkpoint | None = None
        self._checkpoint_time = -math.inf
        self.interrupt()

    def interrupt(self) -> None:
        """Begin the first stage anew with the next window; the information stays."""
        stage = self.stage
        stage.impulse[:], stage.variance[:], stage.innovation[:] = 0.0, 0.0, 0.0
        stage.change[:], stage.change_information[:] = 0.0, 0.0
        stage.nis[:] = stage.unexplained[:] = np.nan

    def solve(self, duration: float) -> None:
        """Adapt the noise, and solve for the terms.

        The mean square of the innovations shows the noise of the balance. The product of neighbouring ones, which is
        zero for the right gain, shows that of the momentum (Mehra 1970).

        Parameters
        ----------
        duration : since the last solution [s]
        """
        stage, solution = self.stage, self.solution
        count = float(stage.windows[0])
        if not count:
            return
        nis, product = stage.nis_sum / count, stage.lag_sum / count
        stage.nis_sum[:], stage.lag_sum[:], stage.windows[0] = 0.0, 0.0, 0.0
        self.windows += count
        rate = _WHITE_STD_GAIN * -math.expm1(-duration / _WHITE_STD_TIME)
        stage.white_std[:] = np.maximum(stage.white_std * np.clip(nis, 0.1, 10.0) ** rate, _MIN_WHITE_STD)
        scale = stage.momentum_scale * np.exp(-rate * np.clip(product, -1.0, 1.0))
        stage.momentum_scale[:] = np.clip(scale, _MIN_SCALE, 1.0 / _MIN_SCALE)
        self.newest.add(self._numbers)
        self._numbers = 0.0
        solution.information *= math.exp(-duration / FORGETTING_TIME)
        self.newest.rebase()
        solution.solve()
        self._forget_changed_laws()
        torque = (stage.columns[:, : self.terms.law_std.shape[1]] * solution.law).sum(axis=1)
        self._law_mean_square += -math.expm1(-duration / _LAW_MEMORY) * (torque**2 - self._law_mean_square)

    def note_window(self) -> None:
        """Note that a window has added to the information."""
        self._numbers += self.terms.joints.size * _INDEPENDENT

    def add_unloaded_foot(self, place: int, wrench: FloatArray, noise: SensorNoise, readings: float) -> None:
        """Use what the sensor of an unloaded foot reads, which is its bias.

        Parameters
        ----------
        place : of the foot in the limb
        wrench : (6,) mean of a window, in and about the sole frame [N, N m]
        noise, readings : white noise of one reading, and number of readings
        """
        std = self.terms.wrench_std[0]
        variance = np.repeat((noise.force_std**2, noise.moment_std**2), 3) / max(readings, 1.0) + _MIN_BIAS_VARIANCE
        weight = std / (variance * max(CORRELATION_TIME / WINDOW, 1.0))
        first, N = self.terms.foot_bias + 6 * place, self.solution.information[0]
        rows = np.arange(first, first + 6)
        N[rows, rows] += weight * std
        N[rows, -1] += weight * wrench
        N[-1, rows] += weight * wrench
        N[-1, -1] += float(weight @ wrench**2)
        self._numbers += wrench.size * _INDEPENDENT

    def _forget_changed_laws(self) -> None:
        """Keep a part of the information about laws whose torque has become larger or smaller.

        The innovations of the newest windows then follow those of the law's torque: ``r = a e_law + noise``, with
        ``a ~ N(0, _CHANGE_STD^2)``. The log-likelihood ratio against ``a = 0`` shows the change.
        """
        stage = self.stage
        if self.windows < _MIN_WINDOWS:
            return
        precision = stage.change_information + _CHANGE_STD**-2
        ratio = 0.5 * (stage.change**2 / precision - np.log(precision * _CHANGE_STD**2))
        changed = np.flatnonzero(ratio > _MIN_LOG_RATIO)
        if changed.size:
            self.forget_laws(changed)
            stage.change[changed], stage.change_information[changed] = 0.0, 0.0
            self.solution.solve()

    def forget_laws(self, motors: IntArray) -> None:
        """Keep a part of the information about the laws of these motors of the limb, which have changed."""
        self.newest.add()
        for motor in motors.tolist():
            self.solution.forget_law(motor, _LAW_KEPT)
        self.newest.rebase()

    def begin_ripple(self, columns: slice) -> None:
        """Learn a ripple, whose terms are these columns: its amplitude is a part of the motor's friction."""
        amplitude = _RIPPLE_SHARE * np.sqrt(self._law_mean_square)
        self.terms.law_std[:, columns] = np.maximum(amplitude, _MIN_LAW_ERROR_STD)[:, None]
        self.terms_buffer = to_buffer(self.terms)
        self.solution.drop_terms(columns)
        self.newest.reset()

    def copy_identified(self, other: LimbObserver) -> None:
        """Copy all that another observer of the same limb has learned."""
        self.terms.law_std[:] = other.terms.law_std
        self.terms_buffer = to_buffer(self.terms)
        self.solution.information[:] = other.solution.information
        self.newest.reset()
        self.stage.white_std[:], self.stage.momentum_scale[:] = other.stage.white_std, other.stage.momentum_scale
        self._law_mean_square, self.windows = other._law_mean_square.copy(), other.windows
        self.solution.solve()

    def errors(self, start: int, stop: int) -> FloatArray:
        """Whitened errors of the sensors in these columns."""
        p = self.terms.law_std.shape[1]
        return self.solution.errors[start - p : stop - p]

    def error_covariance(self, start: int, stop: int) -> FloatArray:
        """Covariance of :meth:`errors`."""
        p = self.terms.law_std.shape[1]
        return self.solution.error_covariance[start - p : stop - p, start - p : stop - p]

    def constant_torque(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Constant torque of every motor (m,) [N m], its variance, and the root mean square of the law's torque."""
        terms = self.terms
        value = self.errors(terms.offset, terms.width) * terms.offset_std
        variance = np.diagonal(self.error_covariance(terms.offset, terms.width)) * terms.offset_std**2
        return value, variance, np.sqrt(self._law_mean_square)

    def write(self, learned: Learned) -> None:
        """Write the solution, but for the constant torque, into the record that every frame reads."""
        terms, solution, stage, joints = self.terms, self.solution, self.stage, self.terms.joints
        std, feet = terms.law_std, terms.feet
        law, covariance = solution.law * std, solution.law_covariance * std[:, :, None] * std[:, None, :]
        project_laws(law, covariance, self._bounds)
        learned.law[joints], learned.law_covariance[joints] = law, covariance
        learned.wrench_bias[feet] = self.errors(terms.foot_bias, terms.foot_gain).reshape(-1, 6) * terms.wrench_std[0]
        learned.wrench_gain[feet] = self.errors(terms.foot_gain, terms.gain).reshape(-1, 6) * terms.wrench_std[1]
        learned.effort_gain[joints] = terms.effort_gain @ self.errors(terms.gain, terms.accelerometer)
        learned.accelerometer[joints] = self.errors(terms.accelerometer, terms.wrench_delay) * terms.specific_force_std
        learned.law_error_std[joints] = _MIN_STD_OVER_LAW * np.sqrt(self._law_mean_square) + _MIN_LAW_ERROR_STD
        learned.white_std[joints] = stage.white_std

    @property
    def is_finite(self) -> bool:
        """Whether all that was learned is."""
        solution, stage = self.solution, self.stage
        learned = solution.information, solution.rows, stage.white_std, stage.momentum_scale, self._law_mean_square
        return all(map(is_bounded, learned))

    def go_back(self) -> None:
        """Go back to the newest copy that is finite, or to the prior."""
        finite = [copy for copy in self._checkpoints if is_bounded(copy.information) and is_bounded(copy.white_std)]
        self._mark = finite[-1] if finite else None
        self.rollback_to_mark()

    def save_checkpoint(self, time: float) -> None:
        """Keep a copy of the information at this time [s], if the last one is old enough."""
        if not 0.0 <= time - self._checkpoint_time < _CHECKPOINT_PERIOD:
            self._checkpoint_time = time
            copies = self.solution.information.copy(), self.stage.white_std.copy()
            self._checkpoints.append(_Checkpoint(*copies, self.windows))

    def mark_checkpoint(self, age: float) -> None:
        """Note the newest copy that is at least this old [s], or the oldest one."""
        kept = self._checkpoints
        back = int(min(age / _CHECKPOINT_PERIOD, len(kept)))  # the age may be infinite
        self._mark = kept[max(len(kept) - 1 - back, 0)] if kept else None

    def rollback_to_mark(self) -> None:
        """Go back to the copy of :meth:`mark_checkpoint`, or to the prior where there was none."""
        mark = self._mark
        self.reset_to_prior()
        if mark is not None:
            self.solution.information[:], self.stage.white_std[:], self.windows = mark
            self.solution.solve()
            self.newest.reset()
