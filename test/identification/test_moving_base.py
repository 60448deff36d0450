"""A leg whose base shakes at 10 Hz, which no model of a fixed base has: friction comes from the motion below that."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

import friction_estimator as fe

JOINTS = ("hip", "knee")
COULOMB, VISCOUS = np.array([0.3, 0.15]), np.array([0.2, 0.1])
_RATE, _DURATION, _SHAKES = 1000, 20.0, 10.0


def _link(name: str, mass: float) -> str:
    inertia = f'<inertia ixx="5e-4" iyy="{mass / 300}" izz="{mass / 300}" ixy="0" ixz="0" iyz="0"/>'
    return f'<link name="{name}"><inertial><origin xyz="0.1 0 0"/><mass value="{mass}"/>{inertia}</inertial></link>'


def _joint(name: str, parent: str, child: str, x: float) -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="{x} 0 0"/><axis xyz="0 1 0"/>'
    limit = '<limit lower="-3" upper="3" velocity="20" effort="30"/>'
    return f'<joint name="{name}" type="revolute">{ends}{limit}</joint>'


URDF = (
    f'<robot name="leg"><link name="base"/>{_link("upper", 0.6)}{_link("lower", 0.4)}'
    f"{_joint('hip', 'base', 'upper', 0.0)}{_joint('knee', 'upper', 'lower', 0.2)}</robot>"
)


def shaken_leg() -> dict[str, np.ndarray]:
    """Columns of a recording: PD control along sines, with the base accelerated by up to 20 m/s^2."""
    model, rng = pin.buildModelFromXML(URDF), np.random.default_rng(1)
    model.armature = np.array([0.01, 0.01])
    data, dt = model.createData(), 1.0 / (5 * _RATE)
    time = np.arange(round(_DURATION * _RATE)) / _RATE
    wanted = np.tile([1.2, -0.8], (time.size, 1))
    for harmonic in (1, 2, 3, 5, 7, 11):
        size = np.array([0.2, 0.33]) * rng.uniform(0.5, 1.2, 2) / harmonic**0.5
        wanted += size * np.sin(2 * np.pi * 0.15 * harmonic * time[:, None] + rng.uniform(0.0, 2 * np.pi, 2))
    q, v, w = wanted[0].copy(), np.zeros(2), 2 * np.pi * _SHAKES
    rows = []
    for t, target in zip(time, wanted, strict=True):
        torque = 20.0 * (target - q) - 0.5 * v
        rows.append((q, v, torque))
        for step in range(5):
            phase = w * (t + step * dt)
            strength = 0.003 * (1.0 + 0.5 * np.sin(2 * np.pi * 0.3 * t + 1.0)) * w * w
            model.gravity.linear = np.array([0.0, 0.0, -9.81]) - strength * np.array(
                [np.sin(phase), 0.0, 0.3 * np.cos(phase)]
            )
            friction = COULOMB * np.tanh(v / 0.01) + VISCOUS * v
            v = v + dt * pin.aba(model, data, q, v, torque - friction)
            q = q + dt * v
    position, velocity, effort = (np.array(column) for column in zip(*rows, strict=True))
    position = position + 1e-4 * rng.standard_normal(position.shape)
    velocity = velocity + 2e-3 * rng.standard_normal(velocity.shape)
    signals = {"position": position, "velocity": velocity, "effort": effort}
    columns = {f"{kind}/{name}": table[:, k] for k, name in enumerate(JOINTS) for kind, table in signals.items()}
    return {"time": time, **columns}


def test_a_base_that_shakes_is_left_out_by_the_band(tmp_path):
    np.savez(tmp_path / "leg.npz", **shaken_leg())
    (tmp_path / "leg.urdf").write_text(URDF)
    found = fe.identify(tmp_path / "leg.npz", tmp_path / "leg.urdf", law="coulomb_viscous").parameters
    rows = [found.names.index(f"{name}/{kind}") for name in JOINTS for kind in ("coulomb", "viscous")]
    error = found.values[rows] - np.column_stack((COULOMB, VISCOUS)).ravel()
    assert (np.abs(error) < 2.5 * found.sigma[rows]).all() and np.abs(error).max() < 0.03
