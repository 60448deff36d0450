"""What do the troubles of real robots do to the estimate, and does sigma hold?

    python -m benchmarks.real_robots [--cases stiction_load ...] [--seeds 1]

Every case is a walk with one trouble that the built-in walk does not have, with the observer ``kalman``. The estimator
gets the robot's YAML alone, or also the datasheet of the sensors, where the two differ. Relative error: RMS of the
error over RMS of the friction. Coverage: fraction of the errors within 1.96 sigma. Samples count after 6 s; the same
joint of both legs counts together, and each column has the worst joint and its name. Findings are those of the sensors
at the end. Fills the table of docs/results/real_robots.md. Takes ten minutes on two cores.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.shared.command import add_processes, command, command_line, count, make_parser
from benchmarks.shared.estimates import CONSISTENT, SETTLED, configure, drive, joint_groups
from benchmarks.shared.pages import DOCS, add_page, number, table
from benchmarks.shared.walks import PERIOD, SimulatedRun, simulate
from friction_estimator.errors import ConfigError, choices
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.robot import load_robot
from friction_estimator.metrics import joint_errors, mean
from friction_estimator.robot.model import RobotModel
from friction_estimator.simulation import make_scenario
from friction_estimator.types import BoolArray, FloatArray

PAGE = DOCS / "results" / "real_robots.md"
ROBOT = "suralp"
WRONG, UNCOVERED = 0.25, 0.85
"""A joint is wrong with a larger relative error in stance or swing, or a smaller part of errors within 1.96 sigma."""
_DURATION = 22.0


@dataclass(frozen=True, slots=True)
class Case:
    """One trouble.

    Attributes
    ----------
    scenario, noise : of the simulation
    required : largest relative error in stance and in swing, and smallest coverage, of the worst joint
    duration : [s]
    start : the estimator gets the samples from here on [s]
    """

    scenario: str
    noise: str
    required: tuple[float, float, float]
    duration: float = _DURATION
    start: float = 0.0


CASES = {
    "walk": Case("walk", "paper_std", (0.10, 0.12, 0.93)),
    "stiction_load": Case("friction_load_stiction", "paper_std", (0.10, 0.12, 0.90)),
    "lugre_2_mrad": Case("friction_lugre", "paper_std", (0.25, 0.20, 0.90)),
    "lugre_0.5_mrad": Case("friction_lugre_stiff", "paper_std", (0.25, 0.20, 0.90)),
    "lugre_mid_walk": Case("friction_lugre", "paper_std", (0.25, 0.20, 0.90), start=3.4),
    "mixed_rates": Case("walk", "mixed_rates", (0.12, 0.15, 0.93)),
    "mixed_rates_500": Case("walk", "mixed_rates_500", (0.20, 0.20, 0.90)),
    "mixed_rates_200": Case("walk", "mixed_rates_200", (0.20, 0.20, 0.90)),
    "late_wrench": Case("walk", "late_wrench", (0.15, 0.12, 0.90)),
    "late_effort": Case("walk", "late_effort", (0.15, 0.12, 0.90)),
    "tilted_imu": Case("walk", "tilted_imu", (0.10, 0.12, 0.90)),
    "encoder_14_bit": Case("walk", "encoder_14_bit", (0.25, 0.20, 0.90)),
    "encoder_alone": Case("walk", "encoder_14_bit_alone", (0.25, 0.20, 0.90)),
    "ripple": Case("friction_ripple", "paper_std", (0.15, 0.15, 0.90)),
    "warming": Case("friction_warming", "paper_std", (0.08, 0.10, 0.93), duration=60.0),
}

_HEADING = (
    "case", "datasheet", "relative error, stance", "swing", "required", "coverage", "required", "wrong joints",
    "findings",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one run.

    Attributes
    ----------
    labels : (g) names of the joints, those of both legs together
    stance, swing : (g,) relative errors
    coverage : (g,) fraction of the errors within 1.96 sigma
    wrong : (n,) joints with a large error or a low coverage
    findings : of the sensors
    """

    labels: tuple[str, ...]
    stance: FloatArray
    swing: FloatArray
    coverage: FloatArray
    wrong: BoolArray
    findings: tuple[str, ...]


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("real_robots", __doc__)
    parser.add_argument("--cases", nargs="+", default=[*CASES], metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--seeds", type=count, default=1, help="runs of each case")
    add_processes(parser)
    add_page(parser, PAGE, "command", "cases")
    options = parser.parse_args(arguments)
    if unknown := set(options.cases) - set(CASES):
        raise ConfigError(f"unknown case {choices(unknown)}; the cases are {choices(CASES)}")
    jobs = list(product(options.cases, range(options.seeds)))
    lines = []
    with ProcessPoolExecutor(options.processes) as pool:
        for (name, _), outcomes in zip(jobs, pool.map(perform, *zip(*jobs, strict=True)), strict=True):
            for given, outcome in outcomes.items():
                lines.append(_cells(name, given, outcome))
                print(*lines[-1], sep=" | ", flush=True)
    options.output.fill("command", [f"`{command_line('real_robots', arguments)}`"])
    options.output.fill("cases", table(_HEADING, lines))


def perform(name: str, seed: int) -> dict[str, Outcome]:
    """Simulate a case, and estimate without the datasheet of its sensors, and with it where it differs."""
    robot = load_robot(ROBOT)
    model = RobotModel(robot.config, robot.urdf_xml)
    case = CASES[name]
    scenario, datasheet = make_scenario(case.scenario, case.duration), configure(ROBOT, case.noise, {})
    configs = {"no": robot.config} if datasheet == robot.config else {"no": robot.config, "yes": datasheet}
    run = simulate(robot, model, scenario, case.noise, seed)
    return {given: _outcome(Estimator(config, robot.urdf_xml), run, case, model) for given, config in configs.items()}


def _outcome(estimator: Estimator, run: SimulatedRun, case: Case, model: RobotModel) -> Outcome:
    friction, sigma = _estimate(estimator, run, case.start)
    late = np.broadcast_to(run.time[:, None] > max(SETTLED, case.start + SETTLED), friction.shape)
    groups = joint_groups(model.joint_names, model.limb)
    together, apart = (
        _errors(*(fold(values) for values in (friction, run.friction, sigma, late & run.stance, late & ~run.stance)))
        for fold in (groups.fold, np.asarray)
    )
    stance, swing, coverage = apart
    return Outcome(
        groups.labels,
        *together,
        (np.fmax(stance, swing) > WRONG) | (coverage < UNCOVERED),
        tuple(finding.partition(". ")[0] for finding in estimator.health.findings),
    )


def _errors(
    friction: FloatArray, truth: FloatArray, sigma: FloatArray, stance: BoolArray, swing: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Relative errors in stance and swing, and coverage, of each column of estimates (m, g)."""
    squares = np.where(stance | swing, ((friction - truth) / sigma) ** 2, np.nan)
    relative = (joint_errors(friction, truth, sigma, where).relative_rmse for where in (stance, swing))
    return *relative, mean(np.where(np.isnan(squares), np.nan, squares <= CONSISTENT))


def _estimate(estimator: Estimator, run: SimulatedRun, start: float) -> tuple[FloatArray, FloatArray]:
    """Friction and sigma (m, n) at the time of every sample; NaN before the first estimate."""
    first = round(start / PERIOD)
    estimates = drive(estimator, run.samples[first:])
    missing = np.full((first, run.friction.shape[1]), np.nan)
    friction, sigma = (np.array([getattr(one, name) for one in estimates]) for name in ("friction", "sigma"))
    return np.concatenate((missing, friction)), np.concatenate((missing, sigma))


def _cells(name: str, given: str, outcome: Outcome) -> list[str]:
    required = CASES[name].required
    stance, swing = (_worst(values, outcome.labels, np.nanargmax(values)) for values in (outcome.stance, outcome.swing))
    covered = _worst(outcome.coverage, outcome.labels, np.nanargmin(outcome.coverage))
    return [
        name, given, stance, swing, f"{required[0]} / {required[1]}", covered, f"{required[2]}",
        str(int(outcome.wrong.sum())), ", ".join(outcome.findings),
    ]  # fmt: skip


def _worst(values: FloatArray, labels: Sequence[str], index: np.intp) -> str:
    return f"{number(float(values[index]))} {labels[index]}"


if __name__ == "__main__":
    sys.exit(main())
