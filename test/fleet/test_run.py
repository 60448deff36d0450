"""Many bags on workers: the same numbers as one by one, and nothing lost or twice when something dies."""

# ruff: noqa: E402  (what the imports need may be missing)

from __future__ import annotations

import pytest

pytest.importorskip("distributed", reason="the extra 'fleet' is not installed")

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import dask
import distributed
import fsspec
import pyarrow as pa

from friction_estimator import fleet
from friction_estimator.cli.main import main
from friction_estimator.errors import ConfigError
from friction_estimator.fleet.bag_task import (
    FleetRobot,
    IdentifyTask,
    ReplayTask,
    load_fleet_robots,
    process_bag,
    robots_near,
)
from friction_estimator.fleet.run import FleetError, local_or_given_cluster, process_on_worker
from friction_estimator.fleet.storage import SCHEMA, find_bags, read_table
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.bags.writer import BagWriter

JOINTS = 12
WHOLE, OF_UNIT_1, BROKEN = 5, 3, 1
"""Bags with rows of the fleet and of its first robot, one of which is cut off, and bags without any message."""

_KILLED_WRITER = """
import os, signal, sys
from friction_estimator.fleet.storage import write_bytes

os.replace = lambda *paths: os.kill(os.getpid(), signal.SIGKILL)
write_bytes(sys.argv[1], "replay/month=2026-01/killed.parquet", b"half of a file")
"""


