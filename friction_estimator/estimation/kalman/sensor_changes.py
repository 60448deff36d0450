"""What has changed in mid-run: the error of one sensor, joint or foot that explains the newest seconds best.

Errors of sensors and links are states of the limbs' filters, each with its column in the balance of momentum. A change
adds ``a ~ N(0, V)`` to some states. With a, all other states and the size of the noise integrated out, the N numbers of
the newest seconds, with the weighted square Q, are more likely with the change than without any by

    log odds = (nu + N) / 2 log((nu + Q) / (nu + Q - d^T (V^-1 + J)^-1 d)) - log det(1 + V J) / 2

with the information J and the product d of the changed states (:func:`change_information`). It is the generalised
likelihood ratio of Willsky & Jones (1976) with the likelihood of Student. All changes are as likely before data.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from friction_estimator.estimation.kalman.limb_equations import LimbBalance
from friction_estimator.estimation.kalman.limb_state import SLIP_STD, LimbStateLayout
from friction_estimator.estimation.kalman.window_dynamics import CORRELATION_TIME
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.kernels.records import buffer_of, buffered_zeros, record
from friction_estimator.linear_algebra import cholesky, is_bounded, solve_lower
from friction_estimator.types import FloatArray, IntArray, Matrix, StateChange, Vector

if TYPE_CHECKING:
    from friction_estimator.estimation.kalman.limb_filter import LimbFilter

MEMORY_SECONDS = 4
"""Number of newest seconds that are kept [s]."""
_DEGREES_OF_FREEDOM = 10.0
"""Degrees of freedom of the prior of the noise's size, around one."""
_MIN_LOG_ODDS = 20.0
"""Log odds from which a change is likely: walks without any have less than 2, random robots less for every sensor."""
_MIN_NEWEST_LOG_ODDS = -1.0
"""Log odds in the newest second below which a change is over."""
_SPANS_IN_SECONDS = 1, MEMORY_SECONDS
"""Numbers of newest seconds that are compared: few soon hold no window from before the change, many show small ones."""
_MAX_COMPARISONS = 5
"""Comparisons with the same prior, while something else than a sensor has changed: the filters learn that."""


class _Cause(NamedTuple):
    """What may have changed."""

    scope: str  # whose states change together: those of a joint, of a foot, or of the robot in all limbs
    # of the size: standard deviation in its unit, plus standard deviations of the prior
    std: float
    prior_multiple: float
    words: str


_CAUSES = {
    "position_offset": _Cause("joint", SLIP_STD, 0.0, "the encoder of {!r}"),
    "effort_gain": _Cause("joint", 1.0, 0.0, "the torque gain of {!r}"),
    "effort_offset": _Cause("joint", 0.0, 10.0, "the torque offset of {!r}"),
    "law": _Cause("joint", 0.0, 1.0, "the friction of {!r}"),
    "links": _Cause("joint", 0.0, 5.0, "the mass moved by {!r}"),
    "foot_bias": _Cause("foot", 0.0, 15.0, "the offset of {!r}"),
    "foot_gain": _Cause("foot", 1.0, 0.0, "the gain of {!r}"),
    "wrench_delay": _Cause("foot", 0.01, 0.0, "the delay of {!r}"),
    "accelerometer_bias": _Cause("robot", 1.0, 0.0, "the accelerometer"),
    "torque_delay": _Cause("robot", 0.01, 0.0, "the delay of all motor torques"),
}
"""Changes by their block of the state."""
_SENSOR_CAUSES = frozenset(("position_offset", "effort_gain", "wrench_delay", "accelerometer_bias", "torque_delay"))
"""Changes that findings name; the others are of the robot, or of wrenches, which other checks name."""


class _Hypothesis(NamedTuple):
    """A change that may have happened; hypotheses sort by their log odds."""

    log_odds: float  # against no change
    cause: str  # in words
    block: str  # of the state
    place: int  # joint or foot, -1 for the robot
    size: float  # of the change, in the unit of the block


class ChangeInformation(NamedTuple):
    """Information in the newest seconds about a change of the n states of law and calibration."""

    information: FloatArray  # (n, n) matrix J of change_information
    product: FloatArray  # (n,) vector d
    square: float  # sum Q of the squared residuals, each over its variance
    numbers: int  # how many residuals N are in that sum


