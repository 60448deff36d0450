"""What the readings show of the sensors: noise, late velocities, and the resolution of encoders.

White noise: third differences of a smooth signal vanish, those of white noise have twenty times its variance. The
median of their size over a fifth of a second does not mind impacts, and the smallest of several such blocks does not
mind motion.

Late velocities: differentiated positions behind a filter lag behind, even where the driver's documentation does not
mention it. The delay shows as a part of the acceleration in their difference to the slope of the positions.

Rounded positions: readings of an encoder lie on a grid, and its distance is the greatest common divisor of their
differences. Third differences do not show this noise, because the readings of a slow joint hardly change. Velocities
that are rough where rounded positions are rough are differentiated positions.

Noisy stamps: a driver that samples evenly but stamps when it finds the time makes positions seem to jump by velocity
times the error of the stamp. Where the sampling is as uneven as the stamps, third differences of the positions are
those of the stamps times the velocity; where it is even, they have nothing in common. A regression over all joints
decides, with readings of coarse encoders, too.
"""

from __future__ import annotations

import dataclasses
import math
from collections import deque

import numpy as np

from friction_estimator.config import SensorNoise
from friction_estimator.estimation.motion.encoders import COARSE_STEP, add_roughness, encoder_step
from friction_estimator.kernels.compiler import entry_point
from friction_estimator.linear_algebra import DIVERGENCE_LIMIT
from friction_estimator.types import FloatArray, Indices, IntArray, Matrix, SensorFrame, Tensor, Vector

BLOCK_LENGTH, _SENSOR_BLOCK_LENGTH = 200, 100
"""Readings of the joints in a block, and of each other sensor."""
_KEPT_BLOCKS = 16
"""Number of newest blocks of which the smallest noise counts."""
_MAX_WAIT_BLOCKS = 5
"""Blocks of the joints after which no sensor is waited for."""
_TO_STD = 1.0 / (0.6745 * math.sqrt(20.0))
"""From the median size of the third difference of Gaussian noise to its standard deviation."""
_MIN_NOISE_RATIO = 1.5
"""Only noise that is this many times larger than that of the datasheet counts."""
_MIN_ROUNDING_RATIO = 1.02
"""The noise of rounding is exact, and counts when it is this many times larger."""
MAX_JITTER = 0.05
"""Intervals that differ by more than this part of their period are uneven, and spoil differences."""
_MIN_FILTER_DELAY = 0.6
"""Velocities later than this part of the period count as filtered; half of it is the sampling."""
_MIN_DELAY_SIGMAS = 6.0
"""A delay counts only if it is at least this many times its standard deviation."""
STRIDE = 5
"""Half of the samples over which an acceleration is differentiated."""
_FIELDS = ("position_std", "velocity_std", "angular_velocity_std", "force_std", "moment_std")
_GYROSCOPE, _FORCE, _MOMENT, _UNUSED = 2, 3, 4, 5
"""Kinds of the columns of other sensors: places in the fields; vibration is no noise of the accelerometer."""
NEGLIGIBLE_NOISE = (1e-6, 1e-4, 1e-4, 0.1, 0.01)
"""Noise below this need not be in the datasheet [rad, rad/s, rad/s, N, N m]."""
_MIN_ROUGHNESS_CORRELATION = 0.4
"""Correlation of the roughness of velocities and rounded positions above which velocities are differentiated positions.
White noise of an independent velocity has none; a first-order filter behind the differences has 0.9."""
_MAX_STEP_RATIO = 0.99
"""A resolution above this part of the one before is that one, or a multiple of it."""
_EVEN_SAMPLING, _MIN_INFORMATION = 0.5, 100.0
"""Part of the stamps' unevenness that the positions show, below which the sampling is even; and the least inverse
variance of this part at which that is decided."""
_FORGETTING_FACTOR = 0.8
"""Weight of the earlier blocks in the regression when a block is added."""
_SPAN = 10
"""Number of intervals over which the period of noisy stamps is measured: only the stamps at both ends add noise."""
_TWO_PERIODS = 1.7
"""Number of periods above which an interval counts as two: a late stamp is likelier than a missing sample."""
_PHASE_GAIN = 0.03
"""Part of the phase error to the stamps that the clock corrects in a sample."""
_PERIOD_GAIN = 0.2
"""Weight of the newest block in the period."""


