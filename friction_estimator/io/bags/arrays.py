"""What a bag holds as arrays: the outputs of the estimator for a report, or joint signals for identification."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from friction_estimator.config import Config
from friction_estimator.errors import BagError, choices
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.io.bags.reader import BagMessage, BagReader
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import NANOSECONDS, header_stamp
from friction_estimator.messages.recording import (
    RECORDED,
    RECORDED_SERIES,
    PhaseInterval,
    RecordedCollision,
    Recording,
    RunDescription,
    Series,
    phase_intervals,
)
from friction_estimator.messages.sensors import InputReader, Run, read_joint_states
from friction_estimator.messages.topics import FRICTION, Topic
from friction_estimator.types import AnyPath, FloatArray, IntArray, Progress


def read_recording(
    path: AnyPath,
    namespace: str = "",
    description: RunDescription | None = None,
    progress: Progress | None = None,
) -> Recording:
    """Read a bag with output topics: one of ``replay``, or of a recorded live run.

    Parameters
    ----------
    path : the bag
    namespace : of the topics
    description : used where the bag does not describe itself
    progress : called now and then with the number of messages done and of all

    Raises
    ------
    BagError
        When the bag cannot be read or holds no friction estimate.
    """
    reader = BagReader(path, namespace)
    found = {topic.name: reader.find_topic(topic.name, topic.type) or "" for topic in RECORDED}
    if not found[FRICTION.name]:
        raise BagError(
            f"the bag {reader.path} has no topic {FRICTION.name!r}; it has {reader.topic_list()}. "
            "Run `replay` on it first"
        )
    messages, _ = _read(reader, found, progress)
    own = RunDescription.from_custom_data(reader.custom_data)
    return _recording(reader, messages, own if own.robot or description is None else description)


def _recording(reader: BagReader, messages: Messages, description: RunDescription) -> Recording:
    """All series at the stamps of the friction estimates."""
    of_joints = {name: _runs(reader, found) for name, found in messages.items() if name not in _OTHERS}
    if not of_joints[FRICTION.name]:
        raise BagError(f"the bag {reader.path} has no message on the topic {FRICTION.name!r}; run `replay` on it first")
    names = of_joints[FRICTION.name][0][0]
    for name, runs in of_joints.items():
        _check_joints(name, runs, names)
    signals = {name: _signals(names, runs) for name, runs in of_joints.items() if runs}
    stamp_ns, rows = np.unique(signals[FRICTION.name][0], return_index=True)
    position, velocity, friction = (signal[rows] for signal in signals[FRICTION.name][1])
    start_ns, time = int(stamp_ns[0]), (stamp_ns - stamp_ns[0]) * 1e-9

    def series(topic: Topic) -> Series | None:
        if topic.name not in signals:
            return None
        stamps, (_, _, effort) = signals[topic.name]
        stamps, rows = np.unique(stamps, return_index=True)
        return Series(np.asarray((stamps - start_ns) * 1e-9), effort[rows])

    def phases(topic: Topic, clock: Topic) -> tuple[PhaseInterval, ...]:
        """The messages have no stamp: stamps are interpolated by the times of recording of another topic."""
        if not messages[topic.name] or clock.name not in signals:
            return ()
        received, known = (np.array([one.time_ns for one in messages[of.name]], float) for of in (topic, clock))
        starts = np.interp(received, known, (signals[clock.name][0] - start_ns) * 1e-9)
        return phase_intervals([reader.decode(one).data for one in messages[topic.name]], starts.tolist(), time[-1])

    measured, valid = (
        None if (flags := series(topic)) is None else flags.held(time) > 0.5
        for topic in (topics.MEASURED, topics.VALID)
    )
    sigma, truth = map(series, (topics.SIGMA, topics.TRUE_FRICTION))
    collisions = map(reader.decode, messages[topics.COLLISION.name])
    return Recording(
        joint_names=names,
        time=time,
        position=position,
        velocity=velocity,
        friction=friction,
        sigma=np.full(friction.shape, np.nan) if sigma is None else sigma.at(time),
        measured=np.ones(friction.shape, dtype=bool) if measured is None else measured,
        valid=valid,
        truth=None if truth is None else truth.at(time),
        phases=phases(topics.CONTACT_PHASE, FRICTION),
        true_phases=phases(topics.TRUE_CONTACT_PHASE, topics.TRUE_FRICTION),
        **{field: series(topic) for field, topic in RECORDED_SERIES.items()},
        description=description,
        collisions=tuple(
            RecordedCollision.from_diagnostics(1e-9 * (header_stamp(one) - start_ns), status)
            for one in collisions
            for status in one.status
        ),
    )


def _check_joints(topic: str, runs: Sequence[Run], joint_names: tuple[str, ...]) -> None:
    for names, table in runs:
        if not set(joint_names) <= set(names):
            raise BagError(
                f"topic {topic}: joint states name other joints than at first ({', '.join(names)}; at first "
                f"{', '.join(joint_names)}): record the joint states of one driver"
            )
        for field in _FIELDS:
            if (count := table[field].shape[1]) not in (0, len(names)):
                raise BagError(
                    f"topic {topic}: {field} has {count} values for {len(names)} joint names: check its publisher"
                )


def true_friction(reader: BagReader, joint_names: tuple[str, ...], stamp_ns: IntArray) -> FloatArray | None:
    """True friction (m, n) of a bag at these stamps, NaN where it has none; None without ground truth."""
    topic = reader.find_topic(topics.TRUE_FRICTION.name, topics.TRUE_FRICTION.type)
    if topic is None:
        return None
    found = _efforts(joint_names, _runs(reader, list(reader.messages([topic]))))
    return np.full((stamp_ns.size, len(joint_names)), np.nan) if found is None else _at_stamps(stamp_ns, *found)


JOINT_STATES = "joint_states"
Messages = dict[str, list[BagMessage]]
Samples = tuple[IntArray, FloatArray | None, FloatArray | None, FloatArray | None]
"""Stamps (N,); position, velocity and effort (N, n), NaN in messages that leave one empty, None when all do."""
_FRICTIONS = topics.FRICTION, topics.SIGMA, topics.MEASURED
_OTHERS = (topics.CONTACT_PHASE.name, topics.TRUE_CONTACT_PHASE.name, topics.COLLISION.name)
"""Topics of a recording that are no joint states."""
_FIELDS = ("position", "velocity", "effort")


def joint_log_from_bag(
    bag: AnyPath | BagReader,
    topic: str = JOINT_STATES,
    joint_names: Sequence[str] | None = None,
    *,
    config: Config | None = None,
    progress: Progress | None = None,
) -> JointLog:
    """Read the joint states of a bag, and its friction where it has the topic ``joint_friction``.

    Parameters
    ----------
    bag : its path, or its reader
    topic : with sensor_msgs/JointState
    joint_names : (n) wanted joints, in this order; None: those of most messages. Messages without all of them are
        left out, as those of a second publisher
    config : whose foot wrenches are read, too, where the bag has them; None: no wrenches
    progress : called now and then with the number of messages done and of all

    Returns
    -------
    log : as recorded, not checked. Time counts from the first header stamp [s]. ``inputs`` holds ``friction`` and
        ``friction_sigma`` [N m] of the same stamps, NaN where the bag has none and where the friction was not
        measured (zero in `joint_friction/measured`). A bag with estimates only gives their position and
        velocity, and no effort. The digest is that of the messages, whatever file they are in

    Raises
    ------
    BagError
        When the topic is missing, of another type, or no message holds positions of the joints.
    InputError
        When a wrench cannot be read, or is in a frame that is not that of its foot.
    """
    reader = bag if isinstance(bag, BagReader) else BagReader(bag)
    feet = () if config is None else config.feet
    found = _topics(reader, topic)
    found |= {foot.wrench_topic: reader.find_topic(foot.wrench_topic, topics.WRENCH) or "" for foot in feet}
    messages, digest = _read(reader, found, progress)
    main = JOINT_STATES if found[JOINT_STATES] else topics.FRICTION.name
    runs = {name: _runs(reader, messages[name]) for name in (main, *(friction.name for friction in _FRICTIONS))}
    names = tuple(joint_names) if joint_names is not None else _usual_joints(reader, found[main], runs[main])
    stamp_ns, position, velocity, effort = _samples(names, runs[main], "position")
    if position is None:
        there = {name for recorded, _ in runs[main] for name in recorded}
        raise BagError(f"no message of {found[main]} in {reader.path} has positions of {choices(names)}; "
                       f"the joints are {choices(there)}")  # fmt: skip
    inputs = _friction(names, stamp_ns, runs)
    return JointLog(
        reader.path.name,
        names,
        (stamp_ns - stamp_ns[0]) * 1e-9,
        position,
        velocity,
        effort if main == JOINT_STATES else None,
        MappingProxyType(inputs),
        digest=digest,
        wrenches=MappingProxyType({} if config is None else _wrenches(config, names, stamp_ns, messages)),
    )


def _wrenches(
    config: Config, joint_names: Sequence[str], stamp_ns: IntArray, messages: Messages
) -> dict[str, FloatArray]:
    """Wrenches of the ground on the feet at these stamps, (N, 6) by the name of the foot; interpolated."""
    reader, found = InputReader(config, joint_names), {}
    for number, foot in enumerate(config.feet):
        samples = [reader.wrench(number, message.raw) for message in messages[foot.wrench_topic]]
        if samples:
            stamps = np.array([one.stamp_ns for one in samples]) - round(1e9 * foot.delay)
            columns = np.array([one.wrench for one in samples]).T
            found[foot.name] = np.column_stack([np.interp(stamp_ns, stamps, column) for column in columns])
    return found


def _topics(reader: BagReader, topic: str) -> dict[str, str]:
    """Full name of each topic by its usual one, empty where the bag has none."""
    found = {JOINT_STATES: reader.find_topic(topic, topics.JOINT_STATE) or ""}
    for friction in _FRICTIONS:
        found[friction.name] = reader.find_topic(friction.name, friction.type) or ""
    if not found[JOINT_STATES] and (topic != JOINT_STATES or not found[topics.FRICTION.name]):
        raise BagError(f"the bag {reader.path} has no topic {topic!r}; it has {reader.topic_list()}")
    return found


def _read(reader: BagReader, found: dict[str, str], progress: Progress | None) -> tuple[Messages, str]:
    usual = {full: name for name, full in found.items() if full}
    messages: Messages = {name: [] for name in found}
    digest = hashlib.sha256()
    for done, message in enumerate(reader.messages(usual)):
        name = usual[message.topic]
        digest.update(name.encode())
        digest.update(message.raw)
        messages[name].append(message)
        if progress is not None and done % 1000 == 0:
            progress(done, reader.message_count)
    return messages, digest.hexdigest()


def _runs(reader: BagReader, messages: Sequence[BagMessage]) -> list[Run]:
    try:
        return list(read_joint_states([message.raw for message in messages]))
    except ValueError as error:
        for message in messages:
            reader.decode(message)  # its error names the message
        raise BagError(
            f"the messages on {messages[0].topic} of {reader.path} cannot be decoded: {error}; copy the bag again, or "
            "record the topic anew"
        ) from None


def _usual_joints(reader: BagReader, topic: str, runs: Sequence[Run]) -> tuple[str, ...]:
    sets = Counter[tuple[str, ...]]()
    for names, table in runs:
        sets[names] += table.size
    if not sets:
        damage = reader.damage and f" ({reader.damage})"
        raise BagError(
            f"the topic {topic} of {reader.path} has no message{damage}: record it while the driver publishes"
        )
    return max(sets, key=lambda names: (sets[names], len(names)))


def _samples(joint_names: tuple[str, ...], runs: Sequence[Run], needed: str) -> Samples:
    """Samples of the messages that name all the joints and have the needed field."""
    kept = [(names, table) for names, table in runs if set(joint_names) <= set(names) and table[needed].size]
    if not kept:
        return np.empty(0, dtype=np.int64), None, None, None
    stamps, signals = _signals(joint_names, kept)
    position, velocity, effort = (None if np.isnan(signal).all() else signal for signal in signals)
    return stamps, position, velocity, effort


def _signals(joint_names: tuple[str, ...], runs: Sequence[Run]) -> tuple[IntArray, list[FloatArray]]:
    """Stamps (N,), and position, velocity and effort (N, n) of messages that name all the joints."""
    stamps = [table["sec"].astype(np.int64) * NANOSECONDS + table["nanosec"] for _, table in runs]
    signals = [np.concatenate([_block(joint_names, names, table[field]) for names, table in runs]) for field in _FIELDS]
    return np.concatenate(stamps), signals


def _block(joint_names: tuple[str, ...], names: tuple[str, ...], values: FloatArray) -> FloatArray:
    """Values (k, n) of these joints; NaN where there is not one for each of the names."""
    if values.shape[1] != len(names):
        return np.full((len(values), len(joint_names)), np.nan)
    return np.take(values, [names.index(joint) for joint in joint_names], axis=1).astype(np.float64)


def _friction(joint_names: tuple[str, ...], stamp_ns: IntArray, runs: dict[str, list[Run]]) -> dict[str, FloatArray]:
    """Friction and its standard deviation at these stamps, NaN where nothing was measured."""
    kinds = {"friction": topics.FRICTION.name, "friction_sigma": topics.SIGMA.name}
    efforts = {kind: _efforts(joint_names, runs[name]) for kind, name in kinds.items()}
    inputs = {kind: _at_stamps(stamp_ns, *found) for kind, found in efforts.items() if found is not None}
    measured = _efforts(joint_names, runs[topics.MEASURED.name])
    if measured is not None:
        stamps, value = measured
        order = np.argsort(stamps, kind="stable")
        newest = np.searchsorted(stamps[order], stamp_ns, side="right") - 1  # it holds until the next one
        modelled = (newest < 0)[:, None] | (value[order][np.maximum(newest, 0)] < 0.5)
        inputs = {kind: np.where(modelled, np.nan, values) for kind, values in inputs.items()}
    return inputs if "friction" in inputs else {}


def _efforts(joint_names: tuple[str, ...], runs: Sequence[Run]) -> tuple[IntArray, FloatArray] | None:
    """Stamps (K,) and efforts (K, n); None when there is none."""
    stamp_ns, _, _, effort = _samples(joint_names, runs, "effort")
    return None if effort is None else (stamp_ns, effort)


def _at_stamps(stamp_ns: IntArray, found_ns: IntArray, found: FloatArray) -> FloatArray:
    """Values (N, n) at these stamps, NaN where none has that stamp."""
    values = np.full((stamp_ns.size, found.shape[1]), np.nan)
    _, here, there = np.intersect1d(stamp_ns, found_ns, return_indices=True)
    values[here] = found[there]
    return values
