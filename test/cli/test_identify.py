"""`identify`: plan a motion, record it, identify, start from the file; bad data are named with their fault."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.shared.bag_messages import BagMessageTypes, write_message
from friction_estimator.api.validate import validate
from friction_estimator.cli.main import main
from friction_estimator.errors import InputError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.joint_log import Payload
from friction_estimator.io.bags.arrays import read_recording
from friction_estimator.io.bags.writer import BagWriter
from friction_estimator.io.identification_file import read_identification
from friction_estimator.io.parameters import load_parameters
from friction_estimator.io.robot import load_robot
from friction_estimator.io.table_files import read_columns
from friction_estimator.messages.topics import JOINT_STATE
from test.arm import ARM, COULOMB, JOINTS, NOISE, URDF, VISCOUS
from test.headers import make_header

pytest.importorskip("rosbags", reason="rosbags is not installed")
pytestmark = pytest.mark.filterwarnings("error")  # a numerical warning on stderr is of no use

Columns = dict[str, np.ndarray]


@pytest.fixture(scope="session")
def urdf() -> Path:
    return ARM


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Columns:
    """What a robot with known friction sends while it moves along a plan of the command line itself."""
    plan = tmp_path_factory.mktemp("arm") / "plan"
    options = ["--duration", "6", "--harmonics", "3", "--starts", "1", "--max-acceleration", "12"]
    assert main(["plan", str(ARM), "-o", str(plan), *options]) == 0
    assert plan.is_dir()
    table = read_columns(plan.with_name("plan.csv")).columns
    q, v, a = (
        np.column_stack([table[f"{kind}/{joint}"] for joint in JOINTS])
        for kind in ("position", "velocity", "acceleration")
    )
    return log_of(table["time"], q, v, a)


def log_of(time: np.ndarray, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> Columns:
    noise = NOISE * np.random.default_rng(5).standard_normal(q.shape)
    effort = FixedBaseModel(URDF, JOINTS).torque(q, v, a) + COULOMB * np.sign(v) + VISCOUS * v + noise
    columns = {
        f"{kind}/{joint}": signal[:, k]
        for kind, signal in (("position", q), ("effort", effort))
        for k, joint in enumerate(JOINTS)
    }
    return {"time": time, **columns}


def write(path: Path, columns: Columns) -> Path:
    np.savetxt(path, np.column_stack(list(columns.values())), delimiter=",", header=",".join(columns), comments="")
    return path


def warnings(err: str) -> str:
    """What stderr has besides lines of progress, which a slow machine prints."""
    return re.sub(r"^.*: \d+ %\n", "", err, flags=re.MULTILINE)


@pytest.fixture
def log(recorded: Columns, tmp_path: Path) -> Path:
    return write(tmp_path / "arm.csv", recorded)


def test_what_was_put_in_comes_out_with_error_bars_that_hold(
    log: Path, urdf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    params = tmp_path / "params.yaml"
    assert main(["identify", str(log), "-o", str(params), "--robot", str(urdf)]) == 0
    out, err = capsys.readouterr()
    assert warnings(err) == ""
    saved = read_identification(params)
    values, sigma = saved.friction.values, np.sqrt(np.diagonal(saved.friction.covariance, axis1=1, axis2=2))
    truth = np.column_stack([COULOMB, VISCOUS])
    assert (np.abs(values[:, :2] - truth) < 4.0 * sigma[:, :2] + 0.01 * truth).all()
    assert (sigma[:, :2] < 0.05 * truth).all()
    for score in saved.scores:
        assert score.held_out_error < 1.5 * NOISE < score.rigid_body_error < score.torque_rms
    assert saved.provenance is not None
    assert saved.provenance.command == f"friction_estimator identify {log} -o {params} --robot {urdf}"
    for words in (
        "method inverse_dynamics: motor torques of a robot with a fixed base",
        "shoulder/coulomb",
        "N m s/rad",
        "cut-off",
        "predict zero",
        "rigid body",  # "only" stands on the next line of the heading
        "verdict",
        "identifier.law: coulomb_viscous",
        str(params),
    ):
        assert words in out, words


def test_a_result_is_validated_on_other_recordings(
    recorded: Columns, log: Path, urdf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    params, half = tmp_path / "params.yaml", recorded["time"].size // 2
    first = write(tmp_path / "first.csv", {name: column[:half] for name, column in recorded.items()})
    second = write(tmp_path / "second.csv", {name: column[half:] for name, column in recorded.items()})
    assert main(["identify", str(first), "-o", str(params), "--robot", str(urdf)]) == 0
    page = tmp_path / "page.html"
    capsys.readouterr()
    assert main(["validate", str(params), str(second), "--robot", str(urdf), "--report", str(page)]) == 0
    limited = ["validate", str(params), str(second), "--robot", str(urdf), "--max-error"]
    assert [main([*limited, percent]) for percent in ("50", "0.001")] == [0, 3]
    out = capsys.readouterr().out
    assert "predict zero" in out and "on new recordings" in out and "times the held-out error" in out
    assert "params on second.csv" in page.read_text()
    assert main(["validate", str(params), str(second)]) == 1
    assert "cannot be compared with the identification" in capsys.readouterr().err


def test_options_reach_the_method(log: Path, urdf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    params = tmp_path / "params.yaml"
    options = ["--known-inertia", "--law", "coulomb_viscous", "--law", "elb*=three_slope", "--cutoff", "20"]
    options += [
        "--no-robust",
        "--folds",
        "3",
        "--dead-zone",
        "0.1",
        "--regressors",
        "position*2",
    ]
    assert main(["identify", str(log), "-o", str(params), "--robot", str(urdf), *options]) == 0
    out = capsys.readouterr().out
    saved = read_identification(params)
    assert saved.friction.law_names == ("coulomb_viscous", "three_slope")
    assert "cut-off 20 Hz" in out
    assert "shoulder/coulomb_cos_2" in out and "mx" not in out.split("parameters")[1]
    assert saved.parameters is not None and not any("Izz" in name for name in saved.parameters.names)


def test_a_payload_that_was_fixed_to_the_robot_is_taken_into_account(
    recorded: Columns, urdf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    q, v, a = motion_of(recorded)
    body = Payload("lower", 1.5, np.array([0.3, 0.0, 0.0]), np.zeros((3, 3)))
    model = FixedBaseModel(URDF, JOINTS)
    added = model.torque(q, v, a, body) - model.torque(q, v, a)
    loaded = {
        **recorded,
        **{f"effort/{joint}": recorded[f"effort/{joint}"] + added[:, k] for k, joint in enumerate(JOINTS)},
    }
    files = [str(write(tmp_path / "empty.csv", recorded)), str(write(tmp_path / "loaded.csv", loaded))]
    errors = {}
    for name, options in (("known", ["--payload", "loaded=lower:1.5,0.3,0,0"]), ("unknown", [])):
        params = tmp_path / f"{name}.yaml"
        assert main(["identify", "--overwrite", *files, "-o", str(params), "--robot", str(urdf), *options]) == 0
        errors[name] = max(score.held_out_error for score in read_identification(params).scores)
    assert errors["known"] < 1.5 * NOISE < 0.2 * errors["unknown"]


def test_currents_and_the_mass_of_a_payload_are_validated_to_the_last_digit(
    recorded: Columns, urdf: Path, tmp_path: Path
) -> None:
    q, v, a = motion_of(recorded)
    body, model = Payload("lower", 1.5, np.array([0.3, 0.0, 0.0]), np.zeros((3, 3))), FixedBaseModel(URDF, JOINTS)
    added, gains, files = model.torque(q, v, a, body) - model.torque(q, v, a), np.array([14.0, 9.0]), []
    for name, more in (("empty", 0.0 * added), ("loaded", added)):
        efforts = {
            f"effort/{joint}": (recorded[f"effort/{joint}"] + more[:, k]) / gains[k] for k, joint in enumerate(JOINTS)
        }
        files.append(str(write(tmp_path / f"{name}.csv", {**recorded, **efforts})))
    params, options = tmp_path / "p.yaml", ["--robot", str(urdf), "--payload", "loaded=lower:1.5"]
    assert main(["identify", *files, "-o", str(params), *options, "--drive-gains"]) == 0
    found = read_identification(params)
    for joint, gain in zip(JOINTS, gains, strict=True):
        row = found.parameters.names.index(f"{joint}/drive_gain")
        assert abs(found.parameters.values[row] - gain) < 3.0 * found.parameters.sigma[row] < 0.1 * gain
    again = validate(params, files, urdf, payloads={"loaded": Payload("lower", 1.5)})
    assert [score.held_out_error for score in again.scores] == [score.fit_error for score in found.scores]
    with pytest.raises(InputError, match="centre of mass of its payload of 2 kg at 'lower' is not known"):
        validate(params, files, urdf, payloads={"loaded": Payload("lower", 2.0)})


def test_a_pendulum_needs_no_names_of_joints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    time = np.arange(3000) * 0.005
    q, v = np.sin(2 * time) + 0.5 * np.sin(5 * time), 2 * np.cos(2 * time) + 2.5 * np.cos(5 * time)
    a = -4 * np.sin(2 * time) - 12.5 * np.sin(5 * time)
    pendulum = tmp_path / "pendulum.urdf"
    pendulum.write_text(
        URDF[: URDF.index('<link name="lower">')]
        + URDF[URDF.index('<joint name="shoulder"') : URDF.index('<joint name="elbow"')]
        + "</robot>"
    )
    torque = FixedBaseModel(pendulum.read_text(), ("shoulder",)).torque(q[:, None], v[:, None], a[:, None])[:, 0]
    torque += 0.4 * np.sign(v) + 0.1 * v + 0.02 * np.random.default_rng(1).standard_normal(time.size)
    log = write(tmp_path / "data.csv", {"time": time, "position": q, "velocity": v, "torque": torque})
    params = tmp_path / "p.yaml"
    assert main(["identify", str(log), "-o", str(params), "--robot", str(pendulum)]) == 0
    assert warnings(capsys.readouterr().err) == ""
    np.testing.assert_allclose(load_parameters(params).values[0, :2], [0.4, 0.1], atol=0.02)


def test_bags_give_what_tables_give(recorded: Columns, urdf: Path, log: Path, tmp_path: Path) -> None:
    bag = tmp_path / "arm"
    order = ("elbow", "gripper", "shoulder")  # another order than that of the table, and a joint that the robot lacks
    with BagWriter(bag) as writer:
        types = BagMessageTypes()
        for row, time in enumerate(recorded["time"]):
            stamp_ns = 1_000_000_000 + round(1e9 * time)
            fields = {
                kind: types.floats(
                    np.array([recorded.get(f"{kind}/{joint}", np.zeros(row + 1))[row] for joint in order])
                )
                for kind in ("position", "effort")
            }
            header = make_header(types, stamp_ns, "")
            write_message(
                writer, "joint_states", stamp_ns, types.make(JOINT_STATE, header=header, name=list(order), **fields)
            )
    for data in (bag, log):
        assert main(["identify", str(data), "-o", f"{data}.yaml", "--robot", str(urdf)]) == 0
    of_bag, of_table = (load_parameters(f"{data}.yaml") for data in (bag, log))
    rows = [of_bag.joint_names.index(joint) for joint in of_table.joint_names]
    np.testing.assert_allclose(of_bag.values[rows], of_table.values, rtol=1e-3)


def test_measured_friction_gives_a_curve_and_other_options_are_refused(
    recorded: Columns, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, v, _ = motion_of(recorded)
    friction = {
        f"friction/{joint}": COULOMB[k] * np.tanh(v[:, k] / 0.05) + VISCOUS[k] * v[:, k]
        for k, joint in enumerate(JOINTS)
    }
    table = {name: column for name, column in recorded.items() if "effort" not in name}
    log, params = write(tmp_path / "curve.csv", {**table, **friction}), tmp_path / "curve.yaml"
    command = ["identify", "--overwrite", str(log), "-o", str(params)]
    assert main([*command, "--law", "tanh_stribeck", "--law", "elbow=coulomb_viscous"]) == 0
    out, err = capsys.readouterr()
    assert warnings(err) == "" and "method friction_curve: measured friction torque is in the data" in out
    assert "approximates the curve of tanh_stribeck by the linear law of the joint" in out
    assert "for the other joints identifier.joint_laws must name coulomb_viscous" in out
    parameters = load_parameters(params)
    assert parameters.law_names == ("tanh_stribeck", "coulomb_viscous")
    shoulder = dict(zip(parameters.parameter_names[0], parameters.values[0], strict=False))
    assert shoulder["viscous"] == pytest.approx(VISCOUS[0], rel=0.05)
    assert main([*command, "--known-inertia"]) == 1
    assert (
        "the method friction_curve has no option 'known_inertia': it is for inverse_dynamics" in capsys.readouterr().err
    )


def test_torques_behind_the_transmission_give_the_friction_of_motors(
    recorded: Columns, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, v, _ = motion_of(recorded)
    free = {name: column for name, column in recorded.items() if "effort" not in name}
    friction = COULOMB * np.sign(v) + VISCOUS * v
    pushed = {**free, **{f"joint_torque/{joint}": -friction[:, k] for k, joint in enumerate(JOINTS)}}
    pwm = {f"pwm/{joint}": 0.5 * (friction[:, k] + 0.2) for k, joint in enumerate(JOINTS)}
    driven = {**free, **{f"joint_torque/{joint}": np.full(v.shape[0], 0.2) for joint in JOINTS}, **pwm}
    files = [str(write(tmp_path / name, log)) for name, log in (("free.csv", pushed), ("driven.csv", driven))]
    params = tmp_path / "motor.yaml"
    assert main(["identify", *files, "-o", str(params), "--law", "coulomb_viscous"]) == 0
    assert "method motor" in capsys.readouterr().out
    np.testing.assert_allclose(load_parameters(params).values[:, :2], np.column_stack([COULOMB, VISCOUS]), rtol=0.03)
    drives = read_identification(params).drives
    assert tuple(drives) == JOINTS and {drive.unit for drive in drives.values()} == {"N m/pwm"}
    np.testing.assert_allclose([drive.gain for drive in drives.values()], 2.0, rtol=0.05)


COUPLING = """/**:
  ros__parameters:
    robot:
      coupling:
        joints: [shoulder, elbow]
        motors: [m0, m1]
        matrix: [0.5, 0.5, 0.5, -0.5]
"""
T = np.array([[0.5, 0.5], [0.5, -0.5]])
GAIN = np.array([2.0, 3.0])


@pytest.fixture
def coupled(recorded: Columns, tmp_path: Path) -> tuple[list[str], Columns, Columns]:
    """`identify` with a coupling, and logs of two motors behind it: one without drive, one with PWM by motor's name."""
    (tmp_path / "coupling.yaml").write_text(COUPLING)
    v = motion_of(recorded)[1] @ np.linalg.inv(T).T
    friction = COULOMB * np.sign(v) + VISCOUS * v
    free = {name: column for name, column in recorded.items() if "effort" not in name}
    at_joints = friction @ np.linalg.inv(T)
    pushed = {**free, **{f"joint_torque/{joint}": -at_joints[:, k] for k, joint in enumerate(JOINTS)}}
    pwm = {f"pwm/m{k}": (friction[:, k] + 0.2) / GAIN[k] for k in range(2)}
    passed_on = np.full(v.shape, 0.2) @ np.linalg.inv(T)
    driven = {**free, **{f"joint_torque/{joint}": passed_on[:, k] for k, joint in enumerate(JOINTS)}, **pwm}
    options = ["--law", "coulomb_viscous", "--coupling", str(tmp_path / "coupling.yaml")]
    return ["identify", "--overwrite", "-o", str(tmp_path / "motors.yaml"), *options], pushed, driven


def test_pwm_is_found_under_the_names_of_the_motors(
    coupled: tuple[list[str], Columns, Columns], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, pushed, driven = coupled
    files = [str(write(tmp_path / name, log)) for name, log in (("free.csv", pushed), ("driven.csv", driven))]
    assert main([*command, *files, "--inertia", "m0=0", "--no-identify-inertia", "--no-offset", "--drive", "pwm"]) == 0
    assert (
        "the live node uses the friction of m0, m1 where the robot's YAML has the same coupling"
        in capsys.readouterr().out
    )
    saved = load_parameters(tmp_path / "motors.yaml")
    assert saved.joint_names == ("m0", "m1")
    np.testing.assert_allclose(saved.values[:, :2], np.column_stack([COULOMB, VISCOUS]), rtol=0.03)
    found = read_identification(tmp_path / "motors.yaml")
    assert not any("inertia" in name for name in found.parameters.names)
    np.testing.assert_allclose([found.drives[motor].gain for motor in ("m0", "m1")], GAIN, rtol=0.05)


def test_a_known_gain_gives_friction_from_driven_logs(
    coupled: tuple[list[str], Columns, Columns], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, _, driven = coupled
    command = [*command, str(write(tmp_path / "driven.csv", driven)), "--no-identify-inertia"]
    assert main(command) == 1  # a constant torque behind the transmission shows no gain
    assert "friction and drive gain of the motor 'm0' cannot be separated" in capsys.readouterr().err
    assert main([*command, "--known-gain", "m0=2", "--known-gain", "m1=3"]) == 0
    np.testing.assert_allclose(load_parameters(tmp_path / "motors.yaml").values[:, 0], COULOMB, rtol=0.05)


def test_a_log_that_is_stated_to_be_free_is_free_whatever_its_pwm_has(
    coupled: tuple[list[str], Columns, Columns], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, pushed, driven = coupled
    noise = np.random.default_rng(0).normal(size=(2, pushed["time"].size))
    free = write(tmp_path / "free.csv", pushed | {f"pwm/m{k}": noise[k] for k in range(2)})
    command = [*command, str(free), str(write(tmp_path / "driven.csv", driven)), "--no-identify-inertia"]
    assert main([*command, "--free", str(free)]) == 0
    assert "free counts as free, as given" in capsys.readouterr().out
    np.testing.assert_allclose(load_parameters(tmp_path / "motors.yaml").values[:, 0], COULOMB, rtol=0.05)
    found = read_identification(tmp_path / "motors.yaml")
    np.testing.assert_allclose([found.drives[motor].gain for motor in ("m0", "m1")], GAIN, rtol=0.05)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--free", "other.csv"], 1, "--free names 'other.csv', not among the recordings"),
        (["--inertia", "m0=-1"], 1, "the inertia of 'm0' is negative"),
        (["--inertia", "m0=1", "--inertia", "m0=2"], 1, "--inertia is given twice for 'm0'"),
        (["--inertia", "heavy"], 2, "'heavy' is not of the form MOTOR=NUMBER"),
        (["--known-gain", "m0=1"], 1, "they have neither of them: choose one by --drive"),
        (["--max-sigma", "0.1"], 1, "the method motor has no option 'max_sigma': it is for friction_curve"),
    ],
)
def test_options_of_motors_that_cannot_be_are_refused(
    options: list[str],
    code: int,
    message: str,
    coupled: tuple[list[str], Columns, Columns],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command, pushed, _ = coupled
    command = [*command, str(write(tmp_path / "free.csv", pushed)), *options]
    if code == 2:
        with pytest.raises(SystemExit):
            main(command)
    else:
        assert main(command) == code
    assert message in capsys.readouterr().err


def test_measured_friction_of_coupled_joints_is_fitted_motor_by_motor(
    coupled: tuple[list[str], Columns, Columns], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, pushed, _ = coupled
    measured = {name.replace("joint_torque", "friction"): -c if "torque" in name else c for name, c in pushed.items()}
    measured |= {f"friction_sigma/{joint}": np.full(measured["time"].size, 0.1) for joint in JOINTS}
    command = [*command, str(write(tmp_path / "friction.csv", measured)), "--delay", "0"]
    assert main([*command, "--max-sigma", "0.08"]) == 0
    saved = load_parameters(tmp_path / "motors.yaml")
    assert saved.joint_names == ("m0", "m1")
    np.testing.assert_allclose(saved.values[:, :2], np.column_stack([COULOMB, VISCOUS]), rtol=0.05)
    assert main([*command, "--max-sigma", "0.05"]) == 1, "0.1 N m at two joints with 0.5 each are 0.071 at a motor"
    assert main([*command, "--zero-slope", "both"]) == 1
    assert "the method friction_curve has no option 'zero_slope': it is for motor" in capsys.readouterr().err


@pytest.fixture
def driven_arm(recorded: Columns, tmp_path: Path) -> Path:
    """Motor torques of the arm, at the joints, whose friction is that of two motors that move both joints."""
    v = motion_of(recorded)[1]
    turning = v @ np.linalg.inv(T).T
    moved = COULOMB * np.sign(v) + VISCOUS * v - (COULOMB * np.sign(turning) + VISCOUS * turning) @ np.linalg.inv(T)
    effort = {f"effort/{joint}": recorded[f"effort/{joint}"] - moved[:, k] for k, joint in enumerate(JOINTS)}
    return write(tmp_path / "arm.csv", {**recorded, **effort})


ROBOT = """/**:
  ros__parameters:
    observer: momentum
    robot:
      urdf: {urdf}
      fixed_base: true
      coupling: {{joints: [shoulder, elbow], motors: [m0, m1], matrix: [0.5, 0.5, 0.5, -0.5]}}
"""


def test_torques_of_a_robot_with_a_coupling_give_friction_that_its_node_takes_motor_by_motor(
    driven_arm: Path, urdf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    robot, params = tmp_path / "robot.yaml", tmp_path / "params.yaml"
    robot.write_text(ROBOT.format(urdf=urdf))
    assert main(["identify", str(driven_arm), "--robot", str(robot), "-o", str(params)]) == 0
    assert "friction is that of the motors (m0, m1 move shoulder, elbow)" in capsys.readouterr().out
    saved = load_parameters(params)
    np.testing.assert_allclose(saved.values[:, :2], np.column_stack([COULOMB, VISCOUS]), rtol=0.05)
    known = load_robot(robot)
    estimator = Estimator(known.config, known.urdf_xml)
    assert estimator.restore(saved) == () and estimator.identified.joint_names == ("m0", "m1")
    robot.write_text(robot.read_text().replace("elbow]", "knee]"))
    assert main(["identify", "--overwrite", str(driven_arm), "--robot", str(robot), "-o", str(params)]) == 1
    assert "robot.coupling names the joint 'knee'; the robot has 'elbow', 'shoulder'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("coupling", "options", "message"),
    [
        (COUPLING.replace("elbow", "knee"), [], "coupling.yaml: 'knee' shares motors with joints of the data"),
        (
            COUPLING.replace("elbow", "a").replace("shoulder", "b"),
            [],
            "couples 'a', 'b'; the joints of data and robot are",
        ),
        (COUPLING.replace("-0.5", "0.5"), [], "cannot be inverted"),
        (
            "",
            ["--stribeck-velocity", "0.1"],
            "for the law 'load_velocity' of this method, not for 'coulomb_viscous'",
        ),
        ("", ["--coupled-friction", "joints_and_motors"], "give their coupling, or robot.coupling"),
    ],
)
def test_couplings_and_options_that_cannot_be_are_refused(
    coupling: str,
    options: list[str],
    message: str,
    driven_arm: Path,
    urdf: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "coupling.yaml").write_text(coupling)
    options += ["--coupling", str(tmp_path / "coupling.yaml")] if coupling else []
    assert main(["identify", str(driven_arm), "--robot", str(urdf), "-o", str(tmp_path / "p.yaml"), *options]) == 1
    assert message in capsys.readouterr().err


def motion_of(columns: Columns) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position, velocity and acceleration (N, 2) of a log, by central differences of the plan's exact positions."""
    q = np.column_stack([columns[f"position/{joint}"] for joint in JOINTS])
    v = np.gradient(q, columns["time"], axis=0)
    return q, v, np.gradient(v, columns["time"], axis=0)


def test_a_walking_robots_bag_is_enough_and_the_estimator_starts_from_the_result(
    walk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    params, start = tmp_path / "walk.yaml", tmp_path / "start"
    assert main(["identify", str(walk), "-o", str(params), "--law", "coulomb_viscous"]) == 0
    out = capsys.readouterr().out
    assert "walk names the robot 'suralp'" in out
    assert "friction measured by the observer 'kalman', as `replay --smooth 2` does" in out
    again = ["identify", str(walk), "-o", str(params), "--method", "inverse_dynamics"]
    assert main(again) == 1
    assert "walk.yaml exists already: choose another name, or replace it (--overwrite)" in capsys.readouterr().err
    assert main([*again, "--overwrite"]) == 1
    assert "needs a fixed base, this robot walks" in capsys.readouterr().err
    law = ["--set", "identifier.law=coulomb_viscous"]
    assert "identifier.law: coulomb_viscous" in out
    assert main(["replay", str(walk), "-o", str(start), "--params", str(params), *law]) == 0
    recording = read_recording(start)
    parameters = load_parameters(params)
    assert parameters.joint_names == recording.joint_names
    assert recording.coulomb is not None and recording.viscous is not None
    np.testing.assert_allclose(recording.coulomb.values[0], parameters.values[:, 0], atol=0.02)
    np.testing.assert_allclose(recording.viscous.values[0], parameters.values[:, 1], atol=0.02)


DEGREES = {f"position/{joint}": np.rad2deg for joint in JOINTS}


@pytest.mark.parametrize(
    ("change", "suspicion"),
    [
        (DEGREES, "position/shoulder runs from .* its limits are -2 and 2: is it in degrees?"),
        ({"effort/elbow": np.negative}, "effort/elbow .* has it the wrong sign?"),
        ({"time": lambda time: 1000.0 * time}, r"here most likely .time \[ms\]"),
    ],
)
def test_doubtful_data_gives_a_warning_that_names_the_suspicion(
    change: dict[str, Callable[[np.ndarray], np.ndarray]],
    suspicion: str,
    recorded: Columns,
    urdf: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    columns = {name: change[name](column) if name in change else column for name, column in recorded.items()}
    log = str(write(tmp_path / "bad.csv", columns))
    assert main(["identify", log, "-o", str(tmp_path / "p.yaml"), "--robot", str(urdf), "--folds", "2"]) == 0
    found = warnings(capsys.readouterr().err).splitlines()
    assert all(line.startswith("friction_estimator: warning: bad: ") for line in found)
    assert any(re.search(suspicion, line) for line in found), found


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("time,position/elbow,effort/elbow\n0,0,0\n0.01,0.1,1\n", "2 samples are too few"),
        ("time,position/elbow\n0,a\n", "line 2, column 'position/elbow': 'a' is not a number"),
        ("time,position/knee,effort/knee\n0,0,0\n", "has the joints 'knee', the robot has 'elbow', 'shoulder'"),
        (
            "time,position/elbow\n" + "".join(f"{k},{k % 7}\n" for k in range(60)),
            "allows no method: motor needs joint_torque/<joint>; friction_curve needs friction/<joint>",
        ),
    ],
)
def test_useless_data_gives_one_clear_error(
    content: str, reason: str, urdf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.csv").write_text(content)
    assert main(["identify", str(tmp_path / "bad.csv"), "-o", str(tmp_path / "p.yaml"), "--robot", str(urdf)]) == 1
    errors = [
        line
        for line in warnings(capsys.readouterr().err).splitlines()
        if not line.startswith("friction_estimator: warning")
    ]
    assert len(errors) == 1 and errors[0].startswith("friction_estimator: error: ") and reason in errors[0], errors
    assert not (tmp_path / "p.yaml").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "DATA"),
        (["LOG"], "-o"),
        (["LOG", "-o", "p.yaml", "--payload", "a=b:1,2"], "EXPERIMENT=FRAME:MASS,X,Y,Z"),
        (["LOG", "-o", "p.yaml", "--payload", "a=b:1,0,0,0,-1,0,0,0,0,0"], "positive semidefinite"),
        (["LOG", "-o", "p.yaml", "--folds", "1"], "from 2 on"),
        (["LOG", "-o", "p.yaml", "--regressors", "speed"], "'position[*K]', 'presliding', 'temperature'"),
    ],
)
def test_wrong_usage_is_exit_code_two(
    words: list[str], reason: str, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["identify", *(str(log) if word == "LOG" else word for word in words)])
    assert end.value.code == 2
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--zero-slope", "both"], "the method inverse_dynamics has no option 'zero_slope': it is for motor"),
        (["--payload-scale"], "payload_scale needs a payload"),
    ],
)
def test_an_option_of_no_use_is_refused(
    words: list[str], reason: str, log: Path, urdf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["identify", str(log), "-o", str(tmp_path / "out"), "--robot", str(urdf), *words]) == 1
    assert reason in capsys.readouterr().err
    assert not list(tmp_path.glob("out*"))


def test_exchanged_torques_and_joints_that_are_not_recorded_are_named(
    recorded: Columns, urdf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exchanged = dict(recorded)
    exchanged["effort/elbow"], exchanged["effort/shoulder"] = recorded["effort/shoulder"], recorded["effort/elbow"]
    command = ["--overwrite", "-o", str(tmp_path / "p.yaml"), "--robot", str(urdf), "--folds", "2"]
    assert main(["identify", str(write(tmp_path / "x.csv", exchanged)), *command]) == 0
    warning = capsys.readouterr().err
    assert "effort/shoulder answers to the weight and inertia of elbow, and effort/elbow to that of shoulder" in warning
    assert main(["identify", str(write(tmp_path / "y.csv", recorded)), *command, "--joints", "elbow"]) == 0
    assert "the robot's joints 'shoulder' are not in the data" in capsys.readouterr().err
    missing = {**recorded, "effort/elbow": np.full_like(recorded["time"], np.nan)}
    assert main(["identify", str(write(tmp_path / "z.csv", missing)), *command]) == 1
    assert "error: z: the torque of 'elbow' was not recorded" in capsys.readouterr().err


def test_a_column_of_a_joint_that_the_robot_lacks_is_refused_and_the_nearest_joint_named(
    recorded: Columns, urdf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    misspelt = {name.replace("elbow", "elbw"): column for name, column in recorded.items()}
    command = ["--overwrite", "-o", str(tmp_path / "p.yaml"), "--robot", str(urdf), "--folds", "2"]
    log, other = str(write(tmp_path / "a.csv", misspelt)), str(write(tmp_path / "b.csv", recorded))
    for logs in ([log], [other, log]):
        assert main(["identify", *logs, *command]) == 1
        assert "the robot has no joint 'elbw' (is it 'elbow'?)" in capsys.readouterr().err
    assert main(["identify", log, *command, "--joints", "shoulder,elbw"]) == 1
    assert "the robot has no joint 'elbw'" in capsys.readouterr().err


def test_planning_refuses_robots_that_walk_and_files_that_are_there(
    urdf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan"
    assert main(["plan", "suralp", "-o", str(plan)]) == 1
    assert "walks: motions are planned for robots with a fixed base only" in capsys.readouterr().err
    plan.with_name("plan.csv").touch()
    assert main(["plan", str(urdf), "-o", str(plan)]) == 1
    assert "exists already" in capsys.readouterr().err
