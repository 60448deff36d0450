"""The pipeline over a recorded bag, as fast as it can: the same numbers as the live node on the same messages."""

from __future__ import annotations

import dataclasses
import gc
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from friction_estimator.config import Config
from friction_estimator.errors import BagError, InputError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.health import Health
from friction_estimator.estimation.smoothing import SmoothedEstimator
from friction_estimator.estimation.validity import JointDiagnosis
from friction_estimator.io.bags.reader import BagMessage, BagReader
from friction_estimator.io.bags.writer import BagWriter
from friction_estimator.kernels import compiler
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.messages import topics
from friction_estimator.messages.outputs import OutputMessages
from friction_estimator.messages.recording import RunDescription
from friction_estimator.messages.sensors import InputReader, Sample
from friction_estimator.types import AnyPath, FrictionEstimate, JointSample, Progress

_BLOCK = 250
"""Messages that are read, decoded, estimated from and written together: each of these has warm caches then."""


@dataclass(frozen=True, slots=True)
class ReplaySummary:
    """What a replay read, could not use, estimated and identified."""

    joint_names: tuple[str, ...]  # (n) order of the joint arrays
    estimates: int  # number of estimates
    refused: Mapping[str, tuple[int, str]]  # newest reason and number of refused messages, by topic
    missing: tuple[str, ...]  # what the bag lacks, in words
    damage: str  # what of the bag could not be read, empty when all was
    health: Health  # counters of the estimator
    identified: IdentifiedParameters  # friction parameters at the end
    diagnoses: tuple[JointDiagnosis, ...]  # of which joints the friction should not be used at the end, and why
    warnings: tuple[str, ...] = ()  # all that the user should know about the run, one sentence each


@dataclass(slots=True)
class Refused:
    """Samples that could not be used: newest reason and number, by topic."""

    by_topic: dict[str, tuple[int, str]] = field(default_factory=dict)

    def note(self, topic: str, error: Exception) -> None:
        """Count a refused sample."""
        count, _ = self.by_topic.get(topic, (0, ""))
        self.by_topic[topic] = count + 1, str(error)

    def in_words(self) -> list[str]:
        """The refused samples in words, one sentence a topic."""
        return [
            f"{count} messages of {topic} refused: {reason} (the newest of them); correct what publishes this topic, "
            "or the YAML of the robot"
            for topic, (count, reason) in self.by_topic.items()
        ]


def recorded_inputs(reader: BagReader, config: Config) -> tuple[dict[str, str], tuple[str, ...]]:
    """Which topics of the bag feed the estimator, and what is missing that it can do without.

    Returns
    -------
    found : full topic name in the bag, by relative input topic
    missing : one text for each missing foot sensor; the friction of its limb then comes from the law alone

    Raises
    ------
    BagError
        When joint states, the IMU or all feet are missing; the message lists the topics and the parameter that names
        the missing one.
    """
    inputs = topics.input_topics(config)
    full = {item.name: reader.find_topic(item.name, item.type) for item in inputs}
    found = {name: topic for name, topic in full.items() if topic is not None}
    feet = {foot.wrench_topic for foot in config.feet}
    commands = {config.compensation.desired_topic} if config.needs_commands else set()
    missing = {item.name: f"{item.name!r} (parameter {item.parameter})" for item in inputs if item.name not in found}
    sensors = {name: text for name, text in missing.items() if name not in commands}
    if set(sensors) - feet or (feet and feet <= set(sensors)):
        raise BagError(
            f"the bag {reader.path} lacks the topic {', '.join(sensors.values())}; it has {reader.topic_list()}. "
            "Set each parameter in parentheses to a topic of the bag"
        )
    outcome = {name: "friction is not compensated" if name in commands else "its limb is not measured" for name in full}
    return found, tuple(f"the bag lacks the topic {text}: {outcome[name]}" for name, text in missing.items())


