"""The inverse of ``outputs.py``: recorded output and ground-truth messages to arrays, for the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from friction_estimator.errors import BagError
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import header_stamp
from friction_estimator.messages.description import RunDescription
from friction_estimator.types import BoolArray, FloatArray

_SCALARS = (
    topics.FRICTION,
    topics.SIGMA,
    topics.MEASURED,
    topics.MODEL,
    topics.COULOMB,
    topics.VISCOUS,
    topics.COULOMB_SIGMA,
    topics.VISCOUS_SIGMA,
    topics.EXTERNAL_TORQUE,
    topics.TRUE_FRICTION,
)
RECORDED = (*_SCALARS, topics.CONTACT_PHASE, topics.TRUE_CONTACT_PHASE, topics.COLLISION)
"""Topics that a recording is made of."""


@dataclass(frozen=True, slots=True)
class Series:
    """One scalar per joint over time.

    Attributes
    ----------
    time : (m,) since the start of the recording [s]
    values : (m, n)
    """

    time: FloatArray
    values: FloatArray

    def at(self, time: FloatArray) -> FloatArray:
        """Values (k, n) at these times (k,), interpolated, NaN outside."""
        return np.stack([np.interp(time, self.time, column, np.nan, np.nan) for column in self.values.T], axis=1)

    def held(self, time: FloatArray) -> FloatArray:
        """Values (k, n) at these times (k,): each holds until the next one, and the first one before it, too."""
        return np.asarray(self.values[np.maximum(np.searchsorted(self.time, time, side="right") - 1, 0)])


@dataclass(frozen=True, slots=True)
class PhaseInterval:
    """A contact phase from ``start`` to ``end`` [s]."""

    start: float
    end: float
    name: str


@dataclass(frozen=True, slots=True)
class RecordedCollision:
    """A collision on the topic of the node: time of its detection [s], limb, joint, and what was detected in words."""

    time: float
    limb: str
    joint: str
    text: str


@dataclass(frozen=True, slots=True)
class Recording:
    """Estimates and ground truth of a run, at the stamps of the friction estimates.

    Attributes
    ----------
    joint_names : (n)
    time : (m,) since the start of the recording [s]
    position, velocity : (m, n) of the joints
    friction, sigma : (m, n) the estimate and its standard deviation [N m]
    measured : (m, n) True where the friction comes from the observer, False where it comes from the friction law
    truth : (m, n) true friction [N m], NaN outside its recording; None without ground truth
    phases, true_phases : contact phases, estimated and true; empty when not recorded
    model, coulomb, viscous, coulomb_sigma, viscous_sigma, external_torque : slow outputs; None when not recorded
    description : robot, method and source of the run
    collisions : detected by the node
    """

    joint_names: tuple[str, ...]
    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    friction: FloatArray
    sigma: FloatArray
    measured: BoolArray
    truth: FloatArray | None
    phases: tuple[PhaseInterval, ...]
    true_phases: tuple[PhaseInterval, ...]
    model: Series | None
    coulomb: Series | None
    viscous: Series | None
    coulomb_sigma: Series | None
    viscous_sigma: Series | None
    external_torque: Series | None
    description: RunDescription
    collisions: tuple[RecordedCollision, ...] = ()

    @property
    def limbs(self) -> dict[str, tuple[int, ...]]:
        """Columns of the joints of each limb, by foot; all joints under an empty name when limbs are unknown."""
        known = {
            foot: tuple(self.joint_names.index(name) for name in joints if name in self.joint_names)
            for foot, joints in self.description.limbs.items()
        }
        return known or {"": tuple(range(len(self.joint_names)))}

    def swing_intervals(self, foot: str) -> list[PhaseInterval]:
        """Intervals in which this foot was off the ground, by the ground truth if recorded, else by the estimate."""
        if foot not in self.description.supports:
            return []
        phases = self.true_phases or self.phases
        return [phase for phase in phases if foot not in self.description.standing_feet(phase.name)]

    def standing(self) -> BoolArray | None:
        """True where the limb of a joint was in stance, (m, n); None when limbs or phases are unknown."""
        if not self.description.limbs or not (self.true_phases or self.phases):
            return None
        standing = np.ones(self.friction.shape, dtype=bool)
        for foot, columns in self.limbs.items():
            for swing in self.swing_intervals(foot):
                rows = slice(*np.searchsorted(self.time, (swing.start, swing.end)))
                standing[rows, columns] = False
        return standing


class RecordingBuilder:
    """Collects messages and turns them into a :class:`Recording`."""

    def __init__(self) -> None:
        self._joint_names: tuple[str, ...] = ()
        self._orders: dict[tuple[str, ...], list[int]] = {}
        self._stamps: dict[str, list[int]] = {topic.name: [] for topic in _SCALARS}
        self._received: dict[str, list[int]] = {topic.name: [] for topic in RECORDED}
        self._efforts: dict[str, list[FloatArray]] = {topic.name: [] for topic in _SCALARS}
        self._states: list[tuple[FloatArray, FloatArray]] = []
        self._collisions: list[tuple[int, Any]] = []
        self._phase_names: dict[str, list[str]] = {
            topics.CONTACT_PHASE.name: [],
            topics.TRUE_CONTACT_PHASE.name: [],
        }

    def add(self, topic: str, time_ns: int, message: Any) -> None:
        """Add one message.

        Parameters
        ----------
        topic : relative name, one of :data:`RECORDED`
        time_ns : time under which it was recorded [ns]
        message : of rclpy or rosbags
        """
        if topic in self._phase_names:
            self._phase_names[topic].append(message.data)
        elif topic == topics.COLLISION.name:
            self._collisions += [(header_stamp(message), status) for status in message.status]
        else:
            self._efforts[topic].append(self._values(topic, message, "effort"))
            self._stamps[topic].append(header_stamp(message))
            if topic == topics.FRICTION.name:
                states = self._values(topic, message, "position"), self._values(topic, message, "velocity")
                self._states.append(states)
        self._received[topic].append(time_ns)

    def finish(self, description: RunDescription) -> Recording:
        """Resample all series at the stamps of the friction estimates.

        Raises
        ------
        BagError
            When there is no friction estimate.
        """
        stamps = self._stamps[topics.FRICTION.name]
        if not stamps:
            raise BagError(f"there is no message on the topic {topics.FRICTION.name!r}; run `replay` on the bag first")
        stamps_ns, rows = np.unique(np.array(stamps), return_index=True)
        start_ns = int(stamps_ns[0])
        time = (stamps_ns - start_ns) * 1e-9
        measured, sigma = self._series(topics.MEASURED, start_ns), self._series(topics.SIGMA, start_ns)
        truth = self._series(topics.TRUE_FRICTION, start_ns)
        nothing = np.full((time.size, len(self._joint_names)), np.nan)
        return Recording(
            joint_names=self._joint_names,
            time=time,
            position=np.array([state[0] for state in self._states])[rows],
            velocity=np.array([state[1] for state in self._states])[rows],
            friction=np.array(self._efforts[topics.FRICTION.name])[rows],
            sigma=nothing if sigma is None else sigma.at(time),
            measured=np.ones(nothing.shape, dtype=bool) if measured is None else measured.held(time) > 0.5,
            truth=None if truth is None else truth.at(time),
            phases=self._phases(topics.CONTACT_PHASE, topics.FRICTION, start_ns, time[-1]),
            true_phases=self._phases(topics.TRUE_CONTACT_PHASE, topics.TRUE_FRICTION, start_ns, time[-1]),
            model=self._series(topics.MODEL, start_ns),
            coulomb=self._series(topics.COULOMB, start_ns),
            viscous=self._series(topics.VISCOUS, start_ns),
            coulomb_sigma=self._series(topics.COULOMB_SIGMA, start_ns),
            viscous_sigma=self._series(topics.VISCOUS_SIGMA, start_ns),
            external_torque=self._series(topics.EXTERNAL_TORQUE, start_ns),
            description=description,
            collisions=tuple(_collision(stamp - start_ns, status) for stamp, status in self._collisions),
        )

    def _values(self, topic: str, message: Any, field: str) -> FloatArray:
        """One field in the order of the joints; NaN when it is empty."""
        order = self._order(tuple(message.name))
        values = np.asarray(getattr(message, field), dtype=np.float64)
        if values.size == len(message.name):
            return values[order]
        if values.size == 0:
            return np.full(len(order), np.nan)
        raise BagError(f"topic {topic}: {field} has {values.size} values for {len(message.name)} joint names")

    def _order(self, names: tuple[str, ...]) -> list[int]:
        if not self._joint_names:
            self._joint_names = names
        if names not in self._orders:
            if not set(self._joint_names) <= set(names):
                raise BagError(f"the joints change within the bag: {', '.join(self._joint_names)}, {', '.join(names)}")
            self._orders[names] = [names.index(name) for name in self._joint_names]
        return self._orders[names]

    def _series(self, topic: topics.Topic, start_ns: int) -> Series | None:
        if not self._stamps[topic.name]:
            return None
        stamps, rows = np.unique(np.array(self._stamps[topic.name]), return_index=True)
        return Series((stamps - start_ns) * 1e-9, np.array(self._efforts[topic.name])[rows])

    def _phases(self, topic: topics.Topic, clock: topics.Topic, start_ns: int, end: float) -> tuple[PhaseInterval, ...]:
        """Intervals of equal names; the messages have no stamp, so stamps are interpolated by their recording times."""
        names, received = self._phase_names[topic.name], self._received[topic.name]
        if not names or not self._stamps[clock.name]:
            return ()
        reference = np.array(self._received[clock.name], dtype=float)
        stamps = (np.array(self._stamps[clock.name]) - start_ns) * 1e-9
        starts = np.interp(np.array(received, dtype=float), reference, stamps)
        return _intervals(names, starts.tolist(), end)


def _collision(time_ns: int, status: Any) -> RecordedCollision:
    values = {item.key: item.value for item in status.values}
    return RecordedCollision(1e-9 * time_ns, values["limb"], values["joint"], status.message)


def _intervals(names: Sequence[str], starts: Sequence[float], end: float) -> tuple[PhaseInterval, ...]:
    changes = [row for row, name in enumerate(names) if row == 0 or name != names[row - 1]]
    ends = [starts[row] for row in changes[1:]] + [end]
    return tuple(
        PhaseInterval(starts[row], stop, names[row])
        for row, stop in zip(changes, ends, strict=True)
        if stop > starts[row]
    )
