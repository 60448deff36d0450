"""Checks of the sensors against each other, at a low rate: rates, stamps, stuck readings, units, signs and frames.

    rates, stamps   counters and delays of the synchronizer
    stuck           a reading keeps its bits although the joints around it move
    IMU             mean specific force against gravity; its direction against the soles that stand on the ground and
                    against the foot forces (Newton's second law of the whole robot); angular velocity against the
                    standing legs
    foot sensors    direction of the force in the sole; sum of the forces against the weight; both against the motor
                    torques of the leg
    joint states    motor torque against the torque that gravity and foot force need; velocity against position

Each check ends in a finding: one sentence that begins with the topic, names the presumed cause and what to do.
A finding stays until its check has been right twice, so that it does not flicker with the steps of a walk.
Every check needs two witnesses, so that payload, slopes, a crane or a fallen robot blame no sensor.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from friction_estimator.config import Config
from friction_estimator.errors import choices
from friction_estimator.estimation.health import Health
from friction_estimator.estimation.sensor_evidence import LEAST_SPEED, LOADED, Evidence, EvidenceCollector
from friction_estimator.estimation.synchronizer import RESET_AFTER, Synchronizer
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import GRAVITY, BoolArray, Dynamics, FloatArray, SensorCalibration, SensorFrame

LOWEST_RATE = 100.0
"""Lowest useful rate of joint states and foot wrenches [Hz]. On the simulated walk friction errors (RMS) are 4 % of the
friction at 1 kHz, 10 % at 250 Hz, 25 % at 100 Hz, 50 % at 50 Hz, and as large as the friction at 25 Hz."""
LOWEST_IMU_RATE = 25.0
"""Lowest useful rate of the IMU [Hz]. Slower readings are too old during more than half of the time."""
_SLACK = 0.9
"""A rate is too low only below this fraction of the lowest useful one: drivers lose messages."""
_LATE = 0.01
"""Share of the readings that may come too late to be used."""

_FEW = 0.01
"""Share of joint samples that may contradict the others: encoders have glitches."""

_PERIOD = 0.05
"""Time between the frames that are checked [s]."""
_PERIOD_NS = round(1e9 * _PERIOD)
_BLOCK = 1.0
"""Time between two conclusions [s]; each uses the newest two to four blocks of this length."""
_RIGHT = 2
"""A finding stays until its check has been right this many times since it was wrong. Single conclusions may be right by
chance while the sensor is wrong: some legs of a walk show little."""
_LONGEST = 10.0
"""Frames farther apart than this are a jump of the clock and not a low rate [s]."""

_MOVED = 0.03
"""A joint that has gone so far has moved, whatever the noise of its sensors [rad or m]."""
_TRAVELLED = 0.05
"""Distance by velocity, or by position, during which the other one must change [rad or m]."""

_SMOOTH = 0.7
"""Velocities of a joint that moves have a larger correlation with those of the frame before: noise has none. Few of
them may have it by chance, so that a joint must go farther in a shorter time."""

_ENOUGH = 10
"""Checked frames from which means are made at least: half a second."""
_ALONG, _ACROSS = math.radians(30.0), math.radians(50.0)
"""Directions within the first angle agree: slopes and tilted feet are less steep. Beyond the second one they do not."""
_EQUAL = 1.4
"""Two forces or torques agree within this factor: payload, gains and friction change them by less."""
_SCALED = 2.0
"""Beyond this factor a torque or velocity has another unit or gear ratio."""
_SURE = 0.8
"""Correlation (without removing means) above which one quantity is a multiple of another."""
_LEAST_TORQUE, _LEAST_ERRORS = 2.0, 4.0
"""Root mean square of the torque that a joint needs, above which sign and unit of the measured one show [N m]; and in
standard deviations of the centres of mass: an error of two of them is half of that torque."""
_LEAST_PART = 0.3
"""The same for a fixed base, as a part of that of the joint that needs most: arms differ in size."""
_LEAST_SWAY = 0.1
"""Root mean square of horizontal accelerations from which the heading of the IMU shows [m/s^2]."""

_MOSTLY = 0.9
"""Fraction of a second for which a foot must be loaded, so that it stands."""
_BLOCKS = 4
"""Number of blocks that are kept."""

_FORCES, _FELT = slice(0, 3), slice(3, 6)
"""Rows of ``moments``: sum of the foot forces over the mass, and specific force."""

_DEVIATIONS = 6.0
"""Standard deviations beyond which an identified error is named."""
_DELAY = 6e-4
"""Delays below this are not named [s]: they are a part of the sample period of most robots."""
_GAIN, _SLIP = 0.05, 0.005
"""Errors of torque gains, and slips of encoders [rad], up to which nothing is named."""
_SETTLED = 0.2
"""An identified error is named once it changes by less than this part in a second."""
_PART_OF_INTERVAL = 0.15
"""Delays below this part of the time between two readings are not named: values between readings are interpolated."""
_TILTED = math.radians(0.6)
"""Mounting errors of the IMU below this are not named: links with wrong centres of mass look alike."""


class Kind(Enum):
    """What may be wrong with a sensor."""

    SILENCE = "silence"
    PUBLISHERS = "second publisher"
    RATE = "rate"
    LAG = "lag"
    LATE = "late readings"
    DELAY = "delay"
    TILT = "tilt"
    EFFORT_GAIN = "gain of effort"
    POSITION_OFFSET = "offset of position"
    STUCK_POSITION = "stuck position"
    STUCK_VELOCITY = "stuck velocity"
    STUCK_EFFORT = "stuck effort"
    STUCK_RATE = "stuck angular velocity"
    STUCK_FORCE = "stuck specific force"
    STUCK_WRENCH = "stuck wrench"
    VELOCITY_SIGN = "sign of velocity"
    VELOCITY_UNIT = "unit of velocity"
    FORCE_UNIT = "unit of specific force"
    IMU_DIRECTION = "direction of specific force"
    HEADING = "heading of the IMU"
    RATE_UNIT = "angular velocity"
    WRENCH_DIRECTION = "direction of wrench"
    WRENCH_UNIT = "unit of wrench"
    NO_WRENCH = "no wrench"
    EFFORT_SIGN = "sign of effort"
    EFFORT_UNIT = "unit of effort"


_TIMING = frozenset((Kind.SILENCE, Kind.PUBLISHERS, Kind.RATE, Kind.LAG, Kind.LATE))
"""Silent sensors, refused readings, wrong rates and stamps: no readings that are used are wrong."""
ACCOUNTED = frozenset((Kind.DELAY, Kind.TILT, Kind.EFFORT_GAIN, Kind.POSITION_OFFSET))
"""Errors that the estimate accounts for."""
_EFFORT = frozenset((Kind.STUCK_EFFORT, Kind.EFFORT_SIGN, Kind.EFFORT_UNIT))
"""Wrong torques: no check of another sensor depends on them alone."""

_LONG = frozenset((Kind.HEADING, Kind.RATE_UNIT, Kind.EFFORT_SIGN, Kind.EFFORT_UNIT))
"""Errors that need four blocks to be found with few false alarms; two show that they are over."""

JOINTS = "{joints}"
"""Stands in the text of a finding for the names of its joints."""
OUTCOME = "{outcome}"
"""Stands in the text of a finding for what the estimate makes of it."""


class Check(NamedTuple):
    """Result of a check.

    Attributes
    ----------
    kind, place : what was checked, and the topic
    text : finding; empty where the sensor is right
    joints : (n,) joints that the finding names; None: it names none
    """

    kind: Kind
    place: str
    text: str
    joints: BoolArray | None = None


@dataclass(slots=True)
class _Finding:
    """A check that has failed: how often it has been right since, its first text, and all joints since then (n,)."""

    right: int
    text: str
    joints: BoolArray | None


@dataclass(frozen=True, slots=True)
class _Second:
    """Counters between two conclusions.

    Attributes
    ----------
    frame : the newest one
    elapsed : time since the conclusion before [s]
    frames, restarts, contradicting : number of frames, of restarts of the filters, and of joint samples that were
        dropped because they contradict the others
    delays : (t, s) of the sensors other than the joints, see ``Synchronizer.delays`` [s]
    late : (s) their readings that came too late
    """

    frame: SensorFrame
    elapsed: float
    frames: int
    restarts: int
    contradicting: int
    delays: FloatArray
    late: list[int]


class SensorChecks:
    """Compares the sensors with each other and keeps what is wrong in ``Health.findings``.

    Parameters
    ----------
    config : topics and frames
    robot : weight, limbs and frame of the IMU
    health : whose counters give the rates, and whose findings, delays and events are written
    synchronizer : whose delays and late readings are checked
    calibration : errors of the sensors that the friction stage has found

    Attributes
    ----------
    due_ns : stamp from which on :meth:`add` has something to do [ns]
    readings_are_wrong : True while readings of a sensor are known to be wrong, apart from rates, stamps and errors that
        the estimate accounts for
    wrong_for : time for which they may have been wrong when that was found [s]
    """

    def __init__(
        self,
        config: Config,
        robot: RobotModel,
        health: Health,
        synchronizer: Synchronizer,
        calibration: Callable[[], SensorCalibration | None],
    ) -> None:
        self._calibration, self._calibration_before = calibration, calibration()
        self._config, self._robot, self._health, self._synchronizer = config, robot, health, synchronizer
        self._joints, self._imu, self._feet = config.output.joint_states_topic, config.imu.topic, config.feet
        self._floating = not config.robot.fixed_base
        self._sensors = [(self._imu, LOWEST_IMU_RATE)] if self._floating else []
        self._sensors += [(foot.wrench_topic, LOWEST_RATE) for foot in self._feet]
        flat = np.array([all(foot.held_axes) for foot in self._feet], dtype=bool)
        self._collector = EvidenceCollector(robot, flat)
        self._blocks: deque[Evidence] = deque(maxlen=_BLOCKS)
        self._held: dict[tuple[Kind, str], _Finding] = {}
        self._right_ns: dict[tuple[Kind, str], int] = {}
        self._coupled: BoolArray = np.eye(len(robot.joint_names), dtype=bool)
        self.readings_are_wrong, self.wrong_for = False, math.inf
        self.restart()

    def restart(self) -> None:
        """Drop all frames; findings stay until their check is right."""
        self.due_ns = self._stamp_ns = self._begin_ns = -round(2e9 * _LONGEST)  # long before any stamp
        self._frames = self._restarts = self._contradicting = 0
        self._late = [0] * len(self._sensors)
        self._delays: list[list[float]] = []
        self._collector.restart()
        self._blocks.clear()
        self._pending: Iterator[Iterator[Check]] | None = None

    def add(self, frame: SensorFrame, dynamics: Dynamics) -> None:
        """Use a frame that is due, or whose ``dt`` is zero: its readings every 50 ms, and one of the pending checks.

        One check in a frame: no frame is much later than the others.
        """
        self._conclude()
        elapsed = frame.stamp_ns - self._stamp_ns
        if not (0 <= elapsed < _PERIOD_NS and frame.dt):
            if not (0 < elapsed < 4 * _PERIOD_NS and frame.dt):
                self._conclude_all()
                self._collector.restart()
                self._blocks.clear()
            self._stamp_ns = frame.stamp_ns
            self._collect(frame, dynamics)
        self.due_ns = self._stamp_ns + _PERIOD_NS if self._pending is None else frame.stamp_ns

    def _collect(self, frame: SensorFrame, dynamics: Dynamics) -> None:
        """Add the readings of a frame to the evidence; begin the checks once a second."""
        self._collector.add(frame, dynamics)
        self._coupled = dynamics.mass_matrix[-self._coupled.shape[0] :, -self._coupled.shape[0] :] != 0.0
        self._delays.append(self._synchronizer.delays())
        since, health = 1e-9 * (frame.stamp_ns - self._begin_ns), self._health
        frames, restarts = health.frames - self._frames, health.restarts - self._restarts
        contradicting = health.contradicting - self._contradicting
        if 0.0 <= since < _LONGEST and (since < _BLOCK or frames <= 1):
            return
        if _BLOCK <= since < _LONGEST:
            self._conclude_all()
            late = [now - before for now, before in zip(self._synchronizer.late(), self._late, strict=True)]
            self._blocks.append(self._collector.block)
            counters = frames, restarts, contradicting
            self._pending = self._checks(_Second(frame, since, *counters, np.array(self._delays), late))
        self._begin_ns, self._frames, self._restarts = frame.stamp_ns, health.frames, health.restarts
        self._contradicting = health.contradicting
        self._late, self._delays = self._synchronizer.late(), []
        self._collector.begin()

    def _conclude(self) -> None:
        """Make the next pending check, and keep or drop its findings."""
        if self._pending is None:
            return
        checks, held = next(self._pending, None), self._held
        if checks is None:
            self._pending = None
            return
        for check in checks:
            self._keep(check)
        health, names = self._health, self._robot.joint_names
        health.findings = tuple(map(self._sentence, held.values()))
        health.sensors_wrong = any(kind not in ACCOUNTED for kind, _ in held)
        wrong = {key: finding for key, finding in held.items() if key[0] not in _TIMING | ACCOUNTED}
        self.readings_are_wrong = bool(wrong)
        health.doubts = {}
        for (_, place), finding in wrong.items():
            affected = self._affected(place, finding.joints)
            for name in (name for name, here in zip(names, affected.tolist(), strict=True) if here):
                health.doubts.setdefault(name, self._sentence(finding))

    def _keep(self, check: Check) -> None:
        """Begin, continue or end the finding of a check."""
        key, held = (check.kind, check.place), self._held
        finding = held.get(key)
        if not check.text:
            self._right_ns[key] = self._stamp_ns
            if finding is not None:
                finding.right += 1
                if finding.right == _RIGHT:
                    del held[key]
                    while len(self._blocks) > 1:  # what came before may show the error
                        self._blocks.popleft()
        elif finding is None:
            held[key] = finding = _Finding(0, check.text, check.joints)
            self._health.add_event("sensor", self._stamp_ns, self._sentence(finding))
            self._note_age(key)
        else:
            finding.right = 0
            if finding.joints is not None and check.joints is not None:
                finding.joints = finding.joints | check.joints

    def _sentence(self, finding: _Finding) -> str:
        """Text of a finding with the names of its joints, and whether the estimate accounts for it now."""
        excess = self._health.innovation_excess
        doubt = f"The innovations are still {excess:.1f} times too large, and sigma with them"
        text = finding.text.replace(OUTCOME, doubt if excess > 1.0 else "The estimate accounts for it")
        return text if finding.joints is None else text.replace(JOINTS, self._listed(finding.joints))

    def _affected(self, place: str, joints: BoolArray | None) -> BoolArray:
        """Joints (n,) whose friction depends on a sensor: those that the named ones move, of the foot's leg, or all."""
        if joints is not None:
            return np.asarray(self._coupled[joints].any(axis=0))
        limbs = [limb for foot, limb in zip(self._feet, self._robot.limb, strict=True) if foot.wrench_topic == place]
        return np.asarray(limbs[0]) if limbs else np.ones(len(self._robot.joint_names), dtype=bool)

    def _note_age(self, key: tuple[Kind, str]) -> None:
        """Note for how long the readings may have been wrong: the evidence of the last right conclusion may hide it."""
        if not self.readings_are_wrong and key[0] not in _TIMING | ACCOUNTED:
            hidden = _BLOCK * (3.0 if key[0] in _LONG else 1.0)
            since = 1e-9 * (self._stamp_ns - self._right_ns.get(key, self._stamp_ns + 1))
            self.wrong_for = hidden + since if since >= 0.0 else math.inf  # never right, or before the clock jumped

    def _conclude_all(self) -> None:
        while self._pending is not None:
            self._conclude()

    def _checks(self, second: _Second) -> Iterator[Iterator[Check]]:
        """All checks; those that need another sensor only while nothing is found about that one."""
        yield self._rates(second)
        yield self._publishers(second)
        yield self._lags(second)
        yield self._calibrated(second)
        yield self._stuck()
        two = self._evidence(2)
        yield self._speeds(two)
        if self._wrong(self._joints):
            return
        if not self._floating:
            yield self._torques(self._evidence(4))
            return
        yield self._gravity(two)
        if (Kind.FORCE_UNIT, self._imu) not in self._held:
            yield self._directions(two)
        four = two if any(kind in _LONG for kind, _ in self._held) else self._evidence(4)
        yield self._turning(four)
        if self._wrong(self._imu, but=Kind.HEADING):
            return
        yield self._feet_and_weight(two)
        if any(self._wrong(foot.wrench_topic) for foot in self._feet):
            return
        if (Kind.POSITION_OFFSET, self._joints) not in self._held:  # a leg in a wrong posture turns the foot forces
            yield self._heading(four)
        if not self._wrong(self._imu):
            yield self._torques(four)

    def _wrong(self, topic: str, but: Kind | None = None) -> bool:
        """Whether a reading of the topic is known to be wrong; its rate, torques and one kind do not matter here."""
        others = _TIMING | ACCOUNTED | _EFFORT | {but}
        return any(kind not in others and place == topic for kind, place in self._held)

    def _evidence(self, blocks: int) -> Evidence:
        """What the newest blocks show."""
        return Evidence(self._robot).include(list(self._blocks)[-blocks:])

    def _rates(self, second: _Second) -> Iterator[Check]:
        """Topics that deliver less often than identification needs."""
        frame, frames, restarts = second.frame, second.frames, second.restarts
        if not self._config.has_friction or 0 < restarts < frames:  # a pause is no low rate
            return
        hertz = frames / second.elapsed
        rates = [(self._joints, hertz, LOWEST_RATE)]
        readings = frame.readings.tolist()[-len(self._sensors) :] if self._sensors else []
        for (topic, lowest), used, part in zip(self._sensors, self._fresh(frame), readings, strict=True):
            if not restarts:
                rates.append((topic, part * hertz if used and part < _SLACK else math.inf, lowest))
        for topic, hz, lowest in rates:
            low = f"{topic}: {hz:.0f} Hz is too low to identify friction; publish at {lowest:.0f} Hz or more"
            yield Check(Kind.RATE, topic, low if hz < _SLACK * lowest else "")

    def _fresh(self, frame: SensorFrame) -> list[bool]:
        """Which of the sensors other than the joints are fresh."""
        return [frame.imu_fresh, *frame.wrench_fresh.tolist()][-len(self._sensors) :] if self._sensors else []

    def _publishers(self, second: _Second) -> Iterator[Check]:
        """Joint states of a second node, which contradict those that are used."""
        dropped = second.contradicting
        text = (
            f"{self._joints}: {dropped} of {dropped + second.frames} joint states contradict the others and are not "
            "used: a second node publishes joint states; end it, or give its topic another name"
        )
        yield Check(Kind.PUBLISHERS, self._joints, text if dropped > _FEW * second.frames else "")

    def _lags(self, second: _Second) -> Iterator[Check]:
        """Sensors that are silent, and those whose stamps differ too much from those of the joint states to be used."""
        wait, fresh = self._config.synchronizer, self._fresh(second.frame)
        for sensor, (topic, _) in enumerate(self._sensors):
            delay = second.delays[:, sensor]
            behind, ahead = float(delay.min()), -float(delay.max())
            what, remedy = f"{topic}: its stamps are", "correct the stamps, or synchronise the clocks of the computers"
            text = silence = ""
            share = second.late[sensor] / second.frames
            if delay[-1] - delay[0] < 0.5 * second.elapsed:
                self._health.delays[topic] = behind
                if behind > wait.max_wait + (second.elapsed / second.frames if fresh[sensor] else 0.0):
                    remedy += f", or set synchronizer.max_wait above {behind:.3f}" if behind < 1.0 else ""
                    text = f"{what} {1e3 * behind:.1f} ms behind those of {self._joints}, too late to be used: {remedy}"
                elif ahead > RESET_AFTER:
                    text = f"{what} {1e3 * ahead:.1f} ms ahead of those of {self._joints}, so it is not used: {remedy}"
            elif share > _LATE:
                remedy = "so its readings are not used: set them in the driver"
                text, share = f"{topic}: its stamps do not advance although readings arrive, {remedy}", 0.0
            elif not fresh[sensor]:  # nothing arrives, or never did
                silence = f"{topic}: no usable reading arrives: check that the driver runs and publishes on this topic"
            yield Check(Kind.SILENCE, topic, silence)
            yield Check(Kind.LAG, topic, text)
            text = f"{topic}: {share:.0%} of the readings came too late to be used: raise synchronizer.max_wait"
            yield Check(Kind.LATE, topic, text if share > _LATE else "")

    def _calibrated(self, second: _Second) -> Iterator[Check]:
        """Delays and an IMU mounting that the friction stage has found and that no longer change."""
        found, before = self._calibration(), self._calibration_before
        self._calibration_before = found
        if found is None or before is None:
            return
        named = False
        for check in self._surest_joint(found, before):
            named = named or bool(check.text)
            yield check
        right = not (named or self.readings_are_wrong)  # what is wrong with a joint explains other errors, too
        (delay, sigma), past = found.wrench_delay, before.wrench_delay[0]
        readings = np.maximum(second.frame.readings[1:] * second.frames, 1.0)
        least = np.maximum(_DELAY, _PART_OF_INTERVAL * second.elapsed / readings)
        sure = right & (np.abs(delay) > least) & _is_sure(delay, sigma, past)
        torques = bool(sure.size and sure.all() and (delay < 0.0).all())
        age = f"{-1e3 * delay.mean():.1f} ms older than the foot wrenches at the same stamp" if torques else ""
        text = f"{self._joints}: the motor torques are {age}. {OUTCOME}; correct the stamps in the driver"
        yield Check(Kind.DELAY, self._joints, text if torques else "")
        for foot, config in enumerate(self._feet):
            ms = 1e3 * float(delay[foot])
            age = f"{abs(ms):.1f} ms {'older' if ms > 0.0 else 'newer'} than the motor torques at the same stamp"
            remedy = f"correct the stamps, or set feet.{config.name}.delay"
            text = f"{config.wrench_topic}: the wrenches are {age}. {OUTCOME}; {remedy}"
            yield Check(Kind.DELAY, config.wrench_topic, text if sure[foot] and not torques else "")
        bias, sigma, past = (
            np.hypot(*row[:2]) / GRAVITY for row in (*found.accelerometer_bias, before.accelerometer_bias[0])
        )
        tilt = float(bias)
        tilted = right and tilt > _TILTED and bool(_is_sure(bias, sigma, past))
        angle = f"{math.degrees(tilt):.1f} degrees against its frame {self._config.imu.frame!r} in the URDF"
        error = f"the IMU is tilted by {angle}, or its accelerometer has a bias of {GRAVITY * tilt:.2g} m/s^2"
        yield Check(
            Kind.TILT, self._imu, f"{self._imu}: {error}. {OUTCOME}; correct the frame in the URDF" if tilted else ""
        )

    def _surest_joint(self, found: SensorCalibration, before: SensorCalibration) -> Iterator[Check]:
        """The error of a torque or position that the data show best: others follow from it."""
        value, sigma = np.stack((found.effort_gain, found.position_offset), axis=1)
        past = np.stack((before.effort_gain[0], before.position_offset[0]))
        sure = _is_sure(value, sigma, past) & (np.abs(value) > [[_GAIN], [_SLIP]]) & (not self.readings_are_wrong)
        certainty = np.divide(np.abs(value), sigma, out=np.zeros_like(value), where=sure)
        best, joint = divmod(int(certainty.argmax()), certainty.shape[1])
        gain, slip = 1.0 / (1.0 - value[0, joint]), value[1, joint]
        for row, kind, text in (
            (
                0,
                Kind.EFFORT_GAIN,
                f"effort of joint {JOINTS} is {gain:.2f} times its torque. {OUTCOME}; correct the gain",
            ),
            (
                1,
                Kind.POSITION_OFFSET,
                f"encoder of joint {JOINTS} has slipped by {slip:.2g} rad. {OUTCOME}; set its zero",
            ),
        ):
            text = f"{self._joints}: the {text}" if row == best and sure[row, joint] else ""
            yield Check(kind, self._joints, text, np.arange(certainty.shape[1]) == joint)

    def _stuck(self) -> Iterator[Check]:
        """Readings that keep all their bits for one second, or four, although the joints around them move."""
        newest, limbs, n = self._blocks[-1], self._robot.limb, len(self._robot.joint_names)
        same = newest.unchanged > 0.0
        stuck = np.zeros_like(same)
        if same.any():
            standing = limbs[newest.loaded > _MOSTLY * newest.imu[0]].any(axis=0)  # joints between base and ground
            empty = ~newest.first[3 * n + 6 :].reshape(-1, 6).any(axis=1)
            for blocks in (1, _BLOCKS):
                evidence = self._evidence(blocks)
                moved, expected = np.split(evidence.high - evidence.low, 2)
                base = bool((moved[standing] > _MOVED).any())
                feet = (limbs & (moved > _MOVED)).any(axis=1) & ~empty & standing.any()
                clear = _is_motion(evidence.speed) & (expected > _TRAVELLED * _BLOCKS / blocks)
                joints = np.concatenate((clear, np.tile(moved > _TRAVELLED, 2)))
                stuck |= (evidence.unchanged > 0.0) & np.concatenate((joints, [base, base], feet))
        rest = "has not changed for a second although the robot moves: it is stuck; check the driver"
        for kind, name, first in (
            (Kind.STUCK_POSITION, "position", 0),
            (Kind.STUCK_VELOCITY, "velocity", n),
            (Kind.STUCK_EFFORT, "effort", 2 * n),
        ):
            where = stuck[first : first + n]
            if where.any():
                cause = "it is stuck, saturated or not measured" if kind is Kind.STUCK_EFFORT else "it is stuck"
                what = f"the {name} of joint {JOINTS} has not changed for a second"
                text = f"{self._joints}: {what} although the joint moves: {cause}; check the driver"
                yield Check(kind, self._joints, text, where)
            elif not same[first : first + n].any():
                yield Check(kind, self._joints, "")
        inertial = (Kind.STUCK_RATE, "angular velocity"), (Kind.STUCK_FORCE, "specific force")
        for row, (kind, name) in enumerate(inertial, 3 * n):
            if stuck[row] or not same[row]:
                yield Check(kind, self._imu, f"{self._imu}: the {name} of the IMU {rest}" if stuck[row] else "")
        for row, foot in enumerate(self._feet, 3 * n + 2):
            if stuck[row] or not same[row]:
                text = f"{foot.wrench_topic}: the wrench of the foot sensor {foot.name!r} {rest}"
                yield Check(Kind.STUCK_WRENCH, foot.wrench_topic, text if stuck[row] else "")

    def _listed(self, where: BoolArray) -> str:
        return choices(name for name, here in zip(self._robot.joint_names, where.tolist(), strict=True) if here)

    def _speeds(self, sums: Evidence) -> Iterator[Check]:
        """Joints whose velocity has another sign or unit than the change of their position."""
        product, expected, step, count = sums.speed[:4]
        moves = (count >= _ENOUGH) & (np.maximum(expected, step) > count * (LEAST_SPEED * _PERIOD) ** 2)
        correlation, slope = _compare(product, expected, step)
        flipped = moves & (correlation < -_SURE)
        slope /= np.where(correlation > _SURE, correlation, 1.0)  # noise of the velocities makes it smaller
        scaled = moves & (correlation > _SURE) & ((slope > _SCALED) | (slope < 1.0 / _SCALED))
        if not moves.any():
            return
        what = f"{self._joints}: the velocity of joint {JOINTS} has the opposite sign of the change of"
        text = f"{what} its position: correct one of them in the driver"
        yield Check(Kind.VELOCITY_SIGN, self._joints, text if flipped.any() else "", flipped)
        what = f"{self._joints}: the position of joint {JOINTS} changes {_middle(slope[scaled])} times as"
        text = f"{what} fast as its velocity: publish both in radians (57 or 0.017: one of them is in degrees)"
        yield Check(Kind.VELOCITY_UNIT, self._joints, text if scaled.any() else "", scaled)

    def _gravity(self, sums: Evidence) -> Iterator[Check]:
        """Unit of the specific force: its mean is gravity, whatever the robot does."""
        count = float(sums.imu[0])
        if count < _ENOUGH:
            return
        size, mean = float(sums.imu[1]) / count, float(np.linalg.norm(sums.force)) / count
        remedy = ""
        if 1.0 / _EQUAL < size < _EQUAL:
            remedy = "is it in g? Publish it in m/s^2"
        elif size < GRAVITY / _SCALED:
            remedy = "is gravity removed? Publish what the accelerometer reads, in m/s^2"
        elif mean > GRAVITY * _SCALED:
            remedy = "publish it in m/s^2"
        text = f"{self._imu}: the mean specific force is {size:.3g} m/s^2, not {GRAVITY:.2f} m/s^2: {remedy}"
        yield Check(Kind.FORCE_UNIT, self._imu, text if remedy else "")

    def _directions(self, sums: Evidence) -> Iterator[Check]:
        """Feet and IMU whose forces have another direction than the soles that stand on the ground."""
        tilts = []
        for foot, config in enumerate(self._feet):
            if sums.loaded[foot] < _ENOUGH or not all(config.held_axes):
                continue
            load, gravity = _tilt(sums.load[foot]), _tilt(sums.gravity[foot])
            what, text = f"{config.wrench_topic}: the force of the foot sensor {config.name!r}", ""
            if load > math.pi - _ALONG:
                text = f"{what} points down: set feet.{config.name}.flip"
            elif load > _ACROSS:
                text = (
                    f"{what} is turned by {math.degrees(load):.0f} degrees against the sole: publish it in the axes of "
                    f"feet.{config.name}.frame"
                )
            if gravity < _ALONG and (text or load < _ALONG):
                yield Check(Kind.WRENCH_DIRECTION, config.wrench_topic, text)
            if load < _ALONG:
                tilts.append(gravity)
        tilt = min(tilts, default=_ALONG)
        if not _ALONG <= tilt <= _ACROSS:
            text = (
                f"{self._imu}: the specific force is turned by {math.degrees(tilt):.0f} degrees against the soles on "
                "the ground: set imu.frame to a frame with the axes of the IMU"
            )
            if tilt > math.pi - _ALONG:
                text = f"{self._imu}: the specific force at rest points down and should point up: change its sign"
            yield Check(Kind.IMU_DIRECTION, self._imu, text if tilt > _ACROSS else "")

    def _turning(self, sums: Evidence) -> Iterator[Check]:
        """Sign and unit of the angular velocity, against that of the base by the standing legs."""
        product, legs, rate, count = sums.turning
        correlation, slope = (float(value) for value in _compare(product, legs, rate))
        if count < _ENOUGH or abs(correlation) < _SURE:
            return
        text, what = "", f"{self._imu}: the angular velocity is"
        if correlation < 0.0:
            text = f"{what} opposite to that of the standing legs: change its sign, or set imu.frame"
        elif slope > _SCALED:
            unit = "is it in degrees per second? Publish it in" if 40.0 < slope < 80.0 else "publish it in"
            text = f"{what} {slope:.2g} times that of the standing legs: {unit} rad/s"
        yield Check(Kind.RATE_UNIT, self._imu, text)

    def _feet_and_weight(self, sums: Evidence) -> Iterator[Check]:
        """Unit of foot sensors: both the weight and the torques of the legs must speak against it."""
        correlation, slope = _compare(*sums.limb.T)
        sure = correlation > _SURE
        *idle, idle_count = sums.idle.T
        idle_correlation, carried = _compare(*idle)
        weight = float(np.trace(sums.moments[_FELT, _FELT]))
        if sums.newton[0] < _ENOUGH:
            return
        share = float(sums.share.sum()) / weight
        corrected = float((sums.share * np.where(sure, slope, 1.0)).sum()) / weight
        explains = abs(_logarithm(corrected)) < min(0.5 * abs(_logarithm(share)), math.log(_EQUAL))
        for foot, config in enumerate(self._feet):
            if {(kind, config.wrench_topic) for kind in (Kind.STUCK_WRENCH, Kind.WRENCH_DIRECTION)} & self._held.keys():
                continue
            what = f"{config.wrench_topic}: the foot sensor {config.name!r} reads"
            scaled = sure[foot] and not 1.0 / _EQUAL < slope[foot] < _EQUAL
            if sure[foot] and (explains or not scaled):
                remedy = (
                    "is it in kN? Publish it in N" if 500.0 < slope[foot] < 2000.0 else "check unit and calibration"
                )
                factor = f"{1.0 / slope[foot]:.2g} times the force that weight and leg torques show"
                yield Check(Kind.WRENCH_UNIT, config.wrench_topic, f"{what} {factor}: {remedy}" if scaled else "")
            empty = idle_correlation[foot] > _SURE and carried[foot] > 1.0 / _SCALED and not sure[foot]
            if sums.loaded[foot] >= _ENOUGH or (idle_count[foot] >= _ENOUGH and empty):
                text = f"{what} nothing while the torques of its leg carry the robot: check cable, unit and calibration"
                yield Check(Kind.NO_WRENCH, config.wrench_topic, text if empty else "")

    def _heading(self, sums: Evidence) -> Iterator[Check]:
        """Heading of the IMU on the trunk: horizontal accelerations against the foot forces (Newton's second law)."""
        count = float(sums.newton[0])
        if count < 2 * _ENOUGH:
            return
        mean = sums.newton[1:] / count
        covariance = sums.moments / count - np.outer(mean, mean)
        up = mean[3:] / np.linalg.norm(mean[3:])
        forces, felt, both = covariance[_FORCES, _FORCES], covariance[_FELT, _FELT], covariance[_FORCES, _FELT]
        size = math.sqrt(_level(forces, up) * _level(felt, up))
        along, axis = _level(both, up), (both[2, 1] - both[1, 2], both[0, 2] - both[2, 0], both[1, 0] - both[0, 1])
        across = float(up @ axis)
        angle = math.atan2(across, along)
        if size < _LEAST_SWAY**2 or math.hypot(along, across) < _SURE * size or _ALONG < abs(angle) < _ACROSS:
            return
        text = (
            f"{self._imu}: horizontal accelerations are turned by {-math.degrees(angle):.0f} degrees about the "
            "vertical against the foot forces: set imu.frame, or the frames of the feet, to the axes of the sensors"
        )
        yield Check(Kind.HEADING, self._imu, text if abs(angle) > _ACROSS else "")

    def _torques(self, sums: Evidence) -> Iterator[Check]:
        """Sign and unit of motor torques, against what gravity and foot forces need in moving joints.

        With a floating base these are the joints of legs that stand.
        """
        product, needed, measured, count = sums.torque
        correlation, slope = _compare(product, needed, measured)
        mean = np.divide(needed, count, out=np.zeros_like(needed), where=count >= _ENOUGH)
        if self._floating:
            stands = sums.share > LOADED * np.trace(sums.moments[_FELT, _FELT])
            least = max(_LEAST_TORQUE, _LEAST_ERRORS * self._config.kalman.link_com_std * self._robot.weight)
            shown = (mean > least**2) & self._robot.limb[stands].any(axis=0)
        else:
            shown = mean > (_LEAST_PART**2) * mean.max(initial=0.0)
        flipped = shown & (correlation < -_SURE)
        scaled = shown & (correlation > _SURE) & ((slope > _SCALED) | (slope < 1.0 / _SCALED))
        if shown.any():
            what, needs = f"{self._joints}: the effort of joint", "the torque that gravity and foot forces need"
            text = f"{what} {JOINTS} has the opposite sign of {needs}: change its sign in the driver"
            yield Check(Kind.EFFORT_SIGN, self._joints, text if flipped.any() else "", flipped)
            text = (
                f"{what} {JOINTS} is {_middle(slope[scaled])} times {needs}: publish joint torques in "
                "N m (check unit, gear ratio and torque constant)"
            )
            yield Check(Kind.EFFORT_UNIT, self._joints, text if scaled.any() else "", scaled)


