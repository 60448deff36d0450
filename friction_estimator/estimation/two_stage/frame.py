"""One frame: balance of momentum, friction of the laws at the motion, and the fast filter of every motor.

    balance    y = tau + C^T v - g + J^T F - dp/dt          over the time since the frame before, motor by motor [N m]
    law        phi(dq, tau) theta                           mean over the uncertain velocity
    fast       y - errors - law = s_x x_1 + s_r x_2 + noise, behind the noise of the momentum
    friction   law + one-sided part + s_x x_1 + s_r x_2

``x_1`` is the error of the law, which lasts for 0.2 s, and ``x_2`` the friction of a motor that rests, or whose
velocity has an uncertain sign: both have unit variance before the measurement (Friedland 1969 for the two stages).
"""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.estimation.motion.joint_motion import JointMotion
from friction_estimator.estimation.two_stage.balance import (
    FastMemory,
    FrameReadings,
    FrameResult,
    Learned,
    RobotMaps,
    WindowSums,
    balance_of_frame,
    motion_of_motors,
    torques_of_joints,
    torques_of_motors,
)
from friction_estimator.estimation.two_stage.terms import stick_probability
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.laws.joint_laws import LawTable, MeanFriction, advance_strain, expected_friction
from friction_estimator.linear_algebra import is_bounded
from friction_estimator.types import Dynamics, Flags, FloatArray, MeasuredFriction, Vector

LAW_ERROR_TIME, REST_TIME = 0.2, 0.02
"""Correlation times of the error of the law, and of the friction at rest or of uncertain sign [s]."""
_REST_STD = 0.8
"""Standard deviation of the friction at rest, over its root mean square if it may be anything within the law."""
_FAST_NOISE = 1.5
"""Noise of the fast balance over that which the windows show: errors of some milliseconds average out in these."""
_HUBER = 9.0
"""Squared innovation, over its variance, above which it counts less: impacts."""
EXTERNAL_BANDWIDTH = 40.0
"""Bandwidth of the momentum observer of the external torque [rad/s]: a push shows within 25 ms."""
_GATE_SIGMAS, _GATE_FRICTION, _GATE_TORQUE = 5.0, 3.0, 1.0
"""A push is beyond this many standard deviations, and beyond this many times the friction plus this torque [N m]."""
_MAX_MEASURED, _MEASURED_SIGMAS = 1.5, 3.0
"""A friction of the instant above this multiple of the largest friction by the law, and this many of its standard
deviations more, is an error of a foot that slips or tilts: the method assumes that it does not accelerate."""
MAX_PUSH_DURATION, _SETTLING_TIME = 0.5, 0.03
"""External torques that last longer are errors of the law; for so long after a push nothing is learned [s]."""


@kernel
def _law_at_motion(
    robot: RobotMaps,
    laws: LawTable,
    learned: Learned,
    inputs: FrameReadings,
    wave: FloatArray,
    memory: FastMemory,
    out: FrameResult,
    torque: FloatArray,
    variance: FloatArray,
) -> None:
    """Write regressor, friction (n,) and its variance (n,) from the uncertain velocity, motor by motor."""
    n = inputs.effort.size
    load = np.empty(n)
    torques_of_motors(robot, inputs.effort, False, load)
    for motor in range(n):
        advance_strain(memory.strain[motor], memory.initial_strain[motor], out.velocity[motor] * inputs.dt)
    mean = MeanFriction(out.regressor, torque, variance)
    expected_friction(laws, learned.law, out.velocity, load, out.velocity_std, memory.strain, wave, mean)


