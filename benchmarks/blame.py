"""Is the right cause named when a sensor or the robot changes in the middle of a walk, and does sigma hold the errors?

    python -m benchmarks.blame [--seeds 10] [--first 0] [--noise paper_std] [--only KIND ...]

The built-in biped walks. After nine to eleven good seconds comes a change of a random joint, direction and size, and
stays. Right: the first finding about a sensor is the true one, with the true joint; a brake is no sensor. Fills a table
of docs/results/reliability.md; ten seeds take twenty minutes on an idle core.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.shared.command import command, command_line, count, make_parser
from benchmarks.shared.pages import DOCS, NOTHING, add_page, number, table
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.robot import load_robot
from friction_estimator.kernels.compiler import prepare
from friction_estimator.simulation import SimulationSample, Simulator, make_noise, make_scenario
from friction_estimator.types import BoolArray, FloatArray

PLACE = "blame"
_FIRST, _LAST, _AFTER = 9.0, 11.0, 7.0
"""Earliest and latest change, and time for which it is watched [s]."""
_LATE = 5
"""Delay of late torques, in samples of 1 ms."""
Samples = Sequence[SimulationSample]
Change = Callable[[SimulationSample, "Fault", Samples, int], SimulationSample]
"""Makes the changed readings from good ones, the fault, all samples, and the number of this one."""


class Fault:
    """One change: kind, time [s], joint, sign, part of the usual size, and direction (3,)."""

    def __init__(self, kind: str, seed: int, joints: int) -> None:
        rng = np.random.default_rng((seed, list(KINDS).index(kind)))
        self.kind, self.seed = kind, seed
        self.time = float(rng.uniform(_FIRST, _LAST))
        self.joint, self.sign, self.part = int(rng.integers(joints)), float(rng.choice((-1, 1))), rng.uniform(0.8, 1.2)
        direction = rng.normal(size=3) * (1.0, 1.0, 0.3)
        self.direction = direction / np.linalg.norm(direction)


def of_joints(field: str, change: Callable[[FloatArray, Fault], None]) -> Change:
    """Change a field of the joint states in place."""

    def changed(sample: SimulationSample, fault: Fault, samples: Samples, row: int) -> SimulationSample:
        values = getattr(sample.joints, field).copy()
        change(values, fault)
        return replace(sample, joints=replace(sample.joints, **{field: values}))

    return changed


def _add(size: float) -> Callable[[FloatArray, Fault], None]:
    def change(values: FloatArray, fault: Fault) -> None:
        values[fault.joint] += size * fault.sign * fault.part

    return change


def _multiply(factor: float, sign: float = 0.0) -> Callable[[FloatArray, Fault], None]:
    def change(values: FloatArray, fault: Fault) -> None:
        values[fault.joint] *= factor + sign * fault.sign

    return change


def _accelerometer(sample: SimulationSample, fault: Fault, samples: Samples, row: int) -> SimulationSample:
    force = sample.imu.specific_force + 0.8 * fault.part * fault.direction
    return replace(sample, imu=replace(sample.imu, specific_force=force))


def _late(sample: SimulationSample, fault: Fault, samples: Samples, row: int) -> SimulationSample:
    return replace(sample, joints=replace(sample.joints, effort=samples[row - _LATE].joints.effort))


def _brake(sample: SimulationSample, fault: Fault, samples: Samples, row: int) -> SimulationSample:
    velocity = sample.joints.velocity
    assert velocity is not None
    more = np.zeros(velocity.size)
    more[fault.joint] = 12.0 * fault.part * np.tanh(velocity[fault.joint] / 0.02)
    truth = replace(sample.truth, friction=sample.truth.friction + more)
    return replace(sample, joints=replace(sample.joints, effort=sample.joints.effort + more), truth=truth)


KINDS: dict[str, tuple[str, Change, str]] = {
    "none": ("nothing changes", lambda sample, fault, samples, row: sample, ""),
    "encoder": ("an encoder slips by 0.1 rad", of_joints("position", _add(0.1)), "encoder of joint {} has slipped"),
    "encoder_small": (
        "an encoder slips by 0.02 rad",
        of_joints("position", _add(0.02)),
        "encoder of joint {} has slipped",
    ),
    "accelerometer": ("offset of the accelerometer, 0.8 m/s^2", _accelerometer, "accelerometer has a bias"),
    "gain": ("a torque gain changes by 20 %", of_joints("effort", _multiply(1.0, 0.2)), "effort of joint {} is"),
    "velocity_10": (
        "a velocity is ten times too large",
        of_joints("velocity", _multiply(10.0)),
        "position of joint {} changes",
    ),
    "effort_3": ("an effort is three times too large", of_joints("effort", _multiply(3.0)), "effort of joint {} is"),
    "sign": ("an effort has the opposite sign", of_joints("effort", _multiply(-1.0)), "effort of joint {} has the opp"),
    "late": ("all torques are 5 ms late", _late, "motor torques are"),
    "brake": ("a brake drags, 12 N m", _brake, ""),
}
"""What changes, how, and words of the finding that is right; none where no sensor is wrong."""


def watch(estimator: Estimator, fault: Fault, samples: Samples, row: int) -> dict[str, Any]:
    """Give the estimator the changed readings; what was found when, and the errors of the joint that is hit."""
    _, change, words = KINDS[fault.kind]
    expected = words.format(f"'{estimator.joint_names[fault.joint]}'")
    found: dict[str, float] = {}
    early: list[BoolArray] = []
    late: list[BoolArray] = []
    for now in range(row, row + round(1e3 * _AFTER)):
        sample, time = change(samples[now], fault, samples, now), 1e-3 * (now - row)
        for estimate in [one for reading in sample.readings for one in estimator.add(reading)]:
            within = np.abs(estimate.friction - sample.truth.friction) < 3.0 * estimate.sigma
            (early if 0.05 <= time < 0.5 else late if time >= 2.0 else []).append(within)
        if now % 50 == 0:
            for text in estimator.health.findings:
                found.setdefault(text, time)
    cause = next(iter(found), "")
    return {
        "kind": fault.kind, "seed": fault.seed, "joint": estimator.joint_names[fault.joint],
        "right": expected in cause if words else not cause, "cause": cause, "after": found.get(cause, np.nan),
        "early": float(np.mean(early, axis=0).min()), "late": float(np.mean(late, axis=0).min()),
    }  # fmt: skip


def outcomes(kinds: Iterable[str], seeds: Iterable[int], noise: str) -> list[dict[str, Any]]:
    """All changes, each in a copy of the process that has walked up to it."""
    robot = load_robot("suralp")
    simulator = Simulator(
        robot.config, robot.urdf_xml, make_scenario("walk", _LAST + _AFTER), make_noise(noise), seed=1
    )
    samples = [simulator.step() for _ in range(round(1e3 * (_LAST + _AFTER)))]
    estimator, found = Estimator(robot.config, robot.urdf_xml), list[dict[str, Any]]()
    prepare()
    faults = [Fault(kind, seed, len(estimator.joint_names)) for kind in kinds for seed in seeds]
    faults.sort(key=lambda fault: fault.time)
    for row, sample in enumerate(samples):
        while faults and 1e-3 * row >= faults[0].time:
            fault = faults.pop(0)
            reader, writer = os.pipe()
            if (child := os.fork()) == 0:
                os.write(writer, json.dumps(watch(estimator, fault, samples, row)).encode())
                os._exit(0)
            os.close(writer)
            os.waitpid(child, 0)
            with os.fdopen(reader, "rb") as pipe:
                found.append(json.loads(pipe.read()))
            print(json.dumps(found[-1]), flush=True)
        if not faults:
            break
        for reading in sample.readings:
            estimator.add(reading)
    return found


def rows_of(found: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """One row per kind."""
    rows = []
    for kind, (what, *_) in KINDS.items():
        if not (mine := [one for one in found if one["kind"] == kind]):
            continue
        wrong = "; ".join(
            f"{one['joint']}: {one['cause'].partition('. ')[0][:90] or 'nothing'}" for one in mine if not one["right"]
        )
        after = [one["after"] for one in mine if np.isfinite(one["after"])]
        shares = (f"{100 * min(one[key] for one in mine):.0f}" for key in ("early", "late"))
        good = sum(one["right"] for one in mine)
        rows.append(
            (
                what,
                f"{good} of {len(mine)}",
                number(float(np.median(after or [np.nan])), 2),
                *shares,
                wrong.replace("|", "/") or NOTHING,
            )
        )
    return rows


@command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser("blame", __doc__)
    parser.add_argument("--seeds", type=count, default=10, help="number of changes of each kind")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--noise", default="paper_std", help="sensor noise")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND")
    add_page(parser, DOCS / "results" / "reliability.md", PLACE)
    options = parser.parse_args(arguments)
    found = outcomes(options.only, range(options.first, options.first + options.seeds), options.noise)
    heading = (
        "what changes", "right cause named first", "after [s]", "within 3 sigma from 0.05 to 0.5 s [%], worst joint",
        "from 2 to 7 s [%]", "what else was named",
    )  # fmt: skip
    lines = [*table(heading, rows_of(found)), f"Measured by `{command_line('blame', arguments)}`."]
    print(*lines, sep="\n")
    options.output.fill(PLACE, lines)
    return int(
        any(sum(one["right"] for one in found if one["kind"] == kind) < 0.9 * options.seeds for kind in options.only)
    )


if __name__ == "__main__":
    sys.exit(main())
