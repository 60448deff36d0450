"""Detects collisions in the external torque (Lim et al. 2024, sections 5.3 and 7).

    | external torque | ─┐
                         ├─► one of them above its threshold for 5 ms ─► Collision of the limb
    its sigma ───────────┘

Every joint has two pairs of thresholds: one while nothing but a collision may touch its limb, and one while a foot that
it carries is on the ground, where errors of the foot sensor and of the model under load are larger. The paper detects
collisions of the swinging leg only. External torque and sigma may come from MOB-Net or from the Kalman observer;
thresholds hold for the source with which they were learned.

A threshold is a multiple of the highest level above which the signal stays for 5 ms in normal walking (Table 13). A
shorter peak is no collision, so it does not raise the threshold. Thresholds are kept in YAML.
"""

from __future__ import annotations

import hashlib
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from friction_estimator.config import Config
from friction_estimator.errors import LearningError, file_errors
from friction_estimator.io.documents import read_yaml, write_atomically, yaml_text
from friction_estimator.kernels.compiler import entry_point
from friction_estimator.learning.network import chain_name, chains
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import (
    AnyPath,
    BoolArray,
    FlagMatrix,
    Flags,
    FloatArray,
    FrictionEstimate,
    Indices,
    IntArray,
    Matrix,
    Tensor,
    Vector,
)

FREE, _IN_CONTACT = 0, 1
"""States of a joint: nothing but a collision may touch its limb; a foot that it carries is on the ground."""
MIN_DURATION = 0.005
"""A signal must be above its threshold for this time (section 5.3) [s]."""
SETTLING_TIME = 0.15
"""Nothing is compared for this time after a foot has left or touched the ground: load and friction of the joints change
then, and stuck joints break away late. After 0.1 s, 10 to 19 N m are left at a hip in three of about 1,000 swings of
the study; after 0.12 s, at most 3 N m in all of them [s]."""
WARM_UP_TIME = 1.0
"""Nothing is compared for this time after the start or a gap: gravity filter and residual begin anew [s]."""
_MAX_PERIOD = 0.1
"""Joint states that are further apart begin anew [s]."""
_NOT_COMPARED = -1
"""State of a joint that is not compared."""


@entry_point
def find_states(
    torque: Vector,
    sigma: Vector,
    contact: Flags,
    since: Vector,
    carries: FlagMatrix,
    warm: bool,
    state: Indices,
) -> None:
    """Write the state (n,) of every joint; one whose external torque is unknown is not compared.

    Parameters
    ----------
    torque, sigma : (n,) external torque and its standard deviation [N m]
    contact, since : (k,) feet in contact, and time since this has changed [s]
    carries : (k, n) True where a joint carries that foot
    warm : False during the warm-up
    """
    for joint in range(torque.size):
        known = math.isfinite(torque[joint]) and math.isfinite(sigma[joint])
        state[joint] = FREE if known and warm else _NOT_COMPARED
        for foot in range(contact.size):
            if carries[foot, joint] and state[joint] != _NOT_COMPARED:
                if not since[foot] >= SETTLING_TIME:
                    state[joint] = _NOT_COMPARED
                elif contact[foot]:
                    state[joint] = _IN_CONTACT


class JointStates:
    """Which thresholds hold for each joint at a sample: in free air, in ground contact, or none.

    Parameters
    ----------
    robot : its feet and their limbs

    Attributes
    ----------
    state : (n,) ``FREE``, ``_IN_CONTACT``, or negative while nothing is compared
    """

    def __init__(self, robot: RobotModel) -> None:
        self._carries: BoolArray = np.ascontiguousarray(robot.limb)
        self.state: IntArray = np.full(len(robot.joint_names), _NOT_COMPARED, dtype=np.int64)
        self._stamp_ns: int | None = None
        self._running_for = 0.0

    def step(self, estimate: FrictionEstimate) -> float:
        """Use one estimate; return the time since the one before, 0 after the start or a gap [s]."""
        dt = 0.0 if self._stamp_ns is None else 1e-9 * (estimate.stamp_ns - self._stamp_ns)
        self._stamp_ns = estimate.stamp_ns
        if not 0.0 < dt <= _MAX_PERIOD:
            dt = self._running_for = 0.0
        self._running_for += dt
        torque, sigma, phase = estimate.external_torque, estimate.external_torque_sigma, estimate.phase
        warm = self._running_for >= WARM_UP_TIME
        find_states(torque, sigma, phase.contact, phase.since, self._carries, warm, self.state)
        return dt