def _is_sure(value: FloatArray, sigma: FloatArray, before: FloatArray) -> BoolArray:
    """Whether identified errors are beyond their standard deviations, and near those of a second before."""
    return (np.abs(value) > _DEVIATIONS * sigma) & (np.abs(value - before) < _SETTLED * np.abs(value))


def _tilt(vector: FloatArray) -> float:
    """Angle to the z axis [rad]."""
    return math.atan2(math.hypot(vector[0], vector[1]), vector[2])


def _level(product: FloatArray, up: FloatArray) -> float:
    """Trace of the horizontal part of a (3, 3) product, not below zero for a covariance."""
    return float(np.trace(product) - up @ product @ up)


def _logarithm(ratio: float) -> float:
    return math.log(ratio) if ratio > 0.0 else -math.inf


def _middle(values: FloatArray) -> str:
    return f"{float(np.median(values)):.2g}" if values.size else ""


def _is_motion(sums: FloatArray) -> BoolArray:
    """True (n,) where velocities are those of a motion, and neither noise nor an offset: sums (6, n) of ``speed``.

    Drivers publish steps of the velocity, and often none of them is zero.
    """
    _, square, _, count, total, lagged = sums
    highest = LEAST_SPEED * _PERIOD
    offset = np.clip(total / np.maximum(count, 1.0), -highest, highest)
    removed = offset * (2.0 * total - count * offset)
    return np.asarray(lagged - removed > _SMOOTH * (2.0 * square - lagged - removed))


def _compare(product: FloatArray, reference: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Correlation of two quantities, and the second as a multiple of the first, from their sums of products.

    Parameters
    ----------
    product, reference, other : sums of the product, of the first quantity squared, of the second one squared
    """
    size = np.sqrt(reference * other)
    return (
        np.divide(product, size, out=np.zeros_like(size), where=size > 0.0),
        np.divide(product, reference, out=np.ones_like(size), where=reference > 0.0),
    )
