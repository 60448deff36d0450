"""Which error of the sensors explains the balance of torques: a table of errors, compared by their likelihood.

Motor torques less those that gravity, foot forces and accelerations need are friction, and what the readings are wrong
by. Every error has its columns G in this balance y, which say what it adds. With ``L = G^T G`` and ``b = G^T y`` over
the rows of the newest seconds, and the variances P of the errors of right sensors, an error ``a ~ N(m, V)`` more than
those has the information ``J = (1 + L P)^-1 L`` and the product ``d = (1 + L P)^-1 b - J m``. Against no error N
numbers with the weighted square Q, or Q' once m is taken out, give it

    log odds = (nu + N) / 2 log((nu + Q) / (nu + Q' - d^T (V^-1 + J)^-1 d)) - log det(1 + V J) / 2

with the size of the noise integrated out, as for changes in mid-run (:mod:`~friction_estimator.estimation.kalman`).
Errors compete by these odds and by the probability that friction, with the error taken out, brakes every joint.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import log_ndtr

from friction_estimator.config import Config
from friction_estimator.estimation.health import JOINTS, Check, SensorFault
from friction_estimator.kernels.compiler import entry_point
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import Dynamics, FloatArray, Matrix, SensorFrame, Vector

MIN_SPEED = 0.05
"""Speed above which a joint moves [rad/s or m/s]: friction at rest may hold any torque."""
TORQUE_PERIOD_NS = 10_000_000
"""Time between the frames of the balance [ns]: legs of a trotting robot reach their speed in 50 ms."""
_NOISE_LEVER = 1e-3
"""Prior size of the balance's noise, over the weight of the robot [m]: its true size is integrated out."""
_DEGREES_OF_FREEDOM = 10.0
"""Degrees of freedom of the prior of the noise's size, around one."""
_ROWS_PER_NUMBER = 2.0
"""Accelerations are central differences: neighbouring means share readings."""
_MIN_LOG_ODDS = 20.0
"""Log odds from which an error is named, as for changes in mid-run: right walks have less than 5 for every error, also
with masses wrong by a fifth and centres of mass by a centimetre."""
_MIN_LEAD = math.log(1e3)
"""Log odds against the next error, from which an error is named: few frames fit several."""
_ANY_FRICTION = 10.0
"""Prior size of friction that is dry [N m], viscous [N m s/rad], of the load [1] or of the position [N m/rad]: any."""
_FOOT_LEVER = 0.1
"""Half the length of a foot [m]."""
_FREE_SHARE = 0.02
"""Standard deviation of the offset of a right foot sensor, over the weight."""
_MIN_SHARE = 0.5
"""Share that an error of efforts must reach in a regression on its column alone: of its size, in the balance and in
what friction leaves of it; and of what friction leaves. For a unit, the last is the share of the efforts that the
needed torques explain. With all columns of the table, an error that the table lacks, such as friction of another joint,
can raise the likelihood of any error that it has."""
_MIN_SHARE_OF_ALL = 0.9
"""The last share for a unit of all efforts: at the start of a slow motion, of which friction of all kinds leaves
little, right efforts of a real arm have reached 0.88."""
_OF_EFFORTS = ("gain", "gains", "gravity", "net")
_HYPOTHESES_AT_ONCE = 4
"""Errors that are weighed in one frame: each takes 0.1 ms."""
_MIN_SIGMAS = 6.0
"""Standard deviations beyond which a part of a likely error is named."""


class _Error(NamedTuple):
    """An error of one joint, of one foot or of the robot.

    A driver that leaves a force out leaves out all of it: such an error is about one.
    """

    scope: str
    right: tuple[float, ...]  # (w,) standard deviations of right sensors
    wrong: tuple[float, ...]  # (w,) of wrong ones, more than that; zeros: never named, and no rival
    words: str = ""
    mean: float = 0.0


class _Hypothesis(NamedTuple):
    """An error that may be there; hypotheses sort by the sum of their first two numbers."""

    log_odds: float  # against right sensors
    braking: float  # logarithm of the probability that friction brakes all joints, or -_MIN_LOG_ODDS if that is more
    words: str
    name: str  # of the error
    values: FloatArray  # (places, w)
    sigma: FloatArray  # (places, w)
    places: range


