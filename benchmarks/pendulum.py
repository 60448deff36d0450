"""Does friction identified from one recording of a real pendulum predict the torques of others?

    python -m benchmarks.pendulum FOLDER

FOLDER holds the published data of github.com/dfki-ric-underactuated-lab/torque_limited_simple_pendulum: ``results``
with ``data_measured*.csv`` of every controller, and the authors' ``sp_parameters_*.yaml``. Prints tables as Markdown:
parameters with the sigma of one choice of filters, to which `identify` adds what other filters change, and the mean of
the RMS errors on the other recordings. Errors count at the samples that the fit of a recording itself does not reject
(1 to 4 % are pushes), so that all fits are compared at the same ones. Three recordings do not count in the mean: in
``gravity_compensation`` a hand moves the pendulum and in the failed swing-up it hardly moves, so that J is not above
zero in either, and one has another pendulum of 1 kg. Takes 30 seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.shared.command import command, folder_with, make_parser
from benchmarks.shared.pages import table
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.decision import choose_treatment
from friction_estimator.identification.inverse_dynamics.method import (
    estimate_inverse_dynamics,
    identify_inverse_dynamics,
)
from friction_estimator.identification.inverse_dynamics.options import InverseDynamicsOptions
from friction_estimator.identification.recording.motion import Motion, to_motion
from friction_estimator.io.table_files import joint_log_from_table
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
    possible : whether the identification found a physically consistent inertia
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
    """Parameters of one YAML; an inertia that is not given is that of a point mass, as in their model."""
    entries: dict[str, Any] = yaml.safe_load(path.read_text())
    moment = float(entries["mass"]) * float(entries["length"])
    inertia = entries.get("inertia")
    given = isinstance(inertia, int | float)
    return Pendulum(
        "authors, " + path.stem.removeprefix("sp_parameters_"),
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

    The samples are those with a weight in the identification of this recording, the same for every candidate.
    """
    solution, _ = estimate_inverse_dynamics([motion], FixedBaseModel(URDF, (JOINT,)), OPTIONS)
    observation, usable = solution.observations[0], solution.usable[0]
    predicted = observation.filter.apply(pendulum.torque(observation.motion))[usable]
    believed = solution.fit.weights > 0.0
    torque = observation.torque[usable][believed]
    return float(np.sqrt(np.mean((torque - predicted[believed]) ** 2))), float(np.sqrt(np.mean(torque**2)))


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("pendulum", __doc__)
    patterns = "results/**/data_measured*.csv", "sp_parameters_*.yaml"
    parser.add_argument("folder", type=folder_with(*patterns), help="with results and sp_parameters_*.yaml")
    folder: Path = parser.parse_args(arguments).folder
    motions = {}
    for path in sorted((folder / "results").rglob("data_measured*.csv")):
        name = "/".join(path.relative_to(folder / "results").parts).removeprefix("control_method_")
        log = joint_log_from_table(path, (JOINT,))
        chosen = choose_treatment([log], FixedBaseModel(URDF, (JOINT,)), OPTIONS).treatment
        motions[name.removesuffix(".csv").removesuffix("/data_measured")] = to_motion(log, chosen)
    ours = [identified(name, motion) for name, motion in motions.items()]
    authors = [of_authors(path) for path in sorted(folder.glob("sp_parameters_*.yaml"))]
    print(*_parameters(ours, authors), sep="\n", flush=True)
    judged = [p.name for p in ours if p.possible and MASS_ADDED not in p.name]
    judged_motions = {name: motions[name] for name in judged}
    print(*_predictions([p for p in ours if p.name in judged], authors, judged_motions), sep="\n")


def _parameters(ours: Sequence[Pendulum], authors: Sequence[Pendulum]) -> list[str]:
    heading = "parameters from", "J [kg m^2]", "m l [kg m]", "F_v [N m s/rad]", "F_c [N m]", "bodies exist"
    rows = []
    for p in (*ours, *authors):
        viscous, coulomb = (
            f"{value:.3f}" if np.isnan(sigma) else f"{value:.3f} +- {sigma:.3f}"
            for value, sigma in zip((p.viscous, p.coulomb), p.sigma, strict=True)
        )
        possible = "" if p in authors else "yes" if p.possible else "no"
        rows.append((p.name, f"{p.inertia:.3f}", f"{p.moment:.3f}", viscous, coulomb, possible))
    return table(heading, rows)


def _predictions(ours: Sequence[Pendulum], authors: Sequence[Pendulum], motions: dict[str, Motion]) -> list[str]:
    """Rows: source of the parameters; columns: predicted recordings; a fit does not count on its own recording."""
    rows = []
    for p in (*ours, *authors):
        errors = {name: prediction_error(p, motion)[0] for name, motion in motions.items()}
        others = [error for name, error in errors.items() if name != p.name]
        cells = [f"({error:.2f})" if name == p.name else f"{error:.2f}" for name, error in errors.items()]
        rows.append((p.name, *cells, f"{np.mean(others):.3f}"))
    torques = [prediction_error(ours[0], motion)[1] for motion in motions.values()]
    rows.append(("torque RMS", *(f"{torque:.2f}" for torque in torques), ""))
    return table(("RMS error [N m]", *motions, "mean of the others"), rows)


if __name__ == "__main__":
    sys.exit(main())
