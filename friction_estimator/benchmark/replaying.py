"""Rows that replay a bag: how many times faster than real time it is read, estimated and written."""

from __future__ import annotations

import time

import numpy as np

from friction_estimator.benchmark.rows import Figure, Progress, Run
from friction_estimator.benchmark.timing import as_in_node, spread
from friction_estimator.compiled import prepare
from friction_estimator.estimation.smoothing import SMOOTHING_LAG
from friction_estimator.io.bags import replay as bag_replay

_REPEATS = 3


def replay(run: Run, progress: Progress) -> list[Figure]:
    """Replay as the live node estimates."""
    return [_replay(run, progress, "replay, 1 kHz bag, kalman", None, must=4.0, aim=8.0)]


def smooth(run: Run, progress: Progress) -> list[Figure]:
    """Replay with the fixed-lag smoother."""
    return [_replay(run, progress, "replay --smooth", SMOOTHING_LAG, must=2.0, aim=4.0)]


def _replay(run: Run, progress: Progress, what: str, lag: float | None, must: float, aim: float) -> Figure:
    """Speed of a replay, from opening the bag to the finished output, start of Python and imports left out."""
    count = round(1e3 * run.options.replay_seconds)
    walk, bag = run.walk("suralp", "walk", count), run.folder / f"walk_{count}"
    if not bag.exists():
        walk.write(bag, count)
    prepare()
    speeds = []
    with as_in_node():
        for repeat in range(_REPEATS):
            before = time.perf_counter()
            bag_replay.replay(
                bag, run.folder / "replayed", walk.robot.config, walk.robot.urdf_xml, overwrite=True, smooth=lag
            )
            speeds.append(run.options.replay_seconds / (time.perf_counter() - before))
            progress(repeat + 1, _REPEATS)
    return Figure(
        what,
        **spread(np.array(speeds)),
        unit="x real time",
        must=must,
        aim=aim,
        at_least=True,
        details={"bag [s]": run.options.replay_seconds},
    )
