"""Raw samples in, sensor frames out, on the clock of the joint states and by header stamp alone.

A joint sample waits until every other sensor has delivered something at least as new, and, where one seems to be
missing before it, for that one too; but never longer than until joint samples ``max_wait`` newer have come. So the
frames do not depend on the order in which the sensors' messages arrive, and replay equals live. (Within one topic of
another sensor, messages that overtake each other are sorted as far as they have come.)
"""

from __future__ import annotations

import bisect
import dataclasses
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.config import SynchronizerConfig
from friction_estimator.estimation.health import Health
from friction_estimator.types import BoolArray, FloatArray, ImuSample, JointSample, SensorFrame, WrenchSample

_NS = 1_000_000_000
_LONGEST_GAP = 3.0
"""A gap of a sensor is bridged up to this many of its usual periods, and its last value is held for half as long."""
_FRAMES = 100
"""Number of frames over which the new readings of a sensor are counted."""
_FEWEST = 1e-3
_GAP = 1.8
"""Joint samples farther apart than this many usual periods have something missing between them."""
_STEPS_OF_ENCODER = 3.0
"""A joint whose reading has changed by more than this many steps of its encoder changes it in the next sample, too."""
_SAME_STEP = 1e-9
"""Steps that differ by less are equal [rad or m]. The resolution is the smallest step or difference of steps so far."""
_LONGEST_QUEUE = 5000
"""Samples of a sensor that are kept at most: no stamps, however strange, use up memory and time."""
_LONGEST_REPETITION = 5
"""Repetitions in a row that are left out at most: joints may stop, and nobody shall wait long for an estimate."""


@dataclass(slots=True)
class _Track:
    """Recent samples of one sensor other than the joints, sorted by stamp."""

    values: deque[tuple[int, FloatArray]]
    last: FloatArray
    period: float = 0.0
    used_ns: int = -1
    frames: int = 0
    readings: float = 0.0
    late: int = 0

    def learn_period(self, step: int) -> None:
        """Follow the usual time between samples [ns]; pauses count little."""
        self.period = _follow(self.period, step)

    def count(self, new: int) -> None:
        """Follow how many readings are new in a frame."""
        self.frames = min(self.frames + 1, _FRAMES)
        self.readings += (new - self.readings) / self.frames


