"""Views: the drawn robot has the shape of the model, every view gets the numbers, and a slow one costs nobody time."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from friction_estimator.errors import ConfigError
from friction_estimator.io.robot import load_robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.views.live_view import VIEWS, LiveView, Skeleton, ViewFrame, make_display

ROBOT = load_robot("suralp")
JOINTS = RobotModel(ROBOT.config, ROBOT.urdf_xml).joint_names
N = len(JOINTS)
UPRIGHT = np.array([0.0, 0.0, 0.0, 1.0])


def skeleton() -> Skeleton:
    return Skeleton(ROBOT, JOINTS)


def frame(time: float = 0.5, events: tuple[str, ...] = ()) -> ViewFrame:
    robot, friction = skeleton(), np.linspace(-1.0, 0.5, N)
    segments = robot.segments(np.zeros(N), np.zeros(3), UPRIGHT)
    truth = np.where(np.arange(N) == 0, np.nan, friction)
    sigma = np.full(N, 0.1)
    pose = np.zeros(3), UPRIGHT
    return ViewFrame(
        time, JOINTS, friction, sigma, truth, "left_support", *pose, segments, robot.segment_joints, events
    )


def test_lines_lead_from_joint_to_joint_and_keep_their_length() -> None:
    robot = skeleton()
    straight = robot.segments(np.zeros(N), np.zeros(3), UPRIGHT)
    rng = np.random.default_rng(0)
    turned = np.array([0.0, 0.0, np.sin(0.3), np.cos(0.3)])
    bent = robot.segments(rng.uniform(-0.5, 0.5, N), np.array([1.0, 2.0, 0.7]), turned)
    length = [np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1) for lines in (straight, bent)]
    np.testing.assert_allclose(length[0], length[1], atol=1e-12)
    assert straight[..., 2].min() < -0.5  # the soles
    knee = JOINTS.index("l_knee")
    moved = robot.segments(np.where(np.arange(N) == knee, 0.4, 0.0), np.zeros(3), UPRIGHT)
    changed = np.abs(moved - straight).max(axis=(1, 2)) > 1e-9
    below = {knee, JOINTS.index("l_ankle_pitch"), JOINTS.index("l_ankle_roll")}
    assert {robot.segment_joints[line] for line in np.flatnonzero(changed)} <= below and changed.any()


def test_the_joint_with_the_largest_friction_colours_its_link_most() -> None:
    one = frame()
    red, _, blue = one.colors().T
    assert one.segment_joints[int(red.argmax())] == 0 and one.segment_joints[int(blue.argmin())] == 0
    assert one.colors().min() >= 0 and one.colors().max() <= 255 and np.ptp(red) > 100


def test_a_slow_display_drops_frames_and_never_waits() -> None:
    class Slow:
        address, keeps = "", False
        drawn = 0
        go_on = threading.Event()

        def draw(self, frame: ViewFrame) -> None:
            self.go_on.wait()
            self.drawn += 1

        def close(self) -> None:
            pass

    display, one = Slow(), frame()
    with LiveView(display) as view:
        for _ in range(100):
            view.send(one)
        display.go_on.set()
    assert view.dropped >= 79 and view.dropped + display.drawn == 100


def test_the_page_and_its_frames_come_from_the_local_server() -> None:
    display = make_display("web", 0)
    page = urllib.request.urlopen(display.address, timeout=10).read().decode()
    assert "EventSource" in page and "https://" not in page
    with urllib.request.urlopen(f"{display.address}frames", timeout=10) as stream:
        received: list[dict[str, object]] = []
        sender = threading.Thread(target=lambda: [(display.draw(frame(k)), time.sleep(0.01)) for k in range(100)])
        sender.start()
        while len(received) < 3:
            line = stream.readline().decode()
            if line.startswith("data: "):
                received.append(json.loads(line[6:]))
        sender.join()
        display.close()
        assert b"event: over" in stream.read()
    first = received[0]
    assert first["names"] == list(JOINTS) and first["friction"][0] == -1.0 and first["truth"][0] is None
    with pytest.raises(ConfigError, match="choose the view 'rerun'"):
        make_display("web", 0, Path("x.rrd"))


@pytest.mark.parametrize("name", VIEWS)
def test_a_port_in_use_is_named(name: str) -> None:
    display = make_display("web", 0)
    port = int(display.address.rstrip("/").rpartition(":")[2])
    pytest.importorskip(
        {"rerun": "rerun", "foxglove": "foxglove", "web": "json"}[name], reason="the SDK is not installed"
    )
    with pytest.raises(ConfigError, match=f"cannot use port {port}"):
        make_display(name, port)
    display.close()


def test_rerun_writes_a_recording_with_every_joint(tmp_path: Path) -> None:
    pytest.importorskip("rerun", reason="rerun-sdk is not installed (extra rerun)")
    display = make_display("rerun", 0, tmp_path / "run.rrd")
    for k in range(3):
        display.draw(frame(0.1 * k, ("knee: pushed",)))
    display.close()
    content = (tmp_path / "run.rrd").read_bytes()
    assert content[:4] == b"RRF2" and all(f"/friction/{name}/estimate".encode() in content for name in JOINTS)


def test_foxglove_serves_the_topics_of_the_layout() -> None:
    pytest.importorskip("foxglove", reason="foxglove-sdk is not installed (extra foxglove)")
    from websockets.sync.client import connect

    display = make_display("foxglove", 0)
    with connect(display.address.rpartition(" ")[2], subprotocols=["foxglove.sdk.v1"]) as client:
        channels: dict[str, int] = {}
        while len(channels) < 7:
            message = json.loads(client.recv(timeout=10))
            channels |= {one["topic"]: one["id"] for one in message.get("channels", ())}
        subscription = {"id": 1, "channelId": channels["/joint_friction"]}
        client.send(json.dumps({"op": "subscribe", "subscriptions": [subscription]}))
        time.sleep(0.3)
        display.draw(frame())
        sent = json.loads(client.recv(timeout=10)[13:])
    display.close()
    assert sent["name"] == list(JOINTS) and sent["effort"][0] == -1.0
    layout = (Path(__file__).parents[2] / "config" / "foxglove" / "friction.json").read_text()
    assert all(
        f'"/{path}' in layout for path in ("joint_friction.effort[11]", "joint_friction/sigma.effort[0]", "robot")
    )
    assert set(channels) >= {"/joint_friction", "/joint_friction/sigma", "/ground_truth/joint_friction", "/robot"}


def test_every_view_has_a_module() -> None:
    package = Path(make_display.__code__.co_filename).parent
    assert all((package / f"{name}_view.py").is_file() for name in VIEWS)
