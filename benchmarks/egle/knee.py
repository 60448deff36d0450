"""Figures 7.2, 7.5 and 7.6: effect of filters and of wrong inertial parameters on the curve of the right knee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.signal import butter, savgol_filter, sosfiltfilt

from benchmarks.egle.walks import central, centred, column, friction_from, substeps, torque_weight
from benchmarks.shared import figures
from benchmarks.shared.walks import PERIOD, SimulatedRun
from benchmarks.shared.wrong_bodies import scaled_urdf
from friction_estimator.io.robot import Robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import FloatArray

KNEE = 9  # right
ORDER = 4
WINDOWS = (51, 101, 151)
CUTOFF, BUTTERWORTH_ORDER = 10.0, 6
SCALES = (0.9, 0.95, 1.0, 1.05, 1.1)
INERTIA_SCALES = (0.5, 0.75, 1.0, 1.25, 1.5)
_BINS = 24
_SHADES = ("#2166ac", "#67a9cf", "#7f7f7f", "#ef8a62", "#b2182b")


@dataclass(frozen=True, slots=True)
class KneeCurve:
    """Friction of the right knee in trimmed swings.

    Attributes
    ----------
    velocity, friction, target, acceleration : (K,) [rad/s], [N m], [N m], [rad/s^2]
    """

    velocity: FloatArray
    friction: FloatArray
    target: FloatArray
    acceleration: FloatArray

    def error(self, slow: float = 0.0, fast: float = np.inf) -> float:
        """RMS of friction minus target at speeds between these [N m]."""
        rows = (np.abs(self.velocity) >= slow) & (np.abs(self.velocity) < fast)
        return float(np.sqrt(np.mean((self.friction - self.target)[rows] ** 2)))

    @property
    def shift(self) -> float:
        """Mean of friction minus target [N m]."""
        return float(np.mean(self.friction - self.target))

    @property
    def separation(self) -> float:
        """Mean distance between the branches of rising and falling speed at equal velocity [N m]."""
        edges = np.quantile(self.velocity, np.linspace(0.0, 1.0, _BINS + 1)[1:-1])
        bins, rising = np.digitize(self.velocity, edges), self.velocity * self.acceleration > 0.0
        error = self.friction - self.target
        gaps = [
            abs(error[(bins == k) & rising].mean() - error[(bins == k) & ~rising].mean())
            for k in range(_BINS)
            if ((bins == k) & rising).any() and ((bins == k) & ~rising).any()
        ]
        return float(np.mean(gaps))

    @property
    def driving(self) -> float:
        """Share of the samples in which friction, the target's offset apart, drives the joint (eq. 7.9)."""
        return float(np.mean((self.friction - 1.0) * self.velocity < 0.0))


def filtered(robot: Robot, run: SimulatedRun, model: RobotModel) -> dict[str, KneeCurve]:
    """Figure 7.2: accelerations of several filters."""
    run = centred(run, torque_weight(substeps(robot, run)))
    position = column(run, "position")
    curves = {"central difference (eq. 6.2)": central(run)}
    for window in WINDOWS:
        smooth = savgol_filter(position, window, ORDER, deriv=2, delta=PERIOD, axis=0)
        curves[f"Savitzky-Golay, order {ORDER}, L = {window}"] = smooth
    low_pass = butter(BUTTERWORTH_ORDER, CUTOFF, fs=1.0 / PERIOD, output="sos")
    name = f"Butterworth, order {BUTTERWORTH_ORDER}, {CUTOFF:g} Hz, both ways"
    curves[name] = sosfiltfilt(low_pass, central(run), axis=0)
    return {name: _curve(robot, run, model, acceleration) for name, acceleration in curves.items()}


def scaled(robot: Robot, run: SimulatedRun, mass: float, inertia: float) -> KneeCurve:
    """Figures 7.5 and 7.6: the estimator's model has other masses or moments of inertia than the simulation."""
    run = centred(run, torque_weight(substeps(robot, run)))
    model = RobotModel(robot.config, scaled_urdf(robot.urdf_xml, mass, inertia))
    return _curve(robot, run, model, central(run))


def _curve(robot: Robot, run: SimulatedRun, model: RobotModel, acceleration: FloatArray) -> KneeCurve:
    friction = friction_from(robot, run, model, acceleration)[:, KNEE]
    rows = np.isfinite(friction)
    velocity = column(run, "velocity")
    slope = np.gradient(velocity[:, KNEE], PERIOD)
    return KneeCurve(velocity[rows, KNEE], friction[rows], run.friction[rows, KNEE], slope[rows])


def draw_filters(curves: Mapping[str, KneeCurve], path: Path) -> None:
    """Figure 7.2: a panel for each filter, the unfiltered differences aside."""
    panels = []
    for name, curve in list(curves.items())[1:]:
        panel = figures.Panel(name, "velocity of the right knee [rad/s]", "friction [N m]", legend=not panels)
        panel.dots(curve.velocity, curve.friction, figures.BLUE, "estimated")
        _draw_target(panel, curve)
        panels.append(panel)
    for axis in "xy":
        figures.share_limits(panels, axis)
    figures.draw(path, (panels[:2], panels[2:]), height=560.0)


def draw_inertias(studies: Mapping[str, Mapping[float, KneeCurve]], path: Path) -> None:
    """Figures 7.5 and 7.6: a panel for what is scaled, a colour for each factor."""
    panels = []
    for title, curves in studies.items():
        panel = figures.Panel(title, "velocity of the right knee [rad/s]", "friction [N m]", legend=True)
        for shade, (factor, curve) in zip(_SHADES, curves.items(), strict=True):
            panel.dots(curve.velocity, curve.friction, shade, f"{factor:g}", 1.2)
        _draw_target(panel, next(iter(curves.values())))
        panels.append(panel)
    for axis in "xy":
        figures.share_limits(panels, axis)
    figures.draw(path, [panels], height=380.0)


def _draw_target(panel: figures.Panel, curve: KneeCurve) -> None:
    order = np.argsort(curve.velocity)
    panel.line(curve.velocity[order], curve.target[order], figures.BLACK, "target", 1.0)
