"""Collisions live: the node reads thresholds, publishes what is above them, and refuses those that do not fit."""

import numpy as np

from benchmarks.faults.live import NodeProcess
from friction_estimator.collision.thresholds import Thresholds, torque_source
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import header_stamp

from .conftest import TalkingRobot, robot_joints


def test_each_collision_is_one_message_with_the_stamp_of_its_joint_sample(robot, samples, workplace):
    names, file = robot_joints(samples, robot), workplace / "thresholds.yaml"
    values = np.full((2, 2, len(names)), np.inf)
    values[:, 0, names.index("r_knee")] = 1e-9  # as if everything hit the right leg
    Thresholds(names, values, torque_source(robot.config, None)).save(file)
    parameters = "inputs_reliable:=true", f"collision_thresholds:={file}"
    process = NodeProcess(workplace, *parameters, namespace="hit")
    talking = TalkingRobot("hit", robot, samples)
    talking.listen(topics.FRICTION, topics.SIGMA, topics.COLLISION)
    try:
        talking.connect()
        talking.send(1400)
        talking.await_estimate(talking.sent[-1])
        talking.spin_until(lambda: bool(talking.received[topics.COLLISION.name]), "collision")
        (message,) = talking.received[topics.COLLISION.name]
        (status,) = message.status
        assert header_stamp(message) in talking.sent[1000:]
        assert {item.key: item.value for item in status.values}["limb"] == "r_hip_yaw to r_ankle_roll"
        assert "external torque of r_knee is" in status.message
        assert process.end() == 0, process.output
        assert status.message in process.output
    finally:
        process.close()
        talking.close()


def test_thresholds_of_another_source_end_the_node_with_the_reason(robot, samples, workplace):
    names, file = robot_joints(samples, robot), workplace / "of_a_model.yaml"
    Thresholds(names, np.ones((2, 2, len(names))), "the MOB-Net model 0123456789abcdef").save(file)
    process = NodeProcess(workplace, f"collision_thresholds:={file}")
    try:
        assert process.wait() == 1
        assert "external torque of the MOB-Net model 0123456789abcdef, not of the observer kalman" in process.output
    finally:
        process.close()
