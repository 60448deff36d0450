"""Checks of the sensors against each other, at a low rate: rates, stamps, stuck readings, units, signs and frames.

    rates, stamps   counters and delays of the synchronizer
    stuck           a reading keeps its bits although the joints around it move
    readings        of sensors that depend on each other (:mod:`sensor_plausibility`)
    calibration     errors of sensors that the filters have found

Each check ends in a finding: one sentence that begins with the topic, names the presumed cause and what to do.
A finding stays until its check has been right twice, so that it does not flicker with the steps of a walk.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from friction_estimator.config import Config
from friction_estimator.estimation.diagnosis.sensor_plausibility import (
    MIN_UNIT_RATIO,
    READING_PERIOD,
    PlausibilityChecks,
    SensorStatistics,
    StatisticsCollector,
    is_motion,
)
from friction_estimator.estimation.diagnosis.torque_balance import TORQUE_PERIOD_NS, TorqueBalance
from friction_estimator.estimation.health import HARMLESS_FAULTS, JOINTS, Check, Findings, Health, SensorFault
from friction_estimator.estimation.readings.synchronizer import RESET_AFTER, Synchronizer
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import GRAVITY, BoolArray, Dynamics, FloatArray, IntArray, SensorCalibration, SensorFrame

_MIN_RATE = 100.0
"""Lowest useful rate of joint states and foot wrenches [Hz]. On the simulated walk friction errors (RMS) are 4 % of the
friction at 1 kHz, 10 % at 250 Hz, 25 % at 100 Hz, 50 % at 50 Hz, and as large as the friction at 25 Hz."""
_MIN_IMU_RATE = 25.0
"""Lowest useful rate of the IMU [Hz]. Slower readings are too old during more than half of the time."""
_RATE_TOLERANCE = 0.9
"""A rate is too low only below this fraction of the lowest useful one: drivers lose messages."""
_MAX_LATE_SHARE = 0.01
"""Share of the readings that may come too late to be used."""

_MAX_GLITCH_SHARE = 0.01
"""Share of joint samples that may contradict the others: encoders have glitches."""

_READING_PERIOD_NS = round(1e9 * READING_PERIOD)
_BLOCK_TIME = 1.0
"""Time between two runs of the checks [s]; each uses the newest two to four blocks of this length."""
_MAX_PAUSE = 10.0
"""Frames farther apart than this are a jump of the clock and not a low rate [s]."""

_MIN_DISPLACEMENT = 0.03
"""A joint that has gone so far has moved, whatever the noise of its sensors [rad or m]."""
_MIN_PATH = 0.05
"""Distance by velocity, or by position, during which the other one must change [rad or m]."""

_MIN_STANDING_SHARE = 0.9
"""Fraction of a second for which a foot must be loaded, so that it stands."""
_BLOCKS = 4
"""Number of blocks that are kept."""

_MIN_SIGMAS = 6.0
"""Standard deviations beyond which an identified error is named."""
_DELAY = 6e-4
"""Delays below this are not named [s]: they are a part of the sample period of most robots."""
_GAIN, _SLIP = 0.05, 0.005
"""Errors of torque gains, and slips of encoders [rad], up to which nothing is named."""
_MAX_RELATIVE_CHANGE = 0.2
"""An identified error is named once it changes by less than this part in a second."""
_PART_OF_INTERVAL = 0.15
"""Delays below this part of the time between two readings are not named: values between readings are interpolated."""
_TILTED = math.radians(0.6)
"""Mounting errors of the IMU below this are not named: links with wrong centres of mass look alike."""
_LARGEST_UNNAMED = {
    "torque_delay": _DELAY, "wrench_delay": _DELAY, "accelerometer_bias": GRAVITY * _TILTED,
    "position_offset": _SLIP, "effort_gain": _GAIN,
}  # fmt: skip
"""Errors up to which nothing is named, by their block of the state."""

_NEEDS_FOUR_BLOCKS = {
    SensorFault.HEADING, SensorFault.GYROSCOPE_UNIT, SensorFault.EFFORT_SIGN, SensorFault.EFFORT_UNIT,
    SensorFault.EFFORT_FORCES, SensorFault.WRENCH_OFFSET, SensorFault.WRENCH_POINT,
}  # fmt: skip
"""Errors that need four blocks to be found with few false alarms; two show that they are over."""


@dataclass(frozen=True, slots=True)
class _CheckInterval:
    """Counters of the time between two runs of the checks."""

    frame: SensorFrame  # the newest one
    elapsed: float  # length of that time [s]
    # number of frames, of restarts of the filters, and of joint samples that were dropped because they contradict
    # the others
    frames: int
    restarts: int
    contradicting: int
    delays: FloatArray  # (t, s) of the sensors other than the joints, see `Synchronizer.delays` [s]
    late: list[int]  # (s) their readings that came too late
    mixed: list[int]  # (1 + s) frames for which two publishers sent the readings of joints and of the other sensors


class SensorChecks:
    """Compares the sensors with each other and keeps what is wrong in ``Health.findings``.

    Parameters
    ----------
    config : topics and frames
    robot : weight, limbs and frame of the IMU
    health : whose counters give the rates, and whose findings, delays and events are written
    synchronizer : whose delays and late readings are checked
    calibration : errors of the sensors that the friction stage has found
    more : checks of other stages

    Attributes
    ----------
    due_ns : stamp from which on :meth:`add` has something to do [ns]
    wrong_for : time for which readings may have been wrong when that was found; zero when they were not [s]
    """

    def __init__(
        self,
        config: Config,
        robot: RobotModel,
        health: Health,
        synchronizer: Synchronizer,
        calibration: Callable[[], SensorCalibration | None],
        more: Callable[[], Iterator[Check]],
    ) -> None:
        self._more, self._calibration, self._calibration_before = more, calibration, calibration()
        self._config, self._robot, self._health, self._synchronizer = config, robot, health, synchronizer
        self._joint_topic, self._imu, self._feet = config.output.joint_states_topic, config.imu.topic, config.feet
        self._floating, self._first = not config.robot.fixed_base, int(config.robot.fixed_base)
        sensors = (self._imu, _MIN_IMU_RATE), *((foot.wrench_topic, _MIN_RATE) for foot in self._feet)
        self._sensors = sensors[self._first :]
        flat = np.array([all(foot.held_axes) for foot in self._feet], dtype=bool)
        self._balance, self._plausibility = TorqueBalance(config, robot), PlausibilityChecks(config, robot)
        self._collector = StatisticsCollector(robot, flat, self._balance)
        self._blocks: deque[SensorStatistics] = deque(maxlen=_BLOCKS)
        self._findings = Findings(health, robot, [foot.wrench_topic for foot in self._feet])
        self._changing, self._factor = "", np.full(len(robot.joint_names), np.nan)
        self._right_ns: dict[tuple[SensorFault, str], int] = {}
        self.wrong_for = math.inf
        self._coupled: BoolArray = np.eye(len(robot.joint_names), dtype=bool)
        self.reset()

    def reset(self) -> None:
        """Drop all frames; findings stay until their check is right."""
        self.due_ns = self._stamp_ns = self._begin_ns = -round(2e9 * _MAX_PAUSE)  # long before any stamp
        self._counters: IntArray = np.zeros(4 + 2 * len(self._sensors), dtype=np.int64)
        self._delays: list[list[float]] = []
        self._collector.reset()
        self._blocks.clear()
        self._pending: Iterator[Iterator[Check]] | None = None

    def add(self, frame: SensorFrame, dynamics: Dynamics) -> None:
        """Take a frame that is due, or whose ``dt`` is zero: its torques every 10 ms, all readings every 50 ms.

        One of the pending checks in a frame: no frame is much later than the others.
        """
        self._run_next_check()
        elapsed = frame.stamp_ns - self._stamp_ns
        if not (0 <= elapsed < 4 * _READING_PERIOD_NS and frame.dt):
            self._finish_checks()
            self._collector.reset()
            self._blocks.clear()
        self._balance.add(frame, dynamics)
        if not (0 <= elapsed < _READING_PERIOD_NS and frame.dt):
            self._stamp_ns = frame.stamp_ns
            self._collect(frame, dynamics)
        due = min(self._stamp_ns + _READING_PERIOD_NS, frame.stamp_ns + TORQUE_PERIOD_NS)
        self.due_ns = due if self._pending is None else frame.stamp_ns

    def _collect(self, frame: SensorFrame, dynamics: Dynamics) -> None:
        """Add the readings of a frame to the evidence; begin the checks once a second."""
        self._collector.add(frame, dynamics)
        self._coupled = dynamics.mass_matrix[-self._coupled.shape[0] :, -self._coupled.shape[0] :] != 0.0
        self._delays.append(self._synchronizer.delays())
        since, health = 1e-9 * (frame.stamp_ns - self._begin_ns), self._health
        of_sensors = *self._synchronizer.late(), health.mixed, *self._synchronizer.mixed()
        counters = np.array([health.frames, health.restarts, health.contradicting, *of_sensors])
        frames, restarts, contradicting, *late = (counters - self._counters).tolist()
        mixed = late[len(self._sensors) :]
        if any(mixed) and not any(kind is SensorFault.MIXED for kind, _ in self._findings.current):
            self.use(self._plausibility.check_publishers(mixed), frame.stamp_ns)  # compensation must end at once
        if 0.0 <= since < _MAX_PAUSE and (since < _BLOCK_TIME or frames <= 1):
            return
        if _BLOCK_TIME <= since < _MAX_PAUSE:
            self._finish_checks()
            self._blocks.append(self._collector.block)
            counts = frames, restarts, contradicting, np.array(self._delays)
            self._pending = self._checks(_CheckInterval(frame, since, *counts, late, mixed))
        self._begin_ns, self._counters, self._delays = frame.stamp_ns, counters, []
        self._collector.begin()

    def _run_next_check(self) -> None:
        """Run the next pending check, and update its findings."""
        if self._pending is None:
            return
        if (checks := next(self._pending, None)) is None:
            self._pending = None
        else:
            self.use(checks, self._stamp_ns)

    def use(self, checks: Iterable[Check], stamp_ns: int) -> None:
        """Update the findings of some checks that were made at a stamp [ns]."""
        for check in checks:
            if self._findings.update(check, stamp_ns):
                while len(self._blocks) > 1:  # what came before may show the error
                    self._blocks.popleft()
            self._update_wrong_for(check)
        self._findings.publish(self._coupled)

    def _update_wrong_for(self, check: Check) -> None:
        """Update ``wrong_for``: an error may be older than its finding, by the time that the check needs to see it."""
        key = check.kind, check.topic
        if not check.text:
            self._right_ns[key] = self._stamp_ns
        elif not self.readings_are_wrong and check.kind not in HARMLESS_FAULTS:
            hidden = _BLOCK_TIME * (3.0 if check.kind in _NEEDS_FOUR_BLOCKS else 1.0)
            since = 1e-9 * (self._stamp_ns - self._right_ns.get(key, self._stamp_ns + 1))
            self.wrong_for = hidden + since if since >= 0.0 else math.inf  # never right, or before the clock jumped

    @property
    def readings_are_wrong(self) -> bool:
        """True while readings are known to be wrong, apart from rates, stamps and errors that the filters correct."""
        return bool(self._findings.wrong)

    def _finish_checks(self) -> None:
        while self._pending is not None:
            self._run_next_check()

    def _checks(self, interval: _CheckInterval) -> Iterator[Iterator[Check]]:
        """All checks: of every sensor alone, then of joints, IMU, feet and torques, each with those before it.

        A check is left out while something is found about a sensor that it needs.
        """
        yield self._check_rates(interval)
        yield self._check_publishers(interval)
        yield self._check_lags(interval)
        yield self._check_calibration(interval)
        yield self._more()
        yield self._check_stuck_readings()
        yield self._plausibility.check_velocities(self._statistics(2))
        if self._findings.is_wrong(self._joint_topic):
            return
        if self._floating:
            yield from self._checks_of_base()
        else:
            sums = self._statistics(4)
            yield from self._balance.checks(sums.balance, sums.rows, self._findings.current)
            yield self._plausibility.check_torques(sums, self._balance, self._factor)

    def _checks_of_base(self) -> Iterator[Iterator[Check]]:
        """Checks of IMU, feet and torques of a floating base, whose joints are right."""
        findings, plausibility, last_two_blocks = self._findings, self._plausibility, self._statistics(2)
        if (SensorFault.MIXED, self._imu) in findings.current:
            return
        yield plausibility.check_gravity(last_two_blocks)
        needed = any(kind in _NEEDS_FOUR_BLOCKS for kind, _ in findings.current)
        last_four_blocks = last_two_blocks if needed else self._statistics(4)
        yield plausibility.check_gyroscope(last_four_blocks)
        if not findings.is_wrong(self._imu, but=SensorFault.HEADING):
            yield from self._balance.checks(last_four_blocks.balance, last_four_blocks.rows, findings.current)
        if (SensorFault.ACCELEROMETER_UNIT, self._imu) not in findings.current:
            yield plausibility.check_directions(last_two_blocks, findings.current)
        if findings.is_wrong(self._imu, but=SensorFault.HEADING):
            return
        yield plausibility.check_wrenches(last_two_blocks, findings.current)
        if any(findings.is_wrong(foot.wrench_topic) for foot in self._feet):
            return
        if self._changing != "position_offset":  # a leg in a wrong posture turns the foot forces
            yield plausibility.check_heading(last_four_blocks)
        elif (SensorFault.HEADING, self._imu) in findings.current:
            yield iter((Check(SensorFault.HEADING, self._imu, ""),))
            self.wrong_for = 0.0
        if not findings.is_wrong(self._imu):
            yield plausibility.check_torques(last_four_blocks, self._balance, self._factor)

    def _statistics(self, blocks: int) -> SensorStatistics:
        """What the newest blocks show."""
        return SensorStatistics(self._robot, self._balance.size).include(list(self._blocks)[-blocks:])

    def _check_rates(self, interval: _CheckInterval) -> Iterator[Check]:
        """Topics that deliver less often than identification needs."""
        frame, frames, restarts = interval.frame, interval.frames, interval.restarts
        if not self._config.has_friction or 0 < restarts < frames:  # a pause is no low rate
            return
        hertz = frames / interval.elapsed
        rates = [(self._joint_topic, hertz, _MIN_RATE)]
        parts = frame.readings_per_sample[self._first :].tolist()
        for (topic, lowest), used, part in zip(self._sensors, self._fresh(frame), parts, strict=True):
            if not restarts:
                rates.append((topic, part * hertz if used and part < _RATE_TOLERANCE else math.inf, lowest))
        for topic, hz, lowest in rates:
            low = f"{topic}: {hz:.0f} Hz is too low to identify friction; publish at {lowest:.0f} Hz or more"
            yield Check(SensorFault.MESSAGE_RATE, topic, low if hz < _RATE_TOLERANCE * lowest else "")

    def _fresh(self, frame: SensorFrame) -> list[bool]:
        """Which of the sensors other than the joints are fresh."""
        return [frame.imu_fresh, *frame.wrench_fresh.tolist()][self._first :]

    def _check_publishers(self, interval: _CheckInterval) -> Iterator[Check]:
        """Joint states of a second node, which contradict those that are used, and sensors with two publishers."""
        dropped, joints = interval.contradicting, self._joint_topic
        text = (
            f"{joints}: {dropped} of {dropped + interval.frames} joint states contradict the others and are not used: "
            "a second node publishes joint states; end it, or give its topic another name"
        )
        yield Check(SensorFault.PUBLISHERS, joints, text if dropped > _MAX_GLITCH_SHARE * interval.frames else "")
        yield from self._plausibility.check_publishers(interval.mixed)

    def _check_lags(self, interval: _CheckInterval) -> Iterator[Check]:
        """Sensors that are silent, and those whose stamps differ too much from those of the joint states to be used."""
        wait, fresh, joints = self._config.synchronizer, self._fresh(interval.frame), self._joint_topic
        for sensor, (topic, _) in enumerate(self._sensors):
            delay = interval.delays[:, sensor]
            behind, ahead = float(delay.min()), -float(delay.max())
            what, remedy = f"{topic}: its stamps are", "correct the stamps, or synchronise the clocks of the computers"
            text = silence = ""
            share = interval.late[sensor] / interval.frames
            if delay[-1] - delay[0] < 0.5 * interval.elapsed:
                self._health.delays[topic] = behind
                if behind > wait.max_wait + (interval.elapsed / interval.frames if fresh[sensor] else 0.0):
                    remedy += f", or set synchronizer.max_wait above {behind:.3f}" if behind < 1.0 else ""
                    text = f"{what} {1e3 * behind:.1f} ms behind those of {joints}, too late to be used: {remedy}"
                elif ahead > RESET_AFTER:
                    text = f"{what} {1e3 * ahead:.1f} ms ahead of those of {joints}, so it is not used: {remedy}"
            elif share > _MAX_LATE_SHARE:
                remedy = "so its readings are not used: set them in the driver"
                text, share = f"{topic}: its stamps do not advance although readings arrive, {remedy}", 0.0
            elif not (fresh[sensor] or interval.mixed[1 + sensor]):  # nothing arrives, or never did
                silence = f"{topic}: no usable reading arrives: check that the driver runs and publishes on this topic"
            yield Check(SensorFault.SILENCE, topic, silence)
            yield Check(SensorFault.LAG, topic, text)
            text = f"{topic}: {share:.0%} of the readings came too late to be used: raise synchronizer.max_wait"
            yield Check(SensorFault.LATE, topic, text if share > _MAX_LATE_SHARE else "")

    def _check_calibration(self, interval: _CheckInterval) -> Iterator[Check]:
        """What has changed in mid-run; else errors that the filters have identified and that no longer change."""
        found, before = self._calibration(), self._calibration_before
        self._calibration_before = found
        if found is None or before is None:
            return
        self._factor = np.full(len(self._robot.joint_names), np.nan)
        self._changing, errors, runner_up_text = "", list[tuple[str, int, float]](), ""
        if (change := found.change) is not None:  # one that is not sure yet passes for other errors
            self._changing, runner_up_text = change.kind, f". Second in likelihood, {change.runner_up}"
            errors = [(change.kind, change.place, change.size)] if change.runner_up else []
        elif not self.readings_are_wrong:
            errors = list(self._significant_errors(interval, found, before))
        checks = [check for error in errors if (check := self._error_check(*error)) is not None]
        yield from (check._replace(text=check.text + runner_up_text) for check in checks)
        found_keys = {(check.kind, check.topic) for check in checks}
        of_joints = SensorFault.EFFORT_GAIN, SensorFault.POSITION_OFFSET, SensorFault.DELAY
        keys = [(kind, self._joint_topic) for kind in of_joints]
        keys += [(SensorFault.DELAY, foot.wrench_topic) for foot in self._feet]
        yield from (Check(*key, "") for key in (*keys, (SensorFault.TILT, self._imu)) if key not in found_keys)

    def _significant_errors(
        self, interval: _CheckInterval, found: SensorCalibration, before: SensorCalibration
    ) -> Iterator[tuple[str, int, float]]:
        """Kind, joint or foot, and size of errors of sensors that are certain; of torque gains the surest one."""
        (gain, sigma), past = found.effort_gain, before.effort_gain[0]
        significant = _is_significant(gain, sigma, past)
        if significant.any() and self._health.innovation_excess <= 1.0:
            joint = int(np.divide(np.abs(gain), sigma, out=np.zeros_like(gain), where=significant).argmax())
            yield "effort_gain", joint, float(gain[joint])
        (delay, sigma), past = found.wrench_delay, before.wrench_delay[0]
        readings = np.maximum(interval.frame.readings_per_sample[1:] * interval.frames, 1.0)
        least = np.maximum(_DELAY, _PART_OF_INTERVAL * interval.elapsed / readings)
        significant = (np.abs(delay) > least) & _is_significant(delay, sigma, past)
        if significant.size and significant.all() and (delay < -_DELAY).all():
            yield "torque_delay", -1, -float(delay.mean())
        else:
            yield from (("wrench_delay", foot, float(delay[foot])) for foot in np.flatnonzero(significant).tolist())
        tilt, sigma, past = (math.hypot(*row[:2]) for row in (*found.accelerometer_bias, before.accelerometer_bias[0]))
        if _is_significant(np.array(tilt), np.array(sigma), np.array(past)):
            yield "accelerometer_bias", -1, tilt

    def _error_check(self, kind: str, place: int, size: float) -> Check | None:
        """Finding about an error of this size, of a joint or foot; None where it is small, or found by other checks."""
        if kind == "effort_gain":
            self._factor[place] = factor = 1.0 / (1.0 - size) if size != 1.0 else math.inf
            if not 1.0 / MIN_UNIT_RATIO <= factor <= MIN_UNIT_RATIO:
                return None  # a wrong sign or unit, see PlausibilityChecks.check_torques
        if not abs(size) > _LARGEST_UNNAMED[kind] or (kind == "accelerometer_bias" and size > GRAVITY):  # no tilt
            return None
        joints, in_driver = self._joint_topic, "correct the stamps in the driver"
        if kind == "torque_delay":
            what = f"motor torques are {1e3 * size:.1f} ms older than the foot wrenches at the same stamp"
            return Check.corrected(SensorFault.DELAY, joints, what, in_driver)
        if kind == "wrench_delay":
            foot, age = self._feet[place], f"{1e3 * abs(size):.1f} ms {'older' if size > 0.0 else 'newer'}"
            what = f"wrenches are {age} than the motor torques at the same stamp"
            remedy = f"correct the stamps, or set feet.{foot.name}.delay"
            return Check.corrected(SensorFault.DELAY, foot.wrench_topic, what, remedy)
        if kind == "accelerometer_bias":
            tilt = f"{math.degrees(math.asin(size / GRAVITY)):.1f} degrees against its frame {self._config.imu.frame!r}"
            what = f"IMU is tilted by {tilt} in the URDF, or its accelerometer has a bias of {size:.2g} m/s^2"
            return Check.corrected(SensorFault.TILT, self._imu, what, "correct the frame in the URDF")
        only = np.arange(len(self._robot.joint_names)) == place
        if kind == "position_offset":
            what = f"encoder of joint {JOINTS} has slipped by {size:.2g} rad"
            return Check.corrected(SensorFault.POSITION_OFFSET, joints, what, "set its zero", only)
        what = f"effort of joint {JOINTS} is {self._factor[place]:.2f} times its torque"
        return Check.corrected(SensorFault.EFFORT_GAIN, joints, what, "correct the gain", only)

    def _check_stuck_readings(self) -> Iterator[Check]:
        """Readings that keep all their bits for one second, or four, although the joints around them move."""
        newest, limbs, n = self._blocks[-1], self._robot.limb, len(self._robot.joint_names)
        same = newest.unchanged > 0.0
        stuck = np.zeros_like(same)
        if same.any():
            stands = newest.loaded > _MIN_STANDING_SHARE * newest.imu[0]
            standing = limbs[stands].any(axis=0)  # joints between base and ground
            empty = ~newest.first[3 * n + 6 :].reshape(-1, 6).any(axis=1)
            for blocks in (1, _BLOCKS):
                statistics = self._statistics(blocks)
                moved, expected = np.split(statistics.high - statistics.low, 2)
                base = bool((moved[standing] > _MIN_DISPLACEMENT).any())
                feet = (limbs & (moved > _MIN_DISPLACEMENT)).any(axis=1) & ~empty & standing.any()
                clear = is_motion(statistics.speed) & (expected > _MIN_PATH * _BLOCKS / blocks)
                joints = np.concatenate((clear, np.tile(moved > _MIN_PATH, 2)))
                stuck |= (statistics.unchanged > 0.0) & np.concatenate((joints, [base, base], feet))
        named = [
            (SensorFault.STUCK_POSITION, self._joint_topic, f"the position of joint {JOINTS}", slice(0, n)),
            (SensorFault.STUCK_VELOCITY, self._joint_topic, f"the velocity of joint {JOINTS}", slice(n, 2 * n)),
            (SensorFault.STUCK_EFFORT, self._joint_topic, f"the effort of joint {JOINTS}", slice(2 * n, 3 * n)),
            (SensorFault.STUCK_GYROSCOPE, self._imu, "the angular velocity of the IMU", slice(3 * n, 3 * n + 1)),
            (SensorFault.STUCK_ACCELEROMETER, self._imu, "the specific force of the IMU", slice(3 * n + 1, 3 * n + 2)),
        ]
        for row, foot in enumerate(self._feet, 3 * n + 2):
            what = f"the wrench of the foot sensor {foot.name!r}"
            named.append((SensorFault.STUCK_WRENCH, foot.wrench_topic, what, slice(row, row + 1)))
        for kind, topic, what, rows in named:
            hit = stuck[rows] if rows.stop <= 3 * n else None
            moves = "the robot moves" if hit is None else "the joint moves"
            cause = "it is stuck, saturated or not measured" if kind is SensorFault.STUCK_EFFORT else "it is stuck"
            text = f"{topic}: {what} has not changed for a second although {moves}: {cause}; check the driver"
            if stuck[rows].any() or not same[rows].any():
                yield Check(kind, topic, text if stuck[rows].any() else "", hit)


def _is_significant(value: FloatArray, sigma: FloatArray, before: FloatArray) -> BoolArray:
    """Whether identified errors are beyond their standard deviations, and near those of a second before."""
    return (np.abs(value) > _MIN_SIGMAS * sigma) & (np.abs(value - before) < _MAX_RELATIVE_CHANGE * np.abs(value))
