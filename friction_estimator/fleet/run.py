"""Many bags on Dask: one task a bag, the largest first, on this machine or on the workers of a scheduler."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass

import distributed

import friction_estimator
from friction_estimator.errors import ConfigError, FrictionEstimatorError
from friction_estimator.fleet.bag_task import FAILED, FINISHED, SKIPPED, BagResult, Settings, process_bag
from friction_estimator.fleet.robots import FleetRobots, load_fleet_robots
from friction_estimator.fleet.sources import Bag, filesystem, find_bags

Progress = Callable[[BagResult, int, int], None]
"""Called after every bag with its result, the bytes that are done, and all bytes."""

Path_ = str | os.PathLike[str]

_FIRST_WORKER = 60.0  # time in which a scheduler must have a worker [s]
_CONNECTION = 10.0  # time in which a scheduler must answer [s]


class FleetError(FrictionEstimatorError):
    """The scheduler or its workers are lost or cannot be used."""


@dataclass(frozen=True, slots=True)
class FleetRun:
    """Outcome of a run.

    Attributes
    ----------
    output : folder or URL of the results
    results : one a bag, in the order in which they ended
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
    sources: Path_ | Sequence[Path_],
    robots_file: Path_ | None,
    settings: Settings,
    scheduler: str | None,
    workers: int | None,
    progress: Progress | None,
    announce: Callable[[str], None] | None,
) -> FleetRun:
    """Process all bags, the largest first; parameters and errors as of :func:`friction_estimator.fleet.replay`."""
    if workers is not None and (workers < 1 or scheduler is not None):
        raise ConfigError("'workers' is the number of processes on this machine: at least 1, and without 'scheduler'")
    robots = FleetRobots() if robots_file is None else load_fleet_robots(robots_file)
    places = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    bags = find_bags(absolute(os.fspath(place)) for place in places)
    with _client(scheduler, workers) as client:
        if announce is not None:
            announce(client.dashboard_link)
        _check_workers(client)
        # a task and not plain data: the scheduler sends it once to every worker, and anew when a worker dies
        shared = client.submit(FleetRobots, robots.robots, pure=False)
        futures = {
            client.submit(_on_worker, bag.url, shared, settings, key=f"{place:06d}-{os.urandom(8).hex()}"): bag
            for place, bag in enumerate(bags)  # earlier tasks have priority
        }
        results: list[BagResult] = []
        total, done = sum(bag.size for bag in bags), 0
        for future in distributed.as_completed(list(futures)):
            bag = futures.pop(future)
            result = _result(future, bag, len(results), len(bags))
            results.append(result)
            done += bag.size
            if progress is not None:
                progress(result, done, total)
            future.release()
    _check_rows(results)
    return FleetRun(settings.output, tuple(results))


def _on_worker(url: str, robots: FleetRobots, settings: Settings) -> BagResult:
    return process_bag(url, robots, settings, distributed.get_worker().local_directory)


def _result(future: distributed.Future, bag: Bag, done: int, count: int) -> BagResult:
    """Result of a task that has ended, however it has ended."""
    try:
        error = future.exception(timeout=_CONNECTION)
        if error is None:
            result: BagResult = future.result(timeout=_CONNECTION)
            return result
    except (CancelledError, TimeoutError, OSError):
        raise FleetError(
            f"the connection to the scheduler was lost after {done} of {count} bags, whose rows are kept: start the "
            "scheduler and run the same command again, which does only what is missing"
        ) from None
    reason = f"{type(error).__name__}: {error}"
    if isinstance(error, distributed.KilledWorker):
        reason = (
            f"its worker died {error.allowed_failures + 1} times: memory? see the log of {error.last_worker.address}"
        )
    return BagResult(bag.url, FAILED, reason)


@contextmanager
def _client(scheduler: str | None, workers: int | None) -> Iterator[distributed.Client]:
    if scheduler is None:
        with _without_interrupts():
            cluster = distributed.LocalCluster(
                n_workers=workers or os.cpu_count() or 1,
                threads_per_worker=1,
                processes=True,
                dashboard_address="localhost:0",
                silence_logs=logging.CRITICAL,
            )
        with cluster, distributed.Client(cluster) as client:
            yield client
        return
    try:
        client = distributed.Client(scheduler, timeout=_CONNECTION)
    except (OSError, ValueError, TimeoutError) as error:
        raise FleetError(f"there is no Dask scheduler at {scheduler}: {error}") from None
    with client:
        yield client


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
        client.wait_for_workers(1, timeout=_FIRST_WORKER)
    except TimeoutError:
        raise FleetError(f"the scheduler {client.scheduler.address} has no workers: start some") from None
    try:
        versions = client.run(_version)
    except ModuleNotFoundError as error:
        raise FleetError(f"the workers lack the package {error.name!r}: install friction_estimator on them") from None
    here = _version()
    others = sorted({version for version in versions.values() if version != here})
    if others:
        raise FleetError(f"workers have friction_estimator {', '.join(others)}, this machine has {here}")


def _version() -> str:
    return friction_estimator.__version__


def _check_rows(results: Sequence[BagResult]) -> None:
    """Rows that workers have written must be visible here."""
    for result in results:
        if result.rows:
            fs, place = filesystem(result.rows)
            if not fs.exists(place):
                raise FleetError(
                    f"the rows of {result.bag} are not at {result.rows}: the output folder must be shared by all "
                    "machines, or a URL"
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