class Synchronizer:
    """Turns samples of ``k`` feet, one IMU and the joints into :class:`SensorFrame` objects.

    Parameters
    ----------
    config : waiting time, staleness and reset thresholds
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
        self._stale_after = int(config.stale_after * _NS)
        self._reset_after = int(config.reset_after * _NS)
        self._use_imu = use_imu
        self._health = health
        self._foot_count = foot_count
        self.reset()

    def reset(self) -> None:
        """Forget all samples, as at the start."""
        self._joints: deque[JointSample] = deque()
        self._imu = _Track(deque(), np.zeros(6), readings=0.0 if self._use_imu else 1.0)
        self._feet = [_Track(deque(), np.zeros(6)) for _ in range(self._foot_count)]
        self._tracks = [*([self._imu] if self._use_imu else []), *self._feet]
        self._fresh: tuple[list[bool], BoolArray] = [], np.zeros(0, dtype=bool)
        self._readings: tuple[list[float], FloatArray] = [], np.zeros(0)
        self._emitted_ns: int | None = None
        self._period = 0.0
        self._repeated = RepeatedFrames()

    def add_joints(self, sample: JointSample) -> list[SensorFrame]:
        """Add a joint sample; return the frames that became complete, oldest first."""
        if self._accept_joint_stamp(sample.stamp_ns):
            self._insert_joints(sample)
        return self._complete_frames()

    def add_imu(self, sample: ImuSample) -> list[SensorFrame]:
        """Add an IMU sample; return the frames that became complete."""
        if not self._use_imu:
            return []
        value = np.concatenate((sample.angular_velocity, sample.specific_force))
        return self._add(self._imu, sample.stamp_ns - self._sensor_delays[0], value)

    def add_wrench(self, sample: WrenchSample) -> list[SensorFrame]:
        """Add a foot wrench; return the frames that became complete."""
        stamp_ns = sample.stamp_ns - self._sensor_delays[1 + sample.foot]
        return self._add(self._feet[sample.foot], stamp_ns, sample.wrench)

    @property
    def is_waiting(self) -> bool:
        """True while a joint sample waits for a reading of another sensor."""
        return bool(self._joints)

    def flush(self) -> list[SensorFrame]:
        """Emit all joint samples that still wait: the end of a recording."""
        frames = []
        while self._joints:
            frames.append(self._emit(self._joints.popleft()))
        return self._counted(frames)

    def delays(self) -> list[float]:
        """Stamp of the newest joint sample minus that of the newest reading of each other sensor [s].

        First that of the IMU, unless the base is fixed, then those of the feet; NaN before the first reading.
        """
        newest = self._joints[-1].stamp_ns if self._joints else self._emitted_ns
        if newest is None:
            return [math.nan] * len(self._tracks)
        return [(newest - track.values[-1][0]) / _NS if track.values else math.nan for track in self._tracks]

    def late(self) -> list[int]:
        """Number of readings of each other sensor that came too late to be used, in the order of :meth:`delays`."""
        return [track.late for track in self._tracks]

    def _accept_joint_stamp(self, stamp: int) -> bool:
        newest = self._joints[-1].stamp_ns if self._joints else self._emitted_ns
        if newest is None or stamp > newest:
            return True
        if stamp < newest - self._reset_after:
            self._jump_back(newest, stamp)
            return True
        if any(sample.stamp_ns == stamp for sample in self._joints) or stamp == self._emitted_ns:
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
        for track in self._tracks:
            while track.values and track.values[-1][0] > stamp + self._reset_after:
                track.values.pop()

    def _insert_joints(self, sample: JointSample) -> None:
        self._joints.append(sample)
        if len(self._joints) > 1 and self._joints[-2].stamp_ns > sample.stamp_ns:
            self._joints = deque(sorted(self._joints, key=lambda item: item.stamp_ns))

    def _add(self, track: _Track, stamp: int, value: FloatArray) -> list[SensorFrame]:
        values = track.values
        if values and stamp < values[-1][0] - self._reset_after:
            values.clear()
        if not values or stamp > values[-1][0]:
            if values:
                track.learn_period(stamp - values[-1][0])
            values.append((stamp, value))
            while values[0][0] < stamp - self._reset_after or len(values) > _LONGEST_QUEUE:
                values.popleft()  # no joint state comes that could want it
        elif self._emitted_ns is not None and stamp < self._emitted_ns:
            self._health.late += 1
            track.late += 1
        elif values[place := bisect.bisect_left(values, stamp, key=_stamp_of)][0] != stamp:
            values.insert(place, (stamp, value))
            if len(values) > _LONGEST_QUEUE:
                values.popleft()
        return self._complete_frames()

    def _complete_frames(self) -> list[SensorFrame]:
        frames = []
        while self._joints and self._is_complete(self._joints[0].stamp_ns):
            frames.append(self._emit(self._joints.popleft()))
        return self._counted(frames) if frames else frames

    def _counted(self, frames: list[SensorFrame]) -> list[SensorFrame]:
        """Frames without those that only repeat the joint sample before."""
        new = self._repeated.leave_out(frames)
        if len(new) < len(frames):
            self._health.repeated += len(frames) - len(new)
            self._health.add_lasting_event(
                "repeated_positions",
                frames[-1].stamp_ns,
                "a joint state repeats the positions of the one before under a new stamp, as if the driver had missed "
                "a cycle of its bus: dropped",
            )
        self._health.frames += len(new)
        return new

    def _is_complete(self, stamp: int) -> bool:
        if self._joints[-1].stamp_ns >= stamp + self._max_wait or len(self._joints) > _LONGEST_QUEUE:
            return True
        if self._emitted_ns is not None and self._period > 0.0:
            step = stamp - self._emitted_ns
            if _GAP * self._period < step <= self._reset_after:
                return False  # the sample between is lost or late: give it the time to come
        return all(track.values and track.values[-1][0] >= stamp for track in self._tracks)

    def _emit(self, joints: JointSample) -> SensorFrame:
        stamp, imu = joints.stamp_ns, self._imu
        imu_fresh = self._sample(imu, stamp) if self._use_imu else True
        wrenches, fresh, readings = np.empty((self._foot_count, 6)), [], [imu.readings]
        for foot, track in enumerate(self._feet):
            fresh.append(self._sample(track, stamp))
            wrenches[foot] = track.last
            readings.append(track.readings)
        if fresh != self._fresh[0]:
            self._fresh = fresh, np.array(fresh, dtype=bool)
        if readings != self._readings[0]:
            self._readings = readings, np.clip(readings, _FEWEST, 1.0)
        dt = self._time_step(stamp)
        self._emitted_ns = stamp
        velocity = joints.velocity
        if velocity is None or velocity.size == 0:
            velocity = np.full_like(joints.position, np.nan)
        return SensorFrame(
            stamp_ns=stamp,
            dt=dt,
            position=joints.position,
            velocity=velocity,
            effort=joints.effort,
            angular_velocity=imu.last[:3],
            specific_force=imu.last[3:],
            wrenches=wrenches,
            imu_fresh=imu_fresh,
            wrench_fresh=self._fresh[1],
            readings=self._readings[1],
        )

    def _time_step(self, stamp: int) -> float:
        if self._emitted_ns is None:
            return 0.0
        step = stamp - self._emitted_ns
        if 0 < step <= self._reset_after:
            self._period = _follow(self._period, step)
        if step > self._reset_after:
            self._health.gaps += 1
            self._health.add_restart("gap", stamp, f"no joint states for {step / _NS:.3f} s")
            return 0.0
        return step / _NS

    def _sample(self, track: _Track, stamp: int) -> bool:
        """Value of one sensor at ``stamp`` into ``track.last``; False when the sensor is silent."""
        values = track.values
        if not values:
            return False
        new = int(track.used_ns < values[0][0] <= stamp)
        while len(values) > 1 and values[1][0] <= stamp:
            values.popleft()
            new += 1
        track.count(new)
        before, value = values[0]
        track.used_ns = before
        if before == stamp:
            track.last = value
            return True
        if before > stamp:
            track.last = value
            return before - stamp <= self._max_wait
        longest = min(_LONGEST_GAP * track.period, self._stale_after)
        if len(values) > 1 and values[1][0] - before <= longest:
            after, next_value = values[1]
            part = (stamp - before) / (after - before)
            track.last = (1.0 - part) * value + part * next_value
            return True
        track.last = value  # nothing newer has come, although the frame has waited for it
        return stamp - before <= 0.5 * longest


def _stamp_of(item: tuple[int, FloatArray]) -> int:
    return item[0]


def _follow(period: float, step: int) -> float:
    """Usual period after one more step [ns]: shorter steps count at once, longer ones slowly."""
    return min(float(step), period + 0.1 * (step - period)) if period else float(step)


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

    def leave_out(self, frames: list[SensorFrame]) -> list[SensorFrame]:
        """Frames with new positions, in their order."""
        return [self._with_time_left_out(frame) for frame in frames if not self._repeats(frame)]

    def _repeats(self, frame: SensorFrame) -> bool:
        before, self._before = self._before, frame.position
        if frame.dt == 0.0:
            self._left_out, self._row = 0.0, 0
            return False
        if before is None:
            return False
        if self._steps.shape[1] != before.size:
            self._steps = np.zeros((2, before.size))
            self._steps[0] = math.inf
        if not note_changes(frame.position, before, self._steps):
            self._row = 0
            return False
        self._row += 1
        if self._row > _LONGEST_REPETITION:
            return False
        self._left_out += frame.dt
        return True

    def _with_time_left_out(self, frame: SensorFrame) -> SensorFrame:
        if self._left_out == 0.0:
            return frame
        dt, self._left_out = frame.dt + self._left_out, 0.0
        return dataclasses.replace(frame, dt=dt)
