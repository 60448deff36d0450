"""The walks of section 6.2.2 in our simulation, and the friction that observers see in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.shared.estimates import configure, drive
from benchmarks.shared.walks import PERIOD, SimulatedRun, simulate, true_inputs
from friction_estimator.baselines.constrained import ConstrainedFriction
from friction_estimator.baselines.differentiation import Instant
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.smoothing import SMOOTHING_LAG, SmoothedEstimator
from friction_estimator.io.robot import Robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.simulation import FrictionSetting, Gait, ParametrisedLaw, Scenario, Simulator, make_noise
from friction_estimator.types import BoolArray, FloatArray

LAW = "tanh_stribeck"
TARGETS = np.array(
    [
        (0.2, 0.75, 0.2, 0.2, 0.75, 40.0),
        (0.2, 1.0, 0.2, 0.2, 1.0, 40.0),
        (0.2, 0.75, 0.2, 0.2, 0.75, 40.0),
        (0.2, 1.0, 0.2, 0.2, 1.0, 40.0),
        (0.2, 0.2, 0.2, 0.2, 0.2, 40.0),
        (0.2, 0.1, 0.2, 0.2, 0.1, 40.0),
    ]
)
"""(6, 6): a row for each of ``LEG_JOINTS``. The tables have 0.8 for hip pitch and yaw; their errors belong to 0.75."""
GAIT = Gait(single_support=0.8, double_support=0.3, step_length=0.2)
"""As long a single support as in the thesis, and as long a step for the size of the robot (0.3 m for TORO)."""
ASIDE = replace(GAIT, step_length=0.0, step_side=0.08, pelvis_rotation=0.16)
"""0.16 m with each step of the leading foot: 0.25 m for the size of TORO. The pelvis turns, so that hips yaw faster."""
TRIM = 0.1
"""Left out at both ends of a swing [s]; the thesis leaves out 0.10 and 0.05."""
SETTLED = 1.0


def walks(robot: Robot, model: RobotModel, duration: float) -> list[SimulatedRun]:
    """Straight ahead, to the left and to the right, with the friction of the tables in all leg joints."""
    friction = (FrictionSetting(leg=tuple(ParametrisedLaw(LAW, tuple(row)) for row in TARGETS.tolist())),)
    gaits = {"straight": GAIT, "left": ASIDE, "right": replace(ASIDE, step_side=-ASIDE.step_side)}
    scenarios = [Scenario(name, duration, gait, friction) for name, gait in gaits.items()]
    return [simulate(robot, model, scenario, "clean", 0) for scenario in scenarios]


def substeps(robot: Robot, run: SimulatedRun) -> int:
    """Integration steps a period that the run was made with."""
    return Simulator(robot.config, robot.urdf_xml, run.scenario, make_noise("clean"), seed=0).substeps


def column(run: SimulatedRun, name: str) -> FloatArray:
    """Position, velocity or effort of all joints, (m, n)."""
    return np.array([getattr(sample.joints, name) for sample in run.samples])


def centred(run: SimulatedRun, before: float) -> SimulatedRun:
    """The run with each torque the mean of the period before and after its stamp.

    A torque is recorded when it begins and acts for a period; the acceleration about a stamp is that of both periods.

    Parameters
    ----------
    before : weight of the period before: a half, or in a simulation :func:`torque_weight`
    """
    effort = column(run, "effort")
    mean = np.vstack((effort[:1], before * effort[:-1] + (1.0 - before) * effort[1:]))
    samples = [
        replace(sample, joints=replace(sample.joints, effort=row))
        for sample, row in zip(run.samples, mean, strict=True)
    ]
    return replace(run, samples=samples)


def swings(run: SimulatedRun, trim: float = TRIM) -> BoolArray:
    """True (m, n) where a joint's leg alone is in the air, without the ends of the swing."""
    contact = np.array([phase.contact for phase in run.phases])
    changes = np.flatnonzero((contact[1:] != contact[:-1]).any(axis=1)) + 1
    quiet = np.ones(len(contact), dtype=bool)
    for change in changes:
        quiet[max(change - round(trim / PERIOD), 0) : change + round(trim / PERIOD)] = False
    alone = (contact.sum(axis=1) == 1) & quiet & (run.time >= SETTLED)
    return ~run.stance & alone[:, None]


def friction_from(robot: Robot, run: SimulatedRun, model: RobotModel, acceleration: FloatArray) -> FloatArray:
    """Eq. 5.13 with the true attitude and these joint accelerations, (m, n) [N m]; NaN outside of trimmed swings."""
    solver, swinging = ConstrainedFriction(robot.config, model), swings(run)
    friction = np.full(acceleration.shape, np.nan)
    for k, (frame, attitude, phase, dynamics) in enumerate(true_inputs(run, model)):
        if swinging[k].any():
            instant = Instant(k * PERIOD, frame, attitude, phase, dynamics)
            friction[k] = solver.solve(instant, acceleration[k]).friction
    return np.where(swinging, friction, np.nan)


def central(run: SimulatedRun) -> FloatArray:
    """Accelerations (m, n) by central differences of the positions (eq. 6.2)."""
    position = column(run, "position")
    acceleration = np.zeros_like(position)
    acceleration[1:-1] = (position[2:] - 2.0 * position[1:-1] + position[:-2]) / PERIOD**2
    return acceleration


def torque_weight(substeps: int) -> float:
    """How much of the torque before a stamp is in a central difference about it.

    Second differences weigh accelerations by a triangle over both periods. Semi-implicit Euler's method counts the
    acceleration at the start of each of its steps, and that at the stamp itself belongs to the period after.
    """
    return (substeps - 1) / (2.0 * substeps)


def sharpened(friction: FloatArray, substeps: int) -> FloatArray:
    """Friction (m, n) without the averaging of central differences, to second order: the variance of the triangle."""
    half_variance = (substeps**2 - 1) / (12.0 * substeps**2)
    result = friction.copy()
    result[1:-1] -= half_variance * (friction[2:] - 2.0 * friction[1:-1] + friction[:-2])
    return result


def observed(robot: Robot, run: SimulatedRun, changes: dict[str, Any]) -> FloatArray:
    """Friction (m, n) of the constrained observer in the whole estimator, in trimmed swings, at its own instant."""
    config = configure("suralp", "clean", {"observer": "constrained", "constrained.max_sigma": 1e9, **changes})
    estimates = drive(Estimator(config, robot.urdf_xml), run.samples)
    delay = max(config.constrained.window // 2, round(config.constrained.trim_end / PERIOD))
    friction = np.array([np.where(one.measured, one.friction, np.nan) for one in estimates])
    return np.where(swings(run), np.vstack((friction[delay:], np.full((delay, friction.shape[1]), np.nan))), np.nan)


def kalman(robot: Robot, run: SimulatedRun, smooth: bool) -> FloatArray:
    """Friction (m, n) of the Kalman observer in swings and stances, with what it takes for an error of calibration.

    A constant offset of the torque is such an error to it, and the law of the thesis has one.
    """
    config = configure("suralp", "clean", {})
    estimator = (
        SmoothedEstimator(config, robot.urdf_xml, SMOOTHING_LAG) if smooth else Estimator(config, robot.urdf_xml)
    )
    estimates = drive(estimator, run.samples)
    friction = np.array([np.where(one.measured, one.friction + one.calibration_torque, np.nan) for one in estimates])
    return np.where((run.time >= 2.0 * SETTLED)[:, None], friction, np.nan)
