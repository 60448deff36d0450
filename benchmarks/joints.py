"""How large is the friction of real joints? One row each, from parameter files of `identify`: add yours.

    python -m benchmarks.joints PARAMS.yaml --robot "Unitree Go2" --conditions "legs in the air, chirp" \
        --data "iit-DLSLab/sim2real-robot-identification, BSD-3"

Writes rows into the table of docs/results/joints.md, in place of those of the same robot and joint. Takes a second.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.shared.command import command, existing_path, make_parser
from benchmarks.shared.pages import DOCS, add_page, header, row
from friction_estimator.api.identify import IdentificationResult, load_identification
from friction_estimator.laws import make_linear_law
from friction_estimator.tables import number, percent

PLACE = "joints"
COLUMNS = (
    "robot", "joint", "F_c [N m]", "F_v [N m s/rad]", "armature [kg m^2]", "held out", "speed [rad/s]", "conditions",
    "data",
)  # fmt: skip


def rows(result: IdentificationResult, robot: str, conditions: str, data: str) -> Iterator[tuple[str, ...]]:
    """Cells of every joint whose friction was seen, value and standard deviation."""
    friction, scores = result.friction, {score.joint: score for score in result.scores}
    table = dict(zip(result.parameters.names, zip(result.parameters.values, result.parameters.sigma, strict=True),
                     strict=True))  # fmt: skip
    for place, joint in enumerate(friction.joint_names):
        score = scores.get(joint)
        if score is None or not score.samples:
            continue
        law = make_linear_law(friction.law_names[place])
        p = len(law.parameter_names)
        values, covariance, sizes = friction.values[place, :p], friction.covariance[place, :p, :p], []
        for weights in (law.coulomb(np.eye(p)), law.viscous(np.eye(p))):
            sizes.append(_pair(float(weights @ values), float(np.sqrt(weights @ covariance @ weights))))
        armature = _pair(*map(float, table[f"Ia {joint}"])) if f"Ia {joint}" in table else "-"
        known = friction.velocity_range is not None and np.isfinite(friction.velocity_range[place]).all()
        speeds = " to ".join(number(float(one), digits=2) for one in friction.velocity_range[place]) if known else "-"
        yield robot, joint, *sizes, armature, percent(score.relative_error), speeds, conditions, data


def _pair(value: float, sigma: float) -> str:
    return f"{number(value, sigma)} +- {number(sigma, digits=2)}"


@command
def main(arguments: Sequence[str] | None = None) -> None:
    """Add rows to the page."""
    parser = make_parser("joints", __doc__)
    parser.add_argument("parameters", type=existing_path, metavar="PARAMS.yaml", help="parameter file of `identify`")
    for name, text in (("robot", "name of the robot"), ("conditions", "how it moved"), ("data", "source and licence")):
        parser.add_argument(f"--{name}", required=True, help=text)
    add_page(parser, DOCS / "results" / "joints.md", PLACE)
    given = parser.parse_args(arguments)
    page = given.output
    new = [
        row(cells) for cells in rows(load_identification(given.parameters), given.robot, given.conditions, given.data)
    ]
    names = {tuple(line.split("|")[1:3]) for line in new}
    kept = [line for line in page.lines(PLACE)[2:] if line.startswith("|") and tuple(line.split("|")[1:3]) not in names]
    lines = [*kept, *new]
    page.fill(PLACE, [*header(COLUMNS).split("\n"), *sorted(lines, key=lambda line: line.split("|")[1])])


if __name__ == "__main__":
    sys.exit(main())
