"""What a bag keeps of a run: its description, and the inverse of ``outputs.py``, recorded messages to arrays."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from friction_estimator.config import Config, CouplingConfig
from friction_estimator.config.robot import combined
from friction_estimator.errors import BagError, ConfigError
from friction_estimator.laws import JointLaws, laws_of_joints
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import header_stamp
from friction_estimator.messages.topics import When
from friction_estimator.robot.model import RobotModel
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import BoolArray, FloatArray

_KEY = "friction_estimator"


@dataclass(frozen=True, slots=True)
class RunDescription:
    """Description of one run. A fact that is not known is empty.

    Attributes
    ----------
    robot : name of the robot's configuration
    source : origin of the sensor data, as text
    observer, law : names of the observer and of the friction law
    limbs : joints between the base and each foot, by foot
    supports : name of the contact phase in which only one foot stands, by foot
    smoothing : length of the later data that each estimate uses, as text; empty for live estimates
    coupling : motors that move several joints together
    """

    robot: str = ""
    source: str = ""
    observer: str = ""
    law: str = ""
    limbs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    supports: Mapping[str, str] = field(default_factory=dict)
    smoothing: str = ""
    coupling: CouplingConfig = CouplingConfig()

    @classmethod
    def of(cls, config: Config, urdf_xml: str, robot: str, source: str) -> RunDescription:
        """Describe a run with this configuration."""
        model = RobotModel(config, urdf_xml)
        limbs = {
            foot.name: tuple(name for name, on_it in zip(model.joint_names, row, strict=True) if on_it)
            for foot, row in zip(config.feet, model.limb, strict=True)
        }
        supports = {foot.name: foot.support_name for foot in config.feet}
        identifier = config.identifier
        laws = JointLaws(laws_of_joints(config.friction_law, identifier.joint_laws, model.motors.names))
        law = laws.describe(model.motors.names)
        return cls(robot, source, config.observer, law, limbs, supports, coupling=config.robot.coupling)

    def motors(self, joint_names: Sequence[str]) -> Transmission:
        """Motors of these joints (n). Joints that share motors with a missing joint get one motor each."""
        coupling = self.coupling.coupling()
        parts = () if coupling is None else coupling.parts
        there = [part for part in parts if set(part.joint_names) <= set(joint_names)]
        return Transmission.of(combined(there) if there else None, joint_names)

    def to_custom_data(self) -> dict[str, str]:
        """The description as custom data of a rosbag2."""
        return {_KEY: json.dumps(dataclasses.asdict(self))}

    @classmethod
    def from_custom_data(cls, custom_data: Mapping[str, str]) -> RunDescription:
        """Read the description of a bag; all facts are empty when the bag was not written by this package."""
        try:
            values = json.loads(custom_data.get(_KEY, "{}"))
            known = {item.name: values[item.name] for item in dataclasses.fields(cls) if item.name in values}
            known["limbs"] = {foot: tuple(joints) for foot, joints in known.get("limbs", {}).items()}
            coupling = {name: tuple(entries) for name, entries in known.get("coupling", {}).items()}
            known["coupling"] = CouplingConfig(**coupling)
            return cls(**known)
        except (ValueError, TypeError, AttributeError, ConfigError):
            return cls()

    def standing_feet(self, phase: str) -> frozenset[str]:
        """Feet that stand in a contact phase."""
        if phase == "double_support":
            return frozenset(self.supports)
        names = phase.split("+")
        return frozenset(foot for foot, support in self.supports.items() if support in names)


_SLOW = {
    field.removeprefix("law."): topic
    for field, topic in topics.SCALARS.items()
    if topic.when is When.SLOW and topic is not topics.EXTERNAL_TORQUE_SIGMA
}
"""Topics by the attribute of a :class:`Recording` that has their series."""
_PHASES = (topics.CONTACT_PHASE, topics.TRUE_CONTACT_PHASE)
RECORDED = (
    topics.FRICTION, topics.SIGMA, topics.MEASURED, topics.TRUE_FRICTION, topics.COLLISION, *_SLOW.values(), *_PHASES,
)  # fmt: skip
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


def joint_field(message: Any, field: str, joint_names: Sequence[str]) -> FloatArray:
    """One field of a sensor_msgs/JointState of rclpy or rosbags, (n,) in the order of these joints.

    NaN for joints that the message does not name, and for a field that is empty.

    Raises
    ------
    ValueError
        When the field has another number of values than the message has names.
    """
    values = getattr(message, field)
    found = dict(zip(message.name, values, strict=True)) if len(values) else {}
    return np.array([found.get(name, np.nan) for name in joint_names])


class RecordingBuilder:
    """Collects messages and turns them into a :class:`Recording`."""

    def __init__(self) -> None:
        self._joint_names: tuple[str, ...] = ()
        self._times: dict[str, list[int]] = {topic.name: [] for topic in RECORDED}
        self._stamps: dict[str, list[int]] = {topic.name: [] for topic in RECORDED}
        self._content: dict[str, list[Any]] = {topic.name: [] for topic in RECORDED}

    def add(self, topic: str, time_ns: int, message: Any) -> None:
        """Add one message.

        Parameters
        ----------
        topic : relative name, one of :data:`RECORDED`
        time_ns : time under which it was recorded [ns]
        message : of rclpy or rosbags
        """
        if topic in (phase.name for phase in _PHASES):
            content = message.data
        else:
            fields = ("effort", "position", "velocity") if topic == topics.FRICTION.name else ("effort",)
            is_collision = topic == topics.COLLISION.name
            content = message.status if is_collision else [self._values(topic, message, field) for field in fields]
            self._stamps[topic].append(header_stamp(message))
        self._content[topic].append(content)
        self._times[topic].append(time_ns)

    def finish(self, description: RunDescription) -> Recording:
        """Resample all series at the stamps of the friction estimates.

        Raises
        ------
        BagError
            When there is no friction estimate.
        """
        if not self._stamps[topics.FRICTION.name]:
            raise BagError(f"there is no message on the topic {topics.FRICTION.name!r}; run `replay` on the bag first")
        start_ns = min(self._stamps[topics.FRICTION.name])
        time, (friction, position, velocity) = self._signals(topics.FRICTION, start_ns)
        measured, sigma, truth = (
            self._series(topic, start_ns) for topic in (topics.MEASURED, topics.SIGMA, topics.TRUE_FRICTION)
        )
        collisions = zip(self._stamps[topics.COLLISION.name], self._content[topics.COLLISION.name], strict=True)
        return Recording(
            joint_names=self._joint_names,
            time=time,
            position=position,
            velocity=velocity,
            friction=friction,
            sigma=np.full(friction.shape, np.nan) if sigma is None else sigma.at(time),
            measured=np.ones(friction.shape, dtype=bool) if measured is None else measured.held(time) > 0.5,
            truth=None if truth is None else truth.at(time),
            phases=self._phases(topics.CONTACT_PHASE, topics.FRICTION, start_ns, time[-1]),
            true_phases=self._phases(topics.TRUE_CONTACT_PHASE, topics.TRUE_FRICTION, start_ns, time[-1]),
            **{name: self._series(topic, start_ns) for name, topic in _SLOW.items()},
            description=description,
            collisions=tuple(_collision(stamp - start_ns, one) for stamp, found in collisions for one in found),
        )

    def _values(self, topic: str, message: Any, field: str) -> FloatArray:
        """One field in the order of the joints; NaN when it is empty."""
        names = self._joint_names = self._joint_names or tuple(message.name)
        if not set(names) <= set(message.name):
            raise BagError(f"the joints change within the bag: {', '.join(names)}, {', '.join(message.name)}")
        try:
            return joint_field(message, field, names)
        except ValueError:
            count = len(getattr(message, field))
            raise BagError(f"topic {topic}: {field} has {count} values for {len(message.name)} joint names") from None

    def _signals(self, topic: topics.Topic, start_ns: int) -> tuple[FloatArray, FloatArray]:
        """Times (m,) of different stamps, in order [s], and the fields of their messages, (f, m, n)."""
        stamps, rows = np.unique(np.array(self._stamps[topic.name]), return_index=True)
        fields = np.array(self._content[topic.name])[rows].swapaxes(0, 1)
        return np.asarray((stamps - start_ns) * 1e-9), np.ascontiguousarray(fields)

    def _series(self, topic: topics.Topic, start_ns: int) -> Series | None:
        if not self._stamps[topic.name]:
            return None
        time, (values,) = self._signals(topic, start_ns)
        return Series(time, values)

    def _phases(self, topic: topics.Topic, clock: topics.Topic, start_ns: int, end: float) -> tuple[PhaseInterval, ...]:
        """Intervals of equal names; the messages have no stamp, so stamps are interpolated by their recording times."""
        names, received = self._content[topic.name], self._times[topic.name]
        if not names or not self._stamps[clock.name]:
            return ()
        stamps = (np.array(self._stamps[clock.name]) - start_ns) * 1e-9
        starts = np.interp(np.array(received, float), np.array(self._times[clock.name], float), stamps)
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
