"""The live estimator: sensor topics in, joint friction out, and its services."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from rclpy.clock import Clock, ClockType
from rclpy.executors import Executor
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from friction_estimator import compiled
from friction_estimator.errors import ConfigError, FrictionEstimatorError, InputError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.node_parameters import ESTIMATOR_FIELDS
from friction_estimator.io.parameters import load_parameters, save_parameters
from friction_estimator.messages import topics
from friction_estimator.messages.inputs import InputReader
from friction_estimator.ros.diagnostics import NodeDiagnostics
from friction_estimator.ros.input_queue import InputQueue
from friction_estimator.ros.middleware import LATCHED, OUTPUT, RELIABLE_INPUT, SENSOR_INPUT, publish_diagnostics
from friction_estimator.ros.output_publishers import CompensationGuard, OutputPublishers
from friction_estimator.ros.parameters import on_change, read_parameters
from friction_estimator.ros.robot_description import await_robot_description, find_robot_description, friction_urdf
from friction_estimator.ros.spin import Running, end_if_asked, freeze, run
from friction_estimator.types import CommandSample, FrictionEstimate, ImuSample, JointSample, WrenchSample

_WARNING_PERIOD = 5.0  # between two log lines of the same warning [s]
_DIAGNOSTICS_PERIOD = 1.0  # [s]
_LOGGED = (": sensors", ": friction diagnosis", ": load")
_LONG_COMPILATION = 1.0  # after which the compilation of the kernels is logged [s]

_Sample = TypeVar("_Sample", JointSample, ImuSample, WrenchSample, CommandSample)


class EstimatorNode(Node):
    """The pipeline as a node, or the part of it that the parameter ``stages`` names.

    Raises
    ------
    ConfigError, RobotModelError
        When a parameter or the URDF cannot be used; :meth:`play` also for the file of identified parameters.
    """

    def __init__(self) -> None:
        super().__init__("friction_estimator")
        self._config, own = read_parameters(self, ESTIMATOR_FIELDS)
        self._identified_file = own["identified_parameters"] if self._config.has_friction else ""
        self._input_qos = RELIABLE_INPUT if own["inputs_reliable"] else SENSOR_INPUT
        self._effort_fraction = own["display.effort_fraction"]
        self._ros_time = self.get_clock().ros_time_is_active
        self._estimator: Estimator | None = None
        self._guard: CompensationGuard | None = None
        self._diagnostics_publisher = self.create_publisher(DiagnosticArray, topics.DIAGNOSTICS_TOPIC, OUTPUT)
        self._warn_again: dict[str, float] = {}
        self._events_logged = 0
        steady = Clock(clock_type=ClockType.STEADY_TIME)  # diagnostics must come even if /clock does not
        self._timer = self.create_timer(_DIAGNOSTICS_PERIOD, self._report, clock=steady)
        self._queue = InputQueue(leave_out=not own["inputs_reliable"])
        self._diagnostics = NodeDiagnostics(self.get_name(), self._queue)
        self._urdf_xml = find_robot_description(own["robot_description"], self._config.robot.urdf)

    def play(self, executor: Executor, running: Running) -> None:
        """Estimate until the process shall end."""
        if self._urdf_xml:
            self._start(running, self._urdf_xml)
        else:
            await_robot_description(self, partial(self._start, running))
        self._queue.run(executor, running)

    def _start(self, running: Running, urdf_xml: str) -> None:
        """Build the estimator and subscribe to the sensors."""
        config = self._config
        estimator = Estimator(config, urdf_xml)
        self._outputs = OutputPublishers(self, config, estimator.joint_names, urdf_xml)
        self._restore(estimator)
        if config.has_compensation:
            self._guard = CompensationGuard(self, config.compensation.timeout, self._outputs.stop_compensation)
        if config.has_friction:
            self._latched = self.create_publisher(String, "robot_description_friction", LATCHED)
            self._latched.publish(String(data=friction_urdf(urdf_xml, self._effort_fraction)))
        self._compile(running)
        self._diagnostics.start(estimator)
        self._estimator = estimator
        self._listen(estimator)
        self._offer_services(estimator)
        on_change(self, config, self._change)
        joints = f"{len(estimator.joint_names)} joints with the {config.observer} observer"
        self.get_logger().info(f"estimating {joints if config.has_friction else 'base state and contact phase'}")
        freeze()

    def _compile(self, running: Running) -> None:
        """Compile the numerical kernels before the first message; log one line if that takes long."""
        log = self.get_logger()
        if not compiled.COMPILED:
            log.warning(
                f"{compiled.NOT_COMPILED}: numerical kernels run as slow plain Python. "
                "The status 'load' in /diagnostics shows the highest possible rate of joint states"
            )
        started, logged = time.monotonic(), False

        def note(done: int, total: int) -> None:
            nonlocal logged
            if not logged and time.monotonic() - started > _LONG_COMPILATION:
                logged = True
                log.info(f"compiling numerical kernels ({done} of {total} ready); the next start reuses them")
            end_if_asked(running)

        compiled.prepare(note)

    def _change(self, name: str, value: float) -> None:
        """Apply a parameter that changed at run time."""
        if name == "output.slow_rate":
            self._outputs.set_slow_rate(value)
        elif self._estimator is not None and self._estimator.compensation is not None:
            self._estimator.compensation.gain = value

    def _restore(self, estimator: Estimator) -> None:
        """Continue with the identified parameters of the previous run, if their file exists."""
        path = self._identified_file
        if path and Path(path).expanduser().exists():
            notes = estimator.restore(load_parameters(path))
            self.get_logger().info(f"identified parameters read from {path}")
            for note in notes:
                self.get_logger().info(note)
        elif path:
            self.get_logger().info(f"{path} does not exist yet: identified parameters will be written to it at the end")

    def _listen(self, estimator: Estimator) -> None:
        """Subscribe to the sensors, and to the commands if friction is compensated."""
        config, reader = self._config, InputReader(self._config, estimator.joint_names)
        self._subscribe(
            JointState, config.output.joint_states_topic, reader.joint_state, estimator.add_joints, joints=True
        )
        if not config.robot.fixed_base:
            self._subscribe(Imu, config.imu.topic, reader.imu, estimator.add_imu)
        for index, foot in enumerate(config.feet):
            self._subscribe(WrenchStamped, foot.wrench_topic, partial(reader.wrench, index), estimator.add_wrench)
        if config.needs_commands:
            self._subscribe(JointState, config.compensation.desired_topic, reader.command, estimator.add_command)

    def _subscribe(
        self,
        message_type: type,
        topic: str,
        read: Callable[[bytes], _Sample],
        add: Callable[[_Sample], list[FrictionEstimate]],
        joints: bool = False,
    ) -> None:
        """Give the messages of a topic to the estimator. Bad messages are counted, logged and skipped."""
        counters = self._diagnostics.input_counters(topic, joints)

        def take(raw: bytes, arrived: float) -> bool:
            try:
                sample = read(raw)
                if joints:
                    self._diagnostics.arrived(sample.stamp_ns, arrived)
                estimates = add(sample)
            except InputError as error:
                counters.refused += 1
                counters.last_error = str(error)
                self._warn(topic, str(error))
                return False
            except (FrictionEstimatorError, ArithmeticError, np.linalg.LinAlgError) as error:
                self._recover(error)
                return False
            for estimate in estimates:
                self._publish(estimate)
            return bool(estimates)

        put = self._queue.receiver(take, joints)

        def receive(raw: bytes) -> None:
            counters.received += 1
            put(raw)

        self.create_subscription(message_type, topic, receive, self._input_qos, raw=True)

    def _publish(self, estimate: FrictionEstimate) -> None:
        self._outputs.publish(estimate)
        if self._guard is not None:
            self._guard.published(estimate.stamp_ns)
        now_ns = self.get_clock().now().nanoseconds if self._ros_time else time.time_ns()
        self._diagnostics.published(estimate, now_ns)

    def _recover(self, error: Exception) -> None:
        """Restart the filters after an error; identified parameters are kept."""
        self._diagnostics.failed()
        self._warn("estimator", f"the filters restart with the identified parameters, because of an error: {error}")
        if self._estimator is not None:
            self._estimator.reset()

    def _warn(self, key: str, text: str) -> None:
        """Log a warning, at most one every few seconds for each key."""
        now = time.monotonic()
        if now >= self._warn_again.get(key, 0.0):
            self._warn_again[key] = now + _WARNING_PERIOD
            self.get_logger().warning(text)

    def _report(self) -> None:
        self._ros_time = self.get_clock().ros_time_is_active
        statuses = self._diagnostics.report()
        publish_diagnostics(self, self._diagnostics_publisher, statuses)
        for status in statuses:
            if status.level in (DiagnosticStatus.WARN, DiagnosticStatus.ERROR) and status.name.endswith(_LOGGED):
                self._warn(status.name, status.message)
        self._log_events()

    def _log_events(self) -> None:
        """Log each event of the estimator once."""
        if self._estimator is not None:
            health = self._estimator.health
            for event in health.events_since(self._events_logged):
                self.get_logger().warning(str(event))
            self._events_logged = health.event_count

    def _offer_services(self, estimator: Estimator) -> None:
        """Offer ``~/reset``, and ``~/freeze`` and ``~/save_parameters`` where friction is estimated."""

        def reset(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            estimator.reset()
            self._outputs.reset()
            return _answer(response, True, "filters restarted; identified parameters kept")

        def freeze_laws(request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
            estimator.frozen = request.data
            return _answer(response, True, "identification is frozen" if request.data else "identification continues")

        def save(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            if not self._identified_file:
                return _answer(response, False, "set the parameter 'identified_parameters' to the file to write")
            try:
                save_parameters(self._identified_file, estimator.identified)
            except ConfigError as error:
                return _answer(response, False, str(error))
            return _answer(response, True, f"identified parameters written to {self._identified_file}")

        self.create_service(Trigger, "~/reset", reset)
        if estimator.config.has_friction:
            self.create_service(SetBool, "~/freeze", freeze_laws)
            self.create_service(Trigger, "~/save_parameters", save)

    def close(self) -> None:
        """Publish estimates that still wait for other sensors, and save the identified parameters."""
        estimator = self._estimator
        if estimator is None:
            return
        self._queue.use_all()
        for estimate in estimator.flush():
            self._publish(estimate)
        if self._guard is not None:
            self._guard.end()
            self._outputs.await_delivery()
        self._report()
        if self._identified_file and estimator.health.frames:
            try:
                save_parameters(self._identified_file, estimator.identified)
            except ConfigError as error:
                self.get_logger().error(str(error))
            else:
                self.get_logger().info(f"identified parameters written to {self._identified_file}")


def _answer(
    response: Trigger.Response | SetBool.Response, success: bool, message: str
) -> Trigger.Response | SetBool.Response:
    response.success, response.message = success, message
    return response


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the node as a process."""
    return run(EstimatorNode, arguments, EstimatorNode.play)
