"""Claims about the controller's side of compensation: whatever arrives, in Python and in C++."""

from __future__ import annotations

import math
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import friction_estimator as fe
from friction_estimator.control import INCLUDE

JOINTS, LIMIT, TIMEOUT, RATE = 2, 3.0, 0.1, 50.0
COMPILER = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)


@dataclass(frozen=True)
class Event:
    """Call of ``torque`` at a time of the clock, or of ``receive`` where there is a message."""

    now: float
    stamp_ns: int = 0
    newest_ns: int = 0
    torque: tuple[float, ...] | None = None

    def line(self) -> str:
        if self.torque is None:
            return f"torque {self.now!r}"
        return " ".join(
            map(str, ("receive", self.now, self.stamp_ns, self.newest_ns, len(self.torque), *map(repr, self.torque)))
        )


clocks = st.one_of(st.floats(-0.02, 0.06), st.floats(-3.0, 3.0), st.floats())
stamps = st.one_of(st.integers(-(2**62), 2**62), st.integers(-200_000_000, 200_000_000))
torques = st.one_of(
    st.tuples(*[st.floats(-5.0, 5.0)] * JOINTS), st.lists(st.floats(), max_size=3).map(tuple)
)  # usual ones, and any number of any numbers


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    now, stamp, rows = 0.0, 0, []
    for _ in range(draw(st.integers(1, 25))):
        step = draw(clocks)
        now = now + step if math.isfinite(now + step) else step
        usual = draw(st.booleans())
        stamp += 1_000_000
        own, newest = (stamp, stamp) if usual else (draw(stamps), draw(stamps))
        rows.append(Event(now, own, newest, draw(torques)) if draw(st.booleans()) else Event(now))
    return rows


def run(sequence: Sequence[Event]) -> Iterator[np.ndarray | bool]:
    now = 0.0
    safe = fe.SafeCompensation(JOINTS, LIMIT, TIMEOUT, RATE, clock=lambda: now)
    for event in sequence:
        now = event.now
        yield safe.torque() if event.torque is None else safe.receive(event.torque, event.stamp_ns, event.newest_ns)


@given(events())
def test_whatever_arrives_the_torque_is_bounded_grows_slowly_and_ends(sequence):
    before, time_before, age, pause = np.zeros(JOINTS), None, math.inf, 0.0
    for event, result in zip(sequence, run(sequence), strict=True):
        elapsed = 0.0 if time_before is None else event.now - time_before
        elapsed = math.inf if math.isnan(elapsed) else max(elapsed, 0.0)
        time_before, age, pause = event.now, age + elapsed, pause + elapsed
        if event.torque is not None:
            age = 0.0 if result else age
            continue
        assert np.isfinite(result).all() and (np.abs(result) <= LIMIT).all()
        assert (np.abs(result) <= np.abs(before) + RATE * min(pause, TIMEOUT) + 1e-12).all()
        assert age < TIMEOUT or (result == 0.0).all()
        before, pause = result, 0.0


@pytest.fixture(scope="session")
def binary(tmp_path_factory) -> Path:
    if COMPILER is None:
        pytest.skip("no C++ compiler on this machine")
    path = tmp_path_factory.mktemp("cpp") / "safe_compensation"
    source = Path(__file__).with_name("safe_compensation.cpp")
    options = ("-std=c++11", "-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Wconversion", "-Werror")
    subprocess.run([COMPILER, *options, f"-I{INCLUDE}", str(source), "-o", str(path)], check=True)
    return path


