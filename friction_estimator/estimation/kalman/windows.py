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

from friction_estimator.arrays import arrays
from friction_estimator.compiled import kernel
from friction_estimator.config import KalmanConfig, SensorNoise
from friction_estimator.estimation.kalman.local_motion import LocalMotion, LocalMotionFit
from friction_estimator.estimation.motion.joint_motion import JointMotion
from friction_estimator.estimation.observers.momentum import Inputs
from friction_estimator.types import BoolArray, Dynamics, Flags, FloatArray, Matrix, Vector

_FEWEST, _MOST = 3, 1000
"""Samples of a window."""
_TIMED = 9
"""Samples whose median distance gives the period."""
_GAP = 2.5
"""Distances of more than this many periods are gaps: what acted there is not known."""
_PATIENCE = 10.0
"""A window that lasts for more of its lengths had a shorter period than the samples have now."""
_FINEST = 1e-9


@arrays
class Window(NamedTuple):
    """A closed window.

    Attributes
    ----------
    time : of its end, since the restart [s]
    duration : [s]
    samples : how many
    readings : (1 + k,) of IMU and foot sensors among them, not counting values between two readings
    end : motion at its end
    angular_acceleration : (3,) of the base at the end, base axes
    acceleration : (n,) of the joints at the end
    mean_acceleration, mean_acceleration_std : (3 + n,) of base and joints, by the readings of this window alone
    effort, specific_force, wrenches : means (n,), (3,), (k, 6)
    wrench_shift : (k,) the means of the wrenches, and their rates, are those of a window that is later by this [s]
    normal_force : (2, k) smallest and largest normal force [N]
    effort_rate, wrench_rate : (n,), (k, 6) mean rates of change [N m/s], [N/s, N m/s]
    specific_force_roughness, wrench_roughness : (3,), (k, 6) variance of the readings about a smooth course
    regressor : (n, p) mean
    regressor_variance : (n,) mean
    complete : True where no samples are missing
    imu_fresh, wrench_fresh : (), (k,) True where no sample was stale
    disturbed : (n,) True where any sample was
    """

    time: float
    duration: float
    samples: int
    readings: Vector
    end: LocalMotion
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
    regressor_variance: Vector
    complete: bool
    imu_fresh: bool
    wrench_fresh: Flags
    disturbed: Flags


@arrays
class _Span(NamedTuple):
    """Rows of a window in the buffer.

    Attributes
    ----------
    half, end : of the first and of the last sample; this many samples around both are used by the fits
    held : True when readings act until the next one
    period : of the samples [s]
    """

    half: int
    end: int
    held: bool
    period: float


@arrays
class _Summary(NamedTuple):
    """What is found over a window of the c columns of the buffer.

    Attributes
    ----------
    means : (3, c) mean by held readings (or the trapezoid rule), variance about a smooth course, and rate; of the law's
        columns the mean by the trapezoid rule. Second differences of white noise have six times its variance; what
        shakes faster than the sensor is read looks like noise, and like noise it is missing from the mean
    extremes : (4, c) smallest and largest within the window, smallest and largest of all samples used
    shift : (k,) how much later the rows are that the wrenches are taken from, in whole periods [s]
    """

    means: Matrix
    extremes: Matrix
    shift: Vector


@kernel
def _put(row: FloatArray, at: int, values: FloatArray) -> int:
    """Write values into a row from a column on; the next column."""
    for j in range(values.size):
        row[at + j] = values[j]
    return at + values.size


@kernel
def write_sample(
    row: FloatArray,
    dynamics: Dynamics,
    motion: JointMotion,
    inputs: Inputs,
    angular_acceleration: FloatArray,
    pushed: BoolArray,
    regressor_variance: FloatArray,
    regressor: FloatArray,
) -> None:
    """Write one sample into a row of the buffer from its second column on, columns as in :class:`_Columns`."""
    n, v = motion.velocity.size, dynamics.velocity
    base = v.size - n
    at = _put(row, 1, dynamics.position)
    at = _put(row, at, v[base:])
    for axis in range(3):
        row[at + axis] = v[3 + axis] if base else 0.0
    at = _put(row, at + 3, angular_acceleration)
    at = _put(row, at, motion.acceleration)
    at = _put(row, at, inputs.effort)
    at = _put(row, at, dynamics.specific_force)
    for foot in range(len(inputs.wrenches)):
        at = _put(row, at, inputs.wrenches[foot])
    row[at] = inputs.imu_fresh
    at += 1
    for foot in range(inputs.wrench_fresh.size):
        row[at + foot] = inputs.wrench_fresh[foot]
    at += inputs.wrench_fresh.size
    for joint in range(n):
        row[at + joint] = pushed[joint]
    at = _put(row, at + n, regressor_variance)
    for joint in range(n):
        at = _put(row, at, regressor[joint])


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
    rows: FloatArray, weights: FloatArray, half: int, first: int, stop: int, duration: float, means: FloatArray
) -> None:
    """Write mean, variance about a smooth course and rate of the columns from ``first`` to ``stop`` of N rows."""
    N = weights.size
    for k in range(N):
        row = half + k
        for j in range(first, stop):
            means[0, j] += weights[k] * rows[row, j]
        if k >= 2:
            for j in range(first, stop):
                second = rows[row, j] - 2.0 * rows[row - 1, j] + rows[row - 2, j]
                means[1, j] += second * second / (6.0 * (N - 2))
    for j in range(first, stop):
        means[2, j] = (rows[half + N - 1, j] - rows[half, j]) / duration


