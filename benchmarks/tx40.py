"""Friction of a real Staubli TX40 beside its published identification; Markdown to stdout.

    python benchmarks/tx40.py FOLDER [--law coulomb_viscous]

FOLDER holds what github.com/thanhndv212/figaroh-examples publishes: ``pos_read_data.csv`` and ``curr_data.csv`` (motor
side, 5 kHz), ``tx40_mdh_modified.urdf``, ``TX40_bp_5.csv`` and ``TX40_ep_5.csv`` (all and essential parameters).
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from friction_estimator.config.robot import Coupling
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.method import identify_inverse_dynamics
from friction_estimator.identification.inverse_dynamics.options import (
    COUPLED_FRICTION,
    JOINTS_AND_MOTORS,
    InverseDynamicsOptions,
)
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.identification.recording.zero_phase import to_motion
from friction_estimator.identification.result import Identification

JOINTS = tuple(f"joint_{k}" for k in range(1, 7))
MOTORS = tuple(f"motor_{k}" for k in range(1, 7))
PERIOD = 2e-4
RATIOS = np.array([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
ZERO = np.array([0.0, -np.pi / 2.0, np.pi / 2.0, 0.0, 0.0, 0.0])
"""Of the joints, seen from the encoders [rad]."""


def wrist() -> Coupling:
    """The sixth motor turns with the sum of the last two joints."""
    motors_of_joints = np.eye(6)
    motors_of_joints[5, 4] = 1.0
    return Coupling(JOINTS, MOTORS, np.linalg.inv(motors_of_joints))


def read(folder: Path) -> JointLog:
    """Joint angles and torques from those of the motors."""
    angles, torques = (
        np.loadtxt(folder / name, delimiter=",", skiprows=1) for name in ("pos_read_data.csv", "curr_data.csv")
    )
    coupling = wrist()
    position = coupling.joint_velocity(angles / RATIOS) + ZERO
    effort = coupling.joint_torque(torques * RATIOS)
    return JointLog("tx40", JOINTS, np.arange(len(angles)) * PERIOD, position, None, effort)


def published(path: Path) -> dict[str, float]:
    """Weighted least squares values by name, e.g. ``fv1``."""
    rows = [line.rsplit(",", 4) for line in path.read_text().splitlines() if line]
    return {row[0]: float(row[3]) for row in rows}


def friction(result: Identification) -> dict[str, tuple[float, float]]:
    """Value and sigma by the published names: ``fv5`` and ``fv6`` count the sixth motor's viscous friction in."""
    table = result.parameters
    values = dict(zip(table.names, zip(table.values, table.sigma, strict=True), strict=True))
    found = {}
    for k in range(1, 7):
        for symbol, parameter in (("fv", "viscous"), ("fs", "coulomb")):
            found[f"{symbol}{k}"] = values[f"joint_{k}/{parameter}"]
    motor = values["motor_6/viscous"]
    for name in ("fv5", "fv6"):
        value, sigma = found[name]
        found[name] = value + motor[0], float(np.hypot(sigma, motor[1]))
    return {**found, "fvm6": motor, "fsm6": values["motor_6/coulomb"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--law", default="coulomb_viscous", help="also for a richer law: only errors are printed then")
    parser.add_argument("--coupled-friction", choices=COUPLED_FRICTION, default=JOINTS_AND_MOTORS)
    arguments = parser.parse_args()
    model = FixedBaseModel((arguments.folder / "tx40_mdh_modified.urdf").read_text(), JOINTS)
    options = InverseDynamicsOptions(law=arguments.law, coupling=wrist(), coupled_friction=arguments.coupled_friction)
    result = identify_inverse_dynamics([to_motion(read(arguments.folder))], model, options)
    if arguments.law == "coulomb_viscous" and arguments.coupled_friction == JOINTS_AND_MOTORS:
        print_friction(result, published(arguments.folder / "TX40_bp_5.csv"))
    print("\n| joint | torque RMS | rigid body only, held out | held out | relative | fit |\n|---|---|---|---|---|---|")
    for score in result.scores:
        numbers = score.torque_rms, score.rigid_body_error, score.model_error
        print(
            f"| {score.joint} | "
            + " | ".join(f"{number:.2f}" for number in numbers)
            + f" | {100.0 * score.relative_error:.1f} % | {score.fit_error:.2f} |"
        )
    print("", *result.verdicts, "", *result.provenance.choices, sep="\n")
    return 0


def print_friction(result: Identification, reference: dict[str, float]) -> None:
    print("| parameter | ours | sigma | published | difference in sigma | in % |\n|---|---|---|---|---|---|")
    for name, (value, sigma) in friction(result).items():
        difference = value - reference[name]
        print(
            f"| {name} | {value:.3f} | {sigma:.3f} | {reference[name]:.3f} | {difference / sigma:+.1f} "
            f"| {100.0 * difference / reference[name]:+.1f} |"
        )


if __name__ == "__main__":
    sys.exit(main())
