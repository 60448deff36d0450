"""Errors of the constrained-dynamics observer on the simulated walk, and on the rigid one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.constrained.rigid_walk import RigidWalk
from benchmarks.shared.estimates import configure, drive, estimate
from benchmarks.shared.walks import PERIOD, SimulatedRun, true_inputs
from friction_estimator.baselines.constrained import ConstrainedFriction
from friction_estimator.config import Config
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.observers import make_observer
from friction_estimator.io.robot import Robot
from friction_estimator.metrics import root_mean_square
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import BoolArray, FloatArray

LEG = 6
SETTLED = 2.0
"""Nothing counts before [s]: the attitude filter starts."""
ALL = {"observer": "constrained", "constrained.max_sigma": 1e9, "identifier.phases": "all"}


@dataclass(frozen=True)
class Errors:
    """Per joint of a leg, both legs as one, where the observer measured.

    Attributes
    ----------
    stance, swing : (6,) root mean square error at the instant that the estimate is about [N m]
    late_stance, late_swing : (6,) the same against the friction of the instant when it is published [N m]
    share : part of single support that is measured
    nees : (2,) mean of (error / sigma)^2 at the instant itself, stance and swing
    """

    stance: FloatArray
    swing: FloatArray
    late_stance: FloatArray
    late_swing: FloatArray
    share: float
    nees: FloatArray


def measured_errors(robot: Robot, run: SimulatedRun, noise: str, changes: Mapping[str, Any]) -> Errors:
    """The whole estimator on the sensors of a walk."""
    config = configure("suralp", noise, {**ALL, **changes})
    estimates = drive(Estimator(config, robot.urdf_xml), run.samples)
    friction, sigma = (np.array([getattr(e, name) for e in estimates]) for name in ("friction", "sigma"))
    return _errors(run, friction, sigma, np.array([e.measured for e in estimates]), _delay(config))


def published_errors(robot: Robot, run: SimulatedRun, noise: str, observer: str) -> tuple[FloatArray, FloatArray]:
    """Another observer on the same walk: stance and swing, (6,) each."""
    track = estimate(configure("suralp", noise, {"observer": observer}), robot.urdf_xml, run)
    late = (run.time >= SETTLED)[:, None]
    stance, swing = (_rms(track.friction - run.friction, late & where) for where in (run.stance, ~run.stance))
    return stance, swing


def errors_with_true_states(robot: Robot, run: SimulatedRun, changes: Mapping[str, Any]) -> Errors:
    """The observer alone, with the true attitude, angular velocity and contact."""
    config = configure("suralp", "clean", {**ALL, **changes})
    model = RobotModel(config, robot.urdf_xml)
    observer = make_observer(config, model)
    measured = [observer.step(*inputs) for inputs in true_inputs(run, model)]
    measured.append(measured[-1])
    friction, sigma, available = (np.array([getattr(m, name) for m in measured]) for name in _FIELDS)
    return _errors(run, friction, sigma, available, _delay(config))


_FIELDS = ("friction", "sigma", "available")


def _delay(config: Config) -> int:
    """Samples between the instant and its estimate."""
    constrained = config.constrained
    after = constrained.window // 2 if constrained.differences == "central" else 0
    return max(after, round(constrained.trim_end / PERIOD))


def _errors(run: SimulatedRun, friction: FloatArray, sigma: FloatArray, measured: BoolArray, delay: int) -> Errors:
    then = np.roll(run.friction, delay, axis=0)
    measured = measured & (run.time >= SETTLED)[:, None]
    single = np.array([phase.contact.sum() == 1 for phase in run.phases]) & (run.time >= SETTLED)
    values = []
    for truth in (then, run.friction):
        for where in (run.stance, ~run.stance):
            values.append(_rms(friction - truth, measured & where))
    ratio = ((friction - then) / np.where(sigma > 0.0, sigma, np.nan)) ** 2
    nees = [np.nanmean(np.where(measured & where, ratio, np.nan)) for where in (run.stance, ~run.stance)]
    share = float((measured.any(axis=1) & single).sum() / single.sum())
    return Errors(values[0], values[1], values[2], values[3], share, np.array(nees))


def _rms(error: FloatArray, where: BoolArray) -> FloatArray:
    return root_mean_square(np.where(where, error, np.nan).reshape(-1, LEG))


SCHEMES = {"exact": "exact acceleration", "central": "central difference, eq. 6.2", "backward": "backward, eq. 6.3"}


def rigid_friction(robot: Robot, walk: RigidWalk, scheme: str) -> FloatArray:
    """Friction of all joints at every instant (m, n): eq. 5.13 in single support, eq. 6.1 in double support."""
    friction = ConstrainedFriction(robot.config, RobotModel(robot.config, robot.urdf_xml))
    velocity = walk.column("velocity")
    acceleration = walk.acceleration
    if scheme == "central":
        acceleration = np.gradient(velocity, PERIOD, axis=0)
    elif scheme == "backward":
        acceleration = np.diff(velocity, axis=0, prepend=velocity[:1]) / PERIOD
    return np.array([friction.solve(i, a).friction for i, a in zip(walk.instants, acceleration, strict=True)])
