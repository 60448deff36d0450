"""Raw samples in, sensor frames out, on the clock of the joint states and by header stamp alone.

A joint sample waits until every other sensor has delivered something at least as new, and, where one seems to be
missing before it, for that one too. It waits no longer than until joint samples have come that are newer by the period
of the slowest sensor and ``max_wait``. Where positions and efforts come in two messages of one stamp, the efforts
complete the sample. So the frames do not depend on the order in which the sensors' messages arrive, and replay equals
live. (Within one topic of another sensor, messages that overtake each other are sorted as far as they have come.)
Stamps that come in packets are spread first.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from friction_estimator.config import SynchronizerConfig
from friction_estimator.estimation.health import Check, Health
from friction_estimator.estimation.readings.publishers import packet_checks
from friction_estimator.estimation.readings.sensor_tracks import (
    CHANGED,
    GAP,
    MAX_ARRIVED,
    MAX_QUEUE_LENGTH,
    NEVER,
    REPEATS,
    RESET_AFTER_NS,
    Tracks,
    insert_readings,
    read_sensors,
    spread_joint_stamp,
)
from friction_estimator.kernels.records import buffered
from friction_estimator.types import FloatArray, JointSample, SensorFrame

_NS = 1_000_000_000
"""Nanoseconds in a second."""
RESET_AFTER = RESET_AFTER_NS / _NS
"""Gap of the joint-state stamps after which the filters restart [s]."""
_EFFORT_WAIT_NS = _NS
"""Time since the last second message of a stamp, for which joint states without efforts wait for another one [ns]."""
_RATE, _FORCE, _LOAD, _MOMENT = 0.1, 0.3, 0.03, 0.003
"""Differences of angular velocities [rad/s], specific forces [m/s^2], forces and moments [over the weight, and m] of
one sensor that matter: of the size of the friction of a joint."""
_REPEATS = (
    "a joint state repeats the positions of the one before under a new stamp, as if the driver had missed a cycle of "
    "its bus: dropped"
)


class Synchronizer:
    """Turns samples of ``n`` joints, ``k`` feet and one IMU into :class:`SensorFrame` objects.

    Parameters
    ----------
    config : waiting time
    joint_count, foot_count : n, k
    use_imu : False for a fixed base, whose frames then always count as fresh
    health : counters to update
    sensor_delays : (1 + k,) age of the readings of IMU and feet at the time of their stamps [s]; empty: none
    weight : of the robot, for differences of wrenches that matter [N]
    """

    def __init__(
        self,
        config: SynchronizerConfig,
        joint_count: int,
        foot_count: int,
        use_imu: bool,
        health: Health,
        sensor_delays: Sequence[float] = (),
        weight: float = 1.0,
    ) -> None:
        scales = np.array([[_RATE, _FORCE], *[[_LOAD * weight, _MOMENT * weight]] * foot_count])
        self._scale = np.repeat(scales, 3, axis=1).reshape(-1, 2, 3)
        self._sensor_delays = [round(delay * _NS) for delay in sensor_delays] or [0] * (1 + foot_count)
        self._max_wait = int(config.max_wait * _NS)
        self._first = 0 if use_imu else 1
        self._health = health
        self._joint_count, self._foot_count = joint_count, foot_count
        self.reset()

    def reset(self) -> None:
        """Forget all samples, as at the start."""
        self._waiting_joints: deque[JointSample] = deque()
        self._buffer, self._tracks = buffered(
            Tracks.initial(self._joint_count, self._scale, self._first, self._max_wait)
        )
        self._arrived = 0
        self._fresh, self._readings_per_sample = self._tracks.fresh.copy(), self._tracks.readings_per_sample.copy()
        self._used_ns: int | None = None
        self._jumped: JointSample | None = None
        self._completed_ns, self._without_effort = -_EFFORT_WAIT_NS, False

    def add_joints(self, sample: JointSample) -> list[SensorFrame]:
        """Add a joint sample; return the frames that became complete, oldest first."""
        if (stamp := spread_joint_stamp(self._buffer, sample.stamp_ns)) != sample.stamp_ns:
            sample = replace(sample, stamp_ns=stamp)
        waiting, jumped = self._waiting_joints, self._jumped
        newest = waiting[-1].stamp_ns if waiting else self._used_ns
        if jumped is None and newest is not None and 0 < sample.stamp_ns - newest <= RESET_AFTER_NS:
            waiting.append(sample)
        else:
            for one in self._confirm_jump(sample):
                if self._accept_joint_stamp(one):
                    self._insert_joints(one)
        return self._complete_frames()

    def add(self, sensor: int, stamp: int, reading: FloatArray) -> list[SensorFrame]:
        """Add a reading of another sensor; return the frames that became complete, oldest first.

        Parameters
        ----------
        sensor : 0 for the IMU, 1 + number for a foot
        stamp : [ns]
        reading : (6,) angular velocity and specific force, or wrench
        """
        if sensor < self._first:
            return []
        tracks, index = self._tracks, self._arrived
        tracks.arrived_sensor[index], tracks.arrived_stamp[index] = sensor, stamp - self._sensor_delays[sensor]
        tracks.arrived[index] = reading
        self._arrived = index + 1
        if self._waiting_joints:
            return self._complete_frames()
        if self._arrived == MAX_ARRIVED:
            self._insert_arrived()
        return []

    @property
    def is_waiting(self) -> bool:
        """True while a joint sample waits for a reading of another sensor."""
        return bool(self._waiting_joints)

    def flush(self) -> list[SensorFrame]:
        """Emit all joint samples that still wait: the end of a recording."""
        if self._jumped is not None and self._accept_joint_stamp(self._jumped):
            self._insert_joints(self._jumped)
        self._jumped = None
        return self._complete_frames(forced=True)

    def delays(self) -> list[float]:
        """Stamp of the newest joint sample minus that of the newest reading of each other sensor [s].

        First that of the IMU, unless the base is fixed, then those of the feet; NaN before the first reading.
        """
        self._insert_arrived()
        joints = self._waiting_joints[-1].stamp_ns if self._waiting_joints else self._used_ns
        newest: list[int] = self._tracks.newest[self._first :].tolist()
        return [math.nan if joints is None or own == NEVER else float(joints - own) / _NS for own in newest]

    def late(self) -> list[int]:
        """Number of readings of each other sensor that came too late to be used, in the order of :meth:`delays`."""
        self._insert_arrived()
        late: list[int] = self._tracks.late[self._first :].tolist()
        return late

    def mixed(self) -> list[int]:
        """Number of joint states for which two publishers sent readings of each other sensor, as :meth:`delays`."""
        mixed: list[int] = self._tracks.mixed[self._first :].tolist()
        return mixed

    def checks(self, topics: Sequence[str]) -> Iterator[Check]:
        """Findings about stamps in packets; ``topics`` (1 + s) of the joint states and of all other sensors."""
        yield from packet_checks(self._tracks.packets, topics)

    def _insert_arrived(self) -> None:
        """Insert the readings that have arrived."""
        if self._arrived:
            insert_readings(self._buffer, self._arrived, NEVER if self._used_ns is None else self._used_ns)
            self._arrived = 0

    def _confirm_jump(self, sample: JointSample) -> list[JointSample]:
        """The sample, and the one before it if its stamp had jumped and this one confirms that.

        A jump of the clock counts with its second sample: single old messages restart nothing.
        """
        newest = self._waiting_joints[-1].stamp_ns if self._waiting_joints else self._used_ns
        jumped, self._jumped = self._jumped, None
        far = newest is not None and abs(sample.stamp_ns - newest) > RESET_AFTER_NS
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
        return self._confirm_jump(sample) if far else [sample]

    def _accept_joint_stamp(self, sample: JointSample) -> bool:
        stamp = sample.stamp_ns
        newest = self._waiting_joints[-1].stamp_ns if self._waiting_joints else self._used_ns
        if newest is None or stamp > newest:
            return True
        if stamp < newest - RESET_AFTER_NS:
            self._jump_back(newest, stamp)
            return True
        for index, waiting in enumerate(self._waiting_joints):
            if waiting.stamp_ns == stamp and math.isnan(waiting.effort[0]) and not math.isnan(sample.effort[0]):
                self._waiting_joints[index], self._completed_ns = sample, stamp
                return False
        if any(waiting.stamp_ns == stamp for waiting in self._waiting_joints) or stamp == self._used_ns:
            if stamp == self._used_ns and self._without_effort and not math.isnan(sample.effort[0]):
                self._completed_ns = stamp
            self._health.repeated += 1
            self._health.add_lasting_event(
                "repeated_stamp", stamp, "joint-state stamps do not advance: samples with a repeated stamp are dropped"
            )
            return False
        if self._used_ns is not None and stamp < self._used_ns:
            self._health.late += 1
            late = (self._used_ns - stamp) / _NS
            self._health.add_lasting_event(
                "late_joint_state", stamp, f"a joint state came {late:.3f} s late, after a newer one was used: dropped"
            )
            return False
        return True

    def _jump_back(self, newest: int, stamp: int) -> None:
        self._health.time_jumps += 1
        jump = (newest - stamp) / _NS
        self._health.add_restart("time_jump", stamp, f"time jumped back by {jump:.3f} s")
        self._waiting_joints.clear()
        self._insert_arrived()
        self._used_ns = None
        tracks, last = self._tracks, stamp + RESET_AFTER_NS
        for sensor in range(tracks.length.size):
            kept = tracks.stamps[sensor, : tracks.length[sensor]]
            kept = kept[kept <= last]
            tracks.length[sensor], tracks.newest[sensor] = kept.size, kept[-1] if kept.size else NEVER

    def _insert_joints(self, sample: JointSample) -> None:
        self._waiting_joints.append(sample)
        if len(self._waiting_joints) > 1 and self._waiting_joints[-2].stamp_ns > sample.stamp_ns:
            self._waiting_joints = deque(sorted(self._waiting_joints, key=lambda item: item.stamp_ns))

    def _complete_frames(self, forced: bool = False) -> list[SensorFrame]:
        """Frames of the joint samples that need not wait any longer, and of all others where it is forced."""
        frames: list[SensorFrame] = []
        waiting, tracks = self._waiting_joints, self._tracks
        while waiting:
            joints = waiting[0]
            stamp, position, used = joints.stamp_ns, joints.position, self._used_ns
            without_effort = math.isnan(joints.effort[0])
            if without_effort and not forced and self._waits_for_effort(stamp):
                break
            values = np.empty((2, 1 + self._foot_count, 6))
            flags, dt = read_sensors(
                self._buffer, self._arrived, stamp, waiting[-1].stamp_ns, NEVER if used is None else used,
                forced or len(waiting) > MAX_QUEUE_LENGTH, position, values,
            )  # fmt: skip
            self._arrived = 0
            if not flags:
                break
            waiting.popleft()
            self._used_ns, self._without_effort = stamp, without_effort
            if flags & CHANGED:
                self._fresh, self._readings_per_sample = tracks.fresh.copy(), tracks.readings_per_sample.copy()
            if flags & GAP and used is not None:
                self._health.gaps += 1
                self._health.add_restart("gap", stamp, f"no joint states for {(stamp - used) / _NS:.3f} s")
            if flags & REPEATS:
                self._health.repeated += 1
                self._health.add_lasting_event("repeated_positions", stamp, _REPEATS)
                continue
            self._health.frames += 1
            frames.append(
                SensorFrame(
                    stamp_ns=stamp,
                    dt=dt,
                    position=position,
                    velocity=np.full_like(position, np.nan) if joints.velocity is None else joints.velocity,
                    effort=joints.effort,
                    angular_velocity=values[0, 0, :3],
                    specific_force=values[0, 0, 3:],
                    wrenches=values[0, 1:],
                    imu_fresh=bool(self._fresh[0]),
                    wrench_fresh=self._fresh[1:],
                    readings_per_sample=self._readings_per_sample,
                    new_readings=values[1],
                )
            )
        return frames

    def _waits_for_effort(self, stamp: int) -> bool:
        """Whether a joint sample without efforts, the newest one, may be completed by a message of the same stamp."""
        had_efforts = self._used_ns is not None and not self._without_effort
        return len(self._waiting_joints) == 1 and (had_efforts or abs(stamp - self._completed_ns) < _EFFORT_WAIT_NS)