@kernel("M (_Span) i8 i8 i8 V (_Summary)")
def summarise_window(
    rows: FloatArray, span: _Span, first: int, wrenches: int, law: int, wrench_delay: FloatArray, out: _Summary
) -> float:
    """Means and extremes of columns of the buffer's rows over one window; the longest distance of samples [s].

    Parameters
    ----------
    first, wrenches, law : first column that is summarised, of the wrenches, and of the law; c columns in all
    wrench_delay : (k,) of each foot's wrenches [s]: their summary is that of later rows; NaN counts as zero
    """
    half, end, c = span.half, span.end, rows.shape[1]
    N, inside, shift = end - half + 1, rows[half : end + 1], out.shift
    weights, trapezoid = np.empty(N), np.empty(N)
    _fill_weights(weights, inside, span.held)
    _fill_weights(trapezoid, inside, False)
    out.means[:] = 0.0
    duration, period = max(rows[end, 0] - rows[half, 0], _FINEST), max(span.period, _FINEST)
    _summarise_columns(rows, weights, half, first, wrenches, duration, out.means)
    for foot in range(shift.size):
        periods = wrench_delay[foot] / period
        late = int(round(min(max(periods, -half), half))) if math.isfinite(periods) else 0
        shift[foot] = span.period * late
        start = wrenches + 6 * foot
        _summarise_columns(rows, weights, half + late, start, start + 6, duration, out.means)
    _summarise_columns(rows, weights, half, wrenches + 6 * shift.size, law, duration, out.means)
    for k in range(N):
        for j in range(law, c):
            out.means[0, j] += trapezoid[k] * inside[k, j]
    longest = 0.0
    for k in range(1, end + half + 1):
        longest = max(longest, rows[k, 0] - rows[k - 1, 0])
    for j in range(first, law):
        out.extremes[0, j], out.extremes[1, j] = inside[:, j].min(), inside[:, j].max()
        used = rows[: end + half + 1, j]
        out.extremes[2, j], out.extremes[3, j] = used.min(), used.max()
    return longest


class _Columns(NamedTuple):
    """Columns of the buffer."""

    time: slice
    position: slice
    velocity: slice
    angular_velocity: slice
    angular_acceleration: slice
    acceleration: slice
    effort: slice
    specific_force: slice
    wrenches: slice
    imu_fresh: slice
    wrench_fresh: slice
    disturbed: slice
    regressor_variance: slice
    regressor: slice


