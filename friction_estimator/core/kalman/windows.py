"""Samples gathered to windows of some milliseconds: the clock of identification.

    sample  0 . . . . . . . . . N . . . . .
            |<---- window ----->|
          fit around          fit around
          the start           the end, h samples later

The momentum at both ends comes from readings around them that no other window uses, so its noise is white from window
to window. In between, torque, wrench and specific force count with their mean, which is their impulse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.core.config import KalmanConfig, SensorNoise
from friction_estimator.core.kalman.local_motion import LocalMotion, LocalMotionFit
from friction_estimator.core.kalman.motion_bank import JointMotion
from friction_estimator.core.types import BoolArray, FloatArray, SensorFrame

_FEWEST = 3
_TIMED = 9
"""Samples whose median distance tells the period."""
_GAP = 2.5
"""Distances beyond so many periods are gaps: what acted there is not known."""


@dataclass(frozen=True, slots=True)
class WindowSample:
    """One frame with all that a window needs of it.

    Attributes
    ----------
    time : since the restart [s]
    frame : the readings
    angular_velocity, specific_force : (3,) of the IMU in base axes, gyro bias removed
    angular_acceleration : (3,) of the base, base axes [rad/s^2]
    acceleration : (n,) of the joints [rad/s^2]
    regressor : (n, p) of the friction laws, motor by motor
    regressor_variance : (n,) of the motors' friction by the law, from the uncertain velocity [(N m)^2]
    disturbed : (n,) True where something pushes the limb now
    """

    time: float
    frame: SensorFrame
    angular_velocity: FloatArray
    specific_force: FloatArray
    angular_acceleration: FloatArray
    acceleration: FloatArray
    regressor: FloatArray
    regressor_variance: FloatArray
    disturbed: BoolArray

    @staticmethod
    def of(
        time: float,
        frame: SensorFrame,
        imu: tuple[FloatArray, FloatArray, FloatArray],
        motion: JointMotion,
        regressor: FloatArray,
        regressor_variance: FloatArray,
        disturbed: BoolArray,
    ) -> WindowSample:
        """From what the stages before have made of a frame; ``imu`` is rate, specific force, angular acceleration."""
        return WindowSample(time, frame, *imu, motion.acceleration, regressor, regressor_variance, disturbed)


@dataclass(frozen=True, slots=True)
class Window:
    """A closed window.

    Attributes
    ----------
    time : of its end, since the restart [s]
    duration : [s]
    samples : how many
    end : motion at its end
    angular_acceleration : (3,) of the base at the end, base axes
    acceleration : (n,) of the joints at the end
    mean_acceleration, mean_acceleration_std : (3 + n,) of base and joints, by the readings of this window alone
    effort, specific_force, wrenches : means (n,), (3,), (k, 6)
    normal_force : (2, k) smallest and largest normal force [N]
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
    end: LocalMotion
    angular_acceleration: FloatArray
    acceleration: FloatArray
    mean_acceleration: FloatArray
    mean_acceleration_std: FloatArray
    effort: FloatArray
    specific_force: FloatArray
    wrenches: FloatArray
    normal_force: FloatArray
    specific_force_roughness: FloatArray
    wrench_roughness: FloatArray
    regressor: FloatArray
    regressor_variance: FloatArray
    complete: bool
    imu_fresh: bool
    wrench_fresh: BoolArray
    disturbed: BoolArray


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
    """

    def __init__(self, config: KalmanConfig, noise: SensorNoise, held: bool) -> None:
        self._length = config.window
        self._held = held
        self.fit = LocalMotionFit(noise)
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self._samples: list[WindowSample] = []
        self._count = 0
        self._period = 0.0
        self._first = True

    def add(self, sample: WindowSample) -> Window | None:
        """Add a sample; the window that became complete, if any. The first one has no length and only an end."""
        samples = self._samples
        samples.append(sample)
        if not self._count:
            if len(samples) < _TIMED:
                return None
            self._period = float(np.median(np.diff([sample.time for sample in samples])))
            self._count = max(_FEWEST, round(self._length / self._period)) if self._period > 0.0 else _FEWEST
        half = (self._count - 1) // 2
        start = half
        end = start if self._first else start + self._count
        if len(samples) <= end + half:
            return None
        window = self._close(start, end, half)
        del samples[: end - half]
        self._first = False
        return window

    def _close(self, start: int, end: int, half: int) -> Window:
        samples = self._samples
        around, inside = samples[end - half : end + half + 1], samples[start : end + 1]
        mean_acceleration, mean_acceleration_std = self._mean_acceleration(inside)
        weight = self._weights([sample.time for sample in inside])
        trapezoid = self._weights([sample.time for sample in inside], held=False)
        wrenches = np.array([sample.frame.wrenches for sample in inside])
        specific_force = np.array([sample.specific_force for sample in inside])
        used = samples[start - half : end + half + 1]
        last = samples[end]
        return Window(
            time=last.time,
            duration=last.time - samples[start].time,
            samples=len(inside) - 1,
            end=self.fit.at_middle(*_motion(around)),
            angular_acceleration=last.angular_acceleration,
            acceleration=last.acceleration,
            mean_acceleration=mean_acceleration,
            mean_acceleration_std=mean_acceleration_std,
            effort=weight @ np.array([sample.frame.effort for sample in inside]),
            specific_force=weight @ specific_force,
            wrenches=np.tensordot(weight, wrenches, 1),
            normal_force=np.array((wrenches[:, :, 2].min(axis=0), wrenches[:, :, 2].max(axis=0))),
            specific_force_roughness=_roughness(specific_force),
            wrench_roughness=_roughness(wrenches),
            regressor=np.tensordot(trapezoid, np.array([sample.regressor for sample in inside]), 1),
            regressor_variance=trapezoid @ np.array([sample.regressor_variance for sample in inside]),
            complete=bool(np.max(np.diff([sample.time for sample in used]), initial=0.0) <= _GAP * self._period),
            imu_fresh=all(sample.frame.imu_fresh for sample in used),
            wrench_fresh=np.logical_and.reduce([sample.frame.wrench_fresh for sample in used]),
            disturbed=np.logical_or.reduce([sample.disturbed for sample in used]),
        )

    def _mean_acceleration(self, inside: list[WindowSample]) -> tuple[FloatArray, FloatArray]:
        if len(inside) < _FEWEST:  # the first one is an end only
            size = 3 + inside[0].acceleration.size
            return np.zeros(size), np.full(size, np.inf)
        return self.fit.acceleration(*_motion(inside))

    def _weights(self, times: list[float], held: bool | None = None) -> FloatArray:
        """Weights of a time mean: each reading holds until the next, or the trapezoid rule."""
        weight = np.zeros(len(times))
        if len(times) == 1:
            weight[0] = 1.0
            return weight
        steps = np.diff(times) / (times[-1] - times[0])
        if self._held if held is None else held:
            weight[:-1] = steps
        else:
            weight[:-1] += 0.5 * steps
            weight[1:] += 0.5 * steps
        return weight


def _motion(samples: list[WindowSample]) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Times (N,), positions and velocities (N, n), gyroscope (N, 3)."""
    return (
        np.array([sample.time for sample in samples]),
        np.array([sample.frame.position for sample in samples]),
        np.array([sample.frame.velocity for sample in samples]),
        np.array([sample.angular_velocity for sample in samples]),
    )


def _roughness(readings: FloatArray) -> FloatArray:
    """Variance of readings (N, ...) about a smooth course: second differences of white noise have six times its own.

    What shakes faster than the sensor is read looks like noise, and like noise it is missing from the mean.
    """
    if len(readings) < _FEWEST:
        return np.zeros(readings.shape[1:])
    return np.asarray((np.diff(readings, n=2, axis=0) ** 2).mean(axis=0) / 6.0)
