"""Checks of the sensors against each other, at a low rate: rates, stamps, signs and frames.

Each check ends in findings: one sentence that begins with the topic, names the presumed cause and ends with what to do.
A finding stays until its check has been right for a while, so that it does not flicker with the steps of a walk.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from friction_estimator.config import Config
from friction_estimator.estimation.health import Health
from friction_estimator.types import GRAVITY, Dynamics, FloatArray, SensorCalibration, SensorFrame

LOWEST_RATE = 100.0
"""Lowest useful rate of joint states and foot wrenches [Hz]. On the simulated walk friction errors (RMS) are 4 % of the
friction at 1 kHz, 10 % at 250 Hz, 25 % at 100 Hz, 50 % at 50 Hz, and as large as the friction at 25 Hz."""
LOWEST_IMU_RATE = 25.0
"""Lowest useful rate of the IMU [Hz]. Slower readings are too old during more than half of the time."""
_SLACK = 0.9
"""A rate is too low only below this fraction of the lowest useful one: drivers lose messages."""

_PERIOD_NS = 50_000_000
"""Time between the frames that are checked [ns]."""
_CONCLUDE_NS = 1_000_000_000
"""Time between two conclusions [ns]."""
_MEMORY = 2.0
"""Time constant of the means [s]."""
_HOLD_NS = 3_000_000_000
"""A finding stays for this time after its last confirmation [ns]."""
_LONGEST_NS = 10_000_000_000
"""Frames farther apart than this are a jump of the clock and not a low rate [ns]."""
_LOADED = 0.1
"""A foot counts as loaded above this fraction of the robot's weight: its force then has a direction."""
_EVIDENCE = 0.5
"""Loaded time in the means from which directions are compared [s]."""
_OFF = math.radians(40.0)
"""Directions that differ by more than this do so because of a wrong frame: slopes and tilted feet are less steep."""
_ALONG = math.radians(30.0)
"""Directions that differ by less than this agree."""
_SURE = 15.0
"""Standard deviations beyond which an identified error is named: they do not hold all errors of the robot model."""
_DELAY = 6e-4
"""Delays below this are not named [s]: they are a part of the sample period of most robots."""
_SETTLED = 0.2
"""An identified error is named once it changes by less than this part of its limit in a second."""
_PART_OF_INTERVAL = 0.15
"""Delays below this part of the time between two readings are not named: values between readings are interpolated."""
_TILTED = math.radians(0.6)
"""Mounting errors of the IMU below this are not named: links with wrong centres of mass look alike."""


