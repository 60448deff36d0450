"""Many bags on workers: the same numbers as one by one, and nothing lost or twice when something dies."""

# ruff: noqa: E402  (what the imports need may be missing)

from __future__ import annotations

import pytest

pytest.importorskip("distributed", reason="the extra 'fleet' is not installed")

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import dask
import distributed
import pyarrow as pa
import pyarrow.parquet as pq

import friction_estimator as fe
from benchmarks.shared.bag_messages import BagMessageTypes, write_message
from friction_estimator.cli.main import main
from friction_estimator.errors import ConfigError
from friction_estimator.fleet.bags import DONE_BEFORE, FAILED, FINISHED, ROWS, SCHEMA, BagResult, BagTask, find_bags
from friction_estimator.fleet.run import FleetError
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.bags.writer import BagWriter
from friction_estimator.io.documents import OutputFile
from friction_estimator.io.robot import load_robot

JOINTS, WHOLE, BROKEN = 12, 3, 1
"""Joints of a robot, bags with rows (one is cut off), and bags without any message."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[distributed.LocalCluster]:
    """A scheduler with a worker in this process."""
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as made:
        yield made


@pytest.fixture(scope="module")
def one_by_one(fleet_bags: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Output folder with the rows of all bags, made in this process."""
    task = BagTask(tmp_path_factory.mktemp("one_by_one"))
    states = [task.process(bag).state for bag in find_bags([fleet_bags])]
    assert (states.count(FINISHED), states.count(FAILED)) == (WHOLE, BROKEN)
    return task.output


def rows_in(folder: Path) -> pa.Table:
    return pq.read_table(folder / ROWS).sort_by([("serial", "ascending"), ("joint", "ascending")])


def test_a_worker_gives_the_rows_of_one_by_one_and_a_second_run_does_nothing(
    fleet_bags: Path, cluster: distributed.LocalCluster, one_by_one: Path, tmp_path: Path
) -> None:
    done: list[tuple[float, float]] = []
    options = {"output": tmp_path, "scheduler": cluster.scheduler_address, "progress": lambda *now: done.append(now)}
    first = fe.replay_fleet(fleet_bags, **options)
    assert (len(first.bags_that(FINISHED)), len(first.bags_that(FAILED))) == (WHOLE, BROKEN)
    assert rows_in(tmp_path).equals(rows_in(one_by_one)) and rows_in(tmp_path).num_rows == WHOLE * JOINTS
    assert done == [(k + 1, WHOLE + BROKEN) for k in range(WHOLE + BROKEN)]
    (failed,) = first.bags_that(FAILED)
    assert failed.bag.name == "lost" and "which its metadata.yaml names" in failed.reason
    moved = shutil.copytree(fleet_bags, tmp_path / "elsewhere")
    again = fe.replay_fleet(moved, **options)
    assert (len(again.bags_that(DONE_BEFORE)), len(again.bags_that(FAILED))) == (WHOLE, BROKEN)
    assert rows_in(tmp_path).equals(rows_in(one_by_one))


def test_the_rows_are_those_of_a_replay_and_a_cut_off_bag_has_a_warning(fleet_bags: Path, one_by_one: Path) -> None:
    result = fe.replay(fleet_bags / "unit_1" / "walk")
    rows = [row for row in rows_in(one_by_one).to_pylist() if row["serial"] == "unit_1"]
    for name in ("coulomb", "viscous", "coulomb_sigma", "viscous_sigma"):
        last = dict(zip(result.joint_names, getattr(result, name)[-1].tolist(), strict=True))
        assert {row["joint"]: row[name] for row in rows} == last
    assert all(row["usable"] != bool(row["reason"]) for row in rows)
    assert {row["warnings"] for row in rows_in(one_by_one).to_pylist() if "cut off" in row["warnings"]}


class DeadlyTask(BagTask):
    """Work that is killed in one bag, as by a lack of memory."""

    def process(self, bag: Path) -> BagResult:
        if bag.parent.name == "unit_1":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().process(bag)


