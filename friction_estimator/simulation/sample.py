"""What one control period of the simulator gives."""

from __future__ import annotations

from dataclasses import dataclass

from friction_estimator.types import FloatArray, GroundTruth, ImuSample, JointSample, WrenchSample


@dataclass(frozen=True, slots=True)
class Reference:
    """What the controller wants at the stamp of the sample.

    Attributes
    ----------
    position, velocity : (n,) of the joints [rad], [rad/s]
    com_in_world : (3,) centre of mass when base and joints are where the plan wants them [m]
    """

    position: FloatArray
    velocity: FloatArray
    com_in_world: FloatArray


@dataclass(frozen=True, slots=True)
class SimulationSample:
    """One control period, all stamps equal.

    At stamp t: position, velocity and the truth's base pose and twist are the state at t. Effort, friction, wrenches
    and specific force are what acts on the robot from t on: the motor torque computed at t, held until the next stamp;
    the friction law at the velocity of t and the dry friction that the solver found; contact forces and accelerations
    that follow from these. The friction follows the velocity within the period (it is evaluated anew at every
    integration step), so the truth is its value at t, not its mean over the period.
    """

    joints: JointSample
    imu: ImuSample
    wrenches: tuple[WrenchSample, ...]
    truth: GroundTruth
    reference: Reference
