"""MuJoCo model of the robot, made from its URDF through MjSpec.

Added to the URDF are the free base, the floor, the contact settings and the inertial sensor. Joint damping and friction
of the URDF are removed, because the simulator applies the friction of the scenario.
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from friction_estimator.config import FootConfig
from friction_estimator.errors import SimulationError

ACCELEROMETER = "accelerometer"
GYROSCOPE = "gyroscope"
_IMU_SITE = "imu"
_CONTACT_SOLREF = (0.004, 1.0)
_CONTACT_SOLIMP = (0.98, 0.999, 0.0005, 0.5, 2.0)
_STICTION_SOLREF = (0.002, 1.0)
_STICTION_SOLIMP = (0.9999, 0.9999, 0.001, 0.5, 2.0)
_SOLE_THICKNESS = 0.01  # [m]
_SLIDING_FRICTION = 1.5
_SOLVER_TOLERANCE = 1e-14
_SOLVER_ITERATIONS = 30


def sole_site(foot: int) -> str:
    """Name of the MuJoCo site that coincides with the sole frame of foot number ``foot``."""
    return f"sole_{foot}"


def floor_body(foot: int) -> str:
    """Name of the movable MuJoCo body that carries the ground under foot number ``foot``."""
    return f"floor_{foot}"


def build_mujoco_model(
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
        _drop_meshes(spec)
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
    spec.option.impratio = 20.0
    spec.option.tolerance = _SOLVER_TOLERANCE
    spec.option.iterations = _SOLVER_ITERATIONS


def _drop_meshes(spec: mujoco.MjSpec) -> None:
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
        _link(spec, foot.frame).add_site(name=sole_site(number))
    for name, kind in (
        (ACCELEROMETER, mujoco.mjtSensor.mjSENS_ACCELEROMETER),
        (GYROSCOPE, mujoco.mjtSensor.mjSENS_GYRO),
    ):
        spec.add_sensor(name=name, type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=_IMU_SITE)


def _add_contacts(spec: mujoco.MjSpec, feet: Sequence[FootConfig]) -> None:
    """Let the collision shapes of each foot, and only these, touch the floor of that foot.

    One plane per foot, which is moved while the foot is in the air, gives uneven ground without edges between patches.
    """
    for geom in spec.geoms:
        geom.contype, geom.conaffinity = 0, 0
    for number, foot in enumerate(feet):
        floor = spec.worldbody.add_body(name=floor_body(number), mocap=True)
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


def lowest_point(model: mujoco.MjModel, foot: int) -> float:
    """Height of the lowest point of a foot over the plane of its sole frame, negative below it [m]."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    site = model.site(sole_site(foot)).id
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
