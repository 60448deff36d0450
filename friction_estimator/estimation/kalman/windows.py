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

from friction_estimator.compiled import kernel
from friction_estimator.config import KalmanConfig, SensorNoise
from friction_estimator.linear_algebra import solve_positive
from friction_estimator.types import Attitude, BoolArray, FloatArray, SensorFrame, record

CLEARLY = 4.0
"""Variances that are this many times those of the noise are no noise."""
_FEWEST, _MOST = 3, 1000
"""Samples of a window."""
_TIMED = 9
"""Samples whose median distance gives the period."""
_GAP = 2.5
"""Distances of more than this many periods are gaps: what acted there is not known."""
_PATIENCE = 10.0
"""A window that lasts for more of its lengths had a shorter period than the samples have now."""
_FINEST = 1e-9


@record(frozen=True, slots=True)
class LocalMotion:
    """Joints and base at one instant.

    Attributes
    ----------
    position, velocity : (n,) of the joints
    velocity_std : (n,) [rad/s]
    angular_velocity : (3,) of the base, base axes [rad/s]
    angular_velocity_std : (3,)
    """

    position: FloatArray
    velocity: FloatArray
    velocity_std: FloatArray
    angular_velocity: FloatArray
    angular_velocity_std: FloatArray


@kernel
def _unresolved_std(rows: FloatArray, column: int, std: float) -> float:
    """Deviation of one column of readings from a straight line where it is clearly more than noise, else zero.

    What bends or shakes within a fit is missing from it, and by about as much.
    """
    N = len(rows)
    middle, square, mean, slope, rest = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(N):
        middle += rows[k, 0] / N
        mean += rows[k, column] / N
    for k in range(N):
        square += (rows[k, 0] - middle) ** 2
        slope += (rows[k, 0] - middle) * (rows[k, column] - mean)
    for k in range(N):
        rest += (rows[k, column] - mean - (rows[k, 0] - middle) * slope / square) ** 2
    variance = rest / max(N - 2, 1)
    return math.sqrt(variance) if variance > CLEARLY * std * std else 0.0


