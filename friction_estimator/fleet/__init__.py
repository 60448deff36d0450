"""Fleets: many bags and many robots on Dask, and friction over months.

    import friction_estimator as fe

    run = fe.fleet.replay("bags/*", "fleet.yaml", output="friction")
    drift = fe.fleet.drift("friction")
    for joint in drift.joints:
        print(joint.verdict)

Scripts start worker processes, so their code stands below ``if __name__ == "__main__":``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from friction_estimator.fleet.bag_task import BagResult, IdentifyTask, ReplayTask
from friction_estimator.fleet.run import BagProgress, FleetError, FleetRun, absolute, run_bags
from friction_estimator.fleet.storage import read_table
from friction_estimator.fleet.wear import FleetDrift, JointDrift, find_drift
from friction_estimator.identification.methods import find_method
from friction_estimator.types import AnyPath

__all__ = ["BagResult", "FleetDrift", "FleetError", "FleetRun", "JointDrift", "drift", "identify", "replay"]


def replay(
    bags: AnyPath | Sequence[AnyPath],
    robots: AnyPath | None = None,
    *,
    output: AnyPath = "friction",
    smooth: float | None = None,
    reports: bool = False,
    scheduler: str | None = None,
    workers: int | None = None,
    progress: BagProgress | None = None,
    announce: Callable[[str], None] | None = None,
) -> FleetRun:
    """Run the live estimator over many bags, and write one Parquet row per bag and joint.

    Bags that an earlier run into the same folder has finished with the same robot, options and version are skipped.

    Parameters
    ----------
    bags : paths, globs or URLs (fsspec) of bags, or of folders below which bags are
    robots : YAML of the fleet, or one robot by name or YAML for all bags; None: ``fleet.yaml`` in their folder, else
        each bag names its robot
    output : folder or URL of the results; workers on other machines need it, too
    smooth : fixed-lag smoothing: seconds of later data that each estimate also uses; None: as live
    reports : also write an HTML report of every bag
    scheduler : address of a Dask scheduler; None: a cluster on this machine for the time of the run
    workers : processes of that cluster; None: one a core
    progress : called after every bag with its result, the bytes that are done, and all bytes
    announce : called with the address of Dask's dashboard

    Returns
    -------
    FleetRun
        Results of all bags; ``failed`` has those that could not be used, with the reason.

    Raises
    ------
    BagError
        When there is no bag at one of the places.
    ConfigError
        When the YAML of the fleet is wrong, or no installed package reads a URL.
    FleetError
        When the scheduler cannot be reached, has no workers or is lost, or workers have another version.
    """
    task = ReplayTask(absolute(os.fspath(output)), smooth, reports)
    return run_bags(bags, robots, task, scheduler, workers, progress, announce)


def identify(
    bags: AnyPath | Sequence[AnyPath],
    robots: AnyPath | None = None,
    *,
    output: AnyPath = "friction",
    method: str | None = None,
    law: str | None = None,
    scheduler: str | None = None,
    workers: int | None = None,
    progress: BagProgress | None = None,
    announce: Callable[[str], None] | None = None,
) -> FleetRun:
    """Identify friction from each of many bags, and write one Parquet row per bag and joint.

    Parameters that are not listed here, the result and the errors are those of :func:`replay`.

    Parameters
    ----------
    method : identification method; None: the first one that data and robot allow
    law : friction law of all joints; None: that of the robot's live node
    """
    if method is not None:
        find_method(method)  # one error here, not one per bag
    task = IdentifyTask(absolute(os.fspath(output)), method, law)
    return run_bags(bags, robots, task, scheduler, workers, progress, announce)


def drift(
    tables: AnyPath | Sequence[AnyPath],
    *,
    since: datetime | None = None,
    threshold: float = 0.1,
    page: AnyPath | None = None,
) -> FleetDrift:
    """Compare the friction of every joint over time, from friction tables alone.

    Parameters
    ----------
    tables : output folders or URLs of :func:`replay` or :func:`identify`
    since : earlier bags are left out; without a time zone it is UTC
    threshold : growth of the friction, relative, from which on a joint is worn
    page : HTML page to write, with figures of the worst joints

    Returns
    -------
    FleetDrift
        ``joints``, the worst first, each with numbers and a ``verdict`` in words; ``worn`` has those that are worn.

    Raises
    ------
    ConfigError
        When there is no usable row, or the threshold is not positive.
    ReportError
        When the page cannot be written.
    """
    folders = [tables] if isinstance(tables, (str, os.PathLike)) else list(tables)
    places = [absolute(os.fspath(folder)) for folder in folders]
    if since is not None and since.tzinfo is not None:
        since = since.astimezone(UTC).replace(tzinfo=None)
    found = find_drift(read_table(places, since), threshold)
    if page is not None:
        from friction_estimator.fleet.page import drift_page

        drift_page(found, page).write(page)
    return found
