"""Friction in the four quadrants of velocity and load: where the joint drives its load, and where it is driven."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from friction_estimator.identification.result import FrictionSamples, Identification
from friction_estimator.laws import FrictionLaw, make_law
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.report.theme import ESTIMATE, MODELLED
from friction_estimator.types import FloatArray


@dataclass(frozen=True, slots=True)
class QuadrantStyle:
    """How a quadrant is named and drawn."""

    name: str
    color: str
    symbol: str


QUADRANTS = {
    (1, 1): QuadrantStyle("drives, forward", ESTIMATE, "circle"),
    (-1, -1): QuadrantStyle("drives, backward", ESTIMATE, "circle-open"),
    (1, -1): QuadrantStyle("driven, forward", MODELLED, "circle"),
    (-1, 1): QuadrantStyle("driven, backward", MODELLED, "circle-open"),
}
"""By the signs of velocity and load (Hamon et al. 2010, figure 2)."""
_CURVE = 60


@dataclass(frozen=True, slots=True)
class QuadrantFit:
    """Used samples of one joint in one quadrant, and the law there.

    Attributes
    ----------
    joint : its name
    quadrant : signs of velocity and load
    speed : median of |velocity| [rad/s]
    load : (K,) [N m]
    friction : (K,) moved along the law to the median speed [N m]
    residual : (K,) friction minus law [N m]
    curve_load, curve : (C,) the law at the median speed [N m]
    """

    joint: str
    quadrant: tuple[int, int]
    speed: float
    load: FloatArray
    friction: FloatArray
    residual: FloatArray
    curve_load: FloatArray
    curve: FloatArray


def joint_quadrants(identification: Identification) -> list[tuple[QuadrantFit, ...]]:
    """Fits of every joint, empty where its law does not depend on the load."""
    laws = load_laws(identification.friction)
    return [
        tuple(_fits(samples, *laws[samples.joint])) if samples.joint in laws else ()
        for samples in identification.samples
    ]


def load_laws(friction: IdentifiedParameters) -> dict[str, tuple[FrictionLaw, FloatArray]]:
    """Law and parameters (p,) of the joints whose friction depends on the load."""
    laws = {joint: make_law(name) for joint, name in zip(friction.joint_names, friction.law_names, strict=True)}
    return {
        joint: (law, friction.values[row, : len(law.parameter_names)])
        for row, (joint, law) in enumerate(laws.items())
        if law.needs_load
    }


def _fits(samples: FrictionSamples, law: FrictionLaw, parameters: FloatArray) -> Iterator[QuadrantFit]:
    signs = np.stack((np.sign(samples.velocity), np.sign(samples.load)))
    for quadrant in QUADRANTS:
        where = samples.used & (signs[0] == quadrant[0]) & (signs[1] == quadrant[1])
        if not where.any():
            continue
        load, residual = samples.load[where], samples.friction[where] - samples.fitted[where]
        speed = float(np.median(np.abs(samples.velocity[where])))
        curve_load = np.linspace(load.min(), load.max(), _CURVE)
        yield QuadrantFit(
            joint=samples.joint,
            quadrant=quadrant,
            speed=speed,
            load=load,
            friction=_torque(law, parameters, quadrant[0] * speed, load) + residual,
            residual=residual,
            curve_load=curve_load,
            curve=_torque(law, parameters, quadrant[0] * speed, curve_load),
        )


def _torque(law: FrictionLaw, parameters: FloatArray, velocity: float, load: FloatArray) -> FloatArray:
    rows = np.broadcast_to(parameters, (load.size, parameters.size))
    return law.torque(rows, np.full(load.size, velocity), load)