def replay_bag(
    bag_in: AnyPath | BagReader,
    bag_out: AnyPath | None,
    config: Config,
    urdf_xml: str,
    *,
    on_estimate: Callable[[FrictionEstimate], None] | None = None,
    on_message: Mapping[str, Callable[[BagMessage], None]] | None = None,
    start: IdentifiedParameters | None = None,
    storage: str = "mcap",
    copy_inputs: bool = False,
    overwrite: bool = False,
    namespace: str = "",
    robot: str = "",
    smooth: float | None = None,
    estimator: Estimator | None = None,
    progress: Progress | None = None,
) -> ReplaySummary:
    """Run the estimator over a bag; write a bag with all output topics, or hand every estimate to a function, or both.

    Ground-truth topics are copied along. Messages that cannot be used are skipped and counted, as in the live node.

    Parameters
    ----------
    bag_in : path, or the bag as it was opened
    bag_out : path; nothing is written when it is None
    config, urdf_xml : the robot
    on_estimate : called with every estimate, in the order of the joint samples
    on_message : called with every message of topics (full names) that the estimator does not use
    start : friction parameters to start from
    storage : of the output, ``mcap`` or ``sqlite3``
    copy_inputs : also copy the sensor topics
    overwrite : replace an older output
    namespace : of the topics in the bag, where it is given by its path
    robot : name of the robot, for the description in the output
    smooth : fixed-lag smoothing: each estimate also uses at least this many seconds of later data; ``inf``: all of it;
        None: as live
    estimator : of this robot, used in place of a new one
    progress : called with the number of messages done and of all

    Raises
    ------
    BagError
        When a needed topic is missing or no message can be used.
    ConfigError
        When this observer, or friction compensation, cannot be smoothed.
    """
    reader = bag_in if isinstance(bag_in, BagReader) else BagReader(bag_in, namespace)
    inputs, missing = recorded_inputs(reader, config)
    source = RunDescription.from_custom_data(reader.custom_data).source or f"bag {reader.path.name}"
    smoothing = "" if smooth is None else f"at least {smooth:g} s ahead"
    description = dataclasses.replace(RunDescription.from_config(config, urdf_xml, robot, source), smoothing=smoothing)
    if estimator is None:
        estimator = Estimator(config, urdf_xml) if smooth is None else SmoothedEstimator(config, urdf_xml, smooth)
    compiler.prepare()
    restored = () if start is None else estimator.restore(start)
    output: AbstractContextManager[BagWriter | None] = nullcontext()
    if bag_out is not None:
        if Path(bag_out).expanduser().resolve() == reader.path.resolve():
            raise BagError(f"the output {bag_out} is the input: give another name")
        output = BagWriter(bag_out, storage, description.to_custom_data(), overwrite)
    with output as writer, _collector_spares_what_exists():
        run = _Replay(reader, writer, estimator, urdf_xml, inputs, copy_inputs, on_estimate, on_message or {})
        run.run(progress)
        if not run.estimates:
            if writer is not None:
                writer.discard()
            raise BagError(run.nothing_message())
    damage = [reader.damage] if reader.damage else []
    return ReplaySummary(
        estimator.joint_names,
        run.estimates,
        run.refused.by_topic,
        missing,
        reader.damage,
        estimator.health,
        estimator.identified,
        estimator.diagnose(),
        (*damage, *missing, *restored, *run.refused.in_words(), *estimator.warnings()),
    )


@contextmanager
def _collector_spares_what_exists() -> Iterator[None]:
    """Keep the garbage collector from walking all loaded libraries again and again: three percent of a replay.

    What the caller has frozen stays frozen.
    """
    mine = gc.get_freeze_count() == 0
    if mine:
        gc.freeze()
    try:
        yield
    finally:
        if mine:
            gc.unfreeze()


