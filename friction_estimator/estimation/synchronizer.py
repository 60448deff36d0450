"""Raw samples in, sensor frames out, on the clock of the joint states and by header stamp alone.

A joint sample waits until every other sensor has delivered something at least as new, and, where one seems to be
missing before it, for that one too. It waits no longer than until joint samples have come that are newer by the period
of the slowest sensor and ``max_wait``. Where positions and efforts come in two messages of one stamp, the efforts
complete the sample. So the frames do not depend on the order in which the sensors' messages arrive, and replay equals
live. (Within one topic of another sensor, messages that overtake each other are sorted as far as they have come.)
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.config import SynchronizerConfig
from friction_estimator.estimation.health import Health
from friction_estimator.estimation.sensor_tracks import LONGEST_QUEUE, NEVER, SensorTracks, follow_period
from friction_estimator.types import FloatArray, ImuSample, JointSample, SensorFrame, WrenchSample

_NS = 1_000_000_000
_STALE_AFTER_NS = _NS // 10
"""A sensor whose newest message is older than this is not used [ns]."""
RESET_AFTER = 0.5
"""A gap or a backward jump of the joint-state stamps by more than this restarts the filters [s]."""
_RESET_AFTER_NS = round(RESET_AFTER * _NS)
_COMPLETES_FOR = _NS
"""Time since the last second message of a stamp, for which joint states without efforts wait for another one [ns]."""
_GAP = 1.8
"""Joint samples farther apart than this many usual periods have something missing between them."""
_STEPS_OF_ENCODER = 3.0
"""A joint whose reading has changed by more than this many steps of its encoder changes it in the next sample, too."""
_SAME_STEP = 1e-9
"""Steps that differ by less are equal [rad or m]. The resolution is the smallest step or difference of steps so far."""
_LONGEST_REPETITION = 5
"""Repetitions in a row that are left out at most: joints may stop, and nobody shall wait long for an estimate."""


class Synchronizer:
    """Turns samples of ``k`` feet, one IMU and the joints into :class:`SensorFrame` objects.

    Parameters
    ----------
    config : waiting time
    foot_count : k
    use_imu : False for a fixed base, whose frames then always count as fresh
    health : counters to update
    sensor_delays : (1 + k,) age of the readings of IMU and feet at the time of their stamps [s]; empty: none
    """

    def __init__(
        self,
        config: SynchronizerConfig,
        foot_count: int,
        use_imu: bool,
        health: Health,
        sensor_delays: Sequence[float] = (),
    ) -> None:
        self._sensor_delays = [round(delay * _NS) for delay in sensor_delays] or [0] * (1 + foot_count)
        self._max_wait = int(config.max_wait * _NS)
        self._use_imu = use_imu
        self._health = health
        self._foot_count = foot_count
        self.reset()

    def reset(self) -> None:
        """Forget all samples, as at the start."""
        self._joints: deque[JointSample] = deque()
        waits = self._max_wait, _STALE_AFTER_NS, _RESET_AFTER_NS
        self._tracks = SensorTracks(1 + self._foot_count, 0 if self._use_imu else 1, *waits)
        self._imu_reading = np.zeros(6)
        self._emitted_ns: int | None = None
        self._period = 0.0
        self._repeated = RepeatedFrames()
        self._jumped: JointSample | None = None
        self._completed_ns, self._without_effort = -_COMPLETES_FOR, False

    def add_joints(self, sample: JointSample) -> list[SensorFrame]:
        """Add a joint sample; return the frames that became complete, oldest first."""
        for one in self._confirmed(sample):
            if self._accept_joint_stamp(one):
                self._insert_joints(one)
        return self._complete_frames()

    def add_imu(self, sample: ImuSample) -> list[SensorFrame]:
        """Add an IMU sample; return the frames that became complete."""
        if not self._use_imu:
            return []
        reading = self._imu_reading
        reading[:3], reading[3:] = sample.angular_velocity, sample.specific_force
        return self._add(0, sample.stamp_ns, reading)

    def add_wrench(self, sample: WrenchSample) -> list[SensorFrame]:
        """Add a foot wrench; return the frames that became complete."""
        return self._add(1 + sample.foot, sample.stamp_ns, sample.wrench)

    @property
    def is_waiting(self) -> bool:
        """True while a joint sample waits for a reading of another sensor."""
        return bool(self._joints)

    def flush(self) -> list[SensorFrame]:
        """Emit all joint samples that still wait: the end of a recording."""
        frames: list[SensorFrame] = []
        if self._jumped is not None and self._accept_joint_stamp(self._jumped):
            self._insert_joints(self._jumped)
        self._jumped = None
        while self._joints:
            self._emit(self._joints.popleft(), frames)
        return frames

    def delays(self) -> list[float]:
        """Stamp of the newest joint sample minus that of the newest reading of each other sensor [s].

        First that of the IMU, unless the base is fixed, then those of the feet; NaN before the first reading.
        """
        newest = self._joints[-1].stamp_ns if self._joints else self._emitted_ns
        if newest is None:
            return [math.nan] * len(self._tracks.late())
        return [delay / _NS for delay in self._tracks.delays(newest)]

    def late(self) -> list[int]:
        """Number of readings of each other sensor that came too late to be used, in the order of :meth:`delays`."""
        return self._tracks.late()

    def _confirmed(self, sample: JointSample) -> list[JointSample]:
        """The sample, and the one before it if its stamp had jumped and this one confirms that.

        A jump of the clock counts with its second sample: single old messages restart nothing.
        """
        newest = self._joints[-1].stamp_ns if self._joints else self._emitted_ns
        jumped, self._jumped = self._jumped, None
        far = newest is not None and abs(sample.stamp_ns - newest) > _RESET_AFTER_NS
        if jumped is None:
            if not far:
                return [sample]
            self._jumped = sample
            return []
        if newest is None or abs(sample.stamp_ns - jumped.stamp_ns) <= abs(sample.stamp_ns - newest):
            return [jumped, sample]
        self._health.stray += 1
        distance = abs(jumped.stamp_ns - newest) / _NS
        text = f"a single joint state is {distance:.3f} s from the others: dropped; check the stamps of the driver"
        self._health.add_lasting_event("stray_joint_state", jumped.stamp_ns, text)
        return self._confirmed(sample) if far else [sample]

    def _accept_joint_stamp(self, sample: JointSample) -> bool:
        stamp = sample.stamp_ns
        newest = self._joints[-1].stamp_ns if self._joints else self._emitted_ns
        if newest is None or stamp > newest:
            return True
        if stamp < newest - _RESET_AFTER_NS:
            self._jump_back(newest, stamp)
            return True
        for place, waiting in enumerate(self._joints):
            if waiting.stamp_ns == stamp and math.isnan(waiting.effort[0]) and not math.isnan(sample.effort[0]):
                self._joints[place], self._completed_ns = sample, stamp
                return False
        if any(waiting.stamp_ns == stamp for waiting in self._joints) or stamp == self._emitted_ns:
            if stamp == self._emitted_ns and self._without_effort and not math.isnan(sample.effort[0]):
                self._completed_ns = stamp
            self._health.repeated += 1
            self._health.add_lasting_event(
                "repeated_stamp", stamp, "joint-state stamps do not advance: samples with a repeated stamp are dropped"
            )
            return False
        if self._emitted_ns is not None and stamp < self._emitted_ns:
            self._health.late += 1
            late = (self._emitted_ns - stamp) / _NS
            self._health.add_lasting_event(
                "late_joint_state", stamp, f"a joint state came {late:.3f} s late, after a newer one was used: dropped"
            )
            return False
        return True

    def _jump_back(self, newest: int, stamp: int) -> None:
        self._health.time_jumps += 1
        jump = (newest - stamp) / _NS
        self._health.add_restart("time_jump", stamp, f"time jumped back by {jump:.3f} s")
        self._joints.clear()
        self._emitted_ns = None
        self._tracks.drop_newer(stamp + _RESET_AFTER_NS)

    def _insert_joints(self, sample: JointSample) -> None:
        self._joints.append(sample)
        if len(self._joints) > 1 and self._joints[-2].stamp_ns > sample.stamp_ns:
            self._joints = deque(sorted(self._joints, key=lambda item: item.stamp_ns))

    def _add(self, sensor: int, stamp: int, value: FloatArray) -> list[SensorFrame]:
        used = NEVER if self._emitted_ns is None else self._emitted_ns
        self._tracks.insert(sensor, stamp - self._sensor_delays[sensor], value, used)
        return self._complete_frames() if self._joints else []

    def _complete_frames(self) -> list[SensorFrame]:
        frames: list[SensorFrame] = []
        while self._joints and self._is_complete(self._joints[0].stamp_ns):
            self._emit(self._joints.popleft(), frames)
        return frames

    def _is_complete(self, stamp: int) -> bool:
        if len(self._joints) == 1 and math.isnan(self._joints[0].effort[0]):
            had_efforts = self._emitted_ns is not None and not self._without_effort
            if had_efforts or abs(stamp - self._completed_ns) < _COMPLETES_FOR:
                return False  # a second message with this stamp has the efforts
        if len(self._joints) > LONGEST_QUEUE:
            return True
        step, newest = 0 if self._emitted_ns is None else stamp - self._emitted_ns, self._joints[-1].stamp_ns
        overdue = newest >= stamp + self._max_wait
        if 0.0 < _GAP * self._period < step <= _RESET_AFTER_NS and not overdue:
            return False  # the sample between is lost or late: give it the time to come
        if self._tracks.complete(stamp):
            return True
        return overdue and newest >= stamp + self._max_wait + min(self._tracks.period, float(_STALE_AFTER_NS))

    def _emit(self, joints: JointSample, frames: list[SensorFrame]) -> None:
        """Append the frame of a joint sample, unless that only repeats the one before."""
        stamp, tracks = joints.stamp_ns, self._tracks
        values, new_readings = tracks.read(stamp)
        elapsed = self._time_step(stamp)
        self._emitted_ns, self._without_effort = stamp, math.isnan(joints.effort[0])
        dt = self._repeated.time_step(joints.position, elapsed)
        if dt is None:
            self._health.repeated += 1
            self._health.add_lasting_event(
                "repeated_positions",
                stamp,
                "a joint state repeats the positions of the one before under a new stamp, as if the driver had missed "
                "a cycle of its bus: dropped",
            )
            return
        self._health.frames += 1
        imu, fresh = values[0], tracks.fresh
        frames.append(
            SensorFrame(
                stamp_ns=stamp,
                dt=dt,
                position=joints.position,
                velocity=np.full_like(joints.position, np.nan) if joints.velocity is None else joints.velocity,
                effort=joints.effort,
                angular_velocity=imu[:3],
                specific_force=imu[3:],
                wrenches=values[1:],
                imu_fresh=bool(fresh[0]),
                wrench_fresh=fresh[1:],
                readings=tracks.readings,
                new_readings=new_readings,
            )
        )

    def _time_step(self, stamp: int) -> float:
        if self._emitted_ns is None:
            return 0.0
        step = stamp - self._emitted_ns
        if 0 < step <= _RESET_AFTER_NS:
            self._period = follow_period(self._period, step)
        if step > _RESET_AFTER_NS:
            self._health.gaps += 1
            self._health.add_restart("gap", stamp, f"no joint states for {step / _NS:.3f} s")
            return 0.0
        return step / _NS


@kernel("V V M")
def note_changes(position: FloatArray, before: FloatArray, steps: FloatArray) -> bool:
    """Follow the steps of the joints' readings, in place; whether no reading changes although a joint moves.

    Parameters
    ----------
    position, before : (n,) of this sample and of the one before
    steps : (2, n) resolution of each joint's readings, and its newest step while any joint changes
    """
    changed, moves = False, False
    for joint in range(position.size):
        changed = changed or position[joint] != before[joint]
        moves = moves or abs(steps[1, joint]) > _STEPS_OF_ENCODER * steps[0, joint]
    if changed:
        for joint in range(position.size):
            step = position[joint] - before[joint]
            if abs(step) > _SAME_STEP:
                steps[0, joint] = min(steps[0, joint], abs(step))
            if abs(step - steps[1, joint]) > _SAME_STEP:
                steps[0, joint] = min(steps[0, joint], abs(step - steps[1, joint]))
            steps[1, joint] = step
    return moves and not changed


class RepeatedFrames:
    """Leaves out frames whose joints repeat the frame before; the next frame bears their time, too.

    Positions of the joint sample before under a new stamp come from a driver that has missed a cycle of its bus. A
    filter that uses such a sample sees the joints stand still for one period and then jump by two; one in a
    hundred makes friction three times worse. A sample that is missing costs nothing. But joints at rest and coarse
    encoders also repeat themselves. So a repetition counts as a missed cycle only where a joint has just moved by
    several steps of its encoder, which no joint stops within a period.
    """

    def __init__(self) -> None:
        self._before: FloatArray | None = None
        self._steps = np.zeros((2, 0))
        self._left_out = 0.0
        self._row = 0

    def time_step(self, position: FloatArray, dt: float) -> float | None:
        """Time since the last frame that was not left out [s]; None where this one only repeats it.

        Parameters
        ----------
        position : (n,) of the joints
        dt : time since the frame before, zero where the filters restart [s]
        """
        if self._repeats(position, dt):
            self._left_out += dt
            return None
        dt, self._left_out = dt + self._left_out, 0.0
        return dt

    def _repeats(self, position: FloatArray, dt: float) -> bool:
        before, self._before = self._before, position
        if dt == 0.0:
            self._left_out, self._row = 0.0, 0
            return False
        if before is None:
            return False
        if self._steps.shape[1] != before.size:
            self._steps = np.zeros((2, before.size))
            self._steps[0] = math.inf
        if not note_changes(position, before, self._steps):
            self._row = 0
            return False
        self._row += 1
        return self._row <= _LONGEST_REPETITION
