"""Friction laws by name: the protocol and the registry.

A new law is one file with a class decorated by :func:`register_law`, and one import line in ``friction/__init__.py``.
"""

from __future__ import annotations

from typing import ClassVar, Protocol, TypeVar, runtime_checkable

from friction_estimator.core.exceptions import ConfigError, choices
from friction_estimator.core.types import FloatArray


class FrictionLaw(Protocol):
    """Friction torque of every joint as a function of its velocity (and load).

    Attributes
    ----------
    name : the key in the registry
    parameter_names : names of the ``p`` columns of a parameter array
    """

    name: ClassVar[str]
    parameter_names: ClassVar[tuple[str, ...]]

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque [N m], same sign as the velocity it resists.

        Parameters
        ----------
        parameters : (n, p)
        velocity : (n,) joint velocities [rad/s]
        load : (n,) torque through the joint [N m]; needed by load-dependent laws only
        """
        ...


@runtime_checkable
class LinearFrictionLaw(FrictionLaw, Protocol):
    """A law that is linear in its parameters, so that recursive least squares can identify it.

    ``coulomb_column`` and ``viscous_column`` say which columns of the parameters are F_c and F_v.
    """

    coulomb_column: ClassVar[int]
    viscous_column: ClassVar[int]

    def regressor(self, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Regressor phi with ``torque = sum_j phi[:, j] * parameters[:, j]``, (n, p)."""
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
        linear = [other for other, law_class in _LAWS.items() if hasattr(law_class, "regressor")]
        raise ConfigError(
            f"the friction law {name!r} is not linear in its parameters and cannot be identified recursively; "
            f"the linear laws are {choices(linear)}"
        )
    return law
