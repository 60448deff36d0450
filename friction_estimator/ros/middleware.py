"""Quality of service of every topic, message classes by name, diagnostic statuses, and all that rclpy keeps private.

rclpy has no public interface for subscriptions without an executor, the state of a managed node, requests for wrong
transitions, parameters that were given, and answers of a service that come later.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.duration import Duration
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

_LONGEST_TEXT = 4000
"""Largest number of characters of a text in ``/diagnostics``: names come from messages, whatever they hold."""

_SENSOR_DEPTH = 2000
"""Two seconds at 1 kHz, so that no message is lost in a pause of the process."""


def _qos(depth: int, reliability: ReliabilityPolicy = ReliabilityPolicy.RELIABLE, **others: Any) -> QoSProfile:
    return QoSProfile(reliability=reliability, history=HistoryPolicy.KEEP_LAST, depth=depth, **others)


SENSOR_INPUT = _qos(_SENSOR_DEPTH, ReliabilityPolicy.BEST_EFFORT)
"""Best effort matches any publisher."""
RELIABLE_INPUT = _qos(_SENSOR_DEPTH)
"""Matches reliable publishers only: messages that the transport dropped are sent again."""
SENSOR_OUTPUT = _qos(_SENSOR_DEPTH)
"""Of simulator and bag player: both reliable and best-effort subscribers match."""
OUTPUT = _qos(10)
"""Of results at a low rate."""
FAST_OUTPUT = _qos(1000)
"""Of results at the joint-state rate: a recorder loses none in a pause of a second."""
RECORDER = _qos(5000)
"""Of subscriptions of the recorder to reliable publishers of this package."""
LATCHED = _qos(1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""Of robot_description: late subscribers get the last message."""
HEARTBEAT_PERIOD = 0.1  # [s]
HEARTBEAT = _qos(1, deadline=Duration(nanoseconds=500_000_000))
"""Of the heartbeat: a subscription may ask for a deadline of half a second or more, and so be called when it stops."""


def message_class(type_name: str) -> Any:
    """Class of a message such as ``sensor_msgs/msg/JointState``."""
    package, _, name = type_name.split("/")
    return getattr(importlib.import_module(f"{package}.msg"), name)


class SubscriptionOnDemand:
    """Subscription whose messages wait in the middleware until they are fetched; no executor wakes for them.

    Parameters
    ----------
    node : owner
    message_type, topic, qos, event_callbacks : as for ``Node.create_subscription``
    """

    def __init__(
        self, node: Node, message_type: type, topic: str, qos: QoSProfile, event_callbacks: SubscriptionEventCallbacks
    ) -> None:
        self._node, self._type = node, message_type
        self._subscription = node.create_subscription(
            message_type, topic, lambda raw: None, qos, event_callbacks=event_callbacks, raw=True
        )
        node._subscriptions.remove(self._subscription)  # where executors look for subscriptions
        self._take = self._subscription.handle.take_message

    def fetch(self) -> bytes | None:
        """The oldest message, serialized; None if there is none."""
        taken = self._take(self._type, True)
        return None if taken is None else taken[0]

    def fetch_all(self) -> Iterator[tuple[int, bytes]]:
        """Time of arrival [ns] and serialized form of all messages, oldest first."""
        while (taken := self._take(self._type, True)) is not None:
            yield taken[1]["received_timestamp"], taken[0]

    def destroy(self) -> None:
        """End the subscription."""
        self._node._subscriptions.append(self._subscription)
        self._node.destroy_subscription(self._subscription)


def parameter_overrides(node: Node) -> Mapping[str, Parameter]:
    """Parameters that launch file, file or command line give to a node, declared or not."""
    overrides: Mapping[str, Parameter] = node._parameter_overrides
    return overrides


def state_of(node: LifecycleNode) -> tuple[int, str]:
    """Number and name of the state of a managed node."""
    state: tuple[int, str] = node._state_machine.current_state
    return state


def refuse_wrong_transitions(node: LifecycleNode) -> None:
    """Answer a request for a transition that the state of a node does not have: rclpy would end the process."""
    service = node._service_change_state
    change_state = service.callback

    def change_state_or_refuse(request: Any, response: Any) -> Any:
        try:
            return change_state(request, response)
        except RuntimeError as error:
            node.get_logger().error(f"transition {request.transition.label or request.transition.id} refused: {error}")
            response.success = False
            return response

    service.callback = change_state_or_refuse


def answer_later(service: Any, work: Callable[[Callable[[bool, str], None]], None]) -> None:
    """Let ``work`` answer the requests of a service, with success and message, from any thread and at any time.

    The executors of rclpy send the response that a callback returns, through ``Service.send_response``.
    """
    send = service.send_response

    def begin(response: Any, header: object) -> None:
        def answer(success: bool, message: str) -> None:
            response.success, response.message = success, message
            send(response, header)

        work(answer)

    service.send_response = begin


def diagnostic_status(name: str, level: bytes, message: str, values: Mapping[str, object]) -> DiagnosticStatus:
    """One status of ``/diagnostics``: its name starts with that of the node; values as text by key, long texts cut."""
    pairs = [KeyValue(key=key, value=_cut(str(value))) for key, value in values.items()]
    hardware = "friction_estimator"
    return DiagnosticStatus(name=name, level=level, message=_cut(message), hardware_id=hardware, values=pairs)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]} ..."


def publish_diagnostics(node: Node, publisher: Publisher, statuses: Sequence[DiagnosticStatus]) -> None:
    """Publish statuses with the time of the node."""
    message = DiagnosticArray(status=statuses)
    message.header.stamp = node.get_clock().now().to_msg()
    publisher.publish(message)
