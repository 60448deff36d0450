"""The page docs/results/compensation.md and its figure, from the walks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.accuracy.markdown import number, row_of, table
from benchmarks.compensation.closed_loop import NOISE, Walk
from benchmarks.compensation.controllers import DAMPED, OURS, PRINTED
from benchmarks.compensation.methods import NONE
from friction_estimator.types import FloatArray

Walks = Mapping[tuple[str, str], Sequence[Walk]]
"""Walks by controller and method, in the order of the step lengths."""

_INTRODUCTION = f"""\
# Compensation: the walk with and without

Hashlamon & Erbatur 2014, §7.4: with `friction_compensation` added to the motor command, the centre of mass (CoM) stays
nearer to where the plan wants it. RSE is eq. 70, `sqrt((c_des - c)^2)` of each axis, averaged over a walk that stops
at 10.1 s, and over walks with different step lengths; **gain** is by how much it shrinks. Sensors `{NOISE}`; every
estimator starts without any knowledge, as in the paper; the torque made from a sample acts one millisecond later.

- *CoM in the world* is the printed measure. No plan is corrected for where a foot has really settled, so this error
  adds up from step to step: chance, to a large part, even in the mean over walks.
- *CoM over the feet* is the same error relative to the feet that carry the robot: what the joints are to blame for.
- *joints* is the mean error of all joint positions.
- `measured` and `desired` after an observer are values of `compensation.velocity`; `exact law` is the injected
  friction at the measured velocity; eq. 69 passes the friction estimate of `fbse` through a low-pass of 1 to 4 rad/s
  ([why](../design/equations.md)).
"""
_FIGURE = "After Figure 8 of the paper: one of these walks with our controller, without and with compensation."
_CONTROLLERS = {
    PRINTED: """\
Eq. 68 with the printed gains, and the feed-forward torque of our plan: without it this walk falls after 3 s. A k_d of
1 N m s/rad is no more than the friction itself takes away (0.9 N m s/rad and the Coulomb part, Table I): this robot
lives off its friction, sways with it and falls without. Cancelled in full, even by the exact law, it is missed; that of
`fbse`, of which less is used because its sigma is larger, does better here than better ones.""",
    DAMPED: """\
The printed stiffness with a k_d that holds the robot without friction, too. It still sways: without any friction its
errors shrink by 15 to 30 %, and what the rows differ in beyond that is sway. It grows from nothing in some
walks and not in others: two versions of `kalman, desired` whose torques differ by 2 % took 27 and 83 % off the error of
the joints.""",
    OURS: """\
The controller of the [simulation](../design/simulation.md): stiff, well damped, with inverse dynamics. Friction is
what is left to disturb it.""",
}


def page(walks: Walks, command: str, figure: str) -> str:
    """Everything as Markdown."""
    lines = [*_INTRODUCTION.splitlines(), "", f"Made by `{command}`.", "", f"![{_FIGURE}]({figure})", "", _FIGURE, ""]
    for controller in dict.fromkeys(controller for controller, _ in walks):
        lines += [f"## Controller: {controller}", "", *_CONTROLLERS[controller].splitlines(), ""]
        lines += controller_table({method: runs for (name, method), runs in walks.items() if name == controller})
    return "\n".join(lines)


def controller_table(methods: Mapping[str, Sequence[Walk]]) -> list[str]:
    """One row a method; the gains are against the row without compensation."""
    heading = ("compensation", "CoM in the world, RSE x y [mm]", "gain x y [%]", "CoM over the feet [mm]", "gain [%]")
    before = summary(methods[NONE])
    rows = []
    for method, runs in methods.items():
        fallen = sum(bool(run.fell) for run in runs)
        if fallen:
            rows.append((method, f"fell in {fallen} of {len(runs)} walks", "", "", "", ""))
            continue
        now = summary(runs)
        gains = 100.0 * (1.0 - now / before)
        cells = [
            method,
            row_of(1e3 * now[:2], 3),
            row_of(gains[:2], 0),
            row_of(1e3 * now[2:4], 3),
            row_of(gains[2:4], 0),
        ]
        rows.append((*cells, number(gains[4], 0)))
    return table((*heading, "joints: gain [%]"), rows)


def summary(runs: Sequence[Walk]) -> FloatArray:
    """Mean over walks of: RSE x, y in the world, error x, y over the feet [m], error of the joints [rad]; (5,)."""
    each = [
        np.concatenate(
            [run.root_square_error.mean(axis=0), np.abs(run.over_feet).mean(axis=0), [np.abs(run.joints).mean()]]
        )
        for run in runs
    ]
    return np.asarray(np.mean(each, axis=0))


def draw(before: Walk, after: Walk, label: str, path: Path) -> None:
    """Figure 8: trajectory of the centre of mass and its root square error, with and without compensation."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(3, 2, figsize=(10.0, 6.6), sharex=True, layout="constrained")
    for column, axis in enumerate("xy"):
        top, middle, bottom = axes[:, column]
        top.plot(before.time, before.wanted[:, column], color="black", lw=1.0, label="desired")
        for run, name, colour in ((before, "without", "#c44e52"), (after, label, "#4c72b0")):
            top.plot(run.time, run.actual[:, column], color=colour, lw=0.8, label=name)
            middle.plot(run.time, 1e3 * run.root_square_error[:, column], color=colour, lw=0.8)
            bottom.plot(run.time, 1e3 * np.abs(run.over_feet[:, column]), color=colour, lw=0.8)
        top.set_ylabel(f"$c_{axis}$ [m]")
        middle.set_ylabel(f"RSE in $c_{axis}$ [mm]")
        bottom.set_ylabel("over the feet [mm]")
        bottom.set_xlabel("time [s]")
    axes[0, 0].legend(frameon=False)
    figure.savefig(path, dpi=90)
    plt.close(figure)
