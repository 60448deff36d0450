"""Claims about the torque of wrong links over a window: in time where readings are exact, smooth where they are not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from friction_estimator.config import KalmanConfig, SensorNoise, config_from_parameters
from friction_estimator.estimation.kalman.window_dynamics import WindowDynamics
from friction_estimator.estimation.kalman.windows import Window, WindowBuffer
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import Attitude, SensorFrame
from test.estimation.kalman.sampling import add
from test.estimation.kalman.test_link_errors import ARM

PERIOD, LATE = 1e-3, 0.02
NONE = np.zeros(2)


def motion(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, velocities, accelerations: two joints that swing at 3 and 4 Hz."""
    rate, size = 2.0 * np.pi * np.array([3.0, 4.0]), np.array([0.3, 0.2])
    return size * np.sin(rate * t), size * rate * np.cos(rate * t), -size * rate**2 * np.sin(rate * t)


def windows(noise: SensorNoise) -> Iterator[Window]:
    """Two seconds of readings with that noise; the acceleration of the filters is exact, and late."""
    rng, buffer = np.random.default_rng(0), WindowBuffer(KalmanConfig(), noise, held=True)
    for k in range(2000):
        t = k * PERIOD
        position, velocity, _ = motion(t)
        reading = (
            position + rng.normal(size=2) * noise.position_std,
            velocity + rng.normal(size=2) * noise.velocity_std,
        )
        frame = SensorFrame(
            0, PERIOD, *reading, NONE, *np.zeros((2, 3)), np.zeros((0, 6)), True, np.zeros(0, bool), np.ones(1)
        )
        attitude = Attitude(np.eye(3), *np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((3, 3)))
        window = add(buffer, t, frame, attitude, motion(t - LATE)[2], np.zeros((2, 1)), NONE, np.zeros(2, bool))
        if window is not None:
            yield window


def columns_and_truths(noise: SensorNoise, late: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Mean columns of each window of the second half, and those of the exact motion with late accelerations."""
    config = config_from_parameters({"robot.fixed_base": True})
    robot = RobotModel(config, ARM)
    dynamics, found, truths = WindowDynamics(config, robot, JointLaws(("coulomb_viscous",) * 2)), [], []
    for window in windows(noise):
        for part in dynamics.parts(window):
            part()
        found.append(dynamics.error_columns.link_errors.copy())
        inside = []
        for t in np.linspace(window.time - window.duration, window.time, 5):
            position, velocity, _ = motion(t)
            at = robot.dynamics(position, velocity, np.zeros(3), np.zeros(3))
            inside.append(robot.link_error_columns(at, np.concatenate((np.zeros(3), motion(t - late)[2]))))
        truths.append(np.mean(inside, axis=0))
    return np.array(found[100:]), np.array(truths[100:])


def relative_error(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.sqrt(((found - truth) ** 2).mean() / (truth**2).mean()))


@pytest.mark.parametrize("cutoff", [0.0, 60.0], ids=["velocities", "positions only"])
def test_exact_readings_put_a_late_acceleration_right(cutoff):
    exact = SensorNoise(position_std=1e-8, velocity_std=1e-6, velocity_cutoff=cutoff)
    found, truth = columns_and_truths(exact)
    assert relative_error(found, truth) < 0.01
    assert relative_error(columns_and_truths(exact, LATE)[1], truth) > 0.2


def test_noise_of_the_readings_stays_out_of_the_columns():
    """Readings that say nothing of the acceleration leave that of the filters alone."""
    found, late = columns_and_truths(SensorNoise(position_std=1e-3, velocity_std=0.3), LATE)
    assert relative_error(found, late) < 0.05