@kernel
def _step_fast_filter(
    motor: int,
    law_std: float,
    rest_std: float,
    residual: float,
    momentum_variance: float,
    known: bool,
    dt: float,
    learned: Learned,
    memory: FastMemory,
) -> None:
    """Predict and correct impulse, law error and friction at rest of one motor."""
    x, P = memory.state[motor], memory.covariance[motor]
    keep_law, keep_rest = math.exp(-dt / LAW_ERROR_TIME), math.exp(-dt / REST_TIME)
    a, b = dt * law_std, dt * rest_std
    # P = A P A^T + Q with A = [[1, a, b], [0, keep_law, 0], [0, 0, keep_rest]]
    p00, p01, p02, p11, p12, p22 = P[0, 0], P[0, 1], P[0, 2], P[1, 1], P[1, 2], P[2, 2]
    q00 = p00 + 2.0 * (a * p01 + b * p02) + a * a * p11 + 2.0 * a * b * p12 + b * b * p22
    q01 = keep_law * (p01 + a * p11 + b * p12)
    q02 = keep_rest * (p02 + a * p12 + b * p22)
    p11 = keep_law * keep_law * p11 + 1.0 - keep_law * keep_law
    p12 = keep_law * keep_rest * p12
    p22 = keep_rest * keep_rest * p22 + 1.0 - keep_rest * keep_rest
    predicted = a * x[0] + b * x[1]
    x[0] *= keep_law
    x[1] *= keep_rest
    if known:
        q00 += dt * learned.window * (_FAST_NOISE * learned.white_std[motor]) ** 2
        memory.impulse[motor] += dt * residual - predicted
        e, S = memory.impulse[motor], q00 + momentum_variance
        S *= max(e * e / (_HUBER * S), 1.0)
        k0, k1, k2 = q00 / S, q01 / S, q02 / S
        x[0] += k1 * e
        x[1] += k2 * e
        memory.impulse[motor] -= k0 * e
        p11, p12, p22 = p11 - k1 * q01, p12 - k1 * q02, p22 - k2 * q02
        q00, q01, q02 = q00 * (1.0 - k0), q01 * (1.0 - k0), q02 * (1.0 - k0)
    else:
        memory.impulse[motor], q00, q01, q02 = 0.0, momentum_variance, 0.0, 0.0
    P[0, 0], P[0, 1], P[0, 2], P[1, 1], P[1, 2], P[2, 2] = q00, q01, q02, p11, p12, p22


@kernel
def _detect_pushes(robot: RobotMaps, large: FloatArray, dt: float, memory: FastMemory, disturbed: FloatArray) -> int:
    """Write which joints are pushed; return the limbs whose push has lasted too long to be one, as bits."""
    expired = 0
    for limb in range(memory.since_push.size):
        any_large = False
        for joint in range(large.size):
            any_large = any_large or (large[joint] > 0.0 and robot.limb_of_joint[joint] == limb)
        memory.since_release[limb] += dt
        now = any_large and memory.since_release[limb] > MAX_PUSH_DURATION
        memory.since_push[limb] = 0.0 if now else memory.since_push[limb] + dt
        if memory.since_push[limb] >= _SETTLING_TIME:
            memory.pushed_for[limb] = 0.0
        else:
            memory.pushed_for[limb] += dt
            if memory.pushed_for[limb] >= MAX_PUSH_DURATION:
                memory.since_push[limb], memory.since_release[limb] = math.inf, 0.0
                expired |= 1 << limb
    for joint in range(large.size):
        disturbed[joint] = 1.0 if memory.since_push[robot.limb_of_joint[joint]] < _SETTLING_TIME else 0.0
    return expired


@kernel
def _add_to_window(
    robot: RobotMaps,
    inputs: FrameReadings,
    balance: FloatArray,
    known: FloatArray,
    law_variance: FloatArray,
    sums: WindowSums,
    out: FrameResult,
) -> None:
    """Add the time since the frame before to the sums of the window."""
    dt, n, k = inputs.dt, balance.size, len(inputs.wrenches)
    if dt > 0.0:
        sums.duration[0] += dt
        for i in range(n):
            sums.balance[i] += dt * balance[i]
            sums.effort[i] += dt * inputs.effort[i]
            sums.law_variance[i] += dt * law_variance[i]
            sums.velocity[i] += dt * out.velocity[i]
            for j in range(out.regressor.shape[1]):
                sums.regressor[i, j] += dt * out.regressor[i, j]
            if known[i] == 0.0 or out.disturbed[i]:
                sums.unknown[robot.limb_of_joint[i]] = True
    else:
        sums.unknown[:] = True
    sums.last_effort[:] = inputs.effort
    for sensor in range(1 + k):
        sums.reading_counts[sensor] += inputs.readings_per_sample[sensor]
    for foot in range(k):
        normal = inputs.wrenches[foot, 2]
        sums.normal_force[0, foot] = min(sums.normal_force[0, foot], normal)
        sums.normal_force[1, foot] = max(sums.normal_force[1, foot], normal)
        sums.wrench_fresh[foot] = sums.wrench_fresh[foot] and inputs.wrench_fresh[foot]
        for axis in range(6):
            reading = inputs.wrenches[foot, axis]
            step = reading - sums.last_wrenches[foot, axis]
            second = abs(step - sums.last_step[foot, axis]) / inputs.readings_per_sample[1 + foot]
            sums.wrenches[foot, axis] += dt * reading
            sums.roughness[foot, axis] = max(sums.roughness[foot, axis], second)
            sums.last_wrenches[foot, axis], sums.last_step[foot, axis] = reading, step


