"""Columns of the observation matrix for friction: any linear law, at joints and at motors that move several joints."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from friction_estimator.config.robot import Coupling
from friction_estimator.identification.joint_log import TEMPERATURE
from friction_estimator.laws import LinearFrictionLaw, Parameter, Role, Shape, Side, Term, make_linear_law
from friction_estimator.laws.joint_laws import dahl_strain
from friction_estimator.laws.law import load_slope
from friction_estimator.laws.linear import OFFSET_TERM, PRESLIDING, PRESLIDING_TERMS, VISCOUS_TERM
from friction_estimator.laws.published import SIDES_OF_LOAD
from friction_estimator.types import FloatArray

_EITHER_SIGN = (-math.inf, math.inf)
_OFFSET = Parameter("offset", Role.OFFSET, bounds=_EITHER_SIGN)
_PER_KELVIN = (
    Parameter("coulomb_per_kelvin", Role.COULOMB, "N m/K", _EITHER_SIGN),
    Parameter("viscous_per_kelvin", Role.VISCOUS, "N m s/(rad K)", _EITHER_SIGN),
)
_PRESLIDING = tuple(Parameter(term.name, Role.COULOMB, bounds=(0.0, math.inf)) for term in PRESLIDING_TERMS)
_GAIN_STD = 0.3
"""Standard deviation about zero of alpha in any gearbox: it decides what the data cannot."""


@dataclass(frozen=True, slots=True)
class FrictionSite:
    """Where friction acts: a joint, or a motor that moves several joints."""

    name: str  # of the joint or the motor
    law: LinearFrictionLaw  # of its friction
    # (n) velocity of the site is `direction @ dq`; its friction f acts on the joints as `direction * f`
    direction: FloatArray


@dataclass(frozen=True, slots=True)
class FrictionColumn:
    """Where and by which parameter one column of the friction acts."""

    site: str  # name of the joint or the motor
    parameter: Parameter  # that multiplies the column
    in_law: bool  # False for an offset that the law lacks, temperature, position and presliding
    wave: bool = False  # True for a change with the position

    @property
    def name(self) -> str:
        """E.g. ``knee/viscous``."""
        return f"{self.site}/{self.parameter.name}"

    @property
    def optional(self) -> bool:
        """Whether the parameter is set to zero when the data do not show it."""
        return self.parameter.optional or not self.in_law


@dataclass(frozen=True, slots=True)
class FrictionColumns:
    """Friction torque of all joints, linear in its parameters."""

    joint_names: tuple[str, ...]  # (n) joints, or motors in their place
    # (n) linear law of every joint, or `load_velocity` of all, in the form of Hamon et al. 2010, eq. 25
    law_names: tuple[str, ...]
    # coupling whose motors add to the friction of several joints (a coupled wrist); None: there are none
    adding: Coupling | None = None
    # (n) Stribeck velocities of `load_velocity` and their standard deviations [rad/s]; empty: other laws
    stribeck: tuple[tuple[float, float], ...] = ()
    # (n) about which dry and viscous friction of every joint also change, linearly; None: they do not
    temperature: FloatArray | None = None
    # dry friction of every joint also changes with cosine and sine of these multiples of its position
    harmonics: tuple[float, ...] = ()
    # (n, 2 h) means of cosines and sines, about which it changes: dry friction is that of the whole motion; None:
    # zero
    waves: FloatArray | None = None
    # after a reversal, dry friction of every joint builds up over a distance, as in the live filter
    presliding: bool = False

    @property
    def sites(self) -> tuple[FrictionSite, ...]:
        """Sites of friction: one per joint, then one for each motor that turns with several joints.

        A motor that turns with one joint only needs none: its friction cannot be separated from the joint's.
        """
        if self.stribeck:
            laws = [_load_velocity(speed) for speed, _ in self.stribeck]
        else:
            laws = [make_linear_law(name) for name in self.law_names]
        own = zip(self.joint_names, laws, np.eye(len(laws)), strict=True)
        sites = [FrictionSite(name, law, row) for name, law, row in own]
        if self.adding is not None:
            places = [self.joint_names.index(name) for name in self.adding.joint_names]
            inverse = np.linalg.inv(self.adding.matrix)
            inverse[np.abs(inverse) < 1e-12 * np.abs(inverse).max()] = 0.0
            for motor, row in zip(self.adding.motor_names, inverse, strict=True):
                if np.count_nonzero(row) > 1:
                    direction = np.zeros(len(laws))
                    direction[places] = row
                    sites.append(FrictionSite(motor, laws[places[int(np.argmax(np.abs(row)))]], direction))
        return tuple(sites)

    @property
    def added(self) -> tuple[FrictionSite, ...]:
        """Motors that add friction to that of several joints."""
        return self.sites[len(self.joint_names) :]

    @property
    def described(self) -> tuple[FrictionColumn, ...]:
        """Meaning of every column, (f)."""
        found = [FrictionColumn(site.name, parameter, True) for site in self.sites for parameter in site.law.parameters]
        waves = [
            Parameter(f"coulomb_{wave}_{k:g}", Role.COULOMB, bounds=_EITHER_SIGN)
            for k in self.harmonics
            for wave in ("cos", "sin")
        ]
        for site in self.sites[: len(self.joint_names)]:
            extra = (_OFFSET,) * (not site.law.has_offset) + _PER_KELVIN * (self.temperature is not None)
            extra += (*waves, *_PRESLIDING * self.presliding)
            found += [FrictionColumn(site.name, parameter, False, parameter in waves) for parameter in extra]
        return tuple(found)

    def columns(
        self, position: FloatArray, velocity: FloatArray, load: FloatArray, inputs: Mapping[str, FloatArray]
    ) -> FloatArray:
        """The columns at every sample, (N, n, f).

        Parameters
        ----------
        position, velocity : (N, n) [rad, rad/s]
        load : (N, n) torque behind friction, tau_out, for laws that depend on it [N m]
        inputs : ``temperature`` (N, n) [K or degrees Celsius], where friction depends on it
        """
        columns, sites, first = np.zeros((*velocity.shape, len(self.described))), self.sites, 0
        for site in sites:
            share = site.direction / (site.direction @ site.direction)
            phi = site.law.regressor(velocity @ site.direction, load @ share)
            for joint in np.flatnonzero(site.direction).tolist():
                columns[:, joint, first : first + phi.shape[1]] = site.direction[joint] * phi
            first += phi.shape[1]
        direction, beyond = np.sign(velocity), list[FloatArray]()
        if self.temperature is not None:
            warmth = inputs[TEMPERATURE] - self.temperature
            beyond += [warmth * direction, warmth * velocity]
        if self.harmonics:
            waves = waves_of(position, self.harmonics) - (0.0 if self.waves is None else self.waves)
            beyond += list(direction * np.moveaxis(waves, -1, 0))
        if self.presliding:
            moved = np.diff(position, axis=0, prepend=position[:1])
            beyond += [dahl_strain(np.zeros(moved.shape[1]), moved, distance) - direction for distance in PRESLIDING]
        for joint, site in enumerate(sites[: len(self.joint_names)]):
            for signal in [np.ones_like(velocity)] * (not site.law.has_offset) + beyond:
                columns[:, joint, first] = signal[:, joint]
                first += 1
        return columns

    def of_load(self, velocity: FloatArray, load: FloatArray, values: FloatArray, change: FloatArray) -> FloatArray:
        """Changes of the friction (N, n, c) [N m] by small changes of the load.

        Parameters
        ----------
        velocity, load : (N, n) [rad/s], [N m]
        values : (f,) of the columns
        change : (N, n, c) changes of the load, c of them [N m]
        """
        friction = np.zeros_like(change)
        first = 0
        for site in self.sites:
            last = first + len(site.law.parameter_names)
            if site.law.depends_on_load:
                share = site.direction / (site.direction @ site.direction)
                slope = load_slope(site.law, values[first:last], velocity @ site.direction, load @ share)
                friction += site.direction[:, None] * (slope[:, None] * (share @ change))[:, None, :]
            first = last
        return friction

    def prior_std(self, torque: FloatArray, speed: FloatArray) -> FloatArray:
        """Standard deviations (f,) about zero of what friction may be, given how the joints moved.

        Friction is no larger than the torque that moves the joint. This decides only what the motion leaves open, such
        as single tanh terms of a law with many.

        Parameters
        ----------
        torque : (n,) RMS of the motor torques [N m]
        speed : (k,) highest speed of each site, see :func:`.estimation.reference_speeds` [rad/s]
        """
        prior: list[float] = []
        for site, fast in zip(self.sites, speed, strict=True):
            size = float(torque[site.direction != 0.0].max())
            scales = {"N m": size, "N m s/rad": size / fast if fast > 0.0 else np.inf}
            for parameter in site.law.parameters:
                known = math.isfinite(parameter.prior_std)
                prior.append((scales.get(parameter.unit, parameter.prior_std) or np.inf) if known else np.inf)
        sizes = dict(zip(self.joint_names, torque.tolist(), strict=True))
        beyond = self.described[len(prior) :]
        sized = (_OFFSET, *_PRESLIDING)
        return np.array(prior + [sizes[one.site] or np.inf if one.parameter in sized else np.inf for one in beyond])

    @property
    def directions(self) -> FloatArray:
        """(k, n) matrix from joint velocities to velocities of the sites."""
        return np.array([site.direction for site in self.sites])

    def speeds(self, velocity: FloatArray) -> FloatArray:
        """Velocities (N, k) of the sites."""
        return np.column_stack([velocity @ site.direction for site in self.sites])


def waves_of(position: FloatArray, harmonics: Sequence[float]) -> FloatArray:
    """Cosine and sine (..., 2 h) of multiples of positions (...)."""
    angles = position[..., None, None] * np.array(harmonics)[:, None] - np.array([0.0, 0.5 * np.pi])
    return np.asarray(np.cos(angles).reshape(*position.shape, -1))


def _load_velocity(stribeck_velocity: float) -> LinearFrictionLaw:
    """beta, delta - beta, alpha and gamma - alpha of both quadrants, F_V and tau_off of eqs. 23-25."""

    def term(name: str, shape: Shape, power: int, owner: str, side: Side) -> Term:
        unit, prior = ("", _GAIN_STD) if power else ("N m", math.inf)
        plain = name == "beta"
        full = f"{name}_{owner}"
        return Term(full, shape, stribeck_velocity, power, side, unit, prior, nonnegative=plain, optional=not plain)

    rows = (
        ("beta", Shape.SIGN, 0),
        ("delta_beta", Shape.FADING, 0),
        ("alpha", Shape.SIGN, 1),
        ("gamma_alpha", Shape.FADING, 1),
    )
    dry = [term(*row, *side) for side in SIDES_OF_LOAD for row in rows]
    viscous, offset = (replace(one, prior_std=math.inf) for one in (VISCOUS_TERM, OFFSET_TERM))
    return LinearFrictionLaw("load_velocity of eq. 25", (*dry, viscous, offset))
