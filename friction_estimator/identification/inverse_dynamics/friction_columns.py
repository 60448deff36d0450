"""Columns of the observation matrix for friction: any linear law, and the law `load_velocity` split into two parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from friction_estimator.identification.recording.motion import TEMPERATURE
from friction_estimator.identification.rigid_body.rigid_body_columns import FrictionSite
from friction_estimator.laws.gradient import load_slope
from friction_estimator.types import BoolArray, FloatArray

OFFSET = "offset"


@dataclass(frozen=True, slots=True)
class ColumnNames:
    """What the columns mean.

    Attributes
    ----------
    names : (f) e.g. ``knee/viscous``
    units : (f)
    nonnegative : (f)
    prior_std : (f) of load terms as their law gives it, infinite elsewhere
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    nonnegative: BoolArray
    prior_std: FloatArray


@dataclass(frozen=True, slots=True)
class FrictionColumns:
    """Friction torque of all joints, linear in its parameters.

    Attributes
    ----------
    joint_names : (n)
    sites : one a joint, then one a motor that moves several joints
    temperature : (n) about which dry and viscous friction of every joint also change, linearly; None: they do not
    harmonics : dry friction of every joint also changes with cosine and sine of these multiples of its position
    """

    joint_names: tuple[str, ...]
    sites: tuple[FrictionSite, ...]
    temperature: FloatArray | None = None
    harmonics: tuple[float, ...] = ()

    @property
    def described(self) -> ColumnNames:
        """Names, units and bounds of the columns, in their order."""
        names: list[str] = []
        units: list[str] = []
        nonnegative: list[bool] = []
        prior: list[float] = []
        for site in self.sites:
            law = site.law
            names += [f"{site.name}/{parameter}" for parameter in law.parameter_names]
            units += law.units
            nonnegative += law.nonnegative
            prior += [
                std if parameter.startswith("load_") else np.inf
                for parameter, std in zip(law.parameter_names, law.prior_std, strict=True)
            ]
        for joint in self.joint_names:
            extra = [(OFFSET, "N m")] * self._needs_offset(joint)
            extra += [("coulomb_per_kelvin", "N m/K"), ("viscous_per_kelvin", "N m s/(rad K)")] * (
                self.temperature is not None
            )
            extra += [(f"coulomb_{wave}_{k:g}", "N m") for k in self.harmonics for wave in ("cos", "sin")]
            names += [f"{joint}/{name}" for name, _ in extra]
            units += [unit for _, unit in extra]
            nonnegative += [False] * len(extra)
            prior += [np.inf] * len(extra)
        return ColumnNames(tuple(names), tuple(units), np.array(nonnegative, dtype=bool), np.array(prior))

    def columns(
        self, position: FloatArray, velocity: FloatArray, load: FloatArray, inputs: Mapping[str, FloatArray]
    ) -> FloatArray:
        """The columns at every sample, (N, n, f).

        Parameters
        ----------
        position, velocity : (N, n) [rad, rad/s]
        load : (N, n) torque behind friction, tau_out, for laws that depend on it [N m]
        inputs : ``temperature`` (N, n) [K or degrees Celsius], when asked for
        """
        blocks = []
        for site in self.sites:
            speed = velocity @ site.direction
            own_load = load @ (site.direction / (site.direction @ site.direction))
            phi = site.law.regressor(speed, own_load)
            blocks.append(site.direction[:, None] * phi[:, None, :])
        for joint, name in enumerate(self.joint_names):
            extra = self._extra(joint, name, position[:, joint], velocity[:, joint], inputs)
            block = np.zeros((len(position), len(self.joint_names), extra.shape[1]))
            block[:, joint] = extra
            blocks.append(block)
        return np.concatenate(blocks, axis=2)

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
            if site.law.needs_load:
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
            for unit, std in zip(site.law.units, site.law.prior_std, strict=True):
                prior.append(scales.get(unit, std) or np.inf)
        return np.array(prior + [np.inf] * (len(self.described.names) - len(prior)))

    @property
    def in_law(self) -> BoolArray:
        """(f,) True for columns of laws, False for offset, temperature and position."""
        names = self.described.names
        count = sum(len(site.law.parameter_names) for site in self.sites)
        return np.arange(len(names)) < count

    @property
    def directions(self) -> FloatArray:
        """(k, n) of the sites."""
        return np.array([site.direction for site in self.sites])

    def speeds(self, velocity: FloatArray) -> FloatArray:
        """Velocities (N, k) of the sites."""
        return np.column_stack([velocity @ site.direction for site in self.sites])

    def _needs_offset(self, joint: str) -> bool:
        return not any(OFFSET in site.law.parameter_names for site in self.sites if site.name == joint)

    def _extra(
        self, joint: int, name: str, position: FloatArray, velocity: FloatArray, inputs: Mapping[str, FloatArray]
    ) -> FloatArray:
        direction = np.sign(velocity)
        columns = [np.ones_like(velocity)] * self._needs_offset(name)
        if self.temperature is not None:
            warmth = inputs[TEMPERATURE][:, joint] - self.temperature[joint]
            columns += [warmth * direction, warmth * velocity]
        for k in self.harmonics:
            columns += [direction * np.cos(k * position), direction * np.sin(k * position)]
        return np.column_stack(columns) if columns else np.zeros((velocity.size, 0))