_STATES, _SIGNALS = ("free", "in_contact"), ("external torque", "sigma")
"""Names of the states of a joint and of the signals that are compared."""
THRESHOLD_FACTORS = (1.1, 2.0)
"""Threshold as a multiple of the highest level of normal walking, by state. In the air it is that of section 5.3. The
paper does not compare standing legs; there the highest levels of 8 minutes and of 8 other ones differ by up to 1.7."""
_MIN_EFFORT_SHARE = 0.01
"""Smallest threshold of the external torque as a part of the effort limit: a regular walk of some minutes does not show
all errors of motor torque and model."""
_FORMAT, _KEYS = "friction_estimator/collision_thresholds", ("external_torque", "sigma")
"""Format of the YAML, and keys of the two signals in it."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Thresholds of all joints."""

    joint_names: tuple[str, ...]  # (n)
    # (2, 2, n) by state and signal [N m]; infinite where the signal is not used, and in a state in which normal
    # walking has not shown the joint
    values: FloatArray
    source: str = ""  # what gave the external torque, see torque_source

    def check(self, joint_names: Sequence[str], source: str | None = None) -> None:
        """Raise LearningError when the thresholds are of other joints, or of another source of the external torque."""
        if self.joint_names != tuple(joint_names):
            raise LearningError(
                f"the collision thresholds are for the joints {', '.join(self.joint_names)}; the robot has "
                f"{', '.join(joint_names)}: learn them with this robot"
            )
        if source is not None and source != self.source:
            raise LearningError(
                f"the collision thresholds were learned with the external torque of {self.source}, not of {source}: "
                "learn them again"
            )

    def save(self, path: Path) -> None:
        """Write the thresholds to a YAML file.

        Raises
        ------
        ConfigError
            When the file cannot be written.
        """
        document: dict[str, object] = {"format": _FORMAT, "units": "N m", "source": self.source}
        for state, of_state in zip(_STATES, self.values, strict=True):
            document[state] = {
                name: {key: value for key, value in zip(_KEYS, values.tolist(), strict=True) if value < math.inf}
                for name, values in zip(self.joint_names, of_state.T, strict=True)
            }
        document["joints"] = list(self.joint_names)
        with file_errors(f"write {path}"):
            write_atomically(path, yaml_text(document))


