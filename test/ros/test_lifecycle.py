"""Claims about transitions, signals and saved parameters of the managed node."""

from __future__ import annotations

import random
import signal
import subprocess
import sys

import pytest
import yaml
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from benchmarks.faults.live import NodeProcess
from friction_estimator.estimation.visited_velocities import VisitedVelocities
from friction_estimator.io.parameters import load_parameters
from friction_estimator.io.robot import robot_file
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.messages import topics
from friction_estimator.ros.middleware import HEARTBEAT, LATCHED, OUTPUT

from .conftest import TalkingRobot


@pytest.fixture
def processes():
    started = []
    yield started
    for process in started:
        process.close()


@pytest.fixture
def talking(robot, samples):
    talking = TalkingRobot("lifecycle", robot, samples)
    talking.listen(topics.FRICTION, topics.SIGMA, topics.COULOMB)
    yield talking
    talking.close()


def test_identified_parameters_survive_signals_and_restarts(talking, processes, tmp_path):
    saved = tmp_path / "identified.yaml"
    options = (f"identified_parameters:={saved}", "inputs_reliable:=true")
    first = NodeProcess(tmp_path, *options, namespace="lifecycle")
    processes.append(first)
    talking.connect()
    talking.send(600)
    talking.await_estimate(talking.sent[-1])
    assert talking.call(Trigger, "save_parameters", Trigger.Request()).success
    by_service = load_parameters(saved)
    saved.unlink()
    assert first.end(signal.SIGQUIT) == 0, first.output
    by_shutdown = load_parameters(saved)
    assert by_service.values.tolist() == by_shutdown.values.tolist()

    second = NodeProcess(tmp_path, *options, namespace="lifecycle")
    processes.append(second)
    talking.received[topics.COULOMB.name].clear()
    talking.spin_until(lambda: "identified parameters read" in second.output, "second start")
    talking.connect()
    talking.send(30)
    talking.await_estimate(talking.sent[-1])
    newest = talking.received[topics.COULOMB.name][0]
    visited = VisitedVelocities(JointLaws(by_shutdown.law_names))
    visited.restore(by_shutdown, range(len(by_shutdown.values)), range(len(by_shutdown.values)))
    coulomb = (visited.rows[0] * by_shutdown.values).sum(axis=1)
    assert list(newest.effort) == pytest.approx(coulomb.tolist(), abs=0.05)
    assert any(abs(value) > 0.1 for value in newest.effort)
    assert second.end(signal.SIGTERM) == 0, second.output


def test_parameters_are_saved_again_and_again_so_that_a_killed_process_loses_little(talking, processes, tmp_path):
    saved = tmp_path / "identified.yaml"
    options = (f"identified_parameters:={saved}", "save_period:=1.0", "inputs_reliable:=true")
    first = NodeProcess(tmp_path, *options, namespace="lifecycle")
    processes.append(first)
    talking.connect()

    second = NodeProcess(tmp_path, *options, namespace="other")
    processes.append(second)
    assert second.wait() == 1
    assert f"{saved}: it is in use by process {first.process.pid}" in second.output

    rival = talking.node.create_publisher(JointState, topics.FRICTION.name, 1)
    talking.send(300)
    name = "identified parameters"
    talking.await_report(lambda d: name in d and d[name].message.startswith("written"), "saved")
    talking.spin_until(lambda: bool(load_parameters(saved).values.any()), "saved again, with something identified")
    talking.await_report(
        lambda d: "1 other nodes publish on /lifecycle/joint_friction" in d["outputs"].message, "rival"
    )
    talking.node.destroy_publisher(rival)
    first.close()
    assert load_parameters(saved).values.any()
    assert not list(tmp_path.glob("*.previous.yaml"))

    third = NodeProcess(tmp_path, *options, namespace="lifecycle")
    processes.append(third)
    talking.spin_until(lambda: "identified parameters read" in third.output, "third start")
    talking.spin_until(lambda: "estimating" in third.output, "third start")
    assert third.end() == 0, third.output


def test_parameters_that_cannot_be_saved_at_the_end_are_an_error(talking, processes, tmp_path):
    folder = tmp_path / "results"
    options = (f"identified_parameters:={folder}/identified.yaml", "inputs_reliable:=true")
    node = NodeProcess(tmp_path, *options, namespace="lifecycle")
    processes.append(node)
    talking.connect()
    talking.send(50)
    talking.await_estimate(talking.sent[-1])
    folder.rename(tmp_path / "elsewhere")
    folder.write_text("no folder any more")
    answer = talking.call(Trigger, "save_parameters", Trigger.Request())
    assert not answer.success and "cannot write the parameters to" in answer.message
    assert node.end() == 1
    assert "error: cannot write the parameters to" in node.output


