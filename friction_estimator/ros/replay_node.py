"""A rosbag2 on live topics, for the launch argument ``source:=bag``.

Messages of sensors and ground truth are published as recorded, byte by byte. Results in the bag are left out, because
the estimator makes new ones.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from builtin_interfaces.msg import Time
from rclpy.duration import Duration
from rclpy.executors import Executor
from rclpy.node import Node
from rosgraph_msgs.msg import Clock

from friction_estimator.errors import BagError
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.bags.replay import input_topics
from friction_estimator.io.node_parameters import MAX_LEAD, REPLAY_FIELDS
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import stamp_of
from friction_estimator.ros.middleware import SENSOR_OUTPUT, message_class
from friction_estimator.ros.pacing import Lead, Pace
from friction_estimator.ros.parameters import read_parameters
from friction_estimator.ros.spin import Running, await_subscribers, run

_SPIN_STRIDE = 50  # messages between two checks for other messages
_LINGER = 0.5  # of the process after its last message, for the delivery [s]
_CLOCK_PERIOD_NS = 1_000_000  # between two messages on /clock


class ReplayNode(Node):
    """Plays a rosbag2.

    Raises
    ------
    ConfigError, BagError
        When a parameter or the bag cannot be used.
    """

    def __init__(self) -> None:
        super().__init__("replay")
        config, own = read_parameters(self, REPLAY_FIELDS)
        if not own["bag"]:
            raise BagError("set the parameter 'bag' to the path of the rosbag2 to play")
        self._reader = reader = BagReader(own["bag"])
        names = {full: relative for relative, full in input_topics(reader, config)[0].items()}
        for topic in topics.truth_topics(foot.name for foot in config.feet):
            full = reader.find_topic(topic.name, topic.type)
            if full is not None:
                names[full] = topic.name
        self._topics = {
            full: self.create_publisher(message_class(reader.topics[full]), relative, SENSOR_OUTPUT)
            for full, relative in names.items()
        }
        self._joints = next(
            publisher for full, publisher in self._topics.items() if names[full] == config.output.joint_states_topic
        )
        self._rate = own["rate"]
        self._subscribers = own["wait_for_subscribers"]
        self._lead = Lead(self, own["max_lead"] or (0.0 if self._rate else MAX_LEAD))
        self._clock_ns = 0
        self._clock_publisher = self.create_publisher(Clock, "/clock", 10) if own["publish_clock"] else None

    def play(self, executor: Executor, running: Running) -> None:
        """Send all messages at the recorded pace, until the bag or the process ends."""
        await_subscribers(executor, self._joints, self._subscribers, running)
        reader, pace, count, newest = self._reader, Pace(self._rate), 0, 0
        self.get_logger().info(f"playing {reader.path}")
        for message in reader.messages(self._topics):
            if not running():
                break
            pace.wait(1e-9 * (message.time_ns - reader.start_ns))
            self._publish_clock(message.time_ns)
            publisher, raw = self._topics[message.topic], bytes(message.raw)
            publisher.publish(raw)
            count += 1
            if publisher is self._joints:
                newest = stamp_of(raw)
            if count % _SPIN_STRIDE == 0:
                executor.spin_once(timeout_sec=0.0)
                self._lead.hold(newest, executor, running)
        self._lead.finish(newest, executor, running)
        self._joints.wait_for_all_acked(Duration(seconds=_LINGER))
        time.sleep(_LINGER)  # best-effort subscribers acknowledge nothing
        self.get_logger().info(f"played {count} messages" + (f"; {reader.damage}" if reader.damage else ""))

    def _publish_clock(self, now_ns: int) -> None:
        if self._clock_publisher is not None and now_ns - self._clock_ns >= _CLOCK_PERIOD_NS:
            self._clock_ns = now_ns
            self._clock_publisher.publish(Clock(clock=Time(sec=now_ns // 10**9, nanosec=now_ns % 10**9)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the node as a process; it ends with the bag."""
    return run(ReplayNode, arguments, ReplayNode.play)
