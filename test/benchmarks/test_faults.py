"""The fault matrix in short: faults one after the other through one estimator, and the same messages from a bag."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.faults import streams
from benchmarks.faults.drives import DRIVES, Loop, closed_loop, judged
from benchmarks.faults.matrix import stream_faults
from benchmarks.faults.offline import make_stream, run_estimator, run_replay
from benchmarks.faults.readings import Walk
from benchmarks.faults.runs import Estimates, Scorer
from friction_estimator.types import JointSample

BEFORE, SECONDS, AFTER = 3.0, 0.3, 1.0
SHORT = (
    "loss",
    "bursts",
    "reordered",
    "clock_forward",
    "clock_back",
    "no_efforts",
    "velocity_inf",
    "position_1e100",
    "imu_1e100",
    "wrench_silent",
)


@pytest.fixture(scope="module")
def walk(robot, model, noisy_walk):
    return Walk(robot, model.joint_names, noisy_walk.samples)


@pytest.fixture(scope="module")
def stream(walk):
    faults = stream_faults(walk)
    return make_stream(walk, [faults[name] for name in SHORT], BEFORE, AFTER, seed=2, seconds=SECONDS)


@pytest.fixture(scope="module")
def estimated(walk, stream):
    return run_estimator(walk, *stream)


@pytest.mark.parametrize("name", SHORT)
def test_a_fault_is_named_or_bridged_and_the_estimate_recovers(estimated, name):
    outcomes, _ = estimated
    outcome = next(outcome for outcome in outcomes if outcome.name == name)
    assert outcome.shortcomings == ()


def test_a_replay_of_the_same_messages_gives_the_same_numbers(walk, stream, estimated, tmp_path):
    _, replayed = run_replay(walk, *stream, tmp_path)
    _, direct = estimated
    assert replayed.errors == [] and any("refused" in text for _, _, text in replayed.texts)
    assert replayed.stamps == direct.stamps
    np.testing.assert_array_equal(replayed.friction, direct.friction)
    np.testing.assert_array_equal(replayed.sigma, direct.sigma)


def _content(reading):
    sample = reading.sample
    values = [getattr(sample, field) for field in sample.__slots__]
    return reading.arrival_ns, reading.names, [np.asarray(value).tobytes() for value in values]


def test_every_fault_changes_messages_and_the_same_seed_changes_the_same_ones(walk):
    for fault in stream_faults(walk).values():
        seconds = 1.1 if fault.name in ("looped", "old_messages") else 0.1
        good = walk.readings(3000, round(1e3 * seconds) + 20)
        changed = [fault.change(good[:-80], good[-80:], np.random.default_rng(4)) for _ in range(2)]
        first, second = ([*map(_content, [*during, *after])] for during, after in changed)
        assert first == second, fault.name
        assert first != [*map(_content, good)], fault.name


def test_wrong_estimates_without_a_warning_are_a_shortcoming(walk):
    """The judge itself: a scorer that is given zero friction with a small sigma must object."""
    fault = stream_faults(walk)["loss"]
    good, [(window, readings)] = make_stream(walk, [fault], 3.0, 1.0, seed=2, seconds=0.3)
    scorer, made = Scorer(), Estimates()
    scorer.before = 0.03
    for reading in readings:
        if isinstance(reading.sample, JointSample):
            made.stamps.append(reading.stamp_ns)
            made.friction.append(np.zeros(12))
            made.sigma.append(np.full(12, 1e-3))
    (text, *others) = scorer.outcome(window, "Estimator", readings, made).shortcomings
    assert "times that before" in text and any("in silence" in other for other in others)
    assert "recovered not" in others[-1]


def test_changes_do_what_their_names_say(walk):
    rng = np.random.default_rng(0)
    during, after = walk.readings(3000, 200), walk.readings(3200, 50)
    kept, _ = streams.loss(0.10)(during, after, rng)
    assert 0.85 < len(kept) / len(during) < 0.95
    jumped, later = streams.clock_jump(5.0)(during, after, rng)
    assert later[-1].stamp_ns - after[-1].stamp_ns == 5_000_000_000 and later[0].arrival_ns == after[0].arrival_ns
    late, _ = streams.lag(0.010, streams.IMU)(during, after, rng)
    delays = {one.arrival_ns - one.stamp_ns for one in late if streams.is_of(one, streams.IMU)}
    assert delays == {10_000_000} and [one.arrival_ns for one in late] == sorted(one.arrival_ns for one in late)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["drives_obey", "drives_ignore", "drives_silent"])
def test_drives_that_do_not_obey_are_found_in_closed_loop_and_others_are_not_blamed(name):
    _, drive, obeys = DRIVES[name]
    assert judged(closed_loop(drive), obeys) == []


def test_the_judge_objects_to_a_torque_that_grows_and_to_a_silent_estimator():
    assert judged(Loop(3.0, 1.0, 2.0, ()), obeys=False) == [
        "a torque is 4.0 times the friction",
        "the error of friction is 1.00 N m at the end",
        "no finding names the torque that does not act",
    ]
    assert judged(Loop(0.0, 0.0, 0.1, ("20 % of friction_compensation",)), obeys=True) == [
        "a drive that obeys is blamed",
        "only 10% of the friction is compensated",
    ]
