"""One frame: friction of the laws, external torque, pushes, and the sample that the next window gets.

External torque: the part that neither model, foot wrenches, friction nor calibration explain, within milliseconds.

A momentum observer (Lim et al. 2024, section 3.2) on the filtered joint velocities; the expected friction passes the
same low-pass. The torque is published, and large ones are pushes, during which identification pauses.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from friction_estimator.base.contact_phase import add_collisions_of_feet
from friction_estimator.config import Config, SensorNoise
from friction_estimator.estimation.kalman.joint_friction import (
    EXTERNAL_TORQUE_GATE,
    FrameOutput,
    LawAtMotion,
    PreslidingMemory,
    Residual,
    combine_law_and_model_error,
    law_at_motion,
    ripple_wave,
)
from friction_estimator.estimation.kalman.limb_estimates import LimbEstimates
from friction_estimator.estimation.kalman.limb_state import Limb
from friction_estimator.estimation.kalman.windows import write_sample
from friction_estimator.estimation.motion.joint_motion import JointMotion
from friction_estimator.estimation.observers.momentum import (
    Inputs,
    ResidualTable,
    ResidualVariances,
    initial_residual,
    step_residual,
)
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.kernels.records import RecordTemplate, buffered, record, to_buffer, unbuffered_record
from friction_estimator.laws.joint_laws import JointLaws, LawTable
from friction_estimator.linear_algebra import DIVERGENCE_LIMIT
from friction_estimator.robot.model import RobotModel
from friction_estimator.robot.transmission import MotorTable
from friction_estimator.types import (
    BoolArray,
    Dynamics,
    Flags,
    FloatArray,
    Indices,
    IntArray,
    Matrix,
    SensorFrame,
    Vector,
)

FRICTION_RATIO, MIN_PUSH_TORQUE = 3.0, 1.0
"""A push exceeds MIN_PUSH_TORQUE [N m] plus this many times the friction: smaller torques may be errors of the law."""
MAX_PUSH_DURATION = 0.5
"""External torques that last longer are errors of the law [s]."""
PUSH_SETTLING_TIME = 0.03
"""For this long after a push the friction comes from the law alone [s]: about one time constant of the observer."""
OBSERVER_BANDWIDTHS = 40.0, 120.0
"""Bandwidths of the momentum observer [rad/s]: a push shows within 25 ms; the friction of a joint that sticks changes
from one direction to the other within 50 ms."""
_DIFFERENTIATED_PART = 0.2
"""Part of the filtered velocity's variance that passes the observer's differentiation: its errors are slow."""


@record
class DisturbanceMemory(NamedTuple):
    """State of the momentum observer and of the detection of pushes."""

    residual: Matrix  # (5, n) of step_residual
    variance: Matrix  # (2, n) of the residual behind both low-passes; NaN while unknown [(N m)^2]
    # (n,) expected torque behind the slow low-pass, NaN before the first sample, and that of the frame before,
    # unfiltered [N m]
    filtered_expected: Vector
    last_expected: Vector
    filtered: Matrix  # (2, n) external torque of the frame before, behind the slow and the fast low-pass [N m]
    # (l,) limb by limb: time since the last large torque, how long something has pushed the limb, and time since
    # that has lasted too long to be a push [s]
    since_push: Vector
    disturbed_for: Vector
    since_release: Vector


@kernel
def is_push_torque(torque: float, sigma: float, friction: float) -> bool:
    """Whether an external torque is beyond its noise and beyond the friction; never with a sigma of NaN or zero."""
    size = abs(torque)
    return (
        sigma > 0.0 and size > EXTERNAL_TORQUE_GATE * sigma and size > FRICTION_RATIO * abs(friction) + MIN_PUSH_TORQUE
    )


@kernel
def _calibrate_wrenches(wrenches: FloatArray, estimates: LimbEstimates, calibrated: FloatArray) -> None:
    """Write the wrenches (k, 6) of the ground on the feet without bias and gain errors."""
    for foot in range(len(wrenches)):
        for axis in range(6):
            reading = wrenches[foot, axis] - estimates.wrench_bias[foot, axis]
            calibrated[foot, axis] = reading * (1.0 - estimates.wrench_gain[foot, axis])


@kernel
def _with_joint_velocity(dynamics: Dynamics, velocity: FloatArray) -> Dynamics:
    """Dynamics whose momentum is that of other joint velocities (n,)."""
    v = dynamics.velocity.copy()
    v[v.size - velocity.size :] = velocity
    return Dynamics(
        dynamics.position, v, dynamics.specific_force, dynamics.mass_matrix, dynamics.bias, dynamics.momentum_bias,
        dynamics.foot_jacobian, dynamics.foot_bias_acceleration, dynamics.foot_position_in_base,
        dynamics.foot_rotation_to_base,
    )  # fmt: skip


@kernel
def step_disturbance(
    dynamics: Dynamics,
    inputs: Inputs,
    table: ResidualTable,
    velocity: FloatArray,
    estimates: LimbEstimates,
    memory: DisturbanceMemory,
    law: LawAtMotion,
    out: Residual,
) -> BoolArray:
    """Write the external torque: the expected friction behind the observer's low-pass, less the residual.

    The momentum is that of the filtered joint velocities. The fast low-pass gets the input of the slow one, which
    follows from two of its outputs.

    Parameters
    ----------
    inputs : with calibrated wrenches
    velocity : (n,) of the joints by the filter [rad/s]

    Returns
    -------
    (n,) True for joints where the torque is beyond its noise and beyond the friction
    """
    n, torque, H, dt = inputs.effort.size, out.slow, dynamics.mass_matrix, inputs.dt
    filtered, last, slow, fast = memory.filtered_expected, memory.last_expected, memory.filtered[0], memory.filtered[1]
    step_residual(_with_joint_velocity(dynamics, velocity), inputs, table, memory.residual, torque)
    decay, fast_decay, large = (
        math.exp(-OBSERVER_BANDWIDTHS[0] * dt),
        math.exp(-OBSERVER_BANDWIDTHS[1] * dt),
        np.empty(n, dtype=np.bool_),
    )
    for i in range(n):
        expected = law.torque[i] + estimates.calibration_without_wrenches[i]
        if not abs(filtered[i] + last[i]) <= DIVERGENCE_LIMIT:
            filtered[i] = expected
        elif dt > 0.0:
            filtered[i] = decay * filtered[i] + (1.0 - decay) * 0.5 * (expected + last[i])
        last[i] = expected
        torque[i] = filtered[i] - torque[i]
        variance = law.variance[i] + law.velocity_variance[i] + estimates.calibration_variance[i]
        variance += law.model_error_variance[i] + memory.variance[0, i]
        out.sigma[i] = math.sqrt(variance) if math.isfinite(torque[i]) else math.nan
        if not abs(slow[i] + fast[i]) <= DIVERGENCE_LIMIT:
            fast[i] = torque[i]
        elif dt > 0.0:
            now = (torque[i] - decay * slow[i]) / (1.0 - decay)
            fast[i] = fast_decay * fast[i] + (1.0 - fast_decay) * now
        slow[i], out.fast[i] = torque[i], fast[i]
        by_velocity = H[table.base + i, table.base + i] * law.velocity_std[i]
        out.slow_noise[i] = memory.variance[0, i] + (OBSERVER_BANDWIDTHS[0] * by_velocity) ** 2
        out.fast_noise[i] = memory.variance[1, i] + (OBSERVER_BANDWIDTHS[1] * by_velocity) ** 2
        large[i] = is_push_torque(torque[i], out.sigma[i], max(abs(law.torque[i]), law.stick_friction[i]))
    return large


@kernel
def detect_pushes(
    large: BoolArray, limb_of_joint: IntArray, dt: float, memory: DisturbanceMemory, disturbed: BoolArray
) -> int:
    """Detect pushes limb by limb; return the limbs whose push has lasted for ``MAX_PUSH_DURATION``, as bits.

    Such a torque is an error of the law. For as long again after that, no torque counts as a push.

    Parameters
    ----------
    large : (n,) joints with a large external torque
    limb_of_joint : (n,) number of each joint's limb
    disturbed : (n,) output: True while the limb of a joint is pushed, and a little longer
    """
    expired = 0
    for limb in range(memory.since_push.size):
        any_large = False
        for joint in range(large.size):
            any_large = any_large or (large[joint] and limb_of_joint[joint] == limb)
        memory.since_release[limb] += dt
        now = any_large and memory.since_release[limb] > MAX_PUSH_DURATION
        memory.since_push[limb] = 0.0 if now else memory.since_push[limb] + dt
        if memory.since_push[limb] >= PUSH_SETTLING_TIME:
            memory.disturbed_for[limb] = 0.0
        else:
            memory.disturbed_for[limb] += dt
            if memory.disturbed_for[limb] >= MAX_PUSH_DURATION:
                memory.since_push[limb], memory.since_release[limb] = math.inf, 0.0
                expired |= 1 << limb
    for joint in range(large.size):
        disturbed[joint] = memory.since_push[limb_of_joint[joint]] < PUSH_SETTLING_TIME
    return expired


@record
class FrameMemory(NamedTuple):
    """State carried from one frame to the next; ``collisions``: low-passed torque (n,) of hits on the feet [N m]."""

    law: PreslidingMemory
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
    unmodelled: Vector  # (n,) variance of the torque that no term represents [(N m)^2]
    angular_acceleration: Vector  # (3,) of the base, base axes [rad/s^2]
    oldest: float  # time before which a window is too old for its model error to be used [s]


@entry_point
def evaluate_frame(
    robot: RobotTable,
    laws: LawTable,
    estimates: LimbEstimates,
    dynamics: Dynamics,
    motion: JointMotion,
    inputs: Inputs,
    settings: FrameContext,
    memory: FrameMemory,
    out: FrameOutput,
    sample: Vector,
) -> tuple[float, int]:
    """Friction, external torque and pushes of one frame, and its row of the buffer of windows.

    Returns
    -------
    Largest variance that the friction of the instant may correct [(N m)^2], NaN where a result is not finite; and the
    limbs whose push has lasted too long to be one, as bits
    """
    law, velocity = out.law, motion.velocity
    wave = ripple_wave(robot.motors, dynamics.position, settings.ripples)
    law_at_motion(laws, robot.motors, estimates, motion, inputs.effort, inputs.dt, wave, memory.law, law)
    _calibrate_wrenches(inputs.wrenches, estimates, out.wrenches)
    calibrated = Inputs(inputs.effort, out.wrenches, inputs.imu_fresh, inputs.wrench_fresh, inputs.dt)
    large = step_disturbance(
        dynamics, calibrated, robot.residual, velocity, estimates, memory.disturbance, law, out.residual
    )
    expired = detect_pushes(large, robot.limb_of_joint, inputs.dt, memory.disturbance, out.disturbed)
    for joint in range(velocity.size):
        out.measured[joint] = estimates.measured_at[joint] > settings.oldest and not out.disturbed[joint]
    largest = combine_law_and_model_error(velocity, settings.unmodelled, out)
    write_sample(
        sample, dynamics, motion, inputs, settings.angular_acceleration, out.disturbed, law.regressor_variance,
        law.regressor,
    )  # fmt: skip
    add_collisions_of_feet(
        dynamics.foot_jacobian, out.wrenches, settings.contact, math.exp(-OBSERVER_BANDWIDTHS[1] * inputs.dt),
        memory.collisions, out.external_torque, out.external_torque_sigma,
    )  # fmt: skip
    return largest, expired


class FrameEvaluation:
    """Evaluates the frames of a robot.

    Parameters
    ----------
    config : ``momentum.input_hold``, ``sensors``
    robot : the model that also made the :class:`Dynamics`
    limbs : joints that are judged together

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
        velocity = self.memory.law.velocity
        none = np.zeros((velocity.size, 0))
        self._buffer, self.memory = buffered(self.memory._replace(law=PreslidingMemory(velocity, none, none)))

    def step(
        self,
        frame: SensorFrame,
        dynamics: Dynamics,
        motion: JointMotion,
        laws: JointLaws,
        estimated: FloatArray,
        settings: FrameContext,
        sample: FloatArray,
    ) -> tuple[float, int]:
        """Use one frame; ``newest`` has all results but those of :func:`evaluate_frame`, which are returned.

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
        result: tuple[float, int] = evaluate_frame(
            self._table, laws.table_buffer, estimated, dynamics.buffer, motion.buffer, frame.effort,
            frame.wrenches, frame.imu_fresh, frame.wrench_fresh, frame.dt, *settings, self._buffer, out.buffer, sample,
        )  # fmt: skip
        return result
