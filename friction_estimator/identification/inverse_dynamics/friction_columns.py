"""Columns of the observation matrix for friction: any linear law, at joints and at motors that move several joints."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from friction_estimator.config.robot import Coupling
from friction_estimator.identification.joint_log import TEMPERATURE
from friction_estimator.laws import LinearFrictionLaw, Parameter, Role, Shape, Side, Term, make_linear_law
from friction_estimator.laws.law import load_slope
from friction_estimator.laws.linear import OFFSET, PRESLIDING, PRESLIDING_TERMS, VISCOUS
from friction_estimator.laws.published import LOAD_VELOCITY, SIDES_OF_LOAD
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
    """Where friction acts: a joint, or a motor that moves several joints.

    Attributes
    ----------
    name : of the joint or the motor
    law : of its friction
    direction : (n) velocity of the site is ``direction @ dq``; its friction f acts on the joints as ``direction * f``
    stribeck : Stribeck velocity of the law ``load_velocity`` and its standard deviation [rad/s]; None: another law
    """

    name: str
    law: LinearFrictionLaw
    direction: FloatArray
    stribeck: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class FrictionColumn:
    """What one column means.

    Attributes
    ----------
    site : name of the joint or the motor
    parameter : that multiplies the column
    in_law : False for an offset that the law lacks, temperature, position and presliding
    wave : True for a change with the position
    """

    site: str
    parameter: Parameter
    in_law: bool
    wave: bool = False

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
    """Friction torque of all joints, linear in its parameters.

    Attributes
    ----------
    joint_names : (n)
    sites : one a joint, then one a motor that moves several joints
    temperature : (n) about which dry and viscous friction of every joint also change, linearly; None: they do not
    harmonics : dry friction of every joint also changes with cosine and sine of these multiples of its position
    waves : (n, 2 h) means of cosines and sines, about which it changes: dry friction is that of the whole motion;
        None: zero
    presliding : after a reversal, dry friction of every joint builds up over a distance, as in the live filter
    """

    joint_names: tuple[str, ...]
    sites: tuple[FrictionSite, ...]
    temperature: FloatArray | None = None
    harmonics: tuple[float, ...] = ()
    waves: FloatArray | None = None
    presliding: bool = False

    @property
    def law_names(self) -> tuple[str, ...]:
        """Law (n) of every joint, as the registry has it."""
        own = self.sites[: len(self.joint_names)]
        return tuple(site.law.name if site.stribeck is None else LOAD_VELOCITY.name for site in own)

    @property
    def added(self) -> tuple[FrictionSite, ...]:
        """Motors that add friction to that of several joints."""
        return self.sites[len(self.joint_names) :]

    @property
    def described(self) -> tuple[FrictionColumn, ...]:
        """(f) what the columns mean, in their order."""
        found = [FrictionColumn(site.name, parameter, True) for site in self.sites for parameter in site.law.parameters]
        waves = [
            Parameter(f"coulomb_{wave}_{k:g}", Role.COULOMB, bounds=_EITHER_SIGN)
            for k in self.harmonics
            for wave in ("cos", "sin")
        ]
        for joint in self.joint_names:
            extra = (_OFFSET,) * self._needs_offset(joint) + _PER_KELVIN * (self.temperature is not None)
            extra += (*waves, *_PRESLIDING * self.presliding)
            found += [FrictionColumn(joint, parameter, False, parameter in waves) for parameter in extra]
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
        columns, first = np.zeros((*velocity.shape, len(self.described))), 0
        strain = dahl_strain(position) if self.presliding else np.zeros((*position.shape, 0))
        for site in self.sites:
            share = site.direction / (site.direction @ site.direction)
            phi = site.law.regressor(velocity @ site.direction, load @ share)
            for joint in np.flatnonzero(site.direction).tolist():
                columns[:, joint, first : first + phi.shape[1]] = site.direction[joint] * phi
            first += phi.shape[1]
        for joint, name in enumerate(self.joint_names):
            extra = self._extra(joint, name, position[:, joint], velocity[:, joint], inputs, strain[:, joint])
            columns[:, joint, first : first + extra.shape[1]] = extra
            first += extra.shape[1]
        return columns

    def of_load(self, velocity: FloatArray, load: FloatArray, values: FloatArray, change: FloatArray) -> FloatArray:
        """How friction changes, (N, n, c), when the load does.

        Parameters
        ----------
        velocity, load : (N, n) [rad/s], [N m]
        values : (f,) of the columns
        change : (N, n, c) of the load
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
        as single tangents of a law with many.

        Parameters
        ----------
        torque : (n,) RMS of the motor torques [N m]
        speed : (k,) of the sites in earnest [rad/s]
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
        return np.array(prior + [sizes[one.site] if one.parameter in _PRESLIDING else np.inf for one in beyond])

    @property
    def directions(self) -> FloatArray:
        """(k, n) of the sites."""
        return np.array([site.direction for site in self.sites])

    def speeds(self, velocity: FloatArray) -> FloatArray:
        """Velocities (N, k) of the sites."""
        return np.column_stack([velocity @ site.direction for site in self.sites])

    def _needs_offset(self, joint: str) -> bool:
        return not any(site.law.has_offset for site in self.sites if site.name == joint)

    def _extra(
        self,
        joint: int,
        name: str,
        position: FloatArray,
        velocity: FloatArray,
        inputs: Mapping[str, FloatArray],
        strain: FloatArray,
    ) -> FloatArray:
        direction = np.sign(velocity)
        columns = [np.ones_like(velocity)] * self._needs_offset(name)
        if self.temperature is not None:
            warmth = inputs[TEMPERATURE][:, joint] - self.temperature[joint]
            columns += [warmth * direction, warmth * velocity]
        if self.harmonics:
            waves = waves_of(position, self.harmonics)
            columns += list((direction[:, None] * (waves if self.waves is None else waves - self.waves[joint])).T)
        columns += list(strain.T - direction)
        return np.column_stack(columns) if columns else np.zeros((velocity.size, 0))


