"""What does friction compensation do to the robot while a sensor is wrong or a brake drags? The walk in closed loop.

    python -m benchmarks.wrong_sensors [--only FAULT ...]
    python -m benchmarks.wrong_sensors --random SECONDS [--records FILE]

Each fault begins after three seconds, or at the start, and stays. Expected: the joints follow their references as well
as without compensation (1.1 times the RMS error at most), the torque stays within its limits, and what is named first
holds the joint that is hit; a brake is friction, and nothing is named. The walk is that with our controller and
`compensation.velocity: measured`; torques "after" a time are the largest ones of the left knee in the following 50 ms.
With ``--random`` faults of random joints come and go for this simulated time instead, in walks of one minute; one line
of JSON a walk is appended to --records as it is done, and a second call with the same file goes on from there. Fills
tables of docs/results/compensation.md; all faults take three minutes, ten random minutes half an hour.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.shared.command import command, command_line, longer_than, make_parser
from benchmarks.shared.pages import DOCS, NOTHING, add_page, number, table
from friction_estimator.errors import InputError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.validity import Reason
from friction_estimator.io.robot import load_robot
from friction_estimator.kernels.compiler import prepare
from friction_estimator.simulation import TABLE_I, FrictionSetting, Simulator, make_noise, make_scenario
from friction_estimator.types import CommandSample, FloatArray, JointSample

PLACE, RANDOM = "wrong sensors", "random faults in closed loop"
KNEE, START, DURATION = 3, 3.0, 7.0
_AT_MOST = 1.1
"""Tracking error with compensation over that without."""
_LATER = 0.05, 1.0
"""Times after a fault at which the torque is shown [s]."""
_MINUTE, _TURN = 60.0, 5.0
"""Length of a walk with random faults, and of each fault and of the good data between two [s]."""
_BRAKE = 12.0
"""Dry friction of a dragging brake [N m]."""
_DRY = 3
"""Place of the dry friction among the parameters of the injected law."""

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
    "brake": ("a brake drags at the left knee, 12 N m", START, None),
    "commands_flipped": (
        "all desired velocities have the opposite sign (`compensation.velocity: desired`)",
        START,
        None,
    ),
}
COMMANDS, BRAKE = "commands_flipped", "brake"
"""The fault of the commands and that of the robot; all others are of the readings."""
_OF_ALL = frozenset(("efforts_3", "efforts_flipped", "velocities_flipped", COMMANDS))
"""Faults of all joints, of which any may be named first."""


@dataclass(frozen=True, slots=True)
class Loop:
    """One walk.

    Attributes
    ----------
    error, samples : root mean square of the tracking errors from the start of the faults on [rad], their number
    torque : largest one in the last second [N m]
    later : of the joint that is hit, largest ones in the 50 ms after each of ``_LATER`` [N m]
    beyond : number of torques that were not finite or beyond their limits
    named, after : what the estimator finds first after the start, and when [s]
    reasons : last states of the joints whose torque has faded
    """

    error: float
    samples: int
    torque: float = 0.0
    later: tuple[float, ...] = (0.0, 0.0)
    beyond: int = 0
    named: str = ""
    after: float = np.nan
    reasons: tuple[str, ...] = ()


class Spell(NamedTuple):
    """A fault of a joint, for a time from ``begin`` to ``end`` [s]."""

    name: str
    joint: int
    begin: float
    end: float

    def changed(self, sample: JointSample) -> JointSample:
        """Readings of the joints with the fault."""
        change = FAULTS[self.name][2]
        if change is None or sample.velocity is None:
            return sample
        values = sample.position.copy(), sample.velocity.copy(), sample.effort.copy()
        change(*values, self.joint)
        return JointSample(sample.stamp_ns, *values)


def friction(spells: Iterable[Spell], joint_names: Sequence[str]) -> tuple[FrictionSetting, ...]:
    """Friction of the robot, with the brakes among the faults."""
    settings = [FrictionSetting()]
    for spell in (one for one in spells if one.name == BRAKE):
        law = TABLE_I[spell.joint % len(TABLE_I)]
        parameters = list(law.parameters)
        parameters[_DRY] += _BRAKE
        dragging = (joint_names[spell.joint], replace(law, parameters=tuple(parameters)))
        settings += [FrictionSetting(spell.begin, joints=(dragging,)), FrictionSetting(spell.end)]
    return tuple(settings)


def walk(spells: Sequence[Spell], compensates: bool, seconds: float, start: float, seed: int = 0) -> Loop:
    """Walk with or without compensation while these faults come and go; errors count from ``start`` on [s]."""
    desired = any(spell.name == COMMANDS for spell in spells)
    velocity = "desired" if desired else "measured"
    robot = load_robot("suralp", {"compensation.enabled": True, "compensation.velocity": velocity})
    estimator = Estimator(robot.config, robot.urdf_xml)
    scenario = replace(make_scenario("walk", seconds), friction=friction(spells, estimator.joint_names))
    simulator = Simulator(robot.config, robot.urdf_xml, scenario, make_noise("paper_std"), seed)
    prepare()
    square, samples, beyond, named, after = 0.0, 0, 0, "", np.nan
    torque: FloatArray = np.zeros(len(estimator.joint_names))
    last, later = 0.0, [0.0] * len(_LATER)
    limit = robot.config.compensation.limit + 1e-9
    while simulator.time < seconds:
        sample = simulator.step(torque if compensates else None)
        time = simulator.time
        if time > start:
            square += float(np.mean((sample.reference.position - sample.joints.position) ** 2))
            samples += 1
        if not compensates:
            continue
        active = [spell for spell in spells if spell.begin <= time < spell.end]
        if desired:
            sign = -1.0 if active else 1.0
            estimator.add(CommandSample(sample.joints.stamp_ns, sign * sample.reference.velocity))
        for reading in sample.readings:
            for spell in active if isinstance(reading, JointSample) else ():
                reading = spell.changed(reading)
            with suppress(InputError):  # readings beyond their limits are refused
                for estimate in estimator.add(reading):
                    torque = estimate.compensation
        beyond += not bool((np.abs(torque) <= limit).all())
        for row, delay in enumerate(_LATER):
            if 0.0 <= time - start - delay < _LATER[0]:
                later[row] = max(later[row], float(np.abs(torque[spells[0].joint])) if spells else 0.0)
        if time > seconds - 1.0:
            last = max(last, float(np.abs(torque).max()))
        if not named and time > start and samples % 10 == 0:
            invalid = {one.joint: one.text for one in estimator.diagnose() if one.reason is Reason.SENSOR}
            doubted = [f"{', '.join(invalid)}: {next(iter(invalid.values()))}"] if invalid else []
            named = next(iter([*estimator.health.findings, *doubted]), "")
            after = time - start
    assert estimator.compensation is not None
    states = zip(estimator.joint_names, estimator.compensation.states(estimator.invalid_reasons()), strict=True)
    reasons = tuple(f"{joint}: {state}" for joint, state in states if "% of the torque" in state)
    error = float(np.sqrt(square / max(samples, 1)))
    return Loop(error, samples, last, tuple(later), beyond, named, after if named else np.nan, reasons)


def random_spells(seed: int, joints: int) -> list[Spell]:
    """Random faults of random joints, one in every other turn of a walk."""
    rng, names = np.random.default_rng(seed), [name for name in FAULTS if name not in ("none", COMMANDS)]
    begins = np.arange(_TURN, _MINUTE - _TURN, 2.0 * _TURN).tolist()
    return [Spell(str(rng.choice(names)), int(rng.integers(joints)), begin, begin + _TURN) for begin in begins]


def random_walks(seconds: float, records: Path | None) -> list[dict[str, dict[str, Any]]]:
    """Walks without and with compensation; those that the file holds already are not made anew."""
    lines = records.read_text(encoding="utf-8").splitlines() if records is not None and records.exists() else []
    found = [json.loads(line) for line in lines]
    for seed in range(len(found), math.ceil(seconds / _MINUTE)):
        spells = random_spells(seed, 2 * len(TABLE_I))
        loops = {name: walk(spells, name == "with", _MINUTE, _TURN, seed) for name in ("without", "with")}
        found.append({name: asdict(loop) for name, loop in loops.items()})
        if records is not None:
            with records.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found[-1]) + "\n")
        errors = ", ".join(f"{1e3 * loop.error:.3f} mrad {name}" for name, loop in loops.items())
        print(f"{seed + 1}: {errors}; {', '.join(spell.name for spell in spells)}", file=sys.stderr, flush=True)
    return found


def random_rows(found: Sequence[Mapping[str, Mapping[str, Any]]]) -> tuple[list[tuple[str, str]], bool]:
    """Figures of random walks, and whether they are as expected."""
    errors = {name: np.array([one[name]["error"] for one in found]) for name in ("without", "with")}
    ratio = float(np.sqrt(np.mean(errors["with"] ** 2) / np.mean(errors["without"] ** 2)))
    beyond = sum(one["with"]["beyond"] for one in found)
    return [
        ("walks of one minute with random faults in every other five seconds", str(len(found))),
        ("RMS error without and with compensation [mrad]", " / ".join(
            number(1e3 * float(np.sqrt(np.mean(values**2))), 3) for values in errors.values())),
        ("with compensation over without: in the mean, in the worst walk", " / ".join(
            number(value, 2) for value in (ratio, float((errors["with"] / errors["without"]).max())))),
        ("torques that are not finite or beyond their limits", str(beyond)),
    ], ratio <= _AT_MOST and not beyond  # fmt: skip


@command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser("wrong_sensors", __doc__)
    parser.add_argument("--only", nargs="+", choices=FAULTS, default=list(FAULTS), metavar="FAULT")
    parser.add_argument("--random", type=longer_than(10.0), metavar="SECONDS", help="simulated time of random faults")
    parser.add_argument("--records", type=Path, help="file with one line of JSON a walk with random faults")
    add_page(parser, DOCS / "results" / "compensation.md", PLACE, RANDOM)
    options = parser.parse_args(arguments)
    measured = f"Measured by `{command_line('wrong_sensors', arguments)}`."
    if options.random:
        figures, good = random_rows(random_walks(options.random, options.records))
        lines = table(("what", "value"), figures)
        print(*lines, sep="\n")
        options.output.fill(RANDOM, [*lines, measured])
        return int(not good)
    rows, failed = [], 0
    for name in options.only:
        what, start, _ = FAULTS[name]
        spells = [Spell(name, KNEE, start, math.inf)] if name != "none" else []
        without, with_it = (walk(spells, compensates, DURATION, start) for compensates in (False, True))
        as_well = with_it.error <= _AT_MOST * without.error and not with_it.beyond
        named = with_it.named or next(iter(with_it.reasons), "")
        hit = bool(named) and (name in _OF_ALL or "l_knee" in named)
        good = as_well and (not named if name in ("none", BRAKE) else hit)
        failed += not good
        numbers = 1e3 * without.error, 1e3 * with_it.error, *with_it.later, with_it.torque, with_it.after
        text = named.partition("; ")[0].replace("|", "/")[:120] or NOTHING
        outcome = "as expected" if good else "**worse**"
        rows.append((what, *(number(value, 2) for value in numbers), text, outcome))
        print(*rows[-1], sep="  ", flush=True)
    heading = (
        "what is wrong", "error without [mrad]", "with compensation [mrad]", "torque of the joint after 50 ms [N m]",
        "after 1 s [N m]", "largest one at the end [N m]", "named after [s]", "what is named first", "outcome",
    )  # fmt: skip
    options.output.fill(PLACE, [*table(heading, rows), measured])
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
