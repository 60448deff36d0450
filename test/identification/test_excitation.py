"""A planned excitation stays within the limits, starts and ends at rest, and shows more than a random motion does."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from friction_estimator.errors import ConfigError, FrictionEstimatorError, RobotModelError
from friction_estimator.identification.excitation import ExcitationOptions, ExcitationPlan, optimize_excitation
from friction_estimator.identification.excitation_trajectory import (
    FeasibleTrajectories,
    FourierTrajectory,
    MotionLimits,
    choose_harmonics,
    limits_of_urdf,
    planned_joints,
    slow_sweeps,
    sweep_duration,
    sweep_reach,
)
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.bags.writer import TRAJECTORY, TRAJECTORY_TOPIC, write_trajectory_bag
from friction_estimator.io.table_files import joint_log_from_table, write_trajectory_csv

JOINTS = ("shoulder", "elbow", "slide")
OPTIONS = ExcitationOptions(duration=6.0, bandwidth=1.0, harmonics=4, seeds=2, iterations=15, seed=3)


def arm(effort: float = 200.0, limit: str = 'lower="-2" upper="1.5" velocity="3"') -> str:
    """Two revolute joints in a vertical plane and a slide at the end."""
    link = '<link name="{0}"><inertial><origin xyz="0.2 0.01 0"/><mass value="{1}"/><inertia ixx="0.01" ixy="0" '
    link += 'ixz="0" iyy="0.03" iyz="0" izz="0.03"/></inertial></link>'
    joint = '<joint name="{0}" type="{3}"><parent link="{1}"/><child link="{2}"/><origin xyz="0.4 0 0"/>'
    joint += '<axis xyz="{4}"/><limit effort="{5}" {6}/></joint>'
    return (
        '<robot name="arm"><link name="base"/>'
        + link.format("upper", 3.0) + link.format("lower", 2.0) + link.format("tip", 0.5)
        + joint.format("shoulder", "base", "upper", "revolute", "0 1 0", effort, limit)
        + joint.format("elbow", "upper", "lower", "revolute", "0 1 0", effort, 'lower="-2.5" upper="2.5" velocity="4"')
        + joint.format("slide", "lower", "tip", "prismatic", "1 0 0", effort, 'lower="0" upper="0.4" velocity="0.5"')
        + "</robot>"
    )  # fmt: skip


def limits() -> MotionLimits:
    return limits_of_urdf(FixedBaseModel(arm(), JOINTS))


@pytest.fixture(scope="module")
def plan() -> ExcitationPlan:
    return optimize_excitation(FixedBaseModel(arm(), JOINTS), limits(), OPTIONS)


@pytest.mark.parametrize(("mass", "planned"), [(0.01, JOINTS), (0.02, (*JOINTS, "finger")), (0.0, JOINTS)])
def test_fingers_are_left_out_and_end_joints_are_not(mass: float, planned: tuple[str, ...]) -> None:
    finger = f"""<link name="pad"><inertial><mass value="{mass}"/>
        <inertia ixx="1e-6" ixy="0" ixz="0" iyy="1e-6" iyz="0" izz="1e-6"/></inertial></link>
        <joint name="finger" type="prismatic"><parent link="tip"/><child link="pad"/><axis xyz="0 1 0"/>
        <limit effort="1" lower="0" upper="0.04" velocity="0.1"/></joint></robot>"""
    names = (*JOINTS, "finger")
    assert planned_joints(arm().replace("</robot>", finger), names)[0] == planned


def test_a_urdf_without_masses_has_no_fingers() -> None:
    weightless = re.sub("<inertial>.*?</inertial>", "", arm(), flags=re.DOTALL)
    assert planned_joints(weightless, JOINTS) == (JOINTS, ())


def random_lap(seed: int = 0) -> FourierTrajectory:
    family = FeasibleTrajectories(8.0, choose_harmonics(8.0, 1.0, 5), limits())
    return family.trajectory(family.random(np.random.default_rng(seed)))


def test_velocity_and_acceleration_are_derivatives_of_the_position() -> None:
    lap, step, time = random_lap(), 1e-5, np.linspace(0.3, 7.5, 40)
    (before, slow, _), (_, velocity, acceleration), (after, fast, _) = (lap.at(time + k * step) for k in (-1, 0, 1))
    np.testing.assert_allclose((after - before) / (2.0 * step), velocity, atol=1e-7)
    np.testing.assert_allclose((fast - slow) / (2.0 * step), acceleration, atol=1e-6)


def test_a_series_starts_and_ends_at_rest_in_the_same_place() -> None:
    position, velocity, acceleration = random_lap().at(np.array([0.0, 8.0]))
    np.testing.assert_allclose(position[0], position[1], atol=1e-12)
    np.testing.assert_allclose(velocity, 0.0, atol=1e-12)
    np.testing.assert_allclose(acceleration, 0.0, atol=1e-11)


def test_nothing_moves_faster_than_the_bandwidth() -> None:
    position, _, _ = random_lap().at(np.arange(800) * 0.01)
    spectrum = np.abs(np.fft.rfft(position, axis=0))
    frequency = np.fft.rfftfreq(800, 0.01)
    assert spectrum[frequency > 1.01].max() < 1e-9 * spectrum.max()
    assert choose_harmonics(8.0, 1.0, 5).tolist() == [1, 3, 4, 6, 8]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), size=st.floats(0.01, 100.0))
def test_every_variable_gives_a_motion_within_the_limits_that_uses_one_of_them(seed: int, size: float) -> None:
    family = FeasibleTrajectories(8.0, choose_harmonics(8.0, 1.0, 5), limits())
    variables = size * np.random.default_rng(seed).standard_normal(family.dimension)
    position, velocity, acceleration = family.trajectory(variables).at(np.linspace(0.0, 8.0, 4001))
    bounds, slack = limits(), 1e-9
    assert (position >= bounds.lower - slack).all() and (position <= bounds.upper + slack).all()
    use = [
        np.ptp(position, axis=0) / (bounds.upper - bounds.lower),
        np.abs(velocity).max(axis=0) / bounds.velocity,
        np.abs(acceleration).max(axis=0) / bounds.acceleration,
    ]
    assert (np.max(use, axis=0) <= 1.0 + slack).all() and (np.max(use, axis=0) > 0.98).all()


def test_a_plan_keeps_its_margin_on_every_sample(plan: ExcitationPlan) -> None:
    bounds = limits().within(OPTIONS.margin)
    assert (plan.position >= bounds.lower - 1e-9).all() and (plan.position <= bounds.upper + 1e-9).all()
    assert (np.abs(plan.velocity) <= bounds.velocity + 1e-9).all()
    assert (np.abs(plan.acceleration) <= bounds.acceleration + 1e-9).all()
    assert (np.abs(plan.torque) <= bounds.effort).all()
    for signal in (plan.velocity, plan.acceleration):
        np.testing.assert_allclose(signal[[0, -1]], 0.0, atol=1e-12)
    np.testing.assert_allclose(plan.position[0], plan.position[-1], atol=1e-12)
    np.testing.assert_allclose(np.diff(plan.time), 0.01, atol=1e-12)
    np.testing.assert_allclose(
        np.diff(plan.position, axis=0), 0.005 * (plan.velocity[1:] + plan.velocity[:-1]), atol=2e-4
    )


def test_planning_beats_random_motion_in_condition_and_in_error_bars(plan: ExcitationPlan) -> None:
    assert plan.planned.condition < 0.7 * plan.random.condition
    assert plan.planned.log_sigma < plan.random.log_sigma - np.log(1.2)


def test_predicted_error_bars_are_those_of_a_fit(plan: ExcitationPlan) -> None:
    """What the criterion promises holds for least squares on what is written, against other motions in the limits."""
    family = FeasibleTrajectories(6.0, choose_harmonics(6.0, 1.0, 4), limits().within(OPTIONS.margin))
    generator = np.random.default_rng(0)
    laps = [family.trajectory(family.random(generator)).at(np.arange(600) * 0.01) for _ in range(9)]
    moving = slice(50, 650)
    planned = error_bars(plan.position[moving], plan.velocity[moving], plan.acceleration[moving])
    others = np.median([np.log(error_bars(*lap)).mean() for lap in laps])
    assert np.log(planned).mean() < others - np.log(1.3)


def error_bars(position: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
    """Of unit noise: five base parameters of a planar arm (by hand), F_c and F_v of each joint; gravity known."""
    model = FixedBaseModel(arm(), JOINTS)
    names = ("Iyy shoulder", "mx shoulder", "Iyy elbow", "mx elbow", "mx slide", "m slide")
    columns = model.regressor(position, velocity, acceleration)[:, :, [model.standard_names.index(k) for k in names]]
    friction = [signal[:, :, None] * np.eye(3) for signal in (np.sign(velocity), velocity)]
    W = np.concatenate([columns, *friction], axis=2).reshape(position.size, -1)
    return np.asarray(np.sqrt(np.diagonal(np.linalg.inv(W.T @ W))))


def test_every_joint_dwells_at_low_speeds_in_both_directions(plan: ExcitationPlan) -> None:
    for level in OPTIONS.sweep_levels:
        speed = level * OPTIONS.margin * limits().velocity
        for sign in (1.0, -1.0):
            dwelling = np.isclose(plan.velocity, sign * speed, rtol=1e-6).sum(axis=0)
            assert (dwelling >= 0.95 * OPTIONS.dwell * OPTIONS.rate).all(), (level, sign)


def test_sweeps_reach_as_far_as_wanted_and_come_back() -> None:
    speeds = np.array([[0.1, -0.2], [0.3, -0.6]])
    time = np.linspace(0.0, sweep_duration(2, 2.0, 0.5), 9001)
    position, velocity, _ = slow_sweeps(np.array([1.0, 2.0]), speeds, 2.0, 0.5, time)
    np.testing.assert_allclose(np.abs(position - [1.0, 2.0]).max(axis=0), sweep_reach(speeds[1], 2.0, 0.5), rtol=1e-6)
    np.testing.assert_allclose(position[-1], [1.0, 2.0], atol=1e-12)
    np.testing.assert_allclose(velocity.max(axis=0), [0.3, 0.6], rtol=1e-9)


def test_known_inertia_leaves_friction_alone() -> None:
    options = ExcitationOptions(duration=4.0, seeds=1, iterations=2, harmonics=3, known_inertia=True)
    names = optimize_excitation(FixedBaseModel(arm(), JOINTS), limits(), options).parameters
    assert names == tuple(f"{kind} {joint}" for kind in ("coulomb", "viscous", "offset") for joint in JOINTS)


def test_weak_motors_get_smaller_motions_and_too_weak_ones_an_error() -> None:
    options = ExcitationOptions(duration=4.0, seeds=1, iterations=4, harmonics=3)

    def planned(effort: float) -> ExcitationPlan:
        model = FixedBaseModel(arm(effort), JOINTS)
        return optimize_excitation(model, limits_of_urdf(model), options)

    assert np.abs(planned(40.0).torque).max() <= options.margin * 40.0
    with pytest.raises(ConfigError, match="'shoulder' against gravity takes more than its effort limit allows"):
        planned(2.0)


def test_limits_that_a_urdf_lacks_are_named() -> None:
    model = FixedBaseModel(arm(effort=0.0, limit='velocity="0" lower="0" upper="0"'), JOINTS)
    bounds = limits_of_urdf(model, acceleration=5.0)
    assert bounds.lower[0] == -np.pi and bounds.velocity[0] == 1.0 and np.isinf(bounds.effort).all()
    assert bounds.acceleration.tolist() == [5.0, 5.0, 5.0]
    assert any("position limits of shoulder" in text for text in bounds.choices)
    assert any("velocity limit of shoulder" in text for text in bounds.choices)
    with pytest.raises(RobotModelError, match="no joint 'wrist'; it has 'elbow', 'shoulder', 'slide'"):
        FixedBaseModel(arm(), ("wrist",))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"duration": 2.0, "bandwidth": 1.0}, "longer duration"),
        ({"rate": 5.0}, "at most a tenth"),
        ({"margin": 1.2}, "margin"),
    ],
)
def test_impossible_wishes_are_refused(fields: dict[str, float], reason: str) -> None:
    with pytest.raises(FrictionEstimatorError, match=reason):
        optimize_excitation(FixedBaseModel(arm(), JOINTS), limits(), ExcitationOptions(**fields))


def test_files_hold_the_plan(plan: ExcitationPlan, tmp_path: Path) -> None:
    write_trajectory_csv(tmp_path / "plan.csv", plan)
    log = joint_log_from_table(tmp_path / "plan.csv", JOINTS)
    np.testing.assert_allclose(log.position, plan.position, atol=1e-8)
    np.testing.assert_allclose(log.inputs["acceleration"], plan.acceleration, atol=1e-7)
    pytest.importorskip("rosbags", reason="rosbags is not installed")
    write_trajectory_bag(tmp_path / "plan", plan)
    reader = BagReader(tmp_path / "plan")
    (recorded,) = reader.messages()
    message = reader.decode(recorded)
    assert (recorded.topic, recorded.type) == (f"/{TRAJECTORY_TOPIC}", TRAJECTORY)
    assert tuple(message.joint_names) == JOINTS and len(message.points) == plan.time.size
    point = message.points[777]
    assert point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec == pytest.approx(7.77)
    np.testing.assert_array_equal(point.positions, plan.position[777])
