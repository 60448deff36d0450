"""Named scenarios: gait, pushes, friction over time, and ground."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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


def _doubled(duration: float) -> tuple[FrictionSetting, ...]:
    """Coulomb and Stribeck torque double at half time, or at 10 s in longer runs."""
    leg = tuple(joint.scaled({"gamma_1": 2.0, "gamma_4": 2.0}) for joint in TABLE_I)
    return FrictionSetting(), FrictionSetting(min(10.0, 0.5 * duration), leg)


def _alike(law: str, *parameters: float, **fields: Any) -> tuple[FrictionSetting]:
    """One law with the same parameters in every leg joint."""
    return (FrictionSetting(leg=(JointFriction(law, parameters),) * len(TABLE_I), **fields),)


_LOAD = "stribeck_load", 5.0, 2.0, 1.51, 4.0, 0.002
"""Friction that grows with the motor torque: Lim et al. 2024, eq. 23 and Table 4, legs."""


def _lugre(presliding: float) -> tuple[FrictionSetting]:
    """LuGre friction: breakaway torques 1.3 times the Coulomb torques, Stribeck velocity 0.05 rad/s."""
    leg = tuple(JointFriction("stribeck_load", (dry, 1.3 * dry, 0.05, 0.9, 0.0)) for dry in _STICTION)
    return (FrictionSetting(leg=leg, presliding=presliding, bristle_damping=0.1),)


def _stiction() -> tuple[FrictionSetting]:
    """Dry friction that holds a resting joint, solved as a constraint, and viscous friction as in Table I."""
    leg = tuple(JointFriction("coulomb_viscous", (dry, 0.9)) for dry in _STICTION)
    return (FrictionSetting(leg=leg, sticks=True),)


_SCENARIOS: dict[str, Mapping[str, Any] | Callable[[float], Mapping[str, Any]]] = {
    "walk": {},
    "walk_and_stop": {"gait": Gait(stop=_PAPER_LAST_STEP)},
    "in_place": {"gait": Gait(step_length=0.0)},
    "turn": {"gait": Gait(step_length=0.05, step_turn=0.12)},
    "sideways": {"gait": Gait(step_length=0.0, step_side=0.05)},
    "squat": {"gait": Gait(walks=False, squat_depth=0.18)},
    "stand": {"gait": Gait(walks=False)},
    "slope": {"ground": Ground(slope=_SLOPE)},
    "uneven": {"ground": _UNEVEN},
    "push": lambda duration: {"pushes": _pushes(duration, "base", 4.3)},
    "push_knee": lambda duration: {"pushes": _pushes(duration, "right_knee", 3.75)},
    "friction_change": lambda duration: {"friction": _doubled(duration)},
    "friction_load": {"friction": _alike(*_LOAD)},
    "friction_load_stiction": {"friction": _alike(*_LOAD, sticks=True)},
    "friction_lugre": {"friction": _lugre(2e-3)},
    "friction_lugre_stiff": {"friction": _lugre(5e-4)},
    "friction_ripple": {"friction": (FrictionSetting(ripple=0.3),)},
    "friction_stiction": {"friction": _stiction()},
    "friction_stribeck": {"friction": _alike("makkar", 1.0, 100.0, 1.0, 0.5, 100.0, 0.2)},
    "friction_warming": {"friction": (FrictionSetting(warming=0.4),)},
    "no_friction": {"friction": _alike("coulomb_viscous", 0.0, 0.0)},
}
"""Fields of every scenario that are not those of a walk; a function of the duration where they depend on it.

``friction_load_stiction`` is set-valued at rest: a joint stays at rest below its dry friction. ``friction_stribeck`` is
dry friction that falls from 1.5 to 0.5 N m until 1 rad/s: eq. 56 with a slow Stribeck effect.
"""


def scenario_names() -> tuple[str, ...]:
    """Names of the scenarios."""
    return tuple(sorted(_SCENARIOS))


def make_scenario(name: str, duration: float = 20.0) -> Scenario:
    """Scenario by name.

    Raises
    ------
    SimulationError
        When there is no such scenario (the message lists the names) or the duration is not positive.
    """
    if name not in _SCENARIOS:
        raise SimulationError(f"unknown scenario {name!r}; the scenarios are {choices(_SCENARIOS)}")
    fields = _SCENARIOS[name]
    return Scenario(name, duration, **(fields(duration) if callable(fields) else fields))


def with_friction(scenario: Scenario, law: str, parameters: tuple[float, ...]) -> Scenario:
    """The same scenario with one law, with the same parameters, in every leg joint."""
    return replace(scenario, friction=_alike(law, *parameters))
