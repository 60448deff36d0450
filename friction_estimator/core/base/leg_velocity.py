"""What the legs say of the velocity of the IMU, and how far they may be wrong where a standing sole seems to turn."""

from __future__ import annotations

import numpy as np

from friction_estimator.core.base.rotations import cross
from friction_estimator.core.types import BoolArray, Dynamics, FloatArray


def imu_velocity_by_legs(
    load: FloatArray, standing: BoolArray, rotation_base_to_world: FloatArray, dynamics: Dynamics
) -> FloatArray:
    """Velocity of the IMU origin that keeps the standing soles at rest, weighted by load, world axes, (3,) [m/s].

    ``dynamics.velocity`` has the IMU at rest: what a sole does there, the IMU does the other way round in the world.

    Parameters
    ----------
    load : (k,) normal forces, positive in sum over the standing feet
    standing : (k,), at least one
    """
    share = _shares(load, standing)
    sole = dynamics.foot_jacobian[standing, :3] @ dynamics.velocity
    in_base = (dynamics.foot_rotation_to_base[standing] @ sole[..., None])[..., 0]
    return np.asarray(-rotation_base_to_world @ (share @ in_base))


def imu_velocity_by_turning(
    load: FloatArray, standing: BoolArray, rotation_base_to_world: FloatArray, dynamics: Dynamics, imu: FloatArray
) -> FloatArray:
    """Mean square of the velocity that turning soles may hide from the legs, world axes, (3,) [m^2/s^2].

    A standing sole should not turn. What it seems to turn by, ``w``, it rolls, or some joint of its leg is measured
    wrong: the IMU is then faster than the legs say by ``w`` times a lever of at most the leg, ``w x (r_imu - r_sole)``.

    Parameters
    ----------
    load, standing : as in :func:`imu_velocity_by_legs`
    imu : (3,) position of the IMU in the base [m]
    """
    rate = dynamics.foot_jacobian[standing, 3:] @ dynamics.velocity
    turning = (dynamics.foot_rotation_to_base[standing] @ rate[..., None])[..., 0]
    levers = imu - dynamics.foot_position_in_base[standing]
    hidden = np.array([cross(w, r) for w, r in zip(turning, levers, strict=True)]) @ rotation_base_to_world.T
    return np.asarray(_shares(load, standing) @ hidden**2)


def _shares(load: FloatArray, standing: BoolArray) -> FloatArray:
    return np.asarray(load[standing] / load[standing].sum())