@kernel
def _fit_parabola(
    rows: FloatArray, position_std: float, velocity_std: float, weights: FloatArray, std: FloatArray
) -> None:
    """Weights of N readings in position, velocity and acceleration at the time of the middle one, by least squares.

    Parameters
    ----------
    rows : (N, 1 or more) times first
    weights : (3, 2 N) output: of the positions, then of the velocities
    std : (3,) output: standard deviations of position, velocity and acceleration
    """
    N = rows.shape[0]
    middle = rows[N // 2, 0]
    scale = max(abs(rows[0, 0] - middle), abs(rows[N - 1, 0] - middle), _FINEST)
    inverse_std = np.array([1.0 / position_std, 1.0 / velocity_std])
    A, gram = np.zeros((2 * N, 3)), np.zeros((3, 3))
    for k in range(N):
        t = (rows[k, 0] - middle) / scale
        A[k, 0], A[k, 1], A[k, 2] = 1.0, t, 0.5 * t * t
        A[N + k, 1], A[N + k, 2] = 1.0 / scale, t / scale
    for k in range(2 * N):
        for i in range(3):
            A[k, i] *= inverse_std[k // N]
        for i in range(3):
            for j in range(3):
                gram[i, j] += A[k, i] * A[k, j]
    inverse = solve_positive(gram, np.eye(3))[0]
    unscale = 1.0
    for i in range(3):
        std[i] = math.sqrt(inverse[i, i]) * unscale
        for k in range(2 * N):
            value = 0.0
            for j in range(3):
                value += inverse[i, j] * A[k, j]
            weights[i, k] = value * inverse_std[k // N] * unscale
        unscale /= scale


@kernel("M f8 f8 f8 M M")
def fit_middle(
    rows: FloatArray, position_std: float, velocity_std: float, gyro_std: float, joints: FloatArray, base: FloatArray
) -> None:
    """Motion at the middle of N readings: fields of :class:`LocalMotion`.

    Parameters
    ----------
    rows : (N, 4 + 2 n or more) readings, see :class:`LocalMotionFit`
    position_std, velocity_std, gyro_std : of the readings [rad], [rad/s]
    joints : (3, n) output: position, velocity, its standard deviation
    base : (2, 3) output: angular velocity, its standard deviation
    """
    N, n = len(rows), joints.shape[1]
    weights, std = np.empty((3, 2 * N)), np.empty(3)
    _fit_parabola(rows, position_std, velocity_std, weights, std)
    for joint in range(n):
        q, dq = 0.0, 0.0
        for k in range(N):
            position, velocity = rows[k, 1 + joint], rows[k, 1 + n + joint]
            q += weights[0, k] * position + weights[0, N + k] * velocity
            dq += weights[1, k] * position + weights[1, N + k] * velocity
        joints[0, joint], joints[1, joint] = q, dq
        joints[2, joint] = max(std[1], _unresolved_std(rows, 1 + n + joint, velocity_std))
    for axis in range(3):
        column, mean = 1 + 2 * n + axis, 0.0
        for k in range(N):
            mean += rows[k, column] / N
        base[0, axis] = mean
        base[1, axis] = max(gyro_std / math.sqrt(N), _unresolved_std(rows, column, gyro_std))


@kernel("M f8 f8 f8 M")
def fit_acceleration(
    rows: FloatArray, position_std: float, velocity_std: float, gyro_std: float, out: FloatArray
) -> None:
    """Mean acceleration of base and joints over N readings and its standard deviation: rows of ``out`` (2, 3 + n)."""
    N, n = len(rows), out.shape[1] - 3
    weights, std = np.empty((3, 2 * N)), np.empty(3)
    _fit_parabola(rows, position_std, velocity_std, weights, std)
    middle, square = 0.0, 0.0
    for k in range(N):
        middle += rows[k, 0] / N
    for k in range(N):
        square += (rows[k, 0] - middle) ** 2
    for axis in range(3):
        slope = 0.0
        for k in range(N):
            slope += (rows[k, 0] - middle) * rows[k, 1 + 2 * n + axis] / square
        out[0, axis], out[1, axis] = slope, gyro_std / math.sqrt(square)
    for joint in range(n):
        value = 0.0
        for k in range(N):
            value += weights[2, k] * rows[k, 1 + joint] + weights[2, N + k] * rows[k, 1 + n + joint]
        out[0, 3 + joint], out[1, 3 + joint] = value, std[2]


class LocalMotionFit:
    """A parabola through the positions of some readings, its slope through their velocities; a line through the rates.

    Readings are the rows of an array: time [s], positions (n,), velocities (n,), gyroscope (3,), further columns that
    are not used.

    Parameters
    ----------
    noise : standard deviations that weigh positions against velocities
    """

    def __init__(self, noise: SensorNoise) -> None:
        self.retune(noise)

    def retune(self, noise: SensorNoise) -> None:
        """Use the weights of this noise from now on."""
        velocity_std = max(noise.independent_velocity_std, _FINEST)
        self._stds = max(noise.position_std, _FINEST), velocity_std, noise.angular_velocity_std

    def at_middle(self, rows: FloatArray, joints: int) -> LocalMotion:
        """Motion of n joints and the base at the time of the middle one of an odd number of readings."""
        fitted, base = np.empty((3, joints)), np.empty((2, 3))
        fit_middle(rows, *self._stds, fitted, base)
        return LocalMotion(*fitted, *base)

    def acceleration(self, rows: FloatArray, joints: int) -> tuple[FloatArray, FloatArray]:
        """Mean acceleration over these readings and its standard deviation.

        Returns
        -------
        (3 + n,) of the base (rotation) and the joints [rad/s^2]; (3 + n,)
        """
        out = np.empty((2, 3 + joints))
        fit_acceleration(rows, *self._stds, out)
        return out[0], out[1]


@record(frozen=True, slots=True)
class Window:
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
    effort_after : (n,) mean of the readings after its end that the fit there uses
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
    readings: FloatArray
    end: LocalMotion
    angular_acceleration: FloatArray
    acceleration: FloatArray
    mean_acceleration: FloatArray
    mean_acceleration_std: FloatArray
    effort: FloatArray
    specific_force: FloatArray
    wrenches: FloatArray
    effort_after: FloatArray
    wrench_shift: FloatArray
    normal_force: FloatArray
    effort_rate: FloatArray
    wrench_rate: FloatArray
    specific_force_roughness: FloatArray
    wrench_roughness: FloatArray
    regressor: FloatArray
    regressor_variance: FloatArray
    complete: bool
    imu_fresh: bool
    wrench_fresh: BoolArray
    disturbed: BoolArray


@kernel
def _put(row: FloatArray, at: int, values: FloatArray) -> int:
    for j in range(values.size):
        row[at + j] = values[j]
    return at + values.size


@kernel("M i8 f8 V V V V V V V V M M b1 B B")
def write_sample(
    rows: FloatArray,
    index: int,
    time: float,
    position: FloatArray,
    velocity: FloatArray,
    angular_velocity: FloatArray,
    angular_acceleration: FloatArray,
    acceleration: FloatArray,
    effort: FloatArray,
    specific_force: FloatArray,
    regressor_variance: FloatArray,
    wrenches: FloatArray,
    regressor: FloatArray,
    imu_fresh: bool,
    wrench_fresh: BoolArray,
    disturbed: BoolArray,
) -> None:
    """Write one sample into a row of the buffer, columns as in :class:`_Columns`."""
    row = rows[index]
    row[0] = time
    at = _put(row, 1, position)
    at = _put(row, at, velocity)
    at = _put(row, at, angular_velocity)
    at = _put(row, at, angular_acceleration)
    at = _put(row, at, acceleration)
    at = _put(row, at, effort)
    at = _put(row, at, specific_force)
    for foot in range(wrenches.shape[0]):
        at = _put(row, at, wrenches[foot])
    row[at] = imu_fresh
    at += 1
    for foot in range(wrench_fresh.size):
        row[at + foot] = wrench_fresh[foot]
    at += wrench_fresh.size
    for joint in range(disturbed.size):
        row[at + joint] = disturbed[joint]
    at = _put(row, at + disturbed.size, regressor_variance)
    for joint in range(regressor.shape[0]):
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


@kernel("M i8 i8 b1 i8 i8 i8 V f8 V M M")
def summarise_window(
    rows: FloatArray,
    half: int,
    end: int,
    held: bool,
    first: int,
    wrenches: int,
    law: int,
    wrench_delay: FloatArray,
    period: float,
    shift: FloatArray,
    means: FloatArray,
    extremes: FloatArray,
) -> float:
    """Means and extremes of columns of the buffer's rows over one window; the longest distance of samples [s].

    Parameters
    ----------
    half, end : rows of the first and of the last sample; this many samples around both are used by the fits
    held : True when readings act until the next one
    first, wrenches, law : first column that is summarised, of the wrenches, and of the law; c columns in all
    wrench_delay : (k,) of each foot's wrenches [s]: their summary is that of later rows; NaN counts as zero
    period : of the samples [s]
    shift : (k,) output: how much later those rows are, in whole periods [s]
    means : (3, c) output: mean by held readings (or the trapezoid rule), variance about a smooth course, and rate; of
        the law's columns the mean by the trapezoid rule. Second differences of white noise have six times its variance;
        what shakes faster than the sensor is read looks like noise, and like noise it is missing from the mean
    extremes : (4, c) output: smallest and largest within the window, smallest and largest of all samples used
    """
    N, c = end - half + 1, rows.shape[1]
    inside = rows[half : end + 1]
    weights, trapezoid = np.empty(N), np.empty(N)
    _fill_weights(weights, inside, held)
    _fill_weights(trapezoid, inside, False)
    means[:] = 0.0
    duration = max(rows[end, 0] - rows[half, 0], _FINEST)
    _summarise_columns(rows, weights, half, first, wrenches, duration, means)
    for foot in range(shift.size):
        periods = wrench_delay[foot] / max(period, _FINEST)
        late = int(round(min(max(periods, -half), half))) if math.isfinite(periods) else 0
        shift[foot] = period * late
        start = wrenches + 6 * foot
        _summarise_columns(rows, weights, half + late, start, start + 6, duration, means)
    _summarise_columns(rows, weights, half, wrenches + 6 * shift.size, law, duration, means)
    for k in range(N):
        for j in range(law, c):
            means[0, j] += trapezoid[k] * inside[k, j]
    longest = 0.0
    for k in range(end + half + 1):
        if k > 0:
            longest = max(longest, rows[k, 0] - rows[k - 1, 0])
        for j in range(first, law):
            if k == 0:
                extremes[2, j] = extremes[3, j] = rows[k, j]
            else:
                extremes[2, j], extremes[3, j] = min(extremes[2, j], rows[k, j]), max(extremes[3, j], rows[k, j])
            if k == half:
                extremes[0, j] = extremes[1, j] = rows[k, j]
            elif half < k <= end:
                extremes[0, j], extremes[1, j] = min(extremes[0, j], rows[k, j]), max(extremes[1, j], rows[k, j])
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

    def add(
        self,
        time: float,
        frame: SensorFrame,
        attitude: Attitude,
        acceleration: FloatArray,
        regressor: FloatArray,
        regressor_variance: FloatArray,
        disturbed: BoolArray,
    ) -> Window | None:
        """Add a sample; the window that became complete, if any. The first one has no length and only an end.

        Parameters
        ----------
        time : since the restart [s]
        frame : the readings
        attitude : whose angular velocity, angular acceleration and specific force are used
        acceleration : (n,) of the joints [rad/s^2]
        regressor : (n, p) of the friction laws, motor by motor
        regressor_variance : (n,) of the motors' friction by the law, from the uncertain velocity [(N m)^2]
        disturbed : (n,) True where something pushes the limb now
        """
        if self._size == len(self._rows):
            self._grow(acceleration.size, frame.wrenches.shape[0], regressor.shape[1])
        write_sample(
            self._rows,
            self._size,
            time,
            frame.position,
            frame.velocity,
            attitude.angular_velocity,
            attitude.angular_acceleration,
            acceleration,
            frame.effort,
            attitude.specific_force,
            regressor_variance,
            frame.wrenches,
            regressor,
            frame.imu_fresh,
            frame.wrench_fresh,
            disturbed,
        )
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
        window = self._close(half, end, frame.readings)
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

    def _close(self, half: int, end: int, readings: FloatArray) -> Window:
        n, k, p = self._shape
        rows, c, width = self._rows, self._columns, self._rows.shape[1]
        means, extremes, shift = np.empty((3, width)), np.empty((4, width)), np.empty(k)
        first, law, wrenches, last = c.effort.start, c.regressor_variance.start, c.wrenches, rows[end].copy()
        duration = float(last[0] - rows[half, 0])
        longest = summarise_window(
            rows, half, end, self._held, first, wrenches.start, law, self.wrench_delay, self._period, shift, means,
            extremes,
        )  # fmt: skip
        mean, rough, rate = means
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
            effort_after=rows[end + 1 : end + half + 1, c.effort].mean(axis=0),
            wrench_shift=shift,
            normal_force=extremes[:2, wrenches.start + 2 : wrenches.stop : 6],
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
