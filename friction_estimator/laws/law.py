"""Friction laws by name: parameters, the interface of a law, the registry, and derivatives of the torque."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TypeVar

import numpy as np

from friction_estimator.errors import ConfigError, lookup
from friction_estimator.types import FloatArray, IntArray

_RELATIVE_STEP, _SMALL_VALUE = 1e-5, 1e-2
"""Relative step of the differences, and the value below which it is no longer relative."""


class Role(Enum):
    """What a parameter does in the friction torque."""

    COULOMB = "coulomb"
    """Dry friction that does not depend on the load."""
    STRIBECK = "stribeck"
    """Dry friction near standstill."""
    VISCOUS = "viscous"
    LOAD = "load"
    """Dry friction per load or per squared load."""
    OFFSET = "offset"
    """Constant torque."""
    SHAPE = "shape"
    """The torque is not linear in this parameter, for instance a Stribeck velocity."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a friction law."""

    name: str  # column name in parameter files
    role: Role  # what it does in the torque
    unit: str = "N m"  # in SI for a revolute joint; empty for a pure number
    # smallest and largest value. No passive joint has a parameter with the lower bound zero below zero. Of the
    # role SHAPE, the range of any machine; a smallest value above zero means that orders of magnitude count
    bounds: tuple[float, float] = (0.0, math.inf)
    prior_std: float = math.inf  # standard deviation about zero before any data, infinite where nothing is known
    optional: bool = False  # True where inverse dynamics sets the parameter to zero when the data do not show it


class FrictionLaw(ABC):
    """Friction torque of every joint as a function of its velocity and, for some laws, of its load.

    Attributes
    ----------
    name : the key in the registry
    parameters : (p) the columns of a parameter array
    depends_on_load : True where the torque cannot be computed without the load
    is_linear : True where the torque is linear in all parameters, as recursive filters need it
    """

    name: str
    parameters: tuple[Parameter, ...]
    depends_on_load: bool = False
    is_linear: bool = False

    @abstractmethod
    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque (n,) [N m], same sign as the velocity it resists.

        Parameters
        ----------
        parameters : (n, p)
        velocity : (n,) joint velocities [rad/s]
        load : (n,) torque through the joint, in the estimator the motor torque [N m]; load-dependent laws need it
        """

    def stribeck_region(self, parameters: FloatArray) -> FloatArray:
        """Speed beyond which Coulomb and viscous friction alone are left, (n, p) -> (n,) [rad/s]."""
        return np.zeros(parameters.shape[:-1])

    @cached_property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters, (p)."""
        return tuple(parameter.name for parameter in self.parameters)

    @cached_property
    def units(self) -> tuple[str, ...]:
        """Units of the parameters, (p)."""
        return tuple(parameter.unit for parameter in self.parameters)

    @cached_property
    def prior_std(self) -> tuple[float, ...]:
        """Standard deviations of the parameters before any data, (p)."""
        return tuple(parameter.prior_std for parameter in self.parameters)

    @cached_property
    def nonnegative(self) -> tuple[bool, ...]:
        """(p) True for a parameter that no passive joint has below zero."""
        return tuple(parameter.bounds[0] >= 0.0 for parameter in self.parameters)

    @cached_property
    def has_offset(self) -> bool:
        """Whether a constant torque is part of the law."""
        return any(parameter.role is Role.OFFSET for parameter in self.parameters)


_LAWS: dict[str, FrictionLaw] = {}
_Law = TypeVar("_Law", bound=FrictionLaw)


def register_law(law: _Law) -> _Law:
    """Make a law available by its ``name`` in parameters, options and files, and return it.

    Parameters
    ----------
    law : a table of terms (``LinearFrictionLaw``), or an object of another subclass of ``FrictionLaw``
    """
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
    return lookup(_LAWS, name, "friction law")


def required_load(law_name: str, load: FloatArray | None) -> FloatArray:
    """The load of a load-dependent law.

    Raises
    ------
    ConfigError
        When there is none.
    """
    if load is None:
        raise ConfigError(f"the friction law {law_name!r} needs the load (motor torque) of every joint")
    return load


def torque_gradient(
    law: FrictionLaw,
    values: FloatArray,
    velocity: FloatArray,
    load: FloatArray | None,
    parameters: IntArray | None = None,
) -> FloatArray:
    """Derivative of the torque by the parameters, by central differences.

    Parameters
    ----------
    law, values : any law and its parameters (p,)
    velocity, load : (N,) [rad/s], [N m]
    parameters : places (q,) of the parameters; None: all

    Returns
    -------
    (N, q)
    """
    places = np.arange(values.size) if parameters is None else parameters
    columns = np.empty((velocity.size, places.size))
    for column, k in zip(columns.T, places, strict=True):
        step = np.zeros(values.size)
        step[k] = _RELATIVE_STEP * max(abs(values[k]), _SMALL_VALUE)
        above, below = (law.torque((values + sign * step)[None, :], velocity, load) for sign in (1.0, -1.0))
        column[:] = (above - below) / (2.0 * step[k])
    return columns


def load_slope(law: FrictionLaw, values: FloatArray, velocity: FloatArray, load: FloatArray) -> FloatArray:
    """Derivative of the torque by the load, by central differences that never change the sign of the load.

    At zero load, where laws jump or have a corner, it is zero.

    Parameters
    ----------
    law, values : any law that depends on the load, and its parameters (p,)
    velocity, load : (N,) [rad/s], [N m]

    Returns
    -------
    (N,)
    """
    above, below = (law.torque(values[None, :], velocity, (1.0 + sign * _RELATIVE_STEP) * load) for sign in (1.0, -1.0))
    step = 2.0 * _RELATIVE_STEP * load
    return np.divide(above - below, step, out=np.zeros_like(load), where=load != 0.0)
