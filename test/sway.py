"""An exact motion of the whole robot: both feet rest, the trunk sways; all sensors and torques by pinocchio alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count

import numpy as np
import pinocchio as pin

from friction_estimator.types import ImuSample, JointSample, WrenchSample

DT = 1e-3


@dataclass(frozen=True)
class SwayInstant:
    """Samples of one millisecond, and what only the generator knows."""

    joints: JointSample
    imu: ImuSample
    wrenches: tuple[WrenchSample, WrenchSample]
    friction: np.ndarray
    position: np.ndarray
    rotation: np.ndarray
    velocity: np.ndarray


def friction_law(velocity: np.ndarray) -> np.ndarray:
    """True friction: Coulomb and viscous, smooth at zero."""
    return 0.6 * np.tanh(velocity / 0.01) + 0.9 * velocity


def sway(urdf_xml: str, seconds: float, amplitude: float = 0.02, turn: float = 0.0) -> Iterator[SwayInstant]:
    """Sway by ``amplitude`` [m] in all directions, and turn by ``turn`` [rad] about all axes; computed once."""
    instants, rest = _motion(urdf_xml, amplitude, turn)
    for k in range(round(seconds / DT)):
        if k == len(instants):
            instants.append(next(rest))
        yield instants[k]


@cache
def _motion(urdf_xml: str, amplitude: float, turn: float) -> tuple[list[SwayInstant], Iterator[SwayInstant]]:
    """The instants that were asked for so far, and those to come."""
    return [], _compute(urdf_xml, amplitude, turn)


def _compute(urdf_xml: str, amplitude: float, turn: float) -> Iterator[SwayInstant]:
    model = pin.buildModelFromXML(urdf_xml, pin.JointModelFreeFlyer())
    data = model.createData()
    feet = [model.getFrameId(name) for name in ("l_sole", "r_sole")]
    q = pin.neutral(model)
    q[7:] = np.tile([0.0, 0.0, -0.35, 0.7, -0.35, 0.0], 2)
    pin.framesForwardKinematics(model, data, q)
    height = -data.oMf[feet[0]].translation[2]
    q[2] += height
    pin.framesForwardKinematics(model, data, q)
    targets = [data.oMf[foot].copy() for foot in feet]
    frequency, shift = np.array([0.5, 0.7, 0.6]), np.array([0.0, 1.0, 2.0])
    start = np.array([0.0, 0.0, height])
    for k in count():
        position, velocity, acceleration = _ramped_sine(k * DT, frequency, shift)
        angle, rate, angular = _ramped_sine(k * DT, frequency[::-1], shift)
        base = pin.SE3(pin.exp3(turn * angle), start + amplitude * position)
        # body rates of exp(turn * angle(t)) by the right Jacobian, derivative by differences of it
        omega = pin.Jexp3(turn * angle) @ (turn * rate)
        later = _ramped_sine(k * DT + 1e-6, frequency[::-1], shift)
        earlier = _ramped_sine(k * DT - 1e-6, frequency[::-1], shift)
        omega_dot = (pin.Jexp3(turn * later[0]) @ later[1] - pin.Jexp3(turn * earlier[0]) @ earlier[1]) * turn / 2e-6
        q[:3], q[3:7] = base.translation, pin.Quaternion(base.rotation).coeffs()
        _solve_legs(model, data, q, feet, targets)
        yield _instant(model, data, q, feet, base, amplitude * velocity, amplitude * acceleration, omega, omega_dot, k)


def _ramped_sine(t, frequency, shift):
    """Sines that begin at rest: position, velocity, acceleration."""
    w = 2 * np.pi * frequency
    s = np.clip(t / 1.0, 0.0, 1.0)
    ramp, d_ramp, dd_ramp = 10 * s**3 - 15 * s**4 + 6 * s**5, 30 * s**2 * (1 - s) ** 2, 60 * s - 180 * s**2 + 120 * s**3
    sine, cosine = np.sin(w * t + shift), np.cos(w * t + shift)
    return (
        ramp * sine,
        d_ramp * sine + ramp * w * cosine,
        dd_ramp * sine + 2 * d_ramp * w * cosine - ramp * w**2 * sine,
    )


def _solve_legs(model, data, q, feet, targets):
    for _ in range(8):
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        errors = [pin.log6(data.oMf[foot].actInv(target)).vector for foot, target in zip(feet, targets, strict=True)]
        if max(np.abs(error).max() for error in errors) < 1e-12:
            return
        for leg, (foot, error) in enumerate(zip(feet, errors, strict=True)):
            columns = slice(6 + 6 * leg, 12 + 6 * leg)
            J = pin.getFrameJacobian(model, data, foot, pin.LOCAL)[:, columns]
            q[7 + 6 * leg : 13 + 6 * leg] += np.linalg.solve(J, error)


def _instant(model, data, q, feet, base, velocity, acceleration, omega, omega_dot, k):
    v, a = np.zeros(18), np.zeros(18)
    v[:3], v[3:6] = base.rotation.T @ velocity, omega
    a[:3] = base.rotation.T @ acceleration - np.cross(omega, v[:3])
    a[3:6] = omega_dot
    jacobians = [pin.computeFrameJacobian(model, data, q, foot, pin.LOCAL) for foot in feet]
    for leg, J in enumerate(jacobians):
        columns = slice(6 + 6 * leg, 12 + 6 * leg)
        v[columns] = -np.linalg.solve(J[:, columns], J[:, :6] @ v[:6])
    pin.forwardKinematics(model, data, q, v, np.zeros(18))
    pin.updateFramePlacements(model, data)
    for leg, (foot, J) in enumerate(zip(feet, jacobians, strict=True)):
        columns = slice(6 + 6 * leg, 12 + 6 * leg)
        bias = pin.getFrameClassicalAcceleration(model, data, foot, pin.LOCAL).vector
        a[columns] = -np.linalg.solve(J[:, columns], J[:, :6] @ a[:6] + bias)
    needed = pin.rnea(model, data, q, v, a)
    stacked = np.hstack([J[:, :6].T for J in jacobians])
    wrenches = (np.linalg.pinv(stacked) @ needed[:6]).reshape(2, 6)
    link_torque = needed[6:] - sum(J[:, 6:].T @ w for J, w in zip(jacobians, wrenches, strict=True))
    pin.forwardKinematics(model, data, q, v, a)
    pin.updateFramePlacements(model, data)
    imu = pin.getFrameClassicalAcceleration(model, data, model.getFrameId("imu_link"), pin.LOCAL)
    friction = friction_law(v[6:])
    stamp = k * 1_000_000
    return SwayInstant(
        joints=JointSample(stamp, q[7:].copy(), v[6:].copy(), link_torque + friction),
        imu=ImuSample(stamp, omega.copy(), imu.linear - base.rotation.T @ [0.0, 0.0, -9.81]),
        wrenches=(WrenchSample(stamp, 0, wrenches[0]), WrenchSample(stamp, 1, wrenches[1])),
        friction=friction,
        position=base.translation.copy(),
        rotation=base.rotation.copy(),
        velocity=velocity,
    )
