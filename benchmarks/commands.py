"""Does `identify` find the same friction from commands, whatever the gains of the drives and their delay?

    python -m benchmarks.commands [--seeds 12] [--late torque] [--no-hold]

Prints the table of docs/guides/identification.md, "From commands": a leg of two joints, simulated exactly, whose drives
compute ``kp (q_des - q) - kd dq`` and apply it late; errors in standard deviations, gain by gain, and how much F_c of
the same motion and delay changes with the gains. One motion takes 30 seconds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import product

import numpy as np
import pinocchio as pin

from benchmarks.shared.command import command, count, make_parser
from benchmarks.shared.pages import header, row
from friction_estimator.identification.inverse_dynamics.method import run
from friction_estimator.identification.inverse_dynamics.options import LATE, InverseDynamicsOptions
from friction_estimator.identification.joint_log import JointLog, RobotDescription
from friction_estimator.identification.linear_problem import rms
from friction_estimator.identification.recording.torque_checks import with_drive_torque
from friction_estimator.io.robot import as_robot
from friction_estimator.types import FloatArray

GAINS = ((20.0, 0.5), (40.0, 2.0))
DELAYS = (0.0, 0.005, 0.010, 0.015)
COULOMB, VISCOUS, ARMATURE = np.array([0.3, 0.15]), np.array([0.2, 0.1]), np.array([0.05, 0.05])
_RATE, _STEPS = 500, 4
"""Samples per second, and steps per sample: delays are whole steps."""
_SPEED_OF_SIGN = 0.005
_NOISE = 1e-4
URDF = as_robot("leg").urdf_xml


def recording(
    kp: float, kd: float, delay: float, seed: int, duration: float = 20.0, feedback: bool = True, hold: bool = False
) -> JointLog:
    """Positions and commands of the leg; the delay is that of the whole torque, or without ``feedback`` of the command.

    The middle of every step is where torque and friction are computed: errors are of second order in the step.

    Parameters
    ----------
    kp, kd : gains of the drives [N m/rad, N m s/rad]
    delay : of the torque [s]
    seed : of motion and noise
    duration : [s]
    hold : drives hold a command until the next one is recorded
    """
    model = pin.buildModelFromXML(URDF)
    model.armature = ARMATURE
    data, random = model.createData(), np.random.default_rng(seed)
    samples, step = int(duration * _RATE), 1.0 / (_RATE * _STEPS)
    time = (np.arange(samples * _STEPS) + 0.5) * step
    desired = _command(random, time if not hold else np.floor(time * _RATE) / _RATE)
    q, v, a = desired[0].copy(), np.zeros(2), np.zeros(2)
    late, torque, position = round(delay / step), np.zeros((time.size, 2)), np.zeros((time.size, 2))
    for k in range(time.size):
        position[k] = q
        middle, speed = q + 0.5 * step * v, v + 0.5 * step * a
        torque[k] = kp * (desired[k if feedback else max(k - late, 0)] - middle) - kd * speed
        applied = torque[max(k - late, 0)] if feedback else torque[k]
        friction = COULOMB * np.tanh(speed / _SPEED_OF_SIGN) + VISCOUS * speed
        a = pin.aba(model, data, middle, speed, applied - friction)
        q, v = q + step * (v + 0.5 * step * a), v + step * a
    kept = slice(None, None, _STEPS)
    recorded = np.arange(samples) / _RATE
    noisy = position[kept] + _NOISE * random.normal(size=(samples, 2))
    desired = _command(np.random.default_rng(seed), recorded)
    return JointLog("leg", ("hip", "knee"), recorded, noisy, inputs={"command": desired})


def _command(random: np.random.Generator, time: FloatArray) -> FloatArray:
    """Commanded positions (N, 2) [rad]."""
    angles = np.array([1.2, -0.8]) * np.ones((time.size, 1))
    for harmonic, joint in product((1, 2, 3, 5, 7, 11), (0, 1)):
        size = (0.5, 0.8)[joint] / np.sqrt(6.0) * random.uniform(0.5, 1.2) / np.sqrt(harmonic)
        phase = random.uniform(0.0, 2.0 * np.pi)
        angles[:, joint] += size * np.sin(2.0 * np.pi * 0.15 * harmonic * time + phase)
    return angles


def errors(
    kp: float, kd: float, delay: float, seed: int, options: InverseDynamicsOptions
) -> dict[str, tuple[float, float]]:
    """Error and standard deviation of friction, armature and delay of both joints, by name."""
    log = with_drive_torque(recording(kp, kd, delay, seed), kp, kd)
    table = run([log], RobotDescription(URDF, fixed_base=True), options).parameters
    found = dict(zip(table.names, zip(table.values.tolist(), table.sigma.tolist(), strict=True), strict=True))
    truth = {f"{joint}/delay": delay for joint in ("hip", "knee")}
    for k, joint in enumerate(("hip", "knee")):
        truth |= {f"{joint}/coulomb": COULOMB[k], f"{joint}/viscous": VISCOUS[k], f"Ia {joint}": ARMATURE[k]}
    return {name: (found[name][0] - value, found[name][1]) for name, value in truth.items()}


@command
def main(arguments: Sequence[str] | None = None) -> None:
    """Identify all recordings, and print coverage and largest errors."""
    parser = make_parser("commands", __doc__)
    parser.add_argument("--seeds", type=count, default=12, help="number of motions")
    parser.add_argument("--late", choices=LATE, help="state what of the drive is late, as of `identify`")
    parser.add_argument("--hold", action=argparse.BooleanOptionalAction, help="state whether commands are held")
    given = parser.parse_args(arguments)
    options, coulomb = InverseDynamicsOptions(late=given.late, hold=given.hold), list[FloatArray]()
    print(header(("gains kp, kd", "parameter", "RMS error", "mean sigma", "within 2 sigma", "largest error")))
    for kp, kd in GAINS:
        found = [errors(kp, kd, delay, seed, options) for delay, seed in product(DELAYS, range(given.seeds))]
        coulomb.append(np.array([[one[f"{joint}/coulomb"] for joint in ("hip", "knee")] for one in found]))
        for kind, scale in (("coulomb", 1.0), ("viscous", 1.0), ("Ia", 1.0), ("delay", 1e3)):
            pairs = np.array([pair for one in found for name, pair in one.items() if kind in name])
            error, sigma = np.abs(pairs.T)
            share = np.mean(error <= 2.0 * sigma)
            numbers = [f"{scale * value:.4f}" for value in (rms(error), sigma.mean())]
            cells = f"{kp:g}, {kd:g}", kind, *numbers, f"{100 * share:.0f} %", f"{scale * error.max():.4f}"
            print(row(cells), flush=True)
    (one, spread), (other, more) = (np.moveaxis(pairs, -1, 0) for pairs in coulomb)
    apart = one - other
    inside = 100.0 * np.mean(np.abs(apart) <= 2.0 * np.hypot(spread, more))
    print(f"\nF_c with the first gains less that with the others: RMS {rms(apart):.4f} N m, largest "
          f"{np.abs(apart).max():.4f} N m, {inside:.0f} % within 2 sigma")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
