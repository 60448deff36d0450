"""Measured friction over velocity, and the least-squares problem of a law and other columns of the torque."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from friction_estimator.errors import InputError, choices
from friction_estimator.identification.joint_log import DRIVEN, FRICTION_INPUT, SIGMA_INPUT, SLIDES
from friction_estimator.identification.linear_problem import LinearProblem, Prior
from friction_estimator.identification.recording.motion import Motion
from friction_estimator.laws import FrictionLaw, Role
from friction_estimator.laws.law import torque_gradient
from friction_estimator.laws.published import STRIBECK_VELOCITY
from friction_estimator.types import BoolArray, FloatArray, IntArray

_LARGEST_TERM = 10.0
"""Largest torque of a single term of a law, as a multiple of the largest friction that was seen."""


@dataclass(frozen=True, slots=True)
class ExtraColumn:
    """An unknown factor of a signal that adds to the measured friction torque, such as a constant offset."""

    # of the unknown number
    name: str
    unit: str
    nonnegative: bool = False  # True where it is never below zero


OFFSET_COLUMN = ExtraColumn("offset", "N m")
"""A constant torque."""


_USUAL: Any = None
"""Of a signal that is not given: the usual one takes its place."""


@dataclass(frozen=True, slots=True)
class CurveSamples:
    """Measured friction of one joint over its velocity, with the other signals that explain it."""

    velocity: FloatArray  # (N,) [rad/s]
    friction: FloatArray  # (N,) with the sign of the velocity it resists [N m]
    load: FloatArray | None  # (N,) torque through the joint [N m]; None when unknown
    segment: IntArray  # (N,) which stretch of time a sample comes from, rising over all recordings
    recording: IntArray = _USUAL  # (N,) which recording; not given: there is one
    # (N,) samples with the same number have errors of the same size, 1 where the motor was driven; not given: all
    # have
    group: IntArray = _USUAL
    columns: tuple[ExtraColumn, ...] = ()  # (e) what else the torque holds
    extra_columns: FloatArray = _USUAL  # (N, e) these signals
    time: FloatArray = _USUAL  # (N,) of the friction [s]; not given: the number of the sample
    usable: BoolArray = _USUAL  # (N,) samples that are fast and certain enough; not given: all are

    def __post_init__(self) -> None:
        count = self.velocity.size
        for name, usual in (
            ("recording", np.zeros(count, dtype=np.intp)),
            ("group", np.zeros(count, dtype=np.intp)),
            ("extra_columns", np.zeros((count, 0))),
            ("time", np.arange(count, dtype=float)),
            ("usable", np.ones(count, dtype=bool)),
        ):
            if getattr(self, name) is None:
                object.__setattr__(self, name, usual)

    @property
    def torque_rms(self) -> float:
        """RMS of the friction: the error of "predict zero" [N m]."""
        return float(np.sqrt(np.mean(self.friction**2)))

    @property
    def top_speed(self) -> float:
        """Largest speed [rad/s]."""
        return float(np.abs(self.velocity).max())

    @property
    def scored(self) -> BoolArray:
        """True (N,) for samples that count in errors: usable ones, of logs without a drive where there are any."""
        free = self.usable & (self.group == 0)
        return free if free.any() else self.usable

    @property
    def used(self) -> CurveSamples:
        """Usable samples alone."""
        return self.select(self.usable)

    def extra_torque(self, parameters: Mapping[str, float]) -> FloatArray:
        """Torque (N,) [N m] of the extra columns, with parameters by name; others are zero."""
        torque, named = np.zeros_like(self.velocity), zip(self.columns, self.extra_columns.T, strict=True)
        for column in (signal * parameters[one.name] for one, signal in named if one.name in parameters):
            torque += column  # one after another: the same to the last bit, whatever other columns there are
        return torque

    def select(self, rows: BoolArray | IntArray | slice) -> CurveSamples:
        """The samples at these rows."""
        signals = ("velocity", "friction", "load", "segment", "recording", "group", "extra_columns", "time", "usable")
        known = {name: signal for name in signals if (signal := getattr(self, name)) is not None}
        return replace(self, **{name: signal[rows] for name, signal in known.items()})

    def without(self, columns: Collection[ExtraColumn]) -> CurveSamples:
        """The same without some of the extra columns."""
        kept = [k for k, one in enumerate(self.columns) if one not in columns]
        return replace(self, columns=tuple(self.columns[k] for k in kept), extra_columns=self.extra_columns[:, kept])

    def every(self, largest: int) -> slice:
        """Slice of evenly spaced samples, at most ``largest`` of them."""
        return slice(None, None, max(1, -(-self.velocity.size // largest)))

    def thinned(self, largest: int) -> CurveSamples:
        """Evenly spaced samples, at most ``largest`` of them."""
        return self.select(self.every(largest))


ZERO_SLOPES = {"none": (), "positive": ("static_positive",), "negative": ("static_negative",)}
ZERO_SLOPES["both"] = (*ZERO_SLOPES["positive"], *ZERO_SLOPES["negative"])
"""Static friction of the directions in which friction leaves standstill with zero slope, by the value of the option."""
_EXACT_SHARE = 3e-7
"""Standard deviation of what is zero by definition, in the size of the friction."""


class CurveShape:
    """Linear problems of a law with its extra columns: at a shape of the curve, and about a solution.

    Coordinates (s,) of the shape are its parameters, or their logarithms where orders of magnitude count. Static
    friction differs from Coulomb friction by the size of the friction: where nothing slides slowly, an extrapolation of
    ``exp(|dq| / v_s)`` from fast samples would be thousands of newton metres.

    Parameters
    ----------
    law : any of the registry
    samples : finite; with a load where the law needs one
    stribeck_velocity : given [rad/s]; None: as of the law, or searched
    zero_slope : of :data:`ZERO_SLOPES`; there ``static - coulomb = v_s viscous`` (Guedelha et al. 2017, section 4.1.2)

    Attributes
    ----------
    names, units : (p) parameters of the law, then of the extra columns
    shape : (p) True for parameters that the torque is not linear in
    low, high : (s,) range of the coordinates

    Raises
    ------
    InputError
        When there are not more samples than parameters, or nothing moves.
    """

    def __init__(
        self, law: FrictionLaw, samples: CurveSamples, stribeck_velocity: float | None = None, zero_slope: str = "none"
    ) -> None:
        self.names = (*law.parameter_names, *(column.name for column in samples.columns))
        self.units = (*law.units, *(column.unit for column in samples.columns))
        if samples.friction.size <= len(self.names):
            raise InputError(
                f"{samples.friction.size} usable samples cannot give the {len(self.names)} parameters of {law.name!r}: "
                "record more motion, or use a law with fewer parameters"
            )
        if samples.top_speed == 0.0 or samples.torque_rms == 0.0:
            raise InputError("velocity or friction is zero everywhere: there is no friction curve to fit")
        self._law, self._samples = law, samples
        roles = [*(one.role for one in law.parameters), *[Role.OFFSET] * len(samples.columns)]
        self.shape: BoolArray = np.array([role is Role.SHAPE for role in roles])
        shapes = [one for one in law.parameters if one.role is Role.SHAPE]
        given = [stribeck_velocity if one.name == "stribeck_velocity" else None for one in shapes]
        bounds = np.array(
            [one.bounds if value is None else (value, value) for one, value in zip(shapes, given, strict=True)]
        ).reshape(-1, 2)
        self._log = bounds[:, 0] > 0.0
        self.low, self.high = self._coordinates(bounds[:, 0]), self._coordinates(bounds[:, 1])
        self._nonnegative = np.array([*law.nonnegative, *(column.nonnegative for column in samples.columns)])
        middle = self.values(0.5 * (self.low + self.high))
        both = samples, replace(samples, velocity=-samples.velocity)
        largest = np.max([np.abs(self.linearised(middle, one).W).max(axis=0) for one in both], axis=0)
        size = _LARGEST_TERM * np.abs(samples.friction).max() / np.where(largest > 0.0, largest, 1.0)
        size[self.shape] = np.where(self.high > self.low, self.high - self.low, 1.0)
        self._size, self._sloped = size, ZERO_SLOPES[zero_slope]

    @property
    def likely(self) -> tuple[FloatArray, FloatArray]:
        """Where shapes are drawn, (s,) each: velocities that occur, ratios up to two, within the range of the law."""
        speeds = np.abs(self._samples.velocity)
        slow, fast = max(float(np.quantile(speeds, 0.05)), 0.01 * speeds.max()), float(speeds.max())
        ranges = {"rad/s": (slow, fast), "s/rad": (1.0 / fast, 2.0 / slow), "": (0.0, 2.0)}
        limits = np.array([ranges[self.units[k]] for k in np.flatnonzero(self.shape)]).reshape(-1, 2).T
        low, high = (np.clip(self._coordinates(limit), self.low, self.high) for limit in limits)
        return low, high

    def values(self, z: FloatArray, linear: FloatArray | float = 0.0) -> FloatArray:
        """Parameters (p,) of a shape (s,) and the other parameters (p - s,)."""
        values = np.zeros(self.shape.size)
        values[self.shape], values[~self.shape] = np.where(self._log, np.exp(z * self._log), z), linear
        return values

    def moved(self, values: FloatArray, found: FloatArray) -> FloatArray:
        """Parameters (p,) within their range, from a solution ``found`` (p,) of :meth:`linearised` about ``values``."""
        z = self._coordinates(values[self.shape]) + found[self.shape]
        return self.values(np.clip(z, self.low, self.high), found[~self.shape])

    def slopes(self, values: FloatArray) -> FloatArray:
        """Derivative (p,) of each parameter by the corresponding parameter of :meth:`linearised`."""
        slopes = np.ones_like(values)
        slopes[self.shape] = np.where(self._log, values[self.shape], 1.0) * (self.high > self.low)
        return slopes

    def prior(self, values: FloatArray) -> Prior:
        """Prior of the parameters of :meth:`linearised`.

        No term is larger than ten times the friction, and a shape is anywhere in its range.
        """
        prior, names = Prior.of_std(self._size), list(self.names)
        for k, one in enumerate(self._law.parameters):
            if one.role is Role.STRIBECK and "coulomb" in names:
                row, size = np.zeros(values.size), self._samples.torque_rms
                row[k], row[names.index("coulomb")] = 1.0, -1.0
                if one.name in self._sloped:
                    velocity, viscous = values[self.shape][-1:], names.index("viscous")
                    row[viscous], size = (
                        -float(velocity[0]) if velocity.size else -STRIBECK_VELOCITY,
                        _EXACT_SHARE * size,
                    )
                    row[self.shape] = row[viscous] * values[viscous]
                prior = Prior(prior.mean, prior.precision + np.outer(row, row) / size**2)
        return prior

    def linear_prior(self, z: FloatArray) -> Prior:
        """Prior of the parameters of :meth:`problem`."""
        linear = np.flatnonzero(~self.shape)
        whole = self.prior(self.values(z))
        return Prior(whole.mean[linear], whole.precision[np.ix_(linear, linear)])

    def problem(self, z: FloatArray) -> LinearProblem:
        """Rows with the columns that the torque is linear in, at a shape (s,)."""
        linear, samples, q = np.flatnonzero(~self.shape), self._samples, len(self._law.parameters)
        own = torque_gradient(self._law, self.values(z)[:q], samples.velocity, samples.load, linear[linear < q])
        W = np.asfortranarray(np.hstack((own, samples.extra_columns)))  # as `select_columns` of the whole would be
        names, units = (tuple(all_of[k] for k in linear) for all_of in (self.names, self.units))
        return replace(time_rows(samples, W), names=names, units=units, nonnegative=self._nonnegative[linear])

    def linearised(self, values: FloatArray, samples: CurveSamples | None = None) -> LinearProblem:
        """Least-squares problem linearised about ``values`` (p,); the unknown of the shape is its change."""
        samples = self._samples if samples is None else samples
        W = gradient_of(self._law, values, samples) * self.slopes(values)
        y = samples.friction - torque_of(self._law, values, samples) + W @ np.where(self.shape, 0.0, values)
        return replace(
            time_rows(samples, W), names=self.names, units=self.units, y=y, nonnegative=self._nonnegative & ~self.shape
        )

    def _coordinates(self, shape: FloatArray) -> FloatArray:
        return np.where(self._log, np.log(np.where(self._log, shape, 1.0)), shape)


def time_rows(samples: CurveSamples, columns: FloatArray) -> LinearProblem:
    """Problem of the samples with these columns (N, p); every group of samples has its own size of error."""
    p = columns.shape[1]
    return LinearProblem(
        names=("",) * p,
        units=("",) * p,
        W=columns,
        y=samples.friction,
        joint=samples.group,
        segment=samples.segment,
        nonnegative=np.zeros(p, dtype=bool),
        recording=samples.recording,
    )


def torque_of(law: FrictionLaw, values: FloatArray, samples: CurveSamples) -> FloatArray:
    """Torque (N,) [N m] of a law and extra columns with parameters (p,) at the samples."""
    q = len(law.parameters)
    return law.torque(values[None, :q], samples.velocity, samples.load) + samples.extra_columns @ values[q:]


def gradient_of(law: FrictionLaw, values: FloatArray, samples: CurveSamples) -> FloatArray:
    """Derivative (N, p) of :func:`torque_of` by the parameters."""
    own = torque_gradient(law, values[: len(law.parameters)], samples.velocity, samples.load)
    return np.hstack((own, samples.extra_columns))


COLUMN = "column/"
"""Begin of the names of inputs that are columns."""


def curve_samples(
    motions: Sequence[Motion],
    joint: str,
    columns: tuple[ExtraColumn, ...] = (OFFSET_COLUMN,),
    delay: float = 0.0,
    dead_zone: float = 0.0,
    max_sigma: float = np.inf,
) -> CurveSamples:
    """Measured friction of one joint over the velocity and effort that it belongs to.

    Parameters
    ----------
    motions : of the joint and maybe others, with ``inputs["friction"]`` [N m], NaN where nothing was measured
    columns : beyond friction: a constant, or inputs of the motions
    delay : by which friction is late: it belongs to a velocity that is this much earlier; gaps are not crossed [s]
    dead_zone : slower samples are not usable [rad/s]
    max_sigma : friction less certain than that, by ``inputs["friction_sigma"]``, is left out [N m]

    Raises
    ------
    InputError
        When a motion has no friction.
    """
    parts: dict[str, list[Any]] = {}
    segments = 0
    for number, motion in enumerate(motions):
        if FRICTION_INPUT not in motion.inputs:
            raise InputError(
                f"{motion.name} has no measured friction: replay a bag first (topic joint_friction), or name a column "
                "friction/JOINT; the columns other than position, velocity and effort are "
                f"{choices(motion.inputs)}"
            )
        steps = round(delay / motion.period)
        late = np.arange(steps, motion.time.size)
        apart = motion.time[late] - motion.time[late - steps]
        late = late[np.abs(apart - steps * motion.period) < 0.5 * motion.period]
        early, k = late - steps, motion.joint_names.index(joint)
        velocity, friction = motion.velocity[early, k], motion.inputs[FRICTION_INPUT][late, k]
        driven = bool(DRIVEN in motion.inputs and motion.inputs[DRIVEN].any())
        sigma, slides = (
            motion.inputs.get(kind, np.full_like(motion.velocity, other))[:, k]
            for kind, other in ((SIGMA_INPUT, 0.0), (SLIDES, 1.0))
        )
        extra = [np.ones_like(motion.velocity) if one == OFFSET_COLUMN else motion.inputs[COLUMN + one.name]
                 for one in columns]  # fmt: skip
        signals = {
            "velocity": velocity,
            "friction": friction,
            "load": np.full(velocity.shape, np.nan) if motion.effort is None else motion.effort[early, k],
            "usable": (np.abs(velocity) >= dead_zone) & (slides[early] > 0.0),
            "segment": segments + motion.segment[early],
            "recording": np.full(early.size, number, dtype=np.intp),
            "time": motion.time[late],
            "group": np.full(early.size, driven, dtype=np.intp),
            "extra_columns": np.column_stack([np.zeros((early.size, 0)), *(column[early, k] for column in extra)]),
        }
        measured = np.isfinite(friction) & np.isfinite(velocity) & (sigma[late] <= max_sigma)
        measured &= motion.velocity[:, k].any()
        for name, signal in signals.items():
            parts.setdefault(name, []).append(signal[measured])
        segments += int(motion.segment.max(initial=0)) + 1
    joined: dict[str, Any] = {name: np.concatenate(part) for name, part in parts.items()}
    used = joined["load"][joined["usable"]]
    load = None if np.isnan(used).any() else np.nan_to_num(joined.pop("load"))
    return CurveSamples(columns=columns, **{**joined, "load": load})