def dahl_strain(position: FloatArray) -> FloatArray:
    """Strains z (N, n, s) of ``dz = (dq - |dq| z) / s`` (Dahl 1968) along a path (N, n), from rest: zero.

    Distances s are those of the live filter. Between two samples the motion has one direction; there this is exact.
    """
    strain = np.zeros((*position.shape, len(PRESLIDING)))
    moved = np.diff(position, axis=0)[..., None]
    kept, towards = np.exp(-np.abs(moved) / np.array(PRESLIDING)), np.sign(moved)
    for k in range(len(moved)):
        strain[k + 1] = towards[k] + (strain[k] - towards[k]) * kept[k]
    return strain


def waves_of(position: FloatArray, harmonics: Sequence[float]) -> FloatArray:
    """Cosine and sine (..., 2 h) of multiples of positions (...)."""
    angles = position[..., None, None] * np.array(harmonics)[:, None] - np.array([0.0, 0.5 * np.pi])
    return np.asarray(np.cos(angles).reshape(*position.shape, -1))


def friction_sites(
    joint_names: Sequence[str], law_names: Sequence[str], coupling: Coupling | None = None
) -> tuple[FrictionSite, ...]:
    """A site for every joint, and one for every motor that turns with more than one of them (a coupled wrist).

    A motor that turns with one joint only needs none: its friction cannot be separated from the joint's.

    Parameters
    ----------
    joint_names, law_names : (n)
    coupling : of some or all of the joints; None: every joint has its motor
    """
    sites = [
        FrictionSite(name, make_linear_law(law), row)
        for name, law, row in zip(joint_names, law_names, np.eye(len(joint_names)), strict=True)
    ]
    if coupling is not None:
        places = [list(joint_names).index(name) for name in coupling.joint_names]
        inverse = np.linalg.inv(coupling.matrix)
        inverse[np.abs(inverse) < 1e-12 * np.abs(inverse).max()] = 0.0
        for motor, row in zip(coupling.motor_names, inverse, strict=True):
            if np.count_nonzero(row) > 1:
                direction = np.zeros(len(joint_names))
                direction[places] = row
                law = law_names[places[int(np.argmax(np.abs(row)))]]
                sites.append(FrictionSite(motor, make_linear_law(law), direction))
    return tuple(sites)


def load_velocity_sites(
    joint_names: Sequence[str], stribeck: Sequence[tuple[float, float]]
) -> tuple[FrictionSite, ...]:
    """Sites with the law ``load_velocity`` in the form of Hamon et al. 2010, eqs. 25 and 30, for every joint.

    Parameters
    ----------
    joint_names : (n)
    stribeck : (n) q_s of every joint and its standard deviation [rad/s]
    """
    return tuple(
        FrictionSite(name, _load_velocity(speed), row, (speed, sigma))
        for name, (speed, sigma), row in zip(joint_names, stribeck, np.eye(len(joint_names)), strict=True)
    )


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
    viscous, offset = (replace(one, prior_std=math.inf) for one in (VISCOUS, OFFSET))
    return LinearFrictionLaw("load_velocity of eq. 25", (*dry, viscous, offset))
