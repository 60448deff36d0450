"""What is compared: the stage as it is, and with one thing changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from friction_estimator.config import Config
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.kalman.smoother import KalmanSmoother
from friction_estimator.estimation.smoothing import SmoothedEstimator
from friction_estimator.types import JointFriction

LAG = 2.0
"""Of the smoother [s]."""
_SENSOR_ERRORS = ("force_bias", "moment_bias", "force_gain", "effort_gain", "specific_force_bias")
_EXACT_MODEL = {"kalman.link_mass_std": 0.0, "kalman.link_com_std": 0.0}
_DATASHEET = {**_EXACT_MODEL, "kalman.calibrate_sensors": False}
_PERFECT_SENSORS = {**_DATASHEET, **{f"sensors.{name}_std": 0.0 for name in _SENSOR_ERRORS}}


class _SmoothedVelocities(KalmanSmoother):
    """Only the velocities are smoothed: the filters of the limbs are not gone through backward."""

    def _smooth(self, until: float) -> list[JointFriction]:
        count = sum(passed.time <= until for passed in self._passed)
        ready, self._passed = self._passed[:count], self._passed[count:]
        for limb_filter in self.stage.bank.filters:
            if limb_filter.history is not None:
                limb_filter.history.clear()
        return [passed.friction for passed in ready]


def _smoothed(config: Config, urdf_xml: str) -> Estimator:
    return SmoothedEstimator(config, urdf_xml, LAG)


class _HalfSmoothedEstimator(SmoothedEstimator):
    _smoother_class = _SmoothedVelocities


def _smoothed_velocities(config: Config, urdf_xml: str) -> Estimator:
    return _HalfSmoothedEstimator(config, urdf_xml, LAG)


def _one_filter(jerk_density: float) -> Mapping[str, Any]:
    return {"kalman.jerk_densities": (jerk_density,), "kalman.acceleration_densities": ()}


@dataclass(frozen=True)
class Variant:
    """One row of the table.

    Attributes
    ----------
    title : of the row
    changes : parameters that differ from the robot's YAML and the datasheet
    make : from configuration and URDF to what is driven
    """

    title: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    make: Callable[[Config, str], Estimator] = Estimator


VARIANTS = (
    Variant("as it is"),
    Variant(f"smoother, {LAG:g} s ahead", make=_smoothed),
    Variant("only the velocities smoothed", make=_smoothed_velocities),
    Variant("no calibration states", _PERFECT_SENSORS),
    Variant("priors exactly those of the datasheet, masses right", _DATASHEET),
    Variant("no model error state", {"kalman.model_error_std": 0.0}),
    Variant("no motion models that keep the velocity", {"kalman.acceleration_densities": ()}),
    Variant("one motion filter, jerk 1e3", _one_filter(1e3)),
    Variant("one motion filter, jerk 1e5", _one_filter(1e5)),
    Variant("velocities nearly as read (one filter, jerk 1e12)", _one_filter(1e12)),
    Variant("law six_slope", {"identifier.law": "six_slope"}),
    Variant("law three_slope", {"identifier.law": "three_slope"}),
    Variant("law tanh_load", {"identifier.law": "tanh_load"}),
    Variant("law coulomb_viscous", {"identifier.law": "coulomb_viscous"}),
    Variant("window 5 ms", {"kalman.window": 0.005}),
    Variant("window 20 ms", {"kalman.window": 0.02}),
    Variant("impacts are not noticed", {"kalman.innovation_gate": 1e6}),
    Variant("changes of friction are not noticed", {"kalman.change_ratio": 0.0}),
)
