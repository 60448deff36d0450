"""The live estimator: sensor topics in, joint friction out, and its services."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.clock import Clock, ClockType
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.executors import Executor
from rclpy.qos import qos_policy_name_from_kind
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from friction_estimator.errors import ConfigError, InputError, RobotModelError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.node_parameters import ESTIMATOR_FIELDS
from friction_estimator.io.parameters import ParameterFile, load_parameters
from friction_estimator.io.robot import Robot
from friction_estimator.messages import topics
from friction_estimator.messages.sensors import InputReader, Sample
from friction_estimator.ros.diagnostics import NodeDiagnostics
from friction_estimator.ros.input_queue import InputQueue
from friction_estimator.ros.middleware import (
    LATCHED,
    OUTPUT,
    RELIABLE_INPUT,
    SENSOR_INPUT,
    SubscriptionOnDemand,
    answer_later,
    diagnostic_status,
    message_class,
    publish_diagnostics,
)
from friction_estimator.ros.output_publishers import CompensationGuard, OutputPublishers
from friction_estimator.ros.parameters import (
    ROBOT_DESCRIPTION,
    await_robot_description,
    find_robot_description,
    friction_urdf,
    on_change,
    read_parameters,
)
from friction_estimator.ros.spin import ManagedNode, Running, compile_kernels, freeze
from friction_estimator.types import FrictionEstimate

if TYPE_CHECKING:
    from friction_estimator.ros.collision_publisher import CollisionPublisher

_WARNING_PERIOD = 5.0  # between two log lines of the same warning [s]
_DIAGNOSTICS_PERIOD = 1.0  # [s]
_LOGGED = (": sensors", ": friction diagnosis", ": load", ": outputs", ": identified parameters")


class InputTopic:
    """Gives the messages of one topic to the estimator, and its estimates to the node.

    subscription ─► enqueue ─► InputQueue ─► use: read, Estimator.add, EstimatorNode.publish

    Bad messages are counted, logged and skipped. Executor and queue may hold messages when the node leaves its state:
    they are dropped, because by then estimator and publishers may be gone.

    Parameters
    ----------
    node : whose queue, diagnostics and publishers are used
    name : of the topic
    read : makes a sample of a serialized message
    estimator : that uses the samples
    joints : True for the joint states, whose messages wake the process
    """

    def __init__(
        self, node: EstimatorNode, name: str, read: Callable[[bytes], Sample], estimator: Estimator, joints: bool
    ) -> None:
        self._node, self._name, self._read, self._is_joint_topic = node, name, read, joints
        self._estimator: Estimator | None = estimator
        self._counters = node.diagnostics.input_counters(name)
        self._enqueue = node.queue.enqueue_joints if joints else node.queue.enqueue

    def enqueue(self, raw: bytes) -> None:
        """Put a message into the queue."""
        self._counters.received += 1
        self._enqueue(self.use, raw)

    def use(self, raw: bytes, arrived: float) -> bool:
        """Give a message, arrived at this time [s], to the estimator; true when it led to an estimate."""
        if self._estimator is None:
            return False
        try:
            sample = self._read(raw)
            if self._is_joint_topic:
                self._node.diagnostics.arrived(sample.stamp_ns, arrived)
            before = time.perf_counter()
            estimates = self._estimator.add(sample)
            if estimates:
                self._node.diagnostics.stepped(time.perf_counter() - before)
        except InputError as error:
            self._counters.refused += 1
            self._counters.last_error = str(error)
            self._node.warn(self._name, str(error))
            return False
        for estimate in estimates:
            self._node.publish(estimate)
        return bool(estimates)

    def note_mismatch(self, event: Any) -> None:
        """Warn that messages of a publisher cannot arrive, because its quality of service does not fit."""
        policy = qos_policy_name_from_kind(event.last_policy_kind)
        self._counters.mismatch = (
            f"a publisher offers another QoS ({policy}); set inputs_reliable to false, or publish it reliably"
        )
        self._node.warn(f"QoS of {self._name}", f"{self._name}: no message arrives: {self._counters.mismatch}")

    def end(self) -> None:
        """Ignore all further messages."""
        self._estimator = None


class EstimatorNode(ManagedNode):
    """The pipeline as a managed node, or the part of it that the parameter ``stages`` names.

    With the parameter ``autostart`` it configures and activates itself.

    Raises
    ------
    ConfigError
        When a parameter cannot be used.
    """

    def __init__(self) -> None:
        super().__init__("friction_estimator")
        self._config, self._settings = read_parameters(self, ESTIMATOR_FIELDS)
        self._model, self._fused = self._settings["mob_net_model"], self._settings["mob_net_fused"]
        if self._fused and not self._model:
            raise ConfigError("mob_net_fused needs a MOB-Net: set mob_net_model to a model file, which `train` writes")
        self._running: Running = rclpy.ok
        self._ros_time = self.get_clock().ros_time_is_active
        self._urdf_on_topic = ""
        self._estimator: Estimator | None = None
        self._guard: CompensationGuard | None = None
        self._collisions: CollisionPublisher | None = None
        self._active = False
        self._status_publisher = self.create_publisher(DiagnosticArray, topics.NODE_STATUS.name, OUTPUT)
        self._warn_again: dict[str, float] = {}
        self._saving: Future[None] | None = None
        steady = Clock(clock_type=ClockType.STEADY_TIME)  # diagnostics must come even if /clock does not
        self._timer = self.create_timer(_DIAGNOSTICS_PERIOD, self._report, clock=steady)
        self.queue = InputQueue(leave_out=not self._settings["inputs_reliable"])
        on_change(self, self._config, self._change)

    def play(self, executor: Executor, running: Running) -> None:
        """Work until the process shall end."""
        self._running = running
        if not (self._settings["robot_description"] or self._config.robot.urdf):
            await_robot_description(self, self._use_description)
        elif self._settings["autostart"]:
            self.bring_up()
        self.queue.run(executor, running)

    def _use_description(self, urdf_xml: str) -> None:
        """Use the URDF of the topic."""
        self._urdf_on_topic = urdf_xml
        if self._settings["autostart"]:
            self.bring_up()

    def configure(self, undo: ExitStack) -> None:
        """Make estimator, publishers, services and diagnostics, and compile the kernels; subscribe to no sensor yet.

        Raises
        ------
        ConfigError, RobotModelError
            When the URDF, a frame in it, or the file of identified parameters or its folder cannot be used.
        LearningError
            When the model of MOB-Net or the collision thresholds cannot be read or are of another robot.
        """
        config, own = self._config, self._settings
        urdf_xml = self._urdf_on_topic or find_robot_description(own["robot_description"], config.robot.urdf)
        if not urdf_xml:
            raise RobotModelError(
                f"no URDF has arrived on {self.resolve_topic_name(ROBOT_DESCRIPTION)} yet: publish it, or set the "
                "parameter robot.urdf; then configure the node again"
            )
        estimator = self._make_estimator(urdf_xml)
        self._file = self._open_file(estimator, undo)
        self._outputs = OutputPublishers(self, config, estimator.joint_names, urdf_xml)
        undo.callback(self._outputs.destroy)
        self._detect_collisions(estimator.joint_names, urdf_xml, undo)
        if config.has_friction:
            latched = self.create_publisher(String, "robot_description_friction", LATCHED)
            undo.callback(self.destroy_publisher, latched)
            latched.publish(String(data=friction_urdf(urdf_xml, own["display.effort_fraction"])))
        compile_kernels(self, self._running)
        self._offer_services(estimator, undo)
        self.diagnostics = NodeDiagnostics(self.get_name(), self.queue, estimator, self._joint_state_publishers)
        self._events_logged = 0
        self._estimator = estimator
        undo.callback(setattr, self, "_estimator", None)

    def activate(self, undo: ExitStack) -> None:
        """Subscribe to the sensors, and so publish.

        Deactivation publishes zero torque where friction is compensated, and saves the identified parameters, which
        also stay in the estimator.
        """
        config, estimator = self._config, self._estimator
        if estimator is None:
            raise ConfigError("configure the node before it is activated")
        undo.callback(estimator.reset)
        if config.has_compensation:
            self._guard = CompensationGuard(self, config.compensation.timeout, self._outputs.stop_compensation)
            undo.callback(self._guard.destroy)
        self._listen(estimator, undo)
        self._active, self._next_save = True, time.monotonic() + self._settings["save_period"]
        undo.callback(self._save_at_end, estimator)
        undo.callback(self._end_estimates, estimator)
        self.diagnostics.begin()
        self._timer.reset()  # the first report comes after a whole period
        joints = f"{len(estimator.joint_names)} joints with the {config.observer} observer"
        self.get_logger().info(f"estimating {joints if config.has_friction else 'base state and contact phase'}")
        freeze()

    def _end_estimates(self, estimator: Estimator) -> None:
        """Publish the estimates that wait for other sensors, and zero torque last, whatever happens."""
        try:
            self.queue.use_all()
            for estimate in estimator.flush():
                self.publish(estimate)
            if rclpy.ok():
                self._report()
        finally:
            self._active = False
            if self._guard is not None:
                self._guard.end()
                self._outputs.await_delivery()

    def _save_at_end(self, estimator: Estimator) -> None:
        if self._file is not None and estimator.health.frames:
            self._save(estimator, self._file).result()
            self.get_logger().info(f"identified parameters written to {self._file.path}")

    def _make_estimator(self, urdf_xml: str) -> Estimator:
        if not (path := self._model):
            return Estimator(self._config, urdf_xml)
        from friction_estimator.learning.external_torque import MobNetEstimator
        from friction_estimator.learning.network import load_model

        model = load_model(Path(path), Robot(self.get_name(), self._config, urdf_xml, None))
        return MobNetEstimator(self._config, urdf_xml, model, self._fused)

    def _detect_collisions(self, joint_names: Sequence[str], urdf_xml: str, undo: ExitStack) -> None:
        if not (path := self._settings["collision_thresholds"]):
            return
        from friction_estimator.collision.detector import load_thresholds, torque_source
        from friction_estimator.ros.collision_publisher import CollisionPublisher

        thresholds = load_thresholds(Path(path))
        thresholds.check(joint_names, torque_source(self._config, self._model, self._fused))
        self._collisions = CollisionPublisher(
            self,
            self._config,
            urdf_xml,
            thresholds,
            bool(self._model),
            self._settings["collision_reaction"],
            self._settings["collision_step_length"],
        )
        undo.callback(self._collisions.destroy)
        undo.callback(setattr, self, "_collisions", None)

    def _change(self, name: str, value: float) -> None:
        """Apply a parameter that changed at run time."""
        section, key = name.split(".")
        changed: Any = replace(getattr(self._config, section), **{key: value})
        self._config = replace(self._config, **{section: changed})
        if self._estimator is None:
            return
        if name == "output.slow_rate":
            self._outputs.set_slow_rate(value)
        elif self._estimator.compensation is not None:
            self._estimator.compensation.gain = value

    def _open_file(self, estimator: Estimator, undo: ExitStack) -> ParameterFile | None:
        """Lock the file of identified parameters, and continue with those of the previous run if it exists."""
        name, log = self._settings["identified_parameters"], self.get_logger()
        if not (name and self._config.has_friction):
            return None
        file = undo.enter_context(closing(ParameterFile(name)))
        undo.callback(lambda: self._save(estimator, file).result() if file.error else None)  # a last attempt
        if not file.path.exists():
            log.info(f"{name} does not exist yet: identified parameters will be written to it")
            return file
        notes = estimator.restore(load_parameters(name))
        for note in (f"identified parameters read from {name}", *notes):
            log.info(note)
        return file

    def _save(self, estimator: Estimator, file: ParameterFile) -> Future[None]:
        """Save identified parameters without blocking the only thread of the node."""
        self._next_save = time.monotonic() + self._settings["save_period"]
        self._saving = file.save_in_background(estimator.identified)
        return self._saving

    def _save_if_due(self) -> None:
        """Save identified parameters where the period of saving is over and there are new ones."""
        if self._file is None or self._estimator is None or not self._active:
            return
        due = 0.0 < self._settings["save_period"] and time.monotonic() > self._next_save
        if due and self._estimator.health.frames and (self._saving is None or self._saving.done()):
            self._save(self._estimator, self._file)

    def _listen(self, estimator: Estimator, undo: ExitStack) -> None:
        """Subscribe to the sensors, and to the commands if friction is compensated."""
        readers = InputReader(self._config, estimator.joint_names).by_topic
        self.queue.is_waiting = lambda: estimator.is_waiting
        qos = RELIABLE_INPUT if self._settings["inputs_reliable"] else SENSOR_INPUT
        for topic in topics.input_topics(self._config):
            joints = topic.name == self._config.output.joint_states_topic
            one = InputTopic(self, topic.name, readers[topic.name], estimator, joints)
            undo.callback(one.end)
            arguments = message_class(topic.type), topic.name
            events = SubscriptionEventCallbacks(incompatible_qos=one.note_mismatch)
            if joints:
                subscription = self.create_subscription(*arguments, one.enqueue, qos, event_callbacks=events, raw=True)
                undo.callback(self.destroy_subscription, subscription)
            else:
                source = SubscriptionOnDemand(self, *arguments, qos, events)
                undo.callback(source.destroy)
                undo.callback(self.queue.add_source(source.fetch, one.enqueue, topic.name))

    def publish(self, estimate: FrictionEstimate) -> None:
        """Publish an estimate and its collisions, and note it in guard and diagnostics."""
        self._outputs.publish(estimate)
        if self._collisions is not None:
            self._collisions.step(estimate)
        if self._guard is not None:
            self._guard.published(estimate.stamp_ns)
        now_ns = self.get_clock().now().nanoseconds if self._ros_time else time.time_ns()
        self.diagnostics.published(estimate, now_ns)

    def warn(self, key: str, text: str) -> None:
        """Log a warning, at most one every few seconds for each key."""
        now = time.monotonic()
        if now >= self._warn_again.get(key, 0.0):
            self._warn_again[key] = now + _WARNING_PERIOD
            self.get_logger().warning(text)

    def _report(self) -> None:
        self._ros_time = self.get_clock().ros_time_is_active
        self._save_if_due()
        statuses = self._statuses()
        publish_diagnostics(self, self._status_publisher, statuses)
        for status in statuses:
            if status.level in (DiagnosticStatus.WARN, DiagnosticStatus.ERROR) and status.name.endswith(_LOGGED):
                self.warn(status.name, status.message)
        self._log_events()

    def _statuses(self) -> list[DiagnosticStatus]:
        """State of the node."""
        if self._estimator is None or not self._active:
            autostart = self._settings["autostart"]
            waits = f"waiting for the URDF on {ROBOT_DESCRIPTION}" if autostart else "configure the node"
            message = waits if self._estimator is None else "no estimate: activate the node"
            return [self._status("estimates", DiagnosticStatus.WARN, message)]
        statuses = [*self.diagnostics.report(), self._outputs_status()]
        if self._file is not None:
            statuses.append(self._file_status(self._file))
        return statuses

    def _outputs_status(self) -> DiagnosticStatus:
        topic, others = self._outputs.rivals()
        if others:
            message = (
                f"{others} other nodes publish on {topic}: end them, or give each its own namespace; "
                "a killed node counts for some 20 s more"
            )
            return self._status("outputs", DiagnosticStatus.WARN, message)
        return self._status("outputs", DiagnosticStatus.OK, f"only this node publishes on {topic}")

    def _file_status(self, file: ParameterFile) -> DiagnosticStatus:
        if file.error:
            return self._status("identified parameters", DiagnosticStatus.ERROR, file.error)
        age = None if file.saved_at is None else time.monotonic() - file.saved_at
        message = "not written yet" if age is None else f"written {age:.0f} s ago"
        return self._status("identified parameters", DiagnosticStatus.OK, f"{message} to {file.path}")

    def _status(self, label: str, level: bytes, message: str) -> DiagnosticStatus:
        return diagnostic_status(f"{self.get_name()}: {label}", level, message, {})

    def _joint_state_publishers(self) -> list[str]:
        """Full names of the nodes that publish joint states."""
        topic = self.resolve_topic_name(self._config.output.joint_states_topic)
        found = self.get_publishers_info_by_topic(topic)
        return sorted(f"{info.node_namespace.rstrip('/')}/{info.node_name}" for info in found)

    def _log_events(self) -> None:
        """Log each event of the estimator once."""
        if self._estimator is not None:
            health = self._estimator.health
            for event in health.events_since(self._events_logged):
                self.get_logger().warning(str(event))
            self._events_logged = health.event_count

    def _offer_services(self, estimator: Estimator, undo: ExitStack) -> None:
        """Offer ``~/reset``, and ``~/freeze`` and ``~/save_parameters`` where friction is estimated."""

        def reset(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            estimator.reset()
            self._outputs.reset()
            return _answer(response, "filters restarted; identified parameters kept")

        def freeze_laws(request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
            estimator.frozen = request.data
            return _answer(response, "identification is frozen" if request.data else "identification continues")

        services = [self.create_service(Trigger, "~/reset", reset)]
        if estimator.config.has_friction:
            services.append(self.create_service(SetBool, "~/freeze", freeze_laws))
            services.append(self._offer_saving(estimator, self._file))
        for service in services:
            undo.callback(self.destroy_service, service)

    def _offer_saving(self, estimator: Estimator, file: ParameterFile | None) -> Any:
        """Service that answers when the file is written, from the thread that has written it."""

        def save(answer: Callable[[bool, str], None]) -> None:
            if (goal := file) is None:
                answer(False, "set the parameter 'identified_parameters' to the file to write")
                return

            def written(saving: Future[None]) -> None:
                error = saving.exception()
                answer(error is None, str(error) if error else f"identified parameters written to {goal.path}")

            self._save(estimator, goal).add_done_callback(written)

        service = self.create_service(Trigger, "~/save_parameters", lambda request, response: response)
        answer_later(service, save)
        return service


def _answer(response: Trigger.Response | SetBool.Response, message: str) -> Trigger.Response | SetBool.Response:
    response.success, response.message = True, message
    return response
