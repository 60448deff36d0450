"""Named scenarios: gait, pushes, friction over time, and ground."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from friction_estimator.errors import SimulationError, choices, lookup
from friction_estimator.simulation.biped import KNEE
from friction_estimator.simulation.footsteps import LEFT, Gait, Ground, plan_footsteps
from friction_estimator.simulation.friction import TABLE_I, FrictionSetting, ParametrisedLaw
from friction_estimator.types import FloatArray

LEG_TARGETS = ("knee", "ankle", "foot")
"""Parts of a leg that a push acts on: knee joint, ankle pitch joint, origin of the sole frame."""
_PUSH_TARGETS = ("base", *(f"{side}_{part}" for side in ("left", "right") for part in LEG_TARGETS))
_GAIT_CYCLE = 3.0  # two steps of the default gait [s]
_MAX_DURATION = 36_000.0  # ten hours: the plan is kept in memory [s]
_PAPER_LAST_STEP = 9.6  # the last swing then ends at 10.1 s, as in section 7.1 [s]
_PUSH_FORCES = ((150.0, 0.0, 0.0), (-150.0, 0.0, 0.0), (0.0, 150.0, 0.0), (0.0, -150.0, 0.0))
"""Forward, backward, to the left and to the right [N]."""
_PUSH_DURATION = 0.08  # [s]
_COLLISION_FORCE = (100.0, 200.0)  # [N]
_COLLISION_LENGTH = (0.06, 0.1)  # [s]
_COLLISION_START = (0.25, 0.6)  # in parts of the swing
_STICTION = (1.5, 1.2, 1.0, 0.8, 0.6, 0.5)  # hip yaw to ankle roll [N m]
_SLOPE = math.radians(4.0)
_UNEVEN = Ground(
    height=0.01, tilt=math.radians(3.0), unseen_height=0.003, unseen_tilt=math.radians(1.0), seed=1
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Push:
    """An external force on a part of the robot for a short time."""

    start: float  # [s]
    duration: float  # [s]
    force: tuple[float, float, float]  # largest force, in world axes [N]
    # `base` (at the base origin), or a part of LEG_TARGETS of a leg, such as `left_knee`; the sensor of a foot
    # measures a push on that foot
    target: str = "base"
    impact: bool = False  # True: half a sine over time, the force of a collision; False: constant

    def __post_init__(self) -> None:
        if self.target not in _PUSH_TARGETS:
            raise SimulationError(f"unknown push target {self.target!r}; the targets are {choices(_PUSH_TARGETS)}")

    def force_at(self, time: float) -> FloatArray:
        """Force (3,) at a time between start and end of the push [N]."""
        part = math.sin(math.pi * (time - self.start) / self.duration) if self.impact else 1.0
        return part * np.array(self.force)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One simulated experiment: gait, friction, pushes and ground."""

    name: str  # of the scenario
    duration: float  # simulated time [s]
    gait: Gait = Gait()  # motion of the legs
    friction: tuple[FrictionSetting, ...] = (FrictionSetting(),)  # settings, each from its start on
    pushes: tuple[Push, ...] = ()  # external forces, not overlapping on the same target
    ground: Ground = Ground()  # under the feet

    def __post_init__(self) -> None:
        if not 0.0 < self.duration <= _MAX_DURATION:
            raise SimulationError(f"a scenario lasts more than 0 and up to {_MAX_DURATION:g} s, got {self.duration} s")


def _pushes(duration: float, target: str, first: float) -> tuple[Push, ...]:
    """80 ms pushes, two walking cycles apart, in all four directions in turn."""
    count = int(max(0.0, duration - first) / (2.0 * _GAIT_CYCLE)) + 1
    forces = [_PUSH_FORCES[k % len(_PUSH_FORCES)] for k in range(count)]
    return tuple(Push(first + 2.0 * _GAIT_CYCLE * k, _PUSH_DURATION, force, target) for k, force in enumerate(forces))


