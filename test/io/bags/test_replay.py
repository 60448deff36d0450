"""A replay is the pipeline on recorded messages: complete, repeatable and equal to a live run."""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from friction_estimator.config import Config
from friction_estimator.errors import BagError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.visited_velocities import VisitedVelocities
from friction_estimator.io.bags.arrays import read_recording
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.bags.replay import ReplaySummary, replay_bag
from friction_estimator.io.robot import Robot
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.messages.cdr import stamp_of
from friction_estimator.messages.topics import OUTPUTS
from friction_estimator.types import FrictionEstimate
from test.io.bags.live import by_hand

Recorded = list[tuple[str, int, Any]]
WriteBag = Callable[..., Path]
SENSORS = {"joint_states", "imu/data", "l_foot/wrench", "r_foot/wrench"}
MS = 1_000_000


@pytest.fixture
def run(robot: Robot, tmp_path: Path) -> Callable[..., ReplaySummary]:
    def run(bag: Path, output: str = "out", config: Config | None = None, **options: Any) -> ReplaySummary:
        return replay_bag(bag, tmp_path / output, config or robot.config, robot.urdf_xml, **options)

    return run


def contents(bag: Path) -> list[tuple[str, int, bytes]]:
    return [(item.topic, item.time_ns, bytes(item.raw)) for item in BagReader(bag).messages()]


def test_there_is_an_estimate_for_every_joint_state_on_every_topic(
    messages: Recorded, write_bag: WriteBag, run: Callable[..., ReplaySummary], tmp_path: Path
) -> None:
    result = run(write_bag("bag", messages))
    joint_states = sum(topic == "joint_states" for topic, _, _ in messages)
    counts = Counter(item.topic for item in BagReader(tmp_path / "out").messages())
    assert result.estimates == counts["/joint_friction"] == counts["/joint_friction/sigma"] == joint_states
    assert {"/" + topic.name for topic in OUTPUTS} <= set(counts)
    assert (result.refused, result.damage) == ({}, "")


def test_an_interrupted_replay_keeps_every_estimate_made_before(
    messages: Recorded, write_bag: WriteBag, run: Callable[..., ReplaySummary], tmp_path: Path
) -> None:
    made = []

    def interrupt(estimate: FrictionEstimate) -> None:
        made.append(estimate.stamp_ns)
        if len(made) == 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(write_bag("bag", messages), on_estimate=interrupt)
    kept = [item for item in BagReader(tmp_path / "out").messages() if item.topic == "/joint_friction"]
    assert [stamp_of(item.raw) for item in kept] == made


def test_a_replay_has_the_numbers_of_a_live_run(
    robot: Robot, messages: Recorded, write_bag: WriteBag, run: Callable[..., ReplaySummary], tmp_path: Path
) -> None:
    run(write_bag("bag", messages))
    recording = read_recording(tmp_path / "out")
    live = by_hand(Estimator(robot.config, robot.urdf_xml), messages)
    for name in ("friction", "sigma", "measured", "position", "velocity"):
        np.testing.assert_array_equal(getattr(recording, name), [getattr(estimate, name) for estimate in live])
    assert recording.viscous is not None
    np.testing.assert_array_equal(recording.viscous.values[-1], live[100].law.viscous)


