"""True friction of the simulated joints: any registered law, per joint, changeable at given times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.errors import ConfigError, SimulationError, choices
from friction_estimator.laws import FrictionLaw, make_law
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import FloatArray

_SMALL_VELOCITY = 1e-3  # at which the slope of friction near rest is taken [rad/s]


@dataclass(frozen=True, slots=True)
class JointFriction:
    """Law and parameters of one joint."""

    law: str
    parameters: tuple[float, ...]

    def scaled(self, factors: Mapping[str, float]) -> JointFriction:
        """The same law with some parameters, by name, multiplied."""
        names = make_law(self.law).parameter_names
        unknown = set(factors) - set(names)
        if unknown:
            raise SimulationError(f"the law {self.law!r} has no parameter {choices(unknown)}; it has {choices(names)}")
        scales = [factors.get(name, 1.0) for name in names]
        return replace(self, parameters=tuple(p * s for p, s in zip(self.parameters, scales, strict=True)))


TABLE_I = tuple(
    JointFriction("makkar", gammas)
    for gammas in (
        (0.7, 100.0, 10.0, 0.6, 100.0, 0.9),
        (0.6, 100.0, 10.0, 0.5, 100.0, 0.9),
        (0.5, 100.0, 10.0, 0.4, 100.0, 0.9),
        (0.4, 100.0, 10.0, 0.3, 100.0, 0.9),
        (0.2, 100.0, 10.0, 0.02, 100.0, 0.9),
        (0.05, 100.0, 10.0, 0.01, 100.0, 0.9),
    )
)
"""Friction of a leg from hip yaw to ankle roll (Hashlamon & Erbatur 2014, eq. 56 and Table I)."""


@dataclass(frozen=True, slots=True)
class FrictionSetting:
    """Friction of the whole robot from a time on.

    Attributes
    ----------
    start : [s]
    leg : friction of each leg joint from hip yaw to ankle roll, the same for both legs
    leg_stiction : (6,) or empty, dry friction of each leg joint in addition to its law, solved as a constraint: a
        resting joint stays at rest while the other torques on it are smaller than this [N m]
    joints : friction of further joints by name, or of leg joints other than in ``leg``; other joints have none
    """

    start: float = 0.0
    leg: tuple[JointFriction, ...] = TABLE_I
    leg_stiction: tuple[float, ...] = ()
    joints: tuple[tuple[str, JointFriction], ...] = ()


class InjectedFriction:
    """Friction torques of the setting that holds at the present time.

    Parameters
    ----------
    settings : at least one; the earliest also holds before its start
    joint_names : (n,)
    legs : names of the leg joints, hip to foot, of every leg
    motors : where joints share motors, entries are those of the motors in their place; None: no shared motors
    """

    def __init__(
        self,
        settings: Sequence[FrictionSetting],
        joint_names: Sequence[str],
        legs: Sequence[Sequence[str]],
        motors: Transmission | None = None,
    ) -> None:
        if not settings:
            raise SimulationError("a scenario needs at least one friction setting")
        ordered = sorted(settings, key=lambda setting: setting.start)
        self._starts = [setting.start for setting in ordered[1:]] + [np.inf]
        self._tables = [_Table(setting, joint_names, legs) for setting in ordered]
        self._active = 0
        self._motors = motors or Transmission.of(None, joint_names)
        stuck = np.logical_or.reduce([table.stiction > 0.0 for table in self._tables])
        if (stuck & (self._motors.weights[:, 1:] != 0.0).any(axis=1)).any():
            raise SimulationError("joints that share motors cannot be held by stiction: leave leg_stiction out")

    @property
    def stiction(self) -> FloatArray:
        """Largest dry friction that the constraint solver may apply now (n,) [N m]."""
        return self._tables[self._active].stiction

    def slope(self) -> FloatArray:
        """Steepest rise of each joint's friction over its velocity near rest, at any time (n,) [N m s/rad]."""
        velocity = np.full(len(self._tables[0].stiction), _SMALL_VELOCITY)
        torque = [table.torque(velocity, np.zeros_like(velocity)) for table in self._tables]
        return self._motors.viscous_at_joints(np.max(torque, axis=0) / _SMALL_VELOCITY)

    def advance(self, time: float) -> None:
        """Switch to the setting that holds at this time; time never runs backward."""
        while time >= self._starts[self._active]:
            self._active += 1

    def torque(self, velocity: FloatArray, load: FloatArray) -> FloatArray:
        """Friction torque (n,) at joint velocities (n,) [rad/s] and motor torques (n,) [N m]."""
        motors, table = self._motors, self._tables[self._active]
        if not motors.couples:
            return table.torque(velocity, load)
        return motors.at_joints(table.torque(motors.velocity(velocity), motors.torque(load)))