class _Replay:
    """One pass over a bag."""

    def __init__(
        self,
        reader: BagReader,
        writer: BagWriter | None,
        estimator: Estimator,
        urdf_xml: str,
        inputs: Mapping[str, str],
        copy_inputs: bool,
        on_estimate: Callable[[FrictionEstimate], None] | None,
        on_message: Mapping[str, Callable[[BagMessage], None]],
    ) -> None:
        self._reader, self._writer, self._estimator, self._on_estimate = reader, writer, estimator, on_estimate
        self._on_message = on_message
        self._outputs = OutputMessages(estimator.config, estimator.joint_names, urdf_xml)
        self._smoothed = isinstance(estimator, SmoothedEstimator)
        readers = InputReader(estimator.config, estimator.joint_names).by_topic
        self._inputs = {topic: readers[name] for name, topic in inputs.items()}
        self._copied: set[str] = set()
        if writer is not None:
            self._copied = {topic for topic in reader.topics if f"/{topics.TRUTH_PREFIX}" in topic}
            self._copied |= set(self._inputs) if copy_inputs else set()
        self.refused = Refused()
        self.estimates = 0
        self._stamp_ns = 0
        self._arrived: dict[int, int] = {}
        self._recorded: deque[tuple[FrictionEstimate, int] | BagMessage] = deque()
        self._last_ns = reader.start_ns

    def run(self, progress: Progress | None) -> None:
        """Feed every message, in recorded order; after an interruption the bag has all estimates made before it."""
        try:
            self._feed_all(progress)
        except KeyboardInterrupt:
            self._end()
            raise
        self._end()

    def _feed_all(self, progress: Progress | None) -> None:
        if self._writer is not None:
            for topic in self._outputs.topics:
                self._writer.add_topic(topic.name, topic.type)
        messages = self._reader.messages({*self._inputs, *self._copied, *self._on_message})
        done = 0
        while block := list(islice(messages, _BLOCK)):
            if progress is not None:
                progress(done, self._reader.message_count)
            self._feed(block)
            done += len(block)
        if self._writer is not None:
            self._writer.save()  # smoothing what is left may take long
        self._add(self._estimator.flush(), self._last_ns)

    def nothing_message(self) -> str:
        """Why there is no estimate."""
        reasons = [*filter(None, [self._reader.damage]), *self.refused.in_words()]
        reasons += map(str, self._estimator.health.events)
        return f"no estimate could be made from {self._reader.path}: " + (
            "; ".join(reasons) or "there is no joint-state message in it"
        )

    def _end(self) -> None:
        """Write what is left, and zero torque last, as when the live node ends: the result may be played to a robot."""
        self._write()
        if self._estimator.compensation is not None and self.estimates and self._writer is not None:
            topic, message = self._outputs.no_compensation(self._stamp_ns)
            self._writer.write_raw(topic.name, topic.type, self._last_ns, message)

    def _feed(self, block: Sequence[BagMessage]) -> None:
        """Use a block of messages, and write what they give."""
        for message, sample in [(message, self._read(message)) for message in block]:
            self._last_ns = message.time_ns
            if message.topic in self._copied:
                self._recorded.append(message)
            if isinstance(sample, InputError):
                self.refused.note(message.topic, sample)
            elif sample is not None:
                if self._smoothed and isinstance(sample, JointSample):
                    self._arrived[sample.stamp_ns] = message.time_ns
                try:
                    self._add(self._estimator.add(sample), message.time_ns)
                except InputError as error:
                    self.refused.note(message.topic, error)
            elif message.topic in self._on_message:
                self._on_message[message.topic](message)
        self._write()

    def _read(self, message: BagMessage) -> Sample | InputError | None:
        """Sample of a message, or why it cannot be used; None where the estimator does not use its topic."""
        read = self._inputs.get(message.topic)
        try:
            return None if read is None else read(message.raw)
        except InputError as error:
            return error

    def _add(self, estimates: list[FrictionEstimate], time_ns: int) -> None:
        for estimate in estimates:
            # smoothed estimates come seconds later: they are recorded at the time of their joint sample
            self._recorded.append((estimate, self._arrived.pop(estimate.stamp_ns, time_ns)))
            if self._on_estimate is not None:
                self._on_estimate(estimate)
            self._stamp_ns = estimate.stamp_ns
        self.estimates += len(estimates)

    def _write(self) -> None:
        """Write copied messages and estimates."""
        if (writer := self._writer) is None:
            self._recorded.clear()
            return
        while self._recorded:
            one = self._recorded.popleft()
            if isinstance(one, BagMessage):
                writer.write_raw(*one)
            else:
                for topic, message in self._outputs.build(one[0]):
                    writer.write_raw(topic.name, topic.type, one[1], message)
