"""The iCub's torso and right leg with the friction of Table 1 and figure 10."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from friction_estimator.config.robot import Coupling, uncoupled
from friction_estimator.types import FloatArray

DEGREE = np.pi / 180.0
AXES = {"x": pin.JointModelRX, "y": pin.JointModelRY, "z": pin.JointModelRZ}


@dataclass(frozen=True)
class Mechanism:
    """A limb with a fixed base, its motors and what is true of them.

    Attributes
    ----------
    name : for the page
    model : pinocchio, the joints in the order of the coupling
    coupling : motors to joints
    friction : (n, 4) K_c, K_v, sigma+, sigma- of ``asymmetric_stribeck``, in SI
    inertia : (n,) reflected inertia of the motors [kg m^2]
    gain : (n,) [N m per % PWM]
    offset : (n,) tau_0 [N m]
    """

    name: str
    model: pin.Model
    coupling: Coupling
    friction: FloatArray
    inertia: FloatArray
    gain: FloatArray
    offset: FloatArray


def zero_slope_coulomb(static_positive: float, viscous_degree: float) -> float:
    """K_c that Table 1 leaves out: zero slope at 0+ over 1 deg/s, ``K_c = sigma+ - K_v * (1 deg/s)`` [N m]."""
    return static_positive - viscous_degree


TABLE_1 = {  # sigma+ [N m], sigma- [N m], K_v [N m s/deg]
    "r_hip_pitch": (1.31, 2.24, 1.16),
    "r_hip_roll": (2.49, 0.96, 0.50),
    "r_hip_yaw": (1.30, 2.58, 1.22),
    "r_knee": (1.27, 1.95, 0.69),
    "r_ankle_pitch": (2.90, 0.71, 1.32),
    "r_ankle_roll": (2.05, 1.29, 1.20),
}


def leg() -> Mechanism:
    """Six uncoupled joints with the values of Table 1."""
    bodies = [
        ("y", (0.0, 0.0, 0.0), 1.0, (0.0, 0.0, -0.02)),
        ("x", (0.0, 0.0, 0.0), 1.0, (0.0, 0.0, -0.05)),
        ("z", (0.0, 0.0, -0.06), 2.2, (0.0, 0.0, -0.08)),
        ("y", (0.0, 0.0, -0.16), 1.8, (0.0, 0.0, -0.10)),
        ("y", (0.0, 0.0, -0.21), 0.3, (0.0, 0.0, -0.01)),
        ("x", (0.0, 0.0, 0.0), 0.9, (0.03, 0.0, -0.04)),
    ]
    table = np.array(list(TABLE_1.values()))
    coulomb = np.array([zero_slope_coulomb(plus, viscous) for plus, _, viscous in table])
    friction = np.column_stack((coulomb, table[:, 2] / DEGREE, table[:, 0], table[:, 1]))
    return Mechanism(
        "right leg, Table 1",
        _chain(bodies),
        uncoupled(tuple(TABLE_1)),
        friction,
        inertia=np.array([0.6, 0.4, 0.4, 0.4, 0.3, 0.2]),
        gain=np.array([0.30, 0.25, 0.20, 0.22, 0.20, 0.18]),
        offset=np.array([0.2, -0.1, 0.1, 0.3, -0.2, 0.0]),
    )


def torso() -> Mechanism:
    """Yaw, roll and pitch on three motors in differential configuration, each with the friction of figure 10."""
    ratio = 0.55  # radius of the motor's pulley over that of the joint's
    coupling = Coupling(
        ("torso_yaw", "torso_roll", "torso_pitch"),
        ("0B4M0", "0B3M0", "0B3M1"),
        np.array([[ratio, ratio / 2.0, ratio / 2.0], [0.0, 0.5, 0.5], [0.0, 0.5, -0.5]]),
    )
    bodies = [
        ("z", (0.0, 0.0, 0.0), 1.0, (0.0, 0.0, 0.02)),
        ("x", (0.0, 0.0, 0.05), 1.0, (0.0, 0.0, 0.0)),
        ("y", (0.0, 0.0, 0.0), 10.0, (0.0, 0.0, 0.12)),
    ]
    scale = np.array([[1.0], [0.8], [1.4]])
    figure_10 = np.array([[0.85, 0.31 / DEGREE, 1.27, 1.95]])
    return Mechanism(
        "torso, figure 10 scaled by 1, 0.8 and 1.4",
        _chain(bodies),
        coupling,
        scale * figure_10,
        inertia=np.array([0.3, 0.35, 0.35]),
        gain=np.array([0.25, 0.30, 0.28]),
        offset=np.array([0.1, -0.2, 0.3]),
    )


def _chain(bodies: list[tuple[str, tuple[float, ...], float, tuple[float, ...]]]) -> pin.Model:
    """Axis, place of the joint in its parent [m], mass [kg] and its centre [m] of one body after another."""
    model, parent = pin.Model(), 0
    for k, (axis, place, mass, centre) in enumerate(bodies):
        parent = model.addJoint(parent, AXES[axis](), pin.SE3(np.eye(3), np.array(place)), f"joint_{k}")
        inertia = pin.Inertia(mass, np.array(centre), mass * np.diag([0.004, 0.004, 0.003]))
        model.appendBodyToJoint(parent, inertia, pin.SE3.Identity())
    return model
