"""Result of an offline identification, as files, reports and the command line use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from friction_estimator.laws.joint_laws import IdentifiedParameters
from friction_estimator.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class ParameterTable:
    """Estimated parameters with error bars.

    Attributes
    ----------
    names : (p) e.g. ``knee/viscous`` or ``ZZ_3R + 0.4 MX_4`` (a base parameter with what it groups)
    units : (p)
    values : (p,)
    sigma : (p,) standard deviations that allow for coloured residuals
    reference : (p,) what was known before (URDF, file, injected truth), NaN where nothing was; None when nothing at all
    identifiable : (p,) False where the data does not show the parameter, whatever its value; None when not tested
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: FloatArray
    sigma: FloatArray
    reference: FloatArray | None = None
    identifiable: BoolArray | None = None


@dataclass(frozen=True, slots=True)
class JointScore:
    """How well one joint's torque is predicted on segments that the fit has not seen.

    Attributes
    ----------
    joint : its name
    torque_rms : RMS of the measured torque, the error of "predict zero" [N m]
    rigid_body_error : RMS error when friction is left out of the model [N m], NaN when there is no rigid-body model
    model_error : RMS error of the whole model on held-out segments [N m]
    fit_error : RMS error on the data of the fit [N m]
    samples : used for it
    """

    joint: str
    torque_rms: float
    rigid_body_error: float
    model_error: float
    fit_error: float
    samples: int

    @property
    def relative_error(self) -> float:
        """Held-out error over the RMS of the torque, ||rho|| / ||Y|| of Hamon et al. 2010, Table III."""
        return self.model_error / self.torque_rms if self.torque_rms > 0.0 else float("inf")


@dataclass(frozen=True, slots=True)
class FrictionSamples:
    """Friction of one joint (or motor) as the data shows it, thinned out for figures.

    Attributes
    ----------
    joint : its name
    velocity : (K,) [rad/s]
    friction : (K,) torque minus everything in the model but friction [N m]
    load : (K,) torque through the joint [N m]
    fitted : (K,) torque of the identified law [N m]
    sigma : (K,) standard deviation of ``fitted`` from the parameters' covariance [N m]
    used : (K,) False where the sample was left out of the fit (near standstill, outlier, stick)
    """

    joint: str
    velocity: FloatArray
    friction: FloatArray
    load: FloatArray
    fitted: FloatArray
    sigma: FloatArray
    used: BoolArray


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a result comes from, so that it can be made again.

    Attributes
    ----------
    method : ``inverse_dynamics``, ``friction_curve`` or ``motor``
    data : name and SHA-256 of every experiment
    choices : what was chosen from the data and why, one sentence each (filters, dead zone, eliminated parameters)
    command : the command line, empty when called from Python
    """

    method: str
    data: tuple[tuple[str, str], ...]
    choices: tuple[str, ...]
    command: str = ""


@dataclass(frozen=True, slots=True)
class Identification:
    """The whole result.

    Attributes
    ----------
    friction : law and parameters of every joint, as the live node starts from them
    parameters : everything that was estimated, also what the live node does not know (inertia, drive gain)
    scores : (n) one a joint
    samples : (n) one a joint
    condition : condition number of the column-scaled observation matrix
    verdicts : findings, one sentence each, the most severe first
    provenance : how it was made
    inertia : standard inertial parameters by name, e.g. ``Izz knee`` and the drive inertia ``Ia knee``, that reproduce
        the identified torque of the rigid bodies; those that are missing are zero. Empty when none were identified
    """

    friction: IdentifiedParameters
    parameters: ParameterTable
    scores: tuple[JointScore, ...]
    samples: tuple[FrictionSamples, ...]
    condition: float
    verdicts: tuple[str, ...]
    provenance: Provenance
    inertia: Mapping[str, float] = field(default_factory=dict)


_BINS = 24
_LOADS = (1.0 / 6.0, 0.5, 5.0 / 6.0)


@dataclass(frozen=True, slots=True)
class OperatingRange:
    """Velocities that one joint had while its friction was identified, each with a load that went with it.

    Attributes
    ----------
    joint : its name
    velocity : (m) ascending, none of them zero [rad/s]
    load : (m) torque through the joint [N m]; empty when it is not known
    """

    joint: str
    velocity: tuple[float, ...]
    load: tuple[float, ...]


def operating_range(samples: FrictionSamples) -> OperatingRange | None:
    """A few of the samples that were used, evenly over the velocities, at several loads each; None without any.

    Load and velocity of a machine are seldom independent: where friction is most of the torque the load has the sign of
    the velocity. So they are kept in pairs.
    """
    known = bool(np.isfinite(samples.load).any())
    where = samples.used & np.isfinite(samples.velocity) & (samples.velocity != 0.0)
    if known:
        where &= np.isfinite(samples.load)
    if not where.any():
        return None
    velocity, load = samples.velocity[where], samples.load[where]
    rows = _spread_rows(velocity, load if known else np.zeros(velocity.size))
    return OperatingRange(samples.joint, _short(velocity[rows]), _short(load[rows]) if known else ())


def _spread_rows(velocity: FloatArray, load: FloatArray) -> IntArray:
    """Rows of some samples in ascending velocity: in each bin of velocities those at some quantiles of the load."""
    edges = np.linspace(velocity.min(), velocity.max(), _BINS + 1)
    of_bin = np.clip(np.searchsorted(edges, velocity, side="right") - 1, 0, _BINS - 1)
    chosen: set[int] = set()
    for one in np.unique(of_bin):
        rows = np.flatnonzero(of_bin == one)
        rows = rows[np.lexsort((velocity[rows], load[rows]))]
        chosen.update(rows[[int(share * rows.size) for share in _LOADS]].tolist())
    kept = np.array(sorted(chosen))
    return np.asarray(kept[np.argsort(velocity[kept], kind="stable")])


def _short(values: FloatArray) -> tuple[float, ...]:
    """Six digits: more would fill the files for nothing."""
    return tuple(float(f"{value:.6g}") for value in values)
