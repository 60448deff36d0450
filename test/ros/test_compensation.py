"""A node that compensates: torque while commands come, zero torque as the last message whatever ends them."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import numpy as np
import pytest
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.parameter import Parameter
from rclpy.parameter_client import AsyncParameterClient
from sensor_msgs.msg import JointState

from benchmarks.faults.live import NodeProcess
from friction_estimator.io.parameters import save_parameters
from friction_estimator.io.robot import load_robot
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import header_stamp
from friction_estimator.ros.middleware import SENSOR_OUTPUT

from .conftest import TalkingRobot, robot_joints

COULOMB, VISCOUS, COMMAND = 0.5, 1.0, 0.7
GAIN = 0.05
"""Small: the robot does not move as it is commanded, so that the torque is not passive in all joints."""
LIMIT = 1.1 * GAIN
TIME_OUT = 0.5
TOPIC = topics.COMPENSATION.name


class CommandedRobot(TalkingRobot):
    """A robot whose controller commands one velocity in all joints, with the stamp of the joint states."""

    def start_commands(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.publishers["joint_commands"] = self.node.create_publisher(JointState, "joint_commands", SENSOR_OUTPUT)

    def command(self, messages: dict[str, object]) -> None:
        velocity = [COMMAND] * len(self.names)
        header = messages["joint_states"].header
        messages["joint_commands"] = JointState(header=header, name=list(reversed(self.names)), velocity=velocity)

    def sent_and_answered(self, count: int, commands: bool) -> np.ndarray:
        """Send samples, wait for the torque of the last one, and return it (n,)."""
        self.send(count, self.command if commands else None)

        def here() -> bool:
            newest = self.received[TOPIC][-1:]
            return bool(newest) and header_stamp(newest[0]) == self.sent[-1]

        self.spin_until(here, "torque of the newest sample")
        return self.torques(-1)[0]

    def torques(self, since: int) -> np.ndarray:
        return np.array([message.effort for message in self.received[TOPIC][since:]])


def known_law(names: tuple[str, ...]) -> IdentifiedParameters:
    n = len(names)
    return IdentifiedParameters(
        joint_names=names,
        law_names=("coulomb_viscous",) * n,
        values=np.tile([COULOMB, VISCOUS], (n, 1)),
        covariance=np.tile(1e-8 * np.eye(2), (n, 1, 1)),
        residual_variance=np.full(n, 1e-6),
        measurement_variance=np.full(n, 1e-4),
        samples=np.full(n, 1e6),
    )


@pytest.fixture
def commanded(robot, samples, tmp_path) -> Iterator[tuple[CommandedRobot, NodeProcess]]:
    names = robot_joints(samples, robot)
    save_parameters(tmp_path / "law.yaml", known_law(names))
    settings = {"enabled": "true", "velocity": "desired", "gain": GAIN, "limit": LIMIT, "timeout": TIME_OUT}
    own = ("inputs_reliable:=true", "observer:=momentum", f"identified_parameters:={tmp_path}/law.yaml")
    process = NodeProcess(
        tmp_path, *own, *(f"compensation.{key}:={value}" for key, value in settings.items()),
        namespace="compensation",
    )  # fmt: skip
    talking = CommandedRobot("compensation", load_robot("suralp"), samples)
    talking.start_commands(names)
    talking.listen(topics.FRICTION, topics.SIGMA, topics.COMPENSATION)
    try:
        talking.connect()
        yield talking, process
    finally:
        process.close()
        talking.close()


def test_torque_follows_the_commands_and_ends_with_zero(commanded):
    talking, process = commanded
    talking.sent_and_answered(200, commands=True)
    received = talking.received[TOPIC]
    assert [header_stamp(message) for message in received] == talking.estimated() == talking.sent
    torque = talking.torques(-50)
    assert torque.max() <= LIMIT  # 0.5 + 0.7 times the gain would be more
    np.testing.assert_allclose(torque.max(axis=1), LIMIT, rtol=0.05)
    assert (talking.sent_and_answered(600, commands=False) == 0.0).all()
    assert [header_stamp(message) for message in received] == talking.sent  # zero torques are the heartbeat
    talking.await_report(
        lambda d: "compensation" in d and "no desired velocity" in d["compensation"].message, "no commands"
    )

    assert talking.sent_and_answered(100, commands=True).max() > 0.9 * LIMIT
    talking.spin_until(lambda: header_stamp(received[-1]) > talking.sent[-1], "zero torque in the silence")
    assert (talking.torques(-1) == 0.0).all()

    client = AsyncParameterClient(talking.node, "friction_estimator")
    assert client.wait_for_services(10.0)
    future = client.set_parameters([Parameter("compensation.gain", value=0.5 * GAIN)])
    talking.spin_until(future.done, "gain")
    assert future.result().results[0].successful
    half = talking.sent_and_answered(100, commands=True)
    np.testing.assert_allclose(half.max(), 0.5 * GAIN * (COULOMB + VISCOUS * COMMAND), rtol=0.05)

    for transition in (Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_ACTIVATE):
        request = ChangeState.Request(transition=Transition(id=transition))
        assert talking.call(ChangeState, "change_state", request).success
        assert (talking.torques(-1) == 0.0).all()
    talking.connect()
    np.testing.assert_allclose(talking.sent_and_answered(100, commands=True).max(), half.max(), rtol=0.05)

    assert process.end(signal.SIGHUP) == 0, process.output  # the terminal was closed
    talking.spin_until(lambda: bool((talking.torques(-1) == 0.0).all()), "zero torque at the end")
    assert np.isfinite(talking.torques(0)).all() and np.abs(talking.torques(0)).max() <= LIMIT
