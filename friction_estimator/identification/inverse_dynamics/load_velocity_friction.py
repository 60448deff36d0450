"""Dry friction that depends on load and velocity, split into what multiplies the load and what does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from friction_estimator.identification.inverse_dynamics.friction_columns import ColumnNames
from friction_estimator.types import BoolArray, FloatArray

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