LOAD_VELOCITY = "load_velocity"
"""Name of this model among the friction laws that inverse dynamics can identify."""

GAIN_NAMES = ("alpha_motor", "gamma_alpha_motor", "alpha_generator", "gamma_alpha_generator")
"""alpha and gamma - alpha of both quadrants (eqs. 23-25): without a unit."""
DIRECT_NAMES = ("beta_motor", "delta_beta_motor", "beta_generator", "delta_beta_generator", "viscous", "offset")
"""beta = c, delta - beta = d of both quadrants (eq. 25), F_V and tau_off."""
_DIRECT_UNITS = ("N m", "N m", "N m", "N m", "N m s/rad", "N m")
_NONNEGATIVE = (True, False, True, False, True, False)
_GAIN_STD = 0.3
"""What alpha may be in any gearbox, standard deviation about zero: decides what the data cannot."""


@dataclass(frozen=True, slots=True)
class LoadVelocityFriction:
    """``tau = tau_out + G(dq, P) tau_out + F(dq, P)`` (Hamon et al. 2010, eqs. 25 and 30) for every joint.

    Attributes
    ----------
    joint_names : (n)
    stribeck_velocity : q_s of every joint (n,) [rad/s]
    stribeck_sigma : (n,) its standard deviation where it was searched, zero where it was told [rad/s]; None: told
    velocity_dependent : with the exponential of eq. 29; without it, this is eq. 20
    """

    joint_names: tuple[str, ...]
    stribeck_velocity: FloatArray
    velocity_dependent: bool = True
    stribeck_sigma: FloatArray | None = None

    @property
    def described(self) -> ColumnNames:
        """The columns that do not multiply the load."""
        chosen = self._chosen(DIRECT_NAMES)
        count = len(self.joint_names)
        return ColumnNames(
            tuple(f"{joint}/{DIRECT_NAMES[k]}" for joint in self.joint_names for k in chosen),
            tuple(_DIRECT_UNITS[k] for k in chosen) * count,
            np.array([_NONNEGATIVE[k] for k in chosen] * count, dtype=bool),
            np.full(len(chosen) * count, np.inf),
        )

    @property
    def gains_described(self) -> ColumnNames:
        """The gains of the load."""
        names = tuple(f"{joint}/{GAIN_NAMES[k]}" for joint in self.joint_names for k in self._chosen(GAIN_NAMES))
        return ColumnNames(names, ("",) * len(names), np.zeros(len(names), dtype=bool), np.full(len(names), _GAIN_STD))

    def columns(
        self, position: FloatArray, velocity: FloatArray, load: FloatArray, inputs: Mapping[str, FloatArray]
    ) -> FloatArray:
        """Columns of F at every sample, (N, n, f); arguments as of `FrictionColumns.columns`."""
        direction = np.sign(velocity)
        driving, fading = self._quadrant(velocity, load), self._fading(velocity)
        ones = np.ones_like(velocity)
        everything = (
            driving * direction,
            driving * fading * direction,
            (1.0 - driving) * direction,
            (1.0 - driving) * fading * direction,
            velocity,
            ones,
        )
        return _by_joint(np.stack([everything[k] for k in self._chosen(DIRECT_NAMES)], axis=2))

    def gains(self, velocity: FloatArray, load: FloatArray) -> FloatArray:
        """Columns of G at every sample, (N, n, g): ``[P+, P+ E, -P-, -P- E]`` of each joint, eqs. 27-29."""
        driving, fading = self._quadrant(velocity, load), self._fading(velocity)
        everything = (driving, driving * fading, driving - 1.0, (driving - 1.0) * fading)
        return _by_joint(np.stack([everything[k] for k in self._chosen(GAIN_NAMES)], axis=2))

    def prior_std(self, torque: FloatArray, speed: FloatArray) -> FloatArray:
        """(f,) infinite: nothing is known before the data of what does not multiply the load."""
        return self.described.prior_std

    @property
    def in_law(self) -> BoolArray:
        """(f,) all columns belong to the law."""
        return np.ones(len(self.described.names), dtype=bool)

    @property
    def directions(self) -> FloatArray:
        """(n, n): friction acts at the joints."""
        return np.eye(len(self.joint_names))

    def speeds(self, velocity: FloatArray) -> FloatArray:
        """Velocities at which friction acts: those of the joints, (N, n)."""
        return velocity

    def _chosen(self, names: tuple[str, ...]) -> list[int]:
        return [
            k for k, name in enumerate(names) if self.velocity_dependent or "gamma" not in name and "delta" not in name
        ]

    def _quadrant(self, velocity: FloatArray, load: FloatArray) -> FloatArray:
        """P+ of eq. 27, one half without power; the load's sign is that of tau_out, or of tau (eq. 26)."""
        return np.asarray(0.5 * (1.0 + np.sign(load * velocity)))

    def _fading(self, velocity: FloatArray) -> FloatArray:
        """E_xp of eq. 29."""
        return np.exp(-np.abs(velocity) / self.stribeck_velocity)


def _by_joint(columns: FloatArray) -> FloatArray:
    """(N, n, k) of each joint as (N, n, n k), zero where a column belongs to another joint."""
    samples, n, k = columns.shape
    blocks = np.zeros((samples, n, n, k))
    blocks[:, np.arange(n), np.arange(n)] = columns
    return blocks.reshape(samples, n, n * k)
