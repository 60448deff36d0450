"""Simulation with MuJoCo: apply joint torques and pushes, integrate, read contact wrenches and the inertial sensor.

The MuJoCo model is made from the URDF through MjSpec. Added are the free base, the floor, the contact settings and the
inertial sensor. Joint damping and friction of the URDF are removed, because the friction of the scenario is applied.

After ``mj_step`` accelerations, contact forces and sensors belong to the state *before* the step. For signals of one
instant, read the state first, then advance, then read forces and sensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import mujoco
import numpy as np

from friction_estimator.config import Config, FootConfig
from friction_estimator.errors import SimulationError
from friction_estimator.kernels.compiler import entry_point
from friction_estimator.kernels.records import unbuffered_record
from friction_estimator.simulation.biped import ANKLE_PITCH, KNEE, Biped
from friction_estimator.simulation.footsteps import Plane, ground_rotation
from friction_estimator.simulation.scenario import LEG_TARGETS
from friction_estimator.types import FloatArray, Indices, IntArray, Matrix, Vector

_ACCELEROMETER = "accelerometer"
_GYROSCOPE = "gyroscope"
_IMU_SITE = "imu"
_CONTACT_SOLREF, _CONTACT_SOLIMP = (0.004, 1.0), (0.98, 0.999, 0.0005, 0.5, 2.0)
"""Of MuJoCo's soft contacts: harder than its defaults, so that a sole sinks in little."""
_STICTION_SOLREF, _STICTION_SOLIMP = (0.002, 1.0), (0.9999, 0.9999, 0.001, 0.5, 2.0)
"""Of its dry friction of joints: harder still, so that a resting joint does not creep."""
_SOLE_THICKNESS = 0.01  # [m]
_SLIDING_FRICTION = 1.5  # coefficient between sole and ground: soles do not slide in a walk
_SOLVER_TOLERANCE, _SOLVER_ITERATIONS = 1e-14, 30  # of MuJoCo's solver: tighter than its default


def _sole_site(foot: int) -> str:
    """Name of the MuJoCo site that coincides with the sole frame of foot number ``foot``."""
    return f"sole_{foot}"


def _floor_body(foot: int) -> str:
    """Name of the movable MuJoCo body that carries the ground under foot number ``foot``."""
    return f"floor_{foot}"


def _build_mujoco_model(
    urdf_xml: str, feet: Sequence[FootConfig], imu_frame: str, timestep: float, locked_joints: Sequence[str] = ()
) -> mujoco.MjModel:
    """Compile the walking robot; each foot has one floor, at z = 0 until it is moved.

    Parameters
    ----------
    urdf_xml : text of the URDF
    feet : names of the sole frames, links of the URDF; size of the soles that have no primitive shape
    imu_frame : URDF link of the inertial measurement unit
    timestep : integration step [s]
    locked_joints : joints that become rigid at zero

    Raises
    ------
    SimulationError
        When the URDF cannot be compiled, a frame is missing, or a foot has no collision shape.
    """
    try:
        spec = mujoco.MjSpec.from_string(urdf_xml)
        drop_meshes(spec)
        for coupling in list(spec.equalities):
            spec.delete(coupling)  # mimic joints move independently, as in pinocchio
        for name in locked_joints:
            spec.delete(spec.joint(name))
        _set_options(spec, timestep)
        spec.worldbody.first_body().add_freejoint()
        _add_sensors(spec, feet, imu_frame)
        _add_contacts(spec, feet)
        model = spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        raise SimulationError(f"MuJoCo cannot simulate the URDF: {error}") from None
    model.dof_damping[:] = 0.0
    model.dof_frictionloss[:] = 0.0
    model.dof_solref[:] = _STICTION_SOLREF
    model.dof_solimp[:] = _STICTION_SOLIMP
    model.dof_armature[:] = 0.0
    model.jnt_stiffness[:] = 0.0
    return model


def _set_options(spec: mujoco.MjSpec, timestep: float) -> None:
    spec.compiler.fusestatic = False  # fusing shifts centres of mass in some versions of MuJoCo
    spec.compiler.discardvisual = False  # keep shapes without contact for drawing
    spec.option.timestep = timestep
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_EULER
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.impratio = 20.0  # friction of contacts is harder than their normal force: soles do not creep
    spec.option.tolerance = _SOLVER_TOLERANCE
    spec.option.iterations = _SOLVER_ITERATIONS