@entry_point
def _write_readings(
    joints: Matrix,
    row: int,
    sensors: Tensor,
    counts: Indices,
    position: Vector,
    velocity: Vector,
    new_readings: Matrix,
) -> bool:
    """Write positions and velocities into a row of their block, and new readings of other sensors into theirs.

    Parameters
    ----------
    joints : (b, 2 n) block of positions, then velocities
    sensors, counts : (1 + k, c, 6) blocks of IMU and feet, and how many readings each has, in place
    new_readings : of :class:`~friction_estimator.types.SensorFrame`

    Returns
    -------
    True where the block of a sensor is full
    """
    n, full = position.size, False
    for joint in range(n):
        joints[row, joint], joints[row, n + joint] = position[joint], velocity[joint]
    for sensor in range(len(new_readings)):
        if not math.isnan(new_readings[sensor, 0]):
            for column in range(6):
                sensors[sensor, counts[sensor], column] = new_readings[sensor, column]
            counts[sensor] += 1
            full = full or counts[sensor] == sensors.shape[1]
    return full


@entry_point
def _third_difference(block: Matrix, column: int) -> float:
    """Median size of the third difference of one column."""
    size = np.empty(len(block) - 3)
    for i in range(size.size):
        third = block[i + 3, column] - 3.0 * block[i + 2, column] + 3.0 * block[i + 1, column] - block[i, column]
        size[i] = abs(third)
    return float(np.median(size))


@entry_point
def _add_to_delay_regression(block: Matrix, joints: int, joint: int, period: float, sums: Vector) -> None:
    """Add the readings of one joint to the least squares of ``velocity - slope of position = -delay * acceleration``.

    Parameters
    ----------
    period : of the samples [s]
    sums : (3,) in place: error times acceleration, acceleration squared, error squared
    """
    h = STRIDE
    for i in range(h, len(block) - h):
        slope = (block[i + 1, joint] - block[i - 1, joint]) / (2.0 * period)
        acceleration = (block[i + h, joints + joint] - block[i - h, joints + joint]) / (2.0 * h * period)
        error = block[i, joints + joint] - slope
        sums[0] += error * acceleration
        sums[1] += acceleration * acceleration
        sums[2] += error * error


@entry_point
def _add_smallest_squares(sizes: Matrix, kinds: Indices, sums: Vector, counts: Vector) -> None:
    """Add the square of the smallest of all blocks' sizes (b, c) of each column to the sum of its kind, in place.

    ``counts`` are the columns of each kind of which a block is known.
    """
    for column in range(kinds.size):
        smallest = sizes[0, column]
        for block in range(1, len(sizes)):
            smallest = min(smallest, sizes[block, column])
        if smallest <= DIVERGENCE_LIMIT:
            sums[kinds[column]] += smallest * smallest
            counts[kinds[column]] += 1.0