@kernel
def _ripple_wave(robot: RobotMaps, position: FloatArray, ripples: FloatArray) -> FloatArray:
    """Sine and cosine (n, 2) of motor position times ripples per turn (n,); (n, 0) without ripple."""
    n = position.size
    wave = np.empty((n, 2 * min(ripples.size, 1)))
    for motor in range(n):
        if ripples.size > 0:
            angle = 0.0
            for joint in range(n):
                angle += ripples[motor] * position[joint] * robot.motors.to_joints[joint, motor]
            wave[motor, 0], wave[motor, 1] = math.sin(angle), math.cos(angle)
    return wave


@kernel
def _law_variance(motor: int, learned: Learned, out: FrameResult) -> float:
    """Variance of the law's friction from its parameters, and of the one-sided part [(N m)^2]."""
    phi, P, variance = out.regressor[motor], learned.law_covariance[motor], learned.one_sided_variance[motor]
    for a in range(phi.size):
        product = P[a, a] * phi[a]
        for b in range(a):
            product += 2.0 * P[a, b] * phi[b]
        variance += phi[a] * product
    return max(variance, 0.0)


@kernel
def _estimate_motor(
    motor: int,
    robot: RobotMaps,
    learned: Learned,
    balance: float,
    known: bool,
    velocity_variance: float,
    dt: float,
    memory: FastMemory,
    out: FrameResult,
    result: FloatArray,
) -> None:
    """Write the results (8,) of one motor, see the rows in :func:`step_frame`; ``result[1]`` is its law's friction."""
    torque, by_law = result[1], _law_variance(motor, learned, out)
    rest = stick_probability(out.velocity[motor], out.velocity_std[motor]) * max(learned.dry[motor], abs(torque))
    rest_std, law_std = _REST_STD * math.sqrt(rest * rest / 3.0 + velocity_variance), learned.law_error_std[motor]
    residual = balance - out.errors[motor] - 0.5 * (torque + memory.law[motor])
    pushed = memory.since_push[robot.limb_of_joint[motor]] < _SETTLING_TIME
    momentum_variance, usable = out.momentum_variance[motor], known and not pushed
    _step_fast_filter(motor, law_std, rest_std, residual, momentum_variance, usable, dt, learned, memory)
    memory.law[motor] = torque
    x, C, decay = memory.state[motor], memory.covariance[motor], math.exp(-EXTERNAL_BANDWIDTH * dt)
    fast = law_std * x[0] + rest_std * x[1]
    variance = by_law + law_std**2 * C[1, 1] + 2.0 * law_std * rest_std * C[1, 2] + rest_std**2 * C[2, 2]
    if known:
        memory.external[motor] = decay * memory.external[motor] - (1.0 - decay) * residual
    result[1] = torque + learned.one_sided[motor]
    result[0], result[2] = result[1] + fast, memory.external[motor] + fast
    result[3], result[4] = variance, by_law + law_std**2 + rest_std**2
    result[5] = (
        variance + rest_std**2 + 2.0 / (1.0 + decay) * EXTERNAL_BANDWIDTH**2 * momentum_variance
        + 0.5 * EXTERNAL_BANDWIDTH * learned.window * learned.white_std[motor] ** 2
    )  # fmt: skip
    result[6], result[7] = max(abs(result[1]), rest), rest_std**2 * C[2, 2]


