"""Identified parameters of the friction laws of one robot, as they are saved and restored; what no joint can have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from friction_estimator.errors import ConfigError
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.laws.law import FrictionLaw, make_law, torque_gradient
from friction_estimator.laws.linear import ADDED_TERMS, MAX_RIPPLES, LinearFrictionLaw
from friction_estimator.types import FloatArray, ShortRepr

SAVED_SCALARS = ("residual_variance", "measurement_variance", "samples")
"""What :class:`IdentifiedParameters` has once a joint, apart from the values and their covariance."""
CALIBRATION = (
    "link_mass", "link_com_x", "link_com_y", "link_com_z",
    "torque_gain", "torque_offset", "rotor_inertia", "compliance",
)  # fmt: skip
"""Errors of model and torque sensor of a joint: relative, [m], relative, [N m], [kg m^2], [rad/(N m)]."""
LARGEST_VALUE = 1e9
"""Largest size of a parameter or standard deviation in SI units: no machine comes near it."""
_BOUND_SIGMAS, _BOUND_SLACK = 10.0, 1.0
"""A value may be outside of the law's bounds by this many standard deviations, or by this number: least squares without
bounds give slightly negative parameters."""
_CORRELATION_TOLERANCE, _SMALLEST_UNIT = 1e-4, 1e-9
"""Largest rounding error of a covariance in units of the standard deviations; the smallest unit per largest one."""


@dataclass(frozen=True, slots=True, repr=False)
class IdentifiedParameters(ShortRepr):
    """Parameters of every joint's friction law, padded with zeros to the law with most parameters."""

    joint_names: tuple[str, ...]  # (n) names of the rows
    law_names: tuple[str, ...]  # (n) name of the friction law of every joint
    values: FloatArray  # (n, p) in SI units
    covariance: FloatArray  # (n, p, p) of the values, in SI units
    residual_variance: FloatArray  # (n,) variance of what the law does not explain [(N m)^2]
    measurement_variance: FloatArray  # (n,) variance of the noise in the measured friction [(N m)^2]
    samples: FloatArray  # (n,) how many measurements the values rest on
    # (n, 2) speeds between which the joint was in motion [rad/s], NaN where unknown; None: all unknown
    velocity_range: FloatArray | None = None
    # (n, s), (n, s, s) torques of the presliding terms [N m]; infinite covariance where unknown, zero where there
    # is no presliding; None: all unknown
    presliding: FloatArray | None = None
    presliding_covariance: FloatArray | None = None
    # (n,) periods of the friction in a turn; zero where none was found; None: nowhere
    ripples: FloatArray | None = None
    # (n, t), (n, t, t) parameters of the ripple terms, in SI units; infinite covariance where unknown; None: all
    # unknown
    ripple: FloatArray | None = None
    ripple_covariance: FloatArray | None = None
    # (n, 8), (n, 8, 8) errors of model and torque sensors, CALIBRATION; None: unknown
    calibration: FloatArray | None = None
    calibration_covariance: FloatArray | None = None
    robot: Any = ""  # text, `RobotModel.identity` of the robot; empty where unknown

    @property
    def has_ripple(self) -> bool:
        """Whether a ripple was found in any joint."""
        return self.ripples is not None and bool(self.ripples.any())

    def added(self, kind: str, row: int) -> tuple[FloatArray, FloatArray] | None:
        """Field ``kind`` (ripple, presliding or calibration) of a joint, (s,), and covariance (s, s); None: unknown."""
        values, covariance = getattr(self, kind), getattr(self, f"{kind}_covariance")
        known = values is not None and covariance is not None and np.isfinite(covariance[row]).all()
        return (values[row], covariance[row]) if known else None

    @property
    def has_presliding(self) -> bool:
        """Whether any joint may have presliding, by what is known of it."""
        spread = self.presliding_covariance
        return spread is not None and bool((np.isfinite(spread) & (spread != 0.0)).any())

    @property
    def parameter_names(self) -> tuple[tuple[str, ...], ...]:
        """Names of the columns that each joint (n) uses."""
        return tuple(make_law(name).parameter_names for name in self.law_names)


def parameters_sigma(identified: IdentifiedParameters) -> FloatArray:
    """Standard deviations of the values, (n, p)."""
    return np.sqrt(np.diagonal(identified.covariance, axis1=1, axis2=2))


