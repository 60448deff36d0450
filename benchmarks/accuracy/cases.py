"""What is asked: the named experiments of the accuracy page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from friction_estimator.errors import ConfigError, choices
from friction_estimator.simulation import Scenario, make_scenario, perturbed_urdf, scenario_names

MASS_STD = 0.10
"""Relative error of each link's mass in the case ``inertia_errors``."""
COM_STD = 0.005
"""Error of each link's centre of mass in the case ``inertia_errors``, per axis [m]."""
_CYCLE = 3.0  # two steps of the built-in gait [s]


@dataclass(frozen=True, slots=True)
class Case:
    """One experiment.

    Attributes
    ----------
    title : for the page
    scenario : for a duration [s]
    wrong_inertia : True when the estimator is given a URDF with other masses and centres of mass, another each seed
    """

    title: str
    scenario: Callable[[float], Scenario]
    wrong_inertia: bool = False

    def estimator_urdf(self, urdf_xml: str, seed: int) -> str:
        """URDF that the estimator is given; the simulator has the true one."""
        return perturbed_urdf(urdf_xml, MASS_STD, COM_STD, seed) if self.wrong_inertia else urdf_xml


def _named(name: str) -> Callable[[float], Scenario]:
    return lambda duration: make_scenario(name, duration)


def _pushed(name: str) -> Callable[[float], Scenario]:
    """The pushes one walking cycle later than in the scenario: the first comes when the law has settled."""

    def scenario(duration: float) -> Scenario:
        planned = make_scenario(name, duration)
        return replace(planned, pushes=tuple(replace(push, start=push.start + _CYCLE) for push in planned.pushes))

    return scenario


CASES: dict[str, Case] = {
    "walk": Case("Walk", _named("walk")),
    "inertia_errors": Case("Walk with wrong inertia: every mass 10 %, every centre of mass 5 mm", _named("walk"), True),
    "friction_change": Case(
        "Walk, Coulomb and Stribeck torque double at 10 s (half time of runs below 20 s)", _named("friction_change")
    ),
    "friction_load": Case("Walk with load-dependent friction, Lim et al. 2024, eq. 23", _named("friction_load")),
    "friction_stiction": Case("Walk with true stiction, solved as a constraint", _named("friction_stiction")),
    "squat": Case("Squat in double support", _named("squat")),
    "uneven": Case("Walk on uneven ground", _named("uneven")),
    "slope": Case("Walk on a slope", _named("slope")),
    "push": Case("Walk, base pushed by 150 N for 80 ms", _pushed("push")),
    "push_knee": Case("Walk, swinging knee pushed by 150 N for 80 ms", _pushed("push_knee")),
}
"""The cases of the page."""


def case_names() -> tuple[str, ...]:
    """Names of the cases: those of the page, and every scenario of the simulation."""
    return tuple(dict.fromkeys((*CASES, *scenario_names())))


def find_case(name: str) -> Case:
    """Case by name; a scenario that is no case of the page is one without more ado.

    Raises
    ------
    ConfigError
        When there is no such case; the message lists the names.
    """
    if name not in case_names():
        raise ConfigError(f"unknown case {name!r}; the cases are {choices(case_names())}")
    return CASES.get(name) or Case(f"scenario {name}", _named(name))
