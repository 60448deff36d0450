"""Rollout: a robot with a fixed base follows recorded commands in MuJoCo, its drives as they were identified."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from friction_estimator.errors import SimulationError
from friction_estimator.io.export.robot_models import STICTION_IMPEDANCE, STICTION_REFERENCE
from friction_estimator.robot.urdf import checked_urdf
from friction_estimator.simulation.physics import drop_meshes
from friction_estimator.types import FloatArray

_STEP = 1e-3
"""Longest step of the integration [s]: drives compute their torque at about that rate."""


@dataclass(frozen=True, slots=True)
class Drives:
    """Joints with drives that compute ``kp (q_des - q) - kd dq``, and what the simulator knows of them.

    Attributes
    ----------
    joints : (n) names in the URDF; all other joints are locked at zero
    kp, kd : (N, n) gains at every sample [N m/rad, N m s/rad]
    frictionloss, damping, armature : (n) of MuJoCo [N m, N m s/rad, kg m^2]
    offset : (n) constant part of the torque that the drive computes and that does not act [N m]
    delay : (n) by which torques, or commands, act late [s]
    late_command : the command is late, not the feedback
    """

    joints: tuple[str, ...]
    kp: FloatArray
    kd: FloatArray
    frictionloss: FloatArray
    damping: FloatArray
    armature: FloatArray
    offset: FloatArray
    delay: FloatArray
    late_command: bool = False


def rollout(urdf_xml: str, drives: Drives, time: FloatArray, command: FloatArray, start: FloatArray) -> FloatArray:
    """Positions (N, n) of the simulated joints [rad].

    Parameters
    ----------
    urdf_xml : text of the URDF, whose inertia is used
    drives : of the joints (n)
    time : (N,) strictly increasing [s]
    command : (N, n) positions, held from sample to sample [rad]
    start : (n) positions at the first sample, at rest [rad]

    Raises
    ------
    SimulationError
        When MuJoCo cannot simulate the URDF, or the joints run away.
    """
    model, places = _model(urdf_xml, drives)
    data = mujoco.MjData(model)
    data.qpos[places] = start
    mujoco.mj_forward(model, data)
    count = int(np.ceil((time[-1] - time[0]) / _STEP)) + 1
    sample = np.clip(np.searchsorted(time - time[0], np.arange(count) * _STEP, side="right") - 1, 0, None)
    late = np.rint(drives.delay / _STEP).astype(np.intp)
    columns = np.arange(len(drives.joints))
    torque, position = np.zeros((count, len(drives.joints))), np.zeros((count, len(drives.joints)))
    for k in range(count):
        position[k], velocity = data.qpos[places], data.qvel[places]
        before = np.clip(k - late, 0, k)
        desired = command[sample[before if drives.late_command else k], columns]
        row = sample[k]
        torque[k] = drives.kp[row] * (desired - position[k]) - drives.kd[row] * velocity - drives.offset
        data.qfrc_applied[places] = torque[k] if drives.late_command else torque[before, columns]
        mujoco.mj_step(model, data)
    if not np.isfinite(position).all() or data.warning[mujoco.mjtWarning.mjWARN_BADQACC].number:
        raise SimulationError("the simulated joints run away: with these gains and delays, the drives are not stable")
    grid = np.arange(count) * _STEP
    return np.column_stack([np.interp(time - time[0], grid, column) for column in position.T])


def _model(urdf_xml: str, drives: Drives) -> tuple[mujoco.MjModel, FloatArray]:
    """The robot without contacts, its base fixed, and where its joints are among positions and velocities."""
    try:
        spec = mujoco.MjSpec.from_string(checked_urdf(urdf_xml))
        drop_meshes(spec)
        for joint in list(spec.joints):
            if joint.name not in drives.joints:
                spec.delete(joint)
        spec.option.timestep = _STEP
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        spec.option.disableflags = mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
        model = spec.compile()
        places = np.array([model.joint(name).dofadr[0] for name in drives.joints])
    except (ValueError, KeyError, mujoco.FatalError) as error:
        raise SimulationError(f"MuJoCo cannot simulate the URDF: {error}") from None
    model.dof_frictionloss[places], model.dof_damping[places] = drives.frictionloss, drives.damping
    model.dof_armature[places] = drives.armature
    model.dof_solref[places] = [float(value) for value in STICTION_REFERENCE.split()]
    model.dof_solimp[places] = [float(value) for value in STICTION_IMPEDANCE.split()]
    return model, places
