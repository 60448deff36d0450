"""Measured friction of one joint over its velocity, and the least-squares problem of a law through it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.errors import InputError, choices
from friction_estimator.identification.joint_log import FRICTION, SIGMA, Motion
from friction_estimator.laws import FrictionLaw, Role
from friction_estimator.laws.law import torque_gradient
from friction_estimator.types import BoolArray, FloatArray, IntArray

_LARGEST = 10.0
"""Largest torque of a single term of a law, as a multiple of the largest friction that was seen."""
_GRID = 50


@dataclass(frozen=True, slots=True)
class CurveSamples:
    """Measured friction of one joint.

    Attributes
    ----------
    velocity : (N,) [rad/s]
    friction : (N,) with the sign of the velocity it resists [N m]
    load : (N,) torque through the joint [N m]; None when unknown
    segment : (N,) which stretch of time a sample comes from, rising
    """

    velocity: FloatArray
    friction: FloatArray
    load: FloatArray | None
    segment: IntArray

    @property
    def torque_rms(self) -> float:
        """RMS of the friction: the error of "predict zero" [N m]."""
        return float(np.sqrt(np.mean(self.friction**2)))

    @property
    def top_speed(self) -> float:
        """Largest speed [rad/s]."""
        return float(np.abs(self.velocity).max())

    def select(self, rows: BoolArray | IntArray | slice) -> CurveSamples:
        """These rows of it."""
        load = None if self.load is None else self.load[rows]
        return CurveSamples(self.velocity[rows], self.friction[rows], load, self.segment[rows])

    def thinned(self, largest: int) -> CurveSamples:
        """Evenly spaced rows, at most ``largest`` of them."""
        return self.select(slice(None, None, max(1, -(-self.velocity.size // largest))))


class CurveProblem:
    """Residuals of a law, and bounds, in coordinates ``z`` of size one.

    Parameters that the torque is linear in are counted in the largest friction seen, those that shape the curve over
    orders of magnitude by their logarithm.

    Parameters
    ----------
    law : any of the registry
    samples : finite; with a load where the law needs one

    Attributes
    ----------
    shape : (p) True for parameters that the torque is not linear in
    lower, upper : (p,) bounds of the parameters, from the law's signs and ranges and from the size of the friction

    Raises
    ------
    InputError
        When there are not more samples than parameters, or nothing moves.
    """

    def __init__(self, law: FrictionLaw, samples: CurveSamples) -> None:
        p = len(law.parameter_names)
        if samples.friction.size <= p:
            raise InputError(f"{samples.friction.size} usable samples cannot give the {p} parameters of {law.name!r}")
        if samples.top_speed == 0.0 or samples.torque_rms == 0.0:
            raise InputError("velocity or friction is zero everywhere: there is no friction curve to fit")
        self.law, self.samples = law, samples
        low, high = np.array([parameter.bounds for parameter in law.parameters]).T
        self.shape: BoolArray = np.array([parameter.role is Role.SHAPE for parameter in law.parameters])
        low, high = np.where(self.shape, low, 0.0), np.where(self.shape, high, 0.0)
        self._log = self.shape & (low > 0.0)
        self._scale = np.where(self.shape, 1.0, self._linear_scales(np.sqrt(np.maximum(low, 1e-3) * high)))
        self.upper = np.where(self.shape, high, _LARGEST * self._scale)
        self.lower = np.where(self.shape, low, np.where(law.nonnegative, 0.0, -self.upper))

    def _linear_scales(self, shape: FloatArray) -> FloatArray:
        """Which value of each linear parameter gives the largest friction seen, at a shape in the middle, (p,)."""
        samples = self.samples
        speeds = np.concatenate((samples.velocity, samples.top_speed * np.linspace(-1.0, 1.0, _GRID)))
        load = None if samples.load is None else np.append(samples.load, np.full(_GRID, np.abs(samples.load).max()))
        largest = np.abs(linear_columns(self.law, np.where(self.shape, shape, 0.0), self.shape, speeds, load)).max(
            axis=0
        )
        return np.abs(samples.friction).max() / np.where(largest > 0.0, largest, 1.0)

    def to_z(self, values: FloatArray) -> FloatArray:
        """Coordinates (p,) of parameters (p,)."""
        return np.where(self._log, np.log(np.where(self._log, values, 1.0)), values / self._scale)

    def from_z(self, z: FloatArray) -> FloatArray:
        """Parameters (p,) at coordinates (p,)."""
        return np.where(self._log, np.exp(np.where(self._log, z, 0.0)), z * self._scale)

    def slopes(self, values: FloatArray) -> FloatArray:
        """Derivative of each parameter by its coordinate, (p,)."""
        return np.where(self._log, values, self._scale)

    def residual(self, z: FloatArray) -> FloatArray:
        """Law minus measurement, (N,) [N m]."""
        return torque_of(self.law, self.from_z(z), self.samples) - self.samples.friction

    def jacobian(self, z: FloatArray) -> FloatArray:
        """Derivative of :meth:`residual`, (N, p)."""
        values = self.from_z(z)
        return torque_gradient(self.law, values, self.samples.velocity, self.samples.load) * self.slopes(values)

    def linear_columns(self, values: FloatArray) -> FloatArray:
        """Torque that each linear parameter gives alone, at one N m of it and this shape, (N, p); zero for shapes."""
        return linear_columns(self.law, values, self.shape, self.samples.velocity, self.samples.load)


def torque_of(law: FrictionLaw, values: FloatArray, samples: CurveSamples) -> FloatArray:
    """Torque (N,) [N m] of a law with parameters (p,) at the velocities and loads of the samples."""
    return law.torque(values[None, :], samples.velocity, samples.load)


def linear_columns(
    law: FrictionLaw, values: FloatArray, shape: BoolArray, velocity: FloatArray, load: FloatArray | None
) -> FloatArray:
    """Torque per unit of each parameter that it is linear in, the shape being that of ``values``; (N, p)."""
    columns = np.zeros((velocity.size, values.size))
    for k in np.flatnonzero(~shape):
        alone = np.where(shape, values, 0.0)
        alone[k] = 1.0
        columns[:, k] = law.torque(alone[None, :], velocity, load)
    return columns


_LATEST, _STEPS = 0.3, 60
"""Longest delay of an observer that is tried [s], and the number of delays."""
_BINS, _COMPARED = 40, 20_000
"""Bins of equal velocity, and samples that are compared for each delay."""
_CLEARLY = 0.8
"""Lateness counts when it leaves less than this part of the spread about a function of velocity."""


def curve_samples(motions: Sequence[Motion], joint: int, delay: float, max_sigma: float = np.inf) -> CurveSamples:
    """Measured friction of one joint over the velocity and effort that it belongs to, from motions in which it moves.

    Parameters
    ----------
    motions : with ``inputs["friction"]`` [N m], NaN where nothing was measured
    joint : its column
    delay : the friction of a row is that of so much earlier [s]
    max_sigma : friction less certain than that, by ``inputs["friction_sigma"]``, is left out [N m]

    Raises
    ------
    InputError
        When a motion has no friction.
    """
    parts, segments = [], 0
    for motion in motions:
        late, early = _shifted(motion, delay)
        friction = _friction(motion, max_sigma)[late, joint]
        load = np.full(early.size, np.nan) if motion.effort is None else motion.effort[early, joint]
        columns = np.column_stack((motion.velocity[early, joint], friction, load, segments + motion.segment[early]))
        moves = motion.velocity[:, joint].any()
        parts.append(columns[np.isfinite(columns[:, :2]).all(axis=1) & moves])
        segments += int(motion.segment.max(initial=0)) + 1
    velocity, friction, load, segment = np.concatenate(parts).T.copy()
    return CurveSamples(velocity, friction, None if np.isnan(load).any() else load, segment.astype(np.intp))


def find_delay(motions: Sequence[Motion], max_sigma: float = np.inf) -> tuple[float, str]:
    """How late the friction is [s], and why: where it is most nearly a function of the velocity, all joints together.

    Zero unless another value is clearly better; in steps of the largest period or of 5 ms.
    """
    step = max(_LATEST / _STEPS, max(motion.period for motion in motions))
    delays = step * np.arange(int(_LATEST / step) + 1)
    joints = range(len(motions[0].joint_names))
    spread = np.array([[_spread(curve_samples(motions, k, delay, max_sigma)) for k in joints] for delay in delays])
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = np.nan_to_num(spread / spread[0], nan=1.0).mean(axis=1)
    best = int(relative.argmin())
    if relative[best] > _CLEARLY:
        return 0.0, "friction is taken as that of its own stamp: no lateness fits the velocities clearly better"
    return float(delays[best]), (
        f"friction is taken as {delays[best]:.3g} s late: then the spread about a function of velocity is "
        f"{relative[best]:.2f} of that without"
    )


def _friction(motion: Motion, max_sigma: float) -> FloatArray:
    if FRICTION not in motion.inputs:
        raise InputError(
            f"{motion.name} has no measured friction: replay a bag first (topic joint_friction), or name a column "
            f"friction/JOINT; the columns other than position, velocity and effort are {choices(motion.inputs)}"
        )
    friction = motion.inputs[FRICTION]
    if SIGMA not in motion.inputs or np.isinf(max_sigma):
        return friction
    return np.where(motion.inputs[SIGMA] <= max_sigma, friction, np.nan)


def _shifted(motion: Motion, delay: float) -> tuple[IntArray, IntArray]:
    """Rows whose friction counts, and the earlier rows it belongs to; gaps in time are not crossed."""
    rows = round(delay / motion.period)
    late = np.arange(rows, motion.time.size)
    early = late - rows
    together = np.abs(motion.time[late] - motion.time[early] - rows * motion.period) < 0.5 * motion.period
    return late[together], early[together]


def _spread(samples: CurveSamples) -> float:
    """Mean variance of the friction within bins of equal velocity; NaN with too few samples."""
    samples = samples.thinned(_COMPARED)
    if samples.velocity.size < 10 * _BINS:
        return float("nan")
    ordered = samples.friction[np.argsort(samples.velocity, kind="stable")]
    return float(np.mean([part.var() for part in np.array_split(ordered, _BINS)]))
