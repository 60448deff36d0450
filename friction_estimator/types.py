"""What travels between the stages: samples in, frames between, estimates out.

Conventions, once for the whole package
---------------------------------------
* ``n`` is the number of joints, ``k`` the number of feet, ``p`` the number of friction parameters of the largest law.
* Joint arrays are in the order of :attr:`RobotModel.joint_names`; foot arrays in the order of ``Config.feet``.
* ``tau = tau_friction + tau_link`` (Hashlamon & Erbatur 2014, eq. 34): the friction torque has the SAME sign as the
  joint velocity it resists, so a passive joint has ``friction * velocity >= 0``.
* A wrench is ``[force, moment]`` that the GROUND exerts on the FOOT, in and about the sole frame [N, N m].
* Specific force is what an accelerometer reads: acceleration minus gravity, so ``+9.81 z`` at rest [m/s^2].
* Stamps are integer nanoseconds from message headers, never the receive time.
* Samples, results and arrays that left a stage are not written to afterwards. Those of every frame are not frozen,
  because that costs four times as much.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from friction_estimator.kernels.records import record, to_buffer, unbuffered_record

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
AnyPath = str | os.PathLike[str]
Progress = Callable[[float, float], None]
"""Called now and then with the amount of work that is done, and with the whole."""
Vector: TypeAlias = FloatArray
"""Arrays with one, two (``Matrix``) and three axes (``Tensor``): kernels are compiled for these names."""
Matrix: TypeAlias = FloatArray
Tensor: TypeAlias = FloatArray
Indices: TypeAlias = IntArray
IndexMatrix: TypeAlias = IntArray
IndexTensor: TypeAlias = IntArray
Flags: TypeAlias = BoolArray
FlagMatrix: TypeAlias = BoolArray

GRAVITY = 9.81
"""Standard gravity of the whole package, as in pinocchio and MuJoCo [m/s^2]."""
_LETTERS, _ITEMS = 40, 4
"""Letters of a text, and items of a list, that a short ``repr`` shows."""


@dataclass(slots=True)
class JointSample:
    """One joint-state message in model order.

    Attributes
    ----------
    stamp_ns : header stamp [ns]
    position : (n,) joint positions [rad or m]
    velocity : (n,) joint velocities [rad/s or m/s]; None, empty or all NaN: not measured, then they are found from the
        positions
    effort : (n,) motor torques reflected to the joint, tau of eq. 34 [N m or N]; all NaN: not measured, then attitude,
        contact phase and base state are estimated, and friction is NaN
    """

    stamp_ns: int
    position: FloatArray
    velocity: FloatArray | None
    effort: FloatArray


@dataclass(slots=True)
class ImuSample:
    """One IMU message, in the IMU frame.

    Attributes
    ----------
    stamp_ns : header stamp [ns]
    angular_velocity : (3,) of the IMU relative to the world [rad/s]
    specific_force : (3,) accelerometer reading [m/s^2]
    """

    stamp_ns: int
    angular_velocity: FloatArray
    specific_force: FloatArray


@dataclass(slots=True)
class WrenchSample:
    """One foot-wrench message.

    Attributes
    ----------
    stamp_ns : header stamp [ns]
    foot : index into ``Config.feet``
    wrench : (6,) force and moment of the ground on the foot, in and about the sole frame [N, N m]
    """

    stamp_ns: int
    foot: int
    wrench: FloatArray


Reading = JointSample | ImuSample | WrenchSample
"""One sample of a sensor."""


@dataclass(slots=True)
class CommandSample:
    """Desired joint velocities of the controller, in model order.

    Attributes
    ----------
    stamp_ns : header stamp [ns]
    velocity : (n,) desired joint velocities [rad/s or m/s]
    """

    stamp_ns: int
    velocity: FloatArray


@dataclass(slots=True)
class SensorFrame:
    """All inputs on the clock of the joint states: what ``Pipeline.step`` takes."""

    stamp_ns: int  # stamp of the joint sample [ns]
    dt: float  # time since the frame before, zero on the first frame after a (re)start [s]
    # (n,) see JointSample; NaN where they are not measured
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
    # (3,) in the IMU frame; the last known value while `imu_fresh` is false
    angular_velocity: FloatArray
    specific_force: FloatArray
    wrenches: FloatArray  # (k, 6) in the sole frames; the last known value while not fresh
    imu_fresh: bool  # False while the IMU has been silent for longer than a tenth of a second
    wrench_fresh: BoolArray  # (k,) the same for each foot sensor
    # (1 + k,) of IMU and foot sensors, at most one: below one they are slower than the joints, and most of their
    # values here lie between two readings
    readings_per_sample: FloatArray
    # True where no sensor measures the velocities, and a filter has found them from the positions
    differentiated: bool = False
    # (1 + k, 6) newest reading of IMU (angular velocity, specific force) and foot sensors as it came, NaN where
    # none has come since the frame before; (0, 6) where the readings are not shown
    new_readings: FloatArray = field(default_factory=lambda: np.zeros((0, 6)))


@record
class Attitude(NamedTuple):
    """Output of the attitude stage."""

    rotation_base_to_world: Matrix  # (3, 3) A_b of the paper: `v_world = rotation_base_to_world @ v_base`
    angular_velocity: Vector  # (3,) of the base, in base axes, gyro bias removed [rad/s]
    angular_acceleration: Vector  # (3,) differentiated and low-passed gyroscope, base axes [rad/s^2]
    specific_force: Vector  # (3,) at the IMU origin, in base axes [m/s^2]
    covariance: Matrix  # (3, 3) of the small rotation in `R_true = exp(error) R_estimated`, world axes [rad^2]
    rate_covariance: Matrix  # (3, 3) of the angular velocity, base axes [rad^2/s^2]

    @property
    def buffer(self) -> FloatArray:
        """Array with all values of the record, for kernels: new here, the own one of a lazy record."""
        return to_buffer(self)


@dataclass(slots=True)
class ContactPhase:
    """Which feet carry load.

    Attributes
    ----------
    contact : (k,) True where the foot is in stance
    since : (k,) time since the foot last changed between stance and swing [s]
    name : ``double_support``, ``left_support``, ``right_support``, ``flight``, or joined foot names
    """

    contact: BoolArray
    since: FloatArray
    name: str


@record
class Dynamics(NamedTuple):
    """One pinocchio update, shared by all later stages.

    Everything is in base axes, seen from the translating frame in which the IMU origin is at rest: there gravity is
    minus the measured specific force, and neither attitude nor base velocity is needed. Generalised
    velocities are ``[v_base (3), omega_base (3), dq (n)]``, so ``nv = 6 + n``; for a fixed base they are ``dq`` alone.
    """

    position: Vector  # (n,) of the joints [rad or m]
    velocity: Vector  # (nv,) generalised velocity in that frame
    specific_force: Vector  # (3,) at the IMU origin, base axes [m/s^2]
    mass_matrix: Matrix  # (nv, nv) H of eq. 4
    bias: Vector  # (nv,) Coriolis, centrifugal and gravity terms b of eq. 5
    momentum_bias: Vector  # (nv,) C^T v - g, beta of Lim et al. 2024, eq. 6
    foot_jacobian: Tensor  # (k, 6, nv) velocity of each sole, in sole axes
    # (k, 6) acceleration of each sole at zero generalised acceleration, Jdot v, in sole axes
    foot_bias_acceleration: Matrix
    foot_position_in_base: Matrix  # (k, 3)
    foot_rotation_to_base: Tensor  # (k, 3, 3)

    @property
    def buffer(self) -> FloatArray:
        """Array with all values of the record, for kernels: new here, the own one of a lazy record."""
        return to_buffer(self)


@dataclass(slots=True)
class BaseState:
    """Pose and twist of ``base_link``.

    Attributes
    ----------
    position_base_in_world : (3,) [m]; the world starts under the robot, x forward, z = 0 on the ground
    rotation_base_to_world : (3, 3)
    linear_velocity : (3,) of the base origin, world axes [m/s]
    angular_velocity : (3,) base axes [rad/s]
    pose_covariance : (6, 6) position, then rotation (world axes) [m^2, rad^2]
    twist_covariance : (6, 6) linear (world axes), then angular (base axes) [m^2/s^2, rad^2/s^2]
    """

    position_base_in_world: FloatArray
    rotation_base_to_world: FloatArray
    linear_velocity: FloatArray
    angular_velocity: FloatArray
    pose_covariance: FloatArray
    twist_covariance: FloatArray

    @staticmethod
    def at_rest() -> BaseState:
        """State of a robot that is bolted to the ground: known, and at rest."""
        return BaseState(np.zeros(3), np.eye(3), np.zeros(3), np.zeros(3), np.zeros((6, 6)), np.zeros((6, 6)))


@unbuffered_record
class MeasuredFriction(NamedTuple):
    """Friction measured by an observer, without any friction law."""

    friction: Vector  # (n,) friction torque [N m]; NaN where not available
    sigma: Vector  # (n,) its standard deviation [N m]; NaN where not available
    noise_sigma: Vector  # (n,) the part of sigma that is white sensor noise and averages out over time [N m]
    available: Flags  # (n,) True where the method is defined now (FBSE: the limb is in stance)


class StateChange(NamedTuple):
    """A change in mid-run: block of the filters' states, joint or foot (-1: the robot), and size of the change.

    ``runner_up`` is the second most likely change, and by which factor; empty while this one is not sure.
    """

    kind: str
    place: int
    size: float
    runner_up: str


@dataclass(slots=True)
class SensorCalibration:
    """Constant errors of the sensors, as identified so far.

    Rows are value and standard deviation, which is NaN or infinite where nothing is known.
    """

    wrench_delay: FloatArray  # (2, k) of each foot's wrenches after the motor torques [s]
    accelerometer_bias: FloatArray  # (2, 3) of the specific force in base axes [m/s^2]
    effort_gain: FloatArray  # (2, n) relative error of the motor torques
    change: StateChange | None  # what has changed in mid-run


@dataclass(slots=True)
class LawEstimate:
    """The identified friction law of all joints; the same object until it is identified further.

    Attributes
    ----------
    parameters : (n, p) identified parameters, columns named by the joint's law, zero beyond
    parameters_sigma : (n, p) their standard deviations
    coulomb, viscous : (n,) F_c [N m] and F_v [N m s/rad] of eq. 57: the line through the law over the velocities so far
    coulomb_sigma, viscous_sigma : (n,) their standard deviations [N m], [N m s/rad]
    coulomb_viscous_covariance : (n,) covariance of the two [(N m)^2 s/rad]
    velocity_range : (n, 2) speeds between which the joint's motor spent nine tenths of its time in motion [rad/s]; NaN
        before it has moved
    known : (n,) True where the joint's motor has moved in both directions, or the law comes from an earlier run
    """

    parameters: FloatArray
    parameters_sigma: FloatArray
    coulomb: FloatArray
    viscous: FloatArray
    coulomb_sigma: FloatArray
    viscous_sigma: FloatArray
    coulomb_viscous_covariance: FloatArray
    velocity_range: FloatArray
    known: BoolArray


@dataclass(slots=True)
class JointFriction:
    """Output of the friction stage for one instant: fields as in :class:`FrictionEstimate`."""

    friction: FloatArray
    sigma: FloatArray
    measured: BoolArray
    model: FloatArray
    model_sigma: FloatArray
    external_torque: FloatArray
    external_torque_sigma: FloatArray
    nis: FloatArray
    calibration_torque: FloatArray
    disturbed: BoolArray
    law: LawEstimate


@dataclass(slots=True, kw_only=True)
class JointEstimate(JointFriction):
    """Friction of the joints in one joint-state sample: fields as in :class:`FrictionEstimate`."""

    stamp_ns: int
    velocity: FloatArray
    effort: FloatArray


@dataclass(slots=True, kw_only=True)
class FrictionEstimate(JointEstimate):
    """Output of ``Pipeline.step``, one per joint-state sample.

    Attributes
    ----------
    friction : (n,) estimated friction torque [N m]
    sigma : (n,) its standard deviation [N m]
    measured : (n,) True where measurements are behind ``friction``, False where the law alone gives it
    model : (n,) prediction of the identified law at this velocity [N m]
    model_sigma : (n,) standard deviation of that prediction [N m]
    external_torque : (n,) momentum-observer torque with friction and wrenches of the ground removed [N m]; NaN while
        unknown
    external_torque_sigma : (n,) its standard deviation [N m]; NaN while unknown
    nis : (n,) normalised innovation squared, the newest: one on average for a right model; NaN while there is none
    calibration_torque : (n,) torque that errors of model and sensors explain, as far as they are estimated [N m]
    disturbed : (n,) True while a push keeps the joint from learning
    law : the identified friction law
    stamp_ns : stamp of the joint-state sample [ns]
    velocity, effort, position : (n,) echo of the input, see :class:`JointSample` for the units
    phase : contact phase
    base : base state
    valid : (n,) False for joints whose friction should not be used now, see ``Estimator.diagnose``
    compensation : (n,) torque to add to the motor command [N m]; None while friction is not compensated
    """

    position: FloatArray
    phase: ContactPhase
    base: BaseState
    valid: BoolArray
    compensation: FloatArray | None = None


@dataclass(slots=True)
class GroundTruth:
    """Quantities that only a simulator has."""

    stamp_ns: int  # stamp of the joint sample it belongs to [ns]
    friction: FloatArray  # (n,) true friction torque [N m], same sign convention as the estimate
    position_base_in_world: FloatArray  # (3,) [m]
    rotation_base_to_world: FloatArray  # (3, 3)
    linear_velocity: FloatArray  # (3,) of the base origin, world axes [m/s]
    angular_velocity: FloatArray  # (3,) base axes [rad/s]
    wrenches: FloatArray  # (k, 6) noiseless, in and about the sole frames [N, N m]
    contact: BoolArray  # (k,) True where the foot touches the ground
    external_torque: FloatArray  # (n,) J^T F of all forces but those of the ground on the feet, joint rows [N m]
    com_in_world: FloatArray  # (3,) centre of mass [m]


class ShortRepr:
    """Base of dataclasses with large fields, whose ``repr`` has the shapes of arrays and the first letters of texts."""

    __slots__ = ()

    def __repr__(self) -> str:
        names = getattr(self, "__dataclass_fields__", ())
        shown = (f"{name}={_shortened(getattr(self, name))}" for name in names)
        return f"{type(self).__name__}({', '.join(shown)})"


def _shortened(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"<{' x '.join(map(str, value.shape))} {value.dtype}>"
    if isinstance(value, (tuple, list, dict)) and len(value) > _ITEMS:
        return f"<{len(value)} items>"
    text = repr(value)
    short = isinstance(value, ShortRepr) or len(text) <= _LETTERS
    return text if short else f"<{type(value).__name__} {text[:_LETTERS]}...>"