@pytest.fixture(scope="module")
def folder(fleet_bags: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Output folder with the rows of all bags, made in this process, and what a writer leaves that is killed."""
    task = ReplayTask(str(tmp_path_factory.mktemp("one_by_one")))
    robots = load_fleet_robots(fleet_bags / "fleet.yaml")
    for bag in find_bags([str(fleet_bags)]):
        process_bag(bag.url, robots, task)
    ended = subprocess.run([sys.executable, "-c", _KILLED_WRITER, task.output])
    assert ended.returncode == -signal.SIGKILL
    return Path(task.output)


@pytest.fixture(scope="module")
def one_by_one(folder: Path) -> pa.Table:
    return read_table([str(folder)])


def test_two_workers_give_the_rows_of_one_by_one_and_a_second_run_does_nothing(
    fleet_bags: Path, scheduler: str, one_by_one: pa.Table, tmp_path: Path
) -> None:
    robots, done = fleet_bags / "fleet.yaml", []
    first = fleet.replay(
        fleet_bags, robots, output=tmp_path, scheduler=scheduler, progress=lambda *now: done.append(now[1:])
    )
    assert (len(first.finished), len(first.failed)) == (WHOLE, BROKEN)
    assert "which its metadata.yaml names" in first.failed[0].reason and first.failed[0].bag.endswith("lost")
    assert read_table([str(tmp_path)]).equals(one_by_one) and one_by_one.num_rows == WHOLE * JOINTS
    size = sum(bag.size for bag in find_bags([str(fleet_bags)]))
    assert len(done) == WHOLE + BROKEN and done[-1] == (size, size)
    moved = shutil.move(fleet_bags / "unit_1", fleet_bags / "renamed")  # the content of a bag counts, not its place
    try:
        patterns = tmp_path / "fleet.yaml"
        patterns.write_text(robots.read_text().replace("*/unit_1/*", "*/renamed/*"))
        again = fleet.replay([f"{fleet_bags}/*"], patterns, output=tmp_path, scheduler=scheduler)
    finally:
        shutil.move(moved, fleet_bags / "unit_1")
    assert (len(again.finished), len(again.skipped), len(again.failed)) == (0, WHOLE, BROKEN)


def test_the_command_lists_the_failed_bags_and_ends_with_one(
    fleet_bags: Path, scheduler: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bags = [f"{fleet_bags}/unit_2", f"{fleet_bags}/unit_1/lost"]
    options = ["--robots", f"{fleet_bags}/fleet.yaml", "-o", str(tmp_path), "--scheduler", scheduler]
    assert main(["fleet", "replay", *bags, *options]) == 1
    printed, errors = capsys.readouterr()
    assert printed == f"{tmp_path}/replay: 2 bags finished, 0 were finished before, 1 failed\n"
    assert "Dask's dashboard, where bokeh is installed: http://" in errors
    table = " ".join(errors.split("Bags that failed")[1].split())
    assert f"{fleet_bags}/unit_1/lost" in table and "which its metadata.yaml" in table and "unit_2" not in table
    assert main(["fleet", "replay", bags[0], *options]) == 0


def test_workers_of_this_machine_have_one_thread_for_linear_algebra_and_no_profiler() -> None:
    with local_or_given_cluster(None, 1) as client:
        (threads,) = client.run(os.getenv, "OPENBLAS_NUM_THREADS").values()
        (profiled,) = client.run(dask.config.get, "distributed.worker.profile.enabled").values()
    assert threads == "1" and profiled is False


def test_the_largest_bag_starts_first_and_an_error_that_nobody_expected_is_the_reason_of_its_bag_alone(
    fleet_bags: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_once(url: str, *others: object) -> fleet.BagResult:
        if url.endswith("lost"):
            raise OSError("the disk is broken")
        return process_bag(url, *others)

    monkeypatch.setattr("friction_estimator.fleet.run.process_bag", fail_once)
    one_thread = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**one_thread) as cluster:
        unit_1, address = fleet_bags / "unit_1", cluster.scheduler_address
        run = fleet.replay(unit_1, fleet_bags / "fleet.yaml", output=tmp_path, scheduler=address)
    sizes = {bag.url: bag.size for bag in find_bags([str(unit_1)])}
    assert [sizes[result.bag] for result in run.results] == sorted(sizes.values(), reverse=True)
    assert [result.reason for result in run.failed] == ["OSError: the disk is broken"]
    assert len(run.finished) == OF_UNIT_1


def test_rows_that_are_only_on_the_disk_of_a_worker_end_the_run(
    fleet_bags: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(url: str, *others: object) -> fleet.BagResult:
        return fleet.BagResult(url, "finished", rows=f"{tmp_path}/of_another_machine.parquet")

    monkeypatch.setattr("friction_estimator.fleet.run.process_bag", elsewhere)
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        with pytest.raises(FleetError, match="the output folder must be shared by all machines, or a URL"):
            fleet.replay(fleet_bags, fleet_bags / "fleet.yaml", output=tmp_path, scheduler=address)


def test_a_worker_that_comes_later_with_another_version_does_nothing(tmp_path: Path) -> None:
    result = process_on_worker("bag", (), ReplayTask(str(tmp_path)), "0.0.1")
    assert result.status == "failed" and "the client has 0.0.1" in result.reason


def test_a_changed_robot_or_version_replaces_the_rows_of_a_bag(
    fleet_bags: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, bag = ReplayTask(str(tmp_path)), find_bags([f"{fleet_bags}/unit_2"])[-1].url
    robots = load_fleet_robots(fleet_bags / "fleet.yaml")
    unit = robots[1]
    momentum = replace(unit.robot, config=replace(unit.robot.config, observer="momentum"))
    changed = (robots[0], replace(unit, robot=momentum))
    done = [process_bag(bag, fleet_, task).status for fleet_ in (robots, robots, changed, changed)]
    assert done == ["finished", "skipped", "finished", "skipped"]
    monkeypatch.setattr("friction_estimator.__version__", "0.0.1")
    assert process_bag(bag, changed, task).status == "finished"
    rows = read_table([str(tmp_path)])
    assert rows["version"].unique().to_pylist() == ["0.0.1"] and rows.num_rows == JOINTS


def test_a_killed_worker_loses_nothing_and_does_nothing_twice(
    fleet_bags: Path, scheduler: str, one_by_one: pa.Table, tmp_path: Path
) -> None:
    with distributed.Client(scheduler) as client:
        pids = client.run(os.getpid)

        def kill_a_busy_worker(result: fleet.BagResult, done: int, total: int) -> None:
            busy = [address for address, tasks in client.processing().items() if tasks and address in pids]
            if len(pids) == 2 and busy:
                os.kill(pids.pop(busy[0]), signal.SIGKILL)

        run = fleet.replay(
            fleet_bags,
            fleet_bags / "fleet.yaml",
            output=tmp_path,
            scheduler=scheduler,
            progress=kill_a_busy_worker,
        )
    assert len(pids) == 1
    assert len(run.failed) == BROKEN and len(run.results) == WHOLE + BROKEN
    assert read_table([str(tmp_path)]).equals(one_by_one)


@dataclass(frozen=True)
class DeadlyRobot(FleetRobot):
    """A robot whose cut-off bag kills the worker that opens it, as one does that needs too much memory."""

    def owns(self, url: str, custom_data: Mapping[str, str]) -> bool:
        if url.endswith("cut_off"):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().owns(url, custom_data)


def test_a_bag_that_kills_every_worker_fails_and_all_others_are_finished(
    fleet_bags: Path, one_by_one: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robots = load_fleet_robots(fleet_bags / "fleet.yaml")
    deadly = tuple(DeadlyRobot(robot.serial, robot.robot, robot.bags) for robot in robots)
    monkeypatch.setattr("friction_estimator.fleet.run.load_fleet_robots", lambda path: deadly)
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        run = fleet.replay(fleet_bags / "unit_1", fleet_bags / "fleet.yaml", output=tmp_path, workers=2)
    reasons = {Path(result.bag).name: result.reason for result in run.failed}
    assert reasons.keys() == {"cut_off", "lost"} and len(run.finished) == OF_UNIT_1 - 1
    assert reasons["cut_off"].startswith("its worker died 1 times with this bag alone")
    others = pa.compute.match_substring_regex(one_by_one["bag"], "unit_1/20")
    assert read_table([str(tmp_path)]).equals(one_by_one.filter(others))


def test_a_lost_scheduler_ends_the_run_clearly_and_the_next_run_does_what_is_missing(
    fleet_bags: Path, scheduler: str, one_by_one: pa.Table, tmp_path: Path
) -> None:
    file, output = tmp_path / "scheduler.json", tmp_path / "friction"
    module, common = [sys.executable, "-m"], ["--scheduler-file", str(file), "--dashboard-address", ":0"]
    lost = subprocess.Popen([*module, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", *common])
    worker = subprocess.Popen([*module, "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", *common])
    try:
        while not (file.exists() and file.read_text().endswith("}")):
            assert lost.poll() is None
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        bags, robots = fleet_bags / "unit_1", fleet_bags / "fleet.yaml"
        with pytest.raises(FleetError, match="the connection to the scheduler was lost after 1 of 4 bags"):
            fleet.replay(bags, robots, output=output, scheduler=address, progress=lambda *ignored: lost.kill())
    finally:
        lost.kill()
        worker.kill()
        lost.wait()
        worker.wait()
    run = fleet.replay(bags, robots, output=output, scheduler=scheduler)
    assert len(run.skipped) >= 1 and len(run.skipped) + len(run.finished) == OF_UNIT_1
    of_unit_1 = pa.compute.equal(one_by_one["serial"], "unit_1")
    assert read_table([str(output)]).equals(one_by_one.filter(of_unit_1))


def test_bags_and_rows_may_be_in_an_object_store(fleet_bags: Path, one_by_one: pa.Table, tmp_path: Path) -> None:
    store = fsspec.filesystem("memory")
    store.put(f"{fleet_bags}/unit_2", "/store/unit_2", recursive=True)
    task = ReplayTask("memory://rows")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    robots = load_fleet_robots(fleet_bags / "fleet.yaml")
    found = find_bags(["memory://store/unit_2"])
    results = [process_bag(bag.url, robots, task, str(scratch)) for bag in found]
    assert [result.status for result in results] == ["finished", "finished"]
    store.put(f"{fleet_bags}/unit_1/lost", "/store/unit_1/lost", recursive=True)
    (broken,) = set(find_bags(["memory://store/unit_*"])) - set(found)
    assert process_bag(broken.url, robots, task, str(scratch)).status == "failed"
    assert list(scratch.iterdir()) == []
    rows = read_table(["memory://rows"])
    local = one_by_one.filter(pa.compute.equal(one_by_one["serial"], "unit_2"))
    assert rows.drop_columns("bag").equals(local.drop_columns("bag"))


def test_a_report_of_each_bag_is_written_on_request(fleet_bags: Path, one_by_one: pa.Table, tmp_path: Path) -> None:
    task = ReplayTask(str(tmp_path), reports=True)
    bag = find_bags([f"{fleet_bags}/unit_2"])[0].url
    assert process_bag(bag, load_fleet_robots(fleet_bags / "fleet.yaml"), task).status == "finished"
    rows = read_table([str(tmp_path)])
    (report,) = set(rows["report"].to_pylist())
    assert "unit_2" in (tmp_path / report).read_text()
    of_bag = one_by_one.filter(pa.compute.equal(one_by_one["bag"], bag))
    assert rows.drop_columns("report").equals(of_bag.drop_columns("report"))


def test_identify_writes_rows_too(fleet_bags: Path, tmp_path: Path) -> None:
    task = IdentifyTask(str(tmp_path), method="friction_curve", law="coulomb_viscous")
    robots = load_fleet_robots(fleet_bags / "fleet.yaml")
    result = process_bag(find_bags([f"{fleet_bags}/unit_2"])[0].url, robots, task)
    assert result.status == "finished", result.reason
    rows = read_table([str(tmp_path)]).to_pylist()
    knee = next(row for row in rows if row["joint"] == "l_knee")
    assert knee["coulomb_sigma"] > 0.0 and knee["fast"] > knee["slow"] > 0.0 and len(rows) == JOINTS


@pytest.mark.parametrize("library", ["pandas", "polars", "duckdb"])
def test_other_libraries_open_the_table_as_it_is(library: str, folder: Path) -> None:
    module = pytest.importorskip(library)
    if library == "duckdb":
        found = module.sql(f"SELECT * FROM '{folder}/replay/**/*.parquet'")
        names, count = found.columns, len(found.fetchall())
        assert module.sql(f"SELECT min(start) FROM '{folder}/replay/**/*.parquet'").fetchall()[0][0].year == 2026
    else:
        names, count = (frame := module.read_parquet(folder / "replay")).columns, len(frame)
    assert set(SCHEMA.names) <= set(names) and "month" in names and count == WHOLE * JOINTS


def test_every_column_has_a_description() -> None:
    assert all(SCHEMA.field(name).metadata[b"description"] for name in SCHEMA.names)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("robots: []", "'robots' must hold one entry a serial number"),
        ("robots: {unit_1: {bags: ['*']}}", "robot 'unit_1' must hold 'robot' and may hold 'bags', 'metadata'"),
        ("robots: {unit_1: {robot: suralp}}", "robot 'unit_1' needs 'bags'"),
        ("robots: {unit_1: {robot: suralp, bags: 3}}", "'bags' must be a list of patterns"),
        ("robots: {unit_1: {robot: no_such, bags: ['*']}}", "robot 'unit_1': .*no_such"),
        ("robots: {unit_1: {robot: suralp, bags: ['*'], serial: 3}}", "may hold"),
    ],
)
def test_a_wrong_yaml_of_the_fleet_is_one_clear_error(
    text: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fleet.yaml").write_text(text)
    assert main(["fleet", "replay", str(tmp_path), "--robots", str(tmp_path / "fleet.yaml")]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.search(reason, error)


def test_custom_data_of_a_bag_name_its_robot_and_a_namespace_its_topics(
    fleet_bags: Path, one_by_one: pa.Table, tmp_path: Path
) -> None:
    bag = BagReader(find_bags([f"{fleet_bags}/unit_2"])[0].url)
    with BagWriter(tmp_path / "both", custom_data={"vehicle": "8"}) as writer:
        for message in bag.messages():
            for namespace in ("robot7", "robot8"):
                writer.write_raw(f"/{namespace}{message.topic}", message.type, message.time_ns, message.raw)
    robots = tmp_path / "fleet.yaml"
    entry = "{{robot: suralp, namespace: robot{0}, metadata: {{vehicle: '{0}'}}}}"
    robots.write_text(f"robots: {{unit_8: {entry.format(8)}, unit_9: {entry.format(9)}}}")
    result = process_bag(str(tmp_path / "both"), load_fleet_robots(robots), ReplayTask(str(tmp_path)))
    assert result.status == "finished", result.reason
    rows = read_table([str(tmp_path)])
    same = ["joint", "temperature", "coulomb", "viscous_sigma", "friction_rms", "samples"]
    alone = one_by_one.filter(pa.compute.equal(one_by_one["bag"], str(bag.path)))
    assert rows.select(same).equals(alone.select(same)) and set(rows["serial"].to_pylist()) == {"unit_8"}


def test_the_robots_yaml_beside_the_bags_is_found(tmp_path: Path) -> None:
    (tmp_path / "unit_1" / "bag").mkdir(parents=True)
    assert robots_near([tmp_path]) is None
    (tmp_path / "fleet.yaml").touch()
    for place in (tmp_path, tmp_path / "unit_1", f"{tmp_path}/*"):
        assert robots_near([place]) == tmp_path / "fleet.yaml"
    (tmp_path / "unit_1" / "fleet.yaml").touch()
    with pytest.raises(ConfigError, match="several folders have a fleet.yaml: choose one of"):
        robots_near([tmp_path, tmp_path / "unit_1" / "bag"])


def test_a_bag_of_no_or_several_robots_fails_with_the_serial_numbers(fleet_bags: Path, tmp_path: Path) -> None:
    yaml = tmp_path / "fleet.yaml"
    bag = find_bags([f"{fleet_bags}/unit_2"])[0].url
    entry = "{{robot: suralp, bags: ['{}']}}"
    for patterns, reason in ((("*/a/*", "*/b/*"), "no robot claims it"), (("*", "*/unit_2/*"), "several robots")):
        entries = ", ".join(f"unit_{k}: {entry.format(pattern)}" for k, pattern in enumerate(patterns))
        yaml.write_text(f"robots: {{{entries}}}")
        result = process_bag(bag, load_fleet_robots(yaml), ReplayTask(str(tmp_path)))
        assert result.status == "failed" and reason in result.reason and "'unit_0', 'unit_1'" in result.reason


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["nothing_here"], "there is no bag at"),
        (["no_protocol://x"], "Protocol not known"),
        ([".", "--scheduler", "tcp://127.0.0.1:9", "--workers", "2"], "without 'scheduler'"),
    ],
)
def test_work_that_cannot_begin_is_one_clear_error(
    words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", "replay", *words]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and reason in error


def test_a_bag_that_is_still_being_written_is_left_out_and_one_whose_writer_was_killed_is_not(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "complete") as writer:
        writer.write_raw("a", "std_msgs/msg/String", 1, b"")
    with BagWriter(tmp_path / "open") as writer:
        writer.write_raw("a", "std_msgs/msg/String", 1, b"")
        writer.save()
        shutil.copytree(tmp_path / "open", tmp_path / "killed")
        assert {Path(bag.url).name for bag in find_bags([str(tmp_path)])} == {"complete", "killed"}


def test_a_worker_process_that_is_killed_at_its_start_is_one_error_with_the_remedy(
    fleet_bags: Path, tmp_path: Path
) -> None:
    kills = "import os, signal, sys; 'forkserver' in str(sys.orig_argv) and os.kill(os.getpid(), signal.SIGKILL)"
    (tmp_path / "sitecustomize.py").write_text(kills)
    command = [sys.executable, "-m", "friction_estimator", "fleet", "replay", str(fleet_bags / "unit_2")]
    path = os.pathsep.join([str(tmp_path), *sys.path])
    options = ["--workers", "1", "--output", str(tmp_path / "out")]
    ended = subprocess.run([*command, *options], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    assert "could not be started" in ended.stderr and "(--workers)" in ended.stderr
