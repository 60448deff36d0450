"""Figures 6.1-6.3 of Egle 2021, drawn from our robot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.constrained.rigid_walk import PERIOD, RigidWalk
from friction_estimator.types import BoolArray, FloatArray

TARGET, CENTRAL, BACKWARD = "black", "#4c72b0", "#c44e52"
LEG_JOINTS = ("hip yaw", "hip roll", "hip pitch", "knee", "ankle pitch", "ankle roll")


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def draw_supports(walk: RigidWalk, friction: FloatArray, joint: int, path: Path) -> None:
    """Figure 6.1: friction of one joint only, estimated in single and in double support."""
    plt = _pyplot()
    figure, axes = plt.subplots(2, 1, figsize=(9.0, 4.8), sharex=True, layout="constrained")
    time = PERIOD * np.arange(len(friction))
    for axis in axes:
        axis.fill_between(
            time, 0, 1, where=walk.contact.all(axis=1), color="0.9", lw=0, transform=axis.get_xaxis_transform()
        )
    axes[0].plot(time, friction[:, joint], color=BACKWARD, lw=1.2, label="estimated")
    axes[0].plot(time, walk.friction[:, joint], color=TARGET, lw=0.8, ls="--", label="target")
    axes[0].set_ylabel("right knee [N m]")
    figure.legend(frameon=False, ncols=2, loc="outside upper center")
    others = np.delete(np.arange(friction.shape[1]), joint)
    axes[1].plot(time, friction[:, others], lw=0.8)
    axes[1].set_ylabel("the other 11 joints [N m]")
    axes[1].set_xlabel("time [s]; grey: double support")
    figure.savefig(path, dpi=90)
    plt.close(figure)


def draw_differences(walk: RigidWalk, schemes: dict[str, FloatArray], joint: int, path: Path) -> None:
    """Figure 6.2: the same knee in swing and in stance, by difference scheme, and the errors."""
    plt = _pyplot()
    figure, axes = plt.subplots(2, 2, figsize=(9.0, 5.2), sharex="col", sharey="row", layout="constrained")
    time = PERIOD * np.arange(len(walk.friction))
    for column, (label, rows) in enumerate(_phases(walk)):
        axes[0, column].set_title(label, fontsize=10)
        axes[0, column].plot(time[rows], walk.friction[rows, joint], color=TARGET, lw=1.6, label="target")
        for name, colour in (("central", CENTRAL), ("backward", BACKWARD)):
            error = schemes[name][rows, joint] - walk.friction[rows, joint]
            axes[0, column].plot(time[rows], schemes[name][rows, joint], color=colour, lw=0.9, label=name)
            axes[1, column].plot(time[rows], 1e3 * error, color=colour, lw=0.9)
        axes[1, column].set_xlabel("time [s]")
    axes[0, 0].set_ylabel("right knee [N m]")
    axes[1, 0].set_ylabel("error [mN m]")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, ncols=3, loc="outside upper center")
    figure.savefig(path, dpi=90)
    plt.close(figure)


def draw_over_velocity(walk: RigidWalk, schemes: dict[str, FloatArray], path: Path) -> None:
    """Figure 6.3 as errors: knee and ankle pitch of the right leg over their velocity, swing and stance."""
    plt = _pyplot()
    figure, axes = plt.subplots(2, 2, figsize=(9.0, 5.2), sharex="row", sharey="row", layout="constrained")
    velocity = walk.column("velocity")
    for row, joint in enumerate((9, 10)):
        for column, stands in enumerate((False, True)):
            rows = single_support(walk, right=stands)
            axis = axes[row, column]
            for name, colour in (("backward", BACKWARD), ("central", CENTRAL)):
                error = schemes[name][rows, joint] - walk.friction[rows, joint]
                axis.plot(velocity[rows, joint], 1e3 * error, ".", ms=1.5, color=colour, label=name, rasterized=True)
            axis.set_xlabel(f"velocity of the {LEG_JOINTS[joint - 6]} [rad/s]")
        axes[row, 0].set_ylabel(f"{LEG_JOINTS[joint - 6]}: error [mN m]")
    axes[0, 0].set_title("right leg swings", fontsize=10)
    axes[0, 1].set_title("right leg stands", fontsize=10)
    axes[0, 0].legend(frameon=False, markerscale=5)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def single_support(walk: RigidWalk, right: bool) -> BoolArray:
    """Rows (m,) where only that foot stands, without the samples whose differences reach over a change."""
    stands = walk.contact[:, 1] if right else walk.contact[:, 0]
    alone = stands & (walk.contact.sum(axis=1) == 1)
    return alone & np.roll(alone, 1) & np.roll(alone, -1)


def _phases(walk: RigidWalk) -> list[tuple[str, slice]]:
    """The second swing of the right leg, and the stance before it."""
    result = []
    for label, right in (("right leg swings", False), ("right leg stands", True)):
        rows = np.flatnonzero(single_support(walk, right))
        starts = rows[np.flatnonzero(np.diff(rows, prepend=-9) > 1)]
        last = rows[rows < (starts[2] if len(starts) > 2 else len(walk.friction))][-1]
        result.append((label, slice(int(starts[1]), int(last) + 1)))
    return result
