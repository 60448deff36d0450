"""Planned motion of joints: what files and bags write, whoever planned it."""

from __future__ import annotations

from dataclasses import dataclass

from friction_estimator.types import FloatArray


@dataclass(frozen=True, slots=True)
class JointTrajectory:
    """Motion of ``n`` joints at ``N`` instants.

    Attributes
    ----------
    joint_names : (n)
    time : (N,) from zero on [s]
    position, velocity, acceleration : (N, n) [rad, rad/s, rad/s^2] or [m, m/s, m/s^2]
    """

    joint_names: tuple[str, ...]
    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
