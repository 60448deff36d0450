"""Friction laws by name: the protocols and the registry."""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable

from friction_estimator.errors import ConfigError, choices
from friction_estimator.types import FloatArray


class FrictionLaw(Protocol):
    """Friction torque of every joint as a function of its velocity (and load).

    Attributes
    ----------
    name : the key in the registry
    parameter_names : names of the ``p`` columns of a parameter array
    units : (p) of the parameters, in SI for a revolute joint; empty for a pure number
    nonnegative : (p) True for a parameter that no passive joint has below zero
    needs_load : True where the torque cannot be computed without the load
    """

    name: str
    parameter_names: tuple[str, ...]
    units: tuple[str, ...]
    nonnegative: tuple[bool, ...]
    needs_load: bool

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
class NonlinearFrictionLaw(FrictionLaw, Protocol):
    """A law with parameters that shape its curve: nonlinear least squares identifies it from a recording.

    Attributes
    ----------
    shape_range : (p) least and largest value that a parameter has in any machine, where the torque is not linear in
        it; None where it is. A least value above zero means that orders of magnitude count
    """

    shape_range: tuple[tuple[float, float] | None, ...]

    def stribeck_region(self, parameters: FloatArray) -> FloatArray:
        """Speed beyond which Coulomb and viscous friction alone are left, (n, p) -> (n,) [rad/s]."""
        ...


_LAWS: dict[str, FrictionLaw] = {}
_Law = TypeVar("_Law", bound=FrictionLaw)


def register_law(law: _Law) -> _Law:
    """Make a law available under its ``name``."""
    _LAWS[law.name] = law
    return law


def law_names() -> tuple[str, ...]:
    """Names of all registered laws."""
    return tuple(sorted(_LAWS))


def make_law(name: str) -> FrictionLaw:
    """Law by name.

    Raises
    ------
    ConfigError
        When no law has that name; the message lists the names.
    """
    if name not in _LAWS:
        raise ConfigError(f"unknown friction law {name!r}; the laws are {choices(_LAWS)}")
    return _LAWS[name]


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
