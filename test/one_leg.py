"""An exact motion on the left leg, both legs moving alike; all sensors and torques by pinocchio alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from friction_estimator.types import Attitude, ContactPhase, ImuSample, JointSample, SensorFrame, WrenchSample

DT = 1e-3
GRAVITY = np.array([0.0, 0.0, -9.81])
_MIDDLE = np.tile([0.0, 0.0, -0.4, 0.8, -0.4, 0.0], 2)
_AMPLITUDE = np.tile([0.1, 0.05, 0.15, 0.3, 0.15, 0.05], 2)


@dataclass(frozen=True)
class OneLegInstant:
    """What ideal sensors read, and what only the generator knows."""

    frame: SensorFrame
    attitude: Attitude
    phase: ContactPhase
    acceleration: np.ndarray
    friction: np.ndarray

    @property
    def samples(self) -> tuple[JointSample, ImuSample, tuple[WrenchSample, ...]]:
        f = self.frame
        feet = tuple(WrenchSample(f.stamp_ns, foot, wrench) for foot, wrench in enumerate(f.wrenches))
        joints = JointSample(f.stamp_ns, f.position, f.velocity, f.effort)
        return joints, ImuSample(f.stamp_ns, f.angular_velocity, f.specific_force), feet


def friction_law(velocity: np.ndarray) -> np.ndarray:
    """True friction: Coulomb and viscous."""
    return 0.6 * np.sign(velocity) + 0.9 * velocity


def one_leg(
    urdf_xml: str, seconds: float, dt: float = DT, start: float = 0.0, held: int | None = None
) -> Iterator[OneLegInstant]:
    """Sines of 0.5 to 0.9 Hz in all joints but the one ``held``, from the time ``start`` on."""
    model = pin.buildModelFromXML(urdf_xml, pin.JointModelFreeFlyer())
    data = model.createData()
    n = model.nv - 6
    frequency, shift = 2 * np.pi * np.tile(np.linspace(0.5, 0.9, n // 2), 2), np.arange(n) * 1.3
    amplitude = np.where(np.arange(n) == held, 0.0, _AMPLITUDE[-n:])
    for k in range(round(seconds / dt)):
        angle = frequency * (start + k * dt) + shift
        q, v, a = pin.neutral(model), np.zeros(n + 6), np.zeros(n + 6)
        q[7:] = _MIDDLE[-n:] + amplitude * np.sin(angle)
        v[6:] = amplitude * frequency * np.cos(angle)
        a[6:] = -amplitude * frequency**2 * np.sin(angle)
        yield _instant(model, data, q, v, a, k, dt)


def _instant(model, data, q, v, a, k, dt):
    """Put the left sole at the origin, at rest, and fill in the base; friction as the law says."""
    sole = model.getFrameId("l_sole")
    pin.framesForwardKinematics(model, data, q)
    base = data.oMf[sole].inverse()
    q[:7] = pin.SE3ToXYZQUAT(base)
    J = pin.computeFrameJacobian(model, data, q, sole, pin.LOCAL)
    v[:6] = -np.linalg.solve(J[:, :6], J[:, 6:] @ v[6:])
    pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
    pin.updateFramePlacements(model, data)
    bias = pin.getFrameClassicalAcceleration(model, data, sole, pin.LOCAL).vector
    a[:6] = -np.linalg.solve(J[:, :6], J[:, 6:] @ a[6:] + bias)
    needed = pin.rnea(model, data, q, v, a)
    wrench = np.linalg.solve(J[:, :6].T, needed[:6])
    friction = friction_law(v[6:])
    effort = needed[6:] - J[:, 6:].T @ wrench + friction
    pin.forwardKinematics(model, data, q, v, a)
    pin.updateFramePlacements(model, data)
    imu = pin.getFrameClassicalAcceleration(model, data, model.getFrameId("imu_link"), pin.LOCAL).linear
    specific_force = imu - base.rotation.T @ GRAVITY
    return OneLegInstant(
        frame=SensorFrame(
            stamp_ns=round(k * dt * 1e9),
            dt=dt if k else 0.0,
            position=q[7:].copy(),
            velocity=v[6:].copy(),
            effort=effort,
            angular_velocity=v[3:6].copy(),
            specific_force=specific_force,
            wrenches=np.array([wrench, np.zeros(6)]),
            imu_fresh=True,
            wrench_fresh=np.array([True, True]),
            readings_per_sample=np.ones(3),
        ),
        attitude=Attitude(
            rotation_base_to_world=base.rotation,
            angular_velocity=v[3:6].copy(),
            angular_acceleration=np.full(3, np.nan),  # not needed, and so never read
            specific_force=specific_force,
            covariance=np.zeros((3, 3)),
            rate_covariance=np.zeros((3, 3)),
        ),
        phase=ContactPhase(np.array([True, False]), np.array([10.0, 10.0]), "left_support"),
        acceleration=a[6:].copy(),
        friction=friction,
    )
