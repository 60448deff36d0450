"""Claims about the checks of samples: any kind of array, one error for what is refused, one of two publishers."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from friction_estimator.errors import InputError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.readings.publishers import Streams, count_turns, select_publisher
from friction_estimator.kernels.records import buffered
from friction_estimator.types import CommandSample, ImuSample, JointSample, Reading, WrenchSample
from test.biped import suralp_config
from test.sway import sway

MS = 1_000_000
ZERO, NAN = np.zeros(12), np.full(12, np.nan)
KINDS = {
    "float32": lambda a: a.astype(np.float32),
    "read-only": lambda a: np.frombuffer(a.tobytes()),
    "column": lambda a: np.column_stack((a, a))[:, 0],
    "list": lambda a: a.tolist(),
    "big-endian": lambda a: a.astype(">f8"),
}


@pytest.fixture
def estimator(urdf_xml) -> Estimator:
    return Estimator(suralp_config(observer="momentum"), urdf_xml)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_array_gives_the_same_estimates_and_compiles_nothing(estimator, urdf_xml, kind):
    as_kind, plain = KINDS[kind], Estimator(suralp_config(observer="momentum"), urdf_xml)
    for now in sway(urdf_xml, 0.02):
        q = now.joints.position.astype(np.float32).astype(float)  # the same number in all kinds
        joints = q, ZERO, ZERO
        expected = plain.add_joints(JointSample(now.joints.stamp_ns, *joints))
        result = estimator.add_joints(JointSample(np.int64(now.joints.stamp_ns), *map(as_kind, joints)))
        for e, convert in ((plain, lambda a: a), (estimator, as_kind)):
            rate, force = np.zeros(3), np.array([0.0, 0.0, 9.8125])
            for wrench in now.wrenches:
                part = e.add_wrench(WrenchSample(wrench.stamp_ns, wrench.foot, convert(np.full(6, 64.0))))
                (expected if e is plain else result).extend(part)
            part = e.add_imu(ImuSample(now.imu.stamp_ns, convert(rate), convert(force)))
            (expected if e is plain else result).extend(part)
        assert len(expected) == len(result) == 1
        np.testing.assert_array_equal(expected[0].friction, result[0].friction)


def test_samples_are_copied(estimator):
    position = np.full(12, 0.25)
    estimator.add_joints(JointSample(0, position, ZERO, ZERO))
    position[:] = 1.0
    (estimate,) = estimator.flush()
    assert (estimate.position == 0.25).all()


BAD: dict[str, tuple[Reading | CommandSample, str]] = {
    "NaN stamp": (JointSample(math.nan, ZERO, ZERO, ZERO), "stamp of a joint sample is nan; whole nanoseconds"),
    "no stamp": (ImuSample(None, np.zeros(3), np.zeros(3)), "stamp of a IMU sample is None"),
    "stamp of no clock": (WrenchSample(2**80, 0, np.zeros(6)), "which no clock shows"),
    "foot -1": (WrenchSample(0, -1, np.zeros(6)), "foot -1 of a wrench sample is unknown; the feet are 0 to 1"),
    "foot 2": (WrenchSample(0, 2, np.zeros(6)), "foot 2 of a wrench sample"),
    "foot by name": (WrenchSample(0, "l_foot", np.zeros(6)), "foot 'l_foot' of a wrench sample"),
    "no wrench": (WrenchSample(0, 0, None), "wrench of l_foot"),
    "text": (JointSample(0, "twelve", ZERO, ZERO), "joint position is 'twelve'; an array of 12 numbers is needed"),
    "table": (JointSample(0, np.zeros((12, 1)), ZERO, ZERO), r"joint position has the shape \(12, 1\)"),
    "ragged": (JointSample(0, [[1.0], [1.0, 2.0]], ZERO, ZERO), "joint position is"),
    "one velocity": (CommandSample(0, 1.0), "desired velocity has the shape"),
    "no position": (JointSample(0, None, ZERO, ZERO), "joint position"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_cannot_be_used_is_one_input_error_and_changes_nothing(estimator, kind):
    sample, reason = BAD[kind]
    with pytest.raises(InputError, match=reason):
        (estimator.add_command if isinstance(sample, CommandSample) else estimator.add)(sample)
    assert estimator.health.event_count == 0 and not estimator.flush()


@pytest.mark.parametrize("missing", [None, np.zeros(0), NAN], ids=["None", "empty", "NaN"])
def test_efforts_and_velocities_may_be_missing_in_three_ways(estimator, missing):
    estimator.add_joints(JointSample(0, ZERO, missing, missing))
    (estimate,) = estimator.flush()
    assert np.isnan(estimate.friction).all() and estimator.health.without_effort == 1


def robot(k: int, noise: float = 1e-4) -> np.ndarray:
    """Positions of three joints that move, or rest."""
    return np.sin(0.003 * k + np.arange(3)) + noise * np.sin(np.array([7.0, 11.0, 13.0]) * k)


def used(samples: Iterator[tuple[int, np.ndarray, bool]]) -> list[tuple[int, bool]]:
    """Number and origin of the samples that are used; origin: of the robot."""
    streams, _ = buffered(Streams.initial(3))
    return [
        (k, own) for k, (stamp, position, own) in enumerate(samples) if select_publisher(streams, stamp, position)[0]
    ]


def two_publishers(
    foreign: np.ndarray | None, period: int, every: int, delay: int, first: bool, count: int = 400
) -> Iterator[tuple[int, np.ndarray, bool]]:
    """Robot at a period [ns], and a second node at every ``every``-th sample with a delay [ns], before or after it."""
    for k in range(count):
        own, other = (k * period, robot(k), True), (k * period + delay, foreign, False)
        both = foreign is not None and k % every == 0
        yield from ((other, own) if both and first else (own, other) if both else (own,))


@given(
    foreign=st.sampled_from([np.zeros(3), np.array([0.3, -2.0, 1.0])]),
    every=st.integers(1, 7),
    delay=st.sampled_from([0, 100_000, 500_000]),
    first=st.booleans(),
    period=st.sampled_from([MS, 4 * MS]),
)
def test_of_two_publishers_the_one_that_moves_is_used_after_a_moment_and_none_of_the_other(
    foreign, every, delay, first, period
):
    samples = list(two_publishers(foreign, period, every, delay, first))
    late = [(k, own) for k, own in used(iter(samples)) if k > len(samples) // 4]
    assert all(own for _, own in late)
    assert len(late) == sum(own for k, (_, _, own) in enumerate(samples) if k > len(samples) // 4)


def test_two_publishers_that_both_move_are_both_left_out_until_one_ends():
    def samples() -> Iterator[tuple[int, np.ndarray, bool]]:
        for k in range(4000):
            yield k * MS, robot(k), True
            if k < 1000:
                yield k * MS, 1.0 - robot(k), False

    numbers = [k for k, _ in used(samples())]
    assert len([k for k in numbers if 10 < k < 2000]) == 0
    assert all(own for k, own in used(samples()) if k > 2000) and len([k for k in numbers if k >= 4000]) == 1000


def test_a_second_publisher_that_comes_later_never_gets_through():
    def samples() -> Iterator[tuple[int, np.ndarray, bool]]:
        for k in range(4000):
            yield k * MS, robot(k), True
            if k > 2000:
                yield k * MS, 1.0 - robot(k), False

    origins = used(samples())
    assert all(own for _, own in origins) and len(origins) == 4000


@pytest.mark.parametrize("resolution", [1e-6, 1e-3, 0.02])
@pytest.mark.parametrize("speed", [0.1, 1.0, 20.0])
def test_one_publisher_with_coarse_encoders_and_lost_samples_is_used_completely(resolution, speed):
    rng = np.random.default_rng(1)
    kept = [k for k in range(3000) if rng.random() > 0.05]
    position = [resolution * np.round(speed * robot(k, 0.0) / resolution) for k in kept]
    assert len(used((k * MS, q, True) for k, q in zip(kept, position, strict=True))) == len(kept)


def test_a_jump_that_stays_is_accepted_after_three_periods():
    turns = [robot(k) + (2.0 * np.pi if k > 1500 else 0.0) for k in range(2000)]
    numbers = [k for k, _ in used((k * MS, q, True) for k, q in enumerate(turns))]
    assert sorted(set(range(2000)) - set(numbers)) == [1501, 1502, 1503]


@given(
    speed=st.floats(0.1, 15.0),
    lowest=st.sampled_from([-np.pi, 0.0, -np.inf]),
    lost=st.floats(0.0, 0.5),
    period=st.sampled_from([MS, 4 * MS]),
    seed=st.integers(0, 9),
)
def test_a_joint_that_turns_on_and_on_has_one_position_wherever_its_driver_wraps_it(speed, lowest, lost, period, seed):
    """Samples may be lost, none is left out, and positions that are not wrapped stay."""
    rng, (buffer, streams) = np.random.default_rng(seed), buffered(Streams.initial(3))
    steps = np.concatenate(([0], np.flatnonzero(rng.random(3000) >= lost) + 1))
    phase = speed * 1e-9 * period * steps
    truth = phase[:, None] * [1.0, -0.3, 0.0] + 2.0 * np.sin(0.2 * phase[:, None] + np.arange(3.0))
    truth += 1e-4 * rng.normal(size=truth.shape)
    reported = truth if lowest == -np.inf else (truth - lowest) % (2.0 * np.pi) + lowest
    counted = reported.copy()
    for step, position in zip((period * steps).tolist(), counted, strict=True):
        count_turns(streams, step, position)
        assert select_publisher(buffer, step, position)[0]
    np.testing.assert_allclose(counted - counted[0], truth - truth[0], atol=1e-9)


def test_readings_that_are_all_zero_are_named_while_they_come_and_not_used(urdf_xml):
    """Before the driver has readings, and in mid-run; with an effort, zero positions are readings."""
    estimator, used = Estimator(suralp_config(observer="momentum"), urdf_xml), 0
    for k, now in enumerate(sway(urdf_xml, 5.0, turn=0.05)):
        joints = now.joints
        connected = k >= 500 and not 1500 <= k < 1520
        joints = joints if connected else JointSample(joints.stamp_ns, ZERO, (ZERO, None)[k % 2], ZERO)
        used += len([*estimator.add(now.imu), *estimator.add_joints(joints)])
        for wrench in now.wrenches:
            used += len(estimator.add(wrench))
        if not connected and (k == 499 or k == 1519):
            assert "all joints are zero" in estimator.health.findings[0] and not estimator.health.invalid_joints
    assert k > 2000 and used > k - 540
    assert estimator.health.zeros == 520 and estimator.health.contradicting == 0 and not estimator.health.findings
    resting = Estimator(suralp_config(observer="momentum"), urdf_xml)
    resting.add_joints(JointSample(0, ZERO, ZERO, ZERO + 0.01))
    assert len(resting.flush()) == 1 and resting.health.zeros == 0


def test_positions_that_have_jumped_are_not_compared_with_those_before():
    """The filters start anew: a step by half a turn is no motion, and has no velocity."""
    streams, _ = buffered(Streams.initial(3))
    results = [select_publisher(streams, k * MS, robot(k) + (1.5 if k > 1500 else 0.0)) for k in range(2000)]
    assert [k for k, (_, switched, _) in enumerate(results) if switched] == [1504]
