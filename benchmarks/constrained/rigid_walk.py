"""A walk on rigid ground: the planned motion, its torques by inverse dynamics, exact accelerations (Egle, section 6.1).

Joint angles are quintic splines through the plan's; the base follows from the foot that carries more load, which rests
exactly. In double support the other foot rests to the splines' accuracy, and the ground forces are the least that move
the robot so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from scipy.interpolate import make_interp_spline

from friction_estimator.baselines.differentiation import Instant
from friction_estimator.io.robot import Robot
from friction_estimator.laws import make_law
from friction_estimator.robot.model import RobotModel
from friction_estimator.simulation import Gait
from friction_estimator.simulation.biped import Biped
from friction_estimator.simulation.controller import ReferenceGenerator
from friction_estimator.simulation.walk_plan import WalkPlan
from friction_estimator.types import Attitude, ContactPhase, FloatArray, SensorFrame

PERIOD = 1e-3
KNEE = (0.2, 1.0, 0.2, 0.2, 1.0, 40.0)
"""F_v, F_c, S, v_s, tau_os, a of eq. 3.5 as the thesis gives them to a knee (Table 6.1)."""


@dataclass(frozen=True)
class RigidWalk:
    """One row a millisecond.

    Attributes
    ----------
    instants : what exact sensors read
    acceleration, friction : (m, n) true ones of the joints [rad/s^2], [N m]
    contact : (m, k) which feet stand
    """

    instants: list[Instant]
    acceleration: FloatArray
    friction: FloatArray
    contact: np.ndarray

    def column(self, name: str) -> FloatArray:
        """Position, velocity or effort of all joints, (m, n)."""
        return np.array([getattr(instant.frame, name) for instant in self.instants])


def rigid_walk(robot: Robot, gait: Gait, duration: float, joint: str) -> RigidWalk:
    """Walk with friction in one joint only."""
    biped = Biped(robot.config, robot.urdf_xml)
    plan = WalkPlan(gait, biped.dimensions(gait.leg_extension), duration + 0.1)
    block = ReferenceGenerator(biped, plan, PERIOD).block(0, round(duration / PERIOD))
    splines = make_interp_spline(PERIOD * np.arange(len(block.position)), block.position, k=5)
    time = PERIOD * np.arange(len(block.position))
    position, velocity, acceleration = (splines(time, nu=order) for order in range(3))
    friction = np.zeros_like(velocity)
    column = biped.joint_names.index(joint)
    law = make_law("tanh_stribeck")
    friction[:, column] = law.torque(np.tile(KNEE, (len(time), 1)), velocity[:, column])
    contact = block.load_share[:, list(biped.feet)] > 0.0
    model = RobotModel(robot.config, robot.urdf_xml)
    feet = [biped.legs[list(biped.feet).index(foot)].frame_id for foot in range(2)]
    heavier = block.load_share[:, list(biped.feet)].argmax(axis=1)
    instants = []
    for k in range(len(time)):
        q = np.concatenate((block.base[k], [0, 0, np.sin(block.base_yaw[k] / 2), np.cos(block.base_yaw[k] / 2)]))
        q = np.concatenate((q, position[k]))
        motion = _rest_on(biped.model, feet, int(heavier[k]), q, velocity[k], acceleration[k])
        instants.append(_instant(biped.model, model, feet, contact[k], k, q, *motion, friction[k]))
    return RigidWalk(instants, acceleration, friction, contact)


def _rest_on(
    model: pin.Model, feet: list[int], foot: int, q: FloatArray, velocity: FloatArray, acceleration: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Generalised velocity and acceleration while a foot rests."""
    data = model.createData()
    v, a = np.concatenate((np.zeros(6), velocity)), np.concatenate((np.zeros(6), acceleration))
    J = pin.computeFrameJacobian(model, data, q, feet[foot], pin.LOCAL)
    v[:6] = -np.linalg.solve(J[:, :6], J[:, 6:] @ velocity)
    pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
    bias = pin.getFrameClassicalAcceleration(model, data, feet[foot], pin.LOCAL).vector
    a[:6] = -np.linalg.solve(J[:, :6], J[:, 6:] @ acceleration + bias)
    return v, a


def _instant(
    model: pin.Model,
    robot: RobotModel,
    feet: list[int],
    contact: np.ndarray,
    k: int,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    friction: FloatArray,
) -> Instant:
    data = model.createData()
    jacobians = np.vstack([pin.computeFrameJacobian(model, data, q, foot, pin.LOCAL) for foot in feet])
    jacobians[~np.repeat(contact, 6)] = 0.0
    forces = pin.rnea(model, data, q, v, a)
    wrenches = np.linalg.pinv(jacobians[:, :6].T) @ forces[:6]
    rotation = pin.Quaternion(q[3:7]).toRotationMatrix()
    gravity_up = rotation.T @ np.array([0.0, 0.0, 9.81])  # the observer takes the accelerometer's reading out again
    effort = (forces - jacobians.T @ wrenches)[6:] + friction
    frame = SensorFrame(
        k * 1_000_000, PERIOD, q[7:], v[6:], effort, v[3:6], gravity_up, wrenches.reshape(-1, 6), True,
        np.ones(len(feet), dtype=bool), np.ones(1 + len(feet)),
    )  # fmt: skip
    attitude = Attitude(rotation, v[3:6], a[3:6], gravity_up, np.zeros((3, 3)), np.zeros((3, 3)))
    dynamics = robot.dynamics(frame.position, frame.velocity, v[3:6], gravity_up)
    return Instant(k * PERIOD, frame, attitude, ContactPhase(contact, np.full(len(feet), 10.0), ""), dynamics)
