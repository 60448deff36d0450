"""The page docs/results/constrained.md."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.markdown import number, row_of, table
from benchmarks.accuracy.simulated_run import SimulatedRun, simulate
from benchmarks.constrained import figures
from benchmarks.constrained.measure import (
    LEG,
    SCHEMES,
    Errors,
    errors_with_true_states,
    measured_errors,
    published_errors,
    rigid_friction,
)
from benchmarks.constrained.rigid_walk import RigidWalk, rigid_walk
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.simulation import Gait, make_scenario
from friction_estimator.types import FloatArray

GAIT = Gait(single_support=0.8, double_support=0.3, step_length=0.2)
"""As long a single support as in the thesis."""
JOINT = 9  # right knee
LONG_TRIM = {"constrained.trim_start": 0.12, "constrained.trim_end": 0.12}
SETTINGS: dict[str, dict[str, Any]] = {
    "as configured: positions, Savitzky-Golay 51": {},
    "trimmed by 0.12 s at both ends": LONG_TRIM,
    "velocities, Savitzky-Golay 51": {**LONG_TRIM, "constrained.signal": "velocity"},
    "positions, central difference (eq. 6.2)": {**LONG_TRIM, "constrained.window": 3, "constrained.order": 2},
    "velocities, backward difference (eq. 6.3)": {
        **LONG_TRIM,
        "constrained.signal": "velocity",
        "constrained.differences": "backward",
        "constrained.window": 2,
        "constrained.order": 1,
    },
}
STUDY = ("0.74 1.5 1.4 3.2 5.1 5.3", "0.13 0.39 0.40 0.16 0.02 0.02")
"""Before the project: Savitzky-Golay 51, single support, paper_std."""

INTRODUCTION = """\
# Constrained dynamics: friction without force sensors

Egle 2021, chapters 5 and 6, as `observer: constrained`. Made by `{command}`.
Root mean square errors in N m, six numbers a cell: {joints}, both legs together.

## Rigid ground, exact signals

The planned walk (single support 0.8 s, step 0.2 m), torques by inverse dynamics, friction of eq. 3.5 in the right knee
only. Single support by eq. 5.13, double support by eq. 6.1.

![Friction of the right knee in single and double support](images/constrained_supports.png)

*Figure 6.1 of the thesis.* With exact accelerations single support is exact (largest error {exact} N m). In double
support the response matrix of eq. 5.12 has rank 6 of 12: the least friction that explains the accelerations is spread
over all joints.

![Backward and central differences of the knee over time](images/constrained_differences.png)

![Errors of knee and ankle pitch over their velocities](images/constrained_velocity.png)

*Figures 6.2 and 6.3.* The phase error of the backward difference is half a sample of jerk times the inertia that hangs
on the joint, and that is larger in stance by up to three orders of magnitude (ankle roll: 45 against 0.025 kg m^2).
Central differences are a hundred times better. The hip pitch has its largest jerk in swing, so there both are alike.
"""

WALK = """\
## The built-in walk

{duration:g} s in MuJoCo, after 2 s; friction of Table I in all joints; errors against the true friction of the instant
that the estimate is about, with `constrained.max_sigma` out of the way. Velocities and eqs. 6.2 and 6.3 are trimmed by
0.12 s too. NEES: stance, swing. "As published" are the errors against the friction of the instant when they come out.
FBSE and momentum observer give an answer at all times; theirs are the published errors of all of the walk.
"""

READING = """\
## What it says

- **Swing: good. Stance: the attitude decides.** Without force sensors the weight of the robot is known only through the
  direction of gravity: a milliradian of tilt is 0.6 N m at the standing ankle, 0.04 N m at the swinging hip. With true
  states and long trimming, what is left in stance is the soft ground of the simulation, 0.04 to 0.22 N m.
- **Differentiate positions.** The second derivative of the positions has a hundredth of the noise that the first
  derivative of the velocities has in `paper_std` (1e-7 rad against 2e-3 rad/s), so that noise no longer matters in
  stance; differentiated velocities give errors of the size that the study before the project had.
- **Trim more than printed on a smooth walk.** The thesis cuts 0.10 s and 0.05 s. Here the load comes and goes by
  minimum jerk, and a foot below the thresholds of contact (3 and 1.5 % of the weight) carries up to 32 N and 16 N,
  which this observer does not know. 0.12 s at both ends cost a tenth of single support and divide the swing errors by
  up to five; they also make the estimate 0.12 s late.
- **It is late**, by half a window or `trim_end`. Identification uses regressors that are as late, so the law is not
  biased; the friction itself is published late, which costs more than all else in swing, and its sigma counts how
  far the law has moved since.
