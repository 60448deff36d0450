"""Is wear found, and is temperature or noise never taken for wear, in the friction table of a fleet?

    python -m benchmarks.fleet_drift [--seeds N] [--first SEED] [--case NAME]

Simulates friction tables of 20 robots with 12 joints for 60 days. Robots and joints differ, and friction falls by about
1 % a kelvin. Joints follow the temperature of the hour and the weather, and the place gets colder, so that friction
rises as if by wear. A tenth of the joints wears by 30 %, beginning between the fifth and the thirtieth day, within 5 to
40 days, and a few are lubricated. Prints a table as Markdown; a fleet takes a few seconds of CPU time.
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
from friction_estimator.fleet.bags import SCHEMA
from friction_estimator.fleet.wear import LOWER, WORN, joint_trends
from friction_estimator.types import FloatArray

FIRST = datetime(2026, 1, 5)
ROBOTS, JOINTS, DAYS = 20, 12, 60
THRESHOLD = 0.1
WEAR, SURE = 0.3, 0.15
"""Growth of the friction of a worn joint; growth on the last day from which on a joint should be found."""


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
    "10 bags a day of 5 % sigma, 3 % from day to day": Case(),
    "one bag a day": Case(bags=1),
    "sigma 10 %, 5 % from day to day": Case(sigma=0.1, day=0.05),
    "sigma 10 %, of which the table states half": Case(sigma=0.1, stated=0.5),
    "20 K colder instead of 10 K": Case(colder=20.0),
    "days that are alike: correlation 0.7 of neighbours": Case(memory=0.7),
}


@dataclass(frozen=True)
class Truth:
    """What is true of a fleet: wear on the last day (joints,), relative, and lubricated joints (joints,)."""

    wear: FloatArray
    lubricated: np.ndarray


def simulate_table(case: Case, rng: np.random.Generator, robots: int = ROBOTS) -> tuple[pa.Table, Truth]:
    """Friction table of a fleet, and its truth."""
    joints, days = robots * JOINTS, np.arange(DAYS, dtype=float)
    usual = rng.uniform(0.3, 3.0, JOINTS)[None, :] * np.exp(0.1 * rng.normal(size=(robots, JOINTS)))
    factor = -0.01 + 0.003 * rng.normal(size=JOINTS)[None, :] + 0.001 * rng.normal(size=(robots, JOINTS))
    usual, factor = usual.ravel(), factor.ravel()
    change = np.zeros((joints, DAYS))  # of the logarithm
    shuffled = rng.permutation(joints)
    worn, lubricated = shuffled[: joints // 10], np.sort(shuffled[joints // 10 :])[: joints // 40]
    for joint in worn:
        begin, length = rng.uniform(5.0, 30.0), rng.uniform(5.0, 40.0)
        change[joint] = np.log1p(WEAR * np.clip((days - begin) / length, 0.0, 1.0))
    wear = np.expm1(change[:, -1])
    for joint, day in zip(lubricated, rng.integers(15, 45, lubricated.size), strict=True):
        change[joint, day:] = np.log(0.75)
    noise, weather = rng.normal(size=(joints, DAYS)), 1.5 * rng.normal(size=(robots, DAYS))
    for day in range(1, DAYS):
        noise[:, day] = case.memory * noise[:, day - 1] + np.sqrt(1.0 - case.memory**2) * noise[:, day]
        weather[:, day] += 0.7 * weather[:, day - 1]
    shape = (case.bags, joints, DAYS)
    hour = rng.uniform(6.0, 20.0, (case.bags, robots, DAYS))
    warmth = 6.0 * np.cos((hour - 15.0) / 24.0 * 2.0 * np.pi) + weather - case.colder * days / DAYS
    hour, warmth = np.repeat(hour, JOINTS, axis=1), np.repeat(warmth, JOINTS, axis=1)
    sigma = case.sigma * np.exp(0.3 * rng.normal(size=shape))
    friction = usual[:, None] * np.exp(change + case.day * noise + factor[:, None] * warmth)
    off = np.where(rng.random(shape) < case.outliers, rng.choice([0.5, 1.5], shape), 1.0)
    measured, stated = off * friction * (1.0 + sigma * rng.normal(size=shape)), case.stated * sigma * friction
    joint = np.broadcast_to(np.arange(joints)[:, None], shape).ravel().tolist()
    made = {
        "serial": [f"unit_{k // JOINTS:02d}" for k in joint],
        "joint": [f"joint_{k % JOINTS:02d}" for k in joint],
        "start": [FIRST + timedelta(days=day) for day in (days + hour / 24.0).ravel().tolist()],
        "temperature": (20.0 + warmth).ravel(),
        "coulomb": 0.6 * measured.ravel(),
        "coulomb_sigma": 0.6 * stated.ravel(),
        "viscous": 0.4 * measured.ravel(),
        "viscous_sigma": 0.4 * stated.ravel(),
        "coulomb_viscous_covariance": 0.24 * stated.ravel() ** 2,
        "slow": np.full(len(joint), 0.5),
        "fast": np.full(len(joint), 1.5),
        "usable": [True] * len(joint),
    }
    rows = pa.table(
        [pa.array(made[field.name], field.type) if field.name in made else pa.nulls(len(joint), field.type)
         for field in SCHEMA], SCHEMA,
    )  # fmt: skip
    order = [("serial", "ascending"), ("joint", "ascending"), ("start", "ascending")]
    return rows.sort_by(order), Truth(wear, np.isin(np.arange(joints), lubricated))


def number_of(serial: str, joint: str) -> int:
    """Number of a joint in the arrays of :class:`Truth`."""
    return int(serial[5:]) * JOINTS + int(joint[6:])


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("fleet_drift", __doc__)
    parser.add_argument("--seeds", type=count, default=2, help="fleets of each case")
    parser.add_argument("--first", type=int, default=0, help="seed of the first fleet")
    parser.add_argument("--case", choices=tuple(CASES), action="append", help="only this case; may be repeated")
    chosen = parser.parse_args(arguments)
    rows = []
    for name in chosen.case or CASES:
        found, false, lower, covered = (np.zeros(2, dtype=int) for _ in range(4))  # of how many
        for seed in range(chosen.first, chosen.first + chosen.seeds):
            fleet, truth = simulate_table(CASES[name], np.random.default_rng((seed, 15)))
            joints = joint_trends(fleet, THRESHOLD)
            number = [number_of(one.serial, one.joint) for one in joints]
            wear, lubricated = truth.wear[number], truth.lubricated[number]
            worn, steady = np.array([one.state == WORN for one in joints]), (wear == 0.0) & ~lubricated
            within = np.array([abs(one.friction.growth[0]) <= 2.0 * one.friction.growth[1] for one in joints])
            for sum_, hit, of in (
                (found, worn, wear >= SURE),
                (false, worn, wear == 0.0),
                (lower, np.array([one.state == LOWER for one in joints]), lubricated),
                (covered, within, steady),
            ):
                sum_ += (hit & of).sum(), of.sum()
        rows.append((name, *("{} of {}".format(*numbers) for numbers in (found, false, lower, covered))))
    heads = ("case", "worn joints found", "others called worn", "lubrication found", "no wear within 2 sigma")
    print("\n".join(table(heads, rows)))


if __name__ == "__main__":
    sys.exit(main())
