"""Named scenarios: gait, pushes, friction over time, and ground."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from friction_estimator.errors import SimulationError, choices
from friction_estimator.simulation.footsteps import Gait
from friction_estimator.simulation.friction import TABLE_I, FrictionSetting, JointFriction
from friction_estimator.simulation.ground import Ground

PUSH_TARGETS = ("base", "left_knee", "right_knee")
_CYCLE = 3.0  # two steps of the default gait [s]
_LONGEST = 36_000.0  # ten hours: the plan is kept in memory [s]
_PAPER_LAST_STEP = 9.6  # the last swing then ends at 10.1 s, as in section 7.1 [s]
_PUSH_FORCES = ((150.0, 0.0, 0.0), (-150.0, 0.0, 0.0), (0.0, 150.0, 0.0), (0.0, -150.0, 0.0))
_STICTION = (1.5, 1.2, 1.0, 0.8, 0.6, 0.5)  # hip yaw to ankle roll [N m]
_SLOPE = math.radians(4.0)
_UNEVEN = Ground(
    height=0.01, tilt=math.radians(3.0), unseen_height=0.003, unseen_tilt=math.radians(1.0), seed=1
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Push:
    """A constant external force for a short time.

    Attributes
    ----------
    start, duration : [s]
    force : in world axes [N]
    target : ``base`` (at the base origin), ``left_knee`` or ``right_knee`` (at the knee joint)
    """

    start: float
    duration: float
    force: tuple[float, float, float]
    target: str = "base"

    def __post_init__(self) -> None:
        if self.target not in PUSH_TARGETS:
            raise SimulationError(f"unknown push target {self.target!r}; the targets are {choices(PUSH_TARGETS)}")


@dataclass(frozen=True, slots=True)
class Scenario:
    """One simulated experiment.

    Attributes
    ----------
    name : of the scenario
    duration : simulated time [s]
    gait : motion of the legs
    friction : settings, each from its start on
    pushes : external forces, not overlapping on the same target
    ground : under the feet
    """

    name: str
    duration: float
    gait: Gait = Gait()
    friction: tuple[FrictionSetting, ...] = (FrictionSetting(),)
    pushes: tuple[Push, ...] = ()
    ground: Ground = Ground()

    def __post_init__(self) -> None:
        if not 0.0 < self.duration <= _LONGEST:
            raise SimulationError(f"a scenario lasts more than 0 and at most {_LONGEST:g} s, got {self.duration} s")


def _pushes(duration: float, target: str, first: float) -> tuple[Push, ...]:
    """80 ms pushes, two walking cycles apart, in all four directions in turn."""
    count = int(max(0.0, duration - first) / (2.0 * _CYCLE)) + 1
    forces = [_PUSH_FORCES[k % len(_PUSH_FORCES)] for k in range(count)]
    return tuple(Push(first + 2.0 * _CYCLE * k, 0.08, force, target) for k, force in enumerate(forces))


def _friction_change(duration: float) -> Scenario:
    """Coulomb and Stribeck torque double at half time, or at 10 s in longer runs."""
    leg = tuple(joint.scaled({"gamma_1": 2.0, "gamma_4": 2.0}) for joint in TABLE_I)
    changes = (FrictionSetting(), FrictionSetting(min(10.0, 0.5 * duration), leg))
    return Scenario("friction_change", duration, friction=changes)


def _friction_load(duration: float) -> Scenario:
    """Friction that grows with the motor torque: Lim et al. 2024, eq. 23 and Table 4, legs."""
    law = JointFriction("stribeck_load", (5.0, 2.0, 1.51, 4.0, 0.002))
    return Scenario("friction_load", duration, friction=(FrictionSetting(leg=(law,) * len(TABLE_I)),))


def _friction_load_stiction(duration: float) -> Scenario:
    """The same friction, set-valued at rest: a joint stays at rest below its dry friction."""
    return _with_setting(_friction_load(duration), "friction_load_stiction", sticks=True)


def _friction_stiction(duration: float) -> Scenario:
    """Dry friction that holds a resting joint, solved as a constraint, and viscous friction as in Table I."""
    leg = tuple(JointFriction("coulomb_viscous", (dry, 0.9)) for dry in _STICTION)
    return Scenario("friction_stiction", duration, friction=(FrictionSetting(leg=leg, sticks=True),))


def _friction_lugre(presliding: float, duration: float, name: str) -> Scenario:
    """LuGre friction: breakaway torques 1.3 times the Coulomb torques, Stribeck velocity 0.05 rad/s."""
    leg = tuple(JointFriction("stribeck_load", (dry, 1.3 * dry, 0.05, 0.9, 0.0)) for dry in _STICTION)
    setting = FrictionSetting(leg=leg, presliding=presliding, bristle_damping=0.1)
    return Scenario(name, duration, friction=(setting,))


def _with_setting(scenario: Scenario, name: str, **changes: Any) -> Scenario:
    """The same scenario with other fields of every friction setting."""
    return replace(scenario, name=name, friction=tuple(replace(setting, **changes) for setting in scenario.friction))


def _friction_stribeck(duration: float) -> Scenario:
    """Dry friction that falls from 1.5 to 0.5 N m until 1 rad/s: eq. 56 with a slow Stribeck effect."""
    law = JointFriction("makkar", (1.0, 100.0, 1.0, 0.5, 100.0, 0.2))
    return Scenario("friction_stribeck", duration, friction=(FrictionSetting(leg=(law,) * len(TABLE_I)),))


def _no_friction(duration: float) -> Scenario:
    law = JointFriction("coulomb_viscous", (0.0, 0.0))
    return Scenario("no_friction", duration, friction=(FrictionSetting(leg=(law,) * len(TABLE_I)),))


_MAKERS: dict[str, Callable[[float], Scenario]] = {
    "walk": lambda duration: Scenario("walk", duration),
    "walk_and_stop": lambda duration: Scenario("walk_and_stop", duration, Gait(stop=_PAPER_LAST_STEP)),
    "in_place": lambda duration: Scenario("in_place", duration, Gait(step_length=0.0)),
    "turn": lambda duration: Scenario("turn", duration, Gait(step_length=0.05, step_turn=0.12)),
    "sideways": lambda duration: Scenario("sideways", duration, Gait(step_length=0.0, step_side=0.05)),
    "squat": lambda duration: Scenario("squat", duration, Gait(walks=False, squat_depth=0.18)),
    "stand": lambda duration: Scenario("stand", duration, Gait(walks=False)),
    "slope": lambda duration: Scenario("slope", duration, ground=Ground(slope=_SLOPE)),
    "uneven": lambda duration: Scenario("uneven", duration, ground=_UNEVEN),
    "push": lambda duration: Scenario("push", duration, pushes=_pushes(duration, "base", 4.3)),
    "push_knee": lambda duration: Scenario("push_knee", duration, pushes=_pushes(duration, "right_knee", 3.75)),
    "friction_change": _friction_change,
    "friction_load": _friction_load,
    "friction_load_stiction": _friction_load_stiction,
    "friction_lugre": lambda duration: _friction_lugre(2e-3, duration, "friction_lugre"),
    "friction_lugre_stiff": lambda duration: _friction_lugre(5e-4, duration, "friction_lugre_stiff"),
    "friction_ripple": lambda duration: _with_setting(Scenario("", duration), "friction_ripple", ripple=0.3),
    "friction_stiction": _friction_stiction,
    "friction_stribeck": _friction_stribeck,
    "friction_warming": lambda duration: _with_setting(Scenario("", duration), "friction_warming", warming=0.4),
    "no_friction": _no_friction,
}


def scenario_names() -> tuple[str, ...]:
    """Names of the scenarios."""
    return tuple(sorted(_MAKERS))


def make_scenario(name: str, duration: float = 20.0) -> Scenario:
    """Scenario by name.

    Raises
    ------
    SimulationError
        When there is no such scenario (the message lists the names) or the duration is not positive.
    """
    if name not in _MAKERS:
        raise SimulationError(f"unknown scenario {name!r}; the scenarios are {choices(_MAKERS)}")
    return _MAKERS[name](duration)


def with_friction(scenario: Scenario, law: str, parameters: tuple[float, ...]) -> Scenario:
    """The same scenario with one law, with the same parameters, in every leg joint."""
    return replace(scenario, friction=(FrictionSetting(leg=(JointFriction(law, parameters),) * len(TABLE_I)),))