class ChangedStates(NamedTuple):
    """States of a limb that change together, for c joints or feet with w states each."""

    states: IntArray  # (c, w) their numbers
    std: FloatArray  # (c, w) of the prior of the states
    unit: FloatArray  # (c, w) of the states, in SI units


class LimbChanges(Protocol):
    """What the comparison needs of a limb."""

    @property
    def places(self) -> dict[str, IntArray]:
        """Joints and feet of the limb, and -1 for the robot, by the scope of a change."""
        ...

    def begin_second(self) -> None:
        """Begin the sums of another second."""
        ...

    def learned_before(self) -> tuple[FloatArray, FloatArray] | None:
        """State (n,) and covariance (n, n) as they were before the newest seconds; None while they are not known."""
        ...

    def change_information(self, state: FloatArray, covariance: FloatArray, seconds: int) -> ChangeInformation:
        """Information of the newest seconds about changes, with this prior."""
        ...

    def changed_states(self, kind: str, count: int) -> ChangedStates:
        """States of a kind of change, of this number of places."""
        ...


def change_information(
    L: FloatArray, b: FloatArray, square: float, numbers: int, state: FloatArray, covariance: FloatArray
) -> ChangeInformation:
    """Information about changes of states (n,) with a prior.

    With L and b, the sums of ``G^T R^-1 G`` and ``G^T R^-1 y``, and x ~ N(x0, P0), changes of the states have the
    information ``J = (1 + L P0)^-1 L`` and the product ``d = (1 + L P0)^-1 (b - L x0)``.

    Parameters
    ----------
    L, b, square, numbers : sums over the newest seconds, that of ``y^T R^-1 y``, and how many numbers y has
    """
    residual = b - L @ state
    marginal = np.linalg.solve(np.eye(state.size) + L @ covariance, np.column_stack((L, residual)))
    left = float(square - state @ (b + residual) - residual @ covariance @ marginal[:, -1])
    J, d = np.asarray(marginal[:, :-1]), np.asarray(marginal[:, -1])
    return ChangeInformation(J, d, left, numbers)


def subtract_wrench_delay(found: ChangeInformation, torque_delay: slice, wrench_delay: slice, ratio: float) -> None:
    """Make the delay of all torques, in place, that of the motor torques alone, without the wrenches.

    Parameters
    ----------
    torque_delay, wrench_delay : states
    ratio : unit of the first over that of the second
    """
    J, d = found.information, found.product
    J[:, torque_delay] -= ratio * J[:, wrench_delay].sum(axis=1, keepdims=True)
    J[torque_delay] -= ratio * J[wrench_delay].sum(axis=0)
    d[torque_delay] -= ratio * d[wrench_delay].sum()


