"""Which mistakes in a recording do the checks find? Real recordings with every mistake that the checks detect.

    python -m benchmarks.damaged_recordings LOG.csv LOG.npz BAG ... [--robot ROBOT.urdf]

Logs are tidy tables in SI units or rosbag2 folders. A first table has the warnings about each recording without
mistakes. A second one has the mistakes: found, out of how many there were (a reversed torque is one mistake a joint,
exchanged joints are one a pair). The table of docs/results/identification.md is of the TX40, converted as its authors
describe, and of all DFKI pendulum recordings. The masses of the URDF are rough there, so that each is fitted as that of
every joint, with either sign; three reversed torques are not found: of the coupled wrist of the TX40, of a pendulum
that a hand moves, and of one that hardly moves. Torques are compared with the inverse dynamics of the robot, which has
a fixed base. Takes about ten seconds a recording.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

from benchmarks.shared.command import command, existing_path, make_parser
from benchmarks.shared.pages import header, row, table
from friction_estimator.errors import InputError
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.identification.recording.checks import data_warnings
from friction_estimator.identification.recording.motion import to_motion
from friction_estimator.identification.recording.sampling import usual_period
from friction_estimator.identification.recording.torque_checks import torque_suspicions
from friction_estimator.io.bags.arrays import joint_log_from_bag
from friction_estimator.io.table_files import joint_log_from_table
from friction_estimator.types import FloatArray

DEGREES = np.degrees(1.0)


def read(path: Path) -> JointLog:
    reader = joint_log_from_table if path.suffix in (".csv", ".npz") else joint_log_from_bag
    return replace(reader(path), name=f"{path.parent.name}/{path.stem}")


def exchanged(signal: FloatArray, one: int, other: int) -> FloatArray:
    order = np.arange(signal.shape[1])
    order[[one, other]] = order[[other, one]]
    return signal[:, order]


def mistakes(log: JointLog, with_model: bool) -> Iterator[tuple[str, JointLog, str]]:
    """Kind of mistake, damaged log, and a word that its warning must contain."""
    position, velocity, effort = log.position, log.velocity, log.effort
    in_degrees = None if velocity is None else DEGREES * velocity
    yield "all angles in degrees", replace(log, position=DEGREES * position, velocity=in_degrees), "degrees"
    yield "time in milliseconds", replace(log, time=1e3 * log.time), "[ms]"
    if velocity is not None:
        yield "position in degrees", replace(log, position=DEGREES * position), "position in degrees"
        yield "velocity reversed", replace(log, velocity=-velocity), "wrong sign"
        yield "position <-> velocity", replace(log, position=velocity, velocity=position), "exchanged"
    if effort is not None:
        yield "position <-> effort", replace(log, position=effort, effort=position, velocity=None), "exchanged"
        gappy = effort.copy()
        gappy[np.random.default_rng(0).choice(log.time.size, 100, replace=False), 0] = np.nan
        yield "100 NaN", replace(log, effort=gappy), "missing numbers"
    if effort is not None and with_model:
        for joint, name in enumerate(log.joint_names):
            signs = np.where(np.arange(len(log.joint_names)) == joint, -1.0, 1.0)
            yield "torque reversed", replace(log, effort=signs * effort), f"effort/{name} acts against"
        for one, other in combinations(range(len(log.joint_names)), 2):
            yield "torques of two joints", replace(log, effort=exchanged(effort, one, other)), "joints exchanged"
    if velocity is not None and effort is not None:
        yield "velocity <-> effort", replace(log, velocity=effort, effort=velocity), "right column"
    if velocity is not None:
        for one, other in combinations(range(len(log.joint_names)), 2):
            yield "velocities of two joints", replace(log, velocity=exchanged(velocity, one, other)), "joints exchanged"


def warnings_about(log: JointLog, urdf_xml: str) -> tuple[str, ...]:
    """About a log, and about its torques with the URDF of a robot (empty: without)."""
    found = data_warnings(log)
    if not urdf_xml or log.effort is None:
        return found
    motion = to_motion(log)
    model = FixedBaseModel(urdf_xml, log.joint_names)
    rigid = model.torque(motion.position, motion.velocity, motion.acceleration)
    return (*found, *(f"{log.name}: {text}" for text in torque_suspicions(motion, rigid)))


def found(log: JointLog, word: str, urdf_xml: str) -> bool:
    try:
        return any(word in text for text in warnings_about(log, urdf_xml))
    except InputError as error:
        return word in str(error) or "NaN" in str(error)


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("damaged_recordings", __doc__)
    parser.add_argument("logs", nargs="+", type=existing_path, metavar="LOG")
    parser.add_argument("--robot", type=existing_path, metavar="URDF")
    options = parser.parse_args(arguments)
    logs, urdf_xml = [read(path) for path in options.logs], "" if options.robot is None else options.robot.read_text()
    print(header(("recording", "rate [Hz]", "warnings")))
    counts: dict[str, list[int]] = {}
    for log in logs:
        warnings = "; ".join(text.split(": ", 1)[1] for text in warnings_about(log, urdf_xml)) or "none"
        print(row((log.name, f"{1.0 / usual_period(log.time):.4g}", warnings)), flush=True)
        for kind, damaged, word in mistakes(log, bool(urdf_xml)):
            total = counts.setdefault(kind, [0, 0])
            counts[kind] = [total[0] + found(damaged, word, urdf_xml), total[1] + 1]
    print("", *table(("mistake", "found", "of"), [(kind, *total) for kind, total in counts.items()]), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
