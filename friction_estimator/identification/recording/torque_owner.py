"""Which joint does a torque belong to? Friction is local: it answers to the velocity of its own joint."""

from __future__ import annotations

import numpy as np

from friction_estimator.errors import InputError
from friction_estimator.identification.recording.motion import Motion
from friction_estimator.identification.recording.parallel import make_parallel_filter
from friction_estimator.types import FloatArray

_STANDSTILL = 0.05  # of the RMS velocity: width of the smooth sign
_MORE = 3.0  # times as much of the torque must answer to the other joint as to its own
_EXPLAINED = 0.5  # of the variance of a torque may be left by the model of the joint that it belongs to
_SEEN = 0.02  # of the variance of a torque
_ROWS_A_COLUMN = 4


def exchanged_torques(motion: Motion) -> list[tuple[str, str]]:
    """Pairs of joints whose torques answer to each other's velocity, and not to their own."""
    if motion.effort is None:
        return []
    share = velocity_shares(motion)
    pairs = []
    for one in range(len(motion.joint_names)):
        for other in range(one):
            own = max(share[one, one], share[other, other])
            if min(share[one, other], share[other, one]) > max(_MORE * own, _SEEN):
                pairs.append((motion.joint_names[other], motion.joint_names[one]))
    return pairs


def exchanged_with_model(motion: Motion, rigid_body_torque: FloatArray) -> list[tuple[str, str]]:
    """Pairs of joints whose torques fit the rigid-body model of each other far better than their own.

    Parameters
    ----------
    rigid_body_torque : (N, n) inverse dynamics of the motion [N m]
    """
    if motion.effort is None:
        return []
    apart = motion.effort[:, :, None] - rigid_body_torque[:, None, :]
    own_variance = np.var(motion.effort, axis=0)
    left = np.var(apart, axis=0) / np.where(own_variance > 0.0, own_variance, np.nan)[:, None]
    pairs = []
    for one in range(len(motion.joint_names)):
        for other in range(one):
            own, exchanged = left[one, one] + left[other, other], left[one, other] + left[other, one]
            fits = max(left[one, other], left[other, one]) < _EXPLAINED
            if fits and _MORE * exchanged < own:  # never where a torque is constant or missing
                pairs.append((motion.joint_names[other], motion.joint_names[one]))
    return pairs


def velocity_shares(motion: Motion) -> FloatArray:
    """Share of the variance of each torque (row) that the velocity of each joint (column) alone explains, (n, n).

    What the accelerations of all joints, and sines and cosines of their positions explain is taken off before, and so
    are the velocities of all other joints.
    """
    n = len(motion.joint_names)
    if motion.effort is None or n < 2:
        return np.zeros((n, n))
    v = motion.velocity
    slow = np.maximum(_STANDSTILL * np.sqrt(np.mean(v**2, axis=0)), np.finfo(float).tiny)
    common = [motion.acceleration, np.sin(motion.position), np.cos(motion.position), np.ones((v.shape[0], 1))]
    try:
        design = make_parallel_filter(motion)
    except InputError:  # too short between the edges
        return np.zeros((n, n))
    columns = design.apply(np.column_stack([*common, v, np.tanh(v / slow)]))
    effort = design.apply(np.nan_to_num(motion.effort))
    if effort.shape[0] < _ROWS_A_COLUMN * columns.shape[1]:
        return np.zeros((n, n))
    variance = np.maximum(np.var(effort, axis=0), np.finfo(float).tiny)
    first = columns.shape[1] - 2 * n
    whole = _squares(columns, effort)
    without = [_squares(np.delete(columns, [first + joint, first + n + joint], axis=1), effort) for joint in range(n)]
    return np.asarray((np.column_stack(without) - whole[:, None]) / (effort.shape[0] * variance[:, None]))


def _squares(W: FloatArray, y: FloatArray) -> FloatArray:
    """Sum of squares (n,) of what W (K, p) leaves of y (K, n)."""
    return np.asarray(np.sum((y - W @ np.linalg.lstsq(W, y, rcond=None)[0]) ** 2, axis=0))
