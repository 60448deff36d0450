"""MuJoCo at work: applies joint torques and pushes, integrates, and reads contact wrenches and inertial sensor.

After ``mj_step`` the accelerations, contact forces and sensors belong to the state *before* the step. So whoever wants
matching signals reads the state first, then advances, then reads forces and sensors.
"""

from __future__ import annotations

import mujoco
import numpy as np

from friction_estimator.core.config import Config
from friction_estimator.core.types import FloatArray
from friction_estimator.simulation.biped import Biped
from friction_estimator.simulation.ground import Plane, ground_rotation
from friction_estimator.simulation.leg_kinematics import KNEE
from friction_estimator.simulation.mujoco_model import (
    ACCELEROMETER,
    GYROSCOPE,
    build_mujoco_model,
    floor_body,
    lowest_point,
    sole_site,
)


class Physics:
    """State and forces of the simulated robot, joints in pinocchio order, feet in the order of ``Config.feet``.

    Parameters
    ----------
    biped : names of joints and legs
    config : names of the frames
    urdf_xml : text of the URDF
    timestep : integration step [s]
    """

    def __init__(self, biped: Biped, config: Config, urdf_xml: str, timestep: float) -> None:
        self.model = build_mujoco_model(urdf_xml, config.feet, config.imu.frame, timestep, biped.locked_joints)
        self.data = mujoco.MjData(self.model)
        joints = [self.model.joint(name) for name in biped.joint_names]
        self._q = np.array([joint.qposadr[0] for joint in joints])
        self._v = np.array([joint.dofadr[0] for joint in joints])
        self.model.dof_armature[self._v] = biped.model.armature[6:]
        self._soles = np.array([self.model.site(sole_site(foot)).id for foot in range(len(config.feet))])
        weld = self.model.body_weldid
        feet = weld[self.model.site_bodyid[self._soles]]
        self._on_foot = (weld == feet[:, None]).astype(float)  # (k, bodies): links that are fixed to each foot
        self._depth = [lowest_point(self.model, foot) for foot in range(len(config.feet))]
        self._floors = [int(self.model.body(floor_body(foot)).mocapid[0]) for foot in range(len(config.feet))]
        self._accelerometer = self.model.sensor(ACCELEROMETER).adr[0]
        self._gyroscope = self.model.sensor(GYROSCOPE).adr[0]
        self._base = int(self.model.jnt_bodyid[0])
        knees = [int(self.model.joint(leg.joint_names[KNEE]).bodyid[0]) for leg in biped.legs]
        self._pushed: set[int] = set()
        self._no_stiction: FloatArray = np.zeros(len(biped.joint_names))
        self._stiction_limit, self._sticks = self._no_stiction, False
        self._push_bodies = dict(zip(("base", "left_knee", "right_knee"), (self._base, *knees), strict=True))

    def lay(self, foot: int, ground: Plane) -> None:
        """Put the ground under a foot that is in the air, or that has just been placed."""
        rotation = ground_rotation(np.array([ground.gradient]))[0]
        surface = np.array([ground.x, ground.y, ground.height]) + self._depth[foot] * rotation[:, 2]
        self.data.mocap_pos[self._floors[foot]] = surface
        mujoco.mju_mat2Quat(self.data.mocap_quat[self._floors[foot]], rotation.ravel())

    def place(self, base: FloatArray, yaw: float, position: FloatArray) -> None:
        """Put the robot somewhere, at rest, over level ground."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:3] = base
        self.data.qpos[3:7] = np.cos(0.5 * yaw), 0.0, 0.0, np.sin(0.5 * yaw)
        self.data.qpos[self._q] = position
        mujoco.mj_forward(self.model, self.data)

    @property
    def position(self) -> FloatArray:
        """Joint positions (m,) [rad]."""
        return self.data.qpos[self._q]

    @property
    def velocity(self) -> FloatArray:
        """Joint velocities (m,) [rad/s]."""
        return self.data.qvel[self._v]

    @property
    def base_pose(self) -> FloatArray:
        """Base origin in the world and quaternion w x y z, (7,)."""
        return self.data.qpos[:7].copy()

    @property
    def base_twist(self) -> FloatArray:
        """Velocity of the base origin in world axes and angular velocity in base axes, (6,) [m/s, rad/s]."""
        return self.data.qvel[:6].copy()

    def set_stiction(self, torque: FloatArray) -> None:
        """Let the solver hold the joints with up to this dry friction (m,) from now on [N m]."""
        if torque is not self._stiction_limit:
            self._stiction_limit = torque
            self._sticks = bool(np.any(torque > 0.0))
            self.model.dof_frictionloss[self._v] = torque

    @property
    def stiction(self) -> FloatArray:
        """Dry friction that the solver applied at the last force evaluation, along the velocity (m,) [N m]."""
        if not self._sticks:
            return self._no_stiction
        rows = self.data.efc_type == mujoco.mjtConstraint.mjCNSTR_FRICTION_DOF
        generalised = np.zeros(self.model.nv)
        generalised[self.data.efc_id[rows]] = -self.data.efc_force[rows]
        return generalised[self._v]

    def advance(self, torque: FloatArray) -> None:
        """Integrate one time step with these joint torques (m,), friction already taken off [N m]."""
        self.data.qfrc_applied[self._v] = torque
        mujoco.mj_step(self.model, self.data)

    def push(self, target: str, force: FloatArray) -> None:
        """Apply a world force at the origin of a link from now on; a zero force ends it."""
        body = self._push_bodies[target]
        lever = self.data.xpos[body] - self.data.xipos[body]
        self._pushed = self._pushed | {body} if np.any(force) else self._pushed - {body}
        self.data.xfrc_applied[body, :3] = force
        self.data.xfrc_applied[body, 3:] = np.cross(lever, force)

    @property
    def external_torque(self) -> FloatArray:
        """Joint rows of J^T F of all pushes, at the last force evaluation (m,) [N m]."""
        generalised = np.zeros(self.model.nv)
        for body in self._pushed:
            wrench, point = self.data.xfrc_applied[body], self.data.xipos[body]
            mujoco.mj_applyFT(self.model, self.data, wrench[:3], wrench[3:], point, body, generalised)
        return generalised[self._v]

    @property
    def com_in_world(self) -> FloatArray:
        """Centre of mass of the robot at the last force evaluation (3,) [m]."""
        return self.data.subtree_com[self._base].copy()

    @property
    def base_rotation(self) -> FloatArray:
        """Base axes to world axes (3, 3) at the last force evaluation."""
        return self.data.xmat[self._base].reshape(3, 3).copy()

    @property
    def specific_force(self) -> FloatArray:
        """Of the IMU, in its frame, at the last force evaluation (3,) [m/s^2]."""
        return self.data.sensordata[self._accelerometer : self._accelerometer + 3].copy()

    @property
    def angular_velocity(self) -> FloatArray:
        """Of the IMU, in its frame, at the last force evaluation (3,) [rad/s]."""
        return self.data.sensordata[self._gyroscope : self._gyroscope + 3].copy()

    @property
    def wrenches(self) -> FloatArray:
        """Of the ground on the feet, in and about the sole frames, at the last force evaluation (k, 6).

        MuJoCo gives the external wrench on a body as moment and force about the centre of mass of the whole robot, in
        world axes; no push acts on a foot, so this is the ground's.
        """
        data = self.data
        external = self._on_foot @ data.cfrc_ext
        to_sole = data.site_xmat[self._soles].reshape(-1, 3, 3)
        lever = data.subtree_com[self._base] - data.site_xpos[self._soles]
        moment, force = external[:, :3], external[:, 3:]
        stacked = np.stack([force, moment + _cross(lever, force)], axis=1)
        return np.matmul(stacked, to_sole).reshape(-1, 6)


def _cross(a: FloatArray, b: FloatArray) -> FloatArray:
    """Row-wise cross product, several times faster than ``np.cross`` for a few rows."""
    return a[:, [1, 2, 0]] * b[:, [2, 0, 1]] - a[:, [2, 0, 1]] * b[:, [1, 2, 0]]
