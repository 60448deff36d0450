"""Options of the method `motor`, and what they ask of one motor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from friction_estimator.config.coupling import Coupling
from friction_estimator.errors import ConfigError, choices
from friction_estimator.identification.motor.law import MotorLaw
from friction_estimator.identification.motor.problem import FrictionUnknowns
from friction_estimator.identification.motor.stick import StickOptions
from friction_estimator.identification.regression.least_squares import SolverOptions
from friction_estimator.identification.regression.validation import FOLDS
from friction_estimator.laws.linear import ASYMMETRIC_STRIBECK, STRIBECK_VELOCITY


@dataclass(frozen=True, slots=True)
class MotorOptions:
    """How to identify.

    Attributes
    ----------
    law : linear friction law of every motor that needs no load
    stribeck_velocity : of ``asymmetric_stribeck`` [rad/s], 1 deg/s as printed; None: searched, motor by motor
    zero_slope : ``none``, ``positive``, ``negative`` or ``both``: friction leaves standstill with zero slope there
    inertia : reflected inertia of the motors at the output of their gearboxes, by name, as far as known [kg m^2]
    identify_inertia : find the inertia of the others; False: they have none
    offset : a constant torque acts in the free logs too; None: where the law lets it be told from friction
    drive : ``pwm`` or ``current``; None: whichever was recorded
    known_gain : torque per unit of the drive by motor, for free logs in which it was not zero [N m per unit]
    stick : what counts as standing still
    solver : weights, robustness and bounds of both phases
    cutoff_hz : of the velocities; None: from each log, see `motor_inputs.quiet_motion`
    folds : of the validation
    coupling : of motors that move several joints together; None: every joint has a motor of its own
    """

    law: str = ASYMMETRIC_STRIBECK.name
    stribeck_velocity: float | None = STRIBECK_VELOCITY
    zero_slope: str = "none"
    inertia: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    identify_inertia: bool = True
    offset: bool | None = None
    drive: str | None = None
    known_gain: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    stick: StickOptions = field(default_factory=StickOptions)
    solver: SolverOptions = field(default_factory=SolverOptions)
    cutoff_hz: float | None = None
    folds: int = FOLDS
    coupling: Coupling | None = None


DEFAULTS = MotorOptions()


def motor_law(options: MotorOptions) -> MotorLaw:
    """The law of every motor, with the Stribeck velocity to take or to begin with.

    Raises
    ------
    ConfigError
        When it is not known, or Stribeck options are given for a law without them.
    """
    if options.stribeck_velocity is None and options.law != ASYMMETRIC_STRIBECK.name:
        raise ConfigError(f"a Stribeck velocity is searched for {ASYMMETRIC_STRIBECK.name!r}, not for {options.law!r}")
    velocity = STRIBECK_VELOCITY if options.stribeck_velocity is None else options.stribeck_velocity
    law = MotorLaw(options.law, velocity, options.zero_slope)
    if options.offset and not law.offset_shows:
        raise ConfigError(f"a constant torque cannot be told from the friction of {options.law!r}: leave offset out")
    return law


def unknowns_of(motor: str, law: MotorLaw, options: MotorOptions) -> FrictionUnknowns:
    """What is not known of one motor."""
    searched = options.identify_inertia and motor not in options.inertia
    return FrictionUnknowns(
        law,
        search=options.stribeck_velocity is None,
        inertia=None if searched else options.inertia.get(motor, 0.0),
        offset=law.offset_shows if options.offset is None else options.offset,
    )


def check_names(options: MotorOptions, coupling: Coupling) -> None:
    """Refuse options for motors that the coupling lacks, and inertias below zero.

    Raises
    ------
    ConfigError
        Naming the motors.
    """
    negative = [motor for motor, value in options.inertia.items() if value < 0.0]
    if negative:
        raise ConfigError(f"the inertia of {choices(negative)} is negative: every motor has a positive inertia")
    for name, given in (("inertia", options.inertia), ("known_gain", options.known_gain)):
        unknown = set(given) - set(coupling.motor_names)
        if unknown:
            raise ConfigError(f"{name} names {choices(unknown)}; the motors are {choices(coupling.motor_names)}")
