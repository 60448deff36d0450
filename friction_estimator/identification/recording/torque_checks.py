"""Torques of a recording: whether they have the right sign and belong to their joint; drives with commands."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import combinations
from types import MappingProxyType

import numpy as np
from scipy.interpolate import make_interp_spline

from friction_estimator.errors import ConfigError, InputError, choices
from friction_estimator.identification.joint_log import COMMAND, COMMANDED, KD, KP, JointLog, Motion
from friction_estimator.identification.linear_problem import LinearProblem, Prior, SolverOptions
from friction_estimator.identification.recording.sampling import find_stretches, repair, usual_period
from friction_estimator.identification.recording.zero_phase import make_parallel_filter, velocity_is_complete
from friction_estimator.identification.uncertainty import solve
from friction_estimator.types import FloatArray

_ROWS_A_COLUMN = 4
_WEAK = 1e3  # sigma of what is known before, in the norm of the torque: only what columns share is decided by it
_CERTAIN, _FOLLOWS, _OTHER_UNIT = 10.0, 0.5, 4.0  # sigma, share of the variance, factor that no wrong URDF explains
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
    scale : torque over that of the rigid-body model; NaN without a model
    """

    joint: str
    inertia: float
    friction: float
    seen: float
    scale: float = math.nan

    @property
    def other_unit(self) -> bool:
        """Whether the torque surely follows the model, with another size."""
        certain = self.inertia > _CERTAIN and self.seen > _FOLLOWS
        return certain and max(self.scale, 1.0 / self.scale) > _OTHER_UNIT  # False without a model

    @property
    def reversed(self) -> bool:
        """Whether both signs are wrong: each probably, both together surely."""
        together = (self.inertia + self.friction) / math.sqrt(2.0)
        return self.seen > _SEEN and max(self.inertia, self.friction) < -_EACH and together < -_BOTH


def torque_signs(motion: Motion, rigid_body_torque: FloatArray | None = None) -> tuple[TorqueSign, ...]:
    """Signs of every joint that moves, by regression on what any robot's torque is made of.

    The torque of a joint is regressed on the accelerations of all joints, on sines and cosines of their positions for
    gravity, and on the own velocity and its sign. The coefficient of the own acceleration is the inertia that the joint
    sees, positive in any pose; the power of the velocity terms is that of friction. Forces of the ground or of a hand
    can fake one of them, hardly both.

    Parameters
    ----------
    rigid_body_torque : (N, n) inverse dynamics of the motion without friction [N m]; need not be exact. It takes the
        place of accelerations, sines and cosines

    Raises
    ------
    InputError
        When the torque of the model has another shape than that of the motion.
    """
    if motion.effort is None:
        return ()
    if rigid_body_torque is not None and rigid_body_torque.shape != motion.effort.shape:
        raise InputError(
            f"the torque of the model has the shape {rigid_body_torque.shape}, the motion {motion.effort.shape}"
        )
    moving, found = _moving(motion), []
    common = [motion.acceleration[:, moving], np.sin(motion.position[:, moving]), np.cos(motion.position[:, moving])]
    for place, joint in enumerate(moving):
        if np.isfinite(motion.effort[:, joint]).all():
            columns = common if rigid_body_torque is None else [rigid_body_torque[:, joint]]
            W = np.column_stack([*columns, np.ones(motion.time.size)])
            sign = _sign(motion, motion.effort[:, joint], joint, W, place if rigid_body_torque is None else 0)
            if sign is not None:
                found.append(sign if rigid_body_torque is not None else replace(sign, scale=math.nan))
    return tuple(found)


def _moving(motion: Motion) -> list[int]:
    speed = np.sqrt(np.mean(motion.velocity**2, axis=0))
    return np.flatnonzero(speed > 1e-3 * max(speed.max(), np.finfo(float).tiny)).tolist()


