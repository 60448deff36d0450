"""Torques of a recording: which joint's they are, with which sign and unit; and those of drives with commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import combinations
from types import MappingProxyType

import numpy as np
from scipy.interpolate import make_interp_spline

from friction_estimator.errors import ConfigError, InputError, choices
from friction_estimator.identification.joint_log import COMMAND, COMMANDED, KD, KP, JointLog
from friction_estimator.identification.linear_problem import LinearProblem, robust_std, solve_values
from friction_estimator.identification.recording.motion import Motion, velocity_is_complete
from friction_estimator.identification.recording.sampling import find_stretches, repair, usual_period, white_noise
from friction_estimator.identification.recording.zero_phase import make_parallel_filter
from friction_estimator.types import FloatArray

_FITTED_ROWS = 500
"""Rows that every reading of a torque is fitted to: more do not decide."""
_MOST_LEFT = 0.7
"""Share of a torque, in standard deviations, that a reading of it, or of one of two, may leave."""
_BETTER_FACTOR = 1.4
"""Times as much must be left by the reading as recorded: no wrong URDF, and no friction, makes that difference."""
_OTHER_UNIT = 5.0
"""Factor that no wrong URDF explains."""
_SIGN_WIDTH = 0.05
"""Of the RMS velocity: width of the smooth sign."""


def torque_suspicions(motion: Motion, rigid: FloatArray) -> tuple[str, ...]:
    """Torques that are those of another joint, have the wrong sign or another unit, one sentence each.

    Every torque is fitted as that of every joint: ``tau = s rigid + F_v dq + F_c sgn(dq) + I_a ddq + c``, none but c
    below zero, where the joint moves: one that stands is held by any friction. Readings are compared by what they leave
    of the torque, pushes left out. With the right sign there is friction that takes power out of the motion; a torque
    that carries other weights, such as that of a standing leg, has none with the other sign.

    Parameters
    ----------
    motion : with effort
    rigid : (N, n) inverse dynamics of the motion without friction [N m]; need not be exact

    Raises
    ------
    InputError
        When the torque of the model has another shape than that of the motion.
    """
    if motion.effort is None:
        return ()
    if rigid.shape != motion.effort.shape:
        raise InputError(
            f"the torque of the model has the shape {rigid.shape}, the motion {motion.effort.shape}: evaluate the "
            "inverse dynamics of every sample of this motion, for its joints in their order"
        )
    design, names, v = make_parallel_filter(motion), motion.joint_names, motion.velocity
    slow = np.maximum(_SIGN_WIDTH * np.sqrt(np.mean(v**2, axis=0)), np.finfo(float).tiny)
    few = slice(None, None, -(-design.kept.size // _FITTED_ROWS))
    columns = design.apply(np.stack([rigid, v, np.tanh(v / slow), motion.acceleration, np.ones_like(v)], axis=2))[few]
    moves = np.abs(columns[:, :, 1]) > slow
    known = np.flatnonzero(np.isfinite(motion.effort).all(axis=0))
    torque = np.zeros_like(columns[:, :, 0])
    torque[:, known] = design.apply(motion.effort[:, known])[few]
    known = known[[_size(torque[moves[:, k], k]) > 0.0 for k in known]]
    found = []
    for one in known:
        own, rows = columns[moves[:, one], one], torque[moves[:, one], one]
        (share, values), (turned, others), (bare, _) = _left(rows, own), _left(-rows, own), _left(rows, own[:, 1:])
        if min(_MOST_LEFT, share / _BETTER_FACTOR) > turned and others[1:3].any():
            found.append(
                f"effort/{names[one]} acts against the torque of the rigid-body model: with the other sign it leaves "
                f"{100 * turned:.0f} in place of {100 * share:.0f} %: has it the wrong sign? effort is the torque of "
                "the motor on the joint"
            )
        elif bare > _BETTER_FACTOR**2 * share and not 1.0 / _OTHER_UNIT < values[0] < _OTHER_UNIT:
            found.append(
                f"effort/{names[one]} is {values[0]:.3g} times the torque of the rigid-body model: is it in another "
                "unit, a current, or the torque of the motor before its gear?"
            )
    for pair in combinations(known, 2):
        both = moves[:, pair].all(axis=1)
        exchanged = [_left(torque[both, one], columns[both, other]) for one, other in (pair, pair[::-1])]
        own = [min(_left(sign * torque[both, one], columns[both, one])[0] for sign in (1.0, -1.0)) for one in pair]
        likely = all(values[1:3].any() for _, values in exchanged)
        shares = [share for share, _ in exchanged]
        if likely and min(shares) < _MOST_LEFT and np.prod(own) > _BETTER_FACTOR**2 * np.prod(shares):
            first, second = (names[k] for k in pair)
            found.append(
                f"effort/{first} answers to the weight and inertia of {second}, and effort/{second} to that of "
                f"{first}: are columns of these joints exchanged?"
            )
    return tuple(found)


def _left(torque: FloatArray, columns: FloatArray) -> tuple[float, FloatArray]:
    """Share of a torque (K,) that a reading with columns (K, c) leaves, and its parameters (c,), the last one free."""
    shown = np.linalg.norm(columns, axis=0) > 0.0
    own, values = columns[:, shown], np.zeros(columns.shape[1])
    p, same = own.shape[1], np.zeros(torque.size, dtype=np.intp)
    if torque.size <= p:
        return 1.0, values
    problem = LinearProblem(("",) * p, ("",) * p, own, torque, same, same, np.arange(p) < p - 1)
    values[shown] = solve_values(problem).values
    return robust_std(torque - columns @ values) / _size(torque), values


def _size(torque: FloatArray) -> float:
    """Standard deviation of a torque, pushes left out [N m]."""
    return robust_std(torque - np.median(torque)) if torque.size else 0.0


Gain = float | Mapping[str, float]
"""Gain of all drives, or of joints by name or pattern such as ``*_calf``, of which the last one that matches holds."""
_SPLINE_DEGREE = 5
"""Of the spline through the positions."""


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


def with_more_noise(log: JointLog) -> JointLog:
    """The log with further white noise in positions and velocities, of the standard deviation that theirs has already.

    Torques that a drive computes from command, position and velocity are computed anew from the noisy readings.
    Bad samples are left out first, as every treatment does (:func:`repair`), so that the rows are the same.
    """
    log, _ = repair(log)
    random = np.random.default_rng(0)

    def noisy(signal: FloatArray) -> FloatArray:
        return np.asarray(signal + [white_noise(one) for one in signal.T] * random.normal(size=signal.shape))

    velocity = noisy(log.velocity) if log.velocity is not None and velocity_is_complete(log) else log.velocity
    log = replace(log, position=noisy(log.position), velocity=velocity)
    if COMMANDED not in log.inputs:
        return log
    feedback = log.inputs[KP] * log.position + log.inputs[KD] * _velocity(log)
    return replace(log, effort=log.inputs[COMMANDED] - feedback)


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
        if stretch.stop - stretch.start > _SPLINE_DEGREE:
            spline = make_interp_spline(log.time[rows], log.position[rows], k=_SPLINE_DEGREE)
            velocity[rows] = spline.derivative()(log.time[rows])
    return velocity
