"""Trajectories for identification within the limits of a robot: Fourier series from rest to rest, and slow sweeps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from scipy.interpolate import BPoly
from scipy.linalg import null_space
from scipy.special import expit

from friction_estimator.errors import ConfigError, choices
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.robot.urdf import checked_urdf
from friction_estimator.types import FloatArray, IntArray

_DEFAULT_SPEED = 1.0
"""Velocity limit where neither the URDF nor the user gives one [rad/s or m/s]."""

_SPEED_RISE_TIME = 0.25
"""Time to reach the velocity limit, from which an acceleration limit follows that nobody gave [s]."""


@dataclass(frozen=True, slots=True)
class MotionLimits:
    """Limits of every joint. Nothing else is watched: neither collisions nor the workspace."""

    joint_names: tuple[str, ...]  # (n)
    # (n,) positions [rad or m]
    lower: FloatArray
    upper: FloatArray
    velocity: FloatArray  # (n,) [rad/s or m/s]
    acceleration: FloatArray  # (n,) [rad/s^2 or m/s^2]
    effort: FloatArray  # (n,) [N m or N], infinite where nothing is known
    choices: tuple[str, ...] = ()  # what was assumed where the URDF has no limit, in sentences

    def __post_init__(self) -> None:
        valid = (self.upper > self.lower) & (self.velocity > 0.0) & (self.acceleration > 0.0) & (self.effort > 0.0)
        if not valid.all():
            wrong = [name for name, good in zip(self.joint_names, valid, strict=True) if not good]
            raise ConfigError(f"the limits leave no motion to the joint {choices(wrong)}")

    def within(self, fraction: float) -> MotionLimits:
        """Tighter limits: ``fraction`` of the range about its middle, and of everything else."""
        middle, half = 0.5 * (self.lower + self.upper), 0.5 * (self.upper - self.lower)
        return MotionLimits(
            self.joint_names,
            middle - fraction * half,
            middle + fraction * half,
            fraction * self.velocity,
            fraction * self.acceleration,
            fraction * self.effort,
            self.choices,
        )


def limits_of_urdf(
    model: FixedBaseModel, velocity: float | None = None, acceleration: float | None = None
) -> MotionLimits:
    """Limits by the URDF, and defaults where it gives none.

    Parameters
    ----------
    model : of the joints that move
    velocity : another limit for all joints, where it is below that of the URDF [rad/s or m/s]
    acceleration : limit for all joints; a URDF has none [rad/s^2 or m/s^2]
    """
    names, notes = np.array(model.joint_names, dtype=object), list[str]()
    lower, upper = model.lower_limit, model.upper_limit
    limited = (upper > lower) & (upper - lower < _NO_LIMIT_FROM)
    if not limited.all():
        notes.append(f"no position limits of {', '.join(names[~limited])} in the URDF: -pi to pi taken")
    known = (model.velocity_limit > 0.0) & (model.velocity_limit < _NO_LIMIT_FROM)
    if velocity is None and not known.all():
        notes.append(f"no velocity limit of {', '.join(names[~known])} in the URDF: {_DEFAULT_SPEED:g} rad/s taken")
    ceiling = np.inf if velocity is None else velocity
    speed = np.where(known, np.minimum(model.velocity_limit, ceiling), velocity or _DEFAULT_SPEED)
    if acceleration is None:
        notes.append(
            f"a URDF has no acceleration limits: the velocity limit is reached in {_SPEED_RISE_TIME:g} s at the "
            "earliest"
        )
    rise = speed / _SPEED_RISE_TIME if acceleration is None else np.full(speed.shape, acceleration)
    return MotionLimits(
        model.joint_names,
        np.where(limited, lower, -np.pi),
        np.where(limited, upper, np.pi),
        speed,
        rise,
        np.where(model.effort_limit > 0.0, model.effort_limit, np.inf),
        tuple(notes),
    )


_NO_LIMIT_FROM = 1e3
"""Limits from here on are none [rad, rad/s]."""
LIGHT = 0.003
"""Share of the moving mass behind a joint: fingers of most robots have less, the last joints of arms more."""


def planned_joints(urdf_xml: str, joint_names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Joints worth a place in the plan, and light ones: fingers, tilting sensors.

    They have separate controllers, and opening and closing a gripper does not identify the arm. What mimics them is
    not counted with them. A URDF without masses has no light joints.

    Parameters
    ----------
    urdf_xml : text of the URDF
    joint_names : (n) that could move

    Returns
    -------
    planned, light : together the joints of ``joint_names``, in their order
    """
    model = pin.buildModelFromXML(checked_urdf(urdf_xml))
    masses = [inertia.mass for inertia in model.inertias]
    moving = sum(masses[1:])

    behind = {name: sum(masses[joint] for joint in model.subtrees[model.getJointId(name)]) for name in joint_names}
    light = tuple(name for name in joint_names if moving > 0.0 and behind[name] < LIGHT * moving)
    return tuple(name for name in joint_names if name not in light), light


