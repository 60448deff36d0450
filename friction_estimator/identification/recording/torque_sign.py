"""Does the recorded torque resist or drive? Signs that show without a model of the robot, or against one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from friction_estimator.errors import InputError
from friction_estimator.identification.recording.motion import Motion
from friction_estimator.identification.recording.parallel import make_parallel_filter
from friction_estimator.identification.regression.least_squares import SolverOptions, solve
from friction_estimator.identification.regression.linear_problem import LinearProblem
from friction_estimator.types import FloatArray

_ROWS_A_COLUMN = 4
_WEAK = 1e3  # sigma of what is known before, in the norm of the torque: only what columns share is decided by it
_EACH, _BOTH = 1.5, 5.0  # standard deviations from zero: either sign alone, and both together
_STANDSTILL = 0.05  # of the RMS velocity: width of the smooth sign
_SEEN = 0.02  # of the variance of a torque that the motion must explain


@dataclass(frozen=True, slots=True)
class TorqueSign:
    """What the torque of one joint does, in standard deviations from zero.

    Attributes
    ----------
    joint : its name
    inertia : part that follows the own acceleration (or the torque of the model); positive in every real joint
    friction : power of the part that follows the own velocity; positive in every real joint
    seen : share of the variance of the torque that both explain beyond gravity
    """

    joint: str
    inertia: float
    friction: float
    seen: float

    @property
    def reversed(self) -> bool:
        """Whether both signs are wrong: each probably, both together surely."""
        together = (self.inertia + self.friction) / math.sqrt(2.0)
        return self.seen > _SEEN and max(self.inertia, self.friction) < -_EACH and together < -_BOTH


def torque_signs(motion: Motion) -> tuple[TorqueSign, ...]:
    """Signs of every joint that moves, by regression on what any robot's torque is made of.

    The torque of a joint is regressed on the accelerations of all joints, on sines and cosines of their positions for
    gravity, and on the own velocity and its sign. The coefficient of the own acceleration is the inertia that the joint
    sees, positive in any pose; the power of the velocity terms is that of friction. Forces of the ground or of a hand
    can fake one of them, hardly both.
    """
    if motion.effort is None:
        return ()
    moving = _moving(motion)
    common = [motion.acceleration[:, moving], np.sin(motion.position[:, moving]), np.cos(motion.position[:, moving])]
    found = []
    for place, joint in enumerate(moving):
        if np.isfinite(motion.effort[:, joint]).all():
            W = np.column_stack([*common, np.ones(motion.time.size)])
            found.append(_sign(motion, joint, W, place))
    return tuple(sign for sign in found if sign is not None)


def torque_signs_with_model(motion: Motion, rigid_body_torque: FloatArray) -> tuple[TorqueSign, ...]:
    """Signs of every joint that moves, against a model.

    Parameters
    ----------
    motion : with effort
    rigid_body_torque : (N, n) inverse dynamics of the motion without friction [N m]; need not be exact
    """
    if motion.effort is None:
        return ()
    if rigid_body_torque.shape != motion.effort.shape:
        raise InputError(
            f"the torque of the model has the shape {rigid_body_torque.shape}, the motion {motion.effort.shape}"
        )
    found = []
    for joint in _moving(motion):
        if np.isfinite(motion.effort[:, joint]).all():
            W = np.column_stack([rigid_body_torque[:, joint], np.ones(motion.time.size)])
            found.append(_sign(motion, joint, W, 0))
    return tuple(sign for sign in found if sign is not None)


def _moving(motion: Motion) -> list[int]:
    speed = np.sqrt(np.mean(motion.velocity**2, axis=0))
    return np.flatnonzero(speed > 1e-3 * max(speed.max(), np.finfo(float).tiny)).tolist()


def _sign(motion: Motion, joint: int, W: FloatArray, inertia: int) -> TorqueSign | None:
    """Regress one torque on W (N, p) and the own velocity; ``inertia`` is the column whose sign is asked."""
    if motion.effort is None:
        return None
    v = motion.velocity[:, joint]
    sign = np.tanh(v / (_STANDSTILL * np.sqrt(np.mean(v**2))))
    design = make_parallel_filter(motion)
    columns = design.apply(np.column_stack([W, v, sign]))
    y = design.apply(motion.effort[:, joint])
    scale = np.linalg.norm(columns, axis=0)
    columns = columns / np.where(scale > 0.0, scale, 1.0)
    if y.size < _ROWS_A_COLUMN * columns.shape[1] or np.ptp(y) == 0.0:
        return None
    values, sigma = _estimated(columns, y, _asked(columns, inertia))
    rest = np.delete(columns, [inertia, -2, -1], axis=1)
    without = np.mean((y - rest @ np.linalg.lstsq(rest, y, rcond=None)[0]) ** 2)
    with_all = np.mean((y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]) ** 2)
    z = values / np.maximum(sigma, np.finfo(float).tiny)
    return TorqueSign(motion.joint_names[joint], float(z[0]), float(z[1]), float((without - with_all) / np.var(y)))


def _asked(columns: FloatArray, inertia: int) -> FloatArray:
    """Rows (2, p): the coefficient of the inertia, and the power of both velocity terms."""
    rows = np.zeros((2, columns.shape[1]))
    rows[0, inertia] = 1.0
    rows[1, -2:] = columns[:, -2:].T @ columns[:, -2]  # sums of v v and sgn(v) v, scaled alike
    return rows


def _estimated(W: FloatArray, y: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Estimates ``rows @ chi`` and their standard deviations, without pushes and collisions.

    A push has so much leverage that every block of time without it gives another answer.
    """
    same, p = np.zeros(y.size, dtype=np.intp), W.shape[1]
    names = tuple(str(k) for k in range(p))
    problem = LinearProblem(names, ("",) * p, W, y, same, same, np.zeros(p, dtype=bool))
    weak = np.full(p, _WEAK * np.linalg.norm(y))  # columns are of unit length; some may be the same
    fit = solve(problem, SolverOptions(bounded=False), weak)
    return rows @ fit.values, np.sqrt(np.diagonal(rows @ fit.covariance @ rows.T))