def collisions(
    gait: Gait, duration: float, seed: int, parts: tuple[str, ...] = LEG_TARGETS, pause: float = 3.0
) -> tuple[Push, ...]:
    """Collisions of swinging legs: all parts in turn from the front, then all of them from the outer side, and so on.

    Size and length are those of Lim et al. 2024, section 5.3: 100 to 200 N, 60 to 100 ms.

    Parameters
    ----------
    gait : that the robot walks with
    duration : of the walk [s]
    seed : of force, length and moment of each collision
    parts : of the legs, in :data:`LEG_TARGETS`
    pause : least time from the start to the first collision, and between two collisions [s]
    """
    rng, pushes, free = np.random.default_rng(seed), list[Push](), pause
    for step in plan_footsteps(gait, 0.0, duration - gait.single_support):
        if step.start < free:
            continue
        part, side = parts[len(pushes) % len(parts)], len(pushes) // len(parts) % 2
        name, outward = ("left", 1.0) if step.foot == LEFT else ("right", -1.0)
        heading = step.pose.yaw - outward * side * 0.5 * math.pi
        force = rng.uniform(*_COLLISION_FORCE) * (-1.0 if side == 0 else 1.0)
        start = step.start + step.duration * rng.uniform(*_COLLISION_START)
        along = (force * math.cos(heading), force * math.sin(heading), 0.0)
        pushes.append(Push(start, rng.uniform(*_COLLISION_LENGTH), along, f"{name}_{part}", impact=True))
        free = start + pause
    return tuple(pushes)


def _doubled(duration: float) -> tuple[FrictionSetting, ...]:
    """Coulomb and Stribeck torque double at half time, or at 10 s in longer runs."""
    leg = tuple(joint.scaled({"gamma_1": 2.0, "gamma_4": 2.0}) for joint in TABLE_I)
    return FrictionSetting(), FrictionSetting(min(10.0, 0.5 * duration), leg)


def _alike(law: str, *parameters: float, **fields: Any) -> tuple[FrictionSetting]:
    """One law with the same parameters in every leg joint."""
    return (FrictionSetting(leg=(ParametrisedLaw(law, parameters),) * len(TABLE_I), **fields),)


_LOAD = "stribeck_load", 5.0, 2.0, 1.51, 4.0, 0.002
"""Friction that grows with the motor torque: Lim et al. 2024, eq. 23 and Table 4, legs."""


def _lugre(presliding: float) -> tuple[FrictionSetting]:
    """LuGre friction: breakaway torques 1.3 times the Coulomb torques, Stribeck velocity 0.05 rad/s."""
    leg = tuple(ParametrisedLaw("stribeck_load", (dry, 1.3 * dry, 0.05, 0.9, 0.0)) for dry in _STICTION)
    return (FrictionSetting(leg=leg, presliding=presliding, bristle_damping=0.1),)


def _stiction() -> tuple[FrictionSetting]:
    """Dry friction that holds a resting joint, solved as a constraint, and viscous friction as in Table I."""
    leg = tuple(ParametrisedLaw("coulomb_viscous", (dry, 0.9)) for dry in _STICTION)
    return (FrictionSetting(leg=leg, sticks=True),)


_SCENARIOS: dict[str, Mapping[str, Any] | Callable[[float], Mapping[str, Any]]] = {
    "walk": {},
    "whole_body": {
        "gait": Gait(random_posture=0),
        "friction": (FrictionSetting(others=TABLE_I[KNEE]),),
    },
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
    "collisions": lambda duration: {"pushes": collisions(Gait(), duration, 0, ("knee", "ankle"))},
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

Joints outside the legs move at random in ``whole_body``, with the friction of the knees. The swinging legs of
``collisions`` are hit above the foot sensors. ``friction_load_stiction`` is set-valued at rest: a
joint stays at rest below its dry friction. ``friction_stribeck`` is dry friction that falls from 1.5 to 0.5 N m until
1 rad/s: eq. 56 with a slow Stribeck effect.
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
    fields = lookup(_SCENARIOS, name, "scenario", SimulationError)
    return Scenario(name, duration, **(fields(duration) if callable(fields) else fields))
