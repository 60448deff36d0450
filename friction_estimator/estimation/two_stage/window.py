"""First stage: for every motor alone, a filter of the impulse that ignores all terms, run on the balance and on its
columns alike.

    y = A z + w        over a window of length T, with terms z and columns A; w is white
    d = (1 - K) (d + T [A y])         impulse that no reading of the momentum has confirmed yet, column by column

Its innovations ``e = d + T [A y]`` are white, so that the terms follow from them by least squares in the second stage
(Friedland 1969). The gain K follows from the noise of balance and momentum alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from friction_estimator.estimation.two_stage.balance import FrameResult, Learned, RobotMaps, WindowSums
from friction_estimator.estimation.two_stage.terms import LimbTerms, stick_probability
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.kernels.records import record
from friction_estimator.types import Dynamics, FloatArray, Matrix, Tensor, Vector

CORRELATION_TIME = 0.05
"""Time for which errors of readings and model last [s]: velocities that lag, torques that are early, a law that misses
a little. Information of windows is divided by this time over their length."""
_HUBER = 9.0
"""Squared innovation, over its variance, above which it counts less: impacts."""
_CHANGE_MEMORY = 1.0
"""Time over which a change of friction shows [s]."""
_ROUGHNESS_NOISE, _ROUGHNESS_SHARE = 6.6, 0.25
"""Second differences of white noise, over its standard deviation, four times the median; and the part of what is beyond
that a mean of readings misses."""


@record
class StageOne(NamedTuple):
    """State of the first stage of a limb with m motors, whose rows have s columns and the balance."""

    impulse: Matrix  # (m, s + 1) d
    variance: Vector  # (m,) of the impulse's error [(N m s)^2]
    white_std: Vector  # (m,) of the balance over a window [N m]
    momentum_scale: Vector  # (m,) adapted factor on the variance of the momentum's readings
    nis_sum: Vector  # (m,) of the normalised innovations squared since the last solution
    lag_sum: Vector  # (m,) of the products of a normalised innovation and the one before
    innovation: Vector  # (m,) normalised, of the newest window
    windows: Vector  # (1,) number of windows since then
    # (m,) of the newest windows: products of the innovation of the law's torque with that of the rest, and its squares
    change: Vector
    change_information: Vector
    nis: Vector  # (m,) of the newest window
    # (m,) balance of the newest window that the terms leave unexplained [N m], and its variance
    unexplained: Vector
    unexplained_variance: Vector
    delay_torque: Vector  # (m,) torque that delays explain in the newest window [N m]
    columns: Matrix  # (m, s + 1) of the newest window


@record
class ModelErrors(NamedTuple):
    """Torques of the n joints per error of the robot model; while no joint accelerates beyond the base."""

    position_columns: Matrix  # (n, n) offsets of the encoders [N m/rad]
    link_columns: Tensor  # (n, n, 4) relative error of a link's mass, shift of its centre of mass [N m], [N]


@kernel
def _write_columns(
    robot: RobotMaps, terms: LimbTerms, dynamics: Dynamics, model: ModelErrors, sums: WindowSums, out: FloatArray
) -> None:
    """Write the columns of all terms, and the balance itself, for every motor of the limb."""
    m, p, base, T = terms.joints.size, sums.regressor.shape[1], robot.base, sums.duration[0]
    H, J, size = dynamics.mass_matrix, dynamics.foot_jacobian, terms.size
    at_joints = np.zeros((m, size))
    for a in range(m):
        i = terms.joints[a]
        row, own = base + i, at_joints[a]
        effort, rate = sums.effort[i] / T, (sums.last_effort[i] - sums.first_effort[i]) / T
        own[terms.torque_delay] = -terms.torque_delay_std * rate
        for b in range(m):
            other = terms.joints[b]
            own[terms.gain + b] = terms.effort_gain[a, b] * effort
            own[terms.positions + b] = model.position_columns[i, other]
            for error in range(4):
                own[terms.links + 4 * b + error] = model.link_columns[i, other, error]
        own[terms.width + a] = effort
        if base:
            for axis in range(3):
                own[terms.accelerometer + axis] = -terms.specific_force_std * H[row, axis]
        for number in range(terms.feet.size):
            foot = terms.feet[number]
            for axis in range(6):
                lever, place = J[foot, axis, row], 6 * number + axis
                wrench = sums.wrenches[foot, axis] / T
                change = lever * (sums.last_wrenches[foot, axis] - sums.first_wrenches[foot, axis]) / T
                own[terms.foot_bias + place] = lever * terms.wrench_std[0, axis]
                own[terms.foot_gain + place] = lever * wrench * terms.wrench_std[1, axis]
                own[terms.wrench_delay + number] -= terms.wrench_delay_std * change
                own[terms.torque_delay] -= terms.torque_delay_std * change
    out[:] = 0.0
    for a in range(m):
        motor = terms.joints[a]
        for b in range(m):
            share = robot.motors.matrix[terms.joints[b], motor]
            if share != 0.0:
                for j in range(p, size):
                    out[a, j] += share * at_joints[b, j]
        out[a, terms.offset + a] = terms.offset_std[a]
        for j in range(p):
            out[a, j] = sums.regressor[motor, j] / T * terms.law_std[a, j]
        out[a, size] = sums.balance[motor] / T


@entry_point
def begin_window(sums: WindowSums) -> None:
    """Begin a window at the newest frame."""
    sums.duration[:], sums.balance[:], sums.effort[:], sums.wrenches[:], sums.regressor[:] = 0.0, 0.0, 0.0, 0.0, 0.0
    sums.law_variance[:], sums.velocity[:], sums.roughness[:], sums.unknown[:] = 0.0, 0.0, 0.0, False
    sums.normal_force[0], sums.normal_force[1] = math.inf, -math.inf
    sums.wrench_fresh[:], sums.reading_counts[:] = True, 0.0
    sums.first_effort[:], sums.first_wrenches[:] = sums.last_effort, sums.last_wrenches


@entry_point
def step_window(
    robot: RobotMaps,
    terms: LimbTerms,
    learned: Learned,
    dynamics: Dynamics,
    model: ModelErrors,
    sums: WindowSums,
    frame: FrameResult,
    solution: Matrix,
    learns: bool,
    stage: StageOne,
    information: Tensor,
) -> None:
    """Let a limb use a window that was known throughout.

    Parameters
    ----------
    dynamics, frame : of the frame that ends the window
    model : torques by errors of the robot model, at the end of the window
    solution : (m, s) terms so far, whitened: law of the motor and errors of the limb; zero for the other columns
    learns : False keeps the information as it is
    stage : in place
    information : (m, s + 1, s + 1) sums of ``e e^T`` over their variance, in place
    """
    m, size, T = terms.joints.size, terms.size, sums.duration[0]
    A = stage.columns
    _write_columns(robot, terms, dynamics, model, sums, A)
    e = np.empty(size + 1)
    for a in range(m):
        motor = terms.joints[a]
        speed, std = sums.velocity[motor] / T, frame.velocity_std[motor]
        rest = stick_probability(speed, std) * learned.dry[motor]
        rough = 0.0
        for number in range(terms.feet.size):
            foot = terms.feet[number]
            for axis in range(6):
                lever = dynamics.foot_jacobian[foot, axis, robot.base + motor]
                noise = learned.force_std if axis < 3 else learned.moment_std
                beyond = max(sums.roughness[foot, axis] - _ROUGHNESS_NOISE * noise, 0.0)
                rough += (lever * _ROUGHNESS_SHARE * beyond) ** 2
        q = T * T * (stage.white_std[a] ** 2 + rough + sums.law_variance[motor] / T + rest * rest / 3.0)
        predicted, d = stage.variance[a] + q, stage.impulse[a]
        for j in range(size + 1):
            e[j] = d[j] + T * A[a, j]
        r = e[size]
        for j in range(terms.width):
            r -= e[j] * solution[a, j]
        S = predicted + stage.momentum_scale[a] * frame.momentum_variance[motor]
        S *= max(r * r / (_HUBER * S), 1.0)
        stage.nis[a] = r * r / S
        gain = predicted / S
        for j in range(size + 1):
            d[j] = (1.0 - gain) * e[j]
        stage.variance[a] = predicted * (1.0 - gain)
        stage.nis_sum[a] += stage.nis[a]
        stage.lag_sum[a] += r / math.sqrt(S) * stage.innovation[a]
        stage.innovation[a] = r / math.sqrt(S)
        law = 0.0
        for j in range(terms.law_std.shape[1]):
            law += e[j] * solution[a, j]
        weight, keep = 1.0 / (S * max(CORRELATION_TIME / T, 1.0)), math.exp(-T / _CHANGE_MEMORY)
        stage.change[a] = keep * stage.change[a] + weight * law * r
        stage.change_information[a] = keep * stage.change_information[a] + weight * law * law
        stage.unexplained[a], stage.unexplained_variance[a] = r / T, S / (T * T)
        stage.delay_torque[a] = 0.0
        for j in range(terms.wrench_delay, terms.offset):
            stage.delay_torque[a] += A[a, j] * solution[a, j]
        if learns:
            N = information[a]
            for i in range(size + 1):
                w = weight * e[i]
                if w != 0.0:
                    for j in range(size + 1):
                        N[i, j] += w * e[j]
    stage.windows[0] += 1.0
