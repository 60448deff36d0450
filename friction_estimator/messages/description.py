"""Description of a run that is stored in its bag: robot, method, and source of the data."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from friction_estimator.config import Config, CouplingConfig
from friction_estimator.config.robot import combined
from friction_estimator.errors import ConfigError
from friction_estimator.laws import JointLaws, laws_of_joints
from friction_estimator.robot.model import RobotModel
from friction_estimator.robot.transmission import Transmission

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
