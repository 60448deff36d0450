"""One frame: friction of the laws and their law error, external torque, and the sample that the next window gets."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from friction_estimator.base.contact_phase import add_collisions_of_feet
from friction_estimator.config import Config, SensorNoise
from friction_estimator.estimation.kalman.disturbance import (
    EXTERNAL_TORQUE_GATE,
    OBSERVER_BANDWIDTHS,
    DisturbanceMemory,
    ExternalTorque,
    detect_pushes,
    step_disturbance,
)
from friction_estimator.estimation.kalman.law_at_motion import (
    LawAtMotion,
    PreslidingMemory,
    law_at_motion,
    ripple_wave,
)
from friction_estimator.estimation.kalman.limb_estimates import LimbEstimates
from friction_estimator.estimation.kalman.limb_state import Limb
from friction_estimator.estimation.kalman.windows import write_sample
from friction_estimator.estimation.motion.joint_motion import JointMotion
from friction_estimator.estimation.observers.momentum import (
    ObserverInputs,
    ResidualTable,
    ResidualVariances,
    initial_residual,
)
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.kernels.records import RecordTemplate, buffered, record, to_buffer, unbuffered_record
from friction_estimator.laws.joint_laws import JointLaws, LawTable
from friction_estimator.linear_algebra import DIVERGENCE_LIMIT, is_bounded
from friction_estimator.robot.model import RobotModel
from friction_estimator.robot.transmission import MotorTable
from friction_estimator.types import (
    Dynamics,
    Flags,
    FloatArray,
    Indices,
    Matrix,
    SensorFrame,
    Vector,
)

_DIFFERENTIATED_PART = 0.2
"""Part of the filtered velocity's variance that passes the observer's differentiation: its errors are slow."""


@record
class FrameMemory(NamedTuple):
    """State carried from one frame to the next; ``collisions``: low-passed torque (n,) of hits on the feet [N m]."""

    presliding: PreslidingMemory
    disturbance: DisturbanceMemory
    collisions: Vector


@record
class RobotTable(NamedTuple):
    """Constants of the robot."""

    motors: MotorTable  # maps between motors and joints
    residual: ResidualTable  # of the momentum observer
    limb_of_joint: Indices  # (n,) number of each joint's limb


@unbuffered_record
class FrameContext(NamedTuple):
    """Inputs of the evaluation of a frame besides readings and state."""

    contact: Flags  # (k,) feet in stance
    ripples: Vector  # (n,) periods of the motors' friction in a turn; (0,) without ripple
    unmodelled_variance: Vector  # (n,) of the torque that no term represents [(N m)^2]
    angular_acceleration: Vector  # (3,) of the base, base axes [rad/s^2]
    oldest_window_time: float  # windows that end before are too old for their law error to be used [s]


@record
class FrameOutput(NamedTuple):
    """Results of one frame, of n joints, k feet and p parameters of a law."""

    # (n,) see JointFriction [N m]
    friction: Vector
    sigma: Vector
    model: Vector
    model_sigma: Vector
    external_torque: Vector
    external_torque_sigma: Vector
    measured: Flags  # (n,) True where measurements are behind the friction
    disturbed: Flags  # (n,) True while the limb of a joint is pushed, and a little longer
    law_error: Vector  # (n,) part of the friction; zero while nothing is measured [N m]
    variance_without_velocity: Vector  # (n,) of the friction without that of the uncertain velocity [(N m)^2]
    correctable_variance: Vector  # (n,) that the friction of the instant may correct, else zero [(N m)^2]
    law: LawAtMotion
    external: ExternalTorque
    wrenches: Matrix  # (k, 6) of the ground on the feet, calibrated [N, N m]

    @staticmethod
    def zeros(joints: int, feet: int, parameters: int) -> FrameOutput:
        """Record of zeros before a frame is evaluated."""
        torques, parts, flags = np.zeros((6, joints)), np.zeros((3, joints)), np.zeros((2, joints), dtype=bool)
        law, external = LawAtMotion.zeros(joints, parameters), ExternalTorque.zeros(joints)
        values: list[Any] = [*torques, *flags, *parts, law, external, np.zeros((feet, 6))]
        return FrameOutput(*values)


@kernel
def _calibrate_wrenches(wrenches: FloatArray, estimates: LimbEstimates, calibrated: FloatArray) -> None:
    """Write the wrenches (k, 6) of the ground on the feet without bias and gain errors."""
    for foot in range(len(wrenches)):
        for axis in range(6):
            reading = wrenches[foot, axis] - estimates.calibration.wrench_bias[foot, axis]
            calibrated[foot, axis] = reading * (1.0 - estimates.calibration.wrench_gain[foot, axis])


@kernel
def _possible_friction(external: float, velocity: float, std: float, law_torque: float, stick_friction: float) -> float:
    """Largest part of an external torque that may be friction instead: all that brakes the joint, or holds it.

    What drives the joint may replace the friction of the law, because friction takes energy.
    """
    if external * velocity < 0.0 or abs(velocity) < std:
        return abs(external)
    return min(abs(external), abs(law_torque) + stick_friction)


@kernel
def _combine_external_torque(joint: int, law_error: float, out: FrameOutput) -> None:
    """Write the external torque of a joint, of which the law error takes up a part, and its sigma.

    A push that is smaller than the friction is not detected. Sigma therefore holds a law error that is larger than its
    standard deviation. It also holds what the slow low-pass has not shown yet: the difference of the two low-passes
    beyond the noise of the readings.
    """
    observed, variance = out.external, out.external.sigma[joint] ** 2
    absorbed_variance = law_error * law_error - out.law.law_error_variance[joint]
    lag_variance = (observed.fast[joint] - observed.slow[joint]) ** 2 - observed.fast_noise[joint]
    if absorbed_variance > 0.0:
        variance += absorbed_variance
    if lag_variance > 0.0:
        variance += lag_variance
    out.external_torque[joint], out.external_torque_sigma[joint] = observed.slow[joint] + law_error, math.sqrt(variance)


@kernel
def _unexplained_variance(joint: int, velocity: float, torque: float, out: FrameOutput) -> float:
    """Square of the external torque beyond its noise that may be friction which the law does not explain [(N m)^2].

    Until a window has decided, it is in the variance of the friction, whatever its reason.
    """
    external, law = out.external_torque[joint], out.law
    noise = 0.0 if out.disturbed[joint] else EXTERNAL_TORQUE_GATE * out.external.sigma[joint]
    if not noise < abs(external) <= DIVERGENCE_LIMIT:
        return 0.0
    possible = _possible_friction(external, velocity, law.velocity_std[joint], torque, law.stick_friction[joint])
    return max(possible**2 - noise**2, 0.0)


@kernel
def combine_law_and_law_error(velocity: FloatArray, unmodelled_variance: FloatArray, out: FrameOutput) -> float:
    """Law plus law error, or the law alone while nothing can be measured.

    Parameters
    ----------
    velocity : (n,) of the joints [rad/s]
    unmodelled_variance : (n,) of the torque that neither law nor calibration represents [(N m)^2]
    out : with ``measured``, ``disturbed``, ``law`` and ``external``

    Returns
    -------
    Largest variance that may be corrected [(N m)^2]; NaN where the friction or a standard deviation is not finite
    """
    largest, law, measured = 0.0, out.law, out.measured
    for i in range(velocity.size):
        torque = law.torque[i] + law.asymmetric_friction[i]
        extra_variance = unmodelled_variance[i] + law.asymmetric_friction_variance[i]
        law_error = law.law_error[i] if measured[i] else 0.0
        _combine_external_torque(i, law_error, out)
        law_only_variance = law.variance[i] + law.law_error_variance[i] + extra_variance
        variance = law.friction_variance[i] + extra_variance if measured[i] else law_only_variance
        variance += _unexplained_variance(i, velocity[i], torque, out)
        out.model[i], out.friction[i], out.law_error[i] = torque, torque + law_error, law_error
        out.sigma[i] = math.sqrt(variance + law.velocity_variance[i])
        out.model_sigma[i] = math.sqrt(law_only_variance + law.velocity_variance[i])
        out.correctable_variance[i] = 0.0
        if measured[i]:
            stick_variance = min(law.stick_variance[i], law.friction_variance[i])
            variance -= stick_variance
            out.correctable_variance[i] = law.velocity_variance[i] + stick_variance
            largest = max(largest, out.correctable_variance[i])
        out.variance_without_velocity[i] = variance
    return largest if is_bounded(out.friction) and is_bounded(out.sigma) and is_bounded(out.model_sigma) else math.nan


@entry_point
def evaluate_frame(
    robot: RobotTable,
    laws: LawTable,
    estimates: LimbEstimates,
    dynamics: Dynamics,
    motion: JointMotion,
    inputs: ObserverInputs,
    context: FrameContext,
    memory: FrameMemory,
    out: FrameOutput,
    sample: Vector,
) -> tuple[float, int]:
    """Friction, external torque and pushes of one frame, and its row of the buffer of windows.

    Parameters
    ----------
    robot, laws : constants of robot and laws
    estimates : of the newest window that all limbs have used
    dynamics, motion, inputs, context : of the frame
    memory : what the frame before has left, changed in place
    out, sample : output; all fields of ``out`` are zero before

    Returns
    -------
    Largest variance that the friction of the instant may correct [(N m)^2], NaN where a result is not finite; and the
    limbs whose push has lasted too long to be one, as bits
    """
    law, velocity = out.law, motion.velocity
    wave = ripple_wave(robot.motors, dynamics.position, context.ripples)
    law_at_motion(laws, robot.motors, estimates, motion, inputs.effort, inputs.dt, wave, memory.presliding, law)
    _calibrate_wrenches(inputs.wrenches, estimates, out.wrenches)
    calibrated = ObserverInputs(inputs.effort, out.wrenches, inputs.imu_fresh, inputs.wrench_fresh, inputs.dt)
    large = step_disturbance(
        dynamics, calibrated, robot.residual, velocity, estimates, memory.disturbance, law, out.external
    )
    expired = detect_pushes(large, robot.limb_of_joint, inputs.dt, memory.disturbance, out.disturbed)
    for joint in range(velocity.size):
        out.measured[joint] = estimates.measured_at[joint] > context.oldest_window_time and not out.disturbed[joint]
    largest = combine_law_and_law_error(velocity, context.unmodelled_variance, out)
    if not is_bounded(estimates.calibration.torque):
        largest = math.nan
    write_sample(
        sample, dynamics, motion, inputs, context.angular_acceleration, out.disturbed, law.motor_friction_variance,
        law.regressor,
    )  # fmt: skip
    add_collisions_of_feet(
        dynamics.foot_jacobian, out.wrenches, context.contact, math.exp(-OBSERVER_BANDWIDTHS[1] * inputs.dt),
        memory.collisions, out.external_torque, out.external_torque_sigma,
    )  # fmt: skip
    return largest, expired


class FrameEvaluation:
    """Evaluates the frames of a robot.

    Parameters
    ----------
    config : ``momentum.input_hold``, ``sensors``
    robot : the model that also made the :class:`Dynamics`
    limbs : groups of joints whose pushes are detected together

    Attributes
    ----------
    memory : what one frame leaves to the next
    newest : output of the newest frame
    """

    def __init__(self, config: Config, robot: RobotModel, limbs: tuple[Limb, ...]) -> None:
        n, count = len(robot.joint_names), len(limbs)
        limb_of_joint = np.zeros(n, dtype=np.int64)
        for number, limb in enumerate(limbs):
            limb_of_joint[limb.joints] = number
        self._limbs_in_contact = np.unique(limb_of_joint[robot.in_unmeasured_contact])
        residual = ResidualTable(robot.limb, OBSERVER_BANDWIDTHS[0], config.momentum.inputs_are_held, robot.base_dofs)
        self._table = to_buffer(RobotTable(robot.motors.table, residual, limb_of_joint))
        self._variances = ResidualVariances(config.sensors, OBSERVER_BANDWIDTHS, robot)
        self._shape = count, n
        self._laws: JointLaws | None = None
        self.newest: Any = None
        self.reset(0)

    def retune(self, noise: SensorNoise) -> None:
        """Use the standard deviations of this noise from now on."""
        self._variances.retune(noise)

    def reset(self, distances: int) -> None:
        """Restart, with this number of presliding distances."""
        count, n = self._shape
        unknown, pairs, pushes = np.full(n, np.nan), np.full((2, n), np.nan), np.zeros(count)
        disturbance = DisturbanceMemory(initial_residual(n), pairs, unknown, unknown, pairs, pushes, pushes, pushes)
        self._buffer, self.memory = buffered(FrameMemory(PreslidingMemory.initial(n, distances), disturbance, unknown))
        self._variances.reset()
        self.reset_pushes()

    def reset_pushes(self) -> None:
        """Reset the detection of pushes; limbs with unmeasured contacts count as pushed at all times."""
        memory, limbs = self.memory.disturbance, self._limbs_in_contact
        memory.since_push[:] = memory.since_release[:] = math.inf
        memory.disturbed_for[:] = 0.0
        memory.since_push[limbs] = memory.since_release[limbs] = memory.disturbed_for[limbs] = -math.inf

    def drop_presliding(self) -> None:
        """Drop the strains of presliding."""
        velocity = self.memory.presliding.velocity
        none = np.zeros((velocity.size, 0))
        self._buffer, self.memory = buffered(self.memory._replace(presliding=PreslidingMemory(velocity, none, none)))

    def step(
        self,
        frame: SensorFrame,
        dynamics: Dynamics,
        motion: JointMotion,
        laws: JointLaws,
        estimated: FloatArray,
        context: FrameContext,
        sample: FloatArray,
    ) -> tuple[float, int]:
        """Evaluate one frame: results are in ``newest``, and returned is what :func:`evaluate_frame` returns.

        Parameters
        ----------
        laws : of the motors
        estimated : buffer of :class:`LimbEstimates`
        sample : row of the buffer of windows, written here
        """
        if self._variances.due(frame.dt):
            self._variances.compute(frame, dynamics, _DIFFERENTIATED_PART * float((motion.velocity_std**2).mean()))
            self.memory.disturbance.variance[:] = self._variances.white
        if laws is not self._laws:
            self._laws = laws
            shape = frame.position.size, len(frame.wrenches), laws.parameter_count
            self._template = RecordTemplate(FrameOutput.zeros(*shape))
        self.newest = out = self._template.new()
        # Records go over as their buffers, ObserverInputs (effort to dt) and FrameContext field by field
        result: tuple[float, int] = evaluate_frame(
            self._table, laws.table_buffer, estimated, dynamics.buffer, motion.buffer, frame.effort,
            frame.wrenches, frame.imu_fresh, frame.wrench_fresh, frame.dt, *context, self._buffer, out.buffer, sample,
        )  # fmt: skip
        return result
