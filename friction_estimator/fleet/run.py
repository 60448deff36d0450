"""Many bags on Dask: one task a bag, the largest first, on this machine or on the workers of a scheduler."""

from __future__ import annotations

import importlib.util
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass

import dask
import distributed
from dask.system import CPU_COUNT
from fsspec.implementations.local import LocalFileSystem
from tornado.ioloop import PeriodicCallback

import friction_estimator
from friction_estimator.errors import ConfigError, FrictionEstimatorError
from friction_estimator.fleet.bag_task import (
    FAILED,
    FINISHED,
    SKIPPED,
    BagResult,
    BagTask,
    FleetRobot,
    load_fleet_robots,
    process_bag,
    robots_near,
)
from friction_estimator.fleet.storage import Bag, filesystem, find_bags
from friction_estimator.types import AnyPath

BagProgress = Callable[[BagResult, int, int], None]
"""Called after every bag with its result, the bytes that are done, and all bytes."""

_WORKER_TIMEOUT = 60.0  # time in which a scheduler must have a worker [s]
_ANSWER_TIMEOUT = 10.0  # time in which a scheduler must answer [s]
_REVIVE_PERIOD = 5.0  # interval at which missing workers of this machine are started [s]
_LOCAL_DASK_SETTINGS = {
    "distributed.worker.multiprocessing-method": "forkserver",  # workers share one import of the estimator
    "distributed.worker.profile.enabled": False,  # keeps 0.4 MB a second, for an hour
    "distributed.admin.tick.interval": "1s",  # 20 ms and 100 ms would take 3 % of a core here and 2 % in every worker
    "distributed.worker.memory.monitor-interval": "1s",
}
"""How Dask starts workers on this machine, and how often its processes look after themselves."""
_PRELOAD = ["distributed", "friction_estimator.fleet.preload"]
"""Imported by the process from which workers are forked."""
_CONNECTION_ERRORS = (CancelledError, TimeoutError, OSError)


class FleetError(FrictionEstimatorError):
    """The scheduler or its workers are lost or cannot be used."""


@dataclass(frozen=True, slots=True)
class FleetRun:
    """Outcome of a run.

    Attributes
    ----------
    output : folder or URL of the results
    results : one per bag, in the order in which they ended
    """

    output: str
    results: tuple[BagResult, ...]

    @property
    def finished(self) -> tuple[BagResult, ...]:
        """Bags that this run has finished."""
        return tuple(result for result in self.results if result.status == FINISHED)

    @property
    def skipped(self) -> tuple[BagResult, ...]:
        """Bags that an earlier run had finished."""
        return tuple(result for result in self.results if result.status == SKIPPED)

    @property
    def failed(self) -> tuple[BagResult, ...]:
        """Bags without a result, and why."""
        return tuple(result for result in self.results if result.status == FAILED)


def run_bags(
    sources: AnyPath | Sequence[AnyPath],
    robots_file: AnyPath | None,
    task: BagTask,
    scheduler: str | None,
    workers: int | None,
    progress: BagProgress | None,
    announce: Callable[[str], None] | None,
) -> FleetRun:
    """Process all bags, the largest first; errors as of :func:`friction_estimator.fleet.replay`.

    Parameters
    ----------
    sources : paths, globs or URLs of bags, or of folders below which bags are
    robots_file : YAML of the fleet, or one robot by name or YAML; None: ``fleet.yaml`` near the bags
    task : what is done with every bag
    scheduler, workers : address of a Dask scheduler; or number of processes of a cluster on this machine
    progress : called after every bag with its result, the bytes that are done, and all bytes
    announce : called with the address of Dask's dashboard
    """
    if workers is not None and (workers < 1 or scheduler is not None):
        raise ConfigError("'workers' is the number of processes on this machine: at least 1, and without 'scheduler'")
    places = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    if robots_file is None:
        robots_file = robots_near(places)
    robots = () if robots_file is None else load_fleet_robots(robots_file)
    bags = find_bags(absolute(os.fspath(place)) for place in places)
    results: list[BagResult] = []
    total, done = sum(bag.size for bag in bags), 0
    with local_or_given_cluster(scheduler, workers) as client:
        if announce is not None:
            announce(client.dashboard_link)
        _check_workers(client)
        for bag, result in _results(client, bags, robots, task):
            _check_rows(result)
            results.append(result)
            done += bag.size
            if progress is not None:
                progress(result, done, total)
    return FleetRun(task.output, tuple(results))


def _results(
    client: distributed.Client, bags: Sequence[Bag], robots: Sequence[FleetRobot], task: BagTask
) -> Iterator[tuple[Bag, BagResult]]:
    """Each bag with its result, in the order in which they end.

    Raises
    ------
    FleetError
        When the connection to the scheduler is lost.
    """
    # a task and not plain data: the scheduler sends it once to every worker, and anew when a worker dies
    shared = client.submit(tuple, robots, pure=False)
    ended, batches = 0, [bags]
    while batches:
        batch = batches.pop()
        futures = _submit(client, batch, shared, task)
        for future in distributed.as_completed(list(futures)):
            bag = futures.pop(future)
            try:
                result = _result(client, future, bag)
            except _CONNECTION_ERRORS:
                raise FleetError(
                    f"the connection to the scheduler was lost after {ended} of {len(bags)} bags, whose rows are kept: "
                    "start the scheduler and run the same command again, which does only what is missing"
                ) from None
            except distributed.KilledWorker as error:
                if len(batch) > 1:
                    batches.append([bag])  # once more and alone: another bag may have been the reason
                    continue
                times, last = error.allowed_failures + 1, error.last_worker.address
                reason = (
                    f"its worker died {times} times with this bag alone, maybe out of memory: see the log of {last}"
                )
                result = BagResult(bag.url, FAILED, reason)
            future.release()
            ended += 1
            yield bag, result


