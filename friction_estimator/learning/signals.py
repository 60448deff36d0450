"""Inputs and targets of MOB-Net, one row per sample: the same code for simulation, recordings and the live node.

    r     = K_0 (p - p_0 - integral(tau + beta + r))     eq. 9, all rows, virtual joints included
    tau_u = r - J^T F, low-passed like r                 target, section 4.2
    x     = [q, dq, tau, R_1, R_2, omega, a]             eq. 17, of which each limb takes a part (Table 1)

Signs are those of the paper: residual and uncertainty torque have the sign of an external torque, so the friction of a
joint is a part of minus the uncertainty torque. The residual is that of
:func:`~friction_estimator.estimation.observers.momentum.step_residual`, which is driven by the IMU: it needs no base
velocity, and its first six rows are force and moment on the base, about the base origin in base axes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from friction_estimator.estimation.observers.momentum import ResidualTable, initial_residual, step_residual
from friction_estimator.kernels.compiler import entry_point
from friction_estimator.kernels.records import to_buffer
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import Attitude, Dynamics, FloatArray, Matrix, SensorFrame, Vector

GAIN = 100.0
"""K_0 of the paper's momentum observer (section 5.1) [rad/s]."""


@dataclass(slots=True)
class Signals:
    """Network inputs, residual and torque of the feet at one sample."""

    # (3 n + 12,) joint positions, velocities and motor torques, then U^V of a floating base: the first two
    # columns of its rotation matrix without heading, angular velocity and specific force in base axes
    inputs: FloatArray
    residual: FloatArray  # (nv,) r [N, N m]; NaN until it has run for some time constants
    # (nv,) torque of the foot wrenches, low-passed like the residual; NaN as long as that, and in the rows of a
    # foot whose sensor sends nothing
    external: FloatArray


@entry_point
def write_inputs(
    position: Vector,
    velocity: Vector,
    effort: Vector,
    rotation: Matrix,
    angular_velocity: Vector,
    specific_force: Vector,
    x: Vector,
) -> None:
    """Write the network inputs of the whole robot (Lim et al. 2024, eq. 17).

    The heading of the base does not act on the dynamics and drifts, so it is taken out of the rotation matrix.

    Parameters
    ----------
    position, velocity, effort : (n,) of the joints [rad, rad/s, N m]
    rotation : (3, 3) from base to world axes; not used for a fixed base, like the next two
    angular_velocity, specific_force : (3,) in base axes [rad/s], [m/s^2]
    x : (3 n,) output for a fixed base, else (3 n + 12,)
    """
    n = position.size
    for i in range(n):
        x[i], x[n + i], x[2 * n + i] = position[i], velocity[i], effort[i]
    if x.size > 3 * n:
        forward = math.hypot(rotation[0, 0], rotation[1, 0])
        cos, sin = (rotation[0, 0] / forward, rotation[1, 0] / forward) if forward > 0.0 else (1.0, 0.0)
        for column in range(2):
            first = 3 * n + 3 * column
            x[first] = cos * rotation[0, column] + sin * rotation[1, column]
            x[first + 1] = cos * rotation[1, column] - sin * rotation[0, column]
            x[first + 2] = rotation[2, column]
        for axis in range(3):
            x[3 * n + 6 + axis], x[3 * n + 9 + axis] = angular_velocity[axis], specific_force[axis]


class SignalStage:
    """Computes :class:`Signals` frame by frame.

    Parameters
    ----------
    robot : the model that also made the :class:`Dynamics`
    forward : True where torques and wrenches act until the next sample (``momentum.inputs_are_held``)
    """

    def __init__(self, robot: RobotModel, forward: bool) -> None:
        self._base = robot.base_dofs
        self._joint_count = len(robot.joint_names)
        self._size = self._base + self._joint_count
        k = len(robot.foot_names)
        needs_foot = np.hstack((np.ones((k, self._base), dtype=bool), robot.limb))
        self._with_feet_table, self._alone_table = (
            to_buffer(ResidualTable(needs, GAIN, forward, self._base))
            for needs in (needs_foot, np.zeros_like(needs_foot))
        )
        self._no_wrenches = np.zeros((k, 6))
        self._effort = np.zeros(self._size)
        self.input_count = 3 * self._joint_count + (12 if self._base else 0)
        self.reset()

    def reset(self) -> None:
        """Begin with a zero residual at the next frame."""
        self._alone, self._with_feet = initial_residual(self._size), initial_residual(self._size)

    def step(
        self, frame: SensorFrame, attitude: Attitude, dynamics: Dynamics, wrenches: FloatArray | None = None
    ) -> Signals:
        """Signals of one frame; ``frame.dt == 0`` restarts the observer.

        Parameters
        ----------
        frame, attitude, dynamics : of one sample
        wrenches : (k, 6) foot wrenches of ``external``; None: all that is measured
        """
        if frame.dt == 0.0:
            self.reset()
        self._effort[self._base :] = frame.effort
        x = np.empty(self.input_count)
        rotation = attitude.rotation_base_to_world
        write_inputs(
            frame.position,
            frame.velocity,
            frame.effort,
            rotation,
            attitude.angular_velocity,
            dynamics.specific_force,
            x,
        )
        residual = self._residual(frame, dynamics, self._no_wrenches, self._alone, self._alone_table)
        wrenches = frame.wrenches if wrenches is None else wrenches
        uncertainty = self._residual(frame, dynamics, wrenches, self._with_feet, self._with_feet_table)
        return Signals(x, residual, residual - uncertainty)

    def _residual(
        self, frame: SensorFrame, dynamics: Dynamics, wrenches: FloatArray, state: FloatArray, table: FloatArray
    ) -> FloatArray:
        result = np.empty(self._size)
        inputs = self._effort, wrenches, frame.imu_fresh, frame.wrench_fresh, frame.dt
        step_residual(dynamics.buffer, *inputs, table, state, result)
        return np.asarray(-result)