def drop_meshes(spec: mujoco.MjSpec) -> None:
    """Delete mesh shapes: their files may be missing, and no contact uses them."""
    for geom in list(spec.geoms):
        if geom.type == mujoco.mjtGeom.mjGEOM_MESH:
            spec.delete(geom)
    for mesh in list(spec.meshes):
        spec.delete(mesh)


def _link(spec: mujoco.MjSpec, name: str) -> mujoco.MjsBody:
    body = spec.body(name)
    if body is None:
        raise SimulationError(f"the URDF has no link {name!r}; frames of feet and IMU must be links of the URDF")
    return body


def _add_sensors(spec: mujoco.MjSpec, feet: Sequence[FootConfig], imu_frame: str) -> None:
    _link(spec, imu_frame).add_site(name=_IMU_SITE)
    for number, foot in enumerate(feet):
        _link(spec, foot.frame).add_site(name=_sole_site(number))
    for name, kind in (
        (_ACCELEROMETER, mujoco.mjtSensor.mjSENS_ACCELEROMETER),
        (_GYROSCOPE, mujoco.mjtSensor.mjSENS_GYRO),
    ):
        spec.add_sensor(name=name, type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=_IMU_SITE)


def _add_contacts(spec: mujoco.MjSpec, feet: Sequence[FootConfig]) -> None:
    """Let the collision shapes of each foot, and only these, touch the floor of that foot.

    One plane per foot, which is moved while the foot is in the air, gives uneven ground without edges between patches.
    """
    for geom in spec.geoms:
        geom.contype, geom.conaffinity = 0, 0
    for number, foot in enumerate(feet):
        floor = spec.worldbody.add_body(name=_floor_body(number), mocap=True)
        floor.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0.0, 0.0, 1.0], contype=1 << number, conaffinity=0)
        for geom in _foot_geoms(_link(spec, foot.frame)) or [_add_sole(_link(spec, foot.frame), foot)]:
            geom.contype, geom.conaffinity, geom.condim = 0, 1 << number, 3
            geom.solref, geom.solimp = _CONTACT_SOLREF, _CONTACT_SOLIMP
            geom.friction = (_SLIDING_FRICTION, 0.0, 0.0)
            geom.priority = 1


def _add_sole(link: mujoco.MjsBody, foot: FootConfig) -> mujoco.MjsGeom:
    """A thin box without mass whose bottom is the plane of the sole frame."""
    if len(foot.sole_size) != 2:
        raise SimulationError(
            f"the URDF has no box, sphere or cylinder as collision of the foot {foot.name!r}: "
            f"give feet.{foot.name}.sole_size, its length and width"
        )
    length, width = foot.sole_size
    return link.add_geom(
        type=mujoco.mjtGeom.mjGEOM_BOX,
        pos=[0.0, 0.0, 0.5 * _SOLE_THICKNESS],
        size=[0.5 * length, 0.5 * width, 0.5 * _SOLE_THICKNESS],
        mass=0.0,
    )


def _foot_geoms(sole: mujoco.MjsBody) -> list[mujoco.MjsGeom]:
    """Collision shapes of the rigid foot: of the sole link and of the links it is fixed to, up to the last joint."""
    geoms = list(sole.geoms)
    body = sole
    while not list(body.joints) and body.parent.name != "world":
        body = body.parent
        geoms += list(body.geoms)
    return geoms