_MINIMUM_HARMONICS = 3
"""With fewer, the conditions of rest leave hardly anything to choose."""


@dataclass(frozen=True, slots=True)
class FourierTrajectory:
    r"""Finite Fourier series of every joint.

    ``q(t) = q_0 + sum_l a_l / (w l) sin(w l t) - b_l / (w l) cos(w l t)`` with ``w = 2 pi / duration`` (J. Swevers et
    al., Optimal robot excitation and identification, 1997). Nothing of it lies above the highest harmonic, so that a
    low-pass above that leaves it whole.
    """

    duration: float  # of one period [s]
    harmonics: IntArray  # (L,) whole multiples of the base frequency
    offset: FloatArray  # (n,) q_0, the mean position [rad or m]
    sine: FloatArray  # (n, L) a [rad/s or m/s]
    cosine: FloatArray  # (n, L) b [rad/s or m/s]

    def at(self, time: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Position, velocity and acceleration at ``time`` (N,), each (N, n)."""
        bases = _fourier_bases(self.duration, self.harmonics, time)
        coefficients = np.hstack([self.sine, self.cosine]).T
        position, velocity, acceleration = (basis @ coefficients for basis in bases)
        return self.offset + position, velocity, acceleration

    def scaled(self, factor: float) -> FourierTrajectory:
        """The same with smaller or larger amplitudes about the same mean position."""
        return replace(self, sine=factor * self.sine, cosine=factor * self.cosine)


def _fourier_bases(duration: float, harmonics: IntArray, time: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What one unit of every coefficient (a, then b) adds to position, velocity and acceleration, each (N, 2 L)."""
    frequency = 2.0 * np.pi / duration * harmonics
    phase = np.outer(time, frequency)
    sine, cosine = np.sin(phase), np.cos(phase)
    return (
        np.hstack([sine / frequency, -cosine / frequency]),
        np.hstack([cosine, sine]),
        np.hstack([-sine * frequency, cosine * frequency]),
    )


def choose_harmonics(duration: float, bandwidth: float, count: int) -> IntArray:
    """``count`` multiples of the base frequency, evenly spread up to the bandwidth.

    Parameters
    ----------
    duration : of one period [s]
    bandwidth : highest frequency [Hz]
    count : how many; at most as many as there are

    Raises
    ------
    ConfigError
        When fewer than :data:`_MINIMUM_HARMONICS` fit.
    """
    highest = int(np.floor(bandwidth * duration * (1.0 + 1e-9)))
    if min(highest, count) < _MINIMUM_HARMONICS:
        raise ConfigError(
            f"{count} harmonics below {bandwidth:g} Hz in {duration:g} s: {highest} fit, at least {_MINIMUM_HARMONICS} "
            f"are needed; choose a longer duration (from {_MINIMUM_HARMONICS / bandwidth:g} s on), a higher bandwidth "
            "or more harmonics"
        )
    return np.unique(np.round(np.linspace(1, highest, min(count, highest))).astype(np.int64))


def slow_sweeps(
    start: FloatArray, velocities: FloatArray, dwell: float, ramp: float, time: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Motion away from ``start`` and back again at each velocity in turn, at rest at both ends, jerk finite.

    Between plateaus of constant velocity lie ramps: polynomials of fifth degree, so that position, velocity and
    acceleration have no jumps.

    Parameters
    ----------
    start : (n,) positions [rad or m]
    velocities : (levels, n) plateaus, their sign is the first direction [rad/s or m/s]
    dwell : duration of a plateau [s]
    ramp : duration of a change from rest to a plateau [s]
    time : (N,) from the start on [s]

    Returns
    -------
    position, velocity, acceleration : (N, n)
    """
    knots, states = [0.0], [np.array([start, 0.0 * start, 0.0 * start])]
    for speed in velocities:
        away = start + ramp / 2.0 * speed
        far = away + dwell * speed
        for duration, position, velocity in (
            (ramp, away, speed),
            (dwell, far, speed),
            (2.0 * ramp, far, -speed),
            (dwell, away, -speed),
            (ramp, start, 0.0 * speed),
        ):
            knots.append(knots[-1] + duration)
            states.append(np.array([position, velocity, 0.0 * speed]))
    curve = BPoly.from_derivatives(knots, np.array(states))
    return curve(time), curve.derivative(1)(time), curve.derivative(2)(time)


def sweep_duration(levels: int, dwell: float, ramp: float) -> float:
    """Duration of :func:`slow_sweeps` at this number of velocities [s]."""
    return levels * (2.0 * dwell + 4.0 * ramp)


def sweep_reach(speed: FloatArray, dwell: float, ramp: float) -> FloatArray:
    """Distance that a sweep at ``speed`` moves from its start, on its plateau and both ramps [rad or m]."""
    return np.abs(speed) * (dwell + 1.125 * ramp)


_GRID_A_PERIOD = 24  # samples in one period of the highest harmonic
_PEAK_OVER_GRID = 1.0 / np.cos(np.pi / _GRID_A_PERIOD)
"""Most that a peak is above two samples, as a factor (Ehlich & Zeller 1964)."""


class FeasibleTrajectories:
    """Fourier series as large as the limits of each joint allow.

    The first variables give the shape of every joint's motion; its amplitude follows, as position range, velocity or
    acceleration comes to its limit. The last ones place what is left of the range: the mean position.

    Parameters
    ----------
    duration : of one period [s]
    harmonics : (L,)
    limits : of the joints

    Attributes
    ----------
    dimension : how many variables a trajectory has, n (2 L - 1)
    """

    def __init__(self, duration: float, harmonics: IntArray, limits: MotionLimits) -> None:
        self._duration, self._harmonics, self._limits = duration, harmonics, limits
        # coefficients (a, then b) with neither velocity nor acceleration at the start, and so at the end of the period:
        # sum a = 0, sum l b = 0
        none = np.zeros(harmonics.size)
        conditions = np.array([np.hstack([none + 1.0, none]), np.hstack([none, harmonics])])
        self._rest: FloatArray = null_space(conditions)  # (2 L, 2 L - 2)
        grid = np.linspace(0.0, duration, _GRID_A_PERIOD * int(harmonics[-1]), endpoint=False)
        self._bases = [basis @ self._rest for basis in _fourier_bases(duration, harmonics, grid)]
        self._n = len(limits.joint_names)
        self.dimension = self._n * (self._rest.shape[1] + 1)

    def random(self, generator: np.random.Generator) -> FloatArray:
        """Variables (dimension,) of a random trajectory; lower harmonics are larger, as in a walk through the range."""
        coefficients = generator.standard_normal((self._n, 2, self._harmonics.size)) / self._harmonics
        shapes = coefficients.reshape(self._n, -1) @ self._rest
        return np.hstack([shapes.ravel(), generator.standard_normal(self._n)])

    def trajectory(self, variables: FloatArray) -> FourierTrajectory:
        """The trajectory of these variables (dimension,), within the limits."""
        limits = self._limits
        shapes = variables[: -self._n].reshape(self._n, -1).T  # (2 L - 2, n)
        position, velocity, acceleration = (basis @ shapes for basis in self._bases)
        low, high = position.min(axis=0), position.max(axis=0)
        middle, half = 0.5 * (high + low), 0.5 * _PEAK_OVER_GRID * (high - low)
        room = limits.upper - limits.lower
        use = np.max(
            [
                2.0 * half / room,
                _PEAK_OVER_GRID * np.abs(velocity).max(axis=0) / limits.velocity,
                _PEAK_OVER_GRID * np.abs(acceleration).max(axis=0) / limits.acceleration,
            ],
            axis=0,
        )
        amplitude = 1.0 / np.maximum(use, np.finfo(float).tiny)
        rest = room - 2.0 * amplitude * half
        offset = limits.lower - amplitude * (middle - half) + rest * expit(variables[-self._n :])
        sine, cosine = np.split(((self._rest @ shapes) * amplitude).T, 2, axis=1)
        return FourierTrajectory(self._duration, self._harmonics, offset, sine, cosine)
