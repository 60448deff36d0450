"""The fit of section 6.2.2 to friction from several walks, through the package's own method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.accuracy.simulated_run import PERIOD, SimulatedRun
from benchmarks.egle.printed import LAW, TARGETS
from benchmarks.egle.walks import column
from friction_estimator.identification.curve_fit import CurveOptions
from friction_estimator.identification.friction_curve import FrictionCurveOptions, identify_friction_curve
from friction_estimator.identification.joint_log import Motion
from friction_estimator.identification.result import Identification
from friction_estimator.laws.joint_laws import parameters_sigma
from friction_estimator.types import BoolArray, FloatArray

PRINTED_LOSS = FrictionCurveOptions(fit=CurveOptions(robust=False), delay=0.0)
"""Eq. 6.4: plain least squares."""


@dataclass(frozen=True, slots=True)
class FittedLegs:
    """Twelve joints against their targets.

    Attributes
    ----------
    error : (12, 6) [%]
    sigma : (12, 6) what the fit itself believes [%]
    identifiable : (12, 6) False where the data does not show the parameter
    result : the whole identification
    """

    error: FloatArray
    sigma: FloatArray
    identifiable: BoolArray
    result: Identification


def fit_legs(runs: Sequence[SimulatedRun], frictions: Sequence[FloatArray], names: tuple[str, ...]) -> FittedLegs:
    """Fit eq. 3.5 to the friction (m, n) of each run, all runs together."""
    motions = [_motion(run, friction, names) for run, friction in zip(runs, frictions, strict=True)]
    result = identify_friction_curve(motions, LAW, PRINTED_LOSS)
    targets = np.tile(TARGETS, (2, 1))
    error = 100.0 * np.abs(result.friction.values / targets - 1.0)
    sigma = 100.0 * parameters_sigma(result.friction) / targets
    assert result.parameters.identifiable is not None
    return FittedLegs(error, sigma, result.parameters.identifiable.reshape(error.shape), result)


def _motion(run: SimulatedRun, friction: FloatArray, names: tuple[str, ...]) -> Motion:
    """Exact signals, a segment for every second."""
    velocity = column(run, "velocity")
    return Motion(
        name=run.scenario.name, joint_names=names, period=PERIOD, time=run.time, position=column(run, "position"),
        velocity=velocity, acceleration=np.zeros_like(velocity), effort=None, inputs={"friction": friction},
        segment=run.time.astype(np.intp), payload=None, digest="", choices=(),
    )  # fmt: skip
