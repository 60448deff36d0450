"""True friction of the simulated joints: any registered law, stiction, presliding, ripple, warming, changes in time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from friction_estimator.errors import SimulationError, choices
from friction_estimator.kernels.compiler import entry_point
from friction_estimator.laws import FrictionLaw, make_law
from friction_estimator.laws.joint_laws import dahl_strain
from friction_estimator.laws.law import Role
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import FloatArray, IntArray, Matrix, Vector

_SLOPE_VELOCITY = 1e-3  # at which the slope of friction near rest is taken [rad/s]
_SMALLEST_SPEED = 1e-6  # at which laws are evaluated for joints at rest [rad/s]
_SMOOTH_SHARE = 0.01  # of the dry friction of a sliding joint, below which a resting joint has none
_SLIDING_SPEED = 0.1  # speed at which a joint has most of its dry friction [rad/s]
_DRY_ROLES = (Role.COULOMB, Role.STRIBECK, Role.LOAD)


@dataclass(frozen=True, slots=True)
class ParametrisedLaw:
    """Law and parameters of one joint."""

    law: str
    parameters: tuple[float, ...]

    def scaled(self, factors: Mapping[str, float]) -> ParametrisedLaw:
        """The same law with the named parameters multiplied by the given factors."""
        names = make_law(self.law).parameter_names
        unknown = set(factors) - set(names)
        if unknown:
            raise SimulationError(f"the law {self.law!r} has no parameter {choices(unknown)}; it has {choices(names)}")
        scales = [factors.get(name, 1.0) for name in names]
        return replace(self, parameters=tuple(p * s for p, s in zip(self.parameters, scales, strict=True)))


TABLE_I = tuple(
    ParametrisedLaw("makkar", gammas)
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

    Dry friction is what remains of a law without its viscous and constant terms.
    """

    start: float = 0.0  # [s]
    # friction of each leg joint from hip yaw to ankle roll, the same for both legs
    leg: tuple[ParametrisedLaw, ...] = TABLE_I
    others: ParametrisedLaw | None = None  # friction of every joint outside the legs; None: none
    # friction of some joints by name, in place of that of `leg` and `others`
    joints: tuple[tuple[str, ParametrisedLaw], ...] = ()
    # True: dry friction is solved as a constraint, so that a resting joint stays at rest while the other torques
    # on it are smaller than its dry friction. The laws must jump at zero velocity
    sticks: bool = False
    # distance over which dry friction builds up after a reversal (LuGre model); 0: at once [rad]. The laws must
    # jump at zero velocity
    presliding: float = 0.0
    bristle_damping: float = 0.0  # damping of the LuGre model within the presliding distance [N m s/rad]
    # amplitude of a periodic change of the torque with the joint position, as a fraction of the torque
    ripple: float = 0.0
    ripples_per_turn: float = 60.0  # periods of that change in one turn of the joint
    warming: float = 0.0  # fraction of the viscous friction that is lost until `warming_time`, linearly in time
    warming_time: float = 60.0  # since the beginning of the scenario [s]

    @property
    def is_law(self) -> bool:
        """Whether the friction torque is that of the laws alone."""
        return not (self.sticks or self.presliding or self.ripple or self.warming)


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
        self._motors = motors or Transmission.from_coupling(None, joint_names)
        if self._motors.couples and any(setting.sticks for setting in settings):
            raise SimulationError("joints that share motors cannot be held by stiction: set sticks to False")
        ordered = sorted(settings, key=lambda setting: setting.start)
        self._starts = [setting.start for setting in ordered[1:]] + [np.inf]
        self._tables = [_Table(setting, joint_names, legs) for setting in ordered]
        self._active, self._time = 0, 0.0
        self._strain = np.zeros(len(joint_names))
        self._none = np.zeros(len(joint_names))

    def slope(self) -> FloatArray:
        """Steepest rise of each joint's friction over its velocity near rest, at any time (n,) [N m s/rad]."""
        return self._motors.variance_at_joints(np.max([table.slope() for table in self._tables], axis=0))

    def advance(self, time: float) -> None:
        """Switch to the setting that holds at this time; time never runs backward."""
        self._time = time
        while time >= self._starts[self._active]:
            self._active += 1

    def stiction(self, position: FloatArray, velocity: FloatArray, load: FloatArray) -> FloatArray:
        """Largest dry friction that the constraint solver may apply now, arguments as in :meth:`torque` (n,) [N m]."""
        table = self._tables[self._active]
        if not table.setting.sticks:
            return self._none
        return table.dry(velocity, load) * table.ripple(position)

    def torque(self, position: FloatArray, velocity: FloatArray, load: FloatArray, dt: float) -> FloatArray:
        """Friction torque without stiction, once for each integration step.

        Parameters
        ----------
        position, velocity : of the joints (n,) [rad], [rad/s]
        load : motor torques (n,) [N m]
        dt : since the previous call [s]
        """
        motors, table = self._motors, self._tables[self._active]
        if not motors.couples:
            return self._motor_torque(table, position, velocity, load, dt)
        at_motors = motors.velocity(position), motors.velocity(velocity), motors.torque(load)  # angles like rates
        return motors.at_joints(self._motor_torque(table, *at_motors, dt))

    def _motor_torque(
        self, table: _Table, position: FloatArray, velocity: FloatArray, load: FloatArray, dt: float
    ) -> FloatArray:
        setting = table.setting
        if setting.is_law:
            return table.torque(velocity, load)
        warming = setting.warming * min(self._time / setting.warming_time, 1.0)
        torque = table.offset(velocity, load) + (1.0 - warming) * table.viscous(velocity, load)
        if setting.presliding > 0.0:
            self._strain = dahl_strain(self._strain, dt * velocity[None], setting.presliding)[0]
            torque += table.dry(velocity, load) * self._strain
            torque += setting.bristle_damping * (velocity - np.abs(velocity) * self._strain)
        elif not setting.sticks:
            torque += np.sign(velocity) * table.dry(velocity, load)
        return torque * table.ripple(position)