def test_a_bag_that_kills_its_workers_fails_and_all_others_are_finished(
    fleet_bags: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("friction_estimator.fleet.run.BagTask", DeadlyTask)
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        run = fe.replay_fleet([fleet_bags / "unit_1", fleet_bags / "unit_2"], output=tmp_path, workers=1)
    assert [result.bag.parent.name for result in run.bags_that(FINISHED)] == ["unit_2"]
    (failed,) = run.bags_that(FAILED)
    assert failed.reason.startswith("its worker died 1 times") and rows_in(tmp_path).num_rows == JOINTS


def test_a_lost_scheduler_ends_the_run_clearly_and_the_next_run_does_what_is_missing(
    fleet_bags: Path, cluster: distributed.LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("friction_estimator.fleet.run._ANSWER_TIMEOUT", 1.0)
    one_thread = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**one_thread) as lost:
        options = {"output": tmp_path, "scheduler": lost.scheduler_address, "progress": lambda *now: lost.close()}
        with pytest.raises(FleetError, match="the connection to the scheduler was lost after 1 of 4 bags"):
            fe.replay_fleet(fleet_bags, **options)
    run = fe.replay_fleet(fleet_bags, output=tmp_path, scheduler=cluster.scheduler_address)
    assert run.bags_that(DONE_BEFORE) and len(run.bags_that(FAILED)) == BROKEN
    assert rows_in(tmp_path).num_rows == WHOLE * JOINTS


def test_rows_that_are_only_on_the_disk_of_a_worker_end_the_run(
    fleet_bags: Path, cluster: distributed.LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def process(task: BagTask, bag: Path) -> BagResult:
        return BagResult(bag, FINISHED, rows=tmp_path / "of_another_machine.parquet")

    monkeypatch.setattr(BagTask, "process", process)
    with pytest.raises(FleetError, match="the output folder must be shared by all machines"):
        fe.replay_fleet(fleet_bags, output=tmp_path, scheduler=cluster.scheduler_address)


def test_an_error_that_nobody_expected_is_the_reason_of_its_bag_alone(
    fleet_bags: Path, cluster: distributed.LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def process(task: BagTask, bag: Path) -> BagResult:
        if bag.name == "lost":
            raise ValueError("nobody\nexpected this")
        return BagResult(bag, DONE_BEFORE)

    monkeypatch.setattr(BagTask, "process", process)
    run = fe.replay_fleet(fleet_bags, output=tmp_path, scheduler=cluster.scheduler_address)
    assert [one.reason for one in run.bags_that(FAILED)] == ["ValueError: nobody expected this"]
    assert len(run.bags_that(DONE_BEFORE)) == WHOLE


def test_a_changed_robot_or_version_replaces_the_rows_of_a_bag(
    fleet_bags: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot, bag = load_robot("suralp"), fleet_bags / "unit_1" / "walk"
    momentum = replace(robot, config=replace(robot.config, observer="momentum"))
    states = [BagTask(tmp_path, one).process(bag).state for one in (robot, None, momentum, momentum)]
    assert states == [FINISHED, DONE_BEFORE, FINISHED, DONE_BEFORE]
    late = BagTask(tmp_path, momentum).process
    monkeypatch.setattr("friction_estimator.__version__", "0.0.1")
    assert "the run 0.2.0: install one version" in late(bag).reason
    assert BagTask(tmp_path, momentum, version="0.0.1").process(bag).state == FINISHED
    assert set(rows_in(tmp_path)["version"].to_pylist()) == {"0.0.1"} and rows_in(tmp_path).num_rows == JOINTS


def test_rows_that_cannot_be_written_are_the_reason_and_the_old_ones_stay(fleet_bags: Path, tmp_path: Path) -> None:
    task, bag = BagTask(tmp_path), fleet_bags / "unit_1" / "walk"
    rows = task.process(bag).rows
    assert rows is not None
    before = rows.read_bytes()
    with closing(OutputFile(rows)):
        other = replace(task, smooth=0.1).process(bag)
    assert other.state == FAILED and f"it is in use by process {os.getpid()}" in other.reason
    assert rows.read_bytes() == before and [file.name for file in rows.parent.iterdir()] == [rows.name]


def test_a_second_run_into_the_same_folder_is_refused_with_the_process_of_the_first(tmp_path: Path) -> None:
    with closing(OutputFile(tmp_path / "fleet.html")):
        with pytest.raises(ConfigError, match=f"fleet.html: it is in use by process {os.getpid()}"):
            fe.replay_fleet(output=tmp_path)


def test_custom_data_of_a_bag_has_the_serial_number_and_a_namespace_its_topics(
    fleet_bags: Path, one_by_one: Path, tmp_path: Path
) -> None:
    bag = BagReader(fleet_bags / "unit_1" / "walk")
    with BagWriter(tmp_path / "both", custom_data={"serial": "../8"}) as writer:
        for message in bag.messages():
            for namespace in ("robot7", "robot8"):
                writer.write_raw(f"/{namespace}{message.topic}", message.type, message.time_ns, message.raw)
        for namespace, value in (("robot7", 7.0), ("robot8", 38.0)):
            temperature = BagMessageTypes().make("sensor_msgs/msg/Temperature", temperature=value)
            write_message(writer, f"{namespace}/temperature", bag.end_ns, temperature)
    task = BagTask(tmp_path / "friction", load_robot("suralp"), namespace="robot8")
    result = task.process(tmp_path / "both")
    assert result.state == FINISHED and result.rows is not None, result.reason
    assert result.rows.parent == tmp_path / "friction" / ROWS
    rows = rows_in(tmp_path / "friction")
    assert set(rows["serial"].to_pylist()) == {"../8"} and set(rows["temperature"].to_pylist()) == {38.0}
    alone = [row["coulomb"] for row in rows_in(one_by_one).to_pylist() if row["serial"] == "unit_1"]
    assert rows["coulomb"].to_pylist() == alone


@pytest.mark.parametrize("library", ["pandas", "polars", "duckdb"])
def test_other_libraries_open_the_table_whatever_a_killed_writer_has_left(library: str, one_by_one: Path) -> None:
    module, rows = pytest.importorskip(library), one_by_one / ROWS
    (rows / ".half.parquet.0123456789abcdef.tmp").write_bytes(b"half of a file")
    if library == "duckdb":
        found = module.sql(f"SELECT * FROM '{rows}/*.parquet'")
        names, count = found.columns, len(found.fetchall())
    else:
        place = rows / "*.parquet" if library == "polars" else rows
        names, count = (frame := module.read_parquet(place)).columns, len(frame)
    assert list(names) == SCHEMA.names and count == WHOLE * JOINTS


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["nothing_here"], "there is no bag at"),
        ([".", "--robot", "no_such"], "no_such"),
        ([__file__.replace("test_run.py", ""), "--scheduler", "tcp://127.0.0.1:9"], "there is no bag at"),
        ([".", "--scheduler", "tcp://127.0.0.1:9", "--workers", "2"], "without 'scheduler'"),
        ([], "no friction in friction can be used"),
    ],
)
def test_work_that_cannot_begin_is_one_clear_error(
    words: list[str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["fleet", *words]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and reason in error


def test_a_bag_that_is_still_being_written_is_left_out_and_one_whose_writer_was_killed_is_not(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "complete") as writer:
        writer.write_raw("a", "std_msgs/msg/String", 1, b"")
    with BagWriter(tmp_path / "open") as writer:
        writer.write_raw("a", "std_msgs/msg/String", 1, b"")
        writer.save()
        shutil.copytree(tmp_path / "open", tmp_path / "killed")
        assert {bag.name for bag in find_bags([tmp_path])} == {"complete", "killed"}
