"""One trouble at a time: does sigma hold the errors, and do F_c and F_v follow?

    python -m benchmarks.random_robots.troubles

The robot of 110 kg walks in MuJoCo with Coulomb and viscous friction of MuJoCo and good sensors, whose noise the
estimator has. Five minutes on two cores.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.random_robots.evaluation import estimate
from benchmarks.random_robots.robots import MUJOCO, RandomRobot, draw
from benchmarks.random_robots.scores import is_wrong, score
from benchmarks.random_robots.sensors import draw_errors
from benchmarks.random_robots.walks import PERIOD, Walker, walk_mujoco
from benchmarks.shared.command import add_processes, command, command_line, make_parser
from benchmarks.shared.pages import DOCS, add_page, number, table
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.types import FloatArray

PAGE = DOCS / "results" / "random_robots.md"
HEADING = (
    "trouble", "smallest coverage", "largest relative error", "wrong joints",
    "F_c within 2 sigma", "lag of F_c, median", "F_v within 2 sigma", "lag of F_v, median",
)  # fmt: skip
_DRY, _VISCOUS = (1.5, 1.2, 1.0, 0.8, 0.6, 0.5) * 2, 0.5
_KNEE, _OFFSET, _PAYLOAD, _PICKED_UP = 3, 2.0, 10.0, 10.0  # joint, [N m], [kg], [s]
_RATE = 0.02  # of friction that drifts, a second, over its value at the start
_DRIFTS_FROM = 4.0  # [s]


@dataclass(frozen=True, slots=True)
class Trouble:
    """One trouble of the robot.

    Attributes
    ----------
    fields : of :class:`RandomRobot`
    dry, viscous : part by which friction changes a second
    payload : that the trunk picks up [kg]
    """

    fields: dict[str, Any]
    dry: float = 0.0
    viscous: float = 0.0
    payload: float = 0.0


TROUBLES = {
    "none": Trouble({}),
    "torque sensor of a knee with an offset of 2 N m": Trouble(
        {"effort_offset": tuple(_OFFSET * (joint == _KNEE) for joint in range(12))}
    ),
    "gears of 1e4 N m/rad with 1 mrad of play": Trouble(
        {"stiffness": 1e4, "play": 1e-3, "armature": (0.1,) * 12, "armature_known": True}
    ),
    "standing for 8 s, then walking": Trouble({"start": 8.5}),
    "payload of 10 kg picked up at 10 s": Trouble({}, payload=_PAYLOAD),
    "dry friction grows by 2 % a second": Trouble({}, dry=_RATE),
    "viscous friction falls by 2 % a second": Trouble({}, viscous=-_RATE),
}


class TroubledWalker(Walker):
    """A robot whose friction or load changes while it walks."""

    def __init__(self, robot: RandomRobot, trouble: Trouble) -> None:
        super().__init__(robot)
        self._trouble, self._trunk = trouble, int(self.physics.model.jnt_bodyid[0])
        self._mass = float(self.physics.model.body_mass[self._trunk])

    def friction_at(self, time: float) -> tuple[FloatArray, FloatArray]:
        """Coulomb torque (n,) and viscous coefficient (n,) at a time [s]."""
        passed = max(time - _DRIFTS_FROM, 0.0)
        dry, viscous = np.array(self.robot.dry), np.array(self.robot.viscous)
        return dry * (1.0 + self._trouble.dry * passed), viscous * (1.0 + self._trouble.viscous * passed)

    def step(self, k: int) -> tuple[FloatArray, ...]:
        """See :meth:`Walker.step`."""
        self.friction.dry, self.friction.viscous = self.friction_at(k * PERIOD)
        if k * PERIOD >= _PICKED_UP:
            self.physics.model.body_mass[self._trunk] = self._mass + self._trouble.payload
        return super().step(k)


def sound_robot() -> RandomRobot:
    """A robot without troubles."""
    robot = draw(1, MUJOCO).corrected("URDF", "torques", "wrenches", "IMU", "stamps")
    return replace(
        robot, base="suralp", mass=110.0, length=1.0, kind="coulomb_viscous", dry=_DRY, viscous=(_VISCOUS,) * 12,
        shape=(0.0,) * 12, ripple=0.0, teeth=(), armature=(0.0,) * 12, armature_known=False, stiffness=0.0, play=0.0,
        step_length=0.1, single_support=0.6, double_support=0.9, start=0.5, pause=0.0, rates=(1000, 1000, 1000),
        bits=20, velocity_cutoff=0.0, velocity_std=2e-3, effort_std=0.01, specific_force_std=1e-2,
        angular_velocity_std=5e-3, force_std=1.0, datasheet=True,
    )  # fmt: skip


def perform(name: str) -> list[str]:
    """One line of the table."""
    trouble = TROUBLES[name]
    walker = TroubledWalker(replace(sound_robot(), **trouble.fields), trouble)
    walk = walk_mujoco(walker)
    robot = walk.robot
    estimator = Estimator(robot.estimator_config({}), robot.estimator_urdf(walk.urdf))
    friction, sigma, rows, last = estimate(estimator, walk, robot, draw_errors(robot))
    time = PERIOD * rows.astype(np.float64)
    record = score(time, friction, sigma, walk.friction[rows], walk.stance[rows])
    true, law = walker.friction_at(float(time[-1])), last.law
    lines = zip((law.coulomb, law.viscous), (law.coulomb_sigma, law.viscous_sigma), true, strict=True)
    rates = trouble.dry * np.array(robot.dry), trouble.viscous * np.array(robot.viscous)
    follows = [_follows(*line, rate) for line, rate in zip(lines, rates, strict=True)]
    return [
        name, number(float(np.min(record["coverage"]))), number(float(np.max(record["error"]))),
        str(is_wrong(record).sum()), *follows[0], *follows[1],
    ]  # fmt: skip


def _follows(value: FloatArray, sigma: FloatArray, true: FloatArray, rate: FloatArray) -> tuple[str, str]:
    """How many of the joints are within two sigma of the truth, and the median lag where it changes."""
    inside = f"{int((np.abs(value - true) <= 2.0 * sigma).sum())} of {value.size}"
    lag = float(np.median((true - value) / rate)) if rate.any() else math.nan
    return inside, f"{number(lag, 1)} s" if math.isfinite(lag) else "–"


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("random_robots.troubles", __doc__)
    add_processes(parser)
    add_page(parser, PAGE, "troubles", optional=True)
    options = parser.parse_args(arguments)
    with ProcessPoolExecutor(options.processes) as pool:
        lines = table(HEADING, list(pool.map(perform, TROUBLES)))
    print(*lines, sep="\n")
    if options.output is not None:
        used = command_line("random_robots.troubles", arguments)
        options.output.fill("troubles", [f"`{used}`", "", *lines])


if __name__ == "__main__":
    sys.exit(main())