def test_a_managed_node_finds_errors_when_it_is_configured_and_keeps_its_law_when_it_pauses(
    talking, processes, tmp_path, robot
):
    urdf, law, urdf_xml = tmp_path / "robot.urdf", tmp_path / "folder" / "law.yaml", robot.urdf_xml
    options = (f"robot.urdf:={urdf}", f"identified_parameters:={law}", "autostart:=false", "inputs_reliable:=true")
    node = NodeProcess(tmp_path, *options, namespace="lifecycle")
    processes.append(node)

    def change(transition: int) -> bool:
        return talking.call(
            ChangeState, "change_state", ChangeState.Request(transition=Transition(id=transition))
        ).success

    def estimates() -> bool:
        talking.connect()
        talking.send(200)
        talking.await_estimate(talking.sent[-1])
        return True

    assert not change(Transition.TRANSITION_CONFIGURE)
    assert "no URDF" in node.output
    urdf.write_text(urdf_xml.replace("l_sole", "l_soul"))
    assert not change(Transition.TRANSITION_CONFIGURE)
    assert "'l_sole'" in node.output
    urdf.write_text(urdf_xml)
    law.parent.write_text("in the way")
    assert not change(Transition.TRANSITION_CONFIGURE)
    assert "cannot write the parameters to" in node.output
    law.parent.unlink()
    assert change(Transition.TRANSITION_CONFIGURE)

    assert change(Transition.TRANSITION_ACTIVATE) and estimates()
    assert not change(Transition.TRANSITION_ACTIVATE) and not change(99)
    count = len(talking.estimated())
    assert change(Transition.TRANSITION_DEACTIVATE)
    learned = load_parameters(law).values.tolist()
    talking.await_report(lambda d: "activate the node" in d["estimates"].message, "inactive")
    talking.send(50)
    assert talking.call(Trigger, "save_parameters", Trigger.Request()).success
    assert load_parameters(law).values.tolist() == learned and len(talking.estimated()) == count
    assert change(Transition.TRANSITION_ACTIVATE) and estimates()

    assert change(Transition.TRANSITION_DEACTIVATE) and change(Transition.TRANSITION_CLEANUP)
    assert change(Transition.TRANSITION_CONFIGURE)
    assert f"identified parameters read from {law}" in node.output
    assert change(Transition.TRANSITION_ACTIVATE) and estimates()
    assert change(Transition.TRANSITION_ACTIVE_SHUTDOWN)
    assert node.end(signal.SIGTERM) == 0, node.output
    assert "Traceback" not in node.output


def test_any_order_of_transitions_under_traffic_leaves_a_node_that_works_and_ends_with_exit_code_0(
    talking, processes, tmp_path
):
    node = NodeProcess(tmp_path, "observer:=momentum", "compensation.enabled:=true", namespace="lifecycle")
    processes.append(node)
    talking.connect()
    client = talking.node.create_client(ChangeState, "friction_estimator/change_state")
    assert client.wait_for_service(30.0)
    beats: list[State] = []
    talking.node.create_subscription(State, "friction_estimator/heartbeat", beats.append, HEARTBEAT)

    def change(transition: int) -> None:
        future = client.call_async(ChangeState.Request(transition=Transition(id=transition)))
        while not future.done():
            assert node.process.poll() is None, node.output
            talking.send(1)  # about 1 kHz

    down_and_up = [4, 2, 1, 3]  # deactivate, cleanup, configure, activate
    orders = [random.Random(seed).choices([1, 2, 3, 4, 99], k=6) for seed in range(5)]
    for transition in [*down_and_up * 15, *sum(orders, [])]:
        change(transition)
    for transition in (4, 2, 1, 3):  # wherever it is, it comes back
        change(transition)
    talking.connect()
    talking.send(50)
    talking.await_estimate(talking.sent[-1])
    talking.spin_until(lambda: beats and beats[-1].label == "active", "heartbeat")
    assert node.end(signal.SIGINT) == 0, node.output
    assert "Traceback" not in node.output


def test_freezing_pauses_identification_and_reset_keeps_it(talking, processes, tmp_path):
    saved = tmp_path / "identified.yaml"
    options = (f"identified_parameters:={saved}", "inputs_reliable:=true")
    node = NodeProcess(tmp_path, *options, namespace="lifecycle")
    processes.append(node)
    talking.connect()

    def law_after(count: int) -> list:
        talking.send(count)
        talking.await_estimate(talking.sent[-1])
        assert talking.call(Trigger, "save_parameters", Trigger.Request()).success
        return load_parameters(saved).values.tolist()

    law_after(300)
    assert talking.call(SetBool, "freeze", SetBool.Request(data=True)).success
    frozen = law_after(100)
    assert talking.call(Trigger, "reset", Trigger.Request()).success
    assert law_after(200) == frozen
    assert talking.call(SetBool, "freeze", SetBool.Request(data=False)).success
    assert law_after(300) != frozen
    assert node.end() == 0, node.output


