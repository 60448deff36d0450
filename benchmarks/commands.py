"""Does `identify` find the same friction from commands, whatever the gains of the drives and their delay?

    python -m benchmarks.commands [--seeds 3]

Prints the table of docs/guides/identification.md, "From commands": a leg of two joints, simulated exactly, whose drives
compute ``kp (q_des - q) - kd dq`` and apply it late; errors in standard deviations, gain by gain.
Three motions take some minutes on two cores.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import product

import numpy as np
import pinocchio as pin

from benchmarks.shared.command import command, count, make_parser
from benchmarks.shared.pages import header, row
from friction_estimator.identification.inverse_dynamics.method import run
from friction_estimator.identification.joint_log import JointLog, RobotDescription
from friction_estimator.identification.recording.torque_checks import with_drive_torque
from friction_estimator.io.robot import as_robot

GAINS = ((20.0, 0.5), (40.0, 2.0))
DELAYS = (0.0, 0.005, 0.010, 0.015)
COULOMB, VISCOUS, ARMATURE = np.array([0.3, 0.15]), np.array([0.2, 0.1]), np.array([0.05, 0.05])
_RATE, _STEPS = 500, 10
_SPEED_OF_SIGN = 0.005
_NOISE = 1e-4
URDF = as_robot("leg").urdf_xml


def recording(kp: float, kd: float, delay: float, seed: int, duration: float = 20.0, feedback: bool = True) -> JointLog:
    """Positions and commands of the leg; the delay is that of the whole torque, or without ``feedback`` of the command.

    Parameters
    ----------
    kp, kd : gains of the drives [N m/rad, N m s/rad]
    delay : of the torque [s]
    seed : of motion and noise
    duration : [s]
    """
    model = pin.buildModelFromXML(URDF)
    model.armature = ARMATURE
    data, random = model.createData(), np.random.default_rng(seed)
    count, step = int(duration * _RATE), 1.0 / (_RATE * _STEPS)
    time = np.arange(count * _STEPS) * step
    angles = np.array([1.2, -0.8])[:, None] * np.ones(time.size)
    for harmonic, joint in product((1, 2, 3, 5, 7, 11), (0, 1)):
        size = (0.5, 0.8)[joint] / np.sqrt(6.0) * random.uniform(0.5, 1.2) / np.sqrt(harmonic)
        angles[joint] += size * np.sin(2.0 * np.pi * 0.15 * harmonic * time + random.uniform(0.0, 2.0 * np.pi))
    desired, late = angles.T, round(delay / step)
    q, v, torque = desired[0].copy(), np.zeros(2), np.zeros((time.size, 2))
    position = np.zeros((time.size, 2))
    for k in range(time.size):
        position[k] = q
        torque[k] = kp * ((desired[k] if feedback else desired[max(k - late, 0)]) - q) - kd * v
        applied = torque[max(k - late, 0)] if feedback else torque[k]
        friction = COULOMB * np.tanh(v / _SPEED_OF_SIGN) + VISCOUS * v
        v = v + step * pin.aba(model, data, q, v, applied - friction)
        q = q + step * v
    kept = slice(None, None, _STEPS)
    noisy = position[kept] + _NOISE * random.normal(size=(count, 2))
    return JointLog("leg", ("hip", "knee"), time[kept], noisy, inputs={"command": desired[kept]})


def errors(kp: float, kd: float, delay: float, seed: int) -> dict[str, tuple[float, float]]:
    """Error and standard deviation of friction, armature and delay of both joints, by name."""
    log = with_drive_torque(recording(kp, kd, delay, seed), kp, kd)
    table = run([log], RobotDescription(URDF, fixed_base=True)).parameters
    found = dict(zip(table.names, zip(table.values.tolist(), table.sigma.tolist(), strict=True), strict=True))
    truth = {f"{joint}/delay": delay for joint in ("hip", "knee")}
    for k, joint in enumerate(("hip", "knee")):
        truth |= {f"{joint}/coulomb": COULOMB[k], f"{joint}/viscous": VISCOUS[k], f"Ia {joint}": ARMATURE[k]}
    return {name: (found[name][0] - value, found[name][1]) for name, value in truth.items()}


@command
def main(arguments: Sequence[str] | None = None) -> None:
    """Identify all recordings, and print coverage and largest errors."""
    parser = make_parser("commands", __doc__)
    parser.add_argument("--seeds", type=count, default=3, help="number of motions")
    options = parser.parse_args(arguments)
    print(header(("gains kp, kd", "parameter", "RMS error", "mean sigma", "within 2 sigma", "largest error")))
    for kp, kd in GAINS:
        found = [errors(kp, kd, delay, seed) for delay, seed in product(DELAYS, range(options.seeds))]
        for kind, scale in (("coulomb", 1.0), ("viscous", 1.0), ("Ia", 1.0), ("delay", 1e3)):
            pairs = np.array([pair for one in found for name, pair in one.items() if kind in name])
            error, sigma = np.abs(pairs.T)
            share = np.mean(error <= 2.0 * sigma)
            rms = np.sqrt(np.mean(error**2))
            numbers = [f"{scale * value:.4f}" for value in (rms, sigma.mean())]
            cells = f"{kp:g}, {kd:g}", kind, *numbers, f"{100 * share:.0f} %", f"{scale * error.max():.4f}"
            print(row(cells), flush=True)


if __name__ == "__main__":
    sys.exit(main())