def test_the_header_gives_the_same_torques_to_the_bit(binary):
    @given(events())
    def same(sequence):
        head = f"{JOINTS} {LIMIT} {TIMEOUT} {RATE}\n"
        text = head + "\n".join(event.line() for event in sequence)
        lines = subprocess.run([binary], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
        for line, result in zip(lines, run(sequence), strict=True):
            if isinstance(result, bool):
                assert line == str(int(result))
            else:
                assert [float.fromhex(word) for word in line.split()] == result.tolist()

    same()


def drive(clock_step_back: float) -> np.ndarray:
    """Torques (1500,) of a controller at 1 kHz that gets 2.5 N m in each period; its clock steps back after 200."""
    now = 100.0
    safe, torques = fe.SafeCompensation(1, clock=lambda: now), []
    for k in range(1500):
        now -= clock_step_back if k == 200 else 0.0
        safe.receive([2.5], k * 1_000_000, k * 1_000_000)
        torques.append(float(safe.torque()[0]))
        now += 0.001
    return np.array(torques)


@pytest.mark.parametrize("back", [0.0, 0.01, 0.2, 1.0])
def test_a_clock_that_steps_back_neither_turns_nor_enlarges_the_torque(back):
    torque = drive(back)
    assert torque.min() == 0.0 and torque.max() == 2.5 and (torque[10:] == 2.5).all()


@pytest.mark.parametrize("second", ["other torque", "older by 3 ms", "newer by 3 ms"])
def test_two_nodes_that_send_end_in_zero_torque_until_one_is_gone(second):
    now, ms = 0.0, 1_000_000
    shift, torque = {"other torque": (0, -2.5), "older by 3 ms": (-3, 2.5), "newer by 3 ms": (3, 2.5)}[second]
    safe, torques = fe.SafeCompensation(1, clock=lambda: now), []
    for k in range(1200):
        safe.receive([2.5], k * ms, k * ms)
        if 300 <= k < 800:
            safe.receive([torque], (k + shift) * ms, k * ms)
        torques.append(float(safe.torque()[0]))
        now += 0.001
    assert torques[299] == torques[-1] == 2.5 and set(torques[400:890]) == {0.0}


def test_a_driver_whose_clock_was_set_back_counts_again_after_the_time_out():
    now, ms = 0.0, 1_000_000
    safe, torques = fe.SafeCompensation(1, clock=lambda: now), []
    for k in range(1000):
        stamp = (k - 5000 * (k >= 500)) * ms
        safe.receive([2.5], stamp, stamp)
        torques.append(float(safe.torque()[0]))
        now += 0.001
    assert torques[499] == 2.5 and 0.0 in torques[500:650] and set(torques[650:]) == {2.5}


unusable = st.one_of(
    st.none(),
    st.text(),
    st.binary(),
    st.dictionaries(st.text(), st.floats()),
    st.lists(
        st.one_of(st.text(), st.none(), st.booleans(), st.complex_numbers(), st.lists(st.floats()), st.just(10**400))
    ),
)


@given(unusable, st.one_of(st.none(), st.text(), st.floats(), st.integers()))
def test_what_is_no_list_of_numbers_or_no_stamp_is_left_out(thing, stamp):
    now = 0.0
    safe = fe.SafeCompensation(2, clock=lambda: now)
    assert not safe.receive(thing, 0, 0)
    assert not safe.receive([1.0, 1.0], "0", stamp) and not safe.receive([1.0, 1.0], stamp, None)
    assert (safe.torque() == 0.0).all()


def test_messages_that_are_not_fresh_are_left_out():
    now = 0.0
    safe = fe.SafeCompensation(1, clock=lambda: now)
    assert safe.receive([1.0], 0, 0)
    second = 1_000_000_000
    for torque, stamp, newest in (
        ([1.0], 0, 0),  # repeated stamp
        ([1.0], second, 3600 * second),  # an hour old
        ([1.0], 3600 * second, second),  # an hour ahead
        ([math.nan], second, second),
        ([1.0, 1.0], second, second),
        (1.0, second, second),
    ):
        assert not safe.receive(torque, stamp, newest)
    now = 0.05
    assert safe.torque()[0] == 1.0
    now = 0.075
    assert safe.torque()[0] == pytest.approx(0.5)
    now = 0.1
    assert safe.torque()[0] == 0.0


def test_without_a_clock_of_the_caller_the_monotonic_one_of_the_machine_counts():
    safe = fe.SafeCompensation(1, timeout=0.02)
    assert safe.receive([1.0], 0, 0)
    time.sleep(0.03)
    assert safe.torque()[0] == 0.0


@pytest.mark.parametrize("name", ["limit", "timeout", "slew_rate"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_parameters_that_bound_nothing_are_refused(name, value):
    with pytest.raises(fe.FrictionEstimatorError, match=name):
        fe.SafeCompensation(1, **{name: value})
