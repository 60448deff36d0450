"""What does friction compensation do to the robot while sensors are wrong? The built-in walk, in closed loop.

    python -m benchmarks.wrong_sensors [--only FAULT ...] [--random SECONDS]

Each fault begins after three seconds, or at the start, and stays. Expected: the joints follow their references as well
as without compensation (1.1 times the RMS error at most), the torque is at most half of its limit one second after the
fault is known, and the joint that is hit is named. With ``--random`` faults of random joints come and go for this
simulated time instead. Fills the table of docs/results/compensation.md; all faults take two minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from benchmarks.shared.command import command, command_line, longer_than, make_parser
from benchmarks.shared.pages import DOCS, NOTHING, add_page, number, table
from friction_estimator.compiled import prepare
from friction_estimator.errors import InputError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.robot import load_robot
from friction_estimator.simulation import Simulator, make_noise, make_scenario
from friction_estimator.types import CommandSample, FloatArray, JointSample

PLACE = "wrong sensors"
KNEE, START, DURATION = 3, 3.0, 7.0
_AT_MOST = 1.1
"""Tracking error with compensation over that without."""
Change = Callable[[FloatArray, FloatArray, FloatArray, int], None]
"""Changes position, velocity and effort (n,) of a joint, or of all, in place."""


def scaled(field: int, factor: float, alone: bool = True) -> Change:
    """Multiply velocity (1) or effort (2) of one joint, or of all."""

    def change(position: FloatArray, velocity: FloatArray, effort: FloatArray, joint: int) -> None:
        (position, velocity, effort)[field][joint if alone else slice(None)] *= factor

    return change


def held(field: int, value: float) -> Change:
    """Velocity (1) or effort (2) of one joint keeps a value."""

    def change(position: FloatArray, velocity: FloatArray, effort: FloatArray, joint: int) -> None:
        (position, velocity, effort)[field][joint] = value

    return change


FAULTS: dict[str, tuple[str, float, Change | None]] = {
    "none": ("all sensors are right", START, None),
    "efforts_3": ("all efforts are three times too large, from the start", 0.0, scaled(2, 3.0, alone=False)),
    "efforts_flipped": ("all efforts have the opposite sign, from the start", 0.0, scaled(2, -1.0, alone=False)),
    "effort_3": ("the effort of the left knee is three times too large", START, scaled(2, 3.0)),
    "velocity_10": ("the velocity of the left knee is ten times too large", START, scaled(1, 10.0)),
    "velocity_degrees": ("the velocity of the left knee is in degrees per second", START, scaled(1, 57.3)),
    "velocity_flipped": ("the velocity of the left knee has the opposite sign", START, scaled(1, -1.0)),
    "velocities_flipped": ("all velocities have the opposite sign", START, scaled(1, -1.0, alone=False)),
    "velocity_stuck": ("the velocity of the left knee stays at 0.6 rad/s", START, held(1, 0.6)),
    "effort_stuck": ("the effort of the left knee stays at 20 N m", START, held(2, 20.0)),
    "commands_flipped": (
        "all desired velocities have the opposite sign (`compensation.velocity: desired`)",
        START,
        None,
    ),
}
COMMANDS = "commands_flipped"
"""The fault of the commands; all others are of the readings."""


@dataclass(frozen=True)
class Loop:
    """One walk: RMS tracking error from the fault on [rad], largest torque in its last second [N m], last doubts."""

    error: float
    torque: float
    reasons: tuple[str, ...]


def walk(
    change: Callable[[JointSample, float], JointSample],
    compensates: bool,
    seconds: float,
    start: float,
    desired: bool = False,
) -> Loop:
    """Walk with or without compensation; ``change`` gives the readings of the joints at a time [s].

    With ``desired`` the law is evaluated at the commands, which have the opposite sign from ``start`` on.
    """
    velocity = "desired" if desired else "measured"
    robot = load_robot("suralp", {"compensation.enabled": True, "compensation.velocity": velocity})
    simulator = Simulator(robot.config, robot.urdf_xml, make_scenario("walk", seconds), make_noise("paper_std"))
    estimator, torque, errors, torques = Estimator(robot.config, robot.urdf_xml), None, [], []
    prepare()
    while simulator.time < seconds:
        sample = simulator.step(torque if compensates else None)
        if desired:
            sign = -1.0 if simulator.time > start else 1.0
            estimator.add(CommandSample(sample.joints.stamp_ns, sign * sample.reference.velocity))
        for reading in sample.readings:
            if isinstance(reading, JointSample):
                reading = change(reading, simulator.time)
            with suppress(InputError):  # readings beyond their limits are refused
                for estimate in estimator.add(reading):
                    torque = estimate.compensation
        if simulator.time > start:
            errors.append(sample.reference.position - sample.joints.position)
        if simulator.time > seconds - 1.0 and torque is not None:
            torques.append(np.abs(torque).max())
    assert estimator.compensation is not None
    states = zip(estimator.joint_names, estimator.compensation.states(estimator.doubts()), strict=True)
    reasons = tuple(f"{joint}: {state}" for joint, state in states if "% of the torque" in state)
    return Loop(float(np.sqrt(np.mean(np.square(errors)))), float(np.max(torques)), reasons)


def fault(name: str, joint: int = KNEE) -> Callable[[JointSample, float], JointSample]:
    """Readings with one of :data:`FAULTS`."""
    _, start, change = FAULTS[name]

    def apply(sample: JointSample, time: float) -> JointSample:
        if change is None or time < start or sample.velocity is None:
            return sample
        values = sample.position.copy(), sample.velocity.copy(), sample.effort.copy()
        change(*values, joint)
        return JointSample(sample.stamp_ns, *values)

    return apply


def random_faults(seed: int) -> Callable[[JointSample, float], JointSample]:
    """A random fault of a random joint in every other five seconds."""
    names = [name for name in FAULTS if name not in ("none", COMMANDS)]

    def apply(sample: JointSample, time: float) -> JointSample:
        turn = int(time // 5.0)
        if turn % 2 == 0:
            return sample
        rng = np.random.default_rng((seed, turn))
        return fault(str(rng.choice(names)), int(rng.integers(sample.position.size)))(sample, np.inf)

    return apply


@command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser("wrong_sensors", __doc__)
    parser.add_argument("--only", nargs="+", choices=FAULTS, default=list(FAULTS), metavar="FAULT")
    parser.add_argument("--random", type=longer_than(10.0), metavar="SECONDS", help="simulated time of random faults")
    add_page(parser, DOCS / "results" / "compensation.md", PLACE)
    options = parser.parse_args(arguments)
    if options.random:
        loops = [walk(random_faults(1), compensates, options.random, 5.0) for compensates in (False, True)]
        print(f"RMS error {1e3 * loops[0].error:.3f} mrad without, {1e3 * loops[1].error:.3f} mrad with compensation")
        return int(loops[1].error > _AT_MOST * loops[0].error)
    rows, failed = [], 0
    for name in options.only:
        what, start, _ = FAULTS[name]
        without, with_it = (
            walk(fault(name), compensates, DURATION, start, name == COMMANDS) for compensates in (False, True)
        )
        good = with_it.error <= _AT_MOST * without.error and (name == "none") != bool(with_it.reasons)
        failed += not good
        reason = with_it.reasons[0].partition("; ")[0].replace("|", "/")[:120] if with_it.reasons else NOTHING
        figures = (number(1e3 * one.error, 2) for one in (without, with_it))
        rows.append((what, *figures, number(with_it.torque, 1), reason, "as expected" if good else "**worse**"))
        print(*rows[-1], sep="  ", flush=True)
    heading = ("what is wrong", "error without [mrad]", "with compensation [mrad]", "largest torque at the end [N m]")
    lines = table((*heading, "state of the first joint in doubt", "outcome"), rows)
    options.output.fill(PLACE, [*lines, f"Measured by `{command_line('wrong_sensors', arguments)}`."])
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