class SensorChecks:
    """Compares the sensors with each other and keeps what is wrong in ``Health.findings``.

    Parameters
    ----------
    config : topics
    weight : of the robot [N]
    rotation_imu_to_base : (3, 3)
    health : whose counters give the rates, and whose findings and events are written
    delays : of the newest readings of IMU and feet, ``Synchronizer.delays``
    calibration : errors of the sensors that the friction stage has found
    """

    def __init__(
        self,
        config: Config,
        weight: float,
        rotation_imu_to_base: FloatArray,
        health: Health,
        delays: Callable[[], list[float]],
        calibration: Callable[[], SensorCalibration | None],
    ) -> None:
        self._config, self._health, self._imu_to_base = config, health, rotation_imu_to_base
        self._read_delays, self._calibration = delays, calibration
        self._calibration_before: SensorCalibration | None = None
        self._joints = config.output.joint_states_topic
        self._sensors = [] if config.robot.fixed_base else [(config.imu.topic, LOWEST_IMU_RATE)]
        self._first = 1 - len(self._sensors)  # of frames' flags: those of a fixed base begin with an IMU, too
        self._sensors += [(foot.wrench_topic, LOWEST_RATE) for foot in config.feet]
        self._loaded_above = _LOADED * weight
        self._held: dict[str, tuple[int, str]] = {}
        self.restart()

    def restart(self) -> None:
        """Drop all means; findings stay until they are refuted or too old."""
        k = len(self._config.feet)
        self._next_ns, self._begin_ns = 0, -2 * _LONGEST_NS
        self._frames = self._restarts = 0
        self._delays: list[list[float]] = []
        self._force, self._gravity, self._loaded = np.zeros((k, 3)), np.zeros((k, 3)), np.zeros(k)

    def add(self, frame: SensorFrame, dynamics: Dynamics) -> None:
        """Use the newest frame, unless less than 50 ms have passed since the one before."""
        if frame.stamp_ns < self._next_ns and frame.dt:
            return
        self._use(frame, dynamics)
        elapsed = frame.stamp_ns - self._begin_ns
        if not 0 <= elapsed < _LONGEST_NS:
            self._begin(frame)
        elif elapsed >= _CONCLUDE_NS:
            self._conclude(frame, 1e-9 * elapsed)
            self._begin(frame)

    def _begin(self, frame: SensorFrame) -> None:
        self._begin_ns, self._frames, self._restarts = frame.stamp_ns, self._health.frames, self._health.restarts
        self._delays.clear()

    def _use(self, frame: SensorFrame, dynamics: Dynamics) -> None:
        self._next_ns = frame.stamp_ns + _PERIOD_NS
        self._delays.append(self._read_delays())
        keep, dt = math.exp(-1e-9 * _PERIOD_NS / _MEMORY), 1e-9 * _PERIOD_NS
        specific_force = self._imu_to_base @ frame.specific_force
        for foot, force in enumerate(frame.wrenches[:, :3]):
            if frame.wrench_fresh[foot] and frame.imu_fresh and force @ force > self._loaded_above**2:
                self._force[foot] = keep * self._force[foot] + dt * force
                turned = dynamics.foot_rotation_to_base[foot].T @ specific_force
                self._gravity[foot] = keep * self._gravity[foot] + dt * turned
                self._loaded[foot] = keep * self._loaded[foot] + dt

    def _conclude(self, frame: SensorFrame, elapsed: float) -> None:
        stamp, health = frame.stamp_ns, self._health
        over_time = *self._rates(frame, elapsed), *self._lags(frame, elapsed), *self._calibrated(frame, elapsed)
        for key, text in (*over_time, *self._directions()):
            if key not in self._held:
                health.add_event("sensor", stamp, text)
            self._held[key] = stamp, self._held.get(key, (0, text))[1]
        self._held = {key: item for key, item in self._held.items() if 0 <= stamp - item[0] < _HOLD_NS}
        health.findings = tuple(text for _, text in self._held.values())

    def _rates(self, frame: SensorFrame, elapsed: float) -> Iterator[tuple[str, str]]:
        """Topics that deliver less often than identification needs."""
        frames, restarts = self._health.frames - self._frames, self._health.restarts - self._restarts
        if not self._config.has_friction or 0 < restarts < frames:  # a pause is no low rate
            return
        rate = frames / elapsed
        rates = [(self._joints, rate, LOWEST_RATE)]
        if not restarts:
            fresh = [frame.imu_fresh, *frame.wrench_fresh.tolist()][self._first :]
            readings = frame.readings.tolist()[self._first :]
            rates += [
                (topic, part * rate, lowest)
                for (topic, lowest), used, part in zip(self._sensors, fresh, readings, strict=True)
                if used and part < _SLACK
            ]
        for topic, hz, lowest in rates:
            if hz < _SLACK * lowest:
                yield (
                    f"rate of {topic}",
                    (f"{topic}: {hz:.0f} Hz is too low to identify friction; publish at {lowest:.0f} Hz or more"),
                )

    def _lags(self, frame: SensorFrame, elapsed: float) -> Iterator[tuple[str, str]]:
        """Sensors that deliver, but whose stamps differ too much from those of the joint states to be used."""
        delays, wait = np.array(self._delays), self._config.synchronizer
        period = elapsed / max(self._health.frames - self._frames, 1)
        fresh = [frame.imu_fresh, *frame.wrench_fresh.tolist()][self._first :]
        for (topic, _), used, delay in zip(self._sensors, fresh, delays.T, strict=True):
            if not delay[-1] - delay[0] < 0.5 * elapsed:  # nothing arrives, or never did
                continue
            behind, ahead = float(delay.min()), -float(delay.max())
            self._health.delays[topic] = behind
            what, remedy = f"{topic}: its stamps are", "correct the stamps, or synchronise the clocks of the computers"
            if behind > wait.max_wait + (period if used else 0.0):
                remedy += f", or set synchronizer.max_wait above {behind:.3f}" if behind < 1.0 else ""
                yield (
                    f"lag of {topic}",
                    (f"{what} {1e3 * behind:.1f} ms behind those of {self._joints}, too late to be used: {remedy}"),
                )
            elif ahead > wait.reset_after:
                yield (
                    f"lag of {topic}",
                    (f"{what} {1e3 * ahead:.1f} ms ahead of those of {self._joints}, so it is not used: {remedy}"),
                )

    def _directions(self) -> Iterator[tuple[str, str]]:
        """Feet and IMU whose forces have another direction than the soles that stand on the ground."""
        for foot, config in enumerate(self._config.feet):
            if self._loaded[foot] < _EVIDENCE or config.contact == "point":
                continue
            force, gravity = _tilt(self._force[foot]), _tilt(self._gravity[foot])
            if gravity < _ALONG and force > math.pi - _ALONG:
                yield (
                    f"sign of {config.name}",
                    (
                        f"{config.wrench_topic}: the force of the foot sensor {config.name!r} points down: set "
                        f"feet.{config.name}.flip"
                    ),
                )

    def _calibrated(self, frame: SensorFrame, elapsed: float) -> Iterator[tuple[str, str]]:
        """Delays and an IMU mounting that the friction stage has found and that no longer change."""
        calibration, before = self._calibration(), self._calibration_before
        self._calibration_before = calibration
        if calibration is None or before is None:
            return
        delay, outcome = calibration.wrench_delay, "The estimate accounts for it"
        readings = np.maximum(frame.readings[1:] * (self._health.frames - self._frames), 1.0)
        least = np.maximum(_DELAY, _PART_OF_INTERVAL * elapsed / readings)
        sure = np.abs(delay) > np.maximum(least, _SURE * calibration.wrench_delay_sigma)
        sure &= np.abs(delay - before.wrench_delay) < _SETTLED * _DELAY
        if sure.all() and sure.size and (delay < 0.0).all():
            age = f"{-1e3 * delay.mean():.1f} ms older than the foot wrenches at the same stamp"
            text = f"{self._joints}: the motor torques are {age}. {outcome}; correct the stamps in the driver"
            yield "delay of the torques", text
            return
        for foot in np.flatnonzero(sure).tolist():
            config, ms = self._config.feet[foot], 1e3 * delay[foot]
            age = f"{abs(ms):.1f} ms {'older' if ms > 0.0 else 'newer'} than the motor torques at the same stamp"
            remedy = f"correct the stamps, or set feet.{config.name}.delay"
            yield f"delay of {config.name}", f"{config.wrench_topic}: the wrenches are {age}. {outcome}; {remedy}"
        bias, sigma = (vector[:2] for vector in (calibration.accelerometer_bias, calibration.accelerometer_bias_sigma))
        tilt, change = (math.hypot(*vector) / GRAVITY for vector in (bias, bias - before.accelerometer_bias[:2]))
        if tilt > max(_TILTED, _SURE * math.hypot(*sigma) / GRAVITY) and change < _SETTLED * _TILTED:
            angle = f"{math.degrees(tilt):.1f} degrees against its frame {self._config.imu.frame!r} in the URDF"
            error = f"the IMU is tilted by {angle}, or its accelerometer has a bias of {GRAVITY * tilt:.2g} m/s^2"
            yield "tilt of the IMU", f"{self._config.imu.topic}: {error}. {outcome}; correct the frame in the URDF"


def _tilt(vector: FloatArray) -> float:
    """Angle to the z axis [rad]."""
    return math.atan2(math.hypot(vector[0], vector[1]), vector[2])
