"""Drivers without ROS: the estimator itself, and the replay of a bag with the same messages."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.faults.matrix import Fault
from benchmarks.faults.readings import PERIOD, Messages, Reading, Walk
from benchmarks.faults.runs import Estimates, Outcome, Scorer, Stream, Window
from friction_estimator.errors import FrictionEstimatorError, InputError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.bags.replay import replay_bag
from friction_estimator.io.bags.writer import BagWriter
from friction_estimator.kernels import compiler
from friction_estimator.types import FrictionEstimate

START_NS = 10_000_000_000
"""Stamp of the first instant [ns]."""
_LOOK = 0.1
"""Time between two looks at the warnings while a fault lasts [s]."""


def make_stream(
    walk: Walk, faults: Sequence[Fault], before: float, after: float, seed: int, seconds: float | None = None
) -> tuple[list[Reading], list[tuple[Window, list[Reading]]]]:
    """Good messages, then faults one after the other, each followed by good messages.

    Parameters
    ----------
    before, after : good data before the first fault, and after each [s]
    seconds : duration of each fault; None: that of its row [s]

    Returns
    -------
    good : messages before the first fault
    faulty : each fault with its messages, and the good ones after it
    """
    stream = Stream(walk, seed, START_NS)
    good = stream.good(before)
    faulty = [stream.faulty(fault, seconds or fault.seconds, after) for fault in faults]
    return good, [(window, readings) for readings, window in faulty]


class EstimatorDriver:
    """Gives messages to an estimator.

    Parameters
    ----------
    walk : of the robot
    """

    name = "Estimator"

    def __init__(self, walk: Walk) -> None:
        self.estimator = Estimator(walk.robot.config, walk.robot.urdf_xml)
        compiler.prepare()

    def feed(self, readings: Sequence[Reading], window: Window | None = None) -> Estimates:
        """Estimates from these messages; the texts are those seen while the fault lasted."""
        made, estimator = Estimates(), self.estimator
        next_look = 0
        for reading in readings:
            try:
                estimates = estimator.add(reading.sample)
            except InputError as error:
                made.refuse(str(error))
                continue
            except (FrictionEstimatorError, ArithmeticError, np.linalg.LinAlgError) as error:
                made.errors.append(f"unhandled {type(error).__name__}: {error}")
                break
            for estimate in estimates:
                take(made, estimate)
            if window is not None and next_look <= reading.index < window.end:
                next_look = reading.index + round(_LOOK / PERIOD)
                made.texts.add(("", "", "; ".join(estimator.warnings())))
        return made


def take(made: Estimates, estimate: FrictionEstimate) -> None:
    """Keep an estimate."""
    made.stamps.append(estimate.stamp_ns)
    made.friction.append(estimate.friction)
    made.sigma.append(estimate.sigma)


def run_estimator(
    walk: Walk, good: Sequence[Reading], faulty: Sequence[tuple[Window, list[Reading]]]
) -> tuple[list[Outcome], Estimates]:
    """Outcomes of faults one after the other in one estimator, and all of its estimates."""
    driver, scorer, everything = EstimatorDriver(walk), Scorer(), Estimates()
    first = driver.feed(good)
    scorer.learn(good, first)
    outcomes = []
    parts = [first]
    for window, readings in faulty:
        parts.append(driver.feed(readings, window))
        outcomes.append(scorer.outcome(window, driver.name, readings, parts[-1]))
    for part in parts:
        everything.stamps += part.stamps
        everything.friction += part.friction
        everything.sigma += part.sigma
    return outcomes, everything


def run_replay(
    walk: Walk, good: Sequence[Reading], faulty: Sequence[tuple[Window, list[Reading]]], folder: Path
) -> tuple[list[Outcome], Estimates]:
    """Outcomes of the same faults in one bag that is replayed, and all estimates."""
    messages, made = Messages(walk.robot, walk.joint_names), Estimates()
    everything = [*good, *(reading for _, readings in faulty for reading in readings)]
    bag = folder / "faults"
    with BagWriter(bag, overwrite=True) as writer:
        for reading in everything:
            topic, raw = messages.build(reading)
            writer.write_raw(topic.name, topic.type, reading.arrival_ns, raw)
    try:
        summary = replay_bag(bag, None, walk.robot.config, walk.robot.urdf_xml, on_estimate=lambda one: take(made, one))
        made.texts.add(("", "", "; ".join(summary.warnings)))
    except Exception as error:  # whatever a replay raises is its outcome
        made.errors.append(f"{type(error).__name__}: {traceback.format_exception_only(error)[-1].strip()}")
    scorer = Scorer()
    scorer.learn(good, made)
    return [scorer.outcome(window, "replay", readings, made) for window, readings in faulty], made
