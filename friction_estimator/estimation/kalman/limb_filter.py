"""Kalman filter of one limb: momentum, friction law, its law error, and the errors of model and sensors."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from friction_estimator.config import KalmanConfig
from friction_estimator.estimation.kalman.limb_equations import (
    MIN_LOG_RATIO,
    FilterTable,
    LimbBalance,
    LimbMemory,
    WindowFit,
    correct_foot_bias,
    correct_limb,
    correct_momentum,
    correct_states,
    decay_law_error,
    predict_limb,
)
from friction_estimator.estimation.kalman.limb_state import UNIFORM_VARIANCE, LimbStateLayout
from friction_estimator.estimation.kalman.sensor_changes import LimbNormalEquations
from friction_estimator.kernels.records import buffer_of, buffered, buffered_zeros, from_buffer, to_buffer
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.linear_algebra import positive_semidefinite
from friction_estimator.types import FloatArray, IntArray

_IMPACT_VARIANCE_FACTOR = 10.0
"""Variance given to an impact, over its square: the momentum is taken anew from the measurement."""
_CHANGE_RATIO = 0.5
"""Standard deviation added to each parameter of a law that has changed, over its value: the next windows decide."""
LAW_INFLATION = 0.2
"""Standard deviation added to a law that has been wrong for long, as a fraction of the prior standard deviation."""
_NEW_TERM_INFLATION = 10.0
"""Factor on the covariance of what was learned with a law that lacked a term: the errors of that law are in it. The
errors of the case `ripple` are smallest with 10 and 30."""
_CHECKPOINT_PERIOD = 1.0
"""Time between two copies of what was learned, to go back to [s]: a copy costs less than a hundredth of a window."""
_CHECKPOINT_COUNT = 7
"""Number of copies: the oldest one is from before an error of a sensor that is found within some seconds."""
_MIN_COHERENT_WINDOWS, _MIN_COHERENCE = 2, 0.6
"""Number of windows, and squared sum of their unexplained impulses over the sum of their squares and that number, above
which the impulses agree: one when all are the same."""


class ImpactDetector:
    """Consecutive windows with too large an innovation: impacts of changing direction, or a force that stays.

    Parameters
    ----------
    joints : m
    config : ``min_change_duration``, ``max_impact_duration``
    """

    def __init__(self, joints: int, config: KalmanConfig) -> None:
        self._nothing, self._config = np.zeros(joints), config
        self.clear()

    def clear(self) -> None:
        """Forget all windows added so far."""
        self._count = 0
        self._impulse = self._nothing
        self._nis_sum = self._coherent = self._duration = 0.0

    def add(self, innovation: FloatArray, S: FloatArray, nis: float, duration: float) -> None:
        """Add a window: its innovation (m,) with covariance (m, m), normalised square, and length [s]."""
        self._count += 1
        self._impulse = self._impulse + innovation
        self._nis_sum += nis
        self._duration += duration
        self._coherent = float(self._impulse @ np.linalg.solve(S, self._impulse)) / self._count

    @property
    def is_change(self) -> bool:
        """True when windows have not fitted for long and agree in direction, or for very long."""
        agree = self._count >= _MIN_COHERENT_WINDOWS and self._coherent > _MIN_COHERENCE * self._nis_sum
        config = self._config
        return (agree and self._duration >= config.min_change_duration) or self._duration > config.max_impact_duration

    @property
    def force(self) -> FloatArray:
        """Mean unexplained torque of the windows added so far, (m,), of the sign of friction [N m]."""
        return -self._impulse / self._duration


class FilterBuffers(NamedTuple):
    """Buffers behind the records of a filter, for kernels."""

    limb: FloatArray
    memory: FloatArray
    fit: FloatArray
    table: FloatArray
    balance: FloatArray


class LimbFilter:
    """Kalman filter of one limb.

    Parameters
    ----------
    layout : of the state
    config : law error, process noise, impacts
    bounds : (m, b, p) rows whose product with the law's parameters of each joint (or motor) cannot be negative
    presliding : (m, p) one for parameters that are torques of presliding, else zero

    Attributes
    ----------
    limb, layout, table : joints and feet, layout of the state, and constants
    memory, fit, balance : what was learned; what the newest window shows, and its momentum balance
    buffers : of these records
    normal_equations : what the newest seconds show of law and calibration
    windows : number of windows used for identification
    running : False until :meth:`start_from`
    """

    def __init__(
        self, layout: LimbStateLayout, config: KalmanConfig, bounds: FloatArray, presliding: FloatArray
    ) -> None:
        self._config = config
        self._law_error_variance = config.law_error_std**2
        self._joint_count = m = layout.limb.joints.size
        self._gate = config.innovation_gate * m
        self._momentum, self._restarted_states, size = slice(0, m), slice(0, layout.first_state.law), layout.size
        rate = np.zeros(size)
        rate[layout["law"]] = config.law_process_noise
        rate[layout.calibration] = config.calibration_process_noise
        gain_noise = config.calibration_process_noise**2 * layout.common_gain_variance
        coulomb = np.ascontiguousarray(bounds[:, -1])
        self.limb, self.layout = layout.limb, layout
        table = FilterTable(layout.first_state, bounds, coulomb, presliding, (rate * layout.prior_std) ** 2, gain_noise)
        table_buffer, self.table = buffered(table)
        memory_buffer, self.memory = buffered_zeros(
            LimbMemory,
            state=size,
            covariance=(size, size),
            law_error_variance=m,
            law_mean_square=m,
            stick_log_ratio=m,
        )
        fit_buffer, self.fit = buffered_zeros(
            WindowFit, stick_variance=m, free_at_rest=m, innovation=m, innovation_covariance=(m, m), nis=m,
            unexplained=(2, m),
        )  # fmt: skip
        self.state, self.covariance = self.memory.state, self.memory.covariance
        balance_buffer, self.balance = buffered_zeros(
            LimbBalance, force=m, force_columns=(m, size), force_variance=(m, m), momentum=m,
            momentum_covariance=(m, m), dry_friction=m, stick_friction_squared=m, dry_friction_known=m,
            correlation_factor=m,
        )  # fmt: skip
        self.buffers = FilterBuffers(to_buffer(layout.limb), memory_buffer, fit_buffer, table_buffer, balance_buffer)
        self.normal_equations = LimbNormalEquations(layout)
        self._checkpoints: deque[tuple[FloatArray, int]] = deque(maxlen=_CHECKPOINT_COUNT)
        self._checkpoint_time = math.nan
        self.reset_to_prior()

    def reset_to_prior(self) -> None:
        """Reset everything to the prior."""
        for part in self.memory:
            part[...] = 0.0
        self.covariance[:] = self.layout.prior_covariance()
        self.memory.law_error_variance[:] = self._law_error_variance
        self.memory.stick_log_ratio[:] = MIN_LOG_RATIO
        self.fit.free_at_rest[:], self.fit.unexplained[:] = 1.0, np.nan
        self.windows = 0
        self.drop_checkpoints()
        self.reset()

    def save_checkpoint(self, time: float) -> None:
        """Save a copy of the memory, valid at ``time`` [s], if the last one is a ``_CHECKPOINT_PERIOD`` old."""
        if not 0.0 <= time - self._checkpoint_time < _CHECKPOINT_PERIOD:
            self._checkpoint_time = time
            self._checkpoints.append((self.buffers.memory.copy(), self.windows))

    def drop_checkpoints(self) -> None:
        """Drop all checkpoints, after the meaning of a parameter has changed."""
        self._checkpoints.clear()
        self._checkpoint_time = math.nan

    def checkpoint_before(self, age: float) -> tuple[FloatArray, int] | None:
        """The newest checkpoint (memory, number of windows) that is at least this old [s], else the oldest one."""
        if not self._checkpoints:
            return None
        newest = len(self._checkpoints) - 1  # up to one period old
        return self._checkpoints[int(max(newest - age / _CHECKPOINT_PERIOD, 0.0))]

    @property
    def is_settled(self) -> bool:
        """True when the filter has learned for so long that it is certain of its sensors: all checkpoints are taken."""
        return len(self._checkpoints) == _CHECKPOINT_COUNT

    def memory_before(self, age: float) -> LimbMemory | None:
        """Memory of the newest checkpoint that is at least this old [s]; None before the filter is settled."""
        checkpoint = self.checkpoint_before(age) if self.is_settled else None
        return None if checkpoint is None else from_buffer(LimbMemory, checkpoint[0])

    def rollback(self, checkpoint: tuple[FloatArray, int] | None) -> bool:
        """Go back to a checkpoint, or to the prior where it is not valid; True for the checkpoint."""
        self.reset_to_prior()
        if checkpoint is None or not positive_semidefinite(from_buffer(LimbMemory, checkpoint[0]).covariance):
            return False
        self.buffers.memory[:], self.windows = checkpoint
        self.reset()
        return True

    def recover(self) -> str:
        """Go back to the newest checkpoint, or to the prior where it is not valid; returns a text for the log."""
        if self.rollback(self._checkpoints[-1] if self._checkpoints else None):
            return f"goes back to what it had learned up to {_CHECKPOINT_PERIOD:g} s before"
        return "starts anew from its prior"

    def reset(self) -> None:
        """Reset momentum and law error to unknown; law and calibration stay."""
        self.running = False
        self.normal_equations.interrupt()
        self._impacts = ImpactDetector(self._joint_count, self._config)
        self._is_first = True
        self.fit.nis[:], self.fit.stick_variance[:] = np.nan, 0.0
        self._clear(self._restarted_states)
        self._diagonal(self.layout["law_error"])[:] = self.memory.law_error_variance

    def copy_identified(self, other: LimbFilter, columns: tuple[IntArray, IntArray]) -> None:
        """Copy law, calibration and law-error statistics from another filter of the limb.

        Parameters
        ----------
        columns : (q,), (q,) of the common parameters of each law, in this filter and in ``other``; the rest stays as it
            is
        """
        self._copy_states(other, self.layout.learned_states(columns[0]), other.layout.learned_states(columns[1]))
        self.fit.free_at_rest[:] = other.fit.free_at_rest

    def continue_from(self, other: LimbFilter, columns: tuple[IntArray, IntArray]) -> None:
        """Replace another filter in mid-run, momentum and impacts included; ``columns`` of :meth:`copy_identified`."""
        head = np.r_[self._restarted_states]
        here, there = self.layout.learned_states(columns[0]), other.layout.learned_states(columns[1])
        self._copy_states(other, np.r_[head, here], np.r_[head, there])
        for own, known in zip(self.fit, other.fit, strict=True):
            own[:] = known
        self.running, self._is_first, self._impacts = other.running, other._is_first, other._impacts

    def _copy_states(self, other: LimbFilter, here: IntArray, there: IntArray) -> None:
        """Copy states (c,) and the law-error statistics of another filter."""
        learned = here >= self._restarted_states.stop
        all_known = learned.sum() == self.layout.size - self._restarted_states.stop
        inflation = np.where(learned & (not all_known), math.sqrt(_NEW_TERM_INFLATION), 1.0)
        self.replace(here, other.state[there], np.outer(inflation, inflation) * other.covariance[np.ix_(there, there)])
        mine, theirs = self.memory, other.memory
        mine.law_error_variance[:], mine.law_mean_square[:] = theirs.law_error_variance, theirs.law_mean_square
        mine.stick_log_ratio[:] = theirs.stick_log_ratio
        self.windows = other.windows

    def start_from(self, momentum: FloatArray, momentum_covariance: FloatArray) -> None:
        """Start, or continue after an unused window, at a measured momentum (m,) [N m s] of covariance (m, m)."""
        rows = self._momentum
        self._clear(rows)
        self.state[rows] = momentum
        self.covariance[rows, rows] = momentum_covariance
        self.running = True

    def skip(self, duration: float) -> None:
        """Predict over a window [s] without a measurement."""
        before = self.memory.law_error_variance + self.fit.stick_variance
        decay_law_error(self.buffers.memory, self.buffers.fit, self.buffers.table, before, duration)
        self.running = False
        self.normal_equations.interrupt()

    def update(self, balance: LimbBalance | FloatArray, frozen: bool, contact_transition: bool) -> bool:
        """Update by one window; False where it is not finite: then only the friction of motors at rest may change.

        Parameters
        ----------
        balance : of the momentum over the window, or its buffer
        frozen : True keeps law and calibration as they are
        contact_transition : True while a foot lands or lifts off: what does not fit then is an impact, not a change
        """
        memory, fit, table = self.buffers.memory, self.buffers.fit, self.buffers.table
        buffer = buffer_of(balance)
        balance = from_buffer(LimbBalance, buffer)
        if self._is_first:
            self._stick_before(balance.stick_friction_squared)
        nis = predict_limb(memory, fit, buffer, table, frozen)
        if math.isnan(nis):
            self.normal_equations.interrupt()
            return False
        if nis <= self._gate:
            correct_limb(memory, fit, buffer, table, frozen, self._config.law_error_memory, self._law_error_variance)
            self._impacts.clear()
        else:
            self._use_impact(balance, nis, frozen, contact_transition)
        self.normal_equations.add(buffer, self.memory.law_error_variance + self.fit.stick_variance)
        self.windows += not frozen
        return True

    def _stick_before(self, stick_friction_squared: FloatArray) -> None:
        """Give motors (m,) that stick in the first window any friction: they have done so before."""
        if np.isfinite(stick_friction_squared).all():
            self._is_first = False
            self.fit.stick_variance[:] = UNIFORM_VARIANCE * stick_friction_squared * self.fit.free_at_rest
            self._diagonal(self.layout["law_error"])[:] += self.fit.stick_variance

    def _use_impact(self, balance: LimbBalance, nis: float, frozen: bool, contact_transition: bool) -> None:
        """Take the momentum of a window beyond the gate anew: an impact, unless several show a change."""
        innovation = self.fit.innovation
        self._impacts.add(innovation, self.fit.innovation_covariance, nis, balance.duration)
        if not contact_transition and self._impacts.is_change:
            self._inflate_after_change(balance, self._impacts.force, frozen)
            self._impacts.clear()
        else:
            self._reset_momentum(innovation, nis)
        S = self.covariance[self._momentum, self._momentum] + balance.momentum_covariance
        correct_momentum(self.buffers.memory, innovation, S, self.buffers.table, frozen)

    def correct_foot_bias(self, foot: int, reading: FloatArray, variance: FloatArray) -> None:
        """Correct with the mean reading (6,) of an unloaded foot, which is its bias; its variance (6,)."""
        rows = self.layout.foot_bias(foot)
        if self.layout.prior_std[rows].any():
            correct_foot_bias(self.state, self.covariance, rows.start, reading, variance)

    def fix_presliding_at_zero(self) -> None:
        """Correct with the measurement, without noise, that all torques of presliding are zero."""
        m, p = self.table.presliding.shape
        for motor in range(m):
            columns = np.flatnonzero(self.table.presliding[motor])
            rows = slice(start := self.layout.first_state.law + motor * p + int(columns[0]), start + columns.size)
            S = np.ascontiguousarray(self.covariance[rows, rows])
            correct_states(self.state, self.covariance, rows.start, -self.state[rows], S, self.layout.size)

    def inflate_after_long_push(self) -> None:
        """Inflate the covariance of law and calibration: a torque that was taken for a push has lasted too long."""
        law = self.layout["law"]
        self._diagonal(law)[:] += (LAW_INFLATION * self.layout.prior_std[law]) ** 2
        self._inflate_calibration()

    def replace(self, columns: IntArray, values: FloatArray, covariance: FloatArray) -> None:
        """Set some states (c,) to values known from elsewhere, with their covariance (c, c)."""
        self._clear(columns)
        self.state[columns] = values
        self.covariance[np.ix_(columns, columns)] = covariance

    def restore(
        self, motor: int, identified: IdentifiedParameters, row: int, parameters: int, added: Mapping[str, slice]
    ) -> None:
        """Start from the saved parameters of a motor.

        Parameters
        ----------
        motor : its place in the limb
        identified, row : saved parameters, and its row there
        parameters : of a law, without the terms that the data have added
        added : columns of these terms
        """
        states, width = self.layout.law_states[motor], min(parameters, identified.values.shape[1])
        self.replace(states[:width], identified.values[row, :width], identified.covariance[row, :width, :width])
        for kind, columns in added.items():
            saved = identified.added(kind, row)
            if saved is not None and columns.start < columns.stop:
                self.replace(states[columns], *saved)
        if (calibration := identified.added("calibration", row)) is not None:
            errors = self.layout.joint_calibration(motor)
            free = self.layout.prior_std[errors] > 0.0
            self.replace(errors[free], calibration[0][free], calibration[1][np.ix_(free, free)])
        self.windows = max(self.windows, int(identified.samples[row]))
        self.memory.law_error_variance[motor] = identified.residual_variance[row]

    def _reset_momentum(self, innovation: FloatArray, nis: float) -> None:
        """Inflate the covariance of the momentum after an impact, for instance at landing, and nothing else."""
        rows = self._momentum
        unexplained = 1.0 - self._gate / nis
        self.covariance[rows, rows] += np.outer(innovation, innovation) * (_IMPACT_VARIANCE_FACTOR * unexplained)

    def _inflate_after_change(self, balance: LimbBalance, force: FloatArray, frozen: bool) -> None:
        """Inflate the covariance of law and law error: friction has changed by about ``force`` (m,) [N m]."""
        layout, P = self.layout, self.covariance
        more, law, law_error = np.zeros(layout.size), layout["law"], layout["law_error"]
        known = layout.prior_std[law] > 0.0
        more[law] = 0.0 if frozen else known * (_CHANGE_RATIO * np.abs(self.state[law])) ** 2
        rows, T, G = self._momentum, balance.duration, balance.force_columns
        more[law_error] = np.linalg.solve(G[:, law_error], force) ** 2
        into_momentum = -T * G * more
        P[rows] += into_momentum
        P[:, rows] += into_momentum.T
        P[rows, rows] += T * T * (G * more) @ G.T
        self._diagonal(slice(0, layout.size))[:] += more
        if not frozen and (np.abs(force) > balance.dry_friction).any():  # not friction alone
            self._inflate_calibration()

    def _inflate_calibration(self) -> None:
        """Reset the covariance of a settled calibration: sensors and links may have changed as well as friction."""
        if self.is_settled:
            rows = self.layout.calibration
            self.covariance[rows] = self.covariance[:, rows] = 0.0
            self.covariance[rows, rows] = self.layout.changed_covariance()

    def _clear(self, rows: slice | IntArray) -> None:
        self.state[rows] = 0.0
        self.covariance[rows] = 0.0
        self.covariance[:, rows] = 0.0

    def _diagonal(self, rows: slice) -> FloatArray:
        """Writable view of a part of the covariance's diagonal."""
        return self.covariance.ravel()[:: self.layout.size + 1][rows]