class SensorNoiseMonitor:
    """Compares the noise of the readings with the parameters, and uses the larger.

    Joint states and every other sensor fill a block of their own readings, whatever their rates: values between two
    readings have less noise. A full block is evaluated column by column over the samples after it, so that none of them
    bears the work of all.

    Parameters
    ----------
    datasheet : noise to start from
    joints, feet : numbers n and k

    Attributes
    ----------
    noise : the datasheet, with larger standard deviations where they were measured
    encoder_step : (n,) resolution of the encoders, 0 where positions lie on no grid, or too few have differed [rad]
    ready : False until the first blocks are full; sensors ten times slower than the joints are not waited for
    """

    def __init__(self, datasheet: SensorNoise, joints: int, feet: int) -> None:
        self.noise = datasheet
        n, k = joints, feet
        self._kinds = np.repeat(
            [*range(2), *([_GYROSCOPE, _UNUSED] + [_FORCE, _MOMENT] * k)], [n, n, *[3] * (2 + 2 * k)]
        )
        columns = self._kinds.size
        self._block, self._full = np.empty((BLOCK_LENGTH, 2 * n)), np.empty((BLOCK_LENGTH, 2 * n))
        self._sensors, self._full_sensors = (
            np.empty((1 + k, _SENSOR_BLOCK_LENGTH, 6)),
            np.empty((1 + k, _SENSOR_BLOCK_LENGTH, 6)),
        )
        self._times = np.empty(BLOCK_LENGTH)
        self._sizes, self._blocks = np.full((_KEPT_BLOCKS, columns), np.inf), np.zeros(columns, dtype=np.intp)
        self._stride = math.ceil(2 * columns / BLOCK_LENGTH)
        self._joint_count = n
        self._delay_sums, self._delay_count, self._rough_sums = np.zeros(3), 0, np.zeros(3)
        self.encoder_step: FloatArray = np.zeros(n)
        self._steps_changed = False
        self.ready = False
        self._period, self._joint_blocks, self._known = 0.0, 0, np.zeros(1 + k, dtype=bool)
        self.reset()

    def reset(self) -> None:
        """Begin new blocks."""
        self._row = 0
        self._counts: IntArray = np.zeros(len(self._sensors), dtype=np.intp)
        self._columns: deque[int] = deque()

    def add(self, time: float, frame: SensorFrame) -> bool:
        """Add a frame; True when :attr:`noise` has changed, so that filters must be retuned."""
        full = _write_readings(
            self._block, self._row, self._sensors, self._counts, frame.position, frame.velocity, frame.new_readings
        )
        self._times[self._row] = time
        self._row += 1
        velocities_end = frame.differentiated and self.noise.velocity_cutoff == 0.0
        if velocities_end:
            self.noise = self.noise.without_velocity()
        if full:
            self._queue_sensor_blocks()
        if self._row == BLOCK_LENGTH:
            self._queue_joint_block()
        elif self._columns:
            return self._evaluate() or velocities_end
        return velocities_end

    def _queue_sensor_blocks(self) -> None:
        """Begin to evaluate the blocks of sensors that are full."""
        for sensor in np.flatnonzero(self._counts == _SENSOR_BLOCK_LENGTH).tolist():
            self._full_sensors[sensor], self._counts[sensor] = self._sensors[sensor], 0
            self._known[sensor] = True
            first = 2 * self._joint_count + 6 * sensor
            self._columns.extend(column for column in range(first, first + 6) if self._kinds[column] != _UNUSED)

    def _queue_joint_block(self) -> None:
        """The block of the joints is full: begin to evaluate it, if its samples are even in time."""
        steps = np.diff(self._times)
        self._period = float(steps.mean())
        self._row = 0
        self._joint_blocks += 1
        self.ready = self._joint_blocks >= _MAX_WAIT_BLOCKS or bool((self._known | (self._counts == 0)).all())
        if np.ptp(steps) <= MAX_JITTER * self._period:
            self._block, self._full = self._full, self._block
            self._columns.extend(range(2 * self._joint_count))

    def _evaluate(self) -> bool:
        """Estimate the noise of the next signals from full blocks; True when :attr:`noise` has changed."""
        for _ in range(min(self._stride, len(self._columns))):
            column = self._columns.popleft()
            if column < 2 * self._joint_count:
                size = _third_difference(self._full, column)
                if column < self._joint_count:
                    self._evaluate_encoder(column)
            else:
                sensor, own = divmod(column - 2 * self._joint_count, 6)
                size = _third_difference(self._full_sensors[sensor], own)
            self._sizes[self._blocks[column] % _KEPT_BLOCKS, column] = size
            self._blocks[column] += 1
        if self._columns:
            return False
        changed = self._compare_velocities() or self._steps_changed
        self._steps_changed = False
        return self._compare_noise() or changed

    def _evaluate_encoder(self, joint: int) -> None:
        """Resolution of an encoder, and what shows whether its velocities are differentiated positions."""
        self._find_step(joint)
        if self.noise.velocity_cutoff == 0.0:
            _add_to_delay_regression(self._full, self._joint_count, joint, self._period, self._delay_sums)
            self._delay_count += BLOCK_LENGTH - 2 * STRIDE
            if self.encoder_step[joint] > COARSE_STEP:
                add_roughness(self._full, self._joint_count, joint, self._rough_sums)

    def _find_step(self, joint: int) -> None:
        """Resolution of one encoder; a finer one than before, or none, replaces it."""
        step, before = encoder_step(self._full, joint), float(self.encoder_step[joint])
        if math.isnan(step) or step == before or (before > 0.0 and step > _MAX_STEP_RATIO * before):
            return
        self.encoder_step = self.encoder_step.copy()
        self.encoder_step[joint] = step
        self._steps_changed = True

    def _compare_velocities(self) -> bool:
        """Least squares of ``velocity - slope of position = -delay * acceleration`` over all joints and blocks."""
        period, (late, acceleration, error) = self._period, self._delay_sums.tolist()
        if not all(abs(value) <= DIVERGENCE_LIMIT for value in (late, acceleration, error)):
            self._delay_sums[:], self._delay_count = 0.0, 0
            return False
        if self.noise.velocity_cutoff > 0.0:
            return False
        product, velocity, position = self._rough_sums.tolist()
        if product > _MIN_ROUGHNESS_CORRELATION * math.sqrt(velocity * position):
            return self._ignore_velocities(0.5 * period)
        if acceleration <= 0.0:
            return False
        delay = -late / acceleration
        remaining = max(error + delay * late, 0.0) / self._delay_count
        if delay < _MIN_FILTER_DELAY * period or delay**2 * acceleration < _MIN_DELAY_SIGMAS**2 * remaining:
            return False
        return self._ignore_velocities(delay)

    def _ignore_velocities(self, delay: float) -> bool:
        """Take velocities for differentiated positions that are late by this time [s]."""
        self.noise = dataclasses.replace(self.noise, velocity_cutoff=1.0 / (2.0 * np.pi * delay))
        return True

    def _compare_noise(self) -> bool:
        sums, counts = np.zeros((2, 1 + len(_FIELDS)))
        _add_smallest_squares(self._sizes, self._kinds, sums, counts)
        worse = {}
        for name, finest, total, count in zip(_FIELDS, NEGLIGIBLE_NOISE, sums.tolist(), counts.tolist(), strict=False):
            measured = _TO_STD * math.sqrt(total / count) if count else 0.0
            if measured > _MIN_NOISE_RATIO * max(getattr(self.noise, name), finest):
                worse[name] = measured
        rounded = self.encoder_step[self.encoder_step > 0.0]
        rounding = math.sqrt(float((rounded**2).mean()) / 12.0) if rounded.size else 0.0
        if rounding > _MIN_ROUNDING_RATIO * self.noise.position_std:
            worse["position_std"] = max(rounding, worse.get("position_std", 0.0))
        if worse:
            self.noise = dataclasses.replace(self.noise, **worse)
        return bool(worse)


