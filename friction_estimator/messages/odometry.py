"""Base states and nav_msgs/Odometry: the twist of an Odometry is in the base axes, ours is in the world's."""

from __future__ import annotations

from typing import Any

import numpy as np

from friction_estimator.core.base.rotations import quaternion_from_matrix
from friction_estimator.core.types import FloatArray
from friction_estimator.messages.types import MessageTypes, make_header, make_vector


def make_odometry(
    types: MessageTypes,
    stamp_ns: int,
    frames: tuple[str, str],
    position: FloatArray,
    rotation: FloatArray,
    linear_velocity: FloatArray,
    angular_velocity: FloatArray,
    pose_covariance: FloatArray | None = None,
    twist_covariance: FloatArray | None = None,
) -> Any:
    """Odometry of a base.

    Parameters
    ----------
    types : message classes
    stamp_ns : header stamp [ns]
    frames : world frame and base frame
    position : (3,) of the base in the world [m]
    rotation : (3, 3) base to world
    linear_velocity : (3,) of the base origin, world axes [m/s]
    angular_velocity : (3,) base axes [rad/s]
    pose_covariance : (6, 6) position, then rotation about the world axes; None: zero
    twist_covariance : (6, 6) linear (world axes), then angular (base axes); None: zero
    """
    w, x, y, z = quaternion_from_matrix(rotation).tolist()
    px, py, pz = position.tolist()
    pose = types.make(
        "geometry_msgs/msg/Pose",
        position=types.make("geometry_msgs/msg/Point", x=px, y=py, z=pz),
        orientation=types.make("geometry_msgs/msg/Quaternion", x=x, y=y, z=z, w=w),
    )
    twist = types.make(
        "geometry_msgs/msg/Twist",
        linear=make_vector(types, rotation.T @ linear_velocity),
        angular=make_vector(types, angular_velocity),
    )
    return types.make(
        "nav_msgs/msg/Odometry",
        header=make_header(types, stamp_ns, frames[0]),
        child_frame_id=frames[1],
        pose=types.make("geometry_msgs/msg/PoseWithCovariance", pose=pose, covariance=_flat(pose_covariance)),
        twist=types.make(
            "geometry_msgs/msg/TwistWithCovariance",
            twist=twist,
            covariance=_flat(_in_base_axes(twist_covariance, rotation)),
        ),
    )


def _in_base_axes(covariance: FloatArray | None, rotation: FloatArray) -> FloatArray | None:
    if covariance is None:
        return None
    turn = np.eye(6)
    turn[:3, :3] = rotation.T
    return turn @ covariance @ turn.T


def _flat(covariance: FloatArray | None) -> FloatArray:
    return np.zeros(36) if covariance is None else np.ascontiguousarray(covariance, dtype=np.float64).reshape(36)
