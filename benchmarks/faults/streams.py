"""Faults of a stream of sensor messages, as pure functions of the messages.

A :data:`Change` takes the messages of the fault's time, the good ones after it, and a random generator. It returns both
as they arrive with the fault. Most faults end with their time; a clock that has jumped stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.faults.readings import Reading
from friction_estimator.simulation import PERIOD_NS
from friction_estimator.types import GRAVITY, FloatArray, ImuSample, JointSample, WrenchSample

Readings = list[Reading]
Change = Callable[[Readings, Readings, np.random.Generator], tuple[Readings, Readings]]
MS = 1_000_000
"""A millisecond [ns]."""
SECOND = 1000 * MS
"""[ns]"""
_DRY_SPEED = 0.02
"""Speed above which dry friction of a brake has its full size [rad/s]."""
JOINTS, IMU, WRENCHES = (JointSample,), (ImuSample,), (WrenchSample,)
ALL = (JointSample, ImuSample, WrenchSample)


def alone(change: Callable[[Readings, np.random.Generator], Iterable[Reading]]) -> Change:
    """A fault that ends with its time."""

    def both(during: Readings, after: Readings, rng: np.random.Generator) -> tuple[Readings, Readings]:
        return sorted(change(during, rng), key=lambda reading: reading.arrival_ns), after

    return both


def each(kinds: tuple[type, ...], change: Callable[[Reading], Reading]) -> Change:
    """Change every message of some sensors."""
    return alone(lambda during, rng: [change(one) if is_of(one, kinds) else one for one in during])


def is_of(reading: Reading, kinds: tuple[type, ...], foot: int | None = None) -> bool:
    """Whether a message is of one of these sensors."""
    return isinstance(reading.sample, kinds) and (foot is None or getattr(reading.sample, "foot", foot) == foot)


def loss(share: float) -> Change:
    """Every message is lost with this probability."""
    return alone(lambda during, rng: [one for one in during if rng.random() >= share])


def bursts(count: int, longest: float) -> Change:
    """All messages are lost in some intervals of at most this length [s]."""

    def change(during: Readings, rng: np.random.Generator) -> Readings:
        start, end = during[0].arrival_ns, during[-1].arrival_ns
        first = rng.uniform(start, end, count)
        last = first + rng.uniform(0.2, 1.0, count) * longest * SECOND
        return [one for one in during if not ((first <= one.arrival_ns) & (one.arrival_ns < last)).any()]

    return alone(change)


def stalls(duration: float, every: float) -> Change:
    """All messages of an interval arrive together at its end, again and again [s]."""
    length, period = round(duration * SECOND), round(every * SECOND)

    def late(one: Reading, start: int) -> Reading:
        phase = (one.arrival_ns - start) % period
        return replace(one, arrival_ns=one.arrival_ns + max(0, length - phase))

    return alone(lambda during, rng: [late(one, during[0].arrival_ns) for one in during])


def duplicates(share: float) -> Change:
    """Messages come twice with this probability."""
    return alone(lambda during, rng: [one for one in during for _ in range(1 + (rng.random() < share))])


def jitter(longest: float, kinds: tuple[type, ...] = ALL) -> Change:
    """Every message is late by a random time up to this one [s], so that messages overtake each other."""

    def change(during: Readings, rng: np.random.Generator) -> Readings:
        delays = rng.integers(0, round(longest * SECOND), len(during)).tolist()
        return [
            replace(one, arrival_ns=one.arrival_ns + delay) if is_of(one, kinds) else one
            for one, delay in zip(during, delays, strict=True)
        ]

    return alone(change)


def clock_jump(seconds: float) -> Change:
    """All stamps jump, and stay there."""
    offset = round(seconds * SECOND)

    def change(during: Readings, after: Readings, rng: np.random.Generator) -> tuple[Readings, Readings]:
        return [one.shifted(offset) for one in during], [one.shifted(offset) for one in after]

    return change


def clock_in_each_sample(seconds: float) -> Change:
    """The stamps of every second instant are off by this time."""
    offset = round(seconds * SECOND)
    return each(ALL, lambda one: one.shifted(offset * (one.index % 2)))


def loop(seconds: float) -> Change:
    """The messages of the fault's beginning come again and again with their stamps, as from a bag that is looped."""

    def change(during: Readings, rng: np.random.Generator) -> Iterable[Reading]:
        start = during[0].arrival_ns
        length = round(seconds * SECOND)
        bag = [one for one in during if one.arrival_ns - start < length]
        for turn in range((during[-1].arrival_ns - start) // length + 1):
            yield from (replace(one, arrival_ns=one.arrival_ns + turn * length) for one in bag)

    return alone(change)


def order(names: Sequence[str]) -> Change:
    """The joints come in another order in every message."""

    def change(during: Readings, rng: np.random.Generator) -> Readings:
        return [
            replace(one, names=tuple(rng.permutation(names).tolist())) if is_of(one, JOINTS) else one for one in during
        ]

    return alone(change)


def without_joint(names: Sequence[str], missing: str) -> Change:
    """Joint states lack a joint."""
    rest = tuple(name for name in names if name != missing)
    return each(JOINTS, lambda one: replace(one, names=rest))


def silent(kinds: tuple[type, ...], foot: int | None = None) -> Change:
    """Sensors deliver nothing."""
    return alone(lambda during, rng: [one for one in during if not is_of(one, kinds, foot)])


def rate(hertz: float, kinds: tuple[type, ...] = ALL) -> Change:
    """Sensors deliver at a lower rate."""
    stride = round(1e9 / hertz / PERIOD_NS)
    return alone(lambda during, rng: [one for one in during if not is_of(one, kinds) or one.index % stride == 0])


def lag(seconds: float, kinds: tuple[type, ...]) -> Change:
    """Messages of some sensors arrive late, with the right stamps."""
    delay = round(seconds * SECOND)
    return each(kinds, lambda one: replace(one, arrival_ns=one.arrival_ns + delay))


def stamp_lag(seconds: float, kinds: tuple[type, ...]) -> Change:
    """Stamps of some sensors are older than the measurement."""
    return each(kinds, lambda one: one.shifted(-round(seconds * SECOND)))


def packets(size: int, kinds: tuple[type, ...]) -> Change:
    """Readings come in packets of this size, stamped on arrival 10 microseconds apart."""

    def packed(one: Reading) -> Reading:
        wait = (size - 1 - one.index % size) * PERIOD_NS
        return replace(one.shifted(wait - wait // 100), arrival_ns=one.arrival_ns + wait)

    return each(kinds, packed)


def turned_on(joint: int) -> Change:
    """The encoder of a joint counts a turn more."""
    return map_field(JOINTS, "position", lambda q: _with(q, joint, q[joint] + 2.0 * np.pi))


def same_stamp(kinds: tuple[type, ...], stamp_ns: int | None = None) -> Change:
    """Stamps of some sensors do not advance [ns]; None: they keep that of the fault's beginning."""

    def change(during: Readings, rng: np.random.Generator) -> Readings:
        kept = during[0].stamp_ns if stamp_ns is None else stamp_ns
        return [one.changed(stamp_ns=kept) if is_of(one, kinds) else one for one in during]

    return alone(change)


def stuck(kinds: tuple[type, ...], *fields: str, foot: int | None = None, joint: int | None = None) -> Change:
    """Fields of some sensors keep the values of the fault's beginning; ``joint``: of this joint only."""

    def change(during: Readings, rng: np.random.Generator) -> Iterable[Reading]:
        held: dict[tuple[type, int, str], FloatArray] = {}
        for one in during:
            if not is_of(one, kinds, foot):
                yield one
                continue
            values = {}
            for field in fields:
                new = getattr(one.sample, field)
                old = held.setdefault((type(one.sample), getattr(one.sample, "foot", 0), field), new)
                values[field] = old if joint is None else _with(new, joint, old[joint])
            yield one.changed(**values)

    return alone(change)


def map_field(kinds: tuple[type, ...], field: str, change: Callable[[FloatArray], FloatArray]) -> Change:
    """Change the values of a field."""
    return each(kinds, lambda one: one.changed(**{field: change(getattr(one.sample, field))}))


def scale(kinds: tuple[type, ...], factor: float, *fields: str, joint: int | None = None) -> Change:
    """Fields of some sensors are in another unit, or have another sign; ``joint``: of this joint only."""

    def scaled(values: FloatArray) -> FloatArray:
        return factor * values if joint is None else _with(values, joint, factor * values[joint])

    return each(kinds, lambda one: one.changed(**{field: scaled(getattr(one.sample, field)) for field in fields}))


def about(ahead: float) -> Change:
    """Moments of the wrenches are about a point this far ahead of the sole frame [m]."""
    lever = np.array((ahead, 0.0, 0.0))

    def moved(wrench: FloatArray) -> FloatArray:
        return np.concatenate((wrench[:3], wrench[3:] - np.cross(lever, wrench[:3])))

    return map_field(WRENCHES, "wrench", moved)


def turn(kinds: tuple[type, ...], rotation: FloatArray) -> Change:
    """IMU or force sensors are turned: (3, 3) from the true to the turned axes."""

    def turned(one: Reading) -> Reading:
        sample: Any = one.sample
        if isinstance(sample, ImuSample):
            rate_, force = rotation @ sample.angular_velocity, rotation @ sample.specific_force
            return one.changed(angular_velocity=rate_, specific_force=force)
        return one.changed(wrench=(sample.wrench.reshape(2, 3) @ rotation.T).reshape(6))

    return each(kinds, turned)


def outliers(
    kinds: tuple[type, ...], field: str, component: int, value: float, count: int | None = None, foot: int | None = None
) -> Change:
    """One component has this value, in all messages or in the first ones of the fault."""

    def change(during: Readings, rng: np.random.Generator) -> Iterable[Reading]:
        left = len(during) if count is None else count
        for one in during:
            if is_of(one, kinds, foot) and left:
                left -= 1
                one = one.changed(**{field: _with(getattr(one.sample, field), component, value)})
            yield one

    return alone(change)


def second_publisher(
    kinds: tuple[type, ...], change: Callable[[Reading], Reading], every: int, delay: float, first: bool = False
) -> Change:
    """A second node sends changed readings with, or before, one in ``every``, with stamps later by ``delay`` [s]."""
    offset = round(delay * SECOND)

    def both(during: Readings, rng: np.random.Generator) -> Iterable[Reading]:
        for one in during:
            others = []
            if is_of(one, kinds) and one.index % every == 0:
                others = [replace(change(one).shifted(offset), arrival_ns=one.arrival_ns + offset)]
            yield from (*others, one) if first else (one, *others)

    return alone(both)


def zeros(one: Reading) -> Reading:
    """All numbers of a reading are zero."""
    fields = (name for name in one.sample.__slots__ if isinstance(getattr(one.sample, name), np.ndarray))
    return one.changed(**{name: np.zeros_like(getattr(one.sample, name)) for name in fields})


def other_axes(one: Reading) -> Reading:
    """The axes of an IMU are exchanged."""
    return one.changed(
        **{name: getattr(one.sample, name)[[1, 2, 0]] for name in ("angular_velocity", "specific_force")}
    )


def no_torque(one: Reading) -> Reading:
    """A joint state is passed on with efforts that are zero."""
    return one.changed(effort=np.zeros_like(one.sample.effort))


def efforts_apart() -> Change:
    """Positions come first and efforts in a second message of the same stamp, as from two drivers."""

    def change(during: Readings, rng: np.random.Generator) -> Iterable[Reading]:
        for one in during:
            if is_of(one, JOINTS):
                yield replace(one, sample=replace(one.sample, effort=np.full_like(one.sample.effort, np.nan)))
            yield one

    return alone(change)


def old_messages(every: float) -> Change:
    """Now and then [s] the first joint state of the fault comes again."""
    period = round(every * SECOND)

    def change(during: Readings, rng: np.random.Generator) -> Iterable[Reading]:
        first = next(one for one in during if is_of(one, JOINTS))
        due = first.arrival_ns + period
        for one in during:
            yield one
            if one.arrival_ns >= due:
                due += period
                yield replace(first, arrival_ns=one.arrival_ns)

    return alone(change)


def no_efforts() -> Change:
    """Joint states carry no efforts."""
    return map_field(JOINTS, "effort", partial(np.full_like, fill_value=np.nan))


def clipped(limit: float) -> Change:
    """Torques saturate [N m]."""
    return map_field(JOINTS, "effort", lambda effort: np.clip(effort, -limit, limit))


def brake(joint: int, size: float) -> Change:
    """Dry friction of one joint is larger by this [N m]; its motor moves it as before."""

    def drag(one: Reading) -> Reading:
        sample = one.sample
        if not isinstance(sample, JointSample) or sample.velocity is None:
            return one
        more = _with(np.zeros_like(one.friction), joint, size * np.tanh(sample.velocity[joint] / _DRY_SPEED))
        return replace(one.changed(effort=sample.effort + more), friction=one.friction + more)

    return each(JOINTS, drag)


def _with(values: FloatArray, place: int, value: float) -> FloatArray:
    changed = values.copy()
    changed[place] = value
    return changed


def quarter_turn(axis: int) -> FloatArray:
    """Rotation (3, 3) by 90 degrees about an axis."""
    others = [(axis + 1) % 3, (axis + 2) % 3]
    rotation = np.zeros((3, 3))
    rotation[axis, axis] = 1.0
    rotation[others[0], others[1]], rotation[others[1], others[0]] = -1.0, 1.0
    return rotation


G_UNIT = 1.0 / GRAVITY
"""From m/s^2 to g."""
DEGREES = float(np.degrees(1.0))
"""From radians to degrees."""