@entry_point
def step_frame(
    robot: RobotMaps,
    laws: LawTable,
    learned: Learned,
    dynamics: Dynamics,
    motion: JointMotion,
    rotation: JointMotion,
    inputs: FrameReadings,
    ripples: Vector,
    memory: FastMemory,
    sums: WindowSums,
    out: FrameResult,
) -> tuple[int, bool]:
    """Friction, external torque and pushes of one frame, which also counts in the sums of the window.

    Parameters
    ----------
    robot, laws, learned : constants, and what the second stage has found
    dynamics, motion, inputs : of the frame
    rotation : (3,) angles and angular velocity of the base about its own axes
    ripples : (n,) periods of the motors' friction in a turn; (0,) without
    memory, sums : in place
    out : output

    Returns
    -------
    Limbs whose push has lasted too long to be one, as bits; and whether all results are finite
    """
    n, dt = inputs.effort.size, inputs.dt
    # friction, law with its one-sided part, external torque; variances of these three in the order friction, law,
    # external torque; largest friction of the motor; variance of the friction by the sign of the velocity
    results, work = np.zeros((n, 8)), np.zeros((6, n))
    known, balance, torque, velocity_variance, large, disturbed = work[0], work[1], work[2], work[3], work[4], work[5]
    motion_of_motors(robot, motion, out)
    balance_of_frame(robot, learned, dynamics, motion, inputs, rotation, memory, known, balance, out)
    wave = _ripple_wave(robot, dynamics.position, ripples)
    _law_at_motion(robot, laws, learned, inputs, wave, memory, out, torque, velocity_variance)
    for i in range(n):
        results[i, 1] = torque[i]
        _estimate_motor(
            i, robot, learned, balance[i], known[i] > 0.0, velocity_variance[i], dt, memory, out, results[i]
        )
    motors = np.ascontiguousarray(results.T)
    torques_of_joints(robot, motors[0], False, out.friction)
    torques_of_joints(robot, motors[1], False, out.model)
    torques_of_joints(robot, motors[2], False, out.external_torque)
    torques_of_joints(robot, motors[3], True, out.sigma)
    torques_of_joints(robot, motors[4], True, out.model_sigma)
    torques_of_joints(robot, motors[5], True, out.external_torque_sigma)
    torques_of_joints(robot, motors[7], True, out.sign_variance)
    for i in range(n):
        out.sigma[i], out.model_sigma[i] = math.sqrt(out.sigma[i]), math.sqrt(out.model_sigma[i])
        out.external_torque_sigma[i] = math.sqrt(out.external_torque_sigma[i])
        size, least = abs(out.external_torque[i]), _GATE_FRICTION * results[i, 6] + _GATE_TORQUE
        large[i] = 1.0 if size > _GATE_SIGMAS * out.external_torque_sigma[i] and size > least else 0.0
    expired = _detect_pushes(robot, large, dt, memory, disturbed)
    for i in range(n):
        out.disturbed[i] = disturbed[i] > 0.0
        out.measured[i] = known[i] > 0.0 and not out.disturbed[i]
        if known[i] == 0.0:
            out.external_torque[i] = out.external_torque_sigma[i] = math.nan
    _add_to_window(robot, inputs, balance, known, velocity_variance, sums, out)
    finite = is_bounded(out.friction) and is_bounded(out.sigma) and is_bounded(out.model_sigma)
    return expired, finite and is_bounded(out.errors)


@entry_point
def correct_by_fbse(
    robot: RobotMaps, learned: Learned, effort: Vector, standing: Flags, measured: MeasuredFriction, out: FrameResult
) -> None:
    """Correct the friction of joints whose foot stands by a measurement, as far as its sign is not known.

    ``friction += K (tau_FBSE - friction)``, ``K = P / (P + R)``: P is the variance by the sign of the velocity, R that
    of the measurement. A joint that crosses zero, or sticks and chatters, turns its friction around within
    milliseconds, while differentiated encoders leave its momentum too noisy to follow. A standing foot gives the joint
    accelerations without encoders (Hashlamon & Erbatur 2014, section 5): noisy, and better than an unknown sign.

    Parameters
    ----------
    effort : (n,) readings of the joints [N m]
    standing : (n,) joints whose foot stands firmly
    measured : by foot-base sensor estimation, with wrenches without the errors of their sensors
    out : results of the frame, in place
    """
    n = effort.size
    motors, offset, dry = np.empty(n), np.empty(n), np.empty(n)
    motors[:] = learned.effort_offset - learned.one_sided
    torques_of_joints(robot, motors, False, offset)
    motors[:] = learned.dry**2
    torques_of_joints(robot, motors, True, dry)
    for joint in range(n):
        sigma, friction, P = measured.sigma[joint], out.friction[joint], out.sign_variance[joint]
        error = measured.friction[joint] - learned.effort_gain[joint] * effort[joint] - offset[joint] - friction
        largest = _MAX_MEASURED * max(abs(friction), math.sqrt(dry[joint]))
        usable = standing[joint] and measured.available[joint] and math.isfinite(error * sigma)
        if usable and abs(friction + error) < largest + _MEASURED_SIGMAS * sigma:
            gain = P / (P + sigma * sigma)
            out.friction[joint] += gain * error
            out.sigma[joint] = math.sqrt(max(out.sigma[joint] ** 2 - gain * P, 0.0))