class StampClock:
    """Replaces intervals by whole periods while stamps are found to be noisy.

    Parameters
    ----------
    joints : n
    """

    def __init__(self, joints: int) -> None:
        self._positions = np.empty((BLOCK_LENGTH, joints))
        self._steps = np.empty(BLOCK_LENGTH)
        self._correlation, self._information = 0.0, 0.0
        self._even_sampling = True
        self.reset()

    def reset(self) -> None:
        """Begin a new block; until it is full, stamps are used as they are."""
        self._row = 0
        self._period = self._phase_error = 0.0

    def interval(self, dt: float, position: FloatArray) -> float:
        """Interval to use in place of the stamped one, ``dt`` [s], which ends at positions (n,); zero stays zero."""
        if dt <= 0.0:
            return dt
        self._positions[self._row], self._steps[self._row] = position, dt
        self._row += 1
        if self._row == BLOCK_LENGTH:
            self._row = 0
            self._measure_period()
        if self._period == 0.0:
            return dt
        behind = self._phase_error + dt
        periods = 1 if behind < _TWO_PERIODS * self._period else round(behind / self._period)
        interval = self._period * periods + _PHASE_GAIN * self._phase_error
        self._phase_error = behind - interval
        return interval

    def _measure_period(self) -> None:
        """Set the period when stamps are uneven but the sampling is not."""
        if np.ptp(self._steps) <= MAX_JITTER * self._steps.mean():
            self._period = 0.0
            return
        period = self._usual_period()
        self._regress(period)
        if self._information > _MIN_INFORMATION:
            self._even_sampling = self._correlation < _EVEN_SAMPLING * self._information
        if not self._even_sampling:
            self._period = 0.0
        elif self._period == 0.0:
            self._period, self._phase_error = period, 0.0
        else:
            self._period += _PERIOD_GAIN * (period - self._period)

    def _regress(self, period: float) -> None:
        """Add a block to the regression that shows whether samples are even although their stamps jitter.

        Third differences of the positions follow those of the stamps, times the velocity, where the samples jitter too.
        """
        width = 2 * STRIDE + 3
        velocity = (self._positions[width:] - self._positions[:-width]) / (width * period)
        third = np.diff(self._positions, n=3, axis=0)[STRIDE:-STRIDE]
        whole = self._steps < _TWO_PERIODS * period
        stamps = np.diff(self._steps, n=2)[1 + STRIDE : -STRIDE]
        usable = (whole[1:-2] & whole[2:-1] & whole[3:])[STRIDE:-STRIDE]
        expected = np.where(usable[:, None], velocity * stamps[:, None], 0.0)
        weight = 1.0 / np.maximum((third**2).mean(axis=0), NEGLIGIBLE_NOISE[0] ** 2)
        self._correlation = _FORGETTING_FACTOR * self._correlation + float((weight * expected * third).sum())
        self._information = _FORGETTING_FACTOR * self._information + float((weight * expected**2).sum())

    def _usual_period(self) -> float:
        """Period of the intervals: from spans without a missing sample, which would make them longer."""
        shortest = _TWO_PERIODS * float(np.median(self._steps))
        stamps, gaps = np.cumsum(self._steps), np.cumsum(self._steps > shortest)
        whole = gaps[_SPAN:] == gaps[:-_SPAN]
        if whole.any():
            spans: FloatArray = stamps[_SPAN:] - stamps[:-_SPAN]
            return float(np.median(spans[whole])) / _SPAN
        return float(self._steps[self._steps <= shortest].mean())
