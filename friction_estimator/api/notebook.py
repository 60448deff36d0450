"""Results as pandas frames and matplotlib figures, for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from friction_estimator.errors import ConfigError, choices

if TYPE_CHECKING:
    from friction_estimator.api.identify import IdentificationResult
    from friction_estimator.api.replay import ReplayResult

_QUANTITIES = (
    "position", "velocity", "effort", "friction", "sigma", "truth", "measured", "model", "external_torque", "coulomb",
    "viscous",
)  # fmt: skip
_ESTIMATE, _TRUTH = "#1f5fbf", "#c92a2a"
_POINTS = 3000
"""Points of a curve at most: a figure has fewer pixels."""


def replay_frame(result: ReplayResult) -> Any:
    """Frame of a replay, see :meth:`ReplayResult.to_frame`."""
    signals = {name: getattr(result, name) for name in _QUANTITIES}
    columns = {
        (name, joint): values[:, column]
        for name, values in signals.items()
        if values is not None
        for column, joint in enumerate(result.joint_names)
    }
    frame = pd.DataFrame(columns, index=pd.Index(result.time, name="time [s]"))
    frame.columns.names = ["quantity", "joint"]
    frame["contact_phase", ""] = result.contact_phase
    return frame


def replay_figure(result: ReplayResult, joints: Sequence[str] | None) -> Any:
    """Figure of a replay, see :meth:`ReplayResult.plot`."""
    names = _chosen(joints, result.joint_names)
    figure = Figure(figsize=(10.0, 1.9 * len(names)), layout="constrained")
    axes = figure.subplots(len(names), 2, squeeze=False, width_ratios=(2, 1), sharex="col")
    rows = np.unique(np.linspace(0, result.time.size - 1, _POINTS).astype(int))
    for (over_time, over_velocity), name in zip(axes, names, strict=True):
        joint = result.joint_names.index(name)
        time, friction, spread = result.time[rows], result.friction[rows, joint], 2.0 * result.sigma[rows, joint]
        over_time.fill_between(time, friction - spread, friction + spread, color=_ESTIMATE, alpha=0.25, linewidth=0)
        over_time.plot(time, friction, color=_ESTIMATE, linewidth=1.0, label="estimate, 2 sigma")
        over_velocity.plot(result.velocity[rows, joint], friction, ".", color=_ESTIMATE, markersize=2.0)
        shown = friction
        if result.truth is not None:
            shown = truth = result.truth[rows, joint]
            over_time.plot(time, truth, color=_TRUTH, linewidth=0.8, linestyle="--", label="truth")
            over_velocity.plot(result.velocity[rows, joint], truth, ".", color=_TRUTH, markersize=1.0)
        limit = 1.3 * max(float(np.nanmax(np.abs(shown))), 1e-3)  # sigma is large before the first motion
        over_time.set(ylim=(-limit, limit), ylabel=f"{name} [N m]")
        over_velocity.set(ylim=(-limit, limit))
    axes[0, 0].legend(loc="upper right", fontsize="small")
    axes[-1, 0].set_xlabel("time [s]")
    axes[-1, 1].set_xlabel("velocity [rad/s]")
    return figure


def identification_frame(result: IdentificationResult) -> Any:
    """Frame of an identification, see :meth:`IdentificationResult.to_frame`."""
    table = result.parameters
    columns = {"value": table.values, "sigma": table.sigma, "unit": table.units}
    return pd.DataFrame(columns, index=pd.Index(table.names, name="parameter"))


def identification_figure(result: IdentificationResult, joints: Sequence[str] | None) -> Any:
    """Figure of an identification, see :meth:`IdentificationResult.plot`."""
    names = _chosen(joints, result.joint_names)
    figure = Figure(figsize=(8.0, 2.6 * len(names)), layout="constrained")
    axes = figure.subplots(len(names), 1, squeeze=False)[:, 0]
    for axis, name in zip(axes, names, strict=True):
        samples = result.samples[result.joint_names.index(name)]
        rows = np.unique(np.linspace(0, samples.velocity.size - 1, _POINTS).astype(int))
        axis.plot(samples.velocity[rows], samples.friction[rows], ".", color="#9aa5b1", markersize=2, label="measured")
        axis.plot(samples.velocity[rows], samples.fitted[rows], ".", color=_ESTIMATE, markersize=2, label="law")
        axis.set(ylabel=f"{name} [N m]")
    axes[0].legend(loc="upper left", fontsize="small")
    axes[-1].set_xlabel("velocity [rad/s]")
    return figure


def _chosen(joints: Sequence[str] | None, known: tuple[str, ...]) -> tuple[str, ...]:
    names = known if joints is None else tuple(joints)
    unknown = set(names) - set(known)
    if unknown or not names:
        raise ConfigError(f"no joint {choices(unknown)} in the result; it has {choices(known)}")
    return names
