"""What the verdict is made from."""

from __future__ import annotations

from typing import Protocol

from friction_estimator.types import BoolArray, FloatArray


class TrustEvidence(Protocol):
    """What of a :class:`~friction_estimator.types.FrictionEstimate` is looked at: the same names and units."""

    @property
    def stamp_ns(self) -> int:
        """Stamp of the joint sample [ns]."""
        ...

    @property
    def velocity(self) -> FloatArray:
        """Of the joints, (n,) [rad/s]."""
        ...

    @property
    def effort(self) -> FloatArray:
        """Motor torque, (n,) [N m]."""
        ...

    @property
    def friction(self) -> FloatArray:
        """The estimate, (n,) [N m]."""
        ...

    @property
    def sigma(self) -> FloatArray:
        """Its standard deviation, (n,) [N m]."""
        ...

    @property
    def model_sigma(self) -> FloatArray:
        """Standard deviation of the law's prediction, (n,) [N m]."""
        ...

    @property
    def parameters(self) -> FloatArray:
        """Of the law, (n, p)."""
        ...

    @property
    def parameters_sigma(self) -> FloatArray:
        """Their standard deviations, (n, p)."""
        ...

    @property
    def consistency(self) -> FloatArray:
        """Newest normalised innovation squared, (n,); NaN while there is none."""
        ...

    @property
    def calibration_torque(self) -> FloatArray:
        """Torque that errors of model and sensors explain, (n,) [N m]."""
        ...

    @property
    def disturbed(self) -> BoolArray:
        """True while a push keeps the joint from learning, (n,)."""
        ...
