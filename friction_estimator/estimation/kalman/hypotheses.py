"""Which single change of a sensor, a joint or the robot explains the innovations best?

Every hypothesis is one linear Gaussian model of the torque that the limbs' filters did not expect (Willsky & Jones
1976): columns, as a change of this kind of size one would make them, with a prior of its size. Over the windows since
the change, what the filters had learned before it predicts the balance of momentum,

    r = force - dp / T - G x0 = G (x - x0) + X_h a + noise        x ~ N(x0, P0),   a ~ N(0, S_h),   noise ~ N(0, s^2 R)

With the states x, and the unknown size s^2 of the noise, integrated out, each hypothesis has a marginal likelihood, and
"nothing has changed" has one too. Their ratios are the odds. Positions against velocities are a second balance.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from friction_estimator.config import Config
from friction_estimator.estimation.kalman.limb_bank import LimbBank
from friction_estimator.estimation.kalman.limb_equations import FREE_AT_REST, LimbMemory
from friction_estimator.estimation.kalman.limb_state import LimbState, LimbWindow
from friction_estimator.estimation.kalman.window_dynamics import LinkColumns, WindowDynamics
from friction_estimator.estimation.kalman.windows import Window
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import FloatArray

BLOCK = 0.05
"""Windows are joined to blocks of this length [s]: errors of the law and of the motion last about as long."""
_LAW = 3.0
"""Standard deviation of a law that has changed, over its prior."""
_WEIGHT = 9.0
"""Blocks whose normalised square is above this many medians count less: an impact, or the step of an encoder."""
_FINEST_SPEED = 1e-3
"""Standard deviation of a mean velocity, at least [rad/s]."""
_FINEST_TIME = 1e-9
_KNOWN = 5.0
"""Half the degrees of freedom of the prior of s^2, around one."""
CERTAIN = 10.0
"""Log-odds against "nothing has changed" from which a hypothesis is named."""
_USUAL = 3.0
"""An error that is used is at most this many standard deviations of its prior."""
_LARGEST, _DRIFT, _ALARM = 25.0, 3.0, 75.0
"""Page's cumulative sums: largest normalised square that one window adds, what each takes away, and when they alarm. In
good data the mean square is below one; four windows that do not fit at all are an alarm, a landing is shorter."""
_SEEN = 1.0
"""Time after a change for which windows are collected before the hypotheses are compared [s]."""


class Row(NamedTuple):
    """A kind of hypothesis.

    Attributes
    ----------
    name : of the kind
    scope : ``joint``, ``foot`` or ``robot``: there is one hypothesis for each of them
    std : of the sizes of the columns; those of efforts over the effort limit, of wrenches over the weight
    """

    name: str
    scope: str
    std: tuple[float, ...]


ENCODER, EFFORT, EFFORTS, VELOCITY = "offset of position", "gain of effort", "gain of efforts", "gain of velocity"
EFFORT_OFFSET, DELAY, FRICTION, LINK = "offset of effort", "delay of efforts", "friction", "inertia"
FORCE_OFFSET, FORCE_AXES, IMU_DELAY = "offset of specific force", "axes of specific force", "delay of the IMU"
WRENCH_OFFSET, WRENCH_AXES, WRENCH_DELAY = "offset of wrench", "axes of wrench", "delay of wrench"
WRENCH_UNIT = "unit of wrench"
TABLE = (
    Row(ENCODER, "joint", (0.2,)),
    Row(EFFORT, "joint", (1.0,)),
    Row(EFFORTS, "robot", (1.0,)),
    Row(EFFORT_OFFSET, "joint", (0.05,)),
    Row(DELAY, "robot", (0.01,)),
    Row(VELOCITY, "joint", (1.0,)),
    Row(FRICTION, "joint", ()),
    Row(LINK, "joint", (0.5, 0.05, 0.05, 0.05)),
    Row(FORCE_OFFSET, "robot", (2.0,) * 3),
    Row(FORCE_AXES, "robot", (1.0,) * 9),
    Row(IMU_DELAY, "robot", (0.01,)),
    Row(WRENCH_OFFSET, "foot", (0.1,) * 3 + (0.02,) * 3),
    Row(WRENCH_AXES, "foot", (1.0,) * 9),
    Row(WRENCH_UNIT, "foot", (1000.0,)),
    Row(WRENCH_DELAY, "foot", (0.01,)),
)
"""All hypotheses. Columns of axes are elements of a matrix: unit, sign and direction of a sensor are one of them."""


class Hypothesis(NamedTuple):
    """One row of :data:`TABLE` for a joint, a foot or the robot.

    Attributes
    ----------
    name : of the kind
    number : of the joint or foot
    columns, std : (c,) among all columns of faults, and prior standard deviation of each
    """

    name: str
    number: int
    columns: slice
    std: FloatArray


class Explanation(NamedTuple):
    """A hypothesis, and how well it explains what was measured.

    Attributes
    ----------
    name, number : of the hypothesis
    size, covariance : (c,), (c, c) posterior of its columns
    log_odds : against "nothing has changed"
    is_usual : True where the size is within three standard deviations of its prior
    """

    name: str
    number: int
    size: FloatArray
    covariance: FloatArray
    log_odds: float
    is_usual: bool


class _Window(NamedTuple):
    """A window, its velocities (n,), the balance of each limb, and derivatives of torques by positions (n, n)."""

    window: Window
    velocity: FloatArray
    limbs: list[LimbWindow]
    links: LinkColumns
    by_position: FloatArray


class Evidence(NamedTuple):
    """Normal equations of one balance with the states integrated out.

    Attributes
    ----------
    information, product : (H, H), (H,) of the columns of faults
    square, rows : weighted squared residual, and number of rows
    """

    information: FloatArray
    product: FloatArray
    square: float
    rows: float


def hypotheses_of(robot: RobotModel, law_std: FloatArray) -> list[Hypothesis]:
    """All hypotheses about a robot, for laws with these prior standard deviations (n, p)."""
    n, k = len(robot.joint_names), len(robot.foot_names)
    strength = np.where(np.isfinite(robot.effort_limit), robot.effort_limit, robot.weight)
    found, start = list[Hypothesis](), 0
    for row in TABLE:
        for index in range({"joint": n, "foot": k, "robot": 1}[row.scope]):
            std = np.array(row.std) if row.std else _LAW * law_std[index]
            if row.name == EFFORT_OFFSET:
                std = std * strength[index]
            elif row.name == WRENCH_OFFSET:
                std = std * robot.weight
            found.append(Hypothesis(row.name, index, slice(start, start + std.size), std))
            start += std.size
    return found


class Comparison:
    """Compares all hypotheses over some windows.

    Parameters
    ----------
    config, robot, laws : as of :class:`WindowDynamics`
    bank : of the limbs
    memories : what each limb had learned before the change, with its layout
    """

    def __init__(
        self,
        config: Config,
        robot: RobotModel,
        laws: JointLaws,
        bank: LimbBank,
        memories: Sequence[tuple[LimbMemory, LimbState]],
    ) -> None:
        self._robot, self._bank, self._memories = robot, bank, memories
        self._dynamics = WindowDynamics(config, robot, laws)
        self._velocity_variance = config.sensors.velocity_std**2
        self.hypotheses = hypotheses_of(robot, laws.prior_std)
        self._at = {(one.name, one.number): one.columns for one in self.hypotheses}
        self._width = self.hypotheses[-1].columns.stop
        self._rows: list[list[FloatArray]] = [[] for _ in memories]
        self._speeds: list[FloatArray] = []
        self._before: _Window | None = None
        self._block: list[_Window] = []

    def add(self, window: Window, velocity: FloatArray) -> None:
        """Use the next window, and the mean of the velocities (n,) read in it."""
        robot, at = self._robot, window.end
        self._dynamics.advance(window)
        links = self._dynamics.link_columns()
        end = robot.dynamics(at.position, at.velocity, at.angular_velocity, window.specific_force)
        acceleration = np.zeros(robot.base_dofs + links.acceleration.size)
        acceleration[robot.base_dofs :] = links.acceleration if window.duration > 0.0 else 0.0
        if robot.base_dofs:
            acceleration[:3] = robot.imu_lever @ window.angular_acceleration
            acceleration[3:6] = window.angular_acceleration
        by_position, _ = robot.inverse_dynamics_derivatives(end, acceleration, window.wrenches)
        limbs = [self._balance(links, limb) for limb in range(len(self._memories))]
        now, before = _Window(window, velocity, limbs, links, by_position[robot.base_dofs :]), self._before
        if before is None or not 0.0 < window.duration <= BLOCK or not window.complete:
            self._before, self._block = now, []
            return
        self._block.append(now)
        if window.time - before.window.time >= BLOCK - 0.5 * window.duration:
            self._close(before, self._block)
            self._before, self._block = now, []

    def _balance(self, links: LinkColumns, limb: int) -> LimbWindow:
        memory, layout = self._memories[limb]
        return self._dynamics.of_limb(links, self._bank.places[limb], layout.first, memory)

    def _close(self, before: _Window, windows: list[_Window]) -> None:
        """Rows of all limbs over a block of windows, divided by their standard deviations."""
        T = windows[-1].window.time - before.window.time
        parts = [one.window.duration / T for one in windows]
        faults = self._faults(before, windows, parts, T)
        for limb, (memory, layout) in enumerate(self._memories):
            joints, first, last = self._bank.limbs[limb].joints, before.limbs[limb], windows[-1].limbs[limb]
            mine = [one.limbs[limb] for one in windows]
            columns = _mean(parts, [one.force_columns for one in mine])
            force = _mean(parts, [one.force for one in mine])
            R = (_white(first.momentum_covariance, first) + _white(last.momentum_covariance, last)) / T**2
            R = R + _mean([part**2 for part in parts], [_white(one.force_variance, one) for one in mine])
            rest = _mean(parts, [one.rest_variance for one in mine])
            R = R + np.diag(FREE_AT_REST * rest + memory.model_error_variance)
            X = faults[joints]
            self._own_columns(X, limb, columns, windows, parts)
            known = layout.law.start
            residual = force - (last.momentum - first.momentum) / T - columns[:, known:] @ memory.state[known:]
            row = np.column_stack((residual, columns[:, known:], X))
            if self._robot.touched[joints].any():  # forces that no sensor measures
                continue
            if np.isfinite(row).all() and np.isfinite(R).all():
                self._rows[limb].append(np.linalg.solve(np.linalg.cholesky(R), row))

    def _faults(self, before: _Window, windows: list[_Window], parts: list[float], T: float) -> FloatArray:
        """Columns (n, H) of faults of the joints."""
        X, at, n = np.zeros((len(self._robot.joint_names), self._width)), self._at, len(self._robot.joint_names)
        readings = [one.window for one in windows]
        effort = _mean(parts, [one.effort for one in readings])
        rate = _mean(parts, [one.effort_rate for one in readings])
        by_position = _mean(parts, [one.by_position for one in windows])
        for joint in range(n):
            X[:, at[ENCODER, joint]] = -by_position[:, joint : joint + 1]
            X[joint, at[EFFORT, joint]] = effort[joint]
            X[joint, at[EFFORT_OFFSET, joint]] = 1.0
        X[:, at[EFFORTS, 0]], X[:, at[DELAY, 0]] = effort[:, None], -rate[:, None]
        velocity = _mean(parts, [one.velocity for one in windows])
        moved = (windows[-1].window.end.position - before.window.end.position) / T
        samples = sum(one.samples for one in readings)
        turned = windows[-1].window.end.velocity - before.window.end.velocity  # readings hold until the next
        std = np.sqrt(self._velocity_variance / samples + (0.5 * turned / samples) ** 2 + _FINEST_SPEED**2)
        self._speeds.append(np.stack((moved - velocity, velocity)) / std)
        return X

    def _own_columns(
        self, X: FloatArray, limb: int, columns: FloatArray, windows: list[_Window], parts: list[float]
    ) -> None:
        """Write the columns (m, H) of faults that are states of the limb's filter too, or follow from those."""
        at, first = self._at, self._memories[limb][1].first
        joints, feet = self._bank.limbs[limb].joints.tolist(), self._bank.limbs[limb].feet.tolist()
        p = (first.links - first.law) // len(joints)
        for place, joint in enumerate(joints):
            X[:, at[FRICTION, joint]] = columns[:, first.law + place * p : first.law + (place + 1) * p]
            X[:, at[LINK, joint]] = columns[:, first.links + 4 * place : first.links + 4 * place + 4]
        lever = columns[:, first.accelerometer_bias : first.accelerometer_bias + 3]
        readings = [one.window for one in windows]
        force = _mean(parts, [one.specific_force for one in readings])
        step = max(readings[-1].time - readings[0].time, _FINEST_TIME)
        rate = (readings[-1].specific_force - readings[0].specific_force) / step
        X[:, at[FORCE_OFFSET, 0]] = lever
        X[:, at[FORCE_AXES, 0]] = (lever[:, :, None] * force).reshape(len(lever), 9)
        X[:, at[IMU_DELAY, 0]] = -(lever @ rate)[:, None]
        for place, foot in enumerate(feet):
            wrench = _mean(parts, [one.wrenches[foot] for one in readings])
            lever = columns[:, first.foot_bias + 6 * place : first.foot_bias + 6 * place + 6]
            axes = lever[:, :3, None] * wrench[:3] + lever[:, 3:, None] * wrench[3:]
            X[:, at[WRENCH_UNIT, foot]] = (lever @ wrench)[:, None]
            X[:, at[WRENCH_OFFSET, foot]], X[:, at[WRENCH_AXES, foot]] = lever, axes.reshape(len(lever), 9)
            X[:, at[WRENCH_DELAY, foot]] = columns[:, first.wrench_delay + place : first.wrench_delay + place + 1]

    def explain(self) -> list[Explanation]:
        """All hypotheses, the most likely one first."""
        balances = [self._velocities(), _joined([self._limb(limb) for limb in range(len(self._memories))])]
        found = []
        for one in self.hypotheses:
            odds, size, P = 0.0, np.zeros(one.std.size), np.diag(one.std**2)
            for evidence in balances:
                log_ratio, gain, mean, covariance = _compare(evidence, one)
                odds += log_ratio
                if gain > 0.0:
                    size, P = mean, covariance
            usual = bool((np.abs(size) <= _USUAL * one.std).all())
            found.append(Explanation(one.name, one.number, size, P, odds, usual))
        return sorted(found, key=lambda one: -one.log_odds)

    def _velocities(self) -> Evidence:
        """Change of the positions against the velocities, joint by joint."""
        H = self._width
        J, d, square, count = np.zeros((H, H)), np.zeros(H), 0.0, 0.0
        if not self._speeds:
            return Evidence(J, d, square, count)
        rows = np.array(self._speeds)
        weight = _weights(rows[:, 0] ** 2)
        for joint in range(rows.shape[2]):
            at = self._at[VELOCITY, joint].start
            error, velocity, w = rows[:, 0, joint], rows[:, 1, joint], weight[:, joint]
            J[at, at], d[at] = w @ velocity**2, w @ (velocity * error)
            square, count = square + float(w @ error**2), count + float(w.sum())
        return Evidence(J, d, square, count)

    def _limb(self, limb: int) -> Evidence:
        """The rows of a limb, with its states integrated out."""
        (memory, layout), H = self._memories[limb], self._width
        if not self._rows[limb]:
            return Evidence(np.zeros((H, H)), np.zeros(H), 0.0, 0.0)
        rows, known = np.array(self._rows[limb]), slice(layout.law.start, layout.size)
        weight = np.sqrt(_weights((rows[:, :, 0] ** 2).mean(axis=1)))
        E, A, X = np.split((weight[:, None, None] * rows).reshape(-1, rows.shape[2]), [1, rows.shape[2] - H], axis=1)
        value, vectors = np.linalg.eigh(memory.covariance[known, known])
        A = A @ (vectors * np.sqrt(np.maximum(value, 0.0)))
        L = np.linalg.cholesky(np.eye(A.shape[1]) + A.T @ A)
        U = np.linalg.solve(L, A.T @ np.column_stack((E, X)))
        full = np.column_stack((E, X))
        total = full.T @ full - U.T @ U
        return Evidence(total[1:, 1:], total[0, 1:], float(total[0, 0]), float((weight**2).sum() * rows.shape[1]))


