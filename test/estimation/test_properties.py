"""Claims about what no input and no broken state can do to the estimator: whatever arrives, it goes on and recovers.

The usual run tries 30 examples, `.ci/run` 400, and
``pytest test/estimation/test_properties.py --hypothesis-profile=long`` 20,000.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, target
from hypothesis import strategies as st

from friction_estimator.errors import InputError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.kernels.records import RECORDS, class_number, flatten, from_buffer
from friction_estimator.types import CommandSample, FrictionEstimate, ImuSample, JointSample, WrenchSample
from test.hopper import HOPPER, hopper_config, hopping

WARM, FAULTY, GOOD, JUDGED = 125, 40, 500, 125
"""Instants at 250 Hz before the faults, with faults, and of good data after them, the last of which are judged."""
OBSERVERS = ("kalman", "two_stage", "momentum")
Sample = JointSample | ImuSample | WrenchSample | CommandSample
FIELDS = {
    JointSample: ("position", "velocity", "effort"),
    ImuSample: ("angular_velocity", "specific_force"),
    WrenchSample: ("wrench",),
    CommandSample: ("velocity",),
}
ACTIONS = ("drop", "repeat", "set", "add", "shift", "stop clock", "delay", "reverse")


@dataclasses.dataclass(frozen=True)
class Fault:
    """What happens to the samples of one kind, or of all kinds, for a while."""

    action: str
    kind: type | None
    begin: int
    length: int
    field: int
    element: int | None
    value: float
    stamp: int


values = st.floats() | st.floats(-20.0, 20.0) | st.sampled_from((math.nan, math.inf, 1e300, 5e-324))
stamps = st.integers(-3 * 10**9, 3 * 10**9) | st.integers(-(2**62), 2**62) | st.integers(-10, 10)
faults = st.builds(
    Fault,
    action=st.sampled_from(ACTIONS),
    kind=st.sampled_from((*FIELDS, None)),
    begin=st.integers(0, 4 * FAULTY - 1),
    length=st.integers(1, 4 * FAULTY),
    field=st.integers(0, 2),
    element=st.none() | st.integers(0, 5),
    value=values,
    stamp=stamps,
)


@cache
def messages(start: int, count: int) -> tuple[Sample, ...]:
    return tuple(
        sample
        for instant in hopping(start, count)
        for sample in (
            instant.wrench,
            instant.imu,
            CommandSample(instant.joints.stamp_ns, instant.joints.velocity),
            instant.joints,
        )
    )


def spoil(samples: Sequence[Sample], fault: Fault) -> Sequence[Sample]:
    """The samples with a fault."""
    chosen = [k for k, sample in enumerate(samples) if fault.kind in (type(sample), None)]
    rows = chosen[fault.begin : fault.begin + fault.length]
    if fault.action == "drop":
        return [sample for k, sample in enumerate(samples) if k not in rows]
    if fault.action == "repeat":
        return [sample for k, sample in enumerate(samples) for _ in range(2 if k in rows else 1)]
    if fault.action == "delay":
        late = [samples[k] for k in rows]
        rest = [sample for k, sample in enumerate(samples) if k not in rows]
        return rest[: fault.stamp % 100] + late + rest[fault.stamp % 100 :]
    if fault.action == "reverse":
        return [*samples[: fault.begin], *samples[fault.begin :][::-1]]
    changed = list(samples)
    for k in rows:
        changed[k] = changed_sample(samples[k], fault, samples[rows[0]].stamp_ns)
    return changed


def changed_sample(sample: Sample, fault: Fault, first_ns: int) -> Sample:
    if fault.action == "stop clock":
        return dataclasses.replace(sample, stamp_ns=first_ns + fault.stamp % 3)
    if fault.action == "shift":
        return dataclasses.replace(sample, stamp_ns=sample.stamp_ns + fault.stamp)
    names = FIELDS[type(sample)]
    name = names[fault.field % len(names)]
    array = getattr(sample, name).copy()
    where = slice(None) if fault.element is None else fault.element % array.size
    array[where] = fault.value if fault.action == "set" else array[where] + fault.value
    return dataclasses.replace(sample, **{name: array})


def feed(estimator: Estimator, samples: Iterable[Sample]) -> list[FrictionEstimate]:
    """Estimates of samples in this order; refused samples are left out, as in the node."""
    add = {
        JointSample: estimator.add_joints,
        ImuSample: estimator.add_imu,
        WrenchSample: estimator.add_wrench,
        CommandSample: estimator.add_command,
    }
    estimates = []
    for sample in samples:
        try:
            estimates += add[type(sample)](sample)
        except InputError:
            pass
    return estimates


def new_estimator(observer: str) -> Estimator:
    return Estimator(
        hopper_config(observer=observer, compensation__enabled=True, compensation__velocity="desired"), HOPPER
    )


def rms_error(estimates: list[FrictionEstimate], until: int) -> float:
    """Of the friction in the last instants."""
    instants = hopping(until - JUDGED, JUDGED)
    truth = {instant.joints.stamp_ns: instant.friction for instant in instants}
    errors = [e.friction - truth[e.stamp_ns] for e in estimates if e.stamp_ns in truth and e.stamp_ns > 0]
    assert len(errors) > 0.9 * JUDGED, "there are no estimates of good data"
    return float(np.sqrt(np.square(errors[-JUDGED:]).mean()))


@cache
def usual(observer: str) -> tuple[float, int]:
    """Error and size of an estimator without faults."""
    end, estimator = WARM + FAULTY + GOOD, new_estimator(observer)
    return rms_error(feed(estimator, messages(0, end)), end), size(estimator)


def assert_sound(estimates: Sequence[FrictionEstimate], unknown: object) -> None:
    """Nothing that is published is infinite or NaN, but friction without motor torques."""
    arrays = []
    for estimate in estimates:
        base, law = estimate.base, estimate.law
        arrays += [getattr(base, field.name) for field in dataclasses.fields(base)]
        if law is not unknown:
            arrays += [estimate.friction, estimate.sigma, estimate.model, estimate.model_sigma]
            arrays += [estimate.calibration_torque]
            names = {field.name for field in dataclasses.fields(law)} - {"velocity_range"}  # NaN before any motion
            arrays += [getattr(law, name) for name in names]
        arrays.append(estimate.compensation)
    assert np.isfinite(np.concatenate([np.ravel(array) for array in arrays])).all()
    for name in ("pose_covariance", "twist_covariance"):
        covariance = np.array([getattr(estimate.base, name) for estimate in estimates])
        assert (np.linalg.eigvalsh(covariance)[:, 0] > -1e-9 * np.abs(covariance).max(axis=(1, 2))).all()


def assert_identified_is_sound(estimator: Estimator) -> None:
    identified = estimator.identified
    for values, covariance in zip(identified.values, identified.covariance, strict=True):
        assert np.isfinite(values).all() and np.isfinite(covariance).all()
        assert np.linalg.eigvalsh(covariance)[0] > -1e-6 * np.abs(covariance).max()


def parts(root: object) -> Iterator[tuple[str, Any]]:
    """Arrays and queues below an object, with their path; each once."""
    seen, waiting = set(), deque([("", root)])
    while waiting:
        path, item = waiting.popleft()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, (np.ndarray, deque)):
            yield path, item
        if isinstance(item, dict):
            waiting.extend((f"{path}[{key}]", value) for key, value in item.items())
        elif isinstance(item, (list, tuple, deque)):
            names = getattr(item, "_fields", range(len(item)))
            waiting.extend((f"{path}[{name}]", value) for name, value in zip(names, item, strict=True))
        elif type(item).__module__.startswith("friction_estimator"):
            names = [
                *getattr(item, "__dict__", ()),
                *(n for c in type(item).__mro__ for n in getattr(c, "__slots__", ())),
            ]
            waiting.extend((f"{path}.{name}", getattr(item, name)) for name in names if hasattr(item, name))


def size(estimator: Estimator) -> int:
    """Numbers and queue entries that an estimator holds."""
    return sum(item.size if isinstance(item, np.ndarray) else len(item) for _, item in parts(estimator))


@pytest.mark.parametrize("observer", OBSERVERS)
@given(spoiling=st.lists(faults, min_size=1, max_size=5))
@example(spoiling=[Fault("set", JointSample, 0, 2, 0, None, 0.0, 0)])  # two wrong samples soon after the start
@example(spoiling=[Fault("reverse", None, 0, 1, 0, None, 0.0, 0), Fault("stop clock", None, 6, 3, 0, None, 0.0, -1)])
def test_whatever_arrives_the_estimate_is_as_good_as_before_two_seconds_later(observer, spoiling):
    estimator = new_estimator(observer)
    estimates = feed(estimator, messages(0, WARM))
    spoilt, end = messages(WARM, FAULTY), WARM + FAULTY + GOOD
    for fault in spoiling:
        spoilt = spoil(spoilt, fault)
    estimates += feed(estimator, spoilt)
    estimates += (after := feed(estimator, messages(WARM + FAULTY, GOOD)))
    assert_sound(estimates, estimator.pipeline.unknown_friction.law)
    assert_identified_is_sound(estimator)
    usual_error, usual_size = usual(observer)
    assert size(estimator) < 1.1 * usual_size
    error = rms_error(after, end)
    target(error)
    assert error < 1.5 * usual_error + 0.02


@pytest.mark.parametrize("observer", OBSERVERS)
def test_a_gyroscope_that_was_wrong_for_a_moment_is_an_event_and_no_trace_of_it_stays(observer):
    """15 rad/s for 0.15 s turn the attitude by more than a right angle."""
    estimator, other = new_estimator(observer), new_estimator(observer)
    (*_, usually) = feed(other, messages(0, WARM + FAULTY + GOOD))
    feed(estimator, messages(0, WARM))
    fault = Fault("set", ImuSample, 0, 38, FIELDS[ImuSample].index("angular_velocity"), None, -15.0, 0)
    feed(estimator, spoil(messages(WARM, FAULTY), fault))
    after = feed(estimator, messages(WARM + FAULTY, GOOD))
    assert [event.code for event in estimator.health.events] == ["tilt"]
    assert rms_error(after, WARM + FAULTY + GOOD) < 1.5 * usual(observer)[0] + 0.02
    up, true_up = (estimate.base.rotation_base_to_world[2] for estimate in (after[-1], usually))
    np.testing.assert_allclose(up, true_up, atol=0.05)


NOT_STATES = (
    "_newest_frame", ".sensed", "_synchronizer", "_commands", ".robot", "law.", "calibration_torque",
    ".bank._estimates.next", "_support_sets",
)  # fmt: skip
"""Samples, what has been published or is about to be, and the model with constants of its feet."""


def states(estimator: Estimator) -> dict[str, list[np.ndarray]]:
    """Arrays of numbers that an estimator may change, by path."""
    arrays = {path: item for path, item in parts(estimator) if isinstance(item, np.ndarray) and item.dtype == float}
    return {
        path: numbers(array)
        for path, array in arrays.items()
        if array.flags.writeable and array.size and not any(name in path for name in NOT_STATES)
    }


def numbers(array: np.ndarray) -> list[np.ndarray]:
    """The array, or those of the buffer of a record, without its shapes and indices."""
    kinds = {class_number(name): kind for name, kind in RECORDS.items()}
    kind = kinds.get(array[0]) if array.ndim == 1 else None
    if kind is None:
        return [array]
    return [leaf for leaf in flatten(from_buffer(kind, array)) if isinstance(leaf, np.ndarray) and leaf.dtype == float]


@cache
def changing_states(observer: str) -> tuple[str, ...]:
    estimator = new_estimator(observer)
    feed(estimator, messages(0, 200))
    before = copy.deepcopy(states(estimator))
    feed(estimator, messages(200, 150))
    return tuple(
        path
        for path, array in states(estimator).items()
        if path not in before or not all(map(partial(np.array_equal, equal_nan=True), before[path], array))
    )


@pytest.mark.parametrize("value", [math.nan, 1e300])
@pytest.mark.parametrize("observer", OBSERVERS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_state_stays_broken_and_nothing_broken_is_published(observer, value):
    """All numbers of one state after another become useless, one state every 40 ms; then two seconds of good data."""
    estimator, paths, k = new_estimator(observer), changing_states(observer), 250
    feed(estimator, copy.deepcopy(messages(0, k)))
    for path in paths:
        if path in (arrays := states(estimator)):
            for array in arrays[path]:
                array[...] = value
        if estimates := feed(estimator, copy.deepcopy(messages(k, 10))):  # samples may be kept as states
            assert_sound(estimates, estimator.pipeline.unknown_friction.law)
        k += 10
    assert len(paths) > 40 and estimator.health.error_restarts > 10
    after = feed(estimator, messages(k, GOOD))
    assert_sound(after, estimator.pipeline.unknown_friction.law)
    assert_identified_is_sound(estimator)
    assert rms_error(after, k + GOOD) < 1.5 * usual(observer)[0] + 0.02
    assert np.isfinite(after[-1].external_torque).all() and after[-1].measured.all()


def test_a_limb_that_breaks_goes_back_to_what_it_had_learned_and_reports_it():
    estimator = new_estimator("kalman")
    feed(estimator, messages(0, 750))
    learned = estimator.identified
    (limb_filter,) = estimator.pipeline.friction.bank.filters
    limb_filter.covariance[limb_filter.layout["law"]] = -1.0
    feed(estimator, messages(750, 5))
    moved = np.abs(estimator.identified.values - learned.values)
    assert (moved < np.sqrt(np.diagonal(learned.covariance, axis1=1, axis2=2)) + 1e-12).all()
    (event,) = estimator.health.events
    assert event.code == "error_restart" and "goes back to what it had learned" in event.text
    assert "(hip, knee)" in event.text


def test_a_two_stage_limb_that_breaks_goes_back_to_what_it_had_learned_and_reports_it():
    estimator = new_estimator("two_stage")
    feed(estimator, messages(0, 1400))
    learned = estimator.identified
    (limb,) = estimator.pipeline.friction.limbs
    limb.solution.information[0] = np.nan
    feed(estimator, messages(1400, 150))
    moved = np.abs(estimator.identified.values - learned.values)
    assert (moved < np.sqrt(np.diagonal(learned.covariance, axis1=1, axis2=2)) + 1e-12).all()
    (event,) = estimator.health.events
    assert event.code == "error_restart" and "what was learned of hip, knee was not finite" in event.text


def test_a_first_period_that_is_far_too_short_does_not_stop_the_identification():
    """Twelve joint states with a period of a nanosecond, and then good data."""
    estimator = new_estimator("kalman")
    feed(estimator, [dataclasses.replace(sample, stamp_ns=k // 4) for k, sample in enumerate(messages(0, 12))])
    estimates = feed(estimator, messages(1, 1 + 2 * GOOD))
    assert estimates[-1].measured.all()
    assert rms_error(estimates, 2 + 2 * GOOD) < 1.5 * usual("kalman")[0] + 0.02