class ChangeComparison:
    """Compares all changes once a second with what the filters had learned before, a part of the work in each window.

    Parameters
    ----------
    limbs : of the robot
    joint_names, foot_names : of the robot

    Attributes
    ----------
    found : most likely change; None where none is likely
    """

    def __init__(self, limbs: Sequence[LimbChanges], joint_names: Sequence[str], foot_names: Sequence[str]) -> None:
        self._limbs = limbs
        self._names = {"joint": joint_names, "foot": foot_names, "robot": ("",)}
        self._second = 0.0
        self._work: Iterator[None] = iter(())
        self._start_anew()

    def _start_anew(self) -> None:
        self._before: list[tuple[FloatArray, FloatArray]] = []
        self._compared, self._likely = 0, ""
        self.found: StateChange | None = None

    def advance(self, time: float) -> None:
        """Do a part of the work, after all limbs have used the window with this end [s]."""
        next(self._work, None)
        if not 0.0 <= time - self._second < 1.0:
            self._second, self._work = time, self._compare()
            for limb in self._limbs:
                limb.begin_second()

    def _compare(self) -> Iterator[None]:
        """Compute the information limb by limb, then the odds; the prior stays the same while a change is likely."""
        learned_before = self._before
        for limb in self._limbs if not self._before else ():
            if (learned := limb.learned_before()) is None:
                self._start_anew()
                return
            learned_before = [*learned_before, learned]
            yield
        found = list[_Hypothesis]()
        for seconds in _SPANS_IN_SECONDS:
            informations = []
            for limb, learned in zip(self._limbs, learned_before, strict=True):
                informations.append(limb.change_information(*learned, seconds))
                yield
            found += self._odds(informations)
        ranked = sorted(found, reverse=True)
        best = ranked[0]
        newest = next(one.log_odds for one in found if one.cause == best.cause)  # of the shortest span
        is_sensor_change = best.block in _SENSOR_CAUSES
        too_long = not is_sensor_change and self._compared >= _MAX_COMPARISONS
        if not best.log_odds > _MIN_LOG_ODDS or newest < _MIN_NEWEST_LOG_ODDS or too_long:
            self._start_anew()
            return
        runner_up = ""
        if is_sensor_change and best.cause == self._likely:
            rival = next(one for one in ranked if one.cause != best.cause)
            runner_up = f"by a factor of {math.exp(rival.log_odds - best.log_odds):.1g}: {rival.cause}"
        self.found = StateChange(best.block, best.place, best.size, runner_up)
        self._before, self._likely, self._compared = learned_before, best.cause, self._compared + 1

    def _odds(self, informations: Sequence[ChangeInformation]) -> Iterator[_Hypothesis]:
        """All changes with their log odds against none."""
        numbers = _DEGREES_OF_FREEDOM + sum(one.numbers for one in informations)
        square = _DEGREES_OF_FREEDOM + sum(one.square for one in informations)
        for kind, (scope, std, multiple, words) in _CAUSES.items():
            shares = [
                _in_units_of_the_change(
                    limb.changed_states(kind, limb.places[scope].size), limb.places[scope], one, std, multiple
                )
                for limb, one in zip(self._limbs, informations, strict=True)
                if limb.places[scope].size
            ]
            if not shares:
                continue
            places, J, d, scale = (np.concatenate(part) for part in zip(*shares, strict=True))
            if scope == "robot":
                places, J, d = places[:1], J.sum(axis=0, keepdims=True), d.sum(axis=0, keepdims=True)
            A = np.eye(d.shape[1]) + J
            mean = np.linalg.solve(A, d[:, :, None])[:, :, 0]
            left = np.maximum(square - (d * mean).sum(axis=1), _DEGREES_OF_FREEDOM)
            log_odds = 0.5 * (numbers * np.log(square / left) - np.linalg.slogdet(A)[1])
            size = mean * scale[: len(mean)]
            sizes = size[:, 0] if size.shape[1] == 1 else np.linalg.norm(size, axis=1)
            for place, odds, value in zip(places.tolist(), log_odds.tolist(), sizes.tolist(), strict=True):
                yield _Hypothesis(odds, words.format(self._names[scope][place]), kind, place, value)


