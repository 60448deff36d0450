"""Two robots at once, each in its namespace: one has the whole pipeline in one node, the other two nodes for it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from nav_msgs.msg import Odometry
from std_srvs.srv import SetBool, Trigger

from benchmarks.faults.live import NodeProcess
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import header_stamp

from .conftest import TalkingRobot

SINGLE, SPLIT = "single_robot", "split_robot"
SAMPLES = 600


@pytest.fixture(scope="module")
def robots(robot, samples, workplace) -> Iterator[dict[str, TalkingRobot]]:
    """Both robots after the same samples."""
    reliable = "inputs_reliable:=true"
    processes = [
        NodeProcess(workplace, reliable, namespace=SINGLE),
        NodeProcess(workplace, reliable, "stages:=friction", namespace=SPLIT),
        NodeProcess(workplace, reliable, "stages:=base_state", namespace=SPLIT, name="base_state"),
    ]
    talking = {name: TalkingRobot(name, robot, samples) for name in (SINGLE, SPLIT)}
    try:
        for one in talking.values():
            one.listen(topics.FRICTION, topics.SIGMA, topics.EXTERNAL_TORQUE, topics.BASE_STATE, topics.CONTACT_PHASE)
            one.connect()
        talking[SPLIT].spin_until(lambda: all_heard(talking[SPLIT]), "both nodes of the split robot")
        for one in talking.values():
            one.send(SAMPLES)
            one.await_estimate(one.sent[-1])
        newest = [one.received[topics.BASE_STATE.name] for one in talking.values()]
        talking[SPLIT].spin_until(lambda: len(newest[1]) >= len(newest[0]) > 0, "base states of the split robot")
        yield talking
        assert [process.end() for process in processes] == [0, 0, 0], [process.output for process in processes]
    finally:
        for process in processes:
            process.close()
        for one in talking.values():
            one.close()


def all_heard(robot: TalkingRobot) -> bool:
    return all(publisher.get_subscription_count() == 2 for publisher in robot.publishers.values())


def messages(robot: TalkingRobot, topic: topics.Topic) -> dict[int, object]:
    return {header_stamp(message): message for message in robot.received[topic.name]}


def test_both_graphs_say_the_same_of_every_sample(robots):
    for topic in (topics.FRICTION, topics.SIGMA, topics.EXTERNAL_TORQUE):
        single, split = (messages(robots[name], topic) for name in (SINGLE, SPLIT))
        assert single.keys() == split.keys() and len(single) >= (SAMPLES if topic is not topics.EXTERNAL_TORQUE else 10)
        efforts = [np.array([one[stamp].effort for stamp in sorted(one)]) for one in (single, split)]
        np.testing.assert_array_equal(*efforts)


def test_base_states_are_the_same_whichever_node_sends_them(robots):
    single, split = (messages(robots[name], topics.BASE_STATE) for name in (SINGLE, SPLIT))
    common = single.keys() & split.keys()
    assert len(common) >= 10
    for stamp in common:
        one, other = single[stamp], split[stamp]
        assert isinstance(one, Odometry) and one == other
    phases = [
        [message.data for message in robots[name].received[topics.CONTACT_PHASE.name]] for name in (SINGLE, SPLIT)
    ]
    assert set(phases[0]) == set(phases[1])


def test_each_node_of_the_split_graph_offers_its_own_topics_and_services(robots):
    node = robots[SPLIT].node
    published = {
        name: {topic for topic, _ in node.get_publisher_names_and_types_by_node(name, f"/{SPLIT}")}
        for name in ("friction_estimator", "base_state")
    }
    base_topics = {f"/{SPLIT}/{topic.name}" for topic in topics.OF_BASE}
    assert base_topics <= published["base_state"] and not base_topics & published["friction_estimator"]
    assert not any("joint_friction" in topic for topic in published["base_state"])
    offered = dict(node.get_service_names_and_types_by_node("base_state", f"/{SPLIT}"))
    assert offered.get(f"/{SPLIT}/base_state/reset") == [f"{Trigger.__module__.split('.')[0]}/srv/Trigger"]
    assert f"/{SPLIT}/base_state/freeze" not in offered
    assert node.create_client(SetBool, "friction_estimator/freeze").wait_for_service(10.0)
