"""Where the friction of a joint was seen: there a simpler law that stands in for it must agree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.identification.result import FrictionSamples
from friction_estimator.types import FloatArray, IntArray

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
