"""Joint logs from tables: however a program wrote them, and with one clear word on what is wrong."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from friction_estimator.errors import InputError
from friction_estimator.io.table_files import joint_log_from_table

HEADER = "time,position/hip,position/knee,velocity/hip,velocity/knee,effort/hip,effort/knee"
ROWS = np.arange(35.0).reshape(5, 7) / 8.0 - 1.0
TEXT = "\n".join([HEADER, *(",".join(f"{value:.17g}" for value in row) for row in ROWS)]) + "\n"


def write(folder: Path, text: str, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def test_columns_arrive_where_they_belong(tmp_path: Path) -> None:
    path = write(tmp_path, TEXT, "run_3.csv")
    log = joint_log_from_table(path)
    assert log.name == "run_3" and log.joint_names == ("hip", "knee")
    assert log.velocity is not None and log.effort is not None and not log.inputs
    for signal, columns in ((log.position, [1, 2]), (log.velocity, [3, 4]), (log.effort, [5, 6])):
        assert np.array_equal(signal, ROWS[:, columns])
    assert np.array_equal(log.time, ROWS[:, 0])
    assert log.digest == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + TEXT,
        TEXT.replace(",", ";"),
        TEXT.replace(",", "\t"),
        TEXT.replace(",", ";").replace(".", ","),
        TEXT.replace("\n", "\r\n"),
        TEXT.replace("\n", "\n\n"),
        "\n" + TEXT.replace("\n", ",\n"),
        "# " + TEXT + "# end\n",
        TEXT.replace("time", " Time [s]").replace("position/hip", "Position/hip (rad)"),
        TEXT.replace("effort/", "torque/"),
        TEXT.replace("position/hip", '"position/hip"'),
    ],
    ids=["BOM", "semicolon", "tab", "decimal comma", "CRLF", "blank lines", "separator at the end", "comments",
         "header case and units", "torque", "quotes"],
)  # fmt: skip
def test_all_ways_to_write_a_table_mean_the_same(tmp_path: Path, text: str) -> None:
    plain, other = joint_log_from_table(write(tmp_path, TEXT)), joint_log_from_table(write(tmp_path, text, "other.csv"))
    assert other.joint_names == plain.joint_names
    for name in ("time", "position", "velocity", "effort"):
        assert np.array_equal(getattr(other, name), getattr(plain, name))


def test_an_npz_with_the_same_columns_is_the_same_log(tmp_path: Path) -> None:
    path = tmp_path / "log.npz"
    np.savez(path, **{name: ROWS[:, place] for place, name in enumerate(HEADER.split(","))})
    log, plain = joint_log_from_table(path), joint_log_from_table(write(tmp_path, TEXT))
    assert np.array_equal(log.position, plain.position) and np.array_equal(log.effort, plain.effort)
    assert log.digest == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_single_joint_needs_no_name(tmp_path: Path) -> None:
    path = write(tmp_path, "time,position,velocity,torque,temperature\n0,1,2,3,20\n1,4,5,6,21\n")
    log = joint_log_from_table(path)
    assert log.joint_names == ("joint",) and joint_log_from_table(path, ["elbow"]).joint_names == ("elbow",)
    assert log.effort is not None and log.effort[:, 0].tolist() == [3.0, 6.0]
    assert log.inputs["temperature"][:, 0].tolist() == [20.0, 21.0]
    with pytest.raises(InputError, match="'position'.*'elbow', 'wrist'"):
        joint_log_from_table(path, ["elbow", "wrist"])


def test_wanted_joints_come_in_the_wanted_order_and_the_others_need_not_be_whole(tmp_path: Path) -> None:
    text = TEXT.replace("effort/hip", "effort/toe")  # a torque without a position
    with pytest.raises(InputError, match="'toe'.*'hip', 'knee'"):
        joint_log_from_table(write(tmp_path, text))
    knee = joint_log_from_table(write(tmp_path, text), ["knee"])
    assert knee.effort is not None and np.array_equal(knee.effort[:, 0], ROWS[:, 6])
    swapped = joint_log_from_table(write(tmp_path, TEXT), ["knee", "hip"])
    assert np.array_equal(swapped.position, ROWS[:, [2, 1]])


@pytest.mark.parametrize("column", ["velocity", "effort"])
def test_a_misspelt_column_of_a_wanted_joint_is_named_and_not_dropped(tmp_path: Path, column: str) -> None:
    text = TEXT.replace(f"{column}/knee", f"{column}/kne")
    with pytest.raises(InputError, match=f"no {column} of 'knee', but the column '{column}/kne', .* misspelt"):
        joint_log_from_table(write(tmp_path, text), ["knee"])
    assert joint_log_from_table(write(tmp_path, text), ["hip"]).joint_names == ("hip",)


def test_other_columns_are_inputs_and_missing_numbers_are_nan(tmp_path: Path) -> None:
    text = TEXT.replace("velocity/hip", "pwm/knee").replace("velocity/knee", "velocity_filter/knee")
    text = text.replace(f",{ROWS[2, 1]:.17g},", ",,", 1).replace(f",{ROWS[3, 3]:.17g},", ",NaN,", 1)
    log = joint_log_from_table(write(tmp_path, text))
    assert log.velocity is None
    assert np.isnan(log.position).sum() == 1 and np.isnan(log.position[2, 0])
    assert np.isnan(log.inputs["pwm"][:, 0]).all() and np.isnan(log.inputs["pwm"][3, 1])
    assert set(log.inputs) == {"pwm", "velocity_filter"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        (TEXT.replace("time", "clock"), "one column 'time'.*'clock'"),
        (TEXT.replace("position", "angle"), "there is no column of positions.*'angle/hip'"),
        (TEXT.replace("effort/hip", "effort/knee"), "'effort/knee' is there more than once"),
        (TEXT.replace("effort/hip", "torque/knee"), "gives effort of 'knee' a second time"),
        (TEXT.replace("effort/hip", "pwm/hip"), "'effort/hip' is missing; there is effort of 'knee'"),
        (TEXT.replace("effort/hip", "effort"), "'effort' does not name its joint"),
        (TEXT.replace(f",{ROWS[1, 2]:.17g},", ",fast,", 1), "line 3, column 'position/knee': 'fast' is not a number"),
        (TEXT + "1,2,3\n", "line 7 has 3 cells, the header names 7 columns"),
    ],
)
def test_a_bad_table_is_refused_with_file_line_and_column(tmp_path: Path, text: str, words: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=words) as caught:
        joint_log_from_table(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_joints_that_are_not_there_are_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'ankle'.*'hip', 'knee'"):
        joint_log_from_table(write(tmp_path, TEXT), ["hip", "ankle"])


def test_a_header_without_rows_is_an_empty_log(tmp_path: Path) -> None:
    assert joint_log_from_table(write(tmp_path, HEADER + "\n")).position.shape == (0, 2)


def test_files_that_are_no_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'.xlsx' cannot be read; give one of '.csv', '.npz'"):
        joint_log_from_table(write(tmp_path, TEXT, "log.xlsx"))
    with pytest.raises(InputError, match="No such file"):
        joint_log_from_table(tmp_path / "missing.csv")
    with pytest.raises(InputError, match="arrays of numbers"):
        joint_log_from_table(write(tmp_path, TEXT, "text.npz"))
    np.savez(tmp_path / "shape.npz", time=np.zeros(3), **{"position/hip": np.zeros((3, 2))})
    with pytest.raises(InputError, match="'position/hip' has the shape"):
        joint_log_from_table(tmp_path / "shape.npz")
    np.savez(tmp_path / "lengths.npz", time=np.zeros(3), **{"position/hip": np.zeros(4)})
    with pytest.raises(InputError, match="lengths differ"):
        joint_log_from_table(tmp_path / "lengths.npz")
    binary = tmp_path / "binary.csv"
    binary.write_bytes(bytes(range(256)))
    with pytest.raises(InputError, match="not a UTF-8 text"):
        joint_log_from_table(binary)


def test_units_behind_the_names_are_converted(tmp_path: Path) -> None:
    plain = joint_log_from_table(write(tmp_path, TEXT))
    factors = {"time": 1e3, "position/hip": 180.0 / np.pi, "position/knee": 4096.0 / (2.0 * np.pi)}
    factors |= {"velocity/hip": 30.0 / np.pi, "velocity/knee": 180.0 / np.pi, "effort/hip": 1e3, "effort/knee": 1.0}
    units = ("ms", "deg", "counts/4096", "rpm", "deg/s", "mNm", "Nm")
    header = ",".join(f"{name} [{unit}]" for name, unit in zip(factors, units, strict=True))
    rows = [",".join(f"{value:.17g}" for value in row) for row in ROWS * list(factors.values())]
    log = joint_log_from_table(write(tmp_path, "\n".join([header, *rows]) + "\n", "other.csv"))
    for name in ("time", "position", "velocity", "effort"):
        np.testing.assert_allclose(getattr(log, name), getattr(plain, name), rtol=1e-12)


@pytest.mark.parametrize(("name", "unit"), [("position/hip", "degrees"), ("position/hip", "counts"), ("time", "h")])
def test_an_unknown_unit_is_refused_with_those_that_there_are(tmp_path: Path, name: str, unit: str) -> None:
    with pytest.raises(InputError, match=f"is in '{unit}', expected .*'(deg|ms)'"):
        joint_log_from_table(write(tmp_path, TEXT.replace(name, f"{name} [{unit}]", 1)))
