"""Claims about files that are wrong, cut, huge or made to harm: one clear error, in bounded time."""

from __future__ import annotations

import io
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import friction_estimator as fe
from friction_estimator.errors import BagError, ConfigError, FrictionEstimatorError, InputError, RobotModelError
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.io.bags.arrays import joint_log_from_bag
from friction_estimator.io.documents import parse_value, read_yaml, yaml_text
from friction_estimator.io.identification_file import read_identification, save_identification
from friction_estimator.io.parameters import load_parameters
from friction_estimator.io.robot import load_coupling, load_robot, read_urdf, share_directory
from friction_estimator.io.table_files import joint_log_from_table
from test.known_identification import make_identification

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join(['*' + old] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, r"line 2, column 8: aliases \(\*name\) are not read"),
        ("a: &a [*a]", "aliases"),
        ("[" * 100_000, "line 1, column 51: more than 50 levels"),
        ("- " * 100_000, "more than 50 levels"),
        ("[" + "1," * 500_000 + "1]", "more than 500000 values"),
        ("a: !!int abc", "line 1, column 4: 'abc' is not a whole number of 64 bits"),
        ("a: " + "9" * 100_000, r"9\.\.\. \(100000 characters\)' is not a whole number"),
        ("a: 9223372036854775808", "not a whole number of 64 bits"),
        ("a: !!bool maybe", "'maybe' is not true or false"),
        ("a: !!float x", "'x' is not a number"),
        ("a: !", "the tag ! is not read"),
        ("a: !!python/object/apply:os.system [ls]", "the tag tag:yaml.org,2002:python/object/apply:os.system is not"),
        ("a: !!binary aGk=", "the tag"),
        ("=", "could not determine a constructor"),
        ("[a]: 1", "a key must be a plain name"),
        ("a: 1\n--- \nb: 2", "another document"),
        ("a: \x00", "control characters are not allowed"),
    ],
)
def test_a_hostile_yaml_is_one_error_that_names_the_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=f"{path}.*{message}") as caught:
        read_yaml(path)
    assert "\n" not in str(caught.value)


def test_a_hostile_value_of_the_command_line_is_a_short_error() -> None:
    with pytest.raises(ConfigError, match="is not valid YAML: .* is not a whole number of 64 bits") as caught:
        parse_value("9" * 100_000)
    assert len(str(caught.value)) < 300
    with pytest.raises(ConfigError, match="is not valid YAML"):
        parse_value("\udcff")  # a byte that is not UTF-8


def test_a_yaml_without_end_is_refused_by_its_size() -> None:
    with pytest.raises(ConfigError, match="cannot read /dev/zero: it has more than 32 MB"):
        read_yaml(Path("/dev/zero"))


def test_a_urdf_without_end_is_refused_by_its_size() -> None:
    with pytest.raises(RobotModelError, match="cannot read the URDF /dev/zero: it has more than 20 MB"):
        read_urdf(Path("/dev/zero"))


def test_dates_are_texts_and_repeated_lists_are_written_out() -> None:
    assert parse_value("[2020-01-01, 2020-99-99]") == ["2020-01-01", "2020-99-99"]
    row = [1.0, 2.0]
    assert parse_value(yaml_text({"a": row, "b": row})) == {"a": row, "b": row}


def member(values: object) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(values))
    return stream.getvalue()


ZEROS = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }"


def header(count: int) -> bytes:
    """An .npy whose header promises this number of numbers, and that has 16 bytes of them."""
    return (ZEROS % count).ljust(127) + b"\n" + bytes(16)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"time": member(np.zeros((3, 2)))}, r"the array 'time' has the shape \(3, 2\)"),
        ({"time": member(np.array([{}]))}, "the array 'time' does not hold numbers: its type is object"),
        ({"time": member(["a"])}, "the array 'time' does not hold numbers"),
        ({"time": header(10**15)}, "the array 'time' is cut off: it has less than 1000000000000000 numbers"),
        ({"time": b"no array"}, "is not an .npz that holds arrays of numbers only"),
        ({f"position/{k}": member([1.0]) for k in range(1001)}, "holds 1001 arrays of 0 MB; at most 1000"),
    ],
)
def test_a_hostile_npz_is_refused_before_it_is_unpacked(tmp_path: Path, members: dict, message: str) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    with pytest.raises(InputError, match=message):
        joint_log_from_table(path)


def test_an_archive_that_unpacks_to_more_than_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("friction_estimator.io.table_files._MAX_BYTES", 1_000_000)
    np.savez_compressed(tmp_path / "bomb.npz", time=np.zeros(200_000))
    assert (tmp_path / "bomb.npz").stat().st_size < 10_000
    with pytest.raises(InputError, match="holds 1 arrays of 2 MB; at most 1000 of 1 MB are read"):
        joint_log_from_table(tmp_path / "bomb.npz")


