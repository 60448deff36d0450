"""``load_recording``: joint signals of a rosbag2, a .csv or a .npz; and several of them as experiments."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from friction_estimator.config.robot import Coupling
from friction_estimator.errors import ConfigError, InputError, choices, located
from friction_estimator.identification.fixed_base_model import FixedBaseModel, with_external_torque
from friction_estimator.identification.joint_log import COMMAND, ExternalWrench, JointLog, Payload
from friction_estimator.identification.recording.checks import data_warnings
from friction_estimator.identification.recording.torque_checks import Gain, with_drive_torque
from friction_estimator.io.bags.arrays import JOINT_STATES, joint_log_from_bag
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.robot import Robot, as_robot, coupling_of_joints, load_coupling, load_robot, robot_names
from friction_estimator.io.table_files import SUFFIXES, joint_log_from_table
from friction_estimator.messages.recording import RunDescription
from friction_estimator.robot.urdf import movable_joints, parse_urdf
from friction_estimator.types import AnyPath, FloatArray, Progress

Recordings = AnyPath | JointLog | Sequence[AnyPath | JointLog]
Warn = Callable[[str], None]
Stage = Callable[[str], AbstractContextManager[Progress | None]]
"""Called with the name of each long piece of work; returns a context manager that gives a :data:`Progress`."""


def silent(title: str) -> AbstractContextManager[Progress | None]:
    """A :data:`Stage` that shows no progress: a context manager that returns None."""
    return nullcontext()


def load_recording(
    path: AnyPath,
    *,
    robot: AnyPath | Robot | None = None,
    joints: Sequence[str] | None = None,
    coupling: AnyPath | None = None,
    namespace: str = "",
    progress: Progress | None = None,
    warn: Warn | None = None,
) -> JointLog:
    """Read the joint signals of one experiment.

    Parameters
    ----------
    path : rosbag2 with joint states, or a .csv or .npz with the columns ``time``, ``position/<joint>`` and, where
        recorded, ``velocity/<joint>``, ``effort/<joint>``, in SI units
    robot : names the topic of the joint states in a bag, and the joint of a table with bare columns
    joints : (n) wanted joints, in this order; None: all that were recorded
    coupling : YAML with ``robot.coupling``, motors that move several joints together: names of columns such as
        ``current/<motor>``
    namespace : of the topics in a bag
    progress : called with the amount of finished work, and with the whole
    warn : called when a part of a bag cannot be read

    Returns
    -------
    JointLog
        Arrays ``time`` (N,), ``position``, ``velocity``, ``effort`` (N, n), and other columns by name in ``inputs``.

    Raises
    ------
    InputError, BagError
        When the file cannot be read, or a signal or joint is missing; the message lists what there is.

    Examples
    --------
    >>> import friction_estimator as fe, numpy as np
    >>> time = np.linspace(0.0, 1.0, 101)
    >>> np.savez("/tmp/pendulum.npz", time=time, position=np.sin(time), velocity=np.cos(time), torque=0.1 * time)
    >>> fe.load_recording("/tmp/pendulum.npz").position.shape
    (101, 1)
    """
    chosen = None if robot is None else as_robot(robot)
    return _read(Path(path), chosen, joints, _known_coupling(coupling, chosen), namespace, progress, warn)[0]


def _read(
    path: Path,
    robot: Robot | None,
    joints: Sequence[str] | None,
    coupling: Coupling | None,
    namespace: str,
    progress: Progress | None,
    warn: Warn | None,
) -> tuple[JointLog, str]:
    """The log, and the name of the robot that a bag describes, empty when it describes none."""
    if is_table(path):
        only = tuple(joints) if joints is not None else None
        if only is None and robot is not None and len(movable := movable_joints(parse_urdf(robot.urdf_xml))) == 1:
            only = movable  # bare columns are those of the only joint
        return joint_log_from_table(path, only, _places_of_motors(coupling)), ""
    topic = robot.config.output.joint_states_topic if robot is not None else JOINT_STATES
    reader = BagReader(path, namespace)
    fixed = robot.config if robot is not None and robot.config.robot.fixed_base else None
    log = joint_log_from_bag(reader, topic, joints, config=fixed, progress=progress)
    if warn is not None and reader.damage:
        warn(reader.damage)
    return log, RunDescription.from_custom_data(reader.custom_data).robot


def is_table(path: Path) -> bool:
    """Whether a file is a table of numbers; everything else is taken for a bag."""
    return path.suffix.lower() in SUFFIXES


@dataclass(frozen=True, slots=True)
class Experiments:
    """Recordings of the same joints, ready for identification."""

    logs: tuple[JointLog, ...]  # one per recording, with payloads, all of the same joints
    paths: tuple[Path | None, ...]  # of the files, None where a recording was made in memory
    robot: Robot | None  # the given robot, or the one that a bag names; None when there is none
    # of motors that move several joints together, and of the motors of all other joints; None: none do
    coupling: Coupling | None
    notes: tuple[str, ...]  # what was decided, one sentence each


def read_experiments(
    recordings: Recordings,
    robot: AnyPath | Robot | None,
    stage: Stage,
    warn: Warn,
    *,
    joints: Sequence[str] | None = None,
    coupling: AnyPath | None = None,
    payloads: Mapping[str, Payload] | None = None,
    namespace: str = "",
    kp: Gain | None = None,
    kd: Gain | None = None,
    wrenches: Sequence[ExternalWrench] = (),
) -> Experiments:
    """Read all recordings, and keep the joints that all of them and the robot have.

    Parameters
    ----------
    recordings : files or logs
    robot : name, YAML or loaded robot; None for none
    stage, warn : called with the title of each long piece of work; with each warning
    joints, coupling, payloads, namespace, kp, kd, wrenches : see :func:`friction_estimator.identify`

    Raises
    ------
    FrictionEstimatorError
        When a file cannot be read, or a payload belongs to none of them.
    """
    given = [recordings] if isinstance(recordings, (str, os.PathLike, JointLog)) else list(recordings)
    if not given:
        raise InputError("there is no recording to identify from")
    chosen = None if robot is None else as_robot(robot)
    known = _known_coupling(coupling, chosen)
    notes: list[str] = []
    logs: list[JointLog] = []
    with stage("reading") as progress:
        for one in given:
            if isinstance(one, JointLog):
                logs.append(one)
                continue
            log, name = _read(Path(one), chosen, joints, known, namespace, progress, warn)
            logs.append(log)
            if chosen is None and name in robot_names():
                chosen = load_robot(name)
                known = _known_coupling(coupling, chosen)
                notes.append(f"{Path(one).name} names the robot {name!r}; it is used because no robot was given")
    paths = tuple(None if isinstance(one, JointLog) else Path(one) for one in given)
    named = _distinguish(paths, logs)
    selected = _select(named, tuple(joints) if joints is not None else None, chosen, notes, warn)
    turned = [_unwrapped(log, notes) for log in selected]
    pushed = [_with_wrenches(log, chosen, wrenches, warn) for log in turned]
    carrying = tuple(with_drive_torque(log, kp, kd) for log in _carrying(pushed, payloads or {}))
    coupled = _coupling_of(coupling, chosen, known, carrying[0].joint_names)
    return Experiments(carrying, paths, chosen, coupled, tuple(notes))


def warn_about_data(experiments: Experiments, warn: Warn) -> list[str]:
    """Look for the usual mistakes in all recordings, with the limits of the URDF where there is one; the warnings."""
    found = list[str]()
    for log in experiments.logs:
        limits = None
        if experiments.robot is not None:
            model = FixedBaseModel(experiments.robot.urdf_xml, log.joint_names)
            limits = np.column_stack([model.lower_limit, model.upper_limit])
        found += data_warnings(log, limits)
    for text in found:
        warn(text)
    return found


_NAMED_CAUSES = 3
"""Warnings about the data, at most, in one error."""


@contextmanager
def explained(warnings: Sequence[str]) -> Iterator[None]:
    """Add the warnings about the data to an error that ends the work on them: they are most likely its cause."""
    try:
        yield
    except InputError as error:
        if not warnings:
            raise
        raise InputError(f"{error}. Most likely because of the data: {'; '.join(warnings[:_NAMED_CAUSES])}") from error


_WRAP = 1.5 * np.pi
"""Steps between two samples, beyond which a position within one turn has jumped back by a turn [rad]."""


def _unwrapped(log: JointLog, notes: list[str]) -> JointLog:
    """The log with the positions of joints that turn on and on, whose driver reports an angle within one turn."""
    position, wrapped = log.position.copy(), list[str]()
    for joint, name in enumerate(log.joint_names):
        known = np.flatnonzero(np.isfinite(position[:, joint]))
        angle = position[known, joint]
        if known.size and np.ptp(angle) <= _TURN and (count := int((np.abs(np.diff(angle)) > _WRAP).sum())):
            position[known, joint] = np.unwrap(angle)
            wrapped.append(f"{name} ({count} times)")
    if not wrapped:
        return log
    notes.append(f"{log.name}: positions that jump by a turn are counted on: {', '.join(wrapped)}")

    def counted_on(kind: str, signal: FloatArray) -> FloatArray:
        if kind == COMMAND:  # near the position, in whatever turn it is given
            ahead = signal - log.position
            return np.asarray(position + ahead - 2.0 * np.pi * np.rint(ahead / (2.0 * np.pi)))
        return position if kind == "position" else signal

    return log.changed(counted_on)


_TURN = 2.0 * np.pi * (1.0 + 1e-3)
"""Range of an angle within one turn, with room for rounding [rad]."""


def _distinguish(paths: Sequence[Path | None], logs: Sequence[JointLog]) -> list[JointLog]:
    """Logs whose files have the same name are called by folder and name."""
    folders = [() if path is None else path.expanduser().absolute().parts[:-1] for path in paths]
    parts = [[*folder, log.name] for folder, log in zip(folders, logs, strict=True)]
    names = [log.name for log in logs]
    depth = 1
    while len(set(names)) < len(names) and depth < max(map(len, parts)):
        depth += 1
        names = [
            "/".join(part[-depth:]) if names.count(name) > 1 else name for part, name in zip(parts, names, strict=True)
        ]
    if len(set(names)) < len(names):
        raise InputError("the same recording was given twice: every experiment counts once")
    return [replace(log, name=name) for log, name in zip(logs, names, strict=True)]


def _select(
    logs: Sequence[JointLog], joints: tuple[str, ...] | None, robot: Robot | None, notes: list[str], warn: Warn
) -> list[JointLog]:
    """The same joints of every log: those that all of them and the robot have."""
    names = joints or _common(logs)
    recorded = tuple(dict.fromkeys(name for log in logs for name in log.joint_names))
    partial = [name for name in recorded if any(name not in log.joint_names for log in logs)]
    if partial and joints is None:
        each = "; ".join(f"{log.name} has {choices(log.joint_names)}" for log in logs)
        warn(f"not every recording has the joint {choices(partial)}, so it is left out: {each}")
    if robot is not None:
        there = movable_joints(parse_urdf(robot.urdf_xml))
        strange = [name for name in recorded if name not in there]
        if joints is not None and (unknown := [name for name in joints if name not in there]):
            raise ConfigError(f"the robot has no joint {choices(unknown)}; it has {choices(there)}")
        names = tuple(name for name in names if name in there)
        if not names:
            raise ConfigError(f"{logs[0].name} has the joints {choices(recorded)}, the robot has {choices(there)}")
        missing = [name for name in there if name not in names]
        if strange and missing and joints is None:
            _refuse_misspelt(strange, missing)
            warn(
                f"the robot has no joint {choices(strange)}, so its columns are left out; the robot's joints are "
                f"{choices(there)}: is a name misspelt?"
            )
        elif strange:
            notes.append(f"joints that the robot lacks are left out: {choices(strange)}")
        if missing and robot.config.robot.fixed_base:
            warn(f"the robot's joints {choices(missing)} are not in the data: they are assumed to stand still at zero")
    return [log.select(names) for log in logs]


def _refuse_misspelt(recorded: Sequence[str], missing: Sequence[str]) -> None:
    """Refuse columns whose joint has nearly the name of one that was not recorded."""
    pairs = {name: get_close_matches(name, missing, 1, _MISSPELT_LIKENESS) for name in recorded}
    likely = [f"{name!r} (is it {near[0]!r}?)" for name, near in pairs.items() if near]
    if likely:
        raise ConfigError(
            f"the robot has no joint {', '.join(likely)}: correct the name of the columns, or name the joints "
            "that count (--joints)"
        )


_MISSPELT_LIKENESS = 0.75
"""Likeness of two names (`difflib`) above which one of them is misspelt."""


def _common(logs: Sequence[JointLog]) -> tuple[str, ...]:
    """Joints that all logs have."""
    names = logs[0].joint_names
    for log in logs[1:]:
        names = tuple(name for name in names if name in log.joint_names)
    if not names:
        joints = "; ".join(f"{log.name}: {choices(log.joint_names)}" for log in logs)
        raise InputError(f"the recordings have no joint in common ({joints}): identify them one by one")
    return names


def _with_wrenches(log: JointLog, robot: Robot | None, places: Sequence[ExternalWrench], warn: Warn) -> JointLog:
    """The log with the torque of its measured external forces: given ones, else those on the feet of the robot.

    Raises
    ------
    ConfigError
        When there is no URDF.
    """
    if places and robot is None:
        raise ConfigError("a measured force needs the URDF of the robot that it acts on: give it (--robot)")
    if robot is not None and not robot.config.robot.fixed_base:
        return log  # wrenches are inputs of the estimator there
    if robot is not None and not places:
        feet = (ExternalWrench(foot.frame, foot.name) for foot in robot.config.feet)
        places = [foot for foot in feet if foot.columns in log.wrenches]
    if unused := set(log.wrenches) - {place.columns for place in places}:
        warn(
            f"{log.name}: the forces {choices(unused)} are not used, because the link that they act on is unknown: add "
            "--wrench FRAME=COLUMNS"
        )
    return log if robot is None else with_external_torque(log, robot.urdf_xml, places)


def _carrying(logs: Sequence[JointLog], payloads: Mapping[str, Payload]) -> Iterable[JointLog]:
    """Logs with the payloads of these experiments."""
    names = [log.name for log in logs]
    unknown = [experiment for experiment in payloads if experiment not in names]
    if unknown:
        raise InputError(f"a payload is given for {choices(unknown)}; the experiments are {choices(names)}")
    return (replace(log, payload=payloads.get(log.name, log.payload)) for log in logs)


def _known_coupling(file: AnyPath | None, robot: Robot | None) -> Coupling | None:
    """Coupling of a YAML, else that of the robot; None when nothing is coupled."""
    if file is not None:
        return load_coupling(file)
    return None if robot is None else robot.config.robot.coupling.coupling()


def _coupling_of(
    file: AnyPath | None, robot: Robot | None, known: Coupling | None, joint_names: Sequence[str]
) -> Coupling | None:
    """Coupling of these joints (n), those without one included; None when nothing is coupled.

    Raises
    ------
    ConfigError
        When the file couples other joints, robot.coupling joints that the robot lacks, or only a part of a coupled
        group is there.
    """
    if known is None:
        return None
    if file is None and robot is not None:
        there = movable_joints(parse_urdf(robot.urdf_xml))
        if unknown := set(known.joint_names) - set(there):
            raise ConfigError(f"robot.coupling names the joint {choices(unknown)}; the robot has {choices(there)}")
    if file is not None and not set(known.joint_names) & set(joint_names):
        named = choices(known.joint_names)
        raise ConfigError(f"{file} couples {named}; the joints of data and robot are {choices(joint_names)}")
    with located("robot.coupling" if file is None else file):
        return coupling_of_joints(known, joint_names)


def _places_of_motors(coupling: Coupling | None) -> Mapping[str, str]:
    """The joint at whose place each motor stands: the k-th of its group."""
    groups = () if coupling is None else coupling.groups
    return {motor: joint for joints, motors in groups for joint, motor in zip(joints, motors, strict=True)}
