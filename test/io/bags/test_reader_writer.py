"""What was written is read back, also from damaged, split and foreign bags."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag2 import CompressionFormat, CompressionMode, Reader, StoragePlugin, Writer

from benchmarks.shared.bag_messages import BagMessageTypes, write_message
from friction_estimator.errors import BagError
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.bags.writer import STORAGES, BagWriter

Recorded = list[tuple[str, int, Any]]
WriteBag = Callable[..., Path]


def storage_file(bag: Path) -> Path:
    return next(file for file in bag.iterdir() if file.suffix in (".mcap", ".db3"))


@pytest.fixture(params=STORAGES)
def storage(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_messages_survive_the_bag(messages: Recorded, write_bag: WriteBag, storage: str) -> None:
    reader = BagReader(write_bag("bag", messages, storage))
    read = list(reader.messages())
    assert [(item.topic, item.time_ns) for item in read] == [("/" + topic, time) for topic, time, _ in messages]
    types = BagMessageTypes()
    assert [item.raw for item in read] == [bytes(types.serialize(message)) for _, _, message in messages]
    first = reader.decode(read[0])
    assert first.name == messages[0][2].name
    np.testing.assert_array_equal(first.effort, messages[0][2].effort)


def test_a_bag_lists_its_topics(messages: Recorded, write_bag: WriteBag, storage: str) -> None:
    reader = BagReader(write_bag("bag", messages, storage))
    assert reader.message_count == len(messages)
    assert (reader.start_ns, reader.end_ns) == (messages[0][1], messages[-1][1])
    assert reader.topics["/imu/data"] == "sensor_msgs/msg/Imu"
    assert reader.damage == ""


def test_bags_are_written_as_rosbag2_record_names_them(messages: Recorded, write_bag: WriteBag, storage: str) -> None:
    bag = write_bag("bag", messages[:5], storage)
    with Reader(bag) as reader:
        assert reader.storage.metadata.message_count == 5
    assert sorted(file.name for file in bag.iterdir()) == [
        "bag.mcap" if storage == "mcap" else "bag.db3",
        "metadata.yaml",
    ]


def test_custom_data_is_kept(tmp_path: Path, messages: Recorded, storage: str) -> None:
    with BagWriter(tmp_path / "bag", storage, {"key": "value"}) as writer:
        write_message(writer, *messages[0])
    assert BagReader(tmp_path / "bag").custom_data == {"key": "value"}


def test_only_wanted_topics_are_read(messages: Recorded, write_bag: WriteBag) -> None:
    reader = BagReader(write_bag("bag", messages))
    assert {item.topic for item in reader.messages(["/imu/data"])} == {"/imu/data"}
    assert list(reader.messages([])) == []


def split(bag: Path, target: Path, messages: Recorded, storage: str, parts: int) -> None:
    """A split bag as `ros2 bag record -b` leaves it: several files, one metadata.yaml."""
    plugin = StoragePlugin.MCAP if storage == "mcap" else StoragePlugin.SQLITE3
    types, target_files = BagMessageTypes(), []
    target.mkdir()
    for part, rows in enumerate(np.array_split(np.arange(len(messages)), parts)):
        with Writer(bag / str(part), version=9, storage_plugin=plugin) as writer:
            connections: dict[str, Any] = {}
            for row in rows.tolist():
                topic, time_ns, message = messages[row]
                if topic not in connections:
                    connections[topic] = writer.add_connection(
                        "/" + topic, message.__msgtype__, typestore=types.typestore
                    )
                writer.write(connections[topic], time_ns, types.serialize(message))
        file = storage_file(bag / str(part))
        target_files.append(f"{target.name}_{part}{file.suffix}")
        shutil.copy(file, target / target_files[-1])
    metadata = (bag / "0" / "metadata.yaml").read_text()
    listed = "\n".join(f"  - {name}" for name in target_files)
    metadata = re.sub(r"relative_file_paths:\n(?:  - .*\n)+", f"relative_file_paths:\n{listed}\n", metadata)
    (target / "metadata.yaml").write_text(metadata)


@pytest.mark.parametrize("with_metadata", [True, False])
def test_split_bags_are_read_in_order(tmp_path: Path, messages: Recorded, storage: str, with_metadata: bool) -> None:
    split(tmp_path / "parts", tmp_path / "bag", messages, storage, 12)
    if not with_metadata:
        (tmp_path / "bag" / "metadata.yaml").unlink()
    reader = BagReader(tmp_path / "bag")
    read = [(item.topic, item.time_ns) for item in reader.messages()]
    assert read == [("/" + topic, time) for topic, time, _ in messages]
    assert ("metadata.yaml" in reader.damage) is not with_metadata


def test_one_file_of_a_bag_can_be_read(messages: Recorded, write_bag: WriteBag, storage: str) -> None:
    bag = write_bag("bag", messages, storage)
    assert len(list(BagReader(storage_file(bag)).messages())) == len(messages)


@pytest.mark.parametrize("part", [0.5, 0.8, 0.99])
def test_the_readable_part_of_a_cut_mcap_is_read_and_its_end_reported(
    tmp_path: Path, messages: Recorded, write_bag: WriteBag, part: float
) -> None:
    many = [
        (topic, time + k * 10**9, message) for k in range(12) for topic, time, message in messages
    ]  # several chunks
    file = storage_file(write_bag("bag", many))
    file.write_bytes(file.read_bytes()[: int(part * file.stat().st_size)])
    reader = BagReader(file.parent)
    read = [(item.topic, item.time_ns) for item in reader.messages()]
    assert read == [("/" + topic, time) for topic, time, _ in many[: len(read)]]
    assert 0 < len(read) and (len(read) < len(many) or part > 0.9)
    last = (read[-1][1] - read[0][1]) * 1e-9
    assert re.search(rf"is cut off: {len(read)} messages could be read, the last {last:.3f} s after", reader.damage)


def test_a_cut_sqlite_bag_is_one_clear_error(messages: Recorded, write_bag: WriteBag) -> None:
    file = storage_file(write_bag("bag", messages, "sqlite3"))
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(BagError, match=r"no message of the bag .*bag can be read: .*(malformed|damaged)"):
        BagReader(file.parent)


def test_garbage_in_the_middle_ends_reading_with_a_note(messages: Recorded, write_bag: WriteBag) -> None:
    many = [(topic, time + k * 10**9, message) for k in range(12) for topic, time, message in messages]
    file = storage_file(write_bag("bag", many))
    data = bytearray(file.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 4000] = bytes(4000)
    file.write_bytes(data)
    reader = BagReader(file.parent)
    read = list(reader.messages())
    assert 0 < len(read) < len(many)
    assert "messages are missing" in reader.damage


@pytest.mark.parametrize("content", [b"", b"\x89MCAP0\r\n", b"hello world"])
def test_a_file_without_messages_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.mcap").write_bytes(content)
    with pytest.raises(BagError, match="no message of the bag"):
        BagReader(tmp_path / "x.mcap")


def test_an_empty_bag_is_one_clear_error(tmp_path: Path, storage: str) -> None:
    with BagWriter(tmp_path / "bag", storage) as writer:
        writer.add_topic("joint_states", "sensor_msgs/msg/JointState")
    with pytest.raises(BagError, match="bag is empty"):
        BagReader(tmp_path / "bag")


def test_what_is_not_a_bag_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    for path, reason in (
        (tmp_path / "nothing", "there is no bag"),
        (tmp_path / "notes.txt", "is not a rosbag2"),
        (tmp_path, "is not a rosbag2"),
    ):
        with pytest.raises(BagError, match=reason):
            BagReader(path)


def test_topics_are_found_by_relative_name(messages: Recorded, write_bag: WriteBag) -> None:
    message = messages[0][2]
    reader = BagReader(write_bag("bag", [("/a/joint_states", 1, message), ("/b/joint_states", 2, message)]))
    with pytest.raises(BagError, match="several topics .*/a/joint_states, /b/joint_states; give a namespace"):
        reader.find_topic("joint_states")
    assert BagReader(reader.path, namespace="b").find_topic("joint_states") == "/b/joint_states"
    assert BagReader(reader.path, namespace="c").find_topic("joint_states") is None
    with pytest.raises(BagError, match="is a sensor_msgs/msg/JointState, expected a sensor_msgs/msg/Imu"):
        BagReader(reader.path, namespace="a").find_topic("joint_states", "sensor_msgs/msg/Imu")


def test_the_truth_is_not_taken_for_the_estimate(messages: Recorded, write_bag: WriteBag) -> None:
    truth = [item for item in messages if item[0] == "ground_truth/base_state"]
    reader = BagReader(write_bag("bag", truth))
    assert reader.find_topic("base_state") is None
    assert reader.find_topic("ground_truth/base_state") == "/ground_truth/base_state"


def test_an_undecodable_message_is_one_clear_error(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "bag") as writer:
        writer.write_raw("imu/data", "sensor_msgs/msg/Imu", 7, b"\x00\x01\x00\x00short")
    reader = BagReader(tmp_path / "bag")
    with pytest.raises(BagError, match=r"topic /imu/data: the message at 0.000 s cannot be decoded"):
        reader.decode(next(reader.messages()))


@pytest.mark.parametrize("mode", [CompressionMode.FILE, CompressionMode.MESSAGE])
def test_compressed_bags_are_read(tmp_path: Path, messages: Recorded, storage: str, mode: CompressionMode) -> None:
    types = BagMessageTypes()
    writer = Writer(
        tmp_path / "bag", version=9, storage_plugin=StoragePlugin.MCAP if storage == "mcap" else StoragePlugin.SQLITE3
    )
    writer.set_compression(mode, CompressionFormat.ZSTD)
    topic, time_ns, message = messages[0]
    with writer:
        connection = writer.add_connection("/" + topic, message.__msgtype__, typestore=types.typestore)
        writer.write(connection, time_ns, types.serialize(message))
    (read,) = BagReader(tmp_path / "bag").messages()
    assert bytes(read.raw) == bytes(types.serialize(message))


def test_topics_of_unknown_types_do_not_disturb(tmp_path: Path, messages: Recorded) -> None:
    types = BagMessageTypes()
    with Writer(tmp_path / "bag", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        own = writer.add_connection("/own", "my_robot/msg/Secret", msgdef="int8 secret", rihs01="RIHS01_" + 64 * "0")
        writer.write(own, 1, b"\x00\x01\x00\x00\x07")
        topic, _, message = messages[0]
        connection = writer.add_connection("/" + topic, message.__msgtype__, typestore=types.typestore)
        writer.write(connection, 2, types.serialize(message))
    reader = BagReader(tmp_path / "bag")
    first, second = reader.messages()
    assert reader.decode(second).name == message.name
    with pytest.raises(BagError, match="topic /own: the message type my_robot/msg/Secret is not known"):
        reader.decode(first)


def test_an_existing_bag_is_not_replaced_unless_allowed(tmp_path: Path, messages: Recorded) -> None:
    for overwrite in (False, True):
        with BagWriter(tmp_path / "bag", overwrite=overwrite) as writer:
            write_message(writer, *messages[0])
    with pytest.raises(BagError, match="exists already"):
        BagWriter(tmp_path / "bag")
    (tmp_path / "precious").mkdir()
    with pytest.raises(BagError, match="exists already"):
        BagWriter(tmp_path / "precious", overwrite=True)


def test_a_failed_run_leaves_what_it_has_written_as_a_complete_bag_or_nothing(
    tmp_path: Path, messages: Recorded, storage: str
) -> None:
    for count in (0, 1):
        with pytest.raises(RuntimeError), BagWriter(tmp_path / "bag", storage) as writer:
            for message in messages[:count]:
                write_message(writer, *message)
            raise RuntimeError
        assert [path.name for path in tmp_path.iterdir()] == ["bag"] * count
    reader = BagReader(tmp_path / "bag")
    assert (reader.message_count, reader.damage) == (1, "")


def test_an_interrupted_run_leaves_a_readable_bag(tmp_path: Path, messages: Recorded, storage: str) -> None:
    with pytest.raises(KeyboardInterrupt), BagWriter(tmp_path / "bag", storage) as writer:
        write_message(writer, *messages[0])
        raise KeyboardInterrupt
    assert BagReader(tmp_path / "bag").message_count == 1


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BagError, match="cannot write the bag"), BagWriter(tmp_path / "file" / "bag"):
        pass


def test_unknown_storage_is_refused_with_the_choices(tmp_path: Path) -> None:
    with pytest.raises(BagError, match="'mcap', 'sqlite3'"):
        BagWriter(tmp_path / "bag", "hdf5")


def test_sqlite_bags_are_sqlite(messages: Recorded, write_bag: WriteBag) -> None:
    with sqlite3.connect(storage_file(write_bag("bag", messages, "sqlite3"))) as database:
        assert database.execute("select count(*) from messages").fetchone() == (len(messages),)


def test_a_bag_that_lacks_one_of_its_files_is_refused_by_the_name_of_the_file(write_bag, messages) -> None:
    bag = write_bag("split", messages[:50])
    metadata = bag / "metadata.yaml"
    metadata.write_text(metadata.read_text().replace("[split.mcap]", "[split.mcap, split_1.mcap]"))
    with pytest.raises(BagError, match="lacks 'split_1.mcap', which its metadata.yaml names"):
        BagReader(bag)


@pytest.mark.parametrize("name", ["walk.csv", "walk.mat", "walk.npz"])
def test_a_table_given_as_a_bag_is_refused_with_what_reads_it(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("time\n0\n")
    with pytest.raises(BagError, match=f"{name} is not a rosbag2: .* `identify` reads tables"):
        BagReader(tmp_path / name)