def _sign(motion: Motion, effort: FloatArray, joint: int, W: FloatArray, inertia: int) -> TorqueSign | None:
    """Regress one torque (N,) on W (N, p) and the own velocity; ``inertia`` is the column whose sign is wanted."""
    v = motion.velocity[:, joint]
    sign = np.tanh(v / (_STANDSTILL * np.sqrt(np.mean(v**2))))
    design = make_parallel_filter(motion)
    columns = design.apply(np.column_stack([W, v, sign]))
    y = design.apply(effort)
    scale = np.linalg.norm(columns, axis=0)
    columns = columns / np.where(scale > 0.0, scale, 1.0)
    if y.size < _ROWS_A_COLUMN * columns.shape[1] or np.ptp(y) == 0.0:
        return None
    values, sigma = _estimated(columns, y, _asked(columns, inertia))
    rest = np.delete(columns, [inertia, -2, -1], axis=1)
    without = np.mean((y - rest @ np.linalg.lstsq(rest, y, rcond=None)[0]) ** 2)
    with_all = np.mean((y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]) ** 2)
    z = values / np.maximum(sigma, np.finfo(float).tiny)
    seen, size = float((without - with_all) / np.var(y)), float(values[0] / (scale[inertia] or 1.0))
    return TorqueSign(motion.joint_names[joint], float(z[0]), float(z[1]), seen, size)


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
    weak = Prior.of_std(np.full(p, _WEAK * np.linalg.norm(y)))  # columns are of unit length; some may be the same
    fit = solve(problem, SolverOptions(bounded=False), weak)
    return rows @ fit.values, np.sqrt(np.diagonal(rows @ fit.covariance @ rows.T))


_PARTS = 8
_MOST = 0.75
"""Of the parts of the recording must agree: lowering an arm once is not all of it."""
_SWING, _SHARE = 0.9, 0.5
"""What is lent and returned may hide a tenth of the work, and half of the power."""
_TURNS = 4
"""Fewer are a weight that somebody lifts or lowers."""
_LASTING = 0.5
"""A swing that slows down by more gives back its own energy."""
_STANDING = 0.1
"""Of the RMS velocity: slower, a joint has no direction."""


@dataclass(frozen=True, slots=True)
class NetWork:
    """Work of the torque of one joint along its own motion.

    Attributes
    ----------
    joint : its name
    work : over the recording [J]
    of_swing : work over the largest change of the work between any two instants, -1 to 1: near zero when energy goes
        to and fro, one when it only ever flows from the motor
    of_power : work over the integral of the absolute power, -1 to 1
    taking : share of eight parts of the recording in which the torque takes energy
    turns : how often the joint turns round
    lasting : RMS velocity of the second half over that of the first: a swing that a motor brakes gives back what it had
    """

    joint: str
    work: float
    of_swing: float
    of_power: float
    taking: float
    turns: int
    lasting: float

    @property
    def reversed(self) -> bool:
        """Whether the torque takes energy all along, from a joint that moves to and fro."""
        drains = self.of_swing < -_SWING and self.of_power < -_SHARE
        return drains and self.taking >= _MOST and self.turns >= _TURNS and self.lasting > _LASTING


def net_works(motion: Motion) -> tuple[NetWork, ...]:
    """Work of every joint whose torque was measured throughout, and that moves.

    Kinetic and potential energy are lent, whatever the robot is: their work returns, or another joint pays for it. What
    does not return is what friction took, so that over many movements the work of a motor is positive, unless something
    else moves the joint: a hand, the ground, a slope.
    """
    if motion.effort is None:
        return ()
    known = np.isfinite(motion.effort).all(axis=0) & (np.abs(motion.effort * motion.velocity).sum(axis=0) > 0.0)
    return tuple(
        _net_work(name, motion.effort[:, joint] * motion.period, motion.velocity[:, joint])
        for joint, name in enumerate(motion.joint_names)
        if known[joint]
    )


def _net_work(name: str, impulse: FloatArray, speed: FloatArray) -> NetWork:
    """From torque times period (N,) [N m s] and velocity (N,) [rad/s]."""
    power = impulse * speed
    work = np.concatenate(([0.0], np.cumsum(power)))
    direction = np.sign(speed[np.abs(speed) > _STANDING * np.sqrt(np.mean(speed**2))])
    parts = np.array([part.sum() for part in np.array_split(power, _PARTS)])
    first, second = (float(np.mean(half**2)) for half in np.array_split(speed, 2))
    return NetWork(
        joint=name,
        work=float(work[-1]),
        of_swing=float(work[-1] / np.ptp(work)),
        of_power=float(work[-1] / np.abs(power).sum()),
        taking=float(np.mean(parts < 0.0)),
        turns=int(np.count_nonzero(np.diff(direction))),
        lasting=float(np.sqrt(second / first)) if first > 0.0 else float("inf"),
    )


_MORE = 3.0  # times as much of the torque must answer to the other joint as to its own
_EXPLAINED = 0.5  # of the variance of a torque may be left by the model of the joint that it belongs to


