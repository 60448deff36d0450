"""Base poses and twists, serialized: the twist of an Odometry is in the base axes, ours is in the world's."""

from __future__ import annotations

import numpy as np

from friction_estimator.messages.cdr import StampedTemplate
from friction_estimator.rotations import quaternion_from_matrix
from friction_estimator.types import BaseState, FloatArray

_NO_COVARIANCE = np.zeros((6, 6))


class OdometryTemplate:
    """Serializes nav_msgs/Odometry of one base.

    Parameters
    ----------
    frame_id, child_frame_id : world frame and base frame
    """

    def __init__(self, frame_id: str, child_frame_id: str) -> None:
        self._template = StampedTemplate(85, frame_id, child_frame_id)

    def serialize(
        self,
        stamp_ns: int,
        position: FloatArray,
        rotation: FloatArray,
        linear_velocity: FloatArray,
        angular_velocity: FloatArray,
        pose_covariance: FloatArray = _NO_COVARIANCE,
        twist_covariance: FloatArray = _NO_COVARIANCE,
    ) -> bytes:
        """Bytes of a message.

        Parameters
        ----------
        stamp_ns : header stamp [ns]
        position : (3,) of the base in the world [m]
        rotation : (3, 3) base to world
        linear_velocity : (3,) of the base origin, world axes [m/s]
        angular_velocity : (3,) base axes [rad/s]
        pose_covariance : (6, 6) position, then rotation about the world axes
        twist_covariance : (6, 6) linear (world axes), then angular (base axes)
        """
        in_base_axes = twist_covariance.copy()
        in_base_axes[:3] = rotation.T @ in_base_axes[:3]
        in_base_axes[:, :3] = in_base_axes[:, :3] @ rotation
        return self._template.serialize(
            stamp_ns,
            position,
            _quaternion(rotation),
            pose_covariance,
            rotation.T @ linear_velocity,
            angular_velocity,
            in_base_axes,
        )


class TransformTemplate:
    """Serializes tf2_msgs/TFMessage with the pose of one base.

    Parameters
    ----------
    frame_id, child_frame_id : world frame and base frame
    """

    def __init__(self, frame_id: str, child_frame_id: str) -> None:
        self._template = StampedTemplate(7, frame_id, child_frame_id, sequence=True)

    def serialize(self, stamp_ns: int, base: BaseState) -> bytes:
        """Bytes of a message."""
        return self._template.serialize(stamp_ns, base.position_base_in_world, _quaternion(base.rotation_base_to_world))


def _quaternion(rotation: FloatArray) -> FloatArray:
    """In the order of geometry_msgs/Quaternion: x, y, z, w."""
    w, x, y, z = quaternion_from_matrix(rotation).tolist()
    return np.array((x, y, z, w))