def _lowest_point(model: mujoco.MjModel, foot: int) -> float:
    """Height of the lowest point of a foot over the plane of its sole frame, negative below it [m]."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    site = model.site(_sole_site(foot)).id
    normal, origin = data.site_xmat[site].reshape(3, 3)[:, 2], data.site_xpos[site]
    weld = model.body_weldid
    on_foot = (weld[model.geom_bodyid] == weld[model.site_bodyid[site]]) & (model.geom_conaffinity > 0)
    heights = []
    for geom in np.flatnonzero(on_foot):
        axes = data.geom_xmat[geom].reshape(3, 3)
        centre, half = model.geom_aabb[geom, :3], model.geom_aabb[geom, 3:]
        middle = (data.geom_xpos[geom] + axes @ centre - origin) @ normal
        heights.append(middle - np.abs(normal @ axes) @ half)
    return float(min(heights))


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
        self.model = _build_mujoco_model(urdf_xml, config.feet, config.imu.frame, timestep, biped.locked_joints)
        self.data = mujoco.MjData(self.model)
        self._qpos, self._qvel, self._applied = self.data.qpos, self.data.qvel, self.data.qfrc_applied
        joints = [self.model.joint(name) for name in biped.joint_names]
        self._q = np.array([joint.qposadr[0] for joint in joints])
        self._v = np.array([joint.dofadr[0] for joint in joints])
        self.model.dof_armature[self._v] = biped.model.armature[6:]
        soles: IntArray = np.array([self.model.site(_sole_site(foot)).id for foot in range(len(config.feet))])
        weld = self.model.body_weldid
        feet = weld[self.model.site_bodyid[soles]]
        self._depth = [_lowest_point(self.model, foot) for foot in range(len(config.feet))]
        self._floors = [int(self.model.body(_floor_body(foot)).mocapid[0]) for foot in range(len(config.feet))]
        imu = [int(self.model.sensor(name).adr[0]) for name in (_ACCELEROMETER, _GYROSCOPE)]
        self._base = int(self.model.jnt_bodyid[0])
        self._base_axes = self.data.xmat[self._base].reshape(3, 3)
        self._readout = SensorReadout(
            sensors=self.data.sensordata,
            imu=np.array([start + axis for start in imu for axis in range(3)]),
            external=self.data.cfrc_ext,
            on_foot=(weld == feet[:, None]).astype(float),
            soles=soles,
            sole_position=self.data.site_xpos,
            sole_axes=self.data.site_xmat,
            com=self.data.subtree_com[self._base],
        )
        self._pushed: set[int] = set()
        self._no_torque: FloatArray = np.zeros(len(biped.joint_names))
        self._stiction_limit, self._sticks = self._no_torque, False
        self._push_bodies = {"base": self._base}
        for side, leg, foot in zip(("left", "right"), biped.legs, biped.feet, strict=True):
            knee, ankle = (int(self.model.joint(leg.joint_names[joint]).bodyid[0]) for joint in (KNEE, ANKLE_PITCH))
            bodies = zip(LEG_TARGETS, (knee, ankle, int(self.model.site_bodyid[soles[foot]])), strict=True)
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
        return self._qpos[self._q]

    @property
    def velocity(self) -> FloatArray:
        """Joint velocities (m,) [rad/s]."""
        return self._qvel[self._v]

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
        """Joint torques J^T F of all pushes at the last force evaluation, (m,) [N m]."""
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
        return self._readout.com.copy()

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
        signals = _signals(*self._readout, position, velocity, effort, columns)
        return signals, signals[3 * columns.size + 6 :].reshape(-1, 6)


@unbuffered_record
class SensorReadout(NamedTuple):
    """What the sensors are computed from: arrays of MuJoCo, which change with every step, and where the sensors are."""

    sensors: Vector  # readings of MuJoCo's sensors
    imu: Indices  # (6,) places of those of the IMU
    external: Matrix  # (bodies, 6) external wrenches on the links
    on_foot: Matrix  # (k, bodies) one for links that are fixed to each foot
    soles: Indices  # (k,) sites of the soles
    sole_position: Matrix  # (sites, 3) position of all sites
    sole_axes: Matrix  # (sites, 9) axes of all sites
    com: Vector  # (3,) centre of mass of the robot


@entry_point
def _signals(at: SensorReadout, position: Vector, velocity: Vector, effort: Vector, columns: Indices) -> FloatArray:
    """Signals of joints, IMU and feet, one after another.

    MuJoCo gives the external wrench on a link as moment and force about the centre of mass of the whole robot, in
    world axes: that of the ground, and of a push on the foot.
    """
    n = columns.size
    signals = np.zeros(3 * n + 6 + 6 * at.soles.size)
    for joint in range(n):
        signals[joint] = position[columns[joint]]
        signals[n + joint] = velocity[columns[joint]]
        signals[2 * n + joint] = effort[columns[joint]]
    for axis in range(6):
        signals[3 * n + axis] = at.sensors[at.imu[axis]]
    moment, force = np.empty(3), np.empty(3)
    for foot in range(at.soles.size):
        moment[:], force[:] = 0.0, 0.0
        for body in range(at.external.shape[0]):
            if at.on_foot[foot, body]:
                moment += at.external[body, :3]
                force += at.external[body, 3:]
        lever = at.com - at.sole_position[at.soles[foot]]
        for axis in range(3):
            following, last = (axis + 1) % 3, (axis + 2) % 3
            moment[axis] += lever[following] * force[last] - lever[last] * force[following]
        start = 3 * n + 6 + 6 * foot
        for row in range(3):
            for column in range(3):
                to_sole = at.sole_axes[at.soles[foot], 3 * row + column]
                signals[start + column] += force[row] * to_sole
                signals[start + 3 + column] += moment[row] * to_sole
    return signals