def exchanged_torques(motion: Motion) -> list[tuple[str, str]]:
    """Pairs of joints whose torques answer to each other's velocity, and not to their own."""
    if motion.effort is None:
        return []
    share, names = velocity_shares(motion), motion.joint_names
    return [
        (names[one], names[other])
        for one, other in combinations(range(len(names)), 2)
        if min(share[one, other], share[other, one]) > max(_MORE * max(share[one, one], share[other, other]), _SEEN)
    ]


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
    for one, other in combinations(range(len(motion.joint_names)), 2):
        own, exchanged = left[one, one] + left[other, other], left[one, other] + left[other, one]
        fits = max(left[one, other], left[other, one]) < _EXPLAINED
        if fits and _MORE * exchanged < own:  # never where a torque is constant or missing
            pairs.append((motion.joint_names[one], motion.joint_names[other]))
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


Gain = float | Mapping[str, float]
"""Gain of all drives, or of joints by name or pattern such as ``*_calf``, of which the last one that matches holds."""
_DEGREE = 5


def with_drive_torque(log: JointLog, kp: Gain | None = None, kd: Gain | None = None) -> JointLog:
    """The log with the torque ``kp (q_des - q) - kd dq`` of drives that get positions as its ``effort``.

    Parameters
    ----------
    log : with the column ``command/<joint>``, q_des [rad], of every joint
    kp, kd : gains of the drives [N m/rad, N m s/rad]; None: the columns ``kp/<joint>`` and ``kd/<joint>``

    Returns
    -------
    log : the same one without gains when it has a measured torque, or no command

    Raises
    ------
    ConfigError
        When a gain is missing, negative, or of a joint that is not there.
    InputError
        When gains are given and there is no command.
    """
    given = kp is not None or kd is not None
    if not given and (log.effort is not None or not {COMMAND, KP, KD} <= set(log.inputs)):
        return log
    if COMMAND not in log.inputs or np.isnan(log.inputs[COMMAND]).all(axis=0).any():
        raise InputError(
            f"{log.name}: gains of the drives need the column command/<joint> of every joint, the commanded position; "
            f"it has {choices(('position', *log.inputs))}"
        )
    log, _ = repair(log)
    stiffness, damping = (_gains(log, kind, gain) for kind, gain in ((KP, kp), (KD, kd)))
    commanded = stiffness * log.inputs[COMMAND]
    effort = commanded - stiffness * log.position - damping * _velocity(log)
    if not np.isfinite(effort).all():
        raise InputError(f"{log.name}: a command or gain is missing in some samples: leave them out")
    inputs = {**log.inputs, COMMANDED: commanded, KP: stiffness, KD: damping}
    return replace(log, effort=effort, inputs=MappingProxyType(inputs))


def _gains(log: JointLog, kind: str, given: Gain | None) -> FloatArray:
    """Gains (N, n) of all joints."""
    if given is None:
        if kind not in log.inputs:
            raise ConfigError(f"{log.name}: the gain {kind} of the drives is missing: give it, or the column {kind}")
        return log.inputs[kind]
    by_pattern = given if isinstance(given, Mapping) else {"*": given}
    gains = np.full(len(log.joint_names), np.nan)
    for pattern, gain in by_pattern.items():
        matches = np.array([fnmatchcase(joint, pattern) for joint in log.joint_names])
        if not matches.any():
            raise ConfigError(f"{kind}: {pattern!r} matches no joint; the joints are {choices(log.joint_names)}")
        gains[matches] = gain
    wrong = [joint for joint, gain in zip(log.joint_names, gains, strict=True) if not 0.0 <= gain < np.inf]
    if wrong:
        raise ConfigError(f"{kind} of {choices(wrong)} is missing or negative: give it for every joint, zero or more")
    return np.tile(gains, (log.time.size, 1))


def _velocity(log: JointLog) -> FloatArray:
    """Measured velocity (N, n), or the derivative of the position without phase or low-pass [rad/s]."""
    if log.velocity is not None and velocity_is_complete(log):
        return log.velocity
    velocity = np.zeros_like(log.position)
    for stretch in find_stretches(log.time, usual_period(log.time)):
        rows = slice(stretch.start, stretch.stop)
        if stretch.stop - stretch.start > _DEGREE:
            spline = make_interp_spline(log.time[rows], log.position[rows], k=_DEGREE)
            velocity[rows] = spline.derivative()(log.time[rows])
    return velocity
