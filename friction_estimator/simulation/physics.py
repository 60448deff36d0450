"""Simulation with MuJoCo: apply joint torques and pushes, integrate, read contact wrenches and the inertial sensor.

After ``mj_step`` accelerations, contact forces and sensors belong to the state *before* the step. For signals of one
instant, read the state first, then advance, then read forces and sensors.
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.config import Config
from friction_estimator.simulation.biped import Biped
from friction_estimator.simulation.ground import Plane, ground_rotation
from friction_estimator.simulation.leg import ANKLE_PITCH, KNEE
from friction_estimator.simulation.mujoco_model import (
    ACCELEROMETER,
    GYROSCOPE,
    build_mujoco_model,
    floor_body,
    lowest_point,
    sole_site,
)
from friction_estimator.simulation.scenario import LEG_TARGETS
from friction_estimator.types import FloatArray, IntArray


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
        self._qpos, self._qvel, self._applied = self.data.qpos, self.data.qvel, self.data.qfrc_applied
        self._external, self._sensors = self.data.cfrc_ext, self.data.sensordata
        self._site_position, self._site_axes = self.data.site_xpos, self.data.site_xmat
        joints = [self.model.joint(name) for name in biped.joint_names]
        self._q = as_slice([joint.qposadr[0] for joint in joints])
        self._v = as_slice([joint.dofadr[0] for joint in joints])
        self.model.dof_armature[self._v] = biped.model.armature[6:]
        self._soles: IntArray = np.array([self.model.site(sole_site(foot)).id for foot in range(len(config.feet))])
        weld = self.model.body_weldid
        feet = weld[self.model.site_bodyid[self._soles]]
        self._on_foot = (weld == feet[:, None]).astype(float)  # (k, bodies): links that are fixed to each foot
        self._depth = [lowest_point(self.model, foot) for foot in range(len(config.feet))]
        self._floors = [int(self.model.body(floor_body(foot)).mocapid[0]) for foot in range(len(config.feet))]
        imu = [int(self.model.sensor(name).adr[0]) for name in (ACCELEROMETER, GYROSCOPE)]
        self._imu: IntArray = np.array([start + axis for start in imu for axis in range(3)])
        self._base = int(self.model.jnt_bodyid[0])
        self._com, self._base_axes = self.data.subtree_com[self._base], self.data.xmat[self._base].reshape(3, 3)
        self._pushed: set[int] = set()
        self._no_torque: FloatArray = np.zeros(len(biped.joint_names))
        self._stiction_limit, self._sticks = self._no_torque, False
        self._push_bodies = {"base": self._base}
        for side, leg, foot in zip(("left", "right"), biped.legs, biped.feet, strict=True):
            knee, ankle = (int(self.model.joint(leg.joint_names[joint]).bodyid[0]) for joint in (KNEE, ANKLE_PITCH))
            bodies = zip(LEG_TARGETS, (knee, ankle, int(self.model.site_bodyid[self._soles[foot]])), strict=True)
            self._push_bodies |= {f"{side}_{part}": body for part, body in bodies}

    def lay(self, foot: int, ground: Plane) -> None:
        """Put the ground under a foot that is in the air, or that has just been placed."""
        rotation = ground_rotation(np.array([ground.gradient]))[0]
        surface = np.array([ground.x, ground.y, ground.height]) + self._depth[foot] * rotation[:, 2]
        self.data.mocap_pos[self._floors[foot]] = surface
        mujoco.mju_mat2Quat(self.data.mocap_quat[self._floors[foot]], rotation.ravel())

    def place(self, base: FloatArray, yaw: float, position: FloatArray) -> None:
        """Place the robot at rest with this base origin [m], heading [rad] and joint positions [rad]."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:3] = base
        self.data.qpos[3:7] = np.cos(0.5 * yaw), 0.0, 0.0, np.sin(0.5 * yaw)
        self.data.qpos[self._q] = position
        mujoco.mj_forward(self.model, self.data)

    @property
    def position(self) -> FloatArray:
        """Joint positions (m,) [rad]."""
        return self._qpos[self._q].copy()

    @property
    def velocity(self) -> FloatArray:
        """Joint velocities (m,) [rad/s]."""
        return self._qvel[self._v].copy()

    @property
    def base_pose(self) -> FloatArray:
        """Base origin in the world and quaternion w x y z, (7,)."""
        return self._qpos[:7].copy()

    @property
    def base_twist(self) -> FloatArray:
        """Velocity of the base origin in world axes and angular velocity in base axes, (6,) [m/s, rad/s]."""
        return self._qvel[:6].copy()

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
            return self._no_torque
        rows = self.data.efc_type == mujoco.mjtConstraint.mjCNSTR_FRICTION_DOF
        generalised = np.zeros(self.model.nv)
        generalised[self.data.efc_id[rows]] = -self.data.efc_force[rows]
        return generalised[self._v]

    def advance(self, torque: FloatArray) -> None:
        """Integrate one time step with these joint torques (m,), friction already taken off [N m]."""
        self._applied[self._v] = torque
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
        if not self._pushed:
            return self._no_torque
        generalised = np.zeros(self.model.nv)
        for body in self._pushed:
            wrench, point = self.data.xfrc_applied[body], self.data.xipos[body]
            mujoco.mj_applyFT(self.model, self.data, wrench[:3], wrench[3:], point, body, generalised)
        return generalised[self._v]

    @property
    def com_in_world(self) -> FloatArray:
        """Centre of mass of the robot at the last force evaluation (3,) [m]."""
        return self._com.copy()

    @property
    def base_rotation(self) -> FloatArray:
        """Base axes to world axes (3, 3) at the last force evaluation."""
        return self._base_axes.copy()

    def signals(
        self, position: FloatArray, velocity: FloatArray, effort: FloatArray, columns: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Exact signals of all sensors at the last force evaluation.

        Parameters
        ----------
        position, velocity, effort : (m,) of all joints at that time
        columns : (n,) indices of the joints that have sensors

        Returns
        -------
        signals : (3 n + 6 + 6 k,) one after another position, velocity and effort (n,), specific force and angular
            velocity of the IMU in its frame (3,), wrenches (k, 6) [rad, rad/s, N m, m/s^2, rad/s, N, N m]
        wrenches : (k, 6) view of their end: the ground on the feet, in and about the sole frames
        """
        signals = _signals(
            position, velocity, effort, columns, self._sensors, self._imu, self._on_foot, self._external,
            self._soles, self._site_position, self._site_axes, self._com,
        )  # fmt: skip
        return signals, signals[3 * columns.size + 6 :].reshape(-1, 6)


def as_slice(indices: Sequence[int] | IntArray) -> slice | IntArray:
    """Indices of an array, as a slice where they are consecutive, because slices are faster in NumPy."""
    first = int(indices[0])
    if list(indices) == list(range(first, first + len(indices))):
        return slice(first, first + len(indices))
    return np.array(indices)


@kernel("V V V I V I M M I M M V")
def _signals(
    position: FloatArray,
    velocity: FloatArray,
    effort: FloatArray,
    columns: IntArray,
    sensors: FloatArray,
    imu: IntArray,
    on_foot: FloatArray,
    external: FloatArray,
    soles: IntArray,
    sole_position: FloatArray,
    sole_axes: FloatArray,
    com: FloatArray,
) -> FloatArray:
    """Signals of joints, IMU and feet, one after another.

    MuJoCo gives the external wrench on a link as moment and force about the centre of mass of the whole robot, in
    world axes: that of the ground, and of a push on the foot.
    """
    n = columns.size
    signals = np.zeros(3 * n + 6 + 6 * soles.size)
    for joint in range(n):
        signals[joint] = position[columns[joint]]
        signals[n + joint] = velocity[columns[joint]]
        signals[2 * n + joint] = effort[columns[joint]]
    for axis in range(6):
        signals[3 * n + axis] = sensors[imu[axis]]
    moment, force = np.empty(3), np.empty(3)
    for foot in range(soles.size):
        moment[:], force[:] = 0.0, 0.0
        for body in range(external.shape[0]):
            if on_foot[foot, body]:
                moment += external[body, :3]
                force += external[body, 3:]
        lever = com - sole_position[soles[foot]]
        for axis in range(3):
            following, last = (axis + 1) % 3, (axis + 2) % 3
            moment[axis] += lever[following] * force[last] - lever[last] * force[following]
        start = 3 * n + 6 + 6 * foot
        for row in range(3):
            for column in range(3):
                to_sole = sole_axes[soles[foot], 3 * row + column]
                signals[start + column] += force[row] * to_sole
                signals[start + 3 + column] += moment[row] * to_sole
    return signals
