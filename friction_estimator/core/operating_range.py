"""Where the friction of a joint was seen: there a simpler law that stands in for it must agree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.core.identification import FrictionSamples

LOAD_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Share of the samples whose load lies below each number of :attr:`OperatingRange.load`."""


@dataclass(frozen=True, slots=True)
class OperatingRange:
    """Velocities and loads that one joint had while its friction was identified.

    Attributes
    ----------
    joint : its name
    lowest, highest : velocities between which the fit used samples, with sign [rad/s]
    slowest : smallest speed that the fit used: below it the data says nothing [rad/s]
    load : quantiles of the torque through the joint, see :data:`LOAD_QUANTILES` [N m]; empty when it is not known
    """

    joint: str
    lowest: float
    highest: float
    slowest: float
    load: tuple[float, ...]


def operating_range(samples: FrictionSamples) -> OperatingRange | None:
    """Range of the samples that were used; None when none was."""
    velocity = samples.velocity[samples.used & np.isfinite(samples.velocity)]
    if not velocity.size:
        return None
    load = samples.load[samples.used & np.isfinite(samples.load)]
    return OperatingRange(
        joint=samples.joint,
        lowest=float(velocity.min()),
        highest=float(velocity.max()),
        slowest=float(np.abs(velocity).min()),
        load=tuple(np.quantile(load, LOAD_QUANTILES).tolist()) if load.size else (),
    )
