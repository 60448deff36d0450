"""Collisions live: the node reads thresholds, publishes what is above them, and refuses those that do not fit."""

import numpy as np
import pytest

from benchmarks.faults.live import NodeProcess
from friction_estimator.collision.detector import Thresholds, torque_source
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import header_stamp
from test.collision.test_walk import without_uncertainty

from .conftest import TalkingRobot, robot_joints


def test_each_collision_is_one_message_with_the_stamp_of_its_joint_sample(robot, samples, workplace):
    names, file = robot_joints(samples, robot), workplace / "thresholds.yaml"
    values = np.full((2, 2, len(names)), np.inf)
    values[:, 0, names.index("r_knee")] = 1e-9  # as if everything hit the right leg
    Thresholds(names, values, torque_source(robot.config, None)).save(file)
    parameters = "inputs_reliable:=true", f"collision_thresholds:={file}", "collision_reaction:=rewind"
    process = NodeProcess(workplace, *parameters, namespace="hit")
    talking = TalkingRobot("hit", robot, samples)
    talking.listen(topics.FRICTION, topics.SIGMA, topics.COLLISION, topics.FOOTSTEPS)
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
        talking.spin_until(lambda: bool(talking.received[topics.FOOTSTEPS.name]), "footsteps")
        (footsteps,) = talking.received[topics.FOOTSTEPS.name]
        assert footsteps.header.stamp == message.header.stamp
        assert footsteps.header.frame_id == robot.config.feet[0].frame  # the left foot stands, the right one goes back
        assert footsteps.poses[0].position.y == pytest.approx(-0.2, abs=0.01)
        assert process.end() == 0, process.output
        assert status.message in process.output
    finally:
        process.close()
        talking.close()


def test_with_mob_net_the_wrench_is_published_for_base_and_foot_while_the_limb_collides(robot, samples, workplace):
    pytest.importorskip("safetensors", reason="safetensors is not installed: models cannot be written or read")
    names, model, file = robot_joints(samples, robot), workplace / "model.safetensors", workplace / "of_model.yaml"
    without_uncertainty(robot).save(model)
    values = np.full((2, 2, len(names)), np.inf)
    values[:, 0, names.index("r_knee")] = 1e-9
    Thresholds(names, values, torque_source(robot.config, model)).save(file)
    parameters = f"collision_thresholds:={file}", f"mob_net_model:={model}", "collision_reaction:=compliant"
    process = NodeProcess(workplace, "inputs_reliable:=true", *parameters, namespace="wrench")
    talking = TalkingRobot("wrench", robot, samples)
    talking.listen(topics.FRICTION, topics.SIGMA, topics.COLLISION, topics.COLLISION_WRENCH, topics.LIMB_WRENCH)
    talking.listen(topics.FOOTSTEPS)
    try:
        talking.connect()
        talking.send(1400)
        talking.await_estimate(talking.sent[-1])
        of_base, of_limb = (talking.received[topic.name] for topic in (topics.COLLISION_WRENCH, topics.LIMB_WRENCH))
        talking.spin_until(lambda: len(of_base) > 100 and len(of_limb) == len(of_base), "wrenches")
        assert {one.header.frame_id for one in of_base} == {"base_link"}
        assert {one.header.frame_id for one in of_limb} == {robot.config.feet[1].frame}
        assert header_stamp(talking.received[topics.COLLISION.name][0]) == header_stamp(of_base[0])
        forces = [np.linalg.norm([f.x, f.y, f.z]) for f in (one.wrench.force for one in (of_base[0], of_limb[0]))]
        assert forces[0] == pytest.approx(forces[1]) and forces[0] > 0.0
        talking.spin_until(lambda: bool(talking.received[topics.FOOTSTEPS.name]), "footsteps")
        assert len(talking.received[topics.FOOTSTEPS.name][0].poses) == 3
        assert process.end() == 0, process.output
    finally:
        process.close()
        talking.close()


def test_a_reaction_that_needs_mob_net_ends_the_node_without_it(robot, samples, workplace):
    names, file = robot_joints(samples, robot), workplace / "without.yaml"
    Thresholds(names, np.ones((2, 2, len(names))), torque_source(robot.config, None)).save(file)
    process = NodeProcess(workplace, f"collision_thresholds:={file}", "collision_reaction:=compliant")
    try:
        assert process.wait() == 1
        assert (
            "collision_reaction = 'compliant' needs the wrench on the base, which only a MOB-Net gives"
            in process.output
        )
    finally:
        process.close()


def test_thresholds_of_another_source_end_the_node_with_the_reason(robot, samples, workplace):
    names, file = robot_joints(samples, robot), workplace / "of_a_model.yaml"
    Thresholds(names, np.ones((2, 2, len(names))), "the MOB-Net model 0123456789abcdef").save(file)
    process = NodeProcess(workplace, f"collision_thresholds:={file}")
    try:
        assert process.wait() == 1
        assert "external torque of the MOB-Net model 0123456789abcdef, not of the observer kalman" in process.output
    finally:
        process.close()