def _white(variance: FloatArray, window: LimbWindow) -> FloatArray:
    """Variance (m, m) without the factor for errors that last: blocks are as long as those."""
    return variance / np.sqrt(np.outer(window.repeats, window.repeats))


def _mean(parts: Sequence[float], values: Sequence[FloatArray]) -> FloatArray:
    """Sum of the values of windows, each times its part."""
    return np.asarray(np.tensordot(parts, np.array(values), 1))


def _weights(squares: FloatArray) -> FloatArray:
    """Weights of blocks by their squared residuals, along the first axis: much larger ones count less."""
    limit = _WEIGHT * np.maximum(np.median(squares, axis=0), 1.0)
    return np.asarray(np.minimum(1.0, limit / np.maximum(squares, 1e-12)))


def _joined(parts: Sequence[Evidence]) -> Evidence:
    """Evidence of independent rows together."""
    J, d = (np.sum(values, axis=0) for values in zip(*[one[:2] for one in parts], strict=True))
    return Evidence(J, d, sum(one.square for one in parts), sum(one.rows for one in parts))


def _compare(evidence: Evidence, one: Hypothesis) -> tuple[float, float, FloatArray, FloatArray]:
    """Log-likelihood ratio against "nothing", decrease of the squared residual, and posterior of the columns."""
    at, std = one.columns, one.std
    d = std * evidence.product[at]
    B = np.eye(std.size) + std[:, None] * evidence.information[at, at] * std
    mean, covariance = np.linalg.solve(B, d), np.linalg.inv(B)
    gain, half = float(d @ mean), _KNOWN + 0.5 * evidence.rows
    left = _KNOWN + 0.5 * max(evidence.square - gain, 0.0)
    ratio = half * math.log((_KNOWN + 0.5 * evidence.square) / left) - 0.5 * float(np.linalg.slogdet(B)[1])
    scale = left / half
    return ratio, gain, std * mean, scale * (std[:, None] * covariance * std)


