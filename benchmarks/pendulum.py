"""Friction of the real DFKI pendulum: fitted on one controller's recording, judged on the others; Markdown to stdout.

    python benchmarks/pendulum.py FOLDER

FOLDER holds what github.com/dfki-ric-underactuated-lab/torque_limited_simple_pendulum publishes: ``results`` with
``data_measured*.csv`` of every controller, and the authors' ``sp_parameters_*.yaml``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import yaml

from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.method import (
    estimate_inverse_dynamics,
    identify_inverse_dynamics,
)
from friction_estimator.identification.inverse_dynamics.options import InverseDynamicsOptions
from friction_estimator.identification.joint_log import Motion
from friction_estimator.identification.recording.zero_phase import to_motion
from friction_estimator.io.joint_log import joint_log_from_table
from friction_estimator.types import GRAVITY, FloatArray

JOINT = "pendulum"
URDF = f"""<robot name="pendulum"><link name="base"/><link name="rod"><inertial><origin xyz="0 0 -0.5"/>
<mass value="0.6"/><inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.001"/></inertial></link>
<joint name="{JOINT}" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>"""
OPTIONS = InverseDynamicsOptions()
MASS_ADDED = "1kg"
"""Part of the name of the recording with another mass, which is no data about this pendulum."""


@dataclass(frozen=True)
class Pendulum:
    """``tau = J ddq + m g l sin(q) + F_v dq + F_c sgn(dq)``.

    Attributes
    ----------
    name : of the recording or the file it comes from
    inertia : J [kg m^2]
    moment : m l [kg m]
    viscous, coulomb : [N m s/rad], [N m]
    sigma : (2,) of viscous and coulomb, NaN of an author
    possible : real bodies have this inertia, by the identification's own verdict
    """

    name: str
    inertia: float
    moment: float
    viscous: float
    coulomb: float
    sigma: tuple[float, float] = (float("nan"), float("nan"))
    possible: bool = True

    def torque(self, motion: Motion) -> FloatArray:
        """(N, 1) [N m]."""
        q, dq, ddq = motion.position, motion.velocity, motion.acceleration
        rigid = self.inertia * ddq + self.moment * GRAVITY * np.sin(q)
        return np.asarray(rigid + self.viscous * dq + self.coulomb * np.sign(dq))


def of_authors(path: Path) -> Pendulum:
    """Parameters of one YAML; an inertia that is not given is that of a point mass, as their plant has it."""
    entries: dict[str, Any] = yaml.safe_load(path.read_text())
    moment = float(entries["mass"]) * float(entries["length"])
    inertia = entries.get("inertia")
    given = isinstance(inertia, int | float)
    return Pendulum(
        path.stem.removeprefix("sp_parameters_"),
        float(inertia) if given else moment * float(entries["length"]),
        moment,
        float(entries.get("damping", 0.0)),
        float(entries.get("coulomb_fric", 0.0)),
    )


def identified(name: str, motion: Motion) -> Pendulum:
    """Parameters from one recording."""
    model = FixedBaseModel(URDF, (JOINT,))
    result = identify_inverse_dynamics([motion], model, OPTIONS)
    values = dict(zip((n.split()[0] for n in result.parameters.names), result.parameters.values, strict=True))
    friction = result.friction
    sigma = np.sqrt(np.diagonal(friction.covariance[0]))
    coulomb, viscous = friction.values[0]
    possible = not any("no real bodies" in text for text in result.verdicts)
    inertia, moment = float(values.get("Iyy", 0.0)), -float(values.get("mz", 0.0))
    return Pendulum(name, inertia, moment, float(viscous), float(coulomb), (sigma[1], sigma[0]), possible)


def prediction_error(pendulum: Pendulum, motion: Motion) -> tuple[float, float]:
    """RMS error and RMS torque where the pendulum moves and nobody pushes it [N m].

    The samples are those that the identification of this recording itself believes, the same for every candidate.
    """
    solution, _ = estimate_inverse_dynamics([motion], FixedBaseModel(URDF, (JOINT,)), OPTIONS)
    observation, usable = solution.observations[0], solution.usable[0]
    predicted = observation.filter.apply(pendulum.torque(observation.motion))[usable]
    believed = solution.fit.weights > 0.0
    torque = observation.torque[usable][believed]
    return float(np.sqrt(np.mean((torque - predicted[believed]) ** 2))), float(np.sqrt(np.mean(torque**2)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    motions = {}
    for path in sorted((folder / "results").rglob("data_measured*.csv")):
        name = "/".join(path.relative_to(folder / "results").parts).removeprefix("control_method_")
        motions[name.removesuffix(".csv").removesuffix("/data_measured")] = to_motion(
            joint_log_from_table(path, (JOINT,))
        )
    ours = [identified(name, motion) for name, motion in motions.items()]
    authors = [of_authors(path) for path in sorted(folder.glob("sp_parameters_*.yaml"))]
    _print_parameters(ours, authors)
    judged = [p.name for p in ours if p.possible and MASS_ADDED not in p.name]
    _print_predictions([p for p in ours if p.name in judged], authors, {name: motions[name] for name in judged})
    return 0


def _print_parameters(ours: Sequence[Pendulum], authors: Sequence[Pendulum]) -> None:
    print(
        "| parameters from | J [kg m^2] | m l [kg m] | F_v [N m s/rad] | F_c [N m] | bodies exist |\n"
        + "|---" * 6
        + "|"
    )
    for p in ours:
        print(
            f"| {p.name} | {p.inertia:.3f} | {p.moment:.3f} | {p.viscous:.3f} +- {p.sigma[0]:.3f} "
            f"| {p.coulomb:.3f} +- {p.sigma[1]:.3f} | {'yes' if p.possible else 'no'} |"
        )
    for p in authors:
        print(f"| authors, {p.name} | {p.inertia:.3f} | {p.moment:.3f} | {p.viscous:.3f} | {p.coulomb:.3f} | |")


def _print_predictions(ours: Sequence[Pendulum], authors: Sequence[Pendulum], motions: dict[str, Motion]) -> None:
    """Rows: where parameters come from; columns: recordings that are predicted; a fit never on its own recording."""
    print(
        "\n| RMS error [N m] | " + " | ".join(motions) + " | mean of the others |\n" + "|---" * (len(motions) + 2) + "|"
    )
    for prefix, candidates in (("", ours), ("authors, ", authors)):
        for p in candidates:
            errors = [prediction_error(p, motion)[0] for motion in motions.values()]
            own = [not prefix and name == p.name for name in motions]
            others = [error for error, fitted in zip(errors, own, strict=True) if not fitted]
            cells = [f"({error:.2f})" if fitted else f"{error:.2f}" for error, fitted in zip(errors, own, strict=True)]
            print(f"| {prefix}{p.name} | {' | '.join(cells)} | {np.mean(others):.3f} |")
    torques = [prediction_error(ours[0], motion)[1] for motion in motions.values()]
    print("| torque RMS | " + " | ".join(f"{torque:.2f}" for torque in torques) + " | |")


if __name__ == "__main__":
    sys.exit(main())