def check_identified(identified: IdentifiedParameters) -> None:
    """Refuse parameters that no joint can have.

    Raises
    ------
    ConfigError
        When a value is not finite, or beyond the bounds of its law and its standard deviation; when the Coulomb
        friction of all terms together is negative; or when a covariance is that of no errors.
    """
    for row, (joint, name) in enumerate(zip(identified.joint_names, identified.law_names, strict=True)):
        law = make_law(name)
        p = len(law.parameters)
        values, covariance = identified.values[row, :p], identified.covariance[row, :p, :p]
        scalars = {key: getattr(identified, key)[row] for key in SAVED_SCALARS}
        for key, numbers in {"values": values, "covariance": covariance, **scalars}.items():
            if not np.isfinite(numbers).all():
                raise ConfigError(f"{key!r} of the joint {joint!r} must be finite, not {np.asarray(numbers).tolist()}")
        for key, number in scalars.items():
            if not 0.0 <= number <= LARGEST_VALUE**2:
                raise ConfigError(
                    f"{key!r} of the joint {joint!r} is {number:g}; it is between 0 and {LARGEST_VALUE**2:g}"
                )
        _check_covariance(joint, covariance)
        _check_bounds(joint, law, values, covariance)
        for kind in (*ADDED_TERMS, "calibration"):
            if (numbers := identified.added(kind, row)) is not None:
                _check_covariance(joint, numbers[1])
                if not (np.abs(numbers[0]) <= LARGEST_VALUE).all():
                    raise ConfigError(f"{kind!r} of the joint {joint!r} is {numbers[0].tolist()}")
        if identified.ripples is not None and not 0.0 <= identified.ripples[row] <= MAX_RIPPLES:
            number = identified.ripples[row]
            raise ConfigError(f"'ripples' of the joint {joint!r} is {number:g}; it is between 0 and {MAX_RIPPLES}")


def check_effort(identified: IdentifiedParameters, limits: Sequence[float]) -> None:
    """Refuse a friction that no motor could overcome.

    Parameters
    ----------
    limits : (n,) largest torque of each motor [N m]

    Raises
    ------
    ConfigError
        When the friction, less three standard deviations, is beyond the limit at the largest speed that the joint has
        had, or at 1 rad/s where that is unknown.
    """
    n = len(identified.joint_names)
    speed = np.ones(n) if identified.velocity_range is None else identified.velocity_range[:, 1]
    speed = np.where(np.isfinite(speed), speed, 1.0)
    phi = JointLaws(identified.law_names).regressor(speed, np.zeros(n))
    p = phi.shape[1]
    torque = np.abs((phi * identified.values[:, :p]).sum(axis=1))
    sigma = np.sqrt(np.maximum(np.einsum("ni,nij,nj->n", phi, identified.covariance[:, :p, :p], phi), 0.0))
    for joint in np.flatnonzero(torque - 3.0 * sigma > np.asarray(limits)).tolist():
        raise ConfigError(
            f"the friction of {identified.joint_names[joint]!r} would be {torque[joint]:.3g} N m at {speed[joint]:.2g} "
            f"rad/s; its motor has {limits[joint]:g} N m by the URDF"
        )


def _check_bounds(joint: str, law: FrictionLaw, values: FloatArray, covariance: FloatArray) -> None:
    """Refuse values that the law does not allow, give or take their standard deviations."""
    sigma = np.sqrt(np.diagonal(covariance))
    rows = [
        (f"{one.name!r}", value, spread, one.unit, one.bounds)
        for one, value, spread in zip(law.parameters, values, sigma, strict=True)
    ]
    if isinstance(law, LinearFrictionLaw):  # single terms of several slopes may be negative, but not their sum
        weights = law.coulomb(np.eye(values.size))
        terms = [one.name for one, weight in zip(law.parameters, weights, strict=True) if weight]
        spread = float(np.sqrt(max(float(weights @ covariance @ weights), 0.0)))
        rows.append((f"the Coulomb friction ({' + '.join(terms)})", weights @ values, spread, "N m", (0.0, np.inf)))
    for name, value, spread, unit, bounds in rows:
        low, high = (float(np.clip(bound, -LARGEST_VALUE, LARGEST_VALUE)) for bound in bounds)
        slack = max(_BOUND_SIGMAS * spread, _BOUND_SLACK)
        if not low - slack <= value <= high + slack or (low > 0.0 >= value) or abs(value) > LARGEST_VALUE:
            raise ConfigError(
                f"{name} of the joint {joint!r} is {value:g} {unit}, which the law {law.name!r} does not allow: "
                f"it is between {low:g} and {high:g}"
            )


