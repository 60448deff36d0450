"""Rows of the estimator alone: steps of the observers, raw samples, many steps in one run, and replay of a bag."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType

import numpy as np

from benchmarks.speed.rows import Figure, NotMeasurableError, Progress, Run
from benchmarks.speed.yardsticks import (
    STEPS,
    Floor,
    Walk,
    as_in_node,
    interleave,
    make_simulator,
    microseconds,
    ratio,
    spread,
)
from friction_estimator.errors import ConfigError, RobotModelError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.pipeline import Pipeline
from friction_estimator.estimation.smoothing import SMOOTHING_LAG
from friction_estimator.io.bags.replay import replay_bag
from friction_estimator.io.robot import load_robot
from friction_estimator.kernels.compiler import ENTRY_POINTS, prepare
from friction_estimator.simulation import SimulationSample
from friction_estimator.types import FloatArray, FrictionEstimate

ROBOT, LARGE_ROBOT = "suralp", "g1"
WARM_UP = 7000
"""Samples before the first timed one: the robot walks, and the filters have left presliding, which costs 7 % a step."""
_MIB = 2.0**20
_REPEATS = 3
"""Replays of the bag."""
_COUNTED = 1000
"""Samples whose calls are counted."""
_EVICTING = 8 * 2**20
"""Other data that fills the caches of a core before a step, as other processes do while the node waits [bytes]."""


def calls(run: Run, progress: Progress) -> list[Figure]:
    """Calls of a sample, a mean over whole windows of the observer kalman."""
    walk = run.walk(ROBOT, "walk", WARM_UP + _COUNTED)
    add, codes = _adding(walk), [dispatcher.py_func.__code__ for dispatcher, _ in ENTRY_POINTS]
    kernels = {(code.co_filename, code.co_name) for code in codes}  # numba makes further code objects for profilers
    counts = {"Python": 0, "kernel": 0}

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            called = frame.f_code.co_filename, frame.f_code.co_name
            counts["kernel" if called in kernels else "Python"] += 1

    sys.setprofile(count)
    try:
        for number in range(_COUNTED):
            add(number)
    finally:
        sys.setprofile(None)
    progress(1, 1)
    return [
        Figure("Python calls a sample, live", counts["Python"] / _COUNTED, must=40.0, aim=25.0),
        Figure(
            "kernel calls a sample, live",
            counts["kernel"] / _COUNTED,
            must=4.0,
            aim=2.0,
            details={"kernels that Python may call": len(kernels)},
        ),
    ]


def kalman(run: Run, progress: Progress) -> list[Figure]:
    """Step of the default observer."""
    times = _against_the_floor(run, ("kalman",), progress)
    step, floor = times["kalman"], times["floor"]
    return [
        _over_floor("kalman", step, floor, must=7.0, aim=5.0),
        Figure(
            "p99 / median of that step",
            **spread(np.quantile(step, 0.99, axis=1) / np.median(step, axis=1)),
            must=1.7,
            aim=1.5,
            details={"p99 of all steps [us]": float(1e6 * np.quantile(step, 0.99))},
        ),
    ]


def observers(run: Run, progress: Progress) -> list[Figure]:
    """Steps of the published observers."""
    names = ("fbse", "momentum")
    times = _against_the_floor(run, names, progress)
    return [_over_floor(name, times[name], times["floor"], must=5.0, aim=3.5) for name in names]


def joints(run: Run, progress: Progress) -> list[Figure]:
    """Step of the default observer for a large robot and for the built-in one, both stepping in place."""
    try:
        large = run.walk(LARGE_ROBOT, "in_place", _sample_count(run))
    except (ConfigError, RobotModelError) as error:
        raise NotMeasurableError(
            f"the row needs the Python package 'example-robot-data', which has the URDF: {error}"
        ) from None
    small = run.walk(ROBOT, "in_place", _sample_count(run))
    cases = {"small": _stepping(small, "kalman"), "large": _stepping(large, "kalman")}
    times = interleave(cases, run.options.blocks, progress)
    counts = len(large.joint_names), len(small.joint_names)
    return [
        Figure(
            f"step, kalman: {counts[0]} joints / {counts[1]} joints",
            **ratio(times["large"], times["small"]),
            must=1.6,
            details={
                f"{counts[0]} joints [us]": microseconds(times["large"]),
                f"{counts[1]} joints [us]": microseconds(times["small"]),
            },
        )
    ]


def samples(run: Run, progress: Progress) -> list[Figure]:
    """Four raw samples through checks, synchronizer, step and diagnosis; the step alone is interleaved with them."""
    walk = run.walk(ROBOT, "walk", _sample_count(run))
    frames = walk.frames()
    other_data = np.zeros(_EVICTING // 8)
    floor, add, add_cold = Floor(walk.robot, frames[WARM_UP:]), _adding(walk), _adding(walk)

    def evict(number: int) -> None:
        np.add(other_data, 1.0, out=other_data)

    def after_eviction(call: Callable[[int], object]) -> Callable[[int], object]:
        def both(number: int) -> None:
            evict(number)
            call(number)

        return both

    cases: dict[str, Callable[[int], object]] = {
        "floor": floor,
        "step": _stepping(walk, "kalman"),
        "samples": add,
        "eviction": evict,
        "floor after eviction": after_eviction(floor),
        "samples after eviction": after_eviction(add_cold),
    }
    times = interleave(cases, run.options.blocks, progress)
    median = {name: np.median(durations, axis=1) for name, durations in times.items()}
    cold_floor, cold = (median[f"{name} after eviction"] - median["eviction"] for name in ("floor", "samples"))
    beyond = (median["samples"] - median["step"]) / median["floor"]
    return [
        Figure(
            "4 raw samples (Estimator.add_*, with the step) / floor",
            **ratio(times["samples"], times["floor"]),
            must=10.0,
            aim=7.0,
            details={
                "of that synchronizer, checks and diagnosis, in floors": float(np.median(beyond)),
                "with cold caches [floors]": float(np.median(cold / median["floor"])),
                "a floor with cold caches [floors]": float(np.median(cold_floor / median["floor"])),
            },
        )
    ]


def endurance(run: Run, progress: Progress) -> list[Figure]:
    """Raw samples of one long walk, simulated between the timed blocks; memory, time and errors at start and end."""
    robot, blocks = load_robot(ROBOT), max(10, run.options.steps // STEPS)
    simulator = make_simulator(robot, "walk", WARM_UP + blocks * STEPS)
    estimator = Estimator(robot.config, robot.urdf_xml)
    prepare()
    for _ in range(WARM_UP):
        _add(estimator, simulator.step())
    floor = Floor(robot, run.walk(ROBOT, "walk", STEPS).frames()[:STEPS])
    block: list[SimulationSample] = []
    resident, errors = np.full(blocks, np.nan), np.full(blocks, np.nan)

    def simulate(number: int) -> None:
        if number % STEPS == 0:
            resident[number // STEPS] = _resident_bytes()
            block.clear()
        block.append(simulator.step())

    def step(number: int) -> None:
        sample = block[number % STEPS]
        estimates = _add(estimator, sample)
        if number % STEPS == STEPS - 1:
            errors[number // STEPS] = np.mean((estimates[-1].friction - sample.truth.friction) ** 2)

    cases: dict[str, Callable[[int], object]] = {
        "simulation": simulate,
        "floor": lambda number: floor(number % STEPS),
        "step": step,
    }
    times = interleave(cases, blocks, progress)
    tenth = blocks // 10
    growth = float(np.median(resident[-tenth:]) - np.median(resident[:tenth]))
    parts = slice(tenth), slice(-tenth, None)
    first, last = (ratio(times["step"][part], times["floor"][part]) for part in parts)
    before_and_after = [float(np.sqrt(np.mean(errors[part]))) for part in parts]
    return [
        Figure("endurance: steps in one run", blocks * STEPS, must=1e6, at_least=True),
        Figure("endurance: memory, last tenth minus first tenth", growth / _MIB, "MiB", must=1.0),
        Figure(
            "endurance: median step time / floor, last tenth / first tenth",
            last["value"] / first["value"],
            must=1.1,
            details={"last tenth / floor": last["value"]},
        ),
        Figure(
            "endurance: error of the friction (RMS), last tenth / first tenth",
            before_and_after[1] / before_and_after[0],
            must=1.1,
            details={"last tenth [N m]": before_and_after[1]},
        ),
    ]


def _against_the_floor(run: Run, names: tuple[str, ...], progress: Progress) -> dict[str, FloatArray]:
    """CPU times (blocks, STEPS) of the floor and of the steps of some observers, interleaved [s]."""
    walk = run.walk(ROBOT, "walk", _sample_count(run))
    cases: dict[str, Callable[[int], object]] = {"floor": Floor(walk.robot, walk.frames()[WARM_UP:])}
    cases.update({name: _stepping(walk, name) for name in names})
    return interleave(cases, run.options.blocks, progress)


def _over_floor(name: str, step: FloatArray, floor: FloatArray, must: float, aim: float) -> Figure:
    return Figure(
        f"step, {name}, 12 joints: median / floor",
        **ratio(step, floor),
        must=must,
        aim=aim,
        details={"step [us]": microseconds(step), "floor [us]": microseconds(floor)},
    )


def _sample_count(run: Run) -> int:
    return WARM_UP + run.options.blocks * STEPS


def _stepping(walk: Walk, observer: str) -> Callable[[int], FrictionEstimate]:
    """Function that steps a pipeline, which has seen the first frames of the walk, with one more frame."""
    pipeline = Pipeline(replace(walk.robot.config, observer=observer), walk.robot.urdf_xml)
    prepare()
    frames = walk.frames()
    for frame in frames[:WARM_UP]:
        pipeline.step(frame)
    return lambda number: pipeline.step(frames[WARM_UP + number])


def _adding(walk: Walk) -> Callable[[int], object]:
    """Function that gives all samples of one more instant to an estimator that has seen the first ones of the walk."""
    estimator = Estimator(walk.robot.config, walk.robot.urdf_xml)
    prepare()
    for sample in walk.samples[:WARM_UP]:
        _add(estimator, sample)
    return lambda number: _add(estimator, walk.samples[WARM_UP + number])


def _add(estimator: Estimator, sample: SimulationSample) -> list[FrictionEstimate]:
    """Give the estimator all samples of one instant, joints last as from the simulator node; its estimate."""
    for wrench in sample.wrenches:
        estimator.add_wrench(wrench)
    estimator.add_imu(sample.imu)
    return estimator.add_joints(sample.joints)


def replay(run: Run, progress: Progress) -> list[Figure]:
    """Replay as the live node estimates."""
    return [_replay(run, progress, "replay, 1 kHz bag, kalman", None, must=6.0, aim=20.0)]


def smooth(run: Run, progress: Progress) -> list[Figure]:
    """Replay with the fixed-lag smoother."""
    return [_replay(run, progress, "replay --smooth", SMOOTHING_LAG, must=3.0, aim=None)]


def _replay(run: Run, progress: Progress, what: str, lag: float | None, must: float, aim: float | None) -> Figure:
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
            replay_bag(bag, run.folder / "replayed", walk.robot.config, walk.robot.urdf_xml, overwrite=True, smooth=lag)
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


def _resident_bytes() -> int:
    """Resident memory of this process [byte]."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
