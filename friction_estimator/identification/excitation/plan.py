"""What a planned excitation is, and what was asked of it."""

from __future__ import annotations

from dataclasses import dataclass

from friction_estimator.errors import ConfigError, choices
from friction_estimator.identification.excitation.criterion import ExcitationQuality
from friction_estimator.identification.joint_trajectory import JointTrajectory
from friction_estimator.types import FloatArray

CRITERIA = ("balanced", "condition", "determinant")
"""What is minimised: ln of the condition number plus mean ln of the error bars, or one of the two alone."""


@dataclass(frozen=True, slots=True)
class ExcitationOptions:
    """What to plan.

    Attributes
    ----------
    duration : of the Fourier series [s]
    bandwidth : its highest frequency [Hz]
    harmonics : how many, spread evenly up to the bandwidth
    criterion : one of :data:`CRITERIA`
    seeds : how many starts of the optimisation; the best one wins
    seed : of the random numbers
    iterations : of the optimisation, at most, for each start
    margin : fraction of every limit that is used
    sweep_levels : plateaus of constant velocity, as fractions of the velocity limit
    dwell : duration of a plateau [s]
    known_inertia : only friction will be identified, the URDF's inertia is taken as it is
    rate : of the written trajectory [Hz]
    """

    duration: float = 10.0
    bandwidth: float = 1.0
    harmonics: int = 5
    criterion: str = "balanced"
    seeds: int = 3
    seed: int = 0
    iterations: int = 40
    margin: float = 0.9
    sweep_levels: tuple[float, ...] = (0.01, 0.03, 0.1)
    dwell: float = 2.0
    known_inertia: bool = False
    rate: float = 100.0

    def __post_init__(self) -> None:
        if self.criterion not in CRITERIA:
            raise ConfigError(f"unknown criterion {self.criterion!r}; choose one of {choices(CRITERIA)}")
        if not 0.0 < self.margin <= 1.0:
            raise ConfigError(f"the margin {self.margin:g} is not a fraction of the limits between 0 and 1")
        if not self.rate >= 10.0 * self.bandwidth > 0.0:
            raise ConfigError(
                f"a rate of {self.rate:g} Hz does not show a motion of up to {self.bandwidth:g} Hz: "
                "the bandwidth must be positive and at most a tenth of the rate"
            )
        if not self.duration > 0.0 or not self.dwell > 0.0 or self.seeds < 1 or self.iterations < 1:
            raise ConfigError("duration, dwell, seeds and iterations must be positive")


@dataclass(frozen=True, slots=True)
class ExcitationPlan(JointTrajectory):
    """A trajectory to move along while recording.

    Attributes
    ----------
    torque : (N, n) what the URDF's rigid bodies take, friction comes on top [N m or N]
    parameters : (p) what can be identified with it
    planned : quality of the whole trajectory
    random : median quality of random trajectories of the same kind and within the same limits
    choices : what was chosen or assumed, in sentences
    """

    torque: FloatArray
    parameters: tuple[str, ...]
    planned: ExcitationQuality
    random: ExcitationQuality
    choices: tuple[str, ...]
