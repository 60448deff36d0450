"""What a bag keeps of a run: its description, and estimates with ground truth as arrays."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from friction_estimator.config import Config, CouplingConfig
from friction_estimator.config.robot import combined
from friction_estimator.errors import ConfigError
from friction_estimator.laws import JointLaws, laws_of_joints
from friction_estimator.messages import topics
from friction_estimator.messages.topics import When
from friction_estimator.robot.model import RobotModel
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import BoolArray, FloatArray

_KEY = "friction_estimator"


@dataclass(frozen=True, slots=True)
class RunDescription:
    """Description of one run. A fact that is not known is empty."""

    robot: str = ""  # name of the robot's configuration
    source: str = ""  # origin of the sensor data, as text
    observer: str = ""  # its name
    law: str = ""  # name of the friction law
    limbs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # joints between the base and each foot, by foot
    # name of the contact phase in which only one foot stands, by foot
    supports: Mapping[str, str] = field(default_factory=dict)
    smoothing: str = ""  # length of the later data that each estimate uses, as text; empty for live estimates
    coupling: CouplingConfig = CouplingConfig()  # motors that move several joints together

    @classmethod
    def from_config(cls, config: Config, urdf_xml: str, robot: str, source: str) -> RunDescription:
        """Describe a run with this configuration; ``source`` is what was run, in words."""
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
        return Transmission.from_coupling(combined(there) if there else None, joint_names)

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


RECORDED_SERIES = {
    field.removeprefix("law."): topic
    for field, topic in topics.SCALARS.items()
    if topic.when is When.SLOW and topic is not topics.EXTERNAL_TORQUE_SIGMA
}
"""Topics by the attribute of a :class:`Recording` that has their series."""
RECORDED = (
    topics.FRICTION, topics.SIGMA, topics.MEASURED, topics.VALID, topics.TRUE_FRICTION, topics.COLLISION,
    topics.CONTACT_PHASE, topics.TRUE_CONTACT_PHASE, *RECORDED_SERIES.values(),
)  # fmt: skip
"""Topics that a recording is made of."""


@dataclass(frozen=True, slots=True)
class Series:
    """One scalar per joint over time."""

    time: FloatArray  # (m,) since the start of the recording [s]
    values: FloatArray  # (m, n)

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
    """A collision on the topic of the node: time of its detection [s], joint, and what was detected in words."""

    time: float
    joint: str
    text: str

    @classmethod
    def from_diagnostics(cls, time: float, status: Any) -> RecordedCollision:
        """Collision of a diagnostic_msgs/DiagnosticStatus."""
        values = {item.key: item.value for item in status.values}
        return cls(time, values["joint"], status.message)


@dataclass(frozen=True, slots=True)
class Recording:
    """Estimates and ground truth of a run, at the stamps of the friction estimates."""

    joint_names: tuple[str, ...]  # (n)
    time: FloatArray  # (m,) since the start of the recording [s]
    position: FloatArray  # (m, n) [rad]
    velocity: FloatArray  # (m, n) [rad/s]
    friction: FloatArray  # (m, n) the estimate [N m]
    sigma: FloatArray  # (m, n) its standard deviation [N m]
    # (m, n) True where the friction comes from the observer, False where it comes from the friction law
    measured: BoolArray
    truth: FloatArray | None  # (m, n) true friction [N m], NaN outside its recording; None without ground truth
    phases: tuple[PhaseInterval, ...]  # estimated contact phases; empty when not recorded
    true_phases: tuple[PhaseInterval, ...]  # true ones; empty when not recorded
    # slow outputs; None when not recorded
    model: Series | None
    coulomb: Series | None
    viscous: Series | None
    coulomb_sigma: Series | None
    viscous_sigma: Series | None
    external_torque: Series | None
    description: RunDescription  # robot, method and source of the run
    collisions: tuple[RecordedCollision, ...] = ()  # detected by the node
    valid: BoolArray | None = None  # (m, n) True where the friction may be used; None when not recorded

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


def phase_intervals(names: Sequence[str], starts: Sequence[float], end: float) -> tuple[PhaseInterval, ...]:
    """Intervals of equal names that follow each other, the last one until ``end`` [s]."""
    changes = [row for row, name in enumerate(names) if row == 0 or name != names[row - 1]]
    ends = [starts[row] for row in changes[1:]] + [end]
    return tuple(
        PhaseInterval(starts[row], stop, names[row])
        for row, stop in zip(changes, ends, strict=True)
        if stop > starts[row]
    )