- **sigma.** Sensor noise, attitude, what the differences miss and what eq. 6.1 leaves out are propagated: where sensor
  noise dominates NEES is near one. Elsewhere it is far below, because the covariance of the attitude filter (22 mrad,
  of which about 2 are real) dominates. With the default `max_sigma` of 1.5 N m only swinging limbs are measured on this
  walk, so set `identifier.phases: all`. True states are told without covariance, so no NEES is asked there.
"""


def main() -> int:
    """Measure, draw, write."""
    parser = argparse.ArgumentParser(description="Writes docs/results/constrained.md and its figures.")
    parser.add_argument("--duration", type=float, default=22.0, help="of the simulated walk [s]")
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/results/constrained.md"))
    options = parser.parse_args()
    robot = load_robot("suralp")
    walk = rigid_walk(robot, GAIT, 6.0, "r_knee")
    schemes = {name: rigid_friction(robot, walk, name) for name in SCHEMES}
    _draw(walk, schemes, options.output.parent / "images")
    options.output.write_text("\n".join([*_rigid(walk, schemes, options), *_simulated(robot, options), READING]))
    print(options.output)
    return 0


def _draw(walk: RigidWalk, schemes: dict[str, FloatArray], folder: Path) -> None:
    figures.draw_supports(walk, schemes["exact"], JOINT, folder / "constrained_supports.png")
    figures.draw_differences(walk, schemes, JOINT, folder / "constrained_differences.png")
    figures.draw_over_velocity(walk, schemes, folder / "constrained_velocity.png")


def _rigid(walk: RigidWalk, schemes: dict[str, FloatArray], options: argparse.Namespace) -> list[str]:
    rows, exact = [], 0.0
    left, right = (figures.single_support(walk, right=stands) for stands in (False, True))
    for name, friction in schemes.items():
        error = friction - walk.friction
        stance = np.concatenate((error[left, :LEG], error[right, LEG:]))
        swing = np.concatenate((error[right, :LEG], error[left, LEG:]))
        if name == "exact":
            exact = max(np.abs(stance).max(), np.abs(swing).max())
        rows.append((SCHEMES[name], *(row_of(np.sqrt((e**2).mean(axis=0)), 4) for e in (stance, swing))))
    both = (schemes["exact"] - walk.friction)[walk.contact.all(axis=1)].reshape(-1, LEG)
    rows.append(("double support, exact acceleration, eq. 6.1", row_of(np.sqrt((both**2).mean(axis=0)), 4), ""))
    command = f"python benchmarks/constrained_study.py --duration {options.duration:g}"
    joints = ", ".join(figures.LEG_JOINTS)
    text = INTRODUCTION.format(command=command, joints=joints, exact=f"{exact:.0e}")
    return [text, *table(("accelerations", "stance", "swing"), rows)]


def _simulated(robot: Robot, options: argparse.Namespace) -> list[str]:
    model = RobotModel(robot.config, robot.urdf_xml)
    lines = [WALK.format(duration=options.duration)]
    for noise in ("clean", "paper_std"):
        run = simulate(robot, model, make_scenario("walk", options.duration), noise, 0)
        rows = _true_rows(robot, run) if noise == "clean" else []
        for label, changes in SETTINGS.items():
            errors = measured_errors(robot, run, noise, changes)
            rows.append(_row(label, errors))
            print(noise, label, errors.stance.round(3), errors.swing.round(3), file=sys.stderr)
            if not changes:
                late = (
                    "as configured, as published",
                    row_of(errors.late_stance),
                    row_of(errors.late_swing),
                    "",
                    "",
                )
        rows.append(late)
        for label, name in (("FBSE as printed", "fbse"), ("momentum observer", "momentum")):
            rows.append((label, *(row_of(rms) for rms in published_errors(robot, run, noise, name)), "", ""))
        if noise == "paper_std":
            rows.append(("constrained dynamics in the study before the project", *STUDY, "", ""))
        lines += [f"### Sensors `{noise}`", ""]
        lines += table(("", "stance", "swing", "share of single support", "NEES"), rows)
    return lines


def _true_rows(robot: Robot, run: SimulatedRun) -> list[tuple[str, ...]]:
    rows = []
    for label, changes in (("true states", {}), ("true states, trimmed by 0.12 s", LONG_TRIM)):
        rows.append((*_row(label, errors_with_true_states(robot, run, changes))[:-1], ""))
    return rows


def _row(label: str, errors: Errors) -> tuple[str, ...]:
    return label, row_of(errors.stance), row_of(errors.swing), number(errors.share), row_of(errors.nees)