class _Table:
    """One setting, joints grouped by law so that each law is called once."""

    def __init__(self, setting: FrictionSetting, joint_names: Sequence[str], legs: Sequence[Sequence[str]]) -> None:
        self.setting = setting
        by_name = dict.fromkeys(joint_names, setting.others) if setting.others else dict[str, ParametrisedLaw]()
        for leg in legs:
            if len(setting.leg) != len(leg):
                raise SimulationError(f"leg friction is given for {len(setting.leg)} joints, a leg has {len(leg)}")
            by_name.update(zip(leg, setting.leg, strict=True))
        by_name.update(setting.joints)
        unknown = set(by_name) - set(joint_names)
        if unknown:
            raise SimulationError(f"friction for unknown joints {choices(unknown)}; joints are {choices(joint_names)}")
        self._size = len(joint_names)
        self._groups = []
        for law_name in sorted({friction.law for friction in by_name.values()}):
            members = [k for k, name in enumerate(joint_names) if name in by_name and by_name[name].law == law_name]
            law = make_law(law_name)
            parameters = _parameter_rows(law, [by_name[joint_names[k]] for k in members])
            self._groups.append(_Group(law, np.array(members), parameters))
        self._uniform = len(self._groups) == 1 and self._groups[0].members.size == self._size
        if setting.sticks or setting.presliding > 0.0:
            self._check_jump()

    def torque(self, velocity: FloatArray, load: FloatArray) -> FloatArray:
        """Friction of the laws (n,) [N m]."""
        if self._uniform:
            group = self._groups[0]
            return group.torque(group.parameters, velocity, load)
        return self._sum(velocity, load, tuple(Role))

    def viscous(self, velocity: FloatArray, load: FloatArray) -> FloatArray:
        """Viscous terms of the laws (n,) [N m]."""
        return self._sum(velocity, load, (Role.VISCOUS,))

    def offset(self, velocity: FloatArray, load: FloatArray) -> FloatArray:
        """Constant terms of the laws (n,) [N m]."""
        return self._sum(velocity, load, (Role.OFFSET,))

    def dry(self, velocity: FloatArray, load: FloatArray) -> FloatArray:
        """Size of the other terms at these speeds, at rest their limit from above (n,) [N m]."""
        speed = np.maximum(np.abs(velocity), _SMALLEST_SPEED)
        direction = np.where(velocity < 0.0, -1.0, 1.0)
        return np.maximum(direction * self._sum(direction * speed, load, _DRY_ROLES), 0.0)

    def ripple(self, position: FloatArray) -> FloatArray | float:
        """Factor of the torque at these positions (n,)."""
        setting = self.setting
        return 1.0 + setting.ripple * np.sin(setting.ripples_per_turn * position) if setting.ripple else 1.0

    def slope(self) -> FloatArray:
        """Rise of the torque over the velocity near rest (n,) [N m s/rad]."""
        velocity, load, setting = np.full(self._size, _SLOPE_VELOCITY), np.zeros(self._size), self.setting
        held = setting.sticks or setting.presliding > 0.0
        torque = self.viscous(velocity, load) if held else self.torque(velocity, load)
        return torque / _SLOPE_VELOCITY + setting.bristle_damping

    def _sum(self, velocity: FloatArray, load: FloatArray, roles: Sequence[Role]) -> FloatArray:
        """Torque of the terms with these roles; shapes always count."""
        torque = np.zeros(self._size)
        for group in self._groups:
            members = group.members
            torque[members] = group.torque(group.only(roles), velocity[members], load[members])
        return torque

    def _check_jump(self) -> None:
        """Raise SimulationError for a law without dry friction at rest."""
        still, load = np.zeros(self._size), np.ones(self._size)
        smooth = self.dry(still, load) < _SMOOTH_SHARE * self.dry(still + _SLIDING_SPEED, load)
        for group in self._groups:
            if smooth[group.members].any():
                raise SimulationError(f"the law {group.law.name!r} has no dry friction at rest, so no joint can stick")


