"""A two-joint arm in a vertical plane, its exact motions and torques."""

import numpy as np

from friction_estimator.core.joint_log import Payload
from friction_estimator.identification.recording.motion import Motion
from friction_estimator.identification.rigid_body.fixed_base_model import FixedBaseModel

JOINTS = ("shoulder", "elbow")
_LINK = (
    '<link name="{0}"><inertial><origin xyz="{1} 0.01 0.02"/><mass value="{2}"/>'
    '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.05" iyz="0" izz="0.05"/></inertial></link>'
)
_JOINT = (
    '<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><origin xyz="{3} 0 0"/>'
    '<axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="99" velocity="9"/></joint>'
)
URDF = (
    '<robot name="arm"><link name="base"/>'
    + _LINK.format("upper", 0.2, 4.0)
    + _LINK.format("lower", 0.15, 2.5)
    + '<link name="hand"/>'
    + _JOINT.format("shoulder", "base", "upper", 0.0)
    + _JOINT.format("elbow", "upper", "lower", 0.4)
    + '<joint name="wrist" type="fixed"><parent link="lower"/><child link="hand"/><origin xyz="0.3 0 0"/></joint>'
    + "</robot>"
)
PAYLOAD = Payload("hand", 2.0, np.zeros(3), 0.005 * np.eye(3))
HANGING = np.array([np.pi / 2.0, 0.0])
COULOMB = np.array([5.0, 2.0])
VISCOUS = np.array([3.0, 1.0])
OFFSET = np.array([0.5, -0.3])
DRIVE_INERTIA = np.array([0.3, 0.1])


def move(seed, duration=20.0, period=0.005, speed=1.0):
    """Position, velocity and acceleration (3, N, 2) of sums of five sines about the hanging arm."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, duration, period)[:, None, None]
    omega = 2.0 * np.pi * speed * np.array([0.1, 0.23, 0.37, 0.53, 0.71])
    size, phase = rng.uniform(0.15, 0.5, (2, 5)) / omega * omega[0] * 2.0, rng.uniform(0.0, 6.28, (2, 5))
    angle = omega * time + phase
    waves = size * np.sin(angle), size * omega * np.cos(angle), -size * omega**2 * np.sin(angle)
    motion = np.array([wave.sum(axis=2) for wave in waves])
    motion[0] += HANGING
    return motion


def rigid_torque(motion, payload=None):
    q, v, a = motion
    return FixedBaseModel(URDF, JOINTS).torque(q, v, a, payload) + DRIVE_INERTIA * a


def coulomb_viscous(velocity):
    return COULOMB * np.sign(velocity) + VISCOUS * velocity + OFFSET


def as_motion(motion, effort, payload=None, period=0.005, inputs=None, joints=JOINTS, name="run"):
    q, v, a = motion
    time = np.arange(len(q)) * period
    segment = (time // 1.0).astype(np.intp)
    return Motion(name, joints, period, time, q, v, a, effort, inputs or {}, segment, payload, "", ())
