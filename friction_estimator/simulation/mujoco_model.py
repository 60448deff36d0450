"""MuJoCo model of the robot, made from its URDF through MjSpec: nothing is modelled a second time.

What the URDF does not say is added here: the free base, the floor, the contact settings and the inertial sensor. Joint
damping and friction of the URDF are dropped, because friction is injected from outside, where it is known exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco

from friction_estimator.core.exceptions import SimulationError

ACCELEROMETER = "accelerometer"
GYROSCOPE = "gyroscope"
_IMU_SITE = "imu"
_CONTACT_SOLREF = (0.004, 1.0)
_CONTACT_SOLIMP = (0.98, 0.999, 0.0005, 0.5, 2.0)
_STICTION_SOLREF = (0.002, 1.0)
_STICTION_SOLIMP = (0.9999, 0.9999, 0.001, 0.5, 2.0)
_SLIDING_FRICTION = 1.5
_SOLVER_TOLERANCE = 1e-14
_SOLVER_ITERATIONS = 30


def sole_site(foot: int) -> str:
    """Name of the MuJoCo site that coincides with the sole frame of foot number ``foot``."""
    return f"sole_{foot}"


def floor_body(foot: int) -> str:
    """Name of the movable MuJoCo body that carries the ground under foot number ``foot``."""
    return f"floor_{foot}"


def build_mujoco_model(urdf_xml: str, sole_frames: Sequence[str], imu_frame: str, timestep: float) -> mujoco.MjModel:
    """Compile the walking robot; each foot has a floor of its own, at z = 0 until it is moved.

    Parameters
    ----------
    urdf_xml : text of the URDF
    sole_frames : URDF links at the bottom of the feet
    imu_frame : URDF link of the inertial measurement unit
    timestep : integration step [s]

    Raises
    ------
    SimulationError
        When the URDF cannot be compiled, a frame is missing, or a foot has no collision shape.
    """
    try:
        spec = mujoco.MjSpec.from_string(urdf_xml)
        _drop_meshes(spec)
        _set_options(spec, timestep)
        spec.worldbody.first_body().add_freejoint()
        _add_sensors(spec, sole_frames, imu_frame)
        _add_contacts(spec, sole_frames)
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
    spec.compiler.discardvisual = False  # shapes that touch nothing are still worth drawing
    spec.option.timestep = timestep
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_EULER
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.impratio = 20.0
    spec.option.tolerance = _SOLVER_TOLERANCE
    spec.option.iterations = _SOLVER_ITERATIONS


def _drop_meshes(spec: mujoco.MjSpec) -> None:
    """Take mesh shapes out: their files need not be reachable, and no contact needs them."""
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


def _add_sensors(spec: mujoco.MjSpec, sole_frames: Sequence[str], imu_frame: str) -> None:
    _link(spec, imu_frame).add_site(name=_IMU_SITE)
    for foot, frame in enumerate(sole_frames):
        _link(spec, frame).add_site(name=sole_site(foot))
    for name, kind in (
        (ACCELEROMETER, mujoco.mjtSensor.mjSENS_ACCELEROMETER),
        (GYROSCOPE, mujoco.mjtSensor.mjSENS_GYRO),
    ):
        spec.add_sensor(name=name, type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=_IMU_SITE)


def _add_contacts(spec: mujoco.MjSpec, sole_frames: Sequence[str]) -> None:
    """Let the collision shapes of each foot, and only these, touch the floor of that foot.

    A plane a foot, moved while the foot is in the air, is ground of any shape without edges between its patches.
    """
    for geom in spec.geoms:
        geom.contype, geom.conaffinity = 0, 0
    for foot, frame in enumerate(sole_frames):
        floor = spec.worldbody.add_body(name=floor_body(foot), mocap=True)
        floor.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0.0, 0.0, 1.0], contype=1 << foot, conaffinity=0)
        geoms = _foot_geoms(_link(spec, frame))
        if not geoms:
            raise SimulationError(f"the foot with the sole frame {frame!r} has no box, sphere or cylinder as collision")
        for geom in geoms:
            geom.contype, geom.conaffinity, geom.condim = 0, 1 << foot, 3
            geom.solref, geom.solimp = _CONTACT_SOLREF, _CONTACT_SOLIMP
            geom.friction = (_SLIDING_FRICTION, 0.0, 0.0)
            geom.priority = 1


def _foot_geoms(sole: mujoco.MjsBody) -> list[mujoco.MjsGeom]:
    """Collision shapes of the rigid foot: of the sole link and of the links it is fixed to, up to the last joint."""
    geoms = list(sole.geoms)
    body = sole
    while not list(body.joints) and body.parent.name != "world":
        body = body.parent
        geoms += list(body.geoms)
    return geoms