@entry_point
def _add_columns(
    dynamics: Dynamics,
    base: int,
    imu_lever: Matrix,
    effort: Vector,
    velocity: Vector,
    position: Vector,
    wrenches: Matrix,
    specific_force: Vector,
    acceleration: Vector,
    slips: Matrix,
    rows: Matrix,
) -> None:
    """Add the torques (n, c) of each error, in the order of :func:`_errors`, and the balance (n,), to ``rows``.

    Parameters
    ----------
    base : degrees of freedom of the base
    specific_force, acceleration : base axes (3,); (3 + n,) of base and joints
    slips : (n, n) torques per error of a position
    """
    H, J, n, feet = dynamics.mass_matrix, dynamics.foot_jacobian, effort.size, len(wrenches)
    for i in range(n):
        row, out, sign = base + i, rows[i], np.sign(velocity[i])
        contact, gravity, needed = 0.0, dynamics.bias[row], 0.0
        for j in range(n):
            needed += H[row, base + j] * acceleration[3 + j]
        for axis in range(3 if base else 0):
            needed += H[row, 3 + axis] * acceleration[axis]
            for other in range(3):
                needed += H[row, axis] * imu_lever[axis, other] * acceleration[other]
        for foot in range(feet):
            for axis in range(6):
                contact -= J[foot, axis, row] * wrenches[foot, axis]
        needed += gravity + contact
        own = sign, velocity[i], 1.0, H[row, row] * acceleration[3 + i], abs(needed) * sign, position[i]
        for kind in range(6):
            out[kind * n + i] += own[kind]
        for j in range(n):
            out[6 * n + j] += slips[i, j]
        out[7 * n + i] += effort[i]
        out[8 * n] += effort[i]
        first = 8 * n + 1
        for foot in range(feet):
            axes, offset, point = first + 9 * foot, first + 9 * feet + 6 * foot, first + 15 * feet + 3 * foot
            for a in range(3):
                for b in range(3):
                    force, moment = wrenches[foot, b], wrenches[foot, 3 + b]
                    out[axes + 3 * a + b] += J[foot, a, row] * force + J[foot, 3 + a, row] * moment
                out[offset + a] += J[foot, a, row]
                out[offset + 3 + a] += J[foot, 3 + a, row]
                b, c = (a + 1) % 3, (a + 2) % 3
                out[point + a] += J[foot, 3 + b, row] * wrenches[foot, c] - J[foot, 3 + c, row] * wrenches[foot, b]
        first += 18 * feet
        if base:
            for a in range(3):
                for b in range(3):
                    out[first + 3 * a + b] += H[row, a] * specific_force[b]
            first += 9
        out[first] -= gravity
        if feet:
            out[first + 1] -= gravity + contact
            first += 1
        out[first + 1 + i] += effort[i] - needed


def _errors(config: Config, robot: RobotModel) -> dict[str, _Error]:
    """All errors by their name, in the order of their columns."""
    weight, lever = robot.weight, np.array((1.0,) * 3 + (_FOOT_LEVER,) * 3)
    offset = config.kalman.link_com_std * weight
    load, bias = tuple((weight * lever).tolist()), tuple((_FREE_SHARE * weight * lever).tolist())
    nothing, all_axes, any_size = (0.0,), (1.0,) * 9, (_ANY_FRICTION,)
    errors = {
        "dry": _Error("joint", any_size, nothing),
        "viscous": _Error("joint", any_size, nothing),
        "offset": _Error("joint", (offset,), nothing),
        "inertia": _Error("joint", any_size, nothing),
        "load": _Error("joint", any_size, nothing),
        "spring": _Error("joint", any_size, nothing),
        "slip": _Error("joint", (0.005,), (0.3,), "a slip of the encoder of {!r}"),
        "gain": _Error("joint", (0.05,), (10.0,), "the unit of the effort of {!r}"),
        "gains": _Error("robot", nothing, (10.0,), "the unit of all efforts"),
        "foot_axes": _Error("foot", (0.02,) * 9, all_axes, "the axes or the unit of {!r}"),
        "foot_offset": _Error("foot", bias, load, "an offset of {!r}"),
        "foot_point": _Error("foot", (0.003,) * 3, (0.1,) * 3, "the point of the moments of {!r}"),
    }
    if robot.base_dofs:
        errors["imu_axes"] = _Error("robot", (0.01,) * 9, all_axes, "the axes or the unit of the specific force")
    errors["gravity"] = _Error("robot", nothing, (0.03,), "efforts without gravity", 1.0)
    if robot.foot_names:
        errors["net"] = _Error("robot", nothing, (0.03,), "efforts without gravity and foot forces", 1.0)
    return errors


