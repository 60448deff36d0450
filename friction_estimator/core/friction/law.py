"""Friction laws by name: the protocols and the registry.

A new law is one file with a class decorated by :func:`register_law`, and one import line in ``friction/__init__.py``.
"""

from __future__ import annotations

from typing import ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np

from friction_estimator.core.exceptions import ConfigError, choices
from friction_estimator.core.types import FloatArray


class FrictionLaw(Protocol):
    """Friction torque of every joint as a function of its velocity (and load).

    Attributes
    ----------
    name : the key in the registry
    parameter_names : names of the ``p`` columns of a parameter array
    units : (p) of the parameters, in SI for a revolute joint; empty for a pure number
    nonnegative : (p) True for a parameter that no passive joint has below zero
    """

    name: ClassVar[str]
    parameter_names: ClassVar[tuple[str, ...]]
    units: ClassVar[tuple[str, ...]]
    nonnegative: ClassVar[tuple[bool, ...]]

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque [N m], same sign as the velocity it resists.

        Parameters
        ----------
        parameters : (n, p)
        velocity : (n,) joint velocities [rad/s]
        load : (n,) torque through the joint, in the estimator the motor torque [N m]; load-dependent laws need it
        """
        ...


@runtime_checkable
class LinearFrictionLaw(FrictionLaw, Protocol):
    """A law that is linear in its parameters, so that least squares and Kalman filters can identify it.

    Attributes
    ----------
    prior_std : (p) its standard deviation before any data, about zero, wide enough for a humanoid, in SI units
    """

    prior_std: ClassVar[tuple[float, ...]]

    def regressor(self, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Regressor phi with ``torque = sum_j phi[..., j] * parameters[..., j]``.

        Parameters
        ----------
        velocity : (...) of any shape [rad/s]
        load : (...) broadcasts against it [N m]; load-dependent laws need it

        Returns
        -------
        (..., p)
        """
        ...

    def coulomb(self, parameters: FloatArray) -> FloatArray:
        """F_c of eq. 57 [N m]: what is left of the friction when viscous friction and load are taken away.

        The plateau beyond any Stribeck effect, the mean of both directions. Linear in the parameters:
        (..., p) -> (...).
        """
        ...

    def viscous(self, parameters: FloatArray) -> FloatArray:
        """F_v of eq. 57 [N m s/rad], the mean of both directions. Linear in the parameters: (..., p) -> (...)."""
        ...

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque (n,) [N m]: regressor times parameters (n, p)."""
        return np.asarray((self.regressor(velocity, load) * parameters).sum(axis=-1))


@runtime_checkable
class NonlinearFrictionLaw(FrictionLaw, Protocol):
    """A law with parameters that shape its curve: nonlinear least squares identifies it from a recording.

    Attributes
    ----------
    shape_range : (p) least and largest value that a parameter has in any machine, where the torque is not linear in
        it; None where it is. A least value above zero means that orders of magnitude count
    """

    shape_range: ClassVar[tuple[tuple[float, float] | None, ...]]

    def stribeck_region(self, parameters: FloatArray) -> FloatArray:
        """Speed beyond which Coulomb and viscous friction alone are left, (n, p) -> (n,) [rad/s]."""
        ...


_LAWS: dict[str, type[FrictionLaw]] = {}
_Law = TypeVar("_Law", bound=type[FrictionLaw])


def register_law(law_class: _Law) -> _Law:
    """Class decorator: make a law available under its ``name``."""
    _LAWS[law_class.name] = law_class
    return law_class


def law_names() -> tuple[str, ...]:
    """Names of all registered laws."""
    return tuple(sorted(_LAWS))


def linear_law_names() -> tuple[str, ...]:
    """Names of the laws that are linear in their parameters."""
    return tuple(name for name in law_names() if hasattr(_LAWS[name], "regressor"))


def make_law(name: str) -> FrictionLaw:
    """Create a law by name.

    Raises
    ------
    ConfigError
        When no law has that name; the message lists the names.
    """
    if name not in _LAWS:
        raise ConfigError(f"unknown friction law {name!r}; the laws are {choices(_LAWS)}")
    return _LAWS[name]()


def make_linear_law(name: str) -> LinearFrictionLaw:
    """Create a law that recursive least squares can identify.

    Raises
    ------
    ConfigError
        When the law is unknown or not linear in its parameters.
    """
    law = make_law(name)
    if not isinstance(law, LinearFrictionLaw):
        raise ConfigError(
            f"the friction law {name!r} is not linear in its parameters and cannot be identified recursively; "
            f"the linear laws are {choices(linear_law_names())}"
        )
    return law


def required_load(law_name: str, load: FloatArray | None) -> FloatArray:
    """The load, which a load-dependent law cannot do without.

    Raises
    ------
    ConfigError
        When there is none.
    """
    if load is None:
        raise ConfigError(f"the friction law {law_name!r} needs the load (motor torque) of every joint")
    return load
