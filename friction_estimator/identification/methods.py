"""The identification methods by name: which recordings and robots each accepts, its options, and how it runs.

A new method is one module with ``accepts``, an options class and ``run``, and one entry in ``METHODS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypedDict

from friction_estimator.errors import ConfigError, InputError, choices, lookup
from friction_estimator.identification.curves import friction_curve, motor
from friction_estimator.identification.inverse_dynamics import method as inverse_dynamics
from friction_estimator.identification.joint_log import JointLog, RobotDescription
from friction_estimator.identification.result import Identification
from friction_estimator.types import Progress

Accepts = Callable[[Sequence[JointLog], RobotDescription | None], tuple[bool, str]]
"""Logs and robot to whether a method can be used with them, and the reason in a sentence."""

IdentifyFunction = Callable[
    [Sequence[JointLog], RobotDescription | None, Any, Progress | None, Callable[[str], None] | None], Identification
]
"""Logs, robot, options, function for finished and all steps, and function for warnings about the data to the result."""


@dataclass(frozen=True, slots=True)
class IdentificationMethod:
    """One identification method, as :data:`METHODS` lists it."""

    name: str  # the key in `METHODS`
    options: type  # class of its options, a frozen dataclass whose defaults are those of the method
    accepts: Accepts  # whether it can be used, and why
    run: IdentifyFunction  # logs, robot, options, progress and warnings to the result
    # places of options inside options by the keyword of `identify`; every other field of the options has its own
    # name as keyword
    keywords: Mapping[str, str]

    @property
    def places(self) -> dict[str, str]:
        """Place in the options by keyword; a dot leads into options inside options."""
        inside = {path.partition(".")[0] for path in self.keywords.values()}
        plain = (field.name for field in fields(self.options) if field.name not in inside)
        return {**{name: name for name in plain}, **self.keywords}


METHODS: dict[str, IdentificationMethod] = {
    method.name: method
    for method in (
        IdentificationMethod(
            friction_curve.MOTOR_METHOD,
            motor.MotorOptions,
            motor.accepts,
            motor.run,
            {"robust": "fit.robust", "cutoff": "cutoff_hz"},
        ),
        IdentificationMethod(
            friction_curve.CURVE_METHOD,
            friction_curve.FrictionCurveOptions,
            friction_curve.accepts,
            friction_curve.run,
            {"robust": "fit.robust", "cutoff": "cutoff_hz"},
        ),
        IdentificationMethod(
            inverse_dynamics.INVERSE_DYNAMICS_METHOD,
            inverse_dynamics.InverseDynamicsOptions,
            inverse_dynamics.accepts,
            inverse_dynamics.run,
            {
                "robust": "solver.robust",
                "cutoff": "cutoff_hz",
                "known_inertia": "body.known_inertia",
                "payload_scale": "body.payload_scale",
                "parallel_cutoff": "parallel_hz",
            },
        ),
    )
}
"""All methods. The first one that accepts the logs and the robot is taken when the user names none."""


class IdentifyOptions(TypedDict, total=False):
    """Further keywords of :func:`~friction_estimator.identify`; one that is left out is chosen, or off.

    Attributes
    ----------
    cutoff : of the zero-phase filter [Hz]; else chosen
    dead_zone : slower samples are left out [rad/s]
    delay : by which torques, or measured friction, are late [s]; else chosen
    folds : of the cross-validation, 5
    offset : a constant torque that the law lacks is identified; else chosen
    robust : outliers count less, which is usual
    stribeck_velocity : `inverse_dynamics` with the law ``load_velocity``, `motor`: given [rad/s]; None: searched
    coupled_friction : `inverse_dynamics`: friction of motors behind a coupling, ``motors`` or ``joints_and_motors``
    drive_gains : `inverse_dynamics`: the torque per unit of effort is estimated, of every joint
    harmonics : `inverse_dynamics`: dry friction changes with these multiples of the position
    hold : `inverse_dynamics`: drives that get positions hold a command until the next one comes
    known_inertia : `inverse_dynamics`: inertia of the links by the URDF, not estimated
    late : `inverse_dynamics`: part of the torque of drives that get positions which is late: ``torque`` or ``command``
    parallel_cutoff : `inverse_dynamics`: of the filter of both sides of the equation [Hz]; else chosen
    payload_scale : `inverse_dynamics`: the mass of the payloads is estimated
    presliding : `inverse_dynamics`: dry friction builds up over a distance after a reversal
    temperature : `inverse_dynamics`: friction changes with the column ``temperature``
    urdf_sigma : `inverse_dynamics`: relative standard deviation of the URDF's inertial parameters; else chosen
    velocity : `inverse_dynamics`: ``measured`` or ``differentiated``; else chosen
    max_sigma : `friction_curve`: friction less certain than that is left out [N m]
    drive : `motor`: ``pwm`` or ``current``, where both were recorded
    free : `motor`: names of logs, or paths of their files, without drive torque
    identify_inertia : `motor`: False: motors whose inertia is not given have none
    inertia : `motor`: reflected inertia by motor [kg m^2]
    known_gain : `motor`: torque per unit of the drive by motor
    zero_slope : `motor`: ``none``, ``positive``, ``negative`` or ``both``: friction leaves standstill with zero slope
    """

    cutoff: float | None
    dead_zone: float | None
    delay: float | None
    folds: int
    offset: bool | None
    robust: bool
    stribeck_velocity: float | None
    coupled_friction: str
    drive_gains: bool
    harmonics: tuple[float, ...] | None
    hold: bool | None
    known_inertia: bool
    late: str | None
    parallel_cutoff: float | None
    payload_scale: bool
    presliding: bool
    temperature: bool
    urdf_sigma: float | None
    velocity: str | None
    max_sigma: float
    drive: str | None
    free: Sequence[str]
    identify_inertia: bool
    inertia: Mapping[str, float]
    known_gain: Mapping[str, float]
    zero_slope: str


def choose_method(logs: Sequence[JointLog], robot: RobotDescription | None) -> tuple[str, str]:
    """Name of the first method that accepts the logs and the robot, and the reason in a sentence.

    Raises
    ------
    InputError
        When no method accepts them; the message has what each one needs.
    """
    answers = {name: method.accepts(logs, robot) for name, method in METHODS.items()}
    for name, (usable, reason) in answers.items():
        if usable:
            return name, f"method {name}: {reason}"
    needs = "; ".join(reason for _, reason in answers.values())
    raise InputError(f"{logs[0].name} with this robot allows no method: {needs}")


def find_method(name: str) -> IdentificationMethod:
    """The method with this name.

    Raises
    ------
    ConfigError
        When there is none; the message names those that there are.
    """
    return lookup(METHODS, name, "method")


def options_of(method: str, keywords: Mapping[str, Any]) -> Any:
    """Options of a method with the values of these keywords, and the defaults of the method for all others.

    Raises
    ------
    ConfigError
        When there is no such method, or the method has no such keyword; the message names those that there are.
    """
    found = find_method(method)
    places, options = found.places, found.options()
    for keyword, value in keywords.items():
        if keyword not in places:
            users = [name for name, other in METHODS.items() if keyword in other.places]
            has = f"it is for {' and '.join(users)}" if users else f"the method has {choices(places)}"
            raise ConfigError(f"the method {method} has no option {keyword!r}: {has}")
        options = _with(options, places[keyword].split("."), value)
    return options


def _with(options: Any, path: Sequence[str], value: Any) -> Any:
    """The same frozen options with another value at one place."""
    name, *rest = path
    return replace(options, **{name: _with(getattr(options, name), rest, value) if rest else value})
