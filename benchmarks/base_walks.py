"""How accurate is the base state on simulated walks, and does its sigma hold: tilt, position, velocity?

    python -m benchmarks.base_walks [--cases walk uneven ...] [--noise clean ...] [--duration 12]

Prints a table as Markdown. No friction is estimated: the estimator gets no torques. Errors count from 1.5 s on; the
reference position is the mean over the first 0.5 s. Takes five minutes; one case at one noise level takes 20 seconds.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from itertools import product

import numpy as np
from scipy.spatial.transform import Rotation

from benchmarks.shared.command import command, longer_than, make_parser
from benchmarks.shared.estimates import configure, drive
from benchmarks.shared.pages import header, row
from benchmarks.shared.walks import PERIOD, case_names, find_case, simulate
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.robot import load_robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.simulation import noise_names
from friction_estimator.types import FloatArray

_ROBOT = "suralp"
_START, _SCORED = round(0.5 / PERIOD), round(1.5 / PERIOD)
_HEADING = (
    "case", "sensors", "tilt RMSE [deg]", "position at the end x, y, z [mm]", "height RMSE [mm]",
    "velocity RMSE x, y, z [mm/s]", "velocity within two sigma [%]", "sigma of the velocity [mm/s]",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class Errors:
    """Errors of the base state (K, 3) at every sample of one walk.

    Attributes
    ----------
    tilt : rotation vector in the world [deg]; the third number is the yaw
    position : since its mean over the first half second [mm]
    velocity, sigma : and its standard deviation [mm/s]
    """

    tilt: FloatArray
    position: FloatArray
    velocity: FloatArray
    sigma: FloatArray


def walk(case: str, noise: str, duration: float) -> Errors:
    """Simulate one walk and estimate the base."""
    robot = load_robot(_ROBOT)
    model = RobotModel(robot.config, robot.urdf_xml)
    run = simulate(robot, model, find_case(case).scenario(duration), noise, 0)
    unknown = np.full(len(model.joint_names), np.nan)
    samples = [dataclasses.replace(one, joints=dataclasses.replace(one.joints, effort=unknown)) for one in run.samples]
    bases = [one.base for one in drive(Estimator(configure(_ROBOT, noise, {}), robot.urdf_xml), samples)]
    pairs = list(zip(bases, (sample.truth for sample in samples[: len(bases)]), strict=True))
    turned = Rotation.from_matrix([b.rotation_base_to_world @ t.rotation_base_to_world.T for b, t in pairs])
    position = 1e3 * np.array([b.position_base_in_world - t.position_base_in_world for b, t in pairs])
    velocity = 1e3 * np.array([b.linear_velocity - t.linear_velocity for b, t in pairs])
    sigma = 1e3 * np.sqrt([base.twist_covariance.diagonal()[:3] for base in bases])
    return Errors(np.degrees(turned.as_rotvec()), position - position[:_START].mean(axis=0), velocity, sigma)


def cells(case: str, noise: str, errors: Errors) -> list[str]:
    """One row of the table."""
    tilt, height = errors.tilt[_SCORED:, :2], errors.position[_SCORED:, 2]
    velocity, sigma = errors.velocity[_SCORED:], errors.sigma[_SCORED:]
    return [
        case,
        noise,
        f"{np.sqrt((tilt**2).mean()):.2f}",
        _listed(errors.position[-_START:].mean(axis=0), "+.0f"),
        f"{np.sqrt((height**2).mean()):.1f}",
        _listed(np.sqrt((velocity**2).mean(axis=0)), ".1f"),
        _listed(100.0 * (np.abs(velocity) < 2.0 * sigma).mean(axis=0), ".0f"),
        _listed(sigma.mean(axis=0), ".1f"),
    ]


def _listed(values: FloatArray, form: str) -> str:
    return ", ".join(format(value, form) for value in values.tolist())


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("base_walks", __doc__)
    parser.add_argument("--cases", nargs="+", choices=case_names(), default=["walk", "uneven", "slope"])
    parser.add_argument("--noise", nargs="+", choices=noise_names(), default=["clean", "paper_std", "realistic"])
    parser.add_argument("--duration", type=longer_than(PERIOD * _SCORED), default=12.0, help="of each walk [s]")
    options = parser.parse_args(arguments)
    print(header(_HEADING))
    for case, noise in product(options.cases, options.noise):
        print(row(cells(case, noise, walk(case, noise, options.duration))), flush=True)


if __name__ == "__main__":
    sys.exit(main())
