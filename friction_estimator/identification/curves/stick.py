"""Stick phases of one motor, found from its velocity and friction: samples in which it slides are used."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.errors import ConfigError
from friction_estimator.types import BoolArray, FloatArray, IntArray

STOP_NOISE = 4.0
"""Standard deviations of its noise beyond which the sign of a velocity is certain."""
START_RATIO = 2.0
"""What must be reached at least once in a slip, as a multiple of the velocity that ends it."""
_NOISE_WINDOW = 0.5
"""Length of the windows in which noise is separated from motion [s]."""
_MOVES = 0.1
"""A window is in motion when its slowest sample is faster than this share of the RMS velocity."""


@dataclass(frozen=True, slots=True)
class StickOptions:
    """What counts as standing still.

    Attributes
    ----------
    stop_velocity : a slip ends when the speed falls below it [rad/s]; None takes it from the noise of the velocity
    start_velocity : a slip counts when it exceeds this at least once [rad/s]; None: twice ``stop_velocity``
    margin : cut from both ends of every slip: filters have smeared the stick phase into it [s]
    shortest : slips that are shorter after that are left out [s]
    """

    stop_velocity: float | None = None
    start_velocity: float | None = None
    margin: float = 0.05
    shortest: float = 0.05

    def __post_init__(self) -> None:
        for name in ("stop_velocity", "start_velocity", "margin", "shortest"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value >= 0.0):
                raise ConfigError(f"{name} of the stick phases is {value!r}, it must be a number, zero or above")


def velocity_noise(velocity: FloatArray, stretch: IntArray, period: float) -> float:
    """Standard deviation of the noise in a velocity (N,) [rad/s], from its quietest quarter of windows in motion.

    Within half a second motion by hand is close to a parabola; what is left around it is noise. The lower quartile
    passes over the windows where it is not. Windows at rest do not count: there an encoder reads one and the same
    step and has no noise at all. The parabola takes three of the samples, and more of a filtered signal, whose noise is
    then a little larger than estimated.
    """
    length = max(round(_NOISE_WINDOW / period), 6)
    starts = [k for k in range(0, velocity.size - length + 1, length) if stretch[k] == stretch[k + length - 1]]
    if not starts:
        return 0.0
    windows = np.stack([velocity[k : k + length] for k in starts], axis=1)
    moves = np.abs(windows).min(axis=0) > _MOVES * np.sqrt(np.mean(velocity**2))
    if moves.any():
        windows = windows[:, moves]
    basis = np.linalg.qr(np.vander(np.linspace(-1.0, 1.0, length), 3))[0]
    around = windows - basis @ (basis.T @ windows)
    return float(np.sqrt(np.quantile((around**2).sum(axis=0) / (length - 3), 0.25)))


def thresholds(options: StickOptions, noise: float) -> tuple[float, float]:
    """Velocities that end and that make a slip [rad/s], the second not below the first."""
    stop = STOP_NOISE * noise if options.stop_velocity is None else options.stop_velocity
    start = START_RATIO * stop if options.start_velocity is None else options.start_velocity
    return stop, max(start, stop)


def sliding(
    velocity: FloatArray,
    stretch: IntArray,
    period: float,
    options: StickOptions,
    friction: FloatArray | None = None,
) -> BoolArray:
    """Where one motor slides, all else are stick phases and their margins.

    A slip is a stretch in one direction that stays above ``stop_velocity`` and somewhere exceeds ``start_velocity``
    (hysteresis: noise cannot start one). When the friction torque is known, it must have taken power from the motor
    over the whole of the slip: what merely springs back in the transmission gives power, and is no slip. The whole slip
    is accepted or left out, never single samples, which would prefer those whose noise has the right sign.

    Parameters
    ----------
    velocity : (N,) [rad/s]
    stretch : (N,) number of the stretch without a gap in time; no slip reaches over two of them
    period : between two samples [s]
    friction : (N,) torque that resists the motion [N m], None when not known

    Returns
    -------
    (N,)
    """
    stop, start = thresholds(options, velocity_noise(velocity, stretch, period))
    direction = np.where(np.abs(velocity) > stop, np.sign(velocity), 0.0)
    margin, shortest = round(options.margin / period), max(round(options.shortest / period), 1)
    slides = np.zeros(velocity.size, dtype=bool)
    for begin, end in _runs(direction, stretch):
        slip = slice(begin, end)
        if direction[begin] == 0.0 or np.abs(velocity[slip]).max() < start:
            continue
        if friction is not None and friction[slip] @ velocity[slip] <= 0.0:
            continue
        if end - begin - 2 * margin >= shortest:
            slides[begin + margin : end - margin] = True
    return slides


def _runs(direction: FloatArray, stretch: IntArray) -> list[tuple[int, int]]:
    """Begin and end of every stretch with one direction in one stretch."""
    change = np.flatnonzero((np.diff(direction) != 0.0) | (np.diff(stretch) != 0)) + 1
    edges = [0, *change.tolist(), direction.size]
    return [(begin, end) for begin, end in zip(edges[:-1], edges[1:], strict=True) if end > begin]
