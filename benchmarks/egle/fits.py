"""Tables 6.1 and 6.2 of Egle 2021, and the fit of section 6.2.2 through the package's own method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.egle.walks import LAW, TARGETS, column
from benchmarks.shared.walks import LEG_JOINTS, PERIOD, SimulatedRun
from friction_estimator.identification.curves.fit import CurveOptions
from friction_estimator.identification.curves.friction_curve import FrictionCurveOptions, identify_friction_curve
from friction_estimator.identification.recording.motion import Motion
from friction_estimator.identification.result import Identification
from friction_estimator.laws.identified import parameters_sigma
from friction_estimator.types import BoolArray, FloatArray

SYMBOLS = ("F_v", "F_c", "S", "v_s", "tau_os", "a")


def _leg(**rows: tuple[float, ...]) -> FloatArray:
    return np.array([rows[name.replace(" ", "_")] for name in LEG_JOINTS])


STRAIGHT = np.vstack(
    (
        _leg(  # joints 7-12: left
            hip_yaw=(100.0, 9.79, 44.40, 10.05, 0.51, 1.77),
            hip_roll=(1125.90, 43.73, 392.30, 22.15, 0.46, 3.09),
            hip_pitch=(6.40, 1.08, 0.60, 7.55, 0.67, 5.81),
            knee=(0.80, 0.32, 1.30, 2.30, 0.09, 3.21),
            ankle_pitch=(0.00, 0.10, 0.10, 0.65, 0.10, 1.51),
            ankle_roll=(34.50, 22.00, 94.60, 56.80, 0.70, 6.42),
        ),
        _leg(  # joints 1-6: right
            hip_yaw=(15.40, 1.29, 5.30, 1.65, 0.40, 1.33),
            hip_roll=(971.75, 56.28, 680.15, 0.30, 0.37, 3.44),
            hip_pitch=(2.50, 0.37, 0.40, 0.60, 0.35, 1.57),
            knee=(0.50, 0.17, 0.65, 1.70, 0.03, 2.21),
            ankle_pitch=(0.00, 0.10, 0.05, 0.85, 0.25, 1.06),
            ankle_roll=(5.95, 3.50, 17.55, 1.70, 0.50, 0.53),
        ),
    )
)
"""Table 6.1, (12, 6) errors [%]: left leg, then right leg, hip yaw to ankle roll."""

SIDEWAYS_TOO = np.vstack(
    (
        _leg(
            hip_yaw=(9.65, 1.13, 7.00, 1.75, 0.24, 0.02),
            hip_roll=(17.70, 1.83, 11.95, 0.40, 0.41, 0.76),
            hip_pitch=(1.50, 0.37, 0.15, 6.20, 0.13, 2.50),
            knee=(0.10, 0.11, 1.80, 2.15, 0.04, 8.60),
            ankle_pitch=(0.10, 0.00, 0.50, 1.15, 0.20, 1.19),
            ankle_roll=(0.50, 0.60, 3.00, 2.70, 0.40, 0.75),
        ),
        _leg(
            hip_yaw=(9.65, 1.32, 6.50, 4.70, 0.32, 0.86),
            hip_roll=(17.25, 1.35, 5.85, 2.15, 0.31, 1.02),
            hip_pitch=(0.75, 0.16, 1.40, 1.75, 0.20, 1.11),
            knee=(0.05, 0.03, 2.45, 1.60, 0.04, 7.91),
            ankle_pitch=(0.10, 0.15, 1.30, 0.45, 0.25, 1.39),
            ankle_roll=(0.45, 0.50, 2.00, 3.05, 0.50, 0.49),
        ),
    )
)
"""Table 6.2, as :data:`STRAIGHT`."""


PLAIN_LEAST_SQUARES = FrictionCurveOptions(LAW, fit=CurveOptions(robust=False), delay=0.0, dead_zone=0.0)
"""Eq. 6.4: plain least squares over all samples."""


@dataclass(frozen=True, slots=True)
class FittedLegs:
    """Twelve joints against their targets.

    Attributes
    ----------
    error : (12, 6) [%]
    sigma : (12, 6) standard deviation by the fit itself [%]
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
    result = identify_friction_curve(motions, PLAIN_LEAST_SQUARES)
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
