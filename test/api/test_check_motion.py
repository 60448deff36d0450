"""Which parameters a motion can show: simulated recordings of it, whose parameters are known, are identified."""

from dataclasses import replace

import numpy as np
import pytest

import friction_estimator as fe
from friction_estimator.api.check_motion import check_motion
from friction_estimator.cli.main import main
from friction_estimator.errors import ConfigError
from friction_estimator.identification.joint_log import JointLog
from test.identification.arm import JOINTS, URDF, move

PERIOD = 0.01


@pytest.fixture
def arm(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(URDF)
    return path


def planned(seconds=12.0, slow=1.0):
    """Positions alone, without a torque; the elbow moves as slowly as wanted."""
    q = move(4, duration=seconds, period=PERIOD)[0]
    q[:, 1] = q[0, 1] + slow * (q[:, 1] - q[0, 1])
    return JointLog("plan", JOINTS, np.arange(len(q)) * PERIOD, q)


def test_a_rich_motion_shows_friction_and_one_that_hardly_turns_a_joint_does_not(arm):
    rich = {one.name: one for one in check_motion(planned(), arm, repeats=2)}
    poor = {one.name: one for one in check_motion(planned(slow=0.002), arm, repeats=2)}
    for joint in JOINTS:
        for name in (f"{joint}/coulomb", f"{joint}/viscous"):
            assert rich[name].verdict == "shown" and rich[name].error < 0.1 * rich[name].truth
    assert poor["shoulder/coulomb"].verdict == "shown"
    assert poor["elbow/viscous"].verdict == "not shown"
    assert [one.name for one in check_motion(planned(), arm, repeats=2)] == list(rich)


def test_commands_of_drives_are_simulated_with_a_delay():
    pytest.importorskip("mujoco")
    log = fe.example("leg")
    commands = replace(log, position=np.asarray(log.inputs["command"]))
    found = {one.name: one for one in check_motion(commands, "leg", kp=20.0, kd=0.5, repeats=1)}
    for joint in ("hip", "knee"):
        assert found[f"{joint}/coulomb"].verdict == "shown"
        assert 0.0 < found[f"{joint}/delay"].truth < 0.01 and found[f"{joint}/delay"].error < 2e-3


def test_the_command_line_prints_what_a_motion_can_show(arm, tmp_path, capsys):
    log = planned(8.0)
    columns = {f"position/{name}": log.position[:, k] for k, name in enumerate(JOINTS)}
    np.savez(tmp_path / "plan.npz", time=log.time, **columns)
    laws = ["--law", "elbow=asymmetric", "--law", "coulomb_viscous"]
    assert main(["identify", str(tmp_path / "plan.npz"), "--robot", str(arm), "--check", *laws]) == 0
    out = capsys.readouterr().out
    assert "What this motion can show" in out and "shoulder/coulomb" in out and "shown" in out
    assert "shoulder/viscous" in out and "elbow/viscous" not in out
    unused = ["--method", "inverse_dynamics", "--report", str(tmp_path / "r.html")]
    assert main(["identify", str(tmp_path / "plan.npz"), "--robot", str(arm), "--check", *unused]) == 1
    assert "--check takes no '--method', '--report': leave it out" in capsys.readouterr().err


def test_a_walking_robot_is_refused():
    with pytest.raises(ConfigError, match="fixed base"):
        check_motion(planned(), "suralp", joints=None)