def test_a_table_of_twenty_thousand_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(",".join(f"position/{k}" for k in range(20_000)) + "\n")
    with pytest.raises(InputError, match="has 20000 columns; at most 1000 are read"):
        joint_log_from_table(path)


def test_a_joint_whose_name_has_a_line_break_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"log: the name of a joint is 'a\\nb'"):
        JointLog("log", ("a\nb",), np.zeros(1), np.zeros((1, 1)))


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bag") / "walk"
    fe.simulate("suralp", duration=0.02).save(path, storage="sqlite3")
    return next(path.glob("*.db3"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE messages SET data = 'text'", "stored as str, not as bytes"),
        ("UPDATE messages SET data = 5", "stored as int, not as bytes"),
        ("UPDATE messages SET timestamp = 'noon'", "noon|can be read|stored"),
        ("UPDATE topics SET type = 'std_msgs/msg/String'", "expected a sensor_msgs/msg/JointState"),
        ("UPDATE messages SET data = x'00010000'", "cannot be decoded"),
        ("DROP TABLE topics", "can be read"),
    ],
)
def test_a_bag_with_wrong_content_is_one_error(tmp_path: Path, bag: Path, change: str, message: str) -> None:
    path = tmp_path / "walk.db3"
    path.write_bytes(bag.read_bytes())
    with sqlite3.connect(path) as connection:
        connection.execute(change)
    connection.close()
    with pytest.raises(BagError, match=message):
        joint_log_from_bag(path)


def test_a_replay_of_payloads_that_are_texts_has_the_reason(tmp_path: Path, bag: Path) -> None:
    path = tmp_path / "walk.db3"
    path.write_bytes(bag.read_bytes())
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE messages SET data = 'text'")
    connection.close()
    with pytest.raises(BagError, match="no estimate could be made from .*: a message on /.* is stored as str, not as"):
        fe.replay(path, "suralp")


WORDS = [
    b"nan",
    b"-1",
    b"1e999",
    b'"',
    b"[",
    b"}",
    b": ",
    b"\n",
    b"!!int ",
    b"&a ",
    b"*a",
    b"\x00",
    b"\xff",
    b"9" * 400,
]


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """One to three random changes: bytes flipped, words put in, parts doubled or left out."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        start = int(rng.integers(0, len(data)))
        match int(rng.integers(0, 4)):
            case 0:
                data[start] ^= 1 << int(rng.integers(0, 8))
            case 1:
                data[start : start + int(rng.integers(0, 8))] = WORDS[int(rng.integers(0, len(WORDS)))]
            case 2:
                data[start:start] = data[start // 2 : start // 2 + int(rng.integers(0, 40))]
            case 3:
                del data[start : start + int(rng.integers(1, 30))]
    return bytes(data)


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "robot": ("yaml", load_robot),
    "coupling": ("yaml", load_coupling),
    "identification": ("yaml", read_identification),
    "parameters": ("yaml", load_parameters),
    "table": ("csv", joint_log_from_table),
    "archive": ("npz", joint_log_from_table),
    "bag": ("db3", joint_log_from_bag),
}


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory, bag: Path) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("valid")
    save_identification(folder / "friction.yaml", make_identification())
    columns = {"time": np.arange(9.0), "position/hip": np.arange(9.0), "effort/hip": np.arange(9)}
    np.savez(folder / "log.npz", **columns)
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    parameters = (folder / "friction.yaml").read_bytes()
    return {
        "robot": (share_directory() / "config" / "robots" / "suralp.yaml").read_bytes(),
        "coupling": b"/**:\n  ros__parameters:\n    robot:\n"
        b"      coupling: {joints: [a, b], motors: [m, n], matrix: [0.5, -0.5, 0.5, 0.5]}\n",
        "identification": parameters,
        "parameters": parameters,
        "table": "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]).encode(),
        "archive": (folder / "log.npz").read_bytes(),
        "bag": bag.read_bytes(),
    }


@pytest.mark.parametrize("count", [100, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", READERS)
def test_a_damaged_file_is_read_or_refused_with_an_error_of_this_package(
    tmp_path: Path, valid: dict[str, bytes], kind: str, count: int
) -> None:
    suffix, read = READERS[kind]
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(valid[kind])
    read(path)
    refused = 0
    for seed in range(count):
        path.write_bytes(damaged(valid[kind], np.random.default_rng(seed)))
        try:
            read(path)
        except FrictionEstimatorError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 0
