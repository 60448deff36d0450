"""The bags of a fleet on Dask, on this machine or on the workers of a scheduler, and the page of its joints."""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import dask
import distributed
from dask.system import CPU_COUNT

from friction_estimator.errors import ConfigError, FrictionEstimatorError, file_errors
from friction_estimator.fleet.bags import FAILED, BagResult, BagTask, find_bags
from friction_estimator.fleet.page import fleet_page
from friction_estimator.fleet.wear import WORN, JointTrend, joint_trends, read_rows
from friction_estimator.io.documents import OutputFile
from friction_estimator.io.robot import Robot, as_robot
from friction_estimator.types import AnyPath, Progress

PAGE = "fleet.html"
"""File of the page, in the folder of the output."""
_WORKER_TIMEOUT = 60.0  # time in which a scheduler must have a worker [s]
_ANSWER_TIMEOUT = 10.0  # time in which a scheduler must answer [s]
_PROFILER_OFF = {"distributed.worker.profile.enabled": False}  # it keeps 0.4 MB a second, for an hour


class FleetError(FrictionEstimatorError):
    """The scheduler or its workers are lost or cannot be used."""


@dataclass(frozen=True, slots=True)
class FleetRun:
    """Outcome of a run.

    Attributes
    ----------
    bags : one result a bag, in the order in which they ended
    joints : the trend of every joint in the table, that which changes most first; without any usable row there is none,
        and no page
    """

    bags: tuple[BagResult, ...]
    joints: tuple[JointTrend, ...]

    def bags_that(self, state: str) -> tuple[BagResult, ...]:
        """Bags that are ``finished`` by this run, were ``done before`` by an earlier one, or have ``failed``."""
        return tuple(result for result in self.bags if result.state == state)

    @property
    def worn(self) -> tuple[JointTrend, ...]:
        """Joints whose friction has grown by more than the threshold."""
        return tuple(joint for joint in self.joints if joint.state == WORN)


def replay_fleet(
    bags: AnyPath | Sequence[AnyPath] = (),
    robot: AnyPath | Robot | None = None,
    *,
    output: AnyPath = "friction",
    smooth: float | None = None,
    namespace: str = "",
    since: datetime | None = None,
    threshold: float = 0.1,
    scheduler: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> FleetRun:
    """Replay the bags of many robots into one table, and write a page with the trend of every joint.

    Bags that an earlier run into the same folder has finished with the same robot, options and version are skipped.
    Scripts start worker processes, so their code stands below ``if __name__ == "__main__":``.

    Parameters
    ----------
    bags : paths of bags, or of folders below which bags are; none: only the page is written anew
    robot : name or path as for :func:`~friction_estimator.load_robot`, or a loaded robot; None: each bag names its own
    output : folder of the results, ``rows/*.parquet`` and ``fleet.html``; workers on other machines need it, too
    smooth : fixed-lag smoothing: seconds of later data that each estimate also uses; None: as live
    namespace : of the topics in the bags
    since : the trends leave out earlier bags; without a time zone it is UTC
    threshold : growth of the friction, relative, from which on a joint is worn
    scheduler : address of a Dask scheduler; None: a cluster on this machine for the time of the run
    workers : processes of that cluster; None: one a core
    progress : called after every bag with the number of bags that are done, and of all

    Raises
    ------
    BagError
        When there is no bag at one of the paths.
    ConfigError
        When the threshold is not positive, or another run writes to the folder.
    FleetError
        When the scheduler cannot be reached, has no workers or is lost.
    """
    if workers is not None and (workers < 1 or scheduler is not None):
        raise ConfigError("'workers' is the number of processes on this machine: at least 1, and without 'scheduler'")
    folder = Path(os.path.abspath(Path(output).expanduser()))
    task = BagTask(folder, None if robot is None else as_robot(robot), smooth, namespace)
    found = find_bags([bags] if isinstance(bags, (str, os.PathLike)) else bags)
    with file_errors(f"write {folder / PAGE}"), closing(OutputFile(folder / PAGE)) as page:
        results = []
        if found:
            with _cluster(scheduler, workers) as client:
                for result in _results(client, found, task):
                    results.append(result)
                    if progress is not None:
                        progress(len(results), len(found))
        joints = joint_trends(read_rows(folder, since), threshold)
        if joints:
            page.replace(fleet_page(joints, threshold).render())
    return FleetRun(tuple(results), joints)


def _results(client: distributed.Client, bags: Sequence[Path], task: BagTask) -> Iterator[BagResult]:
    """Result of each bag, in the order in which they end.

    Raises
    ------
    FleetError
        When the connection to the scheduler is lost, or rows are not on this machine.
    """
    waiting, running = iter(bags), dict[distributed.Future, Path]()
    ended = distributed.as_completed()

    def fill() -> None:
        """Start as many bags as there are workers: a bag that waits at a worker that dies would be a suspect, too."""
        threads = max(sum(client.nthreads().values()), 1)
        while len(running) < threads and (bag := next(waiting, None)) is not None:
            future = client.submit(task.process, bag, pure=False)
            running[future] = bag
            ended.add(future)

    done = 0
    try:
        fill()
        for future in ended:
            bag = running.pop(future)
            error = future.exception(timeout=_ANSWER_TIMEOUT)
            if error is None:
                result: BagResult = future.result(timeout=_ANSWER_TIMEOUT)
            elif isinstance(error, distributed.KilledWorker):
                times, last = error.allowed_failures + 1, error.last_worker.address
                reason = f"its worker died {times} times, maybe out of memory: see the log of {last}"
                result = BagResult(bag, FAILED, reason)
            else:
                result = BagResult(bag, FAILED, f"{type(error).__name__}: {' '.join(str(error).split())}")
            if result.rows is not None and not result.rows.exists():
                raise FleetError(
                    f"the rows of {bag} are not at {result.rows}: the output folder must be shared by all machines"
                )
            done += 1
            yield result
            fill()
    except (CancelledError, TimeoutError, OSError):
        raise FleetError(
            f"the connection to the scheduler was lost after {done} of {len(bags)} bags, whose rows are kept: start "
            "the scheduler and run the same command again, which does only what is missing"
        ) from None


@contextmanager
def _cluster(scheduler: str | None, workers: int | None) -> Iterator[distributed.Client]:
    """Client of a scheduler that has workers, or of a cluster on this machine that ends with the context."""
    if scheduler is not None:
        try:
            client = distributed.Client(scheduler, timeout=_ANSWER_TIMEOUT)
        except (OSError, ValueError, TimeoutError) as error:
            raise FleetError(f"there is no Dask scheduler at {scheduler}: {error}") from None
        with client:
            try:
                client.wait_for_workers(1, timeout=_WORKER_TIMEOUT)
            except TimeoutError:
                raise FleetError(
                    f"the scheduler {scheduler} has no workers: start one with `dask worker {scheduler}`"
                ) from None
            yield client
        return
    count = workers or CPU_COUNT
    # certificates of this run alone, so that nobody else connects
    encrypted = importlib.util.find_spec("cryptography") is not None
    with dask.config.set(_PROFILER_OFF):
        try:
            cluster = distributed.LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",
                security=distributed.Security.temporary() if encrypted else None,
                silence_logs=logging.CRITICAL,
            )
        except RuntimeError as error:  # that of Dask has no more than the name of a class
            raise FleetError(
                f"the {count} worker processes could not be started ({error}): something has killed one, maybe for "
                "want of memory; run the same command again, with fewer of them (--workers)"
            ) from None
    with cluster, distributed.Client(cluster) as client:
        cluster.adapt(minimum=count, maximum=count)  # starts workers anew that Dask has given up
        yield client
