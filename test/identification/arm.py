"""The arm of `benchmarks/sigma_coverage`, its exact motions and torques, with a payload where wanted."""

import numpy as np

from benchmarks.sigma_coverage.arm import (
    COULOMB,
    DRIVE_INERTIA,
    HANGING,
    JOINTS,
    OFFSET,
    URDF,
    VISCOUS,
    five_sines,
    rigid_torque,
    sine,
)
from friction_estimator.identification.joint_log import Payload
from friction_estimator.identification.recording.motion import Motion

__all__ = [
    "COULOMB", "DRIVE_INERTIA", "HANGING", "JOINTS", "OFFSET", "PAYLOAD", "URDF", "VISCOUS", "as_motion",
    "coulomb_viscous", "move", "rigid_torque", "sine",
]  # fmt: skip
PAYLOAD = Payload("hand", 2.0, np.zeros(3), 0.005 * np.eye(3))


def move(seed, duration=20.0, period=0.005, speed=1.0):
    """Position, velocity and acceleration (3, N, 2) of sums of five sines about the hanging arm."""
    return five_sines(seed, duration, speed, period)


def coulomb_viscous(velocity):
    return COULOMB * np.sign(velocity) + VISCOUS * velocity + OFFSET


def as_motion(motion, effort, payload=None, period=0.005, inputs=None, joints=JOINTS, name="run"):
    q, v, a = motion
    time = np.arange(len(q)) * period
    segment = (time // 1.0).astype(np.intp)
    return Motion(name, joints, period, time, q, v, a, effort, inputs or {}, segment, payload, "", ())