def test_every_event_is_logged_once_however_fast_the_next_one_comes(talking, processes, tmp_path):
    """No effort, the same stamp three times and a gap, all before the first report."""
    node = NodeProcess(tmp_path, "inputs_reliable:=true", namespace="lifecycle")
    processes.append(node)
    talking.connect()
    for _ in range(3):
        talking.send(1, lambda messages: setattr(messages["joint_states"], "effort", []))
        talking.stamp_ns = 1_000_000_000
    talking.stamp_ns += 2_000_000_000
    talking.send(50)
    talking.await_estimate(talking.sent[-1])
    assert node.end(signal.SIGINT) == 0, node.output
    log = node.output
    assert [log.count(text) for text in ("carry no effort", "do not advance", "no joint states for")] == [1, 1, 1], log


def test_the_urdf_may_come_on_the_topic_and_a_broken_one_is_named(talking, processes, tmp_path, robot):
    process = NodeProcess(tmp_path, "robot.urdf:=''", "inputs_reliable:=true", namespace="lifecycle")
    processes.append(process)
    volatile = talking.node.create_publisher(String, "robot_description", OUTPUT)
    talking.spin_until(lambda: "offers another QoS (DURABILITY" in process.output, "volatile publisher")
    talking.node.destroy_publisher(volatile)
    publisher = talking.node.create_publisher(String, "robot_description", LATCHED)
    talking.spin_until(lambda: publisher.get_subscription_count() == 1, "waiting node")
    publisher.publish(String(data="<robot name='x'><link name='a'></robot>"))
    talking.spin_until(lambda: "not valid XML" in process.output, "refusal")
    publisher.publish(String(data=robot.urdf_xml))
    talking.connect()
    talking.send(50)
    talking.await_estimate(talking.sent[-1])
    publisher.publish(String(data=robot.urdf_xml.replace('axis xyz="0 1 0"', 'axis xyz="0 -1 0"', 1)))
    talking.spin_until(lambda: "another URDF than the one in use" in process.output, "name of the difference")
    assert process.end() == 0, process.output
    assert "waiting for the URDF on /lifecycle/robot_description" in process.output


BAD_STARTS = {
    "typing error": ({"momentum": {"gian": 30.0}}, "unknown parameter 'momentum.gian' (did you mean 'momentum.gain'?)"),
    "typing error of the node": ({"identified_paramters": "x"}, "did you mean 'identified_parameters'?"),
    "out of range": ({"compensation": {"timeout": -1.0}}, "timeout = -1.0 s is out of range"),
    "foot frame": ({"feet": {"l_foot": {"frame": "l_soul"}}}, "'l_soul'"),
    "no folder": ({"identified_parameters": "/dev/null/law.yaml"}, "cannot write the parameters to /dev/null/law.yaml"),
    "no such URDF": ({"robot": {"urdf": "nobody.urdf"}}, "no URDF 'nobody.urdf'"),
}


START_ONE_AFTER_THE_OTHER = """
import sys
from friction_estimator.ros.executables import main

robot, *overrides = sys.argv[1:]
for file in overrides:
    code = main(["estimator_node", "--ros-args", "--params-file", robot, "--params-file", file])
    print(f"exit code {code}", file=sys.stderr, flush=True)
"""


def test_what_cannot_work_ends_with_one_line_and_exit_code_1(tmp_path):
    files = [tmp_path / f"{kind}.yaml" for kind in BAD_STARTS]
    for file, (section, _) in zip(files, BAD_STARTS.values(), strict=True):
        file.write_text(yaml.safe_dump({"/**": {"ros__parameters": section}}))
    command = [sys.executable, "-c", START_ONE_AFTER_THE_OTHER, robot_file("suralp"), *files]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
    foreign = ("[INFO]", "RTPS_TRANSPORT_SHM")  # the latter is about ports of other programs on this machine
    lines = [line for line in ended.stdout.splitlines() if not any(words in line for words in foreign)]
    assert lines[1::2] == ["exit code 1"] * len(BAD_STARTS), ended.stdout
    for line, (_, reason) in zip(lines[::2], BAD_STARTS.values(), strict=True):
        assert line.startswith("error: ") and reason in line
