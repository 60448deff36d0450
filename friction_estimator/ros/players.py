"""Simulator and bag player as nodes: sensor messages in real time, and not too far ahead of the estimator."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseArray
from rclpy.duration import Duration
from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.publisher import Publisher
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from friction_estimator.config import ParameterField
from friction_estimator.errors import BagError, SimulationError, choices
from friction_estimator.io.node_parameters import MAX_LEAD, REPLAY_FIELDS, SIMULATION_FIELDS
from friction_estimator.linear_algebra import yaw_from_quaternion
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import stamp_of
from friction_estimator.messages.sensors import SensorMessages, TruthMessages
from friction_estimator.ros.middleware import (
    LATCHED,
    OUTPUT,
    SENSOR_INPUT,
    SENSOR_OUTPUT,
    diagnostic_status,
    message_class,
    publish_diagnostics,
)
from friction_estimator.ros.parameters import ROBOT_DESCRIPTION, find_robot_description, read_parameters
from friction_estimator.ros.spin import Running, await_subscribers, compile_kernels

if TYPE_CHECKING:
    from friction_estimator.simulation import Simulator

_PATIENCE = 0.1  # longest delay that is caught up [s]
_GIVE_UP = 5.0  # without an estimate, after which samples are sent without waiting [s]
_LAST_PERIOD_NS = 100_000_000  # one period of the slow output, and more
_SPIN_STRIDE = 10  # joint states between two checks for other messages
_SHORT_WAIT = 0.01  # between two looks at the newest estimate [s]
_LINGER = 0.5  # of the process after its last message, for the delivery [s]
_CLOCK_PERIOD_NS = 1_000_000  # between two messages on /clock
_DEFAULT_DURATION = 3600.0  # of a scenario with the parameter duration 0 [s]
_REPORT_STRIDE = 1000  # joint states between two reports
_LATE = 0.1  # delay from which on the simulation reports that it is behind real time [s]


class _Pace:
    """Keeps a loop at a multiple of real time by sleeping to deadlines.

    A 1 ms ROS timer gives 989 to 996 Hz, this gives 1000 Hz.

    Parameters
    ----------
    factor : simulated or recorded time divided by real time; 0: no waiting

    Attributes
    ----------
    behind : delay of the newest call of :meth:`wait` against the deadlines of the first one [s]
    """

    def __init__(self, factor: float) -> None:
        self._factor = factor
        self._start: float | None = None
        self._moved = 0.0
        self.behind = 0.0

    def wait(self, elapsed: float) -> None:
        """Sleep until ``elapsed`` seconds of simulated or recorded time have passed; the first call begins that time.

        A delay of at most 0.1 s is caught up. After a longer one all later deadlines move, to avoid a burst of samples.
        """
        if not self._factor:
            return
        if self._start is None:
            self._start = time.perf_counter() - elapsed / self._factor
        delay = self._start + elapsed / self._factor - time.perf_counter()
        self.behind = self._moved + max(0.0, -delay)
        if delay > 0.0:
            time.sleep(delay)
        elif delay < -_PATIENCE:
            self._start -= delay
            self._moved -= delay


class Lead:
    """Keeps simulator or bag player from getting too far ahead of an estimator that cannot keep up with them.

    Otherwise queues would fill up until messages are lost. The stamps of a slow output of the estimator are compared
    with those of the sent samples.

    Parameters
    ----------
    node : owner of the subscription
    limit : largest distance between the stamps [s]; 0: no limit

    Attributes
    ----------
    waited : time spent waiting for the estimator [s]
    """

    def __init__(self, node: Node, limit: float) -> None:
        self._node = node
        self._limit_ns = int(limit * 1e9)
        self._estimated_ns: int | None = None
        self.waited = 0.0
        if self._limit_ns:
            node.create_subscription(JointState, topics.MODEL.name, self._note, SENSOR_INPUT, raw=True)

    def _note(self, raw: bytes) -> None:
        self._estimated_ns = stamp_of(raw)

    def hold(self, stamp_ns: int, executor: Executor, running: Running) -> None:
        """Spin until the distance to the estimator is within the limit; it counts from the first call."""
        if self._limit_ns:
            if self._estimated_ns is None:
                self._estimated_ns = stamp_ns
            self._wait(stamp_ns, self._limit_ns, executor, running)

    def finish(self, stamp_ns: int, executor: Executor, running: Running) -> None:
        """Spin until the estimator has used the last sample, up to one period of the slow output."""
        if self._limit_ns:
            self._wait(stamp_ns, min(self._limit_ns, _LAST_PERIOD_NS), executor, running)

    def _wait(self, stamp_ns: int, limit_ns: int, executor: Executor, running: Running) -> None:
        start = time.monotonic()
        before, give_up = self._estimated_ns, start + _GIVE_UP
        while self._estimated_ns is not None and stamp_ns - self._estimated_ns > limit_ns and running():
            executor.spin_once(timeout_sec=_SHORT_WAIT)
            if self._estimated_ns != before:
                before, give_up = self._estimated_ns, time.monotonic() + _GIVE_UP
            elif time.monotonic() > give_up:
                self._node.get_logger().warning(
                    f"no estimate for {_GIVE_UP:.0f} s on {topics.MODEL.name}: samples are sent without waiting for "
                    "the estimator; check that it runs"
                )
                self._limit_ns = 0
                break
        self.waited += time.monotonic() - start


class _Moment(NamedTuple):
    """Messages that are due together."""

    elapsed: float  # simulated or recorded time since the start [s]
    time_ns: int  # what `/clock` shows [ns]
    messages: Iterable[tuple[str, bytes]]  # relative names of their topics, and their bytes


class _Player(Node):
    """A node that publishes sensor messages in real time, with ``/clock`` where it is wanted.

    Parameters
    ----------
    name : of the node
    fields : its parameters that are not in the configuration

    Raises
    ------
    ConfigError
        When a parameter cannot be used.
    """

    def __init__(self, name: str, fields: Sequence[ParameterField]) -> None:
        super().__init__(name)
        self._config, self._settings = read_parameters(self, fields)
        self._clock_publisher = self.create_publisher(Clock, "/clock", 10) if self._settings["publish_clock"] else None
        self._clock_ns = self._sent = 0
        self._topics: dict[str, Publisher] = {}
        self._lead = Lead(self, 0.0)

    def report(self, pace: _Pace) -> None:
        """Called every thousand joint states, and after the last one."""

    def _offer(self, offered: Iterable[tuple[str, str]], max_lead: float) -> None:
        """Create publishers of topics and types, and the limit of the lead over the estimator [s]."""
        self._topics = {name: self.create_publisher(message_class(kind), name, SENSOR_OUTPUT) for name, kind in offered}
        self._lead = Lead(self, max_lead)

    def _send(self, moments: Iterable[_Moment], factor: float, executor: Executor, running: Running) -> None:
        """Publish all moments until they or the process end; ``factor``: their time divided by real time."""
        joint_topic = self._config.output.joint_states_topic
        joints, pace, newest = self._topics[joint_topic], _Pace(factor), 0
        await_subscribers(executor, joints, self._settings["wait_for_subscribers"], running)
        for moment in moments if running() else ():
            pace.wait(moment.elapsed)
            self._publish_clock(moment.time_ns)
            for topic, raw in moment.messages:
                self._topics[topic].publish(raw)
                if topic == joint_topic:
                    self._sent, newest = self._sent + 1, stamp_of(raw)
                    if self._sent % _SPIN_STRIDE == 0:
                        executor.spin_once(timeout_sec=0.0)
                        self._lead.hold(newest, executor, running)
                    if self._sent % _REPORT_STRIDE == 0:
                        self.report(pace)
            if not running():
                break
        self._lead.finish(newest, executor, running)
        self.report(pace)
        joints.wait_for_all_acked(Duration(seconds=_LINGER))
        time.sleep(_LINGER)  # best-effort subscribers acknowledge nothing

    def _publish_clock(self, now_ns: int) -> None:
        if self._clock_publisher is not None and now_ns - self._clock_ns >= _CLOCK_PERIOD_NS:
            self._clock_ns = now_ns
            self._clock_publisher.publish(Clock(clock=Time(sec=now_ns // 10**9, nanosec=now_ns % 10**9)))


class SimulationNode(_Player):
    """Simulates the robot and publishes its sensors at 1 kHz.

    Footsteps that arrive on the topic ``collision/footsteps`` replace those of the plan.

    Raises
    ------
    ConfigError, RobotModelError, SimulationError
        When a parameter, the URDF, the scenario or the noise level cannot be used.
    """

    def __init__(self) -> None:
        from friction_estimator.simulation import Simulator, make_noise, make_scenario  # the bag player needs no MuJoCo

        super().__init__("simulation", SIMULATION_FIELDS)
        urdf_xml, own = find_robot_description("", self._config.robot.urdf), self._settings
        if not urdf_xml:
            raise SimulationError("the simulation needs a URDF: set the parameter robot.urdf to the file")
        scenario = make_scenario(own["scenario"], own["duration"] or _DEFAULT_DURATION)
        noise = make_noise(own["noise"])
        self._make = partial(Simulator, self._config, urdf_xml, scenario, noise, own["seed"])
        self._description = self.create_publisher(String, ROBOT_DESCRIPTION, LATCHED)
        self._description.publish(String(data=urdf_xml))
        self._diagnostics = self.create_publisher(DiagnosticArray, topics.NODE_STATUS.name, OUTPUT)
        self._simulator: Simulator | None = None
        self.create_subscription(PoseArray, topics.FOOTSTEPS.name, self._walk_to, OUTPUT)

    def play(self, executor: Executor, running: Running) -> None:
        """Simulate until the scenario ends or the process shall end."""
        compile_kernels(self, running)
        simulator = self._simulator = self._make()
        names = simulator.joint_names
        sensors, truth = SensorMessages(self._config, names), TruthMessages(self._config, names)
        offered = (*sensors.topics, *truth.topics)
        self._offer(((topic.name, topic.type) for topic in offered), self._settings["max_lead"])
        self._send(self._moments(simulator, sensors, truth), self._settings["real_time_factor"], executor, running)

    def _moments(self, simulator: Simulator, sensors: SensorMessages, truth: TruthMessages) -> Iterator[_Moment]:
        """One a sample. The stamps agree with the wall clock."""
        scenario, noise = self._settings["scenario"], self._settings["noise"]
        self.get_logger().info(f"simulating {scenario!r} with sensor noise {noise!r}")
        simulator.start_ns = time.time_ns()
        while (elapsed := simulator.time) < simulator.duration:
            sample = simulator.step()
            built = (*sensors.build(sample.readings), *truth.build(sample.truth))
            yield _Moment(elapsed, sample.joints.stamp_ns, [(topic.name, raw) for topic, raw in built])

    def _walk_to(self, message: PoseArray) -> None:
        """Leave the footsteps of the scenario for these."""
        from friction_estimator.simulation.footsteps import FootPose

        frames, frame = [foot.frame for foot in self._config.feet], message.header.frame_id
        turns = (pose.orientation for pose in message.poses)
        yaws = (yaw_from_quaternion(np.array([turn.w, turn.x, turn.y, turn.z])) for turn in turns)
        poses = [FootPose(pose.position.x, pose.position.y, yaw) for pose, yaw in zip(message.poses, yaws, strict=True)]
        try:
            if self._simulator is None:
                raise SimulationError("the robot does not walk yet")
            if frame not in frames:
                raise SimulationError(
                    f"their frame_id is {frame!r}; it must be the frame of the standing foot, {choices(frames)}"
                )
            self._simulator.walk_to(frames.index(frame), poses)
        except SimulationError as error:
            self.get_logger().warning(f"{topics.FOOTSTEPS.name}: these footsteps are left out: {error}")
        else:
            self.get_logger().info(
                f"after a collision, the simulated robot walks to {len(poses)} footsteps and stands there"
            )

    def report(self, pace: _Pace) -> None:
        """Publish how far the simulation is behind real time."""
        behind, waited = pace.behind, self._lead.waited
        level, message = DiagnosticStatus.OK, "in real time"
        if behind > _LATE:
            cause = f", {waited:.1f} s of this while it waited for the estimator" if waited > _LATE else ""
            level = DiagnosticStatus.WARN
            message = (
                f"the simulation fell {behind:.1f} s behind real time{cause}; lower real_time_factor, or free a core"
            )
        values = {"published": self._sent, "behind": f"{behind:.3f} s", "waited": f"{waited:.3f} s"}
        status = diagnostic_status(f"{self.get_name()}: samples", level, message, values)
        publish_diagnostics(self, self._diagnostics, [status])


class ReplayNode(_Player):
    """Plays a rosbag2.

    Messages of sensors and ground truth are published as recorded, byte by byte. Results in the bag are left out,
    because the estimator makes new ones.

    Raises
    ------
    ConfigError, BagError
        When a parameter or the bag cannot be used.
    """

    def __init__(self) -> None:
        from friction_estimator.io.bags.reader import BagReader  # the simulator needs no bags
        from friction_estimator.io.bags.replay import recorded_inputs

        super().__init__("replay", REPLAY_FIELDS)
        own, self._count = self._settings, 0
        if not own["bag"]:
            raise BagError("set the parameter 'bag' to the path of the rosbag2 to play")
        self._reader = reader = BagReader(own["bag"])
        self._names = {full: relative for relative, full in recorded_inputs(reader, self._config)[0].items()}
        for topic in topics.truth_topics(self._config):
            full = reader.find_topic(topic.name, topic.type)
            if full is not None:
                self._names[full] = topic.name
        offered = ((name, reader.topics[full]) for full, name in self._names.items())
        self._offer(offered, own["max_lead"] or (0.0 if own["rate"] else MAX_LEAD))

    def play(self, executor: Executor, running: Running) -> None:
        """Send all messages at the recorded pace, until the bag or the process ends."""
        self._send(self._moments(), self._settings["rate"], executor, running)
        damage = f"; {self._reader.damage}" if self._reader.damage else ""
        self.get_logger().info(f"played {self._count} messages{damage}")

    def _moments(self) -> Iterator[_Moment]:
        """One a message."""
        self.get_logger().info(f"playing {self._reader.path}")
        for message in self._reader.messages(self._names):
            self._count += 1
            elapsed = 1e-9 * (message.time_ns - self._reader.start_ns)
            yield _Moment(elapsed, message.time_ns, [(self._names[message.topic], bytes(message.raw))])
