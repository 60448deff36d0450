"""What the last stage of the pipeline owes: friction of every joint from one frame, and a law learned on the way."""

from __future__ import annotations

from typing import Protocol

from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.types import Attitude, ContactPhase, Dynamics, JointFriction, SensorFrame


class FrictionStage(Protocol):
    """Measures friction, learns its law, and says one or the other.

    Attributes
    ----------
    frozen : True while nothing is learned
    """

    frozen: bool

    @property
    def laws(self) -> JointLaws:
        """The friction laws of the joints, or of the motors that they share."""
        ...

    def step(self, frame: SensorFrame, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics) -> JointFriction:
        """Use one frame."""
        ...

    def reset(self) -> None:
        """Restart the filters; what was learned stays."""
        ...

    def forget(self) -> None:
        """Reset, and drop what was learned too."""
        ...

    @property
    def identified(self) -> IdentifiedParameters:
        """What is worth keeping over a restart."""
        ...

    def restore(self, identified: IdentifiedParameters) -> None:
        """Start from parameters of an earlier run; joints that it does not name keep their present ones.

        Raises
        ------
        ConfigError
            When the parameters belong to other friction laws, or to none of these joints.
        """
        ...