class WindowBuffer:
    """Collects samples and hands out windows.

    Parameters
    ----------
    config : ``window``
    noise : for the fit at the ends
    held : True when torque, wrench and specific force stamped t act until the next sample

    Attributes
    ----------
    fit : motion at the ends of windows
    wrench_delay : (k,) delay of each foot's wrenches after the motor torques, as far as it is known [s]
    """

    def __init__(self, config: KalmanConfig, noise: SensorNoise, held: bool) -> None:
        self.wrench_delay: FloatArray = np.zeros(0)
        self._length = config.window
        self._held = held
        self.fit = LocalMotionFit(noise)
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self._rows = np.empty((0, 0))
        self._size = 0
        self._count = 0
        self._period = self._opened = 0.0
        self._first = True

    def row(self, time: float, joints: int, feet: int, parameters: int) -> FloatArray:
        """Row of a new sample at a time since the restart [s], to be filled by :func:`write_sample`."""
        if self._size == len(self._rows):
            self._grow(joints, feet, parameters)
        row = self._rows[self._size]
        row[0] = time
        return row

    def close(self, readings: FloatArray) -> Window | None:
        """Count the newest row; the window that became complete, if any. The first one has no length and only an end.

        Parameters
        ----------
        readings : (1 + k,) of :class:`~friction_estimator.types.SensorFrame`
        """
        time = float(self._rows[self._size, 0])
        self._size += 1
        if not self._count and not self._set_length():
            return None
        if time - self._opened > _PATIENCE * (self._length + _FEWEST * self._period):
            self.reset()
            return None
        half = (self._count - 1) // 2
        end = half if self._first else half + self._count
        if self._size <= end + half:
            return None
        window = self._summarise(half, end, readings)
        kept = self._size - (end - half)
        self._rows[:kept] = self._rows[end - half : self._size]
        self._size = kept
        self._first, self._opened = False, window.time
        slower = not window.complete and self._newest_period() > _GAP * self._period
        if slower or 0.0 < window.duration < self._count * self._period / _GAP:
            self.reset()  # the period has changed: measure it again
        return window

    def _grow(self, n: int, k: int, p: int) -> None:
        """Make room for more samples of n joints, k feet and p law parameters a joint."""
        self._lay_out(n, k, p)
        if self.wrench_delay.size != k:
            self.wrench_delay = np.zeros(k)
        rows = np.empty((max(64, 2 * len(self._rows)), self._columns.regressor.stop))
        if self._size:
            rows[: self._size] = self._rows[: self._size]
        self._rows = rows

    def _lay_out(self, n: int, k: int, p: int) -> None:
        ends = np.cumsum([1, n, n, 3, 3, n, n, 3, 6 * k, 1, k, n, n, n * p]).tolist()
        self._columns = _Columns(*(slice(a, b) for a, b in zip([0, *ends], ends, strict=False)))
        self._shape = n, k, p

    def use_parameters(self, count: int) -> None:
        """Go on with this many parameters of each law, the first ones."""
        if len(self._rows):
            (n, k, p), start = self._shape, self._columns.regressor.start
            kept = start + p * np.arange(n)[:, None] + np.arange(count)
            self._rows = np.concatenate((self._rows[:, :start], self._rows[:, kept.ravel()]), axis=1)
            self._lay_out(n, k, count)

    def _set_length(self) -> bool:
        """Set the number of samples a window once the period is known; False before."""
        if self._size < _TIMED:
            return False
        self._period, self._opened = self._newest_period(), float(self._rows[0, 0])
        self._count = round(min(max(self._length / self._period, _FEWEST), _MOST)) if self._period > 0.0 else _FEWEST
        return True

    def _newest_period(self) -> float:
        return float(np.median(np.diff(self._rows[: self._size, 0])))

    def _summarise(self, half: int, end: int, readings: FloatArray) -> Window:
        n, k, p = self._shape
        rows, c, width = self._rows, self._columns, self._rows.shape[1]
        summary = _Summary(np.empty((3, width)), np.empty((4, width)), np.empty(k))
        first, law, wrenches, last = c.effort.start, c.regressor_variance.start, c.wrenches, rows[end].copy()
        duration, span = float(last[0] - rows[half, 0]), _Span(half, end, self._held, self._period)
        longest = summarise_window(rows, *span, first, wrenches.start, law, self.wrench_delay, *summary)
        (mean, rough, rate), extremes = summary.means, summary.extremes
        mean_acceleration, mean_acceleration_std = self._mean_acceleration(rows[half : end + 1])
        fresh = extremes[2, c.imu_fresh.start : c.wrench_fresh.stop] > 0.0
        return Window(
            time=float(last[0]),
            duration=duration,
            samples=end - half,
            readings=(end - half) * readings,
            end=self.fit.at_middle(rows[end - half : end + half + 1], n),
            angular_acceleration=last[c.angular_acceleration],
            acceleration=last[c.acceleration],
            mean_acceleration=mean_acceleration,
            mean_acceleration_std=mean_acceleration_std,
            effort=mean[c.effort],
            specific_force=mean[c.specific_force],
            wrenches=mean[wrenches].reshape(k, 6),
            wrench_shift=summary.shift,
            normal_force=extremes[:2, wrenches.start + 2 : wrenches.stop : 6].copy(),
            effort_rate=rate[c.effort],
            wrench_rate=rate[wrenches].reshape(k, 6),
            specific_force_roughness=rough[c.specific_force],
            wrench_roughness=rough[wrenches].reshape(k, 6),
            regressor=mean[c.regressor].reshape(n, p),
            regressor_variance=mean[c.regressor_variance],
            complete=longest <= _GAP * self._period,
            imu_fresh=bool(fresh[0]),
            wrench_fresh=fresh[1:],
            disturbed=extremes[3, c.disturbed] > 0.0,
        )

    def _mean_acceleration(self, inside: FloatArray) -> tuple[FloatArray, FloatArray]:
        if len(inside) < _FEWEST:  # the first one is an end only
            size = 3 + self._shape[0]
            return np.zeros(size), np.full(size, np.inf)
        return self.fit.acceleration(inside, self._shape[0])
