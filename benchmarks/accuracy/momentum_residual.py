"""The momentum balance of each period alone: friction with all the noise of the sensors."""

from __future__ import annotations

import numpy as np

from benchmarks.accuracy.exact_inputs import bare_inputs
from benchmarks.accuracy.simulated_run import SimulatedRun
from friction_estimator.estimation.observers.momentum import MomentumObserver
from friction_estimator.io.robot import load_robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import FloatArray

_UNFILTERED = {"observer": "momentum", "momentum.gain": 1e4}  # rad/s: exp(-gain * 1 ms) = 5e-5 remains of a sample


def momentum_residual(robot_name: str, run: SimulatedRun, model: RobotModel) -> FloatArray:
    """Momentum residual without a low-pass, (m, n) [N m]; zero at the first sample."""
    observer = MomentumObserver(load_robot(robot_name, _UNFILTERED).config, model)
    frictions = [observer.step(*inputs).friction for inputs in bare_inputs(run, model)]
    return np.nan_to_num(np.array(frictions))
