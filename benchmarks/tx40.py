"""Does the friction of a real Staubli TX40 agree with its published identification?

    python -m benchmarks.tx40 FOLDER [--law coulomb_viscous]

FOLDER holds the published data of github.com/thanhndv212/figaroh-examples: ``pos_read_data.csv`` and ``curr_data.csv``
(motor side, 5 kHz), ``tx40_mdh_modified.urdf`` and ``TX40_bp_5.csv`` (all parameters). Of the 9 s at 5 kHz the last 1.5
s are at rest. The wrist is coupled, with friction in joints and motors, as in the published model. Prints tables as
Markdown: friction, as weighted values, and held-out errors. Takes 15 seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.shared.command import command, folder_with, make_parser
from benchmarks.shared.coupling import joint_torque, joint_velocity
from benchmarks.shared.pages import table
from friction_estimator.config.robot import Coupling
from friction_estimator.identification.inverse_dynamics.method import run
from friction_estimator.identification.inverse_dynamics.options import (
    COUPLED_FRICTION,
    JOINTS_AND_MOTORS,
    InverseDynamicsOptions,
)
from friction_estimator.identification.joint_log import JointLog, RobotDescription
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
    position = joint_velocity(coupling, angles / RATIOS) + ZERO
    effort = joint_torque(coupling, torques * RATIOS)
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


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("tx40", __doc__)
    files = "pos_read_data.csv", "curr_data.csv", "tx40_mdh_modified.urdf", "TX40_bp_5.csv"
    parser.add_argument("folder", type=folder_with(*files), help="with the files named above")
    parser.add_argument("--law", default="coulomb_viscous", help="with another law only the errors are printed")
    parser.add_argument("--coupled-friction", choices=COUPLED_FRICTION, default=JOINTS_AND_MOTORS)
    options = parser.parse_args(arguments)
    robot = RobotDescription((options.folder / "tx40_mdh_modified.urdf").read_text(), True)
    settings = InverseDynamicsOptions(law=options.law, coupling=wrist(), coupled_friction=options.coupled_friction)
    result = run([read(options.folder)], robot, settings)
    if options.law == "coulomb_viscous" and options.coupled_friction == JOINTS_AND_MOTORS:
        print(*friction_table(result, published(options.folder / "TX40_bp_5.csv")), sep="\n")
    rows = []
    for score in result.scores:
        torques = (f"{number:.2f}" for number in (score.torque_rms, score.rigid_body_error, score.held_out_error))
        rows.append((score.joint, *torques, f"{100.0 * score.relative_error:.1f} %", f"{score.fit_error:.2f}"))
    heading = "joint", "torque RMS", "rigid body only, held out", "held out", "relative", "fit"
    print(*table(heading, rows), *result.verdicts, "", *result.provenance.choices, sep="\n")


def friction_table(result: Identification, reference: dict[str, float]) -> list[str]:
    """Friction parameters and the published ones."""
    rows = []
    for name, (value, sigma) in friction(result).items():
        known = reference[name]
        numbers = f"{value:.3f}", f"{sigma:.3f}", f"{known:.3f}"
        rows.append((name, *numbers, f"{(value - known) / sigma:+.1f}", f"{100.0 * (value - known) / known:+.1f}"))
    return table(("parameter", "ours", "sigma", "published", "difference in sigma", "in %"), rows)


if __name__ == "__main__":
    sys.exit(main())
