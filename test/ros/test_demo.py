"""Claims about the demo: a live run that loses no sample, its bag, its report, and its replay."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.faults.live import TIME_OUT, NodeProcess
from friction_estimator.io.bags.arrays import read_recording
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.bags.replay import replay_bag
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import header_stamp
from friction_estimator.messages.recording import Recording

from .conftest import TalkingRobot

LOAD = re.compile(
    r"against real time ([\d.]+) s; cores used: recorder and display ([\d.]+), estimator ([\d.]+), "
    r"simulation ([\d.]+), together ([\d.]+) of (\d+)"
)
COUNTS = re.compile(r"joint states sent (\d+), received (\d+), estimated (\d+), lost (\d+)")


def start_demo(output: Path, duration: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "friction_estimator", "demo", "--headless"]
    command += ["--duration", str(duration), "--output", str(output), "--observer", "momentum"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def demo(workplace: Path) -> tuple[Path, str]:
    """A demo of 1.2 simulated seconds: its folder and what it said on stdout."""
    folder = workplace / "demo"
    process = start_demo(folder, 1.2)
    try:
        said, complained = process.communicate(timeout=4 * TIME_OUT)
    finally:
        process.kill()
    assert process.returncode == 0, complained
    return folder, said


@pytest.fixture(scope="module")
def live(demo: tuple[Path, str]) -> Recording:
    return read_recording(demo[0] / "run")


def test_the_demo_loses_no_sample_and_leaves_bag_and_report(demo, live, robot):
    folder, said = demo
    assert [int(count) for count in COUNTS.search(said).groups()] == [1200, 1200, 1200, 0]
    assert str(folder / "run") in said and str(folder / "report.html") in said
    assert "<html" in (folder / "report.html").read_text(encoding="utf-8")[:500]
    assert live.friction.shape == (1200, 12) and live.truth is not None
    assert live.description.observer == "momentum" and live.description.robot == "suralp"


def test_the_demo_reports_its_delay_and_the_cores_that_its_processes_used(demo):
    _, *cores, together, available = (float(number) for number in LOAD.search(demo[1]).groups())
    assert min(cores) > 0.0
    assert together == pytest.approx(sum(cores), abs=0.03)
    assert together < available + 0.1


def test_every_topic_of_inputs_results_and_truth_is_in_the_bag(demo, robot):
    reader = BagReader(demo[0] / "run")
    of = (topics.input_topics, topics.result_topics, topics.truth_topics)
    wanted = {f"/{topic.name}": topic.type for group in of for topic in group(robot.config)}
    assert wanted.items() <= reader.topics.items()
    assert {message.topic for message in reader.messages()} >= {*wanted, "/diagnostics"}


def test_live_friction_follows_the_truth(live):
    settled = live.time > 0.5
    error = np.sqrt(np.mean((live.friction - live.truth)[settled] ** 2, axis=0))
    spread = np.sqrt(np.mean(live.truth[settled] ** 2, axis=0))
    assert (error < 0.75 * spread).all(), error / spread


def test_replay_of_the_recorded_run_gives_the_live_numbers(demo, live, robot, workplace):
    from friction_estimator.io.robot import load_robot

    momentum = load_robot("suralp", {"observer": "momentum"})
    replay_bag(demo[0] / "run", workplace / "replayed", momentum.config, momentum.urdf_xml)
    again = read_recording(workplace / "replayed")
    for name in ("friction", "sigma", "position", "velocity", "measured"):
        np.testing.assert_allclose(getattr(again, name), getattr(live, name), atol=1e-9, rtol=0.0, err_msg=name)
    for name in ("model", "coulomb", "viscous", "coulomb_sigma", "viscous_sigma", "external_torque"):
        ours, theirs = getattr(again, name), getattr(live, name)
        np.testing.assert_allclose(ours.values, theirs.values, atol=1e-9, rtol=0.0, err_msg=name)
    assert [phase.name for phase in again.phases] == [phase.name for phase in live.phases]


def test_a_bag_played_without_pace_waits_for_the_estimator_and_loses_nothing(demo, robot, samples, workplace):
    listener = TalkingRobot("bagged", robot, samples)
    listener.listen(topics.FRICTION, topics.SIGMA)
    estimator = NodeProcess(workplace, "inputs_reliable:=true", namespace="bagged")
    listener.spin_until(lambda: listener.node.count_publishers(topics.FRICTION.name) > 0, "the estimator's publisher")
    player = NodeProcess(
        workplace,
        f"bag:='{demo[0] / 'run'}'",
        "rate:=0.0",
        "wait_for_subscribers:=1",
        executable="replay_node",
        namespace="bagged",
    )
    try:
        listener.spin_until(lambda: len(listener.estimated()) >= 1100, "estimates", seconds=4 * TIME_OUT)
        assert player.wait() == 0, player.output
        listener.spin_until(lambda: len(listener.estimated()) == 1200, "the last estimates")
        reader = BagReader(demo[0] / "run")
        recorded = [header_stamp(reader.decode(message)) for message in reader.messages(["/joint_states"])]
        assert listener.estimated() == recorded
        assert estimator.end() == 0
    finally:
        estimator.close()
        player.close()
        listener.close()


def test_ctrl_c_leaves_a_valid_bag_and_report(workplace):
    folder = workplace / "interrupted"
    process = start_demo(folder, 60.0)
    try:
        deadline = time.monotonic() + 4 * TIME_OUT
        for line in process.stderr:
            assert time.monotonic() < deadline
            if re.match(r" +\d+\.\d of", line):
                break
        process.send_signal(signal.SIGINT)
        said, complained = process.communicate(timeout=4 * TIME_OUT)
    finally:
        process.kill()
    assert process.returncode == 0, complained
    sent, _, estimated, lost = (int(count) for count in COUNTS.search(said).groups())
    assert sent == estimated and lost == 0
    assert len(read_recording(folder / "run").time) == estimated
    assert (folder / "report.html").stat().st_size > 10_000


def test_a_simulation_that_cannot_start_is_named(workplace):
    process = NodeProcess(workplace, "scenario:=moonwalk", executable="simulation_node")
    try:
        assert process.wait() == 1
        assert "unknown scenario 'moonwalk'" in process.output
    finally:
        process.close()
