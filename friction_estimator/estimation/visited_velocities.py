"""Coulomb and viscous friction of every motor: the line through its law over the velocities that it has had.

    F_c, F_v = argmin  integral (phi(dq, tau)^T theta - F_c sgn(dq) - F_v dq)^2 dt       over the time in motion
             = rows theta,   rows = (integral B B^T dt)^-1 integral B phi^T dt,   B = [sgn(dq), dq]

The rows depend on the motion only, so the covariance of F_c and F_v is ``rows P rows^T`` for a covariance P of the law.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from friction_estimator.kernels.compiler import entry_point
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.laws.linear import FACTOR, SHAPE, Factor, Shape
from friction_estimator.linear_algebra import DIVERGENCE_LIMIT, is_bounded
from friction_estimator.types import BoolArray, Flags, FloatArray, IntArray, Matrix, Tensor, Vector

VISIT_PERIOD = 0.01
"""Interval at which velocities are sampled [s]: joints move much slower, and the cost is small against a frame's."""
MIN_SPEED = 0.01
"""Slower motors count as standing [rad/s]: there friction depends on the displacement, and the sign of noise."""
_MIN_SIGMAS = 3.0
"""A velocity counts when it exceeds this many of its standard deviations, so that its sign is certain."""
_DIRECTION_TIME, _DIRECTION_MEMORY = 0.05, 1.0
"""Time in motion one way after which a motor counts as having moved that way, and time constant with which it is
forgotten [s]. A motor at rest seems to move for some thousandths of the time: its noise exceeds three sigma."""
_BINS = 24
"""Bins of the histogram of speeds, two per octave from the least speed: up to 41 rad/s."""
RANGE_TAIL = 0.05
"""Part of the time in motion that the published range leaves out at each end: single fast samples do not stretch it."""
_PRIOR_RANGE, _PRIOR_SPEEDS, _PRIOR_TIME = (0.05, 1.0), 8, 0.01
"""Speeds [rad/s], their number, and duration [s] of a prior motion before any other. It keeps the equations regular
where a motor has had one speed only, and the sigma of F_v is then that of the law at speeds that were never seen."""


@entry_point
def _add_velocities(
    regressor: Matrix,
    velocity: Vector,
    std: Vector,
    learns: Flags,
    duration: float,
    odd: Matrix,
    gram: Matrix,
    moments: Tensor,
    rows: Tensor,
    times: Matrix,
    velocity_range: Matrix,
    directions: Matrix,
) -> bool:
    """Count the present velocity of every motor that moves, and renew rows, ranges and directions.

    Parameters
    ----------
    regressor, velocity, std, learns, duration : of :meth:`VisitedVelocities.add_velocities`
    odd, gram, moments, rows, times, velocity_range, directions : state of :class:`VisitedVelocities`, changed in
        place but ``odd``

    Returns
    -------
    False where the state is not finite
    """
    n, p = regressor.shape
    for motor in range(n):
        directions[motor] *= math.exp(-duration / _DIRECTION_MEMORY)
        speed = abs(velocity[motor])
        if not speed > max(MIN_SPEED, _MIN_SIGMAS * std[motor]):
            continue
        if not (learns[motor] or velocity_range[motor, 0] > 0.0):  # NaN before
            continue
        direction = 1.0 if velocity[motor] > 0.0 else -1.0
        way = 1 if direction > 0.0 else 0
        directions[motor, way] += duration
        if directions[motor, way] > _DIRECTION_TIME:
            directions[motor, way] = math.inf
        if not learns[motor]:
            continue
        g, m, t = gram[motor], moments[motor], times[motor]
        g[0] += duration
        g[1] += duration * speed
        g[2] += duration * speed * speed
        for i in range(p):
            part = duration * direction * odd[motor, i] * regressor[motor, i]
            m[0, i] += part
            m[1, i] += speed * part
        determinant = g[0] * g[2] - g[1] * g[1]
        for i in range(p):
            rows[0, motor, i] = (g[2] * m[0, i] - g[1] * m[1, i]) / determinant
            rows[1, motor, i] = (g[0] * m[1, i] - g[1] * m[0, i]) / determinant
        t[min(int(2.0 * math.log2(speed / MIN_SPEED)), t.size - 1)] += duration
        for end in range(2):
            remaining = (1.0 - RANGE_TAIL if end else RANGE_TAIL) * t.sum()
            index = 0
            while index < t.size - 1 and remaining > t[index]:
                remaining -= t[index]
                index += 1
            velocity_range[motor, end] = MIN_SPEED * 2.0 ** (0.5 * (index + remaining / t[index]))
    return is_bounded(gram) and is_bounded(moments) and is_bounded(rows) and is_bounded(times)