def _check_covariance(joint: str, covariance: FloatArray) -> None:
    variance = np.diagonal(covariance)
    if variance.min() < 0.0:
        raise ConfigError(
            f"'covariance' of the joint {joint!r} has a negative variance on its diagonal: save the parameters "
            "anew, or leave the joint out"
        )
    if (largest := np.abs(covariance).max()) > LARGEST_VALUE**2:
        raise ConfigError(
            f"'covariance' of the joint {joint!r} holds {largest:g}; it cannot be above {LARGEST_VALUE**2:g}"
        )
    sigma = np.sqrt(variance)
    scale = np.maximum(sigma, _SMALLEST_UNIT * sigma.max() or 1.0)
    correlation = covariance / scale / scale[:, None]
    if np.abs(correlation - correlation.T).max() > _CORRELATION_TOLERANCE:
        raise ConfigError(f"'covariance' of the joint {joint!r} is not symmetric")
    if np.linalg.eigvalsh(correlation)[0] < -_CORRELATION_TOLERANCE:
        raise ConfigError(f"'covariance' of the joint {joint!r} is not positive semidefinite: no errors have it")


def common_rows(
    identified: IdentifiedParameters, joint_names: tuple[str, ...], law_names: tuple[str, ...]
) -> tuple[list[int], list[int]]:
    """Rows in ``joint_names``, and in ``identified``, of the joints that both have.

    Parameters
    ----------
    joint_names, law_names : (n) of the robot here

    Raises
    ------
    ConfigError
        When there are none, or their laws differ.
    """
    saved = {name: row for row, name in enumerate(identified.joint_names)}
    here = [row for row, name in enumerate(joint_names) if name in saved]
    there = [saved[joint_names[row]] for row in here]
    if not here:
        raise ConfigError(
            f"the parameters are those of the joints {', '.join(identified.joint_names)}; "
            f"this robot has {', '.join(joint_names)}"
        )
    differences = [
        f"{joint_names[mine]}: {identified.law_names[other]!r}, not {law_names[mine]!r}"
        for mine, other in zip(here, there, strict=True)
        if identified.law_names[other] != law_names[mine]
    ]
    if differences:
        raise ConfigError(
            "the parameters belong to other friction laws than identifier.law and identifier.joint_laws name "
            f"({'; '.join(differences)})"
        )
    return here, there


@dataclass(frozen=True, slots=True)
class JointLaw:
    """A friction law with its parameters."""

    law: FrictionLaw  # any of the registry
    values: FloatArray  # (p,) its parameters
    covariance: FloatArray  # (p, p) of the values

    @classmethod
    def from_identified(cls, friction: IdentifiedParameters, joint: str) -> JointLaw:
        """Law of a joint, without the padding."""
        row = friction.joint_names.index(joint)
        law = make_law(friction.law_names[row])
        p = len(law.parameter_names)
        return cls(law, friction.values[row, :p], friction.covariance[row, :p, :p])

    def torque(self, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque (N,) [N m] at velocities (N,) [rad/s] and loads (N,) [N m]."""
        return self.law.torque(self.values[None, :], velocity, load)

    def predict(self, velocity: FloatArray, load: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Torque and its standard deviation, (N,) each [N m]: the band widens where no data was."""
        gradient = torque_gradient(self.law, self.values, velocity, load)
        return self.torque(velocity, load), propagated_sigma(gradient, self.covariance)


def propagated_sigma(gradient: FloatArray, covariance: FloatArray) -> FloatArray:
    """Standard deviations (N,) of what has these derivatives (N, p) by parameters with this covariance (p, p)."""
    return np.sqrt(np.maximum(np.einsum("ti,ij,tj->t", gradient, covariance, gradient), 0.0))


def joined(
    joint_names: Sequence[str],
    law_names: Sequence[str],
    parameters: Sequence[tuple[FloatArray, FloatArray]],
    residual_variance: Sequence[float] | FloatArray,
    measurement_variance: Sequence[float] | FloatArray,
    samples: Sequence[float] | FloatArray,
) -> IdentifiedParameters:
    """Parameters of all joints (n), padded with zeros to the law with most.

    Parameters
    ----------
    parameters : (n) values (p_k,) and covariance (p_k, p_k) of each joint
    residual_variance, measurement_variance, samples : (n) as in :class:`IdentifiedParameters`
    """
    n, width = len(parameters), max((own.size for own, _ in parameters), default=0)
    values, covariance = np.zeros((n, width)), np.zeros((n, width, width))
    for row, (own, spread) in enumerate(parameters):
        values[row, : own.size], covariance[row, : own.size, : own.size] = own, spread
    numbers = (np.array(column, dtype=float) for column in (residual_variance, measurement_variance, samples))
    return IdentifiedParameters(tuple(joint_names), tuple(law_names), values, covariance, *numbers)