def _in_units_of_the_change(
    states: ChangedStates, places: IntArray, found: ChangeInformation, std: float, multiple: float
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Places (c,), information (c, w, w) and product (c, w) of a change with unit variance; its size (c, w) in SI."""
    scale = std / states.unit + multiple * states.std
    rows = states.states
    J = found.information[rows[:, :, None], rows[:, None, :]] * scale[:, :, None] * scale[:, None, :]
    return places, J, found.product[rows] * scale, scale * states.unit


@record
class BlockBalance(NamedTuple):
    """Balance of momentum over the windows of a block, so far."""

    duration: Vector  # (1,) [s]; negative while the block has not begun
    columns: Matrix  # (m, size) impulse per unit of every state
    impulse: Vector  # (m,) of the forces, with the momentum at the start [N m s]
    noise: Matrix  # (m, m) its covariance


@kernel
def _begin_block(block: BlockBalance, balance: LimbBalance) -> None:
    """Begin a block at the end of a window."""
    block.duration[0], block.columns[:] = 0.0, 0.0
    block.impulse[:], block.noise[:] = balance.momentum, balance.momentum_covariance


@entry_point
def _add_to_normal_equations(
    balance: LimbBalance,
    block: BlockBalance,
    law_error_variance: Vector,
    first_law_error: int,
    first_law: int,
    sums: Matrix,
) -> int:
    """Add a window to its block, and a complete block to ``sums`` of :class:`LimbNormalEquations`; all in place.

    Parameters
    ----------
    law_error_variance : (m,) of the motors [(N m)^2]
    first_law_error, first_law : first states of law error and law

    Returns
    -------
    How many numbers were added
    """
    T, G, m = balance.duration, balance.force_columns, balance.force.size
    if block.duration[0] < 0.0:
        _begin_block(block, balance)
        return 0
    block.duration[0] += T
    for a in range(m):
        block.impulse[a] += T * balance.force[a]
        for j in range(G.shape[1]):
            block.columns[a, j] += T * G[a, j]
        for b in range(m):
            block.noise[a, b] += T * T * balance.force_variance[a, b]
    if block.duration[0] < CORRELATION_TIME - 0.5 * T:
        return 0
    R, rows = block.noise + balance.momentum_covariance, np.empty((m, G.shape[1] - first_law + 1))
    rows[:, :-1], rows[:, -1] = block.columns[:, first_law:], block.impulse - balance.momentum
    for a in range(m):
        for b in range(m):
            for c in range(first_law_error, first_law_error + m):
                R[a, b] += block.columns[a, c] * law_error_variance[c - first_law_error] * block.columns[b, c]
    _begin_block(block, balance)
    solve_lower(cholesky(R)[0], rows)
    if not is_bounded(rows):
        return 0
    sums += rows.T @ rows
    return m


class LimbNormalEquations:
    """Normal equations ``sum [G y]^T R^-1 [G y]`` of the balance of momentum over blocks of windows.

    With ``y = G x + noise`` x are the states of law and calibration. A block is as long as errors of the motion last.

    Parameters
    ----------
    layout : of the state
    """

    def __init__(self, layout: LimbStateLayout) -> None:
        self._layout, self._states = layout, slice(layout.first_state.law, layout.size)
        self._sums: deque[FloatArray] = deque(maxlen=MEMORY_SECONDS + 1)  # the last second is not complete
        self._counts: deque[int] = deque(maxlen=MEMORY_SECONDS + 1)
        m = layout.limb.joints.size
        self._buffer, self._block = buffered_zeros(
            BlockBalance, duration=1, columns=(m, layout.size), impulse=m, noise=(m, m)
        )
        self.begin_second()
        self.interrupt()

    def begin_second(self) -> None:
        """Begin the sums of another second."""
        self._sums.append(np.zeros((self._states.stop - self._states.start + 1,) * 2))
        self._counts.append(0)

    def interrupt(self) -> None:
        """Note that the next window does not follow the one before."""
        self._block.duration[0] = -1.0

    def add(self, balance: LimbBalance | FloatArray, law_error_variance: FloatArray) -> None:
        """Add the balance of a window, or its buffer; ``law_error_variance`` (m,) is that of the motors [(N m)^2]."""
        first_state = self._layout.first_state
        self._counts[-1] += _add_to_normal_equations(
            buffer_of(balance),
            self._buffer,
            law_error_variance,
            first_state.law_error,
            first_state.law,
            self._sums[-1],
        )

    def change_information(self, state: FloatArray, covariance: FloatArray, seconds: int) -> ChangeInformation:
        """Information of the newest seconds about changes, with prior mean (size,) and covariance (size, size).

        The torque delay is here one of the motor torques alone, without the wrenches.
        """
        sums, states = np.sum(list(self._sums)[-seconds - 1 :], axis=0), self._states
        L, b, square, numbers = sums[:-1, :-1], sums[:-1, -1], sums[-1, -1], sum(list(self._counts)[-seconds - 1 :])
        found = change_information(L, b, square, numbers, state[states], covariance[states, states])
        late, wrenches = (
            slice(self._layout[kind].start - states.start, self._layout[kind].stop - states.start)
            for kind in ("torque_delay", "wrench_delay")
        )
        subtract_wrench_delay(found, late, wrenches, 1.0)
        return found


class LimbFilterChanges:
    """:class:`LimbChanges` of a limb's filter."""

    def __init__(self, limb_filter: LimbFilter) -> None:
        self._filter, limb = limb_filter, limb_filter.limb
        self.places: dict[str, IntArray] = {"joint": limb.joints, "foot": limb.feet, "robot": np.full(1, -1)}
        self.begin_second = limb_filter.normal_equations.begin_second
        self.change_information = limb_filter.normal_equations.change_information

    def learned_before(self) -> tuple[FloatArray, FloatArray] | None:
        """State and covariance before the newest seconds."""
        memory = self._filter.memory_before(MEMORY_SECONDS)
        return None if memory is None else (memory.state, memory.covariance)

    def changed_states(self, kind: str, count: int) -> ChangedStates:
        """States of a kind of change, of this number of places."""
        layout = self._filter.layout
        states = np.arange(layout[kind].start, layout[kind].stop).reshape(count, -1)
        return ChangedStates(states - layout.first_state.law, layout.prior_std[states], np.ones(states.shape))
