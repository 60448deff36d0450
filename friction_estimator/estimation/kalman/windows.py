"""Samples gathered to windows of some milliseconds: the clock of identification.

    sample  0 . . . . . . . . . N . . . . .
            |<---- window ----->|
          fit around          fit around
          the start           the end, h samples later

The momentum at both ends comes from readings around them that no other window uses, so its noise is white from window
to window. In between, torque, wrench and specific force count with their mean, which is their impulse.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from friction_estimator.config import KalmanConfig, SensorNoise
from friction_estimator.estimation.kalman.local_motion import LocalMotion, fit_acceleration, fit_middle, reading_stds
from friction_estimator.estimation.motion.joint_motion import JointMotion
from friction_estimator.estimation.observers.momentum import ObserverInputs
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.kernels.records import (
    buffered_zeros,
    from_buffer,
    record,
    set_scalars,
    to_buffer,
    unbuffered_record,
)
from friction_estimator.types import BoolArray, Dynamics, Flags, FloatArray, IntArray, Matrix, Vector

_MIN_SAMPLES, _MAX_SAMPLES = 3, 1000
"""Samples of a window."""
_SAMPLES_FOR_PERIOD = 9
"""Samples whose median distance gives the period."""
_MIN_GAP = 2.5
"""Distances of more than this many periods are gaps: what acted there is not known."""
_MAX_LENGTHS = 10.0
"""A window that lasts for more of its lengths had a shorter period than the samples have now."""
_MIN_DURATION = 1e-9
"""Lower bound on durations and periods that are divided by [s]."""


@record
class Window(NamedTuple):
    """A closed window.

    Attributes
    ----------
    time : of its end, since the restart [s]
    duration : [s]
    samples : how many
    complete : True where no samples are missing
    imu_fresh, wrench_fresh : (), (k,) True where no sample was stale
    reading_counts : (1 + k,) readings of IMU and foot sensors in the window, without values between two readings
    end_motion : motion of the joints and of the base at its end
    angular_acceleration : (3,) of the base at the end, base axes
    acceleration : (n,) of the joints at the end
    mean_acceleration, mean_acceleration_std : (3 + n,) of base and joints, by the readings of this window alone
    effort, specific_force, wrenches : means (n,), (3,), (k, 6)
    wrench_shift : (k,) the means of the wrenches, and their rates, are those of a window that is later by this [s]
    normal_force : (2, k) smallest and largest normal force [N]
    effort_rate, wrench_rate : (n,), (k, 6) mean rates of change [N m/s], [N/s, N m/s]
    specific_force_roughness, wrench_roughness : (3,), (k, 6) variance of the readings about a smooth course
    regressor : (n, p) of the laws, motor by motor; mean
    motor_friction_variance : (n,) of the motors' friction from their uncertain velocity, mean [(N m)^2]
    disturbed : (n,) True where any sample was
    """

    time: float
    duration: float
    samples: int
    complete: bool
    imu_fresh: bool
    reading_counts: Vector
    end_motion: LocalMotion
    angular_acceleration: Vector
    acceleration: Vector
    mean_acceleration: Vector
    mean_acceleration_std: Vector
    effort: Vector
    specific_force: Vector
    wrenches: Matrix
    wrench_shift: Vector
    normal_force: Matrix
    effort_rate: Vector
    wrench_rate: Matrix
    specific_force_roughness: Vector
    wrench_roughness: Matrix
    regressor: Matrix
    motor_friction_variance: Vector
    wrench_fresh: Flags
    disturbed: Flags

    @property
    def buffer(self) -> FloatArray:
        """Array with all values of the window, for kernels."""
        return to_buffer(self) if self.reading_counts.base is None else self.reading_counts.base


@unbuffered_record
class _Span(NamedTuple):
    """Rows of a window in the buffer."""

    margin: int  # first row of the window: the rows before, and as many after it, serve the fits at its ends
    end: int  # last row of the window
    held: bool  # True when readings act until the next one
    period: float  # of the samples [s]


class SampleColumns(NamedTuple):
    """First column of each value in a row of the buffer, for n joints and k feet; column 0 is the time."""

    position: int  # (n,)
    velocity: int  # (n,)
    angular_velocity: int  # (3,) of the base, base axes
    angular_acceleration: int  # (3,) of the base, base axes
    acceleration: int  # (n,) of the joints
    effort: int  # (n,)
    specific_force: int  # (3,)
    wrenches: int  # (6 k,)
    fresh: int  # (1 + k,) IMU and feet
    disturbed: int  # (n,)
    motor_friction_variance: int  # (n,)
    regressor: int  # (n p,)


@kernel
def _sample_columns(n: int, k: int) -> SampleColumns:
    """Columns for n joints and k feet."""
    effort = 7 + 3 * n
    wrenches = effort + n + 3
    disturbed = wrenches + 7 * k + 1
    return SampleColumns(
        1, 1 + n, 1 + 2 * n, 4 + 2 * n, 7 + 2 * n, effort, effort + n, wrenches, wrenches + 6 * k, disturbed,
        disturbed + n, disturbed + 2 * n,
    )  # fmt: skip


@kernel
def _write_columns(row: FloatArray, at: int, values: FloatArray) -> None:
    """Write values into a row from a column on."""
    for j in range(values.size):
        row[at + j] = values[j]


@kernel
def _read_columns(row: FloatArray, at: int, values: FloatArray) -> None:
    """Read values from a row from a column on."""
    for j in range(values.size):
        values[j] = row[at + j]


@kernel
def write_sample(
    row: FloatArray,
    dynamics: Dynamics,
    motion: JointMotion,
    inputs: ObserverInputs,
    angular_acceleration: FloatArray,
    disturbed: BoolArray,
    motor_friction_variance: FloatArray,
    regressor: FloatArray,
) -> None:
    """Write one sample into a row of the buffer, all but its time, see :class:`SampleColumns`.

    Parameters
    ----------
    angular_acceleration : (3,) of the base, base axes [rad/s^2]
    disturbed : (n,) True for joints of limbs that something pushes
    motor_friction_variance : (n,) of the motors' friction from their uncertain velocity [(N m)^2]
    regressor : (n, p) of the laws, motor by motor
    """
    (n, p), k, v = regressor.shape, inputs.wrench_fresh.size, dynamics.velocity
    base, at = v.size - n, _sample_columns(n, k)
    _write_columns(row, at.position, dynamics.position)
    _write_columns(row, at.velocity, v[base:])
    for axis in range(3):
        row[at.angular_velocity + axis] = v[3 + axis] if base else 0.0
    _write_columns(row, at.angular_acceleration, angular_acceleration)
    _write_columns(row, at.acceleration, motion.acceleration)
    _write_columns(row, at.effort, inputs.effort)
    _write_columns(row, at.specific_force, dynamics.specific_force)
    row[at.fresh] = inputs.imu_fresh
    for foot in range(k):
        _write_columns(row, at.wrenches + 6 * foot, inputs.wrenches[foot])
        row[at.fresh + 1 + foot] = inputs.wrench_fresh[foot]
    _write_columns(row, at.motor_friction_variance, motor_friction_variance)
    for joint in range(n):
        row[at.disturbed + joint] = disturbed[joint]
        _write_columns(row, at.regressor + p * joint, regressor[joint])


@kernel
def _fill_weights(weights: FloatArray, rows: FloatArray, held: bool) -> None:
    """Weights (N,) of a time mean of rows: each reading holds until the next, or the trapezoid rule."""
    N = rows.shape[0]
    weights[:] = 0.0
    if N == 1:
        weights[0] = 1.0
        return
    total = rows[N - 1, 0] - rows[0, 0]
    for k in range(N - 1):
        step = (rows[k + 1, 0] - rows[k, 0]) / total
        if held:
            weights[k] = step
        else:
            weights[k] += 0.5 * step
            weights[k + 1] += 0.5 * step


@kernel
def _summarise_columns(
    rows: FloatArray, weights: FloatArray, margin: int, first: int, stop: int, duration: float, means: FloatArray
) -> None:
    """Write mean, variance about a smooth course and rate of the columns from ``first`` to ``stop`` of N rows."""
    N = weights.size
    for k in range(N):
        row = margin + k
        for j in range(first, stop):
            means[0, j] += weights[k] * rows[row, j]
        if k >= 2:
            for j in range(first, stop):
                second = rows[row, j] - 2.0 * rows[row - 1, j] + rows[row - 2, j]
                means[1, j] += second * second / (6.0 * (N - 2))
    for j in range(first, stop):
        means[2, j] = (rows[margin + N - 1, j] - rows[margin, j]) / duration


@kernel
def _write_statistics(
    rows: FloatArray,
    span: _Span,
    columns: SampleColumns,
    wrench_delay: FloatArray,
    shift: FloatArray,
    means: FloatArray,
) -> None:
    """Write what is found over a window of the c columns of the buffer.

    Parameters
    ----------
    columns : of the buffer
    wrench_delay : (k,) of each foot's wrenches [s]: their summary is that of later rows; NaN counts as zero
    shift : (k,) output: how much later the rows are that the wrenches are taken from, in whole periods [s]
    means : (3, c) output: mean by held readings (or the trapezoid rule), variance about a smooth course, and rate; of
        the law's columns the mean by the trapezoid rule. Second differences of white noise have six times its variance;
        what shakes faster than the sensor is read looks like noise, and like noise it is missing from the mean
    """
    margin, end, first_of_law = span.margin, span.end, columns.motor_friction_variance
    N, inside = end - margin + 1, rows[margin : end + 1]
    weights, trapezoid = np.empty(N), np.empty(N)
    _fill_weights(weights, inside, span.held)
    _fill_weights(trapezoid, inside, False)
    means[:] = 0.0
    duration, period = max(rows[end, 0] - rows[margin, 0], _MIN_DURATION), max(span.period, _MIN_DURATION)
    _summarise_columns(rows, weights, margin, columns.effort, columns.wrenches, duration, means)
    for foot in range(shift.size):
        periods = wrench_delay[foot] / period
        late = int(round(min(max(periods, -margin), margin))) if math.isfinite(periods) else 0
        shift[foot] = span.period * late
        start = columns.wrenches + 6 * foot
        _summarise_columns(rows, weights, margin + late, start, start + 6, duration, means)
    for row in range(N):
        for j in range(first_of_law, rows.shape[1]):
            means[0, j] += trapezoid[row] * inside[row, j]


@entry_point
def summarise_window(
    rows: Matrix, span: _Span, readings_per_sample: Vector, wrench_delay: Vector, stds: Vector, out: Window
) -> tuple[float, bool]:
    """Write the arrays of a window from the rows of the buffer.

    Parameters
    ----------
    readings_per_sample : (1 + k,) of IMU and feet
    wrench_delay : of :func:`_write_statistics`
    stds : of :func:`reading_stds`

    Returns
    -------
    Longest distance of samples [s], and whether the IMU was fresh in all of them
    """
    margin, end, n, k = span.margin, span.end, out.effort.size, out.wrench_shift.size
    at, p = _sample_columns(n, k), out.regressor.shape[1]
    means, used = np.empty((3, rows.shape[1])), end + margin + 1
    _write_statistics(rows, span, at, wrench_delay, out.wrench_shift, means)
    fit_middle(rows[end - margin : used], stds, out.end_motion)
    fit_acceleration(rows[margin : end + 1], stds, out.mean_acceleration, out.mean_acceleration_std)
    _read_columns(rows[end], at.angular_acceleration, out.angular_acceleration)
    _read_columns(rows[end], at.acceleration, out.acceleration)
    _read_columns(means[0], at.effort, out.effort)
    _read_columns(means[2], at.effort, out.effort_rate)
    _read_columns(means[0], at.specific_force, out.specific_force)
    _read_columns(means[1], at.specific_force, out.specific_force_roughness)
    for foot in range(k):
        first = at.wrenches + 6 * foot
        _read_columns(means[0], first, out.wrenches[foot])
        _read_columns(means[1], first, out.wrench_roughness[foot])
        _read_columns(means[2], first, out.wrench_rate[foot])
        out.normal_force[0, foot] = out.normal_force[1, foot] = rows[margin, first + 2]
        for row in range(margin, end + 1):
            out.normal_force[0, foot] = min(out.normal_force[0, foot], rows[row, first + 2])
            out.normal_force[1, foot] = max(out.normal_force[1, foot], rows[row, first + 2])
    _read_columns(means[0], at.motor_friction_variance, out.motor_friction_variance)
    for joint in range(n):
        _read_columns(means[0], at.regressor + p * joint, out.regressor[joint])
    for sensor in range(1 + k):
        out.reading_counts[sensor] = (end - margin) * readings_per_sample[sensor]
    out.wrench_fresh[:], out.disturbed[:] = True, False
    longest, imu_fresh = 0.0, True
    for row in range(used):
        if row > 0:
            longest = max(longest, rows[row, 0] - rows[row - 1, 0])
        imu_fresh = imu_fresh and rows[row, at.fresh] > 0.0
        for foot in range(k):
            out.wrench_fresh[foot] = out.wrench_fresh[foot] and rows[row, at.fresh + 1 + foot] > 0.0
        for joint in range(n):
            out.disturbed[joint] = out.disturbed[joint] or rows[row, at.disturbed + joint] > 0.0
    return longest, imu_fresh


class WindowBuffer:
    """Collects samples and hands out windows.

    A row has the time and the values of :class:`SampleColumns`.

    Parameters
    ----------
    config : ``window``
    noise : for the fit at the ends
    held : True when torque, wrench and specific force stamped t act until the next sample

    Attributes
    ----------
    wrench_delay : (k,) delay of each foot's wrenches after the motor torques, as far as it is known [s]
    """

    def __init__(self, config: KalmanConfig, noise: SensorNoise, held: bool) -> None:
        self.wrench_delay: FloatArray = np.zeros(0)
        self._target_length = config.window
        self._held = held
        self.retune(noise)
        self.reset()

    def retune(self, noise: SensorNoise) -> None:
        """Weigh positions against velocities by this noise from now on."""
        self._stds = reading_stds(noise)

    def reset(self) -> None:
        """Begin anew, and measure the period of the samples again."""
        self._samples_per_window, self._period = 0, 0.0
        self.restart()

    def restart(self) -> None:
        """Begin anew with samples of the same period, perhaps of other laws."""
        self._rows, self._row_count, self._sizes = np.empty((0, 0)), 0, (0, 0, 0)
        self._first, self._opened = True, math.inf

    def keep_terms(self, columns: IntArray) -> None:
        """Go on with some columns (q,) of the regressor alone."""
        if not self._row_count:
            self.restart()
            return
        n, k, p = self._sizes
        other, regressor = np.split(self._rows, [_sample_columns(n, k).regressor], axis=1)
        kept = regressor.reshape(-1, n, p)[:, :, columns].reshape(len(regressor), -1)
        self._sizes = n, k, columns.size
        self._rows = np.concatenate((other, kept), axis=1)
        self._make_template()

    def next_row(self, time: float, joints: int, feet: int, parameters: int) -> FloatArray:
        """Row of a new sample at a time since the restart [s], to be filled by :func:`write_sample`."""
        if self._row_count == len(self._rows):
            self._grow(joints, feet, parameters)
        row = self._rows[self._row_count]
        row[0] = time
        return row

    def commit_row(self, readings_per_sample: FloatArray) -> Window | None:
        """Count the newest row; return the window that became complete, or None. The first window has only an end.

        Parameters
        ----------
        readings_per_sample : (1 + k,) of :class:`~friction_estimator.types.SensorFrame`
        """
        time = float(self._rows[self._row_count, 0])
        self._row_count += 1
        if not self._samples_per_window and not self._set_length():
            return None
        if time - self._opened > _MAX_LENGTHS * (self._target_length + _MIN_SAMPLES * self._period):
            self.reset()
            return None
        margin = (self._samples_per_window - 1) // 2
        end = margin if self._first else margin + self._samples_per_window
        if self._row_count <= end + margin:
            return None
        window = self._close(margin, end, readings_per_sample)
        kept = self._row_count - (end - margin)
        self._rows[:kept] = self._rows[end - margin : self._row_count]
        self._row_count = kept
        self._first, self._opened = False, window.time
        slower = not window.complete and self._newest_period() > _MIN_GAP * self._period
        if slower or 0.0 < window.duration < self._samples_per_window * self._period / _MIN_GAP:
            self.reset()  # the period has changed: measure it again
        return window

    def _grow(self, n: int, k: int, p: int) -> None:
        """Make room for more samples of n joints, k feet and p law parameters per joint."""
        self._sizes = n, k, p
        if self.wrench_delay.size != k:
            self.wrench_delay = np.zeros(k)
        rows = np.empty((max(64, 2 * len(self._rows)), _sample_columns(n, k).regressor + n * p))
        if self._row_count:
            rows[: self._row_count] = self._rows[: self._row_count]
        self._rows = rows
        self._make_template()

    def _make_template(self) -> None:
        n, k, p = self._sizes
        end = LocalMotion(*np.zeros((3, n)), *np.zeros((2, 3)))
        self._empty, _ = buffered_zeros(
            Window, reading_counts=1 + k, end_motion=end, angular_acceleration=3, acceleration=n,
            mean_acceleration=3 + n, mean_acceleration_std=3 + n, effort=n, specific_force=3, wrenches=(k, 6),
            wrench_shift=k, normal_force=(2, k), effort_rate=n, wrench_rate=(k, 6), specific_force_roughness=3,
            wrench_roughness=(k, 6), regressor=(n, p), motor_friction_variance=n, wrench_fresh=k, disturbed=n,
        )  # fmt: skip

    def _set_length(self) -> bool:
        """Set the number of samples per window once the period is known; False before."""
        if self._row_count < _SAMPLES_FOR_PERIOD:
            return False
        self._period, self._opened = self._newest_period(), float(self._rows[0, 0])
        samples = self._target_length / self._period if self._period > 0.0 else 0.0
        self._samples_per_window = round(min(max(samples, _MIN_SAMPLES), _MAX_SAMPLES))
        return True

    def _newest_period(self) -> float:
        return float(np.median(np.diff(self._rows[: self._row_count, 0])))

    def _close(self, margin: int, end: int, readings_per_sample: FloatArray) -> Window:
        rows, buffer = self._rows, self._empty.copy()
        time, span = float(rows[end, 0]), (margin, end, self._held, self._period)
        longest, imu_fresh = summarise_window(rows, *span, readings_per_sample, self.wrench_delay, self._stds, buffer)
        complete, duration = longest <= _MIN_GAP * self._period, time - float(rows[margin, 0])
        set_scalars(Window, buffer, time, duration, end - margin, complete, imu_fresh)
        return from_buffer(Window, buffer)
