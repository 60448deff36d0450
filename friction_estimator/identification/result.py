"""Result of an offline identification, as files, reports and the command line use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from friction_estimator.laws import FrictionLaw, make_law
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.laws.law import torque_gradient
from friction_estimator.types import BoolArray, FloatArray, ShortRepr


@dataclass(frozen=True, slots=True)
class ParameterTable:
    """Estimated parameters with error bars."""

    names: tuple[str, ...]  # (p) e.g. `knee/viscous` or `ZZ_3R + 0.4 MX_4` (a base parameter with what it groups)
    units: tuple[str, ...]  # (p)
    values: FloatArray  # (p,)
    sigma: FloatArray  # (p,) standard deviations that allow for coloured residuals
    # (p,) what was known before (URDF, file, injected truth), NaN where nothing was; None when nothing at all
    reference: FloatArray | None = None
    # (p,) False where the data does not show the parameter, whatever its value; None when not tested
    identifiable: BoolArray | None = None

    def value(self, name: str) -> float:
        """Value of a parameter by its name; NaN where there is none."""
        return float(self.values[self.names.index(name)]) if name in self.names else np.nan

    @property
    def urdf_scale(self) -> float:
        """Factor from known parameters to the identified ones, by least squares in sigmas; 1 without any."""
        if self.reference is None:
            return 1.0
        known = np.isfinite(self.reference) & (self.sigma > 0.0)
        value, reference = (one[known] / self.sigma[known] for one in (self.values, self.reference))
        return float(value @ reference / (reference @ reference)) if reference.any() else 1.0


@dataclass(frozen=True, slots=True)
class JointScore:
    """How well one joint's torque is predicted on segments that the fit has not seen."""

    joint: str  # its name
    torque_rms: float  # RMS of the measured torque, the error of "predict zero" [N m]
    # RMS error when friction is left out of the model [N m], NaN when there is no rigid-body model
    rigid_body_error: float
    held_out_error: float  # RMS error of the whole model on held-out segments [N m]
    fit_error: float  # RMS error on the data of the fit [N m]
    samples: int  # used for it

    @property
    def relative_error(self) -> float:
        """Held-out error over the RMS of the torque, ||rho|| / ||Y|| of Hamon et al. 2010, Table III."""
        return self.held_out_error / self.torque_rms if self.torque_rms > 0.0 else float("inf")


@dataclass(frozen=True, slots=True)
class FrictionSamples:
    """Friction of one joint (or motor) as the data shows it, thinned out for figures."""

    joint: str  # its name
    velocity: FloatArray  # (K,) [rad/s]
    friction: FloatArray  # (K,) torque minus everything in the model but friction [N m]
    load: FloatArray  # (K,) torque through the joint [N m]
    fitted: FloatArray  # (K,) torque of the identified law [N m]
    sigma: FloatArray  # (K,) standard deviation of `fitted` from the parameters' covariance [N m]
    used: BoolArray  # (K,) False where the sample was left out of the fit (near standstill, outlier, stick)

    @property
    def shown(self) -> slice:
        """Every k-th sample, so that a figure draws at most about 2,000."""
        return slice(None, None, max(1, self.velocity.size // _FIGURE_SAMPLES))

    def thinned(self, sigma: FloatArray) -> FrictionSamples:
        """These samples alone, with their standard deviations."""
        signals = ("velocity", "friction", "load", "fitted", "used")
        return replace(self, **{name: getattr(self, name)[self.shown] for name in signals}, sigma=sigma)


_FIGURE_SAMPLES = 2000


@dataclass(frozen=True, slots=True)
class DriveGain:
    """Torque of a motor by its drive, ``offset + gain * drive`` at the output of the gearbox."""

    offset: float  # [N m]
    gain: float  # [`unit`]
    unit: str  # `N m/pwm`, `N m/A`, or N m per unit of the recorded effort


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row of the table of candidates."""

    decision: str  # what was decided, e.g. `motion`
    settings: str  # of this candidate, in words
    error: float  # held-out error relative to the torque, geometric mean over the joints
    excess: float  # how much larger than that of the best candidate, relative
    sigma: float  # standard error of `excess`
    chosen: bool  # whether it was taken


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a result comes from, so that it can be made again."""

    method: str  # `inverse_dynamics`, `inverse_dynamics, rollout`, `friction_curve` or `motor`
    data: tuple[tuple[str, str], ...]  # name and SHA-256 of every experiment
    # what was chosen from the data and why, one sentence each (filters, dead zone, eliminated parameters)
    choices: tuple[str, ...]
    command: str = ""  # the command line, empty when called from Python


@dataclass(frozen=True, slots=True, repr=False)
class Identification(ShortRepr):
    """The whole result."""

    friction: IdentifiedParameters  # law and parameters of every joint, as the live node starts from them
    # everything that was estimated, also what the live node does not use (inertia, drive gain)
    parameters: ParameterTable
    scores: tuple[JointScore, ...]  # (n) one per joint
    samples: tuple[FrictionSamples, ...]  # (n) one per joint
    condition: float  # condition number of the column-scaled observation matrix
    verdicts: tuple[str, ...]  # findings, one sentence each, the most severe first
    provenance: Provenance  # how it was made
    # standard inertial parameters by name, e.g. `Izz knee` and the drive inertia `Ia knee`, that reproduce the
    # identified torque of the rigid bodies; those that are missing are zero. Empty when none were identified
    inertia: Mapping[str, float] = field(default_factory=dict)
    # torque by PWM, current or recorded effort of every motor whose drive gain was identified
    drives: Mapping[str, DriveGain] = field(default_factory=dict)
    predictions: tuple[Any, ...] = ()  # how the torque of every limb was predicted; empty where only laws are known
    candidates: tuple[Candidate, ...] = ()  # what was compared by held-out errors, and chosen
    # standard inertial parameters of the real bodies, and inertias of the drives, that are nearest to the
    # identified ones, by the names of `inertia`, and the parameters of friction that go with them; empty when
    # links were not identified
    bodies: Mapping[str, float] = field(default_factory=dict)


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


INNER_QUANTILES = (0.05, 0.95)
"""Quantiles of the speed between which nine tenths of the samples lie."""


def velocity_ranges(samples: Sequence[FrictionSamples]) -> FloatArray:
    """Speeds (n, 2) between which nine tenths of the used samples of each joint lie [rad/s]; NaN without any."""
    ranges = np.full((len(samples), 2), np.nan)
    for row, one in enumerate(samples):
        speeds = np.abs(one.velocity[one.used & (one.velocity != 0.0)])
        if speeds.size and np.ptp(speeds) > 0.0:
            ranges[row] = np.quantile(speeds, INNER_QUANTILES)
    return ranges


FEWEST_JUDGED = 20
"""Samples, nearly independent behind the filter, that an error is judged by: with fewer it is uncertain by a sixth."""
