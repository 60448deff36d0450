"""The recorder as a node: what the launch argument ``record`` starts."""

from __future__ import annotations

from collections.abc import Sequence

from rclpy.executors import Executor
from rclpy.node import Node

from friction_estimator.errors import ConfigError
from friction_estimator.io.bags.writer import BagWriter
from friction_estimator.io.node_parameters import RECORDER_FIELDS
from friction_estimator.messages.description import RunDescription
from friction_estimator.ros.parameters import read_parameters
from friction_estimator.ros.qos import RECORDER, SENSOR_INPUT
from friction_estimator.ros.recorder import DIAGNOSTICS, PERIOD, Recorder, input_topics, result_topics, truth_topics
from friction_estimator.ros.robot_description import find_robot_description
from friction_estimator.ros.spin import Running, run


class RecorderNode(Node):
    """Records sensors, results, truth and diagnostics until the process ends.

    Raises
    ------
    ConfigError, RobotModelError
        When a parameter or the URDF cannot be used.
    """

    def __init__(self) -> None:
        super().__init__("recorder")
        self._config, own = read_parameters(self, RECORDER_FIELDS)
        self._output, self._inputs_reliable = own["record_to"], own["inputs_reliable"]
        if not self._output:
            raise ConfigError("the parameter 'record_to' must name the rosbag2 to write")
        self._urdf_xml = find_robot_description("", self._config.robot.urdf)

    def play(self, executor: Executor, running: Running) -> None:
        """Record until the process shall end."""
        custom_data = {}
        if self._urdf_xml:  # else the robot is described on a topic, and the bag stays without description
            custom_data = RunDescription.of(self._config, self._urdf_xml, "", "recorded live").to_custom_data()
        with BagWriter(self._output, custom_data=custom_data) as writer:
            recorder = Recorder(self, writer)
            for topic, type_name in input_topics(self._config):
                recorder.record(topic, type_name, RECORDER if self._inputs_reliable else SENSOR_INPUT)
            for topic, type_name in [*result_topics(self._config), *truth_topics(self._config), DIAGNOSTICS]:
                recorder.record(topic, type_name)
            self.get_logger().info(f"recording to {writer.path}")
            while running():
                executor.spin_once(timeout_sec=PERIOD)
                recorder.take()
            recorder.close()
        self.get_logger().info(f"{writer.message_count} messages in {writer.path}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the node as a process."""
    return run(RecorderNode, arguments, RecorderNode.play)
