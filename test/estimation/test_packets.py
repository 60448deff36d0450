"""Claims about stamps in packets: they are spread over the time of the measurements, and all other stamps stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.readings.publishers import Packets, packet_checks, spread
from test.biped import suralp_config
from test.sway import sway

MS = 1_000_000
SECOND = 1000 * MS
WAIT = 5 * MS
COUNT = 6000
SETTLED = 700
"""Readings after which packets are known."""


def spread_all(stamps: np.ndarray, stream: int = 0) -> tuple[np.ndarray, list[str]]:
    """Stamps as they are spread, and what is found."""
    packets = Packets.initial(1, WAIT)
    result = [spread(packets, stream, stamp, SECOND // 2) for stamp in stamps.tolist()]
    return np.array(result), [check.text for check in packet_checks(packets, ("joints", "imu")) if check.text]


def in_packets(measured: np.ndarray, period: int, size: int, inside: int, end: bool) -> np.ndarray:
    """Stamps of readings that come in packets of this size, a time ``inside`` [ns] apart, at their end or beginning."""
    length = size * period
    first, place = measured // length * length, measured % length // period
    return first + inside * place + (length - period - inside * (size - 1) if end else 0)


@given(
    size=st.integers(2, 40),
    period=st.sampled_from([MS // 4, MS, 2 * MS]),
    inside=st.sampled_from([1, 1000, 20_000, 50_000]),
    end=st.booleans(),
    lost=st.sampled_from([0.0, 0.02, 0.1]),
    lost_packets=st.sampled_from([0.0, 0.05]),
    jitter=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 9),
)
def test_packets_are_spread_over_the_time_of_their_readings(
    size, period, inside, end, lost, lost_packets, jitter, seed
):
    """The stamps advance evenly and lag by a constant; readings and packets may be lost, and packets may be late."""
    assume(10 * inside < period)  # longer steps are of no packet
    rng, number = np.random.default_rng(seed), np.arange(COUNT)
    late = np.repeat(rng.uniform(0.0, jitter, COUNT // size + 1) * period, size)[:COUNT].astype(np.int64)
    missing = np.repeat(rng.random(COUNT // size + 1) < lost_packets, size)[:COUNT] | (rng.random(COUNT) < lost)
    measured = (number * period)[~missing]
    stamps = (in_packets(number * period, period, size, inside, end) + late)[~missing]
    result, found = spread_all(stamps)
    if size * period > 100 * MS:
        return
    assert len(found) == 1 and "joints: stamps come in packets of" in found[0] and "spread evenly" in found[0]
    error = (result - measured)[SETTLED:] / period
    assert (np.diff(result[SETTLED:]) > 0).all()
    losses = missing[~missing.cumprod().astype(bool)].mean() if missing.any() else 0.0
    spread_of = np.percentile(np.abs(error - np.median(error)), 90)
    assert spread_of < (0.05 + jitter if losses == 0.0 else 1.2 + 0.2 * size + inside * size / period)
    if losses == 0.0:
        expected = 0.0 if end else 1.0 - size
        assert abs(np.median(error) - expected) < 0.1 + jitter + inside * size / period


@given(
    period=st.sampled_from([MS // 4, MS, 10 * MS]),
    jitter=st.sampled_from([0.0, 0.3, 0.45]),
    lost=st.sampled_from([0.0, 0.1, 0.9]),
    pairs=st.sampled_from([None, 0.0, 0.4]),
    swaps=st.booleans(),
    seed=st.integers(0, 9),
)
def test_other_stamps_stay_to_the_last_bit(period, jitter, lost, pairs, swaps, seed):
    """Stamps with jitter, lost readings, two publishers with the same stamps or others, readings that are overtaken."""
    rng, number = np.random.default_rng(seed), np.arange(COUNT)
    stamps = (period * (number + rng.uniform(-jitter, jitter, COUNT))).astype(np.int64)[rng.random(COUNT) >= lost]
    if pairs is not None and jitter == 0.0 and lost < 0.5:
        stamps = np.sort(np.concatenate((stamps, stamps + round(pairs * period))))
    if swaps:
        order = np.argsort(np.arange(stamps.size) + rng.uniform(0.0, 3.0, stamps.size))
        stamps = stamps[order]
    result, found = spread_all(stamps)
    np.testing.assert_array_equal(result, stamps)
    assert not found


def test_packets_that_are_too_long_to_wait_for_are_named_with_the_remedy():
    for size, spreads in ((3, True), (6, True), (7, False), (30, False)):
        stamps = in_packets(MS * np.arange(COUNT), MS, size, 1000, True)
        result, (found,) = spread_all(stamps, stream=1)
        assert (result[-size - 1] != stamps[-size - 1]) == spreads
        assert f"imu: stamps come in packets of {size} readings every {size}.0 ms" in found
        assert spreads or f"max_wait above {1e-3 * (size - 1):.3f}" in found


@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("kinds", ["imu", "joints", "wrenches", "all"])
def test_every_input_may_come_in_packets(urdf_xml, size, kinds):
    """Frames are as fresh as without packets; a finding names each topic, and no joint is in doubt."""
    estimator, late = Estimator(suralp_config(observer="momentum"), urdf_xml), 0

    def packet(sample):
        stamp = int(in_packets(np.array(sample.stamp_ns), MS, size, 1000, True))
        return replace(sample, stamp_ns=stamp)

    count = 0
    for now in sway(urdf_xml, 4.0, turn=0.05):
        imu = packet(now.imu) if kinds in ("imu", "all") else now.imu
        wrenches = [packet(one) if kinds in ("wrenches", "all") else one for one in now.wrenches]
        joints = packet(now.joints) if kinds in ("joints", "all") else now.joints
        for estimate in (one for sample in (imu, *wrenches, joints) for one in estimator.add(sample)):
            if now.joints.stamp_ns > 2 * SECOND:
                count += 1
                late += not np.isfinite(estimate.friction).all()
    assert count > 1990 and late == 0 and estimator.health.repeated == 0
    findings, topics = estimator.health.findings, {"imu": 1, "joints": 1, "wrenches": 2, "all": 4}[kinds]
    assert len(findings) == topics and all(f"packets of {size} readings" in text for text in findings)
    assert not estimator.health.invalid_joints and not estimator.health.sensors_wrong