def load_thresholds(path: Path) -> Thresholds:
    """Read thresholds.

    Raises
    ------
    ConfigError, LearningError
        When the file cannot be read, or does not hold positive thresholds of known joints.
    """
    document = read_yaml(path)
    try:
        if document["format"] != _FORMAT:
            raise ValueError(f"its format is {document['format']!r}")
        names = tuple(document["joints"])
        values = np.full((2, 2, len(names)), np.inf)
        for number, state in enumerate(_STATES):
            for name, of_joint in document[state].items():
                for key, value in of_joint.items():
                    values[number, _KEYS.index(key), names.index(name)] = float(value)
        if not (values > 0.0).all():
            raise ValueError("a threshold is not positive")
        return Thresholds(names, values, str(document["source"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"{path} holds no collision thresholds ({error!r}): learn them with `collisions --learn`"
        raise LearningError(reason) from None


def torque_source(config: Config, model: AnyPath | None, fused: bool = False) -> str:
    """Text that identifies the source of the external torque: observer, model file of MOB-Net, or both (fused)."""
    if not model:
        return f"the observer {config.observer}"
    both = f"the observer {config.observer} and " if fused else ""
    with file_errors(f"read the model {model}", LearningError):
        return f"{both}the MOB-Net model {hashlib.sha256(Path(model).read_bytes()).hexdigest()[:16]}"


class ThresholdLearner:
    """Finds the highest levels above which external torque and sigma stay for 5 ms in normal walking.

    Parameters
    ----------
    robot : the model that the estimator has
    """

    def __init__(self, robot: RobotModel) -> None:
        self._joint_names, self._effort_limit = robot.joint_names, robot.effort_limit
        self._states = JointStates(robot)
        self._largest = np.full((2, 2, len(self._joint_names)), -np.inf)
        self._recent: deque[tuple[int, FloatArray]] = deque()

    def step(self, estimate: FrictionEstimate) -> None:
        """Update the levels by the external torque of one estimate."""
        if self._states.step(estimate) == 0.0:
            self._recent.clear()
        state, recent = self._states.state, self._recent
        signals = np.abs((estimate.external_torque, estimate.external_torque_sigma))
        of_states = [np.where(state == one, signals, -np.inf) for one in (FREE, _IN_CONTACT)]
        recent.append((estimate.stamp_ns, np.stack(of_states)))
        before = estimate.stamp_ns - round(1e9 * MIN_DURATION)
        while len(recent) > 1 and recent[1][0] <= before:
            recent.popleft()
        if recent[0][0] <= before:
            lasting = np.min([values for _, values in recent], axis=0)
            np.maximum(self._largest, lasting, out=self._largest)

    def thresholds(self, source: str = "", with_sigma: bool = True) -> Thresholds:
        """Thresholds from all estimates so far.

        Parameters
        ----------
        source : what gives the external torque
        with_sigma : False for the sigma of an observer, which is that of its filter: a collision does not raise it

        Raises
        ------
        LearningError
            When no joint has been compared for a single sample.
        """
        seen = np.isfinite(self._largest)
        if not seen.any():
            raise LearningError(
                "no sample has an external torque: thresholds need walks with motor torques, IMU and foot wrenches"
            )
        values = np.where(seen, np.reshape(THRESHOLD_FACTORS, (2, 1, 1)) * self._largest, np.inf)
        limited = np.isfinite(self._effort_limit)
        values[:, 0, limited] = np.maximum(values[:, 0, limited], _MIN_EFFORT_SHARE * self._effort_limit[limited])
        if not with_sigma:
            values[:, 1] = np.inf
        return Thresholds(self._joint_names, values, source)


COLLISION_PAUSE = 0.3
"""A limb has collided once until it has been below all thresholds for this time [s]."""


@entry_point
def compare_with_thresholds(
    torque: Vector,
    sigma: Vector,
    state: Indices,
    thresholds: Tensor,
    dt: float,
    ratio: Matrix,
    above_for: Matrix,
) -> None:
    """Write the ratios of external torque and sigma to their thresholds, and how long each has been above one.

    The time is -1 while the ratio is not above one.

    Parameters
    ----------
    torque, sigma : (n,) external torque and its standard deviation [N m]
    state : (n,) of :class:`JointStates`
    thresholds : (2, 2, n) by state, and torque or sigma [N m]
    dt : since the sample before [s]
    ratio, above_for : (2, n) for torque and sigma, in place [-], [s]
    """
    for joint in range(state.size):
        ratio[0, joint] = ratio[1, joint] = 0.0
        if state[joint] >= 0:
            limits = thresholds[state[joint]]
            ratio[0, joint], ratio[1, joint] = abs(torque[joint]) / limits[0, joint], sigma[joint] / limits[1, joint]
        for row in range(2):
            above = above_for[row, joint] + dt if above_for[row, joint] >= 0.0 else 0.0
            above_for[row, joint] = above if ratio[row, joint] > 1.0 else -1.0


@dataclass(frozen=True, slots=True)
class Collision:
    """One collision at the moment of its detection."""

    stamp_ns: int  # of the joint sample [ns]
    limb: str  # first and last joint of the limb
    joint: str  # the one whose signal is furthest above its threshold
    signal: str  # `external torque` or `sigma`
    # of that signal, with its sign [N m]
    value: float
    threshold: float
    in_contact: bool  # whether the limb stood on the ground

    def __str__(self) -> str:
        place = "on the ground" if self.in_contact else "in the air"
        return (
            f"collision of the limb {self.limb}, {place}: {self.signal} of {self.joint} is {self.value:.1f} N m, "
            f"threshold {self.threshold:.1f} N m"
        )


class CollisionDetector:
    """Detects collisions in the estimates of a replay, a live node or a simulation.

    Parameters
    ----------
    robot : the model that the estimator has
    thresholds : of this robot and this source of the external torque

    Attributes
    ----------
    hit : limbs that collide at the newest sample, each by the index of its foot; -1: a limb without a foot

    Raises
    ------
    LearningError
        When the thresholds are of other joints.
    """

    def __init__(self, robot: RobotModel, thresholds: Thresholds) -> None:
        thresholds.check(robot.joint_names)
        self._joint_names = robot.joint_names
        self._states = JointStates(robot)
        self._thresholds = np.ascontiguousarray(thresholds.values)
        self._limbs = [(chain_name(robot.joint_names, joints), joints) for joints in chains(robot.coupled)]
        carries = [robot.limb[:, joints[0]] for _, joints in self._limbs]
        self._feet = [int(np.argmax(feet)) if feet.any() else -1 for feet in carries]
        self.hit: tuple[int, ...] = ()
        n = len(robot.joint_names)
        self._ratio, self._above_for = np.zeros((2, n)), np.full((2, n), -1.0)
        self._collided_until_ns = [0] * len(self._limbs)

    def step(self, estimate: FrictionEstimate) -> tuple[Collision, ...]:
        """Collisions that begin at this estimate, at most one per limb."""
        dt = self._states.step(estimate)
        if dt == 0.0:
            self._collided_until_ns = [0] * len(self._limbs)
        signals = estimate.external_torque, estimate.external_torque_sigma
        compare_with_thresholds(*signals, self._states.state, self._thresholds, dt, self._ratio, self._above_for)
        if self._above_for.max() < MIN_DURATION - 1e-9:
            self.hit = ()
            return ()
        ratio = np.where(self._above_for < MIN_DURATION - 1e-9, 0.0, self._ratio)
        found, hit = [], []
        for number, (name, joints) in enumerate(self._limbs):
            row, worst = np.unravel_index(np.argmax(ratio[:, joints]), (2, joints.size))
            if ratio[row, joints[worst]] > 0.0:
                hit.append(self._feet[number])
                if estimate.stamp_ns > self._collided_until_ns[number]:
                    found.append(self._collision(estimate, name, int(joints[worst]), int(row)))
                self._collided_until_ns[number] = estimate.stamp_ns + round(1e9 * COLLISION_PAUSE)
        self.hit = tuple(hit)
        return tuple(found)

    def _collision(self, estimate: FrictionEstimate, limb: str, joint: int, row: int) -> Collision:
        state = int(self._states.state[joint])
        signals = estimate.external_torque, estimate.external_torque_sigma
        return Collision(
            estimate.stamp_ns,
            limb,
            self._joint_names[joint],
            _SIGNALS[row],
            float(signals[row][joint]),
            float(self._thresholds[state, row, joint]),
            state == _IN_CONTACT,
        )
