"""The friction laws of all joints of one robot, evaluated at once on arrays padded to the law with most parameters."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from friction_estimator.core.exceptions import ConfigError, choices
from friction_estimator.core.friction.law import linear_law_names, make_linear_law
from friction_estimator.core.types import BoolArray, FloatArray

_NODES, _WEIGHTS = hermegauss(7)
_WEIGHTS /= _WEIGHTS.sum()
"""Gauss-Hermite quadrature over a standard normal variable."""


class JointLaws:
    """One linear friction law a joint.

    ``n`` joints share arrays of ``p`` columns, as many as the law with most parameters has. Where a law has fewer, the
    remaining columns of every regressor are zero.

    Parameters
    ----------
    names : (n) name of the law of every joint

    Attributes
    ----------
    law_names : (n) as given
    parameter_names : (n) names of the parameters of every joint
    parameter_count : p
    mask : (n, p) True where a parameter exists
    nonnegative : (n, p) True where it cannot be negative
    prior_std : (n, p) its standard deviation before any data, zero where there is none
    coulomb_weights, viscous_weights : (n, p) F_c and F_v are ``(weights * parameters).sum(axis=-1)``

    Raises
    ------
    ConfigError
        When a law is unknown or not linear.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.law_names = tuple(names)
        laws = {name: make_linear_law(name) for name in dict.fromkeys(names)}
        self._groups = tuple(
            (law, np.array([k for k, other in enumerate(names) if other == name])) for name, law in laws.items()
        )
        self._only = self._groups[0][0] if len(self._groups) == 1 else None
        self.parameter_names = tuple(laws[name].parameter_names for name in names)
        self.parameter_count = max(map(len, self.parameter_names))
        shape = len(names), self.parameter_count
        self.mask: BoolArray = np.zeros(shape, dtype=bool)
        self.nonnegative: BoolArray = np.zeros(shape, dtype=bool)
        self.prior_std, self.coulomb_weights, self.viscous_weights = (np.zeros(shape) for _ in range(3))
        for law, rows in self._groups:
            columns = slice(len(law.parameter_names))
            self.mask[rows, columns] = True
            self.nonnegative[rows, columns] = law.nonnegative
            self.prior_std[rows, columns] = law.prior_std
            basis = np.eye(len(law.parameter_names))
            self.coulomb_weights[rows, columns] = law.coulomb(basis)
            self.viscous_weights[rows, columns] = law.viscous(basis)
        for array in (self.mask, self.nonnegative, self.prior_std, self.coulomb_weights, self.viscous_weights):
            array.setflags(write=False)

    def regressor(self, velocity: FloatArray, load: FloatArray) -> FloatArray:
        """Regressor (..., n, p) at velocities (..., n) [rad/s] and loads (..., n) [N m], which may broadcast."""
        if self._only is not None:
            return self._only.regressor(velocity, load)
        phi = np.zeros((*velocity.shape, self.parameter_count))
        for law, rows in self._groups:
            phi[..., rows, : len(law.parameter_names)] = law.regressor(velocity[..., rows], load[..., rows])
        return phi

    def expected_friction(
        self, parameters: FloatArray, velocity: FloatArray, load: FloatArray, velocity_std: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Friction when the true velocity is Gaussian about ``velocity``.

        Gauss-Hermite quadrature with seven nodes, exact for polynomials up to degree thirteen. Beside a velocity that
        is more uncertain than the law is soft, dry friction is a jump and no polynomial: a few nodes miss much of it,
        and the outer ones (2.4 and 3.8 standard deviations) tell that the sign may be wrong. Of ``tanh(dq/s)`` it
        misses at most 0.003 when the standard deviation is s, 0.05 when it is 2 s, and 0.11 when it is 3 s; of
        ``sgn(dq)`` up to 0.46, just beside zero.

        Parameters
        ----------
        parameters : (..., n, p)
        velocity, load : (..., n)
        velocity_std : (..., n) standard deviation of the velocity [rad/s]

        Returns
        -------
        regressor, torque, variance : (..., n, p) mean, (..., n) mean [N m], (..., n) from the velocity [(N m)^2]
        """
        phi = self.regressor(velocity + np.multiply.outer(_NODES, velocity_std), load)
        torque = (phi * parameters).sum(axis=-1)
        mean = np.tensordot(_WEIGHTS, torque, 1)
        variance = np.tensordot(_WEIGHTS, (torque - mean) ** 2, 1)
        return np.tensordot(_WEIGHTS, phi, 1), mean, variance

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray) -> FloatArray:
        """Friction torque (..., n) [N m] for parameters (n, p)."""
        return np.asarray((self.regressor(velocity, load) * parameters).sum(axis=-1))

    def coulomb(self, parameters: FloatArray) -> FloatArray:
        """F_c of every joint (n,) [N m] for parameters (n, p)."""
        return np.asarray((self.coulomb_weights * parameters).sum(axis=-1))

    def viscous(self, parameters: FloatArray) -> FloatArray:
        """F_v of every joint (n,) [N m s/rad] for parameters (n, p)."""
        return np.asarray((self.viscous_weights * parameters).sum(axis=-1))

    def describe(self, joint_names: Sequence[str]) -> str:
        """The laws in words, e.g. ``three_slope`` or ``coulomb_viscous; tanh_load: l_knee, r_knee``."""
        joints = {name: [joint_names[k] for k in self._rows_of(name)] for name in dict.fromkeys(self.law_names)}
        most = max(joints, key=lambda name: len(joints[name]))
        others = (f"{name}: {', '.join(members)}" for name, members in joints.items() if name != most)
        return "; ".join((most, *others))

    def _rows_of(self, law_name: str) -> list[int]:
        return [k for k, name in enumerate(self.law_names) if name == law_name]


def laws_of_joints(law: str, exceptions: Sequence[str], joint_names: Sequence[str]) -> tuple[str, ...]:
    """Name of the law of every joint.

    Parameters
    ----------
    law : the law of all joints, ``identifier.law``
    exceptions : ``identifier.joint_laws``: entries ``joint=law``, the joint a name or a shell pattern (``*_knee``);
        where several match, the last one holds
    joint_names : (n)

    Raises
    ------
    ConfigError
        When an entry is not of that form, or matches no joint, or names no linear law.
    """
    names = [law] * len(joint_names)
    for entry in exceptions:
        pattern, separator, name = (part.strip() for part in entry.partition("="))
        if not separator or name not in linear_law_names():
            wrong = f"{name!r} is no linear law" if separator else "it must be written joint=law"
            raise ConfigError(
                f"identifier.joint_laws: {entry!r}: {wrong}; "
                f"the laws that can be identified are {choices(linear_law_names())}"
            )
        rows = [k for k, joint in enumerate(joint_names) if fnmatchcase(joint, pattern)]
        if not rows:
            raise ConfigError(
                f"identifier.joint_laws: {entry!r} matches no joint; the joints are {choices(joint_names)}"
            )
        for row in rows:
            names[row] = name
    return tuple(names)