def test_one_absurd_position_is_refused_with_a_warning_and_the_rest_is_estimated_as_live(
    robot: Robot, messages: Recorded, write_bag: WriteBag, run: Callable[..., ReplaySummary], tmp_path: Path
) -> None:
    absurd, places = copy.deepcopy(messages), [k for k, one in enumerate(messages) if one[0] == "joint_states"]
    wrong = places[len(places) // 2]
    absurd[wrong][2].position[3] = 1e200
    result = run(write_bag("bag", absurd))
    assert any("refused" in text and "1e+200" in text for text in result.warnings)
    live = by_hand(Estimator(robot.config, robot.urdf_xml), [one for k, one in enumerate(absurd) if k != wrong])
    assert result.estimates == len(live) == len(places) - 1
    np.testing.assert_array_equal(read_recording(tmp_path / "out").friction, [one.friction for one in live])


def test_a_replay_is_repeatable_to_the_bit(
    messages: Recorded, write_bag: WriteBag, run: Callable[..., ReplaySummary], tmp_path: Path
) -> None:
    bag = write_bag("bag", messages)
    run(bag, "first")
    run(bag, "second")
    repeated = contents(tmp_path / "first") == contents(tmp_path / "second")  # not compared in assert: slow to explain
    assert repeated


def test_storage_makes_no_difference(
    messages: Recorded, write_bag: WriteBag, run: Callable[..., ReplaySummary], tmp_path: Path
) -> None:
    run(write_bag("mcap", messages, "mcap"), "from_mcap", storage="sqlite3")
    run(write_bag("sqlite3", messages, "sqlite3"), "from_sqlite3", storage="mcap")
    first, second = contents(tmp_path / "from_mcap"), contents(tmp_path / "from_sqlite3")
    equal = sorted(first) == sorted(second)
    assert equal
    assert next((tmp_path / "from_mcap").glob("*.db3"))


def test_messages_that_arrive_out_of_order_give_the_same_estimates(
    messages: Recorded, write_bag: WriteBag, run: Callable[..., ReplaySummary], tmp_path: Path
) -> None:
    late = _delayed(messages)
    assert [item[2] for item in late] != [item[2] for item in messages]
    run(write_bag("in_order", messages), "a")
    result = run(write_bag("out_of_order", late), "b")
    first, second = read_recording(tmp_path / "a"), read_recording(tmp_path / "b")
    assert result.health.late == 0
    np.testing.assert_array_equal(first.friction, second.friction)
    np.testing.assert_array_equal(first.sigma, second.sigma)


def _delayed(messages: Recorded) -> Recorded:
    """The order after random delays of up to 3 ms; messages of one topic do not overtake each other."""
    rng, newest = np.random.default_rng(5), dict.fromkeys(SENSORS, 0)
    late = []
    for topic, time, message in messages:
        newest[topic] = max(newest.get(topic, 0) + 1, time + int(rng.integers(0, 3 * MS)))
        late.append((topic, newest[topic], message))
    return sorted(late, key=lambda item: item[1])


def test_foreign_topics_do_not_disturb(
    messages: Recorded, write_bag: WriteBag, run: Callable[..., ReplaySummary], tmp_path: Path
) -> None:
    by_topic = {topic: message for topic, _, message in messages}
    foreign = [("camera/imu", time, by_topic["imu/data"]) for _, time, _ in messages[::7]]
    foreign += [("left_arm/joint_efforts", time, by_topic["joint_states"]) for _, time, _ in messages[::11]]
    run(write_bag("bag", messages), "a")
    run(write_bag("with_others", sorted(messages + foreign, key=lambda item: item[1])), "b")
    np.testing.assert_array_equal(read_recording(tmp_path / "a").friction, read_recording(tmp_path / "b").friction)
    assert not any("camera" in topic for topic in BagReader(tmp_path / "b").topics)


def test_ground_truth_is_copied_and_sensors_when_asked(
    messages: Recorded, write_bag: WriteBag, run: Callable[..., ReplaySummary], tmp_path: Path
) -> None:
    bag = write_bag("bag", messages)
    run(bag, "plain")
    run(bag, "with_inputs", copy_inputs=True)
    recorded = contents(bag)
    truth = [item for item in recorded if item[0].startswith("/ground_truth/")]
    assert sorted(item for item in contents(tmp_path / "plain") if item[0].startswith("/ground_truth/")) == sorted(
        truth
    )
    assert set(recorded) <= set(contents(tmp_path / "with_inputs"))
    recording = read_recording(tmp_path / "plain")
    assert recording.truth is not None
    np.testing.assert_array_equal(recording.truth, 0.5 * recording.velocity)


@pytest.mark.parametrize(
    ("topic", "parameter"),
    [
        ("joint_states", "output.joint_states_topic"),
        ("imu/data", "imu.topic"),
    ],
)
def test_a_missing_topic_is_named_with_its_parameter_and_what_there_is(
    messages: Recorded,
    write_bag: WriteBag,
    run: Callable[..., ReplaySummary],
    tmp_path: Path,
    topic: str,
    parameter: str,
) -> None:
    bag = write_bag("bag", [item for item in messages if item[0] != topic])
    expected = rf"lacks the topic '{topic}' \(parameter {parameter}\); it has .*/l_foot/wrench \(geometry_msgs"
    with pytest.raises(BagError, match=expected):
        run(bag)
    assert not (tmp_path / "out").exists()


def test_without_one_foot_sensor_the_other_limb_is_still_measured(
    robot: Robot, long_messages: Recorded, write_bag: WriteBag, run: Callable[..., ReplaySummary], tmp_path: Path
) -> None:
    bag = write_bag("bag", [item for item in long_messages if item[0] != "r_foot/wrench"])
    result = run(bag, config=replace(robot.config, observer="momentum"))
    assert result.missing == (
        "the bag lacks the topic 'r_foot/wrench' (parameter feet.r_foot.topic): its limb is not measured",
    )
    assert result.estimates == sum(topic == "joint_states" for topic, _, _ in long_messages)
    recording = read_recording(tmp_path / "out")
    of_left_leg = np.array([name.startswith("l_") for name in recording.joint_names])
    assert recording.measured[-1, of_left_leg].all() and not recording.measured[:, ~of_left_leg].any()


def test_without_any_foot_sensor_nothing_can_be_measured(
    messages: Recorded, write_bag: WriteBag, run: Callable[..., ReplaySummary]
) -> None:
    bag = write_bag("bag", [item for item in messages if not item[0].endswith("foot/wrench")])
    with pytest.raises(BagError, match=r"'l_foot/wrench' \(parameter feet.l_foot.topic\), 'r_foot/wrench'"):
        run(bag)


def test_a_topic_of_the_wrong_type_is_refused(
    messages: Recorded, write_bag: WriteBag, run: Callable[..., ReplaySummary]
) -> None:
    swapped = {"imu/data": "l_foot/wrench", "l_foot/wrench": "imu/data"}
    bag = write_bag("bag", [(swapped.get(topic, topic), time, message) for topic, time, message in messages])
    with pytest.raises(
        BagError, match=r"topic /imu/data .* is a geometry_msgs/msg/WrenchStamped, expected a sensor_msgs"
    ):
        run(bag)


def test_topics_of_the_configuration_are_used(
    robot: Robot, messages: Recorded, write_bag: WriteBag, run: Callable[..., ReplaySummary]
) -> None:
    bag = write_bag("bag", [(topic.replace("imu/data", "trunk_imu"), time, item) for topic, time, item in messages])
    with pytest.raises(BagError, match="imu.topic"):
        run(bag, "a")
    config = replace(robot.config, imu=replace(robot.config.imu, topic="trunk_imu"))
    assert run(bag, "b", config).estimates == 120


def test_topics_in_a_namespace_are_found(
    messages: Recorded, write_bag: WriteBag, run: Callable[..., ReplaySummary], tmp_path: Path
) -> None:
    result = run(write_bag("bag", [(f"/robot_7/{topic}", time, item) for topic, time, item in messages]))
    assert result.estimates == 120
    assert read_recording(tmp_path / "out").truth is not None


def test_unusable_messages_are_skipped_and_counted(
    messages: Recorded, write_bag: WriteBag, run: Callable[..., ReplaySummary]
) -> None:
    spoiled = copy.deepcopy(messages)
    for _, _, message in [item for item in spoiled if item[0] == "joint_states"][10:13]:
        message.effort[4] = np.nan
    result = run(write_bag("bag", spoiled))
    assert result.estimates == 117
    ((topic, (count, reason)),) = result.refused.items()
    assert (topic, count) == ("/joint_states", 3)
    assert "joint effort l_ankle_pitch = nan cannot be true" in reason


def test_missing_effort_and_repeated_stamps_are_both_events_of_the_result(
    messages: Recorded, write_bag: WriteBag, run: Callable[..., ReplaySummary]
) -> None:
    spoiled = copy.deepcopy(messages)
    joints = [message for topic, _, message in spoiled if topic == "joint_states"]
    for message in joints[:3]:
        message.effort = np.empty(0)
    joints[1].header = joints[0].header
    health = run(write_bag("bag", spoiled)).health
    assert [event.code for event in health.events] == ["missing_effort", "repeated_stamp"]


def test_a_bag_without_joint_velocities_is_replayed_and_an_event_names_it(
    messages: Recorded, write_bag: WriteBag, run: Callable[..., ReplaySummary]
) -> None:
    spoiled = copy.deepcopy(messages)
    for topic, _, message in spoiled:
        if topic == "joint_states":
            message.velocity = np.empty(0)
    result = run(write_bag("bag", spoiled))
    assert result.estimates == 120 and not result.refused
    assert [event.code for event in result.health.events] == ["missing_velocity"]


def test_a_bag_without_one_usable_message_is_refused_with_the_reason(
    messages: Recorded, write_bag: WriteBag, run: Callable[..., ReplaySummary], tmp_path: Path
) -> None:
    spoiled = copy.deepcopy(messages)
    for topic, _, message in spoiled:
        if topic == "joint_states":
            message.position = np.empty(0)
    with pytest.raises(BagError, match=r"no estimate .*120 messages of /joint_states refused: .*position is empty"):
        run(write_bag("bag", spoiled))
    assert not (tmp_path / "out").exists()


def test_a_cut_bag_is_replayed_as_far_as_it_goes(
    messages: Recorded, write_bag: WriteBag, run: Callable[..., ReplaySummary]
) -> None:
    shift = 120 * MS
    many = [
        (topic, time + k * shift, _later(message, k * shift)) for k in range(12) for topic, time, message in messages
    ]
    file = write_bag("bag", many) / "bag.mcap"
    file.write_bytes(file.read_bytes()[: int(0.8 * file.stat().st_size)])
    result = run(file.parent)
    assert 120 < result.estimates < 12 * 120
    assert re.search(r"cut off: \d+ messages could be read", result.damage)


def _later(message: Any, shift_ns: int) -> Any:
    if not hasattr(message, "header"):
        return message
    message = copy.deepcopy(message)
    stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec + shift_ns
    object.__setattr__(message.header.stamp, "sec", stamp // 10**9)
    object.__setattr__(message.header.stamp, "nanosec", stamp % 10**9)
    return message


def test_replay_starts_from_given_parameters(
    robot: Robot, messages: Recorded, write_bag: WriteBag, run: Callable[..., ReplaySummary], tmp_path: Path
) -> None:
    bag = write_bag("bag", messages)
    identified = run(bag, "first").identified
    start = replace(identified, values=np.full_like(identified.values, 7.0))
    run(bag, "second", start=start)
    coulomb = read_recording(tmp_path / "second").coulomb
    assert coulomb is not None
    estimator = Estimator(robot.config, robot.urdf_xml)
    estimator.restore(start)
    np.testing.assert_array_equal(coulomb.values[0], by_hand(estimator, messages)[0].law.coulomb)
    visited = VisitedVelocities(JointLaws(start.law_names))
    visited.restore(start, range(len(start.values)), range(len(start.values)))
    np.testing.assert_allclose(coulomb.values[0], (visited.rows[0] * start.values).sum(axis=1), rtol=0.35)


def test_observer_is_chosen_by_the_configuration(
    robot: Robot, messages: Recorded, write_bag: WriteBag, run: Callable[..., ReplaySummary], tmp_path: Path
) -> None:
    bag, names = write_bag("bag", messages), ("fbse", "momentum")
    for name in names:
        run(bag, name, replace(robot.config, observer=name))
    first, second = (read_recording(tmp_path / name) for name in names)
    assert (first.description.observer, second.description.observer) == names
    assert not np.allclose(first.friction, second.friction)


def test_a_bag_without_estimates_cannot_be_reported(messages: Recorded, write_bag: WriteBag) -> None:
    with pytest.raises(BagError, match=r"has no topic 'joint_friction'; it has .*Run `replay` on it first"):
        read_recording(write_bag("bag", messages))
