"""Disturbance observer: the torque that model, foot wrenches, friction and calibration do not explain, and pushes.

A momentum observer (Lim et al. 2024, section 3.2) on the filtered joint velocities; the expected friction passes the
same low-pass. The torque shows within milliseconds. Large ones are pushes, during which identification pauses.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from friction_estimator.estimation.kalman.law_at_motion import LawAtMotion
from friction_estimator.estimation.kalman.limb_estimates import LimbEstimates
from friction_estimator.estimation.observers.momentum import ObserverInputs, ResidualTable, step_residual
from friction_estimator.kernels.compiler import kernel
from friction_estimator.kernels.records import record
from friction_estimator.linear_algebra import DIVERGENCE_LIMIT
from friction_estimator.types import BoolArray, Dynamics, FloatArray, IntArray, Matrix, Vector

EXTERNAL_TORQUE_GATE = 5.0
"""External torques within this many standard deviations of zero are noise."""
FRICTION_RATIO, MIN_PUSH_TORQUE = 3.0, 1.0
"""A push exceeds MIN_PUSH_TORQUE [N m] plus this many times the friction: smaller torques may be errors of the law."""
MAX_PUSH_DURATION = 0.5
"""External torques that last longer are errors of the law [s]."""
PUSH_SETTLING_TIME = 0.03
"""For this long after a push the friction comes from the law alone [s]: about one time constant of the observer."""
OBSERVER_BANDWIDTHS = 40.0, 120.0
"""Bandwidths of the momentum observer [rad/s]: a push shows within 25 ms; the friction of a joint that sticks changes
from one direction to the other within 50 ms."""


@record
class DisturbanceMemory(NamedTuple):
    """State of the momentum observer and of the detection of pushes."""

    observer: Matrix  # (5, n) state of step_residual
    variance: Matrix  # (2, n) of its residual behind both low-passes; NaN while unknown [(N m)^2]
    # (n,) expected torque behind the slow low-pass, NaN before the first sample, and that of the frame before,
    # unfiltered [N m]
    filtered_expected: Vector
    last_expected: Vector
    last_external: Matrix  # (2, n) external torque of the frame before, behind the slow and the fast low-pass [N m]
    # (l,) limb by limb: time since the last large torque, how long something has pushed the limb, and time since
    # that has lasted too long to be a push [s]
    since_push: Vector
    disturbed_for: Vector
    since_release: Vector


@record
class ExternalTorque(NamedTuple):
    """External torque by the momentum observer, without the error of the laws; every field (n,)."""

    # behind a slow and a fast low-pass [N m], and the part of their variance that the readings make [(N m)^2]
    slow: Vector
    fast: Vector
    slow_noise: Vector
    fast_noise: Vector
    sigma: Vector  # standard deviation of the slow one [N m]

    @staticmethod
    def zeros(joints: int) -> ExternalTorque:
        """Record of zeros for n joints."""
        return ExternalTorque(*np.zeros((len(ExternalTorque._fields), joints)))


@kernel
def is_push_torque(torque: float, sigma: float, friction: float) -> bool:
    """Whether an external torque is beyond its noise and beyond the friction; never with a sigma of NaN or zero."""
    size = abs(torque)
    return (
        sigma > 0.0 and size > EXTERNAL_TORQUE_GATE * sigma and size > FRICTION_RATIO * abs(friction) + MIN_PUSH_TORQUE
    )


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
    inputs: ObserverInputs,
    table: ResidualTable,
    velocity: FloatArray,
    estimates: LimbEstimates,
    memory: DisturbanceMemory,
    law: LawAtMotion,
    out: ExternalTorque,
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
    n, H, dt = inputs.effort.size, dynamics.mass_matrix, inputs.dt
    filtered_expected, last_expected = memory.filtered_expected, memory.last_expected
    last_slow, last_fast = memory.last_external[0], memory.last_external[1]
    decay, fast_decay = math.exp(-OBSERVER_BANDWIDTHS[0] * dt), math.exp(-OBSERVER_BANDWIDTHS[1] * dt)
    measured_friction, large = np.empty(n), np.empty(n, dtype=np.bool_)
    step_residual(_with_joint_velocity(dynamics, velocity), inputs, table, memory.observer, measured_friction)
    for i in range(n):
        expected = law.torque[i] + estimates.calibration.without_wrenches[i]
        if not abs(filtered_expected[i] + last_expected[i]) <= DIVERGENCE_LIMIT:
            filtered_expected[i] = expected
        elif dt > 0.0:
            filtered_expected[i] = decay * filtered_expected[i] + (1.0 - decay) * 0.5 * (expected + last_expected[i])
        last_expected[i] = expected
        slow = filtered_expected[i] - measured_friction[i]
        if not abs(last_slow[i] + last_fast[i]) <= DIVERGENCE_LIMIT:
            last_fast[i] = slow
        elif dt > 0.0:
            unfiltered = (slow - decay * last_slow[i]) / (1.0 - decay)
            last_fast[i] = fast_decay * last_fast[i] + (1.0 - fast_decay) * unfiltered
        last_slow[i] = slow
        out.slow[i], out.fast[i] = slow, last_fast[i]
        variance = law.variance[i] + law.velocity_variance[i] + estimates.calibration.variance[i]
        variance += law.law_error_variance[i] + memory.variance[0, i]
        out.sigma[i] = math.sqrt(variance) if math.isfinite(slow) else math.nan
        by_velocity = H[table.base + i, table.base + i] * law.velocity_std[i]
        out.slow_noise[i] = memory.variance[0, i] + (OBSERVER_BANDWIDTHS[0] * by_velocity) ** 2
        out.fast_noise[i] = memory.variance[1, i] + (OBSERVER_BANDWIDTHS[1] * by_velocity) ** 2
        large[i] = is_push_torque(slow, out.sigma[i], max(abs(law.torque[i]), law.stick_friction[i]))
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