@dataclass(frozen=True, slots=True)
class _Group:
    """Joints with one law: their indices (g,) and parameters (g, p)."""

    law: FrictionLaw
    members: IntArray
    parameters: FloatArray

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray) -> FloatArray:
        """Torque (g,) of the law with these parameters (g, p) [N m]."""
        return COMPILED_LAWS.get(self.law.name, self.law.torque)(parameters, velocity, load)

    def only(self, roles: Sequence[Role]) -> FloatArray:
        """Parameters (g, p), zero where a term has another role."""
        wanted = [parameter.role in (*roles, Role.SHAPE) for parameter in self.law.parameters]
        return np.where(wanted, self.parameters, 0.0)


@entry_point
def _makkar(parameters: Matrix, velocity: Vector, load: Vector) -> FloatArray:
    """``Makkar.torque``, compiled: the law of most scenarios, evaluated in every integration step."""
    torque = np.empty(velocity.size)
    for joint in range(velocity.size):
        g1, g2, g3, g4, g5, g6 = parameters[joint]
        dq = velocity[joint]
        torque[joint] = g1 * (np.tanh(g2 * dq) - np.tanh(g3 * dq)) + g4 * np.tanh(g5 * dq) + g6 * dq
    return torque


COMPILED_LAWS: dict[str, Callable[[FloatArray, FloatArray, FloatArray], FloatArray]] = {"makkar": _makkar}
"""Torques of laws (n,), from parameters (n, p), velocity and load (n,); other laws are evaluated by their classes."""


def _parameter_rows(law: FrictionLaw, frictions: Sequence[ParametrisedLaw]) -> FloatArray:
    for friction in frictions:
        if len(friction.parameters) != len(law.parameter_names):
            raise SimulationError(
                f"the law {law.name!r} takes {len(law.parameter_names)} parameters {list(law.parameter_names)}, "
                f"got {list(friction.parameters)}"
            )
    return np.array([friction.parameters for friction in frictions], dtype=np.float64)