class TorqueBalance:
    """Sums of the balance of torques over frames, and the error that explains them.

    Parameters
    ----------
    config : topics, frames and errors of links
    robot : with n joints and k feet

    Attributes
    ----------
    size : number of columns, with that of the balance itself
    factor : (n,) efforts over motor torques, of joints whose unit or sign explains the balance; else NaN
    """

    def __init__(self, config: Config, robot: RobotModel) -> None:
        self._config, self._robot, self._errors = config, robot, _errors(config, robot)
        self._names = {"joint": robot.joint_names, "foot": robot.foot_names, "robot": ("",)}
        widths = [len(self._names[one.scope]) * len(one.right) for one in self._errors.values()]
        self._starts = dict(zip(self._errors, np.cumsum([0, *widths]).tolist(), strict=False))
        tiled = [one.right * len(self._names[one.scope]) for one in self._errors.values()]
        self._variance = np.square(np.concatenate(tiled))
        self._first = next(start for name, start in self._starts.items() if any(self._errors[name].wrong))
        self._unit = _NOISE_LEVER * robot.weight  # of the rows [N m]
        self.size = self._variance.size + len(robot.joint_names)
        self.factor = np.full(len(robot.joint_names), np.nan)
        self._measured = ~robot.in_unmeasured_contact
        if robot.base_dofs:
            self._measured &= robot.limb.any(axis=0)
        self.reset()

    def reset(self) -> None:
        """Note that the next frame does not follow the one before."""
        self._frames: deque[tuple[SensorFrame, Dynamics]] = deque(maxlen=3)
        self._begin_mean()

    def _begin_mean(self) -> None:
        self._rows, self._number, self._used = np.zeros((self.factor.size, self.size)), 0, self._measured.copy()

    def add(self, frame: SensorFrame, dynamics: Dynamics) -> None:
        """Add the frame before this one, whose accelerations its neighbours give, to the mean of :meth:`sum`.

        Over the frames of a mean the noise of the velocities cancels.
        """
        if self._frames and 0 <= frame.stamp_ns - self._frames[-1][0].stamp_ns < TORQUE_PERIOD_NS:
            return
        self._frames.append((frame, dynamics))
        if len(self._frames) < 3:
            return
        (before, _), (frame, dynamics), (after, _) = self._frames
        is_used = self._used & (np.abs(frame.velocity) > MIN_SPEED)
        is_used &= np.isfinite(frame.effort) if frame.effort.size else False
        if not frame.wrench_fresh.all() or (self._robot.base_dofs and not frame.imu_fresh):
            return
        self._used = is_used
        if not is_used.any():
            return
        turn = self._robot.rotation_imu_to_base @ (after.angular_velocity - before.angular_velocity)
        acceleration = np.concatenate((turn, after.velocity - before.velocity))
        acceleration *= 1e9 / (after.stamp_ns - before.stamp_ns)
        robot, base = self._robot, self._robot.base_dofs
        force = robot.rotation_imu_to_base @ frame.specific_force if base else np.zeros(3)
        slips = robot.position_error_columns(dynamics, acceleration, frame.wrenches)
        _add_columns(
            dynamics.buffer, base, robot.imu_lever, np.nan_to_num(frame.effort), frame.velocity, frame.position,
            frame.wrenches, force, acceleration, slips, self._rows,
        )  # fmt: skip
        self._number += 1

    def sum(self, sums: FloatArray, count: FloatArray) -> None:
        """Add the mean of the frames since the last call, of joints that have moved all the time, to these sums."""
        if self._number:
            rows = self._rows[self._used] / (self._number * self._unit)
            sums += rows.T @ rows
            count += len(rows)
        self._begin_mean()

    def _hypotheses(self, sums: FloatArray, rows: float) -> Iterator[_Hypothesis]:
        """All errors, each of one place, and those of feet of all feet together, with their log odds, one by one."""
        scaled = sums / _ROWS_PER_NUMBER
        n, P, first = self.factor.size, self._variance, self._first
        L, b, balance = scaled[:-n, :-n], scaled[:-n, -n:].sum(axis=1), scaled[-n:, -n:].diagonal()
        S = np.sqrt(P)  # (1 + L P)^-1 B = B - L S (1 + S L S)^-1 S B, of a symmetric matrix
        power = self._friction_power(L)
        by_state = power * P
        both = np.column_stack((L[:, first:], L @ by_state.T, b))
        factor = cho_factor(np.eye(P.size) + S[:, None] * L * S, overwrite_a=True, check_finite=False)
        both -= (L * S) @ cho_solve(factor, S[:, None] * both, overwrite_b=True, check_finite=False)
        square = max(float(balance.sum() - b @ (P * both[:, -1])), 0.0) + _DEGREES_OF_FREEDOM
        numbers = rows / _ROWS_PER_NUMBER + _DEGREES_OF_FREEDOM
        of_right = (by_state * (power - both[:, -n - 1 : -1].T)).sum(axis=1)
        for name, error in self._errors.items():
            names, width = self._names[error.scope], len(error.right)
            single = [range(place, place + 1) for place in range(len(names))]
            for places in [*single, range(len(names))] if error.scope == "foot" and len(names) > 1 else single:
                states = self._starts[name] + np.arange(width * places.start, width * places.stop)
                scale = np.tile(error.wrong, len(places))
                if not scale.all():
                    break
                J, d, mean = both[np.ix_(states, states - first)], both[states, -1], np.full(states.size, error.mean)
                explained = float(mean @ (2.0 * d - J @ mean))
                A, d = np.eye(states.size) + J * scale[:, None] * scale, (d - J @ mean) * scale
                found = np.linalg.solve(A, np.column_stack((d, np.eye(states.size))))
                left = max(square - explained - float(d @ found[:, 0]), _DEGREES_OF_FREEDOM)
                log_odds = 0.5 * (numbers * math.log(square / left) - float(np.linalg.slogdet(A)[1]))
                sigma = scale * np.sqrt(found[:, 1:].diagonal() * left / numbers)
                shape, words = (len(places), width), error.words.format(" and ".join(names[one] for one in places))
                values = (mean + scale * found[:, 0]).reshape(shape)
                by_error = by_state @ both[:, states - first]
                taken = by_state @ both[:, -1] - by_error @ values.ravel()
                variance = of_right + (by_error * scale @ found[:, 1:] * (by_error * scale)).sum(axis=1)
                noise = np.sqrt(np.maximum(variance, 0.0) * left / numbers)
                braking = float(log_ndtr(np.divide(taken, noise, out=np.zeros(n), where=noise > 0.0)).sum())
                braking = max(braking, -_MIN_LOG_ODDS)
                yield _Hypothesis(log_odds, braking, words, name, values, sigma.reshape(shape), places)

    def _friction_power(self, L: FloatArray) -> FloatArray:
        """Power (n, columns) that friction of size one takes from its joint: dry, viscous, and of the load."""
        joints, power = np.arange(self.factor.size), np.zeros((self.factor.size, len(L)))
        for name in ("dry", "viscous", "load"):
            columns = self._starts[name] + joints
            power[joints, columns] = L[self._starts["viscous"] + joints, columns]
        return power

    def _shows_alone(self, error: _Hypothesis, sums: FloatArray) -> bool:
        """Whether the balance, and what friction leaves of it, show an error of efforts without any other one.

        A wrong unit leaves efforts proportional to the torques that gravity, foot forces and accelerations need.
        """
        if error.name not in _OF_EFFORTS:
            return True
        n, left, value = self.factor.size, self._without_friction(sums), float(error.values[0, 0])
        joints = np.arange(-n, 0)[error.places.start : error.places.stop if error.name == "gain" else n]
        column = self._starts[error.name] - self._first + error.places.start
        square, product, balance = left[column, column], left[column, joints].sum(), left[joints, joints].sum()
        place = column + self._first
        for part, all_of_it in ((sums[place, joints].sum(), sums[place, place]), (product, square)):
            if part * math.copysign(1.0, value) < _MIN_SHARE * abs(value) * all_of_it:
                return False
        if error.name in ("gain", "gains"):  # y = effort - needed torque
            needed, share = square - 2.0 * product + balance, _MIN_SHARE if error.name == "gain" else _MIN_SHARE_OF_ALL
            return bool((square - product) ** 2 >= share * square * needed)
        return bool(product**2 >= _MIN_SHARE * square * balance)

    def _without_friction(self, sums: FloatArray) -> FloatArray:
        """Products of what friction, of whichever kind, leaves of the columns of errors that may be named."""
        kinds, rest = slice(0, self._first), slice(self._first, None)
        friction = sums[kinds, kinds] + np.eye(self._first) * _ROWS_PER_NUMBER / _ANY_FRICTION**2
        left: FloatArray = sums[rest, rest] - sums[rest, kinds] @ np.linalg.solve(friction, sums[kinds, rest])
        return left

    def torques(self, sums: FloatArray) -> FloatArray:
        """What friction leaves of the torques that moving joints need, and of their efforts.

        Parameters
        ----------
        sums : (size, size) products of the rows

        Returns
        -------
        (4, n) sums of the product, and of both squares [(N m)^2]; number of rows
        """
        n, left, start = self.factor.size, self._without_friction(sums), self._starts["gain"] - self._first
        effort, square = left.diagonal()[start : start + n], left.diagonal()[-n:]
        product = left[start : start + n, -n:].diagonal()  # of effort and balance, which is effort less needed torque
        place = self._starts["offset"]
        count = sums.diagonal()[place : place + n]
        return self._unit**2 * np.stack((effort - product, effort - 2.0 * product + square, effort, count))

    def checks(
        self, sums: FloatArray, count: FloatArray, known: Collection[tuple[SensorFault, str]]
    ) -> Iterator[Iterator[Check]]:
        """Name the error of foot sensors or efforts that explains the balance; keep the factor of efforts.

        The work is done in parts, each before an iterator; only the last one has checks.

        Parameters
        ----------
        sums : (size, size) products of the rows
        count : () their number
        known : findings so far; efforts that are not measured balance nothing
        """
        self.factor[:] = np.nan
        if (SensorFault.STUCK_EFFORT, self._config.output.joint_states_topic) in known:
            return
        found = list[_Hypothesis]()
        for hypothesis in self._hypotheses(sums, float(count)):
            found.append(hypothesis)
            if len(found) % _HYPOTHESES_AT_ONCE == 0:
                yield iter(())
        yield self._compare(sorted(found, key=lambda one: -one.log_odds - one.braking), sums)

    def _compare(self, ranked: Sequence[_Hypothesis], sums: FloatArray) -> Iterator[Check]:
        """Checks by the hypotheses, the most likely one first."""
        best, texts = ranked[0], dict[tuple[SensorFault, str], str]()
        rival = next(one for one in ranked if one.name != best.name)
        lead = best.log_odds + best.braking - rival.log_odds - rival.braking
        if best.log_odds > _MIN_LOG_ODDS and lead > _MIN_LEAD and self._shows_alone(best, sums):
            if best.name in ("gain", "gains"):
                joints = best.places if best.name == "gain" else range(self.factor.size)
                self.factor[joints] = 1.0 / (1.0 - best.values[0, 0])
            odds = f"Second in likelihood, by a factor of {math.exp(-lead):.1g}: {rival.words}"
            texts = {key: f"{text}. {odds}" for key, text in self._texts(best)}
        topic = self._config.output.joint_states_topic
        keys = [(SensorFault.EFFORT_FORCES, topic)]
        for foot in self._config.feet:
            keys += [(kind, foot.wrench_topic) for kind in (SensorFault.WRENCH_OFFSET, SensorFault.WRENCH_POINT)]
        for key in keys:
            yield Check(*key, texts.get(key, ""), self._measured if key[1] == topic else None)

    def _texts(self, best: _Hypothesis) -> Iterator[tuple[tuple[SensorFault, str], str]]:
        """Findings of a likely error, by kind and topic."""
        topic = self._config.output.joint_states_topic
        if best.name in ("gravity", "net"):
            forces = "gravity" if best.name == "gravity" else "gravity and foot forces"
            text = f"{topic}: the effort of joint {JOINTS} lacks the torque of {forces}: the driver subtracts it, or "
            yield (SensorFault.EFFORT_FORCES, topic), f"{text}it is the net torque. Publish the whole motor torque"
        if best.name not in ("foot_offset", "foot_point"):
            return
        for place, value, sigma in zip(best.places, best.values, best.sigma, strict=True):
            foot, sure = self._config.feet[place], np.abs(value) > _MIN_SIGMAS * sigma
            if not sure.any():
                continue
            what = f"{foot.wrench_topic}: the foot sensor {foot.name!r}"
            if best.name == "foot_offset":
                offset = ", ".join(f"{part:.0f}" for part in value[:3])
                text = f"{what} has an offset of ({offset}) N: was it set to zero while the robot stood on it? Do so "
                yield (SensorFault.WRENCH_OFFSET, foot.wrench_topic), f"{text}with the foot in the air"
            else:
                parts = zip("xyz", value.tolist(), sure.tolist(), strict=True)
                where = " and ".join(f"{1e3 * part:.0f} mm along {axis}" for axis, part, is_sure in parts if is_sure)
                text = f"{what} gives moments about a point {where} of feet.{foot.name}.frame: set that to the frame "
                yield (
                    (SensorFault.WRENCH_POINT, foot.wrench_topic),
                    f"{text}of the moments, or shift them in the driver",
                )