class Identifying(Protocol):
    """What a change is compared with: the filters of the limbs, and the laws that they identify."""

    bank: LimbBank
    terms: JointLaws

    def finish_pending_updates(self) -> None:
        """Let all limbs use the newest window that is complete."""
        ...


class ChangeMonitor:
    """Notices that innovations have changed, and compares what may explain it.

    Notices by Page's cumulative sum of normalised squares, joint by joint; where a sum has begun to grow, the change
    has been.

    Parameters
    ----------
    config, robot : of the stage
    stage : whose innovations they are

    Attributes
    ----------
    alarmed : (n,) joints whose torques do not fit any more, until the hypotheses have been compared
    undecided : True from an alarm to the first comparison after it: nothing should be learned from its windows
    position_offset : (n,) of the encoders, as far as it has been found [rad or m]
    explanations : of the newest comparison, the most likely one first; empty before the first
    """

    def __init__(self, config: Config, robot: RobotModel, stage: Identifying) -> None:
        self._config, self._robot, self._stage = config, robot, stage
        self._memories: list[tuple[LimbMemory, LimbState]] = []
        self.explanations: list[Explanation] = []
        self.position_offset: FloatArray = np.zeros(len(robot.joint_names))
        self.reset()

    def reset(self) -> None:
        """Nothing has changed, and no window is known."""
        self._windows: deque[tuple[Window, FloatArray]] = deque(maxlen=2 + round(_SEEN / self._config.kalman.window))
        self._time = 0.0
        self.clear()

    def clear(self) -> None:
        """Nothing has changed up to now; windows stay."""
        n = len(self._robot.joint_names)
        self._sums, self._since = np.zeros(n), np.full(n, self._time)
        self.alarmed = np.zeros(n, dtype=bool)
        self.undecided = self._compared = False
        self._onset: float | None = None

    def add(self, window: Window, velocity: FloatArray, squares: FloatArray) -> None:
        """Use the next window, the mean of the velocities (n,) read in it, and normalised squares (n,).

        The squares are those of its innovations, or of the external torque.
        """
        if self._windows and not 0.0 < window.time - self._time < 2.0 * _SEEN:
            self.reset()
        self._windows.append((window, velocity))
        self._time = window.time
        squares = np.where(self._robot.touched, 0.0, np.nan_to_num(squares, nan=0.0))
        more = np.minimum(squares, _LARGEST) - _DRIFT
        self._sums = np.clip(self._sums + more, 0.0, 2.0 * _ALARM)
        self._since[self._sums == 0.0] = window.time
        self.alarmed = self._sums > _ALARM
        if not self.alarmed.any():
            self._compared = self._compared and self._onset is not None
        elif self._onset is None:
            self._onset = float(self._since[self.alarmed].min())
        self.undecided = self._onset is not None and not self._compared

    @property
    def is_due(self) -> bool:
        """True once enough windows are known since a change, or since the start."""
        if not self.explanations:
            return self._time > 1.2 * _SEEN
        return self._onset is not None and self._time - self._onset >= _SEEN

    def compare(self, again: bool) -> Iterator[None]:
        """Compare the hypotheses over the newest windows, one at a time: :attr:`explanations`.

        Parameters
        ----------
        again : compare with what had been learned before the change that was found last
        """
        bank = self._stage.bank
        layouts = [one.layout for one in bank.filters]
        same = [one is other for one, (_, other) in zip(layouts, self._memories, strict=False)]
        if not (again and same and all(same)):
            self._memories = [(one.memory_before(2.0 * _SEEN), one.layout) for one in bank.filters]
        comparison = Comparison(self._config, self._robot, self._stage.terms, bank, self._memories)
        since = self._time - _SEEN if again or self._onset is None else self._onset
        for window, velocity in [one for one in self._windows if one[0].time >= since]:
            comparison.add(window, velocity)
            yield
        self.explanations = comparison.explain()
        if self.explanations[0].log_odds > CERTAIN:
            self.clear()
        else:
            self._since[:], self._onset, self._compared = self._time, None, True  # compare again later

    def use(self, explanation: Explanation) -> bool:
        """Go back to what was learned before the change, and add the change to it; False where that cannot be.

        No state represents some changes, and some are so large that they have another reason.

        The states of the filters then have the mean and the covariance of the hypothesis. An offset of a position is
        no state: it is to be taken off the readings.
        """
        name, number, bank = explanation.name, explanation.number, self._stage.bank
        self._stage.finish_pending_updates()
        if name == ENCODER and explanation.is_usual:
            self.position_offset = self.position_offset.copy()
            self.position_offset[number] += explanation.size[0]
        for (memory, layout), limb, one in zip(self._memories, bank.limbs, bank.filters, strict=True):
            m, first = limb.joints.size, layout.first
            joint, foot = (np.flatnonzero(own == number).tolist() for own in (limb.joints, limb.feet))
            p = (first.links - first.law) // m
            starts: dict[str, tuple[int, int, list[int]]] = {
                ENCODER: (0, 0, joint),
                EFFORT: (first.effort_gain, 1, joint),
                EFFORT_OFFSET: (first.effort_offset, 1, joint),
                FRICTION: (first.law, p, joint),
                LINK: (first.links, 4, joint),
                FORCE_OFFSET: (first.accelerometer_bias, 3, [0]),
                DELAY: (first.torque_delay, 1, [0]),
                WRENCH_OFFSET: (first.foot_bias, 6, foot),
                WRENCH_DELAY: (first.wrench_delay, 1, foot),
            }
            if name not in starts or not explanation.is_usual:
                return False
            start, width, which = starts[name]
            if which and one.layout is layout:
                begin = start + width * which[0]
                size, covariance = explanation.size[:width], explanation.covariance[:width, :width]
                one.change(memory, slice(begin, begin + width), size, covariance)
                if name == DELAY:  # of the torques alone: wrenches are later than those
                    feet = slice(first.wrench_delay, first.wrench_delay + limb.feet.size)
                    one.state[feet] -= explanation.size[0]
        bank.refresh()
        return True
