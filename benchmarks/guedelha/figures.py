"""The figures of docs/results/guedelha.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.guedelha.recordings import Study
from friction_estimator.identification.result import Identification
from friction_estimator.laws import make_law
from friction_estimator.types import FloatArray

USED, LEFT_OUT = "#9ecae1", "#d9d9d9"
TRUTH = "black"
DEGREE = np.pi / 180.0


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def draw_laws(found: dict[str, Identification], truth: FloatArray, motor: str, path: Path) -> None:
    """Figure 10: friction over velocity with the fits of several laws; all of it, and near standstill."""
    plt = _pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
    first = next(iter(found.values()))
    row = first.friction.joint_names.index(motor)
    samples = first.samples[row]
    for axis, limit in zip(axes, (1.05 * np.degrees(np.abs(samples.velocity).max()), 6.0), strict=True):
        degrees = np.degrees(samples.velocity)
        for used, colour in ((False, LEFT_OUT), (True, USED)):
            at = (samples.used == used) & (np.abs(degrees) < limit)
            axis.plot(degrees[at], samples.friction[at], ".", ms=2, color=colour, rasterized=True)
        speed = np.concatenate((-np.geomspace(limit, 1e-3, 200), [np.nan], np.geomspace(1e-3, limit, 200)))
        for label, result in found.items():
            law = make_law(result.friction.law_names[row])
            values = result.friction.values[row : row + 1, : len(law.parameter_names)]
            axis.plot(speed, law.torque(values, speed * DEGREE), lw=1.2, label=label)
        axis.plot(
            speed, make_law("asymmetric_stribeck").torque(truth[None], speed * DEGREE), "--", color=TRUTH, lw=0.9,
            label="what went in",
        )  # fmt: skip
        axis.set_xlabel(f"velocity of {motor} [deg/s]")
    axes[0].set_ylabel("friction [N m]")
    axes[1].set_ylim(np.array([-1.15, 1.15]) * np.abs(truth).max(initial=0.0, where=[True, False, True, True]) * 2.0)
    axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def draw_coupling(motor_wise: Identification, joint_wise: Identification, path: Path) -> None:
    """The same recording joint by joint, where friction is no curve, and motor by motor, where it is."""
    plt = _pyplot()
    figure, axes = plt.subplots(2, 3, figsize=(9.0, 5.2), layout="constrained")
    for row, found in enumerate((joint_wise, motor_wise)):
        for axis, samples in zip(axes[row], found.samples, strict=True):
            at = samples.used
            degrees = np.degrees(samples.velocity[at])
            axis.plot(degrees, samples.friction[at], ".", ms=1.5, color=USED, rasterized=True)
            order = np.argsort(degrees)
            axis.plot(degrees[order], samples.fitted[at][order], color=TRUTH, lw=1.0)
            axis.set_title(samples.joint, fontsize=10)
        axes[row, 0].set_ylabel("friction [N m]")
    for axis in axes[1]:
        axis.set_xlabel("velocity [deg/s]")
    figure.savefig(path, dpi=90)
    plt.close(figure)


def draw_hysteresis(study: Study, found: Identification, path: Path) -> None:
    """Figure 11: joint torque, seen from the motor, over its PWM; and the same with friction and inertia taken away."""
    plt = _pyplot()
    names = study.mechanism.coupling.motor_names
    figure, axes = plt.subplots(1, len(names), figsize=(9.0, 3.2), sharey=True, layout="constrained")
    torque = study.mechanism.coupling.motor_torque(study.driven.inputs["joint_torque"])
    table = dict(zip(found.parameters.names, found.parameters.values, strict=True))
    for k, (axis, motor) in enumerate(zip(axes, names, strict=True)):
        pwm = study.driven.inputs["pwm"][:, k]
        at = np.abs(pwm) > 0.0
        axis.plot(pwm[at], torque[at, k], ".", ms=1.5, color=USED, rasterized=True)
        ends = np.array([pwm.min(), pwm.max()])
        line = table[f"{motor}/drive_offset"] + table[f"{motor}/drive_gain"] * ends
        axis.plot(ends, line, color=TRUTH, lw=1.0)
        axis.set_title(motor, fontsize=10)
        axis.set_xlabel("PWM [%]")
    axes[0].set_ylabel("torque behind the gearbox [N m]")
    figure.savefig(path, dpi=90)
    plt.close(figure)
