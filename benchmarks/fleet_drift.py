"""Is wear found in time, and is temperature or noise never taken for wear, in the friction table of a fleet?

    python -m benchmarks.fleet_drift [--seeds N] [--first SEED] [--case NAME] [--every DAYS]

Simulates friction tables of 20 robots with 12 joints for 60 days. Robots and joints differ, and friction falls by about
1 % a kelvin. Joints follow the temperature of the hour and the weather, and the place gets colder, so that friction
rises as if by wear. A tenth of the joints wears by 30 % at different rates and then stays worn, and a few are
lubricated. Every evening drift is computed from the bags so far, as a cron job would do. Prints a table as Markdown. A
fleet takes less than a minute of CPU time.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa

from benchmarks.shared.command import command, count, make_parser
from benchmarks.shared.pages import table
from friction_estimator.fleet.series import JointSeries, joint_series
from friction_estimator.fleet.storage import SCHEMA
from friction_estimator.fleet.wear import FEWEST_DAYS, WORN, drift_of_series
from friction_estimator.types import FloatArray, IntArray

FIRST = datetime(2026, 1, 5)
_FIRST_DAY = (FIRST - datetime(1970, 1, 1)).days
ROBOTS, JOINTS, DAYS = 20, 12, 60
THRESHOLD = 0.1
WEAR, REACHED, IN_TIME = 0.3, 0.15, 7.0
"""Growth of the friction of a worn joint; growth from which the delay of its verdict counts; longest delay [days]."""


@dataclass(frozen=True)
class Case:
    """One kind of fleet.

    Attributes
    ----------
    bags : a day and robot
    sigma : of the friction in each bag, relative
    stated : sigma in the table over the true one
    day : standard deviation of the friction from day to day, relative
    memory : correlation of neighbouring days
    colder : by which the place gets colder in 60 days [K]
    outliers : part of the bags that are off by 50 %
    """

    bags: int = 10
    sigma: float = 0.05
    stated: float = 1.0
    day: float = 0.03
    memory: float = 0.0
    colder: float = 10.0
    outliers: float = 0.01


CASES = {
    "usual": Case(),
    "one bag a day": Case(bags=1),
    "noisy": Case(sigma=0.1, day=0.05),
    "days that remember": Case(memory=0.7),
    "sigma half of the truth": Case(sigma=0.1, stated=0.5),
    "20 K colder": Case(colder=20.0),
}


@dataclass(frozen=True)
class Truth:
    """Truth about a fleet.

    Attributes
    ----------
    wear : (joints, days) relative
    lubricated, lubricated_on : joints that were lubricated, and the number of the day
    """

    wear: FloatArray
    lubricated: IntArray
    lubricated_on: IntArray


def simulate_table(case: Case, rng: np.random.Generator, robots: int = ROBOTS) -> tuple[pa.Table, Truth]:
    """Friction table of a fleet, and its truth."""
    joints = robots * JOINTS
    usual = rng.uniform(0.3, 3.0, JOINTS)[None, :] * np.exp(0.1 * rng.normal(size=(robots, JOINTS)))
    factor = -0.01 + 0.003 * rng.normal(size=JOINTS)[None, :] + 0.001 * rng.normal(size=(robots, JOINTS))
    usual, factor = usual.ravel(), factor.ravel()
    wear = np.zeros((joints, DAYS))
    days = np.arange(DAYS, dtype=float)
    worn = rng.permutation(joints)[: joints // 10]
    for joint in worn:
        begin, length = rng.uniform(5.0, 30.0), rng.uniform(5.0, 40.0)
        wear[joint] = WEAR * np.clip((days - begin) / length, 0.0, 1.0)
    lubricated = np.setdiff1d(np.arange(joints), worn)[: joints // 40]
    lubricated_on = rng.integers(15, 45, lubricated.size)
    change = np.zeros((joints, DAYS))
    for joint, day in zip(lubricated, lubricated_on, strict=True):
        change[joint, day:] = np.log(0.75)
    noise = np.zeros((joints, DAYS))
    for day in range(DAYS):
        fresh = rng.normal(size=joints)
        noise[:, day] = fresh if day == 0 else case.memory * noise[:, day - 1] + np.sqrt(1.0 - case.memory**2) * fresh
    weather = np.zeros((robots, DAYS))
    for day in range(1, DAYS):
        weather[:, day] = 0.7 * weather[:, day - 1] + 1.5 * rng.normal()
    columns: dict[str, list[FloatArray]] = {name: [] for name in ("day", "joint", "friction", "sigma", "temperature")}
    for _ in range(case.bags):
        hour = rng.uniform(6.0, 20.0, (robots, DAYS))
        warmth = 6.0 * np.cos((hour - 15.0) / 24.0 * 2.0 * np.pi) + weather - case.colder * days / DAYS
        warm = np.repeat(warmth, JOINTS, axis=0)
        sigma = case.sigma * np.exp(0.3 * rng.normal(size=(joints, DAYS)))
        friction = usual[:, None] * np.exp(np.log1p(wear) + change + case.day * noise + factor[:, None] * warm)
        off = np.where(rng.random((joints, DAYS)) < case.outliers, rng.choice([0.5, 1.5], (joints, DAYS)), 1.0)
        measured = off * friction * (1.0 + sigma * rng.normal(size=sigma.shape))
        values = {
            "day": days + np.repeat(hour, JOINTS, axis=0) / 24.0,
            "joint": np.broadcast_to(np.arange(joints)[:, None], (joints, DAYS)),
            "friction": measured,
            "sigma": case.stated * sigma * friction,
            "temperature": 20.0 + warm,
        }
        for name, value in values.items():
            columns[name].append(value.ravel())
    flat = {name: np.concatenate(parts) for name, parts in columns.items()}
    joint, m = flat["joint"].astype(int), flat["joint"].size
    made = {
        "serial": [f"unit_{k // JOINTS:02d}" for k in joint],
        "robot": ["biped"] * m,
        "joint": [f"joint_{k % JOINTS:02d}" for k in joint],
        "start": [FIRST + timedelta(days=day) for day in flat["day"].tolist()],
        "temperature": flat["temperature"],
        "coulomb": 0.6 * flat["friction"],
        "coulomb_sigma": 0.6 * flat["sigma"],
        "viscous": 0.4 * flat["friction"],
        "viscous_sigma": 0.4 * flat["sigma"],
        "coulomb_viscous_covariance": 0.24 * flat["sigma"] ** 2,
        "slow": np.full(m, 0.5),
        "fast": np.full(m, 1.5),
        "usable": [True] * m,
    }
    rows = pa.table({name: pa.array(made[name], field.type) if name in made else pa.nulls(m, field.type)
                     for name, field in zip(SCHEMA.names, SCHEMA, strict=True)})  # fmt: skip
    order = [("serial", "ascending"), ("joint", "ascending"), ("start", "ascending")]
    return rows.sort_by(order), Truth(wear, lubricated, lubricated_on)


@dataclass
class Score:
    """Counts over the seeds of one case."""

    delays: list[float]
    late: int = 0
    early: int = 0
    false_alarms: int = 0
    healthy_months: float = 0.0
    lubricated: int = 0
    lubricated_found: int = 0
    covered: int = 0
    estimates: int = 0


def run_case(case: Case, seed: int, every: int, score: Score) -> None:
    """Every evening of one fleet."""
    rows, truth = simulate_table(case, np.random.default_rng((seed, 15)))
    fleet = joint_series(rows)
    found = np.full(ROBOTS * JOINTS, np.inf)
    for day in range(FEWEST_DAYS - 1, DAYS, every):
        result = drift_of_series([one.where(one.time < _FIRST_DAY + day + 1) for one in fleet], THRESHOLD)
        for joint in result.worn:
            found[_number(joint.days.series)] = min(found[_number(joint.days.series)], day)
    ends = {_number(joint.days.series): joint for joint in result.joints}
    healthy = truth.wear[:, -1] == 0.0
    score.false_alarms += int(np.isfinite(found[healthy]).sum())
    score.healthy_months += healthy.sum() * (DAYS - FEWEST_DAYS + 1) / 30.0
    early = [k for k in np.flatnonzero(~healthy) if np.isfinite(found[k]) and truth.wear[k, int(found[k])] == 0.0]
    score.false_alarms += len(early)
    for k in np.flatnonzero(truth.wear[:, -1] >= REACHED):
        reached = int(np.flatnonzero(truth.wear[k] >= REACHED)[0])
        if reached + IN_TIME >= DAYS:
            continue
        delay = found[k] - reached
        score.delays.append(float(delay))
        score.late += int(delay > IN_TIME)
        score.early += int(np.isfinite(delay) and truth.wear[k, int(found[k])] < THRESHOLD)
    for k in truth.lubricated:
        score.lubricated += 1
        score.lubricated_found += int(ends[k].state == "lower")
    for k in np.flatnonzero(truth.wear[:, -1] == WEAR):
        joint = ends[k]
        if joint.state == WORN:
            score.estimates += 1
            score.covered += int(abs(joint.growth - WEAR) <= 2.0 * joint.growth_sigma)


def _number(series: JointSeries) -> int:
    return int(series.serial[5:]) * JOINTS + int(series.joint[6:])


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("fleet_drift", __doc__)
    parser.add_argument("--seeds", type=count, default=2, help="fleets of each case")
    parser.add_argument("--first", type=int, default=0, help="seed of the first fleet")
    parser.add_argument("--case", choices=tuple(CASES), action="append", help="only this case; may be repeated")
    parser.add_argument("--every", type=count, default=1, help="days between two evaluations")
    chosen = parser.parse_args(arguments)
    rows = []
    for name in chosen.case or CASES:
        score = Score([])
        for seed in range(chosen.first, chosen.first + chosen.seeds):
            run_case(CASES[name], seed, chosen.every, score)
        delays = np.array(score.delays)
        rows.append(
            (
                name,
                f"{delays.size - score.late} of {delays.size}",
                f"{np.median(delays):.0f}, {np.sort(delays)[int(0.95 * (delays.size - 1))]:.0f}",
                f"{score.early}",
                f"{score.false_alarms} in {score.healthy_months:.0f}",
                f"{100.0 * score.false_alarms / score.healthy_months:.2f} %",
                f"{score.lubricated_found} of {score.lubricated}",
                f"{score.covered} of {score.estimates}",
            )
        )
    heads = (
        "case",
        "found in 7 days",
        "delay: median, 95 % [d]",
        "found below 10 %",
        "false alarms in joint-months",
        "rate",
        "lubrication found",
        "growth within 2 sigma",
    )
    print("\n".join(table(heads, rows)))


if __name__ == "__main__":
    sys.exit(main())
