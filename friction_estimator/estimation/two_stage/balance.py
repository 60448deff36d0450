"""Records of a frame, and the balance of momentum since the frame before, motor by motor.

y = tau + C^T v - g + J^T F - dp/dt        friction, errors of model and sensors, and noise [N m]
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from friction_estimator.estimation.motion.joint_motion import JointMotion
from friction_estimator.kernels.compiler import kernel
from friction_estimator.kernels.records import RecordTemplate, buffered_zeros, record, unbuffered_record, zeros
from friction_estimator.robot.transmission import MotorTable
from friction_estimator.types import Dynamics, FlagMatrix, Flags, FloatArray, Indices, Matrix, Tensor, Vector


@record
class RobotMaps(NamedTuple):
    """Constants of the robot, of n joints in l limbs with k feet."""

    motors: MotorTable
    couples: bool  # True where motors move several joints
    limb: FlagMatrix  # (k, n) True where a joint carries that foot
    limb_of_joint: Indices  # (n,)
    imu_lever: Matrix  # (3, 3) of the cross product with the position of the IMU
    base: int  # degrees of freedom of the base
    held: bool  # True where torque, wrench and specific force act until the next sample


@record
class Learned(NamedTuple):
    """What the second stage has found, as every frame uses it; motor by motor where nothing else is written."""

    window: float  # length of a window [s]
    # noise of the foot sensors [N], [N m]
    force_std: float
    moment_std: float
    law: Matrix  # (n, p)
    law_covariance: Tensor  # (n, p, p)
    # constant friction, the part of the constant torque that motors of this robot show as one-sided friction
    one_sided: Vector
    one_sided_variance: Vector
    dry: Vector  # (n,) largest friction that may hold a motor at rest [N m]
    law_error_std: Vector  # (n,) [N m]
    white_std: Vector  # (n,) of the balance over a window [N m]
    # errors of the sensors: relative, [N m] (n,); [m/s^2] (n, 3) of the joint's limb; (k, 6)
    effort_gain: Vector
    effort_offset: Vector
    accelerometer: Matrix
    wrench_bias: Matrix
    wrench_gain: Matrix
    delay_torque: Vector  # (n,) torque by delays in the newest window [N m]


@record
class FastMemory(NamedTuple):
    """State carried from one frame to the next."""

    # (n, s) Dahl strains of the motors, and how much of them is still that of the start
    strain: Matrix
    initial_strain: Matrix
    # (n,) of the frame before, motor by motor: momentum (NaN where a sensor was silent), torques that are held until
    # the next sample, smooth ones, torque of errors, and law
    momentum: Vector
    held: Vector
    smooth: Vector
    errors: Vector
    law: Vector
    impulse: Vector  # (n,) that the fast filter has not explained yet [N m s]
    state: Matrix  # (n, 2) x_1, x_2
    covariance: Tensor  # (n, 3, 3) of the impulse's error, x_1, x_2
    external: Vector  # (n,) low-passed torque that nothing explains [N m]
    # (l,) limb by limb: time since the last large torque, how long something pushes, time since it was too long [s]
    since_push: Vector
    pushed_for: Vector
    since_release: Vector
    collisions: Vector  # (n,) low-passed torque of hits on the feet


@record
class WindowSums(NamedTuple):
    """Integrals over the window so far."""

    duration: Vector  # (1,) [s]
    # integrals (n,), (n,), (k, 6), (n, p), (n,), (n,)
    balance: Vector
    effort: Vector
    wrenches: Matrix
    regressor: Matrix
    law_variance: Vector
    velocity: Vector
    # readings at the beginning and at the newest frame
    first_effort: Vector
    last_effort: Vector
    first_wrenches: Matrix
    last_wrenches: Matrix
    last_step: Matrix  # (k, 6) step of the wrenches to the newest frame
    roughness: Matrix  # (k, 6) largest second difference
    normal_force: Matrix  # (2, k) smallest and largest one of the feet [N]
    wrench_fresh: Flags  # (k,) False where a foot sensor was silent
    reading_counts: Vector  # (1 + k,) number of readings of the IMU and of the feet
    unknown: Flags  # (l,) a sensor was silent, or something pushed


@record
class FrameResult(NamedTuple):
    """Results of one frame."""

    friction: Vector
    sigma: Vector
    model: Vector
    model_sigma: Vector
    external_torque: Vector
    external_torque_sigma: Vector
    errors: Vector  # (n,) torque that errors of sensors explain [N m]
    sign_variance: Vector  # (n,) of the friction, as far as it comes from a velocity of unknown sign [(N m)^2]
    momentum_variance: Vector  # (n,) motor by motor
    velocity: Vector  # (n,) of the motors
    velocity_std: Vector
    measured: Flags
    disturbed: Flags
    regressor: Matrix  # (n, p)
    wrenches: Matrix  # (k, 6) without the errors of their sensors


@unbuffered_record
class FrameReadings(NamedTuple):
    """Readings of one frame, see SensorFrame."""

    effort: Vector
    wrenches: Matrix
    imu_fresh: bool
    wrench_fresh: Flags
    readings_per_sample: Vector
    dt: float


def empty_records(joints: int, feet: int, parameters: int, distances: int, limbs: int) -> tuple[Any, ...]:
    """Make what frames read and write: a template of results; buffer and record of Learned, FastMemory, WindowSums.

    Parameters
    ----------
    parameters, distances : of the law of a motor, and of presliding
    """
    n, k, p, s = joints, feet, parameters, distances
    template = RecordTemplate(
        zeros(
            FrameResult, friction=n, sigma=n, model=n, model_sigma=n, external_torque=n, external_torque_sigma=n,
            errors=n, sign_variance=n, momentum_variance=n, velocity=n, velocity_std=n, measured=n, disturbed=n,
            regressor=(n, p), wrenches=(k, 6),
        )
    )  # fmt: skip
    learned = buffered_zeros(
        Learned, law=(n, p), law_covariance=(n, p, p), one_sided=n, one_sided_variance=n, dry=n, law_error_std=n,
        white_std=n, effort_gain=n, effort_offset=n, accelerometer=(n, 3), wrench_bias=(k, 6), wrench_gain=(k, 6),
        delay_torque=n,
    )  # fmt: skip
    memory = buffered_zeros(
        FastMemory, strain=(n, s), initial_strain=(n, s), momentum=n, held=n, smooth=n, errors=n, law=n, impulse=n,
        state=(n, 2), covariance=(n, 3, 3), external=n, since_push=limbs, pushed_for=limbs, since_release=limbs,
        collisions=n,
    )  # fmt: skip
    sums = buffered_zeros(
        WindowSums, duration=1, balance=n, effort=n, wrenches=(k, 6), regressor=(n, p), law_variance=n, velocity=n,
        first_effort=n, last_effort=n, first_wrenches=(k, 6), last_wrenches=(k, 6), last_step=(k, 6),
        roughness=(k, 6), normal_force=(2, k), wrench_fresh=k, reading_counts=1 + k, unknown=limbs,
    )  # fmt: skip
    return template, learned, memory, sums


@kernel
def torques_of_motors(robot: RobotMaps, joints: FloatArray, squared: bool, out: FloatArray) -> None:
    """Torques of motors from those of joints; of independent ones, ``squared``, the variances."""
    n = joints.size
    if not robot.couples:
        out[:] = joints
        return
    for motor in range(n):
        out[motor] = 0.0
        for joint in range(n):
            share = robot.motors.matrix[joint, motor]
            out[motor] += joints[joint] * (share * share if squared else share)


@kernel
def torques_of_joints(robot: RobotMaps, motors: FloatArray, squared: bool, out: FloatArray) -> None:
    """Torques of joints from those of motors; of independent ones, ``squared``, the variances."""
    n = motors.size
    if not robot.couples:
        out[:] = motors
        return
    for joint in range(n):
        out[joint] = 0.0
        for motor in range(n):
            share = robot.motors.to_joints[joint, motor]
            out[joint] += motors[motor] * (share * share if squared else share)


@kernel
def motion_of_motors(robot: RobotMaps, motion: JointMotion, out: FrameResult) -> None:
    """Write the velocities of the motors (n,), and their standard deviations."""
    n = motion.velocity.size
    for motor in range(n):
        if robot.couples:
            speed, variance = 0.0, 0.0
            for joint in range(n):
                share = robot.motors.to_joints[joint, motor]
                speed += motion.velocity[joint] * share
                variance += (motion.velocity_std[joint] * share) ** 2
            out.velocity[motor], out.velocity_std[motor] = speed, math.sqrt(variance)
        else:
            out.velocity[motor], out.velocity_std[motor] = motion.velocity[motor], motion.velocity_std[motor]


@kernel
def balance_of_frame(
    robot: RobotMaps,
    learned: Learned,
    dynamics: Dynamics,
    motion: JointMotion,
    inputs: FrameReadings,
    rotation: JointMotion,
    memory: FastMemory,
    known: FloatArray,
    balance: FloatArray,
    out: FrameResult,
) -> None:
    """Write the torque balance (n,) of the motors since the frame before; ``known`` is zero where it has none.

    Errors of the sensors are part of it, and written to ``out.errors``. The momentum is that of the filtered velocities
    of joints and base: noise of the gyroscope, which all joints of a limb share, would pass for friction of them all.
    """
    H, beta, f, J = dynamics.mass_matrix, dynamics.momentum_bias, dynamics.specific_force, dynamics.foot_jacobian
    n, base, k, dt = inputs.effort.size, robot.base, len(dynamics.foot_jacobian), inputs.dt
    work = np.empty((5, n))  # momentum, held, smooth, errors, variance of the momentum, joint by joint
    mapped = np.empty((5, n))
    for foot in range(k):
        for axis in range(6):
            reading = inputs.wrenches[foot, axis]
            error = learned.wrench_bias[foot, axis] + learned.wrench_gain[foot, axis] * reading
            out.wrenches[foot, axis] = reading - error
    for i in range(n):
        row = base + i
        momentum, variance, gravity, torque, errors = 0.0, 0.0, 0.0, 0.0, 0.0
        known[i] = 1.0 if inputs.imu_fresh else 0.0
        for j in range(base):
            momentum += H[row, j] * dynamics.velocity[j]
        for j in range(n):
            momentum += H[row, base + j] * motion.velocity[j]
            variance += (H[row, base + j] * motion.velocity_std[j]) ** 2
        if base:
            for axis in range(3):
                gravity += H[row, axis] * f[axis]
                errors -= H[row, axis] * learned.accelerometer[i, axis]
                lever = H[row, 3 + axis]
                for other in range(3):
                    lever += H[row, other] * robot.imu_lever[other, axis]
                momentum += lever * (rotation.velocity[axis] - dynamics.velocity[3 + axis])
                variance += (lever * rotation.velocity_std[axis]) ** 2
        for foot in range(k):
            if robot.limb[foot, i]:
                if not inputs.wrench_fresh[foot]:
                    known[i] = 0.0
                for axis in range(6):
                    lever = J[foot, axis, row]
                    torque += lever * inputs.wrenches[foot, axis]
                    errors += lever * (inputs.wrenches[foot, axis] - out.wrenches[foot, axis])
        errors += learned.effort_gain[i] * inputs.effort[i] + learned.delay_torque[i]
        work[0, i], work[1, i], work[2, i] = momentum, inputs.effort[i] + torque - gravity, beta[row] + gravity
        work[3, i], work[4, i] = errors, variance
    for row in range(5):
        torques_of_motors(robot, work[row], row == 4, mapped[row])
    out.momentum_variance[:] = mapped[4]
    for i in range(n):
        momentum, held, smooth = mapped[0, i], mapped[1, i], mapped[2, i]
        errors = mapped[3, i] + learned.effort_offset[i]
        start, before = memory.held[i], memory.errors[i]
        if not robot.held:
            start, before = 0.5 * (start + held), 0.5 * (before + errors)
        if dt > 0.0 and known[i] > 0.0 and not math.isnan(memory.momentum[i]):
            balance[i] = start + 0.5 * (memory.smooth[i] + smooth) - (momentum - memory.momentum[i]) / dt
            out.errors[i] = before
        else:
            balance[i], out.errors[i] = 0.0, errors
        if known[i] == 0.0:
            momentum = math.nan
        elif dt == 0.0 or math.isnan(memory.momentum[i]):
            known[i] = 0.0
        memory.momentum[i], memory.held[i], memory.smooth[i], memory.errors[i] = momentum, held, smooth, errors
