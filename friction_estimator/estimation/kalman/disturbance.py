"""External torque: the part that neither model, foot wrenches, friction nor calibration explain, within milliseconds.

A momentum observer (Lim et al. 2024, section 3.2) on the filtered joint velocities; the expected friction passes the
same low-pass. The torque is published, and large ones are pushes, during which identification pauses.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from friction_estimator.arrays import arrays
from friction_estimator.compiled import kernel
from friction_estimator.estimation.kalman.joint_friction import FrameFriction, LawNow
from friction_estimator.estimation.kalman.joint_motion import JointMotion
from friction_estimator.estimation.kalman.limb_estimates import LimbEstimates
from friction_estimator.estimation.observers.momentum import Inputs, ResidualTable, step_residual
from friction_estimator.linear_algebra import LARGEST
from friction_estimator.types import BoolArray, Dynamics, FloatArray, IntArray, Matrix, Vector

GATE = 5.0
"""External torques within this many standard deviations of zero are noise."""
FRICTION_RATIO, SMALLEST_PUSH = 3.0, 1.0
"""A push exceeds SMALLEST_PUSH [N m] plus this many times the friction: smaller torques may be errors of the law."""
LONGEST_PUSH = 0.5
"""External torques that last longer are errors of the law [s]."""
PUSH_SETTLING = 0.03
"""For this long after a push the friction comes from the law alone [s]: about one time constant of the observer."""
GAINS = 40.0, 120.0
"""Bandwidths of the momentum observer [rad/s]: a push shows within 25 ms; the friction of a joint that sticks changes
from one direction to the other within 50 ms."""
CORRELATED = 0.2
"""Part of the filtered velocity's variance that passes the observer's differentiation: its errors are slow."""


@arrays
class DisturbanceMemory(NamedTuple):
    """State of the observer, and of the watch on pushes.

    Attributes
    ----------
    residual : (5, n) of :func:`~friction_estimator.estimation.observers.momentum.step_residual`
    variance : (2, n) of the residual behind both low-passes; NaN while unknown [(N m)^2]
    expected, newest : (n,) expected torque behind the slow low-pass, NaN before the first sample, and unfiltered [N m]
    passed : (2, n) external torque of the frame before, behind the slow and the fast low-pass [N m]
    since_push, pushed_for, since_release : (l,) limb by limb: time since the last large torque, how long the limb has
        been pushed, and time since a push has lasted too long to be one [s]
    """

    residual: Matrix
    variance: Matrix
    expected: Vector
    newest: Vector
    passed: Matrix
    since_push: Vector
    pushed_for: Vector
    since_release: Vector


@kernel
def is_large(torque: float, sigma: float, friction: float) -> bool:
    """Whether an external torque is beyond its noise and beyond the friction; never with a sigma of NaN or zero."""
    size = abs(torque)
    return sigma > 0.0 and size > GATE * sigma and size > FRICTION_RATIO * abs(friction) + SMALLEST_PUSH


@kernel
def calibrate_wrenches(wrenches: FloatArray, estimates: LimbEstimates) -> FloatArray:
    """Wrenches (k, 6) of the ground on the feet without bias and gain errors."""
    calibrated = np.empty_like(wrenches)
    for foot in range(len(wrenches)):
        for axis in range(6):
            reading = wrenches[foot, axis] - estimates.wrench_bias[foot, axis]
            calibrated[foot, axis] = reading * (1.0 - estimates.wrench_gain[foot, axis])
    return calibrated


@kernel
def moving_with(dynamics: Dynamics, velocity: FloatArray) -> Dynamics:
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
    motion: JointMotion,
    law: LawNow,
    estimates: LimbEstimates,
    memory: DisturbanceMemory,
    out: FrameFriction,
) -> BoolArray:
    """Write the external torque: the expected friction behind the observer's low-pass, less the residual.

    The momentum is that of the filtered joint velocities. The fast low-pass gets the input of the slow one, which
    follows from two of its outputs.

    Parameters
    ----------
    inputs : with calibrated wrenches

    Returns
    -------
    (n,) True for joints where the torque is beyond its noise and beyond the friction
    """
    n, torque, H, dt = inputs.effort.size, out.slow, dynamics.mass_matrix, inputs.dt
    filtered, last, slow, fast = memory.expected, memory.newest, memory.passed[0], memory.passed[1]
    step_residual(moving_with(dynamics, motion.velocity), inputs, table, memory.residual, torque)
    decay, fast_decay, large = math.exp(-GAINS[0] * dt), math.exp(-GAINS[1] * dt), np.empty(n, dtype=np.bool_)
    for i in range(n):
        expected = law.torque[i] + estimates.calibration_torque[i]
        if not abs(filtered[i] + last[i]) <= LARGEST:
            filtered[i] = expected
        elif dt > 0.0:
            filtered[i] = decay * filtered[i] + (1.0 - decay) * 0.5 * (expected + last[i])
        last[i] = expected
        torque[i] = filtered[i] - torque[i]
        variance = law.law_variance[i] + law.velocity_variance[i] + estimates.calibration_variance[i]
        variance += law.model_error_variance[i] + memory.variance[0, i]
        out.external_sigma[i] = math.sqrt(variance) if math.isfinite(torque[i]) else math.nan
        if not abs(slow[i] + fast[i]) <= LARGEST:
            fast[i] = torque[i]
        elif dt > 0.0:
            now = (torque[i] - decay * slow[i]) / (1.0 - decay)
            fast[i] = fast_decay * fast[i] + (1.0 - fast_decay) * now
        slow[i], out.fast[i] = torque[i], fast[i]
        by_velocity = H[table.base + i, table.base + i] * motion.velocity_std[i]
        out.slow_noise[i] = memory.variance[0, i] + (GAINS[0] * by_velocity) ** 2
        out.fast_noise[i] = memory.variance[1, i] + (GAINS[1] * by_velocity) ** 2
        large[i] = is_large(torque[i], out.external_sigma[i], max(abs(law.torque[i]), law.rest_friction[i]))
    return large


@kernel
def watch_pushes(
    large: BoolArray, limb_of_joint: IntArray, dt: float, memory: DisturbanceMemory, pushed: BoolArray
) -> int:
    """Follow the pushes limb by limb; return the limbs whose push has lasted too long to be one, as bits.

    Nothing is a push for as long again after that.

    Parameters
    ----------
    large : (n,) joints with a large external torque
    limb_of_joint : (n,) number of each joint's limb
    pushed : (n,) output: True while the limb of a joint is pushed, and a little longer
    """
    lasting = 0
    for limb in range(memory.since_push.size):
        any_large = False
        for joint in range(large.size):
            any_large = any_large or (large[joint] and limb_of_joint[joint] == limb)
        memory.since_release[limb] += dt
        now = any_large and memory.since_release[limb] > LONGEST_PUSH
        memory.since_push[limb] = 0.0 if now else memory.since_push[limb] + dt
        if memory.since_push[limb] >= PUSH_SETTLING:
            memory.pushed_for[limb] = 0.0
        else:
            memory.pushed_for[limb] += dt
            if memory.pushed_for[limb] >= LONGEST_PUSH:
                memory.since_push[limb], memory.since_release[limb] = math.inf, 0.0
                lasting |= 1 << limb
    for joint in range(large.size):
        pushed[joint] = memory.since_push[limb_of_joint[joint]] < PUSH_SETTLING
    return lasting
