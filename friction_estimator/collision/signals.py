"""Signals of the collision detection: external torque and sigma behind a low-pass, and what may touch a limb."""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import BoolArray, FloatArray, FrictionEstimate, IntArray

FREE, IN_CONTACT = 0, 1
"""States of a joint: nothing but a collision may touch its limb; a foot that it carries is on the ground."""
CUTOFF = 15.0
"""Of the low-pass (section 5.3) [Hz]."""
CONTINUITY = 0.005
"""A signal must be above its threshold for this time (section 5.3) [s]."""
SETTLING = 0.15
"""Nothing is compared for this time after a foot has left or touched the ground: load and friction of the joints change
then, and stuck joints break away late. After 0.1 s, 10 to 19 N m are left at a hip in three of about 1,000 swings of
the study; after 0.12 s, at most 3 N m in all of them [s]."""
WARM_UP = 1.0
"""Nothing is compared for this time after the start or a gap: gravity filter and residual begin anew [s]."""
LONGEST_STEP = 0.1
"""Joint states that are further apart begin anew [s]."""
_NOT_COMPARED = -1


@kernel("V V B V BM f8 f8 b1 M I")
def step_signals(
    torque: FloatArray,
    sigma: FloatArray,
    contact: BoolArray,
    since: FloatArray,
    carries: BoolArray,
    keep: float,
    settling: float,
    warm: bool,
    filtered: FloatArray,
    state: IntArray,
) -> None:
    """Low-pass torque and sigma (n,) into ``filtered`` (2, n), in place; find the state (n,) of every joint.

    A joint whose external torque is unknown is not compared, and its low-pass begins anew afterwards.

    Parameters
    ----------
    contact, since : (k,) feet in contact, and time since this has changed [s]
    carries : (k, n) True where a joint carries that foot
    keep : ``exp(-2 pi f_c dt)``
    settling : see :data:`SETTLING` [s]
    warm : False during the warm-up
    """
    for joint in range(torque.size):
        known = math.isfinite(torque[joint]) and math.isfinite(sigma[joint])
        begins = math.isnan(filtered[0, joint])
        for row in range(2):
            value = torque[joint] if row == 0 else sigma[joint]
            filtered[row, joint] = value if begins or not known else value + keep * (filtered[row, joint] - value)
        if not known:
            filtered[0, joint] = filtered[1, joint] = math.nan
        state[joint] = FREE if known and warm else _NOT_COMPARED
        for foot in range(contact.size):
            if carries[foot, joint] and state[joint] != _NOT_COMPARED:
                if not since[foot] >= settling:
                    state[joint] = _NOT_COMPARED
                elif contact[foot]:
                    state[joint] = IN_CONTACT


class CollisionSignals:
    """The signals that are compared with thresholds, sample by sample: for the detector, and to learn the thresholds.

    Parameters
    ----------
    robot : its feet and their limbs

    Attributes
    ----------
    filtered : (2, n) external torque and its sigma behind the low-pass [N m]; NaN while unknown
    state : (n,) ``FREE``, ``IN_CONTACT``, or negative while nothing is compared
    """

    def __init__(self, robot: RobotModel) -> None:
        self._carries: BoolArray = np.ascontiguousarray(robot.limb)
        n = len(robot.joint_names)
        self.filtered = np.full((2, n), np.nan)
        self.state: IntArray = np.full(n, _NOT_COMPARED, dtype=np.int64)
        self._stamp_ns: int | None = None
        self._running_for = 0.0

    def step(self, estimate: FrictionEstimate) -> float:
        """Use one estimate; return the time since the one before, 0 after the start or a gap [s]."""
        dt = 0.0 if self._stamp_ns is None else 1e-9 * (estimate.stamp_ns - self._stamp_ns)
        self._stamp_ns = estimate.stamp_ns
        if not 0.0 < dt <= LONGEST_STEP:
            dt = self._running_for = 0.0
            self.filtered[:] = np.nan
        self._running_for += dt
        phase = estimate.phase
        step_signals(
            estimate.external_torque,
            estimate.external_torque_sigma,
            phase.contact,
            phase.since,
            self._carries,
            math.exp(-2.0 * math.pi * CUTOFF * dt),
            SETTLING,
            self._running_for >= WARM_UP,
            self.filtered,
            self.state,
        )
        return dt