class VisitedVelocities:
    """Velocities of all motors so far, weighted by time, and the Coulomb-viscous line of any law over them.

    Parameters
    ----------
    laws : of the motors (n)

    Attributes
    ----------
    rows : (2, n, p) F_c and F_v of each motor are these rows times its parameters
    velocity_range : (n, 2) speeds between which a motor spent nine tenths of its time in motion [rad/s]; NaN before
    """

    # _directions : (n, 2) fading time of the motion backward and forward [s]; infinite once it was long enough

    def __init__(self, laws: JointLaws) -> None:
        self._laws = laws
        shape, factor = laws.table.codes[..., SHAPE], laws.table.codes[..., FACTOR]
        not_directional = np.isin(shape, (Shape.CONSTANT, Shape.STRAIN))  # no friction of a motion that goes on
        self._all: BoolArray = np.ones(len(laws.law_names), dtype=bool)
        self._odd = 1.0 - (not_directional | (factor != Factor.NONE))
        self.reset_to_prior()

    @property
    def moving_time(self) -> FloatArray:
        """How long every motor was in motion, (n,) [s]."""
        return self._times.sum(axis=1)

    @property
    def known(self) -> BoolArray:
        """Motors (n,) that have moved in both directions since they began to learn, or are known from earlier."""
        return np.asarray(np.isinf(self._directions).all(axis=1))

    def reset_to_prior(self) -> None:
        """Drop all velocities."""
        n, p = self._odd.shape
        self._gram, self._moments, self.rows = np.zeros((n, 3)), np.zeros((n, 2, p)), np.empty((2, n, p))
        self._times, self.velocity_range = np.zeros((n, _BINS)), np.full((n, 2), np.nan)
        self._directions = np.zeros((n, 2))
        self._set_prior_motion(np.ones(n, dtype=bool), np.tile(_PRIOR_RANGE, (n, 1)))

    def copy_identified(self, other: VisitedVelocities, columns: tuple[IntArray, IntArray]) -> None:
        """Use the velocities of other laws of the same motors.

        Parameters
        ----------
        columns : (q,), (q,) of common parameters, in this object and in ``other``; those of a ripple have no part in
            the line
        """
        here, there = columns
        self._gram[:], self._times[:], self.velocity_range[:] = other._gram, other._times, other.velocity_range
        self._directions[:] = other._directions
        self._moments[:], self.rows[:] = 0.0, 0.0
        self._moments[..., here], self.rows[..., here] = other._moments[..., there], other.rows[..., there]

    def add_velocities(
        self,
        regressor: FloatArray,
        velocity: FloatArray,
        std: FloatArray,
        duration: float,
        learns: BoolArray | None = None,
    ) -> None:
        """Count the present velocities.

        Parameters
        ----------
        regressor : (n, p) of the laws at these velocities and at the present loads
        velocity : (n,) of the motors [rad/s]
        std : (n,) its standard deviation [rad/s]
        duration : for which the velocities stand [s]
        learns : (n,) False for motors whose law does not learn now; None: all do

        Raises
        ------
        FloatingPointError
            When the state of a motor was not finite; it has no velocities any more.
        """
        is_valid = _add_velocities(
            regressor, velocity, std, self._all if learns is None else learns, duration, self._odd, self._gram,
            self._moments, self.rows, self._times, self.velocity_range, self._directions,
        )  # fmt: skip
        if not is_valid:
            parts = self._gram, self._moments, self.rows.swapaxes(0, 1), self._times
            failed = np.any(
                [(~(np.abs(part) <= DIVERGENCE_LIMIT)).reshape(len(part), -1).any(axis=1) for part in parts], axis=0
            )
            self._set_prior_motion(failed, np.tile(_PRIOR_RANGE, (int(failed.sum()), 1)))
            self.velocity_range[failed] = np.nan
            raise FloatingPointError(
                f"the velocities of {failed.sum()} motors so far were not finite, and are forgotten"
            )

    def restore(self, identified: IdentifiedParameters, here: Sequence[int], there: Sequence[int]) -> None:
        """Start from the ranges of speeds that motors had in an earlier run.

        Until a motor moves, its Coulomb and viscous friction are those over its saved range without load.

        Parameters
        ----------
        identified : of the earlier run; motors whose range it does not have keep their present one. Laws without any
            range are not of a run but were given: they are known, as far as they have samples
        here, there : rows of the same motors here and in ``identified``
        """
        if identified.velocity_range is None or np.isnan(identified.velocity_range).all():
            given = np.asarray(here)[identified.samples[there] > 0.0]
            self._directions[given] = np.inf
            return
        saved = np.full_like(self.velocity_range, np.nan)
        saved[here] = identified.velocity_range[there]
        known = np.asarray(np.isfinite(saved).all(axis=1))
        self._set_prior_motion(known, saved[known])
        self.velocity_range[known], self._directions[known] = saved[known], np.inf

    def _set_prior_motion(self, motors: BoolArray, ends: FloatArray) -> None:
        """Reset some motors to a prior motion, for a moment to and fro between two speeds (m, 2)."""
        speeds = np.ones((_PRIOR_SPEEDS, motors.size))
        speeds[:, motors] = np.geomspace(ends[:, 0], ends[:, 1], _PRIOR_SPEEDS)
        no_load = np.zeros_like(speeds)
        difference = self._laws.regressor(speeds, no_load) - self._laws.regressor(-speeds, no_load)
        basis = np.stack((np.ones_like(speeds), speeds))
        duration = _PRIOR_TIME / _PRIOR_SPEEDS
        gram = duration * np.einsum("akn,bkn->nab", basis, basis)[motors]
        moments = duration * np.einsum("akn,knp->nap", basis, 0.5 * self._odd * difference)[motors]
        self._gram[motors], self._moments[motors] = gram[:, (0, 0, 1), (0, 1, 1)], moments
        self.rows[:, motors] = np.linalg.solve(gram, moments).swapaxes(0, 1)
        self._times[motors] = 0.0