class _Table:
    """One setting, joints grouped by law so that each law is called once."""

    def __init__(self, setting: FrictionSetting, joint_names: Sequence[str], legs: Sequence[Sequence[str]]) -> None:
        by_name: dict[str, JointFriction] = {}
        self.stiction = np.zeros(len(joint_names))
        for leg in legs:
            if len(setting.leg) != len(leg):
                raise SimulationError(f"leg friction is given for {len(setting.leg)} joints, a leg has {len(leg)}")
            by_name.update(zip(leg, setting.leg, strict=True))
            if setting.leg_stiction:
                self.stiction[[joint_names.index(name) for name in leg]] = _checked(setting.leg_stiction, len(leg))
        by_name.update(setting.joints)
        unknown = set(by_name) - set(joint_names)
        if unknown:
            raise SimulationError(f"friction for unknown joints {choices(unknown)}; joints are {choices(joint_names)}")
        self._size = len(joint_names)
        self._groups = []
        for law_name in sorted({friction.law for friction in by_name.values()}):
            members = [k for k, name in enumerate(joint_names) if name in by_name and by_name[name].law == law_name]
            law = _known_law(law_name)
            parameters = _parameter_rows(law, [by_name[joint_names[k]] for k in members])
            self._groups.append((COMPILED_LAWS.get(law_name, law.torque), np.array(members), parameters))
        self._uniform = len(self._groups) == 1 and self._groups[0][1].size == self._size

    def torque(self, velocity: FloatArray, load: FloatArray) -> FloatArray:
        if self._uniform:
            law_torque, _, parameters = self._groups[0]
            return law_torque(parameters, velocity, load)
        torque = np.zeros(self._size)
        for law_torque, members, parameters in self._groups:
            torque[members] = law_torque(parameters, velocity[members], load[members])
        return torque


@kernel("M V V")
def _makkar(parameters: FloatArray, velocity: FloatArray, load: FloatArray) -> FloatArray:
    """``Makkar.torque``, compiled: the law of most scenarios, evaluated in every integration step."""
    torque = np.empty(velocity.size)
    for joint in range(velocity.size):
        g1, g2, g3, g4, g5, g6 = parameters[joint]
        dq = velocity[joint]
        torque[joint] = g1 * (np.tanh(g2 * dq) - np.tanh(g3 * dq)) + g4 * np.tanh(g5 * dq) + g6 * dq
    return torque


COMPILED_LAWS: dict[str, Callable[[FloatArray, FloatArray, FloatArray], FloatArray]] = {"makkar": _makkar}
"""Torques of laws (n,), from parameters (n, p), velocity and load (n,); other laws are evaluated by their classes."""


def _checked(stiction: tuple[float, ...], size: int) -> tuple[float, ...]:
    if len(stiction) != size or not min(stiction) >= 0.0:
        raise SimulationError(f"leg_stiction must be {size} torques of at least 0 N m, got {list(stiction)}")
    return stiction


def _known_law(name: str) -> FrictionLaw:
    try:
        return make_law(name)
    except ConfigError as error:
        raise SimulationError(str(error)) from None


def _parameter_rows(law: FrictionLaw, frictions: Sequence[JointFriction]) -> FloatArray:
    for friction in frictions:
        if len(friction.parameters) != len(law.parameter_names):
            raise SimulationError(
                f"the law {law.name!r} takes {len(law.parameter_names)} parameters {list(law.parameter_names)}, "
                f"got {list(friction.parameters)}"
            )
    return np.array([friction.parameters for friction in frictions], dtype=np.float64)
