"""The simulated robot as a node: sensors, ground truth and robot_description, in real time."""

from __future__ import annotations

import time
from collections.abc import Sequence

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.duration import Duration
from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.publisher import Publisher
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String

from friction_estimator import compiled
from friction_estimator.errors import SimulationError
from friction_estimator.io.node_parameters import SIMULATION_FIELDS
from friction_estimator.messages import topics
from friction_estimator.messages.simulated import SensorMessages, TruthMessages
from friction_estimator.ros.lead import Lead
from friction_estimator.ros.message_types import message_class
from friction_estimator.ros.pace import Pace
from friction_estimator.ros.parameters import read_parameters
from friction_estimator.ros.qos import LATCHED, OUTPUT, SENSOR_OUTPUT
from friction_estimator.ros.robot_description import TOPIC as ROBOT_DESCRIPTION
from friction_estimator.ros.robot_description import find_robot_description
from friction_estimator.ros.spin import Running, await_subscribers, end_if_asked, run
from friction_estimator.simulation import SimulationSample, Simulator, make_noise, make_scenario

_ENDLESS = 3600.0
"""Duration of a scenario without an end [s]."""

_SPIN_STRIDE = 10
_DIAGNOSTICS_STRIDE = 1000
_LINGER = 0.5

_LATE = 0.1
"""From this delay on the simulation reports that it is behind real time [s]."""


class SimulationNode(Node):
    """Publishes what the sensors of the simulated robot say, one sample a millisecond.

    Raises
    ------
    ConfigError, RobotModelError, SimulationError
        When a parameter, the URDF, the scenario or the noise level cannot be used.
    """

    def __init__(self) -> None:
        super().__init__("simulation")
        self._config, own = read_parameters(self, SIMULATION_FIELDS)
        self._urdf_xml = find_robot_description("", self._config.robot.urdf)
        if not self._urdf_xml:
            raise SimulationError("nothing to simulate: set robot.urdf to the URDF of the robot")
        self._own = own
        self._scenario = make_scenario(own["scenario"], own["duration"] or _ENDLESS)
        self._noise = make_noise(own["noise"])
        self._description = self.create_publisher(String, ROBOT_DESCRIPTION, LATCHED)
        self._description.publish(String(data=self._urdf_xml))

    def _make_simulator(self, start_ns: int) -> Simulator:
        seed = self._own["seed"]
        return Simulator(self._config, self._urdf_xml, self._scenario, self._noise, seed=seed, start_ns=start_ns)

    def _make_publishers(self, names: Sequence[str]) -> None:
        config = self._config
        self._messages = SensorMessages(config, names)
        self._truth = TruthMessages(config, names)
        self._joints = self._publisher(topics.JOINT_STATE, config.output.joint_states_topic)
        self._imu = self._publisher(topics.IMU, config.imu.topic)
        self._feet = [self._publisher(topics.WRENCH, foot.wrench_topic) for foot in config.feet]
        self._truths = {topic.name: self._publisher(topic.type, topic.name) for topic in self._truth.topics}
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", OUTPUT)
        self._lead = Lead(self, self._own["max_lead"])
        self._published = 0
        self._clock_publisher = self.create_publisher(Clock, "/clock", 10) if self._own["publish_clock"] else None

    def _publisher(self, type_name: str, topic: str) -> Publisher:
        return self.create_publisher(message_class(type_name), topic, SENSOR_OUTPUT)

    def play(self, executor: Executor, running: Running) -> None:
        """Walk until the scenario ends or the process shall end."""
        compiled.prepare(lambda done, total: end_if_asked(running))
        before = time.perf_counter()
        self._make_publishers(self._make_simulator(0).joint_names)
        self._build_time = time.perf_counter() - before
        await_subscribers(executor, self._joints, self._own["wait_for_subscribers"], running)
        if not running():  # before a simulator is built that nobody wants
            return
        self.get_logger().info(f"simulating {self._own['scenario']!r} with {self._own['noise']!r} sensors")
        simulator = self._start_now()
        pace, end = Pace(self._own["real_time_factor"]), simulator.duration
        while running() and simulator.time < end:
            sample = simulator.step()
            self._publish(sample)
            self._published += 1
            if self._published % _SPIN_STRIDE == 0:
                executor.spin_once(timeout_sec=0.0)
                self._lead.hold(sample.joints.stamp_ns, executor, running)
            if self._published % _DIAGNOSTICS_STRIDE == 0:
                self._diagnose(pace)
            pace.wait(simulator.time)
        if self._published:
            self._lead.finish(sample.joints.stamp_ns, executor, running)
        self._diagnose(pace)
        self._joints.wait_for_all_acked(Duration(seconds=_LINGER))
        time.sleep(_LINGER)  # best-effort readers acknowledge nothing

    def _start_now(self) -> Simulator:
        """A simulator whose stamps agree with the wall clock: built for a moment that comes when it is ready."""
        start_ns = time.time_ns() + int(2e9 * self._build_time)
        simulator = self._make_simulator(start_ns)
        time.sleep(max(0.0, 1e-9 * (start_ns - time.time_ns())))
        return simulator

    def _diagnose(self, pace: Pace) -> None:
        behind, waited = pace.behind, self._lead.waited
        late = behind > _LATE
        reason = f", {waited:.1f} s of it to wait for the estimator" if waited > _LATE else ""
        values = {"published": str(self._published), "behind": f"{behind:.3f} s", "waited": f"{waited:.3f} s"}
        status = DiagnosticStatus(
            name=f"{self.get_name()}: samples",
            level=DiagnosticStatus.WARN if late else DiagnosticStatus.OK,
            message=f"{behind:.1f} s behind real time{reason}" if late else "in real time",
            hardware_id="friction_estimator",
            values=[KeyValue(key=key, value=value) for key, value in values.items()],
        )
        message = DiagnosticArray(status=[status])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(message)

    def _publish(self, sample: SimulationSample) -> None:
        """Joints last: their estimate then need not wait for another sensor of the same instant."""
        messages = self._messages
        for publisher, wrench in zip(self._feet, sample.wrenches, strict=True):
            publisher.publish(messages.wrench(wrench))
        self._imu.publish(messages.imu(sample.imu))
        self._joints.publish(messages.joint_state(sample.joints))
        truths = self._truths
        for topic, message in self._truth.build(sample.truth):
            truths[topic.name].publish(message)
        if self._clock_publisher is not None:
            stamp_ns = sample.joints.stamp_ns
            self._clock_publisher.publish(Clock(clock=Time(sec=stamp_ns // 10**9, nanosec=stamp_ns % 10**9)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the node as a process; it ends with its scenario."""
    return run(SimulationNode, arguments, SimulationNode.play)
