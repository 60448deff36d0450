"""The live estimator: sensor topics in, joint friction out, and its services."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.msg import State
from rclpy.clock import Clock, ClockType
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.executors import Executor
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from friction_estimator.errors import ConfigError, RobotModelError, choices
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.node_parameters import ESTIMATOR_FIELDS
from friction_estimator.io.parameters import ParameterFile, load_parameters
from friction_estimator.io.robot import Robot
from friction_estimator.messages import topics
from friction_estimator.messages.sensors import InputReader
from friction_estimator.robot.urdf import differing_parts
from friction_estimator.ros.diagnostics import NodeDiagnostics
from friction_estimator.ros.input_queue import InputQueue, InputTopic
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
    state_of,
)
from friction_estimator.ros.output_publishers import CompensationGuard, OutputPublishers
from friction_estimator.ros.parameters import (
    ROBOT_DESCRIPTION,
    find_robot_description,
    follow_robot_description,
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
_LOGGED = {"sensors", "friction diagnosis", "load", "outputs", "identified parameters", "robot description"}


@dataclass(eq=False)
class _Configured:
    """What the node has while it is configured."""

    urdf_xml: str
    differing_parts: list[str]  # links and joints in which the URDF on the topic differs from this one
    estimator: Estimator
    outputs: OutputPublishers
    diagnostics: NodeDiagnostics
    file: ParameterFile | None  # of the identified parameters
    collisions: CollisionPublisher | None
    guard: CompensationGuard | None = None  # while the node is active and friction compensated
    active: bool = False
    next_save: float = 0.0
    saving: Future[None] | None = None
    events_logged: int = 0


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
        given = {ROBOT_DESCRIPTION: self._settings["robot_description"], "robot.urdf": self._config.robot.urdf}
        self._own_urdf = next((name for name, value in given.items() if value), "")  # the parameter that has the URDF
        self._urdf_on_topic = ""
        self._starts_with_urdf = self._settings["autostart"] and not self._own_urdf
        self._configured: _Configured | None = None
        self._status_publisher = self.create_publisher(DiagnosticArray, topics.NODE_STATUS.name, OUTPUT)
        self._warn_again: dict[str, float] = {}
        steady = Clock(clock_type=ClockType.STEADY_TIME)  # diagnostics must come even if /clock does not
        self._timer = self.create_timer(_DIAGNOSTICS_PERIOD, self._report, clock=steady)
        self.queue = InputQueue(leave_out=not self._settings["inputs_reliable"])
        on_change(self, self._config, self._change)

    def play(self, executor: Executor, running: Running) -> None:
        """Work until the process shall end."""
        self._running = running
        follow_robot_description(self, self._use_description)
        if not self._own_urdf:
            self.get_logger().info(
                f"waiting for the URDF on {self.resolve_topic_name(ROBOT_DESCRIPTION)}; it may also be set with the "
                "parameter robot.urdf"
            )
        elif self._settings["autostart"]:
            self.bring_up()
        self.queue.run(executor, running)

    def _use_description(self, urdf_xml: str) -> None:
        """Use the URDF of the topic where the node waits for it, and compare it with the one in use."""
        self._urdf_on_topic = urdf_xml
        if (now := self._configured) is not None:
            now.differing_parts = differing_parts(now.urdf_xml, urdf_xml)
        elif self._starts_with_urdf and state_of(self)[0] == State.PRIMARY_STATE_UNCONFIGURED:
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
        urdf_xml = find_robot_description(own["robot_description"], config.robot.urdf) or self._urdf_on_topic
        if not urdf_xml:
            raise RobotModelError(
                f"no URDF has arrived on {self.resolve_topic_name(ROBOT_DESCRIPTION)} yet: publish it, or set the "
                "parameter robot.urdf; then configure the node again"
            )
        estimator = self._make_estimator(urdf_xml)
        file = self._open_file(estimator, undo)
        outputs = OutputPublishers(self, config, estimator.joint_names, urdf_xml)
        undo.callback(outputs.destroy)
        collisions = self._detect_collisions(estimator.joint_names, urdf_xml, undo)
        if config.has_friction:
            latched = self.create_publisher(String, "robot_description_friction", LATCHED)
            undo.callback(self.destroy_publisher, latched)
            latched.publish(String(data=friction_urdf(urdf_xml, own["display.effort_fraction"])))
        compile_kernels(self, self._running)
        diagnostics = NodeDiagnostics(self.get_name(), self.queue, estimator, self._publishers_of)
        parts = differing_parts(urdf_xml, self._urdf_on_topic) if self._urdf_on_topic else []
        configured = _Configured(urdf_xml, parts, estimator, outputs, diagnostics, file, collisions)
        self._offer_services(configured, undo)
        self._configured, self._starts_with_urdf = configured, False
        undo.callback(setattr, self, "_configured", None)

    def activate(self, undo: ExitStack) -> None:
        """Subscribe to the sensors, and so publish.

        Deactivation publishes zero torque where friction is compensated, and saves the identified parameters, which
        also stay in the estimator.
        """
        config, now = self._config, self._configured
        if now is None:
            raise ConfigError("configure the node before it is activated")
        undo.callback(now.estimator.reset)
        if config.has_compensation:
            now.guard = CompensationGuard(self, config.compensation.timeout, now.outputs.stop_compensation)
            undo.callback(now.guard.destroy)
        self._listen(now, undo)
        now.active, now.next_save = True, time.monotonic() + self._settings["save_period"]
        undo.callback(self._save_at_end, now)
        undo.callback(self._end_estimates, now)
        now.diagnostics.begin()
        self._timer.reset()  # the first report comes after a whole period
        joints = f"{len(now.estimator.joint_names)} joints with the {config.observer} observer"
        self.get_logger().info(f"estimating {joints if config.has_friction else 'base state and contact phase'}")
        freeze()

    def _end_estimates(self, now: _Configured) -> None:
        """Publish the estimates that wait for other sensors, and zero torque last, whatever happens."""
        try:
            self.queue.use_all()
            for estimate in now.estimator.flush():
                self._publish(now, estimate)
            if rclpy.ok():
                self._report()
        finally:
            now.active = False
            if now.guard is not None:
                now.guard.end()
                now.outputs.await_delivery()

    def _save_at_end(self, now: _Configured) -> None:
        if now.file is not None and now.estimator.health.frames:
            self._save(now, now.file).result()
            self.get_logger().info(f"identified parameters written to {now.file.path}")

    def _make_estimator(self, urdf_xml: str) -> Estimator:
        if not (path := self._model):
            return Estimator(self._config, urdf_xml)
        from friction_estimator.learning.external_torque import MobNetEstimator
        from friction_estimator.learning.network import load_model

        model = load_model(Path(path), Robot(self.get_name(), self._config, urdf_xml, None))
        return MobNetEstimator(self._config, urdf_xml, model, self._fused)

    def _detect_collisions(
        self, joint_names: Sequence[str], urdf_xml: str, undo: ExitStack
    ) -> CollisionPublisher | None:
        if not (path := self._settings["collision_thresholds"]):
            return None
        from friction_estimator.collision.detector import load_thresholds, torque_source
        from friction_estimator.ros.collision_publisher import CollisionPublisher

        thresholds = load_thresholds(Path(path))
        thresholds.check(joint_names, torque_source(self._config, self._model, self._fused))
        collisions = CollisionPublisher(
            self,
            self._config,
            urdf_xml,
            thresholds,
            bool(self._model),
            self._settings["collision_reaction"],
            self._settings["collision_step_length"],
        )
        undo.callback(collisions.destroy)
        return collisions

    def _change(self, name: str, value: float) -> None:
        """Apply a parameter that changed at run time."""
        section, key = name.split(".")
        changed: Any = replace(getattr(self._config, section), **{key: value})
        self._config = replace(self._config, **{section: changed})
        if (now := self._configured) is None:
            return
        if name == "output.slow_rate":
            now.outputs.set_slow_rate(value)
        elif now.estimator.compensation is not None:
            now.estimator.compensation.gain = value

    def _open_file(self, estimator: Estimator, undo: ExitStack) -> ParameterFile | None:
        """Lock the file of identified parameters, and continue with those of the previous run if it exists."""
        name, log = self._settings["identified_parameters"], self.get_logger()
        if not (name and self._config.has_friction):
            return None
        file = undo.enter_context(closing(ParameterFile(name)))
        undo.callback(lambda: file.save_in_background(estimator.identified).result() if file.error else None)  # again
        if not file.path.exists():
            log.info(f"{name} does not exist yet: identified parameters will be written to it")
            return file
        notes = estimator.restore(load_parameters(name))
        for note in (f"identified parameters read from {name}", *notes):
            log.info(note)
        return file

    def _save(self, now: _Configured, file: ParameterFile) -> Future[None]:
        """Save identified parameters without blocking the only thread of the node."""
        now.next_save = time.monotonic() + self._settings["save_period"]
        now.saving = file.save_in_background(now.estimator.identified)
        return now.saving

    def _save_if_due(self, now: _Configured) -> None:
        """Save identified parameters where the period of saving is over and there are new ones."""
        due = 0.0 < self._settings["save_period"] and time.monotonic() > now.next_save
        waits = now.active and (now.saving is None or now.saving.done())
        if due and waits and now.file is not None and now.estimator.health.frames:
            self._save(now, now.file)

    def _listen(self, now: _Configured, undo: ExitStack) -> None:
        """Subscribe to the sensors, and to the commands if friction is compensated."""
        estimator = now.estimator
        readers = InputReader(self._config, estimator.joint_names).by_topic
        self.queue.is_waiting = lambda: estimator.is_waiting
        qos = RELIABLE_INPUT if self._settings["inputs_reliable"] else SENSOR_INPUT
        publish = partial(self._publish, now)
        for topic in topics.input_topics(self._config):
            joints = topic.name == self._config.output.joint_states_topic
            read = readers[topic.name]
            one = InputTopic(topic.name, read, estimator, self.queue, now.diagnostics, joints, publish, self.warn)
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

    def _publish(self, now: _Configured, estimate: FrictionEstimate) -> None:
        """Publish an estimate and its collisions, and note it in guard and diagnostics."""
        now.outputs.publish(estimate)
        if now.collisions is not None:
            now.collisions.step(estimate)
        if now.guard is not None:
            now.guard.published(estimate.stamp_ns)
        now_ns = self.get_clock().now().nanoseconds if self._ros_time else time.time_ns()
        now.diagnostics.published(estimate, now_ns)

    def warn(self, key: str, text: str) -> None:
        """Log a warning, at most one every few seconds for each key."""
        now = time.monotonic()
        if now >= self._warn_again.get(key, 0.0):
            self._warn_again[key] = now + _WARNING_PERIOD
            self.get_logger().warning(text)

    def _report(self) -> None:
        """Publish and log the state of the node: this timer runs from the start to the end of the process."""
        self._ros_time = self.get_clock().ros_time_is_active
        if self._configured is not None:
            self._save_if_due(self._configured)
        statuses = self._statuses(self._configured)
        publish_diagnostics(self, self._status_publisher, statuses)
        for status in statuses:
            if (
                status.level in (DiagnosticStatus.WARN, DiagnosticStatus.ERROR)
                and status.name.partition(": ")[2] in _LOGGED
            ):
                self.warn(status.name, status.message)
        if self._configured is not None:
            self._log_events(self._configured)

    def _statuses(self, now: _Configured | None) -> list[DiagnosticStatus]:
        """State of the node."""
        if now is None:
            return [self._status("estimates", DiagnosticStatus.WARN, self._missing())]
        statuses = [self._description_status(now)]
        if not now.active:
            return [*statuses, self._status("estimates", DiagnosticStatus.WARN, "no estimate: activate the node")]
        statuses += [*now.diagnostics.report(), self._outputs_status(now.outputs)]
        if now.file is not None:
            statuses.append(self._file_status(now.file))
        return statuses

    def _missing(self) -> str:
        """What a node waits for that is not configured."""
        if state_of(self)[0] == State.PRIMARY_STATE_FINALIZED:
            return "the node was shut down: end and start it to use it again"
        if self._own_urdf or self._urdf_on_topic:
            return "configure the node"
        then = "" if self._settings["autostart"] else ", and then to be configured"
        return f"waiting for the URDF on {self.resolve_topic_name(ROBOT_DESCRIPTION)}{then}"

    def _description_status(self, now: _Configured) -> DiagnosticStatus:
        topic, own = self.resolve_topic_name(ROBOT_DESCRIPTION), self._own_urdf
        if not now.differing_parts:
            return self._status("robot description", DiagnosticStatus.OK, f"URDF of {own or topic}")
        remedy = f"correct the one of {own} and start" if own else "to use it, clean up and configure"
        message = f"{topic} has another URDF than the one in use, {remedy} the node again: differences in "
        return self._status("robot description", DiagnosticStatus.WARN, message + choices(now.differing_parts))

    def _outputs_status(self, outputs: OutputPublishers) -> DiagnosticStatus:
        topic, others = outputs.rivals()
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

    def _publishers_of(self, topic: str) -> list[str]:
        """Full names of the nodes that publish a topic."""
        found = self.get_publishers_info_by_topic(self.resolve_topic_name(topic))
        return sorted(f"{info.node_namespace.rstrip('/')}/{info.node_name}" for info in found)

    def _log_events(self, now: _Configured) -> None:
        """Log each event of the estimator once."""
        health = now.estimator.health
        for event in health.events_since(now.events_logged):
            self.get_logger().warning(str(event))
        now.events_logged = health.event_count

    def _offer_services(self, now: _Configured, undo: ExitStack) -> None:
        """Offer ``~/reset``, and ``~/freeze`` and ``~/save_parameters`` where friction is estimated."""
        estimator = now.estimator

        def reset(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            estimator.reset()
            now.outputs.reset()
            return _answer(response, "filters restarted; identified parameters kept")

        def freeze_laws(request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
            estimator.frozen = request.data
            return _answer(response, "identification is frozen" if request.data else "identification continues")

        services = [self.create_service(Trigger, "~/reset", reset)]
        if estimator.config.has_friction:
            services.append(self.create_service(SetBool, "~/freeze", freeze_laws))
            services.append(self._offer_saving(now))
        for service in services:
            undo.callback(self.destroy_service, service)

    def _offer_saving(self, now: _Configured) -> Any:
        """Service that answers when the file is written, from the thread that has written it."""

        def save(answer: Callable[[bool, str], None]) -> None:
            if (goal := now.file) is None:
                answer(False, "set the parameter 'identified_parameters' to the file to write")
                return

            def written(saving: Future[None]) -> None:
                error = saving.exception()
                answer(error is None, str(error) if error else f"identified parameters written to {goal.path}")

            self._save(now, goal).add_done_callback(written)

        service = self.create_service(Trigger, "~/save_parameters", lambda request, response: response)
        answer_later(service, save)
        return service


def _answer(response: Trigger.Response | SetBool.Response, message: str) -> Trigger.Response | SetBool.Response:
    response.success, response.message = True, message
    return response
