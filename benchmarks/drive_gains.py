"""Does `identify --drive-gains` find the torque per ampere of every joint from a payload of known mass?

    python -m benchmarks.drive_gains [--seeds 8]

Prints the table of docs/results/identification.md, "Drive gains": a UR5 moves 20 s without and 20 s with 3 kg, with
gains drawn at random, friction, drive inertia, and noise of 2 % of the current. Errors are relative to the truth. One
motion takes a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.shared.command import command, count, make_parser
from benchmarks.shared.pages import header, row
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.method import run
from friction_estimator.identification.inverse_dynamics.options import InverseDynamicsOptions
from friction_estimator.identification.joint_log import JointLog, Payload, RobotDescription
from friction_estimator.identification.linear_problem import rms
from friction_estimator.io.robot import as_robot
from friction_estimator.robot.urdf import movable_joints, parse_urdf
from friction_estimator.types import FloatArray

_PERIOD, _DURATION = 0.005, 20.0
_HARMONICS = 2.0 * np.pi * 0.1 * np.arange(1, 5)
"""Angular frequencies of the motion [rad/s]."""
_FRAME, _MASS, _COM = "tool0", 3.0, np.array([0.02, 0.0, 0.08])
_COULOMB = np.array([3.0, 3.0, 2.0, 1.0, 0.6, 0.4])
_VISCOUS, _DRIVE_INERTIA = 2.0 * _COULOMB, 0.1 * _COULOMB
_SPEED_OF_SIGN = 0.005
_NOISE = 0.02
"""Noise of the current, in its mean size."""


def recording(model: FixedBaseModel, gains: FloatArray, payload: Payload | None, seed: int) -> JointLog:
    """Positions and currents of a sum of sines; gains (n,) [N m/A]."""
    random, n = np.random.default_rng(seed), len(model.joint_names)
    time = np.arange(0.0, _DURATION, _PERIOD)
    size, phase = (
        0.35 * random.normal(size=(n, _HARMONICS.size)),
        random.uniform(0.0, 2.0 * np.pi, (n, _HARMONICS.size)),
    )
    angle = _HARMONICS * time[:, None, None] + phase
    q, v, a = (
        (factor * wave).sum(axis=2)
        for factor, wave in (
            (size, np.sin(angle)),
            (size * _HARMONICS, np.cos(angle)),
            (-size * _HARMONICS**2, np.sin(angle)),
        )
    )
    lost = _COULOMB * np.tanh(v / _SPEED_OF_SIGN) + _VISCOUS * v + _DRIVE_INERTIA * a
    current = (model.torque(q, v, a, payload) + lost) / gains
    current += _NOISE * np.abs(current).mean(axis=0) * random.normal(size=current.shape)
    noisy = q + 2e-5 * random.normal(size=q.shape), v + 1e-3 * random.normal(size=v.shape)
    return JointLog("free" if payload is None else "loaded", model.joint_names, time, *noisy, current)


@command
def main(arguments: Sequence[str] | None = None) -> None:
    """Identify all recordings, with the payload's centre of mass and without it."""
    parser = make_parser("drive_gains", __doc__)
    parser.add_argument("--seeds", type=count, default=8, help="number of motions")
    given, robot = parser.parse_args(arguments), as_robot("ur5")
    model = FixedBaseModel(robot.urdf_xml, movable_joints(parse_urdf(robot.urdf_xml)))
    options = InverseDynamicsOptions(drive_gains=True)
    whole = Payload(_FRAME, _MASS, _COM, np.zeros((3, 3)))
    print(header(("known of the payload", "parameter", "RMS error", "mean sigma", "within 2 sigma", "largest error")))
    for words, known in (("mass and centre of mass", whole), ("mass", Payload(_FRAME, _MASS))):
        found: dict[str, list[tuple[float, float]]] = {"drive_gain": [], "coulomb": []}
        for seed in range(given.seeds):
            random = np.random.default_rng(1000 + seed)
            gains = np.exp(random.uniform(np.log(0.5), np.log(30.0))) * random.uniform(0.7, 1.4, len(model.joint_names))
            logs = [recording(model, gains, None, seed), recording(model, gains, whole, seed + 500)]
            logs[1] = replace(logs[1], payload=known)
            table = run(logs, RobotDescription(robot.urdf_xml, True), options).parameters
            for kind, truth in (("drive_gain", gains), ("coulomb", _COULOMB)):
                rows = [table.names.index(f"{joint}/{kind}") for joint in model.joint_names]
                pairs = zip(table.values[rows] / truth - 1.0, table.sigma[rows] / truth, strict=True)
                found[kind] += [(float(error), float(sigma)) for error, sigma in pairs]
        for kind, errors in found.items():
            error, sigma = np.abs(np.array(errors).T)
            numbers = [f"{100.0 * value:.2f} %" for value in (rms(error), sigma.mean())]
            print(row((words, kind, *numbers, f"{100.0 * np.mean(error <= 2.0 * sigma):.0f} %",
                       f"{100.0 * error.max():.2f} %")), flush=True)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
