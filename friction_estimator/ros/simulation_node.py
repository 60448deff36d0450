"""The simulated robot as a node: publishes sensors, ground truth and robot_description in real time."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseArray
from rclpy.duration import Duration
from rclpy.executors import Executor
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String

from friction_estimator.errors import SimulationError, choices
from friction_estimator.io.node_parameters import SIMULATION_FIELDS
from friction_estimator.linear_algebra import yaw_from_quaternion
from friction_estimator.messages import topics
from friction_estimator.messages.simulated import SensorMessages, TruthMessages
from friction_estimator.ros.middleware import (
    LATCHED,
    OUTPUT,
    SENSOR_OUTPUT,
    diagnostic_status,
    message_class,
    publish_diagnostics,
)
from friction_estimator.ros.pacing import Lead, Pace
from friction_estimator.ros.parameters import ROBOT_DESCRIPTION, find_robot_description, read_parameters
from friction_estimator.ros.spin import Running, await_subscribers, compile_kernels, run
from friction_estimator.simulation import SimulationSample, Simulator, make_noise, make_scenario
from friction_estimator.simulation.footsteps import FootPose

_DEFAULT_DURATION = 3600.0  # of a scenario with the parameter duration 0 [s]
_SPIN_STRIDE = 10  # samples between two checks for other messages
_DIAGNOSTICS_STRIDE = 1000  # samples between two reports
_LINGER = 0.5  # of the process after its last message, for the delivery [s]
_LATE = 0.1  # delay from which on the simulation reports that it is behind real time [s]


class SimulationNode(Node):
    """Publishes the sensor readings of the simulated robot, one sample a millisecond; follows ``collision/footsteps``.

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
            raise SimulationError("the simulation needs a URDF: set the parameter robot.urdf to the file")
        self._settings = own
        self._scenario = make_scenario(own["scenario"], own["duration"] or _DEFAULT_DURATION)
        self._noise = make_noise(own["noise"])
        self._description = self.create_publisher(String, ROBOT_DESCRIPTION, LATCHED)
        self._description.publish(String(data=self._urdf_xml))
        self._simulator: Simulator | None = None
        self.create_subscription(PoseArray, topics.FOOTSTEPS.name, self._walk_to, OUTPUT)

    def _make_simulator(self, start_ns: int) -> Simulator:
        seed = self._settings["seed"]
        return Simulator(self._config, self._urdf_xml, self._scenario, self._noise, seed=seed, start_ns=start_ns)

    def _make_publishers(self, names: Sequence[str]) -> None:
        self._sensors, self._truth = SensorMessages(self._config, names), TruthMessages(self._config, names)
        self._sensor_publishers = {
            topic.name: self.create_publisher(message_class(topic.type), topic.name, SENSOR_OUTPUT)
            for topic in (*self._sensors.topics, *self._truth.topics)
        }
        self._joints = self._sensor_publishers[self._config.output.joint_states_topic]
        self._diagnostics = self.create_publisher(DiagnosticArray, topics.DIAGNOSTICS_TOPIC, OUTPUT)
        self._lead = Lead(self, self._settings["max_lead"])
        self._published = 0
        self._clock_publisher = self.create_publisher(Clock, "/clock", 10) if self._settings["publish_clock"] else None

    def play(self, executor: Executor, running: Running) -> None:
        """Simulate until the scenario ends or the process shall end."""
        compile_kernels(self, running)
        before = time.perf_counter()
        self._make_publishers(self._make_simulator(0).joint_names)
        self._build_time = time.perf_counter() - before
        await_subscribers(executor, self._joints, self._settings["wait_for_subscribers"], running)
        if not running():
            return
        scenario, noise = self._settings["scenario"], self._settings["noise"]
        self.get_logger().info(f"simulating {scenario!r} with sensor noise {noise!r}")
        simulator = self._start_now()
        self._simulator = simulator
        pace, end = Pace(self._settings["real_time_factor"]), simulator.duration
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
        time.sleep(_LINGER)  # best-effort subscribers acknowledge nothing

    def _start_now(self) -> Simulator:
        """Simulator whose stamps agree with the wall clock: it starts at a moment at which it will have been built."""
        start_ns = time.time_ns() + int(2e9 * self._build_time)
        simulator = self._make_simulator(start_ns)
        time.sleep(max(0.0, 1e-9 * (start_ns - time.time_ns())))
        return simulator

    def _walk_to(self, message: PoseArray) -> None:
        """Leave the footsteps of the scenario for these."""
        frames, frame = [foot.frame for foot in self._config.feet], message.header.frame_id
        turns = (pose.orientation for pose in message.poses)
        yaws = (yaw_from_quaternion(np.array([turn.w, turn.x, turn.y, turn.z])) for turn in turns)
        poses = [FootPose(pose.position.x, pose.position.y, yaw) for pose, yaw in zip(message.poses, yaws, strict=True)]
        try:
            if self._simulator is None:
                raise SimulationError("the robot does not walk yet")
            if frame not in frames:
                raise SimulationError(f"their frame is {frame!r}, and the feet are {choices(frames)}")
            self._simulator.walk_to(frames.index(frame), poses)
        except SimulationError as error:
            self.get_logger().warning(f"{topics.FOOTSTEPS.name}: these footsteps are left out: {error}")
        else:
            self.get_logger().info(f"walks to {len(poses)} footsteps and stands there, after a collision")

    def _diagnose(self, pace: Pace) -> None:
        behind, waited = pace.behind, self._lead.waited
        level, message = DiagnosticStatus.OK, "in real time"
        if behind > _LATE:
            cause = f", {waited:.1f} s of this while it waited for the estimator" if waited > _LATE else ""
            level = DiagnosticStatus.WARN
            message = (
                f"the simulation fell {behind:.1f} s behind real time{cause}; lower real_time_factor, or free a core"
            )
        values = {"published": self._published, "behind": f"{behind:.3f} s", "waited": f"{waited:.3f} s"}
        status = diagnostic_status(f"{self.get_name()}: samples", level, message, values)
        publish_diagnostics(self, self._diagnostics, [status])

    def _publish(self, sample: SimulationSample) -> None:
        publishers = self._sensor_publishers
        sensed = self._sensors.build(sample.readings)
        for topic, message in (*sensed, *self._truth.build(sample.truth)):
            publishers[topic.name].publish(message)
        if self._clock_publisher is not None:
            stamp_ns = sample.joints.stamp_ns
            self._clock_publisher.publish(Clock(clock=Time(sec=stamp_ns // 10**9, nanosec=stamp_ns % 10**9)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the node as a process; it ends with its scenario."""
    return run(SimulationNode, arguments, SimulationNode.play)
