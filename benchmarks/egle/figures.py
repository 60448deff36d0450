"""Figures 7.2, 7.5 and 7.6 of Egle 2021, drawn from our robot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.constrained.figures import CENTRAL, TARGET
from benchmarks.egle.studies import KneeCurve

_SHADES = ("#2166ac", "#67a9cf", "#7f7f7f", "#ef8a62", "#b2182b")


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def draw_filters(curves: Mapping[str, KneeCurve], path: Path) -> None:
    """Figure 7.2: a panel for each filter, the unfiltered differences aside."""
    plt = _pyplot()
    shown = list(curves.items())[1:]
    figure, axes = plt.subplots(2, 2, figsize=(9.0, 5.6), sharex=True, sharey=True, layout="constrained")
    for axis, (name, curve) in zip(axes.flat, shown, strict=True):
        axis.plot(curve.velocity, curve.friction, ".", ms=1.5, color=CENTRAL, label="estimated", rasterized=True)
        _draw_target(axis, curve)
        axis.set_title(name, fontsize=10)
    for axis in axes[1]:
        axis.set_xlabel("velocity of the right knee [rad/s]")
    for axis in axes[:, 0]:
        axis.set_ylabel("friction [N m]")
    axes[0, 0].legend(frameon=False, markerscale=5, loc="lower right")
    figure.savefig(path, dpi=90)
    plt.close(figure)


def draw_inertias(studies: Mapping[str, Mapping[float, KneeCurve]], path: Path) -> None:
    """Figures 7.5 and 7.6: a panel for what is scaled, a colour for each factor."""
    plt = _pyplot()
    figure, axes = plt.subplots(1, len(studies), figsize=(9.0, 3.8), sharex=True, sharey=True, layout="constrained")
    for axis, (title, curves) in zip(axes, studies.items(), strict=True):
        for shade, (factor, curve) in zip(_SHADES, curves.items(), strict=True):
            axis.plot(curve.velocity, curve.friction, ".", ms=1.2, color=shade, label=f"{factor:g}", rasterized=True)
        _draw_target(axis, next(iter(curves.values())))
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("velocity of the right knee [rad/s]")
        axis.legend(frameon=False, markerscale=6, loc="lower right", fontsize=8)
    axes[0].set_ylabel("friction [N m]")
    figure.savefig(path, dpi=90)
    plt.close(figure)


def _draw_target(axis: Any, curve: KneeCurve) -> None:
    order = np.argsort(curve.velocity)
    axis.plot(curve.velocity[order], curve.target[order], color=TARGET, lw=1.0, label="target")
