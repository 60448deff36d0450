"""Recordings of the kind that other people make: each is identified, or refused with the one reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import friction_estimator as fe
from friction_estimator.api.experiments import read_experiments, silent
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.recording.motion import to_motion
from test.arm import ARM, COULOMB, JOINTS, VISCOUS
from test.identification.recordings import arm_recording

LINK = """<inertial><origin xyz="0 0 -0.3"/><mass value="1"/>
<inertia ixx=".03" iyy=".03" izz=".01" ixy="0" ixz="0" iyz="0"/>"""
LIMIT = '<limit lower="-3" upper="3" velocity="9" effort="50"/>'


def pendulums(*names: str, base: str = "base") -> str:
    """URDF of pendulums that hang on one base."""
    links = "".join(f'<link name="{name}_link">{LINK}</inertial></link>' for name in names)
    joints = "".join(
        f'<joint name="{name}" type="revolute"><parent link="{base}"/><child link="{name}_link"/><axis xyz="0 1 0"/>'
        f"{LIMIT}</joint>"
        for name in names
    )
    return f'<robot name="p"><link name="base"/>{links}{joints}</robot>'


def swing(name: str, seed: int, late: float = 0.0, samples: int = 2000) -> fe.JointLog:
    """One pendulum, 100 Hz, F_c 0.3 N m, F_v 0.1 N m s/rad."""
    rng = np.random.default_rng(seed)
    time = np.arange(samples) / 100.0

    def states(at: np.ndarray) -> list[np.ndarray]:
        lines = [(0.6, 1.7 + 0.3 * seed), (0.4, 3.9), (0.1, 7.7)]
        return [np.asarray(sum(a * w**k * np.sin(w * at + 0.5 * k * np.pi) for a, w in lines)) for k in range(3)]

    q, v, a = states(time - late)
    torque = 0.12 * a + 0.3 * 9.80665 * np.sin(q) + 0.3 * np.sign(v) + 0.1 * v + 0.01 * rng.normal(size=samples)
    position = states(time)[0] + 1e-5 * rng.normal(size=samples)
    return fe.JointLog(name, (name,), time, position[:, None], effort=torque[:, None])


def together(*logs: fe.JointLog) -> fe.JointLog:
    names = tuple(log.joint_names[0] for log in logs)
    position, effort = (np.column_stack([getattr(log, kind) for log in logs]) for kind in ("position", "effort"))
    return fe.JointLog("table", names, logs[0].time, position, effort=effort)


def is_right(result: fe.IdentificationResult, tolerance: float = 0.05) -> None:
    np.testing.assert_allclose(result.values[:, :2], np.column_stack([COULOMB, VISCOUS]), rtol=tolerance)


def test_stamps_that_jitter_by_a_seventh_of_the_period() -> None:
    log = arm_recording(1, rate=500.0)
    rng = np.random.default_rng(0)
    time = log.time + 0.15 * 0.002 * rng.standard_normal(log.time.size)
    result = fe.identify(replace(log, time=np.sort(time)), ARM, law="coulomb_viscous")
    is_right(result)
    assert max(score.relative_error for score in result.scores) < 0.03


def test_recordings_in_which_single_joints_move_do_not_explode() -> None:
    parts = []
    for joint, seed in enumerate((1, 2)):
        log = arm_recording(seed)
        moving = np.arange(2) == joint
        position = np.where(moving, log.position, 0.3)
        motion = to_motion(replace(log, position=position + 1e-9 * log.position, effort=None))
        v, a = motion.velocity * moving, motion.acceleration * moving
        torque = FixedBaseModel(ARM.read_text(), JOINTS).torque(motion.position, v, a)
        torque = torque + COULOMB * np.sign(v) + VISCOUS * v + 0.1 * a
        torque = torque + 0.05 * np.random.default_rng(seed).standard_normal(torque.shape)
        parts.append(replace(log, name=f"joint {joint}", time=motion.time, position=motion.position, effort=torque))
    result = fe.identify(parts, ARM, law="coulomb_viscous")
    is_right(result, 0.1)
    assert max(score.relative_error for score in result.scores) < 0.2


def test_a_right_velocity_is_used_where_positions_are_held() -> None:
    log = arm_recording(1, rate=500.0)
    exact = np.gradient(arm_recording(1, rate=500.0, encoder=0.0).position, log.time, axis=0)
    held, rng = log.position.copy(), np.random.default_rng(3)
    for k in np.flatnonzero(rng.uniform(size=len(held)) < 0.03):
        held[k : k + 8] = held[k]
    result = fe.identify(replace(log, position=held, velocity=exact), ARM, law="coulomb_viscous")
    assert any(one.chosen and one.settings.startswith("measured") for one in result.candidates)
    is_right(result)


def test_gaps_cost_nothing_where_the_velocity_was_measured() -> None:
    log = arm_recording(1, rate=100.0, kind="friction", constant=-0.4)
    velocity = np.gradient(arm_recording(1, rate=100.0, encoder=0.0).position, log.time, axis=0)
    rows = np.flatnonzero(np.random.default_rng(1).uniform(size=log.time.size) < 0.4)
    result = fe.identify(replace(log, velocity=velocity).rows(rows), law="coulomb_viscous")
    is_right(result, 0.1)
    assert any("constant torque that is no part of the law" in text for text in result.verdicts)


def test_limbs_in_one_table_are_what_each_is_alone(tmp_path: Path) -> None:
    logs = swing("left", 0), swing("right", 1, late=0.02)
    (tmp_path / "two.urdf").write_text(pendulums("left", "right"))
    both = fe.identify(together(*logs), tmp_path / "two.urdf", law="coulomb_viscous")
    for joint, log in enumerate(logs):
        alone = fe.identify(log, tmp_path / "two.urdf", law="coulomb_viscous")
        np.testing.assert_array_equal(both.values[joint], alone.values[0])
        assert both.scores[joint].held_out_error == alone.scores[0].held_out_error
        np.testing.assert_allclose(alone.values[0], [0.3, 0.1], rtol=0.06)
    late = "right: the torque was "
    assert any(text.startswith((f"{late}19.", f"{late}20.")) for text in both.verdicts)


@pytest.mark.parametrize(("legs", "arms"), [(0, 2), (2, 0), (2, 3)])
def test_torques_that_no_fixed_base_explains_are_refused(legs: int, arms: int, tmp_path: Path) -> None:
    """Those of legs that carry the rest of the robot, whose arms may swing; and torques without relation to motion."""
    names = [f"limb_{k}" for k in range(legs + arms)]
    (tmp_path / "robot.urdf").write_text(pendulums(*names))
    log = together(*(swing(name, k) for k, name in enumerate(names)))
    assert log.effort is not None
    effort = log.effort * np.repeat([-1.0, 1.0], [legs, arms])
    if not legs:
        effort = np.random.default_rng(0).normal(size=effort.shape)
    with pytest.raises(fe.FrictionEstimatorError, match="the base of this robot is not fixed"):
        fe.identify(replace(log, effort=effort), tmp_path / "robot.urdf", law="coulomb_viscous")


def test_a_torque_in_another_unit_is_named_joint_by_joint(tmp_path: Path) -> None:
    (tmp_path / "two.urdf").write_text(pendulums("left", "right"))
    log = together(swing("left", 0), swing("right", 1))
    log = log.changed(lambda kind, signal: signal * [1.0, 1e3] if kind == "effort" else signal)
    warnings = fe.identify(log, tmp_path / "two.urdf", law="coulomb_viscous").warnings
    assert [text.split("/")[1].split()[0] for text in warnings if "in another unit" in text] == ["right"]


def test_a_column_with_a_misspelt_joint_is_an_error_that_names_the_joint(tmp_path: Path) -> None:
    (tmp_path / "two.urdf").write_text(pendulums("left", "right"))
    log = replace(together(swing("left", 0), swing("right", 1)), joint_names=("left", "rigth"))
    with pytest.raises(fe.FrictionEstimatorError, match=r"no joint 'rigth' \(is it 'right'\?\)"):
        fe.identify(log, tmp_path / "two.urdf")


def test_a_joint_that_stood_or_has_no_torque_keeps_the_friction_of_the_model(tmp_path: Path) -> None:
    model = tmp_path / "two.urdf"
    model.write_text(pendulums("left", "right").replace(LIMIT, f'{LIMIT}<dynamics damping="0.4" friction="0.9"/>'))
    log = together(swing("left", 0), swing("right", 1))
    still = log.changed(lambda kind, signal: signal * [1.0, 0.0] if kind == "position" else signal)
    silent = log.changed(lambda kind, signal: signal * [1.0, 1e-308] if kind == "effort" else signal)
    for one in (still, silent):
        result = fe.identify(one, model, law="coulomb_viscous")
        warnings = fe.export(result, "urdf", tmp_path / "out.urdf", model=model)
        assert any("show no friction of right" in text for text in warnings)
        left, right = (part.split("/>")[0] for part in (tmp_path / "out.urdf").read_text().split("<dynamics")[1:])
        assert 'friction="0.9"' in right and 'friction="0.9"' not in left


def test_a_constant_torque_is_in_the_parameters_of_a_controller(tmp_path: Path) -> None:
    log = swing("left", 0)
    (tmp_path / "one.urdf").write_text(pendulums("left"))
    result = fe.identify(replace(log, effort=log.effort - 0.99), tmp_path / "one.urdf", law="coulomb_viscous")
    fe.export(result, "ros2_control", tmp_path / "out.yaml")
    offset = next(line for line in (tmp_path / "out.yaml").read_text().splitlines() if "offset:" in line)
    assert float(offset.split(":")[1]) == pytest.approx(-0.99, abs=0.01)


def test_world_need_not_be_declared_and_shapes_are_not_read(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    weld = '<joint name="weld" type="fixed"><parent link="world"/><child link="base"/></joint>'
    shape = '<visual><geometry><box size="1 1 1"/></geometry><material><color rgba="1 0 0 1"/></material></visual>'
    text = (
        pendulums("left")
        .replace("</robot>", f"{weld}</robot>")
        .replace('_link"><inertial>', f'_link">{shape}<inertial>')
    )
    (tmp_path / "one.urdf").write_text(text)
    result = fe.identify(swing("left", 0), tmp_path / "one.urdf", law="coulomb_viscous")
    np.testing.assert_allclose(result.values[0], [0.3, 0.1], rtol=0.05)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("seed", range(2))
def test_angles_that_jump_by_a_turn_are_counted_on(seed: int) -> None:
    log = arm_recording(seed)
    turned = replace(log, position=log.position + [np.pi - 0.2, 0.0])
    wrapped = replace(turned, position=np.column_stack([_within_a_turn(turned.position[:, 0]), turned.position[:, 1]]))
    assert np.abs(np.diff(wrapped.position[:, 0])).max() > 6.0
    plain, found = (fe.identify(one, ARM, law="coulomb_viscous") for one in (turned, wrapped))
    np.testing.assert_allclose(found.values, plain.values, rtol=1e-6)
    assert not any("exchanged" in text or "derivative" in text for text in found.warnings)
    assert any("jump by a turn are counted on: shoulder" in text for text in found.provenance.choices)


def _within_a_turn(angle: np.ndarray) -> np.ndarray:
    return (angle + np.pi) % (2.0 * np.pi) - np.pi


def test_a_command_of_a_joint_that_wraps_stays_beside_its_position() -> None:
    log = arm_recording(1)
    ahead = replace(log, inputs={"command": log.position + 0.02})
    turned = ahead.changed(lambda _, signal: signal + [np.pi - 0.2, 0.0] if signal is not ahead.effort else signal)
    wrapped = turned.changed(lambda kind, signal: signal if kind == "effort" else _within_a_turn(signal))
    plain, found = (read_log(one) for one in (turned, wrapped))
    np.testing.assert_allclose(found.inputs["command"] - found.position, plain.inputs["command"] - plain.position)
    np.testing.assert_allclose(found.position - found.position[0], plain.position - plain.position[0], atol=1e-9)


def read_log(log: fe.JointLog) -> fe.JointLog:
    return read_experiments(log, ARM, silent, lambda text: None).logs[0]


@pytest.mark.parametrize(("factor", "unit"), [(1e6, "us"), (1e9, "ns")])
def test_a_failure_names_the_unit_of_time_that_the_data_need(factor: float, unit: str) -> None:
    log = arm_recording(1, rate=100.0)
    with pytest.raises(fe.FrictionEstimatorError, match=rf"because of the data: .*likely 'time \[{unit}\]'"):
        fe.identify(replace(log, time=factor * log.time, velocity=None), ARM, law="coulomb_viscous")