def _submit(
    client: distributed.Client, batch: Sequence[Bag], robots: distributed.Future, task: BagTask
) -> dict[distributed.Future, Bag]:
    """Futures of the tasks of some bags, the first ones with the highest priority."""
    return {
        # names of one group, so that bags wait at the scheduler: those at a worker that dies are suspects, too
        client.submit(
            process_on_worker,
            bag.url,
            robots,
            task,
            friction_estimator.__version__,
            key=f"bag-{place:06d}-{os.urandom(8).hex()}",
            priority=-place,
        ): bag
        for place, bag in enumerate(batch)
    }


def process_on_worker(url: str, robots: Sequence[FleetRobot], task: BagTask, version: str) -> BagResult:
    """Process one bag on a Dask worker; a worker with another version than ``version`` gives a failed result."""
    if version != friction_estimator.__version__:
        reason = f"its worker has friction_estimator {friction_estimator.__version__}, the client has {version}"
        return BagResult(url, FAILED, reason)
    return process_bag(url, robots, task, distributed.get_worker().local_directory)


def _result(client: distributed.Client, future: distributed.Future, bag: Bag) -> BagResult:
    """Result of a task that has ended.

    Raises
    ------
    distributed.KilledWorker
        When its workers have died.
    """
    while True:
        try:
            error = future.exception(timeout=_ANSWER_TIMEOUT)
            if error is None:
                result: BagResult = future.result(timeout=_ANSWER_TIMEOUT)
                return result
            break
        except TimeoutError:  # the worker that held the result has died, and another one looks for the rows
            if client.status != "running":
                raise
    if isinstance(error, distributed.KilledWorker):
        raise error
    return BagResult(bag.url, FAILED, f"{type(error).__name__}: {error}")


@contextmanager
def local_or_given_cluster(scheduler: str | None, workers: int | None) -> Iterator[distributed.Client]:
    """Client of a scheduler, or of a cluster on this machine that ends with the context."""
    if scheduler is None:
        count = workers or CPU_COUNT
        with _without_interrupts(), dask.config.set(_LOCAL_DASK_SETTINGS):
            distributed.utils.get_mp_context().set_forkserver_preload(_PRELOAD)
            try:
                cluster = distributed.LocalCluster(
                    n_workers=count,
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address="localhost:0",
                    security=_local_security(),
                    silence_logs=logging.CRITICAL,
                )
            except RuntimeError as error:  # that of Dask has no more than the name of a class
                raise FleetError(
                    f"the {count} worker processes could not be started ({error}): something has killed one, maybe for "
                    "want of memory; run the same command again, with fewer of them (--workers)"
                ) from None
        # Dask replaces a worker that dies, but gives it up where that takes long or where it dies at its start
        revive = PeriodicCallback(lambda: cluster.scale(count) and None, 1000.0 * _REVIVE_PERIOD)
        with cluster, distributed.Client(cluster) as client:
            cluster.loop.add_callback(revive.start)
            try:
                yield client
            finally:
                cluster.loop.add_callback(revive.stop)
        return
    try:
        client = distributed.Client(scheduler, timeout=_ANSWER_TIMEOUT)
    except (OSError, ValueError, TimeoutError) as error:
        raise FleetError(f"there is no Dask scheduler at {scheduler}: {error}") from None
    with client:
        yield client


def _local_security() -> distributed.Security | None:
    """Certificates of this run alone, so that nobody else connects; None where ``cryptography`` is not installed."""
    if importlib.util.find_spec("cryptography") is None:
        return None
    return distributed.Security.temporary()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes that start here ignore Ctrl-C on the terminal: this process ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _check_workers(client: distributed.Client) -> None:
    try:
        client.wait_for_workers(1, timeout=_WORKER_TIMEOUT)
    except TimeoutError:
        place = client.scheduler.address
        raise FleetError(f"the scheduler {place} has no workers: start one with `dask worker {place}`") from None
    try:
        versions = client.run(_version)
    except ModuleNotFoundError as error:
        raise FleetError(f"the workers lack the package {error.name!r}: install friction_estimator on them") from None
    here = _version()
    others = sorted({version for version in versions.values() if version != here})
    if others:
        raise FleetError(
            f"workers have friction_estimator {', '.join(others)}, this machine has {here}: install one version on all"
        )


def _version() -> str:
    return friction_estimator.__version__


def _check_rows(result: BagResult) -> None:
    """A file that a worker has written must be on this machine, too; an object store is the same for all."""
    if not result.rows:
        return
    fs, place = filesystem(result.rows)
    if isinstance(fs, LocalFileSystem) and not fs.exists(place):
        raise FleetError(
            f"the rows of {result.bag} are not at {result.rows}: the output folder must be shared by all machines, or "
            "a URL"
        )


def absolute(url: str) -> str:
    """A path that holds on every worker, or the URL as it is.

    Raises
    ------
    ConfigError
        When no installed package reads such URLs.
    """
    fs, place = filesystem(url)
    return str(place) if "://" not in url else url
